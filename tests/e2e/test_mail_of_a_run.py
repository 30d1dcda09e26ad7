"""poca -e: the log of the run in a mail, kept for the next one where the mail server is away."""

from __future__ import annotations

import email
import email.policy
import socket
from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.server import Reply, Server
from tests.world import Home, Show


class Post:
    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        message = email.message_from_bytes(envelope.content or b"", policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        return "250 taken"

    @property
    def texts(self) -> list[str]:
        return [message.get_content() for message in self.messages]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number: int = taken.getsockname()[1]
    return number


@pytest.fixture
def post(port: int) -> Iterator[Post]:
    handler = Post()
    controller = Controller(handler, hostname="127.0.0.1", port=port)
    controller.start()
    yield handler
    controller.stop()


def settings(port: int, **options: object) -> dict[str, object]:
    return {"email": {"fromaddr": "me@localhost", "toaddr": "jane@localhost", "host": "127.0.0.1", "port": port, **options}}


def test_a_run_with_news_sends_them_and_one_without_sends_nothing(home: Home, server: Server, port: int, post: Post) -> None:
    show = Show(server, "show").publish(2)
    home.write(show.subscription("Tips | Show"), settings=settings(port))
    assert home.run().code == 0 and post.messages == []
    show.publish()
    assert home.run("-e").code == 0
    (text,) = post.texts
    assert text.splitlines() == home.log_path.read_text(encoding="utf-8").splitlines()[-1:], "the lines of the log, whole"
    assert "Tips | Show: downloaded 3.mp3" in text
    assert post.messages[0]["To"] == "jane@localhost"
    assert home.run("-e").silent
    assert len(post.messages) == 1


def test_what_could_not_be_mailed_goes_out_with_the_next_run(home: Home, server: Server, port: int) -> None:
    show = Show(server, "show").publish()
    home.write(show.subscription(), settings=settings(port))
    done = home.run("-e")
    assert done.code == 1 and "mail" in done.err and set(home.files()) == {"Show/1.mp3"}
    post = Post()
    controller = Controller(post, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        assert home.run("-e").code == 0
    finally:
        controller.stop()
    (text,) = post.texts
    assert "downloaded 1.mp3" in text


def test_entries_are_gathered_up_to_the_threshold(home: Home, server: Server, port: int, post: Post) -> None:
    show = Show(server, "show").publish(2)
    home.write(show.subscription(), settings=settings(port, threshold=3))
    assert home.run("-e").code == 0 and post.messages == []
    show.publish()
    assert home.run("-e").code == 0
    (text,) = post.texts
    assert [f"downloaded {number}.mp3" in text for number in (1, 2, 3)] == [True] * 3


def test_only_errors_are_mailed_where_that_is_asked_for(home: Home, server: Server, port: int, post: Post) -> None:
    good, bad = Show(server, "good").publish(), Show(server, "bad").publish()
    server.routes[bad.path] = Reply(410)
    home.write(good.subscription(), bad.subscription(), settings=settings(port, only_errors=True))
    assert home.run("-e").code == 1
    (text,) = post.texts
    assert "Bad: " in text and "Good" not in text


def test_without_an_email_section_it_is_a_wrong_command_line(home: Home, server: Server) -> None:
    home.write(Show(server, "show").publish().subscription())
    done = home.run("-e")
    assert done.code == 2 and "settings.email" in done.err and server.requests == []
