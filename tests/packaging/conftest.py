"""The distributions, built once for all tests, without the internet."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from tests.distributions import REPOSITORY, built, in_new_environment

LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent       # of all workers of pytest-xdist
    folder = shared / "distributions"
    with FileLock(shared / "distributions.lock"):
        if not folder.exists():
            source = tmp_path_factory.mktemp("tree") / "poca"
            shutil.copytree(REPOSITORY, source, ignore=LEFT_OUT)
            built(source, folder)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (made,) = distributions.glob("*.whl")
    return made


@pytest.fixture
def installed(tmp_path: Path, wheel: Path) -> Path:
    """An environment with the wheel in it. The libraries that poca needs are those of this environment."""
    return in_new_environment(tmp_path / "venv", wheel)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in a clean folder, with a clean home."""
    home = tmp_path / "home"
    home.mkdir()

    def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "TZ": "UTC", **env}
        return subprocess.run(
            list(map(str, command)), cwd=home, env=environment, capture_output=True, text=True, encoding="utf-8", check=False, timeout=120,
            stdin=subprocess.DEVNULL,
        )

    return run
