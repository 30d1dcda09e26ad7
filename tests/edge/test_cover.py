"""The cover of a show, from the feed to the folder: a real server, the subscription's thread, the executor, the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poca import basedir
from poca import cover as covers
from poca.executor import Executor
from poca.model import Event, History, Level, Plan, Report, Settings
from poca.state import State
from poca.web import Web
from poca.worker import Crew, Task, make_report
from tests import builders
from tests.server import HANG, Raw, Reply, Server

NOW = builders.NOW
JPG, PNG = b"\xff\xd8\xff\xe0" + b"j" * 500, b"\x89PNG\r\n\x1a\n" + b"p" * 500
WEBP = b"RIFF\xf4\x01\0\0WEBPVP8 " + b"w" * 488


class Show:
    """A subscription with a feed that can be told to change, run after run."""

    def __init__(self, tmp_path: Path, server: Server, **settings: Any) -> None:
        self.base, self.server = tmp_path / "media", server
        self.settings = Settings(self.base, tmp_path / "state", **{"timeout": 2, "min_free_mb": 0, **settings})
        self.state = State.open(self.settings.state_dir, NOW)
        self.state.marker, _ = basedir.settle(self.base, self.state.marker, [])
        self.web = Web(self.settings)
        self.options: dict[str, Any] = {"url": server.url("/feed.xml")}
        self.events: list[Event] = []
        self.changes = 0
        self.picture = server.url("/art")

    def change(self) -> None:
        self.changes += 1
        image = f'<image><url>{self.picture}</url></image>' if self.picture else ""
        feed = f"<rss version='2.0'><channel><title>Show</title><description>{self.changes}</description>{image}</channel></rss>"
        self.server.routes["/feed.xml"] = Reply(body=feed.encode(), etag=f'"{self.changes}"')

    def report(self, **values: Any) -> Report:
        show = builders.subscription(**self.options)
        return make_report(Task(show, self.state.history("Show"), self.settings, self.state.marker, NOW, **values), self.web, Crew(4))

    def run(self, *, change: bool = True) -> list[str]:
        """A run; what it warned of."""
        if change:
            self.change()
        self.events = []
        executor = Executor(self.settings, self.state, self.web, self.events.append, clock=lambda: NOW)
        assert executor.handle(self.report()) is None
        assert not [event.text for event in self.events if event.level is Level.ERROR]
        return [event.text for event in self.events if event.level is Level.WARNING]

    def give(self, *replies: Reply | Raw) -> None:
        self.server.routes["/art"] = list(replies)

    @property
    def files(self) -> dict[str, bytes]:
        """All that is in the folder, hidden files, too."""
        folder = self.base / "Show"
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.is_dir() else {}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("127.0.0.1", "127.0.0.2") as server:
        yield server


@pytest.fixture
def show(tmp_path: Path, server: Server) -> Iterator[Show]:
    made = Show(tmp_path, server)
    yield made
    made.state.close()


@pytest.mark.parametrize(("picture", "name"), [(JPG, "cover.jpg"), (PNG, "cover.png"), (WEBP, "cover.webp")])
def test_a_cover_is_named_by_its_bytes_whatever_the_server_calls_it(show: Show, picture: bytes, name: str) -> None:
    show.give(Reply(body=picture, type="text/plain"))
    assert show.run() == []
    assert show.files == {name: picture}


def test_it_is_asked_for_when_the_feed_has_changed_and_only_then(show: Show) -> None:
    show.give(Reply(body=JPG, etag='"a"', last_modified="Mon, 01 Jan 2024 00:00:00 GMT"))
    show.run()
    show.run(change=False)
    assert show.server.count("/art") == 1
    show.run()
    assert show.server.count("/art") == 2
    again = show.server.seen("/art")[1].headers
    assert (again["if-none-match"], again["if-modified-since"]) == ('"a"', "Mon, 01 Jan 2024 00:00:00 GMT")
    assert show.files == {"cover.jpg": JPG}


def test_an_unchanged_feed_asks_for_none_also_where_there_is_something_to_plan(show: Show) -> None:
    show.options["max_days"] = 5
    show.give(Reply(body=JPG))
    show.run()
    show.run(change=False)
    assert show.server.count("/art") == 1


def test_a_new_picture_takes_the_place_of_the_old_one_of_whatever_kind(show: Show) -> None:
    show.give(Reply(body=JPG), Reply(body=JPG + b"new"), Reply(body=PNG))
    show.run()
    show.run()
    assert show.files == {"cover.jpg": JPG + b"new"}
    show.run()
    assert show.files == {"cover.png": PNG}


@pytest.mark.parametrize("name", ["cover.jpg", "Cover.PNG", "folder.jpeg", "cover.gif"])
def test_the_users_own_cover_stays_alone(show: Show, name: str) -> None:
    (show.base / "Show").mkdir()
    (show.base / "Show" / name).write_bytes(b"mine")
    show.give(Reply(body=JPG))
    assert show.run() == []
    assert show.run() == []
    assert show.files == {name: b"mine"}


def test_a_cover_that_the_user_changed_is_the_users_from_then_on(show: Show) -> None:
    show.give(Reply(body=JPG), Reply(body=PNG))
    show.run()
    (show.base / "Show" / "cover.jpg").write_bytes(JPG + b"mine")
    show.run()
    assert show.files == {"cover.jpg": JPG + b"mine"}


def test_other_pictures_in_the_folder_are_nobodys_cover(show: Show) -> None:
    (show.base / "Show").mkdir()
    (show.base / "Show" / "recover.jpg").write_bytes(b"mine")
    show.give(Reply(body=JPG))
    show.run()
    assert show.files == {"cover.jpg": JPG, "recover.jpg": b"mine"}


def test_a_cover_that_was_deleted_comes_again_with_the_next_change_of_the_feed(show: Show) -> None:
    show.give(Reply(body=JPG, etag='"a"'))
    show.run()
    (show.base / "Show" / "cover.jpg").unlink()
    show.run()
    assert show.files == {"cover.jpg": JPG}


def test_a_picture_written_by_a_run_that_died_before_recording_it_counts_as_ours(show: Show) -> None:
    (show.base / "Show").mkdir()
    (show.base / "Show" / "cover.jpg").write_bytes(JPG)
    show.give(Reply(body=JPG), Reply(body=PNG))
    show.run()
    show.run()
    assert show.files == {"cover.png": PNG}


def test_the_remains_of_a_run_that_died_are_in_nobodys_way(show: Show) -> None:
    (show.base / "Show").mkdir()
    (show.base / "Show" / ".poca-cover.part").write_bytes(b"half")
    show.give(Reply(body=JPG))
    show.run()
    assert show.files == {"cover.jpg": JPG}


@pytest.mark.parametrize(("reply", "told"), [
    (Reply(404), "404"), (Reply(body=b"<html>no picture</html>", type="image/jpeg"), "no picture"), (Reply(body=b""), "no picture"),
    (Reply(body=JPG, cut=100), ""), (Raw(b"HTTP/1.1 200 OK\r\n", HANG), ""), (Reply(body=JPG, drip=0.1), ""),
    (Reply(body=b"", length=16_000_001), "16 MB"), (Reply(302, headers={"Location": "file:///etc/passwd"}), "no http"),
    (Reply(body=b"GIF89a" + b"g" * 500), "no picture"),
])
def test_a_cover_that_cannot_be_had_is_told_once_and_written_never(tmp_path: Path, server: Server, reply: Reply | Raw, told: str) -> None:
    show = Show(tmp_path, server, timeout=0.5)
    show.give(reply)
    warned = show.run()
    assert len(warned) == 1
    assert warned[0].startswith("no cover: ")
    assert told in warned[0]
    assert show.run() == []
    show.give(Reply(503))
    assert len(show.run()) == 1
    assert show.files == {}
    show.give(Reply(body=JPG))
    assert show.run() == []
    assert show.files == {"cover.jpg": JPG}
    show.give(Reply(503))
    assert len(show.run()) == 1
    assert show.files == {"cover.jpg": JPG}
    show.state.close()


def test_a_picture_without_end_is_given_up_at_16_mb(show: Show) -> None:
    show.server.routes["/art"] = Raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", JPG, (b"x" * 1_000_000 for _ in range(100)))
    warned = show.run()
    assert len(warned) == 1
    assert "16 MB" in warned[0]


def test_pictures_of_up_to_16_mb_are_taken(show: Show) -> None:
    large = JPG.ljust(16_000_000, b"j")
    show.give(Reply(body=large))
    assert show.run() == []
    assert show.files == {"cover.jpg": large}


def test_an_address_that_does_not_answer_is_told_without_its_secrets(show: Show) -> None:
    show.picture = "http://me:secret@127.0.0.1:1/art?key=1"
    warned = show.run()
    assert len(warned) == 1
    assert "secret" not in warned[0]
    assert "key=1" not in warned[0]


def test_without_cover_nothing_is_asked_and_later_turning_it_on_asks_for_it(show: Show) -> None:
    show.give(Reply(body=JPG))
    show.options["cover"] = False
    show.run()
    assert (show.files, show.server.count("/art")) == ({}, 0)
    show.options["cover"] = True
    show.run(change=False)
    assert show.files == {"cover.jpg": JPG}


def test_a_feed_without_a_picture_asks_for_none(show: Show) -> None:
    show.picture = ""
    assert show.run() == []
    assert show.server.count("/art") == 0


def test_a_plan_that_is_only_shown_asks_for_no_cover(show: Show) -> None:
    show.give(Reply(body=JPG))
    show.change()
    report = show.report(look_only=True)
    assert isinstance(report, Plan)
    assert report.cover is None
    assert show.server.count("/art") == 0


def test_the_login_of_the_feed_goes_to_its_own_host_only(show: Show) -> None:
    show.options["url"] = show.server.url("/feed.xml", user="me:secret")
    show.give(Reply(body=JPG))
    show.run()
    show.picture = show.server.url("/art", host="127.0.0.2")
    show.run()
    here, there = show.server.seen("/art")
    assert (here.host, there.host) == ("127.0.0.1", "127.0.0.2")
    assert "authorization" in here.headers
    assert "authorization" not in there.headers


def test_a_folder_that_cannot_be_written_costs_the_cover_only(show: Show) -> None:
    show.base.joinpath("Show").write_text("a file where the folder should be")
    show.give(Reply(body=JPG))
    show.change()
    show.options["folder"] = "Show/deeper"
    executor = Executor(show.settings, show.state, show.web, show.events.append, clock=lambda: NOW)
    history = History("Show", cover_url="")
    answer = covers.ask(show.web, show.picture, builders.subscription(**show.options), history, show.settings, Crew(1).aside)
    assert answer
    plan = builders.plan(builders.feed(), **show.options)
    executor.handle(Plan(plan.subscription, 0, cover=answer))
    assert [event.level for event in show.events if "no cover" in event.text] == [Level.WARNING]
    assert show.state.history("Show").cover == ""


def test_a_disk_that_refuses_the_cover_is_told_once(show: Show) -> None:
    in_the_way = show.base / "Show" / ".poca-cover.part"
    in_the_way.mkdir(parents=True)
    show.give(Reply(body=JPG))
    assert len(show.run()) == 1
    assert show.run() == []
    in_the_way.rmdir()
    assert show.run() == []
    assert show.files == {"cover.jpg": JPG}


def test_a_new_validator_is_remembered_though_the_picture_is_the_same(show: Show) -> None:
    show.give(Reply(body=JPG, etag='"a"'), Reply(body=JPG, etag='"b"'), Reply(body=JPG, etag='"b"'))
    for _ in range(3):
        show.run()
    assert [request.headers.get("if-none-match") for request in show.server.seen("/art")] == [None, '"a"', '"b"']
