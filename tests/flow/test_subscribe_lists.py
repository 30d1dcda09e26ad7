"""`poca-subscribe list`, `stats`, `check`, `tags`, `import` and `export`."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from xml.etree import ElementTree

import pytest
import yaml

from poca.tagnames import TAGS
from tests.server import Reply, Server
from tests.subscribing import Desk, Show

DAY = 86_400
OPML = """<opml version="2.0"><body><outline text="News">
<outline text="One" type="rss" xmlUrl="http://127.0.0.1/one.xml"/>
<outline text="One" type="rss" xmlUrl="http://127.0.0.1/two.xml"/>
<outline text="Again" type="rss" xmlUrl="http://127.0.0.1/one.xml"/>
<outline text="Mine" type="rss" xmlUrl="http://127.0.0.1/mine.xml?key=s3cr3t"/>
<outline text="Disk" type="rss" xmlUrl="file:///etc/passwd"/>
</outline></body></opml>"""


@pytest.fixture
def show(web: Server) -> Show:
    return Show(web, "show").publish(5)


# ---------------------------------------------------------------------------------------------------------------- list

def test_list_tells_what_is_held_and_how_the_feed_is(desk: Desk, web: Server, show: Show) -> None:
    (desk.base / "Show").mkdir(parents=True)
    (desk.base / "Show" / "5.mp3").write_bytes(show.items[-1].body)
    desk.write(show.subscription(max_number=3, category="news"), {"title": "Gone", "url": web.url("/gone.xml?token=s3cr3t"), "state": "inactive"})
    desk.poca("-q")
    first, second = desk.json("list")
    assert {key: first[key] for key in ("title", "category", "state", "max_number", "held", "adopted", "bytes", "failures")} == {
        "title": "Show", "category": "news", "state": "active", "max_number": 3, "held": 3, "adopted": 1, "bytes": 15012, "failures": 0}
    assert first["newest"] == show.items[-1].published
    assert first["last_good"] is not None
    assert (second["state"], second["held"], second["last_good"]) == ("inactive", 0, None)
    out = desk.good("list")
    assert "3 (1 adopted)" in out
    assert "s3cr3t" not in out + json.dumps(second)


def test_a_failing_feed_is_told_with_its_last_good_date_and_its_wait(desk: Desk, web: Server, show: Show) -> None:
    desk.write(show.subscription(max_number=1))
    desk.poca("-q")
    web.routes["/show.xml"] = Reply(404)
    for _ in range(3):
        desk.poca("-q")
    out = desk.good("list")
    assert "failed 3 times, last good " in out
    assert "waits until " in out
    assert "404" in out


def test_columns_of_wide_letters_are_aligned_in_a_pipe(desk: Desk, web: Server) -> None:
    desk.write({"title": "日本語", "url": web.url("/a")}, {"title": "abcdef", "url": web.url("/b")}, {"title": "e\u0301te", "url": web.url("/c")})
    lines = desk.good("list").splitlines()
    from rich.cells import cell_len

    assert len({cell_len(line[:line.index("active")]) for line in lines[1:]}) == 1
    assert not any("\x1b" in line for line in lines)


def test_a_subscription_with_a_fault_is_listed_as_such(desk: Desk, web: Server) -> None:
    desk.write({"title": "Bad", "url": web.url("/a", user="me:hunter2"), "max_number": "x"})
    done = desk.subscribe("list")
    assert (done.code, "faulty" in done.out, "hunter2" in done.out) == (0, True, False)


def test_nothing_subscribed_and_no_config(desk: Desk) -> None:
    assert desk.subscribe("list").code == 2
    desk.write()
    assert "no subscriptions yet" in desk.good("list")
    assert desk.good("list", "--json") == ""


def test_titles_for_completion_come_a_line_each(desk: Desk, web: Server) -> None:
    desk.write({"title": "A b", "url": web.url("/a")}, {"title": "C", "url": web.url("/c")})
    assert desk.good("titles") == "A b\nC\n"


# --------------------------------------------------------------------------------------------------------------- stats

def test_stats_of_a_feed_as_it_was_read(desk: Desk, show: Show) -> None:
    now = int(time.time())
    show.extra = "<itunes:author xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'>Jane &amp; Joe</itunes:author>"
    for number, item in enumerate(reversed(show.items)):
        item.published = now - 3600 - number * 7 * DAY if number < 4 else now - 100 * DAY
        item.more = "<itunes:duration xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'>30:00</itunes:duration>"
    desk.write(show.subscription(max_number=1))
    assert "not read yet" in desk.good("stats")
    desk.poca("-q")
    (line,) = desk.json("stats", "show")
    assert line["author"] == "Jane & Joe"
    assert (line["episodes"], line["average_bytes"], line["average_seconds"]) == (5, 5004, 1800)
    assert sorted(line["weekdays"]) == [0, 0, 0, 0, 0, 0, 4]
    out = desk.good("stats")
    assert "5.0 kB, 30 min" in out
    assert "Jane & Joe" in out
    assert "█" in out
    assert "#" in desk.subscribe("stats", encoding="ascii").out


# --------------------------------------------------------------------------------------------------------------- check

def test_check_tells_every_fault_with_its_place(desk: Desk) -> None:
    desk.write({"title": "A", "url": "ftp://x/"}, {"title": "B", "url": "http://x/", "max_numbr": 3})
    done = desk.subscribe("check")
    assert done.code == 2
    lines = [line for line in done.err.splitlines() if line.startswith(f"{desk.config}:")]
    assert len(lines) == 2
    faults = [json.loads(line) for line in desk.subscribe("check", "--json").out.splitlines()]
    assert [(fault["line"] > 0, fault["column"] > 0, fault["level"]) for fault in faults] == [(True, True, "error")] * 2


def test_check_of_a_broken_file(desk: Desk) -> None:
    desk.config.write_text("settings: [\n")
    done = desk.subscribe("check", "--json")
    assert done.code == 2
    assert json.loads(done.out)["level"] == "error"


def test_check_warns_and_is_content(desk: Desk, web: Server) -> None:
    desk.write({"title": "A", "url": web.url("/a", user="me:hunter2")})
    desk.config.chmod(0o644)
    done = desk.subscribe("check")
    assert (done.code, "chmod 600" in done.err, "no fault" in done.out) == (0, True, True)
    assert json.loads(desk.subscribe("check", "--json").out)["level"] == "warning"


@pytest.mark.parametrize("form", ["mp3", "mp4", "vorbis"])
def test_tags_are_those_of_the_table(desk: Desk, form: str) -> None:
    lines = dict(line.split(None, 1) for line in desk.good("tags", form).splitlines()[1:])
    assert lines == {tag.name: tag.target(form) for tag in TAGS.values() if tag.target(form)}
    assert {each["name"]: each["tag"] for each in desk.json("tags", form)} == lines


# ------------------------------------------------------------------------------------------------------ import, export

def test_a_list_is_added_in_one_edit_without_doubles_and_other_schemes(desk: Desk) -> None:
    desk.write({"title": "one", "url": "http://127.0.0.1/mine.xml?key=s3cr3t", "max_number": 1})
    (desk.folder / "list.opml").write_text(OPML)
    before = desk.config.read_bytes()
    shown = desk.subscribe("import", str(desk.folder / "list.opml"), "--dry-run")
    assert (shown.code, desk.config.read_bytes()) == (0, before)
    assert "One (2) (News): http://127.0.0.1/one.xml" in shown.out
    done = desk.subscribe("import", str(desk.folder / "list.opml"))
    assert done.code == 0
    assert desk.subscriptions[1:] == [
        {"title": "One (2)", "url": "http://127.0.0.1/one.xml", "category": "News", "max_number": 10},
        {"title": "One (3)", "url": "http://127.0.0.1/two.xml", "category": "News", "max_number": 10}]
    assert "as one" in done.err
    assert "Disk" in done.err
    assert "s3cr3t" not in done.err + done.out
    assert desk.config.read_bytes().startswith(before[:-4])
    again = desk.subscribe("import", str(desk.folder / "list.opml"))
    assert (again.code, "0 subscriptions added" in again.out) == (0, True)


POCA_XML = """<poca><settings><base_dir>{base}</base_dir><filenames>restrictive</filenames><id3v2version>3</id3v2version></settings>
<defaults><max_number>4</max_number><metadata><genre>Podcast</genre></metadata></defaults>
<subscriptions><subscription><title>Äpfel</title><url>http://127.0.0.1/a.xml</url><metadata><artist>Jane</artist></metadata></subscription>
<subscription state="inactive"><title>B</title><url>http://127.0.0.1/b.xml</url><max_number>9</max_number></subscription></subscriptions></poca>"""


