"""The config of poca 1.x, ``poca.xml``, as options of today's config. Pure.

Each option is read by the table that reads today's; what that refuses is left out, and told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from xml.etree import ElementTree

from poca.errors import PocaError
from poca.options import SECTIONS, Option, Shape, tag_names
from poca.subscribe.lists import Imported, host, http_url, unique_title
from poca.text import shown

_FIELDS = {"date", "title", "episode_title", "uid", "org_name"}        # of the names that poca 1.x could build


def read(text: str, notes: list[str]) -> Imported:
    """Read the text of a poca.xml, which declares no entities, on to ``notes``. Raises PocaError where it is no XML."""
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml.*?\?>", "", text, flags=re.DOTALL))
    except ElementTree.ParseError as error:
        raise PocaError(f"The poca.xml cannot be read: there is a fault in line {error.position[0]}. Mend it, and import it again.") from None
    except ValueError:
        raise PocaError("The poca.xml cannot be read: it holds characters that XML does not have.") from None
    imported = Imported(notes=notes)
    folders: set[str] = set()
    for section in root:
        if section.tag == "settings":
            imported.settings.update(_options(section, "settings", "settings", notes))
        elif section.tag == "defaults":
            imported.defaults.update(_options(section, "subscription", "defaults", notes))
        elif section.tag == "subscriptions":
            for number, entry in enumerate(section, 1):
                _subscribe(imported, entry, number, folders)
        else:
            notes.append(f'The section "{shown(str(section.tag))}" has no place in the config, and is left out.')
    return imported


def _subscribe(imported: Imported, entry: ElementTree.Element, number: int, folders: set[str]) -> None:
    given = {name: _folded(text) for name, text, _ in _children(entry) if name in ("title", "url")}
    url = given.get("url", "")
    title = given.get("title") or host(url)
    name = f'"{shown(title)}"' if title else f"Subscription {number}"
    url = http_url(url, title or f"subscription {number}", imported.notes)
    if not url:
        return
    options = _options(entry, "subscription", name, imported.notes, but=("title", "url"))
    imported.subscriptions.append({"title": unique_title(title, folders, imported.notes), "url": url, **options})


def _children(element: ElementTree.Element) -> Iterator[tuple[str, str, ElementTree.Element | None]]:
    """Name and text of all that an element holds, be it written as attribute or as child."""
    for name, value in element.attrib.items():
        yield name.lower(), value, None
    for child in element:
        if isinstance(child.tag, str):
            yield child.tag.lower(), child.text or "", child


def _folded(text: str) -> str:
    return " ".join(text.split())


def _options(element: ElementTree.Element, section: str, place: str, notes: list[str], but: tuple[str, ...] = ()) -> dict[str, object]:
    """The options of a section; ``place`` names it in the notes."""
    values: dict[str, object] = {}
    for name, text, child in _children(element):
        option = SECTIONS[section].get(name)
        if name in but:
            continue
        if option is None:
            notes.append(f'{place}: "{shown(name)}" has no place in the config, and is left out.')
        elif name == "rename" and child is not None:
            values.update(_rename(child, place, notes))
        elif child is not None and option.type.shape is Shape.TAGS:
            values.update(_filled(name, _tags(child, place, notes)))
        elif child is not None and option.type.shape is Shape.OPTIONS:
            values.update(_filled(name, _options(child, name, f"{place}, {name}", notes)))
        elif text.strip() or name == "space":
            values.update(_value(option, text if name == "space" else text.strip(), place, notes))
    if section == "email" and not {"fromaddr", "toaddr"} <= values.keys():
        notes.append(f"{place}: it needs both fromaddr and toaddr, and is left out.")
        return {}
    return values


def _filled(name: str, values: dict[str, object]) -> dict[str, object]:
    return {name: values} if values else {}


def _value(option: Option, written: str, place: str, notes: list[str]) -> dict[str, object]:
    try:
        value = option.type.read(written)
    except ValueError as error:
        value = "its value" if option.secret else f'"{shown(written)}"'
        reason = str(error) or f"it must be {option.type.allowed}"
        notes.append(f"{place}: {option.name} is left out, {value} will not do: {reason}.")
        return {}
    return {option.name: value if isinstance(value, bool | int | date) else written}


def _tags(element: ElementTree.Element, place: str, notes: list[str]) -> dict[str, object]:
    """The tags to set; an empty one removes."""
    tags: dict[str, object] = {}
    read_tag = SECTIONS["subscription"]["metadata"].type.read
    for name, text, _ in _children(element):
        try:
            if name not in tag_names():
                raise ValueError("no such tag is known")
            tags[name] = read_tag(text.strip())
        except ValueError as error:
            notes.append(f'{place}, metadata: "{shown(name)}" is left out: {error}.')
    return tags


def _rename(element: ElementTree.Element, place: str, notes: list[str]) -> dict[str, object]:
    """``<rename divider="_" space="-"><date/><episode_title/></rename>`` as the template ``{date}_{episode_title}``."""
    divider, space, fields = "_", None, []
    for name, text, _ in _children(element):
        if name == "divider":
            divider = text.strip("\n")
        elif name == "space":
            space = text
        elif name in _FIELDS:
            fields.append(f"{{{name}}}")
        else:
            notes.append(f'{place}, rename: "{shown(name)}" has no place in a name, and is left out.')
    template = divider.replace("{", "{{").replace("}", "}}").join(fields)
    options = SECTIONS["subscription"]
    values = _value(options["rename"], template, place, notes) if fields else {}
    return {**values, **(_value(options["space"], space, place, notes) if space is not None else {})}
