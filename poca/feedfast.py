"""The quick reader: one pass of expat over a feed, with eyes only for the few elements that poca uses.

It reads RSS 2.0 (and its forebears from 0.91 on) and Atom (RFC 4287), encoded in UTF-8. Most bytes of a feed are show
notes: they pass through expat without a call into Python. Names are compared as feedparser does: lower case, and by the
prefix that a namespace usually has, whatever the feed calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urljoin
from xml.parsers import expat

from poca.feedraw import RawEntry, RawFeed, RawLink

DEEPEST = 300               # levels of elements; a page of XHTML in a feed has some 20
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
    "item": "<entry", "entry": "<entry", "image": "<image", "author": "author", "itunes:image": "<picture", "title": "title", "dc:title": "title",
    "itunes:author": "itunes_author", "dc:creator": "author", "dc:author": "author", "managingeditor": "author", "logo": "logo",
    "itunes:new-feed-url": "new_feed_url",
}
_IN_ENTRY = {
    "enclosure": "<enclosure", "link": "<link", "media:content": "<media", "media:group": "<group", "author": "author", "guid": "guid", "id": "guid",
    "title": "title", "dc:title": "title", "itunes:title": "itunes_title", "pubdate": "published", "published": "published",
    "issued": "published", "dcterms:issued": "published", "updated": "updated", "modified": "updated", "lastbuilddate": "updated",
    "dc:date": "updated", "dcterms:modified": "updated", "created": "created", "dcterms:created": "created",
    "itunes:duration": "duration", "itunes:season": "season", "itunes:episode": "episode", "itunes:episodetype": "episode_type",
    "itunes:author": "itunes_author", "dc:creator": "author", "dc:author": "author", "managingeditor": "author",
}
_PLACES = {
    "<root": _IN_RSS, "<feed": _IN_FEED, "<entry": _IN_ENTRY,
    "<image": {"url": "image"},
    "<group": {"media:content": "<media"},
}

_TRUNCATIONS = frozenset({"no element found", "unclosed token", "partial character", "unclosed CDATA section"})


_WINDOWS = {byte: bytes([byte]).decode("windows-1252") for byte in range(0x80, 0xA0) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}


class Fault(NamedTuple):
    """Where and why expat could not go on."""

    message: str
    line: int
    column: int                 # from 1
    index: int                  # bytes

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

    def __init__(self, roles: dict[str, str]) -> None:
        self.roles = roles

    def __missing__(self, name: str) -> str:
        role = self.roles.get(canonical(name), "")
        if len(self) < _KNOWN_NAMES:
            self[name] = role
        return role


class _Stop(Exception):
    """Nothing more to learn from this document here."""


class _Place(NamedTuple):
    """An element that is open, with what its children mean and where their values go."""

    names: _Names
    texts: dict[str, str]
    entry: RawEntry
    base: str                   # xml:base


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
    reading = Reading()
    parser = expat.ParserCreate("utf-8", _BETWEEN)
    parser.namespace_prefixes = True
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.specified_attributes = True
    parser.StartDoctypeDeclHandler = _stop
    parser.StartElementHandler, parser.EndElementHandler = _handlers(reading, parser)
    try:
        parser.Parse(data, True)
    except _Stop:
        reading.plain = False
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code) or "not well-formed"
        reading.fault = Fault(message, error.lineno, error.offset + 1, max(parser.ErrorByteIndex, 0))
    return reading


def _stop(*_: object) -> None:
    raise _Stop


def _handlers(reading: Reading, parser: expat.XMLParserType) -> tuple[Callable[[str, list[str]], None], Callable[[str], None]]:
    """The two functions that expat calls at each tag: closures, since their calls are most of what a feed costs.

    ``inner`` is the depth of the children of the innermost place: only they mean anything.
    """
    tables = {role: _Names(roles) for role, roles in _PLACES.items()}
    entry_names = tables["<entry"]
    place = _Place(_Names(_ROOT), reading.raw.texts, RawEntry(), "")
    names = place.names
    places: list[tuple[int, _Place]] = []       # those around, each with the depth of its children
    depth, inner = 0, 1
    key = ""                                    # of the text that is being read
    pieces: list[str] = []
    person: list[str] = []                      # the name in an author

    def start(name: str, attributes: list[str]) -> None:
        nonlocal depth, inner, place, names, key
        depth += 1
        if depth != inner:
            if depth > DEEPEST:
                raise _Stop
            if key:
                child(name, "<", depth == inner + 1)
            return
        role = names[name]
        if not role:
            if depth == 1:
                reading.root = canonical(name)
                raise _Stop
        elif role[0] != "<":
            key = role
            parser.CharacterDataHandler = pieces.append
        elif role in tables:
            if depth == 1:
                reading.root, reading.plain = canonical(name), True
            places.append((inner, place))
            base = _based(place.base, attributes) if attributes else place.base
            if role == "<entry":
                entry = RawEntry()
                place = _Place(entry_names, entry.texts, entry, base)
            else:
                place = _Place(tables[role], place.texts, place.entry, base)
            names, inner = place.names, depth + 1
        elif attributes:
            _link(role, place, attributes)

    def end(name: str) -> None:
        nonlocal depth, inner, place, names, key
        if depth == inner:
            if key:
                parser.CharacterDataHandler = None
                _keep(place.texts, key, pieces)
                key = ""
        elif depth < inner:
            if names is entry_names:
                reading.raw.entries.append(place.entry)
            inner, place = places.pop()
            names = place.names
            reading.closed = depth == 1
        elif key:
            child(name, "</", depth == inner + 1)
        depth -= 1

    def child(name: str, tag: str, direct: bool) -> None:
        """An element within a text is no part of it, but markup in a title (RFC 4287, 3.1), and what holds the name in
        a person (RFC 4287, 3.2)."""
        if key == "title":
            pieces.append(f"{tag}{canonical(name).rpartition(':')[2]}>")
        elif direct and tag == "<":
            parser.CharacterDataHandler = person.append if key == "author" and canonical(name) == "name" else None
        elif direct:
            parser.CharacterDataHandler = pieces.append
            if person:
                _keep(place.texts, "author_name", person)

    return start, end


def _keep(texts: dict[str, str], key: str, pieces: list[str]) -> None:
    """The last of several elements counts, as it does for feedparser; of titles the first that says something."""
    value = "".join(pieces).strip()
    pieces.clear()
    if key != "title" or not texts.get("title"):
        texts[key] = value if value.isascii() else _unmangled(value)


def _unmangled(text: str) -> str:
    """Undoes UTF-8 that was taken for Latin-1 and encoded anew, and the control characters that Windows-1252 became, as
    feedparser does: a guid must be the same by both readers."""
    with suppress(UnicodeError):
        text = text.encode("latin-1").decode("utf-8")
    return text.translate(_WINDOWS)


def _link(role: str, place: _Place, attributes: list[str]) -> None:
    told = {name.lower(): value for name, value in zip(attributes[::2], attributes[1::2], strict=True)}
    if role == "<media":
        place.entry.media.append(RawLink(told.get("url", ""), told.get("type", ""), told.get("filesize", ""), told.get("medium", "")))
        return
    href = told.get("url") or told.get("uri") or told.get("href") or ""
    if role == "<picture":
        if picture := told.get("href") or told.get("url"):
            place.texts["itunes_image"] = picture
    elif role == "<enclosure":
        place.entry.enclosures.append(RawLink(href, told.get("type", ""), told.get("length", "")))
    elif told.get("rel", "").lower() == "enclosure":
        place.entry.enclosures.append(RawLink(_joined(_based(place.base, attributes), href), told.get("type", ""), told.get("length", "")))


def _based(base: str, attributes: list[str]) -> str:
    """The base address within an element (XML Base, 4.2): Atom's links start from there (RFC 4287, 2)."""
    for name, value in zip(attributes[::2], attributes[1::2], strict=True):
        if name == _BASE:
            return _joined(base, value)
    return base


def _joined(base: str, address: str) -> str:
    if not base:
        return address
    try:
        return urljoin(base, address)
    except ValueError:
        return address
