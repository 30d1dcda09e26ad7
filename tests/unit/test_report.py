"""What a run says, on which stream, in which encoding, and what it says when nobody listens."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from poca import events
from poca.model import Entry, Episode, Event, Level, Plan, Subscription
from poca.model import Lacking as Lack
from poca.report import Lines, Mode, Reporter, log_line

SHOW = "The Example Hour"
REPOSITORY = Path(__file__).parents[2]


def news(kind: str, words: str, title: str = SHOW, **data: object) -> Event:
    return Event(kind, Level.NEWS, title, words, data)


def detail(kind: str, words: str, title: str = SHOW, **data: object) -> Event:
    return Event(kind, Level.DETAIL, title, words, data)


def done(title: str = SHOW, **counts: int) -> Event:
    return events.done(title, {key: counts.get(key, 0) for key in ("deleted_by_user", "removed", "downloaded", "adopted", "failed")})


def sums(**values: float) -> Event:
    return Event("sums", Level.DETAIL, "", "the end", values)


FAILED = Event("download-failed", Level.ERROR, SHOW, "Two: the server said 404 Not Found; tried again in the next run", {"episode": "Two"})
WARNED = Event("warning", Level.WARNING, SHOW, "the cover could not be had: 404 Not Found")
QUIET_HOUR = [
    detail("run-started", "poca 2.0.0 begins", ""), detail("unchanged", "unchanged"), detail("waiting", "not asked before 14:00", "Another"),
    sums(feeds=2, asked=1, unchanged=1, waiting=1, seconds=0.4),
]
NEWS = [
    detail("run-started", "poca 2.0.0 begins", ""),
    news("deleted-by-user", "deleted by you: old.mp3"),
    detail("download-started", "downloading Three"), news("downloaded", "downloaded three.mp3 (12.3 MB)"), news("removed", "removed zero.mp3"),
    detail("download-started", "downloading Four"), news("downloaded", "downloaded four.mp3 (1.7 MB)"), news("removed", "removed one.mp3"),
    news("downloaded", "downloaded five.mp3 (1.0 MB)"),
    done(deleted_by_user=1, removed=2, downloaded=3),
    detail("unchanged", "unchanged", "Another"),
    sums(feeds=2, asked=2, unchanged=1, downloaded=3, downloaded_bytes=15_000_000, removed=2, seconds=12.2),
]
FAILURES = [
    news("downloaded", "downloaded three.mp3 (12.3 MB)"), FAILED, done(downloaded=1, failed=1),
    Event("feed-failed", Level.ERROR, "Another", "this is no feed but a page; asked again in the next run", {}),
    sums(feeds=2, asked=2, failed=1, downloaded=1, downloaded_bytes=12_300_000, seconds=3),
]


def told(run: Iterable[Event], mode: Mode = Mode.NORMAL, **options: bool) -> tuple[str, str]:
    """What stdout and stderr got."""
    out, err = io.StringIO(), io.StringIO()
    reporter = Reporter(out, err, mode, now=lambda: 1_700_000_000.9, **options)
    for event in run:
        reporter.tell(event)
    reporter.finish()
    return out.getvalue(), err.getvalue()


def lines(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


# ------------------------------------------------------------------------------------------------------------- samples

def test_a_quiet_hour_prints_nothing_without_a_terminal() -> None:
    assert told(QUIET_HOUR) == ("", "")


def test_a_quiet_hour_ends_with_the_sums_at_a_terminal() -> None:
    out, err = told(QUIET_HOUR, terminal=True)
    assert (out, err) == ("1 of 2 feeds asked, 1 unchanged, 1 waiting, 0 failed. 0 downloaded (0 B), 0 removed. 0 s.\n", "")


def test_a_run_with_news_has_a_line_for_each_subscription_with_news_and_the_sums() -> None:
    assert told(NEWS) == (lines("""
        THE EXAMPLE HOUR. 1 deleted by you / 2 − / 3 +
        2 of 2 feeds asked, 1 unchanged, 0 waiting, 0 failed. 3 downloaded (15.0 MB), 2 removed. 12 s.
    """), "")


def test_a_first_run_tells_what_was_adopted_and_moved() -> None:
    moved = news("moved", "the feed moved to https://example.org/new; the config has it now")
    run = [news("adopted", "adopted one.mp3"), done(adopted=1, downloaded=9), moved]
    assert told(run)[0] == lines("""
        THE EXAMPLE HOUR. 9 + / 1 adopted
        The Example Hour: the feed moved to https://example.org/new; the config has it now
    """)


def test_errors_stand_under_one_heading_on_stderr() -> None:
    out, err = told(FAILURES)
    assert out == lines("""
        THE EXAMPLE HOUR. 1 + / 1 failed
        2 of 2 feeds asked, 0 unchanged, 0 waiting, 1 failed. 1 downloaded (12.3 MB), 0 removed. 3 s.
    """)
    assert err == lines("""
        2 errors:
          The Example Hour: Two: the server said 404 Not Found; tried again in the next run
          Another: this is no feed but a page; asked again in the next run
    """)


def test_verbose_tells_every_event_in_order_with_its_subscription() -> None:
    out, err = told(NEWS, Mode.VERBOSE)
    assert out == lines("""
        poca 2.0.0 begins
        The Example Hour: deleted by you: old.mp3
        The Example Hour: downloading Three
        The Example Hour: downloaded three.mp3 (12.3 MB)
        The Example Hour: removed zero.mp3
        The Example Hour: downloading Four
        The Example Hour: downloaded four.mp3 (1.7 MB)
        The Example Hour: removed one.mp3
        The Example Hour: downloaded five.mp3 (1.0 MB)
        THE EXAMPLE HOUR. 1 deleted by you / 2 − / 3 +
        Another: unchanged
        2 of 2 feeds asked, 1 unchanged, 0 waiting, 0 failed. 3 downloaded (15.0 MB), 2 removed. 12 s.
    """)
    assert err == ""


def test_verbose_tells_an_error_where_it_happens_and_once() -> None:
    stream = io.StringIO()
    reporter = Reporter(stream, stream, Mode.VERBOSE)
    for event in FAILURES:
        reporter.tell(event)
    reporter.finish()
    assert stream.getvalue().splitlines()[:2] == [
        "The Example Hour: downloaded three.mp3 (12.3 MB)", "The Example Hour: Two: the server said 404 Not Found; tried again in the next run",
    ]
    assert stream.getvalue().count("404") == 1


def test_quiet_prints_nothing_but_errors() -> None:
    out, err = told([WARNED, *NEWS, *FAILURES], Mode.QUIET)
    assert out == ""
    assert err.splitlines()[0] == "2 errors:"
    assert "cover" not in err
    assert told([WARNED, *NEWS], Mode.QUIET) == ("", "")


def test_a_warning_goes_to_stderr() -> None:
    for mode in (Mode.NORMAL, Mode.VERBOSE):
        out, err = told([WARNED], mode)
        assert (out, err) == ("", "The Example Hour: the cover could not be had: 404 Not Found\n")


def plan() -> Plan:
    old = Episode("a0", "g0", "https://example.org/0.mp3", "Zero", path="The Example Hour/zero.mp3", size=1_000_000)
    first, second = (Episode(f"a{n}", f"g{n}", f"https://example.org/{n}.mp3?key=s3cr3t", title) for n, title in ((1, "One [b]"), (2, "Two")))
    return Plan(
        Subscription(SHOW, "https://example.org/feed"), 1, unwanted=(old,), gone=(old,),
        lacking=(Lack(first, Entry(first.guid, first.url, length=12_345_678), ("The Example Hour/one",), ".mp3"),
                 Lack(second, Entry(second.guid, second.url), ("The Example Hour/two [/b]",), "")),
    )


def test_a_dry_run_lists_what_would_be_deleted_and_downloaded_with_sizes() -> None:
    run = [detail("run-started", "dry run", ""), events.plan_event(plan()), sums(feeds=1, asked=1, seconds=2)]
    assert told(run, dry_run=True) == (lines("""
        THE EXAMPLE HOUR
          1 deleted by you
          − The Example Hour/zero.mp3 (1.0 MB)
          + The Example Hour/one.mp3 (12.3 MB)
          + The Example Hour/two [/b] (size not told)
        1 of 1 feeds asked, 0 unchanged, 0 waiting, 0 failed. Dry run: nothing was changed. 2 s.
    """), "")


def test_the_plan_of_a_real_run_is_no_news() -> None:
    assert told([events.plan_event(plan())]) == ("", "")


def test_an_interrupted_run_still_tells_what_it_did() -> None:
    run = [news("downloaded", "downloaded a.mp3"), news("downloaded", "downloaded b.mp3"), news("found-again", "found again: c.mp3")]
    assert told(run)[0] == "THE EXAMPLE HOUR. 2 + / 1 found again\n"


def test_a_failure_alone_makes_no_line_of_its_own() -> None:
    out, err = told([FAILED, done(failed=1)])
    assert out == ""
    assert "Two" in err


def test_a_traceback_goes_to_the_log_only_and_on_one_line() -> None:
    bug = events.bug(SHOW, KeyError("x"), "Traceback (most recent call last):\n  File \"x.py\", line 3, in f\nKeyError: 'https://u:hunter2@h/'\n")
    for options in ({}, {"json": True}):
        for mode in Mode:
            assert "Traceback" not in "".join(told([bug], mode, **options))
    logged = log_line(bug)
    assert logged is not None
    assert "x.py" in logged and "KeyError" in logged
    assert "hunter2" not in logged and "\n" not in logged


def test_the_log_gets_news_warnings_and_errors_but_no_details() -> None:
    assert log_line(FAILED) == FAILED.text
    assert log_line(WARNED) == WARNED.text
    assert log_line(news("downloaded", "downloaded a.mp3")) == "downloaded a.mp3"
    assert log_line(detail("unchanged", "unchanged")) is None
    assert log_line(news("x", "two\nlines")) == "two lines"


def test_titles_and_texts_cannot_steer_the_terminal_or_show_a_secret() -> None:
    evil = Event("download-failed", Level.ERROR, "A\x1b[2J\nB", "no answer from https://u:hunter2@h/x?s3cr3t\r\x07", {})
    for mode in Mode:
        out, err = told([evil, news("note", "\x1b]0;x\x07", "A\x1b[2J")], mode)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]|hunter2|s3cr3t", out + err)


# ---------------------------------------------------------------------------------------------------------------- JSON

def test_json_is_an_event_a_line_and_nothing_else() -> None:
    out, err = told([WARNED, *FAILURES], json=True)
    values = [json.loads(line) for line in out.splitlines()]
    assert [value["event"] for value in values] == ["warning", "downloaded", "download-failed", "done", "feed-failed", "sums"]
    assert values[2] == {
        "event": "download-failed", "time": "2023-11-14T22:13:20Z", "level": "error", "subscription": SHOW,
        "text": "Two: the server said 404 Not Found; tried again in the next run", "episode": "Two",
    }
    assert values[5]["subscription"] is None
    assert values[5]["downloaded_bytes"] == 12_300_000
    assert [line for line in err.splitlines() if "404" in line and "Two" in line]


def test_json_is_ascii_hides_secrets_and_keeps_its_own_keys() -> None:
    more = {"list": ({"n": float("nan")}, Level.NEWS)}
    event = Event("note", Level.NEWS, "Ü", "é", {
        "time": "x", "text": "y", "path": Path("Ü/a  b.mp3"), "url": "https://u:hunter2@h/?s3cr3t", "more": more,
    })
    out, _ = told([event], json=True)
    out.encode("ascii")
    value = json.loads(out)
    assert (value["text"], value["time"], value["path"]) == ("é", "2023-11-14T22:13:20Z", "Ü/a  b.mp3")
    assert value["url"] == "https://***@h/?…"
    assert value["more"] == {"list": [{"n": "nan"}, "news"]}


def test_json_prints_the_same_whatever_the_mode() -> None:
    assert told(NEWS, Mode.QUIET, json=True)[0] == told(NEWS, Mode.VERBOSE, json=True)[0] == told(NEWS, json=True, terminal=True)[0]


# ------------------------------------------------------------------------------------------------------------- streams

@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16"])
def test_any_title_prints_in_any_encoding(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
    reporter = Reporter(stream, stream)
    for event in [news("downloaded", "x", "天気 ☀ Überraschung \udcff"), done("天気 ☀ Überraschung \udcff", removed=2, downloaded=3), FAILED]:
        reporter.tell(event)
    reporter.finish()
    printed = raw.getvalue().decode(encoding)
    assert ("2 − / 3 +" if encoding.startswith("utf") else "2 - / 3 +") in printed
    assert ("天気 ☀ ÜBERRASCHUNG" if encoding.startswith("utf") else "\\u5929") in printed


SCRIPT = """
import sys
from poca.model import Event, Level
from poca.report import Mode, Reporter, is_terminal
from poca.startup import guard_descriptors
guard_descriptors()
opened = open(sys.argv[1], "w+")
reporter = Reporter(sys.stdout, sys.stderr, Mode.VERBOSE, terminal=is_terminal(sys.stdout))
for number in range(3000):
    reporter.tell(Event("note", Level.NEWS, "\\xdcberraschung \\u5929", f"line {number}"))
