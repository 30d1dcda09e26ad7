"""Requests on which every wait ends on time (owns requests and urllib3).

An adapter of requests sends, urllib3 keeps the connections of all threads; what is added here is how long a request may
take. Neither library bounds an answer as a whole: a server that drips a byte now and then holds a thread for ever. So the
connections have sockets whose every wait is no longer than what is left of the request. The one wait that no socket
bounds is the look-up of a name: it is done by a thread of its own, which is left behind when it takes too long.

Imported by :mod:`poca.web` when the first request is made.
"""

from __future__ import annotations

import errno
import http.client
import math
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, SystemTimeWarning
from urllib3.response import HTTPResponse

from poca import text
from poca.errors import Trouble, WebError

DRAIN = 4096        # bytes: the rest of an answer that is read, so that its connection can be used again
DRAIN_TIME = 0.5    # seconds that this may take
COOKIE = 4096       # characters (RFC 6265, 6.1); with a longer one no cookie of the answer is taken
ENOUGH = 16         # look-ups without an answer, after which the name service counts as out of reach
FAULTS = (OSError, HTTPError, http.client.HTTPException, ValueError)    # what the libraries raise

Cookies = RequestsCookieJar

urllib3.disable_warnings(SystemTimeWarning)     # a clock that is wrong is told by poca itself


class Limits:
    """How long one request may take, and how far it has come.

    ``timeout`` seconds to connect and between two packets, and all of it ``allowed`` seconds, which are over at
    ``deadline`` (of time.monotonic); ``pause`` is when the wait for the next piece of the body ends.
    """

    def __init__(self, timeout: float, allowed: float) -> None:
        self.timeout, self.allowed = timeout, allowed
        self.deadline, self.pause = time.monotonic() + allowed, math.inf
        self.connected = self.kept = self.ended = False     # a new connection, one used before; no more bytes will come

    def left(self) -> float:
        """Seconds, at most ``timeout``; raises TimeoutError where there are none."""
        left = min(self.deadline, self.pause) - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.timeout)

    def extend(self, seconds: float) -> None:
        """For time that does not count."""
        self.deadline += seconds

    def lift(self) -> None:
        """Lets the body take as long as it wants, as long as bytes come."""
        self.allowed = self.deadline = math.inf


_this = threading.local()       # .limits and .names: of the request that this thread makes

# --------------------------------------------------------------------------------------------------------- connections


class _Bounded(socket.socket):
    limits: Limits

    def recv_into(self, *args: Any, **options: Any) -> int:
        left = self.limits.left()
        if left != self.gettimeout():
            self.settimeout(left)
        count = super().recv_into(*args, **options)
        self.limits.ended = not count
        return count


class _BoundedTLS(_Bounded, ssl.SSLSocket):
    """OpenSSL's own loops heed the socket's timeout as a whole."""

    def do_handshake(self, block: bool = False) -> None:
        self.limits = _this.limits
        self.settimeout(self.limits.left())
        super().do_handshake(block)


_UNREACHABLE = (errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class _Names:
    """Looks names up, for all threads. getaddrinfo knows no timeout, so one that hangs is left to itself. Where the name
    service has failed ENOUGH times and never answered, nobody else waits for it: without a network a run ends soon, however
    many feeds it has."""

    answered, failed = False, 0

    def addresses(self, host: str, port: int, wait: float) -> list[Any]:
        """Raises OSError."""
        if re.fullmatch(r"[\d.]+|.*:.*", host):
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        found: SimpleQueue[list[Any] | OSError] = SimpleQueue()

        def look_up() -> None:
            try:
                found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except OSError as error:
                found.put(error)

        answer: list[Any] | OSError = socket.gaierror(socket.EAI_AGAIN, "no answer")
        if self.answered or self.failed < ENOUGH:
            threading.Thread(target=look_up, name=f"look-up of {host}", daemon=True).start()
            with suppress(Empty):
                answer = found.get(timeout=wait)
        if isinstance(answer, OSError):
            silent = answer.errno == socket.EAI_AGAIN
            self.failed, self.answered = self.failed + silent, self.answered or not silent
            raise answer
        self.answered = True
        return answer


def _dial(host: str, port: int, names: _Names, limits: Limits) -> _Bounded:
    """Connects within ``timeout``, of which each of the host's addresses gets its share; raises OSError."""
    addresses = names.addresses(host, port, limits.left())
    end = time.monotonic() + limits.left()
    failures: list[OSError] = []
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = None
        try:
            sock = _Bounded(family, kind, protocol)
            sock.settimeout(max((end - time.monotonic()) / (len(addresses) - index), 0.001))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.limits = limits
            return sock
        except BaseException as error:
            if sock:
                sock.close()
            if not isinstance(error, OSError):
                raise
            failures.append(error)
    # A host is not unreachable for having an address of a kind that this machine cannot use.
    telling = [error for error in failures if error.errno not in _UNREACHABLE]
    raise (telling or failures)[0]


class _TwoLengths(http.client.HTTPException):
    pass


class _Head(http.client.HTTPResponse):
    """Refuses what leaves open where the answer ends; here, as http.client closes what it gives up."""

    def begin(self) -> None:
        super().begin()
        if _this.limits.ended:      # before the empty line: headers that broke off would be taken for whole
            raise ConnectionResetError
        told = ",".join(self.headers.get_all("Content-Length", []))
        if len({length.strip() for length in told.split(",")}) > 1 and not self.chunked:
            raise _TwoLengths
        if any(len(cookie) > COOKIE for cookie in self.headers.get_all("Set-Cookie", [])):
            del self.headers["Set-Cookie"]      # http.cookiejar takes seconds to read a few long ones


class _Connection(HTTPConnection):
    response_class = _Head

    def _new_conn(self) -> socket.socket:
        return _dial(self._dns_host, self.port, _this.names, _this.limits)

    def connect(self) -> None:
        super().connect()
        _this.limits.connected = True

    def request(self, *args: Any, **options: Any) -> None:
        limits: Limits = _this.limits
        if isinstance(self.sock, _Bounded):
            self.sock.limits = limits
            limits.kept = not limits.connected
        super().request(*args, **options)


class _SecureConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


_POOLS = {"http": _Pool, "https": _SecurePool}


class _Adapter(HTTPAdapter):
    """Keeps connections of so many hosts, for all threads. All of them share one ``context``: by itself requests reads
    the trusted certificates anew for each, which takes 25 ms of CPU."""

    def __init__(self, size: int, context: ssl.SSLContext | None) -> None:
        self._context = context
        super().__init__(pool_connections=size, pool_maxsize=size)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, ssl_context=self._context)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options, ssl_context=self._context)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def cert_verify(self, *_: Any) -> None:
        """The context knows whom to trust."""


