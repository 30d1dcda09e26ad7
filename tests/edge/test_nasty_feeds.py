"""Feeds made to hurt, each read by a process of its own: what it says, how long it takes, how much memory it needs."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

MB = 1_000_000
READER = """
import json, resource, sys, time
from pathlib import Path
from poca.errors import FeedError
from poca.feed import pack, parse_feed, unpack
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
body = Path(sys.argv[1]).read_bytes()
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
error, titles, cut = "", [], ""
try:
    doc = parse_feed(body, sys.argv[2] or None, "https://example.org/feed.xml")
    assert unpack(pack(doc)) == doc
    titles, cut = [entry.title for entry in doc.entries], doc.cut
except FeedError as told:
    error = str(told)
took, after = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"error": error, "titles": titles, "cut": cut, "seconds": took, "memory": (after - before) * 1024}))
"""


@dataclass(frozen=True)
class Read:
    error: str
    titles: list[str]
    cut: str
    seconds: float          # of CPU
    memory: int             # bytes beyond the feed itself


def read(folder: Path, body: bytes, content_type: str = "") -> Read:
    path = folder / "feed.xml"
    path.write_bytes(body)
    done = subprocess.run([sys.executable, "-c", READER, str(path), content_type], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return Read(**json.loads(done.stdout))


def item(title: str | bytes = b"T", more: bytes = b"", number: int = 1) -> bytes:
    text = title.encode() if isinstance(title, str) else title
    return (b"<item><title>%b</title><guid>g%d</guid>%b<enclosure url='https://example.org/%d.mp3' type='audio/mpeg' length='9'/></item>"
            % (text, number, more, number))


def rss(*items: bytes, head: bytes = b"", prolog: bytes = b"") -> bytes:
    return b"%b<rss version='2.0'><channel><title>Show</title>%b%b</channel></rss>" % (prolog, head, b"".join(items))


ENTITIES = b"<!DOCTYPE rss [%b]>"
LAUGHS = b"<!ENTITY a0 'ha'>" + b"".join(b"<!ENTITY a%d '%b'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
MILLION = 1_000_000
NO_ADDRESSES = (b"http://[::1/a.mp3", b"javascript:x", b"http:///a.mp3", b"ftp://x/a.mp3", b"http:///" + b"a" * 100_000)
DIGITS = b"9" * MILLION

# What is refused: the feed, and a word of the sentence that says why.
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a billion laughs": (lambda: rss(item(b"&a11;"), prolog=ENTITIES % LAUGHS), "entit"),
    "one entity of 100 KB used 10,000 times": (
        lambda: rss(item(b"&a;" * 10_000), prolog=ENTITIES % (b"<!ENTITY a '%b'>" % (b"x" * 100_000))), "entit"),
    "entities by parameters": (lambda: rss(item(b"&a;"), prolog=ENTITIES % b"<!ENTITY % p '<!ENTITY a \"&#60;\">'>%p;"), "entit"),
    "an entity from a file": (lambda: rss(item(b"&a;"), prolog=ENTITIES % b"<!ENTITY a SYSTEM 'file:///etc/passwd'>"), "entit"),
    "an entity that ends the document too early": (lambda: b"<!DOCTYPE rss [<!ENTITY a '" + b"x" * MILLION, ""),
    "a million levels": (lambda: rss(item(more=b"<a>" * MILLION + b"</a>" * MILLION)), "deep"),
    "a million levels that never end": (lambda: b"<rss><channel>" + b"<item>" * MILLION, "deep"),
    "a million levels beside a stray &": (lambda: rss(item(b"a & b", b"<a>" * MILLION + b"</a>" * MILLION)), "deep"),
    "100,000 attributes that are no XML": (lambda: rss(b"<item " + b" ".join(b"a%d=1" % n for n in range(100_000)) + b"/>"), "attributes"),
    "a million items": (lambda: rss(b"<item/>" * MILLION, item()), "elements"),
    "nothing but <": (lambda: b"<" * 5 * MILLION, ""),
    "a feed of &": (lambda: rss(item(b"&" * 10 * MILLION)), "too large"),
    "nothing but zeros": (lambda: bytes(10 * MILLION), ""),
    "nothing but blanks": (lambda: b" " * 50 * MILLION, "empty"),
    "an open comment": (lambda: b"<!--" * MILLION, ""),
    "comments before a page": (lambda: b"<!-- x -->" * MILLION + b"<html>", ""),
    "gzip in gzip": (lambda: gzip.compress(rss(item())), "compressed"),
    "UTF-7": (lambda: b"<?xml version='1.0' encoding='utf-7'?>" + rss(item()).decode().encode("utf-7").replace(b"<", b"+ADw-"), ""),
    "1,000 declarations, none of which ends": (lambda: b'<?xml version="1.0" encoding="UTF-8"' * 1_000, ""),
    "zip": (lambda: b"PK\x03\x04" + bytes(MILLION), "zip"),
}

# What is read: the feed, and the titles of its episodes.
READ: dict[str, tuple[Callable[[], bytes], list[str]]] = {
    "100,000 attributes": (lambda: rss(item(more=b"<x " + b" ".join(b"a%d='1'" % n for n in range(100_000)) + b"/>")), ["T"]),
    "50 MB of notes": (lambda: rss(item(more=b"<description>%b</description>" % (b"notes and notes. " * 3 * MILLION))), ["T"]),
    "50 MB of title": (lambda: rss(item(b"title and title. " * 3 * MILLION)), []),
    "5 MB of guid": (lambda: rss(item(more=b"<guid>" + b"g" * 5 * MILLION + b"</guid>")), ["T"]),
    "10 MB of title of what is no episode": (lambda: rss(b"<item><title>" + b"&lt;b&gt; " * MILLION + b"</title></item>", item()), ["T"]),
    "a title of 500,000 &": (lambda: rss(item(b"&amp;" * 500_000)), []),
    "a title of 500,000 tags": (lambda: rss(item(b"&lt;a " * 500_000)), []),
    "entities of entities": (lambda: rss(item(b"&amp;" + b"amp;" * 100 + b"lt;")), []),
    "control characters": (lambda: rss(item(b"a\0b\x1b[31mc\x07\x9bd")), []),
    "control characters as references": (lambda: rss(item(b"a&#0;b&#27;[31mc&#x9b;d")), []),
    "lone surrogates": (lambda: rss(item(b"a\xed\xa0\x80b&#xD800;c")), []),
    "line separators": (lambda: rss(item("one\u2028two\u2029three\x85four")), ["one two three…four"]),
    "bidi controls": (lambda: rss(item("a\u202e3pm.exe\u2066b\u200f")), ["a3pm.exeb"]),
    "20,000 links in one item": (lambda: rss(item(more=b"<enclosure url='ftp://x/'/>" * 20_000)), ["T"]),
    "namespaces": (lambda: rss(item(more=b"".join(b"<a%d:x xmlns:a%d='u%d'/>" % (n, n, n) for n in range(50_000)))), ["T"]),
    "10,000 declarations in one line": (lambda: b'<?xml version="1.0" encoding="UTF-8"? ' * 10_000 + rss(item(b"T</b>")), ["T"]),
    "blank lines around the document type": (lambda: b"\n" * 500_000 + b"<!DOCTYPE rss>" + b"\n" * 500_000 + rss(item()), ["T"]),
    "CDATA by the million": (lambda: rss(item(b"<![CDATA[]]>" * 2 * MILLION + b"T")), ["T"]),
    "an open CDATA": (lambda: rss(item(), item(b"<![CDATA[" * 500_000, number=2)), ["T"]),
    "UTF-16": (lambda: rss(item("Ü 日本 🎙")).decode().encode("utf-16"), ["Ü 日本 🎙"]),
    "UTF-32": (lambda: rss(item("Ü 日本 🎙")).decode().encode("utf-32"), ["Ü 日本 🎙"]),
    "UTF-16 that says UTF-8": (lambda: ("<?xml version='1.0' encoding='utf-8'?>" + rss(item("Ü")).decode()).encode("utf-16"), ["Ü"]),
    "UTF-8 with a mark that says UTF-16": (lambda: b"\xef\xbb\xbf<?xml version='1.0' encoding='utf-16'?>" + rss(item("Ü")), ["Ü"]),
    "addresses that are none": (lambda: rss(*(b"<item><enclosure url='%b' type='audio/mpeg'/></item>" % url for url in NO_ADDRESSES), item()), ["T"]),
    "numbers that are none": (lambda: rss(item(more=b"<enclosure url='https://example.org/a.mp3' length='%b'/><pubDate>%b</pubDate><x>%b</x>"
                                               % (DIGITS, DIGITS, DIGITS))), ["T"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_feed_is_refused_in_time(name: str, tmp_path: Path) -> None:
    make, word = REFUSED[name]
    found = read(tmp_path, body := make())
    assert found.error and word in found.error and found.error.isprintable() and len(found.error) < 300, found.error
    within_bounds(found, len(body))


@pytest.mark.parametrize("name", READ)
def test_what_is_a_feed_all_the_same_is_read_in_time(name: str, tmp_path: Path) -> None:
    make, titles = READ[name]
    found = read(tmp_path, body := make())
    assert not found.error
    assert found.titles == titles or not titles, [title[:100] for title in found.titles]
    assert all(title.isprintable() for title in found.titles)
    within_bounds(found, len(body))


def within_bounds(found: Read, size: int) -> None:
    # Generous, since the machine may be busy with other things; what these feeds are made for takes minutes and gigabytes.
    assert found.seconds < 2 + size / (5 * MB), f"{found.seconds:.1f} s"
    assert found.memory < 100 * MB + 8 * size, f"{found.memory / MB:.0f} MB"


@pytest.mark.parametrize("label", ["utf-7", "zip", "idna", "unicode_escape", "rot13", "utf-16", "x" * 1000, "ü", "punycode"])
def test_a_label_that_lies_decodes_nothing(label: str, tmp_path: Path) -> None:
    """None of Python's own codecs, which are no encodings of text, is led to a feed by its label."""
    found = read(tmp_path, rss(item("a\\u0041+ADw-b")), f"text/xml; charset={label}")
    assert found.titles == ["a\\u0041+ADw-b"]
