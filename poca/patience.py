"""When there is nothing to do: how long what failed is left alone, and what an unchanged feed is unchanged under. Pure.

An hour with nothing new needs this much of the planner, and no more.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields

from poca import __version__
from poca.model import Filters, Subscription

HOUR, DAY = 3600, 86_400
LONGEST_PAUSE_FEED, LONGEST_PAUSE_EPISODE = DAY, 7 * DAY      # seconds after a failure


def next_try(now: int, failures: int, *, patience: int, most: int, retry_after: int | None) -> int | None:
    """The instant before which a failed feed or episode is not tried again; None: in the next run. ``patience`` is the
    number of failures in a row with which the pauses begin, ``most`` the longest pause in seconds."""
    pause = 0 if failures < patience else min(2 * HOUR * 2 ** min(failures - patience, 16), most)
    pause = max(pause, min(retry_after or 0, DAY))
    return now + pause if pause > 0 else None


def waits(next_try: int | None, now: int, longest: int) -> bool:
    """Whether ``next_try`` is still to come. One that is farther away than the longest pause was reckoned by a clock that
    went wrong, and counts for nothing: else a clock that stood in next year for an hour would keep a feed waiting until then."""
    return next_try is not None and now < next_try <= now + longest


NO_FILTERS = Filters()
_FILTERS = tuple(field.name for field in fields(Filters))
_OPTIONS = tuple(field.name for field in fields(Subscription) if field.name not in ("title", "url", "category"))


def fingerprint(subscription: Subscription) -> str:
    """Equal for options under which the same feed, history and disk give the same plan."""

    def canonical(value: object) -> object:
        if isinstance(value, frozenset):
            return sorted(value)
        if isinstance(value, Filters):
            return [] if value == NO_FILTERS else [canonical(getattr(value, name)) for name in _FILTERS]
        return str(value)

    options = [canonical(getattr(subscription, name)) for name in _OPTIONS]
    return hashlib.sha256(repr((__version__, options)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
