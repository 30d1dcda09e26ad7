"""One conditional GET of a feed: validators, tries and pauses, packing, within bounds; by a server on loopback."""

from __future__ import annotations

import gzip
import hashlib
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from poca.errors import Trouble, WebError
from poca.fetch import Body, Unmodified, fetch
from poca.model import Settings, Validators
from poca.web import Web
from tests.server import HANG, Raw, Reply, Request, Server

FEED = b"<rss>" + b"<item>an episode</item>" * 2000 + b"</rss>"
HASH = hashlib.sha256(FEED).hexdigest()

Ask = Callable[..., Unmodified | Body]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


class Client:
    """Asks for feeds with one web, and notes the pauses, which take no time."""

    def __init__(self, **options: object) -> None:
        self.settings = Settings(Path("base"), Path("state"), **{"timeout": 2, **options})
        self.web = Web(self.settings, {"NETRC": "/dev/null"})
        self.pauses: list[float] = []
        self.aside_when_paused: list[bool] = []
        self.aside_now = False

    @contextmanager
    def aside(self) -> Iterator[None]:
        self.aside_now = True
        yield
        self.aside_now = False

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.aside_when_paused.append(self.aside_now)

    def ask(self, url: str, validators: Validators = Validators(), body_hash: str = "", chance: float = 0.5) -> Unmodified | Body:  # noqa: B008
        return fetch(
            self.web, url, validators, body_hash, self.settings, aside=self.aside, pause=self.pause, chance=lambda: chance
        )

    def content(self, url: str) -> bytes:
        answer = self.ask(url)
        assert isinstance(answer, Body)
        return answer.content

    def fails(self, url: str, validators: Validators = Validators()) -> WebError:  # noqa: B008
        with pytest.raises(WebError) as caught:
            self.ask(url, validators)
        return caught.value


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.web.close()


# ----------------------------------------------------------------------------------------------------------- unchanged

def test_a_feed_comes_with_all_that_the_next_request_needs(server: Server, client: Client) -> None:
    server.routes["/f"] = Reply(body=FEED, type="text/xml; charset=x", etag='"1"', last_modified="Mon, 02 Jan 2023 03:04:05 GMT")
    answer = client.ask(server.url("/f", user="me:secret"))
    assert answer == Body(FEED, "text/xml; charset=x", server.url("/f"), Validators('"1"', "Mon, 02 Jan 2023 03:04:05 GMT"), HASH)
    assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"
    assert not {"if-none-match", "if-modified-since"} & set(server.requests[0].headers)


@pytest.mark.parametrize("etag", ['"abc"', 'W/"abc"', "unquoted", '"a,b"', '"a"b"', "'x'", '"\xe9\xff"', "0", '"  two  blanks"'])
def test_validators_go_back_exactly_as_they_came(server: Server, client: Client, etag: str) -> None:
    server.routes["/f"] = Reply(body=FEED, etag=etag, last_modified="yesterday, or so")
    first = client.ask(server.url("/f"))
    assert first.validators == Validators(etag, "yesterday, or so")
    assert isinstance(client.ask(server.url("/f"), first.validators), Unmodified)
    assert server.requests[1].headers["if-none-match"] == etag
    assert server.requests[1].headers["if-modified-since"] == "yesterday, or so"


def test_a_304_is_an_unmodified_feed_with_the_validators_as_they_are_now(server: Server, client: Client) -> None:
    server.routes["/f"] = [Reply(304), Reply(304, etag='"2"')]
    old = Validators('"1"', "some day")
    assert client.ask(server.url("/f"), old, HASH) == Unmodified(old, server.url("/f"))
    assert client.ask(server.url("/f"), old, HASH).validators == Validators('"2"', "some day")


def test_a_304_that_nobody_asked_for_is_an_error(server: Server, client: Client) -> None:
    server.routes["/f"] = Reply(304)
    error = client.fails(server.url("/f"))
    assert (error.trouble, error.status) == (Trouble.STATUS, 304)
    assert client.fails(server.url("/f"), Validators("a\r\nX: y", "☃")).status == 304
    assert not {"if-none-match", "if-modified-since", "x"} & set(server.requests[1].headers)


def test_the_same_bytes_again_are_an_unmodified_feed_with_new_validators(server: Server, client: Client) -> None:
    server.routes["/f"] = Reply(body=FEED, etag='"2"')
    assert client.ask(server.url("/f"), Validators('"1"'), HASH) == Unmodified(Validators('"2"'), server.url("/f"))
    assert isinstance(client.ask(server.url("/f"), Validators('"1"'), "0" * 64), Body)


