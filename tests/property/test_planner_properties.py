"""What holds of every plan, whatever the feed, the history and the options."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from poca.model import Disk, Entry, Fate, FeedDoc, Filters, History, Rule
from tests.builders import DAY, NOW, carried_out, disk_of, entry, feed_of, plan

small = st.integers(0, 12)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """An entry of a small world, in which guids, URLs, titles and dates often meet."""
    n = draw(small)
    return entry(
        n,
        guid=draw(st.sampled_from(["", "same", f"guid-{n}", f"guid-{n}"])),
        url=f"http://127.0.0.1/{draw(st.sampled_from(['media', f'ep{n}', f'ep{n}']))}.mp3",
        title=draw(st.sampled_from(["Best of", f"Episode {n}"])),
        published=draw(st.sampled_from([None, NOW - DAY * (20 - n), NOW - DAY * 3, NOW + DAY * 9])),
        length=draw(st.sampled_from([None, 1000])),
    )


feeds = st.lists(entries(), max_size=10).map(lambda those: feed_of(*those))


@st.composite
def options(draw: st.DrawFn) -> dict[str, object]:
    from_the_top = draw(st.booleans())
    return {
        "max_number": draw(st.integers(0, 5)),
        "from_the_top": from_the_top,
        "max_days": 0 if from_the_top else draw(st.sampled_from([0, 0, 5, 12])),
        "filters": Filters(exclude_title=draw(st.sampled_from([None, "Best", "Episode 1"]))),
    }


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A history that real runs led to, in which the user deleted and marked, and downloads failed."""
    history = History("Show")
    for _ in range(draw(st.integers(0, 3))):
        gone = draw(st.sets(st.sampled_from(["Best of", "Episode 3", "Episode 5"]), max_size=2))
        failing = draw(st.sets(st.sampled_from(["Best of", "Episode 4", "Episode 6"]), max_size=2))
        made = plan(draw(feeds), history, disk_of(history, without=gone), **draw(options()))
        history = carried_out(made, history, failing=failing)
    if history.episodes and draw(st.booleans()):
        first, *rest = history.episodes
        history = replace(history, episodes=(replace(first, fate=Fate.MARKED), *rest))
    return history


@given(feeds, histories(), options())
def test_wanted_and_unwanted_part_what_is_held_and_what_is_lacking(feed, history, options):
    made = plan(feed, history, **options)
    held = {e.key for e in history.episodes if e.fate is Fate.HELD}
    lacking, unwanted, wanted = {one.episode.key for one in made.lacking}, {e.key for e in made.unwanted}, set(made.wanted)
    assert wanted | unwanted == held | lacking
    assert not wanted & unwanted
    assert not lacking & held


@given(feeds, histories(), options(), st.data())
def test_lacking_never_meets_what_the_user_deleted_or_marked(feed, history, options, data):
    gone = data.draw(st.sets(st.sampled_from([e.title for e in history.episodes] or ["none"])))
    made = plan(feed, history, disk_of(history, without=gone), **options)
    had = {e.key for e in history.episodes if e.fate in (Fate.DELETED, Fate.MARKED)} | {e.key for e in made.gone}
    assert not had & {one.episode.key for one in made.lacking}


@given(feeds, histories(), options())
def test_never_more_than_max_number_are_wanted(feed, history, options):
    made = plan(feed, history, **options)
    spared = any(verdict.rule is Rule.SPARED for verdict in made.verdicts)
    assert not options["max_number"] or spared or len(made.wanted) <= options["max_number"]


@given(feeds, histories(), options(), st.sampled_from(["empty", "cut", "clock"]))
def test_what_cannot_be_trusted_deletes_nothing(feed, history, options, fault):
    assume(history.last_run is not None)
    feed = {"empty": FeedDoc(), "cut": replace(feed, cut="in the middle"), "clock": feed}[fault]
    made = plan(feed, history, now=NOW - 1 if fault == "clock" else NOW, **options)
    assert made.unwanted == ()


@given(feeds, histories(), options(), st.sampled_from(["nothing like it", "^$", "1"]))
def test_a_filter_that_lets_less_through_deletes_nothing_that_stood_without_it(feed, history, options, pattern):
    history = carried_out(plan(feed, history, **options), history)
    # What was kept in the place of a failed one loses its place with that one.
    kept_for_another = {verdict.key for verdict in plan(feed, history, **options).verdicts if verdict.rule is Rule.STAND_IN}
    made = plan(feed, history, **{**options, "filters": replace(options["filters"], title=pattern)})
    assert {episode.key for episode in made.unwanted} <= kept_for_another


@given(feeds, histories(), options(), st.data())
def test_entries_that_leave_the_feed_delete_nothing_unless_something_comes_in_its_place(feed, history, options, data):
    assume(feed.entries)
    before = plan(feed, history, **options)
    history = carried_out(before, history)
    left = data.draw(st.lists(st.sampled_from(feed.entries), unique=True))
    made = plan(replace(feed, entries=tuple(e for e in feed.entries if e in left)), history, **options)
    # Where the one entry left of several at one URL is now taken for what the user had, that counts again.
    had, had_before = ({v.key for v in p.verdicts if v.rule in (Rule.MARKED, Rule.DELETED)} for p in (made, before))
    assume(had <= had_before)
    assert len(made.unwanted) <= len(made.lacking)


@given(feeds, histories(), options())
def test_planning_again_after_the_plan_was_carried_out_gives_an_empty_plan(feed, history, options):
    made = plan(feed, history, **options)
    history = carried_out(made, history)
    if made.dropped or len({entry.url for entry in feed.entries}) < len(feed.entries):
        # What was forgotten is judged anew, and entries that are hard to tell apart may change places; but not for ever.
        for _ in range(3):
            history = carried_out(plan(feed, history, **options), history)
    again = plan(feed, history, **options)
    assert again.lacking == again.unwanted == again.gone == again.found == again.adopted == again.dropped == ()


@given(st.lists(small, unique=True, max_size=10), options(), st.randoms(use_true_random=False))
def test_shuffling_a_feed_with_distinct_dates_changes_nothing(numbers, options, chance: random.Random):
    feed = feed_of(*(entry(n) for n in numbers))
    shuffled = list(feed.entries)
    chance.shuffle(shuffled)
    made, other = plan(feed, **options), plan(feed_of(*shuffled), **options)
    assert (made.wanted and set(made.wanted), made.lacking, made.verdicts) == (other.wanted and set(other.wanted), other.lacking, other.verdicts)


@given(feeds, histories(), options())
def test_each_episode_of_the_feed_and_each_held_one_has_one_verdict_that_agrees_with_the_lists(feed, history, options):
    made = plan(feed, history, **options)
    keys = [verdict.key for verdict in made.verdicts]
    assert len(keys) == len(set(keys))
    assert {v.key for v in made.verdicts if v.keep} >= set(made.wanted)
    assert {v.key for v in made.verdicts if v.held and not v.keep} == {e.key for e in made.unwanted}
    assert {e.key for e in history.episodes if e.fate is Fate.HELD} <= set(keys)


@given(feeds, histories(), options(), st.data())
def test_names_of_lacking_ones_meet_no_recorded_name_and_none_another(feed, history, options, data):
    made = plan(feed, history, Disk(disk_of(history).present), **options)
    names = [(one.names[0] + one.extension).casefold() for one in made.lacking]
    assert len(names) == len(set(names))
    others = {e.path.casefold() for e in history.episodes if e.path and e.key not in {one.episode.key for one in made.lacking}}
    assert not others & set(names)
