"""What holds for names, whatever a feed says."""

from __future__ import annotations

import unicodedata
from datetime import UTC
from zoneinfo import ZoneInfo

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from poca.media import media_extension
from poca.model import Entry, Subscription
from poca.naming import LEVELS, fold, folder, plan_names
from poca.templates import FIELDS, Named, template_fault

NASTY = st.sampled_from([
    "", ".", "..", "/", "../..", "-", "CON", "aux.txt", "a:b", 'x"*<>?\\|y', "e\u0301", "\u0301",
    "👩‍🚀" * 30, "天" * 120, "x" * 300, "a ", "a.", " . ",
    "News", "NEWS", "news-2024-02-01", "\u202e", "\u200b", "\u200d", "\x00", "\n", "\ud800", "ß", "SS",
    "ﬁ", "fi", "\u1e9e", ".a", "-a", "\u0345", "e" + "\u0323" * 300,
    "\u0301" * 200 + "a", "\u1100\u1161\u11a8" * 90, "COM¹", "ŉ", "ΐ", "İ", ">\u0338", "\u212a",
])
WORDS = st.one_of(NASTY, st.text(max_size=40), st.text(st.characters(codec=None), max_size=300), st.lists(NASTY, max_size=4).map("".join))
URLS = st.one_of(
    st.sampled_from(["https://h/media.mp3", "https://h/a", "https://h/", "https://h/..%2f..%2fx.mp3", "https://h/%00%0a.mp3", "https://h/CON.mp3", "https://h/.mp3"]),
    WORDS.map(lambda text: f"https://h/{text}.mp3"),
    WORDS.map(lambda text: f"https://h/{text}"),
)
ENTRIES = st.builds(
    Entry,
    guid=WORDS,
    url=URLS,
    title=WORDS,
    published=st.one_of(st.none(), st.sampled_from([1_706_745_600, 1_706_745_601, 1_706_832_000]), st.integers(-10**13, 10**13)),
    mime=st.sampled_from(["", "audio/mpeg", "audio/mp4", "application/octet-stream"]),
    season=st.one_of(st.none(), st.integers(-3, 10**6)),
    episode=st.one_of(st.none(), st.integers(-3, 10**6)),
    author=WORDS,
)
KEYS = st.text("0123456789abcdef", min_size=16, max_size=16)
NAMED = st.lists(st.builds(Named, KEYS, ENTRIES), max_size=8, unique_by=lambda one: one.key)
LITERALS = st.one_of(st.sampled_from([" ", "_", "-", "/", ": ", " (", ")", ".", "e\u0301", "\u0301", "..", "x" * 100]), st.text(max_size=5)).map(
    lambda text: text.replace("{", "{{").replace("}", "}}"))
TEMPLATES = st.one_of(
    st.sampled_from(["", "{episode_title}", "{date}_{episode_title}", "{date:%Y/%m}/{episode_title}", "{author}/{season}x{episode:03}"]),
    st.lists(st.one_of(LITERALS, st.sampled_from([f"{{{field}}}" for field in FIELDS])), max_size=6).map("".join).filter(
        lambda text: not template_fault(text)),
)
SUBSCRIPTIONS = st.builds(
    lambda title, rename, space, level, zone: Subscription(
        title, "https://h/f", rename=rename, space=space, filenames=level, timezone=zone, folder=folder(title, level)),
    WORDS, TEMPLATES, st.sampled_from([" ", "_", "", ".", "-", "/", ":", "\u0301"]), st.sampled_from(LEVELS),
    st.sampled_from([UTC, None, ZoneInfo("Pacific/Kiritimati"), ZoneInfo("America/New_York")]),
)


