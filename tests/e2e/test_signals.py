"""Ctrl-C and SIGTERM: the end comes at once, what is there of a download stays, and the next run completes it."""

from __future__ import annotations

from signal import SIGINT, SIGTERM, Signals

import pytest

from tests.server import HANG, Raw, Reply, Server
from tests.world import Home, Show, stopped, until

SOON = 3        # seconds: one is promised, and a busy machine may have its mind elsewhere; by itself nothing here would end within 30


def part_sizes(home: Home) -> list[int]:
    try:
        return [(home.base / name).stat().st_size for name in home.hidden()]
    except FileNotFoundError:       # that of the episode before has just got its name
        return []


@pytest.mark.parametrize(("signal", "code"), [(SIGINT, 130), (SIGTERM, 143)])
def test_a_signal_in_the_middle_of_a_download_keeps_the_part_and_the_next_run_goes_on(home: Home, server: Server, signal: Signals, code: int) -> None:
    show = Show(server, "show", frames=500).publish(2)
    body, path = show.items[1].body, show.items[1].path
    server.routes[path] = Reply(body=body, type="audio/mpeg", etag='"strong"', ranges=True, stall=90_000)
    home.write(show.subscription())
    process = home.start()
    until(lambda: part_sizes(home) == [90_000])
    done = stopped(process, signal)
    assert done.code == code and done.seconds < SOON
    assert "interrupted" in done.err
    assert "SHOW. 1 +" in done.out and "1 downloaded" in done.out
    assert list(home.files()) == ["Show/1.mp3"]
    assert [(home.base / name).read_bytes() for name in home.hidden()] == [body[:90_000]]
    assert any("interrupted" in line for line in home.log())

    server.routes[path] = Reply(body=body, type="audio/mpeg", etag='"strong"', ranges=True)
    assert home.run().code == 0
    assert server.seen(path)[-1].headers["range"] == "bytes=90000-"
    assert home.files() == {"Show/1.mp3": show.items[0].body, "Show/2.mp3": body}
    assert home.hidden() == []


@pytest.mark.parametrize(("signal", "code"), [(SIGINT, 130), (SIGTERM, 143)])
def test_a_signal_while_a_feed_is_silent_ends_the_run(home: Home, server: Server, signal: Signals, code: int) -> None:
    good, silent = Show(server, "good").publish(), Show(server, "silent").publish()
    server.routes[silent.path] = Raw(HANG)
    home.write(silent.subscription(), good.subscription())
    process = home.start()
    until(lambda: "Good: downloaded 1.mp3 (5.0 kB)" in home.log())
    until(lambda: server.count(silent.path))
    done = stopped(process, signal)
    assert done.code == code and done.seconds < SOON
    assert "interrupted" in done.err and "GOOD. 1 +" in done.out
    server.routes[silent.path] = lambda request: silent.reply()
    assert home.run().code == 0
    assert set(home.files()) == {"Good/1.mp3", "Silent/1.mp3"}


def test_a_signal_in_a_pause_between_two_tries_ends_the_run(home: Home, server: Server) -> None:
    show = Show(server, "show").publish()
    server.routes[show.items[0].path] = Reply(503)
    home.write(show.subscription())
    process = home.start()
    until(lambda: server.count(show.items[0].path))
    done = stopped(process)
    assert done.code == 143 and done.seconds < SOON


def test_with_json_the_last_word_of_an_interrupted_run_is_json_too(home: Home, server: Server) -> None:
    show = Show(server, "show").publish()
    server.routes[show.path] = Raw(HANG)
    home.write(show.subscription())
    process = home.start("--json")
    until(lambda: server.count(show.path))
    done = stopped(process)
    assert done.code == 143
    assert "interrupted" in [event["event"] for event in done.events]
