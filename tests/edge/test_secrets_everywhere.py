"""No secret of an address, a server or the config reaches a terminal, the log, a mail, JSON, or any file outside the history."""

from __future__ import annotations

import base64
import email
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server import HANG, RESET, Answer, Raw, Reply, Request, Server
from tests.world import POCA, Done, Home, Show

PASSWORD, QUERY, SEGMENT, SMTP = "hunter2andmore", "s3cr3tquery", "a1b2C3d4E5f6a7B8c9D0e1F2", "smtp0pass0word"
SECRETS = (PASSWORD, QUERY, SEGMENT, SMTP, base64.b64encode(f"jane:{PASSWORD}".encode()).decode(), base64.b64encode(SMTP.encode()).decode())
MODES: list[tuple[str, ...]] = [("--dry-run", "--json"), ("--dry-run", "-v"), (), ("--json",), ("-q",), ("-v",)]


def secret(server: Server, name: str, ending: str = "") -> tuple[str, str]:
    """An address full of secrets and the path that it asks the server for."""
    path = f"/{name}/{SEGMENT}/{name}{ending}"
    return server.url(f"{path}?token={QUERY}&x=1#{QUERY}", user=f"jane:{PASSWORD}"), path


def leaks(home: Home, done: Done | None = None) -> list[str]:
    """Where a secret is to be read."""
    texts = {"stdout": done.out, "stderr": done.err} if done else {}
    for path in (*home.state.rglob("*"), *home.base.rglob("*")):
        texts[f"the name {path.name}"] = path.name
        if path.is_file() and not path.name.startswith("poca.db") and path.suffix != ".mp3":
            texts[str(path)] = path.read_bytes().decode("utf-8", "replace")
    found = [(hidden, where, text) for where, text in texts.items() for hidden in SECRETS if hidden in text]
    return [f"{hidden} in {where}: {text[max(0, text.find(hidden) - 200):][:500]}" for hidden, where, text in found]


def in_every_mode(home: Home, *more: str) -> Iterator[Done]:
    for arguments in MODES:
        done = home.run(*arguments, *more)
        assert not leaks(home, done), (arguments, leaks(home, done))
        yield done


HERE = f"http://jane:{PASSWORD}@127.0.0.1:9/{SEGMENT}?token={QUERY}"       # nobody listens there
CRLF = "\r\n"


def redirect(to: str, status: int = 302) -> Raw:
    return Raw(f"HTTP/1.1 {status} x{CRLF}Location: {to}{CRLF}Content-Length: 0{CRLF}{CRLF}".encode())


def says(text: str, status: int = 403) -> Raw:
    body = f"<p>{text}</p>".encode()
    return Raw(f"HTTP/1.1 {status} No {text}{CRLF}WWW-Authenticate: Basic realm={text}{CRLF}Content-Length: {len(body)}{CRLF}{CRLF}".encode() + body)


ANSWERS: Mapping[str, Answer | Callable[[Request], Answer]] = {
    "not found": Reply(404, f"no {HERE} here".encode()),
    "a reason with an address": says(HERE),
    "a reason with a token": says(f"token={QUERY}"),
    "unauthorised": Reply(401, headers={"WWW-Authenticate": f'Basic realm="{HERE}"'}),
    "elsewhere, where nobody is": redirect(HERE),
    "elsewhere for good": redirect(HERE, 301),
    "to what is no address": redirect(f"http://jane:{PASSWORD}@[bad/{SEGMENT}?token={QUERY}"),
    "to a file": redirect(f"file:///etc/{SEGMENT}?token={QUERY}"),
    "to another scheme": redirect(f"gopher://jane:{PASSWORD}@h/{SEGMENT}?token={QUERY}"),
    "to a host that is none": redirect(f"http://jane:{PASSWORD}@a..b/{SEGMENT}?token={QUERY}"),
    "to a port that is none": redirect(f"http://jane:{PASSWORD}@127.0.0.1:99999/{SEGMENT}?token={QUERY}"),
    "in a circle": lambda request: redirect(request.target),
    "to another path": redirect(f"/nowhere/{SEGMENT}?token={QUERY}"),
    "a page": Reply(body=f"<html><title>{HERE}</title></html>".encode(), type="text/html"),
    "a message": Reply(body=f"access to {HERE} denied, token={QUERY}".encode(), type="text/plain"),
    "JSON": Reply(body=f'{{"error": "{HERE}"}}'.encode(), type="application/json"),
    "a type with a token": Reply(body=b"\0" * 99, type=f"text/{QUERY}"),
    "an encoding with a token": Reply(body=b"abc", headers={"Content-Encoding": f"x-token={QUERY}"}),
    "nothing": Reply(body=b""),
    "cut off": Reply(body=b"<rss>" * 9, cut=7),
    "no HTTP": Raw(f"{HERE}{CRLF}{CRLF}".encode()),
    "a broken head": Raw(f"HTTP/1.1 200 OK{CRLF}Content-Length: {QUERY}{CRLF}{CRLF}".encode()),
    "a reset": Raw(b"HTTP/1.1 200 OK\r\n", RESET),
    "silence": Raw(HANG),
    "a Retry-After with a token": Reply(429, headers={"Retry-After": f"{99999} {QUERY}"}),
}
QUICK = {"timeout": 0.3, "parallel": 50, "per_host": 50}


