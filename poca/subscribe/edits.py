"""Subscriptions on their way into the config: what they would mean there, and titles that are free."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from poca import confedit, config, naming
from poca.model import Config, Subscription
from poca.subscribe.feeds import address

DEFAULT_LIMIT = 10          # max_number where no limit is in force


def preview(text: str) -> Config:
    """What a text would mean as the config. Its paths are of no use. Raises ConfigError."""
    with tempfile.TemporaryDirectory(prefix="poca-") as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        return config.read(path)


def meant(text: str, several: Sequence[Mapping[str, object]], *, limit: bool = True) -> tuple[Config, list[dict[str, object]], bool]:
    """The config with the subscriptions added, and their values. ``limit``: to these max_number is added where no limit
    would be in force; the last value tells whether to any. Raises ConfigError, EditError."""
    limited = False
    values = [dict(one) for one in several]
    read = preview(confedit.add_subscriptions(text, values))
    by_title = {s.title: s for s in read.subscriptions}
    for one in values:
        subscription = by_title.get(str(one["title"]))
        if limit and subscription and not {"max_number", "max_days"} & one.keys() and not (subscription.max_number or subscription.max_days):
            one["max_number"] = DEFAULT_LIMIT
            limited = True
    return preview(confedit.add_subscriptions(text, values)) if limited else read, values, limited


def change(values: Sequence[Mapping[str, object]]) -> Callable[[str], str]:
    """The edit that adds these subscriptions."""
    return lambda text: confedit.add_subscriptions(text, values)


class Titles:
    """The titles that are taken, by the folders that they give at the level of ``filenames``."""

    def __init__(self, titles: Iterable[str], level: str) -> None:
        self._level = level
        self._taken = {self._folder(title): title for title in titles}

    def holder(self, title: str) -> str:
        """Whose folder this title would have, "" where it is free."""
        return self._taken.get(self._folder(title), "")

    def unique(self, title: str) -> str:
        """The title, with a number where its folder is taken; it is taken from now on."""
        number, free = 1, title
        bare = re.sub(r" \([0-9]{1,2}\)$", "", title)
        while self.holder(free):
            number += 1
            free = f"{bare} ({number})"
        self._taken[self._folder(free)] = free
        return free

    def _folder(self, title: str) -> str:
        return naming.fold(naming.folder(title, self._level))


def subscribed(read: Config, url: str) -> str:
    """The title under which the address is subscribed to already, "" where it is not."""
    asked = address(url)
    known = [(s.title, s.url) for s in read.subscriptions] + list(read.faulty)
    return next((title for title, other in known if other and address(other) == asked), "")


def of_title(read: Config, title: str) -> Subscription | None:
    return next((s for s in read.subscriptions if s.title == title), None)
