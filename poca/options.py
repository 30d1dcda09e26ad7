"""The table of all options of a config file, and how the text of each becomes a value. Pure.

:data:`OPTIONS` is the only place that says which options there are, what they take and what holds without them:
:mod:`poca.config` validates by it, and documentation and the sample are held against it.

A value is always read from its text as it stands in the file, never from what YAML makes of it: ``title: 2024``,
``12:30`` and ``on`` are texts, ``hour: 08`` is 8.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, tzinfo
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from poca import __version__, tagnames, templates

PROJECT_URL = "https://github.com/projectpoca/poca"


class Shape(StrEnum):
    """What kind of YAML node an option takes."""

    ONE = "one value"
    SEVERAL = "one value or a list"
    OPTIONS = "a mapping of options"
    TAGS = "a mapping of tag names to texts"


class Type(NamedTuple):
    """What an option takes.

    ``allowed`` completes the sentence "it must be ...". ``read`` makes a value of a text, for ``SEVERAL`` a frozenset
    of values, and raises ValueError where it cannot: its text, if any, tells what is wrong beyond ``allowed``.
    ``editor`` is what of it a JSON Schema can say of one value, for editors; it never refuses what ``read`` takes,
    letter case of words aside.
    """

    allowed: str
    read: Callable[[str], object] = str
    shape: Shape = Shape.ONE
    editor: Mapping[str, object] = MappingProxyType({"type": ["string", "number", "boolean"]})


class Option(NamedTuple):
    """A row of the table. ``default`` is written as in a config file; None: nothing holds without it."""

    name: str
    section: str                # settings | email | subscription | filters
    type: Type
    default: str | None
    meaning: str
    required: bool = False
    secret: bool = False        # its value is never shown


# --------------------------------------------------------------------------------------------------------------- texts

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")       # in a text of several lines


def _line(written: str) -> str:
    if _CONTROL.search(written):
        raise ValueError("it holds a line break or another control character")
    return written


def _words(written: str) -> str:
    if not _line(written).strip():
        raise ValueError("it is empty")
    return written


def tag_text(written: str) -> str:
    """The value of a tag, which may have the fields of ``rename``. Raises ValueError, also for characters that no tag takes."""
    if _UNSAFE.search(written):
        raise ValueError("it holds a control character")
    if fault := templates.text_fault(written):
        raise ValueError(fault)
    return written


def tag_names() -> Collection[str]:
    """The names that `metadata` takes."""
    return tagnames.TAGS.keys()


def _space(written: str) -> str:
    if "/" in _line(written) or len(written) > 10:
        raise ValueError
    return written


def _header(written: str) -> str:
    if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", written):
        raise ValueError
    return written


def _server(written: str) -> str:
    if re.search(r"[\s/@]", _words(written)):
        raise ValueError
    return written


def _url(written: str) -> str:
    """An address to ask (RFC 3986); white space around it is dropped."""
    url = written.strip()
    if re.search(r"\s", _words(url)):
        raise ValueError("it holds a blank")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("its host or port cannot be read") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("only http and https are fetched")
    if not host or not all(host.rstrip(".").split(".")):
        raise ValueError("it has no host")
    return url


def _pattern(written: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")        # "possible nested set" and the like are no faults
            re.compile(written)
    except re.error as error:
        raise ValueError(str(error)) from None
    except (OverflowError, RecursionError):
        raise ValueError("it is too large") from None
    return written


def _template(written: str) -> str:
    fault = templates.template_fault(_words(written))
    if fault:
        raise ValueError(fault)
    return written


# ------------------------------------------------------------------------------------------------- numbers and choices

def _whole(low: int, high: int, meant: str = "") -> Type:
    def read(written: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,15}", written.strip()) or not low <= int(written) <= high:
            raise ValueError
        return int(written)
    bounds = {"type": ["integer", "string"], "minimum": low, "maximum": high, "pattern": r"^\s*[+-]?[0-9]{1,15}\s*$"}
    return Type(f"a whole number from {low} to {high}" + (f" ({meant})" if meant else ""), read, editor=bounds)


def _number(low: float, high: float, meant: str = "") -> Type:
    def read(written: str) -> float:
        if not re.fullmatch(r"[+-]?([0-9]{1,15}(\.[0-9]{0,15})?|\.[0-9]{1,15})", written.strip()) or not low <= float(written) <= high:
            raise ValueError
        return float(written)
    bounds = {"type": ["number", "string"], "minimum": low, "maximum": high, "pattern": r"^\s*[+-]?[0-9]*\.?[0-9]*\s*$"}
    return Type(f"a number from {low:.15g} to {high:.15g}" + (f" ({meant})" if meant else ""), read, editor=bounds)


_TRUTHS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def _truth(written: str) -> bool:
    truth = _TRUTHS.get(written.strip().lower())
    if truth is None:
        raise ValueError
    return truth


def _word(*words: str) -> Callable[[str], str]:
    def read(written: str) -> str:
        word = " ".join(written.lower().split())
        if word not in words:
            raise ValueError
        return word
    return read


def _choice(*words: str) -> Type:
    return Type(f"{', '.join(words[:-1])} or {words[-1]}", _word(*words), editor={"enum": list(words)})


def _track_numbering(written: str) -> str:
    word = " ".join(written.lower().split())
    return "if missing" if word == "if missing" else "yes" if _truth(word) else "no"


# ------------------------------------------------------------------------------------------------------ days and zones

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _weekdays(written: str) -> frozenset[int]:
    text = written.strip().lower()
    if re.fullmatch(r"[0-6]+", text):
        return frozenset(map(int, text))
    days = [number for number, name in enumerate(_WEEKDAYS) if len(text) >= 3 and name.startswith(text)]
    if not days:
        raise ValueError
    return frozenset(days)


def _day(written: str) -> date:
    parts = re.fullmatch(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})", written.strip())
    if not parts:
        raise ValueError
    try:
        return date(*map(int, parts.groups()))
    except ValueError:
        raise ValueError("there is no such day") from None


def _zone(written: str) -> tzinfo | None:
    """None for the machine's own time."""
    name = written.strip()
    if name.lower() in ("local", "utc"):
        return UTC if name.lower() == "utc" else None
    from zoneinfo import ZoneInfo, available_timezones
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):         # unknown; no name of a zone; a folder of zones
        near = nearest(name, available_timezones(), 3)
        raise ValueError(f"the nearest known: {', '.join(near)}" if near else "") from None


