"""The transcripts in docs/subscribe.rst are what the installed programs say.

    python -m tests.e2e.test_subscribe_transcripts

writes what they say now into the document; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.server import Reply, Server
from tests.terminal import at_terminal
from tests.world import DAY, POCA, Home, Item, Show, mp3

DOCUMENT = Path(__file__).parents[2] / "docs" / "subscribe.rst"
BLOCK = re.compile(r"^    \$ (?P<command>.*)\n(?P<output>(?:    .*\n|\n(?=    ))*)", re.MULTILINE)
PORT = "50000"

# What is typed at a terminal, by the command.
ANSWERS = {"add": [("Title [The Example Hour]:", ""), ("[Y/n]", "y")], "delete": [("[y/N]", "y")]}

NEWEST = date(2026, 11, 30)         # of the daily show, as the document has it
# What differs from one run to the next.
VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), lambda match: "2026-11-30 14:05"),
    (re.compile(r"\b[12]\d{9}\b"), lambda match: "1790000000"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT"), lambda match: "Mon, 30 Nov 2026 14:05:00 GMT"),
]


def normal(words: str) -> str:
    for pattern, instead in VARIES:
        words = pattern.sub(instead, words)
    return "\n".join(line.rstrip() for line in words.splitlines()).rstrip()


def serve(server: Server) -> timedelta:
    """Two shows, one every day and one that was every week, and a page that names the second. How far the document's
    dates are from those of now."""
    newest = int(time.time()) - 3600
    for name, title, count, step, last in (("hour", "The Example Hour", 35, DAY, newest), ("digest", "Digest", 4, 7 * DAY, newest - 40 * DAY)):
        show = Show(server, name)
        show.extra = (
            '<itunes:author xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">Jane Doe</itunes:author>'
            if name == "hour" else "<item><title>An announcement</title></item>")
        for number in range(1, count + 1):
            path = f"/{name}/{name}-{number}.mp3"
            more = '<itunes:duration xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">45:00</itunes:duration>'
            show.items.append(Item(f"Episode {number}", path, f"{name}-{number}", last - (count - number) * step, mp3(path, 60), more))
            server.routes[path] = Reply(body=show.items[-1].body, type="audio/mpeg")
        feed = show.feed().replace(f"<title>{name}</title>".encode(), f"<title>{title}</title>".encode(), 1)
        server.routes[f"/{name}.xml"] = Reply(body=feed, type="application/rss+xml", etag='"1"')
    page = b'<html><link rel="alternate" type="application/rss+xml" href="/digest.xml"></html>'
    server.routes["/"] = Reply(body=page, type="text/html")
    return NEWEST - datetime.fromtimestamp(newest, UTC).date()


def said(home: Home, command: str, port: str) -> str:
    """What a command of the document prints, in a pipe if it has one, else at a terminal of 80 columns."""
    where = home.folder / "home"
    real = command.replace(f":{PORT}", f":{port}")
    env = {**home.env, "PATH": f"{POCA.parent}{os.pathsep}{home.env['PATH']}"}
    if "|" in command:
        done = subprocess.run(["bash", "-c", real], env=env, cwd=where, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
    else:
        answers = ANSWERS.get(command.split()[1], []) if command.startswith("poca-subscribe") else []
        _, output = at_terminal(["bash", "-c", real], env, answers=answers, cwd=str(where))
    assert "Traceback" not in output
    return output.replace(f":{port}", f":{PORT}").replace(str(where), "/home/jane")


def play(home: Home, server: Server, document: str) -> list[tuple[str, str, str]]:
    """Each command of the document, what stands there, and what it says."""
    shift = serve(server)

    def shifted(words: str) -> str:
        return re.sub(r"\b\d{4}-\d\d-\d\d\b(?! \d\d:)", lambda day: str(date.fromisoformat(day[0]) + shift), words)

    port = str(server.port)
    assert len(port) == len(PORT), "widths of columns would differ"
    return [
        (match["command"], "\n".join(line[4:] for line in match["output"].splitlines()), shifted(said(home, match["command"], port)))
        for match in BLOCK.finditer(document)
    ]


def test_the_transcripts_are_true(home: Home, server: Server) -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    played = play(home, server, document)
    assert len(played) > 30
    for command, written, output in played:
        assert normal(written) == normal(output), command
    commands = {command.split()[1] for command, _, _ in played if command.startswith("poca-subscribe")}
    assert commands == {"add", "list", "stats", "delete", "enable", "disable", "why", "mark", "retry", "tags", "import", "export", "check"}


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
