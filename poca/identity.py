"""Which entry of a feed is which episode of the history, and in what order episodes stand. Pure.

Nothing that a feed says of an entry is reliable for long: guids change with the host, URLs with the tracker, titles with
a typo, dates with an edit. So entries and records are held against each other by the strongest evidence first, and each
record can be claimed once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from poca.model import Entry, Episode

DAY = 86_400
LONG_AGO = -(1 << 60)           # before any date: stands for "no date at all"


class Known(NamedTuple):
    """An entry, the key of its episode, its record where the history has one, and its place: episodes sort by
    ``place``, the oldest first. ``placed`` is the date in it, None where the feed has no date to go by."""

    entry: Entry
    key: str
    record: Episode | None
    placed: int | None
    place: tuple[int, int]


def identify(entries: Sequence[Entry], records: Sequence[Episode], now: int) -> tuple[Known, ...]:
    """Each entry with its record, in feed order; an entry that the feed lists twice stands once."""
    listed = _once(entries)
    found = _matches(listed, records)
    places = _places(listed, found, now)
    taken = {record.key for record in records}
    known = []
    for index, entry in enumerate(listed):
        record = found.get(index)
        key = record.key if record else _new_key(entry, taken)
        taken.add(key)
        known.append(Known(entry, key, record, *places[index]))
    return tuple(known)


def usable_date(published: int | None, now: int) -> int | None:
    """A date more than a day in the future is none."""
    return published if published is not None and published <= now + DAY else None


def _once(entries: Iterable[Entry]) -> list[Entry]:
    """The entries without those listed again: one guid (or none), one URL, and one title or one date."""
    entries = list(entries)
    if len({(entry.guid, entry.url) for entry in entries}) == len(entries):
        return entries
    listed: list[Entry] = []
    seen: set[tuple[object, ...]] = set()
    for entry in entries:
        signs: set[tuple[object, ...]] = {(entry.guid, entry.url, sign) for sign in (entry.title, entry.published) if sign not in ("", None)}
        signs = signs or {(entry.guid, entry.url)}
        if not seen & signs:
            listed.append(entry)
        seen |= signs
    return listed


# ------------------------------------------------------------------------------------------------------- identity

class _Evidence(NamedTuple):
    """What makes an entry and a record one: equal values of these two functions; None is evidence of nothing."""

    of_entry: Callable[[Entry], Hashable]
    of_record: Callable[[Episode], Hashable]
    unless: Callable[[Entry, Episode], bool] = lambda entry, record: False


def _both(one: str, other: str | int | None) -> Hashable:
    return (one, other) if one and other not in ("", None) else None


def _broadcast_later(entry: Entry, record: Episode) -> bool:
    """An hourly bulletin bears one title at one URL for ever: under a new guid and a later date it is a new one."""
    dates = [date for date in (record.published, record.seen_published) if date is not None]
    return entry.published is not None and bool(dates) and entry.published > max(dates)


# A date agrees when it is the one first recorded or the one that the feed gave last.
GUID = _Evidence(lambda e: e.guid, lambda r: r.guid or None)
SAME = _Evidence(lambda e: (e.guid, e.url, e.title, e.published), lambda r: (r.guid, r.url, r.title, r.seen_published))
ALL = _Evidence(lambda e: (e.url, e.title, e.published), lambda r: (r.url, r.title, r.seen_published))
URL = _Evidence(lambda e: e.url, lambda r: r.url)
TITLE_DATE = (_Evidence(lambda e: _both(e.title, e.published), lambda r: _both(r.title, r.seen_published)),
              _Evidence(lambda e: _both(e.title, e.published), lambda r: _both(r.title, r.published)))
URL_DATE = (_Evidence(lambda e: _both(e.url, e.published), lambda r: _both(r.url, r.seen_published)),
            _Evidence(lambda e: _both(e.url, e.published), lambda r: _both(r.url, r.published)))
URL_TITLE = _Evidence(lambda e: _both(e.url, e.title), lambda r: _both(r.url, r.title), _broadcast_later)


def _matches(listed: Sequence[Entry], records: Sequence[Episode]) -> dict[int, Episode]:
    """The entries' records, by the entries' index. A guid that several share, now or in the history, identifies none."""
    if not records:
        return {}
    guids, urls = Counter(entry.guid for entry in listed), Counter(entry.url for entry in listed)
    recorded = Counter(record.guid for record in records)
    entries = dict(enumerate(listed))
    with_guid = {index: entry for index, entry in entries.items() if entry.guid and guids[entry.guid] == 1 and recorded[entry.guid] <= 1}
    without = {index: entry for index, entry in entries.items() if index not in with_guid}
    one_url = {index: entry for index, entry in without.items() if urls[entry.url] == 1}
    free = {record.key: record for record in records}
    found: dict[int, Episode] = {}
    for those, evidence in ((with_guid, GUID), (without, SAME), (without, ALL), (one_url, URL), *((without, e) for e in TITLE_DATE)):
        _pair(those, free, found, evidence)
    moved = {key: record for key, record in free.items() if record.guid not in guids}
    for evidence in (*TITLE_DATE, *URL_DATE, URL_TITLE):
        _pair(with_guid, moved, found, evidence)
    return found


def _pair(entries: Mapping[int, Entry], free: dict[str, Episode], found: dict[int, Episode], evidence: _Evidence) -> None:
    """Moves records from ``free`` to ``found``. Several of one value are paired in their order: which is which does
    not matter as much as that none is taken for new."""
    if not free:
        return
    offered: dict[Hashable, list[Episode]] = {}
    for record in free.values():
        if (value := evidence.of_record(record)) is not None:
            offered.setdefault(value, []).append(record)
    for index, entry in entries.items():
        those = offered.get(evidence.of_entry(entry)) if index not in found else None
        match = next((record for record in those or () if not evidence.unless(entry, record)), None)
        if those and match:
            those.remove(match)
            found[index] = free.pop(match.key)


def _new_key(entry: Entry, taken: set[str]) -> str:
    """16 hex digits of what tells this entry from all others."""
    key = _key(entry.guid or entry.url)
    if key not in taken:
        return key
    for salt in range(1, len(taken) + 2):
        key = _key("\n".join((entry.guid, entry.url, entry.title, str(entry.published), str(salt))))
        if key not in taken:
            return key
    raise AssertionError("as many keys taken as tried")


def _key(signs: str) -> str:
    return hashlib.sha256(signs.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# ---------------------------------------------------------------------------------------------------------- order

def _places(listed: Sequence[Entry], found: Mapping[int, Episode], now: int) -> list[tuple[int | None, tuple[int, int]]]:
    """For each entry its ``placed`` and ``place``: by date, feed order between equals. One without a usable date takes
    that of its neighbour in the feed: the one before it, else the one after it."""
    dates = [usable_date(entry.published, now) for entry in listed]
    steps = [later - earlier for earlier, later in pairwise(date for date in dates if date is not None)]
    oldest_first = sum(step > 0 for step in steps) > sum(step < 0 for step in steps)
    neighbours = _filled(dates)
    places = []
    for index, date in enumerate(neighbours):
        record = found.get(index)
        placed = record.placed if record and record.placed is not None else date
        places.append((placed, (LONG_AGO if placed is None else placed, index if oldest_first else len(listed) - index)))
    return places


def _filled(dates: Sequence[int | None]) -> list[int | None]:
    """Each None replaced by the nearest value before it, else after it."""
    filled, last = [], next((date for date in dates if date is not None), None)
    for date in dates:
        last = last if date is None else date
        filled.append(last)
    return filled


def place_outside(record: Episode) -> tuple[int, int]:
    """The place of an episode that is in the feed no more: before those of the same date that are."""
    return (LONG_AGO if record.placed is None else record.placed, -1)
