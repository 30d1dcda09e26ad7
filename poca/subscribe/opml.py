"""Lists of subscriptions in and out: OPML 1 and 2, and in also the ``poca.xml`` of poca 1.x. Pure.

OPML as apps write it is often no XML at all (bare ``&``, unbalanced quotes, instructions before the declaration), and a
list is worth reading for each feed in it. So it is read tag by tag, and not by an XML parser.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from email.utils import formatdate
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from poca.errors import PocaError
from poca.model import Subscription
from poca.subscribe import pocaxml
from poca.subscribe.lists import Imported, decoded, host, http_url, unique_title
from poca.text import plain, shown, shown_url

# ------------------------------------------------------------------------------------------------------- reading

def read(data: bytes) -> Imported:
    """Read an OPML file or a poca.xml. Raises PocaError for what is neither, and for what declares entities."""
    notes: list[str] = []
    text = decoded(data, notes)
    if re.search(r"<!ENTITY", text, re.IGNORECASE):
        raise PocaError("The file declares entities of its own, as no list of subscriptions needs to: it is not read.")
    text = re.sub(r"<!--(?:.*?-->|.*\Z)", "", text, flags=re.DOTALL)
    root = re.search(r"<([A-Za-z][\w.:-]*)", text)
    name = root[1].lower().rpartition(":")[2] if root else ""
    if name == "poca":
        return pocaxml.read(text, notes)
    if name in ("rss", "feed", "rdf"):
        raise PocaError("The file is a feed itself and no list of feeds: `poca-subscribe add` takes its address.")
    if name not in ("opml", "outline", "body"):
        raise PocaError("The file is neither OPML nor a poca.xml.")
    return Imported(list(_feeds(text, notes)), notes=notes)


_OUTLINE = re.compile(r"<(/?)outline\b|</body\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_NO_CATEGORY = {"feeds", "feed", "subscriptions", "podcasts", "podcast", "podcast subscriptions", "my podcasts"}    # what apps put around all


def _feeds(text: str, notes: list[str]) -> Iterator[dict[str, object]]:
    """The feeds of an OPML text as subscriptions, the folders that they are in as categories."""
    tags = list(_OUTLINE.finditer(text))
    above: list[str] = [""]
    folders: set[str] = set()
    seen: dict[str, str] = {}
    for number, tag in enumerate(tags, 1):
        if tag[1] == "/" or not tag[0].lower().startswith("<outline"):
            del above[max(1, len(above) - 1):]
            continue
        written = text[tag.end():tags[number].start() if number < len(tags) else len(text)]
        found = {name.lower(): html.unescape(double or single) for name, double, single in _ATTRIBUTE.findall(written)}
        title = plain(found.get("title", "")) or plain(found.get("text", ""))
        address = found.get("xmlurl") or (found.get("url", "") if found.get("type", "").lower() in ("rss", "atom", "feed") else "")
        inherited = above[-1]
        if not written.rstrip().endswith("/>"):
            above.append(inherited if address else "" if title.lower() in _NO_CATEGORY else title)
        if not address and "xmlurl" not in found:
            continue
        url = http_url(address, title, notes)
        title = title or host(url)
        if url in seen:
            notes.append(f'"{shown(title)}" is left out: its feed {shown_url(url)} is "{shown(seen[url])}" already.')
        elif url:
            title = seen[url] = unique_title(title, folders, notes)
            category = plain(found.get("category", "")).lstrip("/") or inherited
            yield {"title": title, "url": url, **({"category": category} if category else {})}


# ------------------------------------------------------------------------------------------------------- writing

def write(subscriptions: Sequence[Subscription], now: int) -> tuple[str, list[str]]:
    """The subscriptions as OPML 2.0 (to be encoded as UTF-8), and sentences on what is not in it. Queries are kept,
    since many feeds are found by them only; user names and passwords are not. ``now``: seconds since 1970."""
    notes = []
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>', '<opml version="2.0">', "  <head>", "    <title>Podcasts</title>",
        f"    <dateCreated>{formatdate(now, usegmt=True)}</dateCreated>", "  </head>", "  <body>",
    ]
    for subscription in subscriptions:
        url, secret = _without_user(subscription.url)
        if secret:
            notes.append(f'"{shown(subscription.title)}": the user name and password of its address are left out.')
        attributes = {"text": subscription.title, "title": subscription.title, "type": "rss", "xmlUrl": url}
        if subscription.category:
            attributes["category"] = subscription.category
        lines.append(f"    <outline {_attributes(attributes)}/>")
    return "\n".join([*lines, "  </body>", "</opml>", ""]), notes


def _without_user(url: str) -> tuple[str, bool]:
    parts = urlsplit(url)
    _, at, server = parts.netloc.rpartition("@")
    return (parts._replace(netloc=server).geturl(), True) if at else (url, False)


_UNWRITABLE = re.compile("[^\t\n\r\\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")       # XML 1.0, 2.2


def _attributes(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={quoteattr(_UNWRITABLE.sub('', value))}" for name, value in values.items())
