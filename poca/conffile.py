"""The config file on disk: edited in one step or not at all, and made where there is none.

What an edit does to the text is a function given by the caller (see :mod:`poca.confedit`). Here is what keeps the file
whole: a lock against other pocas, a second look against editors that save meanwhile, and a rename, so that a crash
leaves the old file or the new one.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from poca.errors import EditError
from poca.locks import PATIENCE, config_lock
from poca.text import shown

_TRIES = 5              # edits anew when somebody else saved the file meanwhile


def edit(path: Path, change: Callable[[str], str], *, wait: float = PATIENCE) -> None:
    """Replace the text of the config by what ``change`` makes of it, which may be asked several times.

    Line endings, a BOM, mode, owner (where permitted) and a symlink stay. ``wait``: seconds for the config's lock.
    Raises EditError, naming the file and what to write where; nothing has changed then.
    """
    target = _target(path)
    old = _read(target, path)
    new = _changed(path, change, old)
    if new == old:
        return
    try:
        if not os.access(target, os.W_OK) or not target.stat().st_mode & 0o222:
            raise PermissionError(0, "it is read-only")     # as replacing it would not notice
        with config_lock(target, wait) as held:
            if not held:
                raise EditError("another poca is busy with it")
            for _ in range(_TRIES):
                old = _read(target, path)
                new = _changed(path, change, old)
                if new == old or _replaced(target, old, new):
                    return
        raise EditError("it keeps being changed by another program")
    except _Told:
        raise
    except (OSError, UnicodeError, EditError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        if isinstance(error, UnicodeError):
            reason = "the new text holds a character that UTF-8 has not"
        raise EditError(f"{path} cannot be changed: {reason.rstrip('.')}. It is left as it was; by hand, {_by_hand(old, new)}") from error


def create(path: Path, text: str) -> None:
    """Write a first config, private to the user, folders above it included. Raises EditError, also when there is
    something at the path already: that is never overwritten."""
    data = text.encode()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise EditError(f"There is something at {path} already; it is left as it is.") from None
    except OSError as error:
        raise EditError(f"{path} cannot be made: {error.strerror or error}.") from error
    try:
        _write(file, data)
        _flush_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise EditError(f"{path} cannot be written: {error.strerror or error}.") from error
        raise


class _Told(EditError):
    """An error that names the file already."""


def _target(path: Path) -> Path:
    """The file itself where the path is a symlink."""
    try:
        target = Path(os.path.realpath(path, strict=True))
        regular = target.is_file()
    except FileNotFoundError:
        raise EditError(f"There is no config file at {path}.") from None
    except OSError as error:
        raise EditError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not regular:
        raise EditError(f"{path} is no regular file: a config has to be a text file.")
    return target


def _read(target: Path, path: Path) -> str:
    try:
        return target.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object[:error.start].count(b"\n") + 1
        raise _Told(f"{path} is not written in UTF-8 (line {line}), and is left as it is: save it as UTF-8 first.") from None
    except OSError as error:
        raise _Told(f"{path} cannot be read: {error.strerror or error}.") from error


def _changed(path: Path, change: Callable[[str], str], old: str) -> str:
    try:
        return change(old)
    except EditError as error:
        raise _Told(f"{path}: {error}") from error


def _replaced(target: Path, old: str, new: str) -> bool:
    """Whether the new text has taken the place of the old one; not when the file is no longer what was read."""
    before = target.stat()
    data = new.encode()
    handle, name = tempfile.mkstemp(prefix=".poca-", suffix=".tmp", dir=target.parent)
    try:
        with suppress(OSError):         # only root gives files away
            os.chown(handle, before.st_uid, before.st_gid)
        with suppress(OSError):         # not every file system knows modes
            Path(name).chmod(stat.S_IMODE(before.st_mode))
        _write(handle, data)
        if target.read_bytes() != old.encode():
            return False
        Path(name).replace(target)
    finally:
        with suppress(OSError):
            Path(name).unlink()
    _flush_folder(target.parent)
    return True


def _write(handle: int, data: bytes) -> None:
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """So that the new name outlives a crash of the machine, on file systems that can tell."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _by_hand(old: str, new: str) -> str:
    """What somebody with an editor would do."""
    return "\n".join(_steps(old.splitlines(), new.splitlines()))


def _steps(old: list[str], new: list[str]) -> Iterator[str]:
    for kind, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        lines = f"line {end}" if end == start + 1 else f"the lines {start + 1} to {end}"
        if kind == "delete":
            yield f"delete {lines}."
        elif kind in ("insert", "replace"):
            yield (f"after line {start} write:" if kind == "insert" else f"instead of {lines} write:")
            yield from (line[:len(line) - len(line.lstrip())] + shown(line) for line in new[first:last])
