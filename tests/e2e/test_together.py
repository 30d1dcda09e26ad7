"""Several pocas at once get on with each other: see tests/together.py."""

from __future__ import annotations

from tests import together


def test_four_pocas_at_once_do_everything_once_and_log_it_whole() -> None:
    tally = together.play(3, seed=5)
    assert tally.rounds == 3
    assert tally.dropped > 0, "they never met"
