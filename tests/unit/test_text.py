"""What a person reads: titles, URLs without their secrets, sizes and lengths of time."""

from __future__ import annotations

import pytest

from poca import text

SECRETS = ("hunter2", "s3cr3t")


@pytest.mark.parametrize(("url", "expected"), [
    ("https://user:hunter2@example.org/feed.xml?token=s3cr3t#part", "https://***@example.org/feed.xml?…"),
    ("https://s3cr3t@example.org/", "https://***@example.org/"),
    ("https://user:hunter2@s3cr3t@example.org/feed", "https://***@example.org/feed"),
    ("https://user:hunter2/s3cr3t@example.org/feed", "https://***@example.org/feed"),
    ("https://user:hunter2?s3cr3t@example.org/feed", "https://***@example.org/feed"),
    ("HTTPS://User:hunter2@EXAMPLE.org:8443/x", "HTTPS://***@EXAMPLE.org:8443/x"),
    ("http://[::1]:8080/feed?s3cr3t", "http://[::1]:8080/feed?…"),
    ("https://user:hunter2@münchen.example/Grüße/für alle.mp3?schlüssel=s3cr3t", "https://***@münchen.example/Grüße/für%20alle.mp3?…"),
    ("//user:hunter2@example.org/x", "//***@example.org/x"),
    ("user:hunter2@example.org/x?s3cr3t", "***@example.org/x?…"),
    ("/feed.xml?s3cr3t", "/feed.xml?…"),
    ("https://example.org/feed;token=s3cr3t/x", "https://example.org/feed;token=…/x"),
    ("https://example.org/feed/token/hunter2/x.mp3", "https://example.org/feed/token/…/x.mp3"),
    ("https://example.org/feed?", "https://example.org/feed?"),
    ("", ""),
    ("no URL", "no%20URL"),
])
def test_a_url_is_shown_without_its_secrets(url: str, expected: str) -> None:
    assert text.shown_url(url) == expected
    assert not any(secret in text.shown_url(url) for secret in SECRETS)


@pytest.mark.parametrize("url", [
    "https://track.example/redirect.mp3/https://user:hunter2@example.org/x.mp3?key=s3cr3t",
    "https://track.example/redirect.mp3/https%3A%2F%2Fuser%3Ahunter2%40example.org%2Fx.mp3%3Fkey%3Ds3cr3t",
    "https://track.example/r?to=https%253A%252F%252Fuser%253Ahunter2%2540example.org%252Fx.mp3",
    "https://track.example/redirect.mp3/user:hunter2@example.org/x.mp3",
    "https://track.example/x.mp3%3Fkey%3Ds3cr3t",
    "https://track.example/x.mp3%3Fs3cr3t",
    "https%3A%2F%2Fuser%3Ahunter2%40example.org%2Fx.mp3%3Fs3cr3t",
])
def test_a_url_within_a_url_is_shown_without_its_secrets(url: str) -> None:
    for shown in (text.shown_url(url), text.shown(f"no answer from {url} in time")):
        assert not any(secret in shown for secret in SECRETS)
        assert "example" in shown


@pytest.mark.parametrize("token", [
    "9f86d081884c7d659a2feaa0c55ad015", "550e8400-e29b-41d4-a716-446655440000", "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1", "Ab3-dE5_fG7hI9jK1lM3nO5p",
])
def test_a_part_of_the_path_that_looks_made_by_chance_is_hidden(token: str) -> None:
    assert text.shown_url(f"https://example.org/rss/{token}/feed") == "https://example.org/rss/…/feed"
    assert text.shown_url(f"https://example.org/rss/{token}.xml") == "https://example.org/rss/….xml"


@pytest.mark.parametrize("path", [
    "/the-example-hour-2024-01-31-how-we-got-here.mp3", "/TheExampleHourEpisode12.mp3", "/podcasts/20240131/episode_0012345.mp3",
    "/@user/feed", "/Really%3F.mp3", "/feed.xml",
])
def test_an_ordinary_path_is_shown_as_it_is(path: str) -> None:
    assert text.shown_url("https://d3ctxlq1ktw2nl42ab.cloudfront.example" + path) == "https://d3ctxlq1ktw2nl42ab.cloudfront.example" + path


@pytest.mark.parametrize(("words", "expected"), [
    ("HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /feed.xml?token=s3cr3t (Caused by E('refused'))",
     "HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /feed.xml?… (Caused by E('refused'))"),
    ("exceeded with url: feed.xml?s3cr3t", "exceeded with url: feed.xml?…"),
    ("Failed to parse: 'user:hunter2@example.org'", "Failed to parse: '***@example.org'"),
    ("no route (https://user:hunter2@example.org/x?s3cr3t), given up", "no route (https://***@example.org/x?…), given up"),
    ("<HTTP://user:s3cr3t hunter2@example.org/x>", "<HTTP://***@example.org/x>"),
    ("moved to \"https://a.example/?s3cr3t\".", "moved to \"https://a.example/?…\"."),
    ("the answer was access_token=s3cr3t;", "the answer was access_token=…;"),
    ("asked feed?key=s3cr3t", "asked feed?…"),
    ("socks5://user:hunter2@proxy:1080 refused", "socks5://***@proxy:1080 refused"),
])
def test_secrets_in_any_text_are_hidden(words: str, expected: str) -> None:
    assert text.shown(words) == expected


