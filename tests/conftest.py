"""What all tests share: how long Hypothesis searches, and that nobody's real home is used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# POCA_EXAMPLES=2000 searches longer; a test that names its own number keeps it.
EXAMPLES = int(os.environ.get("POCA_EXAMPLES") or (50 if "CI" in os.environ else 100))
settings.register_profile("poca", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("poca")

HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


@pytest.fixture(scope="session", autouse=True)
def no_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For every test, and each program that it starts, the home is below a file: whoever makes anything in it gets an
    error. A test that needs a home sets one."""
    wall = tmp_path_factory.mktemp("home") / "no-home"
    wall.write_text("No test may use the home of whoever runs it.\n", encoding="ascii")
    with pytest.MonkeyPatch.context() as patch:
        for name in HOMES:
            patch.setenv(name, str(wall / name.lower()))
        # Nor the settings that a person has for the network.
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "NETRC", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            patch.delenv(name, raising=False)
            patch.delenv(name.upper(), raising=False)
        yield wall
