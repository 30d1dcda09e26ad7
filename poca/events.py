"""What is said of a run: each event's sentence and values. Pure.

A sentence names what happened and what poca will do about it; everything in it that came from a feed, a server or a
library has passed :func:`poca.text.shown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from poca import text
from poca.errors import PocaError
from poca.model import Cover, Episode, Event, Failure, Lacking, Level, Plan, Verdict, Waiting


@dataclass(slots=True)
class Sums:
    """What the run has come to, for its last line."""

    asked: int = 0
    unchanged: int = 0
    waiting: int = 0
    failed: int = 0             # feeds
    downloaded: int = 0
    downloaded_bytes: int = 0
    downloads_failed: int = 0
    removed: int = 0
    freed: int = 0              # bytes
    deleted_by_user: int = 0
    adopted: int = 0


def when(instant: int) -> str:
    """An instant as a person reads it, in the machine's own time."""
    try:
        return datetime.fromtimestamp(instant).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "a date far away"


def next_step(next_try: int | None, verb: str = "tried") -> str:
    """What poca does about a failure."""
    return f"{verb} again in the next run" if next_try is None else f"not {verb} again before {when(next_try)}"


def name_of(episode: Episode) -> str:
    """An episode as its listener knows it."""
    return text.shown(episode.title) or text.shown(text.shown_url(episode.url)) or "an episode without a title"


def file_of(plan: Plan, path: str) -> str:
    """A file's name as seen from the subscription's folder."""
    return text.shown(path.removeprefix(f"{plan.subscription.folder}/"))


def said(kind: str, level: Level, title: str, sentence: str, **data: object) -> Event:
    """An event whose sentence holds words of others."""
    return Event(kind, level, title, text.shown(sentence), data)


def _closed(sentence: str) -> str:
    return sentence.rstrip(" .;")


def plan_event(plan: Plan) -> Event:
    """The plan in words. What more there is to it, :func:`plan_values` says to those who ask."""
    coming = sum(one.entry.length or 0 for one in plan.lacking)
    words = [f"{len(plan.lacking)} to download" + (f" ({text.size(coming)})" if coming else "")] if plan.lacking else []
    words += [f"{len(plan.unwanted)} to delete ({text.size(sum(e.size or 0 for e in plan.unwanted))})"] if plan.unwanted else []
    others = {"deleted by you": len(plan.gone), "found again": len(plan.found), "adopted": len(plan.adopted), "waiting after a failure": plan.waiting}
    words += [f"{count} {what}" for what, count in others.items() if count]
    return Event("plan", Level.DETAIL, plan.subscription.title, "plan: " + (", ".join(words) or "nothing to do"), plan=plan)


def plan_values(plan: Plan) -> dict[str, object]:
    """The plan with each episode's verdict, for JSON; ``--dry-run`` shows nothing else."""
    return {
        "download": [_coming(one) for one in plan.lacking],
        "delete": [{"episode": name_of(e), "file": text.shown(e.path), "bytes": e.size} for e in plan.unwanted],
        "deleted_by_user": [text.shown(e.path) for e in plan.gone],
        "found_again": [text.shown(e.path) for e in plan.found],
        "adopted": [text.shown(e.path) for e in plan.adopted],
        "episodes": [verdict_values(verdict) for verdict in plan.verdicts],
        "error": text.shown(plan.error),
    }


def _coming(one: Lacking) -> dict[str, object]:
    file = text.shown(one.names[0] + one.extension)
    return {"episode": name_of(one.episode), "file": file, "bytes": one.entry.length, "url": text.shown_url(one.entry.url)}


def verdict_values(verdict: Verdict) -> dict[str, object]:
    """The decision about one episode, for JSON."""
    return {
        "episode": text.shown(verdict.title), "published": verdict.published, "rule": str(verdict.rule), "held": verdict.held, "keep": verdict.keep,
        "detail": text.shown(verdict.detail), "file": text.shown(verdict.path), "bytes": verdict.size, "next_try": verdict.next_try,
    }


