"""The values that cross a boundary between modules: frozen, and knowing nothing of disk, network or clock.

Instants are whole seconds since 1970-01-01 UTC (negative before), sizes are bytes, lengths of time are seconds. Paths
of episodes are strings relative to base_dir, with ``/`` between their parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

# ------------------------------------------------------------------------------------------------- configuration

@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a file. Lines and columns count from 1; 0 where there is no place."""

    file: str
    line: int
    column: int
    message: str                # names the key, the value, and what is allowed

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Email:
    """settings.email; used by ``-e`` only."""

    fromaddr: str
    toaddr: str
    host: str = "localhost"
    port: int = 25
    starttls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    password_command: str = ""
    only_errors: bool = False
    threshold: int = 1          # log entries


@dataclass(frozen=True, slots=True)
class Settings:
    """The section ``settings``, with all defaults applied and all paths absolute."""

    base_dir: Path
    state_dir: Path
    filenames: str = "ntfs"     # permissive | ntfs | restrictive
    id3v2version: int = 4
    id3removev1: bool = True
    useragent: str = "poca"
    parallel: int = 16          # feeds
    per_host: int = 4           # requests
    host_delay: float = 0       # seconds
    timeout: float = 30         # seconds
    min_speed: int = 1000       # bytes a second, 0: never stalled
    max_feed_mb: float = 64
    max_episode_mb: float = 0   # 0: no limit
    min_free_mb: float = 256
    timezone: tzinfo | None = None      # None: the machine's own, as datetime.astimezone takes it
    follow_moves: bool = True
    logfile: Path | None = None
    email: Email | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """The section ``filters`` of a subscription; patterns are valid regular expressions; None or empty: no such filter."""

    title: str | None = None
    exclude_title: str | None = None
    filename: str | None = None
    exclude_filename: str | None = None
    hour: frozenset[int] = frozenset()          # 0 to 23
    weekdays: frozenset[int] = frozenset()      # 0 is Monday
    after_date: date | None = None              # that day included
    before_date: date | None = None             # that day excluded
    min_minutes: float | None = None
    max_minutes: float | None = None
    episode_types: frozenset[str] = frozenset()  # full | bonus | trailer
    seasons: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Subscription:
    """One entry of ``subscriptions`` with the defaults merged in, and what of the settings decides about its episodes."""

    title: str
    url: str
    category: str = ""
    active: bool = True
    max_number: int = 0         # 0: no limit
    max_days: int = 0           # 0: no limit
    from_the_top: bool = False
    track_numbering: str = "no"  # no | yes | if missing
    metadata: tuple[tuple[str, str], ...] = ()
    rename: str = ""            # "": the name in the enclosure's URL
    space: str = " "
    cover: bool = True
    filters: Filters = Filters()
    filenames: str = "ntfs"
    timezone: tzinfo | None = None
    folder: str = ""            # the folder's name below base_dir, made of the title


@dataclass(frozen=True, slots=True)
class Config:
    """A config file as read. ``faults`` are those within single subscriptions, which are left out of
    ``subscriptions`` and named in ``faulty`` as (title, url), "" where that could not be read."""

    path: Path
    settings: Settings
    subscriptions: tuple[Subscription, ...]     # active and inactive, in the file's order
    faults: tuple[Fault, ...] = ()
    faulty: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


# ---------------------------------------------------------------------------------------------------------- feed

