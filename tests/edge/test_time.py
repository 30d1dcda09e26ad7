"""Clocks that stand wrong, zones, and dates of all ages. The program is run by a clock of its own (libfaketime) where the machine has that."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from poca import naming, patience
from poca.feed import parse_feed
from poca.filters import failing
from poca.model import Entry, Fate, Filters, Rule
from poca.patience import next_try
from poca.templates import Named
from tests.builders import DAY, NOW, after, carried_out, disk_of, entry, feed, feed_of, held, plan, subscription, titles
from tests.server import Reply, Server
from tests.world import Done, Home, Show

FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
needs_faketime = pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")
YEAR = 365 * DAY
HOUR = 3600
BERLIN = ZoneInfo("Europe/Berlin")


# --------------------------------------------------------------------------------------- the program by another clock

def at(home: Home, instant: float, *arguments: str, **env: str) -> Done:
    """A run that takes it for this instant."""
    told = datetime.fromtimestamp(instant, UTC).strftime("@%Y-%m-%d %H:%M:%S")
    return home.run(*arguments, **{"LD_PRELOAD": str(FAKETIME), "FAKETIME": told, "FAKETIME_DONT_FAKE_MONOTONIC": "1", **env})


@needs_faketime
def test_a_clock_a_year_ahead_for_one_run_delays_no_feed_once_it_is_right_again(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(2)
    home.write(show.subscription())
    now = time.time()
    assert at(home, now).code == 0
    server.routes[show.path] = Reply(404)
    for hour in range(3):
        assert at(home, now + YEAR + hour * HOUR).code == 1
    asked = server.count(show.path)
    assert at(home, now + YEAR + 3 * HOUR + 60).silent
    assert server.count(show.path) == asked, "after three failures in a row it waits"
    server.routes[show.path] = show.publish().reply()
    back = at(home, now + HOUR)
    assert back.code == 0 and "the clock stands before the last run" in back.err
    assert len(home.files()) == 3


@needs_faketime
def test_a_clock_a_year_ahead_for_one_run_delays_no_episode_once_it_is_right_again(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(1)
    server.routes["/show/1.mp3"] = Reply(404)
    home.write(show.subscription())
    now = time.time()
    for hour in range(2):
        assert at(home, now + YEAR + hour * HOUR).code == 1
    asked = server.count("/show/1.mp3")
    assert at(home, now + YEAR + 2 * HOUR).silent
    assert server.count("/show/1.mp3") == asked
    server.routes["/show/1.mp3"] = Reply(body=show.items[0].body, type="audio/mpeg")
    assert at(home, now + HOUR).code == 0
    assert list(home.files()) == ["Show/1.mp3"]


@needs_faketime
def test_a_retry_after_of_years_is_waited_for_a_day(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(1)
    now = time.time()
    server.routes[show.path] = Reply(503, headers={"Retry-After": "999999999"})
    home.write(show.subscription())
    assert at(home, now).code == 1
    server.routes[show.path] = show.reply()
    assert at(home, now + DAY - 60).silent
    assert at(home, now + DAY + 60).code == 0
    assert list(home.files()) == ["Show/1.mp3"]


@needs_faketime
def test_a_clock_that_goes_back_deletes_nothing_once_and_is_told_once(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(3)
    home.write(show.subscription(max_number=3))
    now = time.time()
    at(home, now)
    show.publish(2)
    back = at(home, now - 30 * DAY)
    assert back.code == 0 and "nothing is deleted" in back.err
    assert len(home.files()) == 5
    again = at(home, now - 30 * DAY + HOUR)
    assert again.code == 0 and not again.err
    assert sorted(home.files()) == ["Show/3.mp3", "Show/4.mp3", "Show/5.mp3"]


@needs_faketime
@pytest.mark.parametrize("year", [1971, 2039, 2200])
def test_the_program_runs_in_any_year(year: int, home: Home, server: Server) -> None:
    """A small computer without a battery wakes up in 1970, and time goes on after 2038."""
    show = Show(server, "show").publish(3)
    home.write(show.subscription(max_number=2, rename="{date}_{episode_title}"))
    then = datetime(year, 3, 1, tzinfo=UTC).timestamp()
    first = at(home, then)
    assert first.code == 0, first
    assert len(home.files()) == 2
    assert home.log_path.read_text(encoding="utf-8").startswith(f"{year}-03-01 00:00:")
    assert at(home, then + HOUR).silent
    show.publish()
    assert at(home, then + 2 * HOUR).code == 0
    assert len(home.files()) == 2


@needs_faketime
def test_nothing_is_lost_when_the_clock_is_set_right_after_a_first_run_in_1970(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(3)
    home.write(show.subscription(max_number=3, max_days=20_000))
    assert at(home, 5 * DAY).code == 0
    assert len(home.files()) == 3, "episodes of a later date than today count as undated"
    assert at(home, time.time()).code == 0
    assert len(home.files()) == 3
    assert set(home.fates("Show").values()) == {Fate.HELD}


# ---------------------------------------------------------------------------------------------- what waits, and till when

@pytest.mark.parametrize(("away", "waiting"), [(1, True), (7 * DAY, True), (7 * DAY + 1, False), (YEAR, False), (0, False), (-YEAR, False)])
def test_an_episode_waits_for_its_next_try_for_a_week_at_most(away: int, waiting: bool) -> None:
    history = after(feed(1))
    (episode,) = history.episodes
    pending = replace(history, episodes=(replace(episode, fate=Fate.PENDING, path="", failures=9, error="no", next_try=NOW + away),))
    made = plan(feed(1), pending)
    assert [verdict.rule for verdict in made.verdicts] == [Rule.FAILED if waiting else Rule.WANTED]
    assert len(made.lacking) == (not waiting)


@pytest.mark.parametrize(("away", "waiting"), [(1, True), (DAY, True), (DAY + 1, False), (YEAR, False), (0, False)])
def test_a_feed_waits_for_its_next_try_for_a_day_at_most(away: int, waiting: bool) -> None:
    assert patience.waits(NOW + away, NOW, patience.LONGEST_PAUSE_FEED) is waiting


@pytest.mark.parametrize("failures", [1, 2, 3, 5, 50, 10**6])
@pytest.mark.parametrize("asked_for", [None, 0, -5, 60, YEAR, 10**18])
@pytest.mark.parametrize("longest", [patience.LONGEST_PAUSE_FEED, patience.LONGEST_PAUSE_EPISODE])
def test_no_pause_is_longer_than_what_is_waited_for(failures: int, asked_for: int | None, longest: int) -> None:
    then = next_try(NOW, failures, patience=3, most=longest, retry_after=asked_for)
    assert then is None or patience.waits(then, NOW, longest)


def test_a_clock_before_the_last_run_deletes_nothing_but_downloads() -> None:
    history = after(feed(1, 2, 3), max_number=2)
    early = plan(feed(1, 2, 3, 4), history, now=NOW - 1, max_number=2)
    assert titles(early.lacking) == ["Episode 4"] and not early.unwanted
    assert Rule.SPARED in {verdict.rule for verdict in early.verdicts}
    assert len(plan(feed(1, 2, 3, 4), history, now=NOW, max_number=2).unwanted) == 1


# ------------------------------------------------------------------------------------------------------- old and new dates

DATES = {
    "Fri, 13 Dec 1901 20:45:51 GMT": "1901-12-13", "Wed, 31 Dec 1969 23:59:59 GMT": "1969-12-31", "Thu, 01 Jan 1970 00:00:00 GMT": "1970-01-01",
    "Tue, 19 Jan 2038 03:14:07 GMT": "2038-01-19", "Tue, 19 Jan 2038 03:14:08 GMT": "2038-01-19", "Sun, 07 Feb 2106 06:28:16 GMT": "2106-02-07",
    "Fri, 31 Dec 9999 23:59:59 GMT": "9999-12-31", "0001-01-01T00:00:00Z": "0001-01-01", "Thu, 29 Feb 2024 12:00:00 GMT": "2024-02-29",
}


def dated(date: str) -> Entry:
    body = f"<rss version='2.0'><channel><item><title>T</title><pubDate>{date}</pubDate><enclosure url='http://h/a.mp3'/></item></channel></rss>"
    return parse_feed(body.encode(), None, "http://h/").entries[0]


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize("zone", [UTC, None, BERLIN, ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Pacific/Niue")])
def test_a_date_of_any_age_names_a_file_and_passes_the_filters(date: str, zone: tzinfo | None) -> None:
    one = dated(date)
    show = subscription(rename="{date}_{episode_title}", timezone=zone)
    name = naming.plan_names(show, [Named("abcdef0123456789", one)], ())["abcdef0123456789"].ladder[0]
    assert name.startswith("Show/") and name.endswith("T")
    if zone is UTC:
        assert name == f"Show/{DATES[date]}_T"
    assert failing(Filters(hour=frozenset(range(24)), weekdays=frozenset(range(7))), one, zone) == ""


def test_episodes_of_all_ages_are_held_and_go_in_their_order() -> None:
    entries = [entry(number, published=dated(date).published) for number, date in enumerate(DATES)]
    made = plan(feed_of(*entries))
    assert len(made.lacking) == len(DATES)
    order = [one.entry.published or 0 for one in made.lacking if (one.entry.published or 0) <= NOW]
    assert order == sorted(order)


@pytest.mark.parametrize("date", ["Fri, 31 Dec 9999 23:59:59 GMT", "Tue, 19 Jan 2038 03:14:08 GMT"])
def test_an_episode_of_the_far_future_does_not_push_out_all_others_for_ever(date: str) -> None:
    """An announcement dated 9999 stands beside its neighbour in the feed, and goes when that one does."""
    announced = entry(99, title="Soon", published=dated(date).published)
    history = after(feed_of(entry(3), announced, entry(2), entry(1)), max_number=2)
    assert held(history) == ["Episode 3", "Soon"]
    later = feed_of(entry(5), entry(4), entry(3), announced, entry(2), entry(1))
    history = carried_out(plan(later, history, disk_of(history), max_number=2), history)
    assert held(history) == ["Episode 4", "Episode 5"]


# ----------------------------------------------------------------------------------------------------------- clock changes

@pytest.mark.parametrize(("moment", "hour", "day"), [
    ((2024, 3, 31, 0, 59), 1, "2024-03-31"), ((2024, 3, 31, 1, 0), 3, "2024-03-31"),              # the hour that is not
    ((2024, 10, 27, 0, 30), 2, "2024-10-27"), ((2024, 10, 27, 1, 30), 2, "2024-10-27"),           # the hour that is twice
    ((2024, 7, 1, 21, 59), 23, "2024-07-01"), ((2024, 7, 1, 22, 0), 0, "2024-07-02"),             # midnight in summer
    ((2024, 1, 1, 22, 59), 23, "2024-01-01"), ((2024, 1, 1, 23, 0), 0, "2024-01-02"),             # and in winter
])
def test_hours_and_days_are_those_of_the_zone_also_where_the_clocks_change(moment: tuple[int, ...], hour: int, day: str) -> None:
    one = entry(1, published=int(datetime(*moment, tzinfo=UTC).timestamp()))      # type: ignore[arg-type, misc]
    passing = [h for h in range(24) if not failing(Filters(hour=frozenset({h})), one, BERLIN)]
    assert passing == [hour]
    names = naming.plan_names(subscription(rename="{date}", timezone=BERLIN), [Named("abcdef0123456789", one)], ())
    assert names["abcdef0123456789"].ladder[0] == f"Show/{day}"


def test_the_zone_of_the_machine_is_that_of_the_day_of_the_episode(monkeypatch: pytest.MonkeyPatch, in_zone: Callable[[str], None]) -> None:
    in_zone("Europe/Berlin")
    winter, summer = (entry(1, published=int(datetime(2024, month, 1, 21, 30, tzinfo=UTC).timestamp())) for month in (1, 7))
    assert failing(Filters(hour=frozenset({22})), winter, None) == "" != failing(Filters(hour=frozenset({22})), summer, None)


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> object:
    def change(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


def test_a_name_stays_when_the_machine_moves_to_another_zone(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(2)
    home.write(show.subscription(rename="{date}_{episode_title}"))
    home.run(TZ="Pacific/Kiritimati")
    files = set(home.files())
    home.write(show.subscription(rename="{date}_{episode_title}", max_number=5))
    assert home.run(TZ="Pacific/Niue").silent
    assert set(home.files()) == files
