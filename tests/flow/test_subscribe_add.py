"""`poca-subscribe add`: from an address to a subscription in the config."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.server import Reply, Server
from tests.subscribing import Desk, Show

PAGE = """<!DOCTYPE html><html><head><title>A show</title>
<link rel="stylesheet" type="text/css" href="/style.css">
<LINK REL="Alternate" TYPE="application/rss+xml; charset=utf-8" title="Comments" HREF="/comments.xml">
<link rel="alternate" type="application/rss+xml" href="show.xml">
<link rel="alternate" type="application/atom+xml" href="/other.xml">
</head><body><p>Hello &amp; welcome</body></html>"""
EMPTY = b'<rss version="2.0"><channel><title>Nothing</title></channel></rss>'
NEWS = b'<rss version="2.0"><channel><title>News</title><item><title>Hello</title></item></channel></rss>'


@pytest.fixture
def show(web: Server) -> Show:
    return Show(web, "show").publish(12)


def test_a_feed_is_shown_and_written_into_the_config(desk: Desk, show: Show) -> None:
    desk.write(defaults={"max_number": 3})
    out = desk.good("add", show.url, "--category", "news")
    assert desk.subscriptions == [{"title": "show", "url": show.url, "category": "news"}]
    assert "Episode 12" in out
    assert "Episode 1\n" in out
    assert "3 episodes would be downloaded (15.0 kB)" in out
    assert desk.poca("-q").code == 0
    assert len(desk.files()) == 3


def test_where_no_limit_is_in_force_ten_is_written_and_told(desk: Desk, show: Show) -> None:
    desk.write()
    out = desk.good("add", show.url)
    assert desk.subscriptions[0]["max_number"] == 10
    assert "max_number: 10" in out
    assert "10 episodes would be downloaded" in out


@pytest.mark.parametrize("defaults", [{"max_number": 4}, {"max_days": 9}])
def test_where_the_defaults_have_a_limit_none_is_written(desk: Desk, show: Show, defaults: dict[str, object]) -> None:
    desk.write(defaults=defaults)
    out = desk.good("add", show.url)
    assert "max_number" not in desk.subscriptions[0]
    assert "max_number" not in out


def test_no_limit_is_written_where_none_is_asked_for(desk: Desk, show: Show) -> None:
    desk.write()
    desk.good("add", show.url, "--max-number", "0")
    assert desk.subscriptions[0]["max_number"] == 0


def test_from_the_top_does_without_the_days_of_the_defaults(desk: Desk, show: Show) -> None:
    desk.write(defaults={"max_days": 30})
    out = desk.good("add", show.url, "--from-the-top")
    assert desk.subscriptions == [{"title": "show", "url": show.url, "max_days": 0, "from_the_top": True, "max_number": 10}]
    assert "max_days: 0" in out
    assert desk.good("check")


def test_a_page_gives_the_first_of_its_feeds_that_has_episodes(desk: Desk, web: Server) -> None:
    show = Show(web, "podcast/show").publish(2)
    web.routes["/podcast/"] = Reply(body=PAGE.encode(), type="text/html; charset=utf-8")
    web.routes["/comments.xml"] = Reply(body=NEWS, type="application/rss+xml")
    desk.write()
    out = desk.good("add", web.url("/podcast/"), "--title", "Show")
    assert desk.subscriptions[0]["url"] == show.url
    assert f"names the feed {show.url}" in out
    assert web.url("/other.xml") in out


def test_a_login_goes_with_the_feed_of_a_page_of_the_same_host(desk: Desk, web: Server) -> None:
    Show(web, "podcast/show").publish(2)
    web.routes["/podcast/"] = Reply(body=b'<html><link rel=alternate type=application/rss+xml href=show.xml>', type="text/html")
    desk.write()
    done = desk.subscribe("add", web.url("/podcast/", user="me:hunter2"))
    assert done.code == 0
    assert desk.subscriptions[0]["url"] == web.url("/podcast/show.xml", user="me:hunter2")
    assert web.seen("/podcast/show.xml")[0].headers["authorization"].startswith("Basic ")
    assert "hunter2" not in done.out + done.err


@pytest.mark.parametrize(("body", "kind", "reason"), [
    (b"<html><body>hello", "text/html", "page"),
    (EMPTY, "application/rss+xml", "it has no entries"),
    (NEWS, "application/rss+xml", '"Hello"'),
    (b"", "application/rss+xml", "empty"),
])
def test_what_has_no_episodes_is_refused_with_the_reason(desk: Desk, web: Server, body: bytes, kind: str, reason: str) -> None:
    web.routes["/feed"] = Reply(body=body, type=kind)
    desk.write()
    before = desk.config.read_bytes()
    done = desk.subscribe("add", web.url("/feed"))
    assert done.code == 1
    assert reason in done.err
    assert desk.config.read_bytes() == before


def test_a_page_whose_feeds_have_no_episodes_is_refused(desk: Desk, web: Server) -> None:
    web.routes["/"] = Reply(body=PAGE.encode(), type="text/html")
    desk.write()
    done = desk.subscribe("add", web.url("/"))
    assert done.code == 1
    assert "404" in done.err


def test_the_login_of_a_page_goes_to_no_other_host(desk: Desk, web: Server, show: Show) -> None:
    elsewhere = show.url.replace("127.0.0.1", "localhost")
    web.routes["/page"] = Reply(body=f'<link rel="alternate" type="application/rss+xml" href="{elsewhere}">'.encode(), type="text/html")
    desk.write()
    desk.good("add", web.url("/page", user="me:hunter2"))
    assert desk.subscriptions[0]["url"] == elsewhere
    assert web.seen("/page")[0].headers["authorization"]
    assert "authorization" not in web.seen(show.path)[0].headers


def test_an_address_that_is_subscribed_to_is_told_by_its_title(desk: Desk, web: Server, show: Show) -> None:
    desk.write(show.subscription("Mine", max_number=1))
    before = desk.config.read_bytes()
    for address in (show.url, show.url.replace("http://127", "HTTP://127") + "#top"):
        done = desk.subscribe("add", address)
        assert (done.code, "as Mine" in done.err) == (2, True)
    web.routes["/moved"] = Reply(301, headers={"Location": show.url})
    assert desk.subscribe("add", web.url("/moved")).code == 2
    assert desk.config.read_bytes() == before


def test_a_feed_that_moved_for_good_is_written_with_its_new_address(desk: Desk, web: Server, show: Show) -> None:
    web.routes["/moved"] = Reply(301, headers={"Location": show.url})
    web.routes["/today"] = Reply(302, headers={"Location": show.url})
    desk.write()
    desk.good("add", web.url("/moved"), "--title", "A")
    desk.good("delete", "A", "--yes")
    desk.good("add", web.url("/today"), "--title", "B")
    assert [s["url"] for s in desk.subscriptions] == [web.url("/today")]


def test_a_title_of_the_feed_is_made_unique_and_one_that_was_given_is_refused(desk: Desk, web: Server, show: Show) -> None:
    other = Show(web, "other").publish(1)
    desk.write({"title": "SHOW", "url": other.url, "max_number": 1})
    refused = desk.subscribe("add", show.url, "--title", "show?")
    assert (refused.code, "SHOW" in refused.err) == (2, True)
    desk.good("add", show.url)
    assert [s["title"] for s in desk.subscriptions] == ["SHOW", "show (2)"]
    assert desk.good("check")


def test_a_feed_without_a_title_is_called_by_its_host(desk: Desk, web: Server) -> None:
    show = Show(web, "show").publish(1)
    web.routes["/x"] = Reply(body=show.feed().replace(b"<title>show</title>", b"", 1))
    desk.write()
    desk.good("add", web.url("/x"))
    assert desk.subscriptions[0]["title"] == "127.0.0.1"


def test_without_a_config_one_is_made_and_told(desk: Desk, show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(desk.folder / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.state))
    out = desk.good("add", show.url)
    assert f"{desk.config} was made" in out
    assert desk.config.stat().st_mode & 0o777 == 0o600
    assert "max_number" not in desk.subscriptions[0]        # the sample's defaults have one
    assert desk.good("check")


def test_nothing_of_the_feed_or_the_history_is_kept(desk: Desk, show: Show) -> None:
    desk.write()
    desk.good("add", show.url)
    assert not desk.state.exists()
    assert not desk.base.exists()


def test_what_is_wrong_with_the_address_is_told_before_anything_is_done(desk: Desk) -> None:
    for address in ("ftp://example.org/feed.xml", "hello", "http://", ""):
        done = desk.subscribe("add", address)
        assert done.code in (1, 2), address
        assert done.err
        assert not desk.config.exists(), address


@pytest.mark.parametrize("option", [["--max-number", "-1"], ["--max-number", "x"], ["--title", " "], ["--category", "a\nb"]])
def test_options_take_what_the_config_takes(desk: Desk, option: list[str]) -> None:
    desk.write()
    assert desk.subscribe("add", "http://127.0.0.1/", *option).code == 2


def test_a_server_that_does_not_answer_is_an_error_without_secrets(desk: Desk) -> None:
    desk.write(settings={"timeout": 0.2})
    done = desk.subscribe("add", "http://me:hunter2@127.0.0.1:9/feed?token=s3cr3t")
    assert done.code == 1
    assert "hunter2" not in done.err
    assert "s3cr3t" not in done.err
    assert "127.0.0.1" in done.err


def test_any_title_prints_in_any_locale(desk: Desk, web: Server) -> None:
    show = Show(web, "show").publish(1)
    web.routes["/x"] = Reply(body=show.feed().replace(b"<title>show</title>", "<title>Früh 日本 \U0001f399</title>".encode(), 1))
    desk.write()
    done = desk.subscribe("add", web.url("/x"), encoding="ascii")
    assert done.code == 0
    assert "Fr\\xfch" in done.out
    assert desk.subscriptions[0]["title"] == "Früh 日本 \U0001f399"
    assert desk.subscribe("list", encoding="ascii").code == 0


def test_a_read_only_config_is_told(desk: Desk, show: Show) -> None:
    desk.write()
    desk.config.chmod(0o400)
    done = desk.subscribe("add", show.url)
    assert done.code == 2
    assert Path(desk.config).stat().st_mode & 0o777 == 0o400
    assert os.fspath(desk.config) in done.err
