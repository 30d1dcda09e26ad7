"""Feeds by the hundred thousand, each of them damaged, through reading, packing and planning.

    python -m tests.fuzz --feeds 200000 --seed 1

Whatever happened to a feed on its way, these hold; each breach is printed with the number that makes it again:

- it is read or refused with a sentence, within a second of CPU time (more where it is of megabytes), and in 100 MB of memory
- what was read comes back from the history as it was
- the plan for one who holds episodes of the undamaged feed never holds more than ``max_number``, never leaves fewer than
  were held, deletes nothing where the feed was cut off, and names nothing outside the folder
- once that plan was carried out the same feed leaves nothing to do
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import sys
import time
import traceback
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from email.utils import formatdate
from functools import cache
from html import escape
from pathlib import Path

from poca import naming, planner
from poca.errors import FeedError
from poca.feed import pack, parse_feed, unpack
from poca.model import FeedDoc, History, Plan, Rule, Subscription
from tests.builders import NOW, carried_out, disk_of

URL = "https://example.org/shows/feed.xml"
CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "feeds"
SECONDS = 1.0               # of CPU for each feed, and twice that for each megabyte more
MEMORY = 100_000_000        # bytes that all feeds together may add to the process
MAX_NUMBER = 4
LARGEST = 2_000_000         # bytes of a feed
SHOWN = 20                  # breaches

TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
JUNK = (
    b"\0", b"\xff", b"&", b"&nbsp;", b"&#0;", b"&#xD800;", b"&#99999999999;", b"<", b">", b"]]>", b"<![CDATA[", b"<!--", b"-->", b"\xe2\x80\xa8",
    b"\x1e", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\x1b[31m", b"<!DOCTYPE x>", b'<!ENTITY a "b">', b"<?xml?>", b"<b>", b"</b>",
    b"</rss>", b"</channel>",
    b"<item>", b"</item>", b"<channel>", b'="', b"'", b'"', b" ", b"\n", b"\t", b"xmlns:a=''", b"xml:base='//x'", b"../", b"%2e%2e%2f",
    b"-", b"9" * 30, b"http://", b"[", b"]", b"\xc3\xbc", b"e\xcc\x81" * 3, b"\xf0\x9f\x8e\x99", b"\x85", b"\xe9",
)
ENCODINGS = (
    "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "latin-1", "cp1252", "koi8-r", "shift_jis", "gb18030", "cp037", "iso2022_jp",
)
LABELS = (
    b"utf-16", b"UTF-7", b"latin-1", b"idna", b"zip", b"koi8-r", b"shift_jis", b"cp037", b"x", b"utf-32", b"unicode_escape", b"", b"ascii", b"gbk",
)
TYPES = (
    None, None, None, "application/rss+xml", "text/xml; charset=utf-8", "text/xml; charset=iso-8859-1", "text/html; charset=UTF-7", "x; charset=",
)


# -------------------------------------------------------------------------------------------------------------- feeds

WORDS = (
    "News", "Über", "日本", "a < b", "Q&A", "CON", "..", "2024", "x/y", "Ende.", "“so”", "#1", "a:b", "Зима", "🎙 Live", "e\u0301te\u0301", "-",
    "[/b]",
)
DATES = (
    "yesterday", "", "Wed, 31 Feb 2024 10:00:00 GMT", "1704103200", "Mon, 01 Jan 2024 10:00:00 CEST", "2024-01-05", "Mon, 01 Jan 9999 00:00:00 GMT",
)


def generated(chance: random.Random) -> bytes:
    """A small feed, RSS or Atom, of the kinds that there are."""
    atom, step, written = chance.random() < 0.3, chance.choice((86_400, 86_400, 3_600, 0, -86_400)), []
    guids, dated, lengths = chance.random() < 0.8, chance.random() < 0.9, chance.random() < 0.7
    one_url = chance.random() < 0.1
    for number in range(chance.randrange(1, 12)):
        title = escape(" ".join(chance.choices(WORDS, k=chance.randrange(0, 5))))
        when = NOW - 1000 * 86_400 - number * step
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)) if atom else formatdate(when)
        if chance.random() < 0.05:
            date = chance.choice(DATES)
        url = f"https://example.org/{'media' if one_url else f'ep{number}'}.{chance.choice(('mp3', 'mp3', 'm4a', 'ogg', 'x'))}?a=1&amp;b={number}"
        told = f' length="{chance.randrange(10**8)}"' if lengths else ""
        parts = [f"<title>{title}</title>"]
        if guids:
            parts.append(f"<id>tag:{number}</id>" if atom else f"<guid>{chance.choice(('', 'https://example.org/?p='))}{number}</guid>")
        if dated:
            parts.append(f"<updated>{date}</updated>" if atom else f"<pubDate>{date}</pubDate>")
        parts.append(f'<link rel="enclosure" type="audio/mpeg" href="{url}"{told}/>' if atom else f'<enclosure type="audio/mpeg" url="{url}"{told}/>')
        if chance.random() < 0.3:
            duration = chance.choice(("61:02", "1:01:02", "3600", "x"))
            parts.append(f"<itunes:duration>{duration}</itunes:duration><itunes:season>{number}</itunes:season>")
        if chance.random() < 0.3:
            parts.append(f"<description><![CDATA[<p>{title} <item> &nbsp; </p>]]></description>")
        chance.shuffle(parts)
        name = "entry" if atom else "item"
        written.append(f"<{name}>{''.join(parts)}</{name}>")
    inner = f"<title>A show</title><itunes:author>J</itunes:author>{chance.choice(('', chr(10))).join(written)}"
    spaces = ' xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
    body = f'<rss version="2.0"{spaces}><channel>{inner}</channel></rss>'
    if atom:
        body = f'<feed xmlns="http://www.w3.org/2005/Atom"{spaces}>{inner}</feed>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.encode()


@cache
def corpus() -> list[tuple[bytes, list[bytes], bytes]]:
    """Of each real feed what is before its items, the items, and what is behind them."""
    found = []
    for path in sorted(CORPUS.glob("*")):
        body = path.read_bytes()
        tag = b"item" if b"</item>" in body else b"entry"
        begin, end = body.find(b"<" + tag), body.rfind(b"</" + tag + b">") + len(tag) + 3
        if 0 <= begin < end:
            items = [item + b"</" + tag + b">" for item in body[begin:end].split(b"</" + tag + b">")][:-1]
            found.append((body[:begin], items, body[end:]))
    return found


def feed(chance: random.Random) -> bytes:
    """A feed to be damaged: a generated one, or some items of a real one, now and then all of them."""
    if not corpus() or chance.random() < 0.5:
        return generated(chance)
    head, items, tail = chance.choice(corpus())
    if chance.random() < 0.998:
        start = chance.randrange(len(items))
        items = items[start:start + chance.randrange(1, 9)]
    return head + b"".join(items) + tail


# ------------------------------------------------------------------------------------------------------------- damage

def tag(chance: random.Random, body: bytes) -> tuple[int, int]:
    """Where some tag begins and ends."""
    begin = max(body.find(b"<", chance.randrange(len(body) or 1)), 0)
    return begin, body.find(b">", begin) + 1 or len(body)


def damaged(chance: random.Random, body: bytes) -> bytes:
    at = chance.randrange(len(body) or 1)
    to = min(len(body), at + int(chance.expovariate(0.02)))
    first, second = tag(chance, body), tag(chance, body)
    (begin, end), (begin2, end2) = sorted((first, second))
    match chance.randrange(14):
        case 0 | 1 if body:
            return body[:at] + bytes([body[at] ^ 1 << chance.randrange(8)]) + body[at + 1:]
        case 2:
            return body[:at]
        case 3:
            return body[at:]
        case 4:
            return body[:at] + body[to:]
        case 5:
            return body[:to] + body[at:]
        case 6 | 7:
            return body[:at] + chance.choice(JUNK) + body[at:]
        case 8:
            return body[:begin] + body[end:]
        case 9:
            return body[:begin2] + body[begin:]
        case 10 if end <= begin2:
            return body[:begin] + body[begin2:end2] + body[end:begin2] + body[begin:end] + body[end2:]
        case 11:
            return body[:begin] + body[begin:end] * min(chance.choice((2, 50, 1000)), 1 + LARGEST // (end - begin or 1)) + body[end:]
        case 12:
            return body.replace(b"UTF-8", chance.choice(LABELS), 1).replace(b"utf-8", chance.choice(LABELS), 1)
        case 13 if chance.random() < 0.3:
            return body.decode("utf-8", "replace").encode(chance.choice(ENCODINGS), "replace")
    # The values that decide: dates, guids, addresses.
    digits = [place for place in range(at, min(at + 3_000, len(body))) if 0x30 <= body[place] <= 0x39]
    if digits:
        place = chance.choice(digits)
        return body[:place] + b"%d" % chance.randrange(10) + body[place + 1:]
    return body[::-1] if chance.random() < 0.1 else body[:to]


# ------------------------------------------------------------------------------------------------------------- checks

def check(number: int, seed: int) -> tuple[str, int]:
    """One feed; what came of it, and its bytes. Raises AssertionError, or whatever else should not be raised."""
    chance = random.Random(f"{seed} {number}")
    body = feed(chance)
    options: dict[str, object] = {
        "max_number": MAX_NUMBER, "from_the_top": chance.random() < 0.3,
        "rename": chance.choice(("", "", "{date}_{episode_title}", "{season}/{uid}")),
        "filenames": chance.choice(naming.LEVELS),
    }
    show = Subscription("Show", URL, folder="Show", **options)      # type: ignore[arg-type]
    history = before(show, body)
    bad = body
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        bad = damaged(chance, bad)[:LARGEST]
    try:
        doc = parse_feed(bad, chance.choice(TYPES), URL)
    except FeedError as error:
        assert str(error) and "Error" not in str(error) and str(error).isprintable(), f"no sentence: {error}"
        return "refused", len(bad)
    assert unpack(pack(doc)) == doc, "it does not come back from the history"
    check_plans(show, history, doc)
    return "cut off" if doc.cut else "mended" if doc.repairs else "read", len(bad)


def before(show: Subscription, body: bytes) -> History:
    history = History("Show")
    try:
        doc = parse_feed(body, None, URL)
    except FeedError:
        return history
    return carried_out(planner.plan(show, history, disk_of(history), doc, NOW), history)


def check_plans(show: Subscription, history: History, doc: FeedDoc) -> None:
    had = len(disk_of(history).present)
    plan = planner.plan(show, history, disk_of(history), doc, NOW)
    check_names(plan)
    spared = sum(verdict.rule is Rule.SPARED for verdict in plan.verdicts)
    assert len(plan.wanted) - spared <= MAX_NUMBER, f"{len(plan.wanted)} are wanted"
    assert not spared or doc.cut or not doc.entries, "something is spared without a reason"
    assert len(plan.wanted) >= had, f"of {had} that are held {len(plan.wanted)} are left"
    assert not (plan.unwanted and (doc.cut or not doc.entries)), "something is deleted for a feed that was cut off"
    assert len(plan.unwanted) <= len(plan.lacking), "more goes than comes"
    assert not plan.gone and not plan.found, "files came or went by themselves"
    after = carried_out(plan, history)
    again = planner.plan(show, after, disk_of(after), doc, NOW)
    left = [episode.title for episode in again.unwanted] + [one.entry.title for one in again.lacking]
    assert not left, f"the same feed once more leaves something to do: {left}"


def check_names(plan: Plan) -> None:
    folded = set()
    for one in plan.lacking:
        for name in one.names:
            parts = (name + one.extension).split("/")
            assert parts[0] == "Show" and len(parts) > 1, f"outside its folder: {name!r}"
            for part in parts:
                assert part and part[0] not in ".-" and not steers(part), f"no name: {name!r}"
                assert len(part.encode()) <= 255 and unicodedata.is_normalized("NFC", part), f"no name: {name!r}"
        folded.add(naming.fold(one.names[0] + one.extension))
    assert len(folded) == len(plan.lacking), "two episodes have one name"


def steers(text: str) -> bool:
    """Whether it holds what moves a cursor or turns the writing."""
    return any(unicodedata.category(character) in ("Cc", "Cs") or character in TURNING for character in text)


def peak() -> int:
    """Bytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


