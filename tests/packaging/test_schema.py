"""The JSON Schema of the config, by which editors check and complete it."""

from __future__ import annotations

import importlib.util
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from poca import config, options
from poca.options import OPTIONS, Option, Shape

REPOSITORY = Path(__file__).parents[2]
SAMPLE = (REPOSITORY / "sample_config.yaml").read_text(encoding="utf-8")
SCHEMA = json.loads((files("poca") / "config.schema.json").read_text(encoding="utf-8"))


class Editor(yaml.SafeLoader):
    """Reads YAML as editors do, by the core schema of YAML 1.2 (10.3.2), where yes is a text and 012 is twelve."""

    yaml_implicit_resolvers: dict[str, Any] = {}


_NULL, _INT = r"~|null|Null|NULL|", r"[-+]?[0-9]+"
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
for _tag, _pattern in (("null", _NULL), ("bool", "true|True|TRUE|false|False|FALSE"), ("int", _INT), ("float", _FLOAT)):
    Editor.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"({_pattern})$"), None)
Editor.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
Editor.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))


def faults(text: str) -> list[str]:
    """Where an editor would draw a red line."""
    return [error.json_path for error in Draft7Validator(SCHEMA).iter_errors(yaml.load(text, Loader=Editor))]


def test_it_is_the_one_that_the_table_of_options_gives() -> None:
    spec = importlib.util.spec_from_file_location("schema", REPOSITORY / "docs" / "schema.py")
    assert spec and spec.loader
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert generator.FILE.read_text(encoding="utf-8") == generator.written(), "python docs/schema.py writes it anew"


def test_it_is_a_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [SAMPLE, config.sample()], ids=["sample", "starter"])
def test_the_sample_and_the_config_to_start_with_name_it_for_editors_in_their_first_line(text: str) -> None:
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={SCHEMA['$id']}"
    assert SCHEMA["$id"].startswith(options.PROJECT_URL)


def test_it_takes_the_sample_also_with_its_commented_lines() -> None:
    assert faults(SAMPLE) == []
    for name in ("useragent", "user", "password", "password_command"):
        assert faults(SAMPLE.replace(f"# {name}:", f"{name}:")) == []


def test_it_takes_the_config_that_poca_writes() -> None:
    assert faults(config.sample()) == []


def test_an_editor_sees_the_meaning_of_every_option() -> None:
    shown = json.dumps(SCHEMA, ensure_ascii=False)
    assert [option.name for option in OPTIONS if json.dumps(option.meaning, ensure_ascii=False) not in shown] == []


@pytest.mark.parametrize(("right", "wrong"), [
    ("base_dir: ~/podcasts", "basedir: ~/podcasts"),                # required, and unknown
    ("filenames: ntfs", "filenames: fat"),
    ("id3v2version: 4", "id3v2version: 2"),
    ("id3removev1: yes", "id3removev1: maybe"),
    ("parallel: 16", "parallel: 0"),
    ("timeout: 30", "timeout: soon"),
    ("fromaddr: me@localhost", "from: me@localhost"),
    ("port: 25", "port: 70000"),
    ("threshold: 1 ", "threshold: [1]"),
    ("max_number: 10", "max_number: -1"),
    ("defaults:\n", "defaults:\n  title: All\n"),
    ("genre: Podcast", "gender: Podcast"),
    ("title: NPR News Now", "titel: NPR News Now"),
    ("title: NPR News Now", "title: [NPR, News]"),
    ("url: https://feeds.npr.org", "url: feeds.npr.org"),
    ("state: inactive", "state: asleep"),
    ("track_numbering: if missing", "track_numbering: sometimes"),
    ("artist: Jane Doe", "chapters: Jane Doe"),
    ("artist: Jane Doe", "artist: {name: Jane Doe}"),
    ("hour: [7, 21]", "hour: [7, 24]"),
    ("hour: [7, 21]", "hour: []"),
    ("weekdays: '01234'", "weekdays: '0189'"),
    ("after_date: 2016-08-23", "after_date: 23.8.2016"),
    ("episode_types: [full, bonus]", "episode_types: [whole]"),
    ("subscriptions:", "subscription:"),
])
def test_it_refuses_what_poca_refuses(right: str, wrong: str, tmp_path: Path) -> None:
    assert right in SAMPLE
    text = SAMPLE.replace(right, wrong, 1)
    assert faults(text)
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        assert config.read(file, {"HOME": str(tmp_path)}).faults
    except config.ConfigError as error:
        assert error.faults


# ------------------------------------------------------------------------------- what poca takes is never refused

def in_a_config(option: Option, written: str) -> str:
    """A config with an option as it is written."""
    base = {} if option.name == "base_dir" else {"base_dir": "x"}
    mail = {name: "a@b" for name in ("fromaddr", "toaddr") if name != option.name}
    show = {name: value for name, value in {"title": "T", "url": "http://h/"}.items() if name != option.name or option.section == "filters"}
    flow = json.dumps
    match option.section:
        case "settings":
            return f"settings: {{{flow(base)[1:-1]}{', ' if base else ''}{option.name}: {written}}}"
        case "email":
            return f"settings: {{base_dir: x, email: {{{flow(mail)[1:-1]}, {option.name}: {written}}}}}"
        case "subscription":
            return f"settings: {{base_dir: x}}\nsubscriptions: [{{{flow(show)[1:-1]}, {option.name}: {written}}}]"
        case _:
            return f"settings: {{base_dir: x}}\nsubscriptions: [{{{flow(show)[1:-1]}, filters: {{{option.name}: {written}}}}}]"


VALUES = [option for option in OPTIONS if option.type.shape in (Shape.ONE, Shape.SEVERAL)]
WORDS = st.sampled_from([
    "yes", "no", "true", "false", "on", "off", "local", "UTC", "Europe/Berlin", "ntfs", "permissive", "restrictive", "active", "inactive",
    "if missing", "full", "bonus", "trailer", "mon", "Tuesday", "024", "2024-1-31", "2016-08-23", "http://h/x?a=b", "HTTPS://user:word@h:8/", "~/x",
    "12:30", "1e3", "0x1F", "08", "+4", "4.", ".5", "null", "~", "4", "3", "0", "25", "{date}_{title}", "(?i)a|b", "_",
])


@given(option=st.sampled_from(VALUES), text=WORDS | st.integers(-5, 2000).map(str) | st.decimals(0, 99, places=2).map(str), quoted=st.booleans(),
       listed=st.booleans())
def test_what_the_table_reads_is_never_refused(option: Option, text: str, quoted: bool, listed: bool) -> None:
    try:
        option.type.read(text)
    except ValueError:
        return
    plain = not re.search(r"[:{}#&*?|@`,\[\]\s]|^[~_]|^null$", text)
    written = text if plain and not quoted else "'" + text + "'"
    if listed and option.type.shape is Shape.SEVERAL:
        written = f"[{written}]"
    assert faults(in_a_config(option, written)) == []
