"""Without any network: the installed program in a network of its own, in which there is nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.world import POCA, Home

NAMESPACE = ["unshare", "--net", "--mount"]
# A name service that takes every question and answers none.
SILENT_NAME_SERVICE = """\
import socket, subprocess, sys
resolv, *command = sys.argv[1:]
open(resolv, "w").write("nameserver 127.0.0.1\\n")
subprocess.run(["mount", "--bind", resolv, "/etc/resolv.conf"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as service:
    service.bind(("127.0.0.1", 53))
    done = subprocess.run(command)
sys.exit(done.returncode)
"""


def run(home: Home, *command: str | Path) -> tuple[int, str, str, float]:
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        pytest.skip("a network of one's own cannot be made here")
    began = time.monotonic()
    done = subprocess.run([*NAMESPACE, *command], env=home.env, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - began


def feeds(home: Home, count: int, timeout: float, host: str = "show{}.example.org") -> None:
    home.write(*({"title": f"Show {n}", "url": f"https://{host.format(n)}/feed?token=s3cret"} for n in range(count)), settings={"timeout": timeout})


@pytest.mark.parametrize("host", ["show{}.example.org", "192.0.2.{}"])
def test_without_a_network_one_line_says_so_in_little_time(home: Home, host: str) -> None:
    feeds(home, 200, 4, host)
    for _ in range(2):
        code, out, err, seconds = run(home, POCA, "--config", home.config)
        assert (code, out.count("\n") <= 1) == (1, True), (out, err)
        assert [line for line in err.splitlines() if "network" in line] == err.splitlines()[-1:], err
        assert "none of the 200 feeds" in err and "s3cret" not in out + err
        assert seconds < 15
    assert all(history.failures == 0 for history in home.histories().values())


def test_a_name_service_that_answers_nobody_costs_no_time_for_each_feed(home: Home, tmp_path: Path) -> None:
    seconds = {}
    for count in (20, 200):
        feeds(home, count, 2)
        poca = (POCA, "-q", "--config", home.config)
        code, _, err, seconds[count] = run(home, sys.executable, "-c", SILENT_NAME_SERVICE, tmp_path / "resolv.conf", *poca)
        if "mount" in err or "ip:" in err or "Errno" in err:
            pytest.skip("a name service of one's own cannot be set up here")
        assert code == 1 and err.count("no network") == 1
    assert seconds[200] < seconds[20] + 10
