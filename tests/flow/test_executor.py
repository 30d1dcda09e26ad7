"""Plans carried out: real server, real files, real SQLite, real locks, and the planner's own plans."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from poca import basedir, files, locks, patience, planner
from poca.errors import Interrupted
from poca.events import plan_event, plan_values
from poca.executor import Executor, Later
from poca.model import (
    Disk,
    Entry,
    Episode,
    Event,
    Failure,
    Fate,
    FeedDoc,
    Fetched,
    Level,
    Plan,
    Settings,
    Stage,
    Subscription,
    Unchanged,
    Validators,
    Waiting,
)
from poca.state import State
from poca.web import Web
from tests import builders
from tests.origin import Origin, Reply, mp3, origin

NOW = builders.NOW
HOUR, DAY = 3600, 86_400
HTML = b"<!DOCTYPE html><html><body>Gone for ever.</body></html>"


class Desk:
    """A base_dir, a history, a server, and run after run of the planner and the executor."""

    def __init__(self, base: Path, state_dir: Path, server: Origin, **settings: Any) -> None:
        self.base, self.server = base, server
        self.settings = Settings(base, state_dir, **{"timeout": 1, "min_speed": 1, "min_free_mb": 0, "per_host": 4, **settings})
        self.state = State.open(state_dir, NOW)
        self.state.marker, _ = basedir.settle(base, self.state.marker, self.state.recorded_files())
        self.web = Web(self.settings)
        self.now = NOW
        self.events: list[Event] = []
        self.options: dict[str, Any] = {}
        self.executor = self.new_run()

    def new_run(self, **parts: Any) -> Executor:
        self.events = []
        self.executor = Executor(self.settings, self.state, self.web, lambda event: self.events.append(event), clock=lambda: self.now, **parts)
        return self.executor

    def entry(self, number: int, *replies: Reply | bytes, **values: Any) -> Entry:
        """An episode, the replies of the server for it set, or left as they are."""
        if replies:
            self.server.give(f"/ep{number}.mp3", *replies)
        return builders.entry(number, **{"url": f"{self.server.base}/ep{number}.mp3", "length": None, **values})

    def plan(self, *entries: Entry, title: str = "Show", cut: str = "", **values: Any) -> Plan:
        show = builders.subscription(**{"title": title, "folder": title, **self.options})
        history = self.state.history(title)
        present = basedir.present(self.base, self.state.marker, history.episodes)
        strangers = basedir.strangers(self.base, show.folder, [e.path for e in history.episodes if e.fate is Fate.HELD])
        doc = FeedDoc(title=title, entries=entries, cut=cut)
        return replace(planner.plan(show, history, Disk(present, strangers), doc, self.now), **values)

    def run(self, *entries: Entry, **values: Any) -> list[Event]:
        """A run of its own for the feed with these entries, with all that is put off done at once."""
        self.new_run()
        self.carry_out(self.plan(*entries, **values))
        self.executor.finish()
        return self.events

    def carry_out(self, report: Any) -> None:
        later = self.executor.handle(report)
        while later:
            later = self.executor.handle(later)

    def files(self, folder: str = "Show") -> list[str]:
        """All below a folder, hidden ones, too."""
        top = self.base / folder
        return sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())

    def record(self, number: int, title: str = "Show") -> Episode:
        return next(e for e in self.state.history(title).episodes if e.guid == f"guid-{number}")

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def said(self, level: Level) -> list[str]:
        return [event.text for event in self.events if event.level is level]

    def put(self, episode: Episode, title: str = "Show") -> Episode:
        self.state.put(title, episode)
        return episode


@pytest.fixture
def server() -> Iterator[Origin]:
    with origin() as server:
        yield server


@pytest.fixture
def desk(tmp_path: Path, server: Origin) -> Iterator[Desk]:
    desk = Desk(tmp_path / "media", tmp_path / "state", server)
    yield desk
    desk.web.close()
    desk.state.close()


def small_disk(folder: Path, size: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")


@pytest.fixture
def cramped(tmp_path: Path, server: Origin) -> Iterator[Desk]:
    """A desk whose base_dir is a disk of 200 KiB."""
    folder = tmp_path / "small"
    small_disk(folder, "200k")
    desk = Desk(folder, tmp_path / "state", server)
    yield desk
    desk.web.close()
    desk.state.close()
    subprocess.run(["umount", str(folder)], check=True)


# ------------------------------------------------------------------------------------------------------- downloads

def test_episodes_come_oldest_first_and_are_recorded_as_held(desk: Desk) -> None:
    bodies = {n: mp3(4, seed=n) for n in (1, 2, 3)}
    desk.run(*(desk.entry(n, bodies[n]) for n in (3, 2, 1)))
    assert desk.files() == ["ep1.mp3", "ep2.mp3", "ep3.mp3"]
    assert [path for path, _ in desk.server.requests] == ["/ep1.mp3", "/ep2.mp3", "/ep3.mp3"]
    for n, body in bodies.items():
        record = desk.record(n)
        assert (record.fate, record.stage, record.path, record.size, record.part) == (Fate.HELD, Stage.NONE, f"Show/ep{n}.mp3", len(body), "")
        assert (desk.base / record.path).read_bytes() == body
    assert desk.said(Level.NEWS) == ["downloaded ep1.mp3 (1.7 kB)", "downloaded ep2.mp3 (1.7 kB)", "downloaded ep3.mp3 (1.7 kB)", "3 downloaded"]
    assert (desk.executor.sums.downloaded, desk.executor.sums.downloaded_bytes) == (3, 3 * 1668)


def test_a_second_run_downloads_nothing_again(desk: Desk) -> None:
    entries = [desk.entry(n, mp3(4)) for n in (2, 1)]
    desk.run(*entries)
    desk.run(*entries)
    assert len(desk.server.requests) == 2
    assert desk.said(Level.NEWS) == []
    assert desk.kinds()[-1] == "done"


def test_files_are_made_with_the_umask(desk: Desk) -> None:
    before = os.umask(0o027)
    try:
        desk.run(desk.entry(1, mp3(4)))
    finally:
        os.umask(before)
    assert (desk.base / "Show/ep1.mp3").stat().st_mode & 0o777 == 0o640
    assert (desk.base / "Show").stat().st_mode & 0o777 == 0o750


def test_while_it_comes_only_a_hidden_part_is_there_and_the_history_knows_it(desk: Desk) -> None:
    seen: list[tuple[list[str], Episode]] = []
    desk.new_run(progress=lambda *_: seen.append((desk.files(), desk.record(1))))
    desk.carry_out(desk.plan(desk.entry(1, mp3(4))))
    names, record = seen[0]
    assert names == [f".poca-{record.key[:12]}.part"]
    assert (record.fate, record.stage, record.part) == (Fate.PENDING, Stage.PART, f"Show/{names[0]}")
    assert (record.part_etag, record.part_total) == ('"one"', 1668)


def test_an_interruption_keeps_the_part_which_the_next_run_goes_on_with(desk: Desk) -> None:
    body = mp3(1000)
    one = desk.entry(1, Reply(body, drip=(200_000, 0.02)), body)

    def interrupt(title: str, name: str, have: int, total: int | None) -> None:
        if have >= 200_000:
            raise Interrupted(130)

    executor = desk.new_run(progress=interrupt)
    with pytest.raises(Interrupted):
        executor.handle(desk.plan(one))
    executor.finish(interrupted=True)
    assert desk.kinds()[-1] == "done"
    have = (desk.base / desk.record(1).part).stat().st_size
    assert have >= 200_000
    desk.run(one)
    assert desk.server.asked("/ep1.mp3")[1]["range"] == f"bytes={have}-"
    assert (desk.base / "Show/ep1.mp3").read_bytes() == body
    assert desk.files() == ["ep1.mp3"]


def test_a_stalled_download_is_given_up_at_once_and_the_next_one_begun(desk: Desk) -> None:
    desk.run(desk.entry(2, mp3(4)), desk.entry(1, Reply(mp3(100), stall=20_000)))
    assert [path for path, _ in desk.server.requests] == ["/ep1.mp3", "/ep2.mp3"]
    record = desk.record(1)
    assert (record.fate, record.failures, record.stage) == (Fate.PENDING, 1, Stage.PART)
    assert desk.files() == [record.part.removeprefix("Show/"), "ep2.mp3"]
    assert desk.said(Level.ERROR) == [f"Episode 1: {record.error}; tried again in the next run"]


def test_the_part_of_an_episode_that_is_no_longer_wanted_goes(desk: Desk) -> None:
    desk.run(desk.entry(1, Reply(mp3(100), cut=20_000)))
    assert len(desk.files()) == 1
    desk.run(desk.entry(2, mp3(4)))
    assert desk.files() == ["ep2.mp3"]
    assert [e.guid for e in desk.state.history("Show").episodes] == ["guid-2"]


def test_text_leaves_nothing_behind(desk: Desk) -> None:
    desk.run(desk.entry(1, Reply(HTML, type="audio/mpeg")))
    assert desk.files() == []
    assert desk.record(1).stage is Stage.NONE


@pytest.mark.parametrize(
    ("reply", "mime", "name"),
    [
        (Reply(mp3(4), type=""), "", "get.mp3"),                            # by its bytes
        (Reply(b"\x01\x02" * 999, type="audio/mp4"), "", "get.m4a"),        # by the answer's type
        (Reply(b"\x01\x02" * 999, type="video/x-unheard-of"), "", "get.mp4"),
        (Reply(b"\x01\x02" * 999, type="audio/x-unheard-of"), "", "get.mp3"),
    ],
)
def test_an_extension_that_only_the_answer_tells(desk: Desk, reply: Reply, mime: str, name: str) -> None:
    url = desk.server.give("/get", reply)
    desk.run(desk.entry(1, url=url, mime=mime))
    assert desk.files() == [name]


# ------------------------------------------------------------------------------------------------------------ names

def test_a_strangers_file_is_not_overwritten_and_the_next_name_is_taken(desk: Desk) -> None:
    (desk.base / "Show").mkdir()
    (desk.base / "Show/ep1.mp3").write_text("mine")
    desk.run(desk.entry(1, mp3(4)))
    [name] = [name for name in desk.files() if name != "ep1.mp3"]
    assert name.startswith("ep1-20")
    assert (desk.base / "Show/ep1.mp3").read_text() == "mine"
    assert desk.record(1).path == f"Show/{name}"
    assert "name-changed" in desk.kinds()


def test_names_that_differ_in_letter_case_only_are_not_put_side_by_side(desk: Desk) -> None:
    (desk.base / "Show").mkdir()
    (desk.base / "Show/EP1.MP3").write_text("mine")
    desk.run(desk.entry(1, mp3(4)))
    assert "ep1.mp3" not in desk.files()
    assert len(desk.files()) == 2


def test_a_file_that_appears_at_the_last_moment_is_not_overwritten(desk: Desk) -> None:
    def late(part: Path, target: Path) -> None:
        if target.name == "ep1.mp3":
            target.write_text("mine")
        os.link(part, target)

    desk.new_run(link=late)
    desk.carry_out(desk.plan(desk.entry(1, mp3(4))))
    assert (desk.base / "Show/ep1.mp3").read_text() == "mine"
    assert desk.record(1).path != "Show/ep1.mp3"
    assert (desk.base / desk.record(1).path).read_bytes() == mp3(4)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV])
def test_where_there_are_no_hard_links_the_part_is_renamed(desk: Desk, number: int) -> None:
    def no_links(part: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number))

    desk.new_run(link=no_links)
    desk.carry_out(desk.plan(desk.entry(1, mp3(4))))
    assert desk.files() == ["ep1.mp3"]
    assert desk.record(1).fate is Fate.HELD


def test_where_there_are_no_hard_links_nothing_is_overwritten_either(desk: Desk) -> None:
    def no_links(part: Path, target: Path) -> None:
        if target.name == "ep1.mp3":
            target.symlink_to("nowhere")
        raise PermissionError(errno.EPERM, "no links here")

    desk.new_run(link=no_links)
    desk.carry_out(desk.plan(desk.entry(1, mp3(4))))
    assert (desk.base / "Show/ep1.mp3").is_symlink()
    assert (desk.base / desk.record(1).path).read_bytes() == mp3(4)


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.ENOENT])
def test_a_name_that_the_disk_refuses_gives_way_to_the_next(desk: Desk, number: int) -> None:
    def picky(part: Path, target: Path) -> None:
        if target.name == "ep1.mp3":
            raise OSError(number, os.strerror(number))
        os.link(part, target)

    desk.new_run(link=picky)
    desk.carry_out(desk.plan(desk.entry(1, mp3(4))))
    assert len(desk.files()) == 1
    assert desk.record(1).path not in ("", "Show/ep1.mp3")


def test_the_name_is_recorded_as_ready_before_the_disk_is_touched(desk: Desk) -> None:
    records = []

    def link(part: Path, target: Path) -> None:
        records.append(desk.record(1))
        os.link(part, target)

    desk.new_run(link=link)
    desk.carry_out(desk.plan(desk.entry(1, mp3(4))))
    assert [(r.fate, r.stage, r.path, r.size) for r in records] == [(Fate.PENDING, Stage.READY, "Show/ep1.mp3", 1668)]


def test_folders_of_a_name_are_made_and_removed_again_when_they_are_empty(desk: Desk) -> None:
    desk.options = {"rename": "{season}/{episode_title}", "max_number": 1}
    desk.run(desk.entry(1, mp3(4), season=7))
    assert desk.files() == ["7/Episode 1.mp3"]
    (desk.base / "Show/7/deep").mkdir()
    (desk.base / "Show/7/deep").rmdir()
    desk.run(desk.entry(2, mp3(4), season=8), desk.entry(1, season=7))
    assert desk.files() == ["8/Episode 2.mp3"]
    assert not (desk.base / "Show/7").exists()
    assert (desk.base / "Show").is_dir()


def test_a_folder_in_which_something_is_left_stays(desk: Desk) -> None:
    desk.options = {"rename": "{season}/{episode_title}", "max_number": 1}
    desk.run(desk.entry(1, mp3(4), season=7))
    (desk.base / "Show/7/notes.txt").write_text("mine")
    desk.run(desk.entry(2, mp3(4), season=8), desk.entry(1, season=7))
    assert desk.files() == ["7/notes.txt", "8/Episode 2.mp3"]


def test_nothing_is_written_through_a_link_out_of_base_dir(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (desk.base / "Show").symlink_to(tmp_path / "elsewhere")
    desk.run(desk.entry(1, mp3(4)))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert len(desk.said(Level.ERROR)) == 1
    assert "base_dir" in desk.said(Level.ERROR)[0]


def test_a_folder_that_cannot_be_used_is_told_once_and_costs_no_other_show(desk: Desk) -> None:
    filed = desk.plan(*(desk.entry(n, mp3(4)) for n in (3, 2, 1)), title="Filed")
    (desk.base / "Filed").write_text("mine")
    desk.new_run()
    desk.carry_out(filed)
    desk.carry_out(desk.plan(desk.entry(4, mp3(4)), title="Good"))
    assert len(desk.said(Level.ERROR)) == 1
    assert desk.server.asked("/ep1.mp3") == []
    assert (desk.base / "Filed").read_text() == "mine"
    assert desk.files("Good") == ["ep4.mp3"]


# -------------------------------------------------------------------------------------------------------- deletions

def held(desk: Desk, *numbers: int, **values: Any) -> list[Entry]:
    entries = [desk.entry(n, mp3(100, seed=n), **values) for n in sorted(numbers, reverse=True)]
    desk.run(*entries)
    return entries


def test_after_each_finished_download_the_oldest_unwanted_one_goes(desk: Desk) -> None:
    desk.options = {"max_number": 3}
    old = held(desk, 1, 2, 3)
    desk.run(*(desk.entry(n, mp3(4)) for n in (6, 5, 4)), *old)
    steps = [event.text.split(" (")[0] for event in desk.events if event.kind in ("downloaded", "removed")]
    assert steps == ["downloaded ep4.mp3", "removed ep1.mp3", "downloaded ep5.mp3", "removed ep2.mp3", "downloaded ep6.mp3", "removed ep3.mp3"]
    assert desk.files() == ["ep4.mp3", "ep5.mp3", "ep6.mp3"]
    assert (desk.record(1).fate, desk.record(1).path) == (Fate.REMOVED, "Show/ep1.mp3")
    assert (desk.executor.sums.removed, desk.executor.sums.freed) == (3, 3 * 41_700)


def test_as_many_of_the_newest_unwanted_stay_as_downloads_failed(desk: Desk) -> None:
    desk.options = {"max_number": 3}
    old = held(desk, 1, 2, 3)
    desk.run(desk.entry(6, mp3(4)), desk.entry(5, Reply(b"", 404)), desk.entry(4, Reply(b"", 404)), *old)
    assert desk.files() == ["ep2.mp3", "ep3.mp3", "ep6.mp3"]
    assert desk.said(Level.NEWS)[-1] == "1 removed, 1 downloaded, 2 failed"


def test_without_anything_to_download_all_unwanted_go_at_the_end(desk: Desk) -> None:
    old = held(desk, 1, 2, 3, 4)
    desk.options = {"max_number": 1}
    desk.run(*old)
    assert [e.text for e in desk.events if e.kind == "removed"] == ["removed ep1.mp3", "removed ep2.mp3", "removed ep3.mp3"]
    assert desk.files() == ["ep4.mp3"]


def test_the_deletion_is_recorded_before_the_file_goes(desk: Desk) -> None:
    """Seen from the folder: while the record says "deleting", the file may be there or not, and never before."""
    old = held(desk, 1, 2)
    desk.options = {"max_number": 1}
    plan = desk.plan(*old)
    stages = []
    put = desk.state.put

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(desk.state, name)

        def put(self, title: str, *episodes: Episode) -> None:
            put(title, *episodes)
            stages.extend((e.stage, e.fate, (desk.base / e.path).exists()) for e in episodes if e.guid == "guid-1")

    desk.events = []
    Executor(desk.settings, Watched(), desk.web, desk.events.append, clock=lambda: NOW).handle(plan)
    assert stages == [(Stage.DELETING, Fate.HELD, True), (Stage.NONE, Fate.REMOVED, False)]


@pytest.mark.parametrize("other", ["link", "folder"])
def test_what_is_no_longer_a_file_of_its_own_is_left_alone(desk: Desk, other: str) -> None:
    old = held(desk, 1, 2)
    desk.options = {"max_number": 1}
    plan = desk.plan(*old)
    path = desk.base / "Show/ep1.mp3"
    path.unlink()
    if other == "link":
        path.symlink_to(desk.base / "Show/ep2.mp3")
    else:
        path.mkdir()
    desk.new_run()
    desk.carry_out(plan)
    assert path.is_symlink() or path.is_dir()
    assert len(desk.said(Level.ERROR)) == 1
    assert "Episode 1" in desk.said(Level.ERROR)[0]
    assert (desk.base / "Show/ep2.mp3").exists()


def test_a_file_behind_a_link_out_of_base_dir_is_not_deleted(desk: Desk, tmp_path: Path) -> None:
    old = held(desk, 1, 2)
    desk.options = {"max_number": 1}
    plan = desk.plan(*old)
    (desk.base / "Show").rename(tmp_path / "elsewhere")
    (desk.base / "Show").symlink_to(tmp_path / "elsewhere")
    desk.new_run()
    desk.carry_out(plan)
    assert (tmp_path / "elsewhere/ep1.mp3").exists()
    assert len(desk.said(Level.ERROR)) == 1


def test_an_adopted_file_is_never_deleted(desk: Desk) -> None:
    old = held(desk, 1, 2)
    desk.options = {"max_number": 1}
    plan = desk.plan(*old)
    desk.new_run()
    desk.carry_out(replace(plan, unwanted=tuple(replace(e, adopted=True) for e in plan.unwanted)))
    assert desk.files() == ["ep1.mp3", "ep2.mp3"]


def test_a_file_that_is_already_gone_is_no_failure(desk: Desk) -> None:
    old = held(desk, 1, 2)
    desk.options = {"max_number": 1}
    plan = desk.plan(*old)
    (desk.base / "Show/ep1.mp3").unlink()
    desk.new_run()
    desk.carry_out(plan)
    assert desk.record(1).fate is Fate.REMOVED
    assert desk.said(Level.ERROR) == []


def test_a_drive_that_goes_away_in_the_middle_is_not_taken_for_a_deletion(desk: Desk, tmp_path: Path) -> None:
    old = held(desk, 1, 2)
    desk.options = {"max_number": 1}
    new = desk.entry(3, mp3(4))
    plan = desk.plan(new, *old)
    desk.new_run(progress=lambda *_: desk.base.rename(tmp_path / "away") if desk.base.exists() else None)
    desk.carry_out(plan)
    (tmp_path / "away").rename(desk.base)
    assert (desk.record(1).fate, desk.record(1).stage) == (Fate.HELD, Stage.NONE)
    assert desk.said(Level.ERROR)


def test_a_failing_deletion_is_told_and_the_others_go_on(desk: Desk) -> None:
    desk.options = {"rename": "{season}/{episode_title}"}
    old = [desk.entry(n, mp3(4), season=n) for n in (3, 2, 1)]
    desk.run(*old)
    desk.options["max_number"] = 1
    plan = desk.plan(*old)
    with immutable(desk.base / "Show/1"):
        desk.new_run()
        desk.carry_out(plan)
    assert desk.files() == ["1/Episode 1.mp3", "3/Episode 3.mp3"]
    assert (desk.record(1).fate, desk.record(1).stage) == (Fate.HELD, Stage.NONE)
    assert len(desk.said(Level.ERROR)) == 1
    assert desk.state.history("Show").settled == ""


class immutable:
    """A folder in which nothing can be changed, also not by root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        if subprocess.run(["mount", "--bind", "-o", "ro", str(self.folder), str(self.folder)], capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
        subprocess.run(["mount", "-o", "remount,ro,bind", str(self.folder)], check=True)

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", str(self.folder)], check=True)


# ------------------------------------------------------------------------------------------------------------- disk

def test_unwanted_ones_make_room_the_oldest_first_and_just_enough(cramped: Desk) -> None:
    """200 KiB hold four of 41.7 kB (44 KiB each); a fifth needs one of them gone, and it goes before, not after."""
    old = held(cramped, 1, 2, 3, 4)
    cramped.options = {"max_number": 2}
    cramped.run(cramped.entry(5, mp3(100)), *old)
    assert [e.text.split(" (")[0] for e in cramped.events if e.kind in ("downloaded", "removed")] == [
        "removed ep1.mp3", "downloaded ep5.mp3", "removed ep2.mp3", "removed ep3.mp3",
    ]
    assert cramped.said(Level.ERROR) == []


def test_min_free_mb_is_left_free(cramped: Desk) -> None:
    cramped.settings = replace(cramped.settings, min_free_mb=0.1)
    cramped.run(*(cramped.entry(n, mp3(100)) for n in (4, 3, 2, 1)))
    assert cramped.files() == ["ep1.mp3", "ep2.mp3"]
    assert files.free(cramped.base, "Show") >= 100_000


def test_a_full_disk_ends_the_downloads_of_the_run_and_is_told_once(cramped: Desk) -> None:
    cramped.new_run()
    cramped.carry_out(cramped.plan(*(cramped.entry(n, mp3(100)) for n in (7, 6, 5, 4, 3, 2, 1))))
    cramped.carry_out(cramped.plan(cramped.entry(8, mp3(1)), title="Other"))
    assert cramped.files() == ["ep1.mp3", "ep2.mp3", "ep3.mp3", "ep4.mp3"]
    assert cramped.files("Other") == []
    assert len(cramped.said(Level.ERROR)) == 1
    assert "room" in cramped.said(Level.ERROR)[0]
    assert cramped.record(5).failures == 0
    assert cramped.state.history("Other").settled == ""


def test_a_full_disk_does_not_end_the_deletions(cramped: Desk) -> None:
    old = held(cramped, 1, 2, 3, 4)
    other = cramped.plan(*old)
    cramped.options = {"max_number": 1}
    plan = cramped.plan(*old)
    cramped.new_run()
    cramped.options = {}
    cramped.carry_out(cramped.plan(cramped.entry(8, mp3(400)), title="Other"))
    assert len(cramped.said(Level.ERROR)) == 1
    cramped.carry_out(plan)
    assert cramped.files() == ["ep4.mp3"]
    assert other.unwanted == ()


def test_what_a_part_has_already_needs_no_room_again(cramped: Desk) -> None:
    body = mp3(300)         # 125 kB of 204 kB, with 60 kB to stay free: no room for it a second time
    one = cramped.entry(1, Reply(body, cut=100_000), body)
    cramped.settings = replace(cramped.settings, min_free_mb=0.06)
    cramped.run(one)
    cramped.run(one)
    assert cramped.files() == ["ep1.mp3"]
    assert "range" in cramped.server.asked("/ep1.mp3")[1]


def test_nothing_is_deleted_for_a_download_that_would_not_fit_even_then(cramped: Desk) -> None:
    old = held(cramped, 1, 2, 3)
    cramped.options = {"max_number": 2}
    cramped.run(cramped.entry(5, mp3(1000)), *old)
    assert cramped.files() == ["ep2.mp3", "ep3.mp3"]      # one stands in for the one that did not come


def test_a_disk_that_is_full_without_a_told_length_leaves_no_part(cramped: Desk) -> None:
    cramped.run(cramped.entry(1, Reply(mp3(1000), total=-1)))
    assert cramped.files() == []
    assert len(cramped.said(Level.ERROR)) == 1
    assert cramped.record(1).stage is Stage.NONE


def test_a_feed_that_exaggerates_a_length_does_not_stop_the_downloads(cramped: Desk) -> None:
    cramped.run(cramped.entry(1, mp3(4), length=10**12))
    assert cramped.files() == ["ep1.mp3"]


# --------------------------------------------------------------------------------------------------------- failures

def test_a_failed_episode_is_told_and_the_rest_go_on(desk: Desk) -> None:
    desk.run(desk.entry(2, mp3(4)), desk.entry(1, Reply(b"", 403)))
    assert desk.files() == ["ep2.mp3"]
    [sentence] = desk.said(Level.ERROR)
    assert sentence.startswith("Episode 1: ")
    assert "403" in sentence
    assert sentence.endswith("; tried again in the next run")
    assert desk.state.history("Show").settled == ""


@pytest.mark.parametrize(
    ("reply", "pauses"),
    [
        (Reply(b"", 403), [None, None, 2, 4, 8, 16, 32, 64, 128, 168, 168]),
        (Reply(b"", 404), [None, 2, 4]),
        (Reply(b"", 410), [None, 2, 4]),
        (Reply(HTML), [None, 2, 4]),
    ],
)
def test_pauses_grow_with_the_failures_in_a_row(desk: Desk, reply: Reply, pauses: list[int | None]) -> None:
    one = desk.entry(1, reply)
    for number, hours in enumerate(pauses, 1):
        desk.run(one)
        record = desk.record(1)
        assert record.failures == number
        assert record.next_try == (None if hours is None else desk.now + hours * HOUR)
        assert len(desk.said(Level.ERROR)) == 1
        assert ("not tried again before 20" in desk.said(Level.ERROR)[0]) == (hours is not None)
        desk.now = record.next_try or desk.now + HOUR


def test_too_large_waits_after_the_second_time(desk: Desk) -> None:
    desk.settings = replace(desk.settings, max_episode_mb=0.001)
    one = desk.entry(1, mp3(4))
    desk.run(one)
    assert desk.record(1).next_try is None
    desk.run(one)
    assert desk.record(1).next_try == NOW + 2 * HOUR


def test_one_that_only_waits_is_no_error_and_is_not_tried(desk: Desk) -> None:
    one = desk.entry(1, Reply(b"", 404))
    desk.run(one)
    desk.run(one)
    desk.run(one)
    assert len(desk.server.requests) == 2
    assert desk.said(Level.ERROR) == []
    assert desk.state.history("Show").settled == ""


def test_a_success_forgets_the_failures(desk: Desk) -> None:
    one = desk.entry(1, Reply(b"", 403), mp3(4))
    desk.run(one)
    desk.run(one)
    record = desk.record(1)
    assert (record.fate, record.failures, record.error, record.next_try) == (Fate.HELD, 0, "", None)


@pytest.mark.parametrize(("seconds", "wait"), [(7, 7), (999_999, DAY)])
@pytest.mark.parametrize("status", [503, 429])
def test_retry_after_is_heeded_across_runs(desk: Desk, status: int, seconds: int, wait: int) -> None:
    desk.run(desk.entry(1, Reply(b"", status, headers={"Retry-After": str(seconds)})))
    assert len(desk.server.requests) == 1
    assert desk.record(1).next_try == NOW + wait


@pytest.mark.parametrize("bad", [Reply(b"", 500), Reply(b"", 429), Reply(mp3(4), stall=0)])
def test_a_passing_trouble_gets_two_more_tries_within_the_run(desk: Desk, bad: Reply) -> None:
    desk.settings = replace(desk.settings, timeout=0.3)
    desk.web = Web(desk.settings)
    desk.run(desk.entry(1, bad, bad, mp3(4)))
    assert desk.files() == ["ep1.mp3"]
    assert desk.kinds().count("postponed") == 2
    assert desk.said(Level.ERROR) == []
    assert desk.record(1).failures == 0


def test_the_third_failing_try_is_the_last_one_and_counts_once(desk: Desk) -> None:
    desk.run(desk.entry(1, Reply(b"", 500)))
    assert len(desk.server.requests) == 3
    assert desk.record(1).failures == 1
    assert len(desk.said(Level.ERROR)) == 1
    assert desk.events[-1].data["failed"] == 1


def test_while_one_waits_for_its_next_try_the_rest_of_the_plan_and_other_plans_go_on(desk: Desk) -> None:
    desk.new_run()
    later = desk.executor.handle(desk.plan(desk.entry(2, mp3(4)), desk.entry(1, Reply(b"", 500), mp3(4))))
    assert isinstance(later, Later)
    assert desk.files() == ["ep2.mp3"]
    assert "done" not in desk.kinds()
    with locks.subscription_lock(desk.settings.state_dir, "Show") as free:
        assert free
    assert desk.executor.handle(desk.plan(desk.entry(3, mp3(4)), title="Other")) is None
    assert desk.files("Other") == ["ep3.mp3"]
    assert desk.executor.handle(later) is None
    assert desk.files() == ["ep1.mp3", "ep2.mp3"]
    assert [e.text for e in desk.events if e.kind == "done"] == ["1 downloaded", "2 downloaded"]
    assert desk.state.history("Show").settled


def test_unwanted_ones_stand_in_for_those_that_wait_for_their_next_try(desk: Desk) -> None:
    desk.options = {"max_number": 2}
    old = held(desk, 1, 2)
    desk.new_run()
    later = desk.executor.handle(desk.plan(desk.entry(4, mp3(4)), desk.entry(3, Reply(b"", 500), mp3(4)), *old))
    assert desk.files() == ["ep2.mp3", "ep4.mp3"]
    desk.carry_out(later)
    assert desk.files() == ["ep3.mp3", "ep4.mp3"]


def test_the_rest_of_a_plan_is_dropped_when_another_poca_was_there_meanwhile(desk: Desk) -> None:
    desk.new_run()
    later = desk.executor.handle(desk.plan(desk.entry(1, Reply(b"", 500), mp3(4))))
    desk.state.claim("Show", desk.state.generation("Show"))
    assert desk.executor.handle(later) is None
    assert desk.kinds()[-2:] == ["stale", "done"]
    assert desk.files() == []


def test_the_pause_before_the_next_try_grows_and_varies(desk: Desk) -> None:
    import time

    def pause(chance: float, tries: int) -> float:
        desk.new_run(chance=lambda: chance)
        later = desk.executor.handle(desk.plan(desk.entry(1, Reply(b"", 500))))
        for _ in range(tries - 1):
            later = desk.executor.handle(later)
        return later.due - time.monotonic()

    assert 0.5 < pause(0, 1) < pause(0.999, 1) < pause(0, 2) < pause(0.999, 2) < 4


def test_after_two_connect_failures_of_a_host_its_other_downloads_fail_at_once(desk: Desk) -> None:
    with origin() as gone:
        dead = [desk.entry(n, url=f"{gone.base}/ep{n}.mp3") for n in (5, 4, 3, 2, 1)]
    desk.run(*dead)
    errors = desk.said(Level.ERROR)
    assert len(errors) == 3
    # The pauses before another try vary, so either of the two may be the first that is given up.
    assert sorted(error[:11] for error in errors[:2]) == ["Episode 1: ", "Episode 2: "]
    assert errors[2] == "3 more episodes were not tried, since 127.0.0.1 could not be reached"
    assert [desk.record(n).failures for n in range(1, 6)] == [1] * 5


def test_a_host_that_answers_again_is_not_given_up(desk: Desk) -> None:
    with origin() as gone:
        dead = desk.entry(1, url=f"{gone.base}/ep1.mp3")
    desk.new_run()
    desk.executor.handle(desk.plan(desk.entry(2, mp3(4)), dead))
    assert desk.executor.steps.unreachable["127.0.0.1"] == 0


# -------------------------------------------------------------------------------------- the plan, the history, the lock

def test_the_plan_is_told_before_it_is_carried_out(desk: Desk) -> None:
    old = held(desk, 1, 2)
    desk.options = {"max_number": 2}
    desk.run(desk.entry(3, mp3(4), length=5000), *old)
    event = next(e for e in desk.events if e.kind == "plan")
    assert event.level is Level.DETAIL
    assert event.text == "plan: 1 to download (5.0 kB), 1 to delete (41.7 kB)"
    assert [v["rule"] for v in plan_values(event.plan)["episodes"]] == ["wanted", "held", "past max_number"]
    assert desk.events.index(event) < desk.kinds().index("downloaded")


def test_the_sentence_of_a_plan_with_nothing_in_it(desk: Desk) -> None:
    assert plan_event(desk.plan()).text == "plan: nothing to do"


def test_what_the_user_deleted_is_told_recorded_and_not_fetched_again(desk: Desk) -> None:
    old = held(desk, 1, 2)
    (desk.base / "Show/ep1.mp3").unlink()
    desk.run(*old)
    assert "deleted by you: ep1.mp3" in desk.said(Level.NEWS)
    assert desk.said(Level.NEWS)[-1] == "1 deleted by you"
    assert desk.record(1).fate is Fate.DELETED
    assert desk.executor.sums.deleted_by_user == 1
    desk.run(*old)
    assert desk.said(Level.NEWS) == []


def test_a_file_found_again_is_told_and_held(desk: Desk) -> None:
    old = held(desk, 1)
    (desk.base / "Show/ep1.mp3").rename(desk.base / "aside")
    desk.run(*old)
    (desk.base / "aside").rename(desk.base / "Show/ep1.mp3")
    desk.run(*old)
    assert "found again: ep1.mp3" in desk.said(Level.NEWS)
    assert desk.record(1).fate is Fate.HELD


def test_a_file_that_was_there_already_is_adopted(desk: Desk) -> None:
    (desk.base / "Show").mkdir()
    (desk.base / "Show/ep1.mp3").write_bytes(mp3(100))
    desk.run(desk.entry(1, length=41_000))
    assert desk.said(Level.NEWS) == ["adopted ep1.mp3, which was there already", "1 adopted"]
    assert (desk.record(1).fate, desk.record(1).adopted) == (Fate.HELD, True)
    assert desk.server.requests == []


def test_the_feed_is_recorded_and_its_failures_forgotten(desk: Desk) -> None:
    desk.state.feed_failed("Show", "http://127.0.0.1/feed.xml", "no", 2, None)
    desk.run(fetched=Fetched(Validators('"x"', ""), "abc", b"packed"))
    history = desk.state.history("Show")
    assert (history.validators.etag, history.body_hash, history.packed, history.failures, history.last_good) == ('"x"', "abc", b"packed", 0, NOW)


def test_a_good_plan_settles_and_one_that_dies_in_the_middle_does_not(desk: Desk) -> None:
    entries = [desk.entry(1, mp3(4))]
    desk.run(*entries)
    fingerprint = patience.fingerprint(builders.subscription())
    assert desk.state.history("Show").settled == fingerprint

    def die(*_: object) -> None:
        raise Interrupted(143)

    executor = desk.new_run(progress=die)
    with pytest.raises(Interrupted):
        executor.handle(desk.plan(desk.entry(2, mp3(4)), *entries, fetched=Fetched(Validators('"x"'), "abc", b"packed")))
    assert desk.state.history("Show").settled == ""


def test_deletions_that_were_spared_are_looked_at_again(desk: Desk) -> None:
    old = held(desk, 1, 2)
    desk.state.saw(NOW + HOUR)
    desk.options = {"max_number": 1}
    desk.run(*old)
    assert desk.files() == ["ep1.mp3", "ep2.mp3"]
    assert desk.state.history("Show").settled == ""


def test_a_feed_that_was_cut_off_is_an_error_that_brings_downloads_and_deletes_nothing(desk: Desk) -> None:
    held(desk, 1, 2)
    desk.options = {"max_number": 1}
    desk.run(desk.entry(3, mp3(4)), cut="the feed ends in the middle of an item")
    assert desk.files() == ["ep1.mp3", "ep2.mp3", "ep3.mp3"]
    assert desk.said(Level.ERROR) == ["the feed ends in the middle of an item: nothing is deleted; asked again in the next run"]
    assert desk.state.history("Show").settled == ""


def test_a_subscription_that_another_poca_is_busy_with_is_left_alone(desk: Desk) -> None:
    with locks.subscription_lock(desk.settings.state_dir, "Show") as got:
        assert got
        desk.run(desk.entry(1, mp3(4)))
    assert desk.kinds() == ["busy"]
    assert desk.server.requests == []


def test_a_plan_that_another_poca_has_meanwhile_carried_out_is_dropped(desk: Desk) -> None:
    plan = desk.plan(desk.entry(1, mp3(4)))
    desk.carry_out(plan)
    desk.new_run()
    desk.carry_out(plan)
    assert desk.kinds() == ["stale"]
    assert len(desk.server.requests) == 1


@pytest.mark.parametrize("marker", [None, "another id"])
def test_without_our_marker_nothing_is_done(desk: Desk, marker: str | None) -> None:
    old = held(desk, 1, 2)
    desk.options = {"max_number": 1}
    plan = desk.plan(desk.entry(3, mp3(4)), *old)
    path = desk.base / basedir.MARKER
    path.unlink()
    if marker:
        path.write_text(marker)
    desk.new_run()
    desk.carry_out(plan)
    assert desk.files() == ["ep1.mp3", "ep2.mp3"]
    assert len(desk.said(Level.ERROR)) == 1


def test_a_feed_that_moved_is_handed_on(desk: Desk) -> None:
    desk.run(moved="https://new.example/feed")
    assert [(s.title, url) for s, url in desk.executor.moved] == [("Show", "https://new.example/feed")]


def test_a_fault_of_poca_itself_costs_one_show_and_names_no_secret(desk: Desk) -> None:
    desk.new_run()
    desk.carry_out(replace(desk.plan(desk.entry(1, mp3(4))), lacking=("https://me:secret@x.example/?t=1",)))
    desk.carry_out(desk.plan(desk.entry(2, mp3(4)), title="Other"))
    [event] = [e for e in desk.events if e.level is Level.ERROR]
    assert event.data["bug"]
    assert "Traceback" in event.data["trace"]
    assert "secret" not in str(event)
    assert "\n" not in event.text
    assert desk.files("Other") == ["ep2.mp3"]


def test_secrets_of_urls_reach_no_event(desk: Desk) -> None:
    desk.server.give("/ep1.mp3", Reply(b"", 404))
    url = desk.server.base.replace("//", "//me:secret@") + "/ep1.mp3?token=abcdef"
    desk.run(desk.entry(1, url=url))
    assert desk.said(Level.ERROR)
    assert "secret" not in str(desk.events) + str([plan_values(event.plan) for event in desk.events if event.plan])
    assert "abcdef" not in str(desk.events)


# ------------------------------------------------------------------------------------------------------------- feeds

def failure(error: str = "no connection", title: str = "Show", **values: Any) -> Failure:
    return Failure(Subscription(title, "http://me:secret@127.0.0.1/feed"), error, **values)


def test_a_feed_that_fails_is_told_with_what_poca_will_do(desk: Desk) -> None:
    desk.executor.handle(failure("the server answers 500.", answered=True))
    assert desk.said(Level.ERROR) == ["the server answers 500; asked again in the next run"]
    assert desk.state.history("Show").failures == 1
    assert "secret" not in str(desk.events) + str([plan_values(event.plan) for event in desk.events if event.plan])


def test_a_feed_that_failed_three_times_is_asked_less_often_and_told_with_its_last_good_date(desk: Desk) -> None:
    desk.run()
    waits = []
    for _ in range(7):
        desk.new_run()
        desk.executor.handle(failure("gone", answered=True))
        next_try = desk.state.history("Show").next_try
        waits.append(next_try and (next_try - desk.now) // HOUR)
        desk.now += DAY
    assert waits == [None, None, 2, 4, 8, 16, 24]
    assert "(last good: 2023-11-1" in desk.said(Level.ERROR)[0]
    assert "not asked again before 2023-11-2" in desk.said(Level.ERROR)[0]


def test_the_retry_after_of_a_feed_is_heeded_up_to_a_day(desk: Desk) -> None:
    desk.executor.handle(failure(answered=True, retry_after=5))
    assert desk.state.history("Show").next_try == NOW + 5
    desk.executor.handle(failure(answered=True, retry_after=9_999_999))
    assert desk.state.history("Show").next_try == NOW + DAY


def test_a_run_in_which_no_feed_answered_counts_as_a_failure_of_none(desk: Desk) -> None:
    for title in ("A", "B", "C"):
        desk.executor.handle(failure(title=title, no_network=True))
    assert desk.events == []
    desk.executor.finish()
    assert [(e.title, e.text) for e in desk.events] == [("", "no network: none of the 3 feeds could be reached; asked again in the next run")]
    assert [desk.state.history(title).failures for title in "ABC"] == [0, 0, 0]


def test_feeds_that_failed_before_another_one_answered_do_count(desk: Desk) -> None:
    desk.executor.handle(failure(title="A", no_network=True))
    desk.executor.handle(Unchanged(Subscription("B", ""), 0))
    desk.executor.handle(failure(title="C", no_network=True))
    desk.executor.finish()
    assert [(e.title, e.kind) for e in desk.events if e.level is Level.ERROR] == [("A", "feed-failed"), ("C", "feed-failed")]
    assert [desk.state.history(title).failures for title in "AC"] == [1, 1]


def test_a_failure_that_is_not_the_feeds_does_not_count(desk: Desk) -> None:
    desk.executor.handle(failure("the folder cannot be read", counts=False))
    assert desk.said(Level.ERROR) == ["the folder cannot be read; asked again in the next run"]
    assert desk.state.history("Show").failures == 0


def test_an_interrupted_run_does_not_blame_the_network(desk: Desk) -> None:
    desk.executor.handle(failure(no_network=True))
    desk.executor.finish(interrupted=True)
    assert desk.events == []


def test_an_unchanged_feed_is_recorded_as_good(desk: Desk) -> None:
    desk.state.feed_failed("Show", "http://127.0.0.1/feed.xml", "no", 2, NOW)
    desk.executor.handle(Unchanged(builders.subscription(), 0, Fetched(Validators('"y"'), "abc")))
    history = desk.state.history("Show")
    assert (history.failures, history.validators.etag, history.last_good) == (0, '"y"', NOW)
    assert desk.kinds() == ["unchanged"]


def test_a_waiting_feed_is_no_error(desk: Desk) -> None:
    desk.executor.handle(Waiting(builders.subscription(), NOW + HOUR, "it was gone"))
    assert [(e.kind, e.level) for e in desk.events] == [("waiting", Level.DETAIL)]
    assert "it was gone" in desk.events[0].text
    assert desk.executor.sums.waiting == 1


# ---------------------------------------------------------------------------------------------------- after a crash

def crashed(desk: Desk, stage: Stage, **values: Any) -> Episode:
    """An episode as a killed run left it in the history; the files are the test's own."""
    (desk.base / "Show").mkdir(exist_ok=True)
    given = {"key": "0123456789abcdef", "guid": "guid-1", "url": "http://127.0.0.1/ep1.mp3", "title": "Episode 1", "published": NOW, "stage": stage}
    return desk.put(Episode(**{**given, "path": "Show/ep1.mp3", "size": 1668, "part": "Show/.poca-0123456789ab.part", **values}))


def recovered(desk: Desk, **parts: Any) -> tuple[bool, Episode]:
    changed = desk.new_run(**parts).recover(desk.state.history("Show"))
    return changed, desk.record(1)


PART = ".poca-0123456789ab.part"
HELD_RECORD = (Fate.HELD, Stage.NONE, "Show/ep1.mp3", 1668, "")


def facts(record: Episode) -> tuple[Fate, Stage, str, int | None, str]:
    return record.fate, record.stage, record.path, record.size, record.part


def test_ready_and_linked_but_the_part_still_there_is_held(desk: Desk) -> None:
    crashed(desk, Stage.READY)
    (desk.base / "Show" / PART).write_bytes(mp3(4))
    os.link(desk.base / "Show" / PART, desk.base / "Show/ep1.mp3")
    changed, record = recovered(desk)
    assert changed
    assert facts(record) == HELD_RECORD
    assert desk.files() == ["ep1.mp3"]


def test_ready_and_named_is_held(desk: Desk) -> None:
    crashed(desk, Stage.READY)
    (desk.base / "Show/ep1.mp3").write_bytes(mp3(4))
    assert facts(recovered(desk)[1]) == HELD_RECORD


def test_ready_but_not_yet_named_gets_its_name(desk: Desk) -> None:
    crashed(desk, Stage.READY)
    (desk.base / "Show" / PART).write_bytes(mp3(4))
    assert facts(recovered(desk)[1]) == HELD_RECORD
    assert desk.files() == ["ep1.mp3"]


def test_ready_but_not_yet_named_gets_its_name_where_there_are_no_links(desk: Desk) -> None:
    def no_links(part: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    crashed(desk, Stage.READY)
    (desk.base / "Show" / PART).write_bytes(mp3(4))
    assert facts(recovered(desk, link=no_links)[1]) == HELD_RECORD


def test_ready_with_a_strangers_file_at_the_name_is_named_by_the_next_run_without_a_download(desk: Desk) -> None:
    crashed(desk, Stage.READY)
    (desk.base / "Show" / PART).write_bytes(mp3(4))
    (desk.base / "Show/ep1.mp3").write_text("mine")
    recovered(desk)
    assert desk.files() == [PART, "ep1.mp3"]
    desk.run(desk.entry(1, mp3(9)))
    assert (desk.base / "Show/ep1.mp3").read_text() == "mine"
    record = desk.record(1)
    assert (record.fate, (desk.base / record.path).read_bytes()) == (Fate.HELD, mp3(4))
    assert desk.server.requests == []
    assert len(desk.files()) == 2


def test_ready_with_another_file_at_the_name_and_no_part_begins_anew(desk: Desk) -> None:
    crashed(desk, Stage.READY)
    (desk.base / "Show/ep1.mp3").write_text("mine")
    assert facts(recovered(desk)[1]) == (Fate.PENDING, Stage.NONE, "", None, "")
    assert (desk.base / "Show/ep1.mp3").read_text() == "mine"


def test_ready_with_nothing_there_begins_anew(desk: Desk) -> None:
    crashed(desk, Stage.READY)
    assert facts(recovered(desk)[1]) == (Fate.PENDING, Stage.NONE, "", None, "")


def test_a_part_that_was_being_tagged_is_worth_nothing(desk: Desk) -> None:
    crashed(desk, Stage.TAGGING, path="", part_etag='"one"', part_total=1668)
    (desk.base / "Show" / PART).write_bytes(mp3(4))
    record = recovered(desk)[1]
    assert facts(record) == (Fate.PENDING, Stage.NONE, "", None, "")
    assert record.part_etag == ""
    assert desk.files() == []


def test_a_recorded_part_that_is_no_part_of_ours_is_not_deleted(desk: Desk) -> None:
    crashed(desk, Stage.TAGGING, part="Show/mine.mp3")
    (desk.base / "Show/mine.mp3").write_text("mine")
    recovered(desk)
    assert desk.files() == ["mine.mp3"]


def test_a_part_that_grew_is_left_for_the_next_download(desk: Desk) -> None:
    before = crashed(desk, Stage.PART, path="", size=None)
    (desk.base / "Show" / PART).write_bytes(mp3(4)[:500])
    changed, record = recovered(desk)
    assert not changed
    assert record == before


def test_a_part_that_is_gone_is_forgotten(desk: Desk) -> None:
    crashed(desk, Stage.PART, path="", size=None)
    changed, record = recovered(desk)
    assert changed
    assert facts(record) == (Fate.PENDING, Stage.NONE, "", None, "")


def test_a_deletion_that_was_done_is_poca_s_own(desk: Desk) -> None:
    crashed(desk, Stage.DELETING, fate=Fate.HELD, part="")
    assert facts(recovered(desk)[1]) == (Fate.REMOVED, Stage.NONE, "Show/ep1.mp3", 1668, "")


def test_a_deletion_that_was_not_done_is_taken_back(desk: Desk) -> None:
    crashed(desk, Stage.DELETING, fate=Fate.HELD, part="")
    (desk.base / "Show/ep1.mp3").write_bytes(mp3(4))
    assert facts(recovered(desk)[1]) == HELD_RECORD
    assert desk.files() == ["ep1.mp3"]


def test_nothing_left_half_done_looks_like_the_users_deletion(desk: Desk) -> None:
    for stage in (Stage.READY, Stage.TAGGING, Stage.PART, Stage.DELETING):
        crashed(desk, stage, fate=Fate.HELD if stage is Stage.DELETING else Fate.PENDING)
        recovered(desk)
        desk.new_run()
        plan = desk.plan(desk.entry(1, mp3(4)))
        assert plan.gone == ()


def test_a_recovery_makes_plans_from_before_worthless(desk: Desk) -> None:
    crashed(desk, Stage.READY)
    (desk.base / "Show" / PART).write_bytes(mp3(4))
    plan = desk.plan(desk.entry(1, mp3(4)))
    recovered(desk)
    desk.carry_out(plan)
    assert desk.kinds()[-1] == "stale"


def test_a_subscription_that_another_poca_is_busy_with_is_not_recovered(desk: Desk) -> None:
    before = crashed(desk, Stage.READY)
    with locks.subscription_lock(desk.settings.state_dir, "Show"):
        assert recovered(desk) == (False, before)


def test_a_history_without_anything_half_done_is_left_as_it_is(desk: Desk) -> None:
    held(desk, 1)
    history = desk.state.history("Show")
    assert not desk.new_run().recover(history)
    assert desk.state.history("Show") == history


def test_what_the_disk_does_not_tell_is_told_and_left(desk: Desk) -> None:
    before = crashed(desk, Stage.DELETING, fate=Fate.HELD, part="")
    (desk.base / "Show/ep1.mp3").mkdir()
    assert recovered(desk)[1] == before
    assert len(desk.said(Level.ERROR)) == 1


@pytest.mark.parametrize("moment", ["part", "ready", "linked", "unlinked"])
def test_a_run_that_was_killed_at_any_moment_ends_with_one_whole_file(desk: Desk, moment: str) -> None:
    """Killed as far as the disk and the history can tell: nothing runs after the moment."""
    body = mp3(1000)

    class Killed(BaseException):
        pass

    def progress(*_: object) -> None:
        if moment == "part":
            raise Killed

    def link(part: Path, target: Path) -> None:
        if moment == "ready":
            raise Killed
        os.link(part, target)
        if moment == "unlinked":
            part.unlink()
        raise Killed

    one = desk.entry(1, body)
    with pytest.raises(Killed):
        desk.new_run(progress=progress, link=link).handle(desk.plan(one))
    assert desk.files() in ([desk.record(1).part.removeprefix("Show/")], ["ep1.mp3"], [desk.record(1).part.removeprefix("Show/"), "ep1.mp3"])
    desk.new_run().recover(desk.state.history("Show"))
    desk.run(one)
    assert desk.files() == ["ep1.mp3"]
    assert (desk.base / "Show/ep1.mp3").read_bytes() == body
    assert facts(desk.record(1))[:3] == (Fate.HELD, Stage.NONE, "Show/ep1.mp3")
    assert len(desk.server.requests) == (2 if moment == "part" else 1)
