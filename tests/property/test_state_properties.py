"""What is put into the history comes back, whatever it is and in whatever order it is done."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from poca.model import Episode, Fate, Fetched, History, Stage, Validators
from poca.state import State

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

texts = st.text(st.characters(exclude_categories=()), max_size=40)       # lone surrogates and NUL as well
numbers = st.integers(-2**63, 2**63 - 1)
maybe = st.none() | numbers
validators = st.builds(Validators, texts, texts)


def episodes(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Episode]:
    fields: dict[str, Any] = dict.fromkeys(("guid", "url", "title", "path", "part", "part_etag", "error"), texts)
    fields |= dict.fromkeys(("published", "placed", "seen_published", "size", "part_total", "next_try", "track"), maybe)
    fields |= dict.fromkeys(("recorded", "failures"), numbers)
    return st.builds(Episode, key=keys, fate=st.sampled_from(Fate), stage=st.sampled_from(Stage), adopted=st.booleans(), **fields)


@QUICK
@given(title=texts, other=texts, records=st.lists(episodes(texts), max_size=6, unique_by=lambda e: e.key))
def test_every_episode_comes_back_as_it_was_put(title: str, other: str, records: list[Episode]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with closing(State.open(Path(folder), 0)) as state:
            state.put(other, *(replace(record, error="other") for record in records))
            state.put(title, *records)
            assert state.history(title).episodes == tuple(records)
        with closing(State.open(Path(folder), 0)) as state:
            assert state.alarms == ()
            assert state.history(title).episodes == tuple(records)


@QUICK
@given(st.builds(History, title=texts, url=texts, validators=validators, body_hash=texts, packed=st.binary(max_size=9000), settled=texts,
                 failures=numbers, error=texts, next_try=maybe, last_good=numbers, cover=texts, cover_url=texts, cover_hash=texts,
                 cover_validators=validators, cover_error=texts, last_run=numbers))
def test_every_history_comes_back_as_it_was_told(history: History) -> None:
    assert history.last_good is not None and history.last_run is not None
    with tempfile.TemporaryDirectory() as folder:
        with closing(State.open(Path(folder), 0)) as state:
            state.read_feed(history.title, history.url, Fetched(history.validators, history.body_hash, history.packed), history.last_good)
            state.feed_failed(history.title, history.url, history.error, history.failures, history.next_try)
            state.settle(history.title, history.settled)
            state.cover(history.title, history.cover, history.cover_url, history.cover_hash, history.cover_validators, history.cover_error)
            state.saw(history.last_run)
        with closing(State.open(Path(folder), 0)) as state:
            assert state.alarms == ()
            assert state.histories() == {history.title: history}


titles = st.sampled_from(["Show", "show", "Show\udcff"])
keys = st.sampled_from(["a", "b", "c"])
instants = st.integers(1, 10**10)


class Histories(RuleBasedStateMachine):
    """The history beside a dict that does the same, as one process after the other has it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.state = State.open(Path(self.folder.name), 0)
        self.expected: dict[str, History] = {}

    def known(self, title: str) -> History:
        return self.expected.get(title, History(title))

    def expect(self, title: str, **changes: Any) -> None:
        self.expected[title] = replace(self.known(title), **changes)

    def expect_changed(self, title: str, now: tuple[Episode, ...]) -> None:
        known = self.known(title)
        self.expect(title, episodes=now, generation=known.generation + (now != known.episodes))

    @rule(title=titles, records=st.lists(episodes(keys), min_size=1, max_size=3, unique_by=lambda episode: episode.key))
    def put(self, title: str, records: list[Episode]) -> None:
        self.state.put(title, *records)
        held = {episode.key: episode for episode in self.known(title).episodes}
        for record in records:
            held[record.key] = record
        self.expect_changed(title, tuple(held.values()))

    @rule(title=titles, key=keys)
    def forget(self, title: str, key: str) -> None:
        self.state.forget(title, key)
        if title in self.expected:
            self.expect_changed(title, tuple(episode for episode in self.known(title).episodes if episode.key != key))

    @rule(title=titles, url=texts, fetched=st.builds(Fetched, validators, texts, st.binary(min_size=1, max_size=50)), now=instants)
    def read(self, title: str, url: str, fetched: Fetched, now: int) -> None:
        self.state.read_feed(title, url, fetched, now)
        last_good = self.state.history(title).last_good
        assert last_good == now or self.known(title).packed == fetched.packed
        self.expect(title, url=url, validators=fetched.validators, body_hash=fetched.body_hash, packed=fetched.packed, last_good=last_good,
                    failures=0, error="", next_try=None)

    @rule(title=titles, generation=st.integers(0, 2))
    def claim(self, title: str, generation: int) -> None:
        known = self.known(title).generation
        assert self.state.claim(title, generation) == (known + 1 if known == generation else None)
        if known == generation:
            self.expect(title, generation=known + 1)

    @rule(title=titles)
    def delete(self, title: str) -> None:
        self.state.delete_subscription(title)
        self.expected.pop(title, None)

    @rule(old=titles, new=titles, finished=st.booleans())
    def rename(self, old: str, new: str, finished: bool) -> None:
        if old == new or self.known(new).episodes or old not in self.expected:
            return
        self.state.begin_rename(old, new, "Old", None)
        if not finished:
            self.reopen()
        self.state.finish_rename(old)
        self.expected[new] = replace(self.expected.pop(old), title=new)

    @rule()
    def reopen(self) -> None:
        self.state.close()
        self.state = State.open(Path(self.folder.name), 0)
        assert self.state.alarms == ()

    @rule()
    def the_copy_takes_its_place(self) -> None:
        bak = Path(self.folder.name, "poca.db.bak")
        bak.unlink(missing_ok=True)
        assert self.state.backup(0)
        self.state.close()
        bak.rename(Path(self.folder.name, "poca.db"))
        self.state = State.open(Path(self.folder.name), 0)
        assert self.state.alarms == ()

    @invariant()
    def the_same_is_known(self) -> None:
        assert self.state.histories() == self.expected

    def teardown(self) -> None:
        self.state.close()
        self.folder.cleanup()


Histories.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TestHistories = Histories.TestCase
