"""The history: ``state_dir/poca.db``, a SQLite file that only the main thread touches.

Small commits, one a step, each flushed to disk when the call returns; a call that changes nothing costs no flush. Several
pocas may have the file open: each waits for another's commit, which takes milliseconds. Whatever goes wrong reaches the
caller as a :class:`poca.errors.StateError`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from poca.errors import StateError
from poca.interrupts import held
from poca.model import Episode, Fate, Fetched, History, Validators
from poca.statefile import EPISODE, Opened, open_file, read, save_copy, sentences, snapshot, to_sql, to_text

_DAY = 86_400          # seconds


class Rename(NamedTuple):
    """A subscription on its way from one title to another. ``new_folder`` is None where its folder stays."""

    old_title: str
    new_title: str
    old_folder: str
    new_folder: str | None


class State:
    """An open history. Made by :meth:`open`.

    ``alarms``: what befell the history before it could be opened, sentences for the user (exit 1).
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        self.path, self.alarms = path, opened.alarms
        self._db, self._use = opened.db, opened.use
        self._opened: dict[str, History] | None = opened.histories
        self._good: dict[str, int] = {}

    @classmethod
    def open(cls, state_dir: Path, now: int, *, readonly: bool = False, patience: float = 30) -> State:
        """Opens the history, makes it where there is none, and puts a damaged one aside.

        ``readonly``: a snapshot in memory; nothing in state_dir is made or changed, a missing history is an empty one.
        ``patience``: seconds to wait for another program's lock. Raises StateError.
        """
        path = state_dir / "poca.db"
        with sentences(path):
            return cls(path, snapshot(path, patience) if readonly else open_file(path, now, patience))

    def close(self) -> None:
        """Ends the use of the history; all that was acknowledged is on disk already."""
        self._db.close()
        if self._use:
            self._use.close()

    # ---------------------------------------------------------------------------------------------- reading

    def histories(self) -> dict[str, History]:
        """Every subscription that the history knows, by title. Raises StateError."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            return opened
        with sentences(self.path):
            return read(self._db)

    def history(self, title: str) -> History:
        """One subscription; an empty history where it is not known. Raises StateError."""
        with sentences(self.path):
            return read(self._db, title).get(title) or History(title, last_run=self.last_run)

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

    def recorded_files(self) -> list[tuple[str, int | None]]:
        """Path and size of every episode that is held."""
        return [(to_text(path), size) for path, size in self._rows("SELECT path, size FROM episode WHERE fate = ? AND path != ''", Fate.HELD)]

    def is_new(self, warning: str) -> bool:
        """Whether a warning that is to be told once, in all runs, was not told yet; it counts as told from now on."""
        key = f"told: {warning}"
        if self._rows("SELECT 1 FROM meta WHERE key = ?", key):
            return False
        self._keep("meta", ("key",), {"key": key, "value": "yes"})
        return True

    # ------------------------------------------------------------------------------------- one subscription

    def together(self) -> AbstractContextManager[None]:
        """What is recorded within is recorded in one commit, or not at all."""
        return self._commit()

    def claim(self, title: str, generation: int) -> int | None:
        """The right to carry out a plan made from the history at ``generation``: the new generation, or None where
        another poca has changed the history meanwhile. To be asked for under the subscription's lock."""
        with self._commit():
            row = self._db.execute("SELECT generation FROM subscription WHERE title = ?", to_sql(title)).fetchone()
            if (row[0] if row else 0) != generation:
                return None
            self._upsert("subscription", ("title",), {"title": title, "generation": generation + 1})
        return generation + 1

    def generation(self, title: str) -> int:
        """Grows with whatever is recorded of the subscription's episodes: a plan made before that is worthless."""
        rows = self._rows("SELECT generation FROM subscription WHERE title = ?", title)
        return int(rows[0][0]) if rows else 0

    def put(self, title: str, *episodes: Episode) -> None:
        """Records the episodes whole, new ones and changed ones, in one commit."""
        with self._change(title):
            self._put(title, episodes)

    def forget(self, title: str, *keys: str) -> None:
        """Drops the records of episodes."""
        with self._change(title):
            self._db.executemany("DELETE FROM episode WHERE subscription = (SELECT id FROM subscription WHERE title = ?) AND key = ?",
                                 [to_sql(title, key) for key in keys])

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
                             to_sql(title, url))
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
            self._db.execute("DELETE FROM subscription WHERE title = ?", to_sql(title))
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
        return [Rename(to_text(old), to_text(new), to_text(from_), None if to is None else to_text(to)) for old, new, from_, to in rows]

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
                self._db.execute("DELETE FROM subscription WHERE title = ?", to_sql(intent.new_title))
                self._db.execute("UPDATE subscription SET title = ? WHERE title = ?", to_sql(intent.new_title, old_title))
            self._db.execute("DELETE FROM rename WHERE old_title = ?", to_sql(old_title))

    # ------------------------------------------------------------------------------------------- a whole run

    def saw(self, now: int) -> None:
        """The end of a run that began at ``now``, in one commit. Also an earlier instant than the one stored takes its
        place: the run that finds the clock turned back is careful, and tells it; the next one goes by the clock as it
        is. So an hour in which the clock stood in 2099 stops one run's deletions and not those of all years until then."""
        with self._commit():
            self._upsert("meta", ("key",), {"key": "last_run", "value": str(now)})
            self._db.executemany("UPDATE subscription SET last_good = ? WHERE title = ?",
                                 [to_sql(good, title) for title, good in self._good.items()])
        self._good.clear()

    def backup_due(self, now: int) -> bool:
        """Whether the last copy is of another day, or gone."""
        last = self._meta("last_backup")
        return not (last.isdigit() and 0 <= now - int(last) < _DAY and self._copy.exists())

    @property
    def _copy(self) -> Path:
        return self.path.with_name("poca.db.bak")

    def backup(self, now: int) -> bool:
        """Once a day a copy, ``poca.db.bak``; True where one was made. To be called after a good run, by one poca at a
        time. Raises StateError."""
        if not self.backup_due(now):
            return False
        with sentences(self.path):
            save_copy(self._db, self._copy)
        self._keep("meta", ("key",), {"key": "last_backup", "value": str(now)})
        return True

    def keep_for_mail(self, lines: Iterable[str]) -> None:
        """Keeps log entries until they were mailed."""
        with self._commit():
            self._db.executemany("INSERT INTO mail (line) VALUES (?)", [to_sql(line) for line in lines])

    def mail_entries(self) -> list[tuple[int, str]]:
        """The log entries kept so far, each with its id, in their order."""
        return [(number, to_text(line)) for number, line in self._rows("SELECT id, line FROM mail ORDER BY id")]

    def mailed(self, ids: Iterable[int]) -> None:
        """These entries went out, and are kept no longer."""
        with self._commit():
            self._db.executemany("DELETE FROM mail WHERE id = ?", [(number,) for number in ids])

    # ---------------------------------------------------------------------------------------------- statements

    @contextmanager
    def _commit(self) -> Iterator[None]:
        self._opened = None
        # A signal in the middle would leave the transaction open for whatever is still to be written at the end.
        with held, sentences(self.path):
            if self._db.in_transaction:     # within together()
                yield
                return
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _change(self, title: str) -> Iterator[None]:
        """A commit that takes the generation further if it changes anything."""
        with self._commit():
            before = self._db.total_changes
            yield
            if self._db.total_changes != before:
                self._db.execute("UPDATE subscription SET generation = generation + 1 WHERE title = ?", to_sql(title))

    def _rows(self, query: str, *values: object) -> list[Any]:
        with sentences(self.path):
            return self._db.execute(query, to_sql(*values)).fetchall()

    def _meta(self, key: str) -> str:
        rows = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return to_text(rows[0][0]) if rows else ""

    def _number(self, title: str) -> int:
        row = self._db.execute("SELECT id FROM subscription WHERE title = ?", to_sql(title)).fetchone()
        number = row[0] if row else self._db.execute("INSERT INTO subscription (title) VALUES (?)", to_sql(title)).lastrowid
        assert isinstance(number, int)
        return number

    def _put(self, title: str, episodes: Iterable[Episode]) -> None:
        number = 0
        for episode in episodes:
            number = number or self._number(title)
            values = {name: getattr(episode, name) for name in EPISODE}
            self._upsert("episode", ("subscription", "key"), {"subscription": number} | values)

    def _keep(self, table: str, keys: tuple[str, ...], values: Mapping[str, object]) -> None:
        with self._commit():
            self._upsert(table, keys, values)

    def _upsert(self, table: str, keys: tuple[str, ...], values: Mapping[str, object]) -> None:
        self._db.execute(_upserting(table, keys, tuple(values)), to_sql(*values.values()))


@cache
def _upserting(table: str, keys: tuple[str, ...], names: tuple[str, ...]) -> str:
    """The statement that makes a row, or changes it where anything differs."""
    rest = [name for name in names if name not in keys]
    changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
    differs = " OR ".join(f"{table}.{name} IS NOT excluded.{name}" for name in rest)
    return (f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
            f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes} WHERE {differs}")
