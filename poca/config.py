"""A config file as a :class:`~poca.model.Config`: every fault at once, each with its line and column.

What options there are, and what they take, is said by :data:`poca.options.OPTIONS` alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from yaml import Node

from poca import naming, options, text
from poca.confnodes import Document, Flaw, flaw_at, is_list, is_null, is_text, kind
from poca.errors import ConfigError
from poca.model import Config, Email, Filters, Settings, Subscription
from poca.options import PROJECT_URL, SECTIONS, Option, Shape

_PASSWORD = re.compile(r"\s*https?://[^/?#]*:[^/?#]*@", re.IGNORECASE)

_STARTER = f"""\
# yaml-language-server: $schema={PROJECT_URL}/raw/main/poca/config.schema.json
# The config of poca. All options with their meanings: sample_config.yaml
settings:
  base_dir: ~/podcasts        # a folder for each subscription is made in it
defaults:                     # for all subscriptions; each may have its own
  max_number: 10              # the newest episodes to hold
subscriptions:                # poca-subscribe add URL adds one:
# - title: The Example Hour
#   url: https://example.org/feed.xml
"""


def sample() -> str:
    """The text of a config to start with: valid as it is, without subscriptions."""
    return _STARTER


def default_path(env: Mapping[str, str] = os.environ) -> Path:
    """Where the config is looked for: ``$XDG_CONFIG_HOME/poca/config.yaml`` (XDG Base Directory: only an absolute
    value counts, else ``~/.config``). Raises ConfigError where there is no home."""
    try:
        return _xdg(env, "XDG_CONFIG_HOME", ".config") / "poca" / "config.yaml"
    except ValueError as error:
        raise ConfigError(f"Where the config file is cannot be told: {error}.") from None


def read(path: Path, env: Mapping[str, str] = os.environ) -> Config:
    """The config in the file at ``path``. A subscription with a fault is left out, and told in ``faults``.

    Raises ConfigError, with all faults of the file, when it cannot be read or parsed, or when its settings or
    defaults have a fault.
    """
    document = Document(path.absolute())
    sections = _sections(document)
    settings = _settings(document, sections.get("settings"), env)
    defaults = _defaults(document, sections.get("defaults"))
    nodes = _list(document, sections.get("subscriptions"))
    fatal = document.take()
    entries = [_entry(document, node, number, defaults, settings) for number, node in enumerate(nodes, 1)]
    _tell_doubles(entries, settings)
    flaws = [flaw for entry in entries for flaw in entry.flaws]
    if fatal or settings is None:
        raise document.error([*fatal, *flaws])
    secret = (settings.email is not None and settings.email.password) or any(_PASSWORD.match(entry.url) for entry in entries)
    return Config(
        path=document.file,
        settings=settings,
        subscriptions=tuple(entry.subscription for entry in entries if entry.subscription and not entry.flaws),
        faults=document.faults(flaws),
        faulty=tuple((entry.title, entry.url) for entry in entries if entry.flaws),
        warnings=(f"{document.file} holds a password and others may read it: chmod 600 {document.file}",) if secret and document.mode & 0o044 else (),
    )


def _sections(document: Document) -> dict[str, Node]:
    pairs = document.pairs(document.root, "the file")
    known = ("settings", "defaults", "subscriptions")
    for name, (key, _) in (pairs or {}).items():
        if name not in known:
            document.tell(key, f"{text.shown(name)} is not a section: {_hint(name, known)}")
    if pairs is not None and "settings" not in pairs:
        document.tell(document.root, "settings is missing; at least settings.base_dir must be given")
    return {name: value for name, (_, value) in (pairs or {}).items()}


def _list(document: Document, node: Node | None) -> list[Node]:
    if node is None or is_null(node):
        return []
    if not is_list(node):
        document.tell(node, f"subscriptions is {kind(node)}, but must be a list (each begins with a dash)")
        return []
    document.spend(node, len(node.value))
    return list(node.value)


# -------------------------------------------------------------------------------------------------------------- options

class _Given(NamedTuple):
    """An option as the file gives it. ``value`` is None for null, and for what could not be read; a mapping of _Given
    for a mapping of options, a list of texts for a tag. ``key`` names it in messages."""

    value: Any
    key: str
    node: Node
    default: bool               # it stands in `defaults`


_Options = dict[str, _Given]


def _options(document: Document, node: Node, section: str, key: str = "", *, default: bool = False) -> _Options | None:
    """All known options of a mapping, those that are null or wrong included; None where it is no mapping. ``key`` is
    its own key, "" for a subscription."""
    prefix = f"{key}." if key else ""
    pairs = document.pairs(node, key or "the subscription")
    if pairs is None:
        return None
    given: _Options = {}
    for name, (key_node, value) in pairs.items():
        option = SECTIONS[section].get(name)
        if option is None:
            document.tell(key_node, f"{prefix}{text.shown(name)} is not an option: {_hint(name, SECTIONS[section])}")
        elif default and option.required:
            document.tell(key_node, f"{prefix}{name} is not an option: each subscription has its own {name}")
        else:
            given[name] = _Given(_value(document, option, value, prefix + name, default), prefix + name, value, default)
    for option in () if default else SECTIONS[section].values():
        if option.required and (option.name not in given or is_null(given[option.name].node)):
            place = given[option.name].node if option.name in given else node
            document.tell(place, f"{prefix}{option.name} is missing; it must be {option.type.allowed}")
    return given


def _value(document: Document, option: Option, node: Node, key: str, default: bool) -> Any:
    if is_null(node):
        return None
    match option.type.shape:
        case Shape.OPTIONS:
            return _options(document, node, option.name, key, default=default)
        case Shape.TAGS:
            return _tags(document, option, node, key, default)
        case Shape.SEVERAL:
            values = _several(document, option, node, key)
            return None if values is None else frozenset().union(*values)
        case Shape.ONE:
            return _one(document, option, node, key)


def _one(document: Document, option: Option, node: Node, key: str) -> Any:
    if not is_text(node) or is_null(node):
        quote = "; a text that begins with { or [ must be quoted" if getattr(node, "flow_style", False) else ""
        document.tell(node, f"{key} is {kind(node)}, but must be {option.type.allowed}{quote}")
        return None
    try:
        return option.type.read(node.value)
    except ValueError as error:
        detail = f": {text.shown(str(error))}" if str(error) else ""
        document.tell(node, f"{key} is {_shown(option, node.value)}, but must be {option.type.allowed}{detail}")
        return None


def _several(document: Document, option: Option, node: Node, key: str) -> list[Any] | None:
    """The values of a list, or the one that stands for a list of one."""
    if not is_list(node):
        value = _one(document, option, node, key)
        return None if value is None else [value]
    document.spend(node, len(node.value))
    if not node.value:
        document.tell(node, f"{key} is an empty list, but must be {option.type.allowed}; null takes a default away")
        return None
    values = [_one(document, option, part, key) for part in node.value]
    return None if None in values else values


def _tags(document: Document, option: Option, node: Node, key: str, default: bool) -> _Options | None:
    pairs = document.pairs(node, key)
    if pairs is None:
        return None
    known = options.tag_names()
    given: _Options = {}
    for name, (key_node, value) in pairs.items():
        where = f"{key}.{name if name in known else text.shown(name)}"
        texts = None if is_null(value) else _several(document, option, value, where)
        if name not in known:
            document.tell(key_node, f"{where} is not the name of a tag: {_hint(name, known)}")
        elif name == "chapters" and texts not in (None, [""]):
            document.tell(value, f"{where} must be '', which removes them: chapters cannot be set")
        elif texts and len(texts) > 1 and "" in texts:
            document.tell(value, f"{where} has an empty text in its list, but only '' alone removes the tag")
        given[name] = _Given(texts, where, value, default)
    return given


def _shown(option: Option, written: str) -> str:
    """A value as a fault shows it: no secret, nothing that steers a terminal."""
    if option.secret:
        return "***"
    if option.name == "url":
        return f"'{text.shown_url(written)}'"
    harmless = written.isprintable() and len(written) <= 100 and not re.search("[@=]|://", written)
    return f"'{written if harmless else text.shown(written)}'"


def _hint(name: str, known: Iterable[str]) -> str:
    near = options.nearest(name, list(known))
    if near:
        return f"did you mean {near[0]}?"
    homes = {"settings": "in settings", "email": "in settings.email", "subscription": "in a subscription or in defaults", "filters": "in filters"}
    home = next((home for section, home in homes.items() if name in SECTIONS[section]), "")
    return f"it belongs {home}" if home else f"known here are {', '.join(known)}"


# ------------------------------------------------------------------------------------------------------------- settings

def _settings(document: Document, node: Node | None, env: Mapping[str, str]) -> Settings | None:
    if node is None:
        return None
    if is_null(node):
        document.tell(node, "settings is empty; at least settings.base_dir must be given")
        return None
    given = _options(document, node, "settings", "settings")
    if given is None:
        return None
    folder = document.file.parent
    values = _with_defaults("settings", given)
    state_dir = _path(document, given.get("state_dir"), folder, env)
    if state_dir is None:
        try:
            state_dir = _xdg(env, "XDG_STATE_HOME", ".local/state") / "poca"
        except ValueError as error:
            document.tell(node, f"settings.state_dir is missing, and its default cannot be told: {error}")
            state_dir = folder
    logfile = given.get("logfile")
    values |= {
        "base_dir": _path(document, given.get("base_dir"), folder, env),
        "state_dir": state_dir,
        "logfile": _path(document, logfile, state_dir, env) if logfile else state_dir / values["logfile"],
        "email": _email(document, given["email"].value) if "email" in given and given["email"].value else None,
    }
    return None if document.flaws else Settings(**values)


def _with_defaults(section: str, given: _Options) -> dict[str, Any]:
    return {**options.defaults(section), **{name: item.value for name, item in given.items() if item.value is not None}}


def _email(document: Document, given: _Options) -> Email:
    values = _with_defaults("email", given)
    if "password" in values and "password_command" in values:
        later = max(given["password"], given["password_command"], key=_line)
        document.tell(later.node, "settings.email has both password and password_command; one of them must go")
    if values["starttls"] and (given.get("port") is None or given["port"].value is None):
        values["port"] = 587
    if "password" in values or "password_command" in values:
        values.setdefault("user", values.get("fromaddr"))
    return Email(**{"fromaddr": "", "toaddr": "", **values})


def _path(document: Document, given: _Given | None, folder: Path, env: Mapping[str, str]) -> Path | None:
    if given is None or given.value is None:
        return None
    try:
        return folder / _expanded(given.value, env)
    except ValueError as error:
        document.tell(given.node, f"{given.key} is '{text.shown(given.value)}', but {error}")
        return None


def _expanded(written: str, env: Mapping[str, str]) -> str:
    """``~``, ``~user``, ``$NAME`` and ``${NAME}`` undone. Raises ValueError for what is not there: an empty name in a
    path would make another path of it."""
    def value(match: re.Match[str]) -> str:
        name = match[1] if match[1] is not None else match[2]
        if match[0] == "${":
            raise ValueError("a ${ has no }")
        if not env.get(name):
            raise ValueError(f"the variable ${text.shown(name)} is not set")
        return env[name]

    home = ""
    user, slash, rest = written.partition("/")
    if user.startswith("~"):
        home = str(_home(env)) if user == "~" else os.path.expanduser(user)     # noqa: PTH111
        if home == user:
            raise ValueError(f"there is no user {text.shown(user[1:])}")
        written = slash + rest
    return home + re.sub(r"\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*)|\{)", value, written)


def _home(env: Mapping[str, str]) -> Path:
    home = Path(env.get("HOME", "")) if env.get("HOME") else Path(os.path.expanduser("~"))    # noqa: PTH111
    if not home.is_absolute():
        raise ValueError("the variable $HOME is not set")
    return home


def _xdg(env: Mapping[str, str], name: str, fallback: str) -> Path:
    folder = Path(env.get(name, ""))
    return folder if folder.is_absolute() else _home(env) / fallback


# -------------------------------------------------------------------------------------------------------- subscriptions

@dataclass(slots=True)
class _Entry:
    """An entry of ``subscriptions``: title and url as far as they can be read, and what is wrong with it."""

    title: str
    url: str
    number: int                 # its place in the list, from 1
    node: Node                  # of the title, where there is one
    subscription: Subscription | None = None
    flaws: list[Flaw] = field(default_factory=list)

    def labelled(self, flaw: Flaw) -> Flaw:
        label = f"'{text.shown(self.title)}'" if self.title else f"subscription {self.number}"
        return flaw._replace(message=f"{label}: {flaw.message}")


def _defaults(document: Document, node: Node | None) -> _Options:
    if node is None or is_null(node):
        return {}
    given = _options(document, node, "subscription", "defaults", default=True) or {}
    for one, other, message in _contradictions(given):
        document.tell(max(one, other, key=_line).node, message)
    return given


def _entry(document: Document, node: Node, number: int, defaults: _Options, settings: Settings | None) -> _Entry:
    own = _options(document, node, "subscription") or {}
    nodes = [own[name].node if name in own else None for name in ("title", "url")]
    title, url = (node.value.strip() if node and is_text(node) and not is_null(node) else "" for node in nodes)
    entry = _Entry(title, url, number, own["title"].node if "title" in own else node)
    given = _merged(defaults, own)
    for one, other, message in _contradictions(given):
        if not (one.default and other.default):
            document.tell(max(one, other, key=_line).node, message)
    entry.flaws = [entry.labelled(flaw) for flaw in document.take()]
    if not entry.flaws and settings is not None:
        entry.subscription = _subscription(given, settings)
    return entry


def _merged(defaults: _Options, own: _Options) -> _Options:
    """A subscription's own options over the defaults, filters and metadata key by key; what is null is gone."""
    merged = {name: item for name, item in {**defaults, **own}.items() if item.value is not None}
    for name in ("filters", "metadata"):
        if name in own and name in merged and name in defaults:
            parts = {**(defaults[name].value or {}), **own[name].value}
            merged[name] = own[name]._replace(value=parts)
    return merged


