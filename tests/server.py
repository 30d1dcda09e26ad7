"""A scripted web server for tests, on raw sockets of loopback, so that it can misbehave in every way.

    with Server() as server:
        server.routes["/feed.xml"] = Reply(body=FEED, etag='"1"')
        server.routes["/a.mp3"] = [Reply(503), Reply(body=MP3)]         # one a request, the last one for ever
        server.routes["/bad"] = Raw(b"HTTP/1.1 200 OK\\r\\n", 0.5, b"X")  # bytes as they are, seconds, or HANG, RESET
        server.routes["/any"] = lambda request: Reply(body=request.target.encode())
        ... server.url("/feed.xml"), server.url("/feed.xml", host="127.0.0.2", user="me:secret")
        server.count("/feed.xml")           # requests for that path, whatever the query
        server.seen("/feed.xml")            # [Request, ...]: target, headers (lower case), host, at (seconds), connection
        server.peak("127.0.0.2")            # the most requests that were under way at once at that host

A path without a route gets a 404. ``hosts`` are loopback addresses that share one port, each a host of its own, told
apart by the header Host. ``tls`` names a certificate in tests/data/tls: "good" (of the authority ca.pem, for 127.0.0.1
to 127.0.0.3 and localhost), "expired", "wrong-name", or "stranger" (signed by itself).

A request is under way from its last byte to the last byte of the answer. Connections are kept as HTTP/1.1 says; a Raw
answer is followed by the connection's end.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

TLS = Path(__file__).parent / "data" / "tls"
CA = TLS / "ca.pem"
HANG = "hang"       # says nothing more until the client or the test leaves
RESET = "reset"     # ends the connection by an RST


@dataclass(frozen=True)
class Request:
    method: str
    target: str                 # path and query as sent
    headers: dict[str, str]     # by lower-case names
    host: str                   # the header Host, without the port
    at: float                   # time.monotonic() when it was read
    connection: int             # number of the connection that it came by

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass
class Reply:
    """One answer. ``etag`` and ``last_modified`` also make a 304 of it for who sends them back."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    type: str = ""
    etag: str = ""
    last_modified: str = ""
    length: int | str | None = -1       # what Content-Length tells; -1: the truth, None: nothing, and the end is the close
    chunked: bool = False
    ranges: bool = False                # honours Range (from a start) and If-Range
    delay: float = 0                    # seconds before the answer
    drip: float = 0                     # seconds before each byte of the body
    cut: int | None = None              # after so many bytes of the body the connection ends
    stall: int | None = None            # after so many bytes of the body nothing more comes
    close: bool = False                 # the connection ends after the answer, unannounced


class Raw:
    """The bytes of an answer as they are, numbers being pauses in seconds; iterables within are gone through."""

    def __init__(self, *steps: Step | Iterable[Step]) -> None:
        self.steps = steps

    def __iter__(self) -> Iterator[Step]:
        for step in self.steps:
            if isinstance(step, bytes | float | int | str):
                yield step
            else:
                yield from step


Step = bytes | float | str
Answer = Reply | Raw
Route = Answer | list[Answer] | Callable[[Request], Answer]