def check_part(part: str, level: str, longest: int = 255) -> None:
    """What each part of a path obeys, the extension included."""
    assert part not in ("", ".", "..")
    assert part[0] not in ".- "
    assert unicodedata.category(part[0]) not in ("Cc", "Cf", "Mn", "Me", "Zs")
    assert len(part.encode()) <= longest
    assert unicodedata.is_normalized("NFC", part)
    assert not set(part) & set("/\u202d\u202e\u2066\u2067\u200e\u200f")
    assert not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in part)
    if level != "permissive":
        assert not set(part) & set('"*<>:?\\|')
        assert part[-1] not in " ."
        stem = part.partition(".")[0].rstrip().upper()
        assert stem not in ("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$")
        assert not (stem[:3] in ("COM", "LPT") and len(stem) == 4 and (stem[3].isdigit() or stem[3] in "¹²³"))
    if level == "restrictive":
        assert set(part.removesuffix(media_extension(part))) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


@given(SUBSCRIPTIONS, NAMED)
@settings(max_examples=300, deadline=None)
def test_every_rung_of_every_ladder_is_a_path_that_the_level_allows(subscription: Subscription, named: list[Named]) -> None:
    for name in plan_names(subscription, named, ()).values():
        assert name.extension == "" or media_extension("x" + name.extension) == name.extension
        for rung in name.ladder:
            home, *parts = (rung + (name.extension or ".123456789")).split("/")
            assert home == subscription.folder
            assert parts
            for part in parts[:-1]:
                check_part(part, subscription.filenames)
            last = parts[-1] if name.extension else parts[-1].removesuffix(".123456789")
            check_part(last, subscription.filenames, 255 if name.extension else 245)
            stem = last.removesuffix(name.extension)
            if subscription.filenames != "permissive":
                assert stem[-1] not in " ."
        assert len(set(name.ladder)) == len(name.ladder)


@given(WORDS, st.sampled_from(LEVELS))
@settings(max_examples=300, deadline=None)
def test_a_folder_is_one_part_that_the_level_allows(title: str, level: str) -> None:
    check_part(folder(title, level), level)
    assert folder(folder(title, level), level) == folder(title, level)


@given(SUBSCRIPTIONS, NAMED)
@settings(max_examples=300, deadline=None)
def test_no_two_names_are_alike_whatever_extension_the_answer_brings(subscription: Subscription, named: list[Named]) -> None:
    names = plan_names(subscription, named, ())
    paths = [fold(name.ladder[0] + (name.extension or ".mp3")) for name in names.values()]
    assert len(set(paths)) == len(paths)


@given(SUBSCRIPTIONS, NAMED, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_the_order_of_the_entries_changes_no_name(subscription: Subscription, named: list[Named], chance: object) -> None:
    before = {key: name.ladder for key, name in plan_names(subscription, named, ()).items()}
    chance.shuffle(named)  # type: ignore[attr-defined]
    assert {key: name.ladder for key, name in plan_names(subscription, named, ()).items()} == before


@given(SUBSCRIPTIONS, NAMED)
@settings(max_examples=200, deadline=None)
def test_newcomers_take_no_recorded_name(subscription: Subscription, named: list[Named]) -> None:
    half = len(named) // 2
    taken = [name.ladder[0].upper() + (name.extension or ".mp3") for name in plan_names(subscription, named[:half], ()).values()]
    later = plan_names(subscription, named[half:], taken)
    assert not {fold(name.ladder[0] + (name.extension or ".mp3")) for name in later.values()} & set(map(fold, taken))


@given(st.text("{}:%abdtieY_./[!", max_size=20), ENTRIES)
@settings(max_examples=500, deadline=None)
@example("{date:%-}", Entry("", "https://h/x"))
def test_a_template_without_fault_names_anything(template: str, one: Entry) -> None:
    assume(not template_fault(template))
    subscription = Subscription("Show", "https://h/f", rename=template, folder="Show")
    assert plan_names(subscription, [Named("0" * 16, one)], ())["0" * 16].ladder[0].startswith("Show/")


@given(st.text(max_size=30))
@settings(max_examples=500, deadline=None)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