def test_an_unmodified_feed_tells_that_it_moved_for_good(server: Server, client: Client) -> None:
    server.routes |= {"/old": Reply(301, headers={"Location": "/new"}), "/new": Reply(body=FEED, etag='"1"')}
    assert client.ask(server.url("/old"), Validators('"1"')) == Unmodified(Validators('"1"'), server.url("/new"), server.url("/new"))
    assert client.ask(server.url("/old")).permanent == server.url("/new")


# ------------------------------------------------------------------------------------------------------ tries, pauses

@pytest.mark.parametrize("trouble", [Reply(500), Reply(503, b"busy" * 9999), Reply(429), Raw(), Raw(b"HTTP/1.1 200 OK\r\n"), Reply(body=FEED, cut=0)])
def test_what_may_pass_is_tried_twice_again_after_growing_pauses(server: Server, client: Client, trouble: Reply | Raw) -> None:
    server.routes |= {"/f": trouble, "/g": [trouble, trouble, Reply(body=FEED)]}
    assert client.fails(server.url("/f")).again
    assert server.count("/f") == 3
    assert len(client.pauses) == 2 and client.pauses[0] < client.pauses[1] and client.aside_when_paused == [True, True]
    assert client.content(server.url("/g")) == FEED


def test_pauses_grow_with_the_tries_whatever_chance_says(server: Server, client: Client) -> None:
    server.routes["/f"] = Reply(500)
    for chance in (0.0, 0.999):
        with pytest.raises(WebError):
            client.ask(server.url("/f"), chance=chance)
    low, high = client.pauses[:2], client.pauses[2:]
    assert low[0] < high[0] < low[1] < high[1]


def test_a_refused_connection_is_tried_again(client: Client) -> None:
    with Server() as closed:
        url = closed.url("/f")
    assert client.fails(url).trouble is Trouble.CONNECT
    assert len(client.pauses) == 2


@pytest.mark.parametrize("status", [201, 204, 206, 300, 302, 400, 401, 403, 404, 410, 451])
def test_other_statuses_are_final(server: Server, client: Client, status: int) -> None:
    server.routes["/f"] = Reply(status, FEED)
    error = client.fails(server.url("/f"))
    assert (error.trouble, error.status, client.pauses) == (Trouble.STATUS, status, [])
    assert "<rss>" not in str(error)


def test_a_body_that_breaks_off_is_not_tried_again(server: Server, client: Client) -> None:
    server.routes["/f"] = Reply(body=FEED, cut=1000)
    error = client.fails(server.url("/f"))
    assert (error.trouble, server.count("/f")) == (Trouble.CUT, 1)
    assert "1.0 kB of 46.0 kB" in str(error)


@pytest.mark.parametrize(("asked", "pause"), [("1", 1), ("2", 2), ("junk", 2 / 15), ("0", 2 / 15), ("-9", 2 / 15)])
def test_retry_after_is_waited_for_up_to_the_timeout(server: Server, client: Client, asked: str, pause: float) -> None:
    server.routes["/f"] = [Reply(503, headers={"Retry-After": asked}), Reply(body=FEED)]
    assert client.content(server.url("/f")) == FEED
    assert client.pauses == pytest.approx([pause])


def test_a_longer_retry_after_ends_the_tries_and_is_told(server: Server, client: Client) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    for asked, least in (("3", 3), (date, 590), ("99999999", 86_400)):
        server.routes["/f"] = Reply(429, headers={"Retry-After": asked})
        error = client.fails(server.url("/f"))
        assert error.retry_after is not None and least <= error.retry_after <= max(least, 600)
    assert (server.count("/f"), client.pauses) == (3, [])


def test_all_tries_and_pauses_end_within_ten_timeouts(server: Server) -> None:
    client = Client(timeout=0.2)
    server.routes["/f"] = lambda _: Raw(b"HTTP/1.1 200 OK\r\n", *[0.05, b"X-A: b\r\n"] * 90)
    begin = time.monotonic()
    error = client.fails(server.url("/f"))
    assert error.trouble is Trouble.STALLED and "whole within" in str(error)
    assert 1.0 <= time.monotonic() - begin < 12 * 0.2 + 1
    assert server.count("/f") == 2