def test_a_config_of_poca_1_becomes_a_config_with_all_its_settings(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.state))
    old = desk.folder / "poca.xml"
    old.write_text(POCA_XML.format(base=desk.base), encoding="utf-8")
    assert desk.subscribe("import", str(old), "--dry-run").code == 0
    assert not desk.config.exists()
    out = desk.good("import", str(old))
    assert "was made" in out
    written = yaml.safe_load(desk.config.read_text(encoding="utf-8"))
    assert written["settings"] == {"base_dir": str(desk.base), "filenames": "restrictive", "id3v2version": 3}
    assert written["defaults"] == {"max_number": 4, "metadata": {"genre": "Podcast"}}
    assert [s["title"] for s in written["subscriptions"]] == ["Äpfel", "B"]
    assert written["subscriptions"][1]["state"] == "inactive"
    assert desk.good("check")


def test_the_defaults_of_poca_1_go_with_each_subscription_into_a_config_that_is_there(desk: Desk) -> None:
    old = desk.folder / "poca.xml"
    old.write_text(POCA_XML.format(base=desk.base), encoding="utf-8")
    desk.write()
    done = desk.subscribe("import", str(old))
    assert done.code == 0
    assert "base_dir, filenames, id3v2version" in done.err
    first, second = desk.subscriptions
    assert (first["max_number"], first["metadata"]) == (4, {"genre": "Podcast", "artist": "Jane"})
    assert second["max_number"] == 9


