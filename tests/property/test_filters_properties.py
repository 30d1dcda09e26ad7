"""What holds for filters, whatever a feed says."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, date
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from poca.filters import failing
from poca.model import Entry, Filters

PATTERNS = st.one_of(st.none(), st.sampled_from(["a", "^a", "(?i)A$", ".", r"\d+", "mp3$"]))
MINUTES = st.one_of(st.none(), st.floats(0, 1000))
FILTERS = st.builds(
    Filters,
    title=PATTERNS, exclude_title=PATTERNS, filename=PATTERNS, exclude_filename=PATTERNS,
    hour=st.frozensets(st.integers(0, 23)), weekdays=st.frozensets(st.integers(0, 6)),
    after_date=st.one_of(st.none(), st.dates()), before_date=st.one_of(st.none(), st.dates()),
    min_minutes=MINUTES, max_minutes=MINUTES,
    episode_types=st.frozensets(st.sampled_from(["full", "bonus", "trailer"])), seasons=st.frozensets(st.integers(0, 5)),
)
ENTRIES = st.builds(
    Entry,
    guid=st.just("g"),
    url=st.text(max_size=20).map("https://h/".__add__),
    title=st.text(max_size=10),
    published=st.one_of(st.none(), st.integers(-10**12, 10**12), st.integers()),
    duration=st.one_of(st.none(), st.integers(0, 10**6)),
    season=st.one_of(st.none(), st.integers(-1, 6)),
    episode_type=st.sampled_from(["full", "bonus", "trailer"]),
)
ZONES = st.sampled_from([UTC, None, ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Europe/Berlin"), ZoneInfo("America/St_Johns")])


@given(FILTERS, ENTRIES, ZONES)
@settings(max_examples=500, deadline=None)
def test_the_filter_that_is_named_is_the_one_that_fails(filters: Filters, entry: Entry, zone: ZoneInfo | None) -> None:
    key = failing(filters, entry, zone)
    if key:
        only = replace(Filters(), **{key: getattr(filters, key)})
        assert failing(only, entry, zone) == key
        assert failing(replace(filters, **{key: getattr(Filters(), key)}), entry, zone) != key
    else:
        assert all(failing(replace(Filters(), **{one.name: getattr(filters, one.name)}), entry, zone) == "" for one in fields(Filters))


@given(FILTERS)
@settings(max_examples=200, deadline=None)
def test_an_entry_that_tells_nothing_passes_all_but_its_type(filters: Filters) -> None:
    assert failing(filters, Entry("", "https://h/"), UTC) in ("", "episode_types")


@given(ENTRIES, st.dates(date(1900, 1, 1), date(2200, 1, 1)), ZONES)
@settings(max_examples=300, deadline=None)
def test_a_date_parts_the_dated_ones_in_two(entry: Entry, day: date, zone: ZoneInfo | None) -> None:
    after, before = failing(Filters(after_date=day), entry, zone), failing(Filters(before_date=day), entry, zone)
    assert (after, before) in {("", "before_date"), ("after_date", ""), ("", "")}
    if entry.published is not None and abs(entry.published) < 10**10:
        assert (after == "") != (before == "")
