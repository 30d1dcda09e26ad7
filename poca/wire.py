"""Connections: one GET over HTTP/1.1, on the sockets of :mod:`poca.sockets` (owns http.client).

Built on http.client: an hourly run is a hundred round trips, which cost four times as much by way of a session of
requests, and that bounds neither an answer as a whole nor the length of a line it reads between two chunks.

Imported by :mod:`poca.web` when the first request is made.
"""

from __future__ import annotations

import http.client
import math
import re
import select
import socket
import ssl
import threading
import time
import weakref
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes, urlsplit

from poca import text
from poca.errors import Trouble, WebError
from poca.sockets import UNREACHABLE, Bounded, BoundedTLS, Limits, dial, tls_context

DRAIN = 4096        # bytes: the rest of an answer that is read, so that its connection can be used again
DRAIN_TIME = 0.5    # seconds that this may take


@dataclass(frozen=True, slots=True)
class Route:
    """Where a connection leads: to a host and port, by TLS or not, straight or by way of a proxy (an http:// URL)."""

    scheme: str
    host: str
    port: int
    proxy: str = ""


# --------------------------------------------------------------------------------------------------------- connections

class _ProxyRefusal(OSError):
    """A proxy that would not connect us; ``str`` tells its status."""


class _Connection(http.client.HTTPConnection):
    """A connection along a route. ``wire`` is its socket, also after http.client let go of it."""

    wire: Bounded

    def __init__(self, route: Route, context: ssl.SSLContext | None) -> None:
        super().__init__(route.host, route.port)
        self.default_port = 443 if route.scheme == "https" else 80     # which is left out of the header Host
        self.route, self.context = route, context

    def dial(self, limits: Limits) -> None:
        """Raises OSError."""
        route = self.route
        if route.proxy:
            proxy = urlsplit(route.proxy)
            self.sock = self.wire = dial(proxy.hostname or "", proxy.port or 80, limits)
        else:
            self.sock = self.wire = dial(route.host, route.port, limits)
        if self.context is None:
            return
        if route.proxy:
            self._tunnel_by_proxy()
        self.wire.settimeout(limits.left())
        self.sock = self.context.wrap_socket(self.wire, server_hostname=route.host)
        assert isinstance(self.sock, BoundedTLS)
        self.wire = self.sock
        self.wire.patience, self.wire.deadline = limits.timeout, limits.deadline

    def _tunnel_by_proxy(self) -> None:
        """RFC 9110, 9.3.6."""
        host = f"[{self.route.host}]" if ":" in self.route.host else self.route.host
        lines = [f"CONNECT {host}:{self.route.port} HTTP/1.1", f"Host: {host}:{self.route.port}"]
        lines += [f"{name}: {value}" for name, value in proxy_login(self.route.proxy).items()]
        self.wire.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        answer = http.client.HTTPResponse(self.wire, method="CONNECT")
        try:
            answer.begin()
        finally:
            answer.close()
        if answer.status != 200:
            raise _ProxyRefusal(f"it answers {answer.status}")

    def quiet(self) -> bool:
        """Nothing to read: a kept connection on which something is was closed by the server, or is out of step."""
        poll = select.poll()
        poll.register(self.wire, select.POLLIN)
        return not poll.poll(0)


def basic(user: str) -> str:
    """The value of Authorization for the user info of a URL, percent-decoded (RFC 7617, in UTF-8)."""
    name, _, password = user.partition(":")
    return "Basic " + b64encode(unquote_to_bytes(name) + b":" + unquote_to_bytes(password)).decode("ascii")


def proxy_login(proxy: str) -> dict[str, str]:
    """The header with the user info of the proxy's URL, if it has any."""
    user = urlsplit(proxy).netloc.rpartition("@")[0]
    return {"Proxy-Authorization": basic(user)} if user else {}


_GONE = (ConnectionError, http.client.BadStatusLine, ssl.SSLError)     # what a kept connection gives that its server closed


