"""A share of ``make fuzz`` in each run of the tests."""

from __future__ import annotations

from tests.fuzz import fuzz


def test_damaged_feeds_are_read_or_refused_and_planned_within_the_rules() -> None:
    outcomes, breaches, _, _ = fuzz(5_000, seed=2026)
    assert breaches == []
    assert {"refused", "cut off", "mended", "read"} == set(outcomes), outcomes
