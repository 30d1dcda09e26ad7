"""What of an audio file no tag may change: its sound, and where its sound lies.

:func:`digest` reads a file as its container is built and hashes all but the tags, so that two digests tell whether a change
of the tags was one of nothing else. By the formats' own documents: ID3v2.4 and ID3v1, RFC 3533 (Ogg), RFC 9639 (FLAC), RIFF and
EA IFF 85 (WAV, AIFF), ISO 14496-12 (MP4).
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import BinaryIO, NamedTuple

from poca import media
from poca.media import Kind

HEAD = 64 * 1024
_PIECE = 1 << 20


def kind(file: BinaryIO) -> Kind | None:
    """What a file is, by the bytes after the ID3v2 tags in front; None where these show nothing, or are not there."""
    at = 0
    while end := id3_end(file, at):
        at = end
    file.seek(at)
    return media.sniff(file.read(HEAD))


def id3_end(file: BinaryIO, at: int = 0) -> int:
    """Where the ID3v2 tag at ``at`` ends by its own account, its footer not counted; 0 where there is none."""
    file.seek(at)
    head = file.read(10)
    if len(head) < 10 or not head.startswith(b"ID3") or head[3] == 0xFF or max(head[6:]) > 0x7F:
        return 0
    return at + 10 + (head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9])


def digest(file: BinaryIO, what: Kind) -> bytes:
    """A hash of all in the file that is no tag. Raises ValueError, struct.error or the like for a file that is not built
    as its kind is, and KeyError for a kind that has no reader here."""
    made = hashlib.sha256()
    for piece in _READERS[what](file):
        made.update(piece)
    return made.digest()


def _size(file: BinaryIO) -> int:
    return file.seek(0, 2)


def _between(file: BinaryIO, begin: int, end: int) -> Iterator[bytes]:
    file.seek(begin)
    while begin < end and (piece := file.read(min(_PIECE, end - begin))):
        begin += len(piece)
        yield piece


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ValueError("the file ends too early")
    return data


# ------------------------------------------------------------------------------------------------- MP3, FLAC, chunks

def _mp3(file: BinaryIO) -> Iterator[bytes]:
    """All between the first ID3v2 tag and the ID3v1 tag."""
    begin, end = id3_end(file), _size(file)
    if end - begin >= 128:
        file.seek(end - 128)
        end -= 128 if file.read(3) == b"TAG" else 0
    return _between(file, begin, end)


def _flac(file: BinaryIO) -> Iterator[bytes]:
    """The blocks but comments and padding, whose order may change; then the frames. A block that lies about its length
    may have frames in it: what is neither comment nor padding in these two counts, too."""
    at = 0
    while end := id3_end(file, at):
        at = end
    yield from _between(file, 0, at)
    file.seek(at)
    if _exactly(file, 4) != b"fLaC":
        raise ValueError("no FLAC stream")
    at, last = at + 4, 0
    while not last:
        file.seek(at)
        head = _exactly(file, 4)
        last, form, length = head[0] & 0x80, head[0] & 0x7F, int.from_bytes(head[1:], "big")
        block = _exactly(file, length)
        if form == 1:
            yield block.strip(b"\0")
        elif form == 4:
            yield _after_comments(block).strip(b"\0")
        else:
            yield bytes([form])
            yield block
        at += 4 + length
    yield from _between(file, at, _size(file))


def _after_comments(block: bytes) -> bytes:
    """What a block of Vorbis comments has after its last one."""
    def number(at: int) -> int:
        return int.from_bytes(block[at:at + 4], "little")

    at = 4 + number(0)
    count, at = number(at), at + 4
    while count and at < len(block):
        count, at = count - 1, at + 4 + number(at)
    return block[at:]


def _chunks(order: str) -> Callable[[BinaryIO], Iterator[bytes]]:
    """Of a RIFF or IFF file all chunks but that of the ID3 tag."""
    def read(file: BinaryIO) -> Iterator[bytes]:
        size = _size(file)
        file.seek(8)
        yield _exactly(file, 4)
        at = 12
        while at + 8 <= size:
            file.seek(at)
            name, length = struct.unpack(f"{order}4sI", _exactly(file, 8))
            end = min(at + 8 + length, size)
            if name.upper() != b"ID3 ":
                yield name
                yield from _between(file, at + 8, end)
            at = end + length % 2
    return read


# -------------------------------------------------------------------------------------------------------------- Ogg

def _ogg(headers: int) -> Callable[[BinaryIO], Iterator[bytes]]:
    """The packets of the header but the second, which holds the comments; then each page without its number and checksum.

    ``headers``: the packets of the first stream's header, after which a new page begins (Vorbis I, A.2; RFC 7845, 3).
    """
    def read(file: BinaryIO) -> Iterator[bytes]:
        packet, done, first = bytearray(), 0, b""
        file.seek(0)
        while head := file.read(27):
            magic, _, flags, granule, serial, _, _, segments = struct.unpack("<4sBB8s4sIIB", head)
            if magic != b"OggS":
                raise ValueError("no Ogg page")
            sizes = _exactly(file, segments)
            body = file.read(sum(sizes))
            first = first or serial
            if serial != first or done >= headers:
                yield bytes([flags]) + granule + serial
                yield body
                continue
            at = 0
            for size in sizes:
                packet += body[at:at + size]
                at += size
                if size < 255:
                    if done != 1:
                        yield bytes(packet)
                    packet, done = bytearray(), done + 1
            if done >= headers:
                yield bytes(packet)
    return read


# -------------------------------------------------------------------------------------------------------------- MP4

class Box(NamedTuple):
    """A box of an MP4 file: its name, where it begins, where its content does, and where it ends, at most at the end of
    what it is in."""

    name: bytes
    begin: int
    content: int
    end: int


_CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf"})
_LOOSE = frozenset({b"free", b"skip", b"udta", b"tref", b"tfhd"})     # tags, room for them, chapters; tfhd holds a place in the file


def boxes(file: BinaryIO, begin: int, end: int) -> Iterator[Box]:
    """The boxes between two places of a file, without those inside of them."""
    while begin + 8 <= end:
        file.seek(begin)
        size, name = struct.unpack(">I4s", _exactly(file, 8))
        content = begin + 8
        if size == 1:
            size, content = int.from_bytes(_exactly(file, 8), "big"), begin + 16
        elif size == 0:
            size = end - begin
        if begin + size < content:
            raise ValueError("a box that is smaller than its head")
        yield Box(name, begin, content, min(begin + size, end))
        begin += size


def _mp4(file: BinaryIO) -> Iterator[bytes]:
    """Each box but those of tags; the places of the sound are told as seen from the box that they lie in."""
    top = list(boxes(file, 0, _size(file)))
    starts = [box.begin for box in top]
    numbers = list(accumulate((box.name not in _LOOSE for box in top), initial=0))

    def inside(box: Box) -> Iterator[bytes]:
        if box.name in _LOOSE:
            return
        yield box.name
        if box.name in _CONTAINERS:
            for part in boxes(file, box.content, box.end):
                yield from inside(part)
        elif box.name in (b"stco", b"co64"):
            table = b"".join(_between(file, box.content + 8, box.end))
            for (place,) in struct.iter_unpack(">I" if box.name == b"stco" else ">Q", table):
                index = bisect_right(starts, place) - 1
                yield b"%d+%d " % (numbers[index], place - starts[index])
        else:
            yield from _between(file, box.content, box.end)

    for box in top:
        yield from inside(box)


def drop_mp4_chapters(file: BinaryIO) -> None:
    """Makes free boxes, which moves nothing, of Nero's chapters and of what makes one track the chapters of another."""
    top = list(boxes(file, 0, _size(file)))
    for box in (*_below(file, top, b"moov", b"udta", b"chpl"), *_below(file, top, b"moov", b"trak", b"tref", b"chap")):
        file.seek(box.begin + 4)
        file.write(b"free")


def _below(file: BinaryIO, level: Iterable[Box], name: bytes, *names: bytes) -> list[Box]:
    """The boxes at the end of a way through these ones."""
    found = [box for box in level if box.name == name]
    return [end for box in found for end in _below(file, list(boxes(file, box.content, box.end)), *names)] if names else found


_READERS: dict[Kind, Callable[[BinaryIO], Iterator[bytes]]] = {
    Kind.MP3: _mp3, Kind.FLAC: _flac, Kind.WAV: _chunks("<"), Kind.AIFF: _chunks(">"), Kind.OGG: _ogg(3), Kind.OPUS: _ogg(2), Kind.MP4: _mp4,
}
