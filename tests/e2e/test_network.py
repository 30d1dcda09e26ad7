"""Feeds that cannot be had, wait, or have moved; and pocas that meet."""

from __future__ import annotations

import socket

import pytest

from tests.server import Reply, Server
from tests.world import Home, Show, ended, until


@pytest.fixture
def dead() -> str:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def test_without_a_network_there_is_one_line_and_no_feed_waits_for_it(home: Home) -> None:
    # Nobody can connect to an address for groups: the system says at once that no network leads there.
    home.write(*({"title": f"Show {number}", "url": f"http://224.0.0.1/{number}.xml"} for number in range(3)))
    done = home.run()
    assert done.code == 1
    assert len(done.err.splitlines()) == 2 and "no network: none of the 3 feeds" in done.err
    assert not any(history.failures or history.next_try for history in home.histories().values())


def test_feeds_that_all_refuse_are_told_and_do_not_wait_for_it(home: Home, dead: str) -> None:
    home.write(*({"title": f"Show {number}", "url": f"{dead}/{number}.xml"} for number in range(2)))
    done = home.run()
    assert done.code == 1 and done.err.count("connection refused") == 2
    assert not any(history.failures or history.next_try for history in home.histories().values())


def test_one_feed_that_refuses_is_that_feeds_own_failure(home: Home, server: Server, dead: str) -> None:
    show = Show(server, "good").publish()
    home.write({"title": "Refuses", "url": f"{dead}/feed.xml"}, show.subscription())
    done = home.run()
    assert done.code == 1 and "no network" not in done.err and "Refuses: " in done.err
    assert set(home.files()) == {"Good/1.mp3"}


def test_a_feed_that_failed_three_times_waits_silently_unless_it_is_named(home: Home, server: Server) -> None:
    show = Show(server, "show").publish()
    home.write(show.subscription())
    assert home.run().code == 0
    server.routes[show.path] = Reply(404)
    for _ in range(3):
        done = home.run()
        assert done.code == 1 and "404" in done.err and "last good" in done.err
    asked = server.count(show.path)
    done = home.run()
    assert done.silent and done.code == 0 and server.count(show.path) == asked
    assert "1 waiting" in home.run("-v").out
    server.routes[show.path] = lambda request: show.reply()
    assert home.run("Show").code == 0
    assert server.count(show.path) == asked + 1
    assert home.run().code == 0 and server.count(show.path) == asked + 2


CONFIG = """\
# Jane's shows
settings: {{base_dir: {base}, state_dir: {state}, min_free_mb: 0}}

subscriptions:
  - title:   Show      # the best
    url: {url}   # since 2019
    max_number: 3

  # the other one
  - {{title: Other, url: "{other}"}}
"""


def config_of(home: Home, url: str, other: str) -> str:
    return CONFIG.format(base=home.base, state=home.state, url=url, other=other)


@pytest.fixture
def two(home: Home, server: Server) -> tuple[Show, Show]:
    show, other = Show(server, "show").publish(2), Show(server, "other").publish()
    home.config.write_text(config_of(home, show.url, other.url), encoding="utf-8")
    assert home.run().code == 0
    return show, other


@pytest.mark.parametrize("status", [301, 308])
def test_a_feed_that_moved_for_good_gets_its_address_in_the_config_and_nothing_else_changes_there(
    home: Home, server: Server, two: tuple[Show, Show], status: int
) -> None:
    show, other = two
    server.routes[show.path] = Reply(status, headers={"Location": server.url("/new.xml")})
    server.routes["/new.xml"] = lambda request: show.reply()
    done = home.run()
    assert done.code == 0 and "moved for good" in done.out
    assert home.config.read_text(encoding="utf-8") == config_of(home, server.url("/new.xml"), other.url)
    asked = server.count(show.path)
    show.publish()
    assert home.run().code == 0
    assert server.count(show.path) == asked and len(show.asked()) == 3


def test_a_feed_that_moved_by_its_own_word_is_followed_too(home: Home, server: Server, two: tuple[Show, Show]) -> None:
    show, other = two
    show.extra = f'<itunes:new-feed-url xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">{server.url("/new.xml")}</itunes:new-feed-url>'
    server.routes["/new.xml"] = lambda request: show.reply()
    assert home.run().code == 0
    assert home.config.read_text(encoding="utf-8") == config_of(home, server.url("/new.xml"), other.url)
    assert home.run().silent


@pytest.mark.parametrize("where", ["a page", "another show", "nowhere"])
def test_a_feed_that_moved_to_something_else_changes_nothing(home: Home, server: Server, two: tuple[Show, Show], where: str) -> None:
    show, other = two
    stranger = Show(server, "stranger").publish(5)
    del stranger.items[:2]
    server.routes["/new.xml"] = {
        "a page": Reply(body=b"<!DOCTYPE html><html><body>This domain is for sale</body></html>", type="text/html"),
        "another show": Reply(body=stranger.feed(), type="application/rss+xml"),
        "nowhere": Reply(404),
    }[where]
    server.routes[show.path] = Reply(301, headers={"Location": server.url("/new.xml")})
    files = home.files()
    done = home.run()
    assert done.code == 1 and "Show: " in done.err
    assert home.config.read_text(encoding="utf-8") == config_of(home, show.url, other.url)
    assert home.files() == files and stranger.asked() == []


def test_a_move_for_now_changes_nothing_in_the_config(home: Home, server: Server, two: tuple[Show, Show]) -> None:
    show, other = two
    show.publish()
    server.routes[show.path] = Reply(302, headers={"Location": server.url("/new.xml")})
    server.routes["/new.xml"] = lambda request: show.reply()
    assert home.run().code == 0
    assert home.config.read_text(encoding="utf-8") == config_of(home, show.url, other.url)
    assert "Show/3.mp3" in home.files()


def test_a_second_poca_takes_what_the_first_is_not_busy_with(home: Home, server: Server) -> None:
    busy, free = Show(server, "busy").publish(), Show(server, "free").publish()
    path, body = busy.items[0].path, busy.items[0].body
    server.routes[path] = Reply(body=body, type="audio/mpeg", drip=0.0008)
    home.write(busy.subscription())
    first = home.start()
    until(home.hidden)
    home.write(busy.subscription(), free.subscription())
    second = home.run()
    assert second.code == 0 and second.err == ""
    assert set(home.files()) == {"Free/1.mp3"}, "the first was to be busy still"
    assert ended(first).code == 0
    assert home.files() == {"Busy/1.mp3": body, "Free/1.mp3": free.items[0].body}
    assert busy.asked() == [path] and free.asked() == [free.items[0].path]
    assert home.run().silent
