"""Completion of the command line in shells. Owns shtab, an optional library, which is imported only to print it."""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Sequence

SHELLS = ("bash", "zsh", "fish")

_PREAMBLE = {
    "bash": r"""
_poca_titles() {
  local title quoted
  while IFS= read -r title; do
    printf -v quoted %q "$title"
    if [[ "$title" == "$1"* || "$quoted" == "$1"* ]]; then printf '%s\n' "$quoted"; fi
  done < <(poca-subscribe titles 2>/dev/null)
}
""",
    "zsh": r"""
_poca_titles() {
  local -a titles
  titles=("${(@f)$(poca-subscribe titles 2>/dev/null)}")
  compadd -a titles
}
""",
}
_TITLES = {"bash": "_poca_titles", "zsh": "_poca_titles", "fish": "(poca-subscribe titles 2>/dev/null)"}
_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files", "fish": "(__fish_complete_path (commandline -ct))"}


def add_to(parser: ArgumentParser) -> None:
    """The option ``--print-completion SHELL``."""
    parser.add_argument("--print-completion", action=_Print, choices=SHELLS, help="print the completion of this command line for a shell")


def titles(argument: Action) -> None:
    """The argument takes titles of subscriptions."""
    argument.complete = _TITLES     # type: ignore[attr-defined]


def files(argument: Action) -> None:
    """The argument takes names of files."""
    argument.complete = _FILES      # type: ignore[attr-defined]


class _Print(Action):
    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: str | Sequence[object] | None, option: str | None = None) -> None:
        try:
            import shtab
        except ImportError:
            parser.error("completion needs the library shtab: pip install 'poca[completion]'")
        shell = str(values)
        sys.stdout.write(shtab.complete(parser, shell, preamble=_PREAMBLE.get(shell, "")) + "\n")
        parser.exit()
