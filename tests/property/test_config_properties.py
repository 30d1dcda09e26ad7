"""Whatever stands in the file: a Config or a ConfigError, each fault at a place of the file, and never half a subscription."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from poca import config
from poca.errors import ConfigError
from poca.model import Config, Fault, Filters, Subscription
from poca.options import OPTIONS

ENV = {"HOME": "/home/jane"}
SAMPLE = (Path(__file__).parents[2] / "sample_config.yaml").read_text(encoding="utf-8")
PIECES = st.sampled_from([
    *{option.name for option in OPTIONS}, "settings", "defaults", "subscriptions",
    "\n", "\n  ", "\n- ", "\n    ", "\n\t", ": ", ":", "- ", ", ", "{", "}", "[", "]", "'", '"', "#", " # ", "|\n", ">\n",
    "&a ", "*a", "<<: ", "<<: *a", "? ", "!", "!!int ", "!!binary ", "!x ", "---\n", "...\n", "%YAML 1.1\n",
    "\\", "\ufeff", "\r", "\r\n", "\x85", "\u2028", "\x00", "\x1b", "\U0001f600", "ä", "=", "@", "`",
    "~", "null", "yes", "on", "-1", "08", "1.5", "12:30", "2024-13-01", ".inf", "0x1F", "(", "[a", "{date}", "{", "9" * 30,
    "https://user:pw@example.org/", "http://", "ftp://a", "$HOME", "${", "$NONE", "~nobody", "../..",
    "mon", "'024'", "if missing", "Europe/Berlin",
])
YAMLISH = st.lists(PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=40).map("".join)
LINE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"], exclude_characters="\ufeff\ufffe\uffff"), min_size=1, max_size=40)
WORDS = LINE.filter(str.strip)
TAG = LINE.map(lambda line: re.sub("[{}]", "", line))        # a brace in the text of a tag begins a field


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The sample after a few strokes of bad luck."""
    text = SAMPLE
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.sampled_from([0, 0, 1, 2, 5, 20, 200]))
        copied = draw(st.integers(0, len(text)))
        text = text[:start] + draw(YAMLISH | PIECES | st.just(text[copied:copied + 60])) + text[end:]
    return text


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str | bytes], Config]:
    file = tmp_path_factory.mktemp("config") / "config.yaml"

    def read(text: str | bytes) -> Config:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return config.read(file, ENV)
    return read


def told(faults: tuple[Any, ...], text: str) -> None:
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text.removeprefix("\ufeff"))
    for fault in faults:
        assert isinstance(fault, Fault)
        assert 1 <= fault.line <= len(lines)
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
        assert fault.message
        assert "\n" not in fault.message
        assert "\x1b" not in fault.message
    assert list(faults) == sorted(faults, key=lambda fault: (fault.line, fault.column))


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(text=mutated() | YAMLISH)
@example(text="a\n\n&a: *a\n")
@example(text="settings: &a\n  base_dir: *a\n")
@example(text="settings: {base_dir: /x}\nsubscriptions: &a\n- *a\n- {metadata: *a, <<: *a}\n")
def test_a_file_gives_a_config_or_an_error_with_places_in_the_file(load: Callable[[str | bytes], Config], text: str) -> None:
    try:
        read = load(text)
    except ConfigError as error:
        assert error.faults
        told(error.faults, text)
        return
    told(read.faults, text)
    assert bool(read.faults) == bool(read.faulty)
    assert read.settings.base_dir.is_absolute()
    assert read.settings.state_dir.is_absolute()
    titles = [subscription.title for subscription in read.subscriptions]
    assert len({subscription.folder for subscription in read.subscriptions}) == len(titles)
    assert not {title for title, _ in read.faulty} & set(titles)


@settings(deadline=None, max_examples=100)
@given(content=st.binary(max_size=60) | st.tuples(st.binary(max_size=3), st.integers(0, len(SAMPLE))).map(
    lambda drawn: SAMPLE.encode()[:drawn[1]] + drawn[0] + SAMPLE.encode()[drawn[1]:]))
def test_any_bytes_give_a_config_or_an_error(load: Callable[[str | bytes], Config], content: bytes) -> None:
    try:
        load(content)
    except ConfigError as error:
        told(error.faults, content.decode(errors="replace"))


