"""``import`` and ``export``: lists of subscriptions, in and out."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from poca import confedit, conffile, config, text
from poca.errors import PocaError
from poca.model import Config
from poca.subscribe import edits, opml
from poca.subscribe.desk import Desk
from poca.subscribe.lists import Imported

_LARGEST = 64_000_000       # bytes of a list

Values = dict[str, object]


def import_list(desk: Desk) -> None:
    """Raises PocaError for what is no list, ConfigError, EditError."""
    imported = opml.read(_read(desk.arguments.file))
    for note in imported.notes:
        desk.complain(note)
    is_new = not (desk.path.exists() or desk.path.is_symlink())
    written = _first_config(imported) if is_new else _text_of(desk)
    several = _not_there_yet(desk, imported, edits.preview(written), is_new)
    several = _without_faults(desk, written, several, limit=not imported.defaults and not imported.settings)
    for values in several:
        category = f" ({text.shown(str(values['category']))})" if values.get("category") else ""
        desk.say(f"{text.shown(str(values['title']))}{category}: {text.shown_url(str(values['url']))}")
    count = f"{len(several)} subscription{'' if len(several) == 1 else 's'}"
    if desk.arguments.dry_run:
        desk.say(f"{count} would be added to {text.shown(str(desk.path))}. Nothing was changed.")
        return
    if is_new:
        conffile.create(desk.path, confedit.add_subscriptions(written, several))
        desk.say(f"There was no config file yet: {text.shown(str(desk.path))} was made. Its base_dir is where the episodes go.")
    else:
        conffile.edit(desk.path, edits.change(several))
    desk.say(f"{count} added to {text.shown(str(desk.path))}.")


def _read(path: Path) -> bytes:
    try:
        data = sys.stdin.buffer.read(_LARGEST + 1) if str(path) == "-" else _read_file(path)
    except OSError as error:
        raise PocaError(f"{text.shown(str(path))} cannot be read: {error.strerror or error}.") from None
    if len(data) > _LARGEST:
        raise PocaError(f"{text.shown(str(path))} is larger than any list of subscriptions: it is not read.")
    return data


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST + 1)


def _text_of(desk: Desk) -> str:
    """The text of a config that can be used. Raises ConfigError."""
    return desk.config.path.read_bytes().decode()


def _first_config(imported: Imported) -> str:
    """A config to start with: with the settings of a poca.xml, where it is one."""
    if not (imported.settings or imported.defaults):
        return config.sample()
    settings = confedit.section("settings", {"base_dir": "~/podcasts", **imported.settings})
    return settings + (confedit.section("defaults", imported.defaults) if imported.defaults else "")


def _not_there_yet(desk: Desk, imported: Imported, read: Config, is_new: bool) -> list[Values]:
    """The subscriptions that the config does not have, each with a title of its own. Into a config that is there the
    defaults of the list go with each of them."""
    titles = edits.Titles([*(s.title for s in read.subscriptions), *(title for title, _ in read.faulty if title)], read.settings.filenames)
    several = []
    for values in imported.subscriptions:
        title, url = str(values["title"]), str(values["url"])
        if there := edits.subscribed(read, url):
            desk.complain(f"{text.shown(title)} is left out: {text.shown_url(url)} is subscribed to already, as {text.shown(there)}.")
            continue
        own = titles.unique(title)
        if own != title:
            desk.complain(f"{text.shown(title)} is taken: it is called {text.shown(own)}.")
        several.append({**(values if is_new else _merged(imported.defaults, values)), "title": own})
    if imported.settings and not is_new:
        desk.complain(f"The settings of the list are left out, since the config has its own: {', '.join(imported.settings)}.")
    return several


def _merged(defaults: Mapping[str, object], own: Values) -> Values:
    """A subscription's own options over the defaults, metadata and filters key by key; title and url come first."""
    merged: Values = {"title": own["title"], "url": own["url"], **defaults, **own}
    for key in ("metadata", "filters"):
        one, other = defaults.get(key), own.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            merged[key] = {**one, **other}
    return merged


def _without_faults(desk: Desk, written: str, several: Sequence[Values], *, limit: bool) -> list[Values]:
    """Those that the config can take, told with the reason where not; with max_number where no limit would be in force."""
    read, values, limited = edits.meant(written, several, limit=limit)
    if limited:
        desk.say(f"max_number: {edits.DEFAULT_LIMIT} is written where no limit was in force.")
    faulty = {title for title, _ in read.faulty}
    for one in values:
        title = str(one["title"])
        if title in faulty:
            reasons = [fault.message for fault in read.faults if fault.message.startswith(f"'{text.shown(title)}':")]
            desk.fail(f"{text.shown(title)} is left out: {'; '.join(reasons) or 'it has a fault'}.")
    return [one for one in values if one["title"] not in faulty]


# -------------------------------------------------------------------------------------------------------------- export

def export_list(desk: Desk) -> None:
    """Raises ConfigError, PocaError where the file cannot be written."""
    listed, notes = opml.write(desk.config.subscriptions, desk.now)
    data = listed.encode("utf-8", "replace")
    target: Path | None = desk.arguments.file
    if target is None or str(target) == "-":
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
    else:
        try:
            _write(target, data)
        except OSError as error:
            raise PocaError(f"{text.shown(str(target))} cannot be written: {error.strerror or error}.") from None
        count = len(desk.config.subscriptions)
        desk.say(f"{count} subscription{'' if count == 1 else 's'} written to {text.shown(str(target))}.")
    for note in notes:
        desk.complain(note)
    if any(urlsplit(s.url).query for s in desk.config.subscriptions):
        desk.complain("Queries of addresses are kept, without which the feeds would not work. They may be secret: keep the list to yourself.")
    for title, _ in desk.config.faulty:
        desk.complain(f"{text.shown(title) or 'A subscription without a title'} has a fault, and is left out (see poca-subscribe check).")


def _write(path: Path, data: bytes) -> None:
    """Puts a whole file, private to the user, in the place of an older one; into a device or a pipe it just writes."""
    target = Path(os.path.realpath(path))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        target.write_bytes(data)
        return
    handle, name = tempfile.mkstemp(prefix=".poca-", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    finally:
        with suppress(OSError):
            Path(name).unlink()