@pytest.mark.parametrize("words", [
    "AC/DC: what now? 3 = 3", "asked http://example.org:80/feed of me@example.org", "Me & <3 you", "100% sure?", "a@b.example said: no",
])
def test_text_without_a_secret_is_shown_as_it_is(words: str) -> None:
    assert text.shown(words) == words


def test_shown_text_cannot_steer_the_terminal() -> None:
    assert text.shown("\x1b[31mred\x07\x9b2J\n\n next\u2028line\u202eevil\ufeff\x00") == "[31mred2J next lineevil"


def test_a_lone_surrogate_can_be_printed() -> None:
    text.shown("file \udcff").encode("utf-8")
    text.shown_url("http://example.org/\udcff").encode("utf-8")


def test_a_long_text_is_cut_and_says_so() -> None:
    shown = text.shown("word " * 1000)
    assert len(shown) <= 500
    assert shown.endswith("…")
    assert len(text.shown_url("https://example.org/" + "x" * 1000)) <= 500


@pytest.mark.parametrize("junk", [
    ":" * 100_000 + "@", "@" + ":" * 100_000, "%3A" * 40_000, "=" * 100_000, "?" * 100_000, "http://" * 20_000, '<a x="' * 20_000,
    "&" + "amp;" * 50_000, "<" * 100_000,
])
def test_a_hostile_text_is_shown_in_the_end(junk: str) -> None:
    assert len(text.shown(junk)) <= 500
    assert len(text.shown_url(junk)) <= 500
    assert len(text.plain(junk)) <= len(junk)


@pytest.mark.parametrize(("title", "expected"), [
    ("Me & <3 you", "Me & <3 you"),
    ("a < b", "a < b"),
    ("a <b and c> d", "a <b and c> d"),
    ("<Insert name here>", "<Insert name here>"),
    ("AT&T&copy Q&A", "AT&T&copy Q&A"),
    ("R&amp;D", "R&D"),
    ("R&amp;amp;D &#38;#8211; x", "R&D – x"),
    ("I <em>am</em> &lt;b class=&quot;x&quot;&gt;bold&lt;/b&gt;", "I am bold"),
    ("one<br/>two<p>three</p>", "one two three"),
    ("<![CDATA[Fish & Chips]]>", "Fish & Chips"),
    ("<!-- hidden -->seen", "seen"),
    ("Nul\x00inside", "Nulinside"),
    ("Two\n      lines\tand tab", "Two lines and tab"),
    ("Odd\x1eness", "Oddness"),
    ("a\u2028b\u2029c\x85d", "a b c d"),
    ("safe\u202egpj.exe\u2066x\u200f", "safegpj.exex"),
    ("&#0;&#x1b;[2Jx&#10;y", "\ufffd[2Jx y"),
    ("👩\u200d🚀 天気 ☀", "👩\u200d🚀 天気 ☀"),
    ("\ud800", "\ufffd"),
    ("  ", ""),
])
def test_a_title_becomes_plain_text(title: str, expected: str) -> None:
    assert text.plain(title) == expected


@pytest.mark.parametrize(("count", "expected"), [
    (0, "0 B"), (512, "512 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_999, "1.0 MB"), (12_345_678, "12.3 MB"),
    (1_200_000_000, "1.2 GB"), (5_000_000_000_000, "5.0 TB"),
])
def test_a_size_is_told_in_its_unit(count: int, expected: str) -> None:
    assert text.size(count) == expected


@pytest.mark.parametrize(("seconds", "expected"), [
    (-1, "0 s"), (0.4, "0 s"), (4, "4 s"), (59.4, "59 s"), (59.6, "1 min"), (180, "3 min"), (3599, "1 h"), (7200, "2 h"), (86_400, "24 h"),
    (172_800, "2 days"), (432_000, "5 days"),
])
def test_a_length_of_time_is_told_in_its_unit(seconds: float, expected: str) -> None:
    assert text.duration(seconds) == expected


# ------------------------------------------------------------------------------------------------------ answers of servers

@pytest.mark.parametrize(("said", "told"), [
    ("The key hunter2 has expired", "The key … has expired"),
    ("jane: no access for JANE", "…: no access for …"),
    ("wrong: pass-w0rd, pass%2Dw0rd", "wrong: …, …"),
    ("no such feed: 9f8e7d6c5b4a39281706", "no such feed: …"),
    ("no such feed: 1a2b3c4d5e6f7a8b9c0d1e2f", "no such feed: …"),
    ("code 77: access refused, page 1 of 2", "code 77: access refused, page 1 of 2"),
    ("see https://a:b@c/?d=e", "see https://***@c/?…"),
    ("", ""),
])
def test_a_server_that_repeats_what_is_secret_in_its_address_is_told_without_it(said: str, told: str) -> None:
    assert text.shown_answer(said, "https://jane:pass%2Dw0rd@h/9f8e7d6c5b4a39281706/ep.mp3?key=hunter2&page=1", "") == told
