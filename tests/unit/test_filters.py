"""One predicate a filter."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from poca.filters import failing
from poca.model import Entry, Filters

BERLIN = ZoneInfo("Europe/Berlin")


def at(*when: int, zone: tzinfo = UTC) -> int:
    return int(datetime(*when, tzinfo=zone).timestamp())  # type: ignore[arg-type, misc]


def entry(title: str = "The Interview", url: str = "https://h/a/ep%201.mp3?x=secret", **more: object) -> Entry:
    return Entry(guid="g", url=url, title=title, **more)  # type: ignore[arg-type]


def test_without_filters_everything_passes() -> None:
    assert failing(Filters(), entry(), UTC) == ""


@pytest.mark.parametrize(("filters", "failed"), [
    (Filters(title="Inter"), ""),
    (Filters(title="^Inter"), "title"),
    (Filters(title="(?i)INTERVIEW$"), ""),
    (Filters(exclude_title="view"), "exclude_title"),
    (Filters(exclude_title="^view"), ""),
    (Filters(filename=r"^ep 1\.mp3$"), ""),
    (Filters(filename="secret"), "filename"),
    (Filters(exclude_filename="ep "), "exclude_filename"),
    (Filters(exclude_filename="secret|/a/"), ""),
    (Filters(title="x", exclude_filename="ep"), "title"),
])
def test_patterns_are_searched_in_title_and_original_name(filters: Filters, failed: str) -> None:
    assert failing(filters, entry(), UTC) == failed


@pytest.mark.parametrize(("filters", "when", "failed"), [
    (Filters(hour=frozenset({21})), at(2024, 1, 1, 20, 30), ""),            # 21:30 in winter
    (Filters(hour=frozenset({22})), at(2024, 7, 1, 20, 30), ""),            # 22:30 in summer
    (Filters(hour=frozenset({21})), at(2024, 7, 1, 20, 30), "hour"),
    (Filters(hour=frozenset({2})), at(2024, 10, 27, 0, 30), ""),            # the hour that comes twice
    (Filters(hour=frozenset({2})), at(2024, 10, 27, 1, 30), ""),
    (Filters(hour=frozenset({0, 1})), at(2024, 10, 27, 1, 30), "hour"),
    (Filters(weekdays=frozenset({0})), at(2024, 1, 1, 12), ""),             # a Monday
    (Filters(weekdays=frozenset({0})), at(2023, 12, 31, 23, 30), ""),       # Monday in Berlin already
    (Filters(weekdays=frozenset({6})), at(2023, 12, 31, 23, 30), "weekdays"),
    (Filters(after_date=date(2024, 1, 1)), at(2023, 12, 31, 23), ""),
    (Filters(after_date=date(2024, 1, 1)), at(2023, 12, 31, 22, 59, 59), "after_date"),
    (Filters(before_date=date(2024, 1, 1)), at(2023, 12, 31, 22, 59, 59), ""),
    (Filters(before_date=date(2024, 1, 1)), at(2023, 12, 31, 23), "before_date"),
    (Filters(after_date=date(1960, 1, 1), before_date=date(1969, 1, 1)), at(1965, 5, 5), ""),
])
def test_hours_weekdays_and_dates_are_those_of_the_zone(filters: Filters, when: int, failed: str) -> None:
    assert failing(filters, entry(published=when), BERLIN) == failed


def test_without_a_zone_the_clock_of_the_machine_counts() -> None:
    when = at(2024, 1, 1, 12)
    hour = datetime.fromtimestamp(when).hour
    assert failing(Filters(hour=frozenset({hour})), entry(published=when), None) == ""
    assert failing(Filters(hour=frozenset({(hour + 1) % 24})), entry(published=when), None) == "hour"


@pytest.mark.parametrize(("filters", "more", "failed"), [
    (Filters(min_minutes=10), {"duration": 600}, ""),
    (Filters(min_minutes=10), {"duration": 599}, "min_minutes"),
    (Filters(min_minutes=0.5), {"duration": 29}, "min_minutes"),
    (Filters(max_minutes=90), {"duration": 5400}, ""),
    (Filters(max_minutes=90), {"duration": 5401}, "max_minutes"),
    (Filters(episode_types=frozenset({"full", "bonus"})), {"episode_type": "trailer"}, "episode_types"),
    (Filters(episode_types=frozenset({"full", "bonus"})), {}, ""),
    (Filters(seasons=frozenset({1, 2})), {"season": 2}, ""),
    (Filters(seasons=frozenset({1, 2})), {"season": 3}, "seasons"),
])
def test_length_type_and_season(filters: Filters, more: dict[str, object], failed: str) -> None:
    assert failing(filters, entry(**more), UTC) == failed


@pytest.mark.parametrize("filters", [
    Filters(hour=frozenset({25})), Filters(weekdays=frozenset({9})), Filters(after_date=date.max), Filters(before_date=date.min),
    Filters(min_minutes=1e9), Filters(max_minutes=0), Filters(seasons=frozenset({-1})), Filters(title="^x"), Filters(filename="^x"),
])
@pytest.mark.parametrize("published", [None, 10**18, -(10**18)])
def test_what_a_feed_does_not_tell_passes(filters: Filters, published: int | None) -> None:
    assert failing(filters, Entry("", "https://h/", published=published), UTC) == ""


def test_a_length_of_zero_is_none() -> None:
    assert failing(Filters(min_minutes=10), entry(duration=0), UTC) == ""
