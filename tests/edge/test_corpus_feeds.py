"""Real feeds, from hosts of every kind: read without a fault, and with as many episodes as they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poca.errors import FeedError
from poca.feed import pack, parse_feed, unpack
from poca.model import FeedDoc

SHARED = Path(__file__).parents[3] / "shared"
FEEDS = sorted((SHARED / "corpus" / "feeds").glob("*"))
CASES = sorted(path for path in (SHARED / "cases").glob("*/*") if path.suffix == ".xml")
URL = "https://example.org/shows/feed.xml"

pytestmark = pytest.mark.skipif(not FEEDS, reason="the collection of real feeds is not beside the repository")

# Feeds whose episodes are not as many as their items with an enclosure.
FEWER = {
    "hugo-code-and-ship-empty-enclosures.xml": (0, "the URLs of all its enclosures are empty"),
    "notpodcast-liberal-gr-iso8859-7.xml": (0, "its enclosure is a picture"),
    "notpodcast-oren-ru-windows1251.xml": (0, "its enclosures are pictures"),
    "own-que-tech-cuentas-es.xml": (0, "its enclosures are pictures, by type and extension"),
    "peertube-framasoft-torrent.xml": (0, "its enclosures are torrents"),
}


def expected() -> dict[str, int]:
    """File name -> entries with an enclosure, by the collection's list."""
    counts = {}
    for line in (SHARED / "corpus" / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines():
        name, found = line.split("\t")[0], re.search(r"with_enc=(\d+)", line)
        if name.startswith("feeds/") and found:
            counts[name.removeprefix("feeds/")] = int(found[1])
    return counts


def with_document_type(body: bytes) -> bytes:
    """The same feed for feedparser: a document type makes it none for the quick reader."""
    body = body.lstrip()
    at = body.index(b"?>") + 2 if body.startswith(b"<?xml") else 0
    return body[:at] + b"\n<!DOCTYPE rss>\n" + body[at:]


@pytest.mark.parametrize("path", FEEDS, ids=lambda path: path.name)
def test_every_episode_of_a_real_feed_is_found(path: Path) -> None:
    doc = parse_feed(path.read_bytes(), None, URL)
    count, _why = FEWER.get(path.name, (expected()[path.name], ""))
    assert len(doc.entries) == count
    assert all(entry.title or path.name == "userland-grateful-dead-rss092.xml" for entry in doc.entries)
    assert unpack(pack(doc)) == doc


def test_the_list_has_every_feed() -> None:
    assert set(expected()) == {path.name for path in FEEDS}
    assert set(FEWER) <= set(expected())


@pytest.mark.parametrize("path", FEEDS, ids=lambda path: path.name)
def test_only_the_feed_that_was_cut_off_is_told_as_cut_off(path: Path) -> None:
    assert bool(parse_feed(path.read_bytes(), None, URL).cut) == (path.name == "adorilabs-corvette-today.rss")


@pytest.mark.parametrize("path", FEEDS + CASES, ids=lambda path: path.name if path in FEEDS else path.parent.name)
def test_both_readers_agree_on_a_real_feed(path: Path) -> None:
    """Entry by entry and field by field; what differs is only whether the document was repaired first."""
    def without_remarks(body: bytes) -> tuple[object, ...]:
        doc: FeedDoc = parse_feed(body, None, URL)
        return (doc.title, doc.author, doc.image, doc.new_feed_url, doc.entries, doc.passed_over)

    body = path.read_bytes()
    assert without_remarks(body) == without_remarks(with_document_type(body))


@pytest.mark.parametrize("path", FEEDS, ids=lambda path: path.name)
def test_half_a_real_feed_is_cut_off_and_has_only_whole_entries(path: Path) -> None:
    body = path.read_bytes()
    whole = parse_feed(body, None, URL)
    try:
        half = parse_feed(body[:len(body) // 2], None, URL)
    except FeedError:
        return
    assert half.cut
    assert set(half.entries) <= set(whole.entries)
