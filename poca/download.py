"""One URL -> one complete file, which grows under the name of a part and is resumed where that is safe."""

from __future__ import annotations

import errno
import os
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from poca import media, templates, text
from poca.errors import DiskFullError, Trouble, WebError, disk_error, on_disk
from poca.media import Kind
from poca.model import Settings
from poca.web import Answer, Trail, Web

PIECE = 1024 * 1024         # bytes asked of the connection at once; a quarter of it makes fast downloads a sixth slower
HEAD = 64 * 1024            # bytes that tell media from a page or a message
MB = 1_000_000
LOOK = 4 * MB               # bytes between two looks at the room that the disk has
WORTHLESS = (Trouble.TEXT, Trouble.TOO_LARGE, Trouble.ENCODING)     # after these nobody wants to go on with the part

Begun = Callable[[str, int | None], None]
Progress = Callable[[int, int | None], None]


class Part(NamedTuple):
    """The file that grows, and what is known of the answer it came from: a strong ETag ("" for none) and the whole
    length in bytes."""

    path: Path
    etag: str = ""
    total: int | None = None


class Downloaded(NamedTuple):
    """A complete part: its size in bytes, its kind by its bytes, the answer's media type, and the URL that gave it."""

    size: int
    kind: Kind | None
    mime: str
    url: str


def download(
    web: Web, url: str, part: Part, settings: Settings, *, begun: Begun, progress: Progress,
    feed_type: str = "", extension: str = "", auth_from: str = "", trail: Trail | None = None, clock: Callable[[], float] = time.monotonic,
) -> Downloaded:
    """Fetches ``url`` into ``part.path``, whole and verified against the length that the answer tells.

    ``begun(etag, total)`` is called once the part is as the record will say, before the first byte is written; what it
    raises ends the download. ``progress(have, total)`` is called after each piece. ``feed_type`` and ``extension`` are
    what the feed says of the enclosure, ``auth_from`` is the feed's URL, whose login its own host may need. ``clock``
    is monotonic. The part is not flushed to disk.

    Never waits for a host: raises HostBusy, whose ``trail`` is then to be given to the next try. Also raises WebError,
    DiskError, DiskFullError. The part is kept on an interruption, and on all errors but those after
    which it is worth nothing: text, too large, packed, a full disk.
    """
    one = _One(web, url, part, settings, begun, progress, feed_type, extension, auth_from, clock)
    try:
        if done := one.fetch(_resumable(part), trail):
            return done
        drop(part.path)
        return one.fetch(0) or _never(url)
    except WebError as error:
        if error.trouble in WORTHLESS or _is_empty(part.path):
            drop(part.path)
        raise
    except DiskFullError:
        drop(part.path)
        raise


def drop(path: Path) -> None:
    """Removes a part, if it is there. Raises DiskError."""
    with on_disk("cannot remove a partial file"):
        path.unlink(missing_ok=True)


def _is_empty(path: Path) -> bool:
    with on_disk("cannot read a partial file"):
        return path.is_file() and path.stat().st_size == 0


def _never(url: str) -> Downloaded:
    raise WebError(f"{text.shown_url(url)} refuses to send the file from its start", Trouble.STATUS)


def _resumable(part: Part) -> int:
    """From which byte to go on; 0: from the start. A part that has all its bytes is asked for its last one, so that
    the server says whether it is still the same file."""
    if not (_strong(part.etag) and part.total):
        return 0
    with on_disk("cannot read a partial file"):
        size = part.path.stat().st_size if part.path.is_file() else 0
    return 0 if size > part.total else min(size, part.total - 1)


def _strong(etag: str) -> str:
    """The ETag where it is strong, else "" (RFC 9110, 8.8.3: only a strong one says that every byte is the same)."""
    return etag if re.fullmatch(r'"[^"]*"', etag) else ""


def _header(answer: Answer, name: str) -> str:
    return (answer.headers.get(name) or "").strip()


