"""After a crash: each step that was under way when the history was last written is finished or taken back.

A step is recorded before the disk is touched, so the record and the disk together tell how far it came. Nothing found
here is ever taken for a deletion by the user.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from poca import events, files, locks, text
from poca.errors import DiskError
from poca.model import Episode, Event, Fate, History, Level, Settings, Stage
from poca.state import State


def recover(history: History, settings: Settings, state: State, tell: Callable[[Event], None], link: files.Link = os.link) -> bool:
    """Puts the episodes of one subscription right, under its lock; True when its history has changed and is to be read
    again. A subscription that another poca is busy with is left alone. base_dir must be known to be ours."""
    base = settings.base_dir
    if not any(_in_flight(base, episode) for episode in history.episodes):
        return False
    with locks.subscription_lock(settings.state_dir, history.title) as got:
        if not got or state.claim(history.title, history.generation) is None:
            return False
        for episode in history.episodes:
            if not _in_flight(base, episode):
                continue
            try:
                settled = _settled(base, episode, link)
            except DiskError as error:
                tell(events.step_failed(history.title, f"{events.name_of(episode)}: {error}; tried again in the next run"))
                continue
            if settled != episode:
                state.put(history.title, settled)
                tell(_news(history.title, episode, settled))
    return True


def _news(title: str, before: Episode, after: Episode) -> Event:
    """A step that is finished now was told by no run yet, and is not in the log."""
    name, told = before.path.rpartition("/")[2], ""
    if before.stage is Stage.READY and after.fate is Fate.HELD:
        told = f"downloaded {name} ({text.size(after.size or 0)})"
    if before.stage is Stage.DELETING and after.fate is Fate.REMOVED:
        told = f"removed {name}"
    if not told:
        sentence = f"{events.name_of(before)}: what an interrupted run had begun was put right; now {after.fate}"
        return events.said("note", Level.DETAIL, title, sentence)
    return events.said(
        "recovered", Level.NEWS, title, f"{told} in a run that was cut short", episode=events.name_of(after), file=text.shown(before.path),
        bytes=after.size, url=text.shown_url(after.url),
    )


def _in_flight(base: Path, episode: Episode) -> bool:
    if episode.stage is Stage.PART:
        return not os.path.lexists(base / episode.part)
    return episode.stage is not Stage.NONE


def _settled(base: Path, episode: Episode, link: files.Link) -> Episode:
    """The record as it should be, the disk made to fit. Raises DiskError where the disk does not tell."""
    match episode.stage:
        case Stage.DELETING:
            gone = files.regular_size(files.inside(base, episode.path)) is None
            return replace(episode, fate=Fate.REMOVED if gone else Fate.HELD, stage=Stage.NONE)
        case Stage.READY:
            return _named(base, episode, link)
        case Stage.TAGGING if files.is_part(episode.part):
            # Whether it is the changed file or the one before is not known.
            files.remove(base, episode.part)
            files.remove(base, files.tagging_copy(episode.part))
    return _from_the_start(episode)


def _named(base: Path, episode: Episode, link: files.Link) -> Episode:
    """A finished part that was about to get its name, or has got it."""
    part, final = files.inside(base, episode.part), files.inside(base, episode.path)
    if files.regular_size(part) is None:
        # The name was given by renaming, or the part removed after linking; a stranger's file has another size.
        return _held(episode) if _size(final) == episode.size else _from_the_start(episode)
    if os.path.lexists(final):
        if not os.path.samestat(part.lstat(), final.lstat()):
            return episode      # a stranger's: the download goes on with its next name
        files.remove(base, episode.part)
        return _held(episode)
    files.give_name(base, part, [episode.path], lambda name: None, link)
    return _held(episode)


def _size(path: Path) -> int | None:
    try:
        return files.regular_size(path)
    except DiskError:
        return None


def _held(episode: Episode) -> Episode:
    return replace(
        episode, fate=Fate.HELD, stage=Stage.NONE, part="", part_etag="", part_total=None, failures=0, error="", next_try=None
    )


def _from_the_start(episode: Episode) -> Episode:
    """Still to come, with nothing of it there. The name that was only about to be given is given up."""
    return replace(episode, stage=Stage.NONE, path="", size=None, part="", part_etag="", part_total=None)
