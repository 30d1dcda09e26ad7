"""Small makers of the model's values, and a run on paper: what a plan leads to when all of it is carried out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from poca import planner
from poca.model import Disk, Entry, Fate, FeedDoc, History, Plan, Subscription

DAY = 86_400
NOW = 1_700_000_000         # 2023-11-14 22:13:20 UTC


def subscription(**options: Any) -> Subscription:
    return Subscription(**{"title": "Show", "url": "http://127.0.0.1/feed.xml", "folder": "Show", **options})


def entry(number: int, **values: Any) -> Entry:
    """Episode ``number`` of a daily show: the higher, the newer."""
    given = {
        "guid": f"guid-{number}",
        "url": f"http://127.0.0.1/ep{number}.mp3",
        "title": f"Episode {number}",
        "published": NOW - 1000 * DAY + number * DAY,
        "length": 1000,
        "mime": "audio/mpeg",
    }
    return Entry(**{**given, **values})


def feed(*numbers: int, **values: Any) -> FeedDoc:
    """A feed of these episodes, in this order."""
    return FeedDoc(title="Show", entries=tuple(entry(number) for number in numbers), **values)


def feed_of(*entries: Entry, **values: Any) -> FeedDoc:
    return FeedDoc(title="Show", entries=tuple(entries), **values)


def plan(feed: FeedDoc, history: History | None = None, disk: Disk | None = None, now: int = NOW, **options: Any) -> Plan:
    """A plan; without a disk all that the history holds is there."""
    history = history or History("Show")
    return planner.plan(subscription(**options), history, disk or disk_of(history), feed, now)


def disk_of(history: History, *, without: Iterable[str] = ()) -> Disk:
    """The files that the history holds, but for the episodes with these titles."""
    gone = set(without)
    held = (e for e in history.episodes if e.fate is Fate.HELD and e.title not in gone)
    return Disk(present={e.path: e.size or 0 for e in held})


def carried_out(plan: Plan, history: History, *, failing: Iterable[str] = (), now: int = NOW) -> History:
    """The history after the plan was carried out, the downloads of the titles in ``failing`` having failed."""
    failing = set(failing)
    records = {e.key: e for e in history.episodes}
    for e in (*plan.seen, *plan.gone, *plan.found, *plan.adopted):
        records[e.key] = e
    for e in plan.dropped:
        del records[e.key]
    failed = 0
    for one in plan.lacking:
        if one.entry.title in failing:
            failed += 1
            records[one.episode.key] = replace(one.episode, failures=1, error="no", next_try=now + 7200)
        else:
            path = one.names[0] + (one.extension or ".mp3")
            records[one.episode.key] = replace(one.episode, fate=Fate.HELD, path=path, size=1000, next_try=None)
    for e in plan.unwanted[: len(plan.unwanted) - failed]:
        records[e.key] = replace(e, fate=Fate.REMOVED)
    return replace(history, generation=history.generation + 1, episodes=tuple(records.values()), last_good=now, last_run=now)


def after(*feeds: FeedDoc, now: int = NOW, **options: Any) -> History:
    """The history after one run for each of the feeds."""
    history = History("Show")
    for one in feeds:
        history = carried_out(plan(one, history, now=now, **options), history, now=now)
    return history


def titles(episodes: Iterable[Any]) -> list[str]:
    """The titles of episodes, verdicts or lacking ones, in their order."""
    return [e.entry.title if hasattr(e, "entry") else e.title for e in episodes]


def held(history: History) -> list[str]:
    return sorted(e.title for e in history.episodes if e.fate is Fate.HELD)
