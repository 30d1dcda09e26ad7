"""The file of the history: its schema, its checks, how values are kept in it, and what becomes of a damaged one.

Used by :mod:`poca.state` only, which says what the history is asked and told.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from poca.errors import StateError
from poca.model import Episode, Fate, History, Stage, Validators

_APPLICATION = 0x706F6361           # "poca" in the header: tells a history from an emptied or another program's file

# Each step brings the schema one version further, in one transaction. A step that was released is never changed.
_STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL)",
        """CREATE TABLE subscription (id INTEGER PRIMARY KEY, title TEXT UNIQUE NOT NULL, url TEXT NOT NULL DEFAULT '',
            generation INTEGER NOT NULL DEFAULT 0, etag TEXT NOT NULL DEFAULT '', last_modified TEXT NOT NULL DEFAULT '',
            body_hash TEXT NOT NULL DEFAULT '', settled TEXT NOT NULL DEFAULT '', failures INTEGER NOT NULL DEFAULT 0,
            error TEXT NOT NULL DEFAULT '', next_try INTEGER, last_good INTEGER, cover TEXT NOT NULL DEFAULT '',
            cover_url TEXT NOT NULL DEFAULT '', cover_hash TEXT NOT NULL DEFAULT '', cover_etag TEXT NOT NULL DEFAULT '',
            cover_last_modified TEXT NOT NULL DEFAULT '', cover_error TEXT NOT NULL DEFAULT '')""",
        # Apart from its subscription, so that a step on the latter does not write the whole feed again.
        """CREATE TABLE feed (subscription INTEGER PRIMARY KEY REFERENCES subscription ON DELETE CASCADE,
            packed BLOB NOT NULL, crc INTEGER NOT NULL)""",
        """CREATE TABLE episode (subscription INTEGER NOT NULL REFERENCES subscription ON DELETE CASCADE, key TEXT NOT NULL,
            guid TEXT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, published INTEGER, placed INTEGER,
            seen_published INTEGER, fate TEXT NOT NULL, stage TEXT NOT NULL, path TEXT NOT NULL, size INTEGER,
            adopted INTEGER NOT NULL, recorded INTEGER NOT NULL, part TEXT NOT NULL, part_etag TEXT NOT NULL,
            part_total INTEGER, failures INTEGER NOT NULL, error TEXT NOT NULL, next_try INTEGER, track INTEGER,
            PRIMARY KEY (subscription, key))""",
        """CREATE TABLE rename (old_title TEXT PRIMARY KEY NOT NULL, new_title TEXT NOT NULL, old_folder TEXT NOT NULL,
            new_folder TEXT)""",
        "CREATE TABLE mail (id INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT NOT NULL)",
        f"PRAGMA application_id = {_APPLICATION}",
    ),
)
_TABLES = ("meta", "subscription", "feed", "episode", "rename", "mail")
_TYPES = {"TEXT": "'text', 'blob'", "INTEGER": "'integer'", "BLOB": "'blob'"}
_NULL = ", 'null'"

EPISODE = tuple(field.name for field in fields(Episode))
_FATE, _STAGE, _ADOPTED = (EPISODE.index(name) for name in ("fate", "stage", "adopted"))
_SUBSCRIPTION = ("id", "title", "url", "generation", "etag", "last_modified", "body_hash", "settled", "failures", "error", "next_try", "last_good",
                 "cover", "cover_url", "cover_hash", "cover_etag", "cover_last_modified", "cover_error")


class DamageError(Exception):
    """The file is no sound history; the text says why."""


# ------------------------------------------------------------------------------------------------ values in SQLite

def to_sql(*values: object) -> tuple[object, ...]:
    return tuple(_value(value) for value in values)


def _value(value: object) -> object:
    if isinstance(value, str):
        if value.isascii():
            return str(value)
        try:
            value.encode()
        except UnicodeEncodeError:      # a lone surrogate, as in a file name that is no UTF-8, is nothing for a TEXT
            return value.encode("utf-8", "surrogatepass")
        return str(value)
    if isinstance(value, int):
        return max(-2**63, min(int(value), 2**63 - 1))
    return value


def to_text(value: object) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else str(value)


def _cells(row: tuple[Any, ...]) -> list[Any]:
    return [to_text(value) if type(value) is bytes else value for value in row] if bytes in map(type, row) else list(row)


_FATES = {str(fate): fate for fate in Fate}
_STAGES = {str(stage): stage for stage in Stage}


def read(db: sqlite3.Connection, title: str | None = None) -> dict[str, History]:
    """All histories, or the one of ``title``. Raises DamageError where what is stored cannot be, sqlite3.Error."""
    db.execute("BEGIN")     # one view for all statements, whatever another poca commits between them
    try:
        return _read(db, title)
    except (KeyError, ValueError) as error:
        raise DamageError("what it holds makes no sense") from error
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _read(db: sqlite3.Connection, title: str | None) -> dict[str, History]:
    chosen, values = ("", ()) if title is None else ("WHERE subscription = (SELECT id FROM subscription WHERE title = ?)", to_sql(title))
    feeds: dict[object, bytes] = {}
    for number, packed, crc in db.execute(f"SELECT subscription, packed, crc FROM feed {chosen}", values):
        if zlib.crc32(packed) != crc:
            raise ValueError("a feed in it was changed")
        feeds[number] = packed
    run = db.execute("SELECT value FROM meta WHERE key = 'last_run'").fetchone()
    last_run = int(run[0]) if run else None
    episodes: dict[object, list[Episode]] = {}
    subscriptions = db.execute(f"SELECT {', '.join(_SUBSCRIPTION)} FROM subscription {'' if title is None else 'WHERE title = ?'}", values).fetchall()
    for subscription in subscriptions:
        episodes[subscription[0]] = []
    for row in db.execute(f"SELECT {', '.join(EPISODE)}, subscription FROM episode {chosen} ORDER BY rowid", values):
        cells = _cells(row)
        number = cells.pop()
        cells[_FATE], cells[_STAGE], cells[_ADOPTED] = _FATES[cells[_FATE]], _STAGES[cells[_STAGE]], cells[_ADOPTED] == 1
        episodes[number].append(Episode(*cells))
    return {history.title: history for history in (_history(row, feeds, episodes, last_run) for row in subscriptions)}


def _history(row: tuple[object, ...], feeds: Mapping[object, bytes], episodes: Mapping[object, list[Episode]], last_run: int | None) -> History:
    cells = dict(zip(_SUBSCRIPTION, _cells(row), strict=True))
    number = cells.pop("id")
    validators = Validators(cells.pop("etag"), cells.pop("last_modified"))
    cover_validators = Validators(cells.pop("cover_etag"), cells.pop("cover_last_modified"))
    return History(**cells, validators=validators, cover_validators=cover_validators,
                   packed=feeds.get(number, b""), episodes=tuple(episodes[number]), last_run=last_run)


# ------------------------------------------------------------------------------------------------- opening the file

class Opened(NamedTuple):
    """An open history and all that it holds. ``alarms``: what had to be done to have it. ``use``: says to others that it
    is in use, until closed."""

    db: sqlite3.Connection
    histories: dict[str, History]
    alarms: tuple[str, ...] = ()
    use: BinaryIO | None = None


def open_file(path: Path, now: int, patience: float) -> Opened:
    """The history, made or mended where need be. Raises DamageError, StateError, sqlite3.Error, OSError.

    A history may be moved or replaced only when nobody has it open: SQLite finds a journal by its name, so that one with
    the old file open would play the new file's journal into the old one. Hence a lock that is shared by all who use the
    history, and had alone by the one who mends it.
    """
    _make_folder(path.parent)
    use = os.fdopen(os.open(path.with_name("poca.db.lock"), os.O_WRONLY | os.O_CREAT, 0o600), "wb")
    deadline = time.monotonic() + patience
    alarms: tuple[str, ...] | None = None
    try:
        while True:
            fcntl.flock(use, fcntl.LOCK_SH)
            try:
                if os.path.lexists(path):       # also a link whose end is away, which is no history that is gone
                    return Opened(*_load(path, patience), alarms or (), use)
            except DamageError:
                if alarms is not None:
                    raise
            if _alone(use):
                alarms = _mend(path, now, patience)
            elif time.monotonic() > deadline:
                raise StateError(f"The history {path} is damaged or gone, and another poca still has it open; try again when that one has ended.")
            else:
                time.sleep(0.02 + os.getpid() % 17 / 100)   # two that both want to mend it must not go on in step
    except BaseException:
        use.close()
        raise


def _alone(use: BinaryIO) -> bool:
    try:
        fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(use, fcntl.LOCK_UN)
        return False
    return True


def _make_folder(state_dir: Path) -> None:
    state_dir.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        state_dir.mkdir(mode=0o700)
    if not state_dir.is_dir():
        raise StateError(f"The state_dir {state_dir} is no folder.")
    if not os.access(state_dir, os.W_OK | os.X_OK):
        raise StateError(f"The state_dir {state_dir} cannot be written to; poca keeps its history there.")


def _connect(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=patience, isolation_level=None)


def _create(path: Path) -> None:
    for ending in ("", "-journal"):     # of a run that was killed here
        Path(f"{path}{ending}").unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _load(path: Path, patience: float) -> tuple[sqlite3.Connection, dict[str, History]]:
    """An open history, checked, brought up to date and read. Raises DamageError, StateError, sqlite3.Error."""
    if not path.is_file():
        raise StateError(f"The history {path} is no file.")
    # SQLite would open such a file for reading only, and fail at the first step of a plan.
    if not os.access(path, os.R_OK | os.W_OK):
        raise StateError(f"The history {path} cannot be written to.")
    with path.open("rb") as file:
        if file.read(19)[18:] > b"\x02":       # a write version that SQLite does not know: it would only read
            raise DamageError("it can only be read")
    db = _connect(path, "rw", patience)
    try:
        return db, _sound(db, path)
    except BaseException:
        db.close()
        raise


def _sound(db: sqlite3.Connection, path: Path) -> dict[str, History]:
    try:
        db.execute("PRAGMA cache_size = -500")      # kB: the check reads all pages once, and a step of a plan needs a few
        (application,), (version,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
        if application != _APPLICATION or version < 1:
            raise DamageError("it is empty" if not application and not version else "it is no history of poca")
        # Not quick_check, which is hardly quicker and takes an index for sound whose every write fails.
        if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise DamageError("it does not pass SQLite's check")
        if version > len(_STEPS):
            raise StateError(f"The history {path} was written by a newer poca, which has to be used from now on; nothing was done.")
        for pragma in ("journal_mode = DELETE", "synchronous = FULL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
        _migrate(db)
        _check_values(db)
        return read(db)
    except sqlite3.Error as error:
        if _is_damage(error):
            raise DamageError("it cannot be read") from error
        raise
    except ValueError as error:
        raise DamageError("what it holds makes no sense") from error


def _migrate(db: sqlite3.Connection) -> None:
    for version in range(db.execute("PRAGMA user_version").fetchone()[0], len(_STEPS)):
        db.execute("BEGIN IMMEDIATE")
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] == version:      # else another poca was quicker
                for statement in (*_STEPS[version], f"PRAGMA user_version = {version + 1}"):
                    db.execute(statement)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def _check_values(db: sqlite3.Connection) -> None:
    # SQLite itself takes any type anywhere, so that a damaged row can come through its check as a sound one.
    for table in _TABLES:
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        wrong = " OR ".join(f"typeof({name}) NOT IN ({_TYPES[kind]}{'' if needed else _NULL})" for _, name, kind, needed, *_ in columns)
        if db.execute(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1").fetchone():
            raise DamageError("what it holds makes no sense")
    for table in ("meta", "rename", "mail"):    # the others are read anyhow
        for row in db.execute(f"SELECT * FROM {table}"):
            _cells(row)


def snapshot(path: Path, patience: float) -> Opened:
    """The history as it is now, in memory. Raises DamageError, StateError, sqlite3.Error."""
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        source = next((file for file in (path, path.with_name("poca.db.bak")) if file.exists()), None)
        if source:
            _copy_into(memory, source, patience)
        else:
            _migrate(memory)
        histories = _sound(memory, path)
        memory.execute("PRAGMA query_only = ON")
        return Opened(memory, histories)
    except BaseException:
        memory.close()
        raise


def _copy_into(memory: sqlite3.Connection, source: Path, patience: float) -> None:
    try:
        with closing(_connect(source, "ro", patience)) as db:
            _copy(db, memory)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
    else:
        return
    # The last run was killed within a commit, which only somebody who may write can undo: so that is done to a copy.
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="poca-") as folder:
        for ending in ("", "-journal"):
            with suppress(FileNotFoundError):       # another poca has undone it meanwhile
                shutil.copyfile(f"{source}{ending}", Path(folder, f"{source.name}{ending}"))
        with closing(_connect(Path(folder, source.name), "rw", patience)) as db:
            _copy(db, memory)


def save_copy(source: sqlite3.Connection, path: Path) -> None:
    """Writes a sound copy of the whole history, in place of an older one. Raises DamageError, sqlite3.Error, OSError."""
    new = path.with_name(f"{path.name}.new")
    _create(new)
    with closing(_connect(new, "rw", 0)) as target:
        _copy(source, target)
        if target.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise DamageError("it does not pass SQLite's check")
    _replace(new, path)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    # Within a read transaction: backup() itself would wait for another's lock without end.
    source.execute("BEGIN")
    try:
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(target)
    finally:
        if source.in_transaction:
            source.execute("ROLLBACK")


# ------------------------------------------------------------------------------------------------ a damaged history

def _mend(path: Path, now: int, patience: float) -> tuple[str, ...]:
    """Sees to it that there is a sound history at ``path``; the sentences say what had to be done for it."""
    damage = _damage(path, patience) if path.exists() else ""
    if path.exists() and not damage:
        return ()
    new, copy = path.with_name("poca.db.new"), path.with_name("poca.db.bak")
    copied = _written(copy)
    alarms: list[str] = []
    if copied:
        _create(new)
        shutil.copyfile(copy, new)
        copy_damage = _damage(new, patience)
        if copy_damage:
            copied = ""
            alarms.append(f"The copy of the history was damaged as well ({copy_damage}), and is now {_set_aside(copy, now)}.")
    if not copied:
        _create(new)
        with closing(_connect(new, "rw", patience)) as db:
            _migrate(db)
    aside = _set_aside(path, now)
    _replace(new, path)
    if copied:
        happened = f"was damaged ({damage}) and is now {aside}" if damage else "was gone (to begin afresh, remove its copy as well)"
        alarms.insert(0, f"The history {path} {happened}; the copy of {copied} took its place, so poca does not know what it did after that.")
    elif damage:
        alarms.insert(0, f"The history {path} was damaged ({damage}) and is now {aside}; there is no good copy, so poca begins a fresh history and "
                         "adopts the files that it finds at the names of episodes.")
    elif alarms:
        alarms.append(f"The history {path} was gone, so poca begins a fresh one.")
    return tuple(alarms)


def _damage(path: Path, patience: float) -> str:
    try:
        _load(path, patience)[0].close()
    except DamageError as damage:
        return str(damage)
    return ""


def _set_aside(path: Path, now: int) -> str:
    """Moves the file, and what SQLite may have left beside it, to a name that was free; returns the new path. A left
    journal must go in any case: SQLite would play it into the next file of that name."""
    base = aside = f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}"
    endings = ("", "-journal", "-wal", "-shm")
    number = 1
    while any(os.path.lexists(aside + ending) for ending in endings):
        number += 1
        aside = f"{base}-{number}"
    for ending in endings:
        with suppress(FileNotFoundError):
            Path(f"{path}{ending}").rename(f"{aside}{ending}")
    return aside


def _replace(new: Path, path: Path) -> None:
    """Gives a complete file its name, both lasting."""
    _flush(new)
    new.replace(path)
    _flush(path.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _written(path: Path) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
    except FileNotFoundError:
        return ""


# -------------------------------------------------------------------------------------------------------- sentences

def _is_damage(error: sqlite3.Error) -> bool:
    # Without a code: a text that is no UTF-8. SQLITE_ERROR: a table or column that should be there is not.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    return code in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Turns what SQLite and the disk raise into a StateError."""
    try:
        yield
    except DamageError as damage:
        raise StateError(f"The history {path} is damaged ({damage}); the next run puts it aside, and goes on with the last good copy.") from damage
    except sqlite3.Error as error:
        raise StateError(_sentence(path, error)) from error
    except OSError as error:
        raise StateError(f"The state_dir {path.parent} cannot be used: {error.strerror or error}.") from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return f"The history {path} was moved or replaced while poca was using it."
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"Another program keeps the history {path} locked; try again when it has ended."
        case sqlite3.SQLITE_FULL:
            return f"The disk is full: the history {path} cannot be written."
        case sqlite3.SQLITE_READONLY:
            return f"The history {path} cannot be written to."
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"The history {path} cannot be opened."
        case sqlite3.SQLITE_IOERR:
            return f"The disk failed while poca used the history {path}."
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return f"The history {path} is damaged; the next run puts it aside, and goes on with the last good copy."
    return f"The history {path} cannot be used: {error}."
