"""Random edits of random configs: all other lines stay byte for byte and the result means what was meant, or the edit
is refused. Set POCA_EXAMPLES for a longer run; the share of refusals is in --hypothesis-show-statistics."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from poca.confedit import add_subscriptions, remove_subscription, section, set_value
from poca.errors import EditError

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
EXAMPLES = settings(
    max_examples=int(os.environ.get("POCA_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

TITLES = [
    "Show", "Früh", "2024", "on", "12:30", "Foo #1", "- x", "a: b", "It's", '"q"', "null", "~", "Späti, {live}", "[x]", "*a", "&b", "!c",
    "a  b", "日本語", "👨\u200d👩", "C:\\x", "tab\there", "%d", "@home", "`t`", "2024-13-01", "0x1F", "1e3", "=", "<<", "?", "-", "a\u2028b", " pad ",
    "end:",
]
URLS = ["https://a.example/feed.xml", "http://x/y?z=1&q=a,b", "https://u:p@h.example/#f", "http://x/{id}", "http://x/a:b"]
VALUES = [
    "yes", "5", "0x1F", "2024-13-01", "''", '"a # b"', "plain text", "1_000", "[1, 2]", "{a: b, c: [d]}", "null", "12:30", "*anchor",
    "!!str 5",
]
DAMAGE = ["", "\n", "  ", "\t", ":", "- ", "#", "'", '"', "]", "{", "&x ", "*x", "|", "\x85", "---\n"]
LISTS = ["", " ", " []", " ~", " null", " [ ]", " [\n    ]", " [  # none\n    ]"]
COMMENTS = ["# a comment", "# - title: commented out", "#", "   # indented", "# ümlaut: [x", "\t# after a tab"]


# ------------------------------------------------------------------------------------------ a reader of its own

def data(text: str) -> Any:
    """What a config says, types told apart, texts raw, merges flattened; independent of the reader under test."""
    def of(node: Any) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return (node.tag, node.value)
        if isinstance(node, yaml.SequenceNode):
            return [of(item) for item in node.value]
        merged: dict[Any, Any] = {}
        own: dict[Any, Any] = {}
        for key, value in node.value:
            if key.tag.endswith(":merge"):
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    merged = {**of(source), **merged}
            else:
                own[str(of(key))] = of(value)
        return {**merged, **own}
    node = yaml.compose(text.removeprefix("\ufeff"), Loader=LOADER)
    return None if node is None else of(node)


def key(name: str) -> str:
    return str(("tag:yaml.org,2002:str", name))


def entries(config: Any) -> list[Any]:
    listed = config.get(key("subscriptions")) if isinstance(config, dict) else None
    return listed if isinstance(listed, list) else []


def title_of(entry: Any) -> str | None:
    title = entry.get(key("title")) if isinstance(entry, dict) else None
    return title[1] if isinstance(title, tuple) else None


def meant(value: Any) -> Any:
    """A written value as ``data`` has it."""
    if isinstance(value, Mapping):
        return {key(name): meant(item) for name, item in value.items()}
    if isinstance(value, list):
        return [meant(item) for item in value]
    if isinstance(value, str):
        return ("tag:yaml.org,2002:str", value)
    if value is None:
        return ("tag:yaml.org,2002:null", "null")
    return ("tag:yaml.org,2002:bool", "yes" if value else "no") if isinstance(value, bool) else ("tag:yaml.org,2002:int", str(value))


# --------------------------------------------------------------------------------------------- random configs

@dataclass
class Made:
    text: str
    titles: list[str]


def quoted(draw: Any, text: str, column: int) -> str:
    """A text in one of the styles of YAML."""
    double = '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\u2028", "\\L").replace("\n", "\\n") + '"'
    styles = [double]
    if text.isprintable():
        styles.append("'" + text.replace("'", "''") + "'")
        pad = " " * (column + draw(st.integers(1, 3)))
        if text.strip() == text and text:
            styles += [f"|-\n{pad}{text}", f">-  # folded\n{pad}{text}"]
            if " " in text and "  " not in text:
                styles.append('"' + text.replace("\\", "\\\\").replace('"', '\\"').replace(" ", "\n" + pad, 1) + '"')
    plain = draw(st.sampled_from([text, *styles]))
    return plain if plain in styles or fits(plain, text) else double


def fits(plain: str, text: str) -> bool:
    try:
        return bool(data(f"k: {plain}\n")[key("k")][1] == text and not plain.startswith(("*", "&", "!")))
    except (yaml.YAMLError, TypeError, IndexError, KeyError):
        return False


@st.composite
def block_entry(draw: Any, title: str, indent: int, gap: int) -> str:
    column = indent + 1 + gap
    lines = [("title", quoted(draw, title, column)), ("url", quoted(draw, draw(st.sampled_from(URLS)), column))]
    names = draw(st.lists(st.sampled_from(["max_number", "category", "from_the_top", "state", "space", "comment"]), unique=True, max_size=4))
    lines += [(name, draw(st.sampled_from(VALUES))) for name in names]
    if draw(st.booleans()):
        inner = " " * (column + 2)
        comment = draw(st.sampled_from(["", "x", f"|+\n{inner}  z\n", f"|\n{inner}  z\n\n"]))
        lines.append(("metadata", f"\n{inner}artist: Jane   # c\n{inner}# between\n{inner}comment: {comment}"))
    lines = draw(st.permutations(lines))
    text = ""
    for number, (name, value) in enumerate(lines):
        if number and draw(st.integers(0, 5)) == 0:
            text += draw(st.sampled_from(["\n", " " * column + "# inside\n", "# left\n"]))
        written = draw(st.sampled_from([name, name, name, f"'{name}'", f'"{name}"']))
        lead = (" " * indent + "-" + " " * gap) if not number else " " * column
        tail = draw(st.sampled_from(["", "", "  # tail"])) if "\n" not in value else ""
        text += f"{lead}{written}:{' ' if value else ''}{value}{tail}\n"
    return text


@st.composite
def flow_entry(draw: Any, title: str) -> str:
    def one_line(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\u2028", "\\L") + '"'
    pairs = [f"title: {one_line(title)}", f"url: {draw(st.sampled_from(['http://x?y=1', one_line(URLS[1]), 'u']))}"]
    for name in draw(st.sets(st.sampled_from(["max_number", "state"]))):
        pairs.append(f"{name}: {draw(st.sampled_from(['5', 'yes', '[1, 2]', '*anchor', '{a: {b: c}}', 'x y']))}")
    glue = draw(st.sampled_from([", ", ",", " , ", ",\n      "]))
    return "{" + draw(st.sampled_from(["", " "])) + glue.join(draw(st.permutations(pairs))) + draw(st.sampled_from(["", " ", ","])) + "}"


@st.composite
def filler(draw: Any, most: int = 2) -> str:
    return "".join(line + "\n" for line in draw(st.lists(st.sampled_from(["", "", *COMMENTS]), max_size=most)))


@st.composite
def configs(draw: Any) -> Made:
    titles = draw(st.lists(st.sampled_from(TITLES), unique=True, max_size=4))
    base = draw(st.sampled_from([0, 0, 0, 2]))
    margin = " " * base
    name = draw(st.sampled_from(["subscriptions", "subscriptions", "'subscriptions'", '"subscriptions"']))
    style = draw(st.sampled_from(["block", "block", "block", "flow", "lines", "mixed"]))
    tail = draw(st.sampled_from(["", "", "   # the list"]))
    if not titles:
        listed = draw(st.sampled_from(["", f"{margin}{name}:{draw(st.sampled_from(LISTS))}{tail}\n"]))
    elif style in ("block", "mixed"):
        indent = base + draw(st.sampled_from([0, 2, 4]))
        gap = draw(st.integers(1, 3))
        between = draw(st.sampled_from(["", "\n", "\n\n", " " * indent + "# above\n", "# left\n"]))
        anchor = draw(st.sampled_from(["", "", "", " &list"]))
        listed = f"{margin}{name}:{anchor}{tail}\n" + draw(filler()).replace("\t", "")
        for number, title in enumerate(titles):
            listed += between if number else ""
            if style == "mixed" and draw(st.booleans()):
                listed += " " * indent + "- " + draw(flow_entry(title)).replace("\n", "\n" + " " * indent) + "\n"
            else:
                entry = draw(block_entry(title, indent, gap))
                if number and draw(st.integers(0, 4)) == 0:
                    entry += " " * (indent + 1 + gap) + "<<: *anchored\n"
                listed += entry
    else:
        items = [draw(flow_entry(title)) for title in titles]
        if style == "flow":
            listed = f"{margin}{name}: [{', '.join(items)}{draw(st.sampled_from(['', ' ', ',', ', ']))}]{tail}\n"
        else:
            glue = draw(st.sampled_from([",\n" + margin + "  ", ",  # c\n" + margin + "    ", "\n" + margin + "  , "]))
            listed = f"{margin}{name}: [{tail}\n{margin}  {glue.join(items)}{draw(st.sampled_from(['', ',', ', # last', ' # last']))}\n{margin}]\n"
    before = f"{margin}settings: &anchored\n{margin}  base_dir: ~/x   # here\n{margin}  parallel: &anchor 4\n" + draw(filler())
    afters = ["", "", f"{margin}defaults: {{max_number: 3}}\n", f"{margin}other: |+\n{margin}   text\n\n", f"{margin}again: *anchor\n"]
    after = draw(st.sampled_from(afters))
    text = draw(st.sampled_from(["", "", "---\n", "%YAML 1.1\n---\n"])) + draw(filler()).replace("\t", "") + before + listed
    text += draw(filler()) + after
    text += draw(st.sampled_from(["", "", "...\n", "...\n# past the end\n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.integers(0, 3)) == 0:
        text = text.rstrip("\r\n")
    return Made(draw(st.sampled_from(["", "", "\ufeff"])) + text, titles)


any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
options = st.fixed_dictionaries(
    {"title": st.one_of(st.sampled_from(TITLES), any_text), "url": st.sampled_from(URLS)},
    optional={
        "max_number": st.integers(0, 99), "from_the_top": st.booleans(), "category": st.text(max_size=5), "rename": st.just("{date}_{episode_title}"),
        "metadata": st.dictionaries(st.sampled_from(["artist", "comment", "no"]), st.sampled_from(TITLES), max_size=2),
        "filters": st.fixed_dictionaries({"title": st.sampled_from(TITLES), "hour": st.lists(st.integers(0, 23), max_size=3)}),
    },
)


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def is_within(fewer: list[str], more: list[str]) -> bool:
    """Whether the lines are all there, in their order."""
    rest = iter(more)
    return all(line in rest for line in fewer)


def lost(old: str, new: str) -> list[str]:
    """The lines of the old text that the new one no longer has, a line end added to the last one aside."""
    one, other = lines(old), lines(new)
    if one and one[-1] not in other and other:
        one[-1:] = [line for line in other if line.rstrip("\r\n") == one[-1]][:1] or one[-1:]
    steps = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [line for kind, start, end, _, _ in steps if kind in ("replace", "delete") for line in one[start:end]]


def edited(edit: Callable[[], str], old: Any) -> str | None:
    """The new text, None when the edit was refused."""
    try:
        text = edit()
    except EditError as error:
        event("refused")
        assert str(error)
        return None
    event("done")
    return text


def parsed(made: Made) -> Any:
    try:
        return data(made.text)
    except yaml.YAMLError:
        return None


# ------------------------------------------------------------------------------------------------- properties

@EXAMPLES
@given(configs(), options)
def test_adding_leaves_every_line_and_means_one_more_entry(made: Made, values: dict[str, Any]) -> None:
    old = parsed(made)
    if old is None:
        with pytest.raises(EditError):
            add_subscriptions(made.text, [values])
        return
    text = edited(lambda: add_subscriptions(made.text, [values]), old)
    if text is None:
        return
    assert data(text) == {**old, key("subscriptions"): [*entries(old), meant(values)]}
    changed = lost(made.text, text)
    assert len(changed) <= 2
    assert all("subscriptions" in line or "}" in line or "]" in line for line in changed), changed


@EXAMPLES
@given(configs(), st.data())
def test_removing_takes_lines_of_that_entry_only(made: Made, choice: st.DataObject) -> None:
    old = parsed(made)
    if old is None or not made.titles:
        return
    title = choice.draw(st.sampled_from(made.titles))
    text = edited(lambda: remove_subscription(made.text, title), old)
    if text is None:
        return
    left = [entry for entry in entries(old) if title_of(entry) != title]
    assert len(left) == len(made.titles) - 1
    assert data(text) == {**old, key("subscriptions"): left}
    new = [line for line in lines(text) if "subscriptions" not in line]
    if "[" not in made.text.partition("subscriptions")[2].splitlines()[0]:
        assert is_within(new, lines(made.text))
        assert text.count("# above") == made.text.count("# above")


@EXAMPLES
@given(configs(), st.data())
def test_adding_and_removing_again_gives_back_the_old_lines(made: Made, choice: st.DataObject) -> None:
    old = parsed(made)
    if old is None:
        return
    values = {"title": "Something New", "url": "https://n.example/"}
    text = edited(lambda: add_subscriptions(made.text, [values]), old)
    if text is None:
        return
    back = edited(lambda: remove_subscription(text, "Something New"), old)
    if back is None:
        return
    kept = [line.rstrip("\r\n") for line in lines(back)]
    changed = [line for line in lost(made.text, back) if line.strip() and line.rstrip("\r\n") not in kept and "subscriptions" not in line]
    assert all("}" in line or "]" in line for line in changed), changed


@EXAMPLES
@given(configs(), st.data())
def test_setting_a_value_changes_the_lines_of_that_value_only(made: Made, choice: st.DataObject) -> None:
    old = parsed(made)
    if old is None or not made.titles:
        return
    title = choice.draw(st.sampled_from(made.titles))
    name = choice.draw(st.sampled_from(["url", "state", "max_number", "category", "title", "metadata"]))
    texts = st.sampled_from([*TITLES, *URLS])
    value = choice.draw(st.one_of(texts, st.integers(0, 99), st.booleans(), st.just({"artist": "x: y", "year": "2024"})))
    text = edited(lambda: set_value(made.text, title, name, value), old)
    if text is None:
        return
    changed = [{**entry, key(name): meant(value)} if title_of(entry) == title else entry for entry in entries(old)]
    new = data(text)
    assert new == {**old, key("subscriptions"): changed}
    gone = lost(made.text, text)
    assert len(gone) <= 3
    assert not gone or name in gone[0] or any(sign in gone[0] for sign in "{,}"), gone


@EXAMPLES
@given(configs(), st.data())
def test_a_damaged_config_is_edited_as_meant_or_left_alone(made: Made, choice: st.DataObject) -> None:
    text = made.text
    for _ in range(choice.draw(st.integers(1, 3))):
        place = choice.draw(st.integers(0, len(text)))
        cut = choice.draw(st.integers(0, 3))
        text = text[:place] + choice.draw(st.sampled_from(DAMAGE)) + text[place + cut:]
    try:
        old = data(text)
    except (yaml.YAMLError, AttributeError, TypeError):
        old = None
    add = {"title": "Something New", "url": "https://n.example/"}
    titles = [title_of(entry) for entry in entries(old)]
    title = choice.draw(st.sampled_from([*made.titles, "Show"]))
    kind = choice.draw(st.sampled_from(["add", "remove", "set"]))
    edits = {
        "add": lambda: add_subscriptions(text, [add]),
        "remove": lambda: remove_subscription(text, title),
        "set": lambda: set_value(text, title, "url", "https://n.example/"),
    }
    new = edited(edits[kind], old)
    if new is None:
        return
    wanted = {
        "add": [*entries(old), meant(add)],
        "remove": [entry for entry in entries(old) if title_of(entry) != title],
        "set": [{**entry, key("url"): meant(add["url"])} if title_of(entry) == title else entry for entry in entries(old)],
    }
    assert kind == "add" or titles.count(title) == 1
    if old is None and kind == "add":
        old = {}
    assert data(new) == {**old, key("subscriptions"): wanted[kind]}


@EXAMPLES
@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_any_text_is_read_back_as_it_was_given(title: str, in_flow: bool) -> None:
    old = "subscriptions: [{title: old, url: x}]\n" if in_flow else "subscriptions:\n- title: old\n  url: x\n"
    values = {"title": title + "!", "url": title, "metadata": {"artist": title}}
    new = add_subscriptions(old, [values])
    assert yaml.safe_load(new)["subscriptions"][1] == values
    assert entries(data(new))[1] == meant(values)


@EXAMPLES
@given(st.lists(options, max_size=4, unique_by=lambda values: values["title"]))
def test_several_are_added_at_once_in_their_order(several: list[dict[str, Any]]) -> None:
    new = add_subscriptions("# mine\n", several)
    assert new.startswith("# mine\n")
    assert entries(data(new)) == [meant(values) for values in several]


@EXAMPLES
@given(st.dictionaries(st.sampled_from(["base_dir", "logfile", "filters"]), st.one_of(any_text, st.integers(), st.booleans(), st.none())))
def test_a_section_is_read_back_as_it_was_given(values: dict[str, Any]) -> None:
    assert yaml.safe_load(section("settings", values)) == {"settings": values}
