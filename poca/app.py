"""The program `poca`: its command line. What it does is in :mod:`poca.run`, which is not needed to say what it takes."""

from __future__ import annotations

import gc
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from poca import __version__, completion
from poca.startup import guard_descriptors, interrupted_silently, utf8_names


def main(argv: Sequence[str] | None = None) -> int:
    """The program `poca`; returns its exit code."""
    with interrupted_silently():
        guard_descriptors()
        if argv is None:
            utf8_names()
        arguments = parser().parse_args(argv)
        from poca import run

    code = run.main(arguments)
    gc.freeze()     # else Python looks through all that there is once more, only to end
    return code


def parser() -> ArgumentParser:
    made = ArgumentParser(prog="poca", description="Keeps a folder of podcast episodes in step with their feeds.", allow_abbrev=False)
    titles = made.add_argument("titles", nargs="*", metavar="TITLE", help="only these subscriptions, asked now even if they were to wait")
    completion.titles(titles)
    config = made.add_argument("-c", "--config", type=Path, metavar="FILE", help="the config file (default: $XDG_CONFIG_HOME/poca/config.yaml)")
    completion.files(config)
    loudness = made.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    loudness.add_argument("-v", "--verbose", action="store_true", help="one feed at a time, in config order, every step on its own line")
    made.add_argument("-n", "--parallel", type=_count, metavar="N", help="feeds asked at once (default: settings.parallel); 1: one after another")
    made.add_argument("--dry-run", action="store_true", help="show what would be deleted and downloaded, and change nothing")
    made.add_argument("--json", action="store_true", help="JSON Lines on stdout, an event a line")
    made.add_argument("-e", "--email", action="store_true", help="also mail the log of the run, by settings.email")
    made.add_argument("--version", action="version", version=f"poca {__version__}")
    completion.add_to(made)
    return made


def _count(word: str) -> int:
    number = int(word)
    if not 1 <= number <= 1000:
        raise ValueError(word)
    return number


_count.__name__ = "number from 1 to 1000"       # what argparse calls it in its error
