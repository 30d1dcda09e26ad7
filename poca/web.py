"""Manners on the network: redirects, logins, proxies, and no host asked too often.

One GET at a time by :meth:`Web.open`, from any thread. How requests is used, :mod:`poca.wire` knows, which is imported
with the first request, as a run without subscriptions needs none of it.

A host is its name in lower case, whatever the port: ``per_host`` and ``host_delay`` are about the machine behind it. A
login is for one origin (name, scheme and port; RFC 9110, 4.3.1), except that it follows from http to https.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from poca import text
from poca.errors import Trouble, WebError
from poca.gate import Aside, Busy, Gate
from poca.model import Settings

if TYPE_CHECKING:
    from netrc import netrc

    from poca.wire import Cookies, Limits, Response, Wire

REDIRECTS = 20
DAY = 86_400        # seconds: no Retry-After counts for more
WHOLE = 5           # an answer must come whole within so many times `timeout`
_PORTS = {"http": 80, "https": 443}

# ----------------------------------------------------------------------------------------------------------- addresses

class Place(NamedTuple):
    """Where a URL leads. ``target``: path and query, quoted. ``user``: the user info as written, "" for none."""

    scheme: str
    host: str
    port: int
    target: str
    user: str = ""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Without user info."""
        return f"{self.scheme}://{self.authority}{self.target}"


def place(url: str) -> Place:
    """Takes a URL apart, quoting what must not stand in a request as it is: %XX stays. Raises WebError."""
    def fault(why: str) -> WebError:
        return WebError(f"{text.shown_url(url)} cannot be asked: {why}", Trouble.URL)

    url = url.strip()
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", url):
        raise fault("there is a control character in it")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise fault("it is no valid address") from None
    if parts.scheme not in _PORTS:
        raise fault("only http and https are fetched")
    host = _host(parts.hostname or "")
    if not host or port == 0:
        raise fault("the name of the host or its port is not valid")
    try:
        target = _quoted(parts.path or "/") + ("?" + _quoted(parts.query) if parts.query else "")
    except UnicodeEncodeError:
        raise fault("there are characters in it that no encoding has") from None
    return Place(parts.scheme, host, port or _PORTS[parts.scheme], target, parts.netloc.rpartition("@")[0])


