"""A thread for each subscription: look at the disk, ask for the feed, read it, plan, and put exactly one report.

Threads neither print nor log nor touch the history: all that they would say is in the report.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from queue import Queue
from threading import Event, Lock, Thread
from typing import NamedTuple

from poca import basedir
from poca.errors import DiskError, FeedError, Trouble, WebError
from poca.fetch import Body, Unmodified, fetch
from poca.model import Cover, Disk, Failure, Fate, FeedDoc, Fetched, History, Plan, Report, Settings, Subscription, Unchanged, Validators, Waiting
from poca.patience import LONGEST_PAUSE_FEED, fingerprint, waits
from poca.web import Web


class Crew:
    """At most ``parallel`` threads at work; each is started when its turn comes, by the one that leaves its place.

    So neither the main thread has to stand by, which may be downloading for hours, nor is there a thread for each of
    ten thousand subscriptions at once.
    """

    def __init__(self, parallel: int) -> None:
        self._lock = Lock()
        self._free = parallel
        self._to_start: deque[SubscriptionThread] = deque()
        self._to_return: deque[Event] = deque()
        # Python runs one thread at a time anyhow. A crowd of them that read would keep it from the main thread, which
        # carries out what is planned already, and hold all their feeds in memory meanwhile.
        self.reading = Lock()

    def launch(self, threads: Sequence[SubscriptionThread]) -> None:
        """Sees to it that each thread is started when its turn comes, or puts a Failure because it cannot be."""
        with self._lock:
            self._to_start.extend(threads)
            places, self._free = self._free, 0
        for _ in range(places):
            self.leave()

    def leave(self) -> None:
        """Gives a place up: to one that wants to return, else to the next one that has not begun."""
        while True:
            with self._lock:
                if self._to_return:
                    self._to_return.popleft().set()
                    return
                if not self._to_start:
                    self._free += 1
                    return
                thread = self._to_start.popleft()
            if thread.begin():
                return

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While this lasts the calling thread takes no place: it only waits."""
        self.leave()
        try:
            yield
        finally:
            self._come_back()

    def _come_back(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = Event()
            self._to_return.append(turn)
        turn.wait()


class Task(NamedTuple):
    """What a thread is given. ``marker``: that of base_dir, "" as long as there is none; ``now``: the instant of the
    run; ``asked``: the user named this subscription, so it does not wait; ``look_only``: the plan is only to be shown; ``explained``: with the
    verdict about each episode."""

    subscription: Subscription
    history: History
    settings: Settings
    marker: str
    now: int
    asked: bool = False
    look_only: bool = False
    explained: bool = True


class SubscriptionThread:
    """The thread of one subscription. Ten thousand of them may wait for their turn, so that of Python's own there is none
    before."""

    __slots__ = ("_crew", "_queue", "_task", "_web")

    def __init__(self, task: Task, web: Web, crew: Crew, queue: Queue[Report]) -> None:
        self._task, self._web, self._crew, self._queue = task, web, crew, queue

    def begin(self) -> bool:
        """Starts the thread; where that cannot be done, puts its Failure and returns False."""
        subscription = self._task.subscription
        # Made beforehand: when memory has run out there may be none for another.
        last_word = Failure(subscription, "something unforeseen ended its thread; asked again in the next run", counts=False)
        try:
            Thread(target=self._run, args=(last_word,), name=subscription.title, daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            failure = Failure(subscription, f"no thread could be started for it ({error}); asked again in the next run", counts=False)
            self._queue.put(failure)
            return False
        return True

    def _run(self, report: Report) -> None:
        try:
            report = make_report(self._task, self._web, self._crew)
        except BaseException as error:      # noqa: BLE001 - a thread that dies before its put would hang the run
            with suppress(BaseException):
                report = _unforeseen(self._task.subscription, error)
        finally:
            self._queue.put(report)
            self._crew.leave()


def make_report(task: Task, web: Web, crew: Crew) -> Report:
    history, subscription = task.history, task.subscription
    if history.next_try is not None and waits(history.next_try, task.now, LONGEST_PAUSE_FEED) and not task.asked:
        return Waiting(subscription, history.next_try, history.error)
    answered = False
    try:
        present = basedir.present(task.settings.base_dir, task.marker, history.episodes)
        answer = _ask(task, web, crew)
        answered = True
        if isinstance(answer, Unmodified) and not answer.permanent and _nothing_to_plan(task, present):
            news = answer.validators != history.validators
            return Unchanged(subscription, history.generation, Fetched(answer.validators, history.body_hash) if news else None, answer.notes)
        recorded = (e.path for e in history.episodes if e.path and e.fate is Fate.HELD)
        disk = Disk(present, basedir.strangers(task.settings.base_dir, subscription.folder, recorded))
        try:
            here, fetched, plan = _read_and_plan(task, crew, disk, answer)
        except FeedError:
            if isinstance(answer, Body):
                raise
            answer = _ask(task, web, crew, anew=True)       # the history's own copy cannot be read
            here, fetched, plan = _read_and_plan(task, crew, disk, answer)
        feed, fetched, moved, notes = _moved(task, web, crew, answer, here, fetched)
        if feed is not here:
            with crew.reading:
                plan = _planned(task, disk, feed)
        cover = _cover(task, web, crew, answer, feed)
        return replace(plan, fetched=fetched, moved=moved, cover=cover, notes=(*answer.notes, *notes, *plan.notes))
    except WebError as error:
        answered = answered or error.trouble is not Trouble.CONNECT
        return Failure(subscription, str(error), answered=answered, no_network=error.no_network, retry_after=error.retry_after)
    except FeedError as error:
        return Failure(subscription, str(error), answered=True)
    except DiskError as error:
        return Failure(subscription, str(error), answered=answered, counts=False)


def _ask(task: Task, web: Web, crew: Crew, url: str = "", *, anew: bool = False) -> Unmodified | Body:
    """``anew``: without validators, for an answer with the feed in it."""
    history = task.history
    anew = anew or not history.packed or history.url not in ("", task.subscription.url)
    validators, body_hash = (Validators(), "") if anew else (history.validators, history.body_hash)
    return fetch(
        web, url or task.subscription.url, validators, body_hash, task.settings, aside=crew.aside, pause=time.sleep, chance=random.random
    )


def _nothing_to_plan(task: Task, present: dict[str, int]) -> bool:
    """Whether an unchanged feed leaves nothing to decide: options, disk and failures are as the last plan left them."""
    history, subscription = task.history, task.subscription
    if subscription.max_days or not history.settled or history.settled != fingerprint(subscription):
        return False
    return present == {e.path: e.size for e in history.episodes if e.fate is Fate.HELD}


def _read_and_plan(task: Task, crew: Crew, disk: Disk, answer: Unmodified | Body) -> tuple[FeedDoc, Fetched | None, Plan]:
    """Both in one turn: thirty feeds that were read and wait for their plans would fill the memory."""
    with crew.reading:
        feed, fetched = _read(answer, task.history)
        return feed, fetched, _planned(task, disk, feed)


def _planned(task: Task, disk: Disk, feed: FeedDoc) -> Plan:
    from poca import planner

    return planner.plan(task.subscription, task.history, disk, feed, task.now, explained=task.explained)


def _read(answer: Unmodified | Body, history: History) -> tuple[FeedDoc, Fetched | None]:
    """The feed, and what is to be recorded of it: nothing of one that was cut off, which is asked for whole next time."""
    from poca import feed as feeds

    if isinstance(answer, Unmodified):
        return feeds.unpack(history.packed), Fetched(answer.validators, history.body_hash)
    doc = feeds.parse_feed(answer.content, answer.content_type, answer.url)
    return doc, None if doc.cut else Fetched(answer.validators, answer.body_hash, feeds.pack(doc))


Moved = tuple[FeedDoc, Fetched | None, str, tuple[str, ...]]


def _moved(task: Task, web: Web, crew: Crew, answer: Unmodified | Body, feed: FeedDoc, fetched: Fetched | None) -> Moved:
    """Where the feed has moved for good: the feed at its new place, and the URL for the config.

    A move is believed when an episode of the history is in the feed there. Raises FeedError when it is another show.
    A new history knows no episode: it goes on as it is, and the move is looked at in the next run.
    """
    here = task.subscription.url
    if feed.cut or not task.history.episodes:
        return feed, fetched, "", ()
    if answer.permanent and answer.permanent != here:
        _must_know(task, feed, answer.permanent)
        return feed, fetched, answer.permanent, ()
    if isinstance(answer, Body) and feed.new_feed_url and feed.new_feed_url not in (here, answer.url):
        try:
            there = _ask(task, web, crew, feed.new_feed_url, anew=True)
            doc, record = _read(there, task.history)
        except (WebError, FeedError) as error:
            return feed, fetched, "", (f"the feed names a new address, which gives no feed: {error}",)
        if doc.cut or not doc.entries:
            return feed, fetched, "", ("the feed names a new address, which gives no episodes",)
        _must_know(task, doc, feed.new_feed_url)
        return doc, record, feed.new_feed_url, there.notes
    return feed, fetched, "", ()


def _must_know(task: Task, feed: FeedDoc, url: str) -> None:
    from poca.identity import identify

    if not any(known.record for known in identify(feed.entries, task.history.episodes, task.now)):
        from poca.text import shown_url

        raise FeedError(f"the feed moved to {shown_url(url)}, where none of its episodes is; config and files stay as they are")


def _cover(task: Task, web: Web, crew: Crew, answer: Unmodified | Body, feed: FeedDoc) -> Cover | None:
    """The show's picture, where the feed has changed, or none was ever asked for."""
    history = task.history
    due = isinstance(answer, Body) or not (history.cover_url or history.cover_error)
    if not (due and task.subscription.cover and feed.image) or task.look_only:
        return None
    from poca import cover

    return cover.ask(web, feed.image, task.subscription, history, task.settings, crew.aside)


def _unforeseen(subscription: Subscription, error: BaseException) -> Failure:
    trace = "".join(traceback.format_exception(error))
    text = f"a fault of poca itself ({type(error).__name__}); the log has the details"
    return Failure(subscription, text, answered=True, counts=False, trace=trace)


