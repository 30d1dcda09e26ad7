"""What must hold for any feed, whoever wrote it and whatever happened to it on its way."""

from __future__ import annotations

from datetime import datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from poca.errors import FeedError
from poca.feed import pack, parse_feed, unpack
from poca.feeddates import instant
from poca.model import Entry, FeedDoc, PassedOver

URL = "https://example.org/shows/feed.xml"
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

NAMESPACES = {
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "atom": "http://www.w3.org/2005/Atom",
    "googleplay": "http://www.google.com/schemas/play-podcasts/1.0",
    "podcast": "https://podcastindex.org/namespace/1.0",
}


# ------------------------------------------------------------------------------------------------------ feeds as text

def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    alphabet = st.sampled_from([*"abcXYZ 019&<>\"'é/Ünäß…“”日本\n\t–#;:%?=[]", "&amp;", "<b>", "</b>", "&#8217;", "&lt;"])
    return st.lists(alphabet, max_size=max_size).map("".join)


@st.composite
def written(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """The text of an element, escaped in one of the ways that XML has."""
    text = draw(values)
    way = draw(st.sampled_from(["escaped", "cdata", "mixed", "references"]))
    if way == "cdata" and "]]>" not in text:
        return f"<![CDATA[{text}]]>"
    if way == "mixed" and "]]>" not in text:
        half = len(text) // 2
        return f"{escape(text[:half])}<!-- a comment --><![CDATA[{text[half:]}]]>"
    if way == "references":
        return "".join(character if character.isalnum() else f"&#{ord(character)};" for character in text)
    return escape(text)


guids = st.sampled_from(["", "tag1", "https://example.org/?p=1&q=2", " spaced ", "tag:example.org,2024:1", "Ã©", "ü-1", "http:////x"]) | texts()
dates = st.sampled_from([
    "Mon, 01 Jan 2024 10:00:00 GMT", "Tue, 2 Jan 24 10:00 +0200", "2024-01-03T10:00:00Z", "2024-01-04T10:00:00.5+01:00", "yesterday", "",
    "Wed, 31 Feb 2024 10:00:00 GMT", "Mon, 01 Jan 2024 10:00:00 CEST", "1704103200", "Mo, 01 Mär 2024 10:00:00 +0100", "2024-01-05",
])
addresses = st.sampled_from([
    "https://example.org/a.mp3", "http://example.org/b.mp4?x=1&y=2", "c.ogg", "/d.mp3", "//cdn.example.org/e.mp3", " https://example.org/f.mp3\n",
    "ftp://example.org/g.mp3", "", "http://[bad/h.mp3", "https://example.org/ü ö.mp3", "https://example.org/i.jpg", "javascript:alert(1)",
])
types = st.sampled_from(["audio/mpeg", "Audio/MPEG; charset=x", "video/mp4", "image/jpeg", "", "application/octet-stream", "application/pdf"])
lengths = st.sampled_from(["123", "0", "", "901.25", "abc", "-5", "99999999999999999999"])
numbers = st.sampled_from(["1", "007", "", "x", "-1", "2.0", " 3 "])
durations = st.sampled_from(["3600", "61:02", "1:01:02", "90.5", "an hour", "", "0", "1:2:3:4"])
mediums = st.sampled_from(["audio", "video", "image", "", "AUDIO"])
bases = st.sampled_from(["", ' xml:base="https://base.example.org/x/"', ' xml:base="sub/"'])


def attributes(**values: str | None) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in values.items() if value is not None)


