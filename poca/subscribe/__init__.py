"""poca-subscribe: subscriptions added, listed, changed and explained; the config edited with care for all the rest of it."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module

from poca.errors import BaseDirError, ConfigError, EditError, PocaError, StateError
from poca.report import Lines
from poca.startup import guard_descriptors, interrupted_silently, utf8_names

DONE, FAILED, UNUSABLE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """The program `poca-subscribe`; returns its exit code."""
    with interrupted_silently():
        from poca.subscribe.commandline import parser
        from poca.subscribe.desk import Desk

        guard_descriptors()
        if argv is None:
            utf8_names()
        arguments = parser().parse_args(argv)
    desk = Desk(arguments, Lines(sys.stdout), Lines(sys.stderr), int(time.time()))
    try:
        module, command = arguments.command
        getattr(import_module(f"poca.subscribe.{module}"), command)(desk)
    except ConfigError as error:
        for line in (str(error), *map(str, error.faults)):
            desk.complain(line)
        return UNUSABLE
    except (StateError, BaseDirError, EditError) as error:
        desk.complain(str(error))
        return UNUSABLE
    except PocaError as error:
        desk.fail(str(error))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:      # noqa: BLE001 - what nobody foresaw is told in a line; the log has the rest
        desk.fail(f"A fault of poca itself ended the command ({type(error).__name__}).")
        desk.log("", " | ".join(line.strip() for line in traceback.format_exc().splitlines()))
    return FAILED if desk.failed else DONE
