"""SIGINT and SIGTERM end a run at once, wherever the main thread is, but for the places where that would leave a thing half done."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from poca.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGAIN = 0.1        # seconds


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
    """While this lasts the first signal raises Interrupted; a second one does not disturb the end.

    Python drops what is raised while it calls a finalizer, as that of a lock which is let go: hence an alarm raises it
    again, until it is on its way.
    """
    code, unraisable = 0, sys.unraisablehook

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal code
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        code = 128 + number
        signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
        again(number, frame)

    def again(_number: int, _frame: FrameType | None) -> None:
        if _on_its_way(sys.exception()):
            return
        if not held.depth:
            raise Interrupted(code)
        held.code = code

    def dropped(what: sys.UnraisableHookArgs) -> None:
        if not isinstance(what.exc_value, Interrupted):
            unraisable(what)

    handlers = {**dict.fromkeys(_SIGNALS, stop), signal.SIGALRM: again}
    # What the caller has ignored stays so: the SIGINT of `poca &` in a script is meant for another program.
    before = {number: signal.signal(number, handler) for number, handler in handlers.items() if signal.getsignal(number) is not signal.SIG_IGN}
    sys.unraisablehook = dropped
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_its_way(error: BaseException | None) -> bool:
    while error and not isinstance(error, Interrupted):
        error = error.__context__
    return error is not None
