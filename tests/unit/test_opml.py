"""Lists of subscriptions, in and out."""

from __future__ import annotations

import time
from datetime import date
from xml.etree import ElementTree

import pytest

from poca.confedit import add_subscriptions, section
from poca.errors import PocaError
from poca.model import Subscription
from poca.subscribe.lists import unique_title
from poca.subscribe.opml import read, write


def outlines(*lines: str, declaration: str = "") -> bytes:
    return f'{declaration}<opml version="1.0"><head><title>Mine</title></head><body>\n{chr(10).join(lines)}\n</body></opml>'.encode()


def feeds(data: bytes) -> list[tuple[object, object]]:
    return [(values["title"], values["url"]) for values in read(data).subscriptions]


# ------------------------------------------------------------------------------------------------------- OPML in

@pytest.mark.parametrize(
    ("line", "title", "url"),
    [
        pytest.param('<outline text="A" type="rss" xmlUrl="http://a/"/>', "A", "http://a/", id="as it should be"),
        pytest.param('<outline text="A" xmlUrl="http://a/"></outline>', "A", "http://a/", id="no type, end tag"),
        pytest.param("<outline title='A' xmlUrl='http://a/' />", "A", "http://a/", id="title only, single quotes"),
        pytest.param('<outline xmlUrl="http://a.example:80/f" text=""/>', "a.example", "http://a.example:80/f", id="no title"),
        pytest.param('<OUTLINE TEXT="A" XMLURL="http://a/">', "A", "http://a/", id="capitals, never closed"),
        pytest.param('<outline\n  text="A\n   B"\n  xmlUrl = " http://a/\n"\n/>', "A B", "http://a/", id="line breaks"),
        pytest.param('<outline text="A" type="rss" url="http://a/"/>', "A", "http://a/", id="another attribute"),
        pytest.param('<outline text="A" xmlUrl="HTTP://a/F"/>', "A", "http://a/F", id="scheme in capitals"),
        pytest.param('<outline text="R&amp;amp;B &lt;b&gt;&#39;x&apos;" xmlUrl="http://a/?x=1&amp;y=2"/>', "R&B 'x'", "http://a/?x=1&y=2",
                     id="entities"),
        pytest.param('<outline text="R & B < C" xmlUrl="http://a/?x=1&y=2"/>', "R & B < C", "http://a/?x=1&y=2", id="bare signs"),
        pytest.param('<outline text="5" disc" title="5" disc" xmlUrl="http://a/"/>', "5", "http://a/", id="quotes within quotes"),
        pytest.param('<outline text="<![CDATA[It&#039;s]]>" xmlUrl="http://a/"/>', "It's", "http://a/", id="CDATA in an attribute"),
        pytest.param('<outline text="A" description="not url=\'http://b/\'" xmlUrl="http://a/"/>', "A", "http://a/", id="attributes within a text"),
        pytest.param('<outline text="A" xmlUrl="feed://a/f"/>', "A", "http://a/f", id="feed scheme"),
        pytest.param('<outline text="A" xmlUrl="feed:https://a/f"/>', "A", "https://a/f", id="feed before https"),
        pytest.param('<outline text="A" xmlUrl="itpc://a/f"/>', "A", "http://a/f", id="iTunes scheme"),
        pytest.param('<outline text="A" xmlUrl="http://a/b c"/>', "A", "http://a/b%20c", id="blank in the address"),
    ],
)
def test_a_feed_is_found_however_it_is_written(line, title, url):
    assert feeds(outlines(line)) == [(title, url)]


def test_nested_feeds_are_found_with_their_folders_as_categories():
    found = read(outlines(
        '<outline text="feeds">', '  <outline text="News">', '    <outline text="A" xmlUrl="http://a/"/>', '    <outline text="B" xmlUrl="http://b/">',
        '<outline text="B2" xmlUrl="http://b2/"></outline></outline>',
        '    <outline text="Deep"><outline text="C" xmlUrl="http://c/" category="/Own,/Other"/></outline>', '    <outline text="D" xmlUrl="http://d/"/>',
        "  </outline>", '  <outline text="E" xmlUrl="http://e/"/>', "</outline>", '<outline text="F" xmlUrl="http://f/"/>',
    ))
    assert [(values["title"], values.get("category")) for values in found.subscriptions] == [
        ("A", "News"), ("B", "News"), ("B2", "News"), ("C", "Own,/Other"), ("D", "News"), ("E", None), ("F", None),
    ]
    assert found.notes == []


