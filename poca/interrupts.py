"""SIGINT and SIGTERM end a run at once, wherever the main thread is, but for the places where that would leave a thing half done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from poca.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Held:
    """A block that a signal ends only once it is through. Not a generator: what is raised by a signal between the entry
    of one and its block leaves it open until it is collected, whenever that is."""

    def __init__(self) -> None:
        self.depth = self.code = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.code and not self.depth:
            code, self.code = self.code, 0
            raise Interrupted(code)


held = _Held()      # for the main thread, the only one that signals interrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """While this lasts the first signal raises Interrupted; a second one does not disturb the end."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        if not held.depth:
            raise Interrupted(128 + number)
        held.code = 128 + number

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
