"""Servers that mean harm, or are merely broken: each costs bounded time and memory, and nobody else's answer."""

from __future__ import annotations

import contextlib
import gc
import gzip
import itertools
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import requests  # noqa: F401 - now, or its code would be counted as what a server costs

from poca.errors import Trouble, WebError
from poca.fetch import Body, Unmodified, fetch
from poca.model import Settings, Validators
from poca.web import Web
from tests.server import CA, HANG, RESET, Raw, Reply, Server

TIMEOUT = 0.15      # seconds
WHOLE = 5 * TIMEOUT
FEED = b"<rss>" + b"<item/>" * 500 + b"</rss>"
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("127.0.0.1", "127.0.0.2") as server:
        yield server


@pytest.fixture
def web() -> Iterator[Web]:
    web = make()
    yield web
    web.close()


def make(env: dict[str, str] | None = None, **options: object) -> Web:
    return Web(settings(**options), {"NETRC": "/dev/null", **(env or {})})


def settings(**options: object) -> Settings:
    return Settings(Path("base"), Path("state"), **{"timeout": TIMEOUT, "max_feed_mb": 1, **options})


def ask(web: Web, url: str) -> Unmodified | Body:
    return fetch(web, url, Validators(), "", settings(), aside=nullcontext, pause=time.sleep, chance=lambda: 0.5)


def fails(web: Web, url: str) -> WebError:
    with pytest.raises(WebError) as caught:
        ask(web, url)
    return caught.value


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < seconds + 1


