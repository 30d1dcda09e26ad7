"""Status by status, fault by fault: how often poca asks within a run, what it says, and what it records for the next runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus

import pytest

from poca.model import Fate
from tests.server import HANG, Raw, Reply, Route, Server
from tests.subscribing import Desk
from tests.world import Show

HOUR, DAY = 3600, 86_400
SETTINGS = {"timeout": 1, "max_feed_mb": 0.05, "max_episode_mb": 0.05}
PAGE = b"<!DOCTYPE html><html><body>Not today.</body></html>"
CLOSED = {"Connection": "close"}     # on a connection that is kept a request without an answer is sent once more
REST = b"Content-Length: 20000\r\n\r\n"


@dataclass(frozen=True)
class Row:
    answer: Route
    tries: int          # within a run
    words: str
    patience: int = 3   # failures in a row with which the pauses begin
    wait: int = 0       # seconds before which it is not tried again, from the first failure on


def status(number: int, retry_after: str = "") -> Reply:
    return Reply(number, PAGE, {"Retry-After": retry_after} if retry_after else {}, "text/html")


def answers(number: int) -> str:
    return f"the server answers {number} ({HTTPStatus(number).phrase})"


FINAL = [
    201, 202, 203, 204, 206, 300, 302, 305, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 413, 415, 418, 421, 422, 423, 425, 426, 431,
    451,
]
PASSING = [429, 500, 501, 502, 503, 504, 505, 507, 508, 511]
COMMON = {
    **{str(number): Row(status(number), 3, answers(number)) for number in PASSING},
    "599, which has no name": Row(status(599), 3, "the server answers 599"),
    "no answer": Row(Raw(HANG), 3, "the server does not answer (no bytes for 1 s)"),
    "closed without an answer": Row(Raw(0.01), 3, "the server closed the connection without an answer"),
    "closed in its headers": Row(Raw(b"HTTP/1.1 200 OK\r\nContent-"), 3, "the server closed the connection without an answer"),
    "no HTTP": Row(Raw(b"220 mail.example.org\r\n\r\n"), 1, "the server's answer is no HTTP, or has too many headers"),
    "headers too long": Row(Raw(b"HTTP/1.1 200 OK\r\nX: " + bytes(70_000)), 1, "the headers of the answer are too long"),
    "two lengths": Row(Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 7\r\n\r\nabcde"), 1, "the server tells two lengths for one answer"),
    "another coding": Row(Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 1, "a coding that was not asked for"),
    "cut before its body": Row(Raw(b"HTTP/1.1 200 OK\r\n" + REST), 3, "the answer broke off after 0 B of 20.0 kB"),
    "cut in its body": Row(Raw(b"HTTP/1.1 200 OK\r\n" + REST, bytes(1500)), 1, "the answer broke off after 1.5 kB of 20.0 kB"),
    "broken chunks": Row(Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nzz\r\n"), 1, "the answer broke off after 5 B"),
    "silent in its body": Row(Raw(b"HTTP/1.1 200 OK\r\n" + REST, bytes(1500), HANG), 1, "the answer stalled (no bytes for 1 s, after 1.5 kB)"),
    "redirect to ftp": Row(Reply(301, headers={"Location": "ftp://127.0.0.1/x"}), 1, "which is no http or https address that can be asked"),
}
FEEDS = {
    **COMMON,
    **{str(number): Row(status(number), 1, answers(number)) for number in FINAL},
    "503 with a Retry-After that is short": Row(status(503, "1"), 3, answers(503), wait=1),
    "503 with a Retry-After that is long": Row(status(503, "7200"), 1, answers(503), wait=7200),
    "429 with a Retry-After that is very long": Row(status(429, "9999999"), 1, answers(429), wait=DAY),
    "503 with a Retry-After that is junk": Row(status(503, "soon"), 3, answers(503)),
    "404 with a Retry-After": Row(status(404, "7200"), 1, answers(404), wait=7200),
    "a page": Row(Reply(body=PAGE, type="text/html"), 1, "a web page came instead of a feed"),
    "nothing": Row(Reply(body=b""), 1, "the answer was empty instead of a feed"),
    "too large": Row(Reply(body=bytes(60_000)), 1, "the feed is larger than max_feed_mb allows"),
    "packed in its own way": Row(Reply(body=b"x", headers={"Content-Encoding": "br"}), 1, "an encoding that poca did not ask for"),
}
EPISODES = {
    **COMMON,
    **{str(number): Row(status(number), 1, answers(number), 2 if number in (404, 410) else 3) for number in FINAL},
    "503 with a Retry-After": Row(status(503, "7"), 1, answers(503), wait=7),
    "429 with a Retry-After that is very long": Row(status(429, "9999999"), 1, answers(429), wait=DAY),
    "a page": Row(Reply(body=PAGE, type="audio/mpeg"), 1, "a page or a message came instead of the episode", 2),
    "nothing": Row(Reply(body=b"", type="audio/mpeg"), 1, "the answer was empty"),
    "too large": Row(Reply(body=bytes(60_000), type="audio/mpeg"), 1, "max_episode_mb allows 0.05 MB", 2),
    "a redirect to it that is closed": Row(Reply(302, headers={"Location": "http://127.0.0.1:1/"}), 3, "connection refused (after a redirect to"),
}
ONCE = set(COMMON) - {"503", "no HTTP"}     # what follows after the first failure is the same for all of these


def due(moment: int | None, now: float) -> int:
    """Seconds until a next try, 0 for the next run whenever it comes."""
    return 0 if moment is None else round(moment - now)


@pytest.mark.parametrize("what", FEEDS)
def test_a_feed(what: str, desk: Desk, web: Server) -> None:
    row = FEEDS[what]
    show, other = Show(web, "pod").publish(), Show(web, "other").publish()
    web.routes[other.path] = Reply(body=other.feed(), headers=CLOSED)
    desk.write(show.subscription(), other.subscription(), settings=SETTINGS)
    assert desk.poca().code == 0
    before = desk.histories()["Pod"]
    web.routes[show.path] = row.answer
    for failures in range(1, row.patience + 1):
        asked = web.count(show.path)
        now = time.time()
        done = desk.poca(*["Pod", "Other"] if row.wait else [])      # named: asked now
        history = desk.histories()["Pod"]
        assert (done.code, web.count(show.path) - asked) == (1, row.tries), done
        assert row.words in done.err and "Pod: " in done.err, done
        assert (history.failures, row.words in history.error) == (failures, True)
        assert abs(due(history.next_try, now) - (row.wait or (2 * HOUR if failures >= row.patience else 0))) < 10
        assert (history.packed, history.validators, history.episodes) == (before.packed, before.validators, before.episodes)
        if row.wait or what in ONCE:
            return
    asked = web.count(show.path)
    assert desk.poca().code == 0 and web.count(show.path) == asked, "it waits, silently"
    web.routes[show.path] = lambda request: show.reply()
    assert desk.poca("Pod").code == 0
    history = desk.histories()["Pod"]
    assert (history.failures, history.next_try, history.error) == (0, None, "")


@pytest.mark.parametrize("what", EPISODES)
def test_an_episode(what: str, desk: Desk, web: Server) -> None:
    row = EPISODES[what]
    show = Show(web, "pod").publish()
    item = show.items[0]
    good = web.routes[item.path]
    web.routes[show.path] = Reply(body=show.feed(), headers=CLOSED)
    desk.write(show.subscription(), settings=SETTINGS)
    web.routes[item.path] = row.answer
    for failures in range(1, row.patience + 1):
        asked, now = web.count(item.path), time.time()
        done = desk.poca()
        episode = desk.episodes("Pod")[item.title]
        assert (done.code, web.count(item.path) - asked) == (1, row.tries), done
        assert row.words in done.err and item.title in done.err, done
        assert (episode.fate, episode.failures, row.words in episode.error) == (Fate.PENDING, failures, True)
        assert abs(due(episode.next_try, now) - (row.wait or (2 * HOUR if failures >= row.patience else 0))) < 10
        assert desk.files() == {}
        if row.wait or what in ONCE:
            return
    asked = web.count(item.path)
    assert desk.poca().code == 0 and web.count(item.path) == asked, "it waits, silently"
    web.routes[item.path] = good
    assert desk.poca("Pod").code == 0
    assert desk.files() == {"Pod/1.mp3": item.body}
    episode = desk.episodes("Pod")[item.title]
    assert (episode.fate, episode.failures, episode.next_try, episode.error) == (Fate.HELD, 0, None, "")


def test_an_answer_without_content_that_has_one_all_the_same_is_not_taken_for_the_next_one(desk: Desk, web: Server) -> None:
    show = Show(web, "pod").publish()
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(PAGE) + PAGE
    web.routes[show.path] = lambda _: Raw(b"HTTP/1.1 204 No Content\r\nContent-Length: %d\r\n\r\n" % len(forged) + forged)
    desk.write(show.subscription(), settings={**SETTINGS, "per_host": 1})
    done = desk.poca()
    assert done.code == 1 and answers(204) in done.err and web.count(show.path) == 1
