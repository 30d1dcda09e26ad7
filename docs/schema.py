"""Writes poca/config.schema.json, by which editors check and complete a config, from the table in poca/options.py.

    python docs/schema.py

What it says is less than what `poca-subscribe check` says: regular expressions, templates, time zones and what two
options say of each other are beyond it. It never refuses a good config, letter case of words such as `ntfs` aside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from poca import options
from poca.options import PROJECT_URL, SECTIONS, Option, Shape

FILE = Path(__file__).parents[1] / "poca" / "config.schema.json"
ADDRESS = f"{PROJECT_URL}/raw/main/poca/config.schema.json"
_NULL = {"type": "null"}            # "not given"


def schema() -> dict[str, Any]:
    """JSON Schema of a config, draft 07, which is what editors have."""
    known = SECTIONS["subscription"]
    shared = {name: {"$ref": f"#/definitions/{name}"} for name in known}
    subscription = _mapping(shared, (name for name in known if known[name].required))
    defaults = _mapping({name: part for name, part in shared.items() if not known[name].required})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ADDRESS,
        "title": "The config of poca",
        "type": "object",
        "properties": {
            "settings": {"description": "where the episodes go, and how poca behaves on the network", **_section("settings")},
            "defaults": _or_null("options for all subscriptions; a subscription's own value wins", defaults),
            "subscriptions": _or_null("the feeds", {"type": "array", "items": subscription}),
        },
        "required": ["settings"],
        "additionalProperties": False,
        "definitions": {**{name: _option(option) for name, option in known.items()}, "tag": _tag(known["metadata"])},
    }


def written() -> str:
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _section(name: str) -> dict[str, Any]:
    known = SECTIONS[name].values()
    return _mapping({option.name: _option(option) for option in known}, (option.name for option in known if option.required))


def _mapping(properties: dict[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _option(option: Option) -> dict[str, Any]:
    said = {"description": option.meaning}
    if option.default is not None and option.name != "useragent":       # which has the version in it
        said["default"] = option.default
    value = _value(option)
    return {**said, **value} if option.required else {**said, "anyOf": [value, _NULL]}


def _value(option: Option) -> dict[str, Any]:
    one = dict(option.type.editor)
    match option.type.shape:
        case Shape.OPTIONS:
            return _section(option.name)
        case Shape.TAGS:
            tags: dict[str, Any] = {name: {"$ref": "#/definitions/tag"} for name in options.tag_names()}
            return _mapping({**tags, "chapters": {"description": "can be removed only", "enum": ["", None]}})
        case Shape.SEVERAL:
            return {"anyOf": _one_or_list(one)}
        case Shape.ONE:
            return one


def _tag(option: Option) -> dict[str, Any]:
    return {"anyOf": [*_one_or_list(dict(option.type.editor)), _NULL]}


def _one_or_list(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [one, {"type": "array", "items": one, "minItems": 1}]


def _or_null(description: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "anyOf": [value, _NULL]}


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
