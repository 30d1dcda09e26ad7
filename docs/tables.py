"""Writes the tables of options into docs/config.rst, from the table in poca/options.py, which is their only source.

    python docs/tables.py

Between ``.. begin settings`` and ``.. end settings`` (and so on for each section) the text is generated.
"""

from __future__ import annotations

import re
from pathlib import Path

from poca import __version__
from poca.options import SECTIONS, Option, Shape

DOCUMENT = Path(__file__).with_name("config.rst")
_BLOCK = re.compile(r"^(?P<begin>\.\. begin (?P<section>\w+)\n\n).*?(?P<end>^\.\. end (?P=section)$)", re.DOTALL | re.MULTILINE)


def table(section: str) -> str:
    """The options of a section as a list-table."""
    head = [".. list-table::", "   :header-rows: 1", "   :widths: 16 32 16 36", ""]
    head += ["   * - option", "     - takes", "     - default", "     - meaning"]
    rows = [line for option in SECTIONS[section].values() for line in _row(option)]
    return "\n".join([*head, *rows, "", ""])


def filled(text: str) -> str:
    """The document with its tables as they should be."""
    return _BLOCK.sub(lambda block: block["begin"] + table(block["section"]) + block["end"], text)


def _row(option: Option) -> list[str]:
    return [f"   * - ``{option.name}``", f"     - {_words(_takes(option))}", f"     - {_default(option)}", f"     - {_words(option.meaning)}"]


def _takes(option: Option) -> str:
    words = option.type.allowed
    return f"{words} (see below)" if option.type.shape is Shape.OPTIONS else words


def _default(option: Option) -> str:
    if option.required:
        return "required"
    if option.default is None:
        return "none"
    return f"``{option.default.replace(__version__, 'VERSION')}``" if option.default.strip() else f"``'{option.default}'``"


def _words(text: str) -> str:
    """Plain words for reStructuredText: braces, names with underscores, quotes and `marks` as literals."""
    text = re.sub(r"`([^`]+)`", r"``\1``", text)
    parts = re.split(r"(``[^`]+``)", text)
    literal = re.compile(r"'[^']*'|\$\w+(?:/\w+)*|\b\w+(?:_\w+)+\b|https?://(?=\s|$)|\bnull\b")
    return "".join(part if part.startswith("``") else literal.sub(lambda found: f"``{found[0]}``", part) for part in parts)


def main() -> None:
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
