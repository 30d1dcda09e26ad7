from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import Server
from tests.world import Home


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
