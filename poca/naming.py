"""Names of folders and files: from a template and an entry to paths that any disk takes, each one's own. Pure.

Whatever a feed says, a path from here stays below its subscription's folder; each part of it is NFC, at most 255 bytes with
the extension, never empty, ``.`` or ``..``, and starts with no dot, dash or invisible character. Control characters and
those that turn the writing are dropped at every level of ``filenames``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from poca import media, templates
from poca.model import Subscription
from poca.templates import Field, Named, Part, Source

LEVELS = ("permissive", "ntfs", "restrictive")      # of `filenames`, the strictest last
LONGEST = 255                   # bytes of a name, extension included
SHORT = 140                     # bytes of a name where that was too long (eCryptfs takes 143)
_LAST_STAGE = 3
_ROOM_FOR_EXTENSION = 10        # bytes, where only the answer will tell the extension


# ------------------------------------------------------------------------------------------------------- one name

_EVERYWHERE: dict[int, str | None] = {
    **dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)]),
    **dict.fromkeys([*range(9, 14), 0x85, 0x2028, 0x2029], " "),
    **dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070)]),
    **dict.fromkeys([0xAD, 0x200B, 0xFEFF, *range(0xFFF9, 0xFFFC), 0xFFFD, 0xFFFE, 0xFFFF]),
    **dict.fromkeys(range(0xD800, 0xE000)),
    ord("/"): "-",              # dropped it would make "Part 12" of "Part 1/2"
}
_ON_NTFS: dict[int, str | None] = {**_EVERYWHERE, **dict.fromkeys(map(ord, '"*:<>?')), ord("\\"): "-", ord("|"): "-"}
# translate() would look every letter up.
_TREATED = re.compile(f"[\ud800-\udfff{re.escape(''.join(chr(code) for code in _ON_NTFS if not 0xD800 <= code < 0xE000))}]")
_COLON = re.compile(r"(?<=\w):(?=\w)")
_DEVICES = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$", *(port + digit for port in ("COM", "LPT") for digit in "0123456789¹²³")]
)
_LATIN = str.maketrans({
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d",
    "Ð": "D", "þ": "th", "Þ": "Th", "ħ": "h", "Ħ": "H", "ı": "i", "ŋ": "ng", "Ŋ": "Ng", "ŧ": "t", "Ŧ": "T", "ɓ": "b", "ə": "e", "Ə": "E",
    "‐": "-", "‑": "-", "–": "-", "—": "-", "−": "-", "⁄": "-",
})
_NOT_RESTRICTIVE = re.compile(r"[^A-Za-z0-9_\s-]+")
_PLAIN = re.compile(r"[A-Za-z0-9]")
_CLEAN = re.compile(r"[A-Za-z0-9]+(?:[ _-][A-Za-z0-9]+)*")      # a name at every level, as most are
_NO_BEGINNING = frozenset({"Mn", "Me", "Cf", "Cc", "Zs"})


def _clean(text: str, level: str) -> str:
    """One part of a path, whatever its length; "" where nothing is left that could be a name."""
    if _CLEAN.fullmatch(text) and text.upper() not in _DEVICES:
        return text.replace(" ", "_") if level == "restrictive" else text
    text = unicodedata.normalize("NFC", text)
    refused = _EVERYWHERE
    if level != "permissive":
        refused, text = _ON_NTFS, _COLON.sub("-", text)
    text = _TREATED.sub(lambda found: refused.get(ord(found[0]), found[0]) or "", text)
    if level == "restrictive":
        text = _NOT_RESTRICTIVE.sub("", unicodedata.normalize("NFKD", text.translate(_LATIN)))
    # Again, since what was dropped may have kept a letter from its accent.
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    text = _trim(text, level)
    return text.replace(" ", "_") if level == "restrictive" else text


def _trim(text: str, level: str) -> str:
    """Without what a name must not begin or end with, and no device of DOS."""
    begin = 0
    while begin < len(text) and (text[begin] in " .-" or (not text[begin].isalnum() and unicodedata.category(text[begin]) in _NO_BEGINNING)):
        begin += 1
    text = text[begin:].rstrip(" " if level == "permissive" else " .")
    stem = text.partition(".")[0].rstrip(" ")
    if level != "permissive" and len(stem) < 8 and stem.upper() in _DEVICES:
        text = f"{stem}_{text[len(stem):]}"
    return text


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _fit(text: str, room: int, level: str) -> str:
    """Cut to ``room`` bytes, never within what a reader takes for one letter, as long as one letter fits at all."""
    if _bytes(text) <= room:
        return text
    end = size = 0
    for letter in _letters(text):
        size += _bytes(letter)
        if size > room:
            break
        end += len(letter)
    return _trim(text[:end] or text.encode()[:room].decode(errors="ignore"), level)


def _letters(text: str) -> Iterator[str]:
    """Grapheme clusters, as far as names need them (UAX 29): combining marks, joined emoji, flags, Hangul by parts."""
    begin, flags = 0, 0
    for at in range(1, len(text)):
        flags = flags + 1 if "\U0001f1e6" <= text[at - 1] <= "\U0001f1ff" else 0
        if not _joins(text[at - 1], text[at], flags):
            yield text[begin:at]
            begin = at
    yield text[begin:]


def _joins(before: str, letter: str, flags: int) -> bool:
    if letter.isascii():
        return False
    return (
        before == "\u200d" or letter in "\u200c\u200d"
        or "\U0001f3fb" <= letter <= "\U0001f3ff"           # tones of skin
        or "\U000e0020" <= letter <= "\U000e007f"           # tags, in flags of regions
        or "\u1160" <= letter <= "\u11ff"
        or ("\U0001f1e6" <= letter <= "\U0001f1ff" and flags % 2 == 1)
        or unicodedata.category(letter) in ("Mn", "Mc", "Me")
    )


def folder(title: str, level: str) -> str:
    """The name of a subscription's folder. A title of which nothing is left gives ``podcast-`` and six hex digits."""
    name = _fit(_clean(title, level), LONGEST, level)
    if not name:
        import hashlib

        name = "podcast-" + hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return name


