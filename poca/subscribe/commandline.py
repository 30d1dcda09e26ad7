"""What poca-subscribe can be asked: each command with its options, and where it is done."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from poca import __version__, completion
from poca.options import SECTIONS
from poca.tagnames import FORMATS

# name: module, function, help, what it does in more words, an example
COMMANDS: dict[str, tuple[str, str, str, str, str]] = {
    "add": (
        "add", "add", "subscribe to a feed",
        "Asks for the feed, shows what is in it and what would be downloaded, and writes the subscription into the config. URL may also be "
        "that of a web page that names its feed. Where no limit is in force max_number: 10 is written.",
        "poca-subscribe add https://example.org/feed.xml --max-number 5 --category news"),
    "list": (
        "overview", "show_list", "list all subscriptions",
        "Title, category, state, max_number, episodes held, their size, the newest one, health and address of each subscription.",
        "poca-subscribe list"),
    "stats": (
        "overview", "show_stats", "show what the feeds are like",
        "Per feed, as it was last read: author, latest episode, average size and length, and on which weekdays of the last five weeks it "
        "published.", 'poca-subscribe stats "The Example Hour"'),
    "delete": (
        "changes", "delete", "remove subscriptions",
        "Removes subscriptions from the config, and forgets their history. Their files stay, unless --files is given: then the files that poca "
        "put there go, and whatever else is in the folder stays.", 'poca-subscribe delete "The Example Hour" --files'),
    "enable": (
        "changes", "enable", "make subscriptions active",
        "Makes subscriptions active: poca asks their feeds.", 'poca-subscribe enable "The Example Hour"'),
    "disable": (
        "changes", "disable", "make subscriptions inactive",
        "Makes subscriptions inactive: poca no longer asks their feeds. With --files their episodes are removed, too; they may come again.",
        'poca-subscribe disable "The Example Hour"'),
    "why": (
        "why", "why", "tell why episodes are there or not",
        "For each episode of the feed as it was last read: whether it is held or wanted, or why not. EPISODE is a number (1 is the newest), a "
        "range such as 2-5, or a part of a title.", 'poca-subscribe why "The Example Hour" 1-10'),
    "mark": (
        "marks", "mark", "count episodes as already had",
        "Counts episodes as already had, so that they are not downloaded. EPISODE is a number (1 is the newest, see `why`), a range such as "
        "2-5, or a part of a title.", 'poca-subscribe mark "The Example Hour" 2-5'),
    "retry": (
        "marks", "retry", "let episodes come again",
        "Forgets that episodes were deleted, marked, or failed: the next run takes them again, and asks the feed even if it was to wait. "
        "Without EPISODE all of the subscription's; else by number (1 is the newest, see `why`), range, or a part of a title.",
        'poca-subscribe retry "The Example Hour"'),
    "tags": (
        "check", "tags", "list the tag names",
        "The tag names that `metadata` takes, and what each becomes in a format.", "poca-subscribe tags mp3"),
    "import": (
        "exchange", "import_list", "subscribe to all feeds of a list",
        "Reads an OPML file, or a poca.xml of poca 1.x with all its settings, and adds the subscriptions that are not there yet. - reads stdin.",
        "poca-subscribe import podcasts.opml --dry-run"),
    "export": (
        "exchange", "export_list", "write all subscriptions as OPML",
        "Writes OPML 2.0 to FILE, or to stdout. User names and passwords of addresses are left out, queries are kept.",
        "poca-subscribe export podcasts.opml"),
    "check": ("check", "check", "validate the config", "Tells every fault of the config with file, line and column.", "poca-subscribe check"),
}


def parser() -> ArgumentParser:
    """The command line of poca-subscribe. ``command`` of what it parses is where the command is done: module, function."""
    made = ArgumentParser(
        prog="poca-subscribe", description="Adds, lists, changes and explains the subscriptions of poca.", allow_abbrev=False,
        epilog="poca-subscribe COMMAND --help tells more of a command, with an example.",
    )
    _config(made)
    made.add_argument("--version", action="version", version=f"poca-subscribe {__version__}")
    completion.add_to(made)
    commands = made.add_subparsers(metavar="COMMAND", required=True, dest="name")
    parts: dict[str, ArgumentParser] = {}
    for name, (module, function, short, long, example) in COMMANDS.items():
        part = commands.add_parser(
            name, help=short, description=long, epilog=f"example:\n  {example}", formatter_class=_Wrapped, allow_abbrev=False,
        )
        part.set_defaults(command=(module, function))
        _config(part, default=SUPPRESS)
        parts[name] = part
    _arguments(parts)
    titles = commands.add_parser("titles", allow_abbrev=False)       # for completion, so without help
    titles.set_defaults(command=("overview", "show_titles"))
    _config(titles, default=SUPPRESS)
    return made


class _Wrapped(RawDescriptionHelpFormatter):
    """Wraps the description, and leaves the example as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return super()._fill_text(text, width, indent)
        return "\n".join(self._split_lines(text, width))