reporter.tell(Event("error", Level.ERROR, "Show", "went wrong"))
reporter.finish()
assert opened.fileno() > 2
opened.write("all done")
print("also this")
"""


@pytest.mark.parametrize(("wrap", "err"), [
    ('"$@" | head -n 1', "Show: went wrong\n"), ('"$@" >&-', "Show: went wrong\n"), ('"$@" 2>&- | head -n 1', ""), ('"$@" >&- 2>&- <&-', ""),
    ('"$@" >/dev/full', "Show: went wrong\n"), ('"$@" 2>/dev/full >/dev/null', ""), ('"$@" 2>&1 >/dev/null | true', ""),
    ('"$@" >/dev/null', "Show: went wrong\n"),
])
@pytest.mark.parametrize("settings", [
    {}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
])
def test_a_stream_that_nobody_reads_stops_nothing(tmp_path: Path, wrap: str, err: str, settings: dict[str, str]) -> None:
    if "/dev/full" in wrap and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {wrap}; exit ${{PIPESTATUS[0]}}", "bash", sys.executable, "-c", SCRIPT, str(tmp_path / "x")],
        capture_output=True, check=False, cwd=REPOSITORY, env=environment | settings, timeout=60,
    )
    assert (run.stderr.decode(), run.returncode) == (err, 0)
    assert (tmp_path / "x").read_text() == "all done"


def test_lines_hold_back_nothing_until_the_end() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as stream, os.fdopen(read, "rb", buffering=0) as reader:
        Lines(stream).line("at once")
        assert reader.read(100) == b"at once\n"


# ------------------------------------------------------------------------------------------------------------ terminal

class Screen:
    """A terminal of our own: what a person would see on it, and all that was sent to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, width: int = 80, encoding: str = "utf-8") -> None:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("LINES", "25")
        self.width, self.time = width, 0.0
        self.master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", encoding=encoding, errors="strict")
        self.raw = ""

    def close(self) -> None:
        self.stream.close()
        os.close(self.master)

    def look(self) -> list[str]:
        """The lines of the screen; a line longer than the terminal is wide would fail here if it was no printed one."""
        os.set_blocking(self.master, False)
        while True:
            try:
                self.raw += os.read(self.master, 65536).decode("utf-8", "replace")
            except BlockingIOError:
                break
        rows, row, column = [""], 0, 0
        for piece in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", self.raw):
            if piece == "\r":
                column = 0
            elif piece == "\n":
                row += 1
                rows.extend([""] * (row + 1 - len(rows)))
            elif piece == "\x1b[2K":
                rows[row] = ""
            elif re.fullmatch(r"\x1b\[\d*A", piece):
                row -= int(piece[2:-1] or 1)
            elif piece.startswith("\x1b"):
                assert piece in ("\x1b[?25l", "\x1b[?25h"), repr(piece)
            else:
                rows[row] = rows[row][:column].ljust(column) + piece + rows[row][column + len(piece):]
                column += len(piece)
        return [line.rstrip() for line in rows if line.strip()]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterable[Callable[..., Screen]]:
    screens: list[Screen] = []

    def make(width: int = 80, encoding: str = "utf-8") -> Screen:
        screens.append(Screen(monkeypatch, width, encoding))
        return screens[-1]

    yield make
    for one in screens:
        one.close()