def test_waiting_for_a_busy_host_costs_no_try_and_no_time(server: Server) -> None:
    client = Client(timeout=0.1, per_host=1)
    server.routes["/long"] = Raw(b"HTTP/1.1 200 OK\r\n\r\n", *[0.05, b"x"] * 30)
    server.routes["/f"] = [Reply(500), Reply(body=FEED)]

    def hold() -> None:
        with client.web.open(server.url("/long"), deadline=None) as answer:
            while answer.read(1000):
                pass

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        time.sleep(0.1)
        assert client.content(server.url("/f")) == FEED
        held.result()


# ------------------------------------------------------------------------------------------------------------- packing

def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def deflated(data: bytes, bits: int = 15) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


MEMBERS = gzipped(FEED[:100]) + gzipped(b"") + gzipped(FEED[100:])


@pytest.mark.parametrize(("coding", "body"), [
    ("gzip", gzipped(FEED)), ("X-GZIP", gzipped(FEED)), ("gzip", MEMBERS), ("gzip", gzipped(FEED) + bytes(1000)),
    ("deflate", deflated(FEED)), ("deflate", deflated(FEED, -15)), ("identity", FEED), ("gzip, gzip", gzipped(gzipped(FEED))),
    ("deflate, gzip", gzipped(deflated(FEED))), ("", FEED),
])
@pytest.mark.parametrize("how", ["length", "chunked", "close", "bytes"])
def test_a_packed_feed_is_unpacked_however_it_is_sent(server: Server, client: Client, coding: str, body: bytes, how: str) -> None:
    headers = {"Content-Encoding": coding} if coding else {}
    if how == "bytes":
        body, sent = body, b"".join(b"1\r\n%b\r\n" % body[n:n + 1] for n in range(len(body))) + b"0\r\n\r\n"
        server.routes["/f"] = Raw(f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + sent)
    else:
        server.routes["/f"] = Reply(body=body, headers=headers, chunked=how == "chunked", length=None if how == "close" else -1)
    answer = client.ask(server.url("/f"))
    assert isinstance(answer, Body)
    assert (answer.content, answer.body_hash, answer.notes) == (FEED, HASH, ())


@pytest.mark.parametrize(("coding", "body"), [
    ("", gzipped(FEED)), ("", gzipped(gzipped(FEED))), ("gzip", gzipped(gzipped(FEED))), ("gzip", FEED),
    ("gzip", gzipped(FEED) + b"<!-- served by a cache -->"),
])
def test_packing_that_is_not_as_announced_is_undone_and_noted(server: Server, client: Client, coding: str, body: bytes) -> None:
    server.routes["/f"] = Reply(body=body, headers={"Content-Encoding": coding})
    answer = client.ask(server.url("/f"))
    assert isinstance(answer, Body)
    assert answer.content == FEED and answer.notes


@pytest.mark.parametrize(("coding", "body"), [
    ("gzip", gzipped(FEED)[:-1]), ("gzip", gzipped(FEED)[:50]), ("gzip", MEMBERS[:-9]), ("deflate", deflated(FEED)[:-5]),
    ("", gzipped(FEED)[:-1]), ("gzip", gzipped(FEED)[:3]), ("deflate", b"\x78"),
])
def test_a_feed_cut_inside_its_packing_is_an_error(server: Server, client: Client, coding: str, body: bytes) -> None:
    server.routes["/f"] = Reply(body=body, headers={"Content-Encoding": coding}, length=None)
    assert client.fails(server.url("/f")).trouble is Trouble.CUT


@pytest.mark.parametrize(("coding", "body"), [
    ("br", b"x" * 50), ("zstd", b""), ("gzip, br", b"x"), ("gzip" + ", gzip" * 9, b"x"), ("deflate", FEED),
    ("gzip", b"\x1f\x8b\x08\x00" + b"junk" * 99), ("gzip", gzipped(b"") * 20_000),
])
def test_packing_that_cannot_be_undone_is_an_error(server: Server, client: Client, coding: str, body: bytes) -> None:
    server.routes["/f"] = Reply(body=body, headers={"Content-Encoding": coding})
    error = client.fails(server.url("/f"))
    assert (error.trouble, server.count("/f")) == (Trouble.ENCODING, 1)


@pytest.mark.parametrize("coding", ["", "gzip", "deflate", "gzip, gzip"])
def test_a_feed_up_to_the_limit_is_taken_and_one_past_it_not(server: Server, coding: str) -> None:
    client = Client(max_feed_mb=0.5)
    pack: Callable[[bytes], bytes] = {
        "": bytes, "gzip": gzipped, "deflate": deflated, "gzip, gzip": lambda data: gzipped(gzipped(data)),
    }[coding]
    for size in (500_000, 500_001):
        for length in (-1, None):
            server.routes["/f"] = Reply(body=pack(b"x" * size), headers={"Content-Encoding": coding}, length=length)
            if size == 500_000:
                assert len(client.content(server.url("/f"))) == size
            else:
                assert client.fails(server.url("/f")).trouble is Trouble.TOO_LARGE


