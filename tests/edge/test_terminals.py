"""What poca says, on any terminal, in any locale, into any pipe: the program as a whole. What a feed, a server or the config
holds neither moves the cursor nor colours anything."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time
import unicodedata
from pathlib import Path

import pytest

from tests.server import Raw, Reply, Server
from tests.world import POCA, Done, Home, Show, ended

TITLES = [
    "Über Ærø", "日本語のニュース", "Новости дня", "אבגד", "العربية", "🎙️ 👩‍👩‍👧",
    "e\u0301te\u0301", "\u202edesrever\u202c", "a\u2028b\u2029c", "[red]x[/red]",
    "[/b]", "{x} %s %d", "tab\tand\nline", "x" * 700, "<b>bold</b> &amp; more",
]
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
NASTY = "\x1b[31mred\x1b[0m\x07\x9b2J\x1b]0;title\x07 \u202e"
CONFIG_TITLE = "[/b] \u0645\u0631\u062d\u0628\u0627 \u202e Über"

LOCALES = [
    {"LANG": "C.UTF-8"}, {"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "POSIX", "LANG": ""},
    {"PYTHONIOENCODING": "ascii:strict"}, {"PYTHONIOENCODING": "latin-1:strict", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "utf-16"},
    {"LC_ALL": "no_SUCH.locale"},
]
MODES: list[tuple[str, ...]] = [("--dry-run",), ("--dry-run", "--json"), (), ("-v",), ("-q",)]


def steers(text: str) -> list[str]:
    """What in a text would move a cursor, colour, ring or turn."""
    return [repr(c) for c in text if c != "\n" and (unicodedata.category(c) == "Cc" or c in TURNING)]


def nasty(server: Server) -> tuple[Show, list[dict[str, object]]]:
    """A show with all of the titles, and feeds that fail in words that hurt."""
    show = Show(server, "show").publish(len(TITLES))
    for item, title in zip(show.items, TITLES, strict=True):
        item.title = title
    show.items[-1].path = "/show/gone.mp3?token=s3cret"
    server.routes["/show/gone.mp3"] = Raw(f"HTTP/1.1 404 {NASTY}\r\nContent-Length: 0\r\n\r\n".encode("latin-1", "replace"))
    server.routes["/status"] = Raw(f"HTTP/1.1 403 {NASTY}\r\nContent-Type: {NASTY}\r\nContent-Length: 0\r\n\r\n".encode("latin-1", "replace"))
    server.routes["/page"] = Reply(body=f"<{NASTY}>{NASTY}</{NASTY}>".encode(), type="text/html")
    server.routes["/moved"] = Raw(f"HTTP/1.1 302 x\r\nLocation: gopher://{NASTY}\r\nContent-Length: 0\r\n\r\n".encode("latin-1", "replace"))
    server.routes["/encoded"] = Raw(f"HTTP/1.1 200 OK\r\nContent-Encoding: {NASTY}\r\nContent-Length: 3\r\n\r\nabc".encode("latin-1", "replace"))
    names = ("status", "page", "moved", "encoded")
    others: list[dict[str, object]] = [{"title": f"{name} {CONFIG_TITLE}", "url": server.url(f"/{name}")} for name in names]
    return show, [show.subscription(CONFIG_TITLE, rename="{episode_title}", metadata={"artist": "x"}), *others]


@pytest.mark.parametrize("env", LOCALES, ids=lambda env: " ".join(f"{name}={value}" for name, value in env.items()))
def test_any_title_prints_in_any_locale_and_in_every_mode(env: dict[str, str], home: Home, server: Server) -> None:
    _, subscriptions = nasty(server)
    home.write(*subscriptions)
    for arguments in MODES:
        done = raw(home, *arguments, **env)
        assert done.code == 1, done
        assert "fault of poca" not in done.err
        assert not steers(done.out) and not steers(done.err), (arguments, steers(done.out + done.err))
        if "--json" in arguments:
            assert all(json.loads(line)["event"] for line in done.out.splitlines())
    assert len(home.files()) == len(TITLES) - 1
    assert not steers(home.log_path.read_text(encoding="utf-8"))
    assert not any(steers(name) for name in home.files())


def raw(home: Home, *arguments: str, **env: str) -> Done:
    """A run whose output is decoded as what it was encoded in."""
    encoding = env.get("PYTHONIOENCODING", "utf-8").partition(":")[0]
    command = [str(POCA), "--config", str(home.config), *arguments]
    done = subprocess.run(command, env={**home.env, **env}, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120)
    found = Done(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding), 0)
    assert "Traceback" not in found.out + found.err, found
    return Done(found.code, found.out.replace("\ufeff", ""), found.err.replace("\ufeff", ""), 0)


# ------------------------------------------------------------------------------------------------------ streams that are not there

@pytest.mark.parametrize("redirected", [
    ">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full", ">/dev/full 2>/dev/full", "| head -c 1", "2>&1 | true",
])
@pytest.mark.parametrize("arguments", [(), ("-v", "--json")], ids=["", "-v --json"])
def test_a_stream_that_is_closed_full_or_left_silences_poca_and_stops_nothing(
    redirected: str, arguments: tuple[str, ...], home: Home, server: Server,
) -> None:
    shows = [Show(server, name).publish(2) for name in ("one", "two")]
    home.write(*(show.subscription() for show in shows), {"title": "Gone", "url": server.url("/gone.xml")})
    command = f'"$POCA" --config "$CONFIG" {" ".join(arguments)} {redirected}; echo "${{PIPESTATUS[0]}}" >"$CODE"'
    env = {**home.env, "POCA": str(POCA), "CONFIG": str(home.config), "CODE": str(home.folder / "code")}
    done = subprocess.run(["bash", "-c", command], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    assert (home.folder / "code").read_text(encoding="ascii").strip() == "1"
    assert "Traceback" not in done.stdout + done.stderr and "Exception ignored" not in done.stderr and "BrokenPipe" not in done.stderr, done.stderr
    assert len(home.files()) == 4
    assert all(file.startswith(b"\xff\xfb") for file in home.files().values()), "what was to be printed is in a file"
    assert len(home.log()) == 5


# ----------------------------------------------------------------------------------------------------------------- at a terminal

OWN = re.compile(r"\x1b\[(?:\?25[lh]|2K|\d*A|\d*G)|\r")      # what rich moves its own line by


def at_a_terminal(home: Home, columns: int, *arguments: str, **env: str) -> tuple[int, str]:
    """The exit code and all that the terminal got."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [str(POCA), "--config", str(home.config), *arguments]
    terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = subprocess.Popen(command, env={**home.env, **terminal, **env}, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    got = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            more = os.read(ours, 65_536)
        except OSError:         # EIO: nobody has the other end any more
            break
        if not more:
            break
        got += more
    os.close(ours)
    return process.wait(30), got.decode("utf-8", "replace").replace("\r\n", "\n")


@pytest.mark.parametrize(("columns", "arguments"), [
    (20, ()), (80, ()), (200, ()), (20, ("-v",)), (80, ("-q",)), (80, ("--json",)), (200, ("--dry-run",)),
])
def test_only_the_progress_line_moves_the_cursor_and_it_fits(columns: int, arguments: tuple[str, ...], home: Home, server: Server) -> None:
    show, subscriptions = nasty(server)
    server.routes["/show/1.mp3"] = Reply(body=show.items[0].body * 20, type="audio/mpeg", drip=0)
    home.write(*subscriptions)
    code, got = at_a_terminal(home, columns, *arguments)
    assert code == 1
    assert not steers(OWN.sub("", got)), steers(OWN.sub("", got))
    frames = [frame for frame in re.split(r"[\r\n]|\x1b\[2K", OWN.sub("\r", got)) if frame.startswith("feeds ")]
    assert bool(frames) == (arguments == ()), frames
    assert all(width(frame) <= columns for frame in frames), max(frames, key=width)
    assert "Traceback" not in got


def width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": ""}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {**LOCALES[2]}])
def test_a_terminal_that_can_do_little_gets_no_more(env: dict[str, str], home: Home, server: Server) -> None:
    home.write(Show(server, "show").publish(2).subscription("Über"))
    code, got = at_a_terminal(home, 80, **env)
    assert code == 0
    assert not steers(OWN.sub("", got))
    assert "\x1b[3" not in got, "no colours"
    if "LC_ALL" in env:
        assert got.isascii()


# ------------------------------------------------------------------------------------------------------------------ golden samples

def normal(text: str, server: Server) -> str:
    """The same for each run: ports, times and lengths of time."""
    text = text.replace(str(server.port), "PORT")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "WHEN", text)
    text = re.sub(r"\. (\d+ s|\d+ min)\.$", ". TIME.", text, flags=re.MULTILINE)
    return re.sub(r"^poca \d+\.\d+\S*$", "poca VERSION", text, flags=re.MULTILINE)


