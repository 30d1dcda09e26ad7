"""What poca promises about anybody's files, each kept by whole runs: a config, a server, a folder, and what is in it afterwards."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from poca.model import Fate
from tests.server import Reply, Server
from tests.subscribing import Desk
from tests.world import Item, Show, mp3

SETTINGS = {"timeout": 2}


def begun(desk: Desk, web: Server, count: int = 3, **options: object) -> Show:
    """A show of which ``count`` episodes are held."""
    show = Show(web, "pod").publish(count)
    desk.write(show.subscription(max_number=count, **options), settings=SETTINGS)
    assert desk.poca().code == 0
    assert len(desk.files()) == count
    return show


# ------------------------------------------------------------------------------------------ never for lack of knowledge

PAGE = b"<!DOCTYPE html><html><body>The service is down for a moment.</body></html>"


@pytest.mark.parametrize("answer", [
    Reply(body=b""), Reply(body=PAGE, type="text/html"), Reply(body=b'{"error": 77}'), Reply(body=b"<rss"), Reply(body=bytes(range(256))),
    Reply(404), Reply(410), Reply(500, body=b'<rss version="2.0"><channel><title>x</title></channel></rss>'),
], ids=["empty", "page", "json", "a beginning", "bytes", "404", "410", "500 that looks like a feed"])
def test_an_answer_that_is_no_feed_changes_nothing_on_disk_and_is_an_error(desk: Desk, web: Server, answer: Reply) -> None:
    show = begun(desk, web)
    desk.write(show.subscription(max_number=1), settings=SETTINGS)
    before = desk.files()
    web.routes[show.path] = answer
    done = desk.poca()
    assert (done.code, desk.files()) == (1, before)
    assert "Pod: " in done.err


def test_a_feed_that_was_cut_off_may_bring_downloads_and_deletes_nothing(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    show.publish()
    web.routes[show.path] = Reply(body=show.feed().partition(b"</item>")[0] + b"</item>\n<item><title>Epis")
    done = desk.poca()
    assert (done.code, sorted(desk.files())) == (1, ["Pod/1.mp3", "Pod/2.mp3", "Pod/3.mp3", "Pod/4.mp3"])
    assert "breaks off" in done.err
    assert "nothing is deleted" in done.err


def test_a_small_repair_is_told_by_v_only_and_costs_nothing(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    show.publish().items[-1].title = "Bed & Breakfast"
    web.routes[show.path] = Reply(body=b"\n" + show.feed().replace(b"&amp;", b"&"))
    quiet = desk.poca()
    assert (quiet.code, quiet.err) == (0, "")
    assert "Pod/4.mp3" in desk.files()
    assert desk.episodes("Pod")["Bed & Breakfast"].fate is Fate.HELD
    web.routes[show.path] = Reply(body=b"\n\n" + show.feed().replace(b"&amp;", b"&"))
    told = desk.poca("-v").out
    assert "unknown & were read as they stand" in told
    assert "blanks before the XML declaration" in told


def test_an_entry_that_is_no_episode_is_told_by_v_only(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    show.items.append(Item("Just words", "", "words", show.items[-1].published + 60))
    assert desk.poca().silent
    show.items[-1].title = "Just more words"
    assert "Just more words" in desk.poca("-v").out


def test_when_the_clock_was_set_back_one_run_deletes_nothing_and_the_next_is_normal(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    state = desk.state_open()
    state.saw(int(time.time()) + 1000)
    state.close()
    desk.write(show.subscription(max_number=1), settings=SETTINGS)
    careful = desk.poca()
    assert "the clock stands before the last run" in careful.err
    assert len(desk.files()) == 3
    desk.poca()
    assert list(desk.files()) == ["Pod/3.mp3"]


def test_a_feed_that_became_another_show_changes_nothing(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    stranger = Show(web, "stranger").publish(5)
    for item in stranger.items:
        item.title = f"Casino {item.title}"
    web.routes[show.path] = Reply(301, headers={"Location": stranger.url})
    text = desk.config.read_text(encoding="utf-8")
    before = desk.files()
    done = desk.poca()
    assert (done.code, desk.files(), desk.config.read_text(encoding="utf-8")) == (1, before, text)
    assert "none of its episodes" in done.err


# ------------------------------------------------------------------------------------------------ deleted by the user

def test_what_the_user_deleted_never_comes_again_by_itself_and_digs_up_no_older_one(desk: Desk, web: Server) -> None:
    show = begun(desk, web, 2)
    (desk.base / "Pod" / "2.mp3").unlink()
    assert "POD. 1 deleted by you" in desk.poca().out
    show.publish()
    desk.poca()
    assert list(desk.files()) == ["Pod/3.mp3"]      # the 2 newest are the deleted one and this one


def test_one_that_the_user_deleted_and_that_left_the_feed_no_longer_counts(desk: Desk, web: Server) -> None:
    show = begun(desk, web, 2)
    (desk.base / "Pod" / "2.mp3").unlink()
    desk.poca()
    del show.items[1]
    show.publish()      # Episode 2 again by its number, but with another guid, date and path
    show.items[-1] = Item("New", "/pod/new.mp3", "new", show.items[0].published + 9 * 86_400, mp3("new"))
    web.routes["/pod/new.mp3"] = Reply(body=mp3("new"), type="audio/mpeg")
    desk.poca()
    assert sorted(desk.files()) == ["Pod/1.mp3", "Pod/new.mp3"]


def test_in_from_the_top_each_one_deleted_makes_room_for_the_next(desk: Desk, web: Server) -> None:
    show = Show(web, "pod").publish(4)
    desk.write(show.subscription(max_number=2, from_the_top=True), settings=SETTINGS)
    desk.poca()
    assert sorted(desk.files()) == ["Pod/1.mp3", "Pod/2.mp3"]
    (desk.base / "Pod" / "1.mp3").unlink()
    desk.poca()
    assert sorted(desk.files()) == ["Pod/2.mp3", "Pod/3.mp3"]


def test_a_folder_that_cannot_be_read_is_an_error_and_not_a_deletion(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    (desk.base / "Pod").rename(desk.folder / "elsewhere")
    (desk.base / "Pod").write_text("a file in its place", encoding="utf-8")
    done = desk.poca()
    assert done.code == 1
    assert "Pod" in done.err
    (desk.base / "Pod").unlink()
    (desk.folder / "elsewhere").rename(desk.base / "Pod")
    assert desk.poca().silent
    assert set(desk.fates("Pod").values()) == {Fate.HELD}
    assert len(show.asked()) == 3


# ----------------------------------------------------------------------------------------------------------- base_dir

def test_a_drive_that_is_not_mounted_is_exit_2_and_nothing_is_done(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    show.publish()
    desk.base.rename(desk.folder / "away")
    desk.base.mkdir()                               # the empty mount point
    done = desk.poca()
    assert done.code == 2
    assert "is its drive mounted" in done.err
    assert list(desk.base.iterdir()) == []
    desk.base.rmdir()
    (desk.folder / "away").rename(desk.base)
    assert desk.poca().code == 0
    assert sorted(desk.files()) == ["Pod/2.mp3", "Pod/3.mp3", "Pod/4.mp3"]


def test_a_copy_without_the_marker_is_still_ours_and_gets_one(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    new = desk.folder / "new"
    shutil.copytree(desk.base, new, ignore=shutil.ignore_patterns(".*"))
    desk.write(show.subscription(max_number=3), settings={**SETTINGS, "base_dir": str(new)})
    done = desk.poca()
    assert done.code == 0
    assert "marker" in done.err
    assert len(show.asked()) == 3
    assert (new / ".poca-base").exists()


def test_a_history_belongs_to_one_base_dir_and_that_is_told(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    desk.write(show.subscription(), settings={**SETTINGS, "base_dir": str(desk.folder / "other")})
    done = desk.poca()
    assert done.code == 2
    assert "another state_dir" in done.err
    assert not (desk.folder / "other").exists()


# ----------------------------------------------------------------------------------------------------------- deleting

def test_nothing_but_what_poca_put_there_is_ever_touched(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    own = {"Pod/0.mp3": mp3("mine"), "Pod/notes.txt": b"mine", "Pod/list.m3u": b"1.mp3", "Pod/deep/9.mp3": mp3("deep"), "Other/a.mp3": mp3("a")}
    for path, body in own.items():
        (desk.base / path).parent.mkdir(exist_ok=True)
        (desk.base / path).write_bytes(body)
    desk.write(show.subscription(max_number=1), settings=SETTINGS)
    assert desk.poca().code == 0
    assert {path: body for path, body in desk.files().items() if path != "Pod/3.mp3"} == own


def test_a_file_that_the_user_has_changed_is_deleted_in_its_turn(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    (desk.base / "Pod" / "1.mp3").write_bytes(mp3("louder", 20))
    assert desk.poca().silent
    show.publish()
    desk.poca()
    assert sorted(desk.files()) == ["Pod/2.mp3", "Pod/3.mp3", "Pod/4.mp3"]


def test_a_file_that_was_there_before_poca_is_adopted_and_never_deleted(desk: Desk, web: Server) -> None:
    show = Show(web, "pod").publish(2)
    (desk.base / "Pod").mkdir(parents=True)
    (desk.base / "Pod" / "1.mp3").write_bytes(show.items[0].body)
    desk.write(show.subscription(max_number=2), settings=SETTINGS)
    assert "1 adopted" in desk.poca().out
    assert show.asked() == ["/pod/2.mp3"]
    show.publish(4)
    desk.poca()
    assert sorted(desk.files()) == ["Pod/1.mp3", "Pod/5.mp3", "Pod/6.mp3"]


# ------------------------------------------------------------------------------------------------------------ renamed

def test_a_new_title_with_the_same_url_takes_history_and_folder_along(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    desk.write(show.subscription("Better", max_number=3), settings=SETTINGS)
    done = desk.poca()
    assert "was Pod until now" in done.out
    assert sorted(desk.files()) == ["Better/1.mp3", "Better/2.mp3", "Better/3.mp3"]
    assert len(show.asked()) == 3
    assert not (desk.base / "Pod").exists()


def test_where_the_new_name_is_taken_the_files_stay_and_are_still_known(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    (desk.base / "Better").mkdir()
    desk.write(show.subscription("Better", max_number=3), settings=SETTINGS)
    assert "its files stay where they are" in desk.poca().out
    assert sorted(desk.files()) == ["Pod/1.mp3", "Pod/2.mp3", "Pod/3.mp3"]
    assert len(show.asked()) == 3


def test_a_subscription_with_a_fault_is_still_in_the_config_and_nobody_takes_its_history(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    desk.write(show.subscription(max_number="many"), show.subscription("Better", max_number=1), settings=SETTINGS)
    assert desk.poca().code == 1
    assert sorted(desk.files()) == ["Better/3.mp3", "Pod/1.mp3", "Pod/2.mp3", "Pod/3.mp3"]


def test_looking_only_does_none_of_it(desk: Desk, web: Server) -> None:
    show = begun(desk, web)
    show.publish(2)
    (desk.base / "Pod" / "3.mp3").unlink()
    desk.write(show.subscription("Better", max_number=1), settings=SETTINGS)

    def seen(root: Path) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    before = seen(desk.folder)
    done = desk.poca("--dry-run")
    assert seen(desk.folder) == before
    assert "1 deleted by you" in done.out
    assert "5.mp3" in done.out