def test_an_empty_answer_is_an_empty_feed(server: Server, client: Client) -> None:
    for coding in ("", "gzip", "deflate"):
        server.routes["/f"] = Reply(headers={"Content-Encoding": coding})
        assert client.content(server.url("/f")) == b""


# -------------------------------------------------------------------------------------------------------------- framing

@pytest.mark.parametrize("head", [
    b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 200\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: junk\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length:\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Length: %d\r\n" % (len(FEED), len(FEED)),
    b"HTTP/1.1 200 OK\r\nContent-Length: %d, %d\r\n" % (len(FEED), len(FEED)), b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\nContent-Length: %d\n" % len(FEED), b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n" % len(FEED),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n",
])
def test_an_answer_is_taken_whose_end_is_clear(server: Server, client: Client, head: bytes) -> None:
    server.routes["/f"] = lambda _: Raw(head + b"\r\n" + FEED)
    assert client.content(server.url("/f")) == FEED
    assert client.content(server.url("/f")) == FEED


@pytest.mark.parametrize(("answer", "trouble"), [
    (b"Content-Length: 5\r\nContent-Length: 7\r\n\r\n" + FEED, Trouble.CUT),
    (b"Content-Length: 5, 7\r\n\r\n" + FEED, Trouble.CUT),
    (b"Content-Length: %b\r\n\r\n" % (b"9" * 90) + FEED, Trouble.TOO_LARGE),
    (b"Content-Length: 99999\r\n\r\n" + FEED, Trouble.CUT),
    (b"Transfer-Encoding: gzip, chunked\r\n\r\n" + FEED, Trouble.ENCODING),
    (b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n" + FEED, Trouble.CUT),
    (b"Transfer-Encoding: chunked\r\n\r\n-5\r\n" + FEED, Trouble.CUT),
    (b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n", Trouble.CUT),
    (b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc", Trouble.CUT),
    (b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + FEED, Trouble.CUT),
    (b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 200_000, Trouble.CUT),
])
def test_an_answer_whose_end_is_not_clear_or_not_reached_is_an_error(server: Server, client: Client, answer: bytes, trouble: Trouble) -> None:
    server.routes["/f"] = lambda _: Raw(b"HTTP/1.1 200 OK\r\n" + answer)
    assert client.fails(server.url("/f")).trouble is trouble


@pytest.mark.parametrize(("head", "wait"), [(b"", 0.1), (b"Content-Length: 9\r\n", 0), (b"Transfer-Encoding: chunked\r\n", 0)])
def test_a_304_with_a_body_does_not_pass_for_the_next_answer(server: Server, client: Client, head: bytes, wait: float) -> None:
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    server.routes["/f"] = lambda _: Raw(b"HTTP/1.1 304 Not Modified\r\n" + head + b"\r\n", 0.05, forged, 0.2)
    server.routes["/g"] = Reply(body=FEED)
    assert isinstance(client.ask(server.url("/f"), Validators('"1"')), Unmodified)
    time.sleep(wait)
    assert client.content(server.url("/g")) == FEED


@pytest.mark.parametrize("told", ["{0}", "{0}, {0}", "{0}\r\nContent-Length: {0}"])
def test_an_answer_ends_with_its_told_length_even_if_the_server_stays(server: Server, client: Client, told: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {told.format(len(FEED))}\r\n\r\n"
    server.routes["/f"] = Raw(head.encode() + FEED, HANG)
    assert client.content(server.url("/f")) == FEED
    assert client.pauses == []


def test_every_request_of_many_threads_is_answered_once(server: Server) -> None:
    client = Client(per_host=8)
    server.routes["/f"] = lambda request: Reply(body=FEED + request.target.encode(), headers={"Content-Encoding": "identity"})

    def one(number: int) -> bool:
        answer = fetch(
            client.web, server.url(f"/f?{number}"), Validators(), "", client.settings, aside=nullcontext, pause=client.pause, chance=lambda: 0.5
        )
        return isinstance(answer, Body) and answer.content == FEED + f"/f?{number}".encode()

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(100)))
    seen: list[Request] = server.seen("/f")
    assert len(seen) == len({request.target for request in seen}) == 100
    assert server.connections <= 8
