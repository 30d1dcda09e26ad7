"""Killed at any instant, poca loses nothing: see tests/kill.py."""

from __future__ import annotations

import os

import pytest

from tests import kill

ROUNDS = int(os.environ.get("POCA_KILL_ROUNDS") or 40)


@pytest.mark.parametrize("part", range(2))      # so that two processes can play them
def test_a_killed_run_loses_doubles_and_halves_nothing(part: int) -> None:
    tally = kill.play(ROUNDS // 2, seed=20 + part, memory=bool(part))
    assert tally.rounds == ROUNDS // 2
    assert tally.hits >= tally.rounds // 2, "too few kills met a run to mean anything"
