"""What each command works with: the config, the history, the words to the user and the questions."""

from __future__ import annotations

import json
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from poca import naming, options, text
from poca.errors import ConfigError
from poca.model import Config, Event, Level, Settings, Subscription
from poca.report import Lines, is_terminal

if TYPE_CHECKING:
    from poca.state import State


class Desk:
    """One call of poca-subscribe. ``now``: its instant; ``failed``: something did, so that it ends with 1."""

    def __init__(self, arguments: Namespace, out: Lines, err: Lines, now: int) -> None:
        self.arguments, self.out, self.err, self.now = arguments, out, err, now
        self.failed = False
        self.terminal = out.isatty() and sys.stdin is not None and is_terminal(sys.stdin)

    # ------------------------------------------------------------------------------------------------------- words

    def say(self, line: str = "") -> None:
        self.out.line(line)

    def json(self, **values: object) -> None:
        self.out.line(json.dumps(values, ensure_ascii=True, allow_nan=False))

    def complain(self, line: str) -> None:
        """To stderr: a warning, or an error that is counted elsewhere."""
        self.err.line(line)

    def fail(self, line: str) -> None:
        self.failed = True
        self.complain(line)

    def hear(self, event: Event) -> None:
        """Says, and logs, what the steps on disk tell."""
        if event.level is Level.DETAIL:
            return
        # What is removed here for good is not tried again by a run of poca.
        line = f"{text.shown(event.title)}: {event.text.removesuffix('; tried again in the next run')}"
        if event.level is Level.ERROR:
            self.fail(line)
        else:
            self.say(line)
        self.log(event.title, event.text)

    def log(self, title: str, sentence: str) -> None:
        """A line for the log, where there is one."""
        from poca.runlog import RunLog

        if "config" in vars(self) and (trouble := RunLog(self.settings.logfile, os.getpid()).write(self.now, title, text.shown(sentence))):
            self.fail(trouble)

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where stdout is none."""
        return shutil.get_terminal_size().columns if self.out.isatty() else None

    # --------------------------------------------------------------------------------------------------- questions

    def ask(self, question: str) -> str:
        """What the user types; only at a terminal. Raises ConfigError where the input ends instead."""
        self.out.write(f"{question} ")
        self.out.flush()
        line = sys.stdin.readline()
        if not line:
            raise ConfigError("There was no answer. Nothing was changed.")
        return line.strip()

    def agreed(self, question: str, default: bool) -> bool:
        answer = self.ask(f"{question} [{'Y/n' if default else 'y/N'}]").lower()
        return answer in ("y", "yes") or (default and not answer)

    # ------------------------------------------------------------------------------------------------------ config

    @cached_property
    def config(self) -> Config:
        """Raises ConfigError."""
        from poca import config

        if not self.arguments.config and not self.path.exists():
            raise ConfigError(f"There is no config file {self.path}. poca-subscribe add URL makes one.")
        return config.read(self.path)

    @cached_property
    def path(self) -> Path:
        from poca import config

        given: Path | None = self.arguments.config
        return given or config.default_path()

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def titles(self) -> list[str]:
        """All titles of the config, also of subscriptions that have a fault."""
        return list(dict.fromkeys([*(s.title for s in self.config.subscriptions), *(title for title, _ in self.config.faulty if title)]))

    def title(self, word: str) -> str:
        """The title that is meant: exactly this one, or the only one with this part. Raises ConfigError."""
        if word in self.titles:
            return word
        part = naming.fold(word).strip()        # nothing is no part: a variable of a script that is empty must mean no subscription
        near = [title for title in self.titles if part and naming.fold(word) in naming.fold(title)]
        if len(near) == 1:
            return near[0]
        if near:
            raise ConfigError(f'"{text.shown(word)}" may be one of these; say which: {_listed(near)}.')
        near = options.nearest(word, self.titles, 3)
        raise ConfigError(f'There is no subscription "{text.shown(word)}"' + (f"; the nearest: {_listed(near)}." if near else "."))

    def named(self) -> list[str]:
        """The titles that the command line means, each once. Raises ConfigError."""
        return list(dict.fromkeys(self.title(word) for word in self.arguments.titles))

    def subscription(self, word: str) -> Subscription:
        """The subscription that is meant. Raises ConfigError, also for one with a fault."""
        title = self.title(word)
        found = next((s for s in self.config.subscriptions if s.title == title), None)
        if found is None:
            raise ConfigError(f"The subscription {text.shown(title)} has a fault:", self.config.faults)
        return found

    def outline(self, title: str) -> Subscription:
        """A subscription of the config; of one with a fault just title, address and folder."""
        whole = (s for s in self.config.subscriptions if s.title == title)
        folder = naming.folder(title, self.settings.filenames)
        return next(whole, None) or next(Subscription(title, url, folder=folder) for faulty, url in self.config.faulty if faulty == title)

    # ----------------------------------------------------------------------------------------------------- history

    @contextmanager
    def state(self, *, readonly: bool = False) -> Iterator[State]:
        """The history, open. Raises StateError."""
        from poca.state import State

        state = State.open(self.settings.state_dir, self.now, readonly=readonly)
        try:
            for alarm in state.alarms:
                self.fail(alarm)
            yield state
        finally:
            state.close()


def _listed(titles: Sequence[str]) -> str:
    return ", ".join(text.shown(title) for title in titles[:20]) + (", ..." if len(titles) > 20 else "")


def clean(values: Mapping[str, object]) -> dict[str, object]:
    """Texts for JSON: as they are, but without what is secret in an address."""
    return {key: text.shown(value) if isinstance(value, str) and "://" in value else value for key, value in values.items()}
