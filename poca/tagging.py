"""Tags: written on a finished part, in the way of its own format, in one save, and never at the cost of its sound.

The change is made on a copy beside the file, which takes the file's place only once it was read again and all but the tags
was found to be as before. So whatever goes wrong, the file is as it was.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol
from urllib.parse import quote

from poca import files, media, payload, tagnames, templates, text
from poca.errors import TagError, disk_error
from poca.media import Kind
from poca.model import Settings, Subscription

LARGEST_TAG = 64_000_000        # bytes of an ID3 tag, which is read into memory
_CHAPTER = re.compile(r"chapter[0-9]+(name|url)?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class Edits(NamedTuple):
    """What is to be done to the tags of a file. ``values``: the texts for names of :mod:`poca.tagnames`, none of them where
    the tag is to go. ``track``: the number for its track, with ``only_missing`` where the file has none."""

    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    track: int | None = None
    only_missing: bool = False
    id3v2version: int = 4       # 3 | 4
    id3removev1: bool = True


class Tagged(NamedTuple):
    """What was done. ``track``: the number that was given. ``unknown``: (name, format) of tags that the format lacks."""

    track: int | None = None
    unknown: tuple[tuple[str, str], ...] = ()


def wanted(subscription: Subscription) -> bool:
    """Whether there is anything to write; otherwise files stay as they came, byte for byte."""
    return bool(subscription.metadata) or subscription.track_numbering != "no"


def edits(subscription: Subscription, named: templates.Named, settings: Settings, next_track: int) -> Edits:
    """What a subscription asks for, for one episode. A text of which nothing is left, since the feed tells none of its
    fields, leaves the tag as it is."""
    values: dict[str, tuple[str, ...]] = {}
    for name, template in subscription.metadata:
        made = _CONTROL.sub("", templates.filled_in(template, subscription, named))
        if made.strip():
            values[name] = (*values.get(name, ()), made)
        elif not template:
            values[name] = ()
    numbering = subscription.track_numbering
    return Edits(
        tuple(values.items()), None if numbering == "no" else next_track, numbering == "if missing", settings.id3v2version, settings.id3removev1
    )


def tag(path: Path, edits: Edits) -> Tagged:
    """Makes the edits, in the way that the file's bytes ask for. Raises TagError, the file being as it was."""
    copy = path.with_name(files.tagging_copy(path.name))
    try:
        with path.open("rb") as file:
            kind = payload.kind(file)
            tags = _opened(kind, file, edits)
            done = _apply(tags, edits)
            if edits.values or done.track is not None:
                copy.unlink(missing_ok=True)
                with copy.open("x+b") as changed:
                    _rewrite(file, changed, tags)
                    _must_be_whole(kind, file, changed, edits)
                copy.replace(path)
            return done
    except TagError:
        raise
    except Exception as error:      # damaged files make mutagen raise anything
        raise _tag_error(error) from error
    finally:
        with contextlib.suppress(OSError):
            copy.unlink(missing_ok=True)


def _rewrite(file: BinaryIO, changed: BinaryIO, tags: _Tags) -> None:
    file.seek(0)
    shutil.copyfileobj(file, changed, 1 << 20)
    tags.save(changed)


def _must_be_whole(kind: Kind | None, file: BinaryIO, changed: BinaryIO, edits: Edits) -> None:
    """Raises TagError, or whatever mutagen raises, where the changed file is not what it was, with other tags."""
    _opened(kind, changed, edits)
    if kind is None or payload.digest(file, kind) != payload.digest(changed, kind):
        raise TagError("its tags cannot be written without harm to its sound, so it stays as it came")


def _mutagen(name: str, module: str = "") -> Any:
    """A class of mutagen, which tells no types, imported where it is first needed."""
    return getattr(importlib.import_module(f"mutagen{module and '.'}{module}"), name)


def _tag_error(error: Exception) -> TagError:
    disk = error if isinstance(error, OSError) else error.__context__
    if isinstance(disk, OSError) and disk.errno:
        return TagError(str(disk_error(disk, "its tags cannot be written, so it stays as it came")))
    detail = f" ({text.shown(str(error))})" if isinstance(error, _mutagen("MutagenError")) and str(error) else ""
    return TagError(f"its tags cannot be written, since the file seems to be damaged{detail}; it stays as it came")


def _opened(kind: Kind | None, file: BinaryIO, edits: Edits) -> _Tags:
    if kind is None:
        raise TagError("no audio was found in it that could bear tags, so it stays as it came")
    maker = _MAKERS.get(kind)
    if maker is None:
        raise TagError(f"its bytes are {kind}, a kind in which poca writes no tags, so it stays as it came")
    file.seek(0)
    return maker(file, edits)


