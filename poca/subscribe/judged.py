"""What the planner says about the episodes of a subscription as history and disk are now, and which of them are meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from poca import basedir, naming, planner, renames, text
from poca import feed as feeds
from poca.errors import ConfigError, FeedError
from poca.model import Disk, Fate, FeedDoc, History, Plan, Subscription, Verdict
from poca.state import State
from poca.subscribe.desk import Desk


@dataclass(frozen=True, slots=True)
class Judged:
    """``feed`` is the one last read, an empty one where there is none (``read`` is False). ``renamed_from``: the title
    under which the history still is."""

    subscription: Subscription
    history: History
    plan: Plan
    feed: FeedDoc
    read: bool
    renamed_from: str = ""


def judge(desk: Desk, state: State, subscription: Subscription, feed: FeedDoc | None = None) -> Judged:
    """The planner's verdicts; nothing is asked, and nothing changed. ``feed``: takes the place of the one last read.

    Raises BaseDirError, DiskError.
    """
    histories = state.histories()
    before = {new.title: old for old, new in renames.renamed(desk.config, histories).items()}.get(subscription.title, "")
    history = histories.get(before or subscription.title) or History(subscription.title, last_run=state.last_run)
    if feed is None:
        feed = stored_feed(history)
    base, folder = desk.settings.base_dir, naming.folder(before, subscription.filenames) if before else subscription.folder
    basedir.settle(base, state.marker, state.recorded_files(), look_only=True)
    # Whatever marker is there now: a folder that lost it, or never had one, was found to be ours as well.
    present = basedir.present(base, basedir.read_marker(base), history.episodes)
    held = [e.path for e in history.episodes if e.path and e.fate is Fate.HELD]
    disk = Disk(present, basedir.strangers(base, folder, held))
    plan = planner.plan(subscription, replace(history, title=subscription.title), disk, feed or FeedDoc(), desk.now)
    return Judged(subscription, history, plan, feed or FeedDoc(), feed is not None, before)


def stored_feed(history: History) -> FeedDoc | None:
    """The feed as it was last read; None where it never was, or can no longer be read."""
    try:
        return feeds.unpack(history.packed) if history.packed else None
    except FeedError:
        return None


def chosen(verdicts: tuple[Verdict, ...], words: Iterable[str]) -> tuple[tuple[int, Verdict], ...]:
    """The episodes that are meant, each with its number: 1 is the newest. Raises ConfigError for words that mean none."""
    numbered = dict(enumerate(verdicts, 1))
    numbers: set[int] = set()
    for word in words:
        part = naming.fold(word.strip())
        found = _range(word, len(verdicts)) or {n for n, verdict in numbered.items() if part and part in naming.fold(verdict.title)}
        if not found:
            raise ConfigError(
                f'"{text.shown(word)}" means no episode: there are {len(verdicts)} (1 is the newest), to be named by number, range such as 2-5, '
                "or a part of the title."
            )
        numbers |= found
    return tuple((number, numbered[number]) for number in sorted(numbers))


def _range(word: str, count: int) -> set[int]:
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", word.strip())
    if not match:
        return set()
    first, last = int(match[1]), int(match[2] or match[1])
    return set(range(max(1, min(first, last)), min(count, max(first, last)) + 1))
