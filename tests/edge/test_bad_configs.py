"""Configs that nobody would write: told with a line, in time, in little memory, and never by a traceback."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable

import pytest

from tests.world import Home

MB = 1_000_000
GOOD = "settings: {base_dir: podcasts, state_dir: state}\nsubscriptions:\n- title: One\n  url: http://127.0.0.1:9/\n  state: inactive\n"


def aliases(levels: int) -> bytes:
    """Each level is ten of the level before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels))]
    return "\n".join(lines).encode()


def merged(levels: int) -> bytes:
    lines = ["a0: &a0 {title: x}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, levels))]
    return ("\n".join(lines) + f"\ndefaults: *a{levels - 1}\n").encode()


BAD: dict[str, Callable[[], bytes]] = {
    "10 MB of [": lambda: b"[" * 10 * MB,
    "10 MB of {": lambda: b"{" * 10 * MB,
    "10 MB of -": lambda: b"- " * 5 * MB,
    "10 MB of ?": lambda: b"? " * 5 * MB,
    "10 MB of quotes": lambda: b"'" * 10 * MB + b"x",
    "10 MB of one word": lambda: b"a" * 10 * MB,
    "10 MB of zeros": lambda: bytes(10 * MB),
    "10 MB of a title": lambda: GOOD.encode() + b"- title: " + b"x" * 10 * MB,
    "10,000 levels of lists": lambda: b"[" * 10_000 + b"]" * 10_000,
    "10,000 levels of mappings": lambda: b"{a: " * 10_000 + b"x" + b"}" * 10_000,
    "10,000 levels of lines": lambda: b"".join(b" " * n + b"a:\n" for n in range(3_000)),
    "10,000 levels within an option": lambda: GOOD.encode() + b"  rename: " + b"[" * 10_000 + b"]" * 10_000,
    "aliases of aliases": lambda: aliases(30) + b"\nsettings: *a29\n",
    "merges of merges": lambda: merged(30),
    "an alias of itself": lambda: b"settings: &a [*a]\ndefaults: &b {metadata: *b}\n",
    "an alias of nothing": lambda: b"settings: *nothing\n",
    "a NUL": lambda: GOOD.replace("One", "O\0ne").encode(),
    "a lone surrogate": lambda: GOOD.replace("One", "O\ud800ne").encode("utf-8", "surrogatepass"),
    "an escape that is no character": lambda: GOOD.replace("One", '"\\UFFFFFFFF"').encode(),
    "latin-1": lambda: GOOD.replace("One", "Über").encode("latin-1"),
    "UTF-32": lambda: GOOD.encode("utf-32"),
    "UTF-16": lambda: GOOD.encode("utf-16"),
    "UTF-16 cut off": lambda: GOOD.encode("utf-16")[:-1],
    "a picture": lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100,
    "another language's object": lambda: b"!!python/object/apply:os.system ['touch hacked']\n",
    "two documents": lambda: GOOD.encode() + b"---\n" + GOOD.encode(),
    "a text": lambda: b"just words\n",
    "nothing": lambda: b"",
    "only a comment": lambda: b"# nothing yet\n",
    "only a mark": lambda: b"\xef\xbb\xbf",
    "a date that is none": lambda: GOOD.encode() + b"  filters: {after_date: 2024-13-01}\n",
    "a number of 5,000 digits": lambda: GOOD.encode() + b"  max_number: " + b"9" * 5_000 + b"\n",
    "a pattern that never ends": lambda: GOOD.encode() + b"  filters: {title: " + b"(" * 5_000 + b")" * 5_000 + b"}\n",
}
GOOD_ONES: dict[str, bytes] = {
    "CRLF": GOOD.replace("\n", "\r\n").encode(), "CR": GOOD.replace("\n", "\r").encode(), "a mark": b"\xef\xbb\xbf" + GOOD.encode(),
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_told_with_a_place_and_in_time(name: str, home: Home) -> None:
    home.config.write_bytes(BAD[name]())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = home.run(limit=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.code in (1, 2) and not done.out.startswith("{"), done
    assert str(home.config) in done.err, done.err[:500]
    assert max(map(len, done.err.splitlines())) < 2_000 and len(done.err) < 20_000
    assert all(c.isprintable() or c == "\n" for c in done.err)
    assert "Error" not in done.err and "fault of poca" not in done.err and "recursion" not in done.err
    # Generous, since the machine may be busy: what these are made for takes minutes and gigabytes.
    assert after.ru_utime - before.ru_utime < 20
    assert after.ru_maxrss < 1_500_000
    assert not (home.folder / "hacked").exists() and not home.base.exists()


@pytest.mark.parametrize("name", GOOD_ONES)
def test_an_unusual_encoding_or_line_end_is_none(name: str, home: Home) -> None:
    home.config.write_bytes(GOOD_ONES[name])
    done = home.run("One")
    assert done.code == 2 and done.err.startswith("The subscription One is inactive"), done


@pytest.mark.parametrize("seed", range(10))
def test_random_bytes_are_no_config(seed: int, home: Home) -> None:
    chance = random.Random(seed)
    home.config.write_bytes(chance.choice((b"", GOOD.encode())) + chance.randbytes(chance.choice((1, 10, 1000, 100_000))))
    done = home.run()
    assert done.code in (1, 2) and str(home.config) in done.err, done


@pytest.mark.parametrize("what", ["a folder", "/dev/zero", "a link to itself", "not there"])
def test_what_is_no_file_is_told(what: str, home: Home) -> None:
    match what:
        case "a folder":
            home.config.mkdir()
        case "/dev/zero":
            home.config.symlink_to("/dev/zero")
        case "a link to itself":
            home.config.symlink_to(home.config)
    done = home.run(limit=20)
    assert done.code == 2 and str(home.config) in done.err and done.err.count("\n") <= 2, done
