"""The loop of the main thread: when a run is over, and that no report is lost."""

from __future__ import annotations

import random
import threading
import time
from queue import Queue

import pytest

from poca.executor import Later, run
from poca.model import Report, Subscription, Waiting
from poca.steps import Work
from tests import builders


def report(name: str = "Show") -> Waiting:
    return Waiting(Subscription(name, "http://127.0.0.1/"), 0)


def later(due: float, name: str = "Later") -> Later:
    return Later(due, Work(builders.plan(builders.feed(), title=name), 0, [], []))


class LandsBetween(Queue):
    """A queue into which the last report lands just between the loop's two looks at it: after ``unfinished_tasks``
    was read, before ``empty()`` is."""

    landing: Report | None = None
    looked = 0

    @property
    def unfinished_tasks(self) -> int:
        self.looked += 1
        return self.tasks

    @unfinished_tasks.setter
    def unfinished_tasks(self, value: int) -> None:
        self.tasks = value

    def empty(self) -> bool:
        self.land()
        return super().empty()

    def land(self) -> None:
        report, self.landing = self.landing, None
        if report:
            self.put(report)


class LandsAfterEmpty(LandsBetween):
    """The report lands right after the queue was seen empty."""

    def empty(self) -> bool:
        was = Queue.empty(self)
        self.land()
        return was


@pytest.mark.parametrize("queue_type", [LandsBetween, LandsAfterEmpty])
def test_a_report_that_lands_between_the_two_looks_is_carried_out(queue_type: type[LandsBetween]) -> None:
    queue = queue_type()
    seen = []

    def carry_out(one: Report | Later) -> None:
        seen.append(one.subscription.title)
        if len(seen) == 1:
            queue.landing = report("second")

    def launch(threads: object) -> None:
        queue.put(report("first"))

    done = threading.Thread(target=run, args=(["a", "b"], queue, launch, carry_out), daemon=True)
    done.start()
    # Where the loop waits in get() instead of looking, the report lands there.
    end = time.monotonic() + 5
    while done.is_alive() and time.monotonic() < end:
        time.sleep(0.05)
        if queue.landing and len(seen) == 1:
            queue.land()
    assert seen == ["first", "second"]
    assert not done.is_alive()


def test_a_run_without_subscriptions_is_over_at_once() -> None:
    run([], Queue(), lambda threads: None, lambda report: pytest.fail("nothing can arrive"))


def test_every_report_is_carried_out_in_the_order_of_arrival() -> None:
    queue: Queue[Report] = Queue()
    arrived, lock, seen = [], threading.Lock(), []

    def put(number: int) -> None:
        time.sleep(random.random() / 50)
        with lock:
            arrived.append(str(number))
            queue.put(report(str(number)))

    def launch(threads: object) -> None:
        for thread in threads:
            thread.start()

    def carry_out(one: Report | Later) -> None:
        time.sleep(random.random() / 1000)
        seen.append(one.subscription.title)

    run([threading.Thread(target=put, args=(n,)) for n in range(200)], queue, launch, carry_out)
    assert seen == arrived
    assert len(seen) == 200


def test_reports_that_arrive_while_one_is_carried_out_are_not_lost() -> None:
    queue: Queue[Report] = Queue()
    seen = []

    def carry_out(one: Report | Later) -> None:
        seen.append(one.subscription.title)
        if one.subscription.title == "0":
            for n in range(1, 5):
                queue.put(report(str(n)))

    run(list(range(5)), queue, lambda threads: queue.put(report("0")), carry_out)
    assert seen == ["0", "1", "2", "3", "4"]


def test_one_at_a_time_launches_the_next_thread_only_when_nothing_is_left_of_the_one_before() -> None:
    queue: Queue[Report] = Queue()
    story = []

    def launch(threads: list[str]) -> None:
        story.append(f"launch {threads}")
        queue.put(report(threads[0]))

    def carry_out(one: Report | Later) -> Later | None:
        story.append(f"carry out {one.subscription.title}")
        return later(time.monotonic() + 0.02, "rest of a") if one.subscription.title == "a" else None

    run(["a", "b"], queue, launch, carry_out, one_at_a_time=True)
    assert story == ["launch ['a']", "carry out a", "carry out rest of a", "launch ['b']", "carry out b"]


def test_what_was_put_off_waits_for_its_time_and_holds_nobody_up() -> None:
    queue: Queue[Report] = Queue()
    story: list[tuple[str, float]] = []
    begun = time.monotonic()

    def carry_out(one: Report | Later) -> Later | None:
        story.append((one.subscription.title, time.monotonic()))
        return later(begun + 0.2, "rest") if one.subscription.title == "0" else None

    def launch(threads: list[int]) -> None:
        for n in threads:
            queue.put(report(str(n)))

    run([0, 1, 2], queue, launch, carry_out)
    assert [title for title, _ in story] == ["0", "1", "2", "rest"]
    assert story[-1][1] >= begun + 0.2


def test_what_is_due_comes_before_further_reports() -> None:
    queue: Queue[Report] = Queue()
    seen = []

    def carry_out(one: Report | Later) -> Later | None:
        seen.append(one.subscription.title)
        return later(0.0, "rest") if one.subscription.title == "0" else None

    def launch(threads: list[int]) -> None:
        for n in threads:
            queue.put(report(str(n)))

    run([0, 1, 2], queue, launch, carry_out)
    assert seen == ["0", "rest", "1", "2"]


def test_what_is_put_off_again_and_again_is_carried_out_until_it_is_done() -> None:
    queue: Queue[Report] = Queue()
    left = [3]

    def carry_out(one: Report | Later) -> Later | None:
        left[0] -= 1
        return later(time.monotonic() + 0.01) if left[0] else None

    run([0], queue, lambda threads: queue.put(report()), carry_out)
    assert left == [0]


def test_an_interruption_ends_the_loop_at_once() -> None:
    queue: Queue[Report] = Queue()

    def carry_out(one: Report | Later) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([0, 1], queue, lambda threads: queue.put(report()), carry_out)
