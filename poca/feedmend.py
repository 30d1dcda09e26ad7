"""What came instead of a feed, what could hurt, and the small repairs that make a feed well-formed again. Pure.

A repair costs no more than the character at fault. Each is told in a few words, for ``-v``.
"""

from __future__ import annotations

import codecs
import html
import re
from typing import NamedTuple
from xml.parsers import expat

from poca import media
from poca.errors import FeedError
from poca.feedfast import DEEPEST, Fault

ROOTS = frozenset({"rss", "feed", "rdf:rdf", "channel"})     # channel: CDF
_MOST_ATTRIBUTES = 1_000    # of one element
_MOST_TAGS = 400_000        # that feedparser is given: it takes some 10 µs for each
_MOST_REFERENCES = 3_000_000
_HEAD = 4_096               # bytes in which a feed has begun, or it is none

ENTRY = re.compile(rb"<(?:atom:|rss:)?(?:item|entry)[\s>/]", re.IGNORECASE)
_ENTRY_END = re.compile(rb"</(?:atom:|rss:)?(?:item|entry)\s*>", re.IGNORECASE)
_ROOT_END = re.compile(rb"</(?:[\w.-]+:)?(?:rss|feed|rdf|channel)\s*>", re.IGNORECASE)
_BEGIN = re.compile(rb"<\?xml\s|<(?:[\w.-]+:)?(?:rss|feed|rdf)[\s>]", re.IGNORECASE)
_QUOTED = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)


# ------------------------------------------------------------------------------------------------- what is no feed

