"""Words that reach a person: titles made plain, secrets hidden, sizes and lengths of time put in words. Pure.

Whatever comes from a feed, a server or a library goes through :func:`shown` or :func:`shown_url` before it is printed,
logged, mailed or put into the text of an exception; titles go through :func:`plain` when the feed is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import unquote, unquote_plus

LONGEST = 500               # characters of one text that is shown
_LONGEST_READ = 4_000       # characters that are looked at; what is longer is a page, not a message

# -------------------------------------------------------------------------------------------------------- characters

_INVISIBLE = {
    **dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)]),                            # control characters
    **dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]),     # bidi controls
    **dict.fromkeys([0xAD, 0x200B, 0x2060, *range(0x206A, 0x2070), 0xFEFF, 0xFFF9, 0xFFFA, 0xFFFB]),
    **dict.fromkeys([0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029], " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),                               # lone surrogates: no encoding takes them
}


def _clean(text: str) -> str:
    """On one line, without characters that steer a terminal, turn the writing, or cannot be encoded."""
    return " ".join(text.translate(_INVISIBLE).split())


def _cap(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST - 1].rstrip() + "…"


# ------------------------------------------------------------------------------------------------------------ titles

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ROUNDS = 5                 # entities of entities; more of them is nobody's title
_ELEMENTS = (
    "a|abbr|acronym|address|article|b|bdi|bdo|big|blockquote|body|br|center|cite|code|dd|del|dfn|div|dl|dt|em|figure|font|footer|h[1-6]|"
    "head|header|hr|html|i|iframe|img|ins|kbd|li|mark|ol|p|pre|q|s|samp|script|section|small|span|strike|strong|style|sub|sup|table|tbody|"
    "td|th|time|tr|tt|u|ul|var|wbr"
)
# An attribute needs its "=", so that "a <b and c> d" stays; "<" and ">" in a value would make the search quadratic.
_TAG = re.compile(rf"""</?(?P<name>{_ELEMENTS})(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+))*\s*/?>|<!--[^<>]*-->""", re.IGNORECASE)
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>")
_INLINE = re.compile(
    r"a|abbr|acronym|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
)


def plain(text: str) -> str:
    """A title from a feed as plain text on one line: entities undone, also doubled ones, tags of HTML dropped, white
    space folded, control characters and bidi controls dropped. "Me & <3 you" and "a < b" stay as they are."""
    from html import unescape

    text = _clean(text)
    for _ in range(_ROUNDS):
        before = text
        text = _CDATA.sub("", text)
        text = _TAG.sub(_tag_gap, text)
        # Only with its semicolon: "this&region" is no "this®ion".
        text = _ENTITY.sub(lambda entity: unescape(entity[0]), text)
        text = _clean(text)
        if text == before:
            break
    return text


def _tag_gap(tag: re.Match[str]) -> str:
    """What stands where a tag was: words parted by a line break or a paragraph stay parted."""
    return "" if tag["name"] is None or _INLINE.fullmatch(tag["name"].lower()) else " "


# -------------------------------------------------------------------------------------------------------------- URLs

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_ENCODED_SCHEME = re.compile(r"%(?:25)*3a%(?:25)*2f%(?:25)*2f", re.IGNORECASE)
_USER = re.compile(r".*(?:@|%40)", re.IGNORECASE)
_NAMED_USER = re.compile(r"^[^:@]*(?::|%3A).*(?:@|%40)", re.IGNORECASE)
_VALUE = re.compile(r"^(?P<name>.*?)(?:=|%3D)(?!(?:=|%3D)*$)", re.IGNORECASE)
_ENCODED_QUERY = re.compile(r"%3F(?!\.[A-Za-z0-9]{1,5}$|$).*", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_TURN = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_ORDINARY = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._-]{0,15})*")       # too short for a token
_BEFORE_A_SECRET = frozenset({"token", "tokens", "auth", "key", "keys", "apikey", "secret", "private", "password", "access_token"})


def shown_url(url: str) -> str:
    """A URL as it may be shown: user info as ``***@``, the query as ``?…``, no fragment, ``…`` for a part of the path
    that looks like a token. Never raises, whatever the text: it hides rather too much than too little."""
    if len(url) <= LONGEST and _ORDINARY.fullmatch(url) and _BEFORE_A_SECRET.isdisjoint(url.lower().split("/")):
        return url
    url = "%20".join(_clean(url[:_LONGEST_READ]).split())
    if _ENCODED_SCHEME.search(url):
        url = "%20".join(_clean(_decoded(url)).split())
    scheme = _SCHEME.match(url)
    head = scheme[0] if scheme else "//" if url.startswith("//") else ""
    user, rest = _split_user(url[len(head):])
    address, question, query = rest.partition("#")[0].partition("?")
    pieces = _SCHEME.split(address)
    schemes = [head, *_SCHEME.findall(address)]
    whole = "".join(scheme + _shown_path(piece, host=bool(scheme)) for scheme, piece in zip(schemes, pieces, strict=True))
    return _cap(whole[:len(head)] + user + whole[len(head):] + ("?…" if question and query else question))


def _decoded(text: str) -> str:
    """Percent-decoding undone as often as tracking services nest it."""
    for _ in range(_ROUNDS):
        text = unquote(text)
    return text


def _split_user(rest: str) -> tuple[str, str]:
    """What stands for the user info ("" where there is none), and what follows it."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    port = "" if authority.startswith("[") else authority.partition(":")[2]
    # "user:pa/ss@host": a password that should have been encoded ends the authority too early.
    within = rest if port and not port.isdigit() and "@" not in authority else authority
    user = _USER.match(within)
    return ("***@", rest[user.end():]) if user else ("", rest)


def _shown_path(path: str, host: bool) -> str:
    segments = path.split("/")
    first = _NAMED_USER.sub("***@", segments[0]) if host else _shown_segment(segments[0], "")
    return "/".join([first, *(_shown_segment(segment, before) for before, segment in pairwise(segments))])


def _shown_segment(segment: str, before: str) -> str:
    segment = _ENCODED_QUERY.sub("%3F…", _NAMED_USER.sub("***@", segment))
    value = _VALUE.match(segment)
    if value:
        return ("…" if _is_token(value["name"]) else value["name"]) + "=…"
    if segment and (before.lower() in _BEFORE_A_SECRET or _is_token(segment)):
        extension = _EXTENSION.search(segment)
        return "…" + (extension[0] if extension else "")
    return segment


def _is_token(segment: str) -> bool:
    """Whether it looks made by chance: a UUID, or 16 letters and digits in one run that change places often."""
    name = unquote(_EXTENSION.sub("", segment))
    if _UUID.search(name):
        return True
    mixed = len(name) >= 24 and name != name.lower() and name != name.upper() and len(_TURN.findall(name)) >= 5
    return mixed or any(len(_TURN.findall(run)) >= 3 for run in _RUN.findall(name))


# --------------------------------------------------------------------------------------------------------- free text

_OF_ADDRESSES = "=@?/%"         # without any of these a word has no part of a URL in it
_CLOSING = "'\"`)]}>.,;:!”’»"
_SPACED_PASSWORD = re.compile(r"(://)[^\s/@:]{0,100}:(?!\d{1,5}(?:[/?#\s]|$))[^/@]{0,100}(?<!\*\*\*)@")
_QUERY = re.compile(r"\?[^?]*=.*")
_NAMED_SECRET = re.compile(r"(?P<name>(?:token|key|auth|sig|signature|pass|passwd|password|pwd|secret)=).*", re.IGNORECASE)
_BARE_USER = re.compile(r"^(?P<open>['\"(\[{<]*)[^:]*:.*@")


def shown(text: str) -> str:
    """Any text, also of a server or a library, fit for terminal and log: on one line, without control characters, at
    most 500 characters, and what is secret in a URL, whole or in parts, hidden as by :func:`shown_url`."""
    # Most of what is shown is a plain title. Whatever steers a terminal or turns the writing is not printable.
    if text.isprintable() and not any(mark in text for mark in _OF_ADDRESSES):
        return _cap(" ".join(text.split()))
    if len(text) > _LONGEST_READ:
        text = text[:_LONGEST_READ].rsplit(maxsplit=1)[0]
    text = _SPACED_PASSWORD.sub(r"\1***@", _clean(text))
    words = text.split()
    return _cap(" ".join(_shown_word(word, before) for before, word in zip(["", *words], words, strict=False)))


def shown_answer(said: str, *urls: str) -> str:
    """What a server said that was asked for ``urls``, as by :func:`shown`, without what is secret in these, which it may
    repeat, and without what looks like a token."""
    secrets = {form for url in urls for secret in _secrets(url) for form in (secret, unquote(secret), unquote_plus(secret)) if len(form) >= 4}
    if secrets:
        said = re.sub("|".join(map(re.escape, sorted(secrets, key=len, reverse=True))), "…", said, flags=re.IGNORECASE)
    return shown(re.sub(r"[\w-]{16,}", lambda run: "…" if _is_token(run[0]) else run[0], said))


def _secrets(url: str) -> Iterator[str]:
    """What :func:`shown_url` hides, in parts."""
    scheme = _SCHEME.match(url)
    rest = url[len(scheme[0]) if scheme else 0:].partition("#")[0]
    _, after = _split_user(rest)
    yield from re.split("[:@]", rest[:len(rest) - len(after)])
    path, _, query = after.partition("?")
    yield from (value or name for name, _, value in (pair.partition("=") for pair in re.split("[&;]", query)))
    segments = path.split("/")
    yield from (segment for before, segment in pairwise(segments) if _shown_segment(segment, before) != segment)


def _shown_word(word: str, before: str) -> str:
    if not any(mark in word for mark in _OF_ADDRESSES):
        return word
    core = word.rstrip(_CLOSING)
    closing = word[len(core):][-3:]
    if _ENCODED_SCHEME.search(core):
        core = "%20".join(_clean(_decoded(core)).split())
    # What urllib3 says: "HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /feed.xml?token"
    if "?" in core and (core.startswith("/") or before.lower().endswith("url:")):
        return shown_url(core) + closing
    scheme = _SCHEME.search(core)
    if scheme:
        return _shown_bare(core[:scheme.start()]) + shown_url(core[scheme.start():]) + closing
    return _shown_bare(core) + closing


def _shown_bare(core: str) -> str:
    """A word without a scheme: ``user:password@host``, ``name?token=...``, ``token=...``."""
    core = _BARE_USER.sub(r"\g<open>***@", core)
    core = _QUERY.sub("?…", core)
    return _NAMED_SECRET.sub(r"\g<name>…", core)


# ---------------------------------------------------------------------------------------------------------- measures

def size(count: int) -> str:
    """Bytes in words: ``512 B``, ``4.5 kB``, ``12.3 MB``, ``1.2 GB`` (powers of 1000)."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"


def duration(seconds: float) -> str:
    """A length of time in the unit that fits: ``4 s``, ``3 min``, ``2 h``, ``5 days``."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3570:
        return f"{round(whole / 60)} min"
    if whole < 47.5 * 3600:
        return f"{round(whole / 3600)} h"
    return f"{round(whole / 86400)} days"
