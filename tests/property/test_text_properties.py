"""Whatever the text: no secret, no control character, no line break, and twice is as good as once."""

from __future__ import annotations

import string
import unicodedata

from hypothesis import example, given, settings
from hypothesis import strategies as st

from poca import text

MARKUP = st.sampled_from([
    "https://", "HTTP://", "user:pw@", "?a=b", "&amp;", "&lt;b&gt;", "<b>", "</p>", "%3A%2F%2F", "%40", "\u202e", "\x1b[", "url: /", "…", " ",
])
ANYTHING = st.lists(st.one_of(MARKUP, st.text(st.characters(exclude_categories=()), max_size=12))).map("".join)
USER = st.text(string.ascii_letters + string.digits + "!$&'()*+,;=._~-%ü", min_size=6, max_size=40)
QUERY = st.text(string.ascii_letters + string.digits + "!$&'()*+,;=._~-%ü/:@?", min_size=6, max_size=40)
HOST = st.sampled_from(["example.org", "EXAMPLE.org:8080", "[::1]:80", "münchen.example", "127.0.0.1"])
SCHEME = st.sampled_from(["http://", "https://", "HTTPS://", "feed://"])
AROUND = st.sampled_from([("", ""), ("'", "'"), ('"', '",'), ("(", ")"), ("<", ">."), ("url=", ""), ("„", "“"), ("see ", " for more")])


def harmless(shown: str) -> bool:
    return all(
        unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") and unicodedata.bidirectional(character) not in
        ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI") for character in shown
    )


@settings(deadline=None)
@given(SCHEME, USER, USER, HOST, QUERY, AROUND)
@example("https://", "user", "p@sswo:rd", "example.org", "token=abcdef", ("", ""))
@example("https://", "user", "secret", "example.org", "......", ("", ""))
def test_no_secret_of_a_url_is_ever_shown(scheme: str, user: str, password: str, host: str, query: str, around: tuple[str, str]) -> None:
    url = f"{scheme}{user}:{password}@{host}/feed.xml?{query}"
    for shown in (text.shown_url(url), text.shown(around[0] + url + around[1]), text.shown(f"no answer: {around[0]}{url}{around[1]} within 3 s")):
        assert password not in shown
        assert query not in shown


@settings(deadline=None)
@given(QUERY, st.sampled_from(["url: /feed.xml?", "/feed.xml?", "asked feed.xml?token=", "url: feed?"]))
def test_no_query_without_its_scheme_is_ever_shown(query: str, before: str) -> None:
    assert query not in text.shown(f"HTTPConnectionPool(host='x', port=80): Max retries exceeded with {before}{query} (Caused by x)")


@settings(deadline=None)
@given(ANYTHING)
def test_shown_text_is_one_harmless_line(words: str) -> None:
    for shown in (text.shown(words), text.shown_url(words), text.plain(words)):
        assert harmless(shown)
        assert len(shown.splitlines()) <= 1
        shown.encode("utf-8")
    assert len(text.shown(words)) <= text.LONGEST
    assert len(text.shown_url(words)) <= text.LONGEST


@settings(deadline=None)
@given(ANYTHING)
def test_what_is_shown_stays_the_same_when_shown_again(words: str) -> None:
    assert text.shown(text.shown(words)) == text.shown(words)
    assert text.shown_url(text.shown_url(words)) == text.shown_url(words)
    assert text.plain(text.plain(words)) == text.plain(words)


@settings(deadline=None)
@given(st.integers(0, 10**18))
def test_every_size_fits_a_column(count: int) -> None:
    assert len(text.size(count)) <= 12


_SEGMENTS = st.sampled_from(
    ["", "feed.xml", "Token", "token", "auth", "keys", "a1b2c3d4e5f6a7b", "a1b2c3d4e5f6a7b8", "media", "0", "Ep-1_2.mp3", "..."])


@given(st.sampled_from(["http://a.example", "https://A.example:8080", "http://127.0.0.1:80"]), st.lists(_SEGMENTS))
def test_an_ordinary_url_is_shown_as_if_nobody_had_seen_that_it_is_ordinary(start: str, segments: list[str]) -> None:
    url = "/".join([start, *segments])
    assert text.shown_url(url) == text.shown_url(url + "#a fragment is never shown")
