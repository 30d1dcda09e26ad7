"""Who may ask which host when: the threads of a run queue here before each request."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Aside = Callable[[], AbstractContextManager[object]]


class Busy(Exception):
    """A host that cannot be asked now. ``seconds``: until it can, inf where others' requests decide that."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class _Turn:
    """A request that waits for its host, or is under way."""

    __slots__ = ("granted", "started")

    def __init__(self) -> None:
        self.granted, self.started = threading.Event(), False


class _Queue:
    """The requests of one host: how many are under way, which waits for its start, who waits for a place."""

    __slots__ = ("next_start", "running", "starting", "waiting")

    def __init__(self) -> None:
        self.running, self.starting, self.next_start = 0, False, 0.0
        self.waiting: deque[_Turn] = deque()


class Gate:
    """At most ``per_host`` requests at once to one host, ``delay`` seconds between two starts, first come first served.

    Who holds a place at a host gives it back before asking for another, at whatever host: so nobody waits for ever.
    """

    def __init__(self, per_host: int, delay: float) -> None:
        self._per_host, self._delay = per_host, delay
        self._queues: dict[str, _Queue] = {}
        self._lock = threading.Lock()

    def free_in(self, host: str) -> float:
        """Seconds until the host can be asked, inf where others' requests decide that."""
        with self._lock:
            queue = self._queues.get(host)
            return self._wait(queue) if queue else 0.0

    def _wait(self, queue: _Queue) -> float:
        if queue.waiting or queue.starting or queue.running >= self._per_host:
            return math.inf
        return max(0.0, queue.next_start - time.monotonic())

    @contextmanager
    def place(self, host: str, aside: Aside | None, waited: Callable[[float], None]) -> Iterator[None]:
        """Holds one of the host's places. While the caller waits for it, it is in ``aside()``; then ``waited`` is told
        the seconds that it took. A caller without ``aside`` does not wait: it gets Busy instead."""
        turn = _Turn()
        with self._lock:
            queue = self._queues.setdefault(host, _Queue())
            if aside is None:
                seconds, aside = self._wait(queue), nullcontext
                if seconds > 0:
                    raise Busy(seconds)
            queue.waiting.append(turn)
            self._advance(queue)
        try:
            begin = time.monotonic()
            if not turn.granted.is_set() or queue.next_start > begin:
                with aside():
                    turn.granted.wait()
                    time.sleep(max(0.0, queue.next_start - time.monotonic()))
                waited(time.monotonic() - begin)
            if self._delay:
                with self._lock:
                    self._start(queue, turn)
            yield
        finally:
            with self._lock:
                if turn.granted.is_set():
                    queue.running -= 1
                    if self._delay and not turn.started:    # interrupted
                        queue.starting = False
                else:
                    queue.waiting.remove(turn)
                self._advance(queue)

    def _start(self, queue: _Queue, turn: _Turn) -> None:
        turn.started, queue.starting = True, False
        queue.next_start = time.monotonic() + self._delay
        self._advance(queue)

    def _advance(self, queue: _Queue) -> None:
        """Lets the next ones in. With a delay only one, until it has really started: coming back from ``aside`` may take long."""
        while queue.waiting and queue.running < self._per_host and not queue.starting:
            queue.running += 1
            queue.starting = bool(self._delay)
            queue.waiting.popleft().granted.set()
