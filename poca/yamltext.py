"""The text of YAML: its nodes with their places in it, and values as text.

Shares the library ``yaml`` with :mod:`poca.config`: only its parser's events and positions are used, and no value is ever
constructed, so that a nonsense date somewhere in a file does no harm. The parser is the one that reads the config:
libyaml's where it is there, since the one in Python refuses some texts that libyaml takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.resolver.Resolver()
BREAKS = "\n\r\x85\u2028\u2029"       # YAML 1.1, 4.2
BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_REST_OF_LINE = re.compile(r"[ \t]*(?:[ \t]#[^\n\r\x85\u2028\u2029]*)?(?=[\n\r\x85\u2028\u2029]|\Z)")
NULL = "tag:yaml.org,2002:null"
MERGE = "tag:yaml.org,2002:merge"
_STR = "tag:yaml.org,2002:str"
_JOINERS = "\u200c\u200d"               # not printable by Python's reckoning, but letters of names and emoji need them


class Unsafe(Exception):
    """Why a text cannot be edited, as the middle part of a sentence."""


# ------------------------------------------------------------------------------------------------------- reading

@dataclass(slots=True, eq=False)
class Node:
    """A node of the document with its place in the text, anchors and tags included in it."""

    kind: str                           # scalar | sequence | mapping | alias
    start: int = 0
    end: int = 0                        # not to be relied on for block collections: see Document.end_of
    tag: str = ""
    value: str = ""                     # of a scalar: its text without quotes
    block: bool = False                 # a block collection, or a block scalar
    children: list[Node] = field(default_factory=list)      # of a mapping: key, value, key, value ...
    target: Node | None = None          # of an alias

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        return zip(self.children[::2], self.children[1::2], strict=True)


@dataclass(slots=True)
class Document:
    """A parsed text, and the questions about places in it (indices into the text)."""

    text: str                           # without BOM
    root: Node | None
    stop: int                           # where the document ends: at its "..." or at the end of the text
    dashes: list[int]                   # positions of the "-" of block sequences

    def end_of(self, node: Node) -> int:
        """Where the last character that belongs to the node ends."""
        while node.block and node.children:
            node = node.children[-1]
        if not (node.kind == "scalar" and node.block):
            return node.end
        written = self.text[node.start:node.end]
        kept = re.match(r"(?:[&!]\S*\s+)*[|>]\d*\+", written)
        return node.start + len(re.sub(r"(?:\r\n|[\n\r\x85\u2028\u2029])\Z", "", written) if kept else written.rstrip())

    def dash_of(self, item: Node) -> int:
        return max(dash for dash in self.dashes if dash < item.start)

    def line(self, place: int) -> int:
        return len(BREAK.findall(self.text, 0, place)) + 1

    def line_start(self, place: int) -> int:
        return max(self.text.rfind(c, 0, place) for c in BREAKS) + 1

    def line_end(self, place: int) -> int:
        found = BREAK.search(self.text, place)
        return found.end() if found else len(self.text)

    def column(self, place: int) -> int:
        return place - self.line_start(place)

    def ends_line(self, place: int) -> bool:
        """Whether nothing but blanks and a comment follows in the line."""
        return _REST_OF_LINE.match(self.text, place) is not None

    def begins_line(self, place: int) -> bool:
        return not self.text[self.line_start(place):place].strip(" ")


def read(text: str) -> Document:
    """Parse a text without constructing anything from it.

    Raises Unsafe where it is no YAML, holds several documents, or an anchor in it is missing or given twice.
    """
    try:
        events: list[Any] = list(yaml.parse(text, Loader=_LOADER))
        tokens: list[Any] = [token for token in yaml.scan(text, Loader=_LOADER) if isinstance(token, yaml.BlockEntryToken)]
    except (yaml.YAMLError, RecursionError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise Unsafe("it is no valid YAML" + (f" in line {mark.line + 1}" if mark else "")) from None
    document = Document(text, None, len(text), [token.start_mark.index for token in tokens])
    anchors: dict[str, Node] = {}
    top = Node("sequence")
    stack = [top]
    for event in events:
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.DocumentEndEvent) and event.explicit:
            document.stop = min(document.stop, start)
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop().end = end
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise Unsafe(f"*{event.anchor} refers to an anchor that is not there")
            node = Node("alias", start, end, target=anchors[event.anchor])
        elif isinstance(event, yaml.ScalarEvent):
            tag = event.tag if event.tag not in (None, "!") else _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
            node = Node("scalar", start, end, tag, event.value, block=event.style in ("|", ">"))
        elif isinstance(event, yaml.CollectionStartEvent):
            kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
            node = Node(kind, start, end, event.tag or "", block=not event.flow_style)
        else:
            continue
        stack[-1].children.append(node)
        if event.anchor and not isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                raise Unsafe(f"the anchor &{event.anchor} is given twice")
            anchors[event.anchor] = node
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(node)
    if len(top.children) > 1:
        raise Unsafe("it holds several documents")
    document.root = top.children[0] if top.children else None
    return document


def real(node: Node) -> Node:
    return node.target if node.target is not None else node


def same(one: Node, other: Node) -> bool:
    """Whether two trees mean the same, aliases followed, types and raw text compared. Ends also for anchors within
    themselves, and is quick where aliases of aliases would unfold to millions of nodes."""
    seen: set[tuple[int, int]] = set()
    todo = [(one, other)]
    while todo:
        a, b = (real(node) for node in todo.pop())
        if (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        if (a.kind, a.tag, a.value, len(a.children)) != (b.kind, b.tag, b.value, len(b.children)):
            return False
        todo.extend(zip(a.children, b.children, strict=True))
    return True


# ------------------------------------------------------------------------------------------------------- writing

def node_of(value: object) -> Node:
    """What a written value has to be read as."""
    if isinstance(value, Mapping):
        return Node("mapping", children=[node_of(part) for pair in value.items() for part in pair])
    if isinstance(value, list | tuple):
        return Node("sequence", children=[node_of(item) for item in value])
    if isinstance(value, str):
        return Node("scalar", tag=_STR, value=value)
    kinds = ((bool, "bool"), (int, "int"), (float, "float"), (date, "timestamp"), (type(None), "null"))
    name = next((name for kind, name in kinds if isinstance(value, kind)), None)
    if name is None:
        raise TypeError(f"no way to write a {type(value).__name__} into a config")
    return Node("scalar", tag=f"tag:yaml.org,2002:{name}", value=flow(value))


def flow(value: object, within: bool = False) -> str:
    """A value on one line; ``within``: it stands inside of ``[]`` or ``{}``."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key, True)}: {flow(item, True)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item, True) for item in value) + "]"
    if isinstance(value, str):
        return _scalar(value, within)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _scalar(text: str, within: bool) -> str:
    """A text so that YAML reads it as this very text: plain where that is safe, else in single quotes, and in double
    quotes where something in it has to be escaped."""
    if not all(c.isprintable() or c in _JOINERS for c in text):
        return '"' + "".join(_escaped(c) for c in text) + '"'
    plain = (
        bool(re.match(r"[\w/~$(]", text))
        and text[-1] not in " :"
        and not re.search(r": | #" + (r"|[][{},?]|:[^/]" if within else ""), text)
        and _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _STR
    )
    return text if plain else "'" + text.replace("'", "''") + "'"


def _escaped(c: str) -> str:
    if c in '\\"':
        return "\\" + c
    if c.isprintable() or c in _JOINERS:
        return c
    if c == "\n":
        return "\\n"
    code = ord(c)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def lines_of(values: Mapping[str, object]) -> list[str]:
    """A mapping in block style, mappings in it too, all else on one line."""
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{flow(key)}:", *("  " + line for line in lines_of(value))]
        else:
            lines.append(f"{flow(key)}: {flow(value)}")
    return lines
