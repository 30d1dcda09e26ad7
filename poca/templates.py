"""Templates of names and tags: what is wrong with one, and what becomes of it for an entry. Pure.

What comes of a template here is as the feed says it; what makes a name of it that a disk takes is in :mod:`poca.naming`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from poca import media
from poca.model import Entry, Subscription

FIELDS = ("title", "episode_title", "date", "uid", "org_name", "season", "episode", "author")


class Named(NamedTuple):
    """An entry that needs a name, and the key of its episode."""

    key: str                    # hex digits
    entry: Entry


# ----------------------------------------------------------------------------------------------------- what fields say

_SCRIPT = re.compile(r"\.(?:php\d?|aspx?|ashx|jsp|cgi|pl|html?)$", re.IGNORECASE)


def original_name(url: str) -> str:
    """The last part of a URL's path, percent-decoded (UTF-8, else Latin-1); "" where the path has none."""
    path = url.strip().partition("#")[0].partition("?")[0]
    last = path.partition("://")[2].partition("/")[2].rstrip("/").rpartition("/")[2]
    if last.isascii() and "%" not in last:
        return last
    raw = unquote_to_bytes(last.encode("utf-8", "replace"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def original_parts(url: str) -> tuple[str, str]:
    """The name in a URL without its extension, and the extension with its dot, "" where it is none of audio or video."""
    name = original_name(url).strip()
    extension = media.media_extension(name)
    return (name[:-len(extension)], extension) if extension else (_SCRIPT.sub("", name), "")


def moment(instant: int | None, zone: tzinfo | None) -> datetime | None:
    """An instant as the clocks of ``zone`` (None: the machine's own) show it; None where no calendar goes as far."""
    if instant is None:
        return None
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant)).astimezone(zone)
    except (OverflowError, ValueError, OSError):
        return None


# ------------------------------------------------------------------------------------------------------- templates

class Field(NamedTuple):
    """A field in a template, with what follows its colon, "" for nothing."""

    name: str
    format: str


Part = tuple[str | Field, ...]          # of a path
_TOKEN = re.compile(r"(?P<double>\{\{|\}\})|\{(?P<field>[^{}]*)\}|(?P<brace>[{}])|(?P<text>[^{}]+)")
_BRACKETS = ("()", "[]", "{}")
_NUMBER_FORMAT = re.compile(r"0?[0-9]?d?")
_DIRECTIVE = re.compile(r"%(-?)(.?)", re.DOTALL)
_DIRECTIVES = "aAbBcdFGHIjmMpSTuUVwWxXyYzZ"
_PADDED = "dHIjmMSUVWy"
_TWO_DIGITS = {"m": "month", "d": "day", "H": "hour", "M": "minute", "S": "second"}


def template_fault(template: str) -> str:
    """What is wrong with a value of ``rename``, a sentence; "" where nothing is."""
    if fault := text_fault(template):
        return fault
    parts = parsed(template)
    if any(part in ((".",), ("..",)) for part in parts):
        return f"{template!r} has . or .. as a folder; episodes stay in the folder of their subscription"
    if template and not parts[0]:
        return f"{template!r} begins with /; names are relative to the folder of the subscription"
    if template and not parts[-1]:
        return f"{template!r} ends with /, so it names a folder and no file"
    return ""


def text_fault(template: str) -> str:
    """What is wrong with the fields in a text that is no name, a value of ``metadata``; "" where nothing is."""
    for token in _TOKEN.finditer(template):
        if token["brace"]:
            return f"a single {token['brace']} in {template!r}; a field is {{name}}, and a brace itself is written twice"
        if token["field"] is not None and (fault := _field_fault(token["field"])):
            return fault
    return ""


def _field_fault(text: str) -> str:
    name, colon, form = text.partition(":")
    known = ", ".join(f"{{{field}}}" for field in FIELDS)
    if name not in FIELDS:
        plain = re.match(r"\w*", name.strip())
        if plain and plain[0] in FIELDS:
            return f"{{{text}}} is no field; write {{{plain[0]}}}"
        from difflib import get_close_matches

        near = get_close_matches(name.strip().lower(), FIELDS, n=1)
        hint = f"perhaps {{{near[0]}}} was meant; " if near else ""
        return f"unknown field {{{text}}}; {hint}the fields are {known}"
    if not colon:
        return ""
    if name == "date":
        bad = next((found[0] for found in _DIRECTIVE.finditer(form) if not _directive_known(found)), "")
        if bad or "%" not in form:
            return f"{bad or form!r} in {{{text}}} is no date format; use %Y, %m, %d, %H, %M and the like"
        if any(part.strip() in ("", ".", "..") for part in form.split("/")):
            return f"{{{text}}} has an empty, . or .. folder in its format"
        return ""
    if name in ("season", "episode"):
        return "" if _NUMBER_FORMAT.fullmatch(form) else f"{form!r} in {{{text}}} is no format for a number; use {{{name}:03}} for three digits"
    return f"{{{name}}} takes no format; only {{date}}, {{season}} and {{episode}} do"


