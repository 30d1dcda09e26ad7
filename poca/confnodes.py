"""A config file as YAML nodes with their places, and the flaws that are met in it.

Shares the library ``yaml`` with :mod:`poca.config`. Nodes are composed, values never constructed: what YAML would make
of ``08``, ``12:30`` or ``2024-13-01`` plays no part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from poca import text
from poca.errors import ConfigError
from poca.model import Fault

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LARGEST = 4_000_000        # bytes of a file
_MOST = 500_000             # keys and values that are looked at, aliases and merges unfolded
_DEEPEST = 50               # merges within merges
_BROKEN = (yaml.YAMLError, RecursionError, ValueError, OverflowError)      # the last two: an escape such as \UFFFFFFFF
_YAML = "tag:yaml.org,2002:"
_TEXTS = frozenset(_YAML + name for name in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge"))
_NOT_YAML = yaml.reader.Reader.NON_PRINTABLE     # YAML 1.1, 5.1

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")          # YAML 1.1, 5.4

Pairs = dict[str, tuple[Node, Node]]


class Flaw(NamedTuple):
    """What is wrong at a place of the file; line and column count from 0."""

    line: int
    column: int
    message: str


class Document:
    """One file as nodes, and the flaws met in it since they were last taken.

    Raises ConfigError where it is no text, no YAML, empty, or unfolds without end.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.written, self.mode = _load(file)
        self.flaws: list[Flaw] = []
        self._lines = _BREAK.split(self.written.rstrip("\n"))
        self._steps = 0
        self._read: dict[int, tuple[Pairs, list[Flaw]]] = {}
        self.root = self._compose()

    def tell(self, node: Node, message: str) -> None:
        self.flaws.append(flaw_at(node, message))

    def take(self) -> list[Flaw]:
        """The flaws so far, which are then forgotten."""
        taken, self.flaws = self.flaws, []
        return taken

    def faults(self, flaws: Iterable[Flaw]) -> tuple[Fault, ...]:
        """Each once, in the file's order. What is missed after the last line is told at its end."""
        faults = []
        last = len(self._lines) - 1
        for flaw in sorted(dict.fromkeys(flaws), key=lambda flaw: (flaw.line, flaw.column)):
            column = flaw.column if flaw.line <= last else len(self._lines[last])
            faults.append(Fault(str(self.file), min(flaw.line, last) + 1, column + 1, flaw.message))
        return tuple(faults)

    def error(self, flaws: Iterable[Flaw]) -> ConfigError:
        faults = self.faults(flaws)
        return ConfigError(f"The config {self.file} cannot be used: {len(faults)} fault{'' if len(faults) == 1 else 's'}.", faults)

    def spend(self, node: Node, steps: int) -> None:
        """Counts what is looked at, so that aliases of aliases do not unfold without end."""
        self._steps += steps
        if self._steps > _MOST:
            raise self.error([flaw_at(node, f"the file unfolds to more than {_MOST} values: too many aliases")])

    def pairs(self, node: Node, key: str) -> Pairs | None:
        """The keys of a mapping with their nodes, merged ones (``<<``) behind its own; None where it is no mapping.
        ``key`` names it in flaws."""
        return self._pairs(node, key, 0)

    def _pairs(self, node: Node, key: str, depth: int) -> Pairs | None:
        if not isinstance(node, MappingNode) or node.tag != f"{_YAML}map":
            self.tell(node, f"{key} is {kind(node)}, but must be a mapping (lines of the form key: value)")
            return None
        # A mapping that many merge is read once; its flaws are flaws of each of them.
        known = self._read.get(id(node))
        if known is None:
            outer, self.flaws = self.flaws, []
            pairs = self._merged_pairs(node, depth)
            known = self._read[id(node)] = (pairs, self.flaws)
            self.flaws = outer
        self.spend(node, len(known[0]) + 1)
        self.flaws += known[1]
        return known[0]

    def _merged_pairs(self, node: MappingNode, depth: int) -> Pairs:
        if depth > _DEEPEST:
            raise self.error([flaw_at(node, "mappings are merged (<<) too deeply, or into themselves")])
        pairs: Pairs = {}
        merged: list[Node] = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.tell(key, f"a key must be a word, but this is {kind(key)}")
            elif key.tag == f"{_YAML}merge":
                merged += value.value if isinstance(value, SequenceNode) else [value]
            elif key.value in pairs:
                first = pairs[key.value][0].start_mark.line + 1
                self.tell(key, f"{text.shown(key.value)} is given twice, the first time in line {first}")
            else:
                pairs[key.value] = (key, value)
        for part in merged:
            for name, pair in (self._pairs(part, "what << merges", depth + 1) or {}).items():
                pairs.setdefault(name, pair)
        return pairs

    def _compose(self) -> Node:
        wrong = _NOT_YAML.search(self.written)
        if wrong:
            line, column = _place(self.written[:wrong.start()])
            raise self.error([Flaw(line, column, f"the character U+{ord(wrong[0]):04X} may not stand in a YAML file")])
        try:
            root: Node | None = yaml.compose(self.written, Loader=_LOADER)
        except _BROKEN as error:
            root = self._compose_slowly(error)
        if root is None or is_null(root):
            raise self.error([Flaw(0, 0, "the file is empty; at least settings.base_dir must be given")])
        return root

    def _compose_slowly(self, first: Exception) -> Node | None:
        """What libyaml refuses and PyYAML's own parser takes is good; where both refuse, the latter says more."""
        try:
            root: Node | None = yaml.compose(self.written, Loader=yaml.SafeLoader)
        except _BROKEN as error:
            raise self.error([_syntax(error if isinstance(error, yaml.YAMLError) else first)]) from None
        return root


