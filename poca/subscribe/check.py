"""``check`` and ``tags``: the config held against what it may hold."""

from __future__ import annotations

from collections.abc import Iterable

from poca.errors import ConfigError
from poca.model import Fault
from poca.subscribe.desk import Desk
from poca.tables import Column, show
from poca.tagnames import table


def check(desk: Desk) -> None:
    """Tells every fault. Raises ConfigError where there is one."""
    try:
        config = desk.config
    except ConfigError as error:
        if desk.arguments.json:
            _faults(desk, [fault for fault in error.faults if isinstance(fault, Fault)] or [Fault(str(desk.path), 0, 0, str(error))])
        raise
    if desk.arguments.json:
        _faults(desk, config.faults)
    for warning in config.warnings:
        if desk.arguments.json:
            desk.json(level="warning", file=str(desk.path), line=None, column=None, message=warning)
        else:
            desk.complain(f"Warning: {warning}")
    if config.faults:
        count = len(config.faults)
        raise ConfigError(f"The config {desk.path} has {count} fault{'' if count == 1 else 's'}; the rest of it is run:", config.faults)
    if not desk.arguments.json:
        count, active = len(config.subscriptions), sum(s.active for s in config.subscriptions)
        desk.say(f"{desk.path}: no fault. {count} subscription{'' if count == 1 else 's'}, {active} active.")


def _faults(desk: Desk, faults: Iterable[Fault]) -> None:
    for fault in faults:
        desk.json(level="error", file=fault.file, line=fault.line or None, column=fault.column or None, message=fault.message)


def tags(desk: Desk) -> None:
    """The names that `metadata` takes, and what each becomes in one format."""
    form = desk.arguments.format
    if desk.arguments.json:
        for name, target in table(form):
            desk.json(name=name, tag=target)
        return
    show(desk.out, [Column("NAME"), Column(form.upper())], [list(row) for row in table(form)], desk.width)
