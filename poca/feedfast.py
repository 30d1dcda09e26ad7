"""The quick reader: one pass of expat over a feed, with eyes only for the few elements that poca uses.

It reads RSS 2.0 (and its forebears from 0.91 on) and Atom (RFC 4287), encoded in UTF-8. Most bytes of a feed are show
notes: as CDATA they are left out beforehand, else they pass through expat without a call into Python. Names are compared
as feedparser does: lower case, and by the prefix that a namespace usually has, whatever the feed calls it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urljoin
from xml.parsers import expat

from poca.feedraw import RawEntry, RawFeed, RawLink

DEEPEST = 300               # levels of elements; a page of XHTML in a feed has some 20
_MOST_ENTRIES = 200_000     # of one feed: three an hour for seven years; what has more was made to fill the memory
_KNOWN_NAMES = 1_000        # names remembered in one feed, so that a hostile one costs no memory

_BETWEEN = "\x1f"           # between namespace, name and prefix; no XML document may hold it
_BASE = f"http://www.w3.org/XML/1998/namespace{_BETWEEN}base{_BETWEEN}xml"

# "": the elements of RSS and Atom themselves. All in lower case, since feeds are careless about it.
_PREFIXES = {
    "http://www.w3.org/2005/atom": "",
    "http://purl.org/atom/ns#": "",
    "http://backend.userland.com/rss": "",
    "http://backend.userland.com/rss2": "",
    "http://blogs.law.harvard.edu/tech/rss": "",
    "http://purl.org/rss/1.0/modules/rss091#": "",
    "http://www.itunes.com/dtds/podcast-1.0.dtd": "itunes",
    "http://search.yahoo.com/mrss": "media",
    "http://search.yahoo.com/mrss/": "media",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/1999/xhtml": "xhtml",
}

# What the elements of each place are, by name: the key of a text, or with a "<" a place or link of its own.
_ROOT = {"rss": "<root", "feed": "<feed"}
_IN_RSS = {"channel": "<feed", "item": "<entry", "entry": "<entry"}
_IN_FEED = {
    "item": "<entry", "entry": "<entry", "image": "<image", "itunes:image": "<picture", "itunes:link": "<picture", "logo": "logo",
    "title": "title", "dc:title": "title", "itunes:new-feed-url": "new_feed_url",
    "itunes:author": "itunes_author", "author": "author", "dc:creator": "author", "dc:author": "author", "managingeditor": "author",
}
_IN_ENTRY = {
    "enclosure": "<enclosure", "link": "<link", "media:content": "<media", "media:group": "<group",
    "guid": "guid", "id": "guid", "title": "title", "dc:title": "title",
    "pubdate": "published", "published": "published", "issued": "published", "dcterms:issued": "published",
    "updated": "updated", "modified": "updated", "lastbuilddate": "updated", "dc:date": "updated", "dcterms:modified": "updated",
    "created": "created", "dcterms:created": "created",
    "itunes:duration": "duration", "itunes:season": "season", "itunes:episode": "episode", "itunes:episodetype": "episode_type",
    "itunes:author": "itunes_author", "author": "author", "dc:creator": "author", "dc:author": "author", "managingeditor": "author",
}
_PLACES = {
    "<root": _IN_RSS, "<feed": _IN_FEED, "<entry": _IN_ENTRY,
    "<image": {"url": "image"},
    "<group": {"media:content": "<media"},
}

_PERSON_NAMES = frozenset({"name", "itunes:name"})

_TRUNCATIONS = frozenset({"no element found", "unclosed token", "partial character", "unclosed CDATA section"})


_MANGLED = re.compile("[\x80-\x9f]|[\xc2-\xf4][\xa0-\xbf]")
_WINDOWS = {byte: bytes([byte]).decode("windows-1252") for byte in range(0x80, 0xA0) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}


class Fault(NamedTuple):
    """Where and why expat could not go on."""

    message: str
    line: int
    column: int                 # from 1
    at: int                     # byte

    @property
    def truncation(self) -> bool:
        return self.message in _TRUNCATIONS


@dataclass(slots=True)
class Reading:
    """``raw``: all whole entries up to the fault. ``root``: the root element's name, "" where none was reached.
    ``closed``: its end was reached. ``plain``: RSS or Atom without a document type, which this reader can read."""

    raw: RawFeed = field(default_factory=RawFeed)
    root: str = ""
    closed: bool = False
    plain: bool = False
    fault: Fault | None = None


class _Names(dict[str, str]):
    """What elements mean at one place, by their names as expat gives them; "" for nothing."""

    __slots__ = ("roles",)

    def __init__(self, roles: dict[str, str]) -> None:
        self.roles = roles

    def __missing__(self, name: str) -> str:
        role = self.roles.get(canonical(name), "")
        if len(self) < _KNOWN_NAMES:
            self[name] = role
        return role


class _Root(_Names):
    """The place around the root element, which says what kind of document this is."""

    __slots__ = ("reading",)

    def __init__(self, reading: Reading) -> None:
        super().__init__(_ROOT)
        self.reading = reading

    def __missing__(self, name: str) -> str:
        self.reading.root = canonical(name)
        self.reading.plain = self.reading.root in _ROOT
        if not self.reading.plain:
            raise _Stop
        return _ROOT[self.reading.root]


class _Stop(Exception):
    """Nothing more to learn from this document here."""


class _NotSo(Exception):
    """What was taken for notes was none."""


def canonical(name: str) -> str:
    """"itunes:duration" for a name that expat gave with its namespace and prefix."""
    parts = name.lower().split(_BETWEEN)
    if len(parts) == 1:
        return parts[0]
    prefix = _PREFIXES.get(parts[0].strip())
    if prefix is None:
        prefix = parts[2] if len(parts) == 3 else ""
    return f"{prefix}:{parts[1]}" if prefix else parts[1]


def read(data: bytes) -> Reading:
    """Reads ``data``, XML in UTF-8 whatever its declaration says. Never raises for what is in it: see ``fault``."""
    lean = _without_notes(data)
    if lean is not data:
        with suppress(_NotSo):
            reading = _read(lean, lean=True)
            if not reading.fault:
                return reading
    return _read(data)      # and what is amiss, and where, is told of the feed as it came


_LONG = 256                 # bytes; to leave out what is shorter takes longer than to read it
_NOTES = tuple(f"<{name}><![CDATA[".encode() for name in ("description", "content:encoded", "itunes:summary"))


def _without_notes(data: bytes) -> bytes:
    """``data`` without what is in its long CDATA sections of show notes, of which only the two ends are left."""
    pieces, done, at = [], 0, 0
    while (at := data.find(b"<![CDATA[", at)) >= 0:
        begin = at + len(b"<![CDATA[")
        at = _section_end(data, begin)
        if at < 0:
            return data
        if at - begin > _LONG and data.endswith(_NOTES, 0, begin):
            pieces.append(data[done:begin])
            done = at
    return b"".join([*pieces, data[done:]]) if pieces else data


def _section_end(data: bytes, at: int) -> int:
    """Where the next ``]]>`` is, -1 where there is none. One byte is found in a tenth of the time of three."""
    for _ in range(8):
        at = data.find(b"]", at)
        if at < 0 or data.startswith(b"]]>", at):
            return at
        at += 1
    return data.find(b"]]>", at)


def _read(data: bytes, *, lean: bool = False) -> Reading:
    """``lean``: without its notes. Raises _NotSo where a section of them begins in a comment or the like, and may have
    ended after it."""
    reading = Reading()
    parser = expat.ParserCreate("utf-8", _BETWEEN)
    parser.namespace_prefixes = True
    parser.buffer_text = True
    parser.specified_attributes = True
    parser.StartDoctypeDeclHandler = _stop
    parser.StartElementHandler, parser.EndElementHandler = _handlers(reading, parser)
    if lean:
        parser.CommentHandler, parser.ProcessingInstructionHandler = _no_section, lambda target, text: _no_section(text)
    try:
        parser.Parse(data, True)
    except _Stop:
        reading.plain = False
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code) or "not well-formed"
        reading.fault = Fault(message, error.lineno, error.offset + 1, max(parser.ErrorByteIndex, 0))
    finally:
        # Parser and handlers hold each other: else the feed would stay in memory until they are collected.
        parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None
    return reading


def _no_section(text: str) -> None:
    if "<![CDATA[" in text:
        raise _NotSo


def _stop(*_: object) -> None:
    raise _Stop


def _handlers(reading: Reading, parser: expat.XMLParserType) -> tuple[Callable[[str, dict[str, str]], None], Callable[[str], None]]:
    """The two functions that expat calls at each tag: closures, since their calls are most of what a feed costs.

    ``level`` is 0 for the children of the innermost open place, and only they mean anything.
    """
    tables = {role: _Names(roles) for role, roles in _PLACES.items()}
    entry_names = tables["<entry"]
    raw = reading.raw
    names: _Names = _Root(reading)              # of the innermost place: what its children mean,
    texts = raw.texts                           # where their texts go,
    links: list[RawLink] = []                   # where their links go,
    base = ""                                   # and from where their addresses start
    places: list[tuple[_Names, dict[str, str], list[RawLink], str]] = []        # those around it
    level = -1
    key = ""                                    # of the text that is being read
    pieces: list[str] = []
    person: list[str] = []                      # the name in an author
    listen = pieces.append

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal level, names, texts, links, base, key
        level += 1
        if not level:
            role = names[name]
            if not role:
                return
            if role[0] != "<":
                key = role
                parser.CharacterDataHandler = listen
            elif role == "<enclosure" and "url" in attributes:
                links.append(RawLink(attributes["url"], attributes.get("type", ""), attributes.get("length", "")))
            elif role in tables:
                places.append((names, texts, links, base))
                names, base, level = tables[role], _based(base, attributes), -1
                if role == "<entry":
                    texts, links = {}, []
            else:
                _link(role, attributes, texts, links, base)
        elif level > DEEPEST:
            raise _Stop
        elif key:
            child(name, "<")

    def end(name: str) -> None:
        nonlocal level, names, texts, links, base, key
        if not level:
            if key:
                parser.CharacterDataHandler = None
                value = "".join(pieces).strip()
                pieces.clear()
                # The last of several elements counts, as it does for feedparser; of titles the first that says something.
                if key != "title" or not texts.get(key):
                    texts[key] = value if value.isascii() else _unmangled(value)
                key = ""
        elif level < 0:
            if names is entry_names:
                if len(raw.entries) >= _MOST_ENTRIES:
                    raise _Stop
                raw.entries.append(RawEntry(texts, links))
            names, texts, links, base = places.pop()
            level = 0
            reading.closed = not places
        elif key:
            child(name, "</")
        level -= 1

    def child(name: str, tag: str) -> None:
        """An element within a text is no part of it, but markup in a title (RFC 4287, 3.1), and what holds the name in
        a person (RFC 4287, 3.2)."""
        if key == "title":
            pieces.append(f"{tag}{canonical(name).rpartition(':')[2]}>")
        elif level == 1 and tag == "<":
            parser.CharacterDataHandler = person.append if key.endswith("author") and canonical(name) in _PERSON_NAMES else None
        elif level == 1:
            parser.CharacterDataHandler = listen
            if called := "".join(person).strip():
                texts["author_name"] = called
            person.clear()

    return start, end


def _unmangled(text: str) -> str:
    """Undoes UTF-8 that was taken for Latin-1 and encoded anew, and the control characters that Windows-1252 became, as
    feedparser does: a guid must be the same by both readers."""
    if not _MANGLED.search(text):
        return text
    with suppress(UnicodeError):
        text = text.encode("latin-1").decode("utf-8")
    return text.translate(_WINDOWS)


def _link(role: str, attributes: dict[str, str], texts: dict[str, str], links: list[RawLink], base: str) -> None:
    told = attributes if "url" in attributes else {name.lower(): value for name, value in attributes.items()}
    href = told.get("url") or told.get("uri") or told.get("href") or ""
    if role == "<enclosure":
        links.append(RawLink(href, told.get("type", ""), told.get("length", "")))
    elif role == "<link" and told.get("rel", "").lower() == "enclosure":
        links.append(RawLink(_joined(_based(base, attributes), href), told.get("type", ""), told.get("length", "")))
    elif role == "<media":
        told = {name.lower(): value for name, value in attributes.items()}
        links.append(RawLink(told.get("url", ""), told.get("type", ""), told.get("filesize", ""), told.get("medium", "")))
    elif role == "<picture" and href and told.get("rel", "image").lower() == "image":     # itunes:link came before itunes:image
        texts["itunes_image"] = href


def _based(base: str, attributes: dict[str, str]) -> str:
    """The base address within an element (XML Base, 4.2): Atom's links start from there (RFC 4287, 2)."""
    return _joined(base, attributes[_BASE]) if _BASE in attributes else base


def _joined(base: str, address: str) -> str:
    if not base:
        return address
    try:
        return urljoin(base, address)
    except ValueError:
        return address
