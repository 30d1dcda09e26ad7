"""`poca-subscribe delete`, `enable` and `disable`: what goes, and what stays."""

from __future__ import annotations

import pytest

from poca import locks
from poca.model import Episode, Fate, Stage
from tests.server import Server
from tests.subscribing import Desk, Show, names


@pytest.fixture
def show(web: Server) -> Show:
    return Show(web, "show").publish(5)


@pytest.fixture
def full(desk: Desk, web: Server, show: Show) -> Desk:
    """A desk with three episodes of Show and one of Other on disk."""
    other = Show(web, "other").publish(1)
    desk.write(show.subscription(max_number=3), other.subscription(max_number=1))
    assert desk.poca("-q").code == 0
    assert names(desk.base / "Show") == ["3.mp3", "4.mp3", "5.mp3"]
    return desk


def adopt(desk: Desk, show: Show) -> None:
    """A file that was there before poca, adopted as the newest episode."""
    item = show.publish().items[-1]
    (desk.base / "Show" / "6.mp3").write_bytes(item.body)
    assert desk.poca("-q").code == 0
    assert desk.episodes("Show")["Episode 6"].adopted


def test_delete_leaves_the_files_and_says_so(full: Desk) -> None:
    out = full.good("delete", "Show", "--yes")
    assert [s["title"] for s in full.subscriptions] == ["Other"]
    assert names(full.base / "Show") == ["3.mp3", "4.mp3", "5.mp3"]
    assert str(full.base / "Show") in out
    assert "Show" not in full.histories()


def test_files_that_stayed_are_never_deleted_when_the_title_comes_again(full: Desk, web: Server, show: Show) -> None:
    full.good("delete", "Show", "--yes")
    another = Show(web, "another").publish(2)
    full.good("add", another.url, "--title", "Show", "--max-number", "1")
    assert full.poca("-q").code == 0
    assert set(names(full.base / "Show")) > {"3.mp3", "4.mp3", "5.mp3"}


def test_delete_leaves_no_hidden_part_that_nobody_would_finish(full: Desk) -> None:
    folder = full.base / "Show"
    for name in (".poca-abc.part", ".poca-def.part", ".poca-def.tagging.part", ".poca-other.part"):
        (folder / name).write_bytes(b"half")
    state = full.state_open()
    for key, stage in (("abc", Stage.PART), ("def", Stage.TAGGING)):
        state.put("Show", Episode(key, key, f"http://127.0.0.1/{key}.mp3", key, stage=stage, part=f"Show/.poca-{key}.part"))
    state.close()
    full.good("delete", "Show", "--yes")
    assert sorted(path.name for path in folder.iterdir()) == [".poca-other.part", "3.mp3", "4.mp3", "5.mp3"]


def test_delete_with_files_removes_what_poca_put_there_and_the_empty_folder(full: Desk) -> None:
    out = full.good("delete", "Show", "--files", "--yes")
    assert names(full.base) == ["Other"]
    assert "3 removed" in out
    assert "Show" not in full.histories()
    assert any("removed 5.mp3" in line for line in full.log())
    assert full.poca("-q").silent


def test_adopted_and_strange_files_stay_and_are_named(full: Desk, show: Show) -> None:
    adopt(full, show)
    (full.base / "Show" / "notes.txt").write_text("mine")
    out = full.good("delete", "Show", "--files", "--yes")
    assert names(full.base / "Show") == ["6.mp3", "notes.txt"]
    assert "Show/6.mp3 (adopted)" in out
    assert "Show/notes.txt" in out


def test_a_recorded_file_that_the_user_replaced_by_something_else_stays(full: Desk) -> None:
    (full.base / "Show" / "4.mp3").write_text("a letter that I wrote, and that is not audio at all")
    full.good("disable", "Show", "--files")
    assert names(full.base / "Show") == ["4.mp3"]
    assert full.fates("Show")["Episode 4"] is Fate.DELETED


def test_parts_and_the_cover_of_poca_go_and_another_cover_stays(full: Desk, web: Server) -> None:
    state = full.state_open()
    from poca import cover
    from poca.model import Validators

    picture = full.base / "Show" / "cover.jpg"
    picture.write_bytes(b"a picture")
    state.cover("Show", "Show/cover.jpg", "http://127.0.0.1/", cover.digest(b"a picture"), Validators())
    state.cover("Other", "Other/cover.jpg", "http://127.0.0.1/", cover.digest(b"a picture"), Validators())
    (full.base / "Other" / "cover.jpg").write_bytes(b"the user's own")
    (full.base / "Show" / ".poca-abc.part").write_bytes(b"half")
    state.put("Show", Episode("abc", "g", "http://127.0.0.1/a.mp3", "Half", stage=Stage.PART, part="Show/.poca-abc.part"))
    state.close()
    full.good("delete", "Show", "Other", "--files", "--yes")
    assert not (full.base / "Show").exists()
    assert names(full.base / "Other") == ["cover.jpg"]


def test_disable_keeps_the_files_and_enable_goes_on(full: Desk, show: Show) -> None:
    full.good("disable", "Show")
    assert full.subscriptions[0]["state"] == "inactive"
    show.publish()
    assert full.poca("-q").code == 0
    assert len(names(full.base / "Show")) == 3
    assert "already" in full.good("disable", "Show")
    full.good("enable", "Show")
    assert full.poca("-q").code == 0
    assert "6.mp3" in names(full.base / "Show")


