"""Dates as feeds write them -> instants. Pure.

RFC 822 with its successors 1123 and 2822 (RSS) and RFC 3339 with ISO 8601's basic form (Atom, Dublin Core). What is
ambiguous or impossible has no instant: a wrong date moves an episode without anybody noticing, an unknown one stands
beside its neighbour.
"""

from __future__ import annotations

import re
from datetime import date, datetime

_EPOCH = date(1970, 1, 1).toordinal()
_LONGEST = 100              # characters; no date is longer
_WIDEST_ZONE = 14           # hours: the line islands

_MONTHS = {
    name[:length]: number
    for number, name in enumerate(
        ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"], start=1)
    for length in (3, len(name))
} | {"sept": 9}

_TWO_DIGITS = {name.capitalize(): f"{number:02}" for name, number in _MONTHS.items() if len(name) == 3}

# Hours east of UTC. The names of RFC 822 and those that mean one zone only: BST, IST, AST and the like do not. The letters
# of the military zones were defined with the wrong sign, and mean nothing (RFC 2822, 4.3).
_ZONES = {
    "z": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8,
    "pdt": -7, "akst": -9, "akdt": -8, "hst": -10, "west": 1, "cet": 1, "cest": 2, "met": 1, "mest": 2, "mez": 1, "mesz": 2,
    "eet": 2, "eest": 3, "msk": 3, "jst": 9, "kst": 9, "aest": 10, "aedt": 11, "nzst": 12, "nzdt": 13,
}

_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]{1,9})?)?"
_ZONE = r"\s*(?P<zone>[A-Za-z]{1,5}|(?:GMT|UTC|UT)?\s?[+-][0-9]{1,2}:?[0-9]{2})(?:\s*\([^()]*\))?"
_WEEKDAY = r"(?:[^\W\d_]{2,12}\.?\s*,?\s+|[^\W\d_]{2,12}\.?,)?\s*"
_USUAL = re.compile(        # what nearly all feeds write, and the quickest to read
    r"[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) (?:GMT|([+-](?:0[0-9]|1[0-3])[0-5][0-9]))")
_RFC822 = re.compile(
    rf"{_WEEKDAY}(?:(?P<day>[0-9]{{1,2}})[\s-]+(?P<month>[A-Za-z]{{3,9}})\.?|(?P<us_month>[A-Za-z]{{3,9}})\.?\s+(?P<us_day>[0-9]{{1,2}})),?[\s-]+"
    rf"(?P<year>[0-9]{{4}}|[0-9]{{2}})(?:,?\s+{_TIME}{_ZONE})?")
_RFC3339 = re.compile(
    rf"(?P<year>[0-9]{{4}})-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})(?:(?:[Tt]|\s+){_TIME}{_ZONE})?")
_BASIC = re.compile(
    r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})T(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})(?P<second>[0-9]{2})"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})")


def instant(text: str) -> int | None:
    """Seconds since 1970-01-01 UTC; None for what is no date, has a time without a zone, or names no real moment.

    A day without a time is its first second in UTC.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if (usual := _USUAL.fullmatch(text)) and (moment := _usual(*usual.groups())) is not None:
        return moment
    found = _RFC822.fullmatch(text) or _RFC3339.fullmatch(text) or _BASIC.fullmatch(text)
    if not found:
        return None
    part = found.groupdict()
    return _moment(part["year"], part["month"] or part["us_month"], part["day"] or part["us_day"],
                   part["hour"] or "0", part["minute"] or "0", part["second"] or "0", part["zone"] or "Z")


def _usual(day: str, month: str, year: str, time: str, zone: str | None) -> int | None:
    try:
        return int(datetime.fromisoformat(f"{year}-{_TWO_DIGITS[month]}-{day}T{time}{zone or 'Z'}").timestamp())
    except (KeyError, ValueError):
        return None


def _moment(year: str, month: str, day: str, hour: str, minute: str, second: str, zone: str) -> int | None:
    hours, minutes, seconds, offset = int(hour), int(minute), int(second), _offset(zone)
    if offset is None or hours > 23 or minutes > 59 or seconds > 60:        # 60: a leap second
        return None
    try:
        days = date(_year(year), int(month) if month.isdecimal() else _MONTHS[month.lower()], int(day)).toordinal()
    except (KeyError, ValueError):
        return None
    return (days - _EPOCH) * 86400 + hours * 3600 + minutes * 60 + seconds - offset


def _year(digits: str) -> int:
    """RFC 2822, 4.3: two digits below 50 are of this century."""
    year = int(digits)
    if len(digits) == 2:
        return year + (2000 if year < 50 else 1900)
    return year


def _offset(zone: str) -> int | None:
    """Seconds east of UTC; None for a zone that nobody can be sure of."""
    sign = max(zone.find("+"), zone.find("-"))
    if sign < 0:
        hours = _ZONES.get(zone.lower())
        return None if hours is None else hours * 3600
    digits = zone[sign + 1:].replace(":", "")
    hours, minutes = int(digits[:-2]), int(digits[-2:])
    if hours > _WIDEST_ZONE or minutes > 59:
        return None
    return (hours * 3600 + minutes * 60) * (-1 if zone[sign] == "-" else 1)
