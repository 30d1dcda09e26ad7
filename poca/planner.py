"""What should be on disk, what should go, what should come: decided from what is known, and nothing done. Pure.

The steps are those of the user's own words: which entries are which episodes (:mod:`poca.identity`), which of them
make up the pool, which of the pool are to be held, and what that means for the disk as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from poca import filters, media, naming, templates
from poca.identity import DAY, Known, identify, place_outside, usable_date
from poca.model import Disk, Entry, Episode, Fate, FeedDoc, History, Lacking, Plan, Rule, Stage, Stranger, Subscription, Verdict
from poca.patience import LONGEST_PAUSE_EPISODE, NO_FILTERS, waits

NO_LIMIT = 1 << 60
HAD = {Fate.DELETED: Rule.DELETED, Fate.MARKED: Rule.MARKED}
ADOPTION_SHARE, ADOPTION_BYTES = 0.05, 1_000_000      # how far a file's size may be from what the feed tells


class _Item(NamedTuple):
    """An episode that a decision is made about: one of the feed, or one that is held."""

    key: str
    place: tuple[int, int]
    placed: int | None
    entry: Entry | None
    record: Episode | None
    filtered: str               # the first filter that it does not pass

    @property
    def held(self) -> bool:
        return self.record is not None and self.record.fate is Fate.HELD

    @property
    def published(self) -> int | None:
        if self.record:
            return self.record.published
        return self.entry.published if self.entry else None

    @property
    def title(self) -> str:
        return self.record.title if self.record else self.entry.title if self.entry else ""


def plan(subscription: Subscription, history: History, disk: Disk, feed: FeedDoc, now: int, *, explained: bool = True) -> Plan:
    """The plan for one subscription. ``now`` is the instant of the run; ``disk`` was looked at with the records of
    ``history``. ``explained``: with the verdicts, which are many and say nothing that is done."""
    before = {record.key: record for record in history.episodes}
    looked = {key: _after_a_look(record, disk) for key, record in before.items()}
    known = identify(feed.entries, tuple(looked.values()), now)
    records = {**looked, **{k.key: _followed(k) for k in known if k.record}}
    items = _items(subscription, known, records)
    rules = _oldest_first(items, subscription, now) if subscription.from_the_top else _newest(items, subscription, now)
    careful = _why_nothing_goes(history, feed, now)
    _decide_deletions(items, rules, careful)
    lacking = _lacking(subscription, items, rules, records.values(), now)
    adopted, lacking = _adoption(subscription, lacking, disk, history)
    taken_over = {episode.key: episode for episode in adopted}
    rules.update(dict.fromkeys(taken_over, Rule.ADOPTED))
    coming = {one.episode.key for one in lacking} | taken_over.keys()
    stale = (e for key, e in records.items() if e.fate is Fate.PENDING and key not in coming and rules.get(key) is not Rule.FAILED)
    return Plan(
        subscription=subscription,
        generation=history.generation,
        verdicts=tuple([_verdict(item, rules[item.key], taken_over.get(item.key, item.record)) for item in items[::-1]]) if explained else (),
        wanted=tuple(item.key for item in items if rules[item.key] in KEPT),
        unwanted=tuple(item.record for item in items if item.record and _goes(item, rules[item.key])),
        lacking=lacking,
        gone=tuple(e for key, e in records.items() if before[key].fate is Fate.HELD and e.fate is Fate.DELETED),
        found=tuple(e for key, e in records.items() if before[key].fate is Fate.DELETED and e.fate is Fate.HELD),
        adopted=adopted,
        seen=tuple(e for key, e in records.items() if e != before[key] and e.fate is before[key].fate and key not in coming),
        dropped=() if careful else tuple(stale),
        waiting=sum(rule is Rule.FAILED for rule in rules.values()),
        spared=sum(rule is Rule.SPARED for rule in rules.values()),
        error=feed.cut,
        notes=(*feed.repairs, *(f"“{p.title}” is no episode: {p.reason}" for p in feed.passed_over)),
    )


KEPT = frozenset({Rule.HELD, Rule.WANTED, Rule.ADOPTED, Rule.STAND_IN, Rule.SPARED})
PAST = frozenset({Rule.MAX_NUMBER, Rule.MAX_DAYS})


def _goes(item: _Item, rule: Rule) -> bool:
    """Whether it is to be deleted: adopted files never are."""
    return item.held and rule in PAST and not (item.record and item.record.adopted)


# ------------------------------------------------------------------------------------------------------- the pool

def _after_a_look(record: Episode, disk: Disk) -> Episode:
    """The record as the disk says: a held file that is gone was deleted by the user, one that is back is held again."""
    size = disk.present.get(record.path) if record.path else None
    if record.fate is Fate.HELD and record.stage is Stage.NONE:
        return replace(record, fate=Fate.DELETED) if size is None else replace(record, size=size)
    if record.fate is Fate.DELETED and size is not None:
        return replace(record, fate=Fate.HELD, size=size)
    return record


def _followed(known: Known) -> Episode:
    """The record, following what the feed now calls the episode, so that the next change is recognised as well."""
    assert known.record is not None
    entry = known.entry
    return replace(known.record, guid=entry.guid, url=entry.url, title=entry.title, seen_published=entry.published)


def _items(subscription: Subscription, known: Sequence[Known], records: Mapping[str, Episode]) -> list[_Item]:
    """The oldest first."""
    none = subscription.filters == NO_FILTERS

    def failing(entry: Entry) -> str:
        return "" if none else filters.failing(subscription.filters, entry, subscription.timezone)

    items = [_Item(k.key, k.place, k.placed, k.entry, records.get(k.key), failing(k.entry)) for k in known]
    listed = {item.key for item in items}
    outside = (r for r in records.values() if r.fate is Fate.HELD and r.key not in listed)
    return sorted([*items, *(_Item(r.key, place_outside(r), r.placed, None, r, "") for r in outside)], key=lambda i: i.place)


def _why_nothing_goes(history: History, feed: FeedDoc, now: int) -> str:
    if feed.cut:
        return "the feed was cut off"
    if not feed.entries:
        return "the feed has no episodes now"
    if history.last_run is not None and now < history.last_run:
        return "the clock stands before the last run"
    return ""


# ------------------------------------------------------------------------------------------- which are to be held

def _newest(items: Sequence[_Item], subscription: Subscription, now: int) -> dict[str, Rule]:
    """The newest ones; what the user had and deleted keeps its place, so that deleting digs up no older ones."""
    room, rules = subscription.max_number or NO_LIMIT, {}
    for item in reversed(items):
        if item.filtered and not item.held:
            rules[item.key] = Rule.FILTERED
        elif subscription.max_days and _too_old(item, subscription.max_days, now):
            rules[item.key] = Rule.MAX_DAYS
        elif room <= 0:
            rules[item.key] = Rule.MAX_NUMBER
        else:
            room -= 1
            rules[item.key] = _in_its_place(item, now)
    return rules


def _oldest_first(items: Sequence[_Item], subscription: Subscription, now: int) -> dict[str, Rule]:
    """What is held, the oldest first, then the next in line; what the user had and deleted makes room."""
    room, rules = subscription.max_number or NO_LIMIT, {}
    for item in sorted(items, key=lambda i: not i.held):
        had = HAD.get(item.record.fate) if item.record else None
        if item.filtered and not item.held:
            rules[item.key] = Rule.FILTERED
        elif had:
            rules[item.key] = had
        elif room <= 0:
            rules[item.key] = Rule.MAX_NUMBER
        else:
            room -= 1
            rules[item.key] = _in_its_place(item, now)
    return rules


def _too_old(item: _Item, max_days: int, now: int) -> bool:
    published = usable_date(item.published, now)
    return published is not None and now - published > max_days * DAY


def _in_its_place(item: _Item, now: int) -> Rule:
    if item.held:
        return Rule.HELD
    record = item.record
    if record and record.fate in HAD:
        return HAD[record.fate]
    waiting = record and record.fate is Fate.PENDING and waits(record.next_try, now, LONGEST_PAUSE_EPISODE)
    return Rule.FAILED if waiting else Rule.WANTED


def _decide_deletions(items: Sequence[_Item], rules: dict[str, Rule], careful: str) -> None:
    """Changes the rule of those that would go but stay: all of them when the feed or the clock cannot be trusted, else
    as many of the newest as episodes wait after a failure."""
    going = [item for item in reversed(items) if _goes(item, rules[item.key])]
    failed = sum(rule is Rule.FAILED for rule in rules.values())
    rules.update((item.key, Rule.SPARED) for item in going if careful)
    rules.update((item.key, Rule.STAND_IN) for item in going[:failed] if not careful)


# ------------------------------------------------------------------------------------------------- what is lacking

def _lacking(
    subscription: Subscription, items: Sequence[_Item], rules: Mapping[str, Rule], records: Iterable[Episode], now: int
) -> tuple[Lacking, ...]:
    """The wanted ones that are not on disk, the oldest first, with their names."""
    coming = [item for item in items if rules[item.key] is Rule.WANTED]
    if not coming:
        return ()
    taken = tuple(record.path for record in records if record.path)
    named = [templates.Named(i.key, i.entry) for i in items if i.entry and not (i.record and i.record.path)]
    names = naming.plan_names(subscription, named, taken)
    lacking = []
    for item in coming:
        entry = item.entry
        assert entry is not None        # what is held is never lacking, and all else is in the feed
        if item.record and item.record.path:
            ladder, extension = _named_again(subscription, item.record, entry, taken)
        else:
            ladder, extension = names[item.key].ladder, names[item.key].extension
        episode = replace(item.record, fate=Fate.PENDING) if item.record else _new_episode(item, entry, now)
        lacking.append(Lacking(episode, entry, ladder, extension))
    return tuple(lacking)


def _new_episode(item: _Item, entry: Entry, now: int) -> Episode:
    return Episode(item.key, entry.guid, entry.url, entry.title, entry.published, item.placed, entry.published, recorded=now)


def _named_again(subscription: Subscription, record: Episode, entry: Entry, taken: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Once recorded, a name stays; the others of the ladder are for a stranger that took it meanwhile."""
    stem, extension = _split(record.path)
    others = naming.plan_names(subscription, [templates.Named(record.key, entry)], taken)[record.key]
    return (stem, *others.ladder), extension


