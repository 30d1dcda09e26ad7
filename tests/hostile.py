"""What servers that mean harm cost: each is asked for a feed, with the limits that poca has by itself, by a process whose
memory and time are measured.

    python -m tests.hostile         # a table for docs/verification.rst
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.edge.test_hostile_servers import BROKEN, OK, SLOW
from tests.server import Raw, Reply, Server

THERE = b"HTTP/1.1 302 Found\r\nLocation: /good\r\n"
CHUNK = b"10000\r\n" + bytes(65_536) + b"\r\n"
NOISE = os.urandom(65_536)


def of(*head: bytes) -> Callable[[], Raw]:
    """An answer with this head and a body without end."""
    return lambda: Raw(OK, *head, b"\r\n", itertools.repeat(NOISE))


def large() -> dict[str, Callable[[], Raw | Reply]]:
    bombs = list(itertools.accumulate(range(4), lambda body, _: gzip.compress(body, 1), initial=bytes(200_000_000)))
    headers = b"".join(b"X-%d: %b\r\n" % (n, b"x" * 65_000) for n in range(99))
    cookies = b"".join(b"Set-Cookie: %d=%b; Expires=%b; Path=/%b\r\n" % (n, b"x=;" * 9000, b"1 " * 8000, b"a" * 9000) for n in range(99))
    return {
        "sends a feed without end": of(),
        "sends a feed without end, and tells a length of a terabyte": of(b"Content-Length: 1000000000000\r\n"),
        "sends chunks without end": lambda: Raw(OK, b"Transfer-Encoding: chunked\r\n\r\n", itertools.repeat(CHUNK)),
        "sends one chunk without end": lambda: Raw(OK, b"Transfer-Encoding: chunked\r\n\r\nffffffffffffff\r\n", itertools.repeat(NOISE)),
        "sends a trailer without end": lambda: Raw(OK, b"Transfer-Encoding: chunked\r\n\r\n0\r\n", itertools.repeat(b"X: y\r\n" * 10_000)),
        "sends packed bytes without end": lambda: Raw(OK, b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b""), itertools.repeat(NOISE)),
        "sends packed parts without end": lambda: Raw(OK, b"Content-Encoding: gzip\r\n\r\n", itertools.repeat(gzip.compress(b"") * 1000)),
        **{
            f"sends 200 MB, packed {words}": lambda layers=layers: Reply(
                body=bombs[layers], headers={"Content-Encoding": ", ".join(["gzip"] * layers)}
            )
            for layers, words in ((1, "once"), (2, "twice"), (3, "three times"), (4, "four times"))
        },
        "sends them packed, and does not say so": lambda: Reply(body=bombs[1]),
        "sends as much as may be": lambda: Reply(body=b"x" * 64_000_000),
        "sends six megabytes of headers": lambda: Raw(OK, headers, b"\r\n"),
        "sets four megabytes of cookies": lambda: Raw(OK, cookies, b"\r\n<rss/>"),
        "redirects by an answer without end": lambda: Raw(THERE, b"\r\n", itertools.repeat(NOISE)),
        "tells an error by a page without end": lambda: Raw(b"HTTP/1.1 404 Not Found\r\n\r\n", itertools.repeat(NOISE)),
        "says 304 by a page without end": lambda: Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n", itertools.repeat(NOISE)),
    }


# ------------------------------------------------------------------------------------------------------- measuring

# Peaks are those of one request each: the kernel is asked to begin anew.
CLIENT = """\
import json, re, sys, time
from contextlib import nullcontext
from pathlib import Path
from poca import wire
from poca.errors import WebError
from poca.fetch import fetch
from poca.model import Settings, Validators
from poca.web import Web

for line in sys.stdin:
    url, timeout = json.loads(line)
    settings = Settings(Path("base"), Path("state"), timeout=timeout)
    web = Web(settings, {})
    Path("/proc/self/clear_refs").write_text("5")
    began, told = time.monotonic(), ""
    try:
        fetch(web, url, Validators(), "", settings, aside=nullcontext, pause=time.sleep, chance=lambda: 0.5)
    except WebError as error:
        told = str(error)
    seconds = time.monotonic() - began
    peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    web.close()
    print(json.dumps([peak / 1e6, seconds, told]), flush=True)
"""


@dataclass(frozen=True)
class Cost:
    who: str
    timeout: float      # seconds
    megabytes: float    # at the peak
    seconds: float
    told: str           # "" where the feed came


def measured() -> Iterator[Cost]:
    cases: list[tuple[str, float, Callable[[], Raw | Reply]]] = [
        *((who, 0.15, answer) for who, answer in SLOW.items()),
        *((who, 0.5, answer) for who, answer in BROKEN.items()),
        *((who, 2 if "cookies" not in who else 0.15, answer) for who, answer in large().items()),
    ]
    with Server() as server, subprocess.Popen(
        [sys.executable, "-c", CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    ) as client:
        assert client.stdin and client.stdout
        server.routes["/good"] = Reply(body=b"<rss/>")
        for who, timeout, answer in cases:
            server.routes["/f"] = lambda _, answer=answer: answer()
            client.stdin.write(json.dumps([server.url("/f"), timeout]) + "\n")
            client.stdin.flush()
            yield Cost(who, timeout, *json.loads(client.stdout.readline()))
        client.stdin.close()


def main() -> None:
    print(".. list-table::\n   :header-rows: 1\n   :widths: 44 10 12 34\n")
    rows = [("a server that …", "MB", "time / timeout", "told")]
    for cost in measured():
        rows.append((cost.who, f"{cost.megabytes:.0f}", f"{cost.seconds / cost.timeout:.1f}", f"``{cost.told}``" if cost.told else ""))
    for row in rows:
        print("\n".join(f"   {'*' if n == 0 else ' '} - {cell}".rstrip() for n, cell in enumerate(row)))


if __name__ == "__main__":
    main()