def reporter_at(screen: Screen, **options: bool) -> Reporter:
    return Reporter(screen.stream, screen.stream, terminal=True, clock=lambda: screen.time, **options)


def test_the_progress_line_shows_feeds_and_the_download_under_way(screen: Callable[..., Screen]) -> None:
    here = screen()
    reporter = reporter_at(here)
    reporter.asked(3, 40)
    assert here.look() == ["feeds 3/40"]
    for here.time, have in ((1.0, 0), (2.0, 1_500_000), (3.0, 3_000_000)):
        reporter.downloading("The Example Hour: Three [/b]", have, 9_000_000)
    assert here.look() == ["feeds 3/40 | 3.0 MB of 9.0 MB, 1.5 MB/s, 4 s left The Example Hour: Three [/b]"]
    reporter.tell(news("downloaded", "downloaded three.mp3"))
    assert here.look() == ["feeds 3/40"]


def test_no_line_is_torn_by_the_progress_line_and_it_is_gone_at_the_end(screen: Callable[..., Screen]) -> None:
    here = screen()
    reporter = reporter_at(here)
    reporter.asked(1, 2)
    here.time = 1
    reporter.downloading("The Example Hour: Three", 500, None)
    reporter.tell(WARNED)
    assert here.look() == ["The Example Hour: the cover could not be had: 404 Not Found"]
    here.time = 2
    reporter.downloading("The Example Hour: Three", 1500, None)
    assert here.look()[1] == "feeds 1/2 | 1.5 kB, 1.0 kB/s The Example Hour: Three"
    for event in FAILURES:
        reporter.tell(event)
    reporter.asked(2, 2)
    reporter.finish()
    assert here.look() == [
        "The Example Hour: the cover could not be had: 404 Not Found",
        "THE EXAMPLE HOUR. 1 + / 1 failed",
        "2 errors:",
        "  The Example Hour: Two: the server said 404 Not Found; tried again in the next run"[:84],
        "  Another: this is no feed but a page; asked again in the next run",
        "2 of 2 feeds asked, 0 unchanged, 0 waiting, 1 failed. 1 downloaded (12.3 MB), 0 removed. 3 s.",
    ]
    assert here.raw.rindex("\x1b[?25h") > here.raw.rindex("\x1b[?25l")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_twenty_columns_are_enough(screen: Callable[..., Screen], encoding: str) -> None:
    here = screen(20, encoding)
    reporter = reporter_at(here)
    reporter.asked(3, 40)
    reporter.downloading("天気 ☀ Überraschung: Die Stunde", 3_000_000, 9_000_000)
    (line,) = here.look()
    assert len(line) <= 20
    assert line.startswith("feeds 3/40 | 3.0")


