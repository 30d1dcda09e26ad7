"""The steps of a plan: a download, a deletion, each recorded as it goes, so that a crash between any two can be put right."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from poca import basedir, events, files, media, templates, text
from poca.errors import DiskError, DiskFullError, TagError, Trouble, WebError
from poca.model import Episode, Event, Fate, Lacking, Level, Plan, Settings, Stage
from poca.patience import LONGEST_PAUSE_EPISODE, next_try
from poca.state import State
from poca.web import HostBusy, Trail, Web

if TYPE_CHECKING:
    from poca.download import Downloaded

MB = 1_000_000
PAUSES = (1.0, 3.0)             # seconds before the second and the third try of a download within the run
UNREACHABLE = 2                 # connect failures after which a host's other downloads of the run fail at once

Tell = Callable[[Event], None]
Progress = Callable[[str, str, int, int | None], None]      # subscription, episode, bytes so far, bytes in all


class Wait(NamedTuple):
    """What an episode waits for: an instant of the monotonic clock, or before it that its busy ``host`` has a free place.
    ``trail``: where its redirects have led so far."""

    until: float
    host: str = ""
    trail: Trail | None = None


@dataclass(slots=True)
class Work:
    """A plan under way: what is left of it, and what came of it so far."""

    plan: Plan
    generation: int
    lacking: list[Lacking]
    unwanted: list[Episode]     # oldest first
    records: dict[str, Episode] = field(default_factory=dict)       # as last recorded, by key
    tries: Counter[str] = field(default_factory=Counter)            # in this run, by key
    waits: dict[str, Wait] = field(default_factory=dict)            # of the episodes put off, by key
    counts: Counter[str] = field(default_factory=Counter)           # for the event "done"
    at_once: Counter[str] = field(default_factory=Counter)          # downloads that failed without a try, by host
    missing: int = 0            # downloads that will not come in this run
    complete: bool = True       # nothing else went wrong
    stopped: bool = False       # its folder refuses to be written: no more downloads

    @property
    def title(self) -> str:
        return self.plan.subscription.title


class Outcome(Enum):
    DONE, FAILED, LATER = range(3)


class Steps:
    """Does one step at a time. ``disk_full`` and ``unreachable`` (connect failures by host) are of the whole run."""

    def __init__(
        self, settings: Settings, state: State, web: Web, tell: Tell, progress: Progress, clock: Callable[[], int], link: files.Link,
        chance: Callable[[], float] = random.random, sums: events.Sums | None = None,
    ) -> None:
        self.settings, self.state, self.web, self.tell = settings, state, web, tell
        self.progress, self.clock, self.link, self.chance = progress, clock, link, chance
        self.base: Path = settings.base_dir
        self.sums = sums or events.Sums()
        self.unreachable: Counter[str] = Counter()
        self.disk_full = False

    def is_ours(self) -> bool:
        return basedir.read_marker(self.base) == self.state.marker != ""

    def _must_be_ours(self) -> None:
        """Raises DiskError where another disk, or none, has taken the place of base_dir since the plan was begun."""
        if not self.is_ours():
            raise DiskError("base_dir bears no marker of poca any more: is its drive still mounted?")

    # --------------------------------------------------------------------------------------------------- downloads

    def episode(self, work: Work, one: Lacking) -> Outcome:
        """One download, with all that can come of it."""
        key, host = one.episode.key, _host(one.entry.url)
        wait = work.waits.pop(key, Wait(0))
        try:
            if not work.tries[key] and self.unreachable[host] >= UNREACHABLE:
                work.at_once[host] += 1
                self._failed(work, one, WebError(f"{host} could not be reached", Trouble.CONNECT), Level.DETAIL)
                return Outcome.FAILED
            work.tries[key] += 1
            self._fetch(work, one, wait.trail)
            self.unreachable.pop(host, None)
            return Outcome.DONE
        except HostBusy as busy:
            work.tries[key] -= 1
            work.waits[key] = Wait(time.monotonic() + min(busy.seconds, self.settings.timeout), busy.host, busy.trail)
            return Outcome.LATER
        except WebError as error:
            if error.trouble is Trouble.CONNECT:
                self.unreachable[error.host or host] += 1
            if error.again and error.retry_after is None and work.tries[key] <= len(PAUSES):
                self.tell(events.postponed(work.plan, one.episode, error))
                work.waits[key] = Wait(time.monotonic() + PAUSES[work.tries[key] - 1] * (0.75 + 0.5 * self.chance()))
                return Outcome.LATER
            self._failed(work, one, error, Level.ERROR)
        except DiskFullError as error:
            self.disk_full = True
            self._spoilt(work, one)
            self.step_failed(work, f"{events.name_of(one.episode)}: {error}. No more downloads in this run; tried again in the next one")
        except DiskError as error:
            work.stopped = True
            self._spoilt(work, one)
            self.step_failed(work, f"{events.name_of(one.episode)}: {error}. No more downloads of this show in this run; tried again in the next one")
        return Outcome.FAILED

    def must_wait(self, wait: Wait | None, now: float) -> bool:
        return wait is not None and wait.until > now and not (wait.host and self.web.free_in(wait.host) <= 0)

    def _fetch(self, work: Work, one: Lacking, trail: Trail | None) -> None:
        """The download itself, from the first byte to the record that the episode is held."""
        began = time.monotonic()
        episode = replace(self._current(work, one), fate=Fate.PENDING)
        part = episode.part if files.is_part(episode.part) else files.part_path(work.plan.subscription, episode.key)
        path = files.inside(self.base, part)
        if episode.stage is Stage.READY and files.regular_size(path) == episode.size:
            # All but its name was there already.
            extension = media.media_extension(episode.path)
        else:
            host = trail.way[-1].host if trail else _host(one.entry.url)
            if (seconds := self.web.free_in(host)) > 0:
                raise HostBusy(host, seconds, trail)
            self._room(work, one, path, None)
            files.make_folder(self.base, part)
            self._put(work, replace(episode, stage=Stage.PART, part=part))
            self.tell(events.started(work.plan, one))
            came = self._download(work, one, path, trail)
            episode = self._tagged(work, one, path)
            episode = replace(episode, size=files.flush(path))
            extension = one.extension or _extension(came, one)
        self._must_be_ours()
        names = [stem + extension for stem in one.names]
        ready = replace(_without_part(episode), stage=Stage.READY, part=part)
        name = files.give_name(self.base, path, names, lambda name: self._put(work, replace(ready, path=name)), self.link)
        held = _without_part(replace(ready, fate=Fate.HELD, path=name, adopted=False, failures=0, error="", next_try=None))
        self._put(work, held)
        if name != names[0]:
            self.tell(events.name_changed(work.plan, names[0], name))
        size = held.size or 0
        work.counts["downloaded"] += 1
        self.sums.downloaded += 1
        self.sums.downloaded_bytes += size
        seconds = round(time.monotonic() - began, 3)
        self.news(work, "downloaded", f"downloaded {events.file_of(work.plan, name)} ({text.size(size)})", held, seconds=seconds)

    def _download(self, work: Work, one: Lacking, path: Path, trail: Trail | None) -> Downloaded:
        from poca import download

        episode = self._current(work, one)
        name = events.name_of(episode)

        def begun(etag: str, total: int | None) -> None:
            self._room(work, one, path, total if total is not None else one.entry.length)
            self._put(work, replace(episode, part_etag=etag, part_total=total))

        return download.download(
            self.web, one.entry.url, download.Part(path, episode.part_etag, episode.part_total), self.settings, begun=begun,
            progress=lambda have, total: self.progress(work.title, name, have, total), feed_type=one.entry.mime, extension=one.extension,
            auth_from=work.plan.subscription.url, trail=trail,
        )

    def _tagged(self, work: Work, one: Lacking, path: Path) -> Episode:
        """Writes the tags that the subscription asks for; a part that cannot be tagged stays as it came."""
        from poca import tagging

        episode, subscription = self._current(work, one), work.plan.subscription
        if not tagging.wanted(subscription):
            return episode
        # What has had a number keeps it; the others go on from the last one, whatever became of its episode.
        number = episode.track or 1 + max((known.track or 0 for known in self.state.history(work.title).episodes), default=0)
        edits = tagging.edits(subscription, templates.Named(episode.key, one.entry), self.settings, number)
        self._put(work, replace(episode, stage=Stage.TAGGING))
        try:
            done = tagging.tag(path, edits)
        except TagError as error:
            self.tell(events.step_failed(work.title, f"{events.name_of(episode)}: {error}"))
            return episode
        for name, form in done.unknown:
            if self.state.is_new(f"{form} has no tag for {name}"):
                self.tell(events.no_such_tag(work.title, name, form))
        return replace(episode, track=done.track or episode.track)

    def _room(self, work: Work, one: Lacking, path: Path, total: int | None) -> None:
        """Makes room for the rest of a download of ``total`` bytes by deleting unwanted episodes, the oldest first, just
        enough. Raises DiskFullError, with nothing deleted, where all of them together would not do.

        Without ``total`` nothing is deleted yet: the server may still refuse.
        """
        have = files.regular_size(path) or 0
        needed = int(self.settings.min_free_mb * MB) + max(0, (total or 0) - have)
        free = files.free(self.base, work.plan.subscription.folder)
        if free + files.on_disk_size(self.base, work.unwanted) < needed:
            raise DiskFullError(f"the disk has no room: {text.size(needed)} are needed (min_free_mb included), {text.size(free)} are free")
        while total is not None and work.unwanted and files.free(self.base, work.plan.subscription.folder) < needed:
            self.remove(work, work.unwanted.pop(0))

    def _failed(self, work: Work, one: Lacking, error: WebError, level: Level) -> None:
        """Records and tells that an episode did not come in this run."""
        episode = self._current(work, one)
        failures = episode.failures + 1
        patience = 2 if error.status in (404, 410) or error.trouble in (Trouble.TEXT, Trouble.TOO_LARGE) else 3
        then = next_try(self.clock(), failures, patience=patience, most=LONGEST_PAUSE_EPISODE, retry_after=error.retry_after)
        self._put(work, replace(episode, fate=Fate.PENDING, failures=failures, error=text.shown(str(error)), next_try=then))
        self._without_its_part(work, one)
        work.counts["failed"] += 1
        self.sums.downloads_failed += 1
        self.tell(events.download_failed(work.plan, self._current(work, one), level))

    def _spoilt(self, work: Work, one: Lacking) -> None:
        """Drops a part that the disk may not have taken whole, whatever its size says now."""
        episode = self._current(work, one)
        if episode.stage is Stage.PART:
            with contextlib.suppress(DiskError):
                files.remove(self.base, episode.part)
            self._without_its_part(work, one)

    def _without_its_part(self, work: Work, one: Lacking) -> None:
        """Takes the part out of the record where it is no longer there."""
        episode = self._current(work, one)
        if episode.stage is Stage.PART and not os.path.lexists(self.base / episode.part):
            self._put(work, _without_part(episode))

    # ------------------------------------------------------------------------------------------------------ covers

    def cover(self, work: Work) -> None:
        """Keeps the cover that came with the plan, or tells, once, why there is none."""
        cover, subscription = work.plan.cover, work.plan.subscription
        if cover is None:
            return
        from poca import cover as covers

        history = self.state.history(work.title)
        path, digest, error = history.cover, history.cover_hash, cover.error
        if cover.content:
            try:
                path, digest = covers.keep(self.base, subscription, history, cover.content, self.link), covers.digest(cover.content)
            except DiskError as trouble:
                error = str(trouble)
        if not error:
            self.state.cover(work.title, path, cover.url, digest, cover.validators)
            return
        self.state.cover(work.title, history.cover, history.cover_url, history.cover_hash, history.cover_validators, error)
        if error != history.cover_error:
            self.tell(events.no_cover(work.title, cover, error))

    # --------------------------------------------------------------------------------------------------- deletions

    def remove(self, work: Work, episode: Episode) -> None:
        """Deletes one unwanted episode: only a file that the history says poca put there."""
        if episode.fate is not Fate.HELD or episode.adopted or not episode.path:
            return
        try:
            size = files.regular_size(files.inside(self.base, episode.path))
            if size is None:
                self._must_be_ours()
            self._put(work, replace(episode, stage=Stage.DELETING))
            try:
                files.remove(self.base, episode.path)
            except DiskError:
                self._put(work, episode)
                raise
            self._put(work, replace(episode, fate=Fate.REMOVED, stage=Stage.NONE))
            files.tidy(self.base, work.plan.subscription, episode.path)
        except DiskError as error:
            self.step_failed(work, f"{events.name_of(episode)} could not be deleted: {error}; tried again in the next run")
            return
        work.counts["removed"] += 1
        self.sums.removed += 1
        self.sums.freed += size or 0
        self.news(work, "removed", f"removed {events.file_of(work.plan, episode.path)}", episode)

    def drop(self, work: Work, episode: Episode) -> None:
        """Forgets an episode that was to come and is no longer wanted."""
        try:
            if files.is_part(episode.part):
                files.remove(self.base, episode.part)
        except DiskError as error:
            self.step_failed(work, str(error))
        if episode.path:
            self.state.put(work.title, _without_part(replace(episode, fate=Fate.REMOVED)))
        else:
            self.state.forget(work.title, episode.key)

    # ------------------------------------------------------------------------------------------------ small helpers

    def _current(self, work: Work, one: Lacking) -> Episode:
        return work.records.get(one.episode.key, one.episode)

    def _put(self, work: Work, episode: Episode) -> None:
        self.state.put(work.title, episode)
        work.records[episode.key] = episode

    def step_failed(self, work: Work, sentence: str) -> None:
        work.complete = False
        self.tell(events.step_failed(work.title, sentence))

    def news(self, work: Work, kind: str, sentence: str, episode: Episode, **data: object) -> None:
        self.tell(events.said(
            kind, Level.NEWS, work.title, sentence, episode=events.name_of(episode), file=text.shown(episode.path), bytes=episode.size,
            url=text.shown_url(episode.url), **data,
        ))


def _without_part(episode: Episode) -> Episode:
    return replace(episode, stage=Stage.NONE, part="", part_etag="", part_total=None)


def _extension(came: Downloaded, one: Lacking) -> str:
    """Of a file whose URL and enclosure have told none."""
    told = media.extension_of_kind(came.kind) if came.kind else ""
    video = any(mime.startswith("video/") for mime in (came.mime.lower(), one.entry.mime))
    return told or media.extension_of_type(came.mime) or media.extension_of_type(one.entry.mime) or (".mp4" if video else ".mp3")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
