"""What parse_feed makes of feeds, and of what comes instead of them."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import zlib

import pytest

from poca.errors import FeedError
from poca.feed import pack, parse_feed, unpack
from poca.feeddates import instant
from poca.model import Entry, FeedDoc

URL = "https://example.org/shows/feed.xml"
ITUNES = 'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:media="http://search.yahoo.com/mrss/" ' \
    'xmlns:dc="http://purl.org/dc/elements/1.1/"'
ENCLOSURE = '<enclosure url="https://example.org/a.mp3" length="1000" type="audio/mpeg"/>'
DOCTYPE = "<!DOCTYPE rss>\n"      # makes a feed one for feedparser


def rss(items: str, head: str = "<title>Show</title>", declaration: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> bytes:
    return f'{declaration}<rss version="2.0" {ITUNES}><channel>{head}{items}</channel></rss>'.encode()


def atom(entries: str, base: str = "") -> bytes:
    return f'<feed xmlns="http://www.w3.org/2005/Atom"{base}><title>Show</title>{entries}</feed>'.encode()


def read(body: bytes, content_type: str | None = None) -> FeedDoc:
    return parse_feed(body, content_type, URL)


def only(items: str) -> Entry:
    """The one entry of an RSS feed with these elements in its item, read alike by both readers."""
    quick = read(rss(f"<item>{items}</item>"))
    assert quick == read(rss(f"<item>{items}</item>", declaration=DOCTYPE))
    (entry,) = quick.entries
    return entry


# ------------------------------------------------------------------------------------------------------- whole feeds

def test_an_rss_feed_gives_all_that_poca_uses() -> None:
    doc = read(rss(
        "<item><title>One &amp;amp; two</title><guid isPermaLink='false'>g1</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>"
        f"{ENCLOSURE}<itunes:duration>1:01:02</itunes:duration><itunes:season>2</itunes:season><itunes:episode>7</itunes:episode>"
        "<itunes:episodeType>Bonus</itunes:episodeType><itunes:author>Jo</itunes:author></item>",
        "<title>The Show</title><itunes:author>The Network</itunes:author><itunes:image href='https://example.org/i.jpg'/>"
        "<itunes:new-feed-url>https://example.org/new</itunes:new-feed-url>"))
    assert doc == FeedDoc(
        "The Show", "The Network", "https://example.org/i.jpg", "https://example.org/new",
        (Entry("g1", "https://example.org/a.mp3", "One & two", 1704103200, 1000, "audio/mpeg", 3662, 2, 7, "bonus", "Jo"),))


def test_an_atom_feed_gives_its_enclosure_links() -> None:
    doc = read(atom(
        '<entry><title type="html">&lt;b&gt;One&lt;/b&gt;</title><id>tag:x,1</id><published>2024-01-01T10:00:00Z</published>'
        '<updated>2025-01-01T10:00:00Z</updated><link rel="alternate" href="https://example.org/page"/><author><name>Jo</name></author>'
        '<link rel="enclosure" type="audio/ogg" length="5" href="one.ogg"/></entry>'))
    assert doc.entries == (Entry("tag:x,1", "https://example.org/shows/one.ogg", "One", 1704103200, 5, "audio/ogg", author="Jo"),)


def test_a_good_feed_without_items_is_no_error() -> None:
    doc = read(rss(""))
    assert (doc.title, doc.entries, doc.cut, doc.repairs) == ("Show", (), "", ())


def test_entries_keep_the_feeds_order_and_all_repeat_what_they_repeat() -> None:
    items = "".join(f"<item><guid>{guid}</guid>{ENCLOSURE}</item>" for guid in "cab" "a")
    assert [entry.guid for entry in read(rss(items)).entries] == ["c", "a", "b", "a"]


def test_prefixes_are_the_feeds_own_choice() -> None:
    body = rss(f"<item><itunes:duration>60</itunes:duration><title>T</title>{ENCLOSURE}</item>")
    body = body.replace(b"itunes:", b"pod:").replace(b":itunes=", b":pod=")
    assert [(entry.title, entry.duration) for entry in read(body).entries] == [("T", 60)]


def test_elements_in_upper_case_are_known() -> None:
    assert only(f"<GUID>g</GUID><TITLE>T</TITLE>{ENCLOSURE}").guid == "g"


def test_an_entry_without_enclosure_is_passed_over_with_its_title() -> None:
    doc = read(rss(f"<item><title>News</title></item><item>{ENCLOSURE}</item>"))
    assert [(entry.title, entry.reason) for entry in doc.passed_over] == [("News", "it has no enclosure")]
    assert len(doc.entries) == 1


# ------------------------------------------------------------------------------------------------------- enclosures

def test_the_first_audio_enclosure_is_taken_before_video_and_picture() -> None:
    entry = only('<enclosure url="https://example.org/p.jpg" type="image/jpeg"/><enclosure url="https://example.org/v.mp4" type="video/mp4"/>'
                 '<enclosure url="https://example.org/1.mp3" type="audio/mpeg"/><enclosure url="https://example.org/2.mp3" type="audio/mpeg"/>')
    assert entry.url == "https://example.org/1.mp3"


def test_a_media_content_serves_where_there_is_no_enclosure() -> None:
    entry = only('<media:group><media:content url="https://example.org/m.mp3" fileSize="77" type="audio/mpeg"/></media:group>')
    assert (entry.url, entry.length) == ("https://example.org/m.mp3", 77)


def test_a_picture_in_a_media_content_is_no_episode() -> None:
    doc = read(rss('<item><media:content url="https://example.org/avatar?s=96" medium="image"/></item>'))
    assert doc.entries == ()
    assert doc.passed_over[0].reason == "its enclosure is neither audio nor video"


@pytest.mark.parametrize(("written", "url"), [
    (" https://example.org/a.mp3\n", "https://example.org/a.mp3"), ("b.mp3", "https://example.org/shows/b.mp3"),
    ("/c.mp3", "https://example.org/c.mp3"), ("//cdn.example.org/d.mp3", "https://cdn.example.org/d.mp3"),
    ("HTTPS://example.org/e.mp3", "HTTPS://example.org/e.mp3"), ("https://example.org/f.mp3?a=1&amp;b=2", "https://example.org/f.mp3?a=1&b=2"),
    ("https://example.org/g&#10;.mp3", "https://example.org/g.mp3"),
])
def test_addresses_are_stripped_and_made_absolute(written: str, url: str) -> None:
    assert only(f'<enclosure url="{written}" type="audio/mpeg"/>').url == url


@pytest.mark.parametrize("written", ["", "ftp://example.org/a.mp3", "file:///etc/passwd", "http://[broken/a.mp3", "javascript:x", "https:///a.mp3"])
def test_an_address_that_cannot_be_fetched_costs_its_entry_only(written: str) -> None:
    doc = read(rss(f'<item><title>Bad</title><enclosure url="{written}" type="audio/mpeg"/></item><item><title>Good</title>{ENCLOSURE}</item>'))
    assert [entry.title for entry in doc.entries] == ["Good"]
    assert [entry.title for entry in doc.passed_over] == ["Bad"]


def test_xml_base_moves_the_links_of_atom() -> None:
    entry = '<entry><id>1</id><link rel="enclosure" href="a.mp3"/></entry>'
    assert read(atom(entry, ' xml:base="https://base.example.org/x/"')).entries[0].url == "https://base.example.org/x/a.mp3"


# ------------------------------------------------------------------------------------------------------------ values

@pytest.mark.parametrize("guid", ["tag1", "https://example.org/?a=1&amp;b=2", "", "http:////odd", "urn:uuid:1"])
@pytest.mark.parametrize("declaration", ["", DOCTYPE])
def test_a_guid_is_as_written_whatever_the_address_of_the_feed(guid: str, declaration: str) -> None:
    body = rss(f'<item xml:base="https://base.example.org/"><guid isPermaLink="true">{guid}</guid>'
               f"<link>https://example.org/p</link>{ENCLOSURE}</item>", declaration=declaration)
    for url in (URL, "http://other.example.org/d/"):
        assert parse_feed(body, None, url).entries[0].guid == guid.replace("&amp;", "&")


@pytest.mark.parametrize(("written", "seconds"), [
    ("3600", 3600), ("61:02", 3662), ("1:01:02", 3662), ("90.5", 90), ("0", None), ("an hour", None), ("", None), ("1:2:3:4", None), ("-5", None),
    ("９", None),
])
def test_durations(written: str, seconds: int | None) -> None:
    assert only(f"{ENCLOSURE}<itunes:duration>{written}</itunes:duration>").duration == seconds


@pytest.mark.parametrize(("written", "length"), [("1000", 1000), ("901.25", 901), ("0", None), ("", None), ("abc", None), ("-1", None),
                                                 ("9" * 40, None)])
def test_lengths(written: str, length: int | None) -> None:
    assert only(f'<enclosure url="https://example.org/a.mp3" length="{written}"/>').length == length


@pytest.mark.parametrize(("written", "kind"), [("full", "full"), ("Trailer", "trailer"), ("BONUS", "bonus"), ("special", "full"), ("", "full")])
def test_episode_types(written: str, kind: str) -> None:
    assert only(f"{ENCLOSURE}<itunes:episodeType>{written}</itunes:episodeType>").episode_type == kind


def test_the_author_is_the_items_own_by_itunes_then_by_name_then_the_channels() -> None:
    assert only(f"{ENCLOSURE}<author>a@example.org (Al)</author><itunes:author>It</itunes:author><dc:creator>Cy</dc:creator>").author == "It"
    assert only(f"{ENCLOSURE}<author>a@example.org (Al)</author>").author == "Al"
    assert only(f"{ENCLOSURE}<dc:creator>Cy</dc:creator>").author == "Cy"
    assert read(rss(f"<item>{ENCLOSURE}</item>", "<itunes:author>Net</itunes:author>")).entries[0].author == "Net"


def test_the_picture_of_itunes_comes_before_the_other_whatever_their_order() -> None:
    pictures = ["<image><url>https://example.org/small.gif</url></image>", '<itunes:image href="https://example.org/big.jpg"/>']
    for declaration in ("", DOCTYPE):
        for head in ("".join(pictures), "".join(reversed(pictures))):
            assert read(rss("", head, declaration)).image == "https://example.org/big.jpg"


@pytest.mark.parametrize(("written", "meant"), [("GrÃ¼Ã\x9fe", "Grüße"), ("It\x92s", "It’s"), ("Ã", "Ã"), ("Grüße", "Grüße")])
def test_letters_that_were_encoded_twice_are_put_right(written: str, meant: str) -> None:
    assert only(f"<title>{written}</title><guid>{written}</guid>{ENCLOSURE}").title == meant


def test_titles_of_other_things_are_no_titles() -> None:
    doc = read(rss(f"<item>{ENCLOSURE}<media:content url='x'><media:title>clip</media:title></media:content><title>T</title></item>",
                   "<image><title>Picture</title></image><title>Show</title><textInput><title>Search</title></textInput>"))
    assert (doc.title, doc.entries[0].title) == ("Show", "T")


@pytest.mark.parametrize(("written", "seconds"), [
    ("Mon, 01 Jan 2024 10:00:00 GMT", 1704103200), ("Mon, 01 Jan 2024 10:00:00 +0000", 1704103200), ("1 Jan 2024 10:00 UT", 1704103200),
    ("Mon, 1 January 24 05:00:00 EST", 1704103200), ("01 Jan 2024 02:00:00 -0800", 1704103200), ("Mon, 01 Jan 2024 12:00:00 CEST", 1704103200),
    ("Mon, 01 Jan 2024 11:00:00 CET", 1704103200), ("Mon,01 Jan 2024 10:00:00 Z", 1704103200), ("2024-01-01T10:00:00Z", 1704103200),
    ("2024-01-01T11:00:00+01:00", 1704103200), ("2024-01-01t10:00:00.123z", 1704103200), ("20240101T100000Z", 1704103200),
    ("2024-01-01 10:00 +0000", 1704103200), ("Mon, 01 Jan 2024 10:00:00 +0000 (UTC)", 1704103200), ("Mon, Jan 1 2024 10:00:00 GMT", 1704103200),
    ("2024-01-01", 1704067200), ("01 Jan 70 00:00:00 GMT", 0), ("01 Jan 1969 00:00:00 GMT", -31536000), ("Sat, 31 Dec 2016 23:59:60 GMT", 1483228800),
    ("01 Jan 0001 00:00:00 GMT", -62135596800),
])
def test_dates_in_their_usual_and_unusual_forms(written: str, seconds: int) -> None:
    assert instant(written) == seconds


@pytest.mark.parametrize("written", [
    "", "yesterday", "1704103200", "Mon, 01 Jan 2024 24:00:00 GMT", "Mon, 32 Jan 2024 10:00:00 GMT", "Mon, 31 Feb 2024 10:00:00 GMT",
    "2024-13-01T10:00:00Z", "2024-02-30", "Mo, 01 Mär 2024 10:00:00 GMT", "lun., 01 janv. 2024 10:00:00 GMT", "Mon, 01 Jan 2024 10:00:00",
    "2024-01-01T10:00:00",
    "Mon, 01 Jan 2024 10:00:00 BST", "Mon, 01 Jan 2024 10:00:00 IST", "Mon, 01 Jan 2024 10:00:00 A",
    "Mon, 01 Jan 2024 10:00:00 +9900", "Mon, 01 Jan 2024 10:61:00 GMT", "01 Jan 0000 00:00:00 GMT", "0000-01-01T00:00:00Z",
    "٠١ Jan 2024 10:00:00 GMT",
    "x" * 1_000_000,
])
def test_dates_that_nobody_can_be_sure_of_are_unknown(written: str) -> None:
    assert instant(written) is None


def test_the_date_of_an_entry_is_that_of_its_publication() -> None:
    assert only(f"{ENCLOSURE}<pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate><dc:date>2025-01-01T10:00:00Z</dc:date>").published == 1704103200
    assert only(f"{ENCLOSURE}<pubDate>soon</pubDate><dc:date>2024-01-01T10:00:00Z</dc:date>").published == 1704103200


# ------------------------------------------------------------------------------------------------------ small repairs

@pytest.mark.parametrize(("damage", "title"), [
    ("Salt & Pepper", "Salt & Pepper"), ("caf&eacute; &nbsp; &copy;", "café ©"), ("Odd\x1eness", "Oddness"), ("A\x00B", "AB"),
    ("R&B; blues", "R&B; blues"),
    ("zero&#0;&#x1f;&#xD800; ref", "zero ref"), ("a &amp; b & c", "a & b & c"), ("U+FFFF \uffff", "U+FFFF"),
])
def test_a_small_fault_costs_the_character_and_is_told(damage: str, title: str) -> None:
    body = rss(f"<item><title>{damage}</title><guid>a&amp;b</guid>{ENCLOSURE}</item><item><title>Zwölf</title>{ENCLOSURE}</item>")
    doc = read(body)
    assert [entry.title for entry in doc.entries] == [title, "Zwölf"]
    assert doc.entries[0].guid == "a&b"
    assert doc.repairs
    assert not doc.cut


def test_a_repair_leaves_character_data_alone() -> None:
    doc = read(rss(f"<item><title>A & B</title><guid><![CDATA[x?a=1&b=2&copy;]]></guid>{ENCLOSURE}</item>"))
    assert doc.entries[0].guid == "x?a=1&b=2&copy;"


def test_blanks_and_junk_before_the_declaration_are_dropped() -> None:
    whole = read(rss(f"<item>{ENCLOSURE}</item>"))
    for junk in (b"\n", b"\r\n  ", b"\xef\xbb\xbf\n", b"PHP Notice: x\n", b"\xef\xbb\xbf\xef\xbb\xbf"):
        doc = read(junk + rss(f"<item>{ENCLOSURE}</item>"))
        assert (doc.entries, doc.cut) == (whole.entries, "")
        assert doc.repairs


def test_what_follows_the_end_of_the_feed_is_passed_over() -> None:
    for junk in (b"<!-- cached -->", b"\0\0", b"<br/>Warning", b"junk & more", b"</x>"):
        doc = read(rss(f"<item>{ENCLOSURE}</item>") + junk)
        assert (len(doc.entries), doc.cut) == (1, "")


def test_entries_after_the_end_of_the_feed_are_a_damage() -> None:
    assert read(rss(f"<item>{ENCLOSURE}</item>") + b"<item><title>lost</title></item>").cut


def test_one_stray_byte_leaves_all_other_letters_right() -> None:
    for stray in (b"\xe9", b"\xff", b"\x80", b"\xc3"):
        body = rss(f"<item><title>Grö@ße</title>{ENCLOSURE}</item><item><title>Übergrößen 日本</title>{ENCLOSURE}</item>").replace(b"@", stray)
        doc = read(body)
        assert [entry.title for entry in doc.entries] == ["Grö\ufffdße", "Übergrößen 日本"]
        assert doc.repairs


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "iso-8859-1", "windows-1252", "iso-8859-15"])
def test_letters_are_right_in_the_encoding_that_is_declared(encoding: str) -> None:
    label = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{label}"?><rss version="2.0"><channel><item><title>Grüße</title>{ENCLOSURE}</item></channel></rss>'
    doc = read(text.encode(encoding))
    assert [entry.title for entry in doc.entries] == ["Grüße"]


@pytest.mark.parametrize(("label", "title"), [("windows-1251", "Привет"), ("koi8-r", "Привет"), ("gb2312", "中文"),
                                              ("shift_jis", "日本"), ("big5", "中文"), ("euc-kr", "한국"), ("iso-8859-7", "Αθήνα"),
                                              ("iso-2022-jp", "日本")])
def test_other_alphabets(label: str, title: str) -> None:
    text = f'<?xml version="1.0" encoding="{label}"?>\n<rss version="2.0"><channel><item><title>{title}</title>{ENCLOSURE}</item></channel></rss>'
    assert read(text.encode(label)).entries[0].title == title
    bare = text.partition("\n")[2]
    assert read(bare.encode(label), f"text/xml; charset={label}").entries[0].title == title


@pytest.mark.parametrize("content_type", [
    "text/xml", "text/xml; charset=us-ascii", "application/rss+xml; charset=ISO-8859-1", "text/html; charset=nonsense"])
def test_utf8_under_a_wrong_label_keeps_its_letters(content_type: str) -> None:
    for declaration in ("", '<?xml version="1.0" encoding="UTF-8"?>', '<?xml version="1.0" encoding="iso-8859-1"?>'):
        doc = read(rss(f"<item><title>Übergrößen</title>{ENCLOSURE}</item>", declaration=declaration), content_type)
        assert doc.entries[0].title == "Übergrößen"


def test_latin_1_that_declares_nothing_is_read_as_such() -> None:
    body = f'<rss version="2.0"><channel><item><title>Grüße aus Köln</title>{ENCLOSURE}</item></channel></rss>'.encode("latin-1")
    assert read(body).entries[0].title == "Grüße aus Köln"


# -------------------------------------------------------------------------------------------------------- show notes

NOTES = "<p>One [1] of many</p> ]] ]>\n" * 20


@pytest.mark.parametrize("name", ["description", "content:encoded", "itunes:summary", "encoded"])
def test_notes_say_nothing_of_an_episode_however_long_they_are(name: str) -> None:
    head = f'<title>S</title><{name} xmlns:content="c"><![CDATA[{NOTES}<item>]]></{name}>'
    items = "".join(
        f'<item><title><![CDATA[{n} {"long " * 70}]]></title><{name} xmlns:content="c"><![CDATA[{NOTES}<guid>no</guid>]]></{name}>'
        f"<guid>{n}</guid>{ENCLOSURE}</item>" for n in range(3))
    doc = read(rss(items, head))
    assert [entry.guid for entry in doc.entries] == ["0", "1", "2"]
    assert [entry.title for entry in doc.entries] == [f"{n} {'long ' * 70}".strip() for n in range(3)]
    assert (doc.repairs, doc.cut) == ((), "")


@pytest.mark.parametrize(("begin", "end"), [("<!--", "-->"), ("<?later", "?>")], ids=["comment", "instruction"])
def test_notes_that_begin_in_a_comment_do_not_take_the_entries_after_it_along(begin: str, end: str) -> None:
    item = f"<item><guid>%d</guid>{ENCLOSURE}<description><![CDATA[{NOTES}]]></description></item>"
    doc = read(rss(f"{item % 1}{begin} <description><![CDATA[{NOTES} {end}{item % 2} {end} {item % 3}"))
    assert [entry.guid for entry in doc.entries] == ["1", "2", "3"]


def test_a_fault_behind_long_notes_is_told_where_it_is() -> None:
    items = f"<item><guid>1</guid>{ENCLOSURE}<description><![CDATA[{NOTES}]]></description></item>"
    (told,) = read(rss(f"{items}<item><b></i>{ENCLOSURE}</item>")).repairs
    assert told.startswith(f"line {2 + NOTES.count(chr(10))}, ")


def test_a_feed_that_breaks_off_in_its_notes_is_cut() -> None:
    body = rss(f"<item><guid>1</guid>{ENCLOSURE}<description><![CDATA[{NOTES}]]></description></item>" * 2)
    doc = read(body[:body.rindex(b"]]>")])
    assert [entry.guid for entry in doc.entries] == ["1"]
    assert doc.cut.startswith("the feed breaks off in line ")


# ---------------------------------------------------------------------------------------------------- cut and damaged

def test_a_feed_that_breaks_off_gives_its_whole_entries_and_says_where() -> None:
    body = rss("".join(f"<item>\n<title>{n}</title><guid>{n}</guid>{ENCLOSURE}\n</item>\n" for n in range(3)))
    doc = read(body[:body.index(b"<guid>2") + 5])
    assert [entry.guid for entry in doc.entries] == ["0", "1"]
    assert doc.cut == "the feed breaks off in line 9, after 2 whole entries"


def test_an_ill_formed_feed_that_breaks_off_is_cut_all_the_same() -> None:
    body = rss(f"<item><description><b>bold</i></description><guid>1</guid>{ENCLOSURE}</item><item><guid>2</guid>{ENCLOSURE}</item>")
    assert [entry.guid for entry in read(body).entries] == ["1", "2"]
    doc = read(body[:body.index(b"2</guid>")])
    assert [entry.guid for entry in doc.entries] == ["1"]
    assert doc.cut


def test_the_end_of_a_feed_within_its_own_notes_is_no_end() -> None:
    body = rss(f"<item><b><i></b>{ENCLOSURE}<description><![CDATA[</rss>]]></description></item><item>{ENCLOSURE}</item>")
    assert read(body[:body.rindex(b"<enclosure")]).cut


def test_mismatched_tags_are_told_and_cost_no_entry() -> None:
    doc = read(rss(f"<item><title>A</title><guid>1</guid>{ENCLOSURE}<description><p>x</description></item><item><title>B</title>{ENCLOSURE}</item>"))
    assert [entry.title for entry in doc.entries] == ["A", "B"]
    assert "mismatched tag" in doc.repairs[0]
    assert not doc.cut


# ------------------------------------------------------------------------------------------------------- not a feed

@pytest.mark.parametrize(("body", "what"), [
    (b"", "the answer was empty"), (b" \n ", "the answer was empty"),
    (b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>", "a web page"), (b"\xef\xbb\xbf<!-- x -->\n<HTML><p>Moved", "a web page"),
    (b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>', "a web page"), (b'{"error": "gone"}', "JSON"),
    (b"[1, 2]", "JSON"), (b"Service unavailable", "plain text"),
    (b"ID3\x04\x00\x00\x00\x00\x00\x00" + b"\xff\xfb\x90\x64" + bytes(413) + b"\xff\xfb\x90\x64", "audio"),
    (b"\x89PNG\r\n\x1a\n" + bytes(50), "a picture"), (b'<?xml version="1.0"?><opml version="2.0"><body/></opml>', "an OPML file"),
    (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "XML of another kind (<error>)"), (b"%PDF-1.4 <x>", "a PDF document"),
])
def test_what_is_no_feed_is_named(body: bytes, what: str) -> None:
    with pytest.raises(FeedError, match="instead of a feed") as caught:
        read(body)
    assert str(caught.value).startswith(what)


# ----------------------------------------------------------------------------------------------------------- hostile

DEEP = b"<a>" * 1_000_000
MANY = b"<a " + b" ".join(b'a%d="1"' % number for number in range(100_000)) + b"/>"


@pytest.mark.parametrize("body", [
    rss("").replace(b"</channel>", DEEP + b"</channel>"), rss("").replace(b"</channel>", DEEP), b"<rss><channel>" + b"<item>" * 1_000_000,
    rss("<b>").replace(b"<b>", b"<b>" + MANY), DOCTYPE.encode() + b"<rss>" + MANY + b"</rss>", rss("").replace(b"</channel>", b"<" * 2_000_000),
    b'<!DOCTYPE r [<!ENTITY a "' + b"x" * 13_000 + b'">]><rss><channel><title>' + b"&a;" * 10_000 + b"</title></channel></rss>",
    ('<?xml version="1.0" encoding="utf-16"?><!DOCTYPE r [<!ENTITY a "x">]><rss>&a;</rss>').encode("utf-16"),
    b'<!DOCTYPE r [<!ATTLIST item a CDATA "' + b"x" * 13_000 + b'">]><rss><channel>' + b"<item/>" * 10_000 + b"</channel></rss>",
    b"<& <!DOCTYPE r [<!ENTITY a 'x'>]><rss><channel>", b"<!-- -->" * 500_000 + b"<rss", b"<rss>" + b"<![CDATA[" * 200_000,
    b"<rss>" + b"<!--" * 300_000,
], ids=["deep", "deep-open", "items-in-items", "attributes", "attributes-doctype", "brackets", "entities", "entities-utf-16", "default-attributes",
        "entities-in-a-broken-prolog", "comments", "open-cdata", "open-comments"])
def test_what_could_hurt_is_refused_or_read_quickly_in_little_memory(body: bytes) -> None:
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        assert read(body).entries == ()
    except FeedError as error:
        assert str(error)
    assert time.process_time() - begin < 20       # where it hurts it takes minutes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_titles_bring_no_control_characters() -> None:
    entry = only(f"<title>a\u2028b\u202ec&#x85;d&#x9b;e</title>{ENCLOSURE}")
    assert entry.title.isprintable()
    assert "\u202e" not in entry.title


def test_utf_7_is_not_decoded() -> None:
    doc = read(rss(f"<item><title>+ADw-b+AD4-</title>{ENCLOSURE}</item>", declaration='<?xml version="1.0" encoding="utf-7"?>'))
    assert doc.entries[0].title == "+ADw-b+AD4-"


# ------------------------------------------------------------------------------------------------------ threads, imports

def test_a_well_formed_feed_needs_no_feedparser() -> None:
    code = ("import sys; from poca.feed import parse_feed; "
            f"assert parse_feed({rss(f'<item>{ENCLOSURE}</item>')!r}, None, {URL!r}).entries; assert 'feedparser' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_threads_may_read_at_once_from_the_first_feed_on() -> None:
    code = f"""
import threading
from poca.feed import parse_feed
body = {rss(f'<item><guid>1</guid>{ENCLOSURE}</item>' * 20, declaration=DOCTYPE)!r}
found = []
barrier = threading.Barrier(16)
def work():
    barrier.wait()
    found.append(len(parse_feed(body, None, {URL!r}).entries))
threads = [threading.Thread(target=work) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert found == [20] * 16, found
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# ------------------------------------------------------------------------------------------------------- pack, unpack

def test_a_packed_feed_is_small_and_comes_back() -> None:
    items = "".join(f"<item><title>Episode {n}</title><guid>g{n}</guid>{ENCLOSURE}</item>" for n in range(3000))
    doc = read(rss(items))
    packed = pack(doc)
    assert len(packed) < 100_000
    assert unpack(packed) == doc


def test_what_another_version_packed_is_refused() -> None:
    for packed in (b"", b"junk", pack(FeedDoc())[:-3],
                   zlib.compress(json.dumps([2, "t", "", "", "", [], [], [], ""]).encode()), zlib.compress(b"{}")):
        with pytest.raises(FeedError):
            unpack(packed)
