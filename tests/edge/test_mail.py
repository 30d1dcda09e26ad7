"""The mail of a run, against a real mail server on this machine: plain, encrypted, with a password, and unwilling."""

from __future__ import annotations

import asyncio
import base64
import email as emails
import email.policy
import os
import select
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from poca import mail
from poca.errors import MailError
from poca.mail import LogEntry
from poca.model import Email, Event, Level

# The server warns of what is tried on purpose here: a password on an open connection.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

NOW = datetime(2026, 11, 30, 14, 5, 12, tzinfo=UTC)
ENTRIES = [
    LogEntry("2026-11-30 14:05:10 poca[4711] Überraschung 天気: downloaded ep1.mp3 (12.3 MB)", "downloaded"),
    LogEntry("2026-11-30 14:05:11 poca[4711] Show: removed ep0.mp3", "removed"),
    LogEntry("2026-11-30 14:05:12 poca[4711] Show: Two: the server said 404; tried again in the next run " + "x" * 1500, "download-failed", "error"),
]


class Post:
    """The handler of the server: keeps what comes, turns down receivers that are called nobody."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.encrypted: list[bool] = []

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]) -> str:
        if address.startswith("nobody"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.envelopes.append(envelope)
        self.encrypted.append(session.ssl is not None)
        return "250 taken"

    def authenticate(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password in (b"hunter2", "hüntér2".encode()), handled=False)

    def message(self) -> emails.message.EmailMessage:
        (envelope,) = self.envelopes
        assert isinstance(envelope.content, bytes)
        message = emails.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, emails.message.EmailMessage)
        return message


Start = Callable[..., tuple[Post, int]]
Serve = Callable[[Callable[[socket.socket], None]], int]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost, signed by itself."""
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "both.pem"), "-out", str(folder / "cert.pem")],
        check=True, capture_output=True,
    )
    with (folder / "both.pem").open("a") as both:
        both.write((folder / "cert.pem").read_text())
    return folder


