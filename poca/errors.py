"""What can go wrong, as exceptions whose text is a sentence for a person.

A library's exception is turned into one of these by the module that owns the library; the text never holds a secret
(URLs are written by :func:`poca.text.shown_url`) and never a traceback.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class PocaError(Exception):
    """The root: ``str(error)`` is a sentence for the user."""


class ConfigError(PocaError):
    """The config cannot be used at all: nothing is done, exit 2. The faults are :class:`poca.model.Fault`."""

    def __init__(self, message: str, faults: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class EditError(PocaError):
    """A config file that cannot be edited safely; the text says what to write where."""


class StateError(PocaError):
    """The state_dir or the history in it cannot be used: nothing is done, exit 2."""


class BaseDirError(PocaError):
    """base_dir is not the folder that the history knows: nothing is done, exit 2."""


class DiskError(PocaError):
    """The disk refused something (permission, I/O, stale mount) for one subscription or one episode."""


class DiskFullError(DiskError):
    """No room left: ends the downloads of the run, not the deletions."""


def disk_error(error: OSError, doing: str) -> DiskError:
    """An OSError in words; ``doing`` is what was not possible ("cannot write x")."""
    reason = os.strerror(error.errno) if error.errno else "it failed"
    kind = DiskFullError if error.errno in (errno.ENOSPC, errno.EDQUOT) else DiskError
    return kind(f"{doing}: {reason[:1].lower()}{reason[1:]}")


@contextmanager
def on_disk(doing: str) -> Iterator[None]:
    """Turns an OSError of its block into a :class:`DiskError`. Never around anything that asks the network: the
    errors of requests are OSErrors, too."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, doing) from error


class Trouble(StrEnum):
    """Why a request failed, by what poca does about it."""

    CONNECT = "connect"         # no connection: name unknown, refused, unreachable, TLS
    SILENT = "silent"           # connected, but no first byte of a body in time
    STATUS = "status"           # an HTTP status that is no success
    REDIRECT = "redirect"       # too many redirects, or one to a place that is not fetched
    URL = "url"                 # an address that cannot be asked
    CUT = "cut"                 # the answer ended before its told length, or broke off
    STALLED = "stalled"         # too slow, or not whole within its deadline
    TOO_LARGE = "too large"
    TEXT = "text"               # a page or a message where media were expected
    ENCODING = "encoding"       # a Content-Encoding that cannot be undone
    CERTIFICATE = "certificate"


class WebError(PocaError):
    """A request that failed.

    ``status``: the HTTP status, 0 where there was none. ``retry_after``: seconds to wait as the server asked for
    (RFC 9110, 10.2.3), None where it did not. ``again``: whether another try within the run may help. ``host``: the
    host that was asked last. ``no_network``: it failed as it would without any network (no name is found, no host can
    be reached), unlike a refused connection.
    """

    def __init__(
        self, message: str, trouble: Trouble, *, status: int = 0, retry_after: int | None = None, again: bool = False, host: str = "",
        no_network: bool = False,
    ) -> None:
        super().__init__(message)
        self.trouble, self.status, self.retry_after, self.again, self.host = trouble, status, retry_after, again, host
        self.no_network = no_network


class FeedError(PocaError):
    """An answer that is no feed, or that could not be read as one."""


class TagError(PocaError):
    """A file whose tags could not be written; the file itself is as it was."""


class MailError(PocaError):
    """The mail could not be sent; its entries are kept for the next one."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM: ends the run at once. ``code`` is the exit code, 130 or 143."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