class Entry(NamedTuple):
    """An entry of a feed that is an episode: it has an enclosure with an http(s) URL. A named tuple, as a feed has
    hundreds of them, and one is made in a quarter of the time."""

    guid: str                   # "" where the feed gives none
    url: str                    # of the enclosure: absolute, stripped
    title: str = ""             # plain text
    published: int | None = None        # None: no date, or none that can be read
    length: int | None = None   # bytes as the feed tells them, a hint; None: not told, 0 or nonsense
    mime: str = ""              # the enclosure's type, lower case, without parameters
    duration: int | None = None  # seconds (itunes:duration)
    season: int | None = None
    episode: int | None = None
    episode_type: str = "full"  # full | bonus | trailer; unknown counts as full
    author: str = ""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An entry that is no episode, and why."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class FeedDoc:
    """A feed as read, entries in the feed's own order."""

    title: str = ""
    author: str = ""
    image: str = ""             # URL of itunes:image, else of image
    new_feed_url: str = ""      # itunes:new-feed-url
    entries: tuple[Entry, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    repairs: tuple[str, ...] = ()       # small faults of the document that cost nothing, told by -v
    cut: str = ""               # not "": the document was cut off or broken, and where; it may bring downloads, never deletions


@dataclass(frozen=True, slots=True)
class Validators:
    """What a conditional request sends back, as it came (RFC 9110, 8.8)."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one successful request for a feed brought. ``packed`` is the feed for the history, b"" where the one that
    the history has still holds (a 304, or the same bytes again)."""

    validators: Validators
    body_hash: str
    packed: bytes = b""


# ------------------------------------------------------------------------------------------------------- history

class Fate(StrEnum):
    """What became of an episode that poca had to do with."""

    PENDING = "pending"         # chosen, not yet on disk
    HELD = "held"
    REMOVED = "removed"         # by poca
    DELETED = "deleted"         # by the user
    MARKED = "marked"           # the user says it was had


class Stage(StrEnum):
    """How far a step on disk had come when it was last recorded."""

    NONE = ""
    PART = "part"               # the part grows
    TAGGING = "tagging"         # the part is being changed: worth nothing after a crash
    READY = "ready"             # the part is finished, flushed, and about to get the name `path`
    DELETING = "deleting"       # the file is about to go


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode in the history. ``key``, ``published``, ``placed`` and ``path`` stay as first recorded; guid, url,
    title and seen_published follow the feed."""

    key: str                    # hex digits, unique within the subscription
    guid: str
    url: str
    title: str
    published: int | None = None
    placed: int | None = None   # the date that it is sorted by: published, or that of its neighbour in the feed
    seen_published: int | None = None
    fate: Fate = Fate.PENDING
    stage: Stage = Stage.NONE
    path: str = ""              # "" as long as it has no name
    size: int | None = None
    adopted: bool = False
    recorded: int = 0           # when it was first recorded
    part: str = ""              # path of the part
    part_etag: str = ""
    part_total: int | None = None
    failures: int = 0           # in a row
    error: str = ""             # the last one, a sentence
    next_try: int | None = None
    track: int | None = None    # the track number that poca gave


@dataclass(frozen=True, slots=True)
class History:
    """All that poca knows of a subscription from earlier runs."""

    title: str
    url: str = ""
    generation: int = 0         # grows with each plan that is carried out
    validators: Validators = Validators()
    body_hash: str = ""
    packed: bytes = b""         # the feed as last read; poca.feed.unpack
    settled: str = ""           # under these options (patience.fingerprint) the last plan left nothing to do
    episodes: tuple[Episode, ...] = ()
    failures: int = 0           # of the feed, in a row
    error: str = ""
    next_try: int | None = None
    last_good: int | None = None
    last_run: int | None = None  # the latest instant that any run of this history has seen
    cover: str = ""             # path of the cover that poca wrote
    cover_url: str = ""
    cover_hash: str = ""
    cover_validators: Validators = Validators()
    cover_error: str = ""

    @property
    def fresh(self) -> bool:
        """No feed was ever read into it."""
        return self.last_good is None


@dataclass(frozen=True, slots=True)
class Stranger:
    """Something in the subscription's folder that the history does not know. size is -1 for what is no regular file."""

    size: int
    media: bool


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk as a subscription's thread saw it, base_dir bearing our marker afterwards."""

    present: Mapping[str, int] = field(default_factory=dict)        # recorded path -> size, of files that are (still) media
    strangers: Mapping[str, Stranger] = field(default_factory=dict)  # path -> what is there


# --------------------------------------------------------------------------------------------------------- plans

class Rule(StrEnum):
    """The rule that decided about an episode; the texts are what `why` and JSON show."""

    HELD = "held"
    WANTED = "wanted"                   # to download
    ADOPTED = "adopted"                 # a file that was there already
    DELETED = "deleted by you"
    MARKED = "marked as had"
    FILTERED = "filtered out"           # detail: the filter's key
    MAX_NUMBER = "past max_number"
    MAX_DAYS = "past max_days"
    FAILED = "failed"                   # waits for its next try; detail: the error
    STAND_IN = "kept for one that failed"
    SPARED = "kept, since nothing may be deleted now"


class Verdict(NamedTuple):
    """The decision about one episode. ``held``: it is on disk now; ``keep``: it should be. There is one for each entry,
    so this is a named tuple, too."""

    key: str
    title: str
    published: int | None
    rule: Rule
    held: bool
    keep: bool
    detail: str = ""
    path: str = ""
    size: int | None = None
    next_try: int | None = None


@dataclass(frozen=True, slots=True)
class Lacking:
    """An episode to download. ``names``: paths without extension, from the planned one to the last resort;
    ``extension`` with its dot, "" where only the answer will tell."""

    episode: Episode
    entry: Entry
    names: tuple[str, ...]
    extension: str


@dataclass(frozen=True, slots=True)
class Cover:
    """What came of asking for a show's picture. ``content`` is b"" where it is still the one that poca has, and where
    asking failed, which ``error`` tells."""

    url: str
    content: bytes = field(default=b"", repr=False)
    validators: Validators = Validators()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for one subscription. A report."""

    subscription: Subscription
    generation: int
    verdicts: tuple[Verdict, ...] = ()          # newest first; none where nobody asked for them
    wanted: tuple[str, ...] = ()                # keys
    unwanted: tuple[Episode, ...] = ()          # oldest first
    lacking: tuple[Lacking, ...] = ()           # oldest first
    gone: tuple[Episode, ...] = ()              # deleted by the user since the last run, as they are to be recorded
    found: tuple[Episode, ...] = ()             # found again at their paths, as they are to be recorded
    adopted: tuple[Episode, ...] = ()           # as they are to be recorded
    seen: tuple[Episode, ...] = ()              # records that follow a change of guid, url or title in the feed
    dropped: tuple[Episode, ...] = ()           # pending ones that are no longer wanted: their parts go
    waiting: int = 0                            # failed ones that wait for their next try
    spared: int = 0                             # that would go, but nothing may be deleted now
    fetched: Fetched | None = None              # None: nothing new to record of the feed
    error: str = ""                             # the feed was cut off, or the clock was turned back; nothing is deleted
    moved: str = ""                             # the URL for the config
    cover: Cover | None = None                  # None: nothing new to keep or to tell of it
    notes: tuple[str, ...] = ()                 # for -v


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing to do for a subscription. A report. ``fetched`` where validators are new."""

    subscription: Subscription
    generation: int
    fetched: Fetched | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A feed that is not asked before ``until``. A report."""

    subscription: Subscription
    until: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A subscription for which nothing could be done. A report.

    ``answered``: some server answered (so there is a network). ``counts``: it counts as a failure of the feed, to be
    asked less often. ``trace``: the traceback of what nobody foresaw, for the log.
    """

    subscription: Subscription
    error: str
    answered: bool = False
    counts: bool = True
    no_network: bool = False            # the connection failed as it does without any network
    retry_after: int | None = None      # seconds
    trace: str = ""
    notes: tuple[str, ...] = ()


Report = Plan | Unchanged | Waiting | Failure


# -------------------------------------------------------------------------------------------------------- events

class Level(StrEnum):
    """Who wants to hear an event."""

    DETAIL = "detail"           # -v and JSON
    NEWS = "news"               # and the log, and the line of the subscription
    WARNING = "warning"         # and stderr, no exit code
    ERROR = "error"             # and stderr, under the heading at the end, exit 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, said by the main thread only. ``kind`` is the word in JSON (docs/json.rst);
    ``text`` the sentence for log and terminal, without the subscription's title; ``data`` further values for JSON;
    ``plan`` what a plan event is about: put into words only for those who want them."""

    kind: str
    level: Level
    title: str                  # of the subscription, "" for what concerns the run
    text: str
    data: Mapping[str, object] = field(default_factory=dict)
    plan: Plan | None = field(default=None, repr=False)
