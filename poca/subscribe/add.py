"""``add``: one more subscription, shown before it is written."""

from __future__ import annotations

from poca import conffile, config, tables, text
from poca.errors import ConfigError
from poca.model import Plan, Subscription
from poca.subscribe import edits, feeds, stats
from poca.subscribe.desk import Desk
from poca.subscribe.feeds import Found
from poca.subscribe.judged import judge
from poca.subscribe.lists import host

_BAR = 10           # columns of the longest bar of a chart


def add(desk: Desk) -> None:
    """Raises ConfigError where it is subscribed to already or the title is taken, FeedError for what is no feed."""
    options = desk.arguments
    interactive = desk.terminal and not options.yes
    words = options.url or (desk.ask("Address of the feed:") if interactive else "")
    if not words:
        raise ConfigError("An address is needed: poca-subscribe add URL.")
    url = feeds.full_address(words)
    make_config(desk)
    _refuse_double(desk, url)
    found = feeds.find(desk.settings, url)
    _refuse_double(desk, found.url)
    for note in found.notes:
        desk.say(note)
    _show(desk, found)
    title = _title(desk, found, interactive)
    subscription, values = _values(desk, title, found)
    with desk.state(readonly=True) as state:
        desk.say(_would(judge(desk, state, subscription, found.feed).plan))
    if interactive and not desk.agreed(f"Add {text.shown(title)}?", default=True):
        raise ConfigError("Nothing was added.")
    conffile.edit(desk.path, edits.change([values]))
    desk.say(f'Added {text.shown(title)}. `poca "{text.shown(title)}"` updates it now, the next run of poca in any case.')


def make_config(desk: Desk) -> None:
    """A config to start with, where there is none."""
    path = desk.path
    if not path.exists() and not path.is_symlink():
        conffile.create(path, config.sample())
        desk.say(f"There was no config file yet: {path} was made. Its base_dir is where the episodes go.")


def _refuse_double(desk: Desk, url: str) -> None:
    title = edits.subscribed(desk.config, url)
    if title:
        raise ConfigError(f"{text.shown_url(url)} is subscribed to already, as {text.shown(title)}.")


def _title(desk: Desk, found: Found, interactive: bool) -> str:
    """The title that was given, which must be free, or that of the feed, made so."""
    titles = edits.Titles(desk.titles, desk.settings.filenames)
    given = desk.arguments.title
    if not given:
        own = titles.unique(found.feed.title or host(found.url))
        given = (desk.ask(f"Title [{text.shown(own)}]:") if interactive else "") or own
        if given == own:
            return own
    if titles.holder(given):
        holder = text.shown(titles.holder(given))
        what = "is taken" if holder == given else f"would have the folder of {holder}"
        raise ConfigError(f"The title {text.shown(given)} {what}: give another by --title.")
    return str(given)


def _values(desk: Desk, title: str, found: Found) -> tuple[Subscription, dict[str, object]]:
    """The subscription as it would be, and the options to write. Raises ConfigError."""
    options = desk.arguments
    written = desk.path.read_bytes().decode()
    values: dict[str, object] = {"title": title, "url": found.url}
    if options.category:
        values["category"] = options.category
    if options.max_number is not None:
        values["max_number"] = options.max_number
    if options.from_the_top:
        plain = edits.of_title(edits.meant(written, [values])[0], title)
        if plain and plain.max_days:
            values["max_days"] = 0
            desk.say("max_days: 0 is written, since max_days of the defaults does not go with from_the_top.")
        values["from_the_top"] = True
        values |= {} if options.max_number is not None or (plain and plain.max_number) else {"max_number": edits.DEFAULT_LIMIT}
    read, (values, *_), _ = edits.meant(written, [values])
    subscription = edits.of_title(read, title)
    if subscription is None:
        faults = [fault.message for fault in read.faults if text.shown(title) in fault.message] or [fault.message for fault in read.faults]
        raise ConfigError(f"It cannot be added: {'; '.join(faults)}.")
    if options.max_number is None and "max_number" in values:
        desk.say(f"max_number: {values['max_number']} is written, since no limit was in force; --max-number N sets another, 0 none.")
    return subscription, values


def _show(desk: Desk, found: Found) -> None:
    zone = desk.settings.timezone
    desk.say(f"{text.shown(found.feed.title) or 'A feed without a title'} ({text.shown_url(found.url)})")
    numbers = stats.stats(found.feed, desk.now, zone)
    block = "█" if desk.out.can_write("█") else "#"
    rows = [(f"  {name}", words) for name, words in stats.rows(numbers, zone, block, _BAR)]
    tables.show(desk.out, [tables.Column(""), tables.Column("", folds=True)], rows, desk.width)


def _would(plan: Plan) -> str:
    """What the first run would do, by the planner."""
    told = [one.entry.length for one in plan.lacking if one.entry.length]
    untold = len(plan.lacking) - len(told)
    size = text.size(sum(told)) + (f" and {untold} of a size that is not told" if untold else "") if told else "of a size that is not told"
    episodes = f"{len(plan.lacking)} episode{'' if len(plan.lacking) == 1 else 's'} would be downloaded"
    more = [f"{len(plan.adopted)} that are there already would be adopted"] if plan.adopted else []
    more += [f"{len(plan.unwanted)} from an earlier subscription would be removed"] if plan.unwanted else []
    return ", ".join([f"{episodes} ({size})" if plan.lacking else "Nothing would be downloaded", *more]) + "."
