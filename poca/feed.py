"""Bytes from a server -> FeedDoc.

A well-formed feed is read by :mod:`poca.feedfast`; feedparser reads all the others, those that :mod:`poca.feedmend` could
not make well-formed again by small repairs. It is imported when the first such feed comes.
"""

from __future__ import annotations

import io
import json
import threading
import zlib
from typing import Any

from poca import feedfast, feedmend
from poca.errors import FeedError
from poca.feedraw import RawEntry, RawFeed, RawLink, document
from poca.model import Entry, FeedDoc, PassedOver


def parse_feed(body: bytes, content_type: str | None, url: str) -> FeedDoc:
    """The feed in ``body``, the unpacked answer. ``content_type`` is its header of that name, ``url`` the final URL, from
    which relative addresses are resolved.

    Raises FeedError where the answer is no feed, and where it could hurt (entities, deep nesting, nothing but tags).
    """
    feedmend.refuse_other_things(body)
    data, repairs = feedmend.as_utf8(body, content_type)
    reading = feedfast.read(data)
    if reading.fault or not reading.plain:
        mended, more = feedmend.mend(data)
        if more:
            data, repairs, reading = mended, repairs + more, feedfast.read(mended)
    if reading.root and reading.root not in feedmend.ROOTS:
        raise FeedError(feedmend.no_feed(data, reading.root))
    fault, cut = reading.fault, ""
    if fault and reading.closed:
        repairs += ("what follows the end of the feed was passed over",)
        if feedmend.ENTRY.search(data, fault.at):
            cut = "there are entries after the end of the feed"
        fault = None
    if fault and fault.truncation and reading.plain:
        cut = f"the feed breaks off in line {fault.line}, after {len(reading.raw.entries)} whole entries"
        return document(reading.raw, url, repairs, cut)
    if fault is None and reading.plain:
        return document(reading.raw, url, repairs, cut)
    if fault:
        repairs += (f"line {fault.line}, column {fault.column} is no proper XML ({fault.message}); the feed was read as well as can be",)
    raw, cut = _judged(data, fault, url)
    return document(raw, url, repairs, cut)


# -------------------------------------------------------------------------------------------------------- feedparser

_first_use = threading.Lock()
_TEXTS = ("duration", "season", "episode", "episodetype", "new-feed-url")


def _feedparser() -> Any:
    """The library, taught what poca has to know and what it would lose; ready to be called from many threads."""
    with _first_use:
        import feedparser
        from feedparser.mixin import _FeedParserMixin as Mixin

        if "_start_itunes_duration" in vars(Mixin):
            return feedparser
        # A guid is compared, never resolved, whatever xml:base and the feed's address say (RFC 4287, 4.2.6.1).
        Mixin.can_be_relative_uri = frozenset()
        # It drops the text of elements with attributes, and takes itunes:author and author for one.
        for name in _TEXTS:
            key = f"itunes_{name}"
            setattr(Mixin, f"_start_{key}", lambda self, attributes, key=key: self.push(key, 1))
            setattr(Mixin, f"_end_{key}", lambda self, key=key: self.pop(key))
        Mixin._start_itunes_author, Mixin._end_itunes_author = _start_itunes_author, _end_itunes_author
        # "image" would be whichever of itunes:image and image comes last.
        Mixin._start_itunes_image = Mixin._start_itunes_link = _start_itunes_picture
        # The title of a media:content is none of its entry, and those of a live item none of its channel.
        Mixin._start_media_title = lambda self, attributes: self.push("media_title", 1)
        Mixin._end_media_title = lambda self: self.pop("media_title")
        # It would call a link that does not tell its type a page.
        start_link = Mixin._start_link
        Mixin._start_link = lambda self, told: start_link(self, {"type": ""} | told if told.get("rel") == "enclosure" else told)
        # It would put names and mail addresses together, take them apart again, and take itunes:owner for an author.
        Mixin._sync_author_detail = lambda self, key="author": None
        Mixin._save_author = _save_author
        # Its tables are filled at first use, which is safe on one thread only.
        feedparser.parse(io.BytesIO(b'<rss version="2.0"><channel><item><title>x</title></item></channel></rss>'), response_headers={})
        return feedparser


def _start_itunes_picture(self: Any, attributes: dict[str, str]) -> None:
    href = attributes.get("url") or attributes.get("href")
    if href and attributes.get("rel", "image") == "image":       # itunes:link rel="image" came before itunes:image
        self._get_context()["itunes_picture"] = href


