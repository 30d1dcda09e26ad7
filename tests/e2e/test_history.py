"""What outlives a run, and what befalls it: history, base_dir, titles."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from poca.locks import copy_lock
from poca.model import Fate, Stage
from poca.state import State
from tests.server import Reply, Server
from tests.world import FIRST, Home, Show, ended, until

NOW = FIRST + 400 * 86_400


@pytest.fixture
def show(home: Home, server: Server) -> Show:
    """A subscription that holds three episodes, after a good run."""
    show = Show(server, "show").publish(3)
    home.write(show.subscription(max_number=3))
    assert home.run().code == 0
    assert sorted(home.files()) == ["Show/1.mp3", "Show/2.mp3", "Show/3.mp3"]
    return show


def commits(home: Home) -> int:
    """The file change counter of the history (SQLite file format, 1.3.7): it grows by one with each commit."""
    return int.from_bytes((home.state / "poca.db").read_bytes()[24:28], "big")


# -------------------------------------------------------------------------------------------------- nothing is new

@pytest.mark.parametrize("etag", [True, False], ids=["304", "the same bytes again"])
def test_a_run_without_news_says_nothing_asks_no_media_and_commits_at_most_once(home: Home, server: Server, etag: bool) -> None:
    several = [Show(server, f"show{number}").publish(2) for number in range(5)]
    if not etag:
        for one in several:
            server.routes[one.path] = Reply(body=one.feed(), type="application/rss+xml")
    home.write(*(one.subscription(max_number=1) for one in several))
    assert home.run().code == 0
    before, asked, tree = commits(home), len(server.requests), home.files()
    for _ in range(2):
        done = home.run()
        assert done.silent and done.code == 0
    assert commits(home) - before <= 2
    assert [request.path for request in server.requests[asked:] if not request.path.endswith(".xml")] == []
    assert home.files() == tree
    assert any("if-none-match" in request.headers for request in server.requests[asked:]) == etag


# --------------------------------------------------------------------------------------------------------- base_dir

def test_a_base_dir_that_is_away_is_neither_filled_anew_nor_taken_for_deletions(home: Home, show: Show) -> None:
    home.base.rename(home.folder / "away")
    show.publish()
    done = home.run()
    assert done.code == 2 and str(home.base) in done.err and "Nothing was done" in done.err
    assert not home.base.exists()
    home.base.mkdir()           # an empty mount point
    assert home.run().code == 2
    assert list(home.base.iterdir()) == []
    home.base.rmdir()
    (home.folder / "away").rename(home.base)
    assert home.run().code == 0
    assert sorted(home.files()) == ["Show/2.mp3", "Show/3.mp3", "Show/4.mp3"]
    assert Fate.DELETED not in home.fates("Show").values()


def test_a_copy_of_base_dir_goes_on_without_its_marker(home: Home, show: Show) -> None:
    (home.base / ".poca-base").unlink()
    (home.base / "Show" / "1.mp3").unlink()
    done = home.run()
    assert done.code == 0 and "marker was written anew" in done.err
    assert (home.base / ".poca-base").exists()
    assert home.fates("Show")["Episode 1"] is Fate.DELETED
    assert len(show.asked()) == 3


def test_the_base_dir_of_another_history_is_left_alone(home: Home, show: Show, server: Server) -> None:
    other = Home(home.folder / "other")
    other.write(show.subscription())
    assert other.run().code == 0
    tree = other.tree()
    home.write(show.subscription(max_number=1), settings={"base_dir": str(other.base)})
    done = home.run()
    assert done.code == 2 and "another history" in done.err
    assert other.tree() == tree


def test_a_base_dir_that_goes_away_while_feeds_are_asked_is_no_deletion(home: Home, show: Show, server: Server) -> None:
    show.publish()
    body = show.feed()
    server.routes[show.path] = Reply(body=body, type="application/rss+xml", delay=1)
    asked = server.count(show.path)
    process = home.start()
    until(lambda: server.count(show.path) > asked)
    home.base.rename(home.folder / "away")
    home.base.mkdir()
    done = ended(process)
    assert done.code == 1 and "marker" in done.err
    assert list(home.base.iterdir()) == []
    home.base.rmdir()
    (home.folder / "away").rename(home.base)
    assert home.run().code == 0
    assert sorted(home.files()) == ["Show/2.mp3", "Show/3.mp3", "Show/4.mp3"]
    assert Fate.DELETED not in home.fates("Show").values()


def test_a_base_dir_that_goes_away_within_a_download_loses_nothing(home: Home, show: Show, server: Server) -> None:
    show.publish()
    path, body = show.items[3].path, show.items[3].body
    server.routes[path] = Reply(body=body, type="audio/mpeg", drip=0.0003)
    process = home.start()
    until(home.hidden)
    home.base.rename(home.folder / "away")
    done = ended(process)
    assert done.code == 1 and "Episode 4" in done.err
    assert not home.base.exists()
    (home.folder / "away").rename(home.base)
    server.routes[path] = Reply(body=body, type="audio/mpeg")
    assert home.run("Show").code == 0
    assert sorted(home.files()) == ["Show/2.mp3", "Show/3.mp3", "Show/4.mp3"] and home.hidden() == []
    assert Fate.DELETED not in home.fates("Show").values()


# ----------------------------------------------------------------------------------------------------------- titles

def test_a_subscription_with_a_new_title_keeps_its_episodes_in_a_folder_of_that_name(home: Home, show: Show) -> None:
    home.write(show.subscription("Another", max_number=3))
    done = home.run()
    assert done.code == 0 and "was Show until now" in done.out
    assert sorted(home.files()) == ["Another/1.mp3", "Another/2.mp3", "Another/3.mp3"]
    assert not (home.base / "Show").exists() and len(show.asked()) == 3
    show.publish()
    assert home.run().code == 0
    assert sorted(home.files()) == ["Another/2.mp3", "Another/3.mp3", "Another/4.mp3"]


@pytest.mark.parametrize("moved", [False, True], ids=["before its folder was moved", "after its folder was moved"])
@pytest.mark.parametrize("title", ["Another", "Show"], ids=["the new title stays", "the old title is back"])
def test_a_renaming_that_was_cut_short_loses_nothing(home: Home, show: Show, moved: bool, title: str) -> None:
    state = State.open(home.state, NOW)
    state.begin_rename("Show", "Another", "Show", "Another")
    state.close()
    if moved:
        (home.base / "Show").rename(home.base / "Another")
    home.write(show.subscription(title, max_number=3))
    assert home.run().code == 0
    assert home.run().silent
    assert sorted(home.files()) == [f"{title}/1.mp3", f"{title}/2.mp3", f"{title}/3.mp3"]
    assert len(show.asked()) == 3
    assert set(home.fates(title).values()) == {Fate.HELD}


def test_a_subscription_that_gets_a_new_title_while_it_is_downloaded_is_left_alone_until_then(home: Home, show: Show, server: Server) -> None:
    show.publish()
    path, body = show.items[3].path, show.items[3].body
    server.routes[path] = Reply(body=body, type="audio/mpeg", drip=0.0006)
    first = home.start()
    until(home.hidden)
    home.write(show.subscription("Another", max_number=3))
    second = home.run()
    assert second.silent and second.code == 0
    assert first.poll() is None and not (home.base / "Another").exists(), "the first was to be busy still"
    assert ended(first).code == 0
    assert home.run().code == 0
    assert sorted(home.files()) == ["Another/2.mp3", "Another/3.mp3", "Another/4.mp3"] and len(show.asked()) == 4


def test_a_subscription_with_a_fault_is_not_taken_for_one_that_is_gone(home: Home, show: Show, server: Server) -> None:
    home.write(show.subscription(max_number="many"), show.subscription("Another", max_number=3))
    done = home.run()
    assert done.code == 1 and "until now" not in done.out
    assert {name for name in home.files() if name.startswith("Show/")} == {"Show/1.mp3", "Show/2.mp3", "Show/3.mp3"}


@pytest.mark.parametrize("held", [True, False], ids=["with its files", "without a file"])
def test_a_dry_run_on_a_folder_that_lost_its_marker_shows_what_the_next_run_will_do(home: Home, server: Server, held: bool) -> None:
    show = Show(server, "show").publish(2 if held else 0)
    home.write(show.subscription())
    assert home.run().code == 0
    (home.base / ".poca-base").unlink()
    show.publish()
    before = home.tree()
    done = home.run("--dry-run")
    assert done.code == 0 and ("Show/3.mp3" if held else "Show/1.mp3") in done.out
    assert ("will be written anew" in done.err) is held
    assert home.tree() == before
    assert home.run().code == 0 and len(home.files()) == (3 if held else 1)


# ---------------------------------------------------------------------------------------------------------- history

def test_while_another_poca_makes_the_daily_copy_a_run_leaves_that_to_it(home: Home, server: Server) -> None:
    home.write(Show(server, "show").publish().subscription())
    home.state.mkdir()
    with copy_lock(home.state) as mine:
        assert mine and home.run().code == 0
        assert not (home.state / "poca.db.bak").exists()
    assert home.run().code == 0
    assert (home.state / "poca.db.bak").exists()


@pytest.mark.parametrize("damage", [b"", b"no database " * 500], ids=["emptied", "damaged"])
@pytest.mark.parametrize("copy", [True, False], ids=["with a good copy", "without one"])
def test_a_history_that_is_lost_is_told_and_costs_no_episode(home: Home, show: Show, damage: bytes, copy: bool) -> None:
    (home.state / "poca.db").write_bytes(damage)
    assert (home.state / "poca.db.bak").exists()
    if not copy:
        (home.state / "poca.db.bak").unlink()
    done = home.run()
    assert done.code == 1 and "history" in done.err
    assert sorted(home.files()) == ["Show/1.mp3", "Show/2.mp3", "Show/3.mp3"] and len(show.asked()) == 3
    assert any(path.read_bytes() == damage for path in home.state.glob("poca.db*") if path.name not in ("poca.db", "poca.db.bak"))
    assert home.run().silent
    show.publish()
    assert home.run().code == 0
    # What was adopted is never deleted; what poca's own record holds is.
    assert sorted(home.files()) == [f"Show/{number}.mp3" for number in ((2, 3, 4) if copy else (1, 2, 3, 4))]


def test_the_history_of_a_newer_poca_is_left_alone(home: Home, show: Show) -> None:
    path = home.state / "poca.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()
    before = path.read_bytes()
    done = home.run()
    assert done.code == 2 and "newer" in done.err
    assert path.read_bytes() == before and len(show.asked()) == 3


def test_a_state_dir_that_cannot_be_used_is_told(home: Home, server: Server) -> None:
    show = Show(server, "show").publish()
    blocked = home.folder / "file"
    blocked.write_text("not a folder", encoding="ascii")
    home.write(show.subscription(), settings={"state_dir": str(blocked / "state")})
    done = home.run()
    assert done.code == 2 and str(blocked) in done.err
    assert server.requests == []


def test_a_home_that_is_copied_elsewhere_goes_on_there(home: Home, show: Show) -> None:
    elsewhere = Home(home.folder / "elsewhere")
    shutil.copytree(home.base, elsewhere.base)
    shutil.copytree(home.state, elsewhere.state)
    elsewhere.write(show.subscription(max_number=3))
    done = elsewhere.run()
    assert done.silent and done.code == 0, done
    assert Path(elsewhere.base / "Show" / "3.mp3").exists() and len(show.asked()) == 3


# -------------------------------------------------------------------------------------------------------- cut short

def test_what_a_killed_run_had_all_but_recorded_is_told_by_the_next(home: Home, show: Show) -> None:
    state = State.open(home.state, NOW)
    first, _, third = sorted(state.history("Show").episodes, key=lambda episode: episode.path)
    state.put("Show", replace(third, fate=Fate.PENDING, stage=Stage.READY, part="Show/.poca-0.part"), replace(first, stage=Stage.DELETING))
    state.close()
    (home.base / first.path).unlink()
    logged = len(home.log())
    home.write(show.subscription(max_number=2))
    done = home.run()
    told = ["Show: downloaded 3.mp3 (5.0 kB) in a run that was cut short", "Show: removed 1.mp3 in a run that was cut short"]
    assert sorted(home.log()[logged:]) == sorted(done.out.splitlines()[:-1]) == told
    assert done.code == 0
    assert home.fates("Show") == {"Episode 1": Fate.REMOVED, "Episode 2": Fate.HELD, "Episode 3": Fate.HELD}
    assert len(show.asked()) == 3
