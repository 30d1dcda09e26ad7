"""The documents say what the code does, as far as a test can tell."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from configparser import ConfigParser
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from docutils.utils import SystemMessage
from jsonschema import Draft7Validator

import poca
from poca import app
from poca.model import Rule
from tests.origin import mp3
from tests.server import Reply, Server

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = sorted([*REPOSITORY.glob("*.rst"), *REPOSITORY.glob("docs/*.rst")])
MODULES = sorted(Path(poca.__file__).parent.rglob("*.py"))


def tree(path: Path) -> nodes.document:
    settings = {"report_level": 2, "halt_level": 2, "input_encoding": "utf-8", "warning_stream": False}
    return publish_doctree(path.read_text(encoding="utf-8"), source_path=str(path), settings_overrides=settings)


def script(name: str) -> ModuleType:
    """One of those that write a document, or by one."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "docs" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EVENTS = script("events")
rows, literals = EVENTS.rows, EVENTS.literals


# --------------------------------------------------------------------------------------------------- every document

@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_is_sound_restructuredtext(path: Path) -> None:
    try:
        tree(path)
    except SystemMessage as fault:
        pytest.fail(f"{path.name}: {fault}")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_link_to_a_file_leads_to_one(path: Path) -> None:
    targets = [reference["refuri"] for reference in tree(path).findall(nodes.reference) if "://" not in reference.get("refuri", "://")]
    missing = [target for target in targets if not (path.parent / target.partition("#")[0]).exists()]
    assert not missing


# ----------------------------------------------------------------------------------------------------------- README

def test_each_option_of_the_command_line_is_in_the_readme_and_no_other() -> None:
    told = {word.split()[0] for option, _ in rows(REPOSITORY / "README.rst", "Options of poca") for word in literals(option)}
    assert told - {"TITLE"} == {word for action in app.parser()._actions for word in action.option_strings}


# ----------------------------------------------------------------------------------------------------------- config

def test_the_tables_of_options_are_those_of_the_code() -> None:
    tables = script("tables")
    text = tables.DOCUMENT.read_text(encoding="utf-8")
    assert set(re.findall(r"^\.\. begin (\w+)$", text, re.MULTILINE)) == set(tables.SECTIONS)
    assert text == tables.filled(text), "python docs/tables.py writes them anew"


# ------------------------------------------------------------------------------------------------------------- JSON

COMMON = {"event", "time", "level", "subscription", "text"}


def documented() -> dict[str, list[set[str]]]:
    """The further fields of each kind of event, a set for each row."""
    kinds: dict[str, list[set[str]]] = {}
    for kind, _, fields, _ in rows(REPOSITORY / "docs" / "json.rst", "Events"):
        kinds.setdefault(kind.astext(), []).append(set(literals(fields)))
    return kinds


def kinds_in_the_code() -> set[str]:
    """The first argument of each call that makes an event; news() of the steps has it second."""
    found = set()
    for module in MODULES:
        for call in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                place = {"Event": 0, "said": 0, "news": 1}.get(name)
                word = call.args[place] if place is not None and len(call.args) > place else None
                if isinstance(word, ast.Constant):
                    found.add(str(word.value))
    return found | {"deleted-by-user", "found-again", "adopted"}        # these are in a table of the executor


def test_each_kind_of_event_is_documented_and_no_other() -> None:
    assert set(documented()) == kinds_in_the_code()


def test_each_rule_is_documented() -> None:
    (rule,) = (meaning for field, _, meaning in rows(REPOSITORY / "docs" / "json.rst", "The event plan") if field.astext() == "rule")
    assert set(literals(rule)) == set(map(str, Rule))