def test_feeds_inside_a_comment_are_not_found():
    assert feeds(outlines('<!-- <outline text="A" xmlUrl="http://a/"/> -->', '<outline text="B" xmlUrl="http://b/"/>')) == [("B", "http://b/")]


def test_a_feed_that_is_there_twice_is_taken_once_and_told():
    found = read(outlines('<outline text="A" xmlUrl="http://a/?key=secret"/>', '<outline text="B" xmlUrl="http://a/?key=secret"/>'))
    assert [values["title"] for values in found.subscriptions] == ["A"]
    assert found.notes == ['"B" is left out: its feed http://a/?… is "A" already.']


@pytest.mark.parametrize(
    "address", ["ftp://a/f", "file:///etc/passwd", "javascript:alert(1)", "feed.xml", "http://", "http://[::1", "http://a..b/", "//a/f", "", "http://a/\x7f"],
)
def test_what_is_no_http_address_is_left_out_and_told(address):
    found = read(outlines(f'<outline text="A" xmlUrl="{address}"/>', '<outline text="B" xmlUrl="http://b/"/>'))
    assert [values["title"] for values in found.subscriptions] == ["B"]
    assert len(found.notes) == 1
    assert found.notes[0].startswith('"A" is left out: ')


def test_titles_are_made_unique_as_folders_would_be():
    lines = [f'<outline text="{title}" xmlUrl="http://a/{number}"/>' for number, title in enumerate(["Show", "SHOW", "Show?", "Show (2)", "Other"])]
    found = read(outlines(*lines))
    assert [values["title"] for values in found.subscriptions] == ["Show", "SHOW (2)", "Show? (3)", "Show (2) (2)", "Other"]
    assert found.notes[0] == 'Another "SHOW" is called "SHOW (2)".'
    taken = {"show"}
    assert unique_title("Show", taken, []) == "Show (2)"


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("utf-8", None), ("windows-1251", "windows-1251"), ("koi8-r", "KOI8-R"), ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16"), ("utf-16-be", None), ("utf-8", "utf-16"),
    ],
)
def test_letters_come_as_they_were_meant_in_every_encoding(encoding, declared):
    declaration = "<?xml version='1.0'" + (f" encoding='{declared}'" if declared else "") + "?>\n"
    data = outlines('<outline text="Привет" xmlUrl="http://a/"/>', declaration=declaration).decode().encode(encoding)
    assert feeds(data) == [("Привет", "http://a/")]


@pytest.mark.parametrize("title", ["A", "AB"])
def test_a_text_of_single_bytes_that_calls_itself_utf16_is_no_utf16(title):
    data = outlines(f'<outline text="{title}" xmlUrl="http://a/"/>', declaration="<?xml version='1.0' encoding='utf-16'?>")
    assert feeds(data) == [(title, "http://a/")]


def test_an_encoding_that_does_not_fit_is_told():
    data = outlines('<outline text="Früh" xmlUrl="http://a/"/>', declaration="<?xml version='1.0' encoding='us-ascii'?>")
    found = read(data)
    assert found.subscriptions[0]["title"] == "Früh"
    assert found.notes == ["The file is not written in us-ascii, as it should be: it was read as utf-8."]
    assert feeds(data.decode().encode("latin-1")) == [("Früh", "http://a/")]
    assert feeds(data.replace(b"us-ascii", b"x-no-such")) == [("Früh", "http://a/")]
    assert feeds(data.replace(b"us-ascii", b"zlib-codec")) == [("Früh", "http://a/")]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "neither OPML nor"), (b"\x89PNG\r\n\x1a\n\0\0", "neither OPML nor"),
        (b"<html><body></body></html>", "neither OPML nor"), (b"{}", "neither OPML nor"),
        (b"<?xml version='1.0'?><rss><channel/></rss>", "is a feed itself"), (b"<feed xmlns='http://www.w3.org/2005/Atom'/>", "is a feed itself"),
        (b"<!DOCTYPE opml [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><opml/>", "declares entities"),
        (b"<!DOCTYPE poca [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><poca><settings><base_dir>&a;</base_dir></settings></poca>", "declares entities"),
        ("<!DOCTYPE poca [<!ENTITY a 'b'>]><poca/>".encode("utf-16"), "declares entities"),
        (b"<poca><settings></poca>", "fault in line 1"), (b"<poca>\n&nbsp;</poca>", "fault in line 2"), (b"<poca>\n\0</poca>", "fault in line 2"),
    ],
)
def test_what_is_no_list_is_refused_in_a_sentence(data, said):
    with pytest.raises(PocaError, match=said):
        read(data)


