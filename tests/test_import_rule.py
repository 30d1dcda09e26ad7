"""The rooms of poca: which module may import which library, and which of the other rooms. The picture in docs/design.rst is true."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import poca

FOLDER = Path(poca.__file__).parent
MODULES = {".".join(path.relative_to(FOLDER).with_suffix("").parts): path for path in FOLDER.rglob("*.py") if path != FOLDER / "__init__.py"}

# Pure rooms, each of which may import those before it. Edge rooms: the library that they own, and the edge rooms that they may import.
PURE = ["model", "errors", "interrupts", "text", "media", "tagnames", "templates", "naming", "filters", "identity", "planner", "events", "confedit"]
EDGES: dict[str, tuple[set[str], set[str]]] = {
    "config": ({"yaml"}, set()),
    "conffile": (set(), {"locks"}),
    "web": ({"requests", "urllib3"}, set()),
    "feed": ({"feedparser"}, set()),
    "fetch": (set(), {"web"}),
    "download": (set(), {"web"}),
    "tagging": ({"mutagen"}, {"files"}),
    "state": ({"sqlite3"}, set()),
    "locks": ({"filelock"}, set()),
    "files": (set(), set()),
    "basedir": (set(), set()),
    "report": ({"rich"}, set()),
    "completion": ({"shtab"}, set()),
    "runlog": (set(), {"locks"}),
    "mail": ({"smtplib"}, set()),
    "startup": (set(), set()),
    "cover": (set(), {"web", "files"}),
    "worker": (set(), {"web", "fetch", "feed", "basedir", "cover"}),
    "executor": (set(), {"web", "download", "tagging", "cover", "state", "locks", "files", "basedir"}),
}
ROOM_OF = {
    "options": "config", "confnodes": "config", "yamltext": "confedit", "patience": "planner", "wire": "web", "gate": "web",
    "feedfast": "feed", "feedmend": "feed", "feedraw": "feed", "feeddates": "feed", "payload": "tagging", "statefile": "state",
    "tables": "report", "run": "app", "steps": "executor", "recovery": "executor", "renames": "executor",
}
TOPS = {"app", "subscribe"}         # these import anything, and nobody imports them
LIBRARIES = {library for owned, _ in EDGES.values() for library in owned}
LATE = LIBRARIES - {"yaml", "sqlite3"}
HEAVY = {"wire"}                    # modules that import their libraries at once, and are themselves imported late


def room(module: str) -> str:
    top = module.partition(".")[0]
    return ROOM_OF.get(top, top)


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported anywhere in the tree, those of poca as ``poca.x``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name poca"
            yield from (f"poca.{alias.name}" for alias in node.names) if node.module == "poca" else (node.module or "",)


def at_start(body: list[ast.stmt]) -> Iterator[str]:
    """What is imported as soon as the module is; what only a type checker needs is not."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from imports(node)
        elif isinstance(node, (ast.Try, ast.With, ast.ClassDef)):
            yield from at_start(node.body)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_what_its_room_may(module: str) -> None:
    here = room(module)
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    found = set(imports(tree))
    rooms = {room(name.removeprefix("poca.")) for name in found if name.startswith("poca.") and name != "poca.__version__"} - {here}
    libraries = {name.partition(".")[0] for name in found if not name.startswith("poca")}
    if here in TOPS:
        rooms, owned = rooms - set(PURE) - set(EDGES), set()
    elif here in PURE:
        rooms, owned = rooms - set(PURE[: PURE.index(here)]), {"yaml"} if here == "confedit" else set()
    else:
        assert here in EDGES, f"{module} belongs to no room yet"
        owned, others = EDGES[here]
        rooms = rooms - set(PURE) - others
    assert not rooms, f"{module} may not import {sorted(rooms)}"
    strangers = {name for name in libraries if name in LIBRARIES or name not in sys.stdlib_module_names} - owned
    assert not strangers, f"{module} may not import {sorted(strangers)}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_heavy_libraries_are_imported_where_they_are_first_needed(module: str) -> None:
    found = set(at_start(ast.parse(MODULES[module].read_text(encoding="utf-8")).body))
    early = (found & {f"poca.{name}" for name in HEAVY}) | ({name.partition(".")[0] for name in found} & LATE if module not in HEAVY else set())
    assert not early, f"{module} imports {sorted(early)} before it needs to"


def test_every_module_that_has_a_place_is_there() -> None:
    assert set(ROOM_OF) <= {name.partition(".")[0] for name in MODULES}
