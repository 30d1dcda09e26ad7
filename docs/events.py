"""Writes poca/events.schema.json, the JSON Schema of a line of `poca --json`, from the tables in docs/json.rst.

    python docs/events.py

The tables say which fields each kind of event has; what a field holds is in `FIELDS` below. Kinds and fields that a later
poca adds are let pass, as those who read the lines are to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree

from poca.options import PROJECT_URL

DOCUMENT = Path(__file__).with_name("json.rst")
FILE = Path(__file__).parents[1] / "poca" / "events.schema.json"
ADDRESS = f"{PROJECT_URL}/raw/main/poca/events.schema.json"

_TYPES = {"text": "string", "number": "integer", "null": "null", "true": "boolean", "false": "boolean"}
_TEXT, _FLAG, _COUNT, _NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 0}, {"type": "number", "minimum": 0}
_INSTANT, _SIZE, _PATHS = {"type": ["integer", "null"]}, {"type": ["integer", "null"], "minimum": 0}, {"type": "array", "items": {"type": "string"}}
FIELDS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("url", "error", "tag", "format", "episode", "file", "planned", "host", "from"), _TEXT),
    **dict.fromkeys(("dry_run", "bug"), _FLAG),
    **dict.fromkeys(("feeds", "asked", "unchanged", "waiting", "failed", "failures", "downloaded", "downloaded_bytes", "downloads_failed",
                     "removed", "freed", "deleted_by_user", "adopted", "episodes"), _COUNT),
    **dict.fromkeys(("until", "next_try", "last_good"), _INSTANT),
    "bytes": _SIZE, "seconds": _NUMBER,
}


def rows(path: Path, title: str) -> Iterator[list[nodes.entry]]:
    """The rows below the heading of the table in a section."""
    settings = {"report_level": 2, "halt_level": 2, "input_encoding": "utf-8", "warning_stream": False}
    document = publish_doctree(path.read_text(encoding="utf-8"), source_path=str(path), settings_overrides=settings)
    section = next(s for s in document.findall(nodes.section) if s[0].astext() == title)
    body = next(iter(next(iter(section.findall(nodes.table))).findall(nodes.tbody)))
    for row in body:
        yield list(row)


def literals(entry: nodes.Element) -> list[str]:
    return [literal.astext() for literal in entry.findall(nodes.literal)]


def schema() -> dict[str, Any]:
    """Draft 07."""
    kinds: dict[str, list[list[str]]] = {}
    for kind, _, fields, _ in rows(DOCUMENT, "Events"):
        kinds.setdefault(kind.astext(), []).append(literals(fields))
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ADDRESS,
        "title": "A line of poca --json",
        **_object({
            "event": _TEXT,
            "time": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
            "level": {"enum": ["detail", "news", "warning", "error"]},
            "subscription": {"type": ["string", "null"]},
            "text": _TEXT,
        }),
        "allOf": [{"if": {"properties": {"event": {"const": kind}}}, "then": _one_of(kind, forms)} for kind, forms in kinds.items()],
    }


def _one_of(kind: str, forms: list[list[str]]) -> dict[str, Any]:
    known = {**FIELDS, **_plan()} if kind == "plan" else FIELDS
    parts = [_object({field: known[field] for field in form}) for form in forms]
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _plan() -> dict[str, dict[str, Any]]:
    """The fields of a plan, some of which are counts elsewhere."""
    going = {"episode": _TEXT, "file": _TEXT, "bytes": _SIZE}
    table = rows(DOCUMENT, "The event plan")
    verdict = {literals(field)[0]: {"type": sorted({_TYPES[word] for word in kind.astext().split(", ")})} for field, kind, _ in table}
    return {
        "download": {"type": "array", "items": _object({**going, "url": _TEXT})},
        "delete": {"type": "array", "items": _object(going)},
        **dict.fromkeys(("deleted_by_user", "found_again", "adopted"), _PATHS),
        "episodes": {"type": "array", "items": _object(verdict)},
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def written() -> str:
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