def _save_author(self: Any, key: str, value: str, prefix: str = "author") -> None:
    if (prefix, key) == ("author", "name") and value:
        self._get_context()["author_name"] = value


def _start_itunes_author(self: Any, attributes: dict[str, str]) -> None:
    self.inauthor = 1
    self.push("itunes_author", 1)


def _end_itunes_author(self: Any) -> None:
    self.pop("itunes_author")
    self.inauthor = 0


def _judged(data: bytes, fault: feedfast.Fault | None, url: str) -> tuple[RawFeed, str]:
    """What feedparser makes of ``data`` (UTF-8), and where it was cut. Raises FeedError."""
    feedmend.refuse_hostile(data, fault)
    shape = feedmend.shape(data)
    if not shape.closed:
        data = data[:shape.last_entry_end]
    feedparser = _feedparser()
    headers = {"content-type": "application/xml; charset=utf-8"}
    if b":base" in data:
        # Without an address to start from it lets an element's xml:base act on what comes after the element. With one it
        # joins addresses at each tag, which takes longer than all the rest.
        headers["content-location"] = url
    try:
        found = feedparser.parse(io.BytesIO(feedmend.tamed(data)), response_headers=headers, resolve_relative_uris=False, sanitize_html=False)
        raw = RawFeed(_feed_texts(found.feed), [_raw_entry(entry) for entry in found.entries])
    except Exception as error:     # it raises whatever its parsers do
        raise FeedError("the answer could not be read as a feed") from error
    if not found.get("version") and not raw.entries:
        raise FeedError(feedmend.no_feed(data, ""))
    if not shape.closed:
        return raw, f"the feed breaks off, after {len(raw.entries)} whole entries"
    if len(raw.entries) < shape.entries:
        return raw, f"the feed is damaged: of {shape.entries} entries {len(raw.entries)} could be read"
    return raw, ""


def _feed_texts(feed: Any) -> dict[str, str]:
    keys = {"title": "title", "author": "author", "author_name": "author_name", "itunes_author": "itunes_author",
            "itunes_picture": "itunes_image", "logo": "logo", "itunes_new-feed-url": "new_feed_url"}
    texts = _texts(feed, keys)
    if image := _text(feed.get("image", {}).get("href")):
        texts["image"] = image
    return texts


def _raw_entry(entry: Any) -> RawEntry:
    keys = {"id": "guid", "title": "title", "published": "published", "updated": "updated", "created": "created",
            "itunes_duration": "duration", "itunes_season": "season", "itunes_episode": "episode", "itunes_episodetype": "episode_type",
            "author": "author", "author_name": "author_name", "itunes_author": "itunes_author"}
    enclosures = [RawLink(_text(link.get("href")), _text(link.get("type")), _text(link.get("length")))
                  for link in entry.get("links", ()) if link.get("rel") == "enclosure"]
    media = [RawLink(_text(link.get("url")), _text(link.get("type")), _text(link.get("filesize")), _text(link.get("medium")))
             for link in entry.get("media_content", ())]
    return RawEntry(_texts(entry, keys), enclosures + media)


def _texts(found: Any, keys: dict[str, str]) -> dict[str, str]:
    # dict.get: FeedParserDict's own takes "published" for a missing "updated".
    return {key: _text(dict.get(found, theirs)) for theirs, key in keys.items() if dict.get(found, theirs) is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# ------------------------------------------------------------------------------------------------------- for the history

_VERSION = 1


def pack(doc: FeedDoc) -> bytes:
    """The feed as one small value; :func:`unpack` gives it back."""
    passed_over = [[entry.title, entry.reason] for entry in doc.passed_over]
    values = [_VERSION, doc.title, doc.author, doc.image, doc.new_feed_url, doc.entries, passed_over, doc.repairs, doc.cut]
    return zlib.compress(json.dumps(values, separators=(",", ":")).encode("ascii"), 1)      # nearly as small as with 6, in a quarter of the time


def unpack(packed: bytes) -> FeedDoc:
    """What :func:`pack` was given. Raises FeedError for anything that it did not make, or made by another version."""
    try:
        version, title, author, image, new_feed_url, entries, passed_over, repairs, cut = json.loads(zlib.decompress(packed))
        if version != _VERSION:
            raise ValueError(version)
        return FeedDoc(title, author, image, new_feed_url, tuple([Entry(*entry) for entry in entries]),
                       tuple([PassedOver(*entry) for entry in passed_over]), tuple(repairs), cut)
    except (ValueError, TypeError, zlib.error, RecursionError) as error:
        raise FeedError("the feed as last read cannot be read back from the history") from error