class Wire:
    """All connections of a run, for all threads: those that were read to the end are kept, at most ``keep`` of them."""

    def __init__(self, keep: int, env: Mapping[str, str]) -> None:
        self._keep, self._env = keep, env
        self._idle: list[_Connection] = []      # the one used last at the end
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._context_lock = threading.Lock()
        weakref.finalize(self, _close_all, self._idle)

    def get(self, route: Route, target: str, headers: Mapping[str, str], limits: Limits) -> Response:
        """Sends one request, and reads the status and headers of the answer. Raises WebError."""
        connection = self._take(route)
        if connection is not None:
            try:
                return self._ask(connection, target, headers, limits)
            except _GONE:
                pass        # closed by the server in the very moment: nothing was answered, so it is sent again
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise _unanswered(error, route, limits) from error
        connection = _Connection(route, self._tls() if route.scheme == "https" else None)
        try:
            connection.dial(limits)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise _unconnected(error, route, limits) from error
        except BaseException:
            connection.close()
            raise
        try:
            return self._ask(connection, target, headers, limits)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _unanswered(error, route, limits) from error

    def _ask(self, connection: _Connection, target: str, headers: Mapping[str, str], limits: Limits) -> Response:
        wire = connection.wire
        wire.patience, wire.deadline = limits.timeout, limits.deadline
        try:
            wire.settimeout(limits.left())
            connection.request("GET", target, headers=dict(headers))
            answer = connection.getresponse()
            if wire.ended:      # before the empty line: http.client takes headers that broke off for whole
                answer.close()
                raise ConnectionResetError
        except BaseException:
            connection.close()
            raise
        try:
            return Response(self, connection, answer, limits)
        except BaseException:
            answer.close()
            connection.close()
            raise

    def _take(self, route: Route) -> _Connection | None:
        while True:
            with self._lock:
                found = next((index for index in reversed(range(len(self._idle))) if self._idle[index].route == route), None)
                if found is None:
                    return None
                connection = self._idle.pop(found)
            if connection.quiet():
                return connection
            connection.close()

    def put(self, connection: _Connection) -> None:
        """Keeps a connection whose answer was read to the end."""
        with self._lock:
            self._idle.append(connection)
            oldest = self._idle.pop(0) if len(self._idle) > self._keep else None
        if oldest:
            oldest.close()

    def close(self) -> None:
        with self._lock:
            _close_all(self._idle)

    def _tls(self) -> ssl.SSLContext:
        with self._context_lock:
            if self._context is None:
                self._context = tls_context(self._env)
            return self._context


def _close_all(connections: list[_Connection]) -> None:
    while connections:
        connections.pop().close()


# ------------------------------------------------------------------------------------------------------------- answers