class Wire:
    """All connections of a run, those that were read to the end are kept."""

    def __init__(self, keep: int, env: Mapping[str, str]) -> None:
        self._keep, self._env = keep, env
        self.names = _Names()
        self._adapters: dict[str, _Adapter] = {}
        self._lock = threading.Lock()

    def adapter(self, scheme: str) -> _Adapter:
        """Raises WebError where the trusted certificates cannot be read."""
        with self._lock:
            if scheme not in self._adapters:
                self._adapters[scheme] = _Adapter(self._keep, _trusted(self._env) if scheme == "https" else None)
            return self._adapters[scheme]

    def close(self) -> None:
        for adapter in self._adapters.values():
            adapter.close()


def _trusted(env: Mapping[str, str]) -> ssl.SSLContext:
    """The trusted certificates: those of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE (a file or a folder), else the system's
    (SSL_CERT_FILE and SSL_CERT_DIR name others), else those that come with requests. Raises WebError."""
    bundle = env.get("REQUESTS_CA_BUNDLE") or env.get("CURL_CA_BUNDLE") or ""
    try:
        if bundle:
            folder = Path(bundle).is_dir()
            context = ssl.create_default_context(cafile=None if folder else bundle, capath=bundle if folder else None)
        else:
            context = ssl.create_default_context()
            paths = ssl.get_default_verify_paths()
            if not (paths.cafile or (paths.capath and any(os.scandir(paths.capath)))):
                context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    except OSError as error:     # also ssl.SSLError: a file without certificates
        named = f" in {bundle}" if bundle else " of this machine"
        raise WebError(f"the trusted certificates{named} cannot be read, so no https URL can be asked", Trouble.CERTIFICATE) from error
    context.sslsocket_class = _BoundedTLS
    return context


# ------------------------------------------------------------------------------------------------- requests, answers

def ask(
    wire: Wire, url: str, headers: Mapping[str, str], cookies: Cookies, login: tuple[bytes, bytes] | None, proxy: str, limits: Limits,
) -> Response:
    """One GET, up to the headers of the answer, redirects not followed. ``cookies``: those to send, and those of the
    answer then, too; ``proxy``: an http:// URL, "" for none. Raises WebError."""
    # As bytes: what servers gave, such as an ETag, goes back whatever it begins with.
    sent = {name: value.encode("latin-1") for name, value in headers.items()}
    auth = HTTPBasicAuth(*login) if login else None
    scheme = url.partition(":")[0]
    proxies = {scheme: proxy} if proxy else {}
    _this.names, _this.limits, limits.pause = wire.names, limits, math.inf
    while True:
        limits.connected = limits.kept = limits.ended = False
        try:
            wait = limits.left()
        except TimeoutError:
            raise _too_late(limits, 0) from None
        try:
            request = requests.Request("GET", url, sent, cookies=cookies, auth=auth).prepare()
            answer = wire.adapter(scheme).send(request, stream=True, timeout=wait, proxies=proxies)
            if "Set-Cookie" in answer.headers:
                extract_cookies_to_jar(cookies, request, answer.raw)    # type: ignore[no-untyped-call]
            return Response(answer, limits)
        except FAULTS as error:
            cause = _cause(error)
            if limits.kept and isinstance(cause, (ConnectionError, http.client.BadStatusLine, ssl.SSLError)):
                continue        # the server closed it in the very moment: nothing was answered, so it is sent again
            if limits.connected or limits.kept:
                raise _unanswered(cause, limits) from error
            raise _unconnected(cause, proxy, limits) from error