def _each(one: Type, form: str) -> Type:
    return Type(form, lambda written: frozenset([one.read(written)]), Shape.SEVERAL, one.editor)


def nearest(word: str, known: Collection[str], count: int = 1) -> list[str]:
    """The known words that look most like this one, letter case aside."""
    import difflib
    folded = {name.lower(): name for name in known}
    return [folded[name] for name in difflib.get_close_matches(word.lower(), folded, count)]


# ----------------------------------------------------------------------------------------------------------- the table

# Editors read YAML 1.2, to which yes and no are texts.
_YES_NO = Type("yes or no", _truth, editor={"enum": [*_TRUTHS, True, False]})
_LINE = Type("a text on one line", _line)
_WORDS = Type("a text on one line, not empty", _words)
_PATH = Type("a path", _words)
_PATTERN = Type("a regular expression", _pattern)
_DAY = Type("a day such as 2024-01-31", _day, editor={"type": "string", "pattern": r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*$"})
_WEEK = Type("a text of the digits 0 (Monday) to 6 such as '024', or a list of numbers or names (mon ...)", _weekdays, Shape.SEVERAL,
             {"type": ["string", "integer"], "minimum": 0, "pattern": r"^\s*([0-6]+|[A-Za-z]{3,9})\s*$"})
_NUMBERING = {"enum": ["if missing", *_TRUTHS, True, False]}
_ADDRESS = {"type": "string", "pattern": r"^\s*[Hh][Tt][Tt][Pp][Ss]?://\S+\s*$"}
_MINUTES = _number(0, 100_000, "minutes")

OPTIONS: tuple[Option, ...] = (
    Option("base_dir", "settings", _PATH, None, "the folder of all episodes; ~ and $VARIABLES are expanded, relative to the config file",
           required=True),
    Option("state_dir", "settings", _PATH, None, "history, locks and log, on a local disk; without it $XDG_STATE_HOME/poca"),
    Option("filenames", "settings", _choice("permissive", "ntfs", "restrictive"), "ntfs", "which characters names may have"),
    Option("id3v2version", "settings", _whole(3, 4)._replace(allowed="3 or 4"), "4", "the version of the ID3 tags that are written"),
    Option("id3removev1", "settings", _YES_NO, "yes", "drop ID3v1 tags where tags are written"),
    Option("useragent", "settings", Type("a text of ASCII letters, digits and signs", _header), f"poca/{__version__} (+{PROJECT_URL})",
           "what poca calls itself to servers"),
    Option("parallel", "settings", _whole(1, 1000), "16", "feeds asked at once"),
    Option("per_host", "settings", _whole(1, 1000), "4", "requests at once to one host"),
    Option("host_delay", "settings", _number(0, 3600, "seconds"), "0", "seconds between the starts of two requests to one host"),
    Option("timeout", "settings", _number(0.1, 3600, "seconds"), "30", "seconds to connect, and between two packets"),
    Option("min_speed", "settings", _whole(0, 1_000_000_000, "bytes a second; 0: any speed will do"), "1000",
           "bytes a second; a download slower than this over `timeout` counts as stalled; 0: never"),
    Option("max_feed_mb", "settings", _number(0.001, 4096, "MB"), "64", "a feed larger than this, unpacked, is an error"),
    Option("max_episode_mb", "settings", _number(0, 1_000_000, "MB; 0: no limit"), "0", "a download larger than this is an error; 0: no limit"),
    Option("min_free_mb", "settings", _number(0, 1_000_000_000, "MB"), "256", "downloads leave at least this much of the disk free"),
    Option("timezone", "settings", Type("local, UTC or a name such as Europe/Berlin", _zone), "local",
           "the zone of dates in names, of hour and weekdays"),
    Option("follow_moves", "settings", _YES_NO, "yes", "a feed that moved for good gets its new URL in the config"),
    Option("logfile", "settings", _PATH, "poca.log", "inside state_dir, or a path; null: none"),
    Option("email", "settings", Type("a mapping of the options of the mail", shape=Shape.OPTIONS), None, "how -e sends the log of a run"),

    Option("fromaddr", "email", _WORDS, None, "the sender's address", required=True),
    Option("toaddr", "email", _WORDS, None, "the receiver's address", required=True),
    Option("host", "email", Type("the name of a mail server", _server), "localhost", "the mail server"),
    Option("port", "email", _whole(1, 65535), "25", "its port; without it 587 when starttls"),
    Option("starttls", "email", _YES_NO, "no", "encrypt the connection"),
    Option("user", "email", _WORDS, None, "the name to log in with; without it fromaddr, where there is a password"),
    Option("password", "email", _WORDS, None, "the password to log in with", secret=True),
    Option("password_command", "email", _WORDS, None, "a command that prints the password, instead of it", secret=True),
    Option("only_errors", "email", _YES_NO, "no", "mail only errors"),
    Option("threshold", "email", _whole(1, 1_000_000), "1", "log entries to gather before a mail goes out; they are kept between runs"),

    Option("title", "subscription", _WORDS, None, "the name of the folder, and the name everywhere", required=True),
    Option("url", "subscription", Type("an address that starts with http:// or https://", _url, editor=_ADDRESS), None, "the address of the feed",
           required=True),
    Option("category", "subscription", _LINE, None, "a word for lists; no effect on folders"),
    Option("state", "subscription", _choice("active", "inactive"), "active", "an inactive subscription is not asked"),
    Option("max_number", "subscription", _whole(0, 1_000_000, "0: no limit"), "0", "the most episodes to hold; 0: no limit"),
    Option("max_days", "subscription", _whole(0, 100_000, "days; 0: no limit"), "0",
           "episodes older than this many days are not held; 0: no limit; not with from_the_top"),
    Option("from_the_top", "subscription", _YES_NO, "no", "start with the oldest episode"),
    Option("track_numbering", "subscription", Type("no, yes or if missing", _track_numbering, editor=_NUMBERING), "no",
           "number the tracks of this subscription"),
    Option("metadata", "subscription", Type("a text or a list of texts for each tag", tag_text, Shape.TAGS), None, "tags to set; '' removes one"),
    Option("rename", "subscription", Type("a template such as '{date}_{episode_title}'", _template), None,
           "how files are named; without it as in the enclosure's URL"),
    Option("space", "subscription", Type("at most 10 characters, and no slash", _space), " ", "what a space in a name becomes"),
    Option("cover", "subscription", _YES_NO, "yes", "keep cover.jpg or cover.png in the folder"),
    Option("filters", "subscription", Type("a mapping of filters", shape=Shape.OPTIONS), None, "which episodes are downloaded"),

    Option("title", "filters", _PATTERN, None, "searched in the episode's title"),
    Option("exclude_title", "filters", _PATTERN, None, "the same, for episodes to pass over"),
    Option("filename", "filters", _PATTERN, None, "searched in the original file name"),
    Option("exclude_filename", "filters", _PATTERN, None, "the same, for episodes to pass over"),
    Option("hour", "filters", _each(_whole(0, 23), "an hour from 0 to 23, or a list of them"), None, "the hours of publication"),
    Option("weekdays", "filters", _WEEK, None, "the days of publication; 0 is Monday"),
    Option("after_date", "filters", _DAY, None, "published on that day or later"),
    Option("before_date", "filters", _DAY, None, "published before that day"),
    Option("min_minutes", "filters", _MINUTES, None, "at least so long by itunes:duration"),
    Option("max_minutes", "filters", _MINUTES, None, "at most so long by itunes:duration"),
    Option("episode_types", "filters", _each(_choice("full", "bonus", "trailer"), "full, bonus or trailer, or a list of them"), None,
           "the kinds by itunes:episodeType; unknown counts as full"),
    Option("seasons", "filters", _each(_whole(0, 100_000), "the number of a season, or a list of them"), None, "the seasons by itunes:season"),
)

SECTIONS: dict[str, dict[str, Option]] = {}
for _option in OPTIONS:
    SECTIONS.setdefault(_option.section, {})[_option.name] = _option


@cache
def defaults(section: str) -> Mapping[str, object]:
    """The values that hold in a section where the file says nothing."""
    return {option.name: option.type.read(option.default) for option in SECTIONS[section].values() if option.default is not None}
