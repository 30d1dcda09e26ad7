"""``why``: the planner's own reasons, episode by episode."""

from __future__ import annotations

from poca import events, text
from poca.model import Episode, Rule, Verdict
from poca.subscribe import stats
from poca.subscribe.desk import Desk, clean
from poca.subscribe.judged import Judged, chosen, judge
from poca.tables import Column, show

_COLUMNS = (Column("NO.", right=True), Column("DATE"), Column("EPISODE", folds=True), Column("WHY", folds=True), Column("FILE", folds=True))


def why(desk: Desk) -> None:
    """Raises ConfigError, StateError, BaseDirError, DiskError."""
    subscription = desk.subscription(desk.arguments.title)
    with desk.state(readonly=True) as state:
        judged = judge(desk, state, subscription)
    verdicts = judged.plan.verdicts
    asked = desk.arguments.episodes
    numbered = chosen(verdicts, [asked]) if asked else tuple(enumerate(verdicts, 1))
    records = {record.key: record for record in judged.history.episodes}
    if desk.arguments.json:
        for number, verdict in numbered:
            told = {**events.verdict_values(verdict), "detail": _detail(verdict, records.get(verdict.key))}
            desk.json(subscription=subscription.title, number=number, **clean(told))
        for one in judged.feed.passed_over if not asked else ():
            desk.json(subscription=subscription.title, number=None, episode=text.shown(one.title), rule="no episode", detail=text.shown(one.reason))
        return
    _tell_feed(desk, judged)
    rows = [
        [str(number), stats.day(v.published, subscription.timezone), _name(v), _reason(v, records.get(v.key)), text.shown(v.path)]
        for number, v in numbered
    ]
    if rows:
        show(desk.out, _COLUMNS, rows, desk.width)
    for one in judged.feed.passed_over if not asked else ():
        desk.say(f'No episode: "{text.shown(one.title)}": {text.shown(one.reason)}.')


def _tell_feed(desk: Desk, judged: Judged) -> None:
    """What concerns all its episodes."""
    history, title = judged.history, text.shown(judged.subscription.title)
    held = sum(verdict.held for verdict in judged.plan.verdicts)
    read = f" of {len(judged.feed.entries)} in the feed as read last" if judged.read else ", and its feed was not read yet"
    desk.say(f"{title}: {held} held{read}.")
    if judged.renamed_from:
        desk.say(f"It was {text.shown(judged.renamed_from)} until now; its history follows in the next run.")
    if not judged.subscription.active:
        desk.say("It is inactive: poca does not ask for it.")
    if history.failures:
        good = f", last good {events.when(history.last_good)}" if history.last_good is not None else ""
        desk.say(f"Its feed failed {history.failures} in a row{good}: {text.shown(history.error)}; {events.next_step(history.next_try, 'asked')}.")


def _name(verdict: Verdict) -> str:
    return text.shown(verdict.title) or "(without a title)"


def _detail(verdict: Verdict, record: Episode | None) -> str:
    """The planner's detail; of a wanted one also why it failed before, which is no reason to wait any more."""
    return text.shown(verdict.detail or (record.error if record and record.failures and verdict.rule is Rule.WANTED else ""))


def _reason(verdict: Verdict, record: Episode | None) -> str:
    detail = _detail(verdict, record)
    match verdict.rule:
        case Rule.FAILED:
            return f"failed: {detail.rstrip(' .')}; {events.next_step(verdict.next_try)}"
        case Rule.WANTED if detail:
            return f"wanted; it failed before: {detail}"
        case Rule.HELD if record and record.adopted:
            return "held (adopted)"
        case Rule.MAX_NUMBER | Rule.MAX_DAYS if verdict.held and verdict.keep:
            return f"{verdict.rule}, but adopted, so it stays"
        case Rule.MAX_NUMBER | Rule.MAX_DAYS if verdict.held:
            return f"{verdict.rule}: to be removed"
    return f"{verdict.rule} by {detail}" if verdict.rule is Rule.FILTERED else str(verdict.rule)
