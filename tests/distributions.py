"""poca built, and installed into environments of its own, without the internet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).parents[1]


def built(source: Path, target: Path, *options: str) -> None:
    """`python -m build` with the tools that are here."""
    for module in ("build", "docutils", "setuptools"):
        pytest.importorskip(module, reason="the extra 'release' is not installed")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def in_new_environment(folder: Path, wheel: Path) -> Path:
    """An environment with the wheel in it. The libraries that poca needs are those of this environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-cache-dir", str(wheel)], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    # What is in a file of paths is searched last, and files of paths there are not read: so the poca there is not found.
    (packages / "libraries.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")), encoding="utf-8")
    return folder


def names(wheel: Path) -> set[str]:
    """What is in a wheel, but for what wheels have of themselves."""
    with ZipFile(wheel) as content:
        return {name for name in content.namelist() if ".dist-info/" not in name}
