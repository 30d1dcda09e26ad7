"""Locks between processes: of a subscription, of the log, of the config.

They are held by the operating system (flock), so that they end with their process however it ends. A lock file stays
where it is and stays empty: were it deleted, two processes could each hold a lock of that name. Never on the file that
is protected: opening a lock may change the file it is on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from poca.errors import EditError, StateError
from poca.naming import fold

PATIENCE = 5.0      # seconds: the log and the config are held for milliseconds only


def subscription_lock(state_dir: Path, title: str, wait: float = 0) -> AbstractContextManager[bool]:
    """The right to carry out what concerns the subscription. Yields whether it was had within ``wait`` seconds. Titles
    whose folders would be one share a lock. Raises StateError where locks cannot be used at all."""
    folder = state_dir / "locks"
    with suppress(OSError):     # told by the attempt to lock
        folder.mkdir(mode=0o700)
    name = hashlib.sha256(fold(title).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _held(folder / f"{name}.lock", wait, StateError)


def copy_lock(state_dir: Path) -> AbstractContextManager[bool]:
    """The right to make the daily copy of the history. Yields False while another poca makes it. Raises StateError."""
    return _held(state_dir / "poca.db.bak.lock", 0, StateError)


def log_lock(path: Path, wait: float = PATIENCE) -> AbstractContextManager[bool]:
    """The right to write to the log at ``path``. Yields whether it was had within ``wait`` seconds. Raises StateError."""
    return _held(Path(f"{os.path.realpath(path)}.lock"), wait, StateError)


def config_lock(path: Path, wait: float = PATIENCE) -> AbstractContextManager[bool]:
    """The right to edit the config at ``path``. Yields whether it was had within ``wait`` seconds. Raises EditError."""
    config = path.resolve()
    return _held(config.with_name(f".{config.name}.lock"), wait, EditError)


@contextmanager
def _held(path: Path, wait: float, failure: type[StateError] | type[EditError]) -> Iterator[bool]:
    from filelock import FileLock, Timeout

    if not path.parent.is_dir():    # filelock would make it, and that may be below a drive that is not mounted
        raise failure(f"The lock {path} cannot be used: its folder is not there.")
    lock = FileLock(path, timeout=wait, mode=0o600, thread_local=False, poll_interval=0.01, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    except OSError as error:
        raise failure(f"The lock {path} cannot be used: {error.strerror or error}.") from error
    try:
        yield True
    finally:
        lock.release()