def _told_range(headers: Mapping[str, str]) -> tuple[int, int | None] | None:
    """First byte and whole length of a Content-Range (RFC 9110, 14.4)."""
    match = re.fullmatch(r"\s*bytes\s+(\d+)-\d+/(\d+|\*)\s*", headers.get("Content-Range") or "", re.ASCII | re.IGNORECASE)
    return (int(match[1]), None if match[2] == "*" else int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class _One:
    """The download of one file."""

    web: Web
    url: str
    part: Part
    settings: Settings
    begun: Begun
    progress: Progress
    feed_type: str
    extension: str
    auth_from: str
    clock: Callable[[], float]

    def fetch(self, offset: int, trail: Trail | None = None) -> Downloaded | None:
        """One request, for the bytes from ``offset`` on. None: nothing of the part can be gone on with."""
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers |= {"Range": f"bytes={offset}-", "If-Range": self.part.etag}
        with self.web.open(self.url, headers, deadline=None, aside=None, auth_from=self.auth_from, trail=trail) as answer:
            if answer.status == 206 and offset and self._goes_on(answer, offset):
                return self._body(answer, offset, self.part.total)
            if offset and answer.status in (206, 416):
                return None
            if answer.status != 200:
                raise answer.failure()
            return self._body(answer, 0, answer.total)

    def _goes_on(self, answer: Answer, offset: int) -> bool:
        etag = _header(answer, "ETag")
        return _told_range(answer.headers) == (offset, self.part.total) and etag in ("", self.part.etag)

    def _body(self, answer: Answer, offset: int, total: int | None) -> Downloaded:
        if total == 0:
            raise self._empty()
        self._limit(total or 0, told=True)
        with on_disk("cannot write a partial file"):
            # The part is cut before the new ETag is recorded: a crash in between must not leave old bytes under it.
            file = open(self.part.path, "r+b" if offset else "wb", buffering=0, opener=_no_link)  # noqa: SIM115
        try:
            with on_disk("cannot write a partial file"):
                head = bytearray(file.read(min(offset, HEAD)) if offset else b"")
                file.seek(offset)
                file.truncate()
            self.begun(_strong(_header(answer, "ETag")), total)
            size, kind = self._copy(answer, file, head, offset, total)
            if not size:
                raise self._empty()
            if total is not None and size != total:
                raise WebError(f"the download ended after {text.size(size)} of {text.size(total)}", Trouble.CUT)
        finally:
            with on_disk("cannot write a partial file"):
                file.close()
        return Downloaded(size, kind, _header(answer, "Content-Type"), answer.url)

    def _copy(self, answer: Answer, file: BinaryIO, head: bytearray, size: int, total: int | None) -> tuple[int, Kind | None]:
        """Writes the body to ``file``; gives the size of the whole and its kind, judged as soon as its head is there."""
        pace = _Pace(self.settings, self.clock)
        judged, kind, looked = False, None, size
        while piece := answer.read(PIECE):
            size += len(piece)
            self._limit(size, told=False)
            if size - looked >= LOOK:
                self._leave_room(file)
                looked = size
            self._write(file, piece)
            self.progress(size, total)
            if not judged:
                head += piece[: HEAD - len(head)]
                if len(head) >= HEAD:
                    judged, kind = True, self._judge(bytes(head), answer)
            pace.check(len(piece))
        if not judged and head:
            kind = self._judge(bytes(head), answer)
        return size, kind

    def _write(self, file: BinaryIO, piece: bytes) -> None:
        try:
            written = file.write(piece)     # unbuffered, so that an error comes here and not when the file is closed
            while written < len(piece):
                written += file.write(memoryview(piece)[written:])
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise WebError("the file is larger than the file system of base_dir can hold", Trouble.TOO_LARGE) from error
            raise disk_error(error, "cannot write a partial file") from error

    def _limit(self, size: int, *, told: bool) -> None:
        most = self.settings.max_episode_mb * MB
        if most and size > most:
            how = f"it is {text.size(size)} long" if told else f"more than {text.size(size)} came"
            raise WebError(f"{how}, and max_episode_mb allows {self.settings.max_episode_mb:g} MB", Trouble.TOO_LARGE)

    def _leave_room(self, file: BinaryIO) -> None:
        """A stream that tells no length, or another program, may take the room that was there at the start."""
        with on_disk("cannot tell how much room the disk has"):
            disk = os.fstatvfs(file.fileno())
        free = disk.f_bavail * disk.f_frsize
        if free < self.settings.min_free_mb * MB:
            raise DiskFullError(f"the disk has only {text.size(free)} left, and min_free_mb keeps {self.settings.min_free_mb:g} MB free")

    def _judge(self, head: bytes, answer: Answer) -> Kind | None:
        """The kind of what begins with ``head``; raises WebError for what is no audio or video, whatever its label."""
        kind = media.sniff(head)
        if kind is not None:
            return kind
        mime = _header(answer, "Content-Type")
        if media.looks_like_text(head):
            label = f" (labelled {self._shown(answer, mime)})" if media.is_media_type(mime) else ""
            said = self._shown(answer, text.plain(head[:2000].decode("utf-8", "replace")))[:60].rstrip()
            raise WebError(f"a page or a message came instead of the episode{label}: “{said}”", Trouble.TEXT)
        packing = _header(answer, "Content-Encoding").lower()
        if packing in ("gzip", "x-gzip", "deflate", "br", "zstd", "compress"):
            raise WebError(f"the server packed the file ({packing}), though it was asked not to", Trouble.ENCODING)
        names = (self.extension, templates.original_name(self.url), templates.original_name(answer.url))
        if not (media.is_media_type(mime) or media.is_media_type(self.feed_type) or any(map(media.media_extension, names))):
            raise WebError(f"what came is neither audio nor video ({self._shown(answer, mime) or 'of no told type'})", Trouble.TEXT)
        return None

    def _shown(self, answer: Answer, said: str) -> str:
        return text.shown_answer(said, self.url, answer.url, self.auth_from)

    def _empty(self) -> WebError:
        return WebError("the answer was empty", Trouble.CUT)


class _Pace:
    """Whether bytes come fast enough: at least ``min_speed`` over the last ``timeout`` seconds."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self.settings, self.clock = settings, clock
        self.received = 0
        self.marks = deque([(clock(), 0)])      # instant, bytes received until then

    def check(self, count: int) -> None:
        """Counts bytes that came just now; raises WebError when the last ``timeout`` brought too few."""
        now, window = self.clock(), self.settings.timeout
        self.received += count
        while len(self.marks) > 1 and self.marks[1][0] <= now - window:
            self.marks.popleft()
        since, before = self.marks[0]
        if now - since >= window and self.received - before < self.settings.min_speed * (now - since):
            raise WebError(f"the download stalled: {text.size(self.received - before)} in the last {text.duration(now - since)}", Trouble.STALLED)
        if now - self.marks[-1][0] >= window / 64:
            self.marks.append((now, self.received))


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
