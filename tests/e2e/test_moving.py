"""Moving from another program: the README's commands, run on files as those programs keep them."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.server import Server
from tests.world import POCA, Home, Show

README = (Path(__file__).parents[2] / "README.rst").read_text(encoding="utf-8")
SECTION = README.partition("Moving from another program\n")[2].partition("\nQuestions\n---")[0]

LISTS = {
    "podget": (".podget/serverlist", "# a comment\n{alpha} news The Alpha Hour\n{beta} music Beta\n"),
    "castget": (".castgetrc", "[*]\nspool=/home/jane/podcasts\n\n[alpha]\nurl={alpha}\n[beta]\nurl = {beta}\n"),
    "podcast-archiver": ("config.yaml", "archive_directory: /home/jane/archive\nfeeds:\n  - {alpha}\n- {beta}\n"),
}


def commands(program: str) -> str:
    """The block of commands for a program."""
    part = re.split(rf"^{program}\b.*$", SECTION, flags=re.MULTILINE)[1]
    block = part.partition("::\n\n")[2]
    lines = []
    for line in block.splitlines():
        if line and not line.startswith("        "):
            break
        lines.append(line.strip())
    return "\n".join(lines)


@pytest.mark.parametrize("program", LISTS)
def test_the_list_of_another_program_becomes_subscriptions(home: Home, server: Server, program: str) -> None:
    alpha, beta = Show(server, "alpha").publish(3), Show(server, "beta").publish(3)
    name, text = LISTS[program]
    path = Path(home.env["HOME"], name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.format(alpha=alpha.url, beta=beta.url), encoding="utf-8")
    env = {**home.env, "PATH": f"{POCA.parent}:{home.env['PATH']}"}
    done = subprocess.run(["bash", "-c", commands(program)], env=env, cwd=home.env["HOME"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    listed = subprocess.run(["poca-subscribe", "list"], env=env, capture_output=True, text=True, check=True).stdout
    assert alpha.url in listed and beta.url in listed
    assert ("The Alpha Hour" in listed and "music" in listed) is (program == "podget")


def test_files_under_the_names_of_podcast_archiver_are_adopted(home: Home, server: Server) -> None:
    template = re.search(r"``rename: '(.+?)'``", SECTION)
    assert template
    show = Show(server, "show").publish(3)
    (home.base / "Show").mkdir(parents=True)
    for item in show.items[:2]:
        day = time.strftime("%Y-%m-%d", time.gmtime(item.published))
        (home.base / "Show" / f"{day} - {item.title}.mp3").write_bytes(item.body)
    home.write(show.subscription(rename=template[1]))
    assert "2 adopted" in home.run("--dry-run").out
    assert "2 adopted" in home.run().out
    assert show.asked() == ["/show/3.mp3"] and len(home.files()) == 3


def test_where_names_do_not_fit_what_is_there_is_marked_and_only_the_new_comes(home: Home, server: Server) -> None:
    show = Show(server, "show").publish(3)
    home.write(show.subscription("The Example Hour"))
    (command,) = re.findall(r"^    poca-subscribe (mark .+)$", SECTION, flags=re.MULTILINE)
    done = subprocess.run(
        ["bash", "-c", f"{POCA}-subscribe --config {home.config} {command}"], env=home.env, capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done
    assert home.run().code == 0 and home.files() == {}
    show.publish()
    assert home.run().code == 0 and list(home.files()) == ["The Example Hour/4.mp3"]
