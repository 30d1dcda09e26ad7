from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poca.locks import log_lock
from poca.runlog import RunLog

INSTANT = 1_796_047_512         # 2026-11-30 14:05:12 UTC

WRITER = """
import sys
from pathlib import Path
from poca.runlog import RunLog
log = RunLog(Path(sys.argv[1]), int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    failure = log.write(1_796_047_512, "The Show", f"line {number} " + "x" * 300)
    if failure:
        sys.exit(failure)
"""


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.usefixtures("in_utc")
def test_a_line_names_time_process_and_subscription(tmp_path: Path) -> None:
    log = tmp_path / "poca.log"
    assert RunLog(log, 4711).write(INSTANT, "The Title", "downloaded x.mp3 (12.3 MB)") == ""
    assert RunLog(log, 4711).write(INSTANT, "", "nothing new") == ""
    assert log.read_text() == "2026-11-30 14:05:12 poca[4711] The Title: downloaded x.mp3 (12.3 MB)\n2026-11-30 14:05:12 poca[4711] nothing new\n"


def test_the_time_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "EST+5")
    time.tzset()
    try:
        RunLog(tmp_path / "poca.log", 1).write(INSTANT, "", "x")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (tmp_path / "poca.log").read_text().startswith("2026-11-30 09:05:12 ")


def test_whatever_is_in_title_and_text_it_stays_one_line(tmp_path: Path) -> None:
    log = tmp_path / "poca.log"
    everything = "".join(map(chr, range(0x3000)))
    assert RunLog(log, 1).write(INSTANT, f"a{everything}b", f"c{everything}d") == ""
    assert len(log.read_text("utf-8").splitlines()) == 1
    assert "\x1b" not in log.read_text("utf-8")


def test_letters_and_lone_surrogates_are_written_in_any_locale(tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from poca.runlog import RunLog;"
            r"sys.exit(RunLog(Path(sys.argv[1]), 1).write(0, 'Gro\xdfe T\xf6ne', '\u540d\udcff') != '')")
    subprocess.run([sys.executable, "-c", code, tmp_path / "poca.log"], check=True, env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"})
    assert (tmp_path / "poca.log").read_text("utf-8").endswith("Große Töne: 名\\udcff\n")


def test_the_log_is_private_and_grows(tmp_path: Path) -> None:
    log = tmp_path / "poca.log"
    before = os.umask(0)
    try:
        RunLog(log, 1).write(INSTANT, "", "one")
    finally:
        os.umask(before)
    assert log.stat().st_mode & 0o777 == 0o600
    log.chmod(0o640)
    assert RunLog(log, 1).write_all([(INSTANT, "", "two"), (INSTANT, "", "three")]) == ""
    assert [line.split()[-1] for line in log.read_text().splitlines()] == ["one", "two", "three"]
    assert log.stat().st_mode & 0o777 == 0o640


def test_without_a_log_nothing_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert RunLog(None, 1).write(INSTANT, "", "x") == ""
    assert RunLog(tmp_path / "poca.log", 1).write_all([]) == ""
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_several_processes_and_a_rotation_lose_and_split_nothing(tmp_path: Path) -> None:
    log, lines, writers = tmp_path / "poca.log", 200, 4
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(log), str(pid), str(lines)]) for pid in range(writers)]
    rotations = 0
    while any(writer.poll() is None for writer in running):
        if log.exists():
            log.rename(tmp_path / f"rotated.{rotations}")
            rotations += 1
        time.sleep(0.02)
    assert [writer.returncode for writer in running] == [0] * writers
    assert rotations > 1
    files = [*tmp_path.glob("rotated.*"), *([log] if log.exists() else [])]
    found = [line for file in files for line in file.read_text().splitlines()]
    matches = [re.fullmatch(r"2026-1[12]-\d\d \d\d:05:12 poca\[(\d)\] The Show: line (\d+) x{300}", line) for line in found]
    assert all(matches)
    assert sorted((int(m[1]), int(m[2])) for m in matches if m) == [(pid, number) for pid in range(writers) for number in range(lines)]


def test_a_log_that_cannot_be_written_sends_its_lines_to_stderr_and_says_why(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "poca.log").mkdir()
    failure = RunLog(tmp_path / "poca.log", 1).write(INSTANT, "Show", "downloaded x\udcff")
    assert failure == f"The log {tmp_path}/poca.log cannot be written: Is a directory."
    assert capfd.readouterr().err.endswith(" poca[1] Show: downloaded x\\udcff\n")
    failure = RunLog(tmp_path / "gone" / "poca.log", 1).write(INSTANT, "Show", "deleted y")
    assert failure.startswith(f"The log {tmp_path}/gone/poca.log cannot be written: ")
    assert "deleted y" in capfd.readouterr().err


def test_a_full_disk_leaves_whole_lines_only(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "poca.log"
    log.symlink_to("/dev/full")
    code = ("import resource, signal, sys; from pathlib import Path; from poca.runlog import RunLog; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
            "log = RunLog(Path(sys.argv[1]), 1); log.write(0, '', 'first'); resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60));"
            "print(log.write(0, '', 'second' * 20))")
    log.unlink()
    said = subprocess.run([sys.executable, "-c", code, log], check=True, capture_output=True, text=True)
    assert said.stdout == f"The log {log} cannot be written: File too large.\n"
    assert "secondsecond" in said.stderr
    assert [line.split()[-1] for line in log.read_text().splitlines()] == ["first"]


def test_a_pipe_that_nobody_reads_is_no_wait_without_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "poca.log")
    assert "cannot be written" in RunLog(tmp_path / "poca.log", 1).write(INSTANT, "", "x")
    assert capfd.readouterr().err.endswith("x\n")


def test_a_lock_that_another_keeps_sends_lines_to_stderr_and_is_waited_for_only_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = RunLog(tmp_path / "poca.log", 1)
    with log_lock(tmp_path / "poca.log"):
        first = time.monotonic()
        assert "kept locked by another program" in log.write(INSTANT, "", "one")
        then = time.monotonic()
        assert "kept locked" in log.write(INSTANT, "", "two")
        assert time.monotonic() - then < (then - first) / 2
    assert [line.split()[-1] for line in capfd.readouterr().err.splitlines()] == ["one", "two"]
    assert log.write(INSTANT, "", "three") == ""
    assert (tmp_path / "poca.log").read_text().endswith("three\n")


def test_a_closed_stderr_hurts_nobody(tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from poca.runlog import RunLog; sys.stderr.close(); log = RunLog(Path(sys.argv[1]), 1);"
            "a = log.write(0, '', 'x'); sys.stderr = None; print(a == log.write(0, '', 'y') != '')")
    said = subprocess.run([sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True)
    assert said.stdout == "True\n"
