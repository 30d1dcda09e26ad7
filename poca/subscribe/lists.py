"""What the readers of subscription lists have in common. Pure."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from poca import naming
from poca.options import SECTIONS
from poca.text import shown, shown_url


@dataclass(frozen=True, slots=True)
class Imported:
    """What a list holds, as options of a config with the values to be written into it.

    ``defaults`` and ``settings`` come from a poca.xml only. ``notes``: sentences on what was left out or changed.
    """

    subscriptions: list[dict[str, object]] = field(default_factory=list)
    defaults: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def decoded(data: bytes, notes: list[str]) -> str:
    """The text of an XML file (XML 1.0, appendix F): by its byte order mark, its first bytes, or what it declares;
    where that does not fit, as UTF-8 or windows-1252."""
    for mark, encoding in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return data[len(mark):].decode(encoding, "replace")
    for start, encoding in ((b"<\0", "utf-16-le"), (b"\0<", "utf-16-be")):
        if data.startswith(start):
            return data.decode(encoding, "replace")
    declared = re.search(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""", data[:1000])
    encoding = declared[1].decode() if declared else "utf-8"
    wide = encoding.lower().startswith(("utf-16", "utf16", "utf-32", "utf32", "ucs"))       # or the declaration could not be read
    for candidate in ("utf-8" if wide else encoding, "utf-8", "cp1252"):
        try:
            text = data.decode(candidate)
        except (LookupError, ValueError):
            continue
        if candidate != encoding:
            notes.append(f"The file is not written in {encoding}, as it should be: it was read as {candidate}.")
        return text
    notes.append(f"The file is not written in {encoding}, as it should be: some letters may be wrong.")
    return data.decode("latin-1")


def http_url(address: str, title: str, notes: list[str]) -> str:
    """The address as one that poca fetches, "" (and a note) where it is none."""
    url = re.sub(r"[\t\r\n]+", "", address).strip().replace(" ", "%20")
    url = re.sub(r"^(?:feed|itpc|pcast|podcast):(?://)?(?=https?:)", "", url, flags=re.IGNORECASE)
    url = re.sub(r"^(?:feed|itpc|pcast|podcast)://", "http://", url, flags=re.IGNORECASE)
    url = re.sub(r"^https?:", lambda scheme: scheme[0].lower(), url, flags=re.IGNORECASE)
    try:
        SECTIONS["subscription"]["url"].type.read(url)
    except ValueError:
        reason = f"{shown_url(url)} is no address that poca can fetch" if url else "it has no address"
        notes.append(f'"{shown(title)}" is left out: {reason}.')
        return ""
    return url


def host(url: str) -> str:
    """The host's name, "" where there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def folder_of(title: str) -> str:
    """What the folders of two titles have in common when they would be one."""
    return naming.fold(naming.folder(title, "ntfs"))


def unique_title(title: str, folders: set[str], notes: list[str]) -> str:
    """The title, with a number (and a note) where its folder would be one of ``folders``, to which it is added."""
    number, unique = 1, title
    while folder_of(unique) in folders:
        number += 1
        unique = f"{title} ({number})"
    folders.add(folder_of(unique))
    if number > 1:
        notes.append(f'Another "{shown(title)}" is called "{shown(unique)}".')
    return unique