@contextmanager
def costing(most: int) -> Iterator[None]:
    """Bytes at the peak."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def drip(data: bytes, pause: float = TIMEOUT / 3) -> Iterator[bytes | float]:
    for byte in data:
        yield pause
        yield bytes([byte])


def for_ever(*steps: bytes | float) -> Iterator[bytes | float]:
    return itertools.cycle(steps)


SLOW: dict[str, Callable[[], Raw]] = {
    "says nothing": lambda: Raw(HANG),
    "drips its status line": lambda: Raw(drip(OK * 99)),
    "drips its headers": lambda: Raw(OK, drip(b"X-A: b\r\n" * 99)),
    "never ends its headers": lambda: Raw(OK, for_ever(TIMEOUT / 3, b"X-A: b\r\n")),
    "only says that one should go on": lambda: Raw(for_ever(TIMEOUT / 3, b"HTTP/1.1 100 Continue\r\n\r\n")),
    "drips its body": lambda: Raw(OK, b"Content-Length: 1000\r\n\r\n", drip(FEED)),
    "drips its body without a length": lambda: Raw(OK, b"\r\n", drip(FEED)),
    "drips the size of a chunk": lambda: Raw(OK, b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n", drip(b"0" * 999)),
    "drips the trailer after its chunks": lambda: Raw(OK, b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n", drip(b"X: y\r\n" * 999)),
    "drips its packed body": lambda: Raw(OK, b"Content-Encoding: gzip\r\n\r\n", drip(gzip.compress(os.urandom(999)))),
    "stops in its headers": lambda: Raw(OK, b"X-A", HANG),
    "stops before its body": lambda: Raw(OK, b"Content-Length: 1000\r\n\r\n", HANG),
    "stops in its body": lambda: Raw(OK, b"Content-Length: 1000\r\n\r\nabc", HANG),
    "stops in a chunk": lambda: Raw(OK, b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc", HANG),
}


@pytest.mark.parametrize("how", SLOW)
def test_a_slow_server_is_given_up_in_time(server: Server, web: Web, how: str) -> None:
    server.routes["/f"] = lambda _: SLOW[how]()
    with within(12 * TIMEOUT):
        error = fails(web, server.url("/f"))
    assert error.trouble in (Trouble.SILENT, Trouble.STALLED)
    assert f"no bytes for {TIMEOUT:g} s" in str(error) or "did not come whole within" in str(error)


@pytest.mark.parametrize("how", ["says nothing", "drips its status line", "drips its headers", "drips its body", "stops in its body"])
def test_a_slow_server_behind_tls_is_given_up_in_time(how: str) -> None:
    web = make({"REQUESTS_CA_BUNDLE": str(CA)})
    with Server(tls="good") as server:
        server.routes["/f"] = lambda _: SLOW[how]()
        with within(WHOLE), pytest.raises(WebError) as caught, web.open(server.url("/f"), deadline=WHOLE) as answer:
            while answer.read(1000):
                pass
    assert caught.value.trouble in (Trouble.SILENT, Trouble.STALLED)


BROKEN: dict[str, Callable[[], Raw]] = {
    "closes at once": lambda: Raw(),
    "resets at once": lambda: Raw(RESET),
    "resets in its headers": lambda: Raw(OK, b"X-A", 0.02, RESET),
    "resets in its body": lambda: Raw(OK, b"Content-Length: 1000\r\n\r\nabc", 0.02, RESET),
    "closes in its headers": lambda: Raw(OK, b"X-A: b\r\n"),
    "closes in its body": lambda: Raw(OK, b"Content-Length: 1000\r\n\r\nabc"),
    "is no web server": lambda: Raw(b"220 mail.example ESMTP\r\n"),
    "speaks HTTP 0.9": lambda: Raw(FEED),
    "has a status without a number": lambda: Raw(b"HTTP/1.1 two hundred\r\n\r\n"),
    "has a status of five digits": lambda: Raw(b"HTTP/1.1 20000 OK\r\n\r\n"),
    "has an unknown version": lambda: Raw(b"HTTP/3.0 200 OK\r\n\r\n" + FEED),
    "sends NULs": lambda: Raw(bytes(100_000)),
    "sends one header without end": lambda: Raw(OK, b"X-A: ", itertools.repeat(b"x" * 65_536, 1000)),
    "sends headers without end": lambda: Raw(OK, itertools.repeat(b"X-A: b\r\n" * 1000, 1000)),
    "sends a status line without end": lambda: Raw(itertools.repeat(b"x" * 65_536, 1000)),
    "sends a chunk size without end": lambda: Raw(OK, b"Transfer-Encoding: chunked\r\n\r\n", itertools.repeat(b"1" * 65_536, 1000)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_server_is_an_error_in_bounded_time_and_memory(server: Server, web: Web, how: str) -> None:
    server.routes["/f"] = lambda _: BROKEN[how]()
    with within(12 * TIMEOUT), costing(5_000_000):
        error = fails(web, server.url("/f"))
    assert error.trouble in (Trouble.SILENT, Trouble.CUT)
    server.routes["/f"] = Reply(body=FEED)
    assert isinstance(ask(web, server.url("/f")), Body)


@pytest.mark.parametrize("head", [b"", b"Content-Length: 999999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n"])
def test_a_body_without_end_costs_no_more_than_the_limit(server: Server, web: Web, head: bytes) -> None:
    stuff = b"%x\r\n%b\r\n" % (65_536, b"x" * 65_536) if b"chunked" in head else os.urandom(65_536)
    first = gzip.compress(b"") if b"gzip" in head else b""
    server.routes["/f"] = lambda _: Raw(OK + head + b"\r\n", first, itertools.repeat(stuff))
    with within(12 * TIMEOUT), costing(6_000_000):
        assert fails(web, server.url("/f")).trouble is Trouble.TOO_LARGE
    assert server.count("/f") == 1


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("announced", [True, False])
def test_a_packed_bomb_costs_no_more_than_the_limit(server: Server, web: Web, layers: int, announced: bool) -> None:
    bomb = bytes(100_000_000)
    for _ in range(layers):
        bomb = gzip.compress(bomb, 1)
    server.routes["/f"] = Reply(body=bomb, headers={"Content-Encoding": ", ".join(["gzip"] * layers)} if announced else {})
    with costing(6_000_000):
        assert fails(web, server.url("/f")).trouble is Trouble.TOO_LARGE


def test_a_redirect_with_a_large_a_slow_or_an_endless_body_costs_nothing(server: Server, web: Web) -> None:
    there = b"HTTP/1.1 302 Found\r\nLocation: /feed\r\n"
    server.routes |= {
        "/large": lambda _: Raw(there, b"Content-Length: 100000000\r\n\r\n", itertools.repeat(bytes(100_000), 1000)),
        "/slow": lambda _: Raw(there, b"Content-Length: 1000\r\n\r\n", drip(FEED)),
        "/silent": lambda _: Raw(there, b"Content-Length: 1000\r\n\r\n", HANG),
        "/endless": lambda _: Raw(there, b"\r\n", itertools.repeat(bytes(65_536))),
        "/feed": Reply(body=FEED),
    }
    for path in ("/large", "/slow", "/silent", "/endless"):
        with within(4 * TIMEOUT), costing(2_000_000):
            assert isinstance(ask(web, server.url(path)), Body)


def test_slow_redirects_share_the_time_of_one_answer(server: Server, web: Web) -> None:
    numbers = itertools.count()
    server.routes["/f"] = lambda _: Reply(302, headers={"Location": f"/f?{next(numbers)}"}, delay=TIMEOUT * 0.4)
    with within(WHOLE), pytest.raises(WebError) as caught, web.open(server.url("/f"), deadline=WHOLE):
        pass
    assert caught.value.trouble is Trouble.STALLED
    assert server.count("/f") < 15


def test_the_page_of_an_error_is_not_read(server: Server, web: Web) -> None:
    server.routes["/f"] = lambda _: Raw(b"HTTP/1.1 404 Not Found\r\n\r\n", itertools.repeat(bytes(65_536)))
    with within(TIMEOUT), costing(2_000_000):
        assert fails(web, server.url("/f")).status == 404


# --------------------------------------------------------------------------------------------------------- connections

@contextmanager
def listener(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port whose connections are handed to ``talk``."""
    ended = threading.Event()

    def serve(listening: socket.socket) -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError), listening.accept()[0] as client:
                talk(client)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        yield listening.getsockname()[1]
        ended.set()
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def wait_for_the_end(client: socket.socket) -> None:
    while client.recv(65_536):
        pass