class Response:
    """One answer: ``status``, ``headers``, ``total`` (bytes of the body as told, None where they are not), and the body."""

    def __init__(self, answer: requests.Response, limits: Limits) -> None:
        self._answer, self._limits = answer, limits
        self._raw: HTTPResponse = answer.raw
        self.status, self.headers = answer.status_code, answer.headers
        self.total: int | None = self._raw.length_remaining
        coding = self.headers.get("Transfer-Encoding", "").strip().lower()
        if coding not in ("", "identity", "chunked"):
            answer.close()
            raise WebError("the server sends in a coding that was not asked for (Transfer-Encoding)", Trouble.ENCODING)

    def lift(self) -> None:
        self._limits.lift()

    def read(self, most: int) -> bytes:
        """What has arrived, at most so many bytes; b"" at the end. Raises WebError."""
        got = self._raw.tell()
        # The size of a chunk and the trailer may drip, too, and are no bytes of the body.
        self._limits.pause = time.monotonic() + 2 * self._limits.timeout
        try:
            return self._raw.read1(most if self.total is None else min(most, self.total - got), decode_content=False)
        except FAULTS as error:
            if isinstance(_cause(error), TimeoutError):
                raise _too_late(self._limits, got) from error
            told = f" of {text.size(self.total)}" if self.total else ""
            raise WebError(f"the answer broke off after {text.size(got)}{told}", Trouble.CUT, again=not got) from error

    def close(self) -> None:
        """The connection is kept where little of the answer is missing and comes at once."""
        # A 304 or 204 that comes with a body all the same (RFC 9110, 8.6) must not be taken for the next answer.
        bodiless = self.status in (204, 304) and (self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers)
        if self.total is not None and self.total - self._raw.tell() <= DRAIN and not bodiless:
            self._limits.pause = time.monotonic() + DRAIN_TIME
            try:
                while self._raw.read1(DRAIN, decode_content=False):
                    pass
            except FAULTS:
                pass        # nobody asked for these bytes
        self._answer.close()


# --------------------------------------------------------------------------------------------------------------- words

_CERTIFICATE_FAULTS = {     # X509_V_ERR_... of OpenSSL
    9: "is not valid yet", 10: "has expired", 18: "is signed by itself, by nobody who is trusted", 19: "comes from an unknown issuer",
    20: "comes from an unknown issuer", 21: "comes from an unknown issuer", 23: "was revoked", 62: "is for another name", 64: "is for another name",
}


def _cause(error: BaseException) -> BaseException:
    """What requests and urllib3 have wrapped."""
    step: BaseException | None = error
    while step is not None and isinstance(step, (requests.RequestException, HTTPError)):
        step = step.__cause__ or step.__context__
    return step or error


def _too_late(limits: Limits, got: int) -> WebError:
    """A wait that took too long, after ``got`` bytes of a body; before the first of them another try may help."""
    if time.monotonic() >= limits.deadline:
        return WebError(f"the answer did not come whole within {limits.allowed:.3g} s", Trouble.STALLED, again=not got)
    silence = f"no bytes for {limits.timeout:g} s"
    if got:
        return WebError(f"the answer stalled ({silence}, after {text.size(got)})", Trouble.STALLED)
    return WebError(f"the server does not answer ({silence})", Trouble.SILENT, again=True)


def _unconnected(error: BaseException, proxy: str, limits: Limits) -> WebError:
    """Why there is no connection."""
    def failed(words: str, trouble: Trouble = Trouble.CONNECT, *, again: bool = True, no_network: bool = False) -> WebError:
        way = f"no connection by the proxy {text.shown_url(proxy)}: " if proxy else ""
        return WebError(way + words, trouble, again=again, no_network=no_network)

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
        case requests.exceptions.InvalidURL():
            return WebError("it is no valid address", Trouble.URL)
        case ConnectionError() | http.client.HTTPException() | ValueError():
            return failed("the connection was closed before it was made")
        case OSError() if error.errno in _UNREACHABLE:
            return failed("the network or the host cannot be reached", no_network=True)
        case OSError() if refusal := re.match(r"Tunnel connection failed: (\d+)", str(error)):
            return failed(f"it answers {refusal[1]}")
    return failed(f"no connection ({text.shown(getattr(error, 'strerror', None) or 'of an unknown reason')})")


def _unanswered(error: BaseException, limits: Limits) -> WebError:
    """Why a request that was sent got no answer."""
    match error:
        case TimeoutError():
            return _too_late(limits, 0)
        case http.client.LineTooLong():
            return WebError("the headers of the answer are too long", Trouble.CUT)
        case _TwoLengths():
            return WebError("the server tells two lengths for one answer", Trouble.CUT)
        case OSError():     # also RemoteDisconnected, which is both
            return WebError("the server closed the connection without an answer", Trouble.SILENT, again=True)
    return WebError("the server's answer is no HTTP, or has too many headers", Trouble.CUT)