Found = tuple[Counter[str], list[str], float, int]      # outcomes, breaches, the slowest feed's seconds, bytes added


def run(numbers: range, seed: int) -> Found:
    outcomes: Counter[str] = Counter()
    breaches, slowest, most = [], 0.0, 0
    corpus()
    for number in range(-50, 0):        # loads what is loaded at first use
        with suppress(Exception):
            check(number, seed)
    start = peak()
    for number in numbers:
        began, size = time.process_time(), 0
        try:
            outcome, size = check(number, seed)
            outcomes[outcome] += 1
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            breaches.append(f"feed {number} of seed {seed}: {type(error).__name__}: {str(error)[:300]} ({Path(where.filename).name}:{where.lineno})")
        took = time.process_time() - began
        slowest = max(slowest, took)
        if took > SECONDS * (1 + 2 * size / 1_000_000):
            breaches.append(f"feed {number} of seed {seed}: it took {took:.1f} s")
        if peak() - start > max(most, MEMORY):
            breaches.append(f"feed {number} of seed {seed}: {(peak() - start) / 1e6:.0f} MB of memory")
        most = max(most, peak() - start)
    return outcomes, breaches, slowest, most


def shares(feeds: int, seed: int, processes: int) -> Iterator[tuple[range, int]]:
    return ((range(first, feeds, processes), seed) for first in range(processes))


def fuzz(feeds: int, seed: int, processes: int = 2) -> Found:
    """All feeds, spread over processes."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        found = pool.starmap(run, shares(feeds, seed, processes))
    outcomes, breaches, seconds, memory = zip(*found, strict=True)
    return sum(outcomes, Counter()), [line for lines in breaches for line in lines], max(seconds), max(memory)


def main() -> int:
    parser = argparse.ArgumentParser(description="Reads and plans with damaged feeds.")
    parser.add_argument("--feeds", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", type=int, help="only the feed of this number")
    given = parser.parse_args()
    if given.one is not None:
        outcome, size = check(given.one, given.seed)
        print(f"{outcome}, {size:,} bytes")
        return 0
    began = time.monotonic()
    outcomes, breaches, slowest, most = fuzz(given.feeds, given.seed)
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{given.feeds:,} feeds in {time.monotonic() - began:.0f} s: {told}")
    print(f"at most {slowest:.2f} s for one and {most / 1e6:.0f} MB for all; {len(breaches)} breaches")
    for line in breaches[:SHOWN]:
        print(line)
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
