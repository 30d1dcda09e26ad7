"""What a feed is like: numbers of its entries. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from poca import templates, text
from poca.identity import DAY, usable_date
from poca.model import Entry, FeedDoc

WEEKS = 5
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class Stats:
    """``size`` is the average in bytes, ``duration`` in seconds, None where the feed tells none. ``weekdays``: how many
    entries were published on Monday, ... in the last five weeks."""

    author: str
    episodes: int
    newest: Entry | None
    oldest: Entry | None
    size: int | None
    duration: int | None
    weekdays: tuple[int, ...]


def stats(feed: FeedDoc, now: int, zone: tzinfo | None) -> Stats:
    """``zone``: that of the weekdays, None for the machine's own."""
    dated = sorted((e for e in feed.entries if usable_date(e.published, now) is not None), key=lambda e: e.published or 0)
    ends: list[Entry | None] = [*(dated or reversed(feed.entries))] or [None]
    recent = (templates.moment(e.published, zone) for e in dated if now - (e.published or 0) <= WEEKS * 7 * DAY)
    counts = Counter(moment.weekday() for moment in recent if moment)
    return Stats(
        author=feed.author or next((e.author for e in feed.entries if e.author), ""),
        episodes=len(feed.entries), newest=ends[-1], oldest=ends[0],
        size=_average([e.length for e in feed.entries]), duration=_average([e.duration for e in feed.entries]),
        weekdays=tuple(counts[day] for day in range(7)),
    )


def _average(values: Sequence[int | None]) -> int | None:
    told = [value for value in values if value]
    return round(sum(told) / len(told)) if told else None


def day(published: int | None, zone: tzinfo | None) -> str:
    """The day as it stands in lists, "" where there is none."""
    moment = templates.moment(published, zone)
    return f"{moment.year:04}-{moment.month:02}-{moment.day:02}" if moment else ""


def title_of(entry: Entry) -> str:
    return text.shown(entry.title) or text.shown_url(entry.url)


def rows(numbers: Stats, zone: tzinfo | None, block: str, room: int) -> list[tuple[str, str]]:
    """The numbers in words, each with its name; the chart is drawn with ``block`` within ``room`` columns."""
    def one(entry: Entry) -> str:
        date = day(entry.published, zone)
        return f"{date}  {title_of(entry)}" if date else title_of(entry)

    averages = [text.size(numbers.size)] if numbers.size else []
    averages += [text.duration(numbers.duration)] if numbers.duration else []
    told = [("Author", text.shown(numbers.author))] if numbers.author else []
    told.append(("Episodes", str(numbers.episodes)))
    if numbers.newest and numbers.oldest:
        told += [("Newest", one(numbers.newest)), ("Oldest", one(numbers.oldest))]
    told += [("On average", ", ".join(averages))] if averages else []
    if any(numbers.weekdays):
        most = max(max(numbers.weekdays), room)
        for name, count in zip(_DAYS, numbers.weekdays, strict=True):
            bar = block * -(-count * room // most)
            told.append(("Weekdays" if name == "Mon" else "", f"{name} {count:3} {bar}".rstrip()))
    return told