def _contradictions(given: _Options) -> Iterator[tuple[_Given, _Given, str]]:
    """Options that do not go together, and why."""
    days, from_the_top = given.get("max_days"), given.get("from_the_top")
    if days and from_the_top and days.value and from_the_top.value:
        one, other = (f"{item.key} (line {_line(item) + 1})" for item in (days, from_the_top))
        yield days, from_the_top, f"{one} is {days.value} and {other} is yes, but the two do not go together: one must be 0, no or null"
    filters = given["filters"].value if "filters" in given and given["filters"].value else {}
    after, before = filters.get("after_date"), filters.get("before_date")
    if after and before and after.value and before.value and after.value >= before.value:
        yield after, before, f"{after.key} is {after.value}, but must be earlier than before_date, {before.value} (that day excluded)"
    low, high = filters.get("min_minutes"), filters.get("max_minutes")
    if low and high and low.value is not None and high.value is not None and low.value > high.value:
        yield low, high, f"{low.key} is {low.value:g}, but must be at most max_minutes, {high.value:g}"


def _subscription(given: _Options, settings: Settings) -> Subscription:
    values = _with_defaults("subscription", given)
    values["active"] = values.pop("state") == "active"
    values["filters"] = Filters(**{name: item.value for name, item in values.get("filters", {}).items() if item.value is not None})
    values["metadata"] = tuple((name, tag) for name, item in values.get("metadata", {}).items() for tag in item.value or ())
    return Subscription(**values, filenames=settings.filenames, timezone=settings.timezone, folder=naming.folder(values["title"], settings.filenames))


def _tell_doubles(entries: list[_Entry], settings: Settings | None) -> None:
    """Subscriptions that would share a folder, and take each other's files for their own."""
    level = settings.filenames if settings else str(options.defaults("settings")["filenames"])
    folders: dict[str, list[_Entry]] = {}
    for entry in entries:
        if entry.title:
            folder = entry.subscription.folder if entry.subscription else naming.folder(entry.title, level)
            folders.setdefault(naming.fold(folder), []).append(entry)
    for alike in folders.values():
        for entry in alike if len(alike) > 1 else ():
            other = next(other for other in alike if other is not entry)
            more = f" (and of {len(alike) - 2} more)" if len(alike) > 2 else ""
            what = "it has the title" if other.title == entry.title else "its folder would be that"
            message = f"{what} of '{text.shown(other.title)}' in line {other.node.start_mark.line + 1}{more}"
            entry.flaws.append(entry.labelled(flaw_at(entry.node, f"{message}; each title must give a folder of its own")))


def _line(given: _Given) -> int:
    return int(given.node.start_mark.line)