@pytest.fixture
def start() -> Iterator[Start]:
    controllers: list[Controller] = []

    def start_one(**options: object) -> tuple[Post, int]:
        post = Post()
        if options.get("auth_required") or "tls_context" in options:
            options["authenticator"] = post.authenticate
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        controller = Controller(post, hostname="127.0.0.1", port=port, loop=asyncio.new_event_loop(), **options)
        controller.start()
        controllers.append(controller)
        return post, port

    yield start_one
    for controller in controllers:
        controller.stop()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that does with a connection whatever it is told, in a thread of its own."""
    listeners: list[socket.socket] = []

    def serve_one(answer: Callable[[socket.socket], None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            try:
                connection, _ = listener.accept()
                with connection:
                    answer(connection)
            except OSError:
                return

        threading.Thread(target=run, daemon=True).start()
        return int(listener.getsockname()[1])

    yield serve_one
    for listener in listeners:
        listener.close()


def options(port: int, **more: object) -> Email:
    return Email(**{"fromaddr": "poca@example.org", "toaddr": "someone@example.org", "host": "localhost", "port": port, **more})  # type: ignore[arg-type]


def send(settings: Email, timeout: float = 5) -> str:
    return mail.send(settings, ENTRIES, timeout=timeout, now=NOW, hostname="box.example.org")


def failure(settings: Email, timeout: float = 5) -> str:
    with pytest.raises(MailError) as raised:
        send(settings, timeout)
    assert "hunter2" not in str(raised.value)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# ---------------------------------------------------------------------------------------------------------- what is due

def test_a_mail_waits_for_its_threshold() -> None:
    assert mail.due(options(25, threshold=4), ENTRIES) == []
    assert mail.due(options(25, threshold=3), ENTRIES) == ENTRIES
    assert mail.due(options(25), []) == []


def test_with_only_errors_nothing_else_counts_or_goes_out() -> None:
    assert mail.due(options(25, only_errors=True), ENTRIES) == ENTRIES[2:]
    assert mail.due(options(25, only_errors=True, threshold=2), ENTRIES) == []


@pytest.mark.parametrize(("entries", "expected"), [
    (ENTRIES, "poca: 1 downloaded, 1 removed, 1 error"), (ENTRIES[:1] * 3, "poca: 3 downloaded"), (ENTRIES[2:] * 2, "poca: 2 errors"),
    ([LogEntry("x")], "poca: 1 entry"), ([LogEntry("x")] * 2, "poca: 2 entries"),
])
def test_the_subject_says_what_happened(entries: list[LogEntry], expected: str) -> None:
    assert mail.subject(entries) == expected


def test_an_entry_survives_being_kept() -> None:
    event = Event("downloaded", Level.NEWS, "Show", "downloaded ü.mp3")
    assert mail.unpacked(mail.packed(event, "the line: ü")) == LogEntry("the line: ü", "downloaded", "news")


@pytest.mark.parametrize("junk", ["a line of an older poca", "7", "[1]", "", "null"])
def test_any_other_kept_text_is_a_line(junk: str) -> None:
    assert mail.unpacked(junk) == LogEntry(junk)


# ------------------------------------------------------------------------------------------------------- what goes out

def test_a_mail_arrives_whole(start: Start) -> None:
    post, port = start()
    assert send(options(port)) == ""
    assert post.message()["Subject"] == "poca: 1 downloaded, 1 removed, 1 error"
    assert (post.message()["From"], post.message()["To"]) == ("poca@example.org", "someone@example.org")
    assert post.message()["Date"].datetime == NOW
    assert post.message()["Message-ID"].endswith("@box.example.org>")
    assert post.message().get_content().splitlines() == [entry.line for entry in ENTRIES]
    assert post.envelopes[0].content.isascii()
    assert max(len(line) for line in post.envelopes[0].content.splitlines()) <= 998
    assert post.logins == []


def test_a_mail_is_sent_in_seven_bits(start: Start) -> None:
    post, port = start()
    mail.send(options(port), [LogEntry("Überraschung")], timeout=5, now=NOW, hostname="box.example.org")
    assert post.envelopes[0].content.isascii()
    assert post.message().get_content().splitlines() == ["Überraschung"]


def test_a_mail_from_and_to_a_bare_machine_arrives(start: Start) -> None:
    post, port = start()
    assert send(options(port, fromaddr="me@localhost", toaddr="me@localhost")) == ""
    assert post.envelopes[0].rcpt_tos == ["me@localhost"]


def test_a_mail_goes_to_several(start: Start) -> None:
    post, port = start()
    assert send(options(port, toaddr="a@example.org, B <b@example.org>")) == ""
    assert post.envelopes[0].rcpt_tos == ["a@example.org", "b@example.org"]


@pytest.mark.parametrize("more", [{"password": "hunter2"}, {"password_command": "printf 'hunter2\\nsecond line\\n'"}])
def test_a_password_is_sent_where_there_is_one(start: Start, more: dict[str, str]) -> None:
    post, port = start(auth_required=True, auth_require_tls=False)
    assert send(options(port, **more)) == ""
    assert post.logins == [(b"poca@example.org", b"hunter2")]
    assert len(post.envelopes) == 1


def test_a_password_may_have_any_letters_and_a_user_of_its_own(start: Start) -> None:
    post, port = start(auth_required=True, auth_require_tls=False)
    assert send(options(port, user="üser", password="hüntér2")) == ""
    assert post.logins == [("üser".encode(), "hüntér2".encode())]
    assert "refused user and password" in failure(options(port, user="üser", password="wröng"))


def test_starttls_encrypts_before_the_password_goes_out(
    start: Start, certificate: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "both.pem")
    post, port = start(tls_context=context, require_starttls=True, auth_required=True)
    assert "not trusted" in failure(options(port, starttls=True, password="hunter2"))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    assert "not trusted" in failure(options(port, host="127.0.0.1", starttls=True, password="hunter2"))
    assert post.logins == []
    assert send(options(port, starttls=True, password="hunter2")) == ""
    assert post.encrypted == [True]
    assert post.logins == [(b"poca@example.org", b"hunter2")]


# ------------------------------------------------------------------------------------------------------ what goes wrong

def test_a_server_without_starttls_gets_neither_password_nor_mail(start: Start) -> None:
    post, port = start(auth_required=True, auth_require_tls=False)
    assert "does not offer" in failure(options(port, starttls=True, password="hunter2"))
    assert (post.logins, post.envelopes) == ([], [])


def test_a_wrong_password_is_told_without_it(start: Start) -> None:
    _, port = start(auth_required=True, auth_require_tls=False)
    sentence = failure(options(port, password="wrong horse"))
    assert "refused user and password" in sentence
    assert "wrong horse" not in sentence
    assert "someone@example.org" in sentence


def test_a_server_that_takes_no_password_is_told(start: Start) -> None:
    _, port = start()
    assert "AUTH" in failure(options(port, password="hunter2"))


def test_a_receiver_that_is_turned_down_is_named(start: Start) -> None:
    post, port = start()
    sentence = failure(options(port, toaddr="nobody@example.org", password_command=""))
    assert "nobody@example.org was turned down (550 no such mailbox" in sentence
    assert "kept for the next one" in sentence
    assert post.envelopes == []


def test_a_mail_that_some_receivers_got_is_not_sent_again_to_them(start: Start) -> None:
    post, port = start()
    assert "nobody@example.org" in send(options(port, toaddr="a@example.org, nobody@example.org"))
    assert len(post.envelopes) == 1


def test_a_password_that_the_server_repeats_is_hidden(serve: Serve) -> None:
    def parrot(connection: socket.socket) -> None:
        connection.sendall(b"220 hello\r\n")
        connection.recv(1000)
        connection.sendall(b"250-hello\r\n250 AUTH PLAIN\r\n")
        connection.sendall(b"535 no: hunter2, " + connection.recv(1000).strip() + b"\r\n")
        connection.recv(1000)

    sentence = failure(options(serve(parrot), password="hunter2"))
    assert base64.b64encode(b"\0poca@example.org\0hunter2").decode() not in sentence
    assert "535 no" in sentence


def test_nobody_listening_is_told() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert "refuses the connection" in failure(options(unused.getsockname()[1], host="127.0.0.1", password="hunter2"))


def test_a_silent_server_holds_nothing_up(serve: Serve) -> None:
    assert "in time" in failure(options(serve(lambda connection: time.sleep(2))), timeout=0.2)


def test_a_server_that_never_comes_to_the_end_holds_nothing_up(serve: Serve) -> None:
    def drip(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"220-wait\r\n")
            time.sleep(0.05)

    assert "in time" in failure(options(serve(drip)), timeout=0.2)


def test_a_server_that_hangs_up_is_told(serve: Serve) -> None:
    assert "ended the connection" in failure(options(serve(lambda connection: connection.sendall(b"220 hello\r\n"))))


def test_a_server_that_speaks_no_mail_is_told(serve: Serve) -> None:
    assert "not sent" in failure(options(serve(lambda connection: connection.sendall(b"SSH-2.0-x\r\n\xff\xfe\r\n"))))


@pytest.mark.parametrize("good_bye", [b"", b"500 what?\r\n"])
def test_a_mail_that_was_taken_is_sent_however_the_server_says_good_bye(serve: Serve, good_bye: bytes) -> None:
    def rude(connection: socket.socket) -> None:
        with connection.makefile("rwb", buffering=0) as lines:
            lines.write(b"220 hello\r\n")
            for answer in (b"250 hello\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go on\r\n"):
                lines.readline()
                lines.write(answer)
            while lines.readline() != b".\r\n":
                continue
            lines.write(b"250 taken\r\n")
            lines.readline()
            lines.write(good_bye)

    assert send(options(serve(rude))) == ""


@pytest.mark.parametrize(("command", "told"), [
    ("echo hunter2; exit 3", "failed (exit 3)"), ("true", "printed nothing"), ("echo hunter2 >&2; no-such-command", "failed (exit 127)"),
    ("sleep 60 & echo hunter2; sleep 60", "took longer"), ("echo; echo hunter2", "printed nothing"),
])
def test_a_password_command_that_fails_is_told_without_its_output(command: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert told in failure(options(1, password_command=command), timeout=0.5)
    assert capfd.readouterr() == ("", "")


def test_nothing_that_a_password_command_started_outlives_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "open")
    reader = os.open(tmp_path / "open", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert "took longer" in failure(options(1, password_command=f"exec 9>'{tmp_path}/open'; sleep 60 & sleep 60"), timeout=0.5)
        os.set_blocking(reader, True)
        assert select.select([reader], [], [], 10)[0], "a process still has the pipe open"
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize("more", [
    {"toaddr": "a@example.org\nBcc: b@example.org"}, {"host": "x" * 300}, {"fromaddr": "mü@example.org"}, {"toaddr": ""},
])
def test_an_address_that_cannot_be_used_is_told(start: Start, more: dict[str, str]) -> None:
    post, port = start(enable_SMTPUTF8=False)
    assert "not sent" in failure(options(port, **more))
    assert post.envelopes == []