def test_an_empty_list_is_read_as_such():
    assert read(b"<opml version='2.0'><head/><body/></opml>").subscriptions == []


@pytest.mark.parametrize(
    "data",
    [
        b"<opml>" + b"<outline " * 100_000, b"<opml>" + b"<!-- " * 100_000, b"<opml><outline " + b"a" * 1_000_000,
        b"<opml><outline " + b"a='" * 300_000,
        b"<opml><outline a=" + b" " * 1_000_000, b"<opml>" + b"<outline text='x'>" * 50_000, b"<poca>" + b"<a>" * 50_000,
        b"<?xml " + b"x" * 1_000_000,
    ],
)
def test_hostile_files_take_no_time(data):
    start = time.process_time()
    try:
        read(data)
    except PocaError as error:
        assert len(str(error)) < 300
    assert time.process_time() - start < 20         # seconds; quadratic ones would take minutes


# -------------------------------------------------------------------------------------------------------- OPML out

def test_what_is_exported_is_read_again_as_it_was():
    subscriptions = [
        Subscription("Früh & <spät> \"x\" 'y'", "https://a.example/feed?id=1&key=2", category="news"),
        Subscription("日本語", "http://b.example/", active=False),
    ]
    text, notes = write(subscriptions, 1_700_000_000)
    assert notes == []
    found = read(text.encode())
    assert found.subscriptions == [
        {"title": "Früh & <spät> \"x\" 'y'", "url": "https://a.example/feed?id=1&key=2", "category": "news"}, {"title": "日本語", "url": "http://b.example/"},
    ]
    root = ElementTree.fromstring(text.encode())
    assert root.get("version") == "2.0"
    assert root.findtext("head/dateCreated") == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert [outline.attrib for outline in root.iter("outline")][1] == {"text": "日本語", "title": "日本語", "type": "rss", "xmlUrl": "http://b.example/"}


def test_user_names_and_passwords_stay_at_home_and_that_is_told():
    text, notes = write([Subscription("A", "https://joe:pa@ss@a.example:8443/feed?key=1")], 0)
    assert 'xmlUrl="https://a.example:8443/feed?key=1"' in text
    assert notes == ['"A": the user name and password of its address are left out.']
    assert "joe" not in text + notes[0]


def test_characters_that_xml_does_not_have_are_dropped():
    text, _ = write([Subscription("A\x00\x1b\ud800\ufffeB", "http://a/")], 0)
    assert next(ElementTree.fromstring(text.encode()).iter("outline")).get("text") == "AB"


# -------------------------------------------------------------------------------------------------------- poca.xml

OLD = """<?xml version="1.0" encoding="utf-8"?>
<poca version="1.0">
  <settings>
    <!-- the big disk -->
    <base_dir>~/podcasts</base_dir>
    <id3v2version>3</id3v2version>
    <id3removev1>yes</id3removev1>
    <useragent/>
    <filenames>permissive</filenames>
    <email>
      <only_errors>no</only_errors>
      <fromaddr>me@localhost</fromaddr>
      <toaddr>you@localhost</toaddr>
      <host>localhost</host>
      <port>25</port>
      <password/>
      <threshold>5</threshold>
    </email>
    <xpath>1</xpath>
  </settings>
  <defaults>
    <max_number>4</max_number>
    <metadata><genre>Podcast</genre></metadata>
  </defaults>
  <subscriptions>
    <subscription category="news" state="inactive">
      <title>Früh &amp; spät</title>
      <url>https://joe:secret@a.example/feed?x=1&amp;y=2</url>
      <max_number>007</max_number>
      <from_the_top>yes</from_the_top>
      <track_numbering>if missing</track_numbering>
      <rename divider=" - " space="_"><date/><episode_title/></rename>
      <metadata>
        <artist>Jane</artist>
        <comment/>
        <chapters/>
        <colour>blue</colour>
      </metadata>
      <filters>
        <title>^\\d+ #x</title>
        <hour>08</hour>
        <weekdays>024</weekdays>
        <after_date>2016-08-23</after_date>
        <before_date>2016-13-01</before_date>
      </filters>
    </subscription>
    <subscription>
      <title>2024</title>
      <url>http://b.example/</url>
      <category>talk</category>
      <state>active</state>
      <rename><divider>{</divider><space> </space><org_name/><uid/></rename>
      <from_the_top>perhaps</from_the_top>
      <max_mb>50</max_mb>
    </subscription>
    <subscription><title>No address</title></subscription>
    <subscription><title>Früh &amp; Spät</title><url>http://c.example/</url></subscription>
    <subscription><url>ftp://d.example/</url></subscription>
  </subscriptions>
</poca>
"""