_BINARY = (
    (b"\x89PNG", "a picture"), (b"\xff\xd8\xff", "a picture"), (b"GIF8", "a picture"), (b"RIFF", "audio or a picture"), (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "compressed data"), (b"PK\x03\x04", "a zip archive"), (b"BZh", "compressed data"),
)
_PAGE = re.compile(rb"\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_NAMED = {"html": "a web page", "xhtml:html": "a web page", "opml": "an OPML file, a list of feeds", "urlset": "a sitemap"}


def refuse_other_things(body: bytes) -> None:
    """Raises FeedError for an empty answer, and for what is plainly something else."""
    if not body or body.isspace():
        raise FeedError("the answer was empty instead of a feed")
    head = body[:_HEAD].removeprefix(codecs.BOM_UTF8)
    if any(head.startswith(magic) for magic, _ in _BINARY):
        raise FeedError(no_feed(body, ""))
    if _PAGE.match(head):
        raise FeedError("a web page came instead of a feed")
    if b"<" not in head and b"<" not in body:
        raise FeedError(no_feed(body, ""))


def no_feed(body: bytes, root: str) -> str:
    """The sentence that says what came; ``root``: the name of its root element, "" where it has none."""
    return f"{_thing(body, root)} came instead of a feed"


def _thing(body: bytes, root: str) -> str:
    head = body[:65_536]
    for magic, name in _BINARY:
        if head.startswith(magic):
            return name
    if root:
        return _NAMED.get(root, f"XML of another kind (<{root[:40]}>)")
    if media.sniff(head):
        return "audio or video"
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if start[:1] in (b"{", b"["):
        return "JSON"
    if re.search(rb"<(?:html|body|head|div|script|p|br|title)\b", head, re.IGNORECASE):
        return "a web page"
    return "plain text" if media.looks_like_text(head) else "something that cannot be read"


# -------------------------------------------------------------------------------------------------- what could hurt

def refuse_hostile(data: bytes, fault: Fault | None) -> None:
    """Raises FeedError for what would keep feedparser busy for long, or fill the memory: declared entities (a billion
    laughs), elements nested without end, thousands of attributes, millions of tags."""
    guard = _Guard()
    parser = expat.ParserCreate("utf-8")
    parser.ordered_attributes = True
    parser.StartElementHandler, parser.EndElementHandler = guard.start, guard.end
    parser.EntityDeclHandler = parser.AttlistDeclHandler = guard.declared
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        if not guard.reached_root and re.search(rb"<!(?:entity|attlist)", data, re.IGNORECASE):
            guard.declared()
    if fault and data.count(b"<") + data.count(b"&") > _MOST_TAGS:
        raise FeedError("the feed is no proper XML, and too large to be read all the same")
    if fault and max(map(len, data.split(b"<"))) > 100_000 and _overloaded(data):
        raise FeedError("the feed has an element with thousands of attributes, and was not read")


_DECLARATION = re.compile(rb"\s*+<\?xml\s[^<>]*+>")
_FLOOD = re.compile(rb"(?<!\s)\s{200,}+")


def tamed(data: bytes) -> bytes:
    """``data`` (UTF-8) without what makes feedparser's own patterns take quadratic or cubic time: it looks for an encoding
    in a first line that begins with ``<?``, and for a document type behind blanks."""
    declaration = _DECLARATION.match(data)
    return b"<!---->\n" + _FLOOD.sub(b"\n", data[declaration.end():] if declaration else data)


class _Guard:
    """Expat's handlers that raise FeedError."""

    def __init__(self) -> None:
        self.depth = self.tags = 0
        self.reached_root = False

    def start(self, name: str, attributes: list[str]) -> None:
        self.reached_root = True
        self.depth += 1
        self.tags += 1
        if self.depth > DEEPEST:
            raise FeedError(f"the feed nests its elements more than {DEEPEST} deep, and was not read")
        if len(attributes) > 2 * _MOST_ATTRIBUTES:
            raise FeedError("the feed has an element with thousands of attributes, and was not read")
        if self.tags > _MOST_TAGS:
            raise FeedError(f"the feed has more than {_MOST_TAGS} elements, and was not read")

    def end(self, name: str) -> None:
        self.depth -= 1

    def declared(self, *_: object) -> None:
        raise FeedError("the feed declares its own entities, as no honest feed does, and was not read")


_ATTRIBUTES = re.compile(rb"""<[A-Za-z][^\s<>]*(?:\s+[^\s<>="']+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+)){1000}""")


def _overloaded(data: bytes) -> bool:
    return bool(_ATTRIBUTES.search(data))


# --------------------------------------------------------------------------------------------------------- encoding

_DECLARED = re.compile(rb"""\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"), (b"<\0\0\0", "utf-32-le"), (b"\0\0\0<", "utf-32-be"), (b"<\0r\0", "utf-16-le"),
    (b"\0<\0r", "utf-16-be"), (b"<\0f\0", "utf-16-le"), (b"\0<\0f", "utf-16-be"),
)
# Only encodings of text. Python has others under such names (zip, idna, unicode_escape), and UTF-7 serves nothing but attacks.
_ENCODINGS = re.compile(
    r"(?:iso8859-\d+|cp(?:125\d|437|85\d|866|874|932|949|950)|koi8-[rut]|mac-\w+|gb18030|gbk|big5|big5hkscs|euc_(?:jp|kr)|shift_jis|iso2022_jp|"
    r"johab|tis-620|utf-16|utf-16-[lb]e|utf-32|utf-32-[lb]e)")
_WIDER = {"iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932"}   # as browsers take them
_STATEFUL = frozenset({"iso2022_jp"})       # ASCII bytes that are no ASCII


def as_utf8(body: bytes, content_type: str | None) -> tuple[bytes, tuple[str, ...]]:
    """The document in UTF-8, and the repairs. Bytes that claim to be UTF-8 are returned as they are: see :func:`mend`.

    Order of belief: a byte order mark; UTF-8 where the bytes are; the header; the declaration (RFC 7303, 3). That UTF-8
    comes before the labels is experience: text of another encoding is hardly ever valid UTF-8, and labels are often wrong.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            text = body[:len(body) - len(body) % (4 if "32" in name else 2)].decode(name, "replace")
            return text.encode("utf-8", "replace"), (("characters that are no " + name.upper()[:6] + " were replaced",) if "\ufffd" in text else ())
    label = _CHARSET.search(content_type or "")
    declared = _DECLARED.match(body[:_HEAD])
    names = [_codec(name) for name in (label and label[1], declared and declared[1].decode("ascii")) if name]
    others = [name for name in names if name and name != "utf-8"]
    if not others or ("utf-8" in names and _is_utf8(body)):
        return body, ()
    if not _STATEFUL.intersection(others) and _is_utf8(body):
        return body, (() if body.isascii() else (f"the feed is labelled {others[0]}, and is UTF-8",))
    for name in others:
        try:
            return body.decode(name).encode("utf-8", "replace"), ()
        except UnicodeDecodeError:
            continue
    if "utf-8" in names:
        return body, ()
    text = body.decode(others[0], "replace")
    return text.encode("utf-8", "replace"), (f"characters that are no {others[0]} were replaced",)


def _codec(label: str) -> str:
    """Python's name of an encoding of text, "utf-8" also for ASCII, which it holds, "" for none that poca would use."""
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return ""
    if name in ("utf-8", "ascii", "utf-8-sig"):
        return "utf-8"
    if name.startswith(("utf-16", "utf-32")):
        return "utf-8"          # without a byte order mark or zero bytes, so the label is wrong
    name = _WIDER.get(name, name)
    return name if _ENCODINGS.fullmatch(name) else ""


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


# ---------------------------------------------------------------------------------------------------------- repairs

_REFERENCE = re.compile(
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&(?:#([0-9]{1,8});|#[xX]([0-9a-fA-F]{1,8});|([A-Za-z][A-Za-z0-9]{0,31});)?", re.DOTALL)
_CONTROLS = bytes([*range(9), 11, 12, *range(14, 32)])
_NONCHARACTERS = re.compile(b"\xef\xbf[\xbe\xbf]")     # U+FFFE, U+FFFF
_XML_ENTITIES = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})


def mend(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """``data`` with its small faults repaired, and the repairs; without any it is the same object."""
    repairs = []
    mended = data
    begin = _BEGIN.search(data, 0, _HEAD)
    if begin and begin.start() and data[:begin.start()] != codecs.BOM_UTF8:
        junk = data[:begin.start()].removeprefix(codecs.BOM_UTF8)
        if not re.match(rb"\s*<[?!]", junk):         # a declaration, a comment, a document type: part of the document
            mended = data[begin.start():]
            repairs.append("what stood before the feed was dropped" if junk.strip() else "blanks before the XML declaration were dropped")
    if not _is_utf8(mended):
        mended, repair = _decoded(mended)
        repairs.append(repair)
    if mended.translate(None, _CONTROLS) != mended or _NONCHARACTERS.search(mended):
        mended = _NONCHARACTERS.sub(b"", mended.translate(None, _CONTROLS))
        repairs.append("control characters were dropped")
    # Each costs a microsecond; with more of them than any feed has it stays as it is, and is refused for its faults.
    referred = _REFERENCE.sub(_reference, mended) if mended.count(b"&") <= _MOST_REFERENCES else mended
    if referred != mended:
        mended = referred
        repairs.append("bare or unknown & were read as they stand")
    return mended, tuple(repairs)


def _decoded(data: bytes) -> tuple[bytes, str]:
    """UTF-8 with stray bytes, or one of the encodings with one byte a character, of which one is by far the most common."""
    text = data.decode("utf-8", "replace")
    stray = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    if stray > len(data) - len(text):           # more than there are bytes in longer characters that are right
        return data.decode("cp1252", "replace").encode("utf-8"), "the feed is no UTF-8, and was read as Windows-1252"
    return text.encode("utf-8"), "bytes that are no UTF-8 were replaced"


def _reference(found: re.Match[bytes]) -> bytes:
    """A reference that XML knows stays; one of HTML becomes its character, a bare & what it is, an impossible one nothing."""
    whole = found[0]
    if not whole.startswith(b"&"):
        return whole
    decimal, hexadecimal, name = found.groups()
    if name in _XML_ENTITIES:
        return whole
    if name:
        character = html.unescape(whole.decode())
        return b"&amp;" + whole[1:] if character.startswith("&") and len(character) > 1 else character.encode()
    if decimal or hexadecimal:
        point = int(decimal) if decimal else int(hexadecimal, 16)
        fit = point in (9, 10, 13) or 0x20 <= point < 0xD800 or 0xE000 <= point < 0xFFFE or 0x10000 <= point < 0x110000
        return whole if fit else b""
    return b"&amp;"


# ------------------------------------------------------------------------------------------------------ what is whole

class Shape(NamedTuple):
    """How much of a feed is there, by its tags: ``entries`` that it begins or ends; ``last_entry_end`` in bytes."""

    closed: bool
    entries: int
    last_entry_end: int


def shape(data: bytes) -> Shape:
    """Counts what a document that is no proper XML holds, CDATA and comments aside."""
    bare = _QUOTED.sub(b"", data)
    begun = [found.start() for found in ENTRY.finditer(bare)]
    ended = [found.end() for found in _ENTRY_END.finditer(data)]
    closed = [found.start() for found in _ROOT_END.finditer(bare)]
    return Shape(
        closed=bool(closed) and (not begun or closed[-1] > begun[-1]),
        entries=max(len(begun), len(_ENTRY_END.findall(bare))),
        last_entry_end=ended[-1] if ended else len(data),
    )
