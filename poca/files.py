"""What is done to the files of a subscription: parts, names, deletions, room. Each step by itself, none of them recorded here.

Paths are relative to base_dir, as in the history; nothing here leaves base_dir, also not through a link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from poca import naming
from poca.errors import DiskError, disk_error, on_disk
from poca.model import Episode, Subscription

Link = Callable[[Path, Path], None]

# What link(2) says where a file system has no hard links, or this file can have no more of them.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
# What file systems say to a name that they do not take.
_NO_NAME = {errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOENT}


class NameRefusedError(DiskError):
    """The file system does not take the name."""


def part_path(subscription: Subscription, key: str) -> str:
    """The hidden name under which the file of an episode grows."""
    return f"{subscription.folder}/.poca-{key[:12]}.part"


def is_part(path: str) -> bool:
    """Whether a recorded path can be that of a part, so that removing it can hurt nothing else."""
    name = path.rpartition("/")[2]
    return name.startswith(".poca-") and name.endswith(".part")


def tagging_copy(part: str) -> str:
    """The path, or name, of the copy of a part in which its tags are changed."""
    return part.removesuffix(".part") + ".tagging.part"


def inside(base: Path, relative: str) -> Path:
    """The absolute path of ``relative``. Raises DiskError where that is not below ``base``, by dots or by links."""
    steps = relative.split("/")
    if ".." in steps or not relative or relative.startswith("/") or _leads_out(base, steps[:-1]):
        raise DiskError(f"{relative} is not within base_dir, so it is left alone")
    return base / relative


def _leads_out(base: Path, steps: Sequence[str]) -> bool:
    """Whether a link among the folders leads to elsewhere. Where there is none, there is nothing to follow."""
    with on_disk(f"cannot look at {'/'.join(steps)}"):
        if not any(base.joinpath(*steps[:count]).is_symlink() for count in range(1, len(steps) + 1)):
            return False
        return not Path(os.path.realpath(base.joinpath(*steps))).is_relative_to(os.path.realpath(base))


def make_folder(base: Path, relative: str) -> Path:
    """The folder that ``relative`` is in, made where it is not there; base_dir itself is never made. Raises DiskError."""
    folder = inside(base, relative).parent
    steps = folder.relative_to(base).parts
    for count in range(1, len(steps) + 1):
        part_way = base.joinpath(*steps[:count])
        if part_way.is_dir():
            continue
        try:
            with contextlib.suppress(FileExistsError):
                part_way.mkdir()
        except OSError as error:
            if error.errno in _NO_NAME and base.is_dir():
                raise NameRefusedError(f"the disk does not take the name {steps[count - 1]}") from error
            raise disk_error(error, f"cannot make the folder {'/'.join(steps[:count])}") from error
        if not part_way.is_dir():
            raise DiskError(f"{'/'.join(steps[:count])} is no folder")
    return folder


def flush(path: Path) -> int:
    """Brings a file to the disk itself; its size in bytes. Raises DiskError."""
    with on_disk(f"cannot write {path.name}"):
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(number)
            return os.fstat(number).st_size
        finally:
            os.close(number)


def flush_folder(folder: Path) -> None:
    """Brings the names in a folder to the disk. Some file systems cannot, and need no such thing."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def give_name(base: Path, part: Path, names: Sequence[str], about_to: Callable[[str], None], link: Link = os.link) -> str:
    """Gives a part the first of ``names`` that is free and that the disk takes, without ever overwriting; the name.

    ``about_to(name)`` is called before the disk is touched. Raises DiskError, also when no name is left.
    """
    for name in names:
        try:
            target = make_folder(base, name) / name.rpartition("/")[2]
            if _is_taken(target):
                continue
            about_to(name)
            if _move(part, target, link):
                flush_folder(target.parent)
                return name
        except NameRefusedError:
            continue
    raise DiskError(f"no name is left for the file: {names[0]} and all the others are taken or refused by the disk")


def _is_taken(target: Path) -> bool:
    """Also by a name that differs in letter case or composition only: other systems could not tell the two apart."""
    alike = naming.fold(target.name)
    with on_disk(f"cannot read the folder {target.parent.name}"), os.scandir(target.parent) as there:
        return any(naming.fold(entry.name) == alike for entry in there)


def _move(part: Path, target: Path, link: Link) -> bool:
    """False: something else has the name."""
    try:
        link(part, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise _refused(error, part, target) from error
        return _rename(part, target)
    with on_disk(f"cannot remove {part.name}"):
        part.unlink()
    return True


def _rename(part: Path, target: Path) -> bool:
    # The instant between looking and renaming is left open where there are no hard links.
    if os.path.lexists(target):
        return False
    try:
        part.rename(target)
    except OSError as error:
        raise _refused(error, part, target) from error
    return True


def _refused(error: OSError, part: Path, target: Path) -> DiskError:
    if error.errno in _NO_NAME and part.exists():
        return NameRefusedError(f"the disk does not take the name {target.name}")
    return disk_error(error, f"cannot give the name {target.name}")


def regular_size(path: Path) -> int | None:
    """The size of the file there, None where there is nothing. Raises DiskError, also for what is no regular file."""
    with on_disk(f"cannot look at {path.name}"):
        try:
            found = path.lstat()
        except FileNotFoundError:
            return None
    if not stat.S_ISREG(found.st_mode):
        raise DiskError(f"{path.name} is no longer a file of its own, so it is left alone")
    return found.st_size


def remove(base: Path, relative: str) -> None:
    """Removes a file, if it is there. Raises DiskError."""
    path = inside(base, relative)
    with on_disk(f"cannot delete {path.name}"):
        path.unlink(missing_ok=True)


def tidy(base: Path, subscription: Subscription, relative: str) -> None:
    """Removes the folders that a template made for ``relative`` and that are empty now, never the subscription's own."""
    top = base / subscription.folder
    folder = inside(base, relative).parent
    with contextlib.suppress(OSError):      # rmdir refuses a folder in which anything is left
        while folder != top and folder.is_relative_to(top) and not folder.is_symlink():
            folder.rmdir()
            folder = folder.parent


def free(base: Path, relative: str) -> int:
    """Bytes that are free where ``relative`` lies or will lie. Raises DiskError."""
    path = base / relative
    while not path.is_dir() and path != base:
        path = path.parent
    with on_disk("cannot tell how much room the disk has"):
        return shutil.disk_usage(path).free


def on_disk_size(base: Path, episodes: Sequence[Episode]) -> int:
    """Bytes that deleting the files of ``episodes`` would free."""
    total = 0
    for episode in episodes:
        with contextlib.suppress(DiskError):
            total += regular_size(inside(base, episode.path)) or 0
    return total
