"""The history: ``state_dir/poca.db``, a SQLite file that only the main thread touches.

Small commits, one a step, each flushed to disk when the call returns; a call that changes nothing costs no flush. Several
pocas may have the file open: each waits for another's commit, which takes milliseconds. Whatever goes wrong reaches the
caller as a :class:`poca.errors.StateError`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from poca.errors import StateError
from poca.model import Episode, Fate, Fetched, History, Stage, Validators

_APPLICATION = 0x706F6361           # "poca" in the header: tells a history from an emptied or another program's file
_DAY = 86_400                       # seconds

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

_EPISODE = tuple(field.name for field in fields(Episode))
_FATE, _STAGE, _ADOPTED = (_EPISODE.index(name) for name in ("fate", "stage", "adopted"))
_SUBSCRIPTION = ("id", "title", "url", "generation", "etag", "last_modified", "body_hash", "settled", "failures", "error", "next_try", "last_good",
                 "cover", "cover_url", "cover_hash", "cover_etag", "cover_last_modified", "cover_error")


@dataclass(frozen=True, slots=True)
class Rename:
    """A subscription on its way from one title to another. ``new_folder`` is None where its folder stays."""

    old_title: str
    new_title: str
    old_folder: str
    new_folder: str | None


class _DamageError(Exception):
    """The file is no sound history; the text says why."""


class State:
    """An open history. Made by :meth:`open`.

    ``alarms``: what befell the history before it could be opened, sentences for the user (exit 1).
    """

    def __init__(self, path: Path, db: sqlite3.Connection, histories: dict[str, History], alarms: tuple[str, ...]) -> None:
        self.path, self.alarms = path, alarms
        self._db = db
        self._opened: dict[str, History] | None = histories
        self._good: dict[str, int] = {}

    @classmethod
    def open(cls, state_dir: Path, now: int, *, readonly: bool = False, patience: float = 30) -> State:
        """Opens the history, makes it where there is none, and puts a damaged one aside.

        ``readonly``: a snapshot in memory; nothing in state_dir is made or changed, a missing history is an empty one.
        ``patience``: seconds to wait for another program's lock. Raises StateError.
        """
        path = state_dir / "poca.db"
        with _sentences(path):
            if readonly:
                return cls(path, *_snapshot(path, patience), ())
            _make_folder(state_dir)
            try:
                if path.exists():
                    _allow(path)
                    return cls(path, *_load(path, patience), ())
            except _DamageError:
                pass        # judged again under the lock: another poca may be mending it at this moment
            with _mending(state_dir, patience):
                alarms = _mend(path, now, patience)
                return cls(path, *_load(path, patience), alarms)

    def close(self) -> None:
        """Ends the use of the history; all that was acknowledged is on disk already."""
        self._db.close()

    # ---------------------------------------------------------------------------------------------- reading

    def histories(self) -> dict[str, History]:
        """Every subscription that the history knows, by title. Raises StateError."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            return opened
        with _sentences(self.path):
            return _read(self._db)

    def history(self, title: str) -> History:
        """One subscription; an empty history where it is not known. Raises StateError."""
        with _sentences(self.path):
            return _read(self._db, title).get(title) or History(title, last_run=self.last_run)

    @property
    def last_run(self) -> int | None:
        """What the last :meth:`saw` stored."""
        value = self._meta("last_run")
        return int(value) if value else None

    @property
    def marker(self) -> str:
        """The id that base_dir's marker bears; "" before there is one."""
        return self._meta("marker")

    @marker.setter
    def marker(self, value: str) -> None:
        self._keep("meta", ("key",), {"key": "marker", "value": value})

    @property
    def base_dir(self) -> str:
        """The base_dir that this history belongs to; "" before there is one."""
        return self._meta("base_dir")

    @base_dir.setter
    def base_dir(self, value: str) -> None:
        self._keep("meta", ("key",), {"key": "base_dir", "value": value})

    def knows_files(self) -> bool:
        """Whether any episode is held."""
        return bool(self._rows("SELECT 1 FROM episode WHERE fate = ? LIMIT 1", Fate.HELD))

    def recorded_files(self) -> list[tuple[str, int | None]]:
        """Path and size of every episode that is held."""
        return [(_text(path), size) for path, size in self._rows("SELECT path, size FROM episode WHERE fate = ? AND path != ''", Fate.HELD)]

    # ------------------------------------------------------------------------------------- one subscription

    def claim(self, title: str, generation: int) -> int | None:
        """The right to carry out a plan made from the history at ``generation``: the new generation, or None where
        another poca has changed the history meanwhile. To be asked for under the subscription's lock."""
        with self._commit():
            row = self._db.execute("SELECT generation FROM subscription WHERE title = ?", _stored(title)).fetchone()
            if (row[0] if row else 0) != generation:
                return None
            self._upsert("subscription", ("title",), {"title": title, "generation": generation + 1})
        return generation + 1

    def bump(self, title: str) -> None:
        """Makes every plan that was made before worthless: for whoever changes the history outside of a plan."""
        with self._commit():
            self._db.execute("INSERT INTO subscription (title, generation) VALUES (?, 1) ON CONFLICT DO UPDATE SET generation = generation + 1",
                             _stored(title))

    def put(self, title: str, *episodes: Episode) -> None:
        """Records the episodes whole, new ones and changed ones, in one commit."""
        with self._commit():
            self._put(title, episodes)

    def forget(self, title: str, *keys: str) -> None:
        """Drops the records of episodes."""
        with self._commit():
            self._db.executemany("DELETE FROM episode WHERE subscription = (SELECT id FROM subscription WHERE title = ?) AND key = ?",
                                 [_stored(title, key) for key in keys])

    def read_feed(self, title: str, url: str, fetched: Fetched | None, now: int) -> None:
        """The feed answered well at ``now``. None, or the validators that are known: it is unchanged, which is written
        with the next :meth:`saw` only, in one commit for all feeds."""
        with self._commit():
            values: dict[str, object] = {"title": title, "url": url, "failures": 0, "error": "", "next_try": None}
            if fetched:
                values |= {"body_hash": fetched.body_hash, "etag": fetched.validators.etag, "last_modified": fetched.validators.last_modified}
            before = self._db.total_changes
            self._upsert("subscription", ("title",), values)
            if fetched and fetched.packed:
                number = self._number(title)
                self._upsert("feed", ("subscription",), {"subscription": number, "packed": fetched.packed, "crc": zlib.crc32(fetched.packed)})
            unchanged = self._db.total_changes == before
            if not unchanged:
                self._upsert("subscription", ("title",), {"title": title, "last_good": now})
        if unchanged:
            self._good[title] = now

    def feed_failed(self, title: str, url: str, error: str, failures: int, next_try: int | None) -> None:
        """The feed failed, for the ``failures``-th time in a row. What another URL had answered is no longer compared
        with."""
        with self._commit():
            self._db.execute("UPDATE subscription SET etag = '', last_modified = '', body_hash = '' WHERE title = ? AND url != ?",
                             _stored(title, url))
            self._upsert("subscription", ("title",), {"title": title, "url": url, "error": error, "failures": failures, "next_try": next_try})

    def settle(self, title: str, fingerprint: str) -> None:
        """Under these options the last plan left nothing to do; "" takes that back."""
        self._keep("subscription", ("title",), {"title": title, "settled": fingerprint})

    def cover(self, title: str, path: str, url: str, digest: str, validators: Validators, error: str = "") -> None:
        """The cover that poca wrote: its path relative to base_dir, where it came from, its hash, and why the last try
        failed."""
        self._keep("subscription", ("title",), {"title": title, "cover": path, "cover_url": url, "cover_hash": digest, "cover_error": error,
                                                "cover_etag": validators.etag, "cover_last_modified": validators.last_modified})

    def delete_subscription(self, title: str) -> None:
        """Forgets a subscription and all its episodes."""
        with self._commit():
            self._db.execute("DELETE FROM subscription WHERE title = ?", _stored(title))
        self._good.pop(title, None)

    # ------------------------------------------------------------------------------------------ a new title

    def begin_rename(self, old_title: str, new_title: str, old_folder: str, new_folder: str | None) -> None:
        """Records what is meant, before the folder is moved; folders are relative to base_dir. A run that finds it
        among :meth:`unfinished_renames` looks where the folder is, moves it if need be, and finishes.
        Raises StateError also where episodes are recorded under the new title."""
        known = "SELECT 1 FROM episode WHERE subscription = (SELECT id FROM subscription WHERE title = ?) LIMIT 1"
        if old_title != new_title and self._rows(known, new_title):
            raise StateError(f"“{old_title}” cannot become “{new_title}”: the history knows episodes under that title already.")
        self._keep("rename", ("old_title",), {"old_title": old_title, "new_title": new_title, "old_folder": old_folder, "new_folder": new_folder})

    def unfinished_renames(self) -> list[Rename]:
        """Those that were begun and neither finished nor given up."""
        rows = self._rows("SELECT old_title, new_title, old_folder, new_folder FROM rename")
        return [Rename(_text(old), _text(new), _text(from_), None if to is None else _text(to)) for old, new, from_, to in rows]

    def finish_rename(self, old_title: str, *, moved: bool = True) -> None:
        """The subscription bears its new title from now on. Where its folder was moved the recorded paths follow;
        ``moved=False``: the folder could not be moved and stays."""
        intent = next((rename for rename in self.unfinished_renames() if rename.old_title == old_title), None)
        if intent is None:
            return
        history = self.history(old_title)
        with self._commit():
            if moved and intent.new_folder is not None:
                def follow(path: str) -> str:
                    return f"{intent.new_folder}{path[len(intent.old_folder):]}" if path.startswith(f"{intent.old_folder}/") else path

                self._put(old_title, [replace(episode, path=follow(episode.path), part=follow(episode.part)) for episode in history.episodes])
                self._upsert("subscription", ("title",), {"title": old_title, "cover": follow(history.cover)})
            if old_title != intent.new_title:
                self._db.execute("DELETE FROM subscription WHERE title = ?", _stored(intent.new_title))
                self._db.execute("UPDATE subscription SET title = ? WHERE title = ?", _stored(intent.new_title, old_title))
            self._db.execute("DELETE FROM rename WHERE old_title = ?", _stored(old_title))

    # ------------------------------------------------------------------------------------------- a whole run

    def saw(self, now: int) -> None:
        """The end of a run that began at ``now``, in one commit. Also an earlier instant than the one stored takes its
        place: the run that finds the clock turned back is careful, and tells it; the next one goes by the clock as it
        is. So an hour in which the clock stood in 2099 stops one run's deletions and not those of all years until then."""
        with self._commit():
            self._upsert("meta", ("key",), {"key": "last_run", "value": str(now)})
            self._db.executemany("UPDATE subscription SET last_good = ? WHERE title = ?",
                                 [_stored(good, title) for title, good in self._good.items()])
        self._good.clear()

    def backup(self, now: int) -> bool:
        """Once a day a copy, ``poca.db.bak``; True where one was made. To be called after a good run. Raises StateError."""
        copy, last = self.path.with_name("poca.db.bak"), self._meta("last_backup")
        if last and 0 <= now - int(last) < _DAY and copy.exists():
            return False
        new = self.path.with_name("poca.db.bak.new")
        with _sentences(self.path):
            _create(new)
            with closing(_connect(new, "rw", 0)) as target:
                _copy(self._db, target)
                if target.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                    raise _DamageError("it does not pass SQLite's check")
            _replace(new, copy)
        self._keep("meta", ("key",), {"key": "last_backup", "value": str(now)})
        return True

    def keep_for_mail(self, lines: Iterable[str]) -> None:
        """Keeps log entries until they were mailed."""
        with self._commit():
            self._db.executemany("INSERT INTO mail (line) VALUES (?)", [_stored(line) for line in lines])

    def mail_entries(self) -> list[tuple[int, str]]:
        """The log entries kept so far, each with its id, in their order."""
        return [(number, _text(line)) for number, line in self._rows("SELECT id, line FROM mail ORDER BY id")]

    def mailed(self, ids: Iterable[int]) -> None:
        """These entries went out, and are kept no longer."""
        with self._commit():
            self._db.executemany("DELETE FROM mail WHERE id = ?", [(number,) for number in ids])

    # ---------------------------------------------------------------------------------------------- statements

    @contextmanager
    def _commit(self) -> Iterator[None]:
        self._opened = None
        with _sentences(self.path):
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: object) -> list[Any]:
        with _sentences(self.path):
            return self._db.execute(query, _stored(*values)).fetchall()

    def _meta(self, key: str) -> str:
        rows = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return _text(rows[0][0]) if rows else ""

    def _number(self, title: str) -> int:
        self._db.execute("INSERT INTO subscription (title) VALUES (?) ON CONFLICT DO NOTHING", _stored(title))
        number: int = self._db.execute("SELECT id FROM subscription WHERE title = ?", _stored(title)).fetchone()[0]
        return number

    def _put(self, title: str, episodes: Iterable[Episode]) -> None:
        for episode in episodes:
            values = {name: getattr(episode, name) for name in _EPISODE}
            self._upsert("episode", ("subscription", "key"), {"subscription": self._number(title)} | values)

    def _keep(self, table: str, keys: tuple[str, ...], values: Mapping[str, object]) -> None:
        with self._commit():
            self._upsert(table, keys, values)

    def _upsert(self, table: str, keys: tuple[str, ...], values: Mapping[str, object]) -> None:
        names = ", ".join(values)
        rest = [name for name in values if name not in keys]
        changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
        differs = " OR ".join(f"{table}.{name} IS NOT excluded.{name}" for name in rest)
        self._db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))}) "
                         f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes} WHERE {differs}", _stored(*values.values()))