FILTERS = st.fixed_dictionaries({}, optional={
    "hour": st.lists(st.integers(0, 23), min_size=1),
    "after_date": st.dates(),
    "min_minutes": st.integers(0, 90),
})
GOOD: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional={
    "category": LINE,
    "max_number": st.integers(0, 1_000_000),
    "from_the_top": st.booleans(),
    "metadata": st.dictionaries(st.sampled_from(["artist", "album", "genre", "comment"]), TAG | st.just(""), min_size=1),
    "filters": FILTERS,
    "cover": st.booleans(),
    "space": st.text("_- .", max_size=3),
})
BAD = st.sampled_from([
    {"max_number": -1}, {"max_number": "all"}, {"nonsense": 1}, {"url": "ftp://a/"}, {"url": None}, {"title": ["x"]}, {"cover": "maybe"},
    {"filters": {"title": "("}}, {"filters": []}, {"filters": {"hour": 24}}, {"metadata": {"nonsense": "x"}}, {"rename": "{nonsense}"},
    {"max_days": 1, "from_the_top": True},
])


@settings(deadline=None, max_examples=150)
@given(shows=st.lists(st.tuples(GOOD, st.none() | BAD), max_size=6), flow=st.sampled_from([None, True, False]))
def test_a_faulty_subscription_costs_no_other_an_option(
    load: Callable[[str | bytes], Config], shows: list[tuple[dict[str, Any], dict[str, Any] | None]], flow: bool | None,
) -> None:
    entries = [{"title": f"Show {number}", "url": f"https://example.org/{number}", **good, **(bad or {})} for number, (good, bad) in enumerate(shows)]
    text = yaml.safe_dump({"settings": {"base_dir": "/x"}, "subscriptions": entries}, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    read = load(text)
    assert list(read.subscriptions) == [expected(entry) for entry, (_, bad) in zip(entries, shows, strict=True) if bad is None]
    assert len(read.faulty) == sum(bad is not None for _, bad in shows)
    told(read.faults, text)


def expected(entry: dict[str, Any]) -> Subscription:
    filters = {**entry.get("filters", {})}
    if "hour" in filters:
        filters["hour"] = frozenset(filters["hour"])
    return Subscription(**{**entry, "filters": Filters(**filters), "metadata": tuple(entry.get("metadata", {}).items())}, folder=entry["title"])


@settings(deadline=None, max_examples=200)
@given(title=WORDS, category=LINE, tag=st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"], exclude_characters="\ufeff{}"), max_size=40),
       style=st.sampled_from([None, "'", '"']), ascii_only=st.booleans())
@example(title="~x", category=" ", tag="", style=None, ascii_only=False)
def test_texts_come_back_as_they_were_written(
    load: Callable[[str | bytes], Config], title: str, category: str, tag: str, style: str | None, ascii_only: bool,
) -> None:
    entry = {"title": title, "url": "https://example.org/", "category": category, "metadata": {"comment": tag}}
    text = yaml.safe_dump({"settings": {"base_dir": "/x"}, "subscriptions": [entry]}, default_style=style, allow_unicode=not ascii_only)
    read = load(text)
    assert read.faults == ()
    assert [(show.title, show.category, show.metadata) for show in read.subscriptions] == [(title, category, (("comment", tag),))]


PLAIN = st.from_regex(r"[0-9A-Za-z+_.]([0-9A-Za-z.:+_ -]{0,12}[0-9A-Za-z.+_])?", fullmatch=True)


@settings(deadline=None, max_examples=200)
@given(written=PLAIN.filter(lambda written: ": " not in written and written not in ("null", "Null", "NULL")))
@example(written="2024-01-01")
@example(written="0o17")
@example(written="190:20:30")
@example(written="on")
def test_a_plain_word_is_a_title_whatever_yaml_takes_it_for(load: Callable[[str | bytes], Config], written: str) -> None:
    read = load(f"settings: {{base_dir: /x}}\nsubscriptions:\n- title: {written}\n  url: https://example.org/\n")
    assert [show.title for show in read.subscriptions] == [written]