class Headers(Mapping[str, str]):
    """The headers of an answer by their names in any case; of one that came twice the values stand side by side."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            name, value = name.lower(), value.strip(" \t\r\n")
            self._values[name] = f"{self._values[name]}, {value}" if name in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Response:
    """One answer: ``status``, ``headers``, ``total`` (bytes of the body as told, None where they are not), and the body."""

    def __init__(self, pool: Wire, connection: _Connection, answer: http.client.HTTPResponse, limits: Limits) -> None:
        self._pool, self._connection, self._answer, self._limits = pool, connection, answer, limits
        self._got = 0
        self._over = False
        self.status = answer.status
        self.headers = Headers(answer.getheaders())
        self._keep = not answer.will_close
        bodiless = answer.length == 0 and self.status in (204, 304)
        self.total = 0 if bodiless else _told_length(self.headers)
        if bodiless:
            # One that comes with a body all the same must not be taken for the next answer.
            self._keep = self._keep and self.headers.get("content-length", "0") == "0" and "transfer-encoding" not in self.headers
        elif not answer.chunked:
            answer.length = self.total
            self._keep = self._keep and self.total is not None
        if self.total == 0:
            self._end()

    def unlimited(self) -> None:
        """Lets the body take as long as it wants, as long as bytes come."""
        self._limits = Limits(self._limits.timeout, math.inf, math.inf)

    def read(self, most: int) -> bytes:
        """What has arrived, at most so many bytes; b"" at the end. Raises WebError."""
        if self._over or most <= 0:
            return b""
        wire = self._connection.wire
        # The second bound is for chunks: their sizes and the trailer may drip, too, and are no bytes of the body.
        wire.patience, wire.deadline = self._limits.timeout, min(self._limits.deadline, time.monotonic() + 2 * self._limits.timeout)
        try:
            piece = self._answer.read1(most)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._drop()
            raise self._broken(error) from error
        self._got += len(piece)
        if not piece and self.total is not None and self._got < self.total:
            self._drop()
            raise self._broken(None)
        if not piece or self._got == self.total:
            self._end()
        return piece

    def _broken(self, error: Exception | None) -> WebError:
        host, first = self._connection.route.host, not self._got
        if isinstance(error, TimeoutError):
            return _too_late(self._limits, host, self._got)
        told = f" of {text.size(self.total)}" if self.total else ""
        return WebError(f"the answer broke off after {text.size(self._got)}{told}", Trouble.CUT, again=first, host=host)

    def _end(self) -> None:
        self._over = True
        self._answer.close()
        if self._keep:
            self._pool.put(self._connection)
        else:
            self._connection.close()

    def close(self) -> None:
        """The connection is kept where little of the answer is missing and comes at once."""
        if not self._over and self._keep and self.total is not None and self.total - self._got <= DRAIN:
            wire = self._connection.wire
            wire.patience, wire.deadline = DRAIN_TIME, time.monotonic() + DRAIN_TIME
            try:
                while self._got < self.total and (piece := self._answer.read1(DRAIN)):
                    self._got += len(piece)
            except (OSError, http.client.HTTPException, ValueError):
                pass        # nobody asked for these bytes
            if self._got == self.total:
                self._end()
        self._drop()

    def _drop(self) -> None:
        if not self._over:
            self._over, self._keep = True, False
            self._answer.close()
            self._connection.close()


def _told_length(headers: Headers) -> int | None:
    """Content-Length (RFC 9110, 8.6), None where it is not told, junk, or void by chunks. Raises WebError where two
    lengths are told, and for codings of the transfer that nobody asked for."""
    coding = headers.get("transfer-encoding", "").lower()
    if coding not in ("", "identity"):
        if coding != "chunked":
            raise WebError("the server sends in a coding that was not asked for (Transfer-Encoding)", Trouble.ENCODING)
        return None
    told = {part.strip() for part in headers.get("content-length", "").split(",")}
    if len(told) > 1:
        raise WebError("the server tells two lengths for one answer", Trouble.CUT)
    length = told.pop()
    return int(length) if re.fullmatch(r"[0-9]{1,99}", length) else None


# --------------------------------------------------------------------------------------------------------------- words

_CERTIFICATE_FAULTS = {     # X509_V_ERR_... of OpenSSL
    9: "is not valid yet", 10: "has expired", 18: "is signed by itself, by nobody who is trusted", 19: "comes from an unknown issuer",
    20: "comes from an unknown issuer", 21: "comes from an unknown issuer", 23: "was revoked", 62: "is for another name", 64: "is for another name",
}


def _too_late(limits: Limits, host: str, got: int = 0) -> WebError:
    """A wait that took too long, after ``got`` bytes of a body; before the first of them another try may help."""
    if time.monotonic() >= limits.deadline:
        return WebError(f"the answer did not come whole within {limits.allowed:.3g} s", Trouble.STALLED, again=not got, host=host)
    silence = f"no bytes for {limits.timeout:g} s"
    if got:
        return WebError(f"the answer stalled ({silence}, after {text.size(got)})", Trouble.STALLED, host=host)
    return WebError(f"the server does not answer ({silence})", Trouble.SILENT, again=True, host=host)


def _unconnected(error: Exception, route: Route, limits: Limits) -> WebError:
    """Why there is no connection."""
    def failed(words: str, trouble: Trouble = Trouble.CONNECT, *, again: bool = True, no_network: bool = False) -> WebError:
        way = f"no connection by the proxy {text.shown_url(route.proxy)}: " if route.proxy else ""
        return WebError(way + words, trouble, again=again, no_network=no_network, host=route.host)

    match error:
        case socket.gaierror(errno=socket.EAI_AGAIN):
            return failed("the name of the server cannot be looked up (no network, or the name service does not answer)", no_network=True)
        case socket.gaierror():
            return failed("no such host", no_network=True)
        case TimeoutError():
            return failed(f"the server does not answer (no connection within {min(limits.timeout, limits.allowed):.3g} s)")
        case ssl.SSLCertVerificationError():
            fault = _CERTIFICATE_FAULTS.get(error.verify_code, "cannot be trusted")
            return failed(f"the certificate of the server {fault}", Trouble.CERTIFICATE, again=False)
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST"):
            return failed("the server does not speak https here", again=False)
        case ssl.SSLError():
            return failed("no secure connection could be agreed on with the server")
        case ConnectionRefusedError():
            return failed("connection refused")
        case _ProxyRefusal():
            return failed(str(error))
        case ConnectionError() | http.client.HTTPException() | ValueError():
            return failed("the connection was closed before it was made")
        case OSError() if error.errno in UNREACHABLE:
            return failed("the network or the host cannot be reached", no_network=True)
    return failed(f"no connection ({text.shown(getattr(error, 'strerror', None) or 'of an unknown reason')})")


def _unanswered(error: Exception, route: Route, limits: Limits) -> WebError:
    """Why a request that was sent got no answer."""
    match error:
        case TimeoutError():
            return _too_late(limits, route.host)
        case http.client.LineTooLong():
            return WebError("the headers of the answer are too long", Trouble.CUT, host=route.host)
        case OSError():     # also RemoteDisconnected, which is both
            return WebError("the server closed the connection without an answer", Trouble.SILENT, again=True, host=route.host)
    return WebError("the server's answer is no HTTP, or has too many headers", Trouble.CUT, host=route.host)
