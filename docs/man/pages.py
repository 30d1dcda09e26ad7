"""Builds the man pages: the texts are beside this file, the parts about options come from the code.

    python docs/man/pages.py FOLDER

A line ``.. fill: WHAT`` in a text is a place for such a part. Needs docutils, and nothing else that poca needs.
"""

from __future__ import annotations

import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterable
from pathlib import Path

SOURCES = Path(__file__).parent
sys.path.insert(0, str(SOURCES.parents[1]))     # the poca of this tree, installed or not

from docutils.core import publish_string  # noqa: E402

from poca import __version__, app, templates  # noqa: E402
from poca.options import PROJECT_URL, SECTIONS, Option, Shape  # noqa: E402
from poca.subscribe import commandline  # noqa: E402

PARSERS = {"poca": app.parser, "poca-subscribe": commandline.parser}
_FILL = re.compile(r"^\.\. fill: (.+)$", re.MULTILINE)


def build(folder: Path) -> list[Path]:
    """The pages, written into a folder as NAME.SECTION. Raises docutils' SystemMessage for any warning."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for source in sorted(SOURCES.glob("*.rst")):
        settings = {"report_level": 2, "halt_level": 2, "input_encoding": "unicode", "output_encoding": "utf-8"}
        made = publish_string(text(source), source_path=str(source), writer="manpage", settings_overrides=settings)
        page = folder / source.stem
        page.write_bytes(made)
        pages.append(page)
    return pages


def text(source: Path) -> str:
    """The whole text of a page, its places filled."""
    filled = _FILL.sub(lambda place: _part(*place[1].split()), source.read_text(encoding="utf-8"))
    return filled.replace("\n:Manual group:", f"\n:Version: {__version__}\n:Manual group:", 1)


def _part(what: str, name: str = "") -> str:
    match what:
        case "usage":
            return _usage(PARSERS[name]())
        case "options":
            return _definitions(PARSERS[name]()._actions)
        case "commands":
            return "\n".join(_command(part) for part in _commands(PARSERS[name]()))
        case "section":
            return "\n".join(_option(option) for option in SECTIONS[name].values())
        case "fields":
            fields = ", ".join(f"**{{{field}}}**" for field in templates.FIELDS)
            return f"The fields of **rename** and of the values of **metadata** are {fields}; also **{{date:%Y%m%d}}** and **{{episode:03}}**."
        case "address":
            return f"{PROJECT_URL}"
    raise ValueError(what)


def _usage(parser: ArgumentParser) -> str:
    vars(parser)["color"] = False       # Python 3.14 on; a page may be built at a terminal
    words = " ".join(parser.format_usage().removeprefix("usage: ").split())
    return f"**{parser.prog}**{_plain(words.removeprefix(parser.prog))}\n"


def _commands(parser: ArgumentParser) -> Iterable[ArgumentParser]:
    """Those that have a help; argparse has no public name for them."""
    (commands,) = (action for action in parser._actions if isinstance(action, _SubParsersAction))
    return (commands.choices[shown.dest] for shown in commands._choices_actions)


def _command(parser: ArgumentParser) -> str:
    name = parser.prog.split()[-1]
    example = (parser.epilog or "").removeprefix("example:").strip()
    own = [action for action in parser._actions if action.dest not in ("help", "config")]
    parts = [f"{name}\n{'-' * len(name)}\n", _usage(parser), f"{_plain(parser.description or '')}\n", _definitions(own)]
    return "\n".join([*parts, f"::\n\n    {example}\n" if example else ""])


def _definitions(actions: Iterable[Action]) -> str:
    return "\n".join(f"{_form(action)}\n    {_plain(_help(action))}\n" for action in actions if action.help not in (None, SUPPRESS))


def _form(action: Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else "{" + ",".join(action.choices) + "}" if action.choices else ""
    if not action.option_strings:
        return f"*{value or action.dest}*"
    taken = f" *{value}*" if action.nargs != 0 and value else ""
    return ", ".join(f"**{option}**{taken}" for option in action.option_strings)


def _help(action: Action) -> str:
    return (action.help or "")[:1].upper() + (action.help or "")[1:] + "."


def _option(option: Option) -> str:
    if option.required:
        default = "; required"
    elif option.default is None or option.type.shape is Shape.OPTIONS:
        default = ""
    else:
        default = f"; default: {_plain(option.default) if option.default.strip() else repr(option.default)}"
    return f"**{option.name}**: {_plain(option.type.allowed)}{default}\n    {_plain(option.meaning[:1].upper() + option.meaning[1:])}.\n"


def _plain(words: str) -> str:
    """Words of the code for reStructuredText: `marks` are strong, all else is as it stands."""
    parts = re.split(r"`([^`]+)`", words)
    return "".join(f"**{part}**" if number % 2 else re.sub(r"([\\*|_]|:(?=//))", r"\\\1", part) for number, part in enumerate(parts))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