def test_what_is_said_in_the_life_of_a_config(home: Home, server: Server) -> None:
    hour = Show(server, "hour").publish(3)
    one = hour.subscription("The Example Hour", max_number=2)
    home.write(one)

    def said(*arguments: str) -> tuple[int, str, str]:
        done = home.run(*arguments)
        return done.code, normal(done.out, server), normal(done.err, server)

    assert said("--dry-run") == (0, """\
THE EXAMPLE HOUR
  + The Example Hour/2.mp3 (5.0 kB)
  + The Example Hour/3.mp3 (5.0 kB)
1 of 1 feeds asked, 0 unchanged, 0 waiting, 0 failed. Dry run: nothing was changed. TIME.
""", "")
    assert said() == (0, """\
THE EXAMPLE HOUR. 2 +
1 of 1 feeds asked, 0 unchanged, 0 waiting, 0 failed. 2 downloaded (10.0 kB), 0 removed. TIME.
""", "")
    assert said() == (0, "", "")
    assert said("-q") == (0, "", "")
    hour.publish(2)
    (home.base / "The Example Hour" / "3.mp3").unlink()
    server.routes["/hour/5.mp3"] = Reply(404)
    home.write(one, {"title": "Gone", "url": server.url("/gone.xml?key=s3cret")})
    assert said("--dry-run") == (1, """\
THE EXAMPLE HOUR
  1 deleted by you
  − The Example Hour/2.mp3 (5.0 kB)
  + The Example Hour/4.mp3 (5.0 kB)
  + The Example Hour/5.mp3 (5.0 kB)
2 of 2 feeds asked, 0 unchanged, 0 waiting, 1 failed. Dry run: nothing was changed. TIME.
""".replace("2 of 2 feeds asked", "1 of 2 feeds asked"), """\
1 error:
  Gone: the server answers 404 (Not Found)
""")
    assert said("-n", "1") == (1, """\
THE EXAMPLE HOUR. 1 deleted by you / 1 − / 1 + / 1 failed
2 of 2 feeds asked, 0 unchanged, 0 waiting, 1 failed. 1 downloaded (5.0 kB), 1 removed. TIME.
""", """\
2 errors:
  The Example Hour: Episode 5: the server answers 404 (Not Found); tried again in the next run
  Gone: the server answers 404 (Not Found); asked again in the next run
""")
    server.routes["/hour/5.mp3"] = Reply(body=hour.items[4].body, type="audio/mpeg")
    home.write(one)
    assert said("-v", "-n", "3") == (0, """\
poca VERSION
-v asks one feed at a time, so -n has no effect
The Example Hour: plan: 1 to download (5.0 kB)
The Example Hour: downloading Episode 5 from http://127.0.0.1:PORT/hour/5.mp3
The Example Hour: downloaded 5.mp3 (5.0 kB)
THE EXAMPLE HOUR. 1 +
1 of 1 feeds asked, 0 unchanged, 0 waiting, 0 failed. 1 downloaded (5.0 kB), 0 removed. TIME.
""", "")
    assert said("-v") == (0, """\
poca VERSION
The Example Hour: unchanged
1 of 1 feeds asked, 1 unchanged, 0 waiting, 0 failed. 0 downloaded (0 B), 0 removed. TIME.
""", "")
    assert home.log() == [
        "The Example Hour: downloaded 2.mp3 (5.0 kB)", "The Example Hour: downloaded 3.mp3 (5.0 kB)", "The Example Hour: deleted by you: 3.mp3",
        "The Example Hour: downloaded 4.mp3 (5.0 kB)", "The Example Hour: removed 2.mp3",
        "The Example Hour: Episode 5: the server answers 404 (Not Found); tried again in the next run",
        "Gone: the server answers 404 (Not Found); asked again in the next run", "The Example Hour: downloaded 5.mp3 (5.0 kB)",
    ]


def test_what_is_said_where_nothing_can_be_done(home: Home, tmp_path: Path) -> None:
    home.config.write_text("settings: {}\n", encoding="ascii")
    done = home.run()
    assert (done.code, done.out) == (2, "")
    assert "base_dir" in done.err and f"{home.config}:" in done.err
    home.write({"title": "One", "url": "http://127.0.0.1:9/"})
    for arguments, told in ((("Onne",), "There is no subscription Onne; the nearest: One."), (("-e",), "-e mails by settings.email")):
        done = home.run(*arguments)
        assert done.code == 2 and done.err.startswith(told) and done.err.count("\n") == 1, done
    home.config.unlink()
    done = home.run()
    assert done.code == 2 and str(home.config) in done.err
    env = {**home.env, "XDG_CONFIG_HOME": str(tmp_path / "none")}
    pipe = subprocess.PIPE
    done = ended(subprocess.Popen([str(POCA)], env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True))
    assert done.code == 2 and done.err.startswith(f"There is no config file {tmp_path}/none/poca/config.yaml."), done
