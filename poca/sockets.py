"""Sockets on which every wait ends on time, straight or over TLS (owns socket and ssl).

Every wait of a request is one call on its socket, and :class:`Bounded` gives each call no longer than is left of the
request. So a server that drips a byte now and then, in the status line, the headers or the body, ends with the deadline,
as does a slow TLS handshake, without a thread that watches. The one wait that no socket bounds is the look-up of a
name: it is done by a thread of its own, which is left behind when it takes too long.
"""

from __future__ import annotations

import errno
import math
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from poca.errors import Trouble, WebError

UNREACHABLE = (errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@dataclass(slots=True)
class Limits:
    """How long a request may take: ``timeout`` seconds to connect and between two packets, and all of it ``allowed``
    seconds, which are over at ``deadline`` (of time.monotonic)."""

    timeout: float
    allowed: float
    deadline: float

    def left(self) -> float:
        """Seconds, at most ``timeout``; raises TimeoutError where there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.timeout)

    def extend(self, seconds: float) -> None:
        """For time that does not count."""
        self.deadline += seconds


class Bounded(socket.socket):
    """A socket that waits for bytes ``patience`` seconds, and never past ``deadline``. ``ended``: no more will come."""

    patience = 0.0
    deadline = math.inf
    ended = False

    def recv_into(self, *args: Any, **options: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        wait = min(left, self.patience)
        if wait != self.gettimeout():
            self.settimeout(wait)
        count = super().recv_into(*args, **options)
        self.ended = not count
        return count


class BoundedTLS(Bounded, ssl.SSLSocket):
    """The same over TLS; OpenSSL's own loops, as in a handshake, heed the socket's timeout as a whole."""


def _addresses(host: str, port: int, wait: float) -> list[Any]:
    """The addresses of a name; raises OSError. getaddrinfo knows no timeout, so one that hangs is left to itself."""
    found: SimpleQueue[list[Any] | OSError] = SimpleQueue()

    def look_up(flags: int = 0) -> None:
        try:
            found.put(socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM, flags=flags))
        except OSError as error:
            found.put(error)

    if re.fullmatch(r"[\d.]+|.*:.*", host):
        look_up(socket.AI_NUMERICHOST)
    else:
        threading.Thread(target=look_up, name=f"look-up of {host}", daemon=True).start()
    try:
        answer = found.get(timeout=wait)
    except Empty:
        raise socket.gaierror(socket.EAI_AGAIN, "timed out") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def dial(host: str, port: int, limits: Limits) -> Bounded:
    """Connects within ``timeout``, of which each of the host's addresses gets its share; raises OSError."""
    addresses = _addresses(host, port, limits.left())
    end = time.monotonic() + limits.left()
    failures: list[OSError] = []
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        try:
            sock = Bounded(family, kind, protocol)
        except OSError as error:
            failures.append(error)
            continue
        try:
            sock.settimeout(max((end - time.monotonic()) / (len(addresses) - index), 0.001))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            failures.append(error)
            continue
        sock.patience, sock.deadline = limits.timeout, limits.deadline
        return sock
    # A host is not unreachable for having an address of a kind that this machine cannot use.
    telling = [error for error in failures if error.errno not in UNREACHABLE]
    raise (telling or failures)[0]


def tls_context(env: Mapping[str, str]) -> ssl.SSLContext:
    """The trusted certificates: those of REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE (a file or a folder), else the system's
    (SSL_CERT_FILE and SSL_CERT_DIR name others), else certifi's where the system has none. Reading them takes 25 ms of
    CPU, so that all connections of a run share one. Raises WebError."""
    bundle = env.get("REQUESTS_CA_BUNDLE") or env.get("CURL_CA_BUNDLE") or ""
    try:
        if bundle:
            folder = Path(bundle).is_dir()
            context = ssl.create_default_context(cafile=None if folder else bundle, capath=bundle if folder else None)
        else:
            context = ssl.create_default_context()
            if not _has_system_store():
                import certifi
                context.load_verify_locations(certifi.where())
    except (OSError, ImportError) as error:     # also ssl.SSLError: a file without certificates
        named = f" in {bundle}" if bundle else " of this machine"
        raise WebError(f"the trusted certificates{named} cannot be read, so no https URL can be asked", Trouble.CERTIFICATE) from error
    context.sslsocket_class = BoundedTLS
    context.set_alpn_protocols(["http/1.1"])
    return context


def _has_system_store() -> bool:
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and any(os.scandir(paths.capath))))