def _config(made: ArgumentParser, default: Any = None) -> None:
    option = made.add_argument(
        "-c", "--config", type=Path, metavar="FILE", default=default, help="the config file (default: $XDG_CONFIG_HOME/poca/config.yaml)",
    )
    completion.files(option)


def _arguments(parts: dict[str, ArgumentParser]) -> None:
    json = "JSON Lines on stdout, an object a line"
    add = parts["add"]
    add.add_argument("url", nargs="?", metavar="URL", help="the address of the feed, or of a page that names it")
    add.add_argument("--title", type=_title, metavar="T", help="the title (default: that of the feed)")
    add.add_argument("--max-number", type=_count, metavar="N", help="the most episodes to hold; 0: no limit")
    add.add_argument("--from-the-top", action="store_true", help="start with the oldest episode")
    add.add_argument("--category", type=_category, metavar="C", help="a word for lists")
    add.add_argument("--yes", action="store_true", help="ask nothing")

    parts["list"].add_argument("--json", action="store_true", help=json)
    completion.titles(parts["stats"].add_argument("titles", nargs="*", metavar="TITLE", help="only these (default: all)"))
    parts["stats"].add_argument("--json", action="store_true", help=json)
    for name in ("delete", "enable", "disable"):
        completion.titles(parts[name].add_argument("titles", nargs="+", metavar="TITLE", help="title of a subscription, or a part that only it has"))
    for name in ("delete", "disable"):
        parts[name].add_argument("--files", action="store_true", help="remove the files that poca put there, too")
    parts["delete"].add_argument("--yes", action="store_true", help="ask nothing")

    for name, nargs in (("why", "?"), ("mark", "*"), ("retry", "*")):
        completion.titles(parts[name].add_argument("title", metavar="TITLE", help="title of a subscription, or a part that only it has"))
        parts[name].add_argument("episodes", nargs=nargs, metavar="EPISODE", help="number (1 is the newest), range, or part of a title")
    parts["why"].add_argument("--json", action="store_true", help=json)
    parts["mark"].add_argument("--all", action="store_true", help="all episodes that are not held")
    parts["tags"].add_argument("format", choices=FORMATS, help="mp3: also wav and aiff; vorbis: ogg, opus and flac")
    parts["tags"].add_argument("--json", action="store_true", help=json)

    completion.files(parts["import"].add_argument("file", type=Path, metavar="FILE", help="OPML or poca.xml; - is stdin"))
    parts["import"].add_argument("--dry-run", action="store_true", help="show what would be added, and change nothing")
    completion.files(parts["export"].add_argument("file", type=Path, nargs="?", metavar="FILE", help="the file to write (default: stdout)"))
    parts["check"].add_argument("--json", action="store_true", help=json)


def _title(word: str) -> str:
    return str(SECTIONS["subscription"]["title"].type.read(word.strip()))


def _category(word: str) -> str:
    return str(SECTIONS["subscription"]["category"].type.read(word.strip()))


def _count(word: str) -> int:
    return int(str(SECTIONS["subscription"]["max_number"].type.read(word)))


# What argparse calls them in its errors.
_title.__name__ = "title"
_category.__name__ = "category"
_count.__name__ = "number of episodes"
