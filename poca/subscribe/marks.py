"""``mark`` and ``retry``: what the history says of single episodes, changed by their listener."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from poca import events, files, locks, text
from poca.errors import ConfigError, DiskError, PocaError
from poca.identity import identify
from poca.model import Episode, Fate, Rule, Stage, Subscription, Verdict
from poca.state import State
from poca.subscribe import feeds
from poca.subscribe.desk import Desk
from poca.subscribe.judged import Judged, chosen, judge

BUSY_WAIT = 1.0             # seconds for the lock of a subscription


def mark(desk: Desk) -> None:
    """Raises ConfigError, StateError, BaseDirError, DiskError, FeedError."""
    if bool(desk.arguments.episodes) == desk.arguments.all:
        raise ConfigError("Say which: numbers, ranges or parts of titles of episodes (see poca-subscribe why), or --all.")
    subscription = desk.subscription(desk.arguments.title)
    with _turn(desk, subscription) as state:
        judged = _judged(desk, state, subscription)
        if not judged.read:
            judged = judge(desk, state, subscription, feeds.find(desk.settings, subscription.url).feed)
        meant = _meant(judged, desk.arguments.episodes)
        for verdict in meant if not desk.arguments.all else ():
            if verdict.held:
                desk.say(f"{text.shown(verdict.title)} is held, so there is nothing to mark.")
        changed = list(_marked(desk, judged, [verdict.key for verdict in meant if not verdict.held]))
        _record(state, subscription, changed)
    _tell(desk, subscription, "marked as had", [events.name_of(episode) for episode in changed])


def retry(desk: Desk) -> None:
    """Raises ConfigError, StateError, BaseDirError, DiskError."""
    subscription = desk.subscription(desk.arguments.title)
    with _turn(desk, subscription) as state:
        judged = _judged(desk, state, subscription)
        history = judged.history
        keys = {v.key for v in _meant(judged, desk.arguments.episodes)} if desk.arguments.episodes else {e.key for e in history.episodes}
        found = {e.key for e in judged.plan.found}
        records = [e for e in _looked_at(judged) if e.key in keys - found]
        again = [new for new in map(_again, records) if new is not None]
        forgotten = [e for e in records if e.fate in (Fate.DELETED, Fate.MARKED) and not e.path]
        _record(state, subscription, again, forgotten)
        if history.failures or history.next_try is not None:
            state.feed_failed(history.title, history.url or subscription.url, "", 0, None)
        verdicts = {v.key: v for v in judge(desk, state, subscription, judged.feed if judged.read else None).plan.verdicts}
    coming, others = _sorted((*again, *forgotten), verdicts) if judged.read else ([*again, *forgotten], [])
    for episode, rule in others:
        desk.say(f"{events.name_of(episode)} is no longer held back, but it is not taken now: {rule}.")
    if away := sum(e.key not in verdicts for e in (*again, *forgotten)) if judged.read else 0:
        desk.say(f"{away} more {'is' if away == 1 else 'are'} no longer held back, but no longer in the feed either.")
    if history.failures:
        desk.say(f"{text.shown(subscription.title)}: its feed is asked in the next run.")
    _tell(desk, subscription, "taken again in the next run", [events.name_of(episode) for episode in coming])


@contextmanager
def _turn(desk: Desk, subscription: Subscription) -> Iterator[State]:
    """The history, under the lock of the subscription. Raises PocaError where another poca has it."""
    with desk.state() as state, locks.subscription_lock(desk.settings.state_dir, subscription.title, BUSY_WAIT) as got:
        if not got:
            raise PocaError(f"{text.shown(subscription.title)}: another poca is busy with it. Nothing was changed; try again when it is done.")
        yield state


def _judged(desk: Desk, state: State, subscription: Subscription) -> Judged:
    judged = judge(desk, state, subscription)
    if judged.renamed_from:
        raise PocaError(
            f"{text.shown(subscription.title)} was {text.shown(judged.renamed_from)} until now: run poca first, so that its history follows. "
            "Nothing was changed.")
    return judged


def _meant(judged: Judged, words: Sequence[str]) -> tuple[Verdict, ...]:
    """The episodes that the words mean; all of them without words."""
    return tuple(verdict for _, verdict in chosen(judged.plan.verdicts, words)) if words else judged.plan.verdicts


def _looked_at(judged: Judged) -> list[Episode]:
    """The records, as a look at the disk has changed them."""
    gone = {e.key: e for e in judged.plan.gone}
    return [gone.get(e.key, e) for e in judged.history.episodes]


def _marked(desk: Desk, judged: Judged, keys: Iterable[str]) -> Iterator[Episode]:
    """The episodes with these keys as they are to be recorded, also those that never were; their parts go."""
    known = {k.key: k for k in identify(judged.feed.entries, tuple(_looked_at(judged)), desk.now)}
    for key in keys:
        entry, record = known[key].entry, known[key].record
        if record is None:
            new = Episode(key, entry.guid, entry.url, entry.title, entry.published, known[key].placed, entry.published)
            yield replace(new, fate=Fate.MARKED, recorded=desk.now)
        elif record.fate is not Fate.MARKED:
            if files.is_part(record.part):
                with suppress(DiskError):       # a part that stays is taken for nothing else
                    files.remove(desk.settings.base_dir, record.part)
            fresh = replace(record, fate=Fate.MARKED, stage=Stage.NONE, part="", part_etag="", part_total=None)
            yield replace(fresh, failures=0, error="", next_try=None)


def _again(record: Episode) -> Episode | None:
    """The record with nothing in the way of another download; None where there is nothing to change, or to keep."""
    if record.fate in (Fate.DELETED, Fate.MARKED) and record.path:
        return replace(record, fate=Fate.REMOVED, failures=0, error="", next_try=None)
    if record.fate is Fate.PENDING and (record.failures or record.next_try is not None):
        return replace(record, failures=0, error="", next_try=None)
    return None


def _record(state: State, subscription: Subscription, changed: Sequence[Episode], forgotten: Sequence[Episode] = ()) -> None:
    if changed:
        state.put(subscription.title, *changed)
    if forgotten:
        state.forget(subscription.title, *(e.key for e in forgotten))
    if changed or forgotten:
        # Or an unchanged feed would leave nothing to plan.
        state.settle(subscription.title, "")


def _sorted(changed: Sequence[Episode], verdicts: dict[str, Verdict]) -> tuple[list[Episode], list[tuple[Episode, Rule]]]:
    """Those that the planner takes now, and the others that are in the feed, with the rule that decided about them."""
    rules = [(episode, verdicts[episode.key].rule) for episode in changed if episode.key in verdicts]
    taken = [episode for episode, rule in rules if rule in (Rule.WANTED, Rule.ADOPTED)]
    return taken, [(episode, rule) for episode, rule in rules if episode not in taken]


def _tell(desk: Desk, subscription: Subscription, what: str, names: Sequence[str]) -> None:
    count = f"{len(names)} episode{'' if len(names) == 1 else 's'}"
    listed = f": {', '.join(names[:10])}{' and others' if len(names) > 10 else ''}" if names else ""
    desk.say(f"{text.shown(subscription.title)}: {count} {what}{listed}.")
