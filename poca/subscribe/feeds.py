"""A feed found by the address that a person gives: that of the feed, or of a page that names it."""

from __future__ import annotations

import random
import re
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from poca import feed, fetch, text, web
from poca.errors import FeedError, PocaError, WebError
from poca.model import FeedDoc, Settings, Validators

_MOST_LINKS = 5             # feeds of one page that are asked for
_LARGEST_PAGE = 1_000_000   # characters of a page that are searched
_TYPES = ("application/rss+xml", "application/atom+xml")


@dataclass(frozen=True, slots=True)
class Found:
    """A feed with episodes. ``url`` is the address for the config; ``notes``: sentences on the way there."""

    url: str
    feed: FeedDoc
    notes: tuple[str, ...] = ()


def full_address(words: str) -> str:
    """The address that is meant, as http or https. Raises FeedError where it is none."""
    url = re.sub(r"^(?:feed|itpc|pcast|podcast):(?://)?(?=https?:)", "", words.strip(), flags=re.IGNORECASE)
    url = re.sub(r"^(?:feed|itpc|pcast|podcast)://", "http://", url, flags=re.IGNORECASE)
    if "://" not in url and re.match(r"[^\s/:]+\.[^\s/:]+(?::\d+)?(?:/|$)", url):
        url = f"https://{url}"
    try:
        web.place(url)
    except WebError as error:
        raise FeedError(f"{error}.") from None
    return url


def address(url: str) -> tuple[object, ...]:
    """Equal for addresses that are one: http or https, default port or none, the host in capitals or not."""
    try:
        place = web.place(url)
    except WebError:
        return (url,)
    return place.host, None if place.port in (80, 443) else place.port, place.target, place.user


def find(settings: Settings, url: str) -> Found:
    """Asks for the feed. Raises PocaError, also for a feed without episodes, which says why."""
    asked = web.Web(settings)
    try:
        body = _get(asked, settings, url)
        try:
            return _with_episodes(body.permanent or url, feed.parse_feed(body.content, body.content_type, body.url))
        except _NoEpisodesError:
            raise
        except FeedError as error:
            links = feed_links(body.content, body.content_type, body.url)
            if not links:
                raise FeedError(f"{text.shown_url(url)}: {error}.") from None
        return _first_of(asked, settings, [_with_login(link, url) for link in links[:_MOST_LINKS]])
    finally:
        asked.close()


class _NoEpisodesError(FeedError):
    pass


def _get(asked: web.Web, settings: Settings, url: str) -> fetch.Body:
    try:
        answer = fetch.fetch(asked, url, Validators(), "", settings, aside=nullcontext, pause=time.sleep, chance=random.random)
    except WebError as error:
        raise FeedError(f"{text.shown_url(url)}: {error}.") from None
    assert isinstance(answer, fetch.Body)       # nothing was known that it could be compared with
    return answer


def _with_episodes(url: str, found: FeedDoc) -> Found:
    if found.entries:
        return Found(url, found, (f"The feed was cut off: {found.cut}.",) if found.cut else ())
    reason = "it has no entries"
    if found.passed_over:
        first = found.passed_over[0]
        reason = f'of its {len(found.passed_over)} entries none is an episode ("{text.shown(first.title)}": {first.reason})'
    raise _NoEpisodesError(f"{text.shown_url(url)} is a feed, but {reason}.")


def _first_of(asked: web.Web, settings: Settings, links: list[str]) -> Found:
    """The first feed with episodes of those that a page names."""
    errors = []
    for number, link in enumerate(links, 1):
        try:
            body = _get(asked, settings, link)
            found = _with_episodes(body.permanent or link, feed.parse_feed(body.content, body.content_type, body.url))
        except PocaError as error:
            errors.append(str(error))
            continue
        others = [text.shown_url(other) for other in links[number:]]
        more = (f"It also names {', '.join(others)}.",) if others else ()
        return Found(found.url, found.feed, (f"The page names the feed {text.shown_url(found.url)}.", *more, *found.notes))
    raise FeedError("The page names no feed with episodes: " + " ".join(errors))


def _with_login(link: str, url: str) -> str:
    """The link with the login of the page, where it leads to the same host."""
    try:
        page, place = web.place(url), web.place(link)
    except WebError:
        return link
    if page.user and not place.user and (page.scheme, page.host, page.port) == (place.scheme, place.host, place.port):
        return urlsplit(link)._replace(netloc=f"{urlsplit(url).netloc.rpartition('@')[0]}@{urlsplit(link).netloc}").geturl()
    return link


# --------------------------------------------------------------------------------------------------------------- pages

def feed_links(content: bytes, content_type: str | None, url: str) -> list[str]:
    """The addresses of the feeds that a page of HTML names (``link rel="alternate"``), in its order, each once."""
    charset = re.search(r"charset=[\"']?([\w.:-]+)", content_type or "", re.IGNORECASE)
    try:
        page = content.decode(charset[1] if charset else "utf-8", "replace")
    except LookupError:
        page = content.decode("utf-8", "replace")
    reader = _Links(convert_charrefs=True)
    with suppress(AssertionError):      # what html.parser says to a declaration that makes no sense
        reader.feed(page[:_LARGEST_PAGE])
    base = _joined(url, reader.base)
    return [link for link in dict.fromkeys(_joined(base, href) for href in reader.hrefs) if urlsplit(link).scheme in ("http", "https")]


def _joined(base: str, href: str) -> str:
    try:
        return urljoin(base, href.strip())
    except ValueError:
        return base if not href else ""


class _Links(HTMLParser):
    def __init__(self, *, convert_charrefs: bool) -> None:
        super().__init__(convert_charrefs=convert_charrefs)
        self.base, self.hrefs = "", list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "base" and not self.base:
            self.base = values.get("href", "")
        kind = values.get("type", "").partition(";")[0].strip().lower()
        if tag == "link" and "alternate" in values.get("rel", "").lower().split() and kind in _TYPES and values.get("href"):
            self.hrefs.append(values["href"])
