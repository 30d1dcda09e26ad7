"""docs/tutorial.rst is true: each of its commands, in their order, by the installed programs in a home of its own.

    python -m tests.e2e.test_tutorial

writes what they say now into the document; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from tests.distributions import REPOSITORY
from tests.server import Reply, Server
from tests.world import DAY, POCA, Home, Item, Show, mp3

DOCUMENT = REPOSITORY / "docs" / "tutorial.rst"
BLOCK = re.compile(r"^    \$ (?P<command>.*)\n(?P<output>(?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", re.MULTILINE)
PORT = "50000"
NEWEST = 1_780_000_000          # 2026-05-28

# What differs from one run or machine to the next.
VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "2026-11-30 14:05"),
    (re.compile(r"poca\[\d+\]"), "poca[4711]"),
    (re.compile(r"\b\d+ s\."), "1 s."),
]


def normal(words: str) -> str:
    for pattern, instead in VARIES:
        words = pattern.sub(instead, words)
    return "\n".join(line.rstrip() for line in words.splitlines()).rstrip()


def serve(server: Server) -> None:
    """A show of every day, a serial, and one that is repeated now and then."""
    for name, title, count, days in (("news", "Evening News", 30, 1), ("stories", "Example Stories", 12, 7), ("talk", "Garden Talk", 6, 7)):
        show = Show(server, name)
        for number in range(1, count + 1):
            path = f"/{name}/{name}-{number:02}.mp3"
            word = "Repeat: roses" if name == "talk" and number == 5 else f"{title} {number}"
            show.items.append(Item(word, path, f"{name}-{number}", NEWEST - (count - number) * days * DAY, mp3(path, 60)))
            server.routes[path] = Reply(body=show.items[-1].body, type="audio/mpeg")
        feed = show.feed().replace(f"<title>{name}</title>".encode(), f"<title>{title}</title>".encode(), 1)
        server.routes[f"/{name}.xml"] = Reply(body=feed, type="application/rss+xml", etag=f'"{name}"')


def play(home: Home, server: Server, document: str) -> list[tuple[str, str, str]]:
    """Each command of the document, what stands there, and what it says in a pipe, errors included."""
    serve(server)
    where = home.folder / "home"
    (where / "poca").symlink_to(REPOSITORY)         # the checkout
    env = {**home.env, "PATH": f"{POCA.parent}{os.pathsep}{home.env['PATH']}"}

    def said(command: str) -> str:
        real = command.replace(f":{PORT}", f":{server.port}")
        done = subprocess.run(
            ["bash", "-c", real], env=env, cwd=where, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )
        output = done.stdout.decode()
        assert "Traceback" not in output
        return output.replace(f":{server.port}", f":{PORT}").replace(str(where), "/home/jane")

    return [
        (match["command"], "\n".join(line[4:] for line in match["output"].splitlines()), said(match["command"]))
        for match in BLOCK.finditer(document)
    ]


def test_each_command_of_the_tutorial_says_what_stands_there(home: Home, server: Server) -> None:
    played = play(home, server, DOCUMENT.read_text(encoding="utf-8"))
    assert len(played) > 30
    for command, written, output in played:
        if command.split(";")[0].split(" ")[0] == "poca":         # which serves the quickest server first
            written, output = ("\n".join(sorted(normal(words).splitlines())) for words in (written, output))
        assert normal(written) == normal(output), command


def test_the_line_for_cron_is_one_that_cron_takes() -> None:
    """Five fields and a command without a %, which cron takes for a line end (crontab(5))."""
    lines = re.findall(r"^    ((?:\S+ ){5}\S*/poca .*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    for line in lines:
        *fields, command = line.split(" ", 5)
        assert all(re.fullmatch(r"\*|\d+", field) for field in fields)
        assert 0 <= int(fields[0]) <= 59
        assert "%" not in command


def main() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        outputs = iter([normal(output) for _, _, output in play(Home(Path(folder)), server, document)])

    def written(match: re.Match[str]) -> str:
        lines = [f"    {line}".rstrip() + "\n" for line in next(outputs).splitlines()]
        return f"    $ {match['command']}\n{''.join(lines)}"

    DOCUMENT.write_text(BLOCK.sub(written, document), encoding="utf-8")


if __name__ == "__main__":
    main()
