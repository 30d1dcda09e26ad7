"""The small parts of poca-subscribe: links of pages, addresses that are one, titles that are free, numbers of feeds."""

from __future__ import annotations

from datetime import UTC

import pytest

from poca.errors import FeedError
from poca.model import FeedDoc
from poca.subscribe import stats
from poca.subscribe.edits import Titles
from poca.subscribe.feeds import address, feed_links, full_address
from tests import builders
from tests.builders import DAY, NOW

HERE = "https://example.org/show/index.html"


@pytest.mark.parametrize(("page", "links"), [
    ('<link rel="alternate" type="application/rss+xml" href="/feed">', ["https://example.org/feed"]),
    ("<LINK HREF=feed REL='home ALTERNATE' TYPE='Application/Atom+XML;x=y'>", ["https://example.org/show/feed"]),
    ('<base href="//cdn.example.org/x/"><link rel=alternate type=application/rss+xml href=f>', ["https://cdn.example.org/x/f"]),
    ('<link rel="alternate" type="application/rss+xml" href="/a?b=1&amp;c=2">', ["https://example.org/a?b=1&c=2"]),
    ('<link rel="alternate" type="application/rss+xml" href="/a"/><link rel="alternate" type="application/rss+xml" href="/a"/>', ["https://example.org/a"]),
    ('<link rel="alternate" hreflang="de" type="text/html" href="/de"><link rel="stylesheet" type="application/rss+xml" href="/x">', []),
    ('<link rel="alternate" type="application/rss+xml" href="javascript:alert(1)"><link rel="alternate" type="application/rss+xml">', []),
    ('<link rel="alternate" type="application/rss+xml" href="http://[bad">', []),
    ('<!-- <link rel="alternate" type="application/rss+xml" href="/no"> --><![if x]><link rel=alternate type=application/rss+xml href=/a>',
     ["https://example.org/a"]),
    ('<link rel="alternate" type="application/rss+xml" href="file:///etc/passwd">', []),
])
def test_a_page_names_its_feeds(page: str, links: list[str]) -> None:
    assert feed_links(page.encode(), "text/html", HERE) == links


@pytest.mark.parametrize("junk", [b"<![", b"<!x[", b"<![foo[", b"\xff\xfe<", b"<link rel" * 1000, b"</" * 1000, b"<a " + b"b=" * 1000])
@pytest.mark.parametrize("kind", [None, "text/html; charset=nonsense", "text/html; charset=utf-16"])
def test_no_page_breaks_the_reader(junk: bytes, kind: str | None) -> None:
    assert feed_links(junk, kind, HERE) == []


@pytest.mark.parametrize(("typed", "meant"), [
    (" https://example.org/feed ", "https://example.org/feed"),
    ("example.org/feed", "https://example.org/feed"),
    ("example.org", "https://example.org"),
    ("feed://example.org/feed", "http://example.org/feed"),
    ("feed:https://example.org/feed", "https://example.org/feed"),
    ("itpc://example.org/feed", "http://example.org/feed"),
])
def test_an_address_is_taken_as_people_write_it(typed: str, meant: str) -> None:
    assert full_address(typed) == meant


@pytest.mark.parametrize("typed", ["hello", "ftp://example.org/", "file:///etc/passwd", "http://", "http://a:b", "/feed.xml", "a\x00b"])
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(FeedError):
        full_address(typed)


@pytest.mark.parametrize(("one", "other", "same"), [
    ("http://example.org/a", "https://EXAMPLE.org:443/a#top", True),
    ("http://example.org", "http://example.org:80/", True),
    ("http://example.org/a", "http://example.org/A", False),
    ("http://example.org/a?x=1", "http://example.org/a?x=2", False),
    ("http://example.org:8080/a", "http://example.org/a", False),
    ("http://me:1@example.org/a", "http://you:2@example.org/a", False),
])
def test_addresses_that_are_one(one: str, other: str, same: bool) -> None:
    assert (address(one) == address(other)) is same


def test_titles_are_taken_by_their_folders() -> None:
    titles = Titles(["Früh", "A?"], "ntfs")
    assert titles.holder("FRU\u0308H") == "Früh"
    assert titles.unique("A:") == "A: (2)"
    assert titles.unique("A (2)") == "A (3)"
    assert titles.unique("B") == "B"
    assert titles.unique("b") == "b (2)"


def test_numbers_of_a_feed() -> None:
    entries = [
        builders.entry(1, published=NOW - 100 * DAY, length=100, duration=60, author="Joe"),
        builders.entry(2, published=NOW - DAY, length=None, duration=None),                 # Monday, 2023-11-13
        builders.entry(3, published=NOW - 8 * DAY, length=300, duration=120),               # Monday
        builders.entry(4, published=NOW - 36 * DAY),
        builders.entry(5, published=None, length=800),
        builders.entry(6, published=NOW + 30 * DAY, length=None),
    ]
    numbers = stats.stats(FeedDoc(entries=tuple(entries)), NOW, UTC)
    assert (numbers.author, numbers.episodes, numbers.size, numbers.duration) == ("Joe", 6, 550, 90)
    assert (numbers.newest, numbers.oldest) == (entries[1], entries[0])
    assert numbers.weekdays == (2, 0, 0, 0, 0, 0, 0)


def test_numbers_of_a_feed_without_dates_or_without_anything() -> None:
    undated = tuple(builders.entry(n, published=None, length=None) for n in (3, 2, 1))
    numbers = stats.stats(FeedDoc(entries=undated), NOW, UTC)
    assert (numbers.newest, numbers.oldest, numbers.size) == (undated[0], undated[2], None)
    assert stats.stats(FeedDoc(), NOW, UTC).newest is None


def test_the_chart_fits_its_room_and_shows_every_day() -> None:
    entries = tuple(builders.entry(n, published=NOW - n * 3600) for n in range(24 * 30))
    rows = stats.rows(stats.stats(FeedDoc(entries=entries), NOW, UTC), UTC, "#", 10)
    bars = [words for _, words in rows if "#" in words]
    assert [bar.split()[0] for bar in bars] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert max(bar.count("#") for bar in bars) == 10
