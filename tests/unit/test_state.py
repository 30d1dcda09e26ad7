from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from poca.errors import StateError
from poca.model import Episode, Fate, Fetched, History, Stage, Validators
from poca.state import Rename, State

NOW = 1_796_047_512         # 2026-11-30 14:05:12 UTC
DAY = 86_400

FULL = Episode(key="a1", guid="g", url="http://host/a.mp3", title="A", published=1, placed=2, seen_published=3, fate=Fate.HELD, stage=Stage.READY,
               path="Show/a.mp3", size=4, adopted=True, recorded=5, part="Show/.a.part", part_etag='"e"', part_total=6, failures=7, error="no",
               next_try=8, track=9)
BARE = Episode(key="b2", guid="", url="", title="")


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def state(state_dir: Path) -> Iterator[State]:
    with closing(State.open(state_dir, NOW)) as opened:
        yield opened


def reopened(state: State) -> dict[str, History]:
    """What another process reads now."""
    with closing(State.open(state.path.parent, NOW)) as other:
        return other.histories()


def held(key: str, path: str, size: int | None = 1) -> Episode:
    return Episode(key=key, guid=key, url="", title=key, fate=Fate.HELD, path=path, size=size)


def unprivileged(action: Callable[[], object]) -> str:
    """What the action raises, or returns, for somebody who is not root."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            said = str(action())
        except BaseException as error:  # the child of a test must never go on as a second pytest
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:  # noqa: PTH123
        said = pipe.read()
    os.waitpid(child, 0)
    return said


# ------------------------------------------------------------------------------------------------------ records

def test_a_fresh_history_is_empty_and_silent(state: State) -> None:
    assert state.alarms == ()
    assert state.histories() == {}
    assert state.history("Show") == History("Show")
    assert state.history("Show").fresh
    assert (state.marker, state.base_dir, state.last_run, state.recorded_files()) == ("", "", None, [])


def test_state_dir_and_all_in_it_are_private_to_the_user(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(State.open(tmp_path / "deep" / "state", NOW)) as state:
            state.put("Show", FULL)
            state.backup(NOW)
    finally:
        os.umask(before)
    assert (tmp_path / "deep" / "state").stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "deep" / "state").iterdir()}
    assert modes == {"poca.db": 0o600, "poca.db.bak": 0o600, "poca.db.lock": 0o600}


def test_a_state_dir_that_was_there_keeps_its_mode(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o750)
    State.open(state_dir, NOW).close()
    assert state_dir.stat().st_mode & 0o777 == 0o750


def test_a_path_with_characters_that_mean_something_in_a_uri_is_a_path_like_others(tmp_path: Path) -> None:
    odd = tmp_path / "a?b#c%20 d\udcff"
    with closing(State.open(odd, NOW)) as state:
        state.put("Show", FULL)
    with closing(State.open(odd, NOW, readonly=True)) as state:
        assert state.history("Show").episodes == (FULL,)
    assert (odd / "poca.db").is_file()


def test_episodes_are_recorded_whole_and_changed_whole(state: State) -> None:
    state.put("Show", FULL, BARE)
    state.put("Other", BARE)
    assert reopened(state)["Show"].episodes == (FULL, BARE)
    changed = Episode(key="a1", guid="", url="", title="")
    state.put("Show", changed)
    assert reopened(state)["Show"].episodes == (changed, BARE)
    assert reopened(state)["Other"].episodes == (BARE,)
    assert type(state.history("Show").episodes[0].adopted) is bool


def test_putting_nothing_makes_no_subscription(state: State) -> None:
    state.put("Show")
    assert state.histories() == {}


def test_forgotten_episodes_are_gone_and_the_others_stay(state: State) -> None:
    state.put("Show", FULL, BARE)
    state.put("Other", FULL)
    state.forget("Show", "a1", "unknown")
    state.forget("Unknown", "a1")
    assert {title: history.episodes for title, history in reopened(state).items()} == {"Show": (BARE,), "Other": (FULL,)}


def test_numbers_beyond_what_sqlite_holds_are_cut_to_it(state: State) -> None:
    state.put("Show", Episode(key="a", guid="", url="", title="", part_total=10**30, published=-10**30))
    assert (state.history("Show").episodes[0].part_total, state.history("Show").episodes[0].published) == (2**63 - 1, -2**63)


def test_a_feed_that_was_read_is_the_history_of_the_next_run(state: State) -> None:
    state.read_feed("Show", "http://host/feed", Fetched(Validators('"e"', "Mon"), "hash", b"packed\0"), NOW)
    assert reopened(state)["Show"] == History("Show", "http://host/feed", validators=Validators('"e"', "Mon"), body_hash="hash", packed=b"packed\0",
                                              last_good=NOW)


def test_an_answer_without_a_new_feed_keeps_the_entries_that_are_known(state: State) -> None:
    state.read_feed("Show", "u", Fetched(Validators('"1"'), "hash", b"packed"), NOW)
    state.read_feed("Show", "u", Fetched(Validators('"2"'), "hash"), NOW + 5)
    history = reopened(state)["Show"]
    assert (history.validators, history.packed, history.last_good) == (Validators('"2"'), b"packed", NOW + 5)


def test_a_failure_of_a_feed_is_kept_until_it_answers_well(state: State) -> None:
    state.read_feed("Show", "u", Fetched(Validators('"1"'), "hash", b"packed"), NOW)
    state.feed_failed("Show", "u", "The server said 500.", 3, NOW + 7200)
    history = reopened(state)["Show"]
    assert (history.error, history.failures, history.next_try, history.last_good) == ("The server said 500.", 3, NOW + 7200, NOW)
    assert (history.validators, history.body_hash, history.packed) == (Validators('"1"'), "hash", b"packed")
    state.read_feed("Show", "u", None, NOW + 9)
    history = reopened(state)["Show"]
    assert (history.error, history.failures, history.next_try, history.last_good) == ("", 0, None, NOW + 9)


def test_the_validators_of_one_url_are_not_kept_for_another(state: State) -> None:
    state.read_feed("Show", "old", Fetched(Validators('"1"', "Mon"), "hash", b"packed"), NOW)
    state.feed_failed("Show", "new", "No answer.", 1, None)
    history = reopened(state)["Show"]
    assert (history.url, history.validators, history.body_hash, history.packed) == ("new", Validators(), "", b"packed")


def test_what_was_settled_and_the_cover_are_kept(state: State) -> None:
    state.settle("Show", "print")
    state.cover("Show", "Show/cover.jpg", "http://host/c", "hash", Validators('"c"', "Tue"), "It was too large.")
    assert reopened(state)["Show"] == History("Show", settled="print", cover="Show/cover.jpg", cover_url="http://host/c", cover_hash="hash",
                                              cover_validators=Validators('"c"', "Tue"), cover_error="It was too large.")
    state.settle("Show", "")
    assert state.history("Show").settled == ""


def test_a_deleted_subscription_leaves_nothing(state: State) -> None:
    state.put("Show", FULL)
    state.read_feed("Show", "u", Fetched(Validators(), "hash", b"packed"), NOW)
    state.put("Other", FULL)
    state.delete_subscription("Show")
    assert list(reopened(state)) == ["Other"]
    assert state.history("Show") == History("Show")
    state.put("Show", BARE)
    assert state.history("Show") == History("Show", generation=1, episodes=(BARE,))


def test_the_files_of_a_history_are_those_it_holds(state: State) -> None:
    state.put("Show", BARE, Episode(key="r", guid="", url="", title="", fate=Fate.REMOVED, path="Show/gone.mp3", size=1))
    assert state.recorded_files() == []
    state.put("Show", held("a", "Show/a.mp3", 5))
    state.put("Other", held("b", "Other/b\udcff.mp3", None))
    assert sorted(state.recorded_files()) == [("Other/b\udcff.mp3", None), ("Show/a.mp3", 5)]


def test_marker_and_base_dir_are_kept(state: State) -> None:
    state.marker, state.base_dir = "id", "/pod\udcff"
    with closing(State.open(state.path.parent, NOW)) as other:
        assert (other.marker, other.base_dir) == ("id", "/pod\udcff")
    state.marker = "other"
    assert state.marker == "other"


# -------------------------------------------------------------------------------------------- several at once

def test_a_plan_is_claimed_once(state: State) -> None:
    with closing(State.open(state.path.parent, NOW)) as other:
        assert state.claim("Show", 0) == 1
        assert other.claim("Show", 0) is None
        assert other.claim("Show", 1) == 2
        assert state.claim("Show", 1) is None
        assert state.history("Show").generation == 2


def test_a_plan_is_worthless_after_a_change_from_outside_or_a_deletion(state: State) -> None:
    state.put("New", BARE)
    assert state.claim("New", 0) is None
    assert state.claim("New", 1) == 2
    state.put("New", FULL)
    assert state.claim("New", 2) is None
    state.delete_subscription("New")
    assert state.claim("New", 3) is None


def test_a_history_is_read_anew_after_the_first_time(state: State) -> None:
    with closing(State.open(state.path.parent, NOW)) as other:
        other.histories()
        state.put("Show", FULL)
        assert other.histories()["Show"].episodes == (FULL,)
    state.put("Show", BARE)
    assert state.histories()["Show"].episodes == (FULL, BARE)


def test_another_commit_under_way_is_waited_for(state: State) -> None:
    code = ("import sqlite3, sys, time; db = sqlite3.connect(sys.argv[1], isolation_level=None); db.execute('BEGIN EXCLUSIVE');"
            "print(flush=True); time.sleep(0.5); db.execute('COMMIT')")
    other = subprocess.Popen([sys.executable, "-c", code, str(state.path)], stdout=subprocess.PIPE)
    assert other.stdout is not None and other.stdout.readline()
    state.put("Show", FULL)
    other.communicate()
    assert state.history("Show").episodes == (FULL,)


def test_a_history_that_stays_locked_is_told_in_a_sentence(state_dir: Path) -> None:
    with closing(State.open(state_dir, NOW, patience=0.05)) as state, closing(sqlite3.connect(state.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for action in (lambda: state.put("Show", FULL), state.histories, lambda: state.claim("Show", 0), lambda: state.backup(NOW),
                       lambda: State.open(state_dir, NOW, patience=0.05), lambda: State.open(state_dir, NOW, readonly=True, patience=0.05)):
            state._opened = None
            with pytest.raises(StateError, match=r"Another program keeps the history .*poca\.db locked"):
                action()
        other.execute("COMMIT")
        state.put("Show", FULL)
        assert state.history("Show").episodes == (FULL,)


OPENER = """
import sys
from pathlib import Path
from poca.model import Episode
from poca.state import State
state = State.open(Path(sys.argv[1]), 0)
for number in range(5):
    state.put(sys.argv[2], Episode(str(number), "", "", ""))
print(len(state.alarms))
"""


def test_many_that_open_a_new_or_a_damaged_history_at_once_share_one(state_dir: Path) -> None:
    for damage in (b"", b"junk" * 5000, None):
        if damage is not None:
            state_dir.mkdir(exist_ok=True)
            (state_dir / "poca.db").write_bytes(damage)
        else:
            (state_dir / "poca.db").unlink()
        running = [subprocess.Popen([sys.executable, "-c", OPENER, str(state_dir), str(n)], stdout=subprocess.PIPE, text=True) for n in range(4)]
        said = sorted(one.communicate()[0] for one in running)
        assert [one.returncode for one in running] == [0] * 4
        assert said == ["0\n"] * 3 + ["0\n" if damage is None else "1\n"]
        with closing(State.open(state_dir, NOW)) as state:
            assert {title: len(history.episodes) for title, history in state.histories().items()} == dict.fromkeys("0123", 5)


def test_a_damaged_history_that_another_poca_has_open_stays_where_it_is(state: State) -> None:
    state.put("Show", FULL)
    sound = state.path.read_bytes()
    state.path.write_bytes(b"junk" * 5000)
    with pytest.raises(StateError, match="another poca still has it open"):
        State.open(state.path.parent, NOW, patience=0.1)
    assert sorted(path.name for path in state.path.parent.iterdir()) == ["poca.db", "poca.db.lock"]
    state.path.write_bytes(sound)
    assert reopened(state)["Show"].episodes == (FULL,)


def test_a_history_that_is_replaced_while_in_use_is_written_no_further(state: State) -> None:
    state.put("Show", FULL)
    state.path.rename(state.path.with_name("elsewhere"))
    with pytest.raises(StateError, match="moved or replaced while poca was using it"):
        state.put("Show", BARE)
    assert sorted(path.name for path in state.path.parent.iterdir()) == ["elsewhere", "poca.db.lock"]
    with pytest.raises(StateError, match="another poca still has it open"):
        State.open(state.path.parent, NOW, patience=0.1)


# ------------------------------------------------------------------------------------------------ few commits

def commits(state: State) -> int:
    """SQLite counts the commits that changed the file in its header (bytes 24 to 27)."""
    return int.from_bytes(state.path.read_bytes()[24:28], "big")


def test_a_run_with_nothing_new_is_one_commit(state: State) -> None:
    for number in range(20):
        state.read_feed(f"Show {number}", "u", Fetched(Validators('"1"'), "hash", b"packed"), NOW)
        state.settle(f"Show {number}", "print")
        state.put(f"Show {number}", FULL)
    state.saw(NOW)
    before = commits(state)
    for number in range(20):
        state.read_feed(f"Show {number}", "u", Fetched(Validators('"1"'), "hash"), NOW + 3600)
        state.settle(f"Show {number}", "print")
        state.put(f"Show {number}", FULL)
        state.forget(f"Show {number}", "unknown")
    state.read_feed("Show 3", "u", None, NOW + 3600)
    state.keep_for_mail([])
    state.mailed([])
    assert commits(state) == before
    state.saw(NOW + 3600)
    assert commits(state) == before + 1
    assert {history.last_good for history in reopened(state).values()} == {NOW + 3600}
    state.saw(NOW + 3600)
    assert commits(state) == before + 1


def test_many_episodes_are_one_commit(state: State) -> None:
    before = commits(state)
    state.put("Show", *(Episode(key=str(number), guid="", url="", title="") for number in range(100)))
    assert commits(state) == before + 1


# --------------------------------------------------------------------------------------------------- the clock

def test_the_instant_of_the_last_run_is_known_to_every_history(state: State) -> None:
    state.put("Show", FULL)
    state.saw(NOW)
    assert reopened(state)["Show"].last_run == NOW
    assert (state.history("Show").last_run, state.history("Never seen").last_run, state.last_run) == (NOW, NOW, NOW)


def test_a_clock_that_once_stood_in_the_future_makes_one_run_careful_and_not_all(state: State) -> None:
    far = NOW + 70 * 365 * DAY
    state.saw(far)
    assert state.last_run == far
    state.saw(NOW)
    assert state.last_run == NOW


# ------------------------------------------------------------------------------------------------------ copies

def test_a_copy_is_made_once_a_day(state: State) -> None:
    bak = state.path.with_name("poca.db.bak")
    state.put("Show", FULL)
    assert state.backup(NOW)
    first = bak.read_bytes()
    state.put("Show", BARE)
    assert not state.backup(NOW + DAY - 1)
    assert bak.read_bytes() == first
    assert state.backup(NOW + DAY)
    assert bak.read_bytes() != first
    assert state.backup(NOW), "a clock that was turned back must not stop the copies"
    bak.unlink()
    assert state.backup(NOW)
    assert sorted(path.name for path in state.path.parent.iterdir()) == ["poca.db", "poca.db.bak", "poca.db.lock"]


def test_a_copy_holds_everything(state: State, tmp_path: Path) -> None:
    state.put("Show", FULL, BARE)
    state.read_feed("Show", "u", Fetched(Validators('"1"'), "hash", b"packed" * 9999), NOW)
    state.marker = "id"
    state.backup(NOW)
    (tmp_path / "other").mkdir()
    state.path.with_name("poca.db.bak").rename(tmp_path / "other" / "poca.db")
    with closing(State.open(tmp_path / "other", NOW)) as other:
        assert (other.histories(), other.marker, other.alarms) == (state.histories(), "id", ())


def test_what_a_killed_copy_left_is_no_hindrance(state: State) -> None:
    state.path.with_name("poca.db.bak.new").write_bytes(b"half")
    state.path.with_name("poca.db.bak.new-journal").write_bytes(b"journal")
    assert state.backup(NOW)
    assert sorted(path.name for path in state.path.parent.iterdir()) == ["poca.db", "poca.db.bak", "poca.db.lock"]


# ----------------------------------------------------------------------------------------------------- dry runs

def listing(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) for path in folder.iterdir()}


def test_a_dry_run_reads_the_history_and_changes_nothing(state: State) -> None:
    state.put("Show", FULL)
    state.marker = "id"
    before = listing(state.path.parent)
    with closing(State.open(state.path.parent, NOW, readonly=True)) as dry:
        assert (dry.histories(), dry.marker, dry.alarms) == (state.histories(), "id", ())
        with pytest.raises(StateError, match="cannot be written to"):
            dry.put("Show", BARE)
    assert listing(state.path.parent) == before


def test_a_dry_run_without_a_history_makes_none(state_dir: Path) -> None:
    with closing(State.open(state_dir, NOW, readonly=True)) as dry:
        assert dry.histories() == {}
        assert dry.history("Show").fresh and dry.unfinished_renames() == []
    assert not state_dir.exists()


def test_a_dry_run_leaves_a_damaged_history_and_says_what_a_run_would_do(state: State) -> None:
    state.put("Show", FULL)
    for content in (b"", b"junk" * 5000, state.path.read_bytes()[:5000]):
        state.path.write_bytes(content)
        before = listing(state.path.parent)
        with pytest.raises(StateError, match=r"is damaged.*; the next run puts it aside"):
            State.open(state.path.parent, NOW, readonly=True)
        assert listing(state.path.parent) == before


# -------------------------------------------------------------------------------------------------- state_dir

def test_a_state_dir_that_is_a_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=f"The state_dir {tmp_path}/file is no folder"):
        State.open(tmp_path / "file", NOW)
    with pytest.raises(StateError, match=f"The state_dir {tmp_path}/file/state cannot be used"):
        State.open(tmp_path / "file" / "state", NOW)


def test_a_history_that_is_a_folder_is_told_in_a_sentence(state_dir: Path) -> None:
    (state_dir / "poca.db").mkdir(parents=True)
    with pytest.raises(StateError, match=r"The history .*poca\.db is no file"):
        State.open(state_dir, NOW)


def test_a_state_dir_or_history_of_somebody_else_is_told_in_a_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):        # pytest's own, one more of them with several workers
        if folder.name.startswith(("test_", "popen-", "pytest-")):
            folder.chmod(0o755)
    closed, file = tmp_path / "closed", tmp_path / "file"
    State.open(file, NOW).close()
    closed.mkdir(mode=0o555)
    file.chmod(0o777)
    (file / "poca.db").chmod(0o444)
    (file / "poca.db.lock").chmod(0o666)
    assert unprivileged(lambda: State.open(closed, NOW)) == f"StateError: The state_dir {closed} cannot be written to; poca keeps its history there."
    assert unprivileged(lambda: State.open(closed / "new", NOW)) == f"StateError: The state_dir {closed / 'new'} cannot be used: Permission denied."
    assert unprivileged(lambda: State.open(file, NOW)) == f"StateError: The history {file / 'poca.db'} cannot be written to."
    assert unprivileged(lambda: State.open(file, NOW, readonly=True).histories()) == "{}"


def test_a_disk_that_takes_no_more_is_told_in_a_sentence_and_what_was_recorded_stays(state: State) -> None:
    state.put("Show", FULL)
    code = ("import resource, signal, sys; from pathlib import Path; from poca.state import State; from poca.model import Episode\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); s = State.open(Path(sys.argv[1]), 0); n = s.path.stat().st_size\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))\n"
            "try: s.put('Show', *(Episode(str(i), 'x' * 500, '', '') for i in range(900)))\n"
            "except Exception as error: print(type(error).__name__, error)")
    said = subprocess.run([sys.executable, "-c", code, state.path.parent], check=True, capture_output=True, text=True).stdout
    assert said == f"StateError The disk failed while poca used the history {state.path}.\n"
    assert reopened(state)["Show"].episodes == (FULL,)


def test_a_newer_history_is_refused_and_left_as_it_is(state: State) -> None:
    state.put("Show", FULL)
    with closing(sqlite3.connect(state.path)) as db:
        db.execute("PRAGMA user_version = 999")
    before = state.path.read_bytes()
    for readonly in (False, True):
        with pytest.raises(StateError, match="written by a newer poca"):
            State.open(state.path.parent, NOW, readonly=readonly)
    assert state.path.read_bytes() == before
    assert sorted(path.name for path in state.path.parent.iterdir()) == ["poca.db", "poca.db.lock"]


# --------------------------------------------------------------------------------------------------- a new title

def test_a_subscription_with_a_new_title_keeps_its_history_and_its_paths_follow_the_folder(state: State) -> None:
    state.put("Old", held("a", "Old/a.mp3"), held("b", "Older/b.mp3"), Episode("c", "", "", "", part="Old/sub/.c.part"))
    state.cover("Old", "Old/cover.jpg", "", "", Validators())
    state.read_feed("Old", "u", Fetched(Validators('"1"'), "hash", b"packed"), NOW)
    before = state.history("Old")
    state.begin_rename("Old", "New", "Old", "New")
    with closing(State.open(state.path.parent, NOW)) as killed_here:
        assert killed_here.unfinished_renames() == [Rename("Old", "New", "Old", "New")]
        assert killed_here.histories() == {"Old": before}
    state.finish_rename("Old")
    after = reopened(state)
    assert list(after) == ["New"] and state.unfinished_renames() == []
    assert [(e.path, e.part) for e in after["New"].episodes] == [("New/a.mp3", ""), ("Older/b.mp3", ""), ("", "New/sub/.c.part")]
    assert (after["New"].cover, after["New"].packed, after["New"].url) == ("New/cover.jpg", b"packed", "u")


@pytest.mark.parametrize(("new_folder", "moved"), [(None, True), ("New", False)])
def test_where_the_folder_stays_only_the_title_changes(state: State, new_folder: str | None, moved: bool) -> None:
    state.put("Old", held("a", "Old/a.mp3"))
    state.begin_rename("Old", "New", "Old", new_folder)
    state.finish_rename("Old", moved=moved)
    assert {title: [e.path for e in history.episodes] for title, history in reopened(state).items()} == {"New": ["Old/a.mp3"]}


def test_a_folder_can_move_while_the_title_stays(state: State) -> None:
    state.put("Show: one", held("a", "Show: one/a.mp3"))
    state.begin_rename("Show: one", "Show: one", "Show: one", "Show one")
    state.finish_rename("Show: one")
    assert [e.path for e in reopened(state)["Show: one"].episodes] == ["Show one/a.mp3"]


def test_a_title_under_which_episodes_are_known_is_not_taken(state: State) -> None:
    state.put("Old", held("a", "Old/a.mp3"))
    state.put("New", held("b", "New/b.mp3"))
    with pytest.raises(StateError, match=r"“Old” cannot become “New”"):
        state.begin_rename("Old", "New", "Old", None)
    assert state.unfinished_renames() == [] and sorted(reopened(state)) == ["New", "Old"]


def test_a_title_under_which_only_failures_are_known_is_taken(state: State) -> None:
    state.put("Old", held("a", "Old/a.mp3"))
    state.feed_failed("New", "u", "No answer.", 1, None)
    state.begin_rename("Old", "New", "Old", None)
    state.finish_rename("Old")
    assert {title: (h.error, len(h.episodes)) for title, h in reopened(state).items()} == {"New": ("", 1)}


def test_finishing_what_was_never_begun_does_nothing(state: State) -> None:
    state.put("Old", FULL)
    state.finish_rename("Old")
    assert list(reopened(state)) == ["Old"]


# ---------------------------------------------------------------------------------------------------------- mail

def test_log_entries_are_kept_for_the_mail_until_it_went_out(state: State) -> None:
    state.keep_for_mail(["one", "two\udcff"])
    state.keep_for_mail(["three"])
    with closing(State.open(state.path.parent, NOW)) as later:
        entries = later.mail_entries()
        assert [line for _, line in entries] == ["one", "two\udcff", "three"]
        later.mailed(number for number, _ in entries[:2])
    state.keep_for_mail(["four"])
    assert [line for _, line in state.mail_entries()] == ["three", "four"]
    state.mailed([number for number, _ in state.mail_entries()])
    state.keep_for_mail(["five"])
    assert {number for number, _ in state.mail_entries()}.isdisjoint(number for number, _ in entries)


# --------------------------------------------------------------------------------------------------- sudden ends

WRITER = """
import sys
from pathlib import Path
from poca.model import Episode, Fate
from poca.state import State
state = State.open(Path(sys.argv[1]), 0)
number = len(state.history("Show").episodes)
while True:
    state.put("Show", Episode(f"{number}", "x" * 2000, "", "", fate=Fate.HELD, size=number))
    print(number, flush=True)
    number += 1