def _split(path: str) -> tuple[str, str]:
    extension = media.media_extension(path)
    return path[: len(path) - len(extension)], path[len(path) - len(extension) :]


def _adoption(
    subscription: Subscription, lacking: tuple[Lacking, ...], disk: Disk, history: History
) -> tuple[tuple[Episode, ...], tuple[Lacking, ...]]:
    """Those of ``lacking`` whose file lies there already, as they are to be recorded, and the rest."""
    by_stem = {_split(path)[0]: path for path, stranger in disk.strangers.items() if stranger.media}
    adopted, rest = [], []
    for one in lacking:
        path = one.names[0] + one.extension if one.extension else by_stem.get(one.names[0], "")
        stranger = disk.strangers.get(path)
        if stranger and stranger.media and _fits(one, stranger, subscription, history):
            held = replace(one.episode, fate=Fate.HELD, path=path, size=stranger.size, adopted=True)
            adopted.append(replace(held, stage=Stage.NONE, failures=0, error="", next_try=None))
        else:
            rest.append(one)
    return tuple(adopted), tuple(rest)


def _fits(one: Lacking, stranger: Stranger, subscription: Subscription, history: History) -> bool:
    """Whether a file may be the episode: by the told length, else by being the only one that can bear its name."""
    if one.episode.path:
        return stranger.size == one.episode.size
    if one.entry.length is not None:
        return abs(stranger.size - one.entry.length) <= max(one.entry.length * ADOPTION_SHARE, ADOPTION_BYTES)
    alone = naming.plan_names(subscription, [templates.Named(one.episode.key, one.entry)], ())
    return history.fresh and alone[one.episode.key].ladder[0] == one.names[0]


def _verdict(item: _Item, rule: Rule, record: Episode | None) -> Verdict:
    """``record``: as it will be when the plan is recorded."""
    held = record is not None and record.fate is Fate.HELD
    failed = record is not None and rule is Rule.FAILED
    return Verdict(
        item.key,
        item.title,
        item.published,
        rule,
        held,
        rule in KEPT or (item.held and not _goes(item, rule)),
        item.filtered if rule is Rule.FILTERED else record.error if record and failed else "",
        record.path if record else "",
        record.size if record and held else item.entry.length if item.entry else None,
        record.next_try if record and failed else None,
    )
