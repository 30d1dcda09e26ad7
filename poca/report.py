"""What a run says: lines on the terminal, the progress line, JSON Lines. For the main thread only. Owns rich.

Errors go to stderr in every mode, warnings too but for ``-q``; all else to stdout. What is printed can be printed by any
encoding, and a stream that is closed, or a pipe that nobody reads any more, silences poca and stops nothing.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, TextIO, cast

from poca import events, text
from poca.model import Event, Level, Plan

if TYPE_CHECKING:
    from rich.live import Live


class Mode(StrEnum):
    """How much is told: only errors, a line for a subscription with news, or every event."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


# ----------------------------------------------------------------------------------------------------------- streams

def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads it as it comes; False for a stream that is closed."""
    try:
        return stream.isatty()
    except ValueError:
        return False


class Lines:
    """A stream that takes any text and never raises: characters that its encoding lacks are written as ``\\xfc``, and
    after the first failure (closed, nobody reads, disk full) it swallows what comes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def line(self, line: str) -> None:
        self.write(line + "\n")
        self.flush()

    def write(self, words: str) -> int:
        self._attempt(lambda stream: stream.write(self.fitting(words)))
        return len(words)

    def flush(self) -> None:
        self._attempt(lambda stream: stream.flush())

    def fitting(self, words: str) -> str:
        """The words with what the encoding lacks written in ASCII."""
        return words.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def can_write(self, words: str) -> bool:
        return self.fitting(words) == words

    def isatty(self) -> bool:
        return self._stream is not None and is_terminal(self._stream)

    def fileno(self) -> int:
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    def _attempt(self, step: Callable[[TextIO], object]) -> None:
        if self._stream is None:
            return
        try:
            step(self._stream)
        except (OSError, ValueError):
            broken, self._stream = self._stream, None
            _swallow(broken)