# ------------------------------------------------------------------------------------------------ values in SQLite

def _stored(*values: object) -> tuple[object, ...]:
    return tuple(_value(value) for value in values)


def _value(value: object) -> object:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:      # a lone surrogate, as in a file name that is no UTF-8, is nothing for a TEXT
            return value.encode("utf-8", "surrogatepass")
        return str(value)
    if isinstance(value, int):
        return max(-2**63, min(int(value), 2**63 - 1))
    return value


def _text(value: object) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else str(value)


def _row(row: tuple[object, ...]) -> list[object]:
    return [_text(value) if type(value) is bytes else value for value in row] if bytes in map(type, row) else list(row)


_FATES = {str(fate): fate for fate in Fate}
_STAGES = {str(stage): stage for stage in Stage}


def _read(db: sqlite3.Connection, title: str | None = None) -> dict[str, History]:
    """All histories, or the one of ``title``. Raises KeyError or ValueError where what is stored cannot be."""
    chosen, values = ("", ()) if title is None else ("WHERE subscription = (SELECT id FROM subscription WHERE title = ?)", _stored(title))
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
    for number, *row in db.execute(f"SELECT subscription, {', '.join(_EPISODE)} FROM episode {chosen} ORDER BY rowid", values):
        cells = _row(tuple(row))
        cells[_FATE], cells[_STAGE], cells[_ADOPTED] = _FATES[str(cells[_FATE])], _STAGES[str(cells[_STAGE])], bool(cells[_ADOPTED])
        episodes[number].append(Episode(*cells))    # type: ignore[arg-type]
    return {history.title: history for history in (_history(row, feeds, episodes, last_run) for row in subscriptions)}


