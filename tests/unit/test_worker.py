"""The threads: at most so many at work, each started in its turn, each putting exactly one report."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Queue

import pytest

from poca import basedir
from poca.model import Failure, History, Settings, Unchanged, Waiting
from poca.web import Web
from poca.worker import Crew, SubscriptionThread, Task
from tests.builders import NOW, subscription


class Counting(threading.Thread):
    """A stand-in for what a crew starts: works for a while, and tells how many work at once."""

    now, peak, order = 0, 0, []
    lock = threading.Lock()

    def __init__(self, number: int, crew: Crew, waits: bool = False) -> None:
        super().__init__(daemon=True)
        self.number, self.crew, self.waits = number, crew, waits

    def begin(self) -> bool:
        self.start()
        return True

    def run(self) -> None:
        with Counting.lock:
            Counting.order.append(self.number)
        self.work()
        if self.waits:
            with self.crew.aside():
                time.sleep(0.05)
            self.work()
        self.crew.leave()

    def work(self) -> None:
        with Counting.lock:
            Counting.now += 1
            Counting.peak = max(Counting.peak, Counting.now)
        time.sleep(0.01)
        with Counting.lock:
            Counting.now -= 1


def crowd(places: int, count: int, *, waits: bool = False) -> list[Counting]:
    Counting.now, Counting.peak, Counting.order = 0, 0, []
    crew = Crew(places)
    threads = [Counting(number, crew, waits) for number in range(count)]
    crew.launch(threads)
    ended(threads)
    return threads


def ended(threads: list[Counting]) -> None:
    deadline = time.monotonic() + 10
    while any(t.ident is None or t.is_alive() for t in threads) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(t.ident is None or t.is_alive() for t in threads)


@pytest.mark.parametrize("places", [1, 3])
@pytest.mark.parametrize("waits", [False, True])
def test_no_more_work_at_once_than_there_are_places_and_all_come_to_their_turn(places, waits):
    crowd(places, 20, waits=waits)
    assert Counting.peak == places


def test_with_one_place_they_work_in_order():
    crowd(1, 20)
    assert Counting.order == list(range(20))


def test_who_only_waits_takes_no_place_from_others():
    crew, all_wait = Crew(1), threading.Barrier(20)

    class Waiting(Counting):
        def run(self) -> None:
            with crew.aside():
                all_wait.wait(10)       # raises unless all twenty are here at once
            Counting.order.append(self.number)
            crew.leave()

    Counting.order = []
    threads = [Waiting(number, crew) for number in range(20)]
    crew.launch(threads)
    ended(threads)
    assert len(Counting.order) == 20


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    basedir.write_marker(tmp_path, "m")
    return Settings(base_dir=tmp_path, state_dir=tmp_path / "state", timeout=1)


def reports(task: Task) -> list[object]:
    queue: Queue[object] = Queue()
    assert SubscriptionThread(task, Web(task.settings), Crew(1), queue).begin()
    for thread in threading.enumerate():
        if thread.name == task.subscription.title:
            thread.join(10)
    return [queue.get_nowait() for _ in range(queue.qsize())]


class Raising:
    """A folder that raises what it is told to, as soon as something is looked for in it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __truediv__(self, name: str) -> Path:
        raise self.error


@pytest.mark.parametrize(
    "error", [SystemExit(3), MemoryError(), KeyboardInterrupt(), RuntimeError("odd"), GeneratorExit()], ids=lambda e: type(e).__name__
)
def test_whatever_happens_in_a_thread_it_puts_exactly_one_report(error):
    broken = Settings(base_dir=Raising(error), state_dir=Path())
    (report,) = reports(Task(subscription(), History("Show"), broken, "m", NOW))
    assert isinstance(report, Failure)
    assert type(error).__name__ in report.error
    assert type(error).__name__ in report.trace
    assert not report.counts, "a fault of poca's own is none of the feed's"


def test_a_thread_that_cannot_be_started_is_a_failure_and_the_next_has_its_turn():
    code = """
import resource, threading
from pathlib import Path
from queue import Queue
from poca.model import History, Settings
from poca.web import Web
from poca.worker import Crew, SubscriptionThread, Task
from tests.builders import NOW, subscription
settings = Settings(base_dir=Path("/nowhere"), state_dir=Path("/nowhere"))
queue, crew = Queue(), Crew(1)
threads = [SubscriptionThread(Task(subscription(title=t), History(t), settings, "m", NOW), Web(settings), crew, queue) for t in ("A", "B")]
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
threading.stack_size(1 << 30)
crew.launch(threads)
for _ in threads:
    report = queue.get(timeout=5)
    print(report.subscription.title, report.error)
print(queue.empty())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    first, second, empty = done.stdout.splitlines()
    assert first.startswith("A no thread could be started")
    assert second.startswith("B no thread could be started")
    assert empty == "True"


def test_a_feed_that_is_to_wait_is_not_asked(settings):
    history = History("Show", next_try=NOW + 60, error="the server answers 503")
    (report,) = reports(Task(subscription(url="http://127.0.0.1:9/feed.xml"), history, settings, "m", NOW))
    assert report == Waiting(subscription(url="http://127.0.0.1:9/feed.xml"), NOW + 60, "the server answers 503")


def test_a_feed_that_was_named_is_asked_although_it_is_to_wait(settings):
    history = History("Show", next_try=NOW + 60)
    (report,) = reports(Task(subscription(url="http://127.0.0.1:9/feed.xml"), history, settings, "m", NOW, asked=True))
    assert isinstance(report, Failure)


def test_without_the_marker_nothing_is_asked(settings):
    (report,) = reports(Task(subscription(), History("Show"), settings, "another", NOW))
    assert "mounted" in report.error
    assert not isinstance(report, Unchanged)