def is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == f"{_YAML}null"


def is_text(node: Node) -> bool:
    """Whether it is one value, without a tag that would make something else of it than a text."""
    return isinstance(node, ScalarNode) and node.tag in _TEXTS


def is_list(node: Node) -> bool:
    return isinstance(node, SequenceNode) and node.tag == f"{_YAML}seq"


def kind(node: Node) -> str:
    """What it is, in words for a person."""
    if is_null(node):
        return "empty"
    if is_text(node):
        return "a text"
    if is_list(node):
        return "a list"
    return "a mapping" if node.tag == f"{_YAML}map" else f"of the YAML type {text.shown(node.tag.replace(_YAML, '!!'))}"


def flaw_at(node: Node, message: str) -> Flaw:
    return Flaw(node.start_mark.line, node.start_mark.column, message)


def _load(file: Path) -> tuple[str, int]:
    """The text of the file, without a byte order mark, and its mode."""
    try:
        with file.open("rb") as stream:
            content, mode = stream.read(_LARGEST + 1), os.fstat(stream.fileno()).st_mode
    except FileNotFoundError:
        raise ConfigError(f"There is no config file {file}.") from None
    except OSError as error:
        raise ConfigError(f"The config {file} cannot be read: {error.strerror}.") from None
    if len(content) > _LARGEST:
        raise ConfigError(f"The config {file} is larger than {text.size(_LARGEST)}: that is no config.")
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode(), mode
    except UnicodeDecodeError as error:
        line, column = _place(content[:error.start].decode())
        fault = Fault(str(file), line + 1, column + 1, f"the byte {content[error.start]:#04x} is not UTF-8; save the file as UTF-8")
        raise ConfigError(f"The config {file} cannot be used: 1 fault.", (fault,)) from None


def _place(before: str) -> tuple[int, int]:
    """Line and column behind this text, from 0, by YAML's line breaks."""
    lines = _BREAK.split(before)
    return len(lines) - 1, len(lines[-1])


# What the parsers say, what it means, and whether the place where it began says more than where it was noticed.
_SYNTAX = (
    ("found character '\\t'", "a tab stands where only spaces may indent", False),
    ("that cannot start any token", "a text cannot begin with this character unless it is quoted", False),
    ("mapping values are not allowed", "a ':' stands where none may; a text with ': ' in it must be quoted, and keys begin in one column", False),
    ("could not find expected ':'", "a ':' is missing in this line or the one before", False),
    ("found undefined alias", "an alias (*) without its anchor (&) before it", False),
    ("but found another document", "a second document begins here; a config is one document", False),
    ("while scanning a quoted scalar", "a quoted text without its closing quote", True),
    ("while parsing a flow", "a [ or { is not closed, or a comma is missing; a text that begins with [ or { must be quoted", True),
    ("while parsing a block", "this line does not fit those before it: keys, or dashes, of one level begin in one column", False),
    ("unknown escape character", "a backslash before this letter means nothing within double quotes; single quotes leave it as it is", False),
    ("invalid Unicode character escape", "this escape is no character", False),
    ("exceeded", "it is nested too deeply", False),
)


def _syntax(error: Exception) -> Flaw:
    """What broke the parser, in words for a person. The text of the file is left out: it may hold a password."""
    said = f"{getattr(error, 'context', None) or ''} {getattr(error, 'problem', None) or ''}".strip()
    known = next(((ours, start) for theirs, ours, start in _SYNTAX if theirs in said), None)
    message, at_start = known or (text.shown(said) or "it is nested too deeply, or has an escape that is no character", False)
    marks = [mark for mark in (getattr(error, "problem_mark", None), getattr(error, "context_mark", None)) if mark is not None]
    mark = marks[-1 if at_start else 0] if marks else None
    return Flaw(mark.line if mark else 0, mark.column if mark else 0, f"this is not YAML: {message}")
