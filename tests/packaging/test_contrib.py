"""What helps poca along on a machine: units of systemd, rotation of the log, a container."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.distributions import REPOSITORY, built, names
from tests.server import Reply, Server
from tests.world import LOG_LINE, Home, Show, ended, until

CONTRIB = REPOSITORY / "contrib"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not found:
        pytest.skip(f"{name} is not installed")
    return found


# ---------------------------------------------------------------------------------------------------------- systemd

@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has poca where pipx puts it."""
    program = tmp_path / ".local" / "bin" / "poca"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "LC_ALL": "C.UTF-8"}


def test_systemd_finds_no_fault_in_the_units(user: dict[str, str]) -> None:
    verify = [tool("systemd-analyze"), "verify", "--user", "--man=no"]
    checked = subprocess.run([*verify, CONTRIB / "poca.service", CONTRIB / "poca.timer"], env=user, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_a_fault_in_a_unit_would_be_found(user: dict[str, str]) -> None:
    text = (CONTRIB / "poca.service").read_text(encoding="utf-8")
    wrong = Path(user["HOME"]) / "poca.service"
    wrong.write_text(text.replace("NoNewPrivileges", "NoMorePrivileges"), encoding="utf-8")
    checked = subprocess.run([tool("systemd-analyze"), "verify", "--user", "--man=no", wrong], env=user, capture_output=True, text=True, check=False)
    assert "NoMorePrivileges" in checked.stderr


def test_the_service_lets_poca_write_anywhere_and_ask_the_network() -> None:
    text = (CONTRIB / "poca.service").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    walls = ("Protect", "ReadOnly", "Inaccessible", "PrivateTmp", "PrivateNetwork", "TemporaryFile")
    assert [name for name in settings if name.startswith(walls)] == []
    assert {"AF_INET", "AF_INET6", "AF_UNIX"} <= set(settings["RestrictAddressFamilies"].split())
    assert settings["SuccessExitStatus"].split() == ["1", "143"]       # 2, a fault of the config, is a failed unit


# -------------------------------------------------------------------------------------------------------- logrotate

def test_no_line_of_the_log_is_lost_while_it_is_rotated(tmp_path: Path, server: Server) -> None:
    logrotate = tool("logrotate")
    home = Home(tmp_path)
    shows = [Show(server, f"show{number}").publish(30) for number in range(4)]
    home.write(*(show.subscription() for show in shows))
    home.state.mkdir()
    rules = (CONTRIB / "logrotate.conf").read_text(encoding="utf-8")
    assert "~/.local/state/poca/poca.log" in rules
    rules = rules.replace("~/.local/state/poca/poca.log", str(home.log_path)).replace("rotate 12", "rotate 10000")
    (tmp_path / "logrotate.conf").write_text(rules, encoding="utf-8")
    (tmp_path / "logrotate.conf").chmod(0o644)
    command = [logrotate, "--force", "--state", str(tmp_path / "logrotate.state"), str(tmp_path / "logrotate.conf")]
    running = [home.start("-q", show.name.title()) for show in shows]
    rotations = 0
    while any(process.poll() is None for process in running):
        subprocess.run(command, check=True, capture_output=True)
        rotations += 1
    assert [ended(process).code for process in running] == [0, 0, 0, 0]
    parts = list(home.state.glob("poca.log*[!k]"))
    assert rotations > 2 and len(parts) > 2, "there was nothing to see"
    lines = [line for part in parts for line in opened(part).splitlines()]
    assert all(LOG_LINE.fullmatch(line) for line in lines)
    assert sorted(match[1] for line in lines if (match := re.search(r"(Show\d: downloaded \d+\.mp3)", line))) == sorted(
        f"{show.name.title()}: downloaded {number}.mp3" for show in shows for number in range(1, 31)
    )


def opened(part: Path) -> str:
    body = part.read_bytes()
    return (gzip.decompress(body) if part.suffix == ".gz" else body).decode()


# -------------------------------------------------------------------------------------------------------- container

CONTAINERFILE = (REPOSITORY / "Containerfile").read_text(encoding="utf-8")


def copied(target: Path) -> Path:
    """The folder /src as the steps of the Containerfile fill it."""
    for line in re.findall(r"^COPY (.+) (/src\S*)$", CONTAINERFILE, re.MULTILINE):
        sources, place = line[0].split(), target / line[1].lstrip("/")
        for source in sources:
            if (REPOSITORY / source).is_dir():
                shutil.copytree(REPOSITORY / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / source, place)
    return target / "src"


def test_what_the_container_copies_is_enough_for_the_whole_of_poca(tmp_path: Path, wheel: Path) -> None:
    assert "RUN pip install --no-cache-dir /src " in CONTAINERFILE
    built(copied(tmp_path), tmp_path / "dist", "--wheel")
    (made,) = (tmp_path / "dist").glob("*.whl")
    assert names(made) == names(wheel)


def test_the_container_is_not_root_and_its_home_leads_to_the_volumes() -> None:
    user = re.findall(r"^USER (.+)$", CONTAINERFILE, re.MULTILINE)
    assert user == ["poca"]
    env = dict(word.split("=", 1) for line in re.findall(r"^ENV (.+)$", CONTAINERFILE, re.MULTILINE) for word in line.split())
    volumes = re.findall(r'"(/\w+)"', next(iter(re.findall(r"^VOLUME (.+)$", CONTAINERFILE, re.MULTILINE))))
    assert {env["XDG_CONFIG_HOME"], env["XDG_STATE_HOME"], f"{env['HOME'].rstrip('/')}/podcasts"} == set(volumes)
    (made,) = re.findall(r"install --directory --owner=poca (.+)$", CONTAINERFILE, re.MULTILINE)
    assert set(made.split()) == set(volumes)


class Container:
    """The entry program in plain folders that stand for the container's, with the poca of this environment."""

    def __init__(self, folder: Path, show: Show) -> None:
        self.folder = folder
        config = folder / "config" / "poca" / "config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(
            f"settings:\n  base_dir: ~/podcasts\n  min_free_mb: 0\nsubscriptions:\n- title: Tones\n  url: {show.url}\n", encoding="utf-8"
        )
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"), "PYTHONUTF8": "1",
        }

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(CONTRIB / "container-entry"), *arguments], env={**self.env, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, encoding="utf-8",
        )

    def episodes(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("podcasts/Tones/*.mp3"))


