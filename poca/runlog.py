"""The log: a line an event, appended at once, whole lines only, whoever else writes or rotates it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from poca.errors import StateError
from poca.interrupts import held
from poca.locks import PATIENCE, log_lock

# All that a terminal or a pager takes for the end of a line or for an order to itself, and what turns the writing.
_ONE_LINE: dict[int, str | None] = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " "),
    **dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
}


def line(instant: int, pid: int, title: str, text: str) -> str:
    """``2026-11-30 14:05:12 poca[4711] THE TITLE: text`` in local time, without its line end; no title, no colon."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(instant))
    return f"{stamp} poca[{pid}] {f'{title}: ' if title else ''}{text}".translate(_ONE_LINE)


class RunLog:
    """The log of one process, at ``path`` (None: there is none). The file is opened for each write, so that it may be
    moved away at any time; it is made private to the user."""

    def __init__(self, path: Path | None, pid: int) -> None:
        self.path, self.pid = path, pid
        self._patience = PATIENCE

    def line(self, instant: int, title: str, text: str) -> str:
        """The line of this process, without its line end."""
        return line(instant, self.pid, title, text)

    def write(self, instant: int, title: str, text: str) -> str:
        """Appends one line. Returns "", or why it went to stderr instead."""
        return self.write_all([(instant, title, text)])

    def write_all(self, entries: Iterable[tuple[int, str, str]]) -> str:
        """Appends several (instant, title, text) at once. Returns "", or why they went to stderr instead."""
        lines = "".join(f"{line(instant, self.pid, title, text)}\n" for instant, title, text in entries)
        if self.path is None or not lines:
            return ""
        data = lines.encode("utf-8", "backslashreplace")
        failure = self._append(self.path, data)
        if failure:
            with suppress(OSError, ValueError, AttributeError):     # stderr may be closed, or not there
                sys.stderr.write(data.decode())
                sys.stderr.flush()
        return failure

    def _append(self, path: Path, data: bytes) -> str:
        try:
            with held, log_lock(path, self._patience) as got:       # else the last word of an interrupted run might wait for its own lock
                # Whoever holds it that long is stuck: the next lines do not wait for it again.
                self._patience = PATIENCE if got else 0
                if not got:
                    return f"The log {path} is kept locked by another program; its lines go to stderr."
                _append(path, data)
        except StateError as error:
            return f"The log {path} cannot be written: {error}"
        except OSError as error:
            return f"The log {path} cannot be written: {error.strerror or error}."
        return ""


def _append(path: Path, data: bytes) -> None:
    # O_NONBLOCK: a named pipe without a reader is an error, and not a wait without end.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
    try:
        before = os.fstat(descriptor).st_size
        written = os.write(descriptor, data)
        try:
            while written < len(data):      # as good as never, but the disk may be full now
                written += os.write(descriptor, data[written:])
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)
