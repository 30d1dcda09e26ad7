"""Names of folders and files."""

from __future__ import annotations

import re
import unicodedata
from datetime import timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from poca.model import Entry, Subscription
from poca.naming import fold, folder, plan_names
from poca.templates import Named, filled_in, original_name, template_fault

KEY = "0123456789abcdef"
DAY = 1_706_745_600         # 2024-02-01 00:00 UTC
UTC = timezone(timedelta(0))


def entry(title: str = "", url: str = "https://h/ep1.mp3", published: int | None = DAY, **more: object) -> Entry:
    return Entry(guid=str(more.pop("guid", "g")), url=url, title=title, published=published, **more)  # type: ignore[arg-type]


def show(rename: str = "{episode_title}", level: str = "ntfs", space: str = " ", zone: object = UTC) -> Subscription:
    return Subscription("Show", "https://h/f", rename=rename, space=space, filenames=level, timezone=zone, folder="Show")  # type: ignore[arg-type]


def ladder(one: Entry, subscription: Subscription, taken: tuple[str, ...] = ()) -> tuple[str, ...]:
    return plan_names(subscription, [Named(KEY, one)], taken)[KEY].ladder


def name(one: Entry, rename: str = "{episode_title}", level: str = "ntfs", space: str = " ", zone: object = UTC) -> str:
    first = ladder(one, show(rename, level, space, zone))[0]
    assert first.startswith("Show/")
    return first.removeprefix("Show/")


def planned(subscription: Subscription, *entries: Entry, taken: tuple[str, ...] = ()) -> list[str]:
    named = [Named(f"{index:x}" * 16, one) for index, one in enumerate(entries, 10)]
    names = plan_names(subscription, named, taken)
    return [names[one.key].ladder[0].removeprefix("Show/") + names[one.key].extension for one in named]


# ------------------------------------------------------------------------------------------------------- originals

@pytest.mark.parametrize(("url", "original"), [
    ("https://h/a/ep%201.mp3?x=1/2#f", "ep 1.mp3"),
    ("https://h/caf%C3%A9.mp3", "café.mp3"),
    ("https://h/caf%E9.mp3", "café.mp3"),
    ("https://h/a%2Fb.mp3", "a/b.mp3"),
    ("https://h/show/", "show"),
    ("https://h/", ""),
    ("https://h", ""),
    ("https://h/\udcff.mp3", "?.mp3"),
])
def test_the_original_name_is_the_last_part_of_the_path_decoded(url: str, original: str) -> None:
    assert original_name(url) == original


@pytest.mark.parametrize(("url", "mime", "expected"), [
    ("https://h/t1/cast.example/show/ep1.mp3?sig=1", "", "ep1.mp3"),
    ("https://h/Don't%20stop.MP3", "", "Don't stop.mp3"),
    ("https://h/files/a1b2c3", "audio/mpeg", "a1b2c3.mp3"),
    ("https://h/files/50", "audio/mp4", "50.m4a"),
    ("https://h/dl.php", "application/octet-stream", "dl"),
    ("https://h/show.v1.5", "", "show.v1.5"),
    ("https://h/..%2f..%2fetc%2fpasswd.mp3", "", "etc-passwd.mp3"),
    ("https://h/a%0Ab%1B.mp3", "", "a b.mp3"),
    ("https://h/", "audio/mpeg", "2024-02-01-" + "a" * 9 + ".mp3"),
])
def test_without_a_template_a_file_is_called_as_in_its_url(url: str, mime: str, expected: str) -> None:
    assert planned(show(rename=""), entry(url=url, mime=mime)) == [expected]


# ------------------------------------------------------------------------------------------------------- templates

def test_every_field_has_its_value() -> None:
    one = entry("Title", season=2, episode=7, author="Jane", guid="https://h/?p=3")
    assert name(one, "{title} {episode_title} {date} {org_name} {season} {episode:03} {author}") == "Show Title 2024-02-01 ep1 2 007 Jane"
    assert name(one, "{uid}", "permissive") == "https:--h-?p=3"
    assert name(entry(guid=""), "{uid}") == KEY
    assert name(one, "{{{episode_title}}}") == "{Title}"