def _quoted(part: str) -> str:
    return quote(re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", part), safe="!#$%&'()*+,/:;=?@[]~")


def _host(name: str) -> str:
    """A host name in ASCII (IDNA) and lower case, or an IP address; "" when it is neither."""
    if ":" in name:
        import ipaddress
        try:
            return str(ipaddress.IPv6Address(name))
        except ValueError:
            return ""
    try:
        name = (name if name.isascii() else name.encode("idna").decode("ascii")).removesuffix(".").lower()
    except UnicodeError:
        return ""
    return name if len(name) <= 253 and re.fullmatch(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", name) else ""


def _onward(here: Place, location: str) -> Place:
    """Where a redirect leads (RFC 9110, 10.2.2). Raises WebError."""
    try:
        location = location.encode("latin-1").decode()      # headers are read byte by byte; these were UTF-8
    except UnicodeEncodeError:
        pass
    except UnicodeDecodeError:
        location = quote(location.encode("latin-1"), safe="!#$%&'()*+,/:;=?@[]~ ")
    try:
        return place(urljoin(here.url, location.strip()))
    except (WebError, ValueError):
        shown = text.shown_url(location)
        raise WebError(f"the server redirects to {shown}, which is no http or https address that can be asked", Trouble.REDIRECT) from None


class Trail(NamedTuple):
    """How far redirects have led: ``way``, and what an Answer tells of it, ``permanent`` and ``notes``."""

    way: tuple[Place, ...]
    permanent: str = ""
    for_good: bool = True
    notes: tuple[str, ...] = ()

    def onward(self, status: int, location: str, owner: Place) -> Trail:
        """After a redirect. ``owner`` is whose login is sent. Raises WebError."""
        here = self.way[-1]
        there = _onward(here, location)
        if any(there.url == step.url for step in self.way):
            raise WebError("the redirects go round in a circle", Trouble.REDIRECT, host=here.host)
        if len(self.way) > REDIRECTS:
            raise WebError(f"more than {REDIRECTS} redirects", Trouble.REDIRECT, host=here.host)
        permanent, notes = self.permanent, self.notes
        for_good = self.for_good and status in (301, 308)
        if for_good:
            user = there.user or (owner.user if _shares_login(owner, there) else "")
            permanent = there.url.replace("://", f"://{user}@", 1) if user else there.url
        if here.scheme == "https" and there.scheme == "http":
            notes = (*notes, f"redirected from https to {text.shown_url(there.url)}, which is not encrypted")
        return Trail((*self.way, there), permanent, for_good, notes)


class HostBusy(Exception):
    """A host that cannot be asked now. ``seconds``: until it can, inf where others' requests decide that; ``trail``: where
    to go on then."""

    def __init__(self, host: str, seconds: float, trail: Trail | None = None) -> None:
        super().__init__(host)
        self.host, self.seconds, self.trail = host, seconds, trail


# ---------------------------------------------------------------------------------------------------- logins, proxies

def _shares_login(owner: Place, there: Place) -> bool:
    """Whether a login for ``owner`` may be sent there."""
    upgrade = (owner.scheme, owner.port, there.scheme, there.port) == ("http", 80, "https", 443)
    return owner.host == there.host and (upgrade or (owner.scheme, owner.port) == (there.scheme, there.port))


def _login(user: str) -> tuple[bytes, bytes] | None:
    """Name and password, percent-decoded, of the user info of a URL."""
    name, _, password = user.partition(":")
    return (unquote_to_bytes(name), unquote_to_bytes(password)) if user else None


class Proxies:
    """http_proxy, https_proxy, all_proxy and no_proxy, in lower case or, where that is not set, in upper case."""

    def __init__(self, env: Mapping[str, str]) -> None:
        def value(name: str) -> str:
            return (env.get(name) or env.get(name.upper()) or "").strip()

        self._by_scheme = {scheme: value(f"{scheme}_proxy") or value("all_proxy") for scheme in _PORTS}
        self._direct = value("no_proxy").lower()
        self._lock = threading.Lock()

    def find(self, there: Place) -> str:
        """The proxy's URL, "" for none. Raises WebError for a kind of proxy that cannot be used."""
        proxy = self._by_scheme[there.scheme]
        if not proxy or self._is_direct(there):
            return ""
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        try:
            parts = urlsplit(proxy)
            usable = parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise WebError(f"the proxy {text.shown_url(proxy)} cannot be used: only proxies asked by http:// can", Trouble.CONNECT)
        return proxy

    def _is_direct(self, there: Place) -> bool:
        from requests.utils import should_bypass_proxies
        with self._lock:    # for that function sets a variable of the environment, for a moment
            return should_bypass_proxies(there.url, self._direct)


def _read_netrc(env: Mapping[str, str]) -> netrc | None:
    """The file that NETRC names, else ~/.netrc or ~/_netrc; None where there is none, or it cannot be read."""
    for name in [env["NETRC"]] if env.get("NETRC") else ["~/.netrc", "~/_netrc"]:
        with suppress(OSError, RuntimeError):
            path = Path(name).expanduser()
            if path.is_file():
                return _parsed_netrc(path)
    return None


def _parsed_netrc(path: Path) -> netrc | None:
    from netrc import NetrcParseError, netrc
    try:
        return netrc(str(path))
    except (NetrcParseError, UnicodeDecodeError):
        return None


# ------------------------------------------------------------------------------------------------------------- answers

class Answer:
    """The answer to a GET, its body still to be read.

    ``url``: where it came from, without user info. ``permanent``: the URL reached while all redirects so far were for
    good (301, 308), with the login where that holds there; "" if the first was not. ``total``: bytes of the body as
    told, None where they are not. ``notes``: what the user may want to know of the way there.
    """

    def __init__(self, response: Response, url: str, permanent: str, notes: tuple[str, ...]) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.total = response.total
        self.url, self.permanent, self.notes = url, permanent, notes

    def read(self, most: int) -> bytes:
        """What has arrived of the body, at most so many bytes, as they are; b"" at the end. Raises WebError, also when
        the end comes before ``total``."""
        try:
            return self._response.read(most)
        except WebError as error:
            error.host = urlsplit(self.url).hostname or ""
            raise

    def failure(self) -> WebError:
        """The error that this answer is, where its status is no success."""
        from http import HTTPStatus
        try:
            words = f"{self.status} ({HTTPStatus(self.status).phrase})"
        except ValueError:
            words = str(self.status)
        return WebError(
            f"the server answers {words}", Trouble.STATUS, status=self.status, host=urlsplit(self.url).hostname or "",
            retry_after=retry_after(self.headers.get("Retry-After", ""), time.time()), again=self.status == 429 or self.status >= 500,
        )


def retry_after(value: str, now: float) -> int | None:
    """Seconds to wait (RFC 9110, 10.2.3), at most a day; None for junk. ``now`` is for the form with a date."""
    from email.utils import parsedate_to_datetime
    value = value.strip()
    if re.fullmatch(r"[0-9]{1,99}", value):
        return min(int(value), DAY)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return round(min(max(seconds, 0), DAY))


# ----------------------------------------------------------------------------------------------------------------- web

class Web:
    """The network as one run uses it. Made once, for all threads."""

    def __init__(self, settings: Settings, env: Mapping[str, str] = os.environ) -> None:
        self._settings, self._env = settings, env
        self._gate = Gate(settings.per_host, settings.host_delay)
        self._proxies = Proxies(env)
        self._wire: Wire | None = None
        self._lock = threading.Lock()
        # What cannot stand in a header is no reason to ask nobody.
        self._useragent = re.sub(r"[^\x20-\x7e\xa0-\xff]+", " ", settings.useragent).strip()

    def _connections(self) -> Wire:
        from poca.wire import Wire
        with self._lock:
            if self._wire is None:
                self._wire = Wire(self._settings.parallel + 16, self._env)
            return self._wire

    @cached_property
    def _netrc(self) -> netrc | None:
        return _read_netrc(self._env)

    def close(self) -> None:
        """Closes the connections that are kept."""
        if self._wire:
            self._wire.close()

    def free_in(self, host: str) -> float:
        """Seconds until a host can be asked, inf where others' requests decide that."""
        return self._gate.free_in(host)

    @contextmanager
    def open(
        self, url: str, headers: Mapping[str, str] | None = None, *, deadline: float | None, aside: Aside | None = nullcontext, auth_from: str = "",
        trail: Trail | None = None,
    ) -> Iterator[Answer]:
        """One GET, redirects followed. Raises WebError.

        ``deadline``: seconds for everything until the context is left, None: for all until the headers are there, 5 x
        ``timeout``, and ``timeout`` for each read. Waiting for a host does not count; meanwhile the caller is in
        ``aside()``. A caller without ``aside`` does not wait: HostBusy is raised instead, and its ``trail`` is where to go
        on. ``auth_from``: the URL whose login is meant, where that is not ``url`` itself (that of the feed).
        """
        from poca.wire import Cookies, Limits
        timeout = self._settings.timeout
        limits = Limits(timeout, WHOLE * timeout if deadline is None else deadline)
        cookies = Cookies()         # which go along the redirects and no further
        owner = place(auth_from or url)
        trail = trail or Trail((place(url),))
        try:
            while True:
                here = trail.way[-1]
                with self._gate.place(here.host, aside, limits.extend):
                    response = self._ask(here, owner, headers or {}, cookies, limits, redirected=len(trail.way) > 1)
                    try:
                        location = response.headers.get("Location", "") if response.status in (301, 302, 303, 307, 308) else ""
                        if not location:
                            if deadline is None:
                                response.lift()
                            yield Answer(response, here.url, trail.permanent, trail.notes)
                            return
                    finally:
                        response.close()
                trail = trail.onward(response.status, location, owner)
        except Busy as busy:
            raise HostBusy(here.host, busy.seconds, trail) from None

    def _ask(self, there: Place, owner: Place, headers: Mapping[str, str], cookies: Cookies, limits: Limits, *, redirected: bool) -> Response:
        """One request to one host."""
        from poca.wire import ask
        sent = {"User-Agent": self._useragent, "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "keep-alive", **headers}
        login = _login(there.user or (owner.user if _shares_login(owner, there) else "")) or self._netrc_login(there.host)
        try:
            return ask(self._connections(), there.url, sent, cookies, login, self._proxies.find(there), limits)
        except WebError as error:
            error.host = there.host
            if redirected:
                error.args = (f"{error} (after a redirect to {text.shown_url(there.url)})",)
            raise

    def _netrc_login(self, host: str) -> tuple[bytes, bytes] | None:
        login = self._netrc.authenticators(host) if self._netrc else None
        return ((login[0] or login[1] or "").encode(), (login[2] or "").encode()) if login else None