def test_a_poca_xml_comes_with_all_its_options():
    found = read(OLD.encode())
    assert found.settings == {
        "base_dir": "~/podcasts", "id3v2version": 3, "id3removev1": True, "filenames": "permissive",
        "email": {"only_errors": False, "fromaddr": "me@localhost", "toaddr": "you@localhost", "host": "localhost", "port": 25, "threshold": 5},
    }
    assert found.defaults == {"max_number": 4, "metadata": {"genre": "Podcast"}}
    first, second, third = found.subscriptions
    assert first == {
        "title": "Früh & spät", "url": "https://joe:secret@a.example/feed?x=1&y=2", "category": "news", "state": "inactive", "max_number": 7,
        "from_the_top": True, "track_numbering": "if missing", "rename": "{date} - {episode_title}", "space": "_",
        "metadata": {"artist": "Jane", "comment": "", "chapters": ""},
        "filters": {"title": r"^\d+ #x", "hour": "08", "weekdays": "024", "after_date": date(2016, 8, 23)},
    }
    assert list(first)[:2] == ["title", "url"]
    assert second == {"title": "2024", "url": "http://b.example/", "category": "talk", "state": "active", "rename": "{org_name}{{{uid}", "space": " "}
    assert third == {"title": "Früh & Spät (2)", "url": "http://c.example/"}


def test_what_a_poca_xml_has_that_cannot_be_kept_is_told():
    notes = read(OLD.encode()).notes
    assert notes == [
        'settings: "xpath" has no place in the config, and is left out.',
        '"Früh & spät", metadata: "colour" is left out: no such tag is known.',
        '"Früh & spät", filters: before_date is left out, "2016-13-01" will not do: there is no such day.',
        '"2024": from_the_top is left out, "perhaps" will not do: it must be yes or no.',
        '"2024": "max_mb" has no place in the config, and is left out.',
        '"No address" is left out: it has no address.',
        'Another "Früh & Spät" is called "Früh & Spät (2)".',
        '"d.example" is left out: ftp://d.example/ is no address that poca can fetch.',
    ]
    assert "secret" not in "".join(notes)


def test_a_config_made_of_a_poca_xml_is_one_that_poca_reads(tmp_path):
    from poca import config

    found = read(OLD.encode())
    path = tmp_path / "config.yaml"
    path.write_text(add_subscriptions(section("settings", found.settings) + section("defaults", found.defaults), found.subscriptions))
    made = config.read(path, {"HOME": str(tmp_path)})
    assert made.faults == ()
    assert [(s.title, s.max_number, s.active) for s in made.subscriptions] == [
        ("Früh & spät", 7, False), ("2024", 4, True), ("Früh & Spät (2)", 4, True),
    ]
    assert made.subscriptions[0].filters.after_date == date(2016, 8, 23)
    assert dict(made.subscriptions[0].metadata) == {"genre": "Podcast", "artist": "Jane", "comment": "", "chapters": ""}
    assert made.settings.email is not None


def test_mail_without_addresses_and_a_secret_that_will_not_do_are_told_without_the_secret():
    found = read(b"<poca><settings><email><password>top\x7fsecret</password><toaddr>me@x</toaddr></email></settings></poca>")
    assert found.settings == {}
    assert "settings, email: it needs both fromaddr and toaddr, and is left out." in found.notes
    assert "secret" not in "".join(found.notes).replace("its value", "")


def test_another_program_reads_what_is_exported() -> None:
    import listparser

    shows = [
        Subscription("Früh & spät <1>", "https://example.org/a.xml?auth=x&b=1", category="news"),
        Subscription("天気 \"quoted\"", "http://example.org/b.xml"),
        Subscription("Plain", "https://user:secret@example.org/c.xml", active=False),
    ]
    text, _ = write(shows, 1_700_000_000)
    found = listparser.parse(text)
    assert not found["bozo"]
    assert {(feed["title"], feed["url"]) for feed in found["feeds"]} == {
        ("Früh & spät <1>", "https://example.org/a.xml?auth=x&b=1"), ("天気 \"quoted\"", "http://example.org/b.xml"),
        ("Plain", "https://example.org/c.xml"),
    }
