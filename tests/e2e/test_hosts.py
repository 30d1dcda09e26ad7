"""Manners towards hosts in whole runs of the installed program, as the hosts themselves see them."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import formatdate
from itertools import pairwise

import pytest

from tests.server import Raw, Reply, Request, Server
from tests.world import DAY, FIRST, Home, mp3

A, B = "127.0.0.1", "127.0.0.2"


@pytest.fixture
def hosts() -> Iterator[Server]:
    with Server(A, B) as server:
        yield server


def show(server: Server, name: str, host: str, episodes: int = 1, **reply: float) -> dict[str, object]:
    """A show at a host, with its episodes /NAME/1.mp3 and so on; gives its subscription."""
    items = []
    for number in range(1, episodes + 1):
        path = f"/{name}/{number}.mp3"
        server.routes[path] = Reply(body=mp3(path), type="audio/mpeg", etag='"1"', ranges=True)
        items.append(
            f'<item><title>{number}</title><guid>{path}</guid><pubDate>{formatdate(FIRST + number * DAY)}</pubDate>'
            f'<enclosure url="{server.url(path, host)}" type="audio/mpeg"/></item>'
        )
    feed = f'<rss version="2.0"><channel><title>{name}</title>{"".join(items)}</channel></rss>'.encode()
    server.routes[f"/{name}.xml"] = Reply(body=feed, type="text/xml", **reply)
    return {"title": name, "url": server.url(f"/{name}.xml", host)}


def asked(server: Server, *paths: str) -> list[str]:
    return [request.path for request in server.requests if not paths or request.path in paths]


def first(server: Server, path: str) -> Request:
    return server.seen(path)[0]


def test_two_hundred_feeds_on_twenty_hosts_are_asked_with_manners(home: Home) -> None:
    names = [f"127.0.0.{number}" for number in range(1, 21)]
    with Server(*names) as server:
        shows = [show(server, f"show{n}", names[n % 20], delay=0.02) for n in range(200)]
        home.write(*shows, settings={"per_host": 2, "host_delay": 0.05, "parallel": 16})
        done = home.run("-q")
        assert (done.code, done.err) == (0, "")
        assert len(home.files()) == 200
        assert len(server.requests) == 400
        for host in names:
            assert server.peak(host) <= 2
            starts = sorted(request.at for request in server.requests if request.host == host)
            assert len(starts) == 20
            # One that is late in being read comes nearer to the next; as a whole they cannot be faster.
            assert starts[-1] - starts[0] > 19 * 0.05 - 0.04
            assert sorted(later - earlier for earlier, later in pairwise(starts))[10] > 0.04


def test_while_a_host_has_its_delay_the_downloads_of_others_go_on(home: Home, hosts: Server) -> None:
    home.write(show(hosts, "a", A, 3), show(hosts, "b", B, 3), settings={"host_delay": 0.7})
    assert home.run().code == 0
    downloads = [path for path in asked(hosts) if path.endswith(".mp3")]
    assert sorted(downloads) == ["/a/1.mp3", "/a/2.mp3", "/a/3.mp3", "/b/1.mp3", "/b/2.mp3", "/b/3.mp3"]
    assert all(one[1] != other[1] for one, other in pairwise(downloads)), downloads
    for show_of in "ab":
        assert [path for path in downloads if path[1] == show_of] == sorted(path for path in downloads if path[1] == show_of)
    for host in (A, B):
        times = [request.at for request in hosts.requests if request.host == host]
        assert all(later - earlier > 0.6 for earlier, later in pairwise(times))


def test_while_the_feeds_of_a_host_fill_its_places_the_downloads_of_others_go_on(home: Home, hosts: Server) -> None:
    quick, slow, other = show(hosts, "quick", A, 2, delay=1.5), show(hosts, "slow", A, 2, delay=3), show(hosts, "other", B, 2)
    hosts.routes["/go"] = Reply(302, headers={"Location": hosts.url("/slow.xml", A)}, delay=0.5)
    home.write(quick, {**slow, "url": hosts.url("/go", B)}, other, settings={"per_host": 1})
    assert home.run().code == 0
    answered = first(hosts, "/slow.xml").at + 3
    assert first(hosts, "/other/2.mp3").at < answered
    assert first(hosts, "/quick/1.mp3").at > answered - 0.1
    assert len(home.files()) == 6
    assert hosts.peak(A) == 1
    assert asked(hosts)[-4:] == ["/quick/1.mp3", "/quick/2.mp3", "/slow/1.mp3", "/slow/2.mp3"], "plans go on in the order in which they came"


def test_a_redirect_to_a_host_that_cannot_be_asked_yet_is_followed_later_and_asked_for_once(home: Home, hosts: Server) -> None:
    subscription = show(hosts, "a", A, 2)
    for number in (1, 2):
        hosts.routes[f"/real/{number}.mp3"] = hosts.routes[f"/a/{number}.mp3"]
    hosts.routes["/a/1.mp3"] = Reply(302, headers={"Location": "/step"})                            # to the same host
    hosts.routes["/step"] = Reply(302, headers={"Location": hosts.url("/real/1.mp3", B)})           # to another one
    hosts.routes["/a/2.mp3"] = Reply(302, headers={"Location": hosts.url("/real/2.mp3", B)})
    home.write(subscription, settings={"host_delay": 0.4})
    done = home.run()
    assert (done.code, done.err, len(home.files())) == (0, "", 2)
    assert sorted(asked(hosts)) == sorted(["/a.xml", "/a/1.mp3", "/step", "/real/1.mp3", "/a/2.mp3", "/real/2.mp3"])
    times = [request.at for request in hosts.requests if request.host == A]
    assert all(later - earlier > 0.3 for earlier, later in pairwise(times))


def test_redirects_of_a_download_without_end_end_even_if_each_is_put_off(home: Home, hosts: Server) -> None:
    subscription = show(hosts, "a", A)
    hosts.routes["/a/1.mp3"] = lambda request: Reply(302, headers={"Location": f"/a/1.mp3?{len(hosts.requests)}"})
    home.write(subscription, settings={"host_delay": 0.01})
    done = home.run()
    assert done.code == 1 and "more than 20 redirects" in done.err
    assert hosts.count("/a/1.mp3") == 21


def test_a_part_that_cannot_be_gone_on_with_is_asked_for_from_the_start_when_its_host_may_be_asked_again(home: Home, hosts: Server) -> None:
    subscription = show(hosts, "a", A)
    whole = hosts.routes["/a/1.mp3"]
    hosts.routes["/a/1.mp3"] = Reply(body=mp3("/a/1.mp3"), type="audio/mpeg", etag='"1"', cut=1000)
    home.write(subscription, settings={"host_delay": 0.2})
    assert home.run().code == 1
    assert isinstance(whole, Reply)
    hosts.routes["/a/1.mp3"] = [Reply(416), whole]
    done = home.run()
    assert (done.code, done.err) == (0, "")
    assert home.files() == {"a/1.mp3": mp3("/a/1.mp3")}
    assert [request.headers.get("range") for request in hosts.seen("/a/1.mp3")] == [None, "bytes=1000-", None]


def test_a_feed_that_waits_for_its_host_takes_no_place_from_the_feeds_of_others(home: Home, hosts: Server) -> None:
    slow = [show(hosts, f"slow{n}", A, delay=1.5) for n in range(4)]
    home.write(*slow, show(hosts, "other", B), settings={"parallel": 2, "per_host": 1})
    assert home.run().code == 0
    assert first(hosts, "/other/1.mp3").at < first(hosts, "/slow0.xml").at + 1.5
    assert len(home.files()) == 5


def test_while_one_feed_waits_for_its_next_try_other_feeds_and_downloads_go_on(home: Home, hosts: Server) -> None:
    failing = show(hosts, "failing", A)
    answer = hosts.routes["/failing.xml"]
    assert isinstance(answer, Reply)
    hosts.routes["/failing.xml"] = [Reply(503, headers={"Retry-After": "3"}), answer]
    home.write(failing, show(hosts, "a", A, 2), show(hosts, "b", B, 2), settings={"parallel": 1, "per_host": 1})
    assert home.run().code == 0
    last = asked(hosts).index("/failing.xml", 1)
    assert set(asked(hosts)[:last]) == {"/failing.xml", "/a.xml", "/a/1.mp3", "/a/2.mp3", "/b.xml", "/b/1.mp3", "/b/2.mp3"}
    assert len(home.files()) == 5


def test_while_one_download_waits_for_its_next_try_the_others_go_on(home: Home, hosts: Server) -> None:
    failing = show(hosts, "failing", A)
    episode = hosts.routes["/failing/1.mp3"]
    assert isinstance(episode, Reply)
    hosts.routes["/failing/1.mp3"] = [Raw(), Reply(503), episode]
    home.write(failing, show(hosts, "late", B, 2, delay=0.5), settings={"timeout": 3})
    done = home.run()
    assert (done.code, done.err, len(home.files())) == (0, "", 3)
    tries = [index for index, path in enumerate(asked(hosts)) if path == "/failing/1.mp3"]
    assert len(tries) == 3
    assert tries[0] < asked(hosts).index("/late/1.mp3") < tries[-1]
