"""The man pages: built without a warning, and true to the command lines and the table of options."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from poca import __version__, app, options
from poca.subscribe import commandline

REPOSITORY = Path(__file__).parents[2]
NAMES = ["poca-subscribe.1", "poca.1", "poca.yaml.5"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    script = REPOSITORY / "docs" / "man" / "pages.py"
    built = subprocess.run([sys.executable, str(script), str(folder)], capture_output=True, text=True, check=False, cwd="/")
    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    return folder


def shown(page: Path) -> str:
    """What a reader sees of a page, each run of white space a blank."""
    if not (shutil.which("man") and shutil.which("groff")):
        pytest.skip("man and groff are not installed")
    made = subprocess.run(
        ["man", "--warnings", "--local-file", str(page)], capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "1000", "MAN_KEEP_FORMATTING": "", "MANROFFOPT": "-c"},
    )
    assert made.stderr == ""
    return " ".join(re.sub(r".\x08", "", made.stdout).split())


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_the_program_its_section_and_its_version(pages: Path, name: str) -> None:
    assert sorted(page.name for page in pages.iterdir()) == NAMES
    title, section = name.rsplit(".", 1)
    text = shown(pages / name)
    assert text.startswith(f"{title}({section}) poca {title}({section})")
    assert f"{title} - " in text
    assert __version__ in text


@pytest.mark.parametrize(("name", "help_text"), [("poca.1", app.parser().format_help()), ("poca-subscribe.1", commandline.parser().format_help())])
def test_each_option_of_the_command_line_is_in_its_page(pages: Path, name: str, help_text: str) -> None:
    text = shown(pages / name)
    told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", help_text.partition("options:")[2]))
    assert {option for option in told if f" {option} " not in text and f" {option}, " not in text} == set()


def test_each_command_is_there_with_its_description_and_its_example(pages: Path) -> None:
    text = shown(pages / "poca-subscribe.1")
    for name, (_, _, _, description, example) in commandline.COMMANDS.items():
        assert f" {name} poca-subscribe {name} [-h]" in text
        assert " ".join(description.replace("`", "").split()) in text
        assert example in text
    assert " titles poca-subscribe" not in text         # which is for completion only


def test_each_option_of_the_config_is_in_poca_yaml_with_what_it_takes_and_means(pages: Path) -> None:
    text = shown(pages / "poca.yaml.5").lower()
    for option in options.OPTIONS:
        assert f" {option.name}: {option.type.allowed}".lower() in text
        assert option.meaning.replace("`", "").lower() in text