def fold(path: str) -> str:
    """A path as some disks compare it: without regard to letter case and to how accents are composed."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _rendered(part: Part, source: Source, level: str) -> str:
    """One part of the path."""
    space = source.subscription.space
    if len(part) == 1 and isinstance(part[0], Field) and space == " ":
        return _clean(templates.value(part[0], source), level)       # which is "" where the field has no value
    text = templates.filled(part, source, lambda made: _PLAIN.search(made) or _clean(made, level))
    return _clean(text if space == " " else space.join(text.split()), level)


# -------------------------------------------------------------------------------------------------- names together

class Name(NamedTuple):
    """The name that an entry is to have, at stage 0 as the template makes it, at 1 with its date, at 2 with six digits of
    its key, at 3 with all of them."""

    named: Named
    subscription: Subscription
    level: str
    folders: tuple[str, ...]
    leaf: str
    extension: str              # with its dot; "" where only the answer will tell
    stage: int = 0

    @property
    def ladder(self) -> tuple[str, ...]:
        """Paths relative to base_dir, without extension: the planned one first, then what to try where that is taken,
        too long or refused, down to date and key."""
        rungs = [self._replace(stage=stage).path() for stage in range(self.stage, max(self.stage, 2) + 1)]
        rungs.append(self.path(SHORT))
        for level in LEVELS[LEVELS.index(self.level) + 1:]:
            (stricter,) = _at_first([self.named], self.subscription, level)
            stricter = stricter._replace(stage=self.stage)
            rungs += [stricter.path(), stricter.path(SHORT)]
        return tuple(dict.fromkeys([*rungs, f"{self.folders[0]}/{_last_resort(self.day, self.named.key)}"]))

    @property
    def day(self) -> str:
        """"" without a date."""
        return _day_of(self.named, self.subscription)

    def path(self, longest: int = LONGEST) -> str:
        """Relative to base_dir, without extension; no part of it has more than ``longest`` bytes."""
        room = longest - (len(self.extension) or _ROOM_FOR_EXTENSION)
        key = self.named.key
        suffix = "" if self.stage < 2 else f"-{key[:6]}" if self.stage == 2 else f"-{key}"
        leaf = _fit(self.leaf, room - len(suffix), self.level)
        if self.stage and (day := self.day) and day not in leaf:
            suffix = f"-{day}{suffix}"
            leaf = _fit(self.leaf, room - len(suffix), self.level)
        below = [_fit(name, longest, self.level) for name in self.folders[1:]] if len(self.folders) > 1 else ()
        return "/".join((self.folders[0], *below, leaf + suffix))


def _day_of(named: Named, subscription: Subscription) -> str:
    when = templates.moment(named.entry.published, subscription.timezone)
    return templates.day(when) if when else ""


def _last_resort(day: str, key: str) -> str:
    return f"{day}-{key[:9]}" if day else key[:9]


def _at_first(those: Iterable[Named], subscription: Subscription, level: str) -> Iterator[Name]:
    """Their names before these are held against each other."""
    parts = templates.parsed(subscription.rename or "{org_name}")
    home = subscription.folder or folder(subscription.title, subscription.filenames)
    for named in those:
        original, extension = templates.original_parts(named.entry.url)
        source = Source(named, subscription, original)
        *folders, leaf = [_rendered(part, source, level) for part in parts]
        if not leaf:
            leaf = _rendered((Field("org_name", ""),), source, level) or _last_resort(_day_of(named, subscription), named.key)
        extension = extension or media.extension_of_type(named.entry.mime)
        yield Name(named, subscription, level, (home, *filter(None, folders)), leaf, extension)


def plan_names(subscription: Subscription, named: Sequence[Named], taken: Collection[str]) -> dict[str, Name]:
    """A name for each entry, by key; ``rename`` must be without fault.

    ``taken``: recorded paths, with their extensions. Where names would be alike, to each other or to one that is taken,
    all entries concerned bear their dates, and where that is not enough digits of their keys. The result does not
    depend on the order of the entries.
    """
    names = {name.named.key: name for name in _at_first(named, subscription, subscription.filenames)}
    stems = {key: fold(name.path()) for key, name in names.items()}
    taken_paths = {fold(path) for path in taken}
    taken_stems = {path.removesuffix(media.media_extension(path)) for path in taken_paths}
    if len(set(stems.values())) == len(stems) and taken_stems.isdisjoint(stems.values()):
        return names
    while True:
        alike: defaultdict[str, list[str]] = defaultdict(list)
        for key, stem in stems.items():
            alike[stem].append(names[key].extension)
        rising = [key for key, stem in stems.items() if names[key].stage < _LAST_STAGE and _clashes(
            names[key].extension, stem, alike[stem], taken_paths, taken_stems)]
        if not rising:
            return names
        for key in rising:
            names[key] = names[key]._replace(stage=names[key].stage + 1)
            stems[key] = fold(names[key].path())


def _clashes(extension: str, stem: str, alike: Sequence[str], taken_paths: Collection[str], taken_stems: Collection[str]) -> bool:
    """Whether a name is alike to another or to what is taken. ``alike``: the extensions of all that have this stem, its
    own among them; one that is not known yet may become any."""
    if not extension:
        return len(alike) > 1 or stem in taken_stems
    return stem + extension in taken_paths or "" in alike or alike.count(extension) > 1