def test_a_slash_of_the_template_makes_a_folder_and_one_of_a_value_does_not() -> None:
    assert name(entry("AC/DC 1/2"), "{date:%Y}/{episode_title}") == "2024/AC-DC 1-2"
    assert name(entry("x"), "{date:%Y/%m}/{episode_title}") == "2024/02/x"
    assert name(entry("x"), "a/{season}/{episode_title}") == "a/x"
    assert name(entry(".."), "{episode_title}/{org_name}") == "ep1"
    assert name(entry(".."), "{author}/{episode_title}") == "ep1"


@pytest.mark.parametrize(("template", "expected"), [
    ("{date}_{episode_title}", "Two"),
    ("{episode_title}_{date}", "Two"),
    ("{season}x{episode} {episode_title}", "Two"),
    ("{episode_title} ({season})", "Two"),
    ("{episode_title} [{season}] {org_name}", "Two ep1"),
    ("S{season}E{episode} - {episode_title}", "Two"),
    ("{title} - {season} - {episode_title}", "Show - Two"),
    ("{date}", "ep1"),
])
def test_a_field_without_a_value_goes_with_the_text_beside_it(template: str, expected: str) -> None:
    assert name(entry("Two", published=None), template) == expected


def test_a_value_of_which_nothing_is_left_is_none() -> None:
    assert name(entry("****"), "{date}_{episode_title}") == "2024-02-01"
    assert name(entry("****"), "{episode_title}") == "ep1"
    assert name(entry("天地", "https://h/%E5%A4%A9.mp3"), level="restrictive") == "2024-02-01-012345678"


def test_dates_are_those_of_the_zone_and_have_years_of_four_digits() -> None:
    assert name(entry(published=DAY - 1), "{date}") == "2024-01-31"
    assert name(entry(published=DAY - 1), "{date:%Y%m%d %Hh%M}", zone=ZoneInfo("Europe/Berlin")) == "20240201 00h59"
    assert name(entry(published=DAY), "{date}", zone=ZoneInfo("America/New_York")) == "2024-01-31"
    assert name(entry(published=-50_000_000_000), "{date} {date:%Y}", zone=UTC) == "0385-07-25 0385"
    assert name(entry(published=DAY), "{date:%-d. März}") == "1. März"
    for beyond in (10**18, -(10**18), 10**400):
        assert name(entry("x", published=beyond), "{date}_{episode_title}") == "x"


def test_what_a_space_becomes() -> None:
    assert name(entry("a b  c"), "{episode_title} - x", space="_") == "a_b_c_-_x"
    assert name(entry("a b"), space="") == "ab"
    assert name(entry("a b"), space="/") == "a-b"
    assert name(entry("a b"), space=":") == "a-b"
    assert name(entry(url="https://h/a%20b.mp3"), "", space=".") == "a.b"


@pytest.mark.parametrize("template", [
    "", "{episode_title}", "{date:%Y/%m}/{episode:03} {{x}}", "{date:%Y%m%d_%H%M%S}", "{season:2}", "{date:%-d.%-m.}", "a..b/{title}", "{episode:d}",
])
def test_good_templates_have_no_fault(template: str) -> None:
    assert template_fault(template) == ""


@pytest.mark.parametrize(("template", "told"), [
    ("{epsiode_title}", "{episode_title}"),
    ("{Title}", "{title}"),
    ("{nonsense_words}", "unknown field {nonsense_words}"),
    ("{}", "unknown field {}"),
    ("{0}", "unknown field"),
    ("{title.__class__}", "write {title}"),
    ("{title[0]}", "write {title}"),
    ("{title!r}", "write {title}"),
    ("{title:20}", "takes no format"),
    ("{episode:x}", "'x'"),
    ("{episode:999999999}", "'999999999'"),
    ("{date:%Q}", "%Q"),
    ("{date:%}", "%"),
    ("{date:year}", "year"),
    ("{date:}", "date format"),
    ("{date:%Y/../%m}", ".."),
    ("{date", "single {"),
    ("date}", "single }"),
    ("{{date}", "single }"),
    ("../{title}", ".."),
    ("./{title}", "as a folder"),
    ("a/../{title}", ".."),
    ("/tmp/{title}", "begins with /"),
    ("{title}/", "ends with /"),
])
def test_a_fault_of_a_template_is_told(template: str, told: str) -> None:
    assert told in template_fault(template)


