from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poca.errors import EditError, StateError
from poca.locks import config_lock, log_lock, subscription_lock

HOLDER = """
import sys, time
from pathlib import Path
from poca.locks import subscription_lock
with subscription_lock(Path(sys.argv[1]), sys.argv[2]) as got:
    print(got, flush=True)
    time.sleep(60)
"""


def holder(state_dir: Path, title: str) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    other = subprocess.Popen([sys.executable, "-c", HOLDER, str(state_dir), title], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "True\n"
    return other


def end(other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    other.communicate()


def test_a_subscription_that_another_process_works_on_is_refused_at_once_and_the_others_are_free(tmp_path: Path) -> None:
    other = holder(tmp_path, "The Show")
    try:
        started = time.monotonic()
        with subscription_lock(tmp_path, "The Show") as got:
            assert not got
        assert time.monotonic() - started < 5
        with subscription_lock(tmp_path, "Another Show") as got:
            assert got
    finally:
        end(other)


def test_a_lock_is_free_as_soon_as_its_process_was_killed(tmp_path: Path) -> None:
    end(holder(tmp_path, "The Show"))
    with subscription_lock(tmp_path, "The Show") as got:
        assert got


def test_waiting_for_a_lock_gets_it_when_the_other_ends(tmp_path: Path) -> None:
    other = holder(tmp_path, "The Show")
    other.send_signal(signal.SIGKILL)
    with subscription_lock(tmp_path, "The Show", wait=30) as got:
        assert got
    other.communicate()


@pytest.mark.parametrize("title", ["THE SHOW", "the show", "Cafe\u0301", "Café"])
def test_titles_that_would_share_a_folder_share_a_lock(tmp_path: Path, title: str) -> None:
    other = holder(tmp_path, "The Show" if "o" in title.lower() else "CAFÉ")
    try:
        with subscription_lock(tmp_path, title) as got:
            assert not got
    finally:
        end(other)


def test_any_title_can_be_locked(tmp_path: Path) -> None:
    for title in ("", ".", "../../etc/passwd", "a/b", "x" * 5000, "\udcff", "名前"):
        with subscription_lock(tmp_path, title) as got:
            assert got
    assert [path.parent for path in tmp_path.rglob("*.lock")] == [tmp_path / "locks"] * 7


def test_lock_files_are_private_empty_and_stay_where_they_are(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with subscription_lock(tmp_path, "The Show"):
            pass
    finally:
        os.umask(before)
    (path,) = (tmp_path / "locks").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "locks").stat().st_mode & 0o777 == 0o700
    assert path.stat().st_size == 0
    inode = path.stat().st_ino
    with subscription_lock(tmp_path, "The Show"):
        assert path.stat().st_ino == inode


def test_what_fails_while_a_lock_is_held_comes_through_and_sets_it_free(tmp_path: Path) -> None:
    with pytest.raises(PermissionError, match="mine"), subscription_lock(tmp_path, "The Show"):
        raise PermissionError("mine")
    with subscription_lock(tmp_path, "The Show") as got:
        assert got


def test_a_symlink_in_the_place_of_a_lock_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with subscription_lock(tmp_path, "The Show"):
        pass
    (path,) = (tmp_path / "locks").iterdir()
    path.unlink()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    with pytest.raises(StateError, match=r"The lock .* cannot be used: Too many levels of symbolic links\."), subscription_lock(tmp_path, "The Show"):
        pass
    assert victim.read_text() == "precious"


def test_a_file_in_the_place_of_the_locks_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("")
    with pytest.raises(StateError, match="cannot be used: its folder is not there"), subscription_lock(tmp_path, "The Show"):
        pass


def test_the_log_is_locked_beside_it_and_is_itself_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "poca.log"
    log.write_text("a line\n")
    with log_lock(log) as got:
        assert got
    assert log.read_text() == "a line\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["poca.log", "poca.log.lock"]


def test_a_config_that_is_a_symlink_is_locked_where_it_really_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "config.yaml").write_text("settings:\n")
    (tmp_path / "config.yaml").symlink_to("real/config.yaml")
    with config_lock(tmp_path / "config.yaml") as got, config_lock(tmp_path / "real" / "config.yaml", wait=0) as again:
        assert (got, again) == (True, False)
    assert [path.name for path in (tmp_path / "real").glob(".*")] == [".config.yaml.lock"]


def test_a_config_in_a_folder_that_is_gone_is_told_in_a_sentence_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(EditError, match="cannot be used: its folder is not there"), config_lock(tmp_path / "gone" / "config.yaml"):
        pass
    assert not (tmp_path / "gone").exists()
