"""No server costs more than 150 MB or twelve times ``timeout``, with the limits that poca has by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import hostile


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process cannot be measured here")
def test_no_server_costs_much_memory_or_time() -> None:
    costs = list(hostile.measured())
    assert len(costs) > 40
    assert [cost for cost in costs if cost.megabytes > 150] == []
    assert [cost for cost in costs if cost.seconds > 12 * cost.timeout + 1] == []       # the machine may be busy
    assert min(cost.megabytes for cost in costs) > 10, "nothing was measured"
