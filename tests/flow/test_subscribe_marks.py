"""`poca-subscribe why`, `mark` and `retry`: what becomes of single episodes, and why."""

from __future__ import annotations

import pytest

from poca import locks
from poca.model import Fate
from tests.server import Reply, Server
from tests.subscribing import Desk, Show, names


@pytest.fixture
def show(web: Server) -> Show:
    return Show(web, "show").publish(5)


@pytest.fixture
def full(desk: Desk, show: Show) -> Desk:
    desk.write(show.subscription(max_number=3))
    assert desk.poca("-q").code == 0
    return desk


def test_why_gives_the_planners_reasons_and_asks_nobody(full: Desk, web: Server, show: Show) -> None:
    show.publish(2)
    web.routes["/show/7.mp3"] = Reply(404)
    full.poca("-q")
    (full.base / "Show" / "5.mp3").unlink()
    full.write(show.subscription(max_number=3, filters={"exclude_title": "Episode 1"}))
    asked = len(web.requests)
    told = full.good("why", "Show")
    assert full.verdicts("Show") == {
        "Episode 7": "wanted", "Episode 6": "held", "Episode 5": "deleted by you", "Episode 4": "past max_number",
        "Episode 3": "past max_number", "Episode 2": "past max_number", "Episode 1": "filtered out",
    }
    assert "filtered out by exclude_title" in told
    assert "404" in told
    assert len(web.requests) == asked


def test_why_tells_a_failed_episode_with_error_and_next_try(full: Desk, web: Server, show: Show) -> None:
    show.publish()
    web.routes["/show/6.mp3"] = Reply(404)
    for _ in range(2):
        full.poca("-q", "Show")
    lines = full.json("why", "Show", "1")
    assert [(line["rule"], line["number"]) for line in lines] == [("failed", 1)]
    assert "404" in lines[0]["detail"]
    assert lines[0]["next_try"] > 0
    assert "not tried again before" in full.good("why", "Show", "1")


def test_why_names_entries_that_are_no_episodes(desk: Desk, show: Show) -> None:
    show.items[-1].path = ""
    desk.write(show.subscription(max_number=2))
    desk.poca("-q")
    assert 'No episode: "Episode 5": ' in desk.good("why", "Show")
    assert desk.json("why", "Show")[-1]["rule"] == "no episode"


@pytest.mark.parametrize(("word", "numbers"), [
    ("1", [1]), ("2-4", [2, 3, 4]), ("4-2", [2, 3, 4]), ("4-99", [4, 5]), ("episode 2", [4]), ("EPISODE", [1, 2, 3, 4, 5]),
])
def test_episodes_are_meant_by_number_range_or_part_of_a_title(full: Desk, word: str, numbers: list[int]) -> None:
    assert [line["number"] for line in full.json("why", "Show", word)] == numbers


@pytest.mark.parametrize("word", ["0", "6", "nothing", "7-9", ""])
def test_a_word_that_means_no_episode_is_an_error(full: Desk, word: str) -> None:
    for command in ("mark", "retry"):
        done = full.subscribe(command, "Show", word)
        assert (done.code, "5" in done.err) == (2, True)
    assert full.fates("Show") == {f"Episode {n}": Fate.HELD for n in (3, 4, 5)}


def test_why_before_the_first_run_and_after_a_failed_one(desk: Desk, web: Server) -> None:
    desk.write({"title": "Show", "url": web.url("/none.xml", user="me:hunter2")})
    assert "not read yet" in desk.good("why", "Show")
    assert not desk.state.exists()
    desk.poca("-q")
    out = desk.good("why", "Show")
    assert "404" in out
    assert "hunter2" not in out


def test_why_knows_a_history_under_an_older_title(full: Desk, show: Show) -> None:
    full.write(show.subscription("New", max_number=3))
    assert "It was Show until now" in full.good("why", "New")
    assert list(full.verdicts("New").values()).count("held") == 3
    done = full.subscribe("mark", "New", "--all")
    assert (done.code, "run poca first" in done.err) == (1, True)


def test_what_is_marked_is_not_downloaded(full: Desk, show: Show) -> None:
    show.publish(3)
    out = full.good("mark", "Show", "Episode 4")
    assert "is held" in out
    full.poca("-q", "--dry-run")
    full.write(show.subscription(max_number=10))
    out = full.good("mark", "Show", "4-5")
    assert "2 episodes marked as had: Episode 2, Episode 1." in out
    assert full.poca("-q").code == 0
    assert names(full.base / "Show") == [f"{n}.mp3" for n in range(3, 9)]
    assert full.fates("Show")["Episode 1"] is Fate.MARKED


def test_all_of_a_feed_that_was_never_read_can_be_marked(desk: Desk, show: Show) -> None:
    desk.write(show.subscription(max_number=3))
    assert "5 episodes marked" in desk.good("mark", "Show", "--all")
    assert desk.poca("-q").code == 0
    assert desk.files() == {}
    show.publish()
    desk.poca("-q")
    assert names(desk.base / "Show") == ["6.mp3"]