@pytest.mark.parametrize("what", ["feeds", "episodes", "covers"])
def test_whatever_goes_wrong_no_secret_is_told(what: str, home: Home, server: Server) -> None:
    shows, subscriptions = [], []
    for number, (name, answer) in enumerate(ANSWERS.items()):
        url, path = secret(server, f"{what}{number}", ".mp3" if what == "episodes" else "")
        server.routes[path] = answer
        if what == "feeds":
            subscriptions.append({"title": name, "url": url})
            continue
        show = Show(server, f"show{number}").publish(1)
        feed_url, feed_path = secret(server, f"feed{number}")
        if what == "episodes":
            show.items[0].path = url
        else:
            show.extra = f'<itunes:image xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" href="{url.replace("&", "&amp;")}"/>'
        body = show.feed().replace(server.url(url).encode().replace(b"&", b"&amp;"), url.encode().replace(b"&", b"&amp;"))
        server.routes[feed_path] = Reply(body=body, type="application/rss+xml")
        subscriptions.append({"title": name, "url": feed_url, "rename": "{episode_title}"})
        shows.append(show)
    home.write(*subscriptions, settings=QUICK)
    told = list(in_every_mode(home))
    assert told[2].code == (0 if what == "covers" else 1)
    assert len(told[2].err.splitlines()) >= 20, told[2].err
    for title in ("stats", "list", "why", "check"):
        done = subscribe(home, title)
        assert not leaks(home, done), (title, leaks(home, done))


def subscribe(home: Home, *arguments: str) -> Done:
    command = [str(POCA.with_name("poca-subscribe")), "--config", str(home.config), *arguments]
    done = subprocess.run(command, env=home.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr, 0)


