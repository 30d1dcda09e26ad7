from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from poca.errors import Interrupted
from poca.interrupts import held, interruptible
from poca.startup import interrupted_silently
from poca.state import State

NOW = 1_700_000_000


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_raises_at_once(number: int, code: int) -> None:
    reached = False
    with pytest.raises(Interrupted) as raised, interruptible():
        os.kill(os.getpid(), number)
        reached = True
    assert raised.value.code == code and not reached


def test_a_second_signal_does_not_disturb_the_end() -> None:
    ended = False
    with interruptible():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except Interrupted:
            os.kill(os.getpid(), signal.SIGTERM)
            ended = True
    assert ended


def test_a_signal_that_a_finalizer_swallowed_is_not_lost_nor_told_as_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    class LetGo:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            later.append("not reached")

    later: list[str] = []
    with pytest.raises(Interrupted) as raised, interruptible():
        LetGo()
        assert not later, "the signal was not swallowed: there is nothing to see"
        time.sleep(30)
        later.append("hung")
    assert raised.value.code == 143 and not later and capsys.readouterr() == ("", "")


def test_once_it_is_caught_it_is_not_raised_again_while_the_run_comes_to_its_end() -> None:
    steps = []
    with interruptible():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except Interrupted:
            try:
                time.sleep(0.4)
                raise ValueError
            except ValueError:
                time.sleep(0.4)
                steps.append("the end")
    assert steps == ["the end"]


def test_where_it_is_held_back_it_raises_afterwards() -> None:
    steps = []
    with pytest.raises(Interrupted) as raised, interruptible():
        with held:
            with held:
                os.kill(os.getpid(), signal.SIGTERM)
                steps.append("inner")
            steps.append("outer")
        steps.append("after")
    assert steps == ["inner", "outer"] and raised.value.code == 143
    with held:
        pass        # told once


def test_the_handlers_of_before_are_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interruptible():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_ctrl_c_before_anything_is_begun_ends_poca_without_a_word() -> None:
    code = "import os, signal; from poca.startup import interrupted_silently\nwith interrupted_silently(): os.kill(os.getpid(), signal.SIGINT)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_after_that_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupted_silently():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before is signal.default_int_handler


@pytest.mark.parametrize("block", [interrupted_silently, interruptible])
def test_a_signal_that_the_caller_has_ignored_stays_ignored(block: Callable[[], AbstractContextManager[None]]) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with block():
            os.kill(os.getpid(), signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_within_a_commit_lets_it_be_written_and_more_can_be_written_at_the_end(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "before"
        os.kill(os.getpid(), signal.SIGINT)
        yield "after"

    state = State.open(tmp_path, NOW)
    with interruptible():
        with pytest.raises(Interrupted):
            state.keep_for_mail(lines())
        state.keep_for_mail(["at the end"])
    assert [line for _, line in state.mail_entries()] == ["before", "after", "at the end"]
    state.close()
