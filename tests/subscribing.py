"""A home in which both programs are run within the test's own process: as fast as a call, and just as real."""

from __future__ import annotations

import contextlib
import io
import json
import time
from pathlib import Path
from typing import Any

import yaml

from poca import app, subscribe
from poca.state import State
from tests.world import Done, Home, Show


class Stream(io.TextIOWrapper):
    """A pipe in memory, with an encoding as stdout has one."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)     # type: ignore[attr-defined]


class Desk(Home):
    """A home with a config, and what is done in it by name."""

    def call(self, main: Any, *arguments: str, encoding: str = "utf-8") -> Done:
        out, err = Stream(encoding), Stream(encoding)
        began = time.monotonic()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(["-c", str(self.config), *arguments])
            except SystemExit as end:       # argparse
                code = end.code if isinstance(end.code, int) else 2
        done = Done(code, out.text(), err.text(), time.monotonic() - began)
        assert "Traceback" not in done.out + done.err, done
        assert "fault of poca itself" not in done.out + done.err, (done, self.log())
        return done

    def subscribe(self, *arguments: str, encoding: str = "utf-8") -> Done:
        return self.call(subscribe.main, *arguments, encoding=encoding)

    def poca(self, *arguments: str) -> Done:
        return self.call(app.main, *arguments)

    def good(self, *arguments: str) -> str:
        """The output of a command of poca-subscribe that must succeed, and complain about nothing."""
        done = self.subscribe(*arguments)
        assert (done.code, done.err) == (0, ""), done
        return done.out

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.good(*arguments, "--json").splitlines()]

    @property
    def subscriptions(self) -> list[dict[str, Any]]:
        """As the config has them now."""
        return yaml.safe_load(self.config.read_text(encoding="utf-8"))["subscriptions"] or []

    def state_open(self) -> State:
        return State.open(self.state, int(time.time()))

    def verdicts(self, title: str) -> dict[str, str]:
        """What `why` says of each episode."""
        return {line["episode"]: line["rule"] for line in self.json("why", title)}


def names(folder: Path) -> list[str]:
    """What is visible in a folder."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


__all__ = ["Desk", "Show", "names"]
