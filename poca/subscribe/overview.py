"""``list`` and ``stats``: the subscriptions, and what their feeds are like."""

from __future__ import annotations

from poca import renames, text
from poca.events import when
from poca.identity import usable_date
from poca.model import Fate, History, Subscription
from poca.subscribe import stats
from poca.subscribe.desk import Desk, clean
from poca.subscribe.judged import stored_feed
from poca.tables import Column, show

_COLUMNS = (
    Column("TITLE", folds=True), Column("CATEGORY", folds=True), Column("STATE"), Column("MAX", right=True), Column("HELD", right=True),
    Column("SIZE", right=True), Column("NEWEST"), Column("HEALTH", folds=True), Column("URL", folds=True),
)
_BAR = 40           # columns of the longest bar of a chart


def show_list(desk: Desk) -> None:
    """Raises ConfigError, StateError."""
    histories = _histories(desk)
    rows = []
    for title in desk.titles:
        values = _values(desk, desk.outline(title), histories.get(title) or History(title))
        if desk.arguments.json:
            desk.json(**clean(values))
        rows.append(_row(desk, values))
    if desk.arguments.json:
        return
    if rows:
        show(desk.out, _COLUMNS, rows, desk.width)
    else:
        desk.say("There are no subscriptions yet: poca-subscribe add URL adds one.")


def show_titles(desk: Desk) -> None:
    """Each title on a line of its own, for the completion of shells."""
    for title in desk.titles:
        desk.say(text.shown(title))


def show_stats(desk: Desk) -> None:
    """Raises ConfigError, StateError."""
    histories = _histories(desk)
    titles = desk.named() or desk.titles
    room = max(5, min(_BAR, (desk.width or 80) - 25))
    block = "█" if desk.out.can_write("█") else "#"
    for title in titles:
        subscription, history = desk.outline(title), histories.get(title) or History(title)
        feed = stored_feed(history)
        numbers = stats.stats(feed, desk.now, subscription.timezone) if feed else None
        if desk.arguments.json:
            desk.json(**clean(_numbers(title, numbers)))
            continue
        desk.say(text.shown(title).upper())
        if numbers:
            rows = [(f"  {name}", words) for name, words in stats.rows(numbers, subscription.timezone, block, room)]
            show(desk.out, [Column(""), Column("", folds=True)], rows, desk.width)
        else:
            desk.say("  Its feed was not read yet.")
    if not titles and not desk.arguments.json:
        desk.say("There are no subscriptions yet: poca-subscribe add URL adds one.")


def _histories(desk: Desk) -> dict[str, History]:
    """By the titles of the config, also where the next run will follow a new title."""
    with desk.state(readonly=True) as state:
        histories = state.histories()
    return histories | {new.title: histories[old] for old, new in renames.renamed(desk.config, histories).items()}


def _values(desk: Desk, subscription: Subscription, history: History) -> dict[str, object]:
    """What ``list`` knows of a subscription."""
    faulty = all(s.title != subscription.title for s in desk.config.subscriptions)
    held = [e for e in history.episodes if e.fate is Fate.HELD]
    feed = stored_feed(history)
    dates = [usable_date(one.published, desk.now) for one in (feed.entries if feed else ())]
    dates += [usable_date(one.published, desk.now) for one in held]
    return {
        "title": subscription.title, "category": subscription.category,
        "state": "faulty" if faulty else "active" if subscription.active else "inactive", "max_number": subscription.max_number or None,
        "held": len(held), "adopted": sum(e.adopted for e in held), "bytes": sum(e.size or 0 for e in held),
        "newest": max((date for date in dates if date is not None), default=None),
        "failures": history.failures, "error": text.shown(history.error), "next_try": history.next_try, "last_good": history.last_good,
        "episodes_failed": sum(bool(e.fate is Fate.PENDING and e.failures) for e in history.episodes),
        "url": text.shown_url(subscription.url),
    }


def _row(desk: Desk, values: dict[str, object]) -> list[str]:
    def number(key: str) -> int:
        value = values[key]
        return value if isinstance(value, int) else 0

    held = str(values["held"]) + (f" ({values['adopted']} adopted)" if values["adopted"] else "")
    newest = values["newest"]
    day = stats.day(newest, desk.settings.timezone) if isinstance(newest, int) else ""
    return [
        text.shown(str(values["title"])), text.shown(str(values["category"])), str(values["state"]), str(values["max_number"] or "-"), held,
        text.size(number("bytes")), day, _health(desk, values), str(values["url"]),
    ]


def _health(desk: Desk, values: dict[str, object]) -> str:
    good, then = values["last_good"], values["next_try"]
    if values["state"] == "faulty":
        return "see poca-subscribe check"
    if not values["failures"]:
        failed = f", {values['episodes_failed']} to try again" if values["episodes_failed"] else ""
        return f"good {when(good)}{failed}" if isinstance(good, int) else "not read yet"
    parts = ["failed once" if values["failures"] == 1 else f"failed {values['failures']} times"]
    parts.append(f"last good {when(good)}" if isinstance(good, int) else "never good")
    parts += [f"waits until {when(then)}"] if isinstance(then, int) and then > desk.now else []
    return f"{', '.join(parts)}: {values['error']}"


def _numbers(title: str, numbers: stats.Stats | None) -> dict[str, object]:
    if numbers is None:
        return {"title": title, "read": False}
    newest, oldest = numbers.newest, numbers.oldest
    return {
        "title": title, "read": True, "author": numbers.author, "episodes": numbers.episodes,
        "newest": newest and stats.title_of(newest), "newest_published": newest and newest.published,
        "oldest": oldest and stats.title_of(oldest), "oldest_published": oldest and oldest.published,
        "average_bytes": numbers.size, "average_seconds": numbers.duration, "weekdays": list(numbers.weekdays),
    }
