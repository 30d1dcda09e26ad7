"""The main thread's part: reports are taken from the queue, plans are carried out, and everything is recorded.

The only writer of the history. One plan at a time, under the lock of its subscription; a small commit after each step.
"""

from __future__ import annotations

import math
import os
import random
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from queue import Empty, Queue
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from poca import events, files, locks, recovery
from poca.errors import PocaError
from poca.model import Event, Failure, History, Level, Plan, Report, Settings, Subscription, Unchanged, Waiting
from poca.patience import LONGEST_PAUSE_FEED, fingerprint, next_try
from poca.state import State
from poca.web import Web

if TYPE_CHECKING:
    from poca.steps import Progress, Steps, Tell, Work

T = TypeVar("T")


# --------------------------------------------------------------------------------------------------------- the loop

def run(
    threads: Sequence[T], queue: Queue[Report], launch: Callable[[Sequence[T]], object], carry_out: Callable[[Report | Later], Later | None], *,
    one_at_a_time: bool = False, clock: Callable[[], float] = time.monotonic,
) -> None:
    """Launches the threads, each of which puts exactly one report, and carries out the reports in the order in which
    they arrive, until none can come any more. What carrying out puts off is carried out when it is due.

    ``one_at_a_time``: a thread is launched only when nothing is left to do of the one before.
    """
    launched = finished = 0
    later: list[Later] = []
    report: Report | None = None
    while True:
        if launched < len(threads) and (not one_at_a_time or (launched == finished and not later)):
            batch = threads[launched : launched + 1] if one_at_a_time else threads
            launch(batch)
            launched += len(batch)
        # Only once the equation says that every report has arrived does an empty queue mean the end. The other way
        # round, a report that lands between the two looks would be lost.
        if queue.unfinished_tasks + finished == len(threads) and queue.empty() and not later and not report:
            return
        wait, first = min(((one.wait(clock()), index) for index, one in enumerate(later)), default=(None, -1))
        if wait == 0:
            rest = carry_out(later[first])
            later[first : first + 1] = [rest] if rest else []       # in its place: of those that are due the oldest comes first
            continue
        if report:
            if rest := carry_out(report):
                later.append(rest)
            queue.task_done()
            finished += 1
            report = None
            continue
        with suppress(Empty):
            report = queue.get(timeout=wait)        # which may have set a host free that an older plan waits for


# ---------------------------------------------------------------------------------------------------------- reports

class Later(NamedTuple):
    """The rest of a plan, to be carried out from ``due`` (monotonic clock) on, or as soon as a host is free that it waits
    for: ``free_in`` tells the seconds until then, as far as they are known. A host comes free when a feed has been asked,
    whose report arrives then, so that it is enough to look after each report."""

    due: float
    work: Work
    free_in: Callable[[], float] = lambda: math.inf

    def wait(self, now: float) -> float:
        """Seconds."""
        return max(0.0, min(self.due - now, self.free_in()))

    @property
    def subscription(self) -> Subscription:
        return self.work.plan.subscription


