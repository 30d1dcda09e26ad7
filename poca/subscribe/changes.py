"""``delete``, ``enable`` and ``disable``: subscriptions that go, or rest, and what becomes of their files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from poca import basedir, confedit, conffile, files, locks, planner, recovery, text
from poca import cover as covers
from poca.errors import BaseDirError, ConfigError, DiskError
from poca.model import Disk, Episode, Fate, FeedDoc, History, Plan, Stage, Subscription
from poca.state import State
from poca.steps import Steps, Work
from poca.subscribe.desk import Desk
from poca.web import Web

BUSY_WAIT = 1.0             # seconds for the lock of a subscription
_MOST_NAMED = 20            # files that stay, of one folder


def enable(desk: Desk) -> None:
    """Raises ConfigError, EditError."""
    _set_state(desk, desk.named(), "active")


def disable(desk: Desk) -> None:
    """Raises ConfigError, EditError, StateError, BaseDirError."""
    titles = desk.named()
    if not desk.arguments.files:
        _set_state(desk, titles, "inactive")
        return
    with desk.state() as state:
        for title in titles:
            _each(desk, state, title, partial(_set_state, desk, [title], "inactive"), forget=False)


def delete(desk: Desk) -> None:
    """Raises ConfigError, EditError, StateError, BaseDirError."""
    titles = desk.named()
    with desk.state() as state:
        for title in titles:
            confedit.remove_subscription(_written(desk.path), title)       # or it is told before the question
        if not desk.arguments.yes:
            _ask(desk, state, titles)
        for title in titles:
            _each(desk, state, title, partial(_remove_entry, desk, title), forget=True)


def _written(path: Path) -> str:
    return path.read_bytes().decode()


def _set_state(desk: Desk, titles: Sequence[str], word: str) -> None:
    """Writes it for all of them in one edit, where it is not so already."""
    active = {s.title: s.active for s in desk.config.subscriptions}
    other = [title for title in titles if active.get(title) is not (word == "active")]

    def change(written: str) -> str:
        for title in other:
            written = confedit.set_value(written, title, "state", word)
        return written

    conffile.edit(desk.path, change)
    for title in titles:
        desk.say(f"{text.shown(title)} is {word}{' now' if title in other else ' already'}.")


def _remove_entry(desk: Desk, title: str) -> None:
    conffile.edit(desk.path, partial(confedit.remove_subscription, title=title))
    desk.say(f"{text.shown(title)} is no longer subscribed to.")


def _ask(desk: Desk, state: State, titles: Sequence[str]) -> None:
    """Raises ConfigError where the answer is no, and where there is nobody to ask."""
    words = ", ".join(text.shown(title) for title in titles)
    what = f"the subscription{'' if len(titles) == 1 else 's'} {words}"
    if desk.arguments.files:
        ours = [e for title in titles for e in state.history(title).episodes if e.fate is Fate.HELD and not e.adopted]
        what += f" and {len(ours)} episode{'' if len(ours) == 1 else 's'} ({text.size(sum(e.size or 0 for e in ours))})"
    if not desk.terminal:
        raise ConfigError(f"To delete {what} without being asked, add --yes. Nothing was changed.")
    if not desk.agreed(f"Delete {what}?", default=False):
        raise ConfigError("Nothing was changed.")


def _each(desk: Desk, state: State, title: str, edit: partial[None], *, forget: bool) -> None:
    """Edits the config for one subscription, removes its files where that was asked for, and forgets its history, all
    under its lock. The config comes first: whatever happens afterwards, no run of poca fetches the files again."""
    subscription, with_files = desk.outline(title), desk.arguments.files
    try:
        if with_files:
            _must_be_ours(desk, state, title)
            recovery.recover(state.history(title), desk.settings, state, desk.hear)
        with locks.subscription_lock(desk.settings.state_dir, title, BUSY_WAIT) as got:
            if not got:
                desk.fail(f"{text.shown(title)}: another poca is busy with it. Nothing was changed; try again when it is done.")
                return
            # So that a plan which another poca has made meanwhile is dropped.
            generation = state.generation(title)
            state.claim(title, generation)
            plan = _look(desk, state, subscription) if with_files else None
            edit()
            if plan:
                _clear(desk, state, plan)
            elif forget:
                _leave(desk, subscription, state.history(title).episodes)
            if forget and generation:       # a plan made before the first record is dropped only as long as there is one
                state.delete_subscription(title)
    except DiskError as error:
        desk.fail(f"{text.shown(title)}: {error}")


def _leave(desk: Desk, subscription: Subscription, episodes: Sequence[Episode]) -> None:
    """The files stay, but for hidden parts, which nobody would finish, or find, once the history has forgotten them."""
    base = desk.settings.base_dir
    for part in [e.part for e in episodes if e.stage in (Stage.PART, Stage.TAGGING) and files.is_part(e.part)]:
        with contextlib.suppress(DiskError):
            files.remove(base, part)
            files.remove(base, files.tagging_copy(part))
    if any(e.fate is Fate.HELD for e in episodes):
        desk.say(f"Its files stay in {text.shown(str(base / subscription.folder))}; poca does not touch them any more.")


def _must_be_ours(desk: Desk, state: State, title: str) -> None:
    """Raises BaseDirError where there are files to delete, and base_dir does not bear our marker."""
    base, history = desk.settings.base_dir, state.history(title)
    if any(e.path or e.part for e in history.episodes) and not basedir.read_marker(base) == state.marker != "":
        raise BaseDirError(f"base_dir {base} does not bear poca's marker: is its drive mounted, is it the right folder? Nothing was changed.")


def _look(desk: Desk, state: State, subscription: Subscription) -> Plan:
    """What is on disk: records of files that are not there any more, or are no media now, are known by ``gone``."""
    base, history = desk.settings.base_dir, state.history(subscription.title)
    present = basedir.present(base, basedir.read_marker(base), history.episodes)
    return planner.plan(subscription, history, Disk(present), FeedDoc(), desk.now)


def _clear(desk: Desk, state: State, plan: Plan) -> None:
    """Removes what poca put there, and the folder where nothing else is left in it."""
    settings, title = desk.settings, plan.subscription.title
    steps = Steps(settings, state, Web(settings), desk.hear, lambda *_: None, lambda: desk.now, os.link)
    state.put(title, *plan.gone, *plan.found)
    state.settle(title, "")             # or an unchanged feed would leave nothing to plan when it is enabled again
    history = state.history(title)
    work = Work(plan, plan.generation, [], [])
    for episode in history.episodes:
        if episode.fate is Fate.PENDING:
            steps.drop(work, episode)
        else:
            steps.remove(work, episode)
    _remove_cover(desk, history)
    if steps.sums.removed:
        desk.say(f"{text.shown(title)}: {steps.sums.removed} removed ({text.size(steps.sums.freed)}).")
    folders = {plan.subscription.folder} | {e.path.partition("/")[0] for e in history.episodes if "/" in e.path}
    for folder in sorted(folders):
        _tell_rest(desk, folder, history.episodes)


def _remove_cover(desk: Desk, history: History) -> None:
    """Only the very picture that poca wrote."""
    if not history.cover:
        return
    path = files.inside(desk.settings.base_dir, history.cover)
    with contextlib.suppress(OSError):
        if not path.is_symlink() and covers.digest(path.read_bytes()) == history.cover_hash:
            files.remove(desk.settings.base_dir, history.cover)


def _tell_rest(desk: Desk, folder: str, episodes: Sequence[Episode]) -> None:
    """Removes a folder that is empty now; else names what stays in it."""
    base = desk.settings.base_dir
    top = files.inside(base, folder)
    if not top.is_dir() or top.is_symlink():
        return
    with contextlib.suppress(OSError):      # rmdir refuses a folder in which anything is left
        top.rmdir()
        desk.say(f"The folder {text.shown(folder)} was empty and is removed.")
        return
    adopted = {e.path for e in episodes if e.adopted and e.fate is Fate.HELD}
    rest = sorted(path.relative_to(base).as_posix() for path in top.rglob("*") if path.is_symlink() or not path.is_dir())
    desk.say(f"The folder {text.shown(folder)} stays, with what poca did not put there:")
    for path in rest[:_MOST_NAMED]:
        desk.say(f"  {text.shown(path)}{' (adopted)' if path in adopted else ''}")
    if len(rest) > _MOST_NAMED:
        desk.say(f"  and {len(rest) - _MOST_NAMED} more")
