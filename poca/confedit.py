"""The text of a config with one thing changed in it: text in, text out, nothing else touched.

Lines that an edit does not have to change stay byte for byte. The places to change are those that the YAML parser
tells, and the new text is parsed again and compared with what was meant, types and raw text included: where the two
differ, the edit is refused with :class:`poca.errors.EditError`, which says what to write where.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from poca.errors import EditError
from poca.text import shown_url
from poca.yamltext import BREAKS, MERGE, NULL, Document, Node, Unsafe, flow, lines_of, node_of, read, real, same

_BOM = "\ufeff"

Splice = tuple[int, int, str]           # start, end, what comes instead


# ------------------------------------------------------------------------------------------------------- pieces

def section(name: str, values: Mapping[str, object]) -> str:
    """A section of a new config, such as ``settings``, as lines of text."""
    return "".join(line + "\n" for line in lines_of({name: values}))


def _entry_lines(values: Mapping[str, object], indent: int, gap: int = 1, in_flow: bool = False) -> list[str]:
    """An entry of a block sequence with its dash in column ``indent`` and ``gap`` blanks after it."""
    first, *rest = [flow(values)] if in_flow else lines_of(values)
    return [" " * indent + "-" + " " * gap + first, *(" " * (indent + 1 + gap) + line for line in rest)]


def _inserted(document: Document, place: int, lines: Sequence[str]) -> Splice:
    """Whole lines at a place that is the start of a line or the end of the text."""
    before = document.text[:place]
    broken = re.compile(r"\r\n|[\n\r]").findall(before or document.text)
    newline = broken[-1] if broken else "\n"
    lead = "" if not before or before[-1] in BREAKS else newline
    return place, place, lead + "".join(line + newline for line in lines)


def _checked(document: Document, splices: Sequence[Splice], meant: Node) -> str:
    """The text with the splices, once it is sure that it means what it should."""
    text = document.text
    for start, end, instead in sorted(splices, reverse=True):
        text = text[:start] + instead + text[end:]
    try:
        root = read(text).root
    except Unsafe as reason:
        raise Unsafe(f"afterwards {reason}") from None
    if root is None or not same(root, meant):
        raise Unsafe("other parts of it would change their meaning")
    return text


# ----------------------------------------------------------------------------------------------- finding

def _found(mapping: Node, key: str) -> tuple[Node, Node] | None:
    pairs = [pair for pair in mapping.pairs() if real(pair[0]).value == key and real(pair[0]).kind == "scalar"]
    if len(pairs) > 1:
        raise Unsafe(f'"{key}" is given twice')
    return pairs[0] if pairs else None


def _title(entry: Node) -> str | None:
    """The title of an entry, be it merged in (``<<``)."""
    todo, seen = [real(entry)], set()
    while todo:
        mapping = todo.pop(0)
        if mapping.kind != "mapping" or id(mapping) in seen:
            continue
        seen.add(id(mapping))
        for key, value in mapping.pairs():
            if real(key).value == "title" and real(value).kind == "scalar":
                return real(value).value
        for key, value in mapping.pairs():
            if key.tag == MERGE:
                merged = real(value)
                todo += [real(item) for item in merged.children] if merged.kind == "sequence" else [merged]
    return None


def _list(document: Document) -> tuple[Node, Node] | None:
    """The key ``subscriptions`` and its value, None where there is no such key."""
    root = document.root
    if root is None or (root.kind, root.start) == ("scalar", root.end):
        return None
    if root.kind != "mapping":
        raise Unsafe("it does not consist of sections")
    pair = _found(root, "subscriptions")
    if pair and pair[1].kind != "sequence" and pair[1].tag != NULL:
        raise Unsafe('"subscriptions" is no list that stands at its place')
    return pair


def _entry(document: Document, title: str) -> tuple[Node, Node, Node]:
    """The key ``subscriptions``, its list, and the one entry of this title."""
    pair = _list(document)
    entries = [entry for entry in pair[1].children if _title(entry) == title] if pair else []
    if not pair or not entries:
        raise EditError(f'There is no subscription "{title}" in the config.')
    if len(entries) > 1:
        places = " and ".join(str(document.line(entry.start)) for entry in entries)
        raise EditError(f'Several subscriptions bear the title "{title}" (lines {places} of the config): give each a title of its own first.')
    return *pair, entries[0]


def _with(node: Node, old: Node, *new: Node) -> Node:
    """A copy of the node with other children in the place of one; aliases of the node still mean the old one."""
    return replace(node, children=[part for child in node.children for part in (new if child is old else (child,))])


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _refusal(reason: Unsafe, advice: str) -> EditError:
    return EditError(f"The config cannot be edited safely: {reason}. It is left as it was; by hand, {advice}")


def _for_people(values: Mapping[str, object]) -> dict[str, object]:
    return {key: shown_url(value) if key == "url" and isinstance(value, str) else value for key, value in values.items()}


# ----------------------------------------------------------------------------------------------- add

def add_subscriptions(text: str, several: Sequence[Mapping[str, object]]) -> str:
    """The config with more subscriptions at the end of its list, written in the style of their neighbours.

    ``several``: the options of each, in the order to be written: text, numbers, booleans, dates, None, and lists and
    mappings of these. Raises EditError where that cannot be done safely, or a title is there already.
    """
    if not several:
        return text
    bom, text = _split(text)
    try:
        document = read(text)
        pair = _list(document)
        taken = {_title(entry) for entry in pair[1].children} if pair else set()
        for values in several:
            if values["title"] in taken:
                raise EditError(f'There is a subscription "{values["title"]}" in the config already: choose another title.')
            taken.add(str(values["title"]))
        splices = _added(document, pair, several)
        return bom + _checked(document, splices, _meant_with(document, pair, [node_of(values) for values in several]))
    except Unsafe as reason:
        lines = [line for values in several for line in _entry_lines(_for_people(values), 2)]
        raise _refusal(reason, 'write this at the end of the list "subscriptions":\n' + "\n".join(lines)) from None


def _meant_with(document: Document, pair: tuple[Node, Node] | None, new: list[Node]) -> Node:
    if pair:
        assert document.root is not None
        old = pair[1]
        longer = replace(old, kind="sequence", tag=old.tag if old.kind == "sequence" else "", value="", children=[*old.children, *new])
        return _with(document.root, old, longer)
    root = document.root if document.root and document.root.kind == "mapping" else Node("mapping")
    return replace(root, children=[*root.children, node_of("subscriptions"), Node("sequence", children=new)])


def _added(document: Document, pair: tuple[Node, Node] | None, several: Sequence[Mapping[str, object]]) -> list[Splice]:
    root = document.root
    in_flow = root is not None and root.kind == "mapping" and not root.block
    flow_items = ", ".join(flow(values, True) for values in several)
    if pair is None and root is not None and in_flow:
        place = document.end_of(root.children[-1]) if root.children else root.end - 1
        return [(place, place, (", " if root.children else "") + f"subscriptions: [{flow_items}]")]
    if pair is None:
        indent = document.column(root.children[0].start) if root is not None and root.children else 0
        lines = [" " * indent + "subscriptions:", *_new_list(several, indent + 2)]
        return [_inserted(document, document.stop, lines)]
    key, old = pair
    if old.children:
        return _more_lines(document, key, old, several) if old.block else _more_in_flow(document, old, several)
    written = document.text[old.start:old.end]
    beside = document.line_start(key.start) == document.line_start(old.start) and document.ends_line(old.end)
    if beside and not in_flow and not re.search(r"[&!#]", written):
        colon = len(document.text[:old.start].rstrip(" \t"))
        indent = document.column(key.start)
        place = _past_comments(document, document.line_end(old.end), indent + 1)
        return [(colon, old.end, ""), _inserted(document, place, _new_list(several, indent + 2))]
    if old.kind == "sequence":
        return [(old.end - 1, old.end - 1, flow_items)] if "#" not in written else [(old.start + written.index("[") + 1,) * 2 + (flow_items,)]
    lead = "" if document.text[old.start - 1] in " \t" else " "
    return [(old.start, old.end, f"{lead}[{flow_items}]")]


def _new_list(several: Sequence[Mapping[str, object]], indent: int) -> list[str]:
    return [line for values in several for line in _entry_lines(values, indent)]


def _past_comments(document: Document, place: int, column: int) -> int:
    """The place after the comment lines that begin here and are indented at least to this column."""
    while (comment := re.compile(r" *(?=#)").match(document.text, place)) and comment.end() - place >= column:
        place = document.line_end(comment.end())
    return place


def _blank_lines(document: Document, place: int) -> tuple[int, int]:
    """How many blank lines begin here, and where the first of them ends."""
    count, first, text = 0, place, document.text
    while place < len(text) and not text[place:(end := document.line_end(place))].strip():
        count, place = count + 1, end
        first = end if count == 1 else first
    return count, first


def _more_lines(document: Document, key: Node, old: Node, several: Sequence[Mapping[str, object]]) -> list[Splice]:
    """Entries after the last one of a block sequence, indented and spaced as that one is."""
    last = old.children[-1]
    dash = document.dash_of(last)
    indent = document.column(dash)
    gap = 1
    if last.kind == "mapping" and last.children and document.line_start(last.children[0].start) == document.line_start(dash):
        gap = (last.start if not last.block else last.children[0].start) - dash - 1
    entries = [_entry_lines(values, indent, gap, in_flow=last.kind == "mapping" and not last.block) for values in several]
    place = document.line_end(document.end_of(last))
    place = _past_comments(document, place, indent if indent > document.column(key.start) else indent + 1)
    if len(old.children) > 1:
        after_previous = document.line_end(document.end_of(old.children[-2]))
        between = document.text[after_previous:document.line_start(dash)]
        if any(not line.strip() for line in between.splitlines()):
            blank, first = _blank_lines(document, place)
            entries = [["", *entry] for entry in entries]
            if blank > 1 or (blank == 1 and first == len(document.text)):
                place = first           # the blank line that a removed entry left behind
                entries[0] = entries[0][1:]
    return [_inserted(document, place, [line for entry in entries for line in entry])]


def _more_in_flow(document: Document, old: Node, several: Sequence[Mapping[str, object]]) -> list[Splice]:
    """Entries after the last one within ``[]``, each on a line of its own where the last one is."""
    text, last = document.text, old.children[-1]
    items = [flow(values, True) for values in several]
    comma = re.compile(r"[ \t]*,").match(text, last.end)
    after = comma.end() if comma else last.end
    line_end = document.line_end(after)
    if document.begins_line(last.start) and document.ends_line(after) and line_end < old.end:
        indent = text[document.line_start(last.start):last.start]
        lines = [f"{indent}{item}," for item in items]
        if comma:
            return [_inserted(document, line_end, lines)]
        return [(after, after, ","), _inserted(document, line_end, [*lines[:-1], lines[-1][:-1]])]
    return [(after, after, (" " if comma else ", ") + ", ".join(items))]


# ----------------------------------------------------------------------------------------------- remove

def remove_subscription(text: str, title: str) -> str:
    """The config without this subscription: its lines go, from its dash to its last value, with the comments between
    these. All other lines stay, comments above and below it too. The last one leaves ``subscriptions: []``.

    Raises EditError where that cannot be done safely, or there is no one subscription of this title.
    """
    bom, text = _split(text)
    advice = f'delete the subscription "{title}".'
    try:
        document = read(text)
        key, old, entry = _entry(document, title)
        first, last = document.line(entry.start), document.line(document.end_of(entry))
        advice = f'delete the subscription "{title}" (line{f" {first}" if first == last else f"s {first} to {last}"}).'
        splices = _removed_lines(document, key, old, entry) if old.block else [_removed_in_flow(document, old, entry)]
        assert document.root is not None
        return bom + _checked(document, splices, _with(document.root, old, _with(old, entry)))
    except Unsafe as reason:
        raise _refusal(reason, advice) from None


def _removed_lines(document: Document, key: Node, old: Node, entry: Node) -> list[Splice]:
    dash = document.dash_of(entry)
    if not document.begins_line(dash):
        raise Unsafe("something stands before it in its line")
    lines = (document.line_start(dash), document.line_end(document.end_of(entry)), "")
    if len(old.children) > 1:
        return [lines]
    colon = re.compile(r"[ \t]*:").match(document.text, key.end)
    if not colon or not document.ends_line(colon.end()):
        raise Unsafe('"subscriptions" is written in an unusual way')
    return [(colon.end(), colon.end(), " []"), lines]


def _removed_in_flow(document: Document, old: Node, entry: Node) -> Splice:
    text, start, end = document.text, entry.start, entry.end
    comma = re.compile(r"[ \t]*,").match(text, end)
    before = None if comma else re.compile(r",[ \t]*\Z").search(text, 0, start)
    end = comma.end() if comma else end
    start = before.start() if before else start
    if document.begins_line(start) and document.ends_line(end) and document.line_end(end) < old.end:
        return document.line_start(start), document.line_end(end), ""
    blanks = re.compile(r"[ \t]*").match(text, end)
    return start, blanks.end() if comma and blanks and not document.ends_line(end) else end, ""


# ----------------------------------------------------------------------------------------------- set a value

def set_value(text: str, title: str, key: str, value: object) -> str:
    """The config with this value for this key of a subscription, the key being put after ``url`` where it is not
    there yet. A text that says so already is given back as it is.

    Raises EditError where that cannot be done safely, or there is no one subscription of this title.
    """
    bom, text = _split(text)
    line = 0
    try:
        document = read(text)
        _, old, entry = _entry(document, title)
        line = document.line(entry.start)
        if entry.kind != "mapping":
            raise Unsafe("it stands at another place, which an alias refers to")
        pair = _found(entry, key)
        new = node_of(value)
        if pair and same(pair[1], new):
            return bom + text
        if pair:
            splice, changed = _replaced(document, entry, pair[1], value), _with(entry, pair[1], new)
        else:
            splice, changed = _put_after(document, entry, key, value)
        assert document.root is not None
        return bom + _checked(document, [splice], _with(document.root, old, _with(old, entry, changed)))
    except Unsafe as reason:
        written = lines_of(_for_people({key: value}))
        where = f' (line {line})' if line else ""
        raise _refusal(reason, f'write this in the subscription "{title}"{where}:\n' + "\n".join("    " + each for each in written)) from None


def _replaced(document: Document, entry: Node, old: Node, value: object) -> Splice:
    if old.block and old.children:
        raise Unsafe("the old value has several lines")
    lead = "" if document.text[old.start - 1] in " \t" + BREAKS else " "
    return old.start, document.end_of(old), lead + flow(value, within=not entry.block)


def _put_after(document: Document, entry: Node, key: str, value: object) -> tuple[Splice, Node]:
    """A new pair after that of ``url``, or of the title, and the entry that it makes."""
    neighbour = _found(entry, "url") or _found(entry, "title")
    if not neighbour:
        raise Unsafe("its title is merged in from another place")
    changed = _with(entry, neighbour[1], neighbour[1], node_of(key), node_of(value))
    place = document.end_of(neighbour[1])
    if not entry.block:
        return (place, place, f", {flow(key, True)}: {flow(value, True)}"), changed
    indent = " " * document.column(entry.children[0].start)
    return _inserted(document, document.line_end(place), [indent + line for line in lines_of({key: value})]), changed
