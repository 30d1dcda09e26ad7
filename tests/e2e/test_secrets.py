"""Whatever goes wrong with an address that bears secrets, none of them stands anywhere in what poca prints, logs, or tells."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import HANG, Raw, Reply, Server
from tests.world import Home, Show, mp3

USER, PASSWORD, KEY, VALUE, TOKEN = "jane-doe", "pass%2Dw0rd", "hunter2", "s3cr3t%20v4lue", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
SECRETS = [USER, PASSWORD, "pass-w0rd", KEY, VALUE, "s3cr3t v4lue", "s3cr3t+v4lue", "s3cr3t", "v4lue", TOKEN, TOKEN.upper()]
QUERY = f"?key={KEY}&sig={VALUE}"
ECHO = (
    f"<!DOCTYPE html><html><body>No such token {TOKEN}: key {KEY} of {USER} ({PASSWORD}, pass-w0rd) with s3cr3t v4lue, "
    f"s3cr3t+v4lue and {VALUE} is not valid at https://{USER}:{PASSWORD}@here/{TOKEN}/x{QUERY}</body></html>"
).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("127.0.0.1", "127.0.0.2") as running:
        yield running


def address(server: Server, name: str, host: str = "") -> str:
    return server.url(f"/{TOKEN}/{name}{QUERY}", host, user=f"{USER}:{PASSWORD}")


def dead() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://{USER}:{PASSWORD}@127.0.0.1:{taken.getsockname()[1]}/{TOKEN}/x.mp3{QUERY}"


def troubles(server: Server) -> dict[str, object]:
    """How an address is answered, by name; a text: the address instead."""
    there = address(server, "nowhere", "127.0.0.2")
    return {
        "status": Reply(403, ECHO, type="text/html"),
        "busy": Reply(503, ECHO, {"Retry-After": "3000"}),
        "page": Reply(body=ECHO, type="text/html"),
        "page-as-audio": Reply(body=ECHO, type=f"audio/mpeg; token={TOKEN}; of={KEY}"),
        "plain": Reply(body=ECHO.replace(b"<", b"").replace(b">", b""), type="audio/mpeg"),
        "json": Reply(body=json.dumps({"error": ECHO.decode(), "token": TOKEN}).encode(), type="application/json"),
        "odd-type": Reply(body=bytes(range(200, 256)) * 9, type=f"x-{TOKEN}/{KEY}"),
        "odd-packing": Reply(body=b"x" * 99, headers={"Content-Encoding": f"x{TOKEN}{KEY}"}),
        "cut": Reply(body=mp3("x", 40), cut=999),
        "silent": Raw(HANG),
        "closed": Raw(),
        "junk": Raw(ECHO + b"\r\n\r\n"),
        "junk-headers": Raw(b"HTTP/1.1 200 OK\r\n" + ECHO + b"\r\nTransfer-Encoding: %b\r\n\r\n" % TOKEN.encode()),
        "elsewhere": Reply(301, ECHO, {"Location": there}),
        "ftp": Reply(302, ECHO, {"Location": there.replace("http", "ftp")}),
        "no-address": Reply(302, ECHO, {"Location": there.replace(":", "::")}),
        "circle": Reply(302, ECHO, {"Location": "#again"}),
        "refused": dead(),
        "no-host": f"http://{USER}:{PASSWORD}@no-such-host.invalid/{TOKEN}/x.mp3{QUERY}",
        "no-port": f"http://{USER}:{PASSWORD}@127.0.0.1:99999/{TOKEN}/x.mp3{QUERY}",
        "no-https": address(server, "status.xml").replace("http:", "https:"),
    }


def clean(text: str, where: str) -> None:
    for line in text.splitlines():
        assert not any(secret.lower() in line.lower() for secret in SECRETS), f"{where}: {line}"


def test_no_secret_of_an_address_stands_in_any_output(home: Home, server: Server) -> None:
    good = Show(server, "good").publish()
    subscriptions = [{"title": "Good", "url": good.url}]
    episodes = []
    for name, trouble in troubles(server).items():
        url = trouble if isinstance(trouble, str) else address(server, f"{name}.xml")
        if not isinstance(trouble, str):
            for kind in (".xml", ".mp3", ""):
                server.routes[f"/{TOKEN}/{name}{kind}"] = trouble       # type: ignore[assignment]
        if name != "no-port":       # such a subscription is a fault of the config
            subscriptions.append({"title": f"Feed {name}", "url": url})
        if name not in ("no-port", "no-https"):
            media = url if isinstance(trouble, str) else address(server, name if name == "odd-type" else f"{name}.mp3")
            episodes.append(
                f'<item><title>Episode {name}</title><guid isPermaLink="false">{name}</guid>'
                f'<enclosure url="{media.replace("&", "&amp;")}" type="{"audio/mpeg" * (name != "odd-type")}"/></item>'
            )
    feed = f"<rss version='2.0'><channel><title>All</title>{''.join(episodes)}</channel></rss>"
    server.routes[f"/{TOKEN}/all.xml"] = Reply(body=feed.encode(), type="text/xml")
    subscriptions.append({"title": "All", "url": address(server, "all.xml")})
    home.write(*subscriptions, settings={"timeout": 1}, defaults={"cover": False})

    named = ("Feed status", "All")      # those may be waiting by now
    everything = [home.run(*arguments) for arguments in (["--dry-run", "-v"], ["-v"], [], ["--json"], ["-q", *named], ["--json", *named])]
    assert all(done.code == 1 for done in everything)
    told = everything[1].out + everything[1].err
    for name in troubles(server):
        assert name == "no-port" or f"Feed {name}: " in told, name
        assert name in ("no-port", "no-https") or f"Episode {name}" in everything[1].err, name
    for number, done in enumerate(everything):
        clean(done.out + done.err, f"run {number}")
    clean("\n".join(home.log()), "log")
    for command in (["list"], ["list", "--json"], ["why", "All"], ["why", "All", "--json"], ["stats"], ["check"]):
        done = subscribe(home, *command)
        clean(done, " ".join(command))


def test_no_secret_stands_in_the_fault_of_a_config(home: Home, server: Server) -> None:
    for trouble in ("no-port", "no-host"):
        url = str(troubles(server)[trouble])
        for bad in (url, url.replace("http", "ftp"), url.replace("//", "/"), url.replace("@", "@[")):
            home.write({"title": "Show", "url": bad}, settings={"timeout": 1})
            done = home.run()
            assert done.code in (1, 2) and done.err
            clean(done.out + done.err + subscribe(home, "check"), bad)


def subscribe(home: Home, *arguments: str) -> str:
    import subprocess

    from tests.world import POCA

    done = subprocess.run(
        [Path(POCA).with_name("poca-subscribe"), "-c", home.config, *arguments], env=home.env, capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr
