"""docs/http.rst is true: each answer and fault in its tables is played to poca, which asks as often and says what stands there."""

from __future__ import annotations

import gzip
import re
import socket
from pathlib import Path

import pytest

from tests.server import HANG, Raw, Reply, Route, Server
from tests.subscribing import Desk
from tests.unit.test_docs import REPOSITORY, literals, rows
from tests.world import Show, mp3

TABLES = REPOSITORY / "docs" / "http.rst"
SETTINGS = {"timeout": 1, "max_feed_mb": 0.01, "max_episode_mb": 0.1, "min_speed": 0}
PAGE = Reply(body=b"<!DOCTYPE html><html><body>Not today.</body></html>", type="text/html")
EPISODE = mp3("the one", 40)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(EPISODE)


class Row:
    def __init__(self, cells: list[object]) -> None:
        what, requests, _, told = cells
        self.what, self.requests = what.astext(), int(requests.astext())        # type: ignore[attr-defined]
        words = literals(told)[0] if literals(told) else ""                     # type: ignore[arg-type]
        self.told = ".*".join(map(re.escape, words.split("…")))


def table(title: str) -> dict[str, Row]:
    return {row.what: row for row in map(Row, rows(TABLES, title))}


FEEDS, EPISODES = table("Feeds"), table("Episodes")


def busy(status: int, retry_after: str = "") -> Reply:
    return Reply(status, headers={"Retry-After": retry_after} if retry_after else {})


def moved(web: Server, status: int, target: str) -> Reply:
    return Reply(status, headers={"Location": target if ":" in target else web.url(target)})


# -------------------------------------------------------------------------------------------------------------- feeds

def feeds(web: Server, show: Show) -> dict[str, Route]:
    """How each row is played; ``show`` has one more episode than poca knows, but where that would not do."""
    feed = show.feed()
    web.routes["/there.xml"] = Reply(body=feed)
    return {
        "200": Reply(body=feed),
        "304": Reply(body=feed, etag='"same"'),
        "304 that was not asked for": Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        "301, 308": moved(web, 308, "/there.xml"),
        "302, 303, 307": moved(web, 307, "/there.xml"),
        "another 3xx, or one without Location": Reply(300),
        "a circle of redirects": moved(web, 302, show.path),
        "more than 20 redirects": lambda request: moved(web, 302, f"{request.path}?{'again' * (request.target.count('again') + 1)}"),
        "a redirect to what is not fetched": moved(web, 302, "ftp://127.0.0.1/feed.xml"),
        "another 2xx": Reply(204, length=""),
        "401, 403, another 4xx": Reply(403),
        "404": Reply(404),
        "410": Reply(410),
        "429": busy(429),
        "5xx": busy(503),
        "429 or 5xx with Retry-After up to timeout": busy(503, "1"),
        "429 or 5xx with a longer Retry-After": busy(503, "100"),
        "no answer in time": Raw(HANG),
        "closed without an answer": Raw(),
        "no HTTP": Raw(b"220 mail.example.org\r\n\r\n"),
        "broken off before the first byte of the body": Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        "broken off later": Reply(body=feed, cut=100),
        "silence after some of the body": Reply(body=feed, stall=100),
        "it drips, and is not whole in time": Reply(body=feed, drip=0.1),
        "gzip that was not announced": Reply(body=gzip.compress(feed)),
        "gzip that breaks off": Reply(body=gzip.compress(feed)[:-20], headers={"Content-Encoding": "gzip"}),
        "gzip that is damaged": Reply(body=gzip.compress(feed)[:15] + b"junk" * 40, headers={"Content-Encoding": "gzip"}),
        "a packing that was not asked for": Reply(body=feed, headers={"Content-Encoding": "br"}),
        "larger than max_feed_mb": Reply(body=feed + b" " * 20_000),
        "200, empty": Reply(body=b""),
        "200, a web page": PAGE,
        "200, a feed that breaks off": Reply(body=feed.partition(b"</item>")[0] + b"</item>\n<item><ti"),
        "200, a feed without items": Reply(body=b'<rss version="2.0"><channel><title>x</title></channel></rss>'),
    }


# These need another network, a certificate or a proxy: tests/edge/test_web.py.
ELSEWHERE = {
    "200 with the same bytes as before", "a redirect from https to http", "the name is not known", "the network or host cannot be reached",
    "the connection is refused", "no connection in time", "a certificate that cannot be trusted", "no https at that port", "TLS fails otherwise",
    "the proxy refuses",
}
CALM = {"200", "304", "302, 303, 307", "301, 308", "gzip that was not announced", "200, a feed without items"}