def feed_failed(failure: Failure, last_good: int | None, failures: int, next_try: int | None) -> Event:
    """A feed, or the subscription's folder, that brought nothing."""
    good = f" (last good: {when(last_good)})" if last_good is not None and failures else ""
    return said(
        "feed-failed", Level.ERROR, failure.subscription.title, f"{_closed(failure.error)}{good}; {next_step(next_try, 'asked')}",
        url=text.shown_url(failure.subscription.url), failures=failures, next_try=next_try, last_good=last_good,
        trace=_shown_trace(failure.trace), bug=bool(failure.trace),
    )


def waiting(report: Waiting) -> Event:
    """A feed that is not asked in this run."""
    why = f"; it failed before: {_closed(report.error)}" if report.error else ""
    return said("waiting", Level.DETAIL, report.subscription.title, f"not asked before {when(report.until)}{why}", until=report.until)


def download_failed(plan: Plan, episode: Episode, level: Level) -> Event:
    """An episode that did not come, as it was recorded."""
    return said(
        "download-failed", level, plan.subscription.title, f"{name_of(episode)}: {_closed(episode.error)}; {next_step(episode.next_try)}",
        episode=name_of(episode), url=text.shown_url(episode.url), error=text.shown(episode.error), failures=episode.failures,
        next_try=episode.next_try,
    )


def step_failed(title: str, sentence: str, *, trace: str = "") -> Event:
    """A step that went wrong. ``trace``: the traceback of what nobody foresaw, for the log."""
    return said("error", Level.ERROR, title, sentence, trace=_shown_trace(trace), bug=bool(trace))


def _shown_trace(trace: str) -> str:
    """A traceback line by line: its last one may quote a URL."""
    return "\n".join(line[: len(line) - len(line.lstrip())] + text.shown(line) for line in trace.splitlines())


def bug(title: str, error: BaseException, trace: str) -> Event:
    """What nobody foresaw."""
    return step_failed(title, f"a fault of poca itself ({type(error).__name__}); the log has the details. Tried again in the next run", trace=trace)


def no_network(count: int) -> Event:
    """No feed at all could be reached."""
    sentence = f"no network: none of the {count} feeds could be reached; asked again in the next run"
    return Event("feed-failed", Level.ERROR, "", sentence, {"feeds": count})


def started(plan: Plan, one: Lacking) -> Event:
    sentence = f"downloading {name_of(one.episode)} from {text.shown_url(one.entry.url)}"
    return said("download-started", Level.DETAIL, plan.subscription.title, sentence, **_coming(one))


def postponed(plan: Plan, episode: Episode, error: PocaError) -> Event:
    """A download that gets another try within the run."""
    return said(
        "postponed", Level.DETAIL, plan.subscription.title, f"{name_of(episode)}: {_closed(str(error))}; tried again shortly",
        episode=name_of(episode), url=text.shown_url(episode.url), error=text.shown(str(error)),
    )


def not_tried(title: str, host: str, count: int) -> Event:
    """Downloads that failed at once, since their host could not be reached before."""
    episodes = "1 more episode was" if count == 1 else f"{count} more episodes were"
    sentence = f"{episodes} not tried, since {host} could not be reached"
    return said("download-failed", Level.ERROR, title, sentence, host=text.shown(host), episodes=count)


def no_cover(title: str, cover: Cover, error: str) -> Event:
    """A cover that could not be had, or not be written."""
    sentence = f"no cover: {_closed(error)}; asked again when the feed has changed"
    return said("warning", Level.WARNING, title, sentence, url=text.shown_url(cover.url), error=text.shown(error))


def no_such_tag(title: str, name: str, form: str) -> Event:
    """A name of `metadata` that a format has no tag for."""
    sentence = f"metadata has {name}, for which {form} has no tag: files of that kind do without it"
    return said("warning", Level.WARNING, title, sentence, tag=name, format=form)


def name_changed(plan: Plan, planned: str, name: str) -> Event:
    sentence = f"named {file_of(plan, name)}, since {file_of(plan, planned)} is taken or not possible there"
    return said("name-changed", Level.DETAIL, plan.subscription.title, sentence, planned=text.shown(planned), file=text.shown(name))


def done(title: str, counts: Mapping[str, int]) -> Event:
    """What came of a plan."""
    words = {"deleted_by_user": "deleted by you", "removed": "removed", "downloaded": "downloaded", "adopted": "adopted", "failed": "failed"}
    sentence = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts.get(key))
    return Event("done", Level.NEWS if sentence else Level.DETAIL, title, sentence or "nothing to do", dict(counts))