@st.composite
def markup(draw: st.DrawFn) -> str:
    """Elements that mean nothing to poca, with what would mean something elsewhere."""
    return draw(st.sampled_from([
        "<itunes:owner><itunes:name>Owner</itunes:name><itunes:email>o@example.org</itunes:email></itunes:owner>",
        '<itunes:title>another title</itunes:title>', "<googleplay:author>Play</googleplay:author>", '<googleplay:image href="https://g.example.org/"/>',
        "<content:encoded><![CDATA[<title>no</title><enclosure url='no'/>]]></content:encoded>",
        f"<content:encoded><![CDATA[{'<title>no</title> ]] > ]' * 20}]]]></content:encoded>", f"<!-- <description><![CDATA[{'no' * 200}-->",
        "<description>&lt;guid&gt;no&lt;/guid&gt;</description>",
        '<podcast:transcript url="https://example.org/t.vtt" type="text/vtt"/>', "<podcast:season>9</podcast:season>",
        '<source url="https://other.example.org/">Another feed</source>', "<comments>https://example.org/c</comments>", "<category>x</category>",
        '<media:thumbnail url="https://example.org/t.jpg"/>', "<media:title>media</media:title>", "<link>https://example.org/page</link>",
        '<itunes:explicit>no</itunes:explicit>', '<atom:link rel="self" href="https://example.org/self"/>', "<!-- <title>no</title> -->", "<?pi x?>",
        '<itunes:category text="A"><itunes:category text="B"/></itunes:category>',
        '<contributor><name>C</name></contributor>',
    ]))


