"""The command line of poca, and what becomes of its exit code."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.server import Reply, Server
from tests.world import POCA, Home, Show


def shows(server: Server, *names: str, count: int = 1) -> list[Show]:
    return [Show(server, name).publish(count) for name in names]


def test_an_unknown_title_names_the_nearest_and_nothing_is_done(home: Home, server: Server) -> None:
    show, = shows(server, "example")
    home.write(show.subscription("The Example Hour"))
    done = home.run("The Exampel Hour")
    assert done.code == 2
    assert "The Exampel Hour" in done.err and "the nearest: The Example Hour" in done.err
    assert server.requests == [] and not home.base.exists() and not home.state.exists()


def test_only_the_named_subscriptions_are_asked(home: Home, server: Server) -> None:
    one, two = shows(server, "one", "two")
    home.write(one.subscription(), two.subscription())
    assert home.run("Two").code == 0
    assert [request.path for request in server.requests] == ["/two.xml", "/two/1.mp3"]


def test_a_dry_run_shows_the_plans_and_changes_nothing(home: Home, server: Server) -> None:
    one, two = shows(server, "one", "two", count=3)
    gone = Show(server, "gone").publish()
    home.write(*(show.subscription(max_number=3) for show in (one, two, gone)))
    assert home.run().code == 0
    one.publish()
    (home.base / "Two" / "2.mp3").unlink()
    server.routes[gone.path] = Reply(301, headers={"Location": server.url("/new.xml")})
    server.routes["/new.xml"] = lambda request: gone.reply()
    home.write(one.subscription(max_number=3), two.subscription("Zwei", max_number=3), gone.subscription())
    before = home.tree()
    done = home.run("--dry-run")
    assert home.tree() == before
    assert done.code == 0 and done.err == ""
    told = ["  + One/4.mp3 (5.0 kB)", "  1 deleted by you", "  − One/1.mp3 (5.0 kB)", "ONE", "ZWEI"]
    assert sorted(done.out.splitlines()[:-1]) == told, done.out
    assert "Dry run: nothing was changed" in done.out


def test_the_first_dry_run_makes_no_folder(home: Home, server: Server) -> None:
    show, = shows(server, "show")
    home.write(show.subscription())
    before = home.tree()
    done = home.run("--dry-run")
    assert done.code == 0 and "Show/1.mp3" in done.out
    assert home.tree() == before
    assert show.asked() == []


def test_json_is_all_that_stdout_has_also_with_errors(home: Home, server: Server) -> None:
    good, bad, broken = shows(server, "good", "bad", "broken")
    server.routes[bad.path] = Reply(404)
    server.routes[broken.items[0].path] = Reply(body=b"<html>gone</html>", type="audio/mpeg")
    home.write(good.subscription(), bad.subscription(), broken.subscription(), {"title": "Faulty", "url": good.url, "max_number": "many"})
    done = home.run("--json")
    assert done.code == 1
    told = {(event["event"], event["subscription"]) for event in done.events}
    assert {("downloaded", "Good"), ("feed-failed", "Bad"), ("download-failed", "Broken"), ("sums", None)} <= told
    assert all({"event", "time", "level", "subscription", "text"} <= set(event) for event in done.events)
    assert [event for event in done.events if event["level"] == "error" and "max_number" in event["text"]]
    assert "errors:" in done.err
    again = home.run("--json", "-q", "Good")
    assert again.code == 1 and again.events and "sums" in [event["event"] for event in again.events]


def test_verbose_goes_in_config_order_and_ends_each_before_it_asks_the_next(home: Home, server: Server) -> None:
    third, first, second = shows(server, "third", "first", "second", count=2)
    home.write(*(show.subscription() for show in (first, second, third)))
    done = home.run("-v", "-n", "8")
    assert done.code == 0
    assert [request.path for request in server.requests] == [
        path for name in ("first", "second", "third") for path in (f"/{name}.xml", f"/{name}/1.mp3", f"/{name}/2.mp3")
    ]
    steps = done.out.splitlines()
    assert any("-n has no effect" in line for line in steps)
    assert [line for line in steps if "downloaded 1.mp3" in line] == [f"{name}: downloaded 1.mp3 (5.0 kB)" for name in ("First", "Second", "Third")]


@pytest.mark.parametrize(("parallel", "peak"), [("1", 1), ("3", 3)])
def test_so_many_feeds_are_asked_at_once(home: Home, server: Server, parallel: str, peak: int) -> None:
    names = [f"show{number}" for number in range(6)]
    for name in names:
        show = Show(server, name)
        server.routes[show.path] = Reply(body=show.feed(), type="application/rss+xml", delay=0.3)
    home.write(*({"title": name, "url": server.url(f"/{name}.xml")} for name in names), settings={"per_host": 16})
    assert home.run("-n", parallel).code == 0
    assert server.peak() == peak
    assert len(server.requests) == 6


def test_without_a_config_and_without_a_terminal_it_says_which_file_it_looked_for(home: Home) -> None:
    done = home.run(config=False, XDG_CONFIG_HOME=str(home.folder / "xdg"))
    assert done.code == 2 and done.out == ""
    assert str(home.folder / "xdg" / "poca" / "config.yaml") in done.err
    assert not (home.folder / "xdg").exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2)])
def test_at_a_terminal_it_offers_to_write_a_config(home: Home, answer: str, code: int) -> None:
    said, process = at_a_terminal([str(POCA)], answer, {**home.env, "XDG_CONFIG_HOME": str(home.folder / "xdg")})
    path = home.folder / "xdg" / "poca" / "config.yaml"
    assert process.returncode == code
    assert "Write one" in said
    assert path.exists() == (code == 0)
    if path.exists():
        assert "poca-subscribe add" in said
        assert subprocess.run([POCA, "--dry-run", "-c", path], env=home.env, capture_output=True, check=False).returncode in (0, 1)


def at_a_terminal(command: list[str], answer: str, env: dict[str, str]) -> tuple[str, subprocess.Popen[bytes]]:
    here, there = pty.openpty()
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=env, start_new_session=True)
    os.close(there)
    os.write(here, answer.encode())
    said = b""
    try:
        while piece := os.read(here, 4096):
            said += piece
    except OSError:     # how a terminal says that nobody is at its other end any more
        pass
    os.close(here)
    process.wait(30)
    return said.decode(), process


def test_a_fault_in_the_settings_stops_everything(home: Home, server: Server) -> None:
    show, = shows(server, "show")
    home.write(show.subscription(max_nubmer=3), settings={"timeout": "soon"})
    done = home.run()
    assert done.code == 2
    assert f"{home.config}:" in done.err and "timeout" in done.err
    assert "max_number" in done.err, "all faults are told at once, with the nearest key"
    assert server.requests == [] and not home.base.exists()


def test_a_broken_file_stops_everything(home: Home, server: Server) -> None:
    home.config.write_text("settings: {base_dir: x\nsubscriptions: [", encoding="utf-8")
    done = home.run()
    assert done.code == 2 and f"{home.config}:" in done.err


def test_a_fault_in_one_subscription_leaves_the_others_running(home: Home, server: Server) -> None:
    good, bad = shows(server, "good", "bad")
    home.write(good.subscription(), bad.subscription(max_number="-3"))
    done = home.run()
    assert done.code == 1
    assert "max_number" in done.err
    assert set(home.files()) == {"Good/1.mp3"} and server.count(bad.path) == 0


@pytest.mark.parametrize("arguments", [["--nonsense"], ["-n", "0"], ["-q", "-v"], ["-c"]])
def test_a_wrong_command_line_is_told_and_nothing_is_done(home: Home, server: Server, arguments: list[str]) -> None:
    home.write(*(show.subscription() for show in shows(server, "show")))
    done = home.run(*arguments)
    assert done.code == 2 and "usage:" in done.err
    assert server.requests == []


def test_quiet_says_nothing_but_errors(home: Home, server: Server) -> None:
    good, bad = shows(server, "good", "bad")
    home.write(good.subscription(), bad.subscription())
    server.routes[bad.path] = Reply(410)
    done = home.run("-q")
    assert done.code == 1 and done.out == "" and "Bad" in done.err
    home.write(good.subscription())
    good.publish()
    assert home.run("-q").silent


def test_a_config_that_cannot_be_found_is_told(home: Home) -> None:
    done = home.run("-c", str(Path("nowhere.yaml")), config=False)
    assert done.code == 2 and "nowhere.yaml" in done.err