def _history(row: tuple[object, ...], feeds: Mapping[object, bytes], episodes: Mapping[object, list[Episode]], last_run: int | None) -> History:
    cells = dict(zip(_SUBSCRIPTION, _row(row), strict=True))
    number = cells.pop("id")
    validators = Validators(str(cells.pop("etag")), str(cells.pop("last_modified")))
    cover_validators = Validators(str(cells.pop("cover_etag")), str(cells.pop("cover_last_modified")))
    return History(**cells, validators=validators, cover_validators=cover_validators,       # type: ignore[arg-type]
                   packed=feeds.get(number, b""), episodes=tuple(episodes[number]), last_run=last_run)


# ------------------------------------------------------------------------------------------------- opening the file

def _make_folder(state_dir: Path) -> None:
    state_dir.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        state_dir.mkdir(mode=0o700)
    if not state_dir.is_dir():
        raise StateError(f"The state_dir {state_dir} is no folder.")
    if not os.access(state_dir, os.W_OK | os.X_OK):
        raise StateError(f"The state_dir {state_dir} cannot be written to; poca keeps its history there.")


def _allow(path: Path) -> None:
    # SQLite would open such a file for reading only, and fail at the first step of a plan.
    if not os.access(path, os.R_OK | os.W_OK):
        raise StateError(f"The history {path} cannot be written to.")


