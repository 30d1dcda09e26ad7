"""What has to be so before a program of poca begins."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def guard_descriptors() -> None:
    """Opens the null device in the place of stdin, stdout or stderr where the caller closed it (``>&-``): the next file
    that is opened would get its number, and what is meant for the terminal would be written into it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8")


@contextmanager
def interrupted_silently() -> Iterator[None]:
    """While this lasts, before anything is begun that could be brought to an end, Ctrl-C ends the program on the spot, as
    it does any that does not speak Python. Where the caller has it ignored (``poca &`` in a script) it stays so."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def utf8_names() -> None:
    """Starts the program again in Python's UTF-8 mode where names of files would be written in another encoding: in
    cron's C locale titles beyond ASCII could not even be names, and in another they would be names that nobody reads.
    The terminal keeps the encoding that it has."""
    if sys.getfilesystemencoding().lower().replace("-", "") == "utf8" or sys.flags.utf8_mode:
        return
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": os.environ.get("PYTHONIOENCODING") or f"{encoding}:backslashreplace"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