def test_a_fast_download_is_drawn_a_few_times_a_second_only(screen: Callable[..., Screen]) -> None:
    here = screen()
    reporter = reporter_at(here)
    for step in range(1000):
        here.time = step / 500
        reporter.downloading("The Example Hour: Three", step * 65_536, None)
        here.look()
    assert 5 <= here.raw.count("The Example Hour: Three") <= 20


@pytest.mark.parametrize(("mode", "options"), [(Mode.NORMAL, {}), (Mode.QUIET, {"terminal": True}), (Mode.VERBOSE, {"terminal": True}),
                                               (Mode.NORMAL, {"terminal": True, "json": True})])
def test_there_is_no_progress_line_where_nobody_watches(mode: Mode, options: dict[str, bool]) -> None:
    out = io.StringIO()
    reporter = Reporter(out, out, mode, **options)
    reporter.asked(1, 2)
    reporter.downloading("The Example Hour: Three", 1, 2)
    assert out.getvalue() == ""


def test_a_terminal_that_cannot_redraw_a_line_gets_none(screen: Callable[..., Screen], monkeypatch: pytest.MonkeyPatch) -> None:
    here = screen()
    monkeypatch.setenv("TERM", "dumb")
    reporter = reporter_at(here)
    reporter.asked(1, 2)
    reporter.downloading("Three", 1, 2)
    for event in QUIET_HOUR:
        reporter.tell(event)
    reporter.finish()
    assert here.look() == ["1 of 2 feeds asked, 1 unchanged, 1 waiting, 0 failed. 0 downloaded (0 B), 0 removed. 0 s."]
    assert "\x1b" not in here.raw


def test_rich_is_loaded_only_for_the_progress_line() -> None:
    code = """
import io, sys
from poca.model import Event, Level
from poca.report import Mode, Reporter
for terminal in (False, True):
    reporter = Reporter(io.StringIO(), io.StringIO(), terminal=terminal)
    reporter.tell(Event("error", Level.ERROR, "Show", "went wrong"))
    reporter.finish()
reporter = Reporter(io.StringIO(), io.StringIO())
reporter.asked(1, 2)
reporter.downloading("x", 1, 2)
sys.exit("rich" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=REPOSITORY, timeout=60).returncode == 0


def test_a_terminal_that_goes_away_stops_nothing(screen: Callable[..., Screen]) -> None:
    here = screen()
    reporter = reporter_at(here)
    reporter.asked(1, 2)
    here.look()
    os.close(here.master)
    here.master = os.open(os.devnull, os.O_RDONLY)
    for here.time in (1.0, 2.0):
        reporter.downloading("The Example Hour: Three", 1, 2)
    for event in FAILURES:
        reporter.tell(event)
    reporter.finish()
