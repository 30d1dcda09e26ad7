"""Which filter of a subscription keeps an entry from being downloaded. Pure.

What a feed does not tell (a date, a length, a season, a title) passes every filter on it: better an episode too many than
one never heard of.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from functools import lru_cache

from poca import templates
from poca.model import Entry, Filters


def failing(filters: Filters, entry: Entry, zone: tzinfo | None) -> str:
    """The key of the first filter that the entry does not pass, "" where it passes all.

    ``zone``: of hour, weekday and date, None for the machine's own. Patterns must be valid.
    """
    return _by_text(filters, entry) or _by_date(filters, entry, zone) or _by_numbers(filters, entry)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _by_text(filters: Filters, entry: Entry) -> str:
    filename = templates.original_name(entry.url) if filters.filename or filters.exclude_filename else ""
    for key, wanted, excluded, text in (
        ("title", filters.title, filters.exclude_title, entry.title),
        ("filename", filters.filename, filters.exclude_filename, filename),
    ):
        if wanted and text and not _pattern(wanted).search(text):
            return key
        if excluded and text and _pattern(excluded).search(text):
            return f"exclude_{key}"
    return ""


def _by_date(filters: Filters, entry: Entry, zone: tzinfo | None) -> str:
    if not (filters.hour or filters.weekdays or filters.after_date or filters.before_date):
        return ""
    when = templates.moment(entry.published, zone)
    if when is None:
        return ""
    if filters.hour and when.hour not in filters.hour:
        return "hour"
    if filters.weekdays and when.weekday() not in filters.weekdays:
        return "weekdays"
    if filters.after_date and when.date() < filters.after_date:
        return "after_date"
    if filters.before_date and when.date() >= filters.before_date:
        return "before_date"
    return ""


def _by_numbers(filters: Filters, entry: Entry) -> str:
    if entry.duration:          # 0 is what feeds write that do not know it
        minutes = entry.duration / 60
        if filters.min_minutes is not None and minutes < filters.min_minutes:
            return "min_minutes"
        if filters.max_minutes is not None and minutes > filters.max_minutes:
            return "max_minutes"
    if filters.episode_types and entry.episode_type not in filters.episode_types:
        return "episode_types"
    if filters.seasons and entry.season is not None and entry.season not in filters.seasons:
        return "seasons"
    return ""
