"""Tags in a run: which episodes get which, what is told, and what stays byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mutagen.id3 import ID3

from poca.model import Fate, Level, Stage
from tests import sounds
from tests.flow.test_executor import Desk
from tests.origin import Origin, Reply, mp3, origin


@pytest.fixture
def server() -> Iterator[Origin]:
    with origin() as server:
        yield server


@pytest.fixture
def desk(tmp_path: Path, server: Origin) -> Iterator[Desk]:
    desk = Desk(tmp_path / "media", tmp_path / "state", server)
    yield desk
    desk.state.close()


def track(desk: Desk, number: int) -> str:
    return str(ID3(desk.base / f"Show/ep{number}.mp3")["TRCK"])


def test_without_metadata_and_numbering_the_file_is_what_the_server_sent(desk: Desk) -> None:
    desk.run(desk.entry(1, mp3(40)))
    assert (desk.base / "Show/ep1.mp3").read_bytes() == mp3(40)


def test_an_episode_is_tagged_as_the_feed_tells_before_it_gets_its_name(desk: Desk) -> None:
    desk.options["metadata"] = (("title", "{episode_title}"), ("artist", "Jane"))
    desk.run(desk.entry(1, mp3(40), title="The One"))
    tags = ID3(desk.base / "Show/ep1.mp3")
    assert (str(tags["TIT2"]), str(tags["TPE1"])) == ("The One", "Jane")
    assert desk.files() == ["ep1.mp3"]
    record = desk.record(1)
    assert (record.fate, record.stage, record.size) == (Fate.HELD, Stage.NONE, (desk.base / "Show/ep1.mp3").stat().st_size)
    assert desk.said(Level.ERROR) == []


def test_numbers_go_on_across_runs_and_deletions_in_the_order_of_publication(desk: Desk) -> None:
    desk.options |= {"track_numbering": "yes", "max_number": 2}
    desk.run(*[desk.entry(n, mp3(40, n)) for n in (2, 1)])
    assert (track(desk, 1), track(desk, 2)) == ("1", "2")
    desk.run(*[desk.entry(n, mp3(40, n)) for n in (4, 3, 2, 1)])
    assert desk.files() == ["ep3.mp3", "ep4.mp3"]
    assert (track(desk, 3), track(desk, 4)) == ("3", "4")
    for path in (desk.base / "Show").glob("*.mp3"):
        path.unlink()
    desk.run(*[desk.entry(n, mp3(40, n)) for n in (5, 4, 3)])
    assert track(desk, 5) == "5"


def test_an_episode_that_comes_again_bears_its_number_again(desk: Desk) -> None:
    desk.options |= {"track_numbering": "yes"}
    desk.run(desk.entry(1, mp3(40)), desk.entry(2, mp3(40)))
    desk.put(replace(desk.record(1), fate=Fate.PENDING, path=""))
    (desk.base / "Show/ep1.mp3").unlink()
    desk.run(desk.entry(1), desk.entry(2))
    assert (track(desk, 1), track(desk, 2)) == ("1", "2")


def test_a_number_that_is_there_is_neither_changed_nor_counted(desk: Desk, tmp_path: Path) -> None:
    own = tmp_path / "own.mp3"
    own.write_bytes(mp3(40))
    tags = ID3()
    from mutagen.id3 import TRCK
    tags.add(TRCK(encoding=3, text="77"))
    tags.save(own)
    desk.options |= {"track_numbering": "if missing"}
    desk.run(desk.entry(1, own.read_bytes()), desk.entry(2, mp3(40)), desk.entry(3, mp3(40)))
    assert [track(desk, n) for n in (1, 2, 3)] == ["77", "1", "2"]
    assert (desk.base / "Show/ep1.mp3").read_bytes() == own.read_bytes()


def test_a_file_that_cannot_be_tagged_is_kept_and_told_with_its_episode_once(desk: Desk) -> None:
    desk.options["metadata"] = (("artist", "Jane"),)
    strange = bytes(n * 7 % 250 for n in range(9000))
    desk.run(desk.entry(1, strange, title="The One"), desk.entry(2, mp3(40)))
    errors = desk.said(Level.ERROR)
    assert len(errors) == 1
    assert errors[0].startswith("The One: ")
    assert (desk.base / "Show/ep1.mp3").read_bytes() == strange
    assert str(ID3(desk.base / "Show/ep2.mp3")["TPE1"]) == "Jane"
    desk.run(desk.entry(1), desk.entry(2))
    assert desk.said(Level.ERROR) == []
    assert len(desk.server.asked("/ep1.mp3")) == 1


def test_what_a_format_has_no_tag_for_is_told_once_and_not_with_each_episode_for_years(desk: Desk) -> None:
    desk.options["metadata"] = (("website", "http://127.0.0.1/"), ("artist", "Jane"))
    desk.run(*[desk.entry(n, Reply(sounds.sound("m4a"), type="audio/mp4")) for n in (1, 2)])
    warnings = desk.said(Level.WARNING)
    assert len(warnings) == 1
    assert "website" in warnings[0]
    assert "MP4" in warnings[0]
    assert desk.said(Level.ERROR) == []
    desk.run(*[desk.entry(n, Reply(sounds.sound("m4a"), type="audio/mp4")) for n in (1, 2, 3)])
    assert desk.kinds().count("downloaded") == 1 and desk.said(Level.WARNING) == []


def test_a_run_that_died_while_tagging_leaves_neither_part_nor_copy_and_no_gap_in_the_numbers(desk: Desk) -> None:
    desk.options |= {"track_numbering": "yes"}
    desk.run(desk.entry(1, mp3(40)))
    plan = desk.plan(desk.entry(1), desk.entry(2, mp3(40)))
    part = "Show/.poca-feedfeedfeed.part"
    desk.put(replace(plan.lacking[0].episode, fate=Fate.PENDING, stage=Stage.TAGGING, part=part))
    (desk.base / part).write_bytes(mp3(40))
    (desk.base / "Show/.poca-feedfeedfeed.tagging.part").write_bytes(b"half")
    assert desk.executor.recover(desk.state.history("Show"))
    assert desk.files() == ["ep1.mp3"]
    desk.run(desk.entry(1), desk.entry(2))
    assert track(desk, 2) == "2"