def test_the_container_runs_poca_once_with_the_arguments_given(tmp_path: Path, server: Server) -> None:
    container = Container(tmp_path, Show(server, "tones").publish(2))
    tried = ended(container.start("--dry-run"))
    assert (tried.code, tried.err, container.episodes()) == (0, "", [])
    assert "Tones/2.mp3" in tried.out
    done = ended(container.start())
    assert (done.code, done.err, container.episodes()) == (0, "", ["1.mp3", "2.mp3"])
    assert (tmp_path / "state" / "poca" / "poca.db").exists()


def test_the_container_runs_poca_again_and_again_until_it_is_told_to_stop(tmp_path: Path, server: Server) -> None:
    show = Show(server, "tones").publish(1)
    container = Container(tmp_path, show)
    process = container.start(POCA_EVERY="1")
    until(lambda: container.episodes() == ["1.mp3"])
    show.publish(1)
    until(lambda: container.episodes() == ["1.mp3", "2.mp3"])
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert ended(process, 20).code == 143
    assert time.monotonic() - began < 10


def test_the_container_stops_poca_amid_a_download_and_goes_on_next_time(tmp_path: Path, server: Server) -> None:
    show = Show(server, "tones", frames=2000).publish(1)
    whole = server.routes["/tones/1.mp3"]
    assert isinstance(whole, Reply)
    server.routes["/tones/1.mp3"] = replace(whole, stall=400_000)
    container = Container(tmp_path, show)
    process = container.start(POCA_EVERY="60")
    until(lambda: any(part.stat().st_size for part in tmp_path.glob("podcasts/Tones/.poca-*.part")))
    process.send_signal(signal.SIGTERM)
    assert ended(process, 20).code == 143
    assert list(tmp_path.glob("podcasts/Tones/.poca-*.part")), "poca itself was not stopped, but killed with its part"
    server.routes["/tones/1.mp3"] = whole
    assert ended(container.start()).code == 0
    assert container.episodes() == ["1.mp3"]


@pytest.mark.parametrize("every", ["soon", "0", "1.5", "-3"])
def test_a_pause_that_is_no_number_of_seconds_is_told(tmp_path: Path, server: Server, every: str) -> None:
    done = ended(Container(tmp_path, Show(server, "tones")).start(POCA_EVERY=every))
    assert (done.code, done.out, done.err) == (2, "", f"POCA_EVERY is '{every}', but must be a number of seconds\n")