def test_what_the_config_cannot_take_is_left_out_and_told(desk: Desk) -> None:
    old = desk.folder / "poca.xml"
    old.write_text("<poca><subscriptions><subscription><title>A</title><url>http://127.0.0.1/a</url><from_the_top>yes</from_the_top></subscription>"
                   "<subscription><title>B</title><url>http://127.0.0.1/b</url></subscription></subscriptions></poca>")
    desk.write(defaults={"max_days": 3})
    done = desk.subscribe("import", str(old))
    assert (done.code, "A is left out" in done.err) == (1, True)
    assert [s["title"] for s in desk.subscriptions] == ["B"]


@pytest.mark.parametrize("body", [b"", b"hello", b"<rss><channel/></rss>", b"\xff\xfe\x00"])
def test_what_is_no_list_is_refused(desk: Desk, body: bytes) -> None:
    (desk.folder / "x").write_bytes(body)
    desk.write()
    before = desk.config.read_bytes()
    done = desk.subscribe("import", str(desk.folder / "x"))
    assert (done.code, bool(done.err)) == (1, True)
    assert desk.config.read_bytes() == before
    assert desk.subscribe("import", str(desk.folder / "nothing")).code == 1


def test_export_can_be_imported_again_and_holds_no_password(desk: Desk) -> None:
    desk.write({"title": "Früh & <spät>", "url": "http://me:hunter2@127.0.0.1/a?key=1&b=2", "category": "news"}, {"title": "B", "url": "http://127.0.0.1/b"})
    target = desk.folder / "out.opml"
    done = desk.subscribe("export", str(target))
    assert (done.code, "2 subscriptions" in done.out) == (0, True)
    assert "password" in done.err
    assert "Queries" in done.err
    assert target.stat().st_mode & 0o077 == 0
    outlines = [node.attrib for node in ElementTree.parse(target).iter("outline")]
    assert [node["xmlUrl"] for node in outlines] == ["http://127.0.0.1/a?key=1&b=2", "http://127.0.0.1/b"]
    assert desk.subscribe("export").out == target.read_text(encoding="utf-8")
    assert desk.subscribe("export", str(desk.folder / "no" / "x")).code == 1
    desk.write()
    assert desk.subscribe("import", str(target)).code == 0
    assert [s["title"] for s in desk.subscriptions] == ["Früh & <spät>", "B"]


def test_a_feed_dated_in_the_future_is_not_the_newest(desk: Desk, show: Show) -> None:
    show.items[-1].published = int(time.time()) + 90 * DAY
    desk.write(show.subscription(max_number=1))
    desk.poca("-q")
    assert desk.json("list")[0]["newest"] == show.items[-2].published
    assert formatdate(show.items[-2].published)


# ----------------------------------------------------------------------------------------------------------- the rest

@pytest.mark.parametrize("command", [
    "add", "list", "stats", "delete", "enable", "disable", "why", "mark", "retry", "tags", "import", "export", "check",
])
def test_help_of_each_command_shows_an_example(desk: Desk, command: str) -> None:
    done = desk.subscribe(command, "--help")
    assert done.code == 0
    assert f"poca-subscribe {command}" in done.out.partition("example:")[2]


def test_the_config_may_be_named_after_the_command(desk: Desk) -> None:
    desk.write()
    other = desk.folder / "other.yaml"
    other.write_bytes(desk.config.read_bytes())
    desk.config.unlink()
    assert str(other) in desk.good("check", "-c", str(other))
    assert desk.subscribe("check").code == 2
