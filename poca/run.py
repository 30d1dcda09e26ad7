"""One run of poca: reads the config, asks every feed, lets the plans be carried out, tells and logs, and ends with an exit code."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

from poca import __version__
from poca.errors import BaseDirError, ConfigError, EditError, Interrupted, MailError, PocaError, StateError
from poca.interrupts import interruptible
from poca.model import Config, Event, History, Level, Plan, Report, Subscription
from poca.report import Lines, Mode, Reporter, is_terminal, log_line
from poca.text import shown

if TYPE_CHECKING:
    from poca.executor import Later
    from poca.state import State
    from poca.web import Web

DONE, FAILED, UNUSABLE = 0, 1, 2
KEPT = 31 << 20         # bytes, more than a feed takes, and less than the 32 MB from which glibc learns nothing
HANDOVER = 0.001        # seconds after which a thread that reads a feed lets the one go on that downloads


def main(arguments: Namespace) -> int:
    """What `poca` does with its arguments; returns its exit code."""
    # A run makes values by the hundred thousand, and hardly any go in a circle.
    gc.set_threshold(20_000, 50, 100)
    errors = Lines(sys.stderr)
    try:
        config = _config(arguments)
        return _Run(arguments, config).result() if config else DONE
    except PocaError as error:
        for line in (str(error), *map(str, getattr(error, "faults", ()))):
            errors.line(line)
        return UNUSABLE
    except Interrupted as stop:
        return stop.code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:      # noqa: BLE001 - before there is a run there is no log that could take more
        errors.line(f"A fault of poca itself ended it before it began: {type(error).__name__} in {_place(error)}.")
        return UNUSABLE


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def _config(arguments: Namespace) -> Config | None:
    """The config; None after a first one was written."""
    from poca import config

    path = arguments.config or config.default_path()
    if arguments.config or path.exists():
        return config.read(path)
    if not (sys.stdin and sys.stdin.isatty() and is_terminal(sys.stdout)):
        raise ConfigError(f"There is no config file {path}. poca-subscribe add URL makes one, or copy sample_config.yaml there.")
    sys.stdout.write(f"There is no config file {path} yet. Write one to start with? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("Nothing was written.")
    from poca import conffile

    conffile.create(path, config.sample())
    sys.stdout.write(f"Written. Now: poca-subscribe add URL, or edit {path}; then poca.\n")
    return None


class _Run:
    """One run of poca: what it was asked for, and whom it tells."""

    def __init__(self, arguments: Namespace, config: Config) -> None:
        self.arguments, self.config, self.settings = arguments, config, config.settings
        mode = Mode.VERBOSE if arguments.verbose else Mode.QUIET if arguments.quiet else Mode.NORMAL
        terminal = is_terminal(sys.stdout)
        self.reporter = Reporter(sys.stdout, sys.stderr, mode, json=arguments.json, terminal=terminal, dry_run=arguments.dry_run)
        self.begun, self.now = time.monotonic(), int(time.time())
        self.failed = False
        self.log_told = False
        self.to_mail: list[tuple[Event, str]] = []
        from poca.runlog import RunLog

        self.log = RunLog(None if arguments.dry_run else self.settings.logfile, os.getpid())

    # ------------------------------------------------------------------------------------------------------ telling

    def tell(self, event: Event) -> None:
        """The one place where anything is said."""
        self.failed = self.failed or event.level is Level.ERROR
        self.reporter.tell(event)
        line, now = log_line(event), int(time.time())
        if not line:
            return
        if self.arguments.email and not (self.settings.email and self.settings.email.only_errors and event.level is not Level.ERROR):
            self.to_mail.append((event, self.log.line(now, event.title, shown(event.text))))     # a traceback stays in the log
        trouble = self.log.write(now, event.title, line)
        if trouble and not self.log_told:
            self.log_told = True
            self.tell_error(trouble)

    def tell_error(self, text: str) -> None:
        self.failed = True
        self.reporter.tell(Event("error", Level.ERROR, "", text))

    # --------------------------------------------------------------------------------------------------- the run

    def result(self) -> int:
        chosen = self.chosen()
        with interruptible():
            try:
                if not self.arguments.dry_run:
                    with suppress(OSError):         # told when the history is opened; until then the log needs its folder
                        self.settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                self.tell(Event("run-started", Level.DETAIL, "", f"poca {__version__}", {"feeds": len(chosen), "dry_run": self.arguments.dry_run}))
                self.tell_config()
                if chosen:
                    self.update(chosen)
            except Interrupted as stop:
                self.tell(Event("interrupted", Level.WARNING, "", "interrupted: what is unfinished goes on in the next run"))
                self.reporter.finish()
                return stop.code
            except (StateError, BaseDirError):
                self.reporter.finish()
                raise
            except Exception:       # noqa: BLE001 - what nobody foresaw is told in a line; the log has the rest
                text = "a fault of poca itself ended the run; the log has the details"
                self.tell(Event("error", Level.ERROR, "", text, {"trace": traceback.format_exc()}))
            self.reporter.finish()
        return FAILED if self.failed else DONE

    def tell_config(self) -> None:
        if self.arguments.verbose and self.arguments.parallel:
            self.tell(Event("note", Level.DETAIL, "", "-v asks one feed at a time, so -n has no effect"))
        for warning in self.config.warnings:
            self.tell(Event("warning", Level.WARNING, "", warning))
        for fault in self.config.faults:
            self.tell(Event("error", Level.ERROR, "", f"{fault} (the subscription is not run)"))

    def chosen(self) -> tuple[Subscription, ...]:
        """The subscriptions to run. Raises ConfigError for a title that is not there."""
        if self.arguments.email and not self.settings.email:
            raise ConfigError(f"-e mails by settings.email, which {self.config.path} does not have.")
        if not self.arguments.titles:
            return tuple(s for s in self.config.subscriptions if s.active)
        known = {s.title: s for s in self.config.subscriptions}
        faulty = {title for title, _ in self.config.faulty}
        for title in self.arguments.titles:
            if title not in known and title not in faulty:
                from difflib import get_close_matches

                near = get_close_matches(title, [*known, *faulty], n=3, cutoff=0.4)
                near = near or [t for t in known if title.casefold() in t.casefold()][:3]
                hint = f"; the nearest: {', '.join(near)}" if near else ""
                raise ConfigError(f"There is no subscription {title}{hint}.")
            if title in known and not known[title].active:
                raise ConfigError(f"The subscription {title} is inactive: poca-subscribe enable makes it active.")
        return tuple(known[title] for title in dict.fromkeys(self.arguments.titles) if title in known)

    def update(self, chosen: Sequence[Subscription]) -> None:
        from poca import basedir
        from poca.state import State

        dry = self.arguments.dry_run
        state = State.open(self.settings.state_dir, self.now, readonly=dry)
        try:
            for alarm in state.alarms:
                self.tell(Event("error", Level.ERROR, "", alarm))
            marker, told = basedir.settle(self.settings.base_dir, state.marker, state.recorded_files(), look_only=dry)
            if told:
                self.tell(Event("warning", Level.WARNING, "", told))
            if marker != state.marker and not dry:
                state.marker = marker
            if state.last_run is not None and self.now < state.last_run:
                self.tell(Event("warning", Level.WARNING, "", "the clock stands before the last run: nothing is deleted in this one"))
            histories = self.histories(state, chosen)
            chosen = [subscription for subscription in chosen if subscription.title in histories]
            if dry:
                self.show_plans(chosen, histories, marker)
            else:
                self.carry_out(chosen, histories, marker, state)
        finally:
            state.close()

    def histories(self, state: State, chosen: Sequence[Subscription]) -> dict[str, History]:
        """The history of each subscription to run, after renamings; those named on the command line wait for nothing."""
        from poca import renames

        dry, busy = self.arguments.dry_run, set[str]()
        if not dry:
            renames.finish(state, self.settings)
        histories = state.histories()
        pairs = renames.renamed(self.config, histories)
        if dry:
            histories.update((s.title, replace(histories[old], title=s.title)) for old, s in pairs.items())
        elif pairs:
            busy = renames.follow(pairs, self.settings, state, self.tell)
            histories = state.histories()
        found = {s.title: histories.get(s.title) or History(s.title, last_run=state.last_run) for s in chosen if s.title not in busy}
        if self.arguments.titles:
            found = {title: _asked_now(history) for title, history in found.items()}
        return found

    def show_plans(self, chosen: Sequence[Subscription], histories: Mapping[str, History], marker: str) -> None:
        """--dry-run: the same threads and plans, of which nothing is carried out."""
        from poca import events
        from poca.model import Failure, Waiting

        sums = dict.fromkeys(("asked", "unchanged", "waiting", "failed"), 0)

        def show(report: Report | Later) -> None:
            match report:
                case Plan():
                    sums["asked"] += 1
                    self.tell(events.plan_event(report))
                    if report.error:
                        self.tell(Event("feed-failed", Level.ERROR, report.subscription.title, report.error))
                case Waiting():
                    sums["waiting"] += 1
                    self.tell(events.waiting(report))
                case Failure():
                    sums["failed"] += 1
                    self.tell(Event("feed-failed", Level.ERROR, report.subscription.title, report.error, {"trace": report.trace}))
                case _:
                    sums["asked"], sums["unchanged"] = sums["asked"] + 1, sums["unchanged"] + 1

        self.run_threads(chosen, histories, marker, show, self.web())
        self.tell_sums(len(chosen), sums)

    def carry_out(self, chosen: Sequence[Subscription], histories: dict[str, History], marker: str, state: State) -> None:
        from poca.executor import Executor

        def progress(title: str, episode: str, done: int, total: int | None) -> None:
            self.reporter.downloading(episode, done, total)

        web = self.web()
        # Without it glibc gives the memory of each feed back to the system, which has to clear it anew for the next one.
        with suppress(MemoryError):
            bytes(KEPT)
        executor = Executor(self.settings, state, web, self.tell, progress=progress)
        for title in histories:
            if executor.recover(histories[title]):
                histories[title] = state.history(title)
        count = len(chosen)

        def handle(report: Report | Later) -> Later | None:
            if isinstance(report, Plan):
                sys.setswitchinterval(HANDOVER)
            later = executor.handle(report)
            self.reporter.idle()
            self.reporter.asked(executor.sums.asked + executor.sums.waiting, count)
            return later

        try:
            self.run_threads(chosen, histories, marker, handle, web)
        except Interrupted:
            executor.finish(interrupted=True)
            self.tell_sums(count, asdict(executor.sums))
            self.mail(state, interrupted=True)
            raise
        executor.finish()
        self.follow_moves(executor.moved)
        state.saw(self.now)
        if not self.failed and state.backup_due(self.now):
            from poca import locks

            with locks.copy_lock(self.settings.state_dir) as mine:
                if mine:
                    state.backup(self.now)
        self.mail(state)
        self.tell_sums(count, asdict(executor.sums))

    def mail(self, state: State, *, interrupted: bool = False) -> None:
        """Mails the run's log entries, and those kept from earlier runs, when there are enough of them."""
        email = self.settings.email
        if not self.arguments.email or not email:
            return
        from datetime import UTC, datetime

        from poca import mail

        state.keep_for_mail(mail.packed(event, line) for event, line in self.to_mail)
        kept = state.mail_entries()
        entries = [] if interrupted else mail.due(email, [mail.unpacked(entry) for _, entry in kept])
        if not entries:
            return
        try:
            trouble = mail.send(email, entries, timeout=self.settings.timeout, now=datetime.fromtimestamp(self.now, UTC).astimezone())
        except MailError as error:
            trouble = str(error)
        else:
            state.mailed(number for number, _ in kept)
        if trouble:
            self.tell(Event("error", Level.ERROR, "", trouble))

    def web(self) -> Web:
        from poca.web import Web

        return Web(self.settings)

    def run_threads(
        self, chosen: Sequence[Subscription], histories: Mapping[str, History], marker: str,
        handle: Callable[[Report | Later], Later | None], web: Web,
    ) -> None:
        from poca.executor import run
        from poca.worker import Crew, SubscriptionThread, Task

        queue: Queue[Report] = Queue()
        one_at_a_time = self.arguments.verbose
        crew = Crew(1 if one_at_a_time else self.arguments.parallel or self.settings.parallel)
        asked, look_only, explained = bool(self.arguments.titles), self.arguments.dry_run, self.arguments.json
        tasks = (Task(s, histories[s.title], self.settings, marker, self.now, asked, look_only, explained) for s in chosen)
        threads = [SubscriptionThread(task, web, crew, queue) for task in tasks]
        run(threads, queue, crew.launch, handle, one_at_a_time=one_at_a_time)

    def follow_moves(self, moved: Sequence[tuple[Subscription, str]]) -> None:
        """Writes the new addresses of feeds into the config, or says what to write."""
        if not moved:
            return
        from poca import confedit, conffile
        from poca.text import shown_url

        def told(level: Level, text: str) -> None:
            self.tell(Event("moved", level, subscription.title, f"the feed has moved for good to {place}{text}", {"url": place}))

        for subscription, url in moved:
            place = shown_url(url)
            if not self.settings.follow_moves:
                told(Level.WARNING, "; follow_moves is off, so the config keeps its old address")
                continue
            try:
                conffile.edit(self.config.path, partial(confedit.set_value, title=subscription.title, key="url", value=url))
            except EditError as error:
                told(Level.ERROR, f"; {error}")
            else:
                told(Level.NEWS, ": the config has its new address")

    def tell_sums(self, feeds: int, sums: Mapping[str, object]) -> None:
        data = {"feeds": feeds, **sums, "seconds": round(time.monotonic() - self.begun, 1)}
        self.tell(Event("sums", Level.DETAIL, "", "", data))


def _asked_now(history: History) -> History:
    return replace(history, next_try=None, episodes=tuple(replace(e, next_try=None) for e in history.episodes))
