"""A config file as poca reads it, and how it is told what is wrong with one."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from datetime import UTC, date
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from poca import config, options
from poca.errors import ConfigError
from poca.model import Config, Email, Filters, Settings, Subscription

ENV = {"HOME": "/home/jane", "DISK": "/mnt/disk"}
SETTINGS = "settings: {base_dir: /pods}\n"
SAMPLE = Path(__file__).parents[2] / "sample_config.yaml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def load(file: Path, text: str | bytes, **env: str) -> Config:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o600)
    return config.read(file, {**ENV, **env})


def show(file: Path, lines: str, settings: str = SETTINGS) -> Subscription:
    """The subscription that has these options besides title and url."""
    indented = "".join(f"  {line}\n" for line in lines.splitlines())
    read = load(file, f"{settings}subscriptions:\n- title: Show\n  url: https://example.org/feed\n{indented}")
    assert read.faults == ()
    return read.subscriptions[0]


def faults(file: Path, text: str | bytes, **env: str) -> list[str]:
    """What is wrong, as "line:column: message", whether it stops everything or only a subscription."""
    try:
        found = load(file, text, **env).faults
    except ConfigError as error:
        found = error.faults  # type: ignore[assignment]
    assert all(fault.file == str(file) for fault in found)
    return [str(fault).removeprefix(f"{file}:") for fault in found]


def fault_of(file: Path, line: str) -> str:
    """The one fault of a subscription with this line."""
    found = faults(file, f"{SETTINGS}subscriptions:\n- title: Show\n  url: https://example.org/feed\n  {line}\n")
    assert len(found) == 1, found
    return found[0]


def setting_fault(file: Path, line: str, **env: str) -> str:
    found = faults(file, f"settings:\n  {'' if line.startswith('base_dir') else 'base_dir: /pods'}\n  {line}\n", **env)
    assert len(found) == 1, found
    return found[0]


# ------------------------------------------------------------------------------------------------ texts, numbers, days


@pytest.mark.parametrize(
    "written", ["2024", "12:30", "on", "2024-01-01", "010", "1e3", "0x10", "no", "=", "3.0", "Größe 😀", "2024-13-01", "a: b", "x # y", "NaN"]
)
def test_a_title_is_the_text_as_written(file: Path, written: str) -> None:
    quoted = f"'{written}'" if set(":#") & set(written) - {"12:30"} and written != "12:30" else written
    read = load(file, f"{SETTINGS}subscriptions:\n- {{title: {quoted}, url: https://example.org/}}\n")
    assert [subscription.title for subscription in read.subscriptions] == [written]


def test_every_text_option_keeps_its_text(file: Path) -> None:
    read = show(
        file,
        "category: 007\nrename: 2024\nspace: off\nmetadata: {artist: [12:30, yes], date: 2024-01-01, comment: ''}\n"
        "filters: {title: 010, filename: on}",
    )
    assert (read.category, read.rename, read.space) == ("007", "2024", "off")
    assert read.metadata == (("artist", "12:30"), ("artist", "yes"), ("date", "2024-01-01"), ("comment", ""))
    assert (read.filters.title, read.filters.filename) == ("010", "on")


@pytest.mark.parametrize(("written", "number"), [("5", 5), ("'5'", 5), ("08", 8), ('"010"', 10), ("0", 0), ("1000000", 1_000_000)])
def test_numbers_may_be_quoted_or_have_leading_zeros(file: Path, written: str, number: int) -> None:
    assert show(file, f"max_number: {written}").max_number == number


@pytest.mark.parametrize("written", ["-1", "all", "1.5", "''", "1e3", "0x10", "1_000", "12:30", "٣", "1000001", "9" * 5000, "yes"])
def test_a_number_that_is_none_is_told_with_what_is_allowed(file: Path, written: str) -> None:
    told = fault_of(file, f"max_number: {written}")
    assert told.startswith(f"5:15: 'Show': max_number is '{written.strip(chr(39))[:10]}")
    assert "whole number from 0 to 1000000 (0: no limit)" in told


@pytest.mark.parametrize(
    ("written", "truth"), [("yes", True), ("True", True), ("ON", True), ("'yes'", True), ("no", False), ("false", False), ("off", False)]
)
def test_a_boolean_has_six_words(file: Path, written: str, truth: bool) -> None:
    assert show(file, f"from_the_top: {written}").from_the_top is truth


@pytest.mark.parametrize("written", ["1", "maybe", "y", "''", "[yes]", "{}"])
def test_no_other_word_is_a_boolean(file: Path, written: str) -> None:
    assert "must be yes or no" in fault_of(file, f"cover: {written}")


@pytest.mark.parametrize(("written", "hours"), [("08", {8}), ("21", {21}), ("'9'", {9}), ("[07, 21]", {7, 21}), ("0", {0})])
def test_hour_is_one_or_a_list(file: Path, written: str, hours: set[int]) -> None:
    assert show(file, f"filters: {{hour: {written}}}").filters.hour == hours


@pytest.mark.parametrize(
    ("written", "days"),
    [
        ("'024'", {0, 2, 4}),
        ("024", {0, 2, 4}),
        ("5", {5}),
        ("[0, 2]", {0, 2}),
        ("mon", {0}),
        ("[Tuesday, SUN]", {1, 6}),
        ("[mon, 2]", {0, 2}),
        ("thurs", {3}),
    ],
)
def test_weekdays_are_digits_numbers_or_names(file: Path, written: str, days: set[int]) -> None:
    assert show(file, f"filters: {{weekdays: {written}}}").filters.weekdays == days


@pytest.mark.parametrize(
    "line",
    [
        "hour: 24",
        "hour: [1, 25]",
        "hour: 21:00",
        "hour: []",
        "hour: [null]",
        "hour: {a: 1}",
        "hour: [[1]]",
        "weekdays: 7",
        "weekdays: mo",
        "weekdays: [mon, x]",
        "weekdays: ''",
        "after_date: 2024-13-01",
        "after_date: 2023-02-29",
        "before_date: tomorrow",
        "before_date: 20240101",
        "after_date: 0000-01-01",
        "min_minutes: -1",
        "max_minutes: x",
        "min_minutes: .inf",
        "min_minutes: nan",
        "episode_types: other",
        "seasons: one",
        "title: '('",
        "title: '*'",
        "exclude_filename: '[a'",
        "filename: '(?P<x)'",
        "nonsense: 1",
    ],
)
def test_a_filter_that_cannot_be_is_a_fault_at_its_place(file: Path, line: str) -> None:
    told = fault_of(file, f"filters: {{{line}}}")
    assert told.startswith("5:")
    assert f"filters.{line.split(':')[0]} is " in told


def test_a_regular_expression_is_told_with_what_is_wrong_in_it(file: Path) -> None:
    told = fault_of(file, "filters: {title: 'a(b'}")
    assert "'a(b'" in told
    assert "unterminated subpattern at position 1" in told


def test_a_regular_expression_that_python_only_warns_of_is_taken_in_silence(file: Path) -> None:
    assert show(file, "filters: {title: '[[a]'}").filters.title == "[[a]"


def test_all_filters_are_read(file: Path) -> None:
    read = show(
        file,
        "filters:\n  title: a\n  exclude_title: b\n  filename: c\n  exclude_filename: d\n  hour: 21\n  weekdays: '024'\n  after_date: 2016-8-23\n"
        "  before_date: '2020-01-01'\n  min_minutes: 10\n  max_minutes: 90.5\n  episode_types: [full, Bonus]\n  seasons: [1, 02]",
    )
    assert read.filters == Filters(
        "a",
        "b",
        "c",
        "d",
        frozenset({21}),
        frozenset({0, 2, 4}),
        date(2016, 8, 23),
        date(2020, 1, 1),
        10,
        90.5,
        frozenset({"full", "bonus"}),
        frozenset({1, 2}),
    )


@pytest.mark.parametrize(
    ("written", "value"), [("no", "no"), ("yes", "yes"), ("on", "yes"), ("if missing", "if missing"), ("'If  Missing'", "if missing")]
)
def test_track_numbering_is_a_boolean_or_if_missing(file: Path, written: str, value: str) -> None:
    assert show(file, f"track_numbering: {written}").track_numbering == value


def test_state_says_whether_a_subscription_is_active(file: Path) -> None:
    assert show(file, "state: active").active
    assert not show(file, "state: inactive").active
    assert "active or inactive" in fault_of(file, "state: off")


@pytest.mark.parametrize(
    "line",
    [
        "rename: '{nonsense}'",
        "rename: '{date'",
        "rename: ''",
        "rename: {date}",
        "space: '/'",
        "space: 'a long long text'",
        'category: "a\\nb"',
        "metadata: x",
        "metadata: {artist: {}}",
        "metadata: {artist: []}",
        "metadata: {artist: [null]}",
        "metadata: {artist: [a, '']}",
        "metadata: {chapters: x}",
        "metadata: {[a]: b}",
        "filters: []",
        "filters: x",
        "max_days: [1]",
        "max_number: !!binary aGk=",
        "category: !thing x",
        "max_number: !!python/name:os.system x",
    ],
)
def test_what_is_no_value_of_an_option_is_a_fault_at_its_place(file: Path, line: str) -> None:
    assert re.match(r"5:\d+: 'Show': ", fault_of(file, line))


def test_an_unquoted_brace_is_told_to_need_quotes(file: Path) -> None:
    assert "must be quoted" in fault_of(file, "rename: {date}")


def test_chapters_can_only_be_removed(file: Path) -> None:
    assert show(file, "metadata: {chapters: ''}").metadata == (("chapters", ""),)


def test_a_tag_name_that_does_not_exist_is_a_fault_with_the_nearest_name(file: Path) -> None:
    assert fault_of(file, "metadata: {artst: x}").endswith("metadata.artst is not the name of a tag: did you mean artist?")


# ---------------------------------------------------------------------------------------------------------------- URLs


@pytest.mark.parametrize(
    "url",
    ["http://a", "https://user:pw@example.org:8080/f?x=1#y", "HTTPS://EXAMPLE.ORG/", "http://[::1]:80/", "http://bücher.example/ä", "http://a.b./"],
)
def test_an_address_of_http_or_https_with_a_host_is_taken_as_it_is(file: Path, url: str) -> None:
    read = load(file, f"{SETTINGS}subscriptions: [{{title: A, url: '{url}'}}, {{title: B, url: ' {url} '}}]\n")
    assert [subscription.url for subscription in read.subscriptions] == [url, url]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/b",
        "file:///etc/passwd",
        "example.org/feed",
        "http://",
        "http:///x",
        "https://:80/",
        "http://a:port/",
        "http://a:99999/",
        "http://[::1/",
        "http://a..b/",
        "http://a b/",
        "javascript:alert(1)",
        "",
        " ",
    ],
)
def test_an_address_that_cannot_be_fetched_is_a_fault(file: Path, url: str) -> None:
    found = faults(file, f"{SETTINGS}subscriptions: [{{title: A, url: '{url}'}}]\n")
    assert len(found) == 1
    assert "http:// or https://" in found[0]


def test_no_secret_of_the_file_stands_in_a_fault(file: Path) -> None:
    found = faults(
        file,
        "settings:\n  base_dir: /p\n  max_number: 'https://u:hunter2@h/?k=hunter2'\n  timeout: 'https://u:hunter2@h/?k=hunter2'\n"
        "  email: {fromaddr: a, toaddr: b, password: [hunter2], password: hunter2, host: 'x:hunter2@y', password_command: \"hunter2\\n\"}\n"
        "  'https://u:hunter2@h/?k=hunter2': 1\n"
        "subscriptions:\n- {title: A, url: 'ftp://u:hunter2@h/f?t=hunter2'}\n- {title: B, url: 'https://u:hunter2@h:x/'}\n"
        "- {title: C, url: 'u:hunter2@h'}\n",
    )
    assert len(found) >= 7
    assert not [told for told in found if "hunter2" in told]


def test_no_secret_stands_in_what_is_said_of_broken_yaml(file: Path) -> None:
    for text in (
        "settings:\n  email: {password: hunter2\n",
        "settings: {base_dir: x}\npassword: 'hunter2\n",
        "a: *hunter2\n",
        "password: hunter2: x\n",
    ):
        assert not [told for told in faults(file, text) if "hunter2: x" in told or "password: hunter2" in told]


def test_control_characters_reach_nobody(file: Path) -> None:
    found = faults(file, f'{SETTINGS}subscriptions:\n- {{title: "A\\eB\\nC", url: "http://\\e[31m/", category: "x\\u202Ey\\e"}}\n')
    assert len(found) == 3
    assert all(told.isprintable() for told in found)


# ------------------------------------------------------------------------------------------------- defaults and merging


def test_an_own_value_wins_over_the_default(file: Path) -> None:
    read = show(file, "max_number: 3", f"{SETTINGS}defaults: {{max_number: 10, category: news, cover: no}}\n")
    assert (read.max_number, read.category, read.cover) == (3, "news", False)


def test_metadata_and_filters_are_merged_key_by_key(file: Path) -> None:
    read = show(
        file,
        "metadata: {artist: Own, comment: null, genre: ''}\nfilters: {title: own, hour: null}",
        f"{SETTINGS}defaults:\n  metadata: {{artist: Default, album: A, comment: C, genre: G}}\n  filters: {{title: a, hour: 8, seasons: 1}}\n",
    )
    assert dict(read.metadata) == {"artist": "Own", "album": "A", "genre": ""}
    assert read.filters == Filters(title="own", seasons=frozenset({1}))


def test_null_takes_a_default_away(file: Path) -> None:
    read = show(
        file,
        "max_number: null\nfilters:\nmetadata: ~\nstate: null\ncover: null",
        f"{SETTINGS}defaults: {{max_number: 10, filters: {{hour: 8}}, metadata: {{genre: G}}, state: inactive, cover: no}}\n",
    )
    assert read == dataclasses.replace(show(file, ""), folder=read.folder)


def test_null_in_the_defaults_is_as_if_it_were_not_there(file: Path) -> None:
    assert show(file, "", f"{SETTINGS}defaults: {{max_number: null, filters: null, metadata: {{artist: null}}}}\n") == show(file, "")
    assert show(file, "", f"{SETTINGS}defaults:\n") == show(file, "")


def test_title_and_url_have_no_default(file: Path) -> None:
    found = faults(file, f"{SETTINGS}defaults: {{title: x, url: http://a/}}\n")
    assert len(found) == 2
    assert "each subscription has its own title" in found[0]


def test_anchors_aliases_and_merges_work(file: Path) -> None:
    read = load(
        file,
        f"{SETTINGS}subscriptions:\n- &a\n  title: A\n  url: https://example.org/\n  max_number: 3\n  filters: &f {{hour: 8}}\n"
        "- {<<: *a, title: B, filters: {<<: *f, seasons: 2}}\n- {title: C, url: http://c/, <<: [{max_number: 7}, *a], filters: *f}\n",
    )
    assert read.faults == ()
    assert [(s.title, s.url, s.max_number) for s in read.subscriptions] == [
        ("A", "https://example.org/", 3),
        ("B", "https://example.org/", 3),
        ("C", "http://c/", 7),
    ]
    assert [s.filters for s in read.subscriptions] == [
        Filters(hour=frozenset({8})),
        Filters(hour=frozenset({8}), seasons=frozenset({2})),
        Filters(hour=frozenset({8})),
    ]


def test_a_fault_that_is_merged_is_a_fault_of_all_that_merge_it(file: Path) -> None:
    read = load(
        file,
        f"{SETTINGS}subscriptions:\n- &a {{title: A, url: http://a/, hour: 1, cover: 7, cover: no}}\n- {{<<: *a, title: B}}\n- {{title: C, url: http://c/}}\n",
    )
    assert [s.title for s in read.subscriptions] == ["C"]
    assert [title for title, _ in read.faulty] == ["A", "B"]


@pytest.mark.parametrize("merge", ["<<: 3", "<<: [3]", "<<: null", "<<: [[{max_number: 3}]]"])
def test_only_mappings_can_be_merged(file: Path, merge: str) -> None:
    assert "what << merges is" in fault_of(file, merge)


def test_mappings_that_merge_themselves_are_a_fault(file: Path) -> None:
    assert "into themselves" in faults(file, "settings: &a\n  base_dir: /x\n  <<: [*a, *a]\n")[0]


def test_aliases_of_aliases_do_not_hurt(file: Path) -> None:
    lists = "".join(f"  - &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert len(faults(file, f"{SETTINGS}subscriptions:\n  - &l0 [x]\n{lists}")) == 12
    merges = "".join(f"  - &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}], max_number: {n}}}\n" for n in range(1, 40))
    assert faults(file, f"{SETTINGS}subscriptions:\n  - &m0 {{title: x}}\n{merges}")
    hours = f"{SETTINGS}subscriptions:\n- &s {{title: x, url: http://a/, filters: {{hour: [{', '.join(['1'] * 10_000)}]}}}}\n" + "- *s\n" * 10_000
    assert "too many aliases" in faults(file, hours)[-1]


# ------------------------------------------------------------------------------------------------------ keys and places


def test_a_key_given_twice_is_a_fault_of_the_second(file: Path) -> None:
    assert fault_of(file, "max_number: 1\n  max_number: 1") == "6:3: 'Show': max_number is given twice, the first time in line 5"
    assert faults(file, "settings: {base_dir: /x}\nsettings: {base_dir: /x}\n") == ["2:1: settings is given twice, the first time in line 1"]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("maxnumber: 3", "did you mean max_number?"),
        ("Title: 3", "did you mean title?"),
        ("timeout: 3", "it belongs in settings"),
        ("hour: 3", "it belongs in filters"),
        ("zzz: 3", "known here are title, url, category"),
    ],
)
def test_an_unknown_key_is_a_fault_that_names_the_nearest(file: Path, line: str, hint: str) -> None:
    told = fault_of(file, line)
    assert told.startswith(f"5:3: 'Show': {line.split(':')[0]} is not an option: ")
    assert hint in told


def test_an_option_of_a_subscription_in_the_settings_is_told_where_it_belongs(file: Path) -> None:
    assert setting_fault(file, "max_number: 3").endswith("it belongs in a subscription or in defaults")


def test_places_are_counted_in_characters_from_one_and_without_a_byte_order_mark(file: Path) -> None:
    text = "\ufeffsettings: {base_dir: /x, timezone: 'ä😀', parallel: 0}\n"
    assert [told.split(" ")[0] for told in faults(file, text)] == ["1:36:", "1:52:"]


def test_windows_line_ends_and_a_byte_order_mark_are_fine(file: Path) -> None:
    read = load(file, "\ufeffsettings:\r\n  base_dir: /x\r\nsubscriptions:\r\n- title: A\r\n  url: http://a/\r\n")
    assert read.subscriptions[0].title == "A"


def test_every_fault_is_told_at_once_in_the_order_of_the_file(file: Path) -> None:
    found = faults(
        file,
        "subscriptions:\n- {title: A, url: x, max_number: -1}\n- {title: B}\nsettings:\n  timeout: 0\n  parallel: x\ndefaults: {cover: 3}\nfoo: 1\n",
    )
    assert [told.split(" ")[0] for told in found] == ["2:19:", "2:34:", "3:3:", "5:3:", "5:12:", "6:13:", "7:19:", "8:1:"]


# ---------------------------------------------------------------------------------------------------------- whole files


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "1:1", "empty"),
        ("# only a comment\n", "1:1", "empty"),
        ("---\n...\n", "1:1", "empty"),
        ("- a\n", "1:1", "is a list, but must be a mapping"),
        ("hello\n", "1:1", "is a text, but must be a mapping"),
        ("null\n", "1:1", "empty"),
        ("settings:\n", "1:10", "settings is empty"),
        ("settings: 3\n", "1:11", "settings is a text"),
        ("settings: []\n", "1:11", "settings is a list"),
        ("subscriptions: []\n", "1:1", "settings is missing"),
        ("settings: {}\n", "1:11", "settings.base_dir is missing"),
        ("settings: {base_dir: null}\n", "1:22", "settings.base_dir is missing"),
        (SETTINGS + "defaults: 3\n", "2:11", "defaults is a text"),
        (SETTINGS + "subscriptions: {}\n", "2:16", "must be a list"),
        (SETTINGS + "subscriptions: none\n", "2:16", "must be a list"),
        ("settings: {base_dir: /x}\n---\nsettings: {base_dir: /y}\n", "2:1", "second document"),
        ("settings:\n\tbase_dir: /x\n", "2:1", "a tab"),
        ("settings: [x\n", "1:11", "not closed"),
        ("settings: {base_dir: 'x}\n", "1:22", "closing quote"),
        ("settings:\n  base_dir: a: b\n", "2:14", "must be quoted"),
        ("settings:\n  base_dir: /x\n timeout: 3\n", "3:2", "column"),
        ("settings: *x\n", "1:11", "anchor"),
        ("settings: @x\n", "1:11", "quoted"),
        ('settings: {base_dir: "\\d"}\n', "1:24", "backslash"),
        ("settings: {base_dir: /x\x07}\n", "1:24", "U+0007"),
        (b"settings:\n  base_dir: /\xc3\xa4\xff\n", "2:15", "0xff is not UTF-8"),
        (b"\xef\xbb\xbfa\xff", "1:2", "0xff is not UTF-8"),
        ("settings: {base_dir: /x}".encode("utf-16"), "1:1", "not UTF-8"),
        ("settings: !x {base_dir: /x}\n", "1:11", "YAML type !x"),
        ("settings: {? [a] : b, base_dir: /x}\n", "1:14", "a key must be a word"),
        ("%YAML 3.0\n---\na: b\n", "1:1", "not YAML"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_place(file: Path, text: str | bytes, place: str, words: str) -> None:
    with pytest.raises(ConfigError):
        load(file, text)
    found = faults(file, text)
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


@pytest.mark.parametrize(("text", "words"), [('settings: {base_dir: "\\UFFFFFFFF"}\n', "escape"), ("a: " + "[" * 5000, "nested too deeply")])
def test_what_breaks_the_parser_itself_is_told_in_line_1(file: Path, text: str, words: str) -> None:
    (told,) = faults(file, text)
    assert told.startswith("1:")
    assert words in told


@pytest.mark.parametrize("text", ["", "subscriptions:\n", "subscriptions: []\n", "defaults: {}\nsubscriptions: null\n"])
def test_a_file_without_subscriptions_is_fine(file: Path, text: str) -> None:
    read = load(file, SETTINGS + text)
    assert (read.subscriptions, read.faults, read.warnings) == ((), (), ())


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"There is no config file {file}.")):
        config.read(file, ENV)


def test_a_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        config.read(tmp_path, ENV)


def test_a_file_without_end_is_no_config() -> None:
    with pytest.raises(ConfigError, match="larger than 4"):
        config.read(Path("/dev/zero"), ENV)


def test_the_error_counts_the_faults(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml cannot be used: 2 faults\."):
        load(file, "settings: {timeout: 0}\n")


# --------------------------------------------------------------------------------------------- faults of a subscription


def test_a_subscription_with_a_fault_is_left_out_and_the_others_go_on(file: Path) -> None:
    read = load(
        file,
        f"{SETTINGS}subscriptions:\n- {{title: A, url: 'http://a/'}}\n- {{title: B, url: http://b/, max_number: all}}\n- just text\n- [a]\n- null\n"
        "- {title: C}\n- {url: 'ftp://d/', title: [x]}\n- {title: E, url: 'http://e/', max_number: 4}\n",
    )
    assert [(s.title, s.max_number) for s in read.subscriptions] == [("A", 0), ("E", 4)]
    assert read.faulty == (("B", "http://b/"), ("", ""), ("", ""), ("", ""), ("C", ""), ("", "ftp://d/"))
    assert len(read.faults) == 7
    assert "subscription 3: the subscription is a text" in str(read.faults[1])


def test_titles_that_give_one_folder_are_a_fault_of_all(file: Path) -> None:
    titles = ["Daily News", "daily news", "Caf\u00e9", "Cafe\u0301", "Twice", "Twice", "twice", "a?b", "ab", "Good"]
    lines = "".join(f"- {{title: '{title}', url: 'http://a/'}}\n" for title in titles)
    read = load(file, f"{SETTINGS}subscriptions:\n{lines}")
    assert [s.title for s in read.subscriptions] == ["Good"]
    assert [title for title, _ in read.faulty] == titles[:-1]
    told = [fault.message for fault in read.faults]
    assert told[0] == "'Daily News': its folder would be that of 'daily news' in line 4; each title must give a folder of its own"
    assert told[4].startswith("'Twice': it has the title of 'Twice' in line 8 (and of 1 more)")


def test_letters_that_a_level_keeps_apart_are_no_fault(file: Path) -> None:
    lines = "subscriptions: [{title: 'a?b', url: 'http://a/'}, {title: 'ab', url: 'http://a/'}]\n"
    assert [s.folder for s in load(file, "settings: {base_dir: /x, filenames: permissive}\n" + lines).subscriptions] == ["a?b", "ab"]


def test_a_title_that_a_faulty_or_inactive_subscription_has_is_taken(file: Path) -> None:
    read = load(
        file,
        f"{SETTINGS}subscriptions:\n- {{title: A, url: ftp://a/}}\n- {{title: a, url: http://a/}}\n"
        "- {title: B, url: http://b/, state: inactive}\n- {title: B, url: http://b/}\n",
    )
    assert read.subscriptions == ()


def test_one_address_may_be_subscribed_twice(file: Path) -> None:
    assert len(load(file, f"{SETTINGS}subscriptions: [{{title: A, url: 'http://a/'}}, {{title: B, url: 'http://a/'}}]\n").subscriptions) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("max_days: 3\n  from_the_top: yes", "max_days (line 5) is 3 and from_the_top (line 6) is yes"),
        ("filters: {after_date: 2020-01-02, before_date: 2020-01-02}", "must be earlier than before_date, 2020-01-02"),
        ("filters: {min_minutes: 10, max_minutes: 9.5}", "must be at most max_minutes, 9.5"),
    ],
)
def test_options_that_contradict_each_other_are_a_fault(file: Path, line: str, words: str) -> None:
    assert words in fault_of(file, line)


@pytest.mark.parametrize(
    "lines",
    [
        "max_days: 0\nfrom_the_top: yes",
        "max_days: 3\nfrom_the_top: no",
        "filters: {after_date: 2020-01-01, before_date: 2020-01-02}",
        "filters: {min_minutes: 9, max_minutes: 9}",
    ],
)
def test_options_that_go_together_are_none(file: Path, lines: str) -> None:
    show(file, lines)


def test_a_contradiction_of_a_subscription_with_the_defaults_is_the_subscriptions(file: Path) -> None:
    shows = "- {title: A, url: http://a/, from_the_top: yes}\n- {title: B, url: http://b/, from_the_top: yes, max_days: null}\n"
    text = f"{SETTINGS}defaults: {{max_days: 30}}\nsubscriptions:\n{shows}"
    read = load(file, text)
    assert [s.title for s in read.subscriptions] == ["B"]
    assert str(read.faults[0]).removeprefix(f"{file}:").startswith("4:44: 'A': defaults.max_days (line 2) is 30 and from_the_top (line 4) is yes")


def test_a_contradiction_within_the_defaults_stops_everything_and_is_told_once(file: Path) -> None:
    text = f"{SETTINGS}defaults: {{max_days: 30, from_the_top: yes}}\nsubscriptions: [{{title: A, url: 'http://a/'}}]\n"
    with pytest.raises(ConfigError):
        load(file, text)
    assert len(faults(file, text)) == 1


# --------------------------------------------------------------------------------------------------- settings and paths


def settings(file: Path, lines: str, **env: str) -> Settings:
    indented = "".join(f"  {line}\n" for line in lines.splitlines())
    return load(file, f"settings:\n{'' if 'base_dir' in lines else '  base_dir: /pods'}\n{indented}", **env).settings


def test_what_is_left_out_has_its_default(file: Path) -> None:
    assert settings(file, "") == Settings(
        Path("/pods"),
        Path("/home/jane/.local/state/poca"),
        logfile=Path("/home/jane/.local/state/poca/poca.log"),
        useragent=str(options.defaults("settings")["useragent"]),
    )
    assert show(file, "") == Subscription("Show", "https://example.org/feed", folder="Show")


def test_all_settings_are_read(file: Path) -> None:
    read = settings(
        file,
        "state_dir: /s\nfilenames: restrictive\nid3v2version: 03\nid3removev1: no\nuseragent: Tester/1.0 (x)\nparallel: 1\n"
        "per_host: 2\nhost_delay: 0.5\n"
        "timeout: '2'\nmin_speed: 0\nmax_feed_mb: 1\nmax_episode_mb: 1.5\nmin_free_mb: 0\ntimezone: UTC\nfollow_moves: off\nlogfile: null",
    )
    assert read == Settings(Path("/pods"), Path("/s"), "restrictive", 3, False, "Tester/1.0 (x)", 1, 2, 0.5, 2, 0, 1, 1.5, 0, UTC, False, None, None)


@pytest.mark.parametrize(
    "line",
    [
        "filenames: fat",
        "id3v2version: 2",
        "id3removev1: 1",
        "useragent: ''",
        'useragent: "a\\nb"',
        "useragent: Größe",
        "parallel: 0",
        "per_host: -1",
        "host_delay: -0.1",
        "timeout: 0",
        "timeout: 3601",
        "timeout: inf",
        "min_speed: 1.5",
        "max_feed_mb: 0",
        "max_episode_mb: x",
        "min_free_mb: -1",
        "timezone: Mars/Base",
        "timezone: ../x",
        "timezone: Europe",
        "timezone: ''",
        "follow_moves: maybe",
        "logfile: ''",
        "state_dir: []",
        "email: me@localhost",
        "base_dir: ''",
        'base_dir: "a\\0b"',
        "parallel: !!set {1}",
    ],
)
def test_a_setting_that_cannot_be_stops_everything(file: Path, line: str) -> None:
    told = setting_fault(file, line)
    assert re.match(r"3:\d+: settings\." + line.split(":")[0] + " is ", told)
    assert "must be" in told


def test_a_zone_is_known_by_its_name(file: Path) -> None:
    assert settings(file, "timezone: Europe/Berlin").timezone == ZoneInfo("Europe/Berlin")
    assert settings(file, "timezone: local").timezone is None
    assert settings(file, "timezone: utc").timezone is UTC
    assert "the nearest known: Europe/Berlin" in setting_fault(file, "timezone: europe/berln")


def test_what_of_the_settings_decides_about_episodes_is_in_each_subscription(file: Path) -> None:
    read = show(file, "", "settings: {base_dir: /x, filenames: restrictive, timezone: Europe/Berlin}\n")
    assert (read.filenames, read.timezone, read.folder) == ("restrictive", ZoneInfo("Europe/Berlin"), "Show")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("/pods", "/pods"),
        ("'~'", "/home/jane"),
        ("~/pods", "/home/jane/pods"),
        ("$DISK/pods", "/mnt/disk/pods"),
        ("${DISK}s/pods", "/mnt/disks/pods"),
        ("~/$DISK", "/home/jane//mnt/disk"),
        ("/a~b/$5", "/a~b/$5"),
        ("2024", "{here}/2024"),
        ("../pods", "{here}/../pods"),
        (".", "{here}"),
    ],
)
def test_paths_are_expanded_and_start_at_the_file(file: Path, written: str, path: str) -> None:
    assert settings(file, f"base_dir: {written}").base_dir == Path(path.format(here=file.parent))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("$NOWHERE/pods", "the variable $NOWHERE is not set"),
        ("${EMPTY}/pods", "the variable $EMPTY is not set"),
        ("~nobody-at-all/x", "there is no user nobody-at-all"),
        ("'${DISK'", "has no }"),
        ("'${}/x'", "is not set"),
    ],
)
def test_what_cannot_be_expanded_in_a_path_is_a_fault(file: Path, written: str, words: str) -> None:
    assert words in setting_fault(file, f"base_dir: {written}", EMPTY="")
    assert words in setting_fault(file, f"state_dir: {written}", EMPTY="")
    assert words in setting_fault(file, f"logfile: {written}", EMPTY="")


def test_the_log_is_in_the_state_dir_or_where_it_is_said(file: Path) -> None:
    assert settings(file, "state_dir: state\nlogfile: x.log").logfile == file.parent / "state/x.log"
    assert settings(file, "state_dir: state\nlogfile: ~/x.log").logfile == Path("/home/jane/x.log")
    assert settings(file, "logfile: null").logfile is None


def test_the_state_dir_follows_the_environment(file: Path) -> None:
    assert settings(file, "", XDG_STATE_HOME="/state").state_dir == Path("/state/poca")
    assert settings(file, "", XDG_STATE_HOME="relative").state_dir == Path("/home/jane/.local/state/poca")


def test_a_relative_name_of_the_file_gives_whole_paths(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(file, "settings: {base_dir: pods, state_dir: state}\n")
    monkeypatch.chdir(file.parent)
    read = config.read(Path("config.yaml"), ENV)
    assert (read.path, read.settings.base_dir, read.settings.state_dir) == (file, file.parent / "pods", file.parent / "state")


def test_the_default_path_follows_the_environment() -> None:
    assert config.default_path({"XDG_CONFIG_HOME": "/etc/jane", "HOME": "/home/jane"}) == Path("/etc/jane/poca/config.yaml")
    assert config.default_path({"XDG_CONFIG_HOME": "etc", "HOME": "/home/jane"}) == Path("/home/jane/.config/poca/config.yaml")
    assert config.default_path({"HOME": "/home/jane"}) == Path("/home/jane/.config/poca/config.yaml")


# ---------------------------------------------------------------------------------------------------- mail and secrets


def mail(file: Path, options: str) -> Email | None:
    return settings(file, f"email: {{fromaddr: me@a, toaddr: you@b{options}}}").email


def test_the_mail_has_its_defaults(file: Path) -> None:
    assert mail(file, "") == Email("me@a", "you@b")
    assert settings(file, "email: null").email is None


def test_all_options_of_the_mail_are_read(file: Path) -> None:
    assert mail(file, ", host: 127.0.0.1, port: '0587', starttls: yes, user: 007, password: 0123, only_errors: on, threshold: 5") == Email(
        "me@a", "you@b", "127.0.0.1", 587, True, "007", "0123", "", True, 5
    )


def test_the_port_follows_starttls_where_none_is_given(file: Path) -> None:
    assert mail(file, ", starttls: yes") == Email("me@a", "you@b", port=587, starttls=True)
    assert mail(file, ", starttls: yes, port: 25") == Email("me@a", "you@b", port=25, starttls=True)


@pytest.mark.parametrize("given", ["password: x", "password_command: pass x"])
def test_a_password_without_a_user_is_that_of_fromaddr(file: Path, given: str) -> None:
    read = mail(file, f", {given}")
    assert read is not None
    assert read.user == "me@a"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("{fromaddr: a}", "email.toaddr is missing"),
        ("{toaddr: a}", "email.fromaddr is missing"),
        ("{fromaddr: a, toaddr: b, password: x, password_command: y}", "both"),
        ("{fromaddr: a, toaddr: b, port: 0}", "1 to 65535"),
        ("{fromaddr: a, toaddr: b, host: 'a b'}", "mail server"),
        ('{fromaddr: a, toaddr: "b\\nBcc: c"}', "line break"),
        ("{fromaddr: a, toaddr: b, threshold: 0}", "from 1"),
        ("{fromaddr: a, toaddr: b, startls: yes}", "did you mean starttls?"),
        ("[]", "is a list"),
    ],
)
def test_a_mail_that_cannot_be_sent_is_a_fault(file: Path, written: str, words: str) -> None:
    assert words in setting_fault(file, f"email: {written}")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("settings: {base_dir: /x, email: {fromaddr: a, toaddr: b, password: x}}\n", True),
        (SETTINGS + "subscriptions: [{title: A, url: 'https://u:p@h/'}]\n", True),
        (SETTINGS + "subscriptions: [{title: A, url: 'https://u:p@h/', max_number: x}]\n", True),
        (SETTINGS + "subscriptions: [{title: A, url: 'https://h:80/a@b'}]\n", False),
        ("settings: {base_dir: /x, email: {fromaddr: a, toaddr: b, password_command: x}}\n", False),
    ],
)
def test_a_password_that_others_may_read_is_warned_of(file: Path, text: str, secret: bool) -> None:
    assert load(file, text).warnings == ()
    for mode in (0o640, 0o604):
        file.chmod(mode)
        warnings = config.read(file, ENV).warnings
        assert [str(file) in warning and "chmod 600" in warning for warning in warnings] == [True] * secret
        assert "p@h" not in str(warnings)


# -------------------------------------------------------------------------------------------------- table, samples, cost


def test_the_table_and_the_model_agree_on_defaults() -> None:
    assert Settings(Path("/x"), Path("/y"), useragent="x") == Settings(Path("/x"), Path("/y"), **_modelled("settings", useragent="x", logfile=None))
    assert Email("a", "b") == Email("a", "b", **_modelled("email"))
    active = {"active": options.defaults("subscription")["state"] == "active"}
    assert Subscription("a", "b") == Subscription(
        "a", "b", **{name: value for name, value in _modelled("subscription").items() if name != "state"}, **active
    )
    fields = {"settings": Settings, "email": Email, "filters": Filters}
    for section, model in fields.items():
        assert {field.name for field in dataclasses.fields(model)} == set(options.SECTIONS[section])


def _modelled(section: str, **values: Any) -> dict[str, Any]:
    return {**options.defaults(section), **values}


def test_no_option_is_in_the_table_twice() -> None:
    assert len({(option.section, option.name) for option in options.OPTIONS}) == len(options.OPTIONS)


def test_the_sample_is_valid_and_names_every_option() -> None:
    text = SAMPLE.read_text(encoding="utf-8")
    read = config.read(SAMPLE, ENV)
    assert read.faults == read.warnings == ()
    assert [s.title for s in read.subscriptions if s.active] == ["NPR News Now"]
    sections = {
        "settings": text.partition("email:")[0],
        "email": text.partition("email:")[2].partition("defaults:")[0],
        "subscription": text.partition("subscriptions:")[2],
        "filters": text.partition("filters:")[2],
    }
    missing = [(o.section, o.name) for o in options.OPTIONS if o.name != "email" and not re.search(rf"(?m)^ *(- |# )?{o.name}:", sections[o.section])]
    assert missing == []


def test_the_sample_shows_the_defaults_of_the_settings() -> None:
    read = config.read(SAMPLE, ENV).settings
    for name, value in options.defaults("settings").items():
        assert getattr(read, name) == (read.state_dir / "poca.log" if name == "logfile" else value)
    assert read.email == Email("me@localhost", "me@localhost")


def test_the_commented_lines_of_the_sample_are_valid_too(file: Path) -> None:
    text = SAMPLE.read_text(encoding="utf-8")
    for name in ("useragent", "user", "password", "password_command"):
        assert load(file, text.replace(f"# {name}:", f"{name}:")).faults == ()


def test_the_config_that_poca_writes_is_valid_and_does_nothing_yet(file: Path) -> None:
    read = load(file, config.sample())
    assert (read.subscriptions, read.faults, read.settings.base_dir) == ((), (), Path("/home/jane/podcasts"))
    filled = load(file, config.sample().replace("# - title", "- title").replace("#   url", "  url"))
    assert [s.max_number for s in filled.subscriptions] == [10]


def test_nothing_heavy_is_loaded_to_read_a_config() -> None:
    code = "import sys; from pathlib import Path; from poca import config; config.read(Path(sys.argv[1])); print(*sorted(sys.modules))"
    import subprocess

    loaded = subprocess.run(
        [sys.executable, "-c", code, str(SAMPLE)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": "/home/jane"},
        cwd=SAMPLE.parent,
    ).stdout.split()
    assert not set(loaded) & {
        "requests",
        "urllib3",
        "feedparser",
        "mutagen",
        "rich",
        "smtplib",
        "sqlite3",
        "zoneinfo",
        "difflib",
        "platformdirs",
        "filelock",
    }
