from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import Server
from tests.subscribing import Desk


@pytest.fixture
def web() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
