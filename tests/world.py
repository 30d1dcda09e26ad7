"""What the installed program is tried in: a home of its own, shows that grow on a server, and a look at what became of them."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import yaml
from jsonschema import Draft7Validator

from poca.model import Episode, Fate, History
from poca.state import State
from tests.server import Answer, Reply, Request, Server

POCA = Path(sys.executable).with_name("poca")
DAY = 86_400
FIRST = 1_700_000_000       # when the first episode of each show came out
EVENT = Draft7Validator(json.loads((files("poca") / "events.schema.json").read_text(encoding="utf-8")))
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d poca\[(\d+)\] (.+)")


def mp3(name: str, frames: int = 12) -> bytes:
    """MPEG 1 layer III frames of 417 bytes each, other ones for each name."""
    filling = bytes(byte & 0x7F for byte in sha256(name.encode()).digest()) * 13
    return (b"\xff\xfb\x90\x00" + filling[:413]) * frames


@dataclass
class Item:
    title: str
    path: str                   # of its enclosure on the server, "" for none
    guid: str
    published: int
    body: bytes = b""
    more: str = ""              # further elements


@dataclass
class Show:
    """A feed at /NAME.xml, and its episodes at /NAME/1.mp3 and so on; the newest comes first in it."""

    server: Server
    name: str
    frames: int = 12
    window: int = 0             # the most items that the feed lists, 0: all
    items: list[Item] = field(default_factory=list)
    extra: str = ""             # further elements of the channel
    media: Callable[[Item], Reply | Callable[[Request], Answer]] | None = None

    def __post_init__(self) -> None:
        self.server.routes[self.path] = lambda request: self.reply()

    @property
    def path(self) -> str:
        return f"/{self.name}.xml"

    @property
    def url(self) -> str:
        return self.server.url(self.path)

    def publish(self, count: int = 1) -> Show:
        for _ in range(count):
            number = len(self.items) + 1
            path = f"/{self.name}/{number}.mp3"
            item = Item(f"Episode {number}", path, f"{self.name}-{number}", FIRST + number * DAY, mp3(path, self.frames))
            self.server.routes[path] = self.media(item) if self.media else Reply(body=item.body, type="audio/mpeg", etag=f'"{number}"', ranges=True)
            self.items.append(item)
        return self

    def feed(self) -> bytes:
        def of(item: Item) -> str:
            url = escape(self.server.url(item.path), {'"': "&quot;"})
            enclosure = f'<enclosure url="{url}" length="{len(item.body)}" type="audio/mpeg"/>' if item.path else ""
            guid = f'<guid isPermaLink="false">{item.guid}</guid>' if item.guid else ""
            return f"<item><title>{escape(item.title)}</title>{guid}<pubDate>{formatdate(item.published)}</pubDate>{enclosure}{item.more}</item>"

        items = "\n".join(of(item) for item in reversed(self.items[-self.window :]))
        return f'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>{self.name}</title>{self.extra}{items}</channel></rss>'.encode()

    def reply(self) -> Reply:
        body = self.feed()
        return Reply(body=body, type="application/rss+xml", etag=f'"{sha256(body).hexdigest()[:12]}"')

    def subscription(self, title: str = "", **options: object) -> dict[str, object]:
        return {"title": title or self.name.title(), "url": self.url, **options}

    def asked(self) -> list[str]:
        """The episodes that were asked for, a path for each request."""
        return [request.path for request in list(self.server.requests) if request.path.startswith(f"/{self.name}/")]


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def events(self) -> list[dict[str, Any]]:
        """Of --json: each line of stdout is one, as the schema has it."""
        told = [json.loads(line) for line in self.out.splitlines()]
        for event in told:
            EVENT.validate(event)
        return told

    @property
    def silent(self) -> bool:
        return not self.out and not self.err


class Home:
    """A folder with config, state and podcasts, in which poca is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config, self.base, self.state = folder / "config.yaml", folder / "podcasts", folder / "state"
        (folder / "home").mkdir(parents=True, exist_ok=True)
        self.env = {
            "PATH": os.environ.get("PATH", ""), "HOME": str(folder / "home"), "LANG": "C.UTF-8", "TZ": "UTC",
            **{name: value for name, value in os.environ.items() if name.startswith(("COVERAGE", "COV_CORE"))},
        }

    @property
    def log_path(self) -> Path:
        return self.state / "poca.log"

    def write(self, *subscriptions: Mapping[str, object], settings: Mapping[str, object] | None = None, **sections: object) -> None:
        """The config: base_dir and state_dir are this home's."""
        given = {"base_dir": str(self.base), "state_dir": str(self.state), "min_free_mb": 0, **(settings or {})}
        text = yaml.safe_dump({"settings": given, **sections, "subscriptions": list(subscriptions)}, sort_keys=False, allow_unicode=True)
        self.config.write_text(text, encoding="utf-8")

    # -------------------------------------------------------------------------------------------------------- running

    def start(self, *arguments: str, config: bool = True, **env: str) -> subprocess.Popen[str]:
        command = [str(POCA), *(["--config", str(self.config)] if config else []), *arguments]
        return subprocess.Popen(
            command, env={**self.env, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            cwd=self.folder,
        )

    def run(self, *arguments: str, config: bool = True, limit: float = 120, **env: str) -> Done:
        return ended(self.start(*arguments, config=config, **env), limit)

    # -------------------------------------------------------------------------------------------------------- looking

    def files(self) -> dict[str, bytes]:
        """What a listener sees in base_dir, by path."""
        paths = (path for path in self.base.rglob("*") if path.is_file() and not path.name.startswith("."))
        return {path.relative_to(self.base).as_posix(): path.read_bytes() for path in paths}

    def hidden(self) -> list[str]:
        """Hidden files in base_dir but for its marker: partial downloads, most likely."""
        paths = (path for path in self.base.rglob(".*") if path.is_file() and path.name != ".poca-base")
        return sorted(path.relative_to(self.base).as_posix() for path in paths)

    def tree(self) -> dict[str, tuple[object, ...]]:
        """All that is in the home, and how: equal when nothing has changed."""
        def look(path: Path) -> tuple[object, ...]:
            status = path.lstat()
            body = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
            return (status.st_mode, status.st_ino, status.st_mtime_ns, body)

        return {str(path.relative_to(self.folder)): look(path) for path in self.folder.rglob("*")}

    def histories(self) -> dict[str, History]:
        state = State.open(self.state, int(time.time()), readonly=True)
        try:
            return state.histories()
        finally:
            state.close()

    def episodes(self, title: str) -> dict[str, Episode]:
        """What the history knows of a subscription, by the episodes' titles."""
        return {episode.title: episode for episode in self.histories()[title].episodes}

    def fates(self, title: str) -> dict[str, Fate]:
        return {name: episode.fate for name, episode in self.episodes(title).items()}

    def log(self) -> list[str]:
        """Lines of the log, without instant and process."""
        lines = self.log_path.read_text(encoding="utf-8").splitlines() if self.log_path.exists() else []
        found = [LOG_LINE.fullmatch(line) for line in lines]
        assert all(found), lines
        return [match[2] for match in found if match]


def ended(process: subprocess.Popen[str], limit: float = 120) -> Done:
    """Waits for a run to end by itself, and ends one that does not."""
    began = time.monotonic()
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"poca hung for {limit} s") from None
    assert "Traceback" not in out + err, out + err
    return Done(process.returncode, out, err, time.monotonic() - began)


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Waits for a condition to hold."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.005)


def stopped(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> Done:
    """Sends a signal, and waits for the end; ``seconds`` counts from the signal."""
    process.send_signal(number)
    return ended(process, 20)


def names(shows: Sequence[Show], newest: int) -> list[str]:
    """The paths of the newest episodes of each show, as poca names them without a template."""
    return sorted(f"{show.name.title()}/{item.path.rpartition('/')[2]}" for show in shows for item in show.items[-newest:])