def _apply(tags: _Tags, edits: Edits) -> Tagged:
    unknown = []
    for name, texts in edits.values:
        target = tags.target(name)
        if target:
            tags.put(name, target, texts)
        elif texts:
            unknown.append((name, tags.format))
    if edits.track is None or (edits.only_missing and tags.has_track()):
        return Tagged(None, tuple(unknown))
    tags.put("track", tags.target("track"), (str(edits.track),))
    return Tagged(edits.track, tuple(unknown))


class _Tags(Protocol):
    """The tags of a file, in one of the ways that formats have."""

    format: str                 # as a person calls it

    def target(self, name: str) -> str:
        """What a name becomes here, "" where there is no such tag."""

    def put(self, name: str, target: str, texts: Sequence[str]) -> None:
        """Sets a tag; without texts it goes. Raises TagError for a text that cannot stand there."""

    def has_track(self) -> bool: ...

    def save(self, copy: BinaryIO) -> None:
        """Writes the tags into a copy of the file they are from."""


# -------------------------------------------------------------------------------------------------- MP3, WAV and AIFF

class _Id3:
    def __init__(self, tags: Any, edits: Edits, *, has_v1: bool) -> None:
        self.tags, self.has_v1 = tags, has_v1           # has_v1: the format has a place for ID3v1, too
        self.version, self.keep_v1 = edits.id3v2version, not edits.id3removev1
        self.format = f"ID3v2.{self.version}"

    def target(self, name: str) -> str:
        target = tagnames.TAGS[name].mp3
        return "" if self.version == 3 and target in tagnames.ONLY_V24 else target

    def put(self, name: str, target: str, texts: Sequence[str]) -> None:
        frame, _, described = target.partition(":")
        for key in [key for key, old in self.tags.items() if self._replaces(old, frame, described)]:
            del self.tags[key]
        if not texts:
            return
        encoding = 3 if self.version == 4 else 0 if all(map(str.isascii, texts)) else 1     # UTF-8; Latin-1, UTF-16
        made = _mutagen("Frames", "id3")[frame]
        match frame:
            case "COMM" | "USLT":
                self.tags.add(made(encoding=encoding, lang="eng", desc="", text="\n".join(texts)))
            case "TXXX":
                self.tags.add(made(encoding=encoding, desc=described, text=list(texts)))
            case "WOAR":
                for url in texts:
                    self.tags.add(made(url=quote(url, safe="!#$%&'()*+,/:;=?@[]~")))
            case _:
                if frame in ("TDRC", "TDOR"):
                    _must_be_date(name, texts)
                self.tags.add(made(encoding=encoding, text=list(texts)))

    def _replaces(self, old: Any, frame: str, described: str) -> bool:
        """Whether a frame goes when another one is set. Comments whose descriptions begin with iTun are no comments."""
        instead = {"CHAP, CTOC": ("CHAP", "CTOC"), "TDRC": ("TDRC", "TYER", "TDAT", "TIME"), "TDOR": ("TDOR", "TORY")}
        if old.FrameID not in instead.get(frame, (frame,)):
            return False
        if frame == "COMM":
            return not old.desc.startswith("iTun")
        return not described or old.desc.casefold() == described.casefold()

    def has_track(self) -> bool:
        return any(text.strip() for text in getattr(self.tags.get("TRCK"), "text", ()))

    def save(self, copy: BinaryIO) -> None:
        if self.version == 3:
            self.tags.update_to_v23()
        _carry_unknown(self.tags, self.version)
        copy.seek(0)
        v1 = {"v1": 1 if self.keep_v1 else 0} if self.has_v1 else {}
        if self.tags or self.tags.unknown_frames:
            self.tags.save(copy, v2_version=self.version, **v1)
        else:       # a tag has at least one frame (ID3v2.4, 3)
            self.tags.delete(copy)


def _must_be_date(name: str, texts: Sequence[str]) -> None:
    for each in texts:
        if not re.match(r"[0-9]{4}(?![0-9])", each):
            raise TagError(f"{text.shown(each)} cannot be its {name}: that takes a date such as 2024-01-31, or a year; so it stays as it came")


def _carry_unknown(tags: Any, version: int) -> None:
    """Turns frames that mutagen does not know into those of another version, where it would drop them. What differs is how
    their size is written (ID3v2.4, 4); one that is packed in the way of its version cannot be carried over."""
    if tags.unknown_frames and tags._unknown_v2_version + version == 3 + 4:
        bits = 7 if version == 4 else 8
        tags.unknown_frames = [
            raw[:4] + bytes((len(raw) - 10 >> shift * bits) & (1 << bits) - 1 for shift in (3, 2, 1, 0)) + b"\0\0" + raw[10:]
            for raw in tags.unknown_frames if not raw[9]
        ]
        tags._unknown_v2_version = version
    for frame in (*tags.getall("CHAP"), *tags.getall("CTOC")):
        _carry_unknown(frame.sub_frames, version)


