"""What is installed: the wheel and the source distribution, what they hold and tell, and that they work from anywhere."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

import poca
from poca.options import PROJECT_URL
from tests.distributions import names
from tests.server import Server
from tests.world import Show

PACKAGE = Path(poca.__file__).parent
PAGES = ["share/man/man1/poca-subscribe.1", "share/man/man1/poca.1", "share/man/man5/poca.yaml.5"]
Run = Callable[..., subprocess.CompletedProcess[str]]


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as content:
        (name,) = (name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(content.read(name).decode())


def test_the_wheel_holds_poca_the_man_pages_and_nothing_else(wheel: Path) -> None:
    modules = {f"poca/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.rglob("*.py")}
    pages = {f"poca-{poca.__version__}.data/data/{page}" for page in PAGES}
    assert names(wheel) == modules | pages | {"poca/py.typed", "poca/config.schema.json", "poca/events.schema.json"}


def test_the_source_distribution_holds_what_one_needs_to_go_on(distributions: Path) -> None:
    (made,) = distributions.glob("*.tar.gz")
    with tarfile.open(made) as content:
        held = {name.partition("/")[2] for name in content.getnames()}
    wanted = {
        "CHANGES.rst", "LICENSE", "README.rst", "Containerfile", "Makefile", "sample_config.yaml", "bin/poca", "contrib/poca.service",
        "docs/config.rst", "docs/man/poca.1.rst", "docs/man/pages.py", "tests/conftest.py", "tests/packaging/conftest.py", "poca/config.schema.json",
    }
    assert wanted - held == set()
    assert [name for name in held if "__pycache__" in name or name.startswith((".venv", "build/"))] == []


def test_an_index_would_take_them(distributions: Path) -> None:
    pytest.importorskip("twine", reason="the extra 'release' is not installed")
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, distributions.iterdir())], capture_output=True, text=True, check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("PASSED") == 2


def test_the_metadata_tell_who_may_use_it_and_where_it_is_from(wheel: Path) -> None:
    told = metadata(wheel)
    assert (told["Name"], told["Version"]) == ("poca", poca.__version__)
    assert (told["License-Expression"], told["License-File"]) == ("MIT", "LICENSE")
    assert told["Home-page"] == PROJECT_URL
    assert all(url.split(", ")[1].startswith(PROJECT_URL) for url in told.get_all("Project-URL", []))
    versions = {text.rpartition(" :: ")[2] for text in told.get_all("Classifier", []) if re.search(r":: 3\.\d+$", text)}
    assert min(versions) == told["Requires-Python"].removeprefix(">=") == "3.11"


def test_the_libraries_that_are_required_are_those_that_are_imported(wheel: Path) -> None:
    """The names of distributions and of modules are the same here, but for PyYAML's."""
    required = {re.split(r"[^\w-]", line)[0].lower(): line for line in metadata(wheel).get_all("Requires-Dist", []) if "extra ==" not in line}
    imported = {"mutagen"}          # by a name that is put together, which is not seen below
    for module in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    libraries = imported - set(sys.stdlib_module_names) - {"poca", "shtab"}         # shtab is optional
    assert {"pyyaml" if name == "yaml" else name for name in libraries} == set(required)
    # These two have been corrected, or have changed, in ways that only hold for one great version.
    assert "<7" in required["feedparser"]
    assert "<5" in required["filelock"]


def test_both_programs_start_anywhere_and_bring_an_episode(installed: Path, run: Run, tmp_path: Path) -> None:
    for program in ("poca", "poca-subscribe"):
        told = run(installed / "bin" / program, "--version")
        assert (told.returncode, told.stdout, told.stderr) == (0, f"{program} {poca.__version__}\n", "")
    where = run(installed / "bin" / "python", "-c", "import poca, pathlib; print(pathlib.Path(poca.__file__).parent)").stdout.strip()
    assert Path(where).is_relative_to(installed)
    assert (Path(where) / "config.schema.json").read_bytes() == (PACKAGE / "config.schema.json").read_bytes()
    with Server() as server:
        show = Show(server, "tones").publish(1)
        config = tmp_path / "home" / ".config" / "poca" / "config.yaml"
        config.parent.mkdir(parents=True)
        text = f"settings:\n  base_dir: ~/podcasts\n  min_free_mb: 0\nsubscriptions:\n- title: Tones\n  url: {show.url}\n"
        config.write_text(text, encoding="utf-8")
        done = run(installed / "bin" / "poca")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "home" / "podcasts" / "Tones" / "1.mp3").read_bytes() == show.items[0].body


def test_the_man_pages_are_where_man_looks_for_them(installed: Path) -> None:
    assert sorted(str(page.relative_to(installed)) for page in installed.glob("share/man/*/*")) == PAGES