class Stage:
    """A config, a server, and runs of poca with --json."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        self.events: list[dict[str, object]] = []

    def config(self, *subscriptions: dict[str, object]) -> None:
        settings = {"base_dir": str(self.folder / "media"), "state_dir": str(self.folder / "state"), "min_free_mb": 0, "timeout": 5}
        (self.folder / "config.yaml").write_text(json.dumps({"settings": settings, "subscriptions": subscriptions}), encoding="utf-8")

    def feed(self, path: str, *items: str, url: str = "") -> None:
        entries = "".join(
            f'<item><title>{name}</title><guid isPermaLink="false">{path}{name}</guid><pubDate>0{number} Jan 2026 10:00:00 GMT</pubDate>'
            f'<enclosure url="{url or self.server.url(f"/{name}.mp3")}" type="audio/mpeg" length="{len(EPISODE)}"/></item>'
            for number, name in enumerate(items, 1)
        )
        body = f'<rss version="2.0"><channel><title>T</title><image><url>/none.jpg</url></image>{entries}</channel></rss>'.encode()
        self.server.routes[path] = Reply(body=body, type="application/rss+xml")

    def run(self, *options: str) -> list[str]:
        """The kinds of what was told."""
        command = [sys.executable, REPOSITORY / "bin" / "poca", "-c", self.folder / "config.yaml", "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        told = [json.loads(line) for line in done.stdout.splitlines()]
        self.events += told
        return [str(event["event"]) for event in told]


EPISODE = mp3(40)
SCHEMA = json.loads((files("poca") / "events.schema.json").read_text(encoding="utf-8"))


def schema_faults(event: dict[str, object]) -> list[str]:
    return [f"{event['event']}: {error.message}" for error in Draft7Validator(SCHEMA).iter_errors(event)]


def test_the_schema_of_the_events_is_the_one_that_the_tables_give() -> None:
    assert EVENTS.FILE.read_text(encoding="utf-8") == EVENTS.written(), "python docs/events.py writes it anew"
    Draft7Validator.check_schema(SCHEMA)


def test_the_schema_refuses_what_is_no_event_and_lets_later_ones_pass() -> None:
    event: dict[str, object] = {"event": "waiting", "time": "2026-01-31T10:00:00Z", "level": "detail", "subscription": "One", "text": "", "until": 1}
    assert schema_faults(event) == schema_faults({**event, "event": "of later days", "colour": "red"}) == []
    for wrong in ({"until": "soon"}, {"level": "loud"}, {"time": "now"}, {"subscription": 1}, {"event": "moved"}):
        assert schema_faults({**event, **wrong}), wrong


def test_the_events_of_a_few_runs_have_exactly_the_documented_fields(tmp_path: Path) -> None:
    with Server() as server:
        stage = Stage(tmp_path, server)
        good = [{"title": title, "url": server.url(f"/{title}.xml"), "max_number": 2} for title in ("One", "Two", "Three")]
        stage.config(*good)
        server.routes.update({f"/{name}.mp3": Reply(body=EPISODE, type="audio/mpeg") for name in "abcdefgh"})
        stage.feed("/One.xml", "a", "b")
        stage.feed("/Two.xml", "c")
        stage.feed("/Three.xml", "d", "gone")
        server.routes["/late.mp3"] = [Reply(503), Reply(body=EPISODE, type="audio/mpeg")]
        media = tmp_path / "media"
        (media / "Two").mkdir(parents=True)
        (media / "Two" / "c.mp3").write_bytes(EPISODE)
        (media / "Three").mkdir()
        (media / "Three" / "d.mp3").write_bytes(b"no audio")        # a stranger's
        stage.run("--dry-run")
        stage.run()
        (media / "One" / "a.mp3").unlink()
        (tmp_path / "kept.mp3").write_bytes(EPISODE)
        stage.feed("/One.xml", "a", "b", "e", "late")
        stage.feed("/Two.xml", "c", "f")
        server.routes["/moved.xml"] = server.routes["/Two.xml"]
        server.routes["/Two.xml"] = Reply(301, headers={"Location": server.url("/moved.xml")})
        server.routes["/Three.xml"] = Reply(404)
        stage.run()
        (media / "One" / "a.mp3").write_bytes(EPISODE)
        stage.feed("/One.xml", "a", "b", "e", "late")
        refused = [{"title": "Refused", "url": server.url("/refused.xml")}]
        stage.feed("/refused.xml", "x", "y", "z", url="http://127.0.0.1:1/x.mp3")
        stage.config({**good[0], "title": "Uno", "max_number": 3}, *good[1:], *refused, {"title": "Wrong", "url": "ftp://x"})
        stage.run("-v", "-n", "2")
        stage.run()
        stage.run()
    kinds = documented()
    for event in stage.events:
        fields = set(event) - COMMON
        assert set(event) >= COMMON
        assert fields in kinds[str(event["event"])], f"{event['event']} has the fields {sorted(fields)}"
        assert schema_faults(event) == []
    seen = {str(event["event"]) for event in stage.events}
    # The others need a second poca, a signal or a crash.
    assert set(kinds) - seen == {"busy", "stale", "interrupted", "recovered"}


def test_the_fields_of_a_plan_are_the_documented_ones(tmp_path: Path) -> None:
    with Server() as server:
        stage = Stage(tmp_path, server)
        stage.config({"title": "One", "url": server.url("/One.xml"), "max_number": 1})
        stage.feed("/One.xml", "a", "b")
        stage.run("--dry-run")
    (plan,) = (event for event in stage.events if event["event"] == "plan")
    fields = {literal for field, *_ in rows(REPOSITORY / "docs" / "json.rst", "The event plan") for literal in literals(field)}
    assert {key for verdict in plan["episodes"] for key in verdict} == fields      # type: ignore[attr-defined]


# ----------------------------------------------------------------------------------------------------------- design

def test_each_module_and_each_library_is_in_the_picture() -> None:
    design = REPOSITORY / "docs" / "design.rst"
    named = set(literals(tree(design)))
    folder = Path(poca.__file__).parent
    modules = {str(module.relative_to(folder)) for module in MODULES}
    assert {name for name in modules if name not in named} == set()
    setup = ConfigParser()
    setup.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    libraries = {re.split(r"[\s<>=]", line)[0] for line in setup["options"]["install_requires"].split("\n") if line.strip()}
    assert {name for name in libraries if name not in named} == set()


# ----------------------------------------------------------------------------------------------------- verification

def test_each_test_that_keeps_a_promise_is_there() -> None:
    path = REPOSITORY / "docs" / "verification.rst"
    names = [literal for _, tests in rows(path, "Promises about your episodes") for literal in literals(tests)]
    assert len(names) > 100
    missing = [name for name in names if not defines(REPOSITORY / "tests" / name.partition("::")[0], name.partition("::")[2])]
    assert missing == []


def defines(path: Path, test: str) -> bool:
    return path.is_file() and any(
        isinstance(node, ast.FunctionDef) and node.name == test for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_each_promise_has_a_test() -> None:
    for promise, tests in rows(REPOSITORY / "docs" / "verification.rst", "Promises about your episodes"):
        assert literals(tests), promise.astext()