class Server:
    def __init__(self, *hosts: str, tls: str = "") -> None:
        self.hosts = hosts or ("127.0.0.1",)
        self.scheme = "https" if tls else "http"
        self.routes: dict[str, Route] = {}
        self.requests: list[Request] = []
        self.connections = 0
        self._context = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(TLS / f"{tls}.pem")
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._peaks: Counter[str] = Counter()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._sockets: set[socket.socket] = set()
        self._listeners: list[socket.socket] = []

    def __enter__(self) -> Server:
        port = 0
        for host in self.hosts:
            listener = socket.create_server((host, port), backlog=128)
            port = listener.getsockname()[1]
            self._listeners.append(listener)
            self._start(self._accept, listener)
        self.port = port
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            open_ones = list(self._sockets)
        for sock in open_ones:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    # ------------------------------------------------------------------------------------------------ what tests ask

    def url(self, target: str, host: str = "", user: str = "") -> str:
        return f"{self.scheme}://{user}{'@' * bool(user)}{host or self.hosts[0]}:{self.port}{target}"

    def seen(self, path: str) -> list[Request]:
        with self._lock:
            return [request for request in self.requests if request.path == path]

    def count(self, path: str) -> int:
        return len(self.seen(path))

    def peak(self, host: str = "") -> int:
        with self._lock:
            return self._peaks[host or self.hosts[0]]

    # ------------------------------------------------------------------------------------------------ how it answers

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while not self._ended.is_set():
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                number = self.connections
            self._start(self._serve, sock, number)

    def _serve(self, sock: socket.socket, number: int) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with self._lock:
                self._sockets.add(sock)
            if self._context:
                with self._lock:
                    self._sockets.discard(sock)
                sock = self._context.wrap_socket(sock, server_side=True)
                with self._lock:
                    self._sockets.add(sock)
            with sock.makefile("rb") as lines:
                while (request := self._read(lines, number)) and not self._ended.is_set():
                    with self._under_way(request.host):
                        last, goes_on = self._answer(sock, request)
                    sock.sendall(last)      # only now, or the client's next request might be counted beside this one
                    if not goes_on:
                        return
        except OSError:
            pass        # the client left, or did not like the certificate
        finally:
            with self._lock:
                self._sockets.discard(sock)
            sock.close()

    def _read(self, lines: Iterable[bytes], number: int) -> Request | None:
        first, headers = "", {}
        for line in lines:
            text = line.decode("latin-1").rstrip("\r\n")
            if not first:
                first = text
            elif not text:
                method, target, _ = first.split(" ", 2)
                request = Request(method, target, headers, headers.get("host", "").rpartition(":")[0], time.monotonic(), number)
                with self._lock:
                    self.requests.append(request)
                return request
            else:
                name, _, value = text.partition(":")
                headers[name.lower()] = value.strip()
        return None

    @contextlib.contextmanager
    def _under_way(self, host: str) -> Iterator[None]:
        with self._lock:
            self._running[host] += 1
            self._peaks[host] = max(self._peaks[host], self._running[host])
        try:
            yield
        finally:
            with self._lock:
                self._running[host] -= 1

    def _choose(self, request: Request) -> Answer:
        route = self.routes.get(request.target, self.routes.get(request.path, Reply(404, b"not here")))
        if callable(route):
            return route(request)
        if isinstance(route, list):
            with self._lock:
                return route.pop(0) if len(route) > 1 else route[0]
        return route

    def _answer(self, sock: socket.socket, request: Request) -> tuple[bytes, bool]:
        """Answers but for the last byte, which is returned, and whether the connection goes on."""
        answer = self._choose(request)
        if isinstance(answer, Raw):
            self._play(sock, answer)
            return b"", False
        reply = _conditional(answer, request)
        if reply.delay and self._ended.wait(reply.delay):
            return b"", False
        goes_on = not reply.close and (reply.length is not None or reply.chunked)
        body = reply.body
        head = _head(reply)
        broken = reply.cut is not None or reply.stall is not None
        if broken:
            body, goes_on = body[:reply.cut if reply.cut is not None else reply.stall], False
        if reply.chunked:
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in _parts(body)) + (b"" if broken else b"0\r\n\r\n")
        if reply.drip:
            sock.sendall(head)
            self._play(sock, (step for byte in body for step in (reply.drip, bytes([byte]))))
            return b"", goes_on
        if reply.stall is not None:
            self._play(sock, [head + body, HANG])
            return b"", False
        whole = head + body
        sock.sendall(memoryview(whole)[:-1])
        return whole[-1:], goes_on

    def _play(self, sock: socket.socket, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, bytes):
                sock.sendall(step)
            elif step == HANG:
                sock.settimeout(0.1)
                while not self._ended.is_set():
                    try:
                        if not sock.recv(1024):
                            return
                    except TimeoutError:
                        continue
            elif step == RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif self._ended.wait(float(step)):
                return


def _conditional(reply: Reply, request: Request) -> Reply:
    sent = request.headers
    matches = sent["if-none-match"] == reply.etag if "if-none-match" in sent else sent.get("if-modified-since") == reply.last_modified
    if reply.status == 200 and (reply.etag or reply.last_modified) and matches:
        return Reply(304, etag=reply.etag, last_modified=reply.last_modified, length="", delay=reply.delay)
    if reply.status == 200 and reply.ranges and "range" in sent and sent.get("if-range", reply.etag) == reply.etag:
        start = int(sent["range"].removeprefix("bytes=").partition("-")[0])
        size = len(reply.body)
        if start >= size:
            return Reply(416, headers={"Content-Range": f"bytes */{size}"})
        headers = {**reply.headers, "Content-Range": f"bytes {start}-{size - 1}/{size}"}
        return Reply(206, reply.body[start:], headers, reply.type, reply.etag, reply.last_modified, delay=reply.delay, drip=reply.drip)
    return reply


def _head(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} So it is"]
    if reply.chunked:
        lines.append("Transfer-Encoding: chunked")
    elif reply.length is not None and reply.length != "":
        lines.append(f"Content-Length: {len(reply.body) if reply.length == -1 else reply.length}")
    told = {"Content-Type": reply.type, "ETag": reply.etag, "Last-Modified": reply.last_modified, **reply.headers}
    lines += [f"{name}: {value}" for name, value in told.items() if value]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _parts(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 1000):
        yield body[start:start + 1000]