# ---------------------------------------------------------------------------------------------- letters and levels

@pytest.mark.parametrize(("title", "permissive", "ntfs", "restrictive"), [
    ('Is it? Yes: "maybe" <really> | no', 'Is it? Yes: "maybe" <really> | no', "Is it Yes maybe really - no", "Is_it_Yes_maybe_really_-_no"),
    ("Wait for it...", "Wait for it...", "Wait for it", "Wait_for_it"),
    ("AC/DC", "AC-DC", "AC-DC", "AC-DC"),
    ("12:30 a\\b", "12:30 a\\b", "12-30 a-b", "12-30_a-b"),
    ("CON", "CON", "CON_", "CON_"),
    ("com1.live", "com1.live", "com1_.live", "com1live"),
    ("CONtext", "CONtext", "CONtext", "CONtext"),
    ("Größe Łódź Æon – smörgås", "Größe Łódź Æon – smörgås", "Größe Łódź Æon – smörgås", "Grosse_Lodz_AEon_-_smorgas"),
    ("../../../evil", "evil", "evil", "evil"),
    (".hidden", "hidden", "hidden", "hidden"),
    ("--rf", "rf", "rf", "rf"),
    ("a\x00b\nc\x1b[0m\x7f", "ab c[0m", "ab c[0m", "ab_c0m"),
    ("\u202egpj.exe\u202c", "gpj.exe", "gpj.exe", "gpjexe"),
    ("e\u0301t\u200be\u0301", "été", "été", "ete"),
    ("lone \udc80 half", "lone half", "lone half", "lone_half"),
    ("نمی\u200cشود", "نمی\u200cشود", "نمی\u200cشود", "ep1"),
])
def test_letters_by_level(title: str, permissive: str, ntfs: str, restrictive: str) -> None:
    assert [name(entry(title), level=level) for level in ("permissive", "ntfs", "restrictive")] == [permissive, ntfs, restrictive]


def test_in_a_text_that_is_no_name_a_slash_is_a_slash() -> None:
    assert filled_in("AC/DC: {episode_title}", show(), Named(KEY, entry("Live 1/2"))) == "AC/DC: Live 1/2"


@pytest.mark.parametrize("title", [".", "..", " ", "-", "/", "\x00", "\u200b\u200d", "\u202e\u202c", "\u0301", "\ufeff", "\ud800", "...", "-./-."])
@pytest.mark.parametrize("level", ["permissive", "ntfs", "restrictive"])
def test_what_cannot_be_seen_or_leads_elsewhere_is_no_name(title: str, level: str) -> None:
    assert name(entry(title), level=level) == "ep1"


@pytest.mark.parametrize("port", ["PRN", "aux", "NUL", "COM9", "LPT¹", "CONIN$", "conout$", "nul .x", "AUX.tar.gz"])
def test_no_device_of_dos_is_a_name(port: str) -> None:
    assert name(entry(port)).partition(".")[0].strip().lower() != port.partition(".")[0].strip().lower()
    assert name(entry(port), "{episode_title}/x").startswith(port.partition(".")[0].strip() + "_")


# ---------------------------------------------------------------------------------------------------------- lengths

def test_a_long_title_is_cut_so_that_the_name_keeps_its_extension() -> None:
    assert planned(show(), entry("x" * 400)) == ["x" * 251 + ".mp3"]
    assert planned(show(), entry("x" * 250 + " . y")) == ["x" * 250 + ".mp3"]
    assert name(entry("x" * 400, url="https://h/a")) == "x" * 245         # up to 10 bytes for what the answer will tell
    assert planned(show("{episode_title}/{org_name}"), entry("x" * 400)) == ["x" * 255 + "/ep1.mp3"]


