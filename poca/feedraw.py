"""A feed as its author wrote it, and what poca makes of it.

Two readers fill a :class:`RawFeed`: the quick one of :mod:`poca.feedfast` and feedparser (:mod:`poca.feed`). All that is
decided about the values is decided here, once, so that nobody can tell by which of them a feed was read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from poca.feeddates import instant
from poca.media import enclosure_rank
from poca.model import Entry, FeedDoc, PassedOver
from poca.text import plain


class RawLink(NamedTuple):
    """An enclosure, a link with rel="enclosure" or a media:content, attributes as written."""

    url: str
    mime: str
    length: str
    medium: str | None = None   # audio | video | image | document | executable | ""; None where it is no media:content


class RawEntry(NamedTuple):
    """``texts``: guid, title, published, updated, created, duration, season, episode, episode_type, author, author_name,
    itunes_author."""

    texts: dict[str, str]
    links: list[RawLink]


@dataclass(slots=True)
class RawFeed:
    """``texts``: title, author, author_name, itunes_author, itunes_image, image, logo, new_feed_url."""

    texts: dict[str, str] = field(default_factory=dict)
    entries: list[RawEntry] = field(default_factory=list)


def document(raw: RawFeed, url: str, repairs: tuple[str, ...] = (), cut: str = "") -> FeedDoc:
    """The feed with its values read; ``url`` is where relative addresses start from."""
    told = raw.texts
    author = _author(told)
    read = [_entry(entry, url, author) for entry in raw.entries]
    image = next((told[key] for key in ("itunes_image", "image", "logo") if told.get(key, "").strip()), "")
    return FeedDoc(
        title=_plain(told.get("title", "")),
        author=author,
        image=_address(image, url) or "",
        new_feed_url=_address(told.get("new_feed_url", ""), url) or "",
        entries=tuple([entry for entry in read if isinstance(entry, Entry)]),
        passed_over=tuple([entry for entry in read if isinstance(entry, PassedOver)]),
        repairs=repairs,
        cut=cut,
    )


def _entry(raw: RawEntry, base: str, feed_author: str) -> Entry | PassedOver:
    told = raw.texts.get
    title = _plain(told("title", ""))
    links = raw.links if len(raw.links) < 2 else sorted(raw.links, key=_is_media_content)
    best, url, mime, reason = 3, "", "", "it has no enclosure"
    length = ""
    for link in links:
        address = _address(link.url, base)
        if not address:
            reason = "its enclosure has no address that can be fetched"
            continue
        kind = _bare_type(link.mime)
        rank = _rank(kind, address, link.medium) if link.medium else enclosure_rank(kind, address)
        if rank is None:
            reason = "its enclosure is neither audio nor video" + (f" ({_plain(kind)})" if kind else "")
        elif rank < best:
            best, url, mime, length = rank, address, kind, link.length
            if rank == 0:
                break
    if not url:
        return PassedOver(title, reason)
    return Entry(
        told("guid", "")[:_LONGEST_GUID],
        url,
        title,
        _published(raw.texts),
        _number(length.partition(".")[0]) or None,
        mime,
        _duration(told("duration", "")),
        _number(told("season", "")),
        _number(told("episode", "")),
        _episode_type(told("episode_type", "")),
        _author(raw.texts) or feed_author,
    )


# --------------------------------------------------------------------------------------------------------- addresses

_PLAIN_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[!-~]*)?")
_BREAKS = str.maketrans("", "", "\t\r\n")


def _address(written: str, base: str) -> str | None:
    """An absolute http or https URL, None where there is none in what was written."""
    if _PLAIN_ADDRESS.fullmatch(written):
        return written
    url = written.translate(_BREAKS).strip()
    if not url:
        return None
    try:
        if not url[:8].lower().startswith(("http://", "https://")):
            url = urljoin(base, url)
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return None
    return url if usable else None


_USUAL_TYPES = frozenset({"audio/mpeg", "audio/x-m4a", "audio/mp4", "video/mp4"})


def _bare_type(mime: str) -> str:
    return mime if mime in _USUAL_TYPES else mime.partition(";")[0].strip().lower()


def _is_media_content(link: RawLink) -> bool:
    """Enclosures come first: a media:content may be anything that goes with the entry."""
    return link.medium is not None


def _rank(mime: str, url: str, medium: str | None) -> int | None:
    """enclosure_rank, helped by what Media RSS tells of a media:content in its ``medium``."""
    if not medium:
        return enclosure_rank(mime, url)
    medium = medium.strip().lower()
    if medium in ("image", "document", "executable"):
        return None
    rank = enclosure_rank(mime, url)
    if rank == 2 and medium in ("audio", "video"):
        return 0 if medium == "audio" else 1
    return rank


# ------------------------------------------------------------------------------------------------------ single values

_MOST_DIGITS = 15           # of a length or number; what has more is none
_LONGEST_PART = 7           # digits of a duration's hours, minutes or seconds
_LONGEST_PERSON = 1_000     # characters
_LONGEST_TITLE = 4_000      # characters, with their markup
_LONGEST_GUID = 4_000       # characters; two that are alike so far identify nothing, as guids do that are alike
_RSS_AUTHOR = re.compile(r"[^\s@]+@[^\s@]+\s*\(([^()]+)\)")        # RSS 2.0, <author>: mail address, then the name


def _plain(text: str) -> str:
    """text.plain, the many titles that are plain as they stand let through."""
    text = text[:_LONGEST_TITLE]
    if text.isprintable() and "&" not in text and "<" not in text and "]]>" not in text:
        return " ".join(text.split())
    return plain(text)


def _published(told: Mapping[str, str]) -> int | None:
    """The first of the dates that can be read; Atom's updated stands in where nothing else does (RFC 4287, 4.2.9 and 4.2.15)."""
    moment = instant(told["published"]) if "published" in told else None
    if moment is None and "updated" in told:
        moment = instant(told["updated"])
    if moment is None and "created" in told:
        moment = instant(told["created"])
    return moment


def _author(told: Mapping[str, str]) -> str:
    author = told.get("itunes_author") or told.get("author_name") or told.get("author")
    return _person(author) if author else ""


@lru_cache(maxsize=64)
def _person(author: str) -> str:
    """Remembered, since the entries of a feed mostly have one author."""
    author = _plain(author[:_LONGEST_PERSON])
    named = _RSS_AUTHOR.fullmatch(author) if "@" in author else None
    return named[1].strip() if named else author


def _number(text: str) -> int | None:
    if not text:
        return None
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _duration(text: str) -> int | None:
    """itunes:duration as seconds, minutes:seconds or hours:minutes:seconds. Nobody publishes nothing: 0 is not told."""
    if not text:
        return None
    parts = text.strip().partition(".")[0].split(":")
    seconds = 0
    if len(parts) > 3:
        return None
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) <= _LONGEST_PART):
            return None
        seconds = seconds * 60 + int(part)
    return seconds or None


def _episode_type(text: str) -> str:
    if not text:
        return "full"
    kind = text.strip().lower()
    return kind if kind in ("bonus", "trailer") else "full"