def drip_handshake(client: socket.socket) -> None:
    for byte in b"\x16\x03\x03\x40\x00" + bytes(1000):
        client.sendall(bytes([byte]))
        time.sleep(TIMEOUT / 3)


def tell_alert(client: socket.socket) -> None:
    client.recv(65_536)
    client.sendall(b"\x15\x03\x03\x00\x02\x02\x28")


@pytest.mark.parametrize("talk", [wait_for_the_end, drip_handshake, tell_alert, lambda client: None])
def test_a_tls_handshake_that_hangs_drips_or_fails_ends_in_time(web: Web, talk: Callable[[socket.socket], None]) -> None:
    with listener(talk) as port, within(12 * TIMEOUT):
        error = fails(web, f"https://127.0.0.1:{port}/f")
    assert error.trouble is Trouble.CONNECT and error.again and not error.no_network


@pytest.mark.parametrize("talk", [wait_for_the_end, drip_handshake, lambda client: client.sendall(b"junk\r\n"), lambda client: None])
def test_a_proxy_that_hangs_or_talks_nonsense_ends_in_time(talk: Callable[[socket.socket], None]) -> None:
    with listener(talk) as port, within(12 * TIMEOUT):
        error = fails(make({"https_proxy": f"http://127.0.0.1:{port}"}), "https://example.invalid/f")
    assert error.trouble is Trouble.CONNECT and "proxy" in str(error)


def test_a_connection_that_is_never_made_ends_in_time(web: Web) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as fillers:
        for _ in range(4):      # the queue takes a few, and then nobody is let in
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        with within(12 * TIMEOUT):
            error = fails(web, f"http://127.0.0.1:{full.getsockname()[1]}/f")
    assert (error.trouble, error.no_network) == (Trouble.CONNECT, False)
    assert f"no connection within {TIMEOUT:g} s" in str(error)


# ------------------------------------------------------------------------------------------------------------ downloads

def read_all(web: Web, url: str) -> bytes:
    with web.open(url, deadline=None) as answer:
        return b"".join(iter(lambda: answer.read(65_536), b""))


def test_a_download_may_take_its_time_as_long_as_bytes_come(server: Server) -> None:
    server.routes["/a"] = lambda _: Raw(OK, b"Content-Length: 40\r\n\r\n", drip(b"x" * 40, 0.04))
    begin = time.monotonic()
    assert read_all(make(timeout=0.25), server.url("/a")) == b"x" * 40
    assert time.monotonic() - begin > 5 * 0.25


@pytest.mark.parametrize("how", [how for how in SLOW if "its body" not in how and "its packed body" not in how])
def test_a_download_is_given_up_when_no_byte_of_it_comes(server: Server, web: Web, how: str) -> None:
    server.routes["/a"] = lambda _: SLOW[how]()
    with within(WHOLE), pytest.raises(WebError) as caught:
        read_all(web, server.url("/a"))
    assert caught.value.trouble in (Trouble.SILENT, Trouble.STALLED)


# -------------------------------------------------------------------------------------------------------------- others

def test_slow_servers_keep_no_other_host_waiting(server: Server, web: Web) -> None:
    server.routes |= {"/slow": lambda _: SLOW["drips its headers"](), "/f": Reply(body=FEED)}
    with ThreadPoolExecutor(12) as pool:
        slow = [pool.submit(ask, web, server.url("/slow")) for _ in range(8)]
        time.sleep(TIMEOUT / 2)
        for _ in range(20):
            ask(web, server.url("/f", "127.0.0.2"))
        assert not any(one.done() for one in slow)


def test_nothing_is_left_open_after_trouble(server: Server) -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    if not Path("/proc/self/fd").exists():
        pytest.skip("open files cannot be counted here")
    web = make()
    before, threads = open_files(), threading.active_count()
    for how in ("stops in its headers", "stops in its body", "drips the size of a chunk"):
        server.routes["/f"] = lambda _, how=how: SLOW[how]()
        fails(web, server.url("/f"))
    for how in BROKEN:
        server.routes["/f"] = lambda _, how=how: BROKEN[how]()
        fails(web, server.url("/f"))
    web.close()
    deadline = time.monotonic() + 5
    while (open_files() > before or threading.active_count() > threads) and time.monotonic() < deadline:
        time.sleep(0.05)        # the server's side
    assert open_files() <= before
    assert threading.active_count() <= threads