def test_a_feed_and_episode_that_come_tell_no_secret_either(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(2)
    feed_url, feed_path = secret(server, "feed")
    moved_url, moved_path = secret(server, "moved")
    media_url, media_path = secret(server, "media", ".mp3")
    body = show.feed().replace(server.url(show.items[1].path).encode(), media_url.encode().replace(b"&", b"&amp;"))
    server.routes[media_path] = Reply(body=show.items[1].body, type="audio/mpeg")
    server.routes[moved_path] = Reply(body=body, type="application/rss+xml")
    server.routes[feed_path] = Reply(body=body, type="application/rss+xml")
    home.write({"title": "Show", "url": feed_url, "max_number": 2})
    for arguments in (("--dry-run", "--json"), ("-v",)):
        done = home.run(*arguments)
        assert not leaks(home, done), leaks(home, done)
    assert len(home.files()) == 2
    server.routes[feed_path] = redirect(moved_url, 301)
    done = home.run("-v", "--json")
    assert done.code == 0 and not leaks(home, done), (done, leaks(home, done))
    assert "moved" in home.config.read_text(encoding="utf-8"), "it has moved for good"
    assert {request.headers.get("authorization") for request in server.seen(feed_path)} != {None}, "the password is used, not only hidden"


FAULTS: list[dict[str, object]] = [
    {"url": f"ftp://jane:{PASSWORD}@h/{SEGMENT}?token={QUERY}"}, {"url": f"http://jane:{PASSWORD}@[bad/{SEGMENT}?token={QUERY}"},
    {"url": HERE, "max_number": "many"}, {"url": HERE, "ulr": HERE}, {"url": [HERE]}, {"url": {HERE: 1}},
    {"url": f"jane:{PASSWORD}@127.0.0.1/?token={QUERY}"},
    {"url": HERE, "category": [HERE]}, {"url": HERE, "rename": f"{{{HERE}}}"}, {"url": HERE, "filters": {"title": f"({HERE}"}},
]


@pytest.mark.parametrize("fault", FAULTS, ids=[str(number) for number in range(len(FAULTS))])
def test_a_fault_of_the_config_is_told_without_its_secrets(fault: dict[str, object], home: Home) -> None:
    home.write({"title": "Show", **fault})
    for done in (*in_every_mode(home), subscribe(home, "check"), subscribe(home, "list"), subscribe(home, "list", "--json")):
        assert not leaks(home, done), leaks(home, done)


# ------------------------------------------------------------------------------------------------------------------ mail

@contextmanager
def post_office(refusal: str = "") -> Iterator[tuple[int, list[str]]]:
    """A mail server that takes what comes, or that refuses to be logged in to in words that tell the password."""
    got: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock, sock.makefile("rw", encoding="utf-8", newline="\r\n", errors="replace") as stream:
                def say(line: str, stream: object = stream) -> None:
                    stream.write(line + "\n")       # type: ignore[attr-defined]
                    stream.flush()                  # type: ignore[attr-defined]

                say("220 here")
                for line in stream:
                    verb = line.strip().upper()
                    if verb.startswith(("EHLO", "HELO")):
                        say("250-here\n250-8BITMIME\n250-SMTPUTF8\n250 AUTH PLAIN")
                    elif verb.startswith("AUTH"):
                        plain = base64.b64decode(line.split()[-1]).decode("utf-8", "replace").replace("\0", " ")
                        say(f"535 {refusal} {plain} {line.strip()}" if refusal else "235 welcome")
                    elif verb == "DATA":
                        say("354 go on")
                        for text in stream:
                            if text.strip() == ".":
                                break
                            got.append(text)
                        say("250 taken")
                    else:
                        say("250 yes")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], got
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def addressed(port: int, tmp_path: Path, more: dict[str, object]) -> dict[str, object]:
    script = tmp_path / "password"
    script.write_text(f"#!/bin/sh\necho {SMTP}\n", encoding="ascii")
    script.chmod(0o700)
    return {"fromaddr": "jane@localhost", "toaddr": "jane@localhost", "host": "127.0.0.1", "user": "jane", "port": port} | more


def decoded(mail: str) -> str:
    """The mail with its base64 or quoted-printable undone."""
    message = email.message_from_string(mail)
    return mail + "".join((part.get_payload(decode=True) or b"").decode("utf-8", "replace") for part in message.walk())


@pytest.mark.parametrize("how", ["password", "password_command"])
def test_a_mail_tells_what_went_wrong_and_no_secret(how: str, home: Home, server: Server, tmp_path: Path) -> None:
    url, path = secret(server, "feed")
    server.routes[path] = says(HERE)
    with post_office() as (port, got):
        given = {"password": SMTP} if how == "password" else {"password_command": str(tmp_path / "password")}
        home.write({"title": "Show", "url": url}, settings={"email": addressed(port, tmp_path, given), **QUICK})
        home.config.chmod(0o600)
        done = home.run("-e", "-v")
        assert done.code == 1 and not leaks(home, done), leaks(home, done)
        mail = decoded("".join(got))
        assert "Show" in mail and "403" in mail
        assert not [hidden for hidden in SECRETS if hidden in mail], mail


@pytest.mark.parametrize("given", [
    {"password": SMTP}, {"password_command": "{script}"}, {"password_command": f"echo {SMTP}; echo {SMTP} >&2; exit 3"},
    {"password_command": f"printf '{SMTP}\\nand more\\n\\007'"}, {"password_command": "no-such-command"},
    {"password_command": f"echo {SMTP}; kill -9 $$"},
    {"password": SMTP, "starttls": True}, {"password": SMTP, "port": 9},
], ids=["password", "command", "command that fails", "two words", "no such command", "killed", "starttls", "nobody"])
def test_a_mail_that_cannot_go_tells_no_password(given: dict[str, object], home: Home, server: Server, tmp_path: Path) -> None:
    server.routes["/gone"] = Reply(404)
    with post_office("no:") as (port, _):
        if given.get("password_command") == "{script}":
            given = {"password_command": str(tmp_path / "password")}
        settings = {"email": addressed(port, tmp_path, given), "timeout": 3}
        home.write({"title": "Show", "url": server.url("/gone")}, settings=settings)
        home.config.chmod(0o600)
        for arguments in (("-e",), ("-e", "-v", "--json"), ("-e", "-q")):
            done = home.run(*arguments)
            assert done.code == 1 and "mail" in done.err.lower(), done
            assert not leaks(home, done), leaks(home, done)