"""


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(state_dir: Path) -> None:
    chance = random.Random(1)
    acknowledged = -1
    for _ in range(8):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(state_dir)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None and writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.2))
        writer.send_signal(signal.SIGKILL)
        lines = writer.communicate()[0].split("\n")
        acknowledged = int(lines[-2]) if len(lines) > 1 else acknowledged + 1
        with closing(State.open(state_dir, NOW)) as state:
            assert state.alarms == ()
            sizes = [episode.size for episode in state.history("Show").episodes]
            assert sizes == list(range(len(sizes))) and len(sizes) > acknowledged
            acknowledged = len(sizes) - 1


def test_the_folders_around_the_state_dir_are_made(tmp_path: Path) -> None:
    with closing(State.open(tmp_path / ".local" / "state" / "poca", NOW)):
        assert (tmp_path / ".local" / "state" / "poca" / "poca.db").is_file()


def test_a_warning_that_is_told_once_is_new_once_whatever_runs_come_after(state: State) -> None:
    assert [state.is_new("MP4 has no tag for website"), state.is_new("MP4 has no tag for website"), state.is_new("MP4 has no tag for length")] == [
        True, False, True]
    state.close()
    with closing(State.open(state.path.parent, NOW)) as next_run:
        assert not next_run.is_new("MP4 has no tag for website") and next_run.marker == ""


def test_a_commit_that_was_cut_off_is_undone_by_the_next_run_and_not_seen_by_one_that_only_looks(state: State, tmp_path: Path) -> None:
    state.put("Show", FULL)
    cut = tmp_path / "cut"
    cut.mkdir()
    with closing(sqlite3.connect(state.path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE episode SET title = 'half'")
        db.executemany("INSERT INTO mail (line) VALUES (?)", [("x" * 3000,)] * 200)
        for path in state.path.parent.iterdir():
            (cut / path.name).write_bytes(path.read_bytes())
        db.execute("ROLLBACK")
    assert (cut / "poca.db-journal").stat().st_size > 0 and b"half" in (cut / "poca.db").read_bytes()
    before = listing(cut)
    with closing(State.open(cut, NOW, readonly=True)) as looked_at:
        assert (looked_at.alarms, looked_at.history("Show").episodes, looked_at.mail_entries()) == ((), (FULL,), [])
    assert listing(cut) == before
    with closing(State.open(cut, NOW)) as opened:
        assert (opened.alarms, opened.history("Show").episodes, opened.mail_entries()) == ((), (FULL,), [])
