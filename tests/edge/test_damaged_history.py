"""A history that was damaged, emptied or taken away: set aside and told, never lost, and poca goes on."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from poca.errors import StateError
from poca.model import Episode, Fate, Fetched, History, Validators
from poca.state import State

NOW = 1_796_047_512         # 2026-11-30 14:05:12 UTC
PAGE = 4096

Damage = tuple[str, bytes]


def fill(state: State) -> dict[str, History]:
    for show in range(2):
        title = f"Show {show}"
        state.read_feed(title, f"http://host/{show}", Fetched(Validators('"e"'), "hash", random.Random(show).randbytes(9_000)), NOW)
        state.put(title, *(Episode(f"{number:032x}", f"guid {number}", f"http://host/{number}.mp3", f"Episode {number}", number, number, number,
                                   fate=Fate.HELD, path=f"{title}/{number}.mp3", size=number, recorded=NOW) for number in range(20)))
    state.keep_for_mail(["a line"] * 100)
    return state.histories()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, History]]:
    folder = tmp_path_factory.mktemp("sound")
    with closing(State.open(folder, NOW)) as state:
        histories = fill(state)
    return (folder / "poca.db").read_bytes(), histories


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def damages(content: bytes) -> Iterator[Damage]:
    chance = random.Random(7)
    pages = len(content) // PAGE
    for page in range(pages):
        start, end = page * PAGE, (page + 1) * PAGE
        other = (page + 1 + chance.randrange(pages - 1)) % pages * PAGE
        another = content[other:other + PAGE]
        for name, junk in (("zeros", bytes(PAGE)), ("ones", b"\xff" * PAGE), ("noise", chance.randbytes(PAGE)), ("another", another)):
            yield f"page {page} {name}", content[:start] + junk + content[end:]
        for quarter in range(4):
            yield f"cut in page {page} at {quarter}/4", content[:start + quarter * PAGE // 4]
    for at in range(100):
        yield f"header byte {at}", content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1:]


def asides(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if ".damaged-" in path.name]


@pytest.mark.parametrize("with_copy", [False, True], ids=["without a copy", "with a copy"])
def test_whatever_part_of_it_was_overwritten_or_cut_off_nothing_is_lost_and_poca_goes_on(
        tmp_path: Path, sound: tuple[bytes, dict[str, History]], with_copy: bool) -> None:
    content, histories = sound
    outcomes = set()
    for number, (name, damaged) in enumerate(damages(content)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "poca.db").write_bytes(damaged)
        if with_copy:
            (folder / "poca.db.bak").write_bytes(content)
        try:
            state = State.open(folder, NOW)
        except StateError as error:
            assert "newer poca" in str(error) and name.startswith("header byte 6"), (name, error)
            assert (folder / "poca.db").read_bytes() == damaged, name
            outcomes.add("newer")
            continue
        with closing(state):
            if state.alarms:
                (aside,) = asides(folder)
                assert aside.read_bytes() == damaged, name
                assert str(aside) in state.alarms[0] and len(state.alarms) == 1, name
                assert state.histories() == (histories if with_copy else {}), name
                outcomes.add("set aside")
            else:
                assert state.histories() == histories, name
                assert len(state.mail_entries()) == 100, name
                assert asides(folder) == [], name
                outcomes.add("sound")
            state.put("Show 0", Episode("new", "", "", ""))
        with closing(State.open(folder, NOW)) as state:
            assert state.alarms == (), name
            assert state.history("Show 0").episodes[-1].key == "new", name
        shutil.rmtree(folder)
    assert outcomes == {"newer", "set aside", "sound"}


def test_the_alarm_says_what_happened_where_the_old_one_is_and_what_poca_does(tmp_path: Path) -> None:
    db = tmp_path / "poca.db"
    with closing(State.open(tmp_path, NOW)) as state:
        fill(state)
    db.write_bytes(db.read_bytes()[:-PAGE])
    with closing(State.open(tmp_path, NOW)) as state:
        assert state.alarms == (f"The history {db} was damaged (it cannot be read) and is now {db}.damaged-20261130-140512; there is no good copy, "
                                "so poca begins a fresh history and adopts the files that it finds at the names of episodes.",)
        assert state.history("Show 0").fresh
        fill(state)
        state.backup(NOW)
    db.write_bytes(b"")
    with closing(State.open(tmp_path, NOW)) as state:
        (alarm,) = state.alarms
        assert alarm.startswith(f"The history {db} was damaged (it is empty) and is now {db}.damaged-20261130-140512-2; the copy of ")
        assert alarm.endswith(" took its place, so poca does not know what it did after that.")
        assert len(state.histories()) == 2
    assert (tmp_path / "poca.db.bak").exists()
    with closing(State.open(tmp_path, NOW)) as state:
        assert state.alarms == () and len(state.histories()) == 2
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.name != "poca.db.damaged-20261130-140512"} == {0o600}


def test_one_that_was_set_aside_is_never_overwritten(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / "poca.db").write_text(f"junk {number}")
        State.open(tmp_path, NOW).close()
    assert sorted(path.read_text() for path in asides(tmp_path)) == [f"junk {number}" for number in range(5)]


@pytest.mark.parametrize("statements", [
    ["CREATE TABLE other (a)"],
    ["PRAGMA application_id = 7", "CREATE TABLE episode (a)"],
    ["PRAGMA application_id = 1886348129", "PRAGMA user_version = 1"],
    ["PRAGMA application_id = 1886348129", "PRAGMA user_version = 1", "CREATE TABLE subscription (id)", "CREATE TABLE episode (a)"],
], ids=["emptied", "another program's", "without tables", "other tables"])
def test_a_sound_database_that_is_no_history_is_set_aside(tmp_path: Path, statements: list[str]) -> None:
    with closing(sqlite3.connect(tmp_path / "poca.db", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)
    with closing(State.open(tmp_path, NOW)) as state:
        assert len(state.alarms) == 1 and len(asides(tmp_path)) == 1
        state.put("Show", Episode("new", "", "", ""))


@pytest.mark.parametrize("statement", [
    "UPDATE episode SET fate = 'garbage' WHERE key LIKE '%7'",
    "UPDATE episode SET stage = x'ff' WHERE key LIKE '%7'",
    "UPDATE episode SET size = 'garbage' WHERE key LIKE '%7'",
    "UPDATE episode SET recorded = 1.5 WHERE key LIKE '%7'",
    "UPDATE episode SET title = CAST(x'ff41' AS TEXT) WHERE key LIKE '%7'",
    "UPDATE episode SET title = x'ff41' WHERE key LIKE '%7'",
    "UPDATE episode SET subscription = 99 WHERE subscription = 1",
    "UPDATE subscription SET failures = 'garbage'",
    "UPDATE feed SET packed = x'00'",
    "INSERT INTO meta VALUES ('last_run', 'garbage')",
    "UPDATE mail SET line = x'ff'",
    "DROP TABLE mail",
])
def test_values_that_cannot_be_are_damage(tmp_path: Path, statement: str) -> None:
    with closing(State.open(tmp_path, NOW)) as state:
        fill(state)
        state.backup(NOW)
    with closing(sqlite3.connect(tmp_path / "poca.db", isolation_level=None)) as db:
        db.execute(statement)
    with pytest.raises(StateError, match="is damaged"):
        State.open(tmp_path, NOW, readonly=True)
    with closing(State.open(tmp_path, NOW)) as state:
        assert len(state.alarms) == 1 and len(asides(tmp_path)) == 1
        assert len(state.histories()) == 2 and len(state.mail_entries()) == 100


def test_a_copy_that_is_damaged_as_well_is_set_aside_too(tmp_path: Path) -> None:
    (tmp_path / "poca.db").write_text("junk one")
    (tmp_path / "poca.db.bak").write_text("junk two")
    with closing(State.open(tmp_path, NOW)) as state:
        assert len(state.alarms) == 2
        assert {path.read_text() for path in asides(tmp_path)} == {"junk one", "junk two"}
        assert all(sum(str(path) in alarm for alarm in state.alarms) == 1 for path in asides(tmp_path) if "bak" in path.name)
        assert state.backup(NOW)


def test_a_history_that_is_gone_comes_back_from_its_copy(tmp_path: Path) -> None:
    with closing(State.open(tmp_path, NOW)) as state:
        histories = fill(state)
        state.backup(NOW)
    (tmp_path / "poca.db").unlink()
    with closing(State.open(tmp_path, NOW, readonly=True)) as state:
        assert state.histories() == histories
    assert not (tmp_path / "poca.db").exists()
    with closing(State.open(tmp_path, NOW)) as state:
        (alarm,) = state.alarms
        assert "was gone" in alarm and "the copy of" in alarm
        assert state.histories() == histories


def test_a_journal_that_an_older_history_left_is_not_played_into_the_new_one(tmp_path: Path, sound: tuple[bytes, dict[str, History]]) -> None:
    old = tmp_path / "old"
    with closing(State.open(old, NOW)) as state:
        state.put("Of older days", *(Episode(str(number), "", "", "of older days") for number in range(90)))
        fill(state)
    with closing(sqlite3.connect(old / "poca.db", isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE episode SET title = 'half' || title")
        db.executemany("INSERT INTO mail (line) VALUES (?)", [("x" * 3000,)] * 200)
        journal = (old / "poca.db-journal").read_bytes()
        db.execute("ROLLBACK")
    for case, damaged in (("gone", None), ("damaged", b"junk" * PAGE)):
        folder = tmp_path / case
        folder.mkdir()
        (folder / "poca.db-journal").write_bytes(journal)
        (folder / "poca.db.bak").write_bytes(sound[0])
        if damaged:
            (folder / "poca.db").write_bytes(damaged)
        with closing(State.open(folder, NOW)) as state:
            assert len(state.alarms) == 1
            assert state.histories() == sound[1]
        assert not (folder / "poca.db-journal").exists()


def test_damage_that_shows_only_in_the_middle_of_a_run_is_told_in_a_sentence(tmp_path: Path) -> None:
    with closing(State.open(tmp_path, NOW)) as state:
        fill(state)
        state.histories()
        content = (tmp_path / "poca.db").read_bytes()
        # The count of changes (bytes 24 to 27) as well, by which SQLite knows that its cache is of no use any more.
        (tmp_path / "poca.db").write_bytes(content[:24] + b"\xff" * 4 + content[28:100] + b"\xff" * (len(content) - 100))
        for action in (state.histories, lambda: state.put("Show 1", Episode("new", "", "", "")), lambda: state.backup(NOW)):
            with pytest.raises(StateError, match="is damaged; the next run puts it aside"):
                action()
    with closing(State.open(tmp_path, NOW)) as state:
        assert len(state.alarms) == 1 and len(asides(tmp_path)) == 1