def _mp3(file: BinaryIO, edits: Edits) -> _Tags:
    _must_be_a_tag(file)
    file.seek(0)
    made = _mutagen("ID3", "id3")
    try:
        tags = made(file, v2_version=edits.id3v2version)
    except _mutagen("ID3NoHeaderError", "id3"):
        tags = made()
    return _Id3(tags, edits, has_v1=True)


def _must_be_a_tag(file: BinaryIO) -> None:
    """Raises TagError for an ID3 tag that says it is longer than it is: mutagen would take sound for padding."""
    end, size = payload.id3_end(file), file.seek(0, 2)
    if end > LARGEST_TAG:
        raise TagError(f"its ID3 tag is said to have {text.size(end)}, more than poca reads, so it stays as it came")
    file.seek(0)
    # Nulls in front keep the signature of whatever the tag holds from being looked at.
    if end > size or (end and media.sniff(bytes(16) + file.read(end)) is not None):
        raise TagError("its ID3 tag says that it is longer than it is, so it stays as it came")


def _in_chunk(name: str, module: str) -> Callable[[BinaryIO, Edits], _Tags]:
    def opened(file: BinaryIO, edits: Edits) -> _Tags:
        made = _mutagen(name, module)(file, v2_version=edits.id3v2version)
        if made.tags is None:
            made.add_tags()
        return _Id3(made.tags, edits, has_v1=False)
    return opened


# ----------------------------------------------------------------------------------------------- Ogg, Opus and FLAC

class _Vorbis:
    format = "Vorbis comments"

    def __init__(self, opened: Any) -> None:
        if opened.tags is None:
            opened.add_tags()
        self.opened, self.tags = opened, opened.tags

    def target(self, name: str) -> str:
        return tagnames.TAGS[name].vorbis

    def put(self, name: str, target: str, texts: Sequence[str]) -> None:
        if name == "chapters":
            for key in [key for key in self.tags.keys() if _CHAPTER.fullmatch(key)]:    # noqa: SIM118 - it iterates over pairs
                del self.tags[key]
        elif texts:
            self.tags[target] = list(texts)
        elif target in self.tags:
            del self.tags[target]

    def has_track(self) -> bool:
        return any(value.strip() for value in self.tags.get("TRACKNUMBER", ()))

    def save(self, copy: BinaryIO) -> None:
        copy.seek(0)
        self.opened.save(copy)


# ---------------------------------------------------------------------------------------------------------------- MP4

class _Mp4:
    format = "MP4"

    def __init__(self, file: BinaryIO) -> None:
        self.opened = _mutagen("MP4", "mp4")(file)
        if self.opened.tags is None:
            self.opened.add_tags()
        self.tags: Any = self.opened.tags
        self.without_chapters = False

    def target(self, name: str) -> str:
        return tagnames.TAGS[name].mp4

    def put(self, name: str, target: str, texts: Sequence[str]) -> None:
        if name == "chapters":
            self.without_chapters = True
            return
        self.tags.pop(target, None)
        if not texts:
            return
        match target:
            case "trkn" | "disk":
                self.tags[target] = [_pair(name, texts[0])]
            case "tmpo":
                self.tags[target] = [_pair(name, texts[0])[0]]
            case "cpil":
                self.tags[target] = texts[0].strip().lower() in ("1", "yes", "true", "on")
            case _ if target.startswith("----:"):
                self.tags[target] = [each.encode() for each in texts]
            case _:
                self.tags[target] = list(texts)

    def has_track(self) -> bool:
        return any(number for number, *_ in self.tags.get("trkn", ()))

    def save(self, copy: BinaryIO) -> None:
        copy.seek(0)
        self.opened.save(copy)
        if self.without_chapters:
            payload.drop_mp4_chapters(copy)


def _pair(name: str, written: str) -> tuple[int, int]:
    """A number, or one of so many: 3/12."""
    parts = re.fullmatch(r"\s*([0-9]{1,5})\s*(?:/\s*([0-9]{1,5})\s*)?", written)
    pair = (int(parts[1]), int(parts[2] or 0)) if parts else (0x10000, 0)
    if max(pair) > 0xFFFF:
        raise TagError(f"{text.shown(written)} cannot be its {name}: in MP4 that takes a number such as 3, or 3/12; so it stays as it came")
    return pair


_MAKERS: dict[Kind, Callable[[BinaryIO, Edits], _Tags]] = {
    Kind.MP3: _mp3,
    Kind.WAV: _in_chunk("WAVE", "wave"),
    Kind.AIFF: _in_chunk("AIFF", "aiff"),
    Kind.OGG: lambda file, edits: _Vorbis(_mutagen("OggVorbis", "oggvorbis")(file)),
    Kind.OPUS: lambda file, edits: _Vorbis(_mutagen("OggOpus", "oggopus")(file)),
    Kind.FLAC: lambda file, edits: _Vorbis(_mutagen("FLAC", "flac")(file)),
    Kind.MP4: lambda file, edits: _Mp4(file),
}
