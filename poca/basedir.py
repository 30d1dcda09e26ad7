"""base_dir: whether it is ours, and what lies in it.

The marker is a file with an id that the history knows as well. A mount point whose disk is away, or another folder,
does not bear it; so "the file is not there" means "the user deleted it" only where the marker is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from poca import media
from poca.errors import BaseDirError, DiskError
from poca.model import Episode, Fate, Stranger

MARKER = ".poca-base"
HEAD = 65_536       # bytes, enough to tell what a file is


def read_marker(base_dir: Path) -> str:
    """The id in the folder's marker, "" where there is none or it cannot be read."""
    try:
        # By few calls into the system: at each of them the threads of a run hand the interpreter over to one another.
        descriptor = os.open(base_dir / MARKER, os.O_RDONLY)
        try:
            return os.read(descriptor, 256).partition(b"\n")[0].decode("ascii").strip()
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return ""


def write_marker(base_dir: Path, marker: str, *, first: bool = False) -> str:
    """The marker that the folder bears then: with ``first`` that of another poca which was there before."""
    temporary = base_dir / f"{MARKER}.{os.urandom(4).hex()}"
    try:
        with temporary.open("w", encoding="ascii") as file:
            file.write(f"{marker}\nBy this file poca knows its folder of podcasts. Leave it here.\n")
            file.flush()
            os.fsync(file.fileno())
        if first and _linked(temporary, base_dir / MARKER):
            return read_marker(base_dir)
        temporary.replace(base_dir / MARKER)
        return marker
    finally:
        temporary.unlink(missing_ok=True)


def _linked(temporary: Path, marker: Path) -> bool:
    """Whether there is a whole marker now, ours or another's: of several pocas that begin at once one is first."""
    try:
        os.link(temporary, marker)
    except FileExistsError:
        return read_marker(marker.parent) != ""
    except OSError:             # no hard links there
        return False
    return True


def settle(base_dir: Path, known: str, files: Iterable[tuple[str, int | None]], *, look_only: bool = False) -> tuple[str, str]:
    """Makes sure that ``base_dir`` is the folder of the history, whose marker is ``known`` and whose held files are
    ``files`` (path, size). Returns the marker that it bears then and what was done, "" for nothing. ``look_only`` changes
    nothing.

    Raises BaseDirError where the folder is not ours.
    """
    recorded = list(files)
    there = read_marker(base_dir)
    if known and there == known:
        return known, ""
    if not recorded:
        return (there, "") if look_only else _take(base_dir, there)
    if there:
        raise BaseDirError(
            f"base_dir {base_dir} belongs to another history: a history has one base_dir, two configs with two base_dirs need two "
            "state_dirs. Nothing was done; set base_dir back, or give this config a state_dir of its own."
        )
    fitting = sum(_size(base_dir / path) == size for path, size in recorded)
    if fitting * 2 < len(recorded):
        found = f"has {fitting} of the {len(recorded)} files that the history knows, and not poca's marker" if base_dir.exists() else "is not there"
        raise BaseDirError(
            f"base_dir {base_dir} {found}: is its drive mounted, is it the right folder? Nothing was done. "
            "A history has one base_dir; for another folder set another state_dir, too."
        )
    if not look_only:
        _write(base_dir, there := known or os.urandom(16).hex())
    written = "will be written anew" if look_only else "was written anew"
    return there, f"base_dir {base_dir} lost its marker, but has the files that the history knows: the marker {written}"


def _take(base_dir: Path, there: str) -> tuple[str, str]:
    """The folder for a history that knows of no file; a marker that is there already is learnt."""
    if not there:
        there = _write(base_dir, os.urandom(16).hex(), first=True)
    return there, ""


def _write(base_dir: Path, marker: str, *, first: bool = False) -> str:
    try:
        base_dir.mkdir(parents=True, exist_ok=True)
        return write_marker(base_dir, marker, first=first)
    except OSError as error:
        raise BaseDirError(f"base_dir {base_dir} cannot be used: {error.strerror or error}. Nothing was done.") from None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def present(base_dir: Path, marker: str, episodes: Iterable[Episode]) -> dict[str, int]:
    """The sizes of the recorded files that are there and are media still, by path.

    Raises DiskError for whatever is neither "there" nor "no such file", and when the marker is not there afterwards:
    then the drive may have gone while we looked.
    """
    found = {}
    for episode in episodes:
        if not episode.path or episode.fate not in (Fate.HELD, Fate.DELETED):
            continue
        path = base_dir / episode.path
        try:
            status = path.stat()
            if stat.S_ISREG(status.st_mode) and (status.st_size == episode.size or _is_media(path)):
                found[episode.path] = status.st_size
        except FileNotFoundError:
            pass
        except OSError as error:
            raise DiskError(f"{episode.path} cannot be looked at: {error.strerror or error}. Nothing is done here") from None
    if read_marker(base_dir) != marker:
        raise DiskError(f"base_dir {base_dir} bears no marker of poca any more: is its drive still mounted? Nothing is done here")
    return found


def strangers(base_dir: Path, folder: str, recorded: Iterable[str]) -> dict[str, Stranger]:
    """The visible files with a media extension below the folder of a subscription that are not among the recorded paths.

    Raises DiskError where the folder cannot be read.
    """
    known, found, folders = frozenset(recorded), {}, [folder]
    while folders:
        inside = folders.pop()
        try:
            with os.scandir(base_dir / inside) as entries:
                for entry in entries:
                    path = f"{inside}/{entry.name}"
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif path not in known and media.media_extension(entry.name) and entry.is_file():
                        found[path] = Stranger(entry.stat().st_size, _is_media(base_dir / path))
        except FileNotFoundError:
            continue
        except OSError as error:
            what = "is a file, not a folder" if isinstance(error, NotADirectoryError) else f"cannot be read: {error.strerror or error}"
            raise DiskError(f"the folder {base_dir / inside} {what}. Nothing is done here") from None
    return found


def _is_media(path: Path) -> bool:
    with path.open("rb") as file:
        return media.sniff(file.read(HEAD)) is not None