@pytest.mark.parametrize("what", sorted(set(FEEDS) - ELSEWHERE))
def test_a_feed_is_asked_as_often_as_the_table_says_and_its_sentence_is_told(what: str, desk: Desk, web: Server) -> None:
    show = Show(web, "pod").publish()
    desk.write(show.subscription(), settings=SETTINGS)
    if what == "304":
        web.routes[show.path] = Reply(body=show.feed(), etag='"same"')
    elif what == "304 that was not asked for":
        web.routes[show.path] = Reply(body=show.feed())
    assert desk.poca().code == 0
    if what not in ("304", "304 that was not asked for"):
        show.publish()
    before = web.count(show.path)
    web.routes[show.path] = feeds(web, show)[what]
    done = desk.poca("-v")
    asked = [request.target for request in web.seen(show.path)[before:] if request.target == show.path]
    assert (len(asked), done.code) == (FEEDS[what].requests, 0 if what in CALM else 1), done
    assert re.search(FEEDS[what].told, done.out + done.err), done


# ----------------------------------------------------------------------------------------------------------- episodes

def episodes(web: Server) -> dict[str, Route]:
    web.routes["/there.mp3"] = Reply(body=EPISODE, type="audio/mpeg")
    whole = Reply(body=EPISODE, type="audio/mpeg", etag='"1"', ranges=True)
    return {
        "200": whole,
        "206 to a request for the rest": whole,
        "200 to a request for the rest": Reply(body=EPISODE, type="audio/mpeg", etag='"1"'),
        "416, or another range than asked for": [Reply(416), whole],
        "206 that was not asked for": Reply(206, body=EPISODE),
        "301, 302, 303, 307, 308": moved(web, 302, "/there.mp3"),
        "401, 403, another 4xx": Reply(403),
        "404": Reply(404),
        "410": Reply(410),
        "429": busy(429),
        "5xx": busy(503),
        "429 or 5xx with Retry-After": busy(503, "1"),
        "no answer in time": Raw(HANG),
        "closed without an answer": Raw(),
        "broken off before the first byte of the body": Raw(HEAD),
        "broken off later": Reply(body=EPISODE, cut=5000),
        "silence after some of the body": Reply(body=EPISODE, stall=5000),
        "slower than min_speed": Reply(body=EPISODE, drip=0.02),
        "no length told, closed at the end": Reply(body=EPISODE, length=None),
        "empty": Reply(body=b"", type="audio/mpeg"),
        "a page or a message, whatever its type says": Reply(body=PAGE.body, type="audio/mpeg"),
        "neither audio nor video by bytes, type or extension": Reply(body=bytes(range(200, 256)) * 50, type="application/x-thing"),
        "packed, though asked not to": Reply(body=gzip.compress(EPISODE), headers={"Content-Encoding": "gzip"}, type="audio/mpeg"),
        "larger than max_episode_mb": Reply(body=EPISODE * 10, type="audio/mpeg"),
    }


RESUMED = {"206 to a request for the rest", "200 to a request for the rest", "416, or another range than asked for"}
REFUSED = "the connection is refused, the name is not known, or the like"


@pytest.mark.parametrize("what", sorted(set(EPISODES) - {"a certificate that cannot be trusted"}))
def test_an_episode_is_asked_for_as_often_as_the_table_says_and_its_sentence_is_told(what: str, desk: Desk, web: Server) -> None:
    show = Show(web, "pod").publish()
    if what == REFUSED:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            show.items[0].path = f"//127.0.0.1:{closed.getsockname()[1]}/1.mp3"
        web.routes[show.path] = Reply(body=show.feed().replace(web.url("").encode(), b"http:"))
    if what == "closed without an answer":
        web.routes[show.path] = Reply(body=show.feed(), headers={"Connection": "close"}, close=True)    # or it would be sent once more
    if "neither" in what:
        show.items[0].path = "/pod/1"
        web.routes[show.path] = Reply(body=show.feed().replace(b' type="audio/mpeg"', b""))
    speed = {"min_speed": 1_000_000} if what == "slower than min_speed" else {}
    desk.write(show.subscription(), settings={**SETTINGS, **speed})
    path = show.items[0].path
    if what in RESUMED:
        web.routes[path] = Reply(body=EPISODE, type="audio/mpeg", etag='"1"', cut=5000)
        assert desk.poca().code == 1
    before = web.count(path)
    if what != REFUSED:
        web.routes[path] = episodes(web)[what]
    done = desk.poca("-v")
    came = "downloaded" in EPISODES[what].told
    assert (done.code == 0) is came, done
    if what == REFUSED:
        assert done.out.count("tried again shortly") + 1 == EPISODES[what].requests
    else:
        assert web.count(path) - before == EPISODES[what].requests, done
    assert re.search(EPISODES[what].told, done.out + done.err), done
    assert bool(desk.files()) is came


def test_each_row_is_played_here_or_named_as_played_elsewhere(web: Server) -> None:
    show = Show(web, "pod").publish()
    assert set(FEEDS) - ELSEWHERE == set(feeds(web, show))
    assert set(EPISODES) - {REFUSED, "a certificate that cannot be trusted"} == set(episodes(web))
    assert Path(__file__).parents[1].joinpath("edge", "test_web.py").exists()