def _directive_known(found: re.Match[str]) -> bool:
    flag, letter = found.groups()
    return bool(letter) and (letter in _PADDED if flag else letter in _DIRECTIVES + "%")


@lru_cache(maxsize=256)
def parsed(template: str) -> tuple[Part, ...]:
    """The parts of the path that a faultless template makes, folders first. A / in the format of a date parts, too."""
    parts: list[list[str | Field]] = [[]]
    for token in _TOKEN.finditer(template):
        if token["field"] is not None:
            name, _, form = token["field"].partition(":")
            pieces: Iterable[str | Field] = [Field(name, piece) for piece in form.split("/")]
        else:
            pieces = (token["double"] or token["brace"] or token["text"])[: 1 if token["double"] else None].split("/")
        for index, piece in enumerate(pieces):
            if index:
                parts.append([])
            _append(parts[-1], piece)
    return tuple(map(tuple, parts))


def _append(part: list[str | Field], piece: str | Field) -> None:
    if isinstance(piece, str) and part and isinstance(last := part[-1], str):
        part[-1] = last + piece
    elif piece:
        part.append(piece)


class Source(NamedTuple):
    """What the fields of a template draw from."""

    named: Named
    subscription: Subscription
    original: str               # the name in the URL, without its extension


def value(field: Field, source: Source) -> str:
    """What stands for a field, as it came. {uid} is the guid, and the key of an episode whose feed gives none."""
    entry = source.named.entry
    match field.name:
        case "title":
            return source.subscription.title
        case "episode_title":
            return entry.title
        case "date":
            return _dated(moment(entry.published, source.subscription.timezone), field.format or "%F")
        case "uid":
            return entry.guid or source.named.key
        case "org_name":
            return source.original
        case "author":
            return entry.author
        case _:
            number = entry.season if field.name == "season" else entry.episode
            return "" if number is None else format(number, field.format)


def _dated(when: datetime | None, form: str) -> str:
    """strftime one directive after another: the C library knows no years of three digits, and not every letter."""
    if when is None:
        return ""
    return day(when) if form == "%F" else _DIRECTIVE.sub(partial(_directive, when), form)


def day(when: datetime) -> str:
    """As %F, also for years of three digits."""
    return f"{when.year:04}-{when.month:02}-{when.day:02}"


def _directive(when: datetime, found: re.Match[str]) -> str:
    flag, letter = found.groups()
    match letter:
        case "Y":
            return f"{when.year:04}"
        case "m" | "d" | "H" | "M" | "S" if not flag:
            return f"{getattr(when, _TWO_DIGITS[letter]):02}"
        case "F":
            return day(when)
        case "T":
            return f"{when.hour:02}:{when.minute:02}:{when.second:02}"
        case _:
            text = when.strftime("%" + letter)
            return (text.lstrip("0") or "0") if flag else text


def filled(part: Part, source: Source, has_value: Callable[[str], object]) -> str:
    """A part with its fields filled in. One without a value takes the literal text before it along, at the start that
    after it, and the second of a pair of brackets around it."""
    pieces = [piece if isinstance(piece, str) else value(piece, source) for piece in part]
    literal = [isinstance(piece, str) for piece in part] + [False]
    for index, made in enumerate(pieces):
        if literal[index] or has_value(made):
            continue
        pieces[index] = ""
        if index == 0 and literal[1]:
            pieces[1] = ""
        elif index and literal[index - 1]:
            if literal[index + 1] and pieces[index - 1][-1:] + pieces[index + 1][:1] in _BRACKETS:
                pieces[index + 1] = pieces[index + 1][1:]
            pieces[index - 1] = ""
    return "".join(pieces)


def filled_in(template: str, subscription: Subscription, named: Named) -> str:
    """A text that is no name, a value of ``metadata``, its fields filled in as the feed tells them; without fault."""
    source = Source(named, subscription, original_parts(named.entry.url)[0])
    return "/".join(filled(part, source, str.strip) for part in parsed(template))