def _connect(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=patience, isolation_level=None)


def _create(path: Path) -> None:
    for ending in ("", "-journal"):     # of a run that was killed here
        Path(f"{path}{ending}").unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _load(path: Path, patience: float) -> tuple[sqlite3.Connection, dict[str, History]]:
    """An open history, checked, brought up to date and read. Raises _DamageError, StateError, sqlite3.Error."""
    db = _connect(path, "rw", patience)
    try:
        return db, _sound(db, path)
    except BaseException:
        db.close()
        raise


def _sound(db: sqlite3.Connection, path: Path) -> dict[str, History]:
    try:
        (application,), (version,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
        if application != _APPLICATION or version < 1:
            raise _DamageError("it is empty" if not application and not version else "it is no history of poca")
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _DamageError("it does not pass SQLite's check")
        if version > len(_STEPS):
            raise StateError(f"The history {path} was written by a newer poca, which has to be used from now on; nothing was done.")
        for pragma in ("journal_mode = DELETE", "synchronous = FULL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
        _migrate(db)
        _check_types(db)
        return _read(db)
    except sqlite3.Error as error:
        if _is_damage(error):
            raise _DamageError("it cannot be read") from error
        raise
    except (KeyError, ValueError) as error:
        raise _DamageError("what it holds makes no sense") from error


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


def _check_types(db: sqlite3.Connection) -> None:
    # SQLite itself takes any type anywhere, so that a damaged row can come through its check as a sound one.
    for table in _TABLES:
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        wrong = " OR ".join(f"typeof({name}) NOT IN ({_TYPES[kind]}{'' if needed else _NULL})" for _, name, kind, needed, *_ in columns)
        if db.execute(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1").fetchone():
            raise _DamageError("what it holds makes no sense")


def _snapshot(path: Path, patience: float) -> tuple[sqlite3.Connection, dict[str, History]]:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        source = next((file for file in (path, path.with_name("poca.db.bak")) if file.exists()), None)
        if source:
            with closing(_connect(source, "ro", patience)) as db:
                _copy(db, memory)
        else:
            _migrate(memory)
        histories = _sound(memory, path)
        memory.execute("PRAGMA query_only = ON")
        return memory, histories
    except BaseException:
        memory.close()
        raise


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

@contextmanager
def _mending(state_dir: Path, patience: float) -> Iterator[None]:
    """Only one poca at a time makes or mends the history: SQLite's own lock, on a file that stays empty."""
    path = state_dir / "poca.db.lock"
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(_connect(path, "rw", patience)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield


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
    except _DamageError as damage:
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
def _sentences(path: Path) -> Iterator[None]:
    """Turns what SQLite and the disk raise into a StateError."""
    try:
        yield
    except _DamageError as damage:
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
        case sqlite3.SQLITE_READONLY if code == sqlite3.SQLITE_READONLY:
            return f"The history {path} cannot be written to."
        case sqlite3.SQLITE_READONLY:
            return f"The last run was cut off while it wrote the history {path}; the next run that may write puts that right."
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"The history {path} cannot be opened."
        case sqlite3.SQLITE_IOERR:
            return f"The disk failed while poca used the history {path}."
        case _ if _is_damage(error):
            return f"The history {path} is damaged; the next run puts it aside, and goes on with the last good copy."
    return f"The history {path} cannot be used: {error}."