@pytest.mark.parametrize("letter", [
    "天", "👩‍🚀", "é\u0323\u0300", "🇩🇪", "👍🏽", "x", "각", "\u1100\u1161\u11a8\u11a8", "🏴\U000e0067\U000e0062\U000e007f", "ก็",
])
def test_cuts_go_by_bytes_and_never_through_a_letter(letter: str) -> None:
    letter = unicodedata.normalize("NFC", letter)
    cut = name(entry(letter * 300))
    assert cut == letter * (251 // len(letter.encode()))


def test_a_cut_among_flags_leaves_whole_ones() -> None:
    assert name(entry("x" + "🇩🇪" * 100)) == "x" + "🇩🇪" * 31


def test_a_cut_leaves_no_space_at_the_end() -> None:
    assert name(entry("x" * 250 + " y"), level="permissive") == "x" * 250


def test_a_single_letter_that_is_too_long_is_cut_all_the_same() -> None:
    assert 1 < len(name(entry("e" + "\u0323\u0300\u0331" * 200)).encode()) <= 251


def test_names_that_differ_only_past_the_cut_are_two() -> None:
    long = "x" * 300
    first, second = planned(show(), entry(long + "1"), entry(long + "2", published=DAY + 86400))
    assert (first, second) == ("x" * 240 + "-2024-02-01.mp3", "x" * 240 + "-2024-02-02.mp3")


# ------------------------------------------------------------------------------------------------------- collisions

def test_names_that_are_alike_bear_their_dates_each() -> None:
    one, two, three = entry("Best of"), entry("BEST OF", published=DAY + 86400), entry("Other")
    assert planned(show(), one, two, three) == ["Best of-2024-02-01.mp3", "BEST OF-2024-02-02.mp3", "Other.mp3"]
    assert planned(show(), entry("\u00e9"), entry("E\u0301", published=None)) == ["é-2024-02-01.mp3", "É.mp3"]


def test_where_the_date_is_not_enough_six_digits_of_the_key_come() -> None:
    assert planned(show(), entry("News"), entry("News"), entry("News", published=None)) == [
        "News-2024-02-01-aaaaaa.mp3", "News-2024-02-01-bbbbbb.mp3", "News.mp3"]
    assert planned(show(), entry("News", published=None), entry("News", published=None)) == ["News-aaaaaa.mp3", "News-bbbbbb.mp3"]


def test_where_six_digits_are_not_enough_all_of_them_come() -> None:
    named = [Named("abcdef1", entry("News")), Named("abcdef2", entry("News"))]
    assert {name.ladder[0] for name in plan_names(show(), named, ()).values()} == {"Show/News-2024-02-01-abcdef1", "Show/News-2024-02-01-abcdef2"}


def test_a_name_that_has_its_date_gets_no_second_one() -> None:
    assert planned(show("{date} {episode_title}"), entry("News"), entry("News")) == ["2024-02-01 News-aaaaaa.mp3", "2024-02-01 News-bbbbbb.mp3"]


def test_a_date_given_to_part_two_names_may_not_meet_a_third() -> None:
    names = planned(show(), entry("x"), entry("x", published=DAY + 86400), entry("x-2024-02-01", published=DAY + 172800))
    assert len(set(map(fold, names))) == 3
    assert names[1] == "x-2024-02-02.mp3"


def test_recorded_names_make_way_for_nobody() -> None:
    assert planned(show(), entry("News"), taken=("Show/NEWS.mp3",)) == ["News-2024-02-01.mp3"]
    assert planned(show(), entry("News"), taken=("Show/NEWS.mp3", "Show/News-2024-02-01.mp3")) == ["News-2024-02-01-aaaaaa.mp3"]
    assert planned(show(), entry("News"), taken=("Show/News.m4a", "Other/News.mp3", "")) == ["News.mp3"]


def test_an_extension_that_is_not_known_yet_may_be_any() -> None:
    unknown = entry("News", url="https://h/a")
    assert planned(show(), unknown, entry("News", published=DAY + 86400)) == ["News-2024-02-01", "News-2024-02-02.mp3"]
    assert planned(show(), unknown, taken=("Show/News.m4a",)) == ["News-2024-02-01"]
    assert planned(show(), entry("News", "https://h/1.mp3"), entry("News", "https://h/2.m4a")) == ["News.mp3", "News.m4a"]


def test_alike_names_in_different_folders_are_no_clash() -> None:
    assert planned(show("{season}/{episode_title}"), entry("x", season=1), entry("x", season=2)) == ["1/x.mp3", "2/x.mp3"]


# ----------------------------------------------------------------------------------------------------------- ladder

def test_the_ladder_goes_from_the_planned_name_down_to_date_and_key() -> None:
    one = entry('Łódź: "' + "x" * 200)
    assert ladder(one, show(level="permissive")) == (
        'Show/Łódź: "' + "x" * 200,
        'Show/Łódź: "' + "x" * 200 + "-2024-02-01",
        'Show/Łódź: "' + "x" * 200 + "-2024-02-01-012345",
        'Show/Łódź: "' + "x" * 126,
        "Show/Łódź " + "x" * 200,
        "Show/Łódź " + "x" * 128,
        "Show/Lodz_" + "x" * 200,
        "Show/Lodz_" + "x" * 131,
        "Show/2024-02-01-012345678",
    )
    assert ladder(entry("News", published=None), show(level="restrictive")) == ("Show/News", "Show/News-012345", "Show/012345678")


def test_the_last_resort_lies_in_the_folder_itself() -> None:
    assert ladder(entry("x"), show("{date:%Y}/{episode_title}"))[-1] == "Show/2024-02-01-012345678"


# ---------------------------------------------------------------------------------------------------------- folders

@pytest.mark.parametrize(("title", "level", "expected"), [
    ("Why? Because...", "ntfs", "Why Because"),
    ("Why? Because...", "permissive", "Why? Because..."),
    ("../../etc", "permissive", "etc"),
    ("Größe 2", "restrictive", "Grosse_2"),
    ("x" * 300, "ntfs", "x" * 255),
    ("con", "ntfs", "con_"),
])
def test_a_folder_is_named_by_the_title(title: str, level: str, expected: str) -> None:
    assert folder(title, level) == expected


def test_titles_of_which_nothing_is_left_give_folders_of_their_own() -> None:
    assert folder("天地", "restrictive").startswith("podcast-")
    assert folder("天地", "restrictive") != folder("玄黄", "restrictive")
    assert folder("\ud800", "ntfs").startswith("podcast-")


def test_folders_are_alike_whatever_their_case_and_composition() -> None:
    assert fold("Café") == fold("CAFE\u0301")
    assert fold("Cafe") != fold("Café")


def test_a_title_of_which_nothing_is_left_has_six_digits() -> None:
    assert re.fullmatch("podcast-[0-9a-f]{6}", folder("...", "ntfs"))


def test_of_two_fields_side_by_side_one_without_a_value_leaves_the_other() -> None:
    assert name(entry("T"), "{date}{season}") == "2024-02-01"
    assert name(entry("T"), "{season}{date}") == "2024-02-01"


def test_a_number_without_its_zeros_is_never_empty() -> None:
    assert name(entry("T"), "{date:%-H} {episode_title}") == "0 T"


DROPPED = [
    0x00, 0x08, 0x0E, 0x1B, 0x7F, 0x80, 0x9F, 0xAD, 0x061C, 0x200B, 0x200E, 0x200F, 0x202A, 0x202E, 0x2060, 0x206F, 0xFEFF, 0xFFF9, 0xFFFB, 0xFFFD,
    0xFFFE, 0xFFFF, 0xD800, 0xDFFF,
]
BLANKS = [0x09, 0x0A, 0x0D, 0x85, 0x2028, 0x2029, 0x202F]
KEPT = [0xAE, 0x061B, 0x061D, 0x200C, 0x200D, 0x2010, 0x2027, 0x2070, 0xFEFE, 0xFFF8, 0xFFFC, 0xD7FF, 0xE000]


@pytest.mark.parametrize("level", ["permissive", "ntfs"])
def test_what_is_dropped_and_what_stays(level: str) -> None:
    assert [code for code in DROPPED if folder(f"a{chr(code)}b", level) != "ab"] == []
    assert [code for code in BLANKS if folder(f"a{chr(code)}b", level) != "a b"] == []
    assert [code for code in KEPT if folder(f"a{chr(code)}b", level) != f"a{chr(code)}b"] == []