def _swallow(stream: TextIO) -> None:
    """Puts the null device below a broken stream: the interpreter flushes it at exit, and would complain."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


# ------------------------------------------------------------------------------------------------------ what is told

def log_line(event: Event) -> str | None:
    """The text of the event for the log, on one line; None for what is not logged (also the
    counts of a subscription, whose steps are). Of what nobody foresaw the log, and
    only the log, gets the traceback."""
    if event.level is Level.DETAIL or event.kind == "done" or not event.text:
        return None
    trace = str(event.data.get("trace", "")).splitlines()
    return " | ".join([text.shown(event.text), *(text.shown(line) for line in trace if line.strip())])


def _prefixed(event: Event) -> str:
    title = text.shown(event.title)
    return f"{title}: {text.shown(event.text)}" if title else text.shown(event.text)


def _json_line(event: Event, instant: float) -> str:
    line: dict[str, object] = {
        "event": event.kind,
        "time": datetime.fromtimestamp(int(instant), UTC).isoformat().replace("+00:00", "Z"),
        "level": event.level.value,
        "subscription": event.title or None,
        "text": text.shown(event.text),
    }
    data = events.plan_values(event.plan) if event.plan else event.data
    more = {key: _json_value(value) for key, value in data.items() if key not in line and key != "trace"}
    return json.dumps({**line, **more}, ensure_ascii=True, allow_nan=False)


def _json_value(value: object) -> object:
    """Paths and titles as they are, since JSON needs no folding; what holds an address without its secrets."""
    if isinstance(value, (str, PurePath)):
        return text.shown(str(value)) if "://" in str(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _json_value(one) for key, one in value.items()}
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, bytes):
        return [_json_value(one) for one in value]
    return value if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and abs(value) < float("inf")) else str(value)


# ---------------------------------------------------------------------------------------------------------- reporter

# What the line of a subscription counts: the key in the data of "done", the kind of the single event, the words.
_COUNTS = (
    ("deleted_by_user", "deleted-by-user", "{} deleted by you"),
    ("removed", "removed", "{} −"),
    ("downloaded", "downloaded", "{} +"),
    ("adopted", "adopted", "{} adopted"),
    ("found_again", "found-again", "{} found again"),
    ("failed", "download-failed", "{} failed"),
)
_COUNTED = frozenset(kind for _, kind, _ in _COUNTS)
_AFTER_A_DOWNLOAD = frozenset({"downloaded", "download-failed", "postponed", "done"})


class Reporter:
    """Tells the events of a run as they come, and at the end the errors and the sums.

    ``out`` and ``err`` are stdout and stderr; ``terminal``: stdout is one; ``now`` gives the instant for JSON in seconds
    since 1970, ``clock`` seconds that only grow.
    """

    def __init__(
        self, out: TextIO, err: TextIO, mode: Mode = Mode.NORMAL, *, json: bool = False, terminal: bool = False, dry_run: bool = False,
        now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out, self._err, self._mode = Lines(out), Lines(err), mode
        self._json, self._terminal, self._dry_run, self._now = json, terminal, dry_run, now
        self._errors: list[str] = []
        self._tally: dict[str, Counter[str]] = {}       # of subscriptions that are not done
        self._news = False
        self._sums: Mapping[str, object] | None = None
        self._progress = _Progress(self._out, clock) if terminal and mode is Mode.NORMAL and not json else None

    def tell(self, event: Event) -> None:
        if event.kind in _AFTER_A_DOWNLOAD:
            self.idle()
        if self._json:
            self._out.line(_json_line(event, self._now()))
        if event.level is Level.ERROR:
            self._tell_error(event)
        elif event.level is Level.WARNING:
            if self._mode is not Mode.QUIET:
                self._print(self._err, _prefixed(event))
        elif not self._json and self._mode is not Mode.QUIET:
            self._tell_news(event)
        if event.kind in _COUNTED:
            self._tally.setdefault(event.title, Counter())[event.kind] += 1
        if event.kind == "done":
            self._tell_subscription(event.title, event.data)
        if event.kind == "sums":
            self._sums = event.data

    def finish(self) -> None:
        """The errors under one heading to stderr, and the last line with the sums."""
        for title in list(self._tally):
            self._tell_subscription(title, {})
        if self._progress:
            self._progress.clear()
        if self._errors and self._mode is not Mode.VERBOSE:
            self._err.line("1 error:" if len(self._errors) == 1 else f"{len(self._errors)} errors:")
            for error in self._errors:
                self._err.line(f"  {error}")
        worth_it = self._news or self._errors or self._terminal or self._mode is Mode.VERBOSE
        if self._sums is not None and worth_it and self._mode is not Mode.QUIET and not self._json:
            self._out.line(_sums_line(self._sums, self._dry_run))

    def asked(self, done: int, total: int) -> None:
        """So many feeds of ``total`` were asked."""
        if self._progress:
            self._progress.asked(done, total)

    def downloading(self, name: str, done: int, total: int | None) -> None:
        """So many bytes of ``total`` (None: not told) of the download under way are there. Cheap: call it for each block."""
        if self._progress:
            self._progress.downloading(name, done, total)

    def idle(self) -> None:
        """No download is under way. Told of itself by the events that end one."""
        if self._progress:
            self._progress.idle()

    def _print(self, stream: Lines, line: str) -> None:
        if self._progress:
            self._progress.clear()
        stream.line(line)
        if self._progress:
            self._progress.resume()

    def _tell_error(self, event: Event) -> None:
        self._errors.append(_prefixed(event))
        if self._mode is Mode.VERBOSE:
            self._print(self._err, _prefixed(event))

    def _tell_news(self, event: Event) -> None:
        if event.plan and self._dry_run:
            self._tell_plan(event.title, event.plan)
        elif event.kind in ("done", "sums"):
            return
        elif self._mode is Mode.VERBOSE:
            self._print(self._out, _prefixed(event))
        elif event.level is Level.NEWS and event.kind not in _COUNTED:
            self._news = True
            self._print(self._out, _prefixed(event))

    def _tell_subscription(self, title: str, counts: Mapping[str, object]) -> None:
        """Its line, if there is news; a failure alone is none, since the errors come at the end."""
        tally = self._tally.pop(title, Counter())
        numbers = [(words, counts.get(key, tally[kind])) for key, kind, words in _COUNTS]
        told = [words.format(number) for words, number in numbers if number]
        if not told or told == [words.format(number) for words, number in numbers[-1:]]:
            return
        self._news = True
        if not self._json and self._mode is not Mode.QUIET:
            self._print(self._out, self._marked(f"{text.shown(title).upper()}. {' / '.join(told)}"))

    def _tell_plan(self, title: str, plan: Plan) -> None:
        counts = ((len(plan.gone), "deleted by you"), (len(plan.adopted), "adopted"))
        lines = [f"  {count} {words}" for count, words in counts if count]
        lines += [f"  − {_file(episode.path, episode.size)}" for episode in plan.unwanted]
        lines += [f"  + {_file(one.names[0] + one.extension, one.entry.length)}" for one in plan.lacking]
        if lines:
            self._news = True
            for line in [text.shown(title).upper(), *lines]:
                self._print(self._out, self._marked(line))

    def _marked(self, line: str) -> str:
        return line if self._out.can_write("−") else line.replace("−", "-")


def _file(path: str, size: int | None) -> str:
    return f"{text.shown(path)} ({'size not told' if size is None else text.size(size)})"


def _sums_line(sums: Mapping[str, object], dry_run: bool) -> str:
    def number(key: str) -> float:
        value = sums.get(key)
        return value if isinstance(value, (int, float)) else 0

    feeds = f"{number('asked')} of {number('feeds')} feeds asked, " + ", ".join(f"{number(key)} {key}" for key in ("unchanged", "waiting", "failed"))
    episodes = f"{number('downloaded')} downloaded ({text.size(int(number('downloaded_bytes')))}), {number('removed')} removed"
    return f"{feeds}. {'Dry run: nothing was changed' if dry_run else episodes}. {text.duration(number('seconds'))}."


# ---------------------------------------------------------------------------------------------------------- progress

_REDRAWN = 0.15             # seconds between two drawings
_ASKED_REDRAWN = 0.02       # the same for feeds: the last one before a long wait should be seen
_WINDOW = 5.0               # seconds over which the speed is measured


class _Progress:
    """The progress line. It is drawn by rich, which is imported when it is drawn first; whoever prints a line clears it
    before."""

    def __init__(self, out: Lines, clock: Callable[[], float]) -> None:
        self._out, self._clock = out, clock
        self._live: Live | None = None
        self._feeds = ""
        self._download: str | None = None
        self._seen: deque[tuple[float, int]] = deque()      # (clock, bytes) of the download under way
        self._drawn = -1.0

    def asked(self, done: int, total: int) -> None:
        self._feeds = f"feeds {done}/{total}"
        now = self._clock()
        if self._download is None and not 0 <= now - self._drawn < _ASKED_REDRAWN:
            self._draw(self._feeds, now)

    def downloading(self, name: str, done: int, total: int | None) -> None:
        now = self._clock()
        if name != self._download:
            self._download = name
            self._seen.clear()
        elif 0 <= now - self._drawn < _REDRAWN:
            return
        self._seen.append((now, done))
        while now - self._seen[0][0] > _WINDOW and len(self._seen) > 2:
            self._seen.popleft()
        # The name comes last: where the terminal is narrow it is what can be missed.
        words = f"{self._measures(done, total)} {text.shown(name)}"
        self._draw(f"{self._feeds} | {words}" if self._feeds else words, now)

    def idle(self) -> None:
        """No download is under way."""
        self._download = None
        self.clear()
        self.resume()

    def resume(self) -> None:
        """Draws the feeds again where a line was printed while they are waited for; a download draws itself."""
        if self._feeds and self._download is None:
            self._draw(self._feeds, self._clock())

    def clear(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _measures(self, done: int, total: int | None) -> str:
        (begun, before), (now, _) = self._seen[0], self._seen[-1]
        speed = (done - before) / (now - begun) if now > begun else 0.0
        amount = f"{text.size(done)} of {text.size(total)}" if total else text.size(done)
        left = f", {text.duration((total - done) / speed)} left" if total and speed > 0 and total >= done else ""
        return amount + (f", {text.size(int(speed))}/s" if speed > 0 else "") + left

    def _draw(self, words: str, now: float) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self._drawn = now
        if self._live is None:
            console = Console(file=cast(IO[str], self._out), force_terminal=True, color_system=None, markup=False, emoji=False, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._live.start()
        line = Text(self._out.fitting(words), no_wrap=True, overflow="ellipsis" if self._out.can_write("…") else "crop", end="")
        self._live.update(line, refresh=True)