class Executor:
    """Carries out reports. ``tell`` hears every event, ``progress`` how a download grows; ``clock`` gives the instant
    of now. ``sums`` and ``moved`` (subscriptions whose feed has moved for good, with the new URL) are its results."""

    def __init__(
        self, settings: Settings, state: State, web: Web, tell: Tell, *, progress: Progress = lambda *_: None,
        clock: Callable[[], int] = lambda: int(time.time()), chance: Callable[[], float] = random.random, link: files.Link = os.link,
    ) -> None:
        self.settings, self.state, self.web, self.tell = settings, state, web, tell
        self.progress, self.clock, self.chance, self.link = progress, clock, chance, link
        self.sums = events.Sums()
        self.moved: list[tuple[Subscription, str]] = []
        self.answered = False                           # some feed was; else the network may be to blame
        self.unheard: list[Failure] = []                # failures that wait for that to be known
        self.open: dict[str, Work] = {}                 # by title

    @cached_property
    def steps(self) -> Steps:
        """Needed with the first plan: an hour with nothing new has none."""
        from poca.steps import Steps

        return Steps(self.settings, self.state, self.web, self.tell, self.progress, self.clock, self.link, self.chance, self.sums)

    def recover(self, history: History) -> bool:
        """Puts right what a crash left half done; True when the history has changed and is to be read again."""
        return recovery.recover(history, self.settings, self.state, self.tell, self.link)

    def handle(self, report: Report | Later) -> Later | None:
        """Carries out one report, and gives what is left to do later. Raises nothing but interruptions."""
        title = report.subscription.title
        try:
            match report:
                case Plan():
                    return self._plan(report)
                case Later():
                    return self._go_on(report)
                case Unchanged():
                    self._unchanged(report)
                case Waiting():
                    self.sums.waiting += 1
                    self.tell(events.waiting(report))
                case Failure():
                    self._failure(report)
        except PocaError as error:
            self.tell(events.step_failed(title, str(error)))
            self._abandon(title)
        except Exception as error:  # noqa: BLE001
            self.tell(events.bug(title, error, traceback.format_exc()))
            self._abandon(title)
        return None

    def finish(self, *, interrupted: bool = False) -> None:
        """The end of the run, or what is left of it after an interruption."""
        for title in tuple(self.open):
            self._abandon(title)
        if interrupted:
            return
        if len(self.unheard) > 1 and all(failure.no_network for failure in self.unheard):
            self.tell(events.no_network(len(self.unheard)))
        else:
            for failure in self.unheard:
                self._tell_failure(failure, counts=False)
        self.unheard = []

    # ------------------------------------------------------------------------------------------------------- feeds

    def _heard(self) -> None:
        """A feed answered: so there is a network, and the failures until now are the feeds' own."""
        self.answered = True
        self.sums.asked += 1
        failures, self.unheard = self.unheard, []
        for failure in failures:
            self._tell_failure(failure, counts=True)

    def _unchanged(self, report: Unchanged) -> None:
        self._heard()
        self.sums.unchanged += 1
        title = report.subscription.title
        self.state.read_feed(title, report.subscription.url, report.fetched, self.clock())
        self._notes(title, report.notes)
        self.tell(Event("unchanged", Level.DETAIL, title, "unchanged"))

    def _failure(self, failure: Failure) -> None:
        self.sums.failed += 1
        self._notes(failure.subscription.title, failure.notes)
        if failure.answered:
            self._heard()
        else:
            self.sums.asked += 1
        if failure.counts and not self.answered:
            self.unheard.append(failure)
        else:
            self._tell_failure(failure, counts=failure.counts)

    def _tell_failure(self, failure: Failure, *, counts: bool) -> None:
        """``counts``: it is one more failure of the feed in a row."""
        history = self.state.history(failure.subscription.title)
        failures, then = history.failures, None
        if counts:
            failures += 1
            then = next_try(self.clock(), failures, patience=3, most=LONGEST_PAUSE_FEED, retry_after=failure.retry_after)
            self.state.feed_failed(history.title, failure.subscription.url, failure.error, failures, then)
        self.tell(events.feed_failed(failure, history.last_good, failures, then))

    def _notes(self, title: str, notes: Sequence[str]) -> None:
        for note in notes:
            self.tell(events.said("note", Level.DETAIL, title, note))

    # ------------------------------------------------------------------------------------------------------- plans

    def _plan(self, plan: Plan) -> Later | None:
        from poca.steps import Work

        self._heard()
        work = Work(plan, plan.generation, list(plan.lacking), list(plan.unwanted))
        with self._turn(work, self._record) as mine:
            if not mine:
                return None
            self.open[work.title] = work
            self._notes(work.title, plan.notes)
            self.tell(events.plan_event(plan))
            self._tell_findings(work)
            self.steps.cover(work)
            return self._carry_on(work, time.monotonic())

    def _go_on(self, later: Later) -> Later | None:
        work, now = later.work, time.monotonic()
        with self._turn(work) as mine:
            if mine:
                return self._carry_on(work, now if later.free_in() <= 0 else max(now, later.due))
        self._abandon(work.title)
        return None

    @contextmanager
    def _turn(self, work: Work, record: Callable[[Work], None] = lambda work: None) -> Iterator[bool]:
        """The lock of the subscription, and whether the plan is to be carried out under it. ``record``: what is recorded
        with the claim, in one commit."""
        title = work.title
        with locks.subscription_lock(self.settings.state_dir, title) as got:
            if not got:
                self.tell(Event("busy", Level.DETAIL, title, "another poca is busy with it"))
            elif not self.steps.is_ours():
                self.tell(events.step_failed(title, "base_dir bears no marker of poca any more: is its drive still mounted? Nothing was done"))
            elif not self._claim(work, record):
                self.tell(Event("stale", Level.DETAIL, title, "another poca was there meanwhile: the plan is dropped"))
            else:
                try:
                    yield True
                finally:
                    work.generation = self.state.generation(title)
                return
            yield False

    def _claim(self, work: Work, record: Callable[[Work], None]) -> bool:
        with self.state.together():
            claimed = self.state.claim(work.title, work.generation) is not None
            if claimed:
                record(work)
        return claimed

    def _record(self, work: Work) -> None:
        """What the plan knows anew, before anything is done."""
        plan, title = work.plan, work.title
        # A run that dies in the middle must not look like one that left nothing to do.
        self.state.settle(title, "")
        if plan.fetched or not plan.error:
            self.state.read_feed(title, plan.moved or plan.subscription.url, plan.fetched, self.clock())
        if known := (*plan.seen, *plan.gone, *plan.found, *plan.adopted):
            self.state.put(title, *known)

    def _tell_findings(self, work: Work) -> None:
        """Tells what was recorded, and lets go of what is not to come any more."""
        plan, title = work.plan, work.title
        if plan.moved:
            self.moved.append((plan.subscription, plan.moved))
        for kind, before, after, episodes in (
            ("deleted-by-user", "deleted by you: ", "", plan.gone), ("found-again", "found again: ", "", plan.found),
            ("adopted", "adopted ", ", which was there already", plan.adopted),
        ):
            for episode in episodes:
                self.steps.news(work, kind, before + events.file_of(plan, episode.path) + after, episode)
        work.counts.update(deleted_by_user=len(plan.gone), adopted=len(plan.adopted))
        self.sums.deleted_by_user += len(plan.gone)
        self.sums.adopted += len(plan.adopted)
        for episode in plan.dropped:
            self.steps.drop(work, episode)
        if plan.error:
            work.complete = False
            self.tell(events.step_failed(title, f"{plan.error}: nothing is deleted; asked again in the next run"))

    def _carry_on(self, work: Work, now: float) -> Later | None:
        from poca.steps import Outcome

        coming, work.lacking = work.lacking, []
        for one in coming:
            if self.steps.disk_full or work.stopped:
                outcome = Outcome.FAILED
            elif self.steps.must_wait(work.waits.get(one.episode.key), now):
                outcome = Outcome.LATER
            else:
                outcome = self.steps.episode(work, one)
            if outcome is Outcome.DONE and work.unwanted:
                self.steps.remove(work, work.unwanted.pop(0))
            elif outcome is Outcome.FAILED:
                work.missing += 1
            elif outcome is Outcome.LATER:
                work.lacking.append(one)
        # As many of the newest stay as there are gaps where the new ones should be.
        while len(work.unwanted) > work.missing + len(work.lacking):
            self.steps.remove(work, work.unwanted.pop(0))
        if work.lacking:
            waits = [work.waits[one.episode.key] for one in work.lacking]
            hosts = {wait.host for wait in waits if wait.host}
            return Later(min(wait.until for wait in waits), work, lambda: min(map(self.web.free_in, hosts), default=math.inf))
        self._close(work)
        return None

    def _close(self, work: Work) -> None:
        good = work.complete and not (work.missing or work.plan.waiting or work.plan.spared)
        self.state.settle(work.title, fingerprint(work.plan.subscription) if good else "")
        self._abandon(work.title)

    def _abandon(self, title: str) -> None:
        """Says what came of a plan, as far as it came."""
        work = self.open.pop(title, None)
        if work:
            for host, count in work.at_once.items():
                self.tell(events.not_tried(title, host, count))
            self.tell(events.done(title, {key: work.counts[key] for key in ("deleted_by_user", "removed", "downloaded", "adopted", "failed")}))