def test_marking_needs_to_know_what(full: Desk) -> None:
    assert full.subscribe("mark", "Show").code == 2
    assert full.subscribe("mark", "Show", "1", "--all").code == 2


def test_a_marked_one_that_had_begun_leaves_no_part(full: Desk, web: Server, show: Show) -> None:
    item = show.publish().items[-1]
    web.routes["/show/6.mp3"] = Reply(body=item.body, type="audio/mpeg", etag='"6"', ranges=True, cut=2000)
    full.poca("-q")
    assert full.hidden()
    full.good("mark", "Show", "1")
    assert not full.hidden()
    assert full.poca("-q").code == 0


def test_what_the_user_deleted_comes_again_under_its_name_though_the_feed_is_unchanged(full: Desk) -> None:
    (full.base / "Show" / "5.mp3").unlink()
    assert full.poca("-q").code == 0
    assert full.fates("Show")["Episode 5"] is Fate.DELETED
    assert "1 episode taken again in the next run: Episode 5." in full.good("retry", "Show", "1")
    full.poca("-q")
    assert "5.mp3" in names(full.base / "Show")


def test_a_deletion_that_no_run_has_seen_yet_is_taken_back_too(full: Desk) -> None:
    (full.base / "Show" / "5.mp3").unlink()
    full.good("retry", "Show")
    full.poca("-q")
    assert names(full.base / "Show") == ["3.mp3", "4.mp3", "5.mp3"]


def test_marked_ones_come_again(desk: Desk, show: Show) -> None:
    desk.write(show.subscription(max_number=3))
    desk.good("mark", "Show", "--all")
    assert "5 episodes taken again" in desk.good("retry", "Show")
    desk.poca("-q")
    assert names(desk.base / "Show") == ["3.mp3", "4.mp3", "5.mp3"]


def test_retry_says_what_is_not_taken_all_the_same(full: Desk, show: Show) -> None:
    (full.base / "Show" / "3.mp3").unlink()
    show.publish()
    full.poca("-q")
    assert "Episode 3 is no longer held back, but it is not taken now: past max_number." in full.good("retry", "Show", "Episode 3")


def test_retry_says_how_many_have_left_the_feed(full: Desk, show: Show) -> None:
    for path in (full.base / "Show").glob("*.mp3"):
        path.unlink()
    full.poca("-q")
    show.window = 1
    full.poca("-q")
    assert full.good("retry", "Show").splitlines() == [
        "2 more are no longer held back, but no longer in the feed either.", "Show: 1 episode taken again in the next run: Episode 5."]


def test_failed_episodes_and_feeds_are_tried_at_once(full: Desk, web: Server, show: Show) -> None:
    show.publish()
    web.routes["/show/6.mp3"] = Reply(404)
    for _ in range(2):
        full.poca("-q", "Show")
    web.routes["/show.xml"] = Reply(404)
    for _ in range(3):
        full.poca("-q")
    assert full.histories()["Show"].next_try
    web.routes["/show/6.mp3"] = Reply(body=show.items[-1].body, type="audio/mpeg")
    web.routes["/show.xml"] = lambda request: show.reply()
    full.good("retry", "Show")
    assert full.poca("-q").code == 0
    assert "6.mp3" in names(full.base / "Show")


def test_nothing_to_take_again_is_said(full: Desk) -> None:
    assert "0 episodes taken again" in full.good("retry", "Show")


def test_while_another_poca_is_busy_nothing_is_changed(full: Desk) -> None:
    with locks.subscription_lock(full.state, "Show") as got:
        assert got
        for command in (["mark", "Show", "--all"], ["retry", "Show"]):
            done = full.subscribe(*command)
            assert (done.code, "busy" in done.err) == (1, True)
    assert Fate.MARKED not in full.fates("Show").values()


def test_a_plan_made_before_is_dropped(full: Desk) -> None:
    before = full.histories()["Show"].generation
    full.good("mark", "Show", "--all")
    assert full.histories()["Show"].generation > before


def test_base_dir_that_is_not_there_is_told(full: Desk) -> None:
    full.base.rename(full.folder / "away")
    assert full.subscribe("why", "Show").code == 2
    assert full.subscribe("retry", "Show").code == 2
    assert set(full.fates("Show").values()) == {Fate.HELD}


def test_a_file_that_is_back_is_held_and_not_taken_again(full: Desk, web: Server) -> None:
    path = full.base / "Show" / "5.mp3"
    body = path.read_bytes()
    path.unlink()
    full.poca("-q")
    path.write_bytes(body)
    assert "0 episodes taken again" in full.good("retry", "Show")
    full.poca("-q")
    assert full.fates("Show")["Episode 5"] is Fate.HELD
    assert not full.episodes("Show")["Episode 5"].adopted
    assert web.count("/show/5.mp3") == 1
