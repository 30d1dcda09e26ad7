"""The cover of a show: asked for by the subscription's thread, kept as cover.jpg, .png or .webp in the folder by the main thread.

Which picture it is its bytes tell, never its name or type. A cover that poca did not write, or that was changed since, is
the user's, and stays; so does one that the user keeps beside it, as players take cover.* and folder.* alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from poca import files
from poca.errors import Trouble, WebError, on_disk
from poca.model import Cover, History, Settings, Subscription, Validators
from poca.web import Web

LARGEST = 16_000_000            # bytes
PIECE = 256 * 1024
WITHIN = 2                      # times `timeout`, for the whole picture: the plan of the episodes waits for it
_COVER = re.compile(r"(cover|folder)\.(jpe?g|png|webp|gif|bmp|avif)", re.IGNORECASE)


def extension(content: bytes) -> str:
    """With its dot; "" for what is none of the three kinds (JFIF and its like, ISO 15948, RFC 9649)."""
    if content.startswith(b"\xff\xd8\xff"):
        return ".jpg"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return ".png"
    return ".webp" if content.startswith(b"RIFF") and content[8:12] == b"WEBP" else ""


# ------------------------------------------------------------------------------------------------ the thread's part

def ask(
    web: Web, url: str, subscription: Subscription, history: History, settings: Settings, aside: Callable[[], AbstractContextManager[object]],
) -> Cover | None:
    """Asks for the picture at ``url``, unless it is still the one that poca has. None: nothing new, also no new failure."""
    known = history.cover_validators if history.cover_url == url and _there(settings.base_dir, subscription) else Validators()
    try:
        cover = _ask(web, url, known, subscription, settings, aside)
    except WebError as error:
        return Cover(url, error=str(error)) if str(error) != history.cover_error else None
    return None if not cover.content and cover.validators == known and not history.cover_error else cover


def _ask(
    web: Web, url: str, known: Validators, subscription: Subscription, settings: Settings, aside: Callable[[], AbstractContextManager[object]],
) -> Cover:
    headers = {"Accept": "image/jpeg, image/png, image/webp, image/*;q=0.5", "Accept-Encoding": "identity"}
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    with web.open(url, headers, deadline=WITHIN * settings.timeout, aside=aside, auth_from=subscription.url) as answer:
        given = Validators(_sendable(answer.headers.get("ETag", "")), _sendable(answer.headers.get("Last-Modified", "")))
        if answer.status == 304 and known != Validators():
            return Cover(url, validators=Validators(given.etag or known.etag, given.last_modified or known.last_modified))
        if answer.status != 200:
            raise answer.failure()
        if answer.total is not None and answer.total > LARGEST:
            raise _too_large()
        content = bytearray()
        while piece := answer.read(PIECE):
            content += piece
            if len(content) > LARGEST:
                raise _too_large()
            if len(content) >= 16 and not extension(bytes(content[:16])):
                break           # a page, or a film: not worth the rest
    if not extension(bytes(content[:16])):
        raise WebError("what the server gives is no picture of the kinds jpg, png and webp", Trouble.TEXT)
    return Cover(url, bytes(content), given)


def _too_large() -> WebError:
    return WebError(f"the picture is larger than {LARGEST // 1_000_000} MB", Trouble.TOO_LARGE)


def _sendable(validator: str) -> str:
    """A validator as it came, "" for one that cannot be sent back."""
    return validator if all(" " <= letter <= "\xff" and letter != "\x7f" for letter in validator) else ""


# ------------------------------------------------------------------------------------------- the main thread's part

def keep(base: Path, subscription: Subscription, history: History, content: bytes, link: files.Link) -> str:
    """Writes the cover, at once or not at all; its path relative to ``base``, "" where the user has one. Raises DiskError."""
    name = f"{subscription.folder}/cover{extension(content)}"
    part = f"{subscription.folder}/.poca-cover.part"
    files.make_folder(base, name)
    there = _there(base, subscription)
    with on_disk("cannot read the cover that is there"):
        ours = [path for path in there if _is_ours(base / path, history, content) and path in (history.cover, name)]
    if len(ours) < len(there):
        return ""
    if name in ours and _digest(base / name) == digest(content):
        return name
    files.remove(base, part)
    with on_disk("cannot write the cover"), (base / part).open("xb") as file:
        file.write(content)
    try:
        files.flush(base / part)
        if name in ours:
            with on_disk("cannot replace the cover"):
                (base / part).replace(base / name)
        else:
            files.give_name(base, base / part, [name], lambda name: None, link)
    finally:
        files.remove(base, part)
    for path in ours:
        if path != name:
            files.remove(base, path)
    return name


def _there(base: Path, subscription: Subscription) -> list[str]:
    """The paths of the covers in the folder, whosever they are; none where it cannot be looked into."""
    try:
        found = sorted(path.name for path in (base / subscription.folder).iterdir())
    except OSError:
        return []
    return [f"{subscription.folder}/{name}" for name in found if _COVER.fullmatch(name)]


def _is_ours(path: Path, history: History, content: bytes) -> bool:
    """Whether poca wrote the file, as it is: by the record, or by being the very picture, where a crash left no record."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
        return False
    return _digest(path) in (history.cover_hash, digest(content))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest(path: Path) -> str:
    return digest(path.read_bytes())
