"""One feed from the network: a conditional GET, tried again where that may help, unpacked, within bounds.

Rules: RFC 9110 (conditional requests 13, Content-Encoding 8.4, Retry-After 10.2.3), RFC 1952 (gzip), RFC 1950 (zlib).
"""

from __future__ import annotations

import hashlib
import io
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from poca import text
from poca.errors import Trouble, WebError
from poca.gate import Aside
from poca.model import Settings, Validators
from poca.web import WHOLE, Answer, Web

PIECE = 256 * 1024  # bytes read or unpacked at a time
TRIES = 3
LAYERS = 3          # of packing, announced or not; more of them is nobody's feed
MEMBERS = 10_000    # of a gzip stream; each costs time, even where it holds nothing


class Unmodified(NamedTuple):
    """The feed is as it was: a 304, or the same bytes again. ``answered_url`` gave the answer, without user info."""

    validators: Validators
    answered_url: str
    permanent: str = ""         # see poca.web.Answer
    notes: tuple[str, ...] = ()


class Body(NamedTuple):
    """A feed as it came, unpacked. ``url``: the one that answered, without user info."""

    content: bytes
    content_type: str | None
    url: str
    validators: Validators
    body_hash: str              # SHA-256 of the content, hex
    permanent: str = ""         # see poca.web.Answer
    notes: tuple[str, ...] = ()


def fetch(
    web: Web, url: str, validators: Validators, body_hash: str, settings: Settings, *,
    aside: Aside, pause: Callable[[float], None], chance: Callable[[], float],
) -> Unmodified | Body:
    """Asks for a feed, unless it is still what ``validators`` or ``body_hash`` tell. Raises WebError.

    Up to two more tries, after pauses that grow with each and lie, by ``chance()`` (0 to 1), around a fifteenth and
    a fifth of ``timeout``; a Retry-After of up to ``timeout`` is waited for instead, a longer one ends the tries. All
    within twice the time that one answer may take. While it pauses, or waits for its host, the caller is in ``aside()``,
    and what it waits for its host does not count.
    """
    spent = 0.0

    @contextmanager
    def waiting() -> Iterator[None]:
        nonlocal spent
        begin = time.monotonic()
        with aside():
            yield
        spent -= time.monotonic() - begin

    whole = WHOLE * settings.timeout
    for number in range(TRIES):
        begin = time.monotonic()
        try:
            return _ask(web, url, validators, body_hash, settings, min(whole, 2 * whole - spent), waiting)
        except WebError as error:
            spent += time.monotonic() - begin
            asked = error.retry_after or 0
            wait = max(settings.timeout * 3 ** number / 15 * (0.75 + chance() / 2), asked)
            if number + 1 == TRIES or not error.again or asked > settings.timeout or spent + wait >= 2 * whole:
                raise
        with aside():
            pause(wait)
        spent += wait
    raise AssertionError


def _ask(
    web: Web, url: str, validators: Validators, body_hash: str, settings: Settings, deadline: float, aside: Aside,
) -> Unmodified | Body:
    """One try, within ``deadline`` seconds."""
    known = Validators(_sendable(validators.etag), _sendable(validators.last_modified))
    headers = {"Accept-Encoding": "gzip, deflate"}
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    with web.open(url, headers, deadline=deadline, aside=aside) as answer:
        given = Validators(_sendable(answer.headers.get("ETag", "")), _sendable(answer.headers.get("Last-Modified", "")))
        if answer.status == 304 and known != Validators():
            kept = Validators(given.etag or validators.etag, given.last_modified or validators.last_modified)
            return Unmodified(kept, answer.url, answer.permanent, answer.notes)
        if answer.status != 200:
            raise answer.failure()
        notes = list(answer.notes)
        content = _content(answer, settings.max_feed_mb, notes)
    digest = hashlib.sha256(content).hexdigest()
    if digest == body_hash:
        return Unmodified(given, answer.url, answer.permanent, tuple(notes))
    return Body(content, answer.headers.get("Content-Type"), answer.url, given, digest, answer.permanent, tuple(notes))


def _sendable(validator: str) -> str:
    """A validator as it came, "" for one that cannot be sent back."""
    return validator if all(" " <= letter <= "\xff" and letter != "\x7f" for letter in validator) else ""


