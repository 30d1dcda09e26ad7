"""Which episodes: what is wanted, unwanted and lacking, by tables. Episode n is newer than episode n - 1."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from poca import patience
from poca.identity import usable_date
from poca.model import Disk, Fate, Filters, History, Rule, Stranger
from tests.builders import DAY, NOW, after, carried_out, disk_of, entry, feed, feed_of, held, plan, subscription, titles


def rules(made) -> dict[str, Rule]:
    return {verdict.title: verdict.rule for verdict in made.verdicts}


class TestHoldingTheNewest:
    def test_the_newest_are_lacking_and_come_oldest_first(self):
        made = plan(feed(5, 4, 3, 2, 1), max_number=3)
        assert titles(made.lacking) == ["Episode 3", "Episode 4", "Episode 5"]
        assert made.unwanted == ()

    @pytest.mark.parametrize("order", [(5, 4, 3, 2, 1), (1, 2, 3, 4, 5), (3, 5, 1, 4, 2)])
    def test_the_order_of_the_feed_does_not_matter_where_dates_tell(self, order):
        assert titles(plan(feed(*order), max_number=2).lacking) == ["Episode 4", "Episode 5"]

    def test_without_a_limit_all_are_wanted(self):
        assert len(plan(feed(3, 2, 1)).lacking) == 3

    def test_a_new_one_pushes_the_oldest_out(self):
        made = plan(feed(4, 3, 2, 1), after(feed(3, 2, 1), max_number=3), max_number=3)
        assert titles(made.lacking) == ["Episode 4"]
        assert titles(made.unwanted) == ["Episode 1"]

    def test_the_unwanted_stand_oldest_first(self):
        made = plan(feed(4, 3, 2, 1), after(feed(4, 3, 2, 1)), max_number=1)
        assert titles(made.unwanted) == ["Episode 1", "Episode 2", "Episode 3"]

    def test_one_that_the_user_deleted_stays_deleted_and_digs_up_no_older_one(self):
        history = after(feed(4, 3, 2, 1), max_number=3)
        made = plan(feed(4, 3, 2, 1), history, disk_of(history, without=["Episode 3"]), max_number=3)
        assert titles(made.gone) == ["Episode 3"]
        assert made.lacking == made.unwanted == ()
        again = plan(feed(4, 3, 2, 1), carried_out(made, history), max_number=3)
        assert again.lacking == again.unwanted == again.gone == ()
        assert rules(again)["Episode 3"] is Rule.DELETED

    def test_one_that_was_marked_as_had_is_not_downloaded_and_keeps_its_place(self):
        marked = replace(after(feed(3), max_number=2).episodes[0], fate=Fate.MARKED, path="")
        made = plan(feed(3, 2, 1), History("Show", episodes=(marked,)), max_number=2)
        assert titles(made.lacking) == ["Episode 2"]
        assert rules(made)["Episode 3"] is Rule.MARKED

    def test_a_raised_max_number_brings_back_what_poca_removed(self):
        history = after(feed(3, 2, 1), max_number=3)
        history = carried_out(plan(feed(3, 2, 1), history, max_number=1), history)
        assert held(history) == ["Episode 3"]
        made = plan(feed(3, 2, 1), history, max_number=2)
        assert titles(made.lacking) == ["Episode 2"]
        assert made.lacking[0].names[0] + made.lacking[0].extension == "Show/ep2.mp3"

    def test_a_file_found_again_at_its_path_is_held_again(self):
        history = after(feed(2, 1))
        whole = disk_of(history)
        history = carried_out(plan(feed(2, 1), history, disk_of(history, without=["Episode 1"])), history)
        made = plan(feed(2, 1), history, whole)
        assert titles(made.found) == ["Episode 1"]
        assert held(carried_out(made, history)) == ["Episode 1", "Episode 2"]

    def test_a_file_that_the_user_has_retagged_is_still_that_episode_and_goes_in_its_turn(self):
        history = after(feed(2, 1))
        disk = Disk(present={e.path: 1234 for e in history.episodes})
        made = plan(feed(3, 2, 1), history, disk, max_number=2)
        assert made.gone == ()
        assert titles(made.unwanted) == ["Episode 1"]
        assert {e.size for e in made.seen} == {1234}


class TestHoldingTheOldest:
    def test_the_oldest_come_first(self):
        made = plan(feed(5, 4, 3, 2, 1), max_number=2, from_the_top=True)
        assert titles(made.lacking) == ["Episode 1", "Episode 2"]

    def test_each_one_that_the_user_deletes_makes_room_for_the_next(self):
        history = after(feed(4, 3, 2, 1), max_number=2, from_the_top=True)
        made = plan(feed(4, 3, 2, 1), history, disk_of(history, without=["Episode 1"]), max_number=2, from_the_top=True)
        assert titles(made.lacking) == ["Episode 3"]
        assert made.unwanted == ()

    def test_what_is_held_comes_before_an_older_one_that_turned_up(self):
        history = after(feed(5, 4, 3), max_number=2, from_the_top=True)
        made = plan(feed(5, 4, 3, 2), history, max_number=2, from_the_top=True)
        assert made.lacking == made.unwanted == ()

    def test_a_lowered_max_number_removes_the_newest_which_come_again_in_their_turn(self):
        history = after(feed(4, 3, 2, 1), max_number=3, from_the_top=True)
        lowered = plan(feed(4, 3, 2, 1), history, max_number=1, from_the_top=True)
        assert titles(lowered.unwanted) == ["Episode 2", "Episode 3"]
        history = carried_out(lowered, history)
        made = plan(feed(4, 3, 2, 1), history, disk_of(history, without=["Episode 1"]), max_number=1, from_the_top=True)
        assert titles(made.lacking) == ["Episode 2"]


class TestIdentity:
    def again(self, first, second, **options):
        """What the second feed brings after a run with the first."""
        return titles(plan(second, after(first, **options), **options).lacking)

    def test_a_guid_makes_it_known_whatever_else_changes(self):
        assert self.again(feed(1), feed_of(entry(1, url="http://b/x.mp3", title="New", published=NOW))) == []

    def test_a_move_to_another_host_with_new_guids_and_urls_brings_nothing_again(self):
        moved = feed_of(*(entry(n, guid=f"new-{n}", url=f"http://b/{n}.mp3") for n in (3, 2, 1)))
        assert self.again(feed(3, 2, 1), moved) == []

    @pytest.mark.parametrize(
        "change", [{"url": "http://b/1.mp3"}, {"title": "Another"}, {"published": NOW - 2000 * DAY}], ids=["url", "title", "an earlier date"]
    )
    def test_two_of_url_title_and_date_make_it_known(self, change):
        assert self.again(feed(1), feed_of(entry(1, guid="new", **change))) == []

    @pytest.mark.parametrize("kept", ["url", "title", "published"])
    def test_one_of_the_three_does_not(self, kept):
        other = entry(7, guid="new", **{kept: getattr(entry(1), kept)})
        assert len(self.again(feed(1), feed_of(other))) == 1

    def test_no_record_is_known_by_these_while_its_own_guid_is_in_the_feed(self):
        twin = entry(1, guid="new", url="http://b/1.mp3")
        assert len(self.again(feed(1), feed_of(twin, entry(1)))) == 1

    @pytest.mark.parametrize("title", ["News", None], ids=["one title for ever", "a title each hour"])
    def test_an_hourly_bulletin_at_one_fixed_url_is_new_every_hour(self, title):
        def bulletin(hour):
            given = {"guid": f"h{hour}", "url": "http://a/news.mp3", "title": title or f"News at {hour}", "published": NOW - DAY + hour * 3600}
            return feed_of(entry(1, **given))

        history = after(bulletin(1), bulletin(2), max_number=1)
        assert len(plan(bulletin(3), history, max_number=1).lacking) == 1
        assert len(held(history)) == 1

    def test_without_guids_the_url_makes_it_known(self):
        assert self.again(feed_of(entry(1, guid="")), feed_of(entry(1, guid="", title="Mended", published=NOW))) == []

    def test_without_guids_and_under_another_url_title_and_date_make_it_known(self):
        assert self.again(feed_of(entry(1, guid="")), feed_of(entry(1, guid="", url="http://b/1.mp3"))) == []
        assert len(self.again(feed_of(entry(1, guid="")), feed_of(entry(1, guid="", url="http://b/1.mp3", title="Other")))) == 1

    def test_a_guid_that_all_entries_bear_identifies_none(self):
        one = feed_of(*(entry(n, guid="page") for n in (3, 2, 1)))
        assert len(plan(one).lacking) == 3
        assert self.again(one, one) == []
        assert self.again(one, feed_of(entry(4, guid="page"), *one.entries)) == ["Episode 4"]
        assert self.again(one, feed_of(entry(4, guid="page"))) == ["Episode 4"]

    def test_an_entry_that_stands_twice_in_the_feed_is_one_episode(self):
        made = plan(feed_of(entry(2), entry(2), entry(1)), max_number=2)
        assert titles(made.lacking) == ["Episode 1", "Episode 2"]

    def test_two_of_one_title_and_day_under_two_urls_are_two(self):
        assert len(plan(feed_of(entry(1, guid=""), entry(1, guid="", url="http://a/part2.mp3"))).lacking) == 2

    def test_all_at_one_url_without_guids_are_told_apart_by_title_and_date(self):
        one = feed_of(*(entry(n, guid="", url="http://a/media.mp3") for n in (2, 1)))
        assert len(plan(one).lacking) == 2
        assert self.again(one, feed_of(entry(3, guid="", url="http://a/media.mp3"), *one.entries)) == ["Episode 3"]

    def test_what_was_first_recorded_of_an_episode_stays(self):
        history = after(feed(3, 2, 1), max_number=3)
        redated = feed_of(entry(3), entry(2), entry(1, published=NOW, title="Again"), entry(0))
        made = plan(redated, history, max_number=3)
        assert made.lacking == made.unwanted == ()
        (first,) = [e for e in carried_out(made, history).episodes if e.guid == "guid-1"]
        assert (first.published, first.path) == (entry(1).published, "Show/ep1.mp3")

    def test_a_host_that_moves_after_it_renamed_is_still_followed(self):
        renamed = feed_of(entry(1, title="Mended", published=NOW - DAY))
        moved = feed_of(entry(1, guid="new", url="http://b/1.mp3", title="Mended", published=NOW - DAY))
        assert titles(plan(moved, after(feed(1), renamed)).lacking) == []


class TestOrder:
    def test_one_without_a_date_stands_beside_its_neighbour_in_the_feed(self):
        mixed = feed_of(entry(5), entry(4, published=None), entry(3), entry(2), entry(1))
        assert titles(plan(mixed, max_number=2).lacking) == ["Episode 4", "Episode 5"]
        upwards = feed_of(*reversed(mixed.entries))
        assert titles(plan(upwards, max_number=2).lacking) == ["Episode 4", "Episode 5"]

    def test_one_dated_more_than_a_day_ahead_takes_its_place_in_the_feed(self):
        trailer = entry(9, title="Trailer", published=NOW + 2 * DAY)
        assert titles(plan(feed_of(entry(3), entry(2), entry(1), trailer), max_number=3).lacking) == ["Episode 1", "Episode 2", "Episode 3"]
        soon = trailer._replace(published=NOW + DAY // 2)
        assert "Trailer" in titles(plan(feed_of(entry(3), entry(2), entry(1), soon), max_number=3).lacking)

    def test_the_feeds_order_decides_between_equals(self):
        equal = feed_of(*(entry(n, published=NOW - DAY) for n in (4, 3, 2, 1)))
        assert titles(plan(equal, max_number=2).lacking) == ["Episode 3", "Episode 4"]

    def test_the_feeds_order_decides_where_no_entry_is_dated(self):
        undated = feed_of(*(entry(n, published=None) for n in (4, 3, 2, 1)))
        assert titles(plan(undated, max_number=2).lacking) == ["Episode 3", "Episode 4"]
        later = feed_of(entry(5, published=None), *undated.entries)
        made = plan(later, after(undated, max_number=2), max_number=2)
        assert (titles(made.lacking), titles(made.unwanted)) == (["Episode 5"], ["Episode 3"])


class TestPool:
    def test_what_fell_out_of_the_feed_is_not_deleted_for_that(self):
        made = plan(feed(3), after(feed(2, 1)), max_number=3)
        assert made.unwanted == ()
        assert titles(made.lacking) == ["Episode 3"]

    def test_what_fell_out_counts_and_goes_in_its_turn(self):
        made = plan(feed(4, 3), after(feed(2, 1)), max_number=3)
        assert titles(made.unwanted) == ["Episode 1"]

    def test_a_filter_decides_what_comes_and_never_what_goes(self):
        made = plan(feed(4, 3, 2, 1), after(feed(3, 2, 1), max_number=3), max_number=3, filters=Filters(title="nothing like that"))
        assert made.lacking == made.unwanted == ()
        assert rules(made)["Episode 4"] is Rule.FILTERED

    def test_the_verdict_names_the_filter(self):
        made = plan(feed(1), filters=Filters(exclude_title="Episode"))
        assert made.verdicts[0].detail == "exclude_title"

    def test_what_is_held_counts_whether_it_passes_todays_filters_or_not(self):
        history = after(feed(2, 1), max_number=2)
        made = plan(feed(3, 2, 1), history, max_number=2, filters=Filters(title="3"))
        assert titles(made.unwanted) == ["Episode 1"]

    def test_filtered_ones_take_no_place(self):
        assert titles(plan(feed(3, 2, 1), max_number=2, filters=Filters(exclude_title="3")).lacking) == ["Episode 1", "Episode 2"]

    def test_a_filter_on_what_the_feed_does_not_tell_lets_pass(self):
        quiet = entry(1, published=None, duration=None, season=None)
        picky = Filters(hour=frozenset({3}), weekdays=frozenset({1}), after_date=date(2030, 1, 1), min_minutes=10, seasons=frozenset({2}))
        assert len(plan(feed_of(quiet), filters=picky).lacking) == 1


class TestMaxDays:
    def days_old(self, *ages):
        return feed_of(*(entry(100 - age, title=f"{age} days", published=NOW - age * DAY) for age in ages))

    def test_older_ones_are_not_downloaded(self):
        assert titles(plan(self.days_old(1, 5, 9), max_days=7).lacking) == ["5 days", "1 days"]

    def test_older_ones_that_are_held_go(self):
        history = after(self.days_old(1, 5))
        made = plan(self.days_old(1, 5), history, now=NOW + 4 * DAY, max_days=7)
        assert titles(made.unwanted) == ["5 days"]
        assert rules(made)["5 days"] is Rule.MAX_DAYS

    def test_max_days_comes_before_max_number(self):
        assert titles(plan(self.days_old(1, 5, 9), max_days=7, max_number=3).lacking) == ["5 days", "1 days"]

    def test_one_without_a_date_passes(self):
        assert len(plan(feed_of(entry(1, published=None)), max_days=1).lacking) == 1


class TestNothingIsDeletedForLackOfKnowledge:
    history = after(feed(5, 4, 3, 2, 1))

    @pytest.mark.parametrize("max_number", [1, 3])
    def test_a_good_feed_without_items_deletes_nothing(self, max_number):
        made = plan(feed_of(), self.history, max_number=max_number)
        assert (made.unwanted, made.error) == ((), "")

    def test_a_feed_that_was_cut_off_brings_downloads_and_no_deletions_and_is_an_error(self):
        made = plan(feed(7, 6, cut="it ends in the middle of an item"), self.history, max_number=3)
        assert titles(made.lacking) == ["Episode 6", "Episode 7"]
        assert made.unwanted == ()
        assert made.error

    def test_nothing_is_deleted_when_the_clock_stands_before_the_last_run(self):
        made = plan(feed(6, 5, 4), self.history, now=NOW - 1, max_number=1)
        assert made.unwanted == ()
        assert Rule.SPARED in rules(made).values()

    def test_it_is_deleted_in_the_next_run_that_knows(self):
        assert len(plan(feed(5, 4, 3, 2, 1), self.history, now=NOW + 1, max_number=3).unwanted) == 2


class TestFailures:
    def failed_once(self, **options):
        history = after(feed(2, 1), max_number=2)
        return carried_out(plan(feed(3, 2, 1), history, max_number=2), history, failing=["Episode 3"])

    def test_one_that_failed_waits_for_its_next_try_and_the_one_it_replaces_stays(self):
        history = self.failed_once()
        assert held(history) == ["Episode 1", "Episode 2"]
        made = plan(feed(3, 2, 1), history, max_number=2)
        assert made.lacking == made.unwanted == ()
        assert made.waiting == 1
        assert rules(made) == {"Episode 3": Rule.FAILED, "Episode 2": Rule.HELD, "Episode 1": Rule.STAND_IN}
        assert (made.verdicts[0].detail, made.verdicts[0].next_try) == ("no", NOW + 7200)

    def test_it_is_tried_again_when_its_time_has_come_although_the_feed_has_not_changed(self):
        made = plan(feed(3, 2, 1), self.failed_once(), now=NOW + 7200, max_number=2)
        assert titles(made.lacking) == ["Episode 3"]
        assert titles(made.unwanted) == ["Episode 1"]

    def test_what_is_no_longer_wanted_is_dropped_with_its_part(self):
        history = self.failed_once()
        made = plan(feed(5, 4, 3, 2, 1), history, max_number=2)
        assert titles(made.dropped) == ["Episode 3"]
        filtered = plan(feed(3, 2, 1), history, max_number=2, filters=Filters(exclude_title="3"))
        assert titles(filtered.dropped) == ["Episode 3"]
        assert plan(feed_of(), history, max_number=2).dropped == ()


class TestAdoption:
    def lying_there(self, size, name="Show/ep1.mp3", media=True, *, feed_=None, history=None, **options):
        disk = Disk(strangers={name: Stranger(size, media)})
        return plan(feed_ or feed(1), history or History("Show"), disk, **options)

    def test_a_file_at_the_name_of_an_episode_is_adopted_when_the_told_length_fits(self):
        made = self.lying_there(1_000_900)
        assert titles(made.adopted) == ["Episode 1"]
        assert made.lacking == ()
        assert made.adopted[0].adopted

    @pytest.mark.parametrize(("told", "size", "fits"), [
        (1000, 1_001_000, True), (1000, 1_001_001, False), (100_000_000, 105_000_000, True), (100_000_000, 105_000_001, False),
    ])
    def test_it_fits_within_the_larger_of_5_percent_and_1_mb(self, told, size, fits):
        assert bool(self.lying_there(size, feed_=feed_of(entry(1, length=told))).adopted) is fits

    def test_what_is_no_media_is_a_strangers_file(self):
        assert self.lying_there(1000, media=False).adopted == ()

    def test_without_a_told_length_only_a_fresh_history_adopts_and_only_a_unique_name(self):
        untold = entry(1, length=None)
        assert self.lying_there(5, feed_=feed_of(untold)).adopted
        assert not self.lying_there(5, feed_=feed_of(untold), history=History("Show", last_good=NOW - 1)).adopted
        twins = feed_of(untold, entry(2, length=None, url="http://127.0.0.1/b/ep1.mp3"))
        assert not self.lying_there(5, feed_=twins).adopted

    def test_adopted_files_count_and_are_never_deleted(self):
        history = carried_out(self.lying_there(1000), History("Show"))
        made = plan(feed(3, 2, 1), history, max_number=2)
        assert made.unwanted == ()
        assert titles(made.lacking) == ["Episode 2", "Episode 3"]
        assert titles(plan(feed(2, 1), history, max_number=2).lacking) == ["Episode 2"]

    def test_an_extension_that_only_the_answer_will_tell_is_taken_from_the_file(self):
        bare = entry(1, url="http://127.0.0.1/get/a1b2", mime="")
        assert self.lying_there(1000, "Show/a1b2.ogg", feed_=feed_of(bare)).adopted


class TestSmallThings:
    """Each found by a change of the code that no other test had noticed."""

    def pending(self, **values):
        """A history in which a download of the one episode has failed."""
        history = after(feed(1))
        (episode,) = history.episodes
        failed = replace(episode, fate=Fate.PENDING, path="", size=None, failures=1)
        return replace(history, episodes=(replace(failed, **values),))

    def test_an_episode_that_failed_before_it_had_a_name_is_named_as_any_other(self):
        made = plan(feed(1), self.pending())
        assert made.lacking[0].names[0] == "Show/ep1"

    def test_one_that_waits_for_its_next_try_keeps_its_part(self):
        made = plan(feed(1), self.pending(next_try=NOW + 60, part="Show/.poca-1.part"))
        assert made.dropped == () and made.waiting == 1

    def test_a_file_that_is_no_media_does_not_hide_one_that_is(self):
        bare = entry(1, url="http://127.0.0.1/get/a1b2", mime="")
        for order in (1, -1):
            strangers = {"Show/a1b2.ogg": Stranger(1000, True), "Show/a1b2.mp3": Stranger(1000, False)}
            made = plan(feed_of(bare), disk=Disk(strangers=dict(list(strangers.items())[::order])))
            assert [episode.path for episode in made.adopted] == ["Show/a1b2.ogg"]

    def test_a_filter_decides_what_comes_and_not_what_goes_with_the_oldest_first_too(self):
        history = after(feed(2, 1), max_number=3, from_the_top=True)
        made = plan(feed(3, 2, 1), history, max_number=3, from_the_top=True, filters=Filters(title="nothing"))
        assert rules(made) == {"Episode 1": Rule.HELD, "Episode 2": Rule.HELD, "Episode 3": Rule.FILTERED}
        assert not made.lacking and not made.unwanted

    def test_a_verdict_says_of_what_is_not_on_disk_that_it_is_not_kept(self):
        made = plan(feed(3, 2, 1), after(feed(2, 1), max_number=1), max_number=2, filters=Filters(exclude_title="3"))
        assert {verdict.title: (verdict.held, verdict.keep) for verdict in made.verdicts} == {
            "Episode 3": (False, False), "Episode 2": (True, True), "Episode 1": (False, True)}

    def test_an_entry_of_which_nothing_but_its_address_is_told_stands_once(self):
        bare = entry(1, guid="", title="", published=None)
        assert len(plan(feed_of(bare, bare)).lacking) == 1

    def test_an_undated_entry_at_the_head_of_the_feed_stands_beside_the_one_after_it(self):
        made = plan(feed_of(entry(9, published=None, title="Undated"), entry(3), entry(2), entry(1)))
        assert titles(made.lacking) == ["Episode 1", "Episode 2", "Episode 3", "Undated"]
        assert made.lacking[-1].episode.placed == made.lacking[-2].episode.placed

    def test_the_key_of_an_episode_is_made_of_its_guid_alone(self):
        plans = [plan(feed_of(entry(1, title=title, url=f"http://127.0.0.1/{title}.mp3"))) for title in "ab"]
        keys = {made.lacking[0].episode.key for made in plans}
        assert len(keys) == 1


class TestFingerprint:
    @pytest.mark.parametrize(
        "options",
        [{"max_number": 3}, {"rename": "{date}"}, {"filters": Filters(title="x" * 300)}, {"timezone": UTC}, {"from_the_top": True}],
    )
    def test_it_changes_with_whatever_the_plan_depends_on(self, options):
        assert patience.fingerprint(subscription(**options)) != patience.fingerprint(subscription())

    def test_it_stays_in_another_process(self):
        import subprocess
        import sys

        code = (
            "from poca import patience; from poca.model import *;"
            "print(patience.fingerprint(Subscription('S', 'u', filters=Filters(episode_types=frozenset({'full', 'bonus', 'trailer'})))))"
        )
        seen = {subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True).stdout for seed in "123"}
        assert len(seen) == 1
        assert seen != {""}


def test_dates_are_instants_so_a_change_of_the_machines_zone_changes_no_order():
    early = entry(1, published=int(datetime(2023, 1, 1, tzinfo=UTC).timestamp()))
    assert titles(plan(feed_of(early, entry(900)), max_number=1).lacking) == ["Episode 900"]


@pytest.mark.parametrize(("ahead", "usable"), [(DAY, True), (DAY + 1, False)])
def test_a_date_more_than_a_day_ahead_is_none(ahead, usable):
    assert usable_date(NOW + ahead, NOW) == (NOW + ahead if usable else None)
