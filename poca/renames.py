"""Subscriptions that bear a new title in the config: their history follows, and their folder where the new name is free.

The intent is recorded before the folder is moved and the end after it, so that a crash in between never makes the
files look as if the user had deleted them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from poca import locks, naming
from poca.model import Config, Event, History, Level, Settings, Subscription
from poca.state import State

Tell = Callable[[Event], None]


def renamed(config: Config, histories: Mapping[str, History]) -> dict[str, Subscription]:
    """By their old titles the subscriptions that the history knows by another title, which the config has no more, and
    the same URL. One with a fault is still in the config."""
    titles = {s.title for s in config.subscriptions} | {title for title, _ in config.faulty}
    urls = {url for title, url in config.faulty if url}
    lost = {history.url: title for title, history in histories.items() if title not in titles and history.url not in urls}
    known = {title for title, history in histories.items() if history.url or history.episodes}     # not just a title that was given up
    return {lost[s.url]: s for s in config.subscriptions if s.title not in known and s.url in lost}


def follow(pairs: Mapping[str, Subscription], settings: Settings, state: State, tell: Tell) -> set[str]:
    """Carries the renamings out; the new titles of those that another poca is busy with. These are not to be run: under
    their new title they would seem to be subscriptions without any episode."""
    busy = set()
    for old, subscription in pairs.items():
        with locks.subscription_lock(settings.state_dir, old) as got:
            if not got or state.history(old).url != subscription.url:
                tell(Event("busy", Level.DETAIL, subscription.title, f"another poca is busy with it under its old title {old}"))
                busy.add(subscription.title)
                continue
            old_folder = naming.folder(old, settings.filenames)
            moves = _can_move(settings.base_dir, old_folder, subscription.folder)
            state.begin_rename(old, subscription.title, old_folder, subscription.folder if moves else None)
            moved = moves and _move(settings.base_dir, old_folder, subscription.folder)
            state.finish_rename(old, moved=moved)
            where = "its folder was moved" if moved else "its files stay where they are"
            tell(Event("renamed", Level.NEWS, subscription.title, f"was {old} until now: its history follows, {where}", {"from": old}))
    return busy


def finish(state: State, settings: Settings) -> None:
    """Finishes what a crash left begun. To be called before anything is decided by titles."""
    for rename in state.unfinished_renames():
        with locks.subscription_lock(settings.state_dir, rename.old_title) as got:
            if not got or rename not in state.unfinished_renames():
                continue        # no crash: another poca is at it, or was until now
            moved = True
            if rename.new_folder is not None and (settings.base_dir / rename.old_folder).exists():
                base, old, new = settings.base_dir, rename.old_folder, rename.new_folder
                moved = _can_move(base, old, new) and _move(base, old, new)
            state.finish_rename(rename.old_title, moved=moved)


def _can_move(base: Path, old: str, new: str) -> bool:
    if old == new or not (base / old).is_dir():
        return False
    return not os.path.lexists(base / new) or (base / old).samefile(base / new)


def _move(base: Path, old: str, new: str) -> bool:
    try:
        (base / old).rename(base / new)
    except OSError:
        return False
    return True
