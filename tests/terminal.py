"""A program at a terminal: its output as a person would see it, and its questions answered."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence


def at_terminal(
    command: Sequence[str], env: Mapping[str, str], *, answers: Sequence[tuple[str, str]] = (), columns: int = 80, limit: float = 60, cwd: str = "/",
) -> tuple[int, str]:
    """Exit code and output of a program whose stdin, stdout and stderr are a terminal. ``answers``: what is typed once a
    text has appeared, in their order."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    given = {"TERM": "dumb", **env}
    # The shell opens the terminal anew, which makes it the one that Ctrl-C comes from.
    shell = ["sh", "-c", 'exec "$@" <"$0"', os.ttyname(follower), *command]
    process = subprocess.Popen(shell, stdin=follower, stdout=follower, stderr=follower, env=given, cwd=cwd, start_new_session=True)
    os.close(follower)
    waiting, seen, looked = list(answers), b"", 0
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    piece = os.read(leader, 65536)
                except OSError as error:
                    assert error.errno == errno.EIO     # the other end is closed
                    break
                if not piece:
                    break
                seen += piece
            place = seen.find(waiting[0][0].encode(), looked) if waiting else -1
            if place >= 0:
                looked = place + len(waiting[0][0].encode())
                os.write(leader, waiting.pop(0)[1].encode() + b"\n")
        code = process.wait(max(0.1, end - time.monotonic()))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        os.close(leader)
    assert not waiting, f"{waiting[0][0]!r} was not asked: {seen!r}"
    return code, seen.decode().replace("\r\n", "\n")