def test_files_removed_by_disable_may_come_again_and_what_the_user_deleted_does_not(full: Desk) -> None:
    (full.base / "Show" / "4.mp3").unlink()
    full.good("disable", "Show", "--files")
    assert not (full.base / "Show").exists()
    assert full.fates("Show") == {"Episode 3": Fate.REMOVED, "Episode 4": Fate.DELETED, "Episode 5": Fate.REMOVED}
    full.good("enable", "Show")
    assert full.poca("-q").code == 0
    assert names(full.base / "Show") == ["3.mp3", "5.mp3"]


def test_nothing_is_changed_while_another_poca_is_busy_with_it(full: Desk) -> None:
    before = full.config.read_bytes()
    with locks.subscription_lock(full.state, "Show") as got:
        assert got
        for command in (["delete", "Show", "--yes"], ["delete", "Show", "--files", "--yes"], ["disable", "Show", "--files"]):
            done = full.subscribe(*command)
            assert (done.code, "busy" in done.err) == (1, True)
    assert full.config.read_bytes() == before
    assert len(names(full.base / "Show")) == 3


def test_a_plan_made_before_is_dropped(full: Desk) -> None:
    before = full.histories()["Show"].generation
    full.good("disable", "Show", "--files")
    state = full.state_open()
    assert state.claim("Show", before) is None
    state.close()


def test_nothing_is_deleted_where_base_dir_bears_no_marker(full: Desk) -> None:
    (full.base / ".poca-base").unlink()
    before = full.config.read_bytes()
    done = full.subscribe("delete", "Show", "--files", "--yes")
    assert (done.code, "marker" in done.err) == (2, True)
    assert full.config.read_bytes() == before
    assert len(names(full.base / "Show")) == 3


def test_a_file_that_cannot_be_deleted_is_told_and_the_rest_goes(full: Desk) -> None:
    (full.base / "Show" / "4.mp3").unlink()
    (full.base / "Show" / "4.mp3").mkdir()
    (full.base / "Show" / "3.mp3").rename(full.base / "elsewhere")
    (full.base / "Show" / "3.mp3").symlink_to(full.base / "elsewhere")
    done = full.subscribe("delete", "Show", "--files", "--yes")
    assert done.code == 1
    assert "Episode 3" in done.err
    assert "next run" not in done.err
    assert (full.base / "elsewhere").exists()
    assert "5.mp3" not in names(full.base / "Show")


def test_delete_asks_nothing_without_a_terminal_and_says_which_option_answers(full: Desk) -> None:
    before = full.config.read_bytes()
    done = full.subscribe("delete", "Show", "--files")
    assert (done.code, "--yes" in done.err) == (2, True)
    assert "3 episodes (15.0 kB)" in done.err
    assert full.config.read_bytes() == before


def test_titles_are_meant_by_a_part_that_only_one_has(desk: Desk, web: Server) -> None:
    show = Show(web, "show").publish(1)
    desk.write({"title": "News of the Day", "url": show.url}, {"title": "News", "url": show.url + "?2"}, {"title": "Früh", "url": show.url + "?3"})
    assert "News of the Day is inactive" in desk.good("disable", "the day")
    assert "News is inactive" in desk.good("disable", "News")
    assert "Früh is inactive" in desk.good("disable", "FRU\u0308")
    done = desk.subscribe("disable", "news")
    assert done.code == 2
    assert "News of the Day, News" in done.err
    done = desk.subscribe("disable", "Friday Nwes")
    assert done.code == 2
    assert "There is no subscription" in done.err


@pytest.mark.parametrize("word", ["", " "])
def test_a_title_that_a_script_left_empty_means_no_subscription(desk: Desk, web: Server, word: str) -> None:
    desk.write({"title": "The Only One", "url": web.url("/x")})
    done = desk.subscribe("delete", word, "--yes")
    assert (done.code, done.err) == (2, f'There is no subscription "{word.strip()}".\n')
    assert [each["title"] for each in desk.subscriptions] == ["The Only One"]


def test_one_unknown_title_stops_all(full: Desk) -> None:
    before = full.config.read_bytes()
    assert full.subscribe("delete", "Show", "Nothing", "--yes").code == 2
    assert full.config.read_bytes() == before


def test_a_subscription_with_a_fault_can_be_deleted(full: Desk, show: Show) -> None:
    full.write(show.subscription(max_number="many"))
    assert full.subscribe("delete", "Show", "--files", "--yes").code == 0
    assert full.subscriptions == []
    assert not (full.base / "Show").exists()


def test_a_plan_made_before_is_dropped_also_where_there_was_nothing_to_remove(full: Desk) -> None:
    full.good("disable", "Show", "--files")
    before = full.histories()["Show"].generation
    full.good("disable", "Show", "--files")
    assert full.histories()["Show"].generation > before


def test_a_plan_made_before_the_first_record_is_dropped_and_the_title_may_be_given_again(full: Desk, web: Server, show: Show) -> None:
    new = Show(web, "new").publish(1)
    full.write(show.subscription(max_number=3), new.subscription())
    full.good("delete", "New", "--yes")
    state = full.state_open()
    assert state.claim("New", 0) is None
    state.close()
    full.write(show.subscription("New", max_number=3))
    assert "was Show until now" in full.poca().out
    assert names(full.base / "New") == ["3.mp3", "4.mp3", "5.mp3"]
    assert new.asked() == []