# -------------------------------------------------------------------------------------------------------------- bodies

def _content(answer: Answer, max_mb: float, notes: list[str]) -> bytes:
    """The body, unpacked, at most so many MB, packed and unpacked. Raises WebError."""
    most = int(max_mb * 1_000_000)
    codings = [coding.strip().lower() for coding in answer.headers.get("Content-Encoding", "").split(",")]
    codings = [coding.removeprefix("x-") for coding in codings if coding not in ("", "identity")]
    unknown = next((coding for coding in codings if coding not in ("gzip", "deflate")), "")
    if unknown:
        said = text.shown_answer(unknown, answer.url)
        raise WebError(f"the feed comes in an encoding that poca did not ask for and cannot undo ({said})", Trouble.ENCODING)
    if len(codings) > LAYERS:
        raise WebError("the feed is packed too many times over", Trouble.ENCODING)
    if answer.total is not None and answer.total > most:
        raise _too_large(max_mb)
    pieces = _capped(iter(lambda: answer.read(PIECE), b""), most, max_mb)
    for coding in reversed(codings):
        pieces = _gunzipped(pieces, notes, announced=True) if coding == "gzip" else _inflated(pieces)
    for _ in range(LAYERS):
        pieces = _gunzipped(pieces, notes, announced=False)
    content = io.BytesIO()      # whose value is no second copy
    for piece in _capped(pieces, most, max_mb):
        content.write(piece)
    return content.getvalue()


def _too_large(max_mb: float) -> WebError:
    return WebError(f"the feed is larger than max_feed_mb allows ({max_mb:g} MB)", Trouble.TOO_LARGE)


def _cut() -> WebError:
    return WebError("the feed broke off: its packing has no end", Trouble.CUT)


def _capped(pieces: Iterable[bytes], most: int, max_mb: float) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise _too_large(max_mb)
        yield piece


def _gunzipped(pieces: Iterator[bytes], notes: list[str], *, announced: bool) -> Iterator[bytes]:
    """Undoes gzip where the bytes begin as it does, and hands on other bytes as they are: also those of servers that
    announce it in vain."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 3:
            break
    if not head.startswith(b"\x1f\x8b\x08"):
        if announced and head:
            notes.append("the feed was said to be packed (gzip), but is not")
        yield head
        yield from pieces
        return
    if not announced:
        notes.append("the feed is packed (gzip), which was not announced")
    yield from _members(_chain(head, pieces), notes)


def _chain(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from pieces


def _members(pieces: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    """The members of a gzip stream, one after another (RFC 1952, 2.2); other bytes after the last are passed over."""
    rest, junk, members = b"", False, 1
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    for piece in pieces:
        rest += piece
        while rest and not junk:
            if unpacker.eof:
                rest = rest.lstrip(b"\0")
                if len(rest) < 2:
                    break
                if not rest.startswith(b"\x1f\x8b"):
                    notes.append("bytes after the end of the packed feed were passed over")
                    junk = True
                    break
                members += 1
                if members > MEMBERS:
                    raise WebError("the feed is packed in too many parts", Trouble.ENCODING)
                unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            yield from _unpacked(unpacker, rest)
            rest = unpacker.unused_data
        if junk:
            rest = b""
    if not unpacker.eof:
        raise _cut()


def _inflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Undoes "deflate": the zlib format, or, as some servers send, the bare one."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 2:
            break
    if not head:
        return
    zlib_format = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    unpacker = zlib.decompressobj(zlib.MAX_WBITS if zlib_format else -zlib.MAX_WBITS)
    for piece in _chain(head, pieces):
        if not unpacker.eof:
            yield from _unpacked(unpacker, piece)
    if not unpacker.eof:
        raise _cut()


def _unpacked(unpacker: zlib._Decompress, packed: bytes) -> Iterator[bytes]:
    """What comes out for these bytes, in pieces, so that a bomb is noticed early."""
    while True:
        try:
            piece = unpacker.decompress(packed, PIECE)
        except zlib.error:
            raise WebError("the feed cannot be unpacked: it is damaged", Trouble.ENCODING) from None
        if piece:
            yield piece
        packed = unpacker.unconsumed_tail
        if unpacker.eof or (not packed and len(piece) < PIECE):
            return
