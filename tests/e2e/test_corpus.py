"""Real feeds of every kind of host, all in one config, run by the installed program: each of their episodes comes, once."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.server import Answer, Reply, Request, Server
from tests.world import Home, mp3

SHARED = Path(__file__).parents[3] / "shared"
FEEDS = sorted((SHARED / "corpus" / "feeds").glob("*"))

pytestmark = pytest.mark.skipif(not FEEDS, reason="the collection of real feeds is not beside the repository")

# Where the files on disk are not as many as the feed's items with an enclosure, and why.
OTHERWISE = {
    "hugo-code-and-ship-empty-enclosures.xml": (0, "the URLs of all its enclosures are empty"),
    "notpodcast-liberal-gr-iso8859-7.xml": (0, "its enclosure is a picture"),
    "notpodcast-oren-ru-windows1251.xml": (0, "its enclosures are pictures"),
    "own-que-tech-cuentas-es.xml": (0, "its enclosures are pictures"),
    "peertube-framasoft-torrent.xml": (0, "its enclosures are torrents"),
    "adorilabs-corvette-today.rss": (1, "all eight items are one episode: one guid, one URL, one title, differing in their dates only"),
    "blogdigger-mov-aggregate.xml": (14, "two items without a guid are one file at one URL, under one title"),
    "own-taverncast.rss": (130, "two items are one file: one guid, one URL, one date"),
    "userland-grateful-dead-rss092.xml": (14, "two items without guid, title and date are one file at one URL"),
}
CUT = {"adorilabs-corvette-today.rss"}      # ends in the middle of an item: told as an error; its whole items come

# What may name an enclosure or a picture: url="...", href="...", <url>...</url>.
ADDRESS = re.compile(rb"""(\b(?:url|href)\s*=\s*["']|<url>)\s*(?:https?:)?//""", re.IGNORECASE)
NEW_FEED = re.compile(rb"(<itunes:new-feed-url>)[^<]*")


def counts() -> dict[str, int]:
    """File name -> items with an enclosure, by the collection's list."""
    found = {}
    for line in (SHARED / "corpus" / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines():
        name, number = line.split("\t")[0], re.search(r"with_enc=(\d+)", line)
        if name.startswith("feeds/") and number:
            found[name.removeprefix("feeds/")] = int(number[1])
    return found


def localised(body: bytes, name: str, base: str) -> bytes:
    """The feed with each address in it sent to ``base``, host and path as they were."""
    def local(match: re.Match[bytes]) -> bytes:
        tag = body[body.rfind(b"<", 0, match.start() + 1) :][:20].lower()
        kind = "image" if b"image" in tag or tag.startswith(b"<url>") else "media"
        return match[1] + f"{base}/{kind}/{name}/".encode()

    return NEW_FEED.sub(rb"\1", ADDRESS.sub(local, body))


class Origin(Server):
    """Gives out the feeds, and for whatever media is asked for a small file of its own."""

    def _choose(self, request: Request) -> Answer:
        if request.target.startswith("/media/"):
            return Reply(body=mp3(request.target, 3), type="audio/mpeg")
        return super()._choose(request)

    def media(self) -> list[str]:
        """The requests for media, a target for each."""
        return [request.target for request in list(self.requests) if request.target.startswith("/media/")]


@pytest.fixture
def quick_home(tmp_path: Path) -> Iterator[Home]:
    """In memory where the machine has such a place: some 25,000 flushes to a disk would take minutes and show nothing."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="poca-", dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:
        yield Home(Path(folder))


def test_each_episode_of_each_real_feed_comes_once(quick_home: Home) -> None:
    home = quick_home
    with Origin() as origin:
        for path in FEEDS:
            body = localised(path.read_bytes(), path.name, origin.url(""))
            origin.routes[f"/feeds/{path.name}"] = Reply(body=body, type="application/rss+xml", etag=f'"{sha256(body).hexdigest()[:16]}"')
        home.write(*({"title": path.name, "url": origin.url(f"/feeds/{path.name}"), "cover": False} for path in FEEDS))

        first = home.run("--json", limit=300)
        on_disk = Counter(name.partition("/")[0] for name in home.files())
        expected = {name: OTHERWISE.get(name, (count, ""))[0] for name, count in counts().items()}
        assert {name: on_disk[name] for name in expected} == expected
        errors = {event["subscription"]: event["text"] for event in first.events if event["level"] == "error"}
        assert set(errors) == CUT and all("breaks off" in text for text in errors.values()), errors
        assert first.code == 1
        assert home.hidden() == []
        assert all(body.startswith(b"\xff\xfb") for body in home.files().values())

        before, files = len(origin.media()), set(home.files())
        second = home.run(limit=60)
        assert origin.media()[before:] == []
        assert set(home.files()) == files
        assert second.code == 1 and second.err.count("\n") == 2 and "breaks off" in second.err, second

        home.write(*({"title": path.name, "url": origin.url(f"/feeds/{path.name}"), "cover": False} for path in FEEDS if path.name not in CUT))
        third = home.run(limit=60)
        assert third.silent and third.code == 0, third
        assert origin.media()[before:] == []


def test_the_list_has_every_feed() -> None:
    assert set(counts()) == {path.name for path in FEEDS}
    assert set(OTHERWISE) | CUT <= set(counts())
