"""A small web server on 127.0.0.1 that gives out episodes, well or badly, and bytes that are audio."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def mp3(frames: int, seed: int = 1) -> bytes:
    """MPEG 1 layer III frames of 417 bytes each, 128 kbit/s at 44.1 kHz, all different by ``seed``."""
    return b"".join(b"\xff\xfb\x90\x00" + bytes((seed + n + i) % 200 for i in range(413)) for n in range(frames))


@dataclass
class Reply:
    """How one request is answered. ``status`` 200 becomes 206 where a range is asked for and ``ranges`` is set."""

    body: bytes = b""
    status: int = 200
    type: str = "audio/mpeg"
    etag: str = '"one"'
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    total: int | None = None            # the length told where it is not that of the body; -1: none is told
    cut: int | None = None              # bytes sent before the connection is closed
    stall: int | None = None            # bytes sent before silence
    drip: tuple[int, float] | None = None       # bytes, and the seconds between them
    at_once: int = 0                    # bytes sent before it begins to drip
    range_start: int | None = None      # the start that a 206 claims, where it is another than the one asked for


class Origin:
    """Routes: path -> the replies to its requests in their order, the last one for ever."""

    def __init__(self) -> None:
        self.routes: dict[str, list[Reply]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                origin.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"

    def give(self, path: str, *replies: Reply | bytes) -> str:
        """Sets the replies of a path; its URL."""
        self.routes[path] = [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]
        return self.base + path

    def asked(self, path: str) -> list[dict[str, str]]:
        """The headers of the requests for a path, names in lower case."""
        return [headers for name, headers in self.requests if name == path]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.split("?")[0]
        self.requests.append((path, {name.lower(): value for name, value in request.headers.items()}))
        replies = self.routes.get(path, [Reply(b"no such thing", 404, "text/plain")])
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        try:
            self._send(request, reply)
        except OSError:
            request.close_connection = True

    def _send(self, request: BaseHTTPRequestHandler, reply: Reply) -> None:
        start, status, body = 0, reply.status, reply.body
        asked = request.headers.get("Range", "")
        same = request.headers.get("If-Range", reply.etag) == reply.etag
        extra = dict(reply.headers)
        if asked and reply.ranges and status == 200 and same:
            start = int(asked.removeprefix("bytes=").split("-")[0])
            if start >= len(body):
                status, body, start = 416, b"", 0
                extra["Content-Range"] = f"bytes */{len(reply.body)}"
            else:
                status = 206
                claimed = start if reply.range_start is None else reply.range_start
                extra["Content-Range"] = f"bytes {claimed}-{len(body) - 1}/{reply.total or len(body)}"
        rest = body[start:]
        request.send_response(status)
        for name, value in {"Content-Type": reply.type, "ETag": reply.etag, **extra}.items():
            if value:
                request.send_header(name, value)
        if reply.total == -1:
            request.send_header("Connection", "close")
        else:
            request.send_header("Content-Length", str(len(rest) if reply.total is None or status != 200 else reply.total))
        request.end_headers()
        if reply.drip:
            count, pause = reply.drip
            request.wfile.write(rest[: reply.at_once])
            for at in range(reply.at_once, len(rest), count):
                request.wfile.write(rest[at : at + count])
                if self.closing.wait(pause):
                    break
        elif reply.stall is not None:
            request.wfile.write(rest[: reply.stall])
            self.closing.wait()
        else:
            request.wfile.write(rest if reply.cut is None else rest[: reply.cut])
        if reply.cut is not None or reply.stall is not None or reply.total is not None:
            request.close_connection = True


@contextmanager
def origin() -> Iterator[Origin]:
    server = Origin()
    thread = threading.Thread(target=server.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.server.shutdown()
        server.server.server_close()
        thread.join()


def until(condition: object, seconds: float = 10) -> None:
    """Waits for a condition (a callable) to hold."""
    end = time.monotonic() + seconds
    while not condition():      # type: ignore[operator]
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)