@st.composite
def item(draw: st.DrawFn, name: str) -> str:
    def one(tag: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return written(values).map(lambda text: f"<{tag}>{text}</{tag}>")

    enclosure = st.builds(attributes, url=st.none() | addresses, type=st.none() | types, length=st.none() | lengths).map(lambda a: f"<enclosure{a}/>")
    content = st.builds(attributes, url=addresses, type=st.none() | types, fileSize=st.none() | lengths, medium=st.none() | mediums).map(
        lambda a: f"<media:content{a}/>")
    link = st.builds(lambda base, told: f'<{"link" if name == "entry" else "atom:link"} rel="enclosure"{told}{base}/>', bases,
                     st.builds(attributes, href=addresses, type=st.none() | types, length=st.none() | lengths))
    children = draw(st.lists(st.one_of(
        one("title", texts()), one("guid" if name == "item" else "id", guids), one("pubDate" if name == "item" else "published", dates),
        one("updated", dates), one("dc:date", dates), one("itunes:duration", durations),
        one("itunes:season", numbers), one("itunes:episode", numbers),
        one("itunes:episodeType", st.sampled_from(["full", "Bonus", "trailer", "other"])), one("itunes:author", texts()), one("dc:creator", texts()),
        st.builds(lambda author: f"<author><name>{author}</name><email>a@example.org</email></author>", written(texts())),
        st.builds(lambda body: f'<author>a@example.org ({body})</author>', st.sampled_from(["Jo", "Jo Ö"])),
        st.sampled_from(['<itunes:duration x="1">77</itunes:duration>', '<title type="html">T &amp;lt;b&gt;x</title>', "<GUID>upper</GUID>"]),
        enclosure, content, link, content.map(lambda inner: f"<media:group>{inner}</media:group>"), markup(),
    ), max_size=9))
    return f"<{name}{draw(bases)}>{''.join(children)}</{name}>"


@st.composite
def feeds(draw: st.DrawFn) -> bytes:
    """A well-formed feed, RSS or Atom."""
    atom = draw(st.booleans())
    name = "entry" if atom else "item"
    head = draw(st.permutations([
        f"<title>{draw(written(texts()))}</title>", draw(markup()),
        draw(st.sampled_from(["", "<textInput><title>t</title><name>n</name></textInput>"])),
        draw(written(texts()).map(lambda text: f"<itunes:author>{text}</itunes:author>")),
        draw(st.sampled_from(["", '<itunes:image href="https://example.org/i.jpg"/>', '<itunes:image href="i.jpg"></itunes:image>'])),
        draw(st.sampled_from(["", "<image><url>https://example.org/j.jpg</url><title>I</title></image>", "<logo>l.png</logo>"])),
        draw(st.sampled_from(["", "<itunes:new-feed-url>https://example.org/new</itunes:new-feed-url>"])),
    ]))
    items = draw(st.lists(item(name), max_size=4))
    renamed = draw(st.booleans())
    prefixes = {known: f"n{number}" if renamed else known for number, known in enumerate(NAMESPACES)}
    declared = "".join(f' xmlns:{prefixes[known]}="{uri}"' for known, uri in NAMESPACES.items())
    inner = "\n".join([*head, *items])
    for known, prefix in prefixes.items():
        inner = inner.replace(f"<{known}:", f"<{prefix}:").replace(f"</{known}:", f"</{prefix}:")
    if atom:
        document = f'<feed xmlns="http://www.w3.org/2005/Atom"{declared}{draw(bases)}>{inner}</feed>'
    else:
        document = f'<rss version="2.0"{declared}{draw(bases)}><channel>{inner}</channel></rss>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}\n'.encode()


def read_by_feedparser(feed: bytes) -> FeedDoc:
    """A document type makes a feed none for the quick reader."""
    declaration, _, rest = feed.partition(b"\n")
    return parse_feed(declaration + b"\n<!DOCTYPE rss>\n" + rest, None, URL)


# ------------------------------------------------------------------------------------------------------- the properties

@SLOW
@given(feeds())
def test_a_feed_reads_the_same_whichever_reader_takes_it(feed: bytes) -> None:
    assert parse_feed(feed, None, URL) == read_by_feedparser(feed)


@SLOW
@given(feeds(), st.floats(0, 1))
def test_a_feed_that_was_cut_off_is_never_taken_for_a_whole_one(feed: bytes, share: float) -> None:
    end = feed.rindex(b">")
    try:
        doc = parse_feed(feed[:int(end * share)], None, URL)
    except FeedError:
        return
    assert doc.cut
    whole = parse_feed(feed, None, URL)
    assert doc.entries == whole.entries[:len(doc.entries)]


def _mutate(draw: st.DrawFn, feed: bytes) -> bytes:
    at = draw(st.integers(0, max(len(feed) - 1, 0)))
    to = min(len(feed), at + draw(st.integers(0, 40)))
    tags = [position for position in range(len(feed)) if feed[position:position + 1] == b"<"] or [0]
    tag = draw(st.sampled_from(tags))
    tag_end = feed.find(b">", tag) + 1 or len(feed)
    match draw(st.sampled_from(["bit", "drop", "double", "insert", "drop tag", "double tag", "swap tags", "nest", "encoding", "cut"])):
        case "bit":
            return feed[:at] + bytes([feed[at] ^ (1 << draw(st.integers(0, 7)))]) + feed[at + 1:] if feed else feed
        case "drop":
            return feed[:at] + feed[to:]
        case "double":
            return feed[:to] + feed[at:]
        case "insert":
            junk = draw(st.sampled_from([
                b"\0", b"\xff", b"&", b"&nbsp;", b"&#0;", b"&#xD800;", b"<", b">", b"]]>", b"<![CDATA[", b"<!--", b"\xe2\x80\xa8", b"\x1e",
                b"&#99999999999;",
                b"<!DOCTYPE x>", b'<!ENTITY a "b">', b"<?xml?>", b"<b>", b"</rss>", b"<item>", b'="', b"\xed\xa0\x80", b"\xef\xbb\xbf",
                b"xmlns:a=''"]))
            return feed[:at] + junk + feed[at:]
        case "drop tag":
            return feed[:tag] + feed[tag_end:]
        case "double tag":
            return feed[:tag_end] + feed[tag:]
        case "swap tags":
            other = draw(st.sampled_from(tags))
            first, second = sorted((tag, other))
            return feed[:first] + feed[second:second + 20] + feed[first:second] + feed[second + 20:]
        case "nest":
            return feed[:tag] + feed[tag:tag_end] * 50 + feed[tag_end:]
        case "encoding":
            name = draw(st.sampled_from([b"utf-16", b"UTF-7", b"latin-1", b"idna", b"zip", b"koi8-r", b"shift_jis", b"cp037", b"x", b"utf-32"]))
            return feed.replace(b"UTF-8", name)
        case _:
            return feed[:at]


@st.composite
def damaged_feeds(draw: st.DrawFn) -> bytes:
    feed = draw(feeds())
    for _ in range(draw(st.integers(1, 5))):
        feed = _mutate(draw, feed)
    return draw(st.sampled_from([feed, feed, feed, feed.decode("utf-8", "replace").encode("utf-16")]))


@SLOW
@given(damaged_feeds(), st.sampled_from([
    None, "text/xml", "text/xml; charset=iso-8859-1", "text/html; charset=UTF-7", "application/rss+xml; charset="]))
def test_a_damaged_feed_is_read_or_refused_with_a_sentence(feed: bytes, content_type: str | None) -> None:
    try:
        doc = parse_feed(feed, content_type, URL)
    except FeedError as error:
        assert str(error)
        assert "Error" not in str(error)
        return
    for entry in doc.entries:
        assert entry.url.startswith(("http://", "https://")) or entry.url[:8].lower().startswith("http")
        assert entry.title.isprintable()
        assert entry.published is None or -62_200_000_000 < entry.published < 253_500_000_000
    assert unpack(pack(doc)) == doc


@SLOW
@given(st.binary(max_size=200))
@example(b"<")
@example(b"<?xml")
@example(b"\xff\xfe<")
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        parse_feed(body, None, URL)
    except FeedError as error:
        assert str(error)


@SLOW
@given(feeds(), st.sampled_from([b"\x00", b"\x0b", b"\x1e", b"\x80", b"\xbf", b"\xc3", b"\xe9", b"\xff"]))
def test_a_stray_byte_costs_no_entry_and_no_other_title(feed: bytes, stray: bytes) -> None:
    assume(b"<title>" in feed)
    at = feed.index(b"<title>") + len(b"<title>")
    assume(not feed[at:].startswith(b"<!") and feed[at] < 0x80)
    assume(feed.rfind(b"<![CDATA[", 0, at) <= feed.rfind(b"]]>", 0, at))        # what notes hold is not read, so nothing in it is repaired
    whole, doc = parse_feed(feed, None, URL), parse_feed(feed[:at] + stray + feed[at:], None, URL)
    assert not doc.cut
    assert doc.repairs
    assert [entry.guid for entry in doc.entries] == [entry.guid for entry in whole.entries]
    assert [entry.title for entry in doc.entries][1:] == [entry.title for entry in whole.entries][1:]


optional_int = st.none() | st.integers(-10**11, 10**12)


@given(st.builds(
    FeedDoc, title=st.text(), author=st.text(), image=st.text(), new_feed_url=st.text(),
    repairs=st.lists(st.text(), max_size=3).map(tuple), cut=st.text(),
    entries=st.lists(st.builds(Entry, guid=st.text(), url=st.text(), title=st.text(), published=optional_int, length=optional_int, mime=st.text(),
                               duration=optional_int, season=optional_int, episode=optional_int, author=st.text()), max_size=3).map(tuple),
    passed_over=st.lists(st.builds(PassedOver, st.text(), st.text()), max_size=3).map(tuple)))
def test_a_packed_feed_comes_back_as_it_was(doc: FeedDoc) -> None:
    assert unpack(pack(doc)) == doc


@given(st.binary(max_size=100))
def test_what_was_not_packed_is_refused(packed: bytes) -> None:
    try:
        unpack(packed)
    except FeedError:
        return
    raise AssertionError("junk was taken for a feed")


@given(st.text(max_size=40) | dates)
def test_any_text_is_a_date_or_none(text: str) -> None:
    assert instant(text) is None or isinstance(instant(text), int)


@given(st.datetimes(timezones=st.timezones()).filter(lambda moment: moment.utcoffset() is not None and moment.utcoffset().seconds % 60 == 0))
def test_a_date_in_any_usual_form_is_that_instant(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, year=max(moment.year, 1000))
    offset = moment.utcoffset()
    assume(offset is not None and abs(offset) < timedelta(hours=14))
    expected = int(moment.timestamp())
    english = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][moment.month - 1]
    zone = moment.strftime("%z")[:5]
    assert instant(moment.isoformat()[:19] + zone) == expected
    assert instant(f"Mon, {moment.day:02} {english} {moment.year:04} {moment:%H:%M:%S} {zone}") == expected
    assert instant(f"{moment.day} {english} {moment.year:04} {moment:%H:%M:%S} {zone}") == expected
