"""Four pocas at once on one config: nothing is done twice, nothing is left out, and the log has every line whole.

    make together ROUNDS=25     or: python -m tests.together --rounds 25 --seed 7

A round: the feeds grow, four pocas are started together, and the log is moved away while they run, as logrotate does it.
Each tells by --json what it did; that is compared with the log line by line, and with the server's own records.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from poca.model import Fate, Stage
from tests.server import Reply, Server
from tests.world import LOG_LINE, Home, Item, Show, ended, names

PROCESSES, SHOWS, NEWEST = 4, 8, 3


class Fault(AssertionError):
    """Something that must never be."""


@dataclass
class Tally:
    rounds: int = 0
    downloaded: int = 0
    removed: int = 0
    lines: int = 0
    dropped: int = 0            # plans that another poca had made stale, or whose subscription was busy
    moved: int = 0              # times that the log was moved away


def media(item: Item) -> Reply:
    return Reply(body=item.body, type="audio/mpeg", etag='"1"', ranges=True, delay=0.02)


class Trial:
    def __init__(self, folder: Path, server: Server, chance: random.Random) -> None:
        self.home, self.server, self.chance, self.tally = Home(folder), server, chance, Tally()
        self.shows = [Show(server, f"show{number}", frames=40, media=media) for number in range(SHOWS)]
        self.logs: list[Path] = []
        self.read = 0           # lines of the moved logs that were compared already

    def round(self) -> None:
        grown = {show.name: self.chance.choice([0, 1, 1, 2]) if show.items else NEWEST for show in self.shows}
        for show in self.shows:
            show.publish(grown[show.name])
        self.home.write(*(show.subscription(max_number=NEWEST) for show in self.shows), settings={"per_host": 16})
        processes = []
        for _ in range(PROCESSES):
            processes.append(self.home.start("--json"))
            time.sleep(self.chance.random() * 0.1)
        while any(process.poll() is None for process in processes):
            time.sleep(self.chance.random() * 0.1)
            if self.home.log_path.exists():
                self.logs.append(self.home.log_path.rename(self.home.folder / f"log.{len(self.logs)}"))
        told: Counter[tuple[int, str]] = Counter()
        for process in processes:
            done = ended(process)
            if done.code or done.err:
                raise Fault(f"exit {done.code}: {done.err}{done.out[-500:]}")
            for event in done.events:
                self.tally.dropped += event["event"] in ("stale", "busy")
                if event["level"] != "detail" and event["event"] != "done":
                    told[process.pid, f"{event['subscription']}: {event['text']}"] += 1
        self.tally.rounds += 1
        self.look(told, grown)

    def look(self, told: Counter[tuple[int, str]], grown: dict[str, int]) -> None:
        lines = self.log_lines()
        if lines != told:
            raise Fault(f"told and not logged: {told - lines}; logged and not told: {lines - told}")
        for word, count in (("downloaded", sum(grown.values())), ("removed", sum(grown.values()) if self.tally.rounds > 1 else 0)):
            done = Counter(text for _, text in lines.elements() if f": {word} " in text)
            if len(done) != count or any(number > 1 for number in done.values()):
                raise Fault(f"to be {word}: {count} episodes, but it says {done}")
        if twice := [path for show in self.shows for path, count in Counter(show.asked()).items() if count > 1]:
            raise Fault(f"downloaded more than once: {twice}")
        if sorted(self.home.files()) != names(self.shows, NEWEST) or self.home.hidden():
            raise Fault(f"on disk are {sorted(self.home.files())} and {self.home.hidden()}")
        for title, history in self.home.histories().items():
            held = {episode.path for episode in history.episodes if episode.fate is Fate.HELD and episode.stage is Stage.NONE}
            if held != {name for name in self.home.files() if name.startswith(f"{title}/")}:
                raise Fault(f"{title}: the history holds {held}")
            if odd := [episode.title for episode in history.episodes if episode.fate not in (Fate.HELD, Fate.REMOVED)]:
                raise Fault(f"{title}: neither held nor removed by poca: {odd}")
        self.tally.downloaded += sum(grown.values())
        self.tally.lines += sum(lines.values())
        self.tally.moved = len(self.logs)

    def log_lines(self) -> Counter[tuple[int, str]]:
        """The lines that this round has added, by process and text, in whatever file they are now."""
        text = "".join(path.read_text(encoding="utf-8") for path in [*self.logs, self.home.log_path] if path.exists())
        if text and not text.endswith("\n"):
            raise Fault("the log ends within a line")
        new, self.read = text.splitlines()[self.read :], text.count("\n")
        found: Counter[tuple[int, str]] = Counter()
        for line in new:
            match = LOG_LINE.fullmatch(line)
            if not match:
                raise Fault(f"a torn line in the log: {line}")
            found[int(match[1]), match[2]] += 1
        return found


def play(rounds: int, seed: int) -> Tally:
    """Raises Fault, with the round it happened in."""
    with Server() as server, tempfile.TemporaryDirectory(prefix="poca-together-") as folder:
        trial = Trial(Path(folder), server, random.Random(seed))
        for number in range(rounds):
            try:
                trial.round()
            except Fault as fault:
                raise Fault(f"round {number + 1}, seed {seed}: {fault}") from None
        return trial.tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.together")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    began = time.monotonic()
    try:
        tally = play(arguments.rounds, arguments.seed)
    except Fault as fault:
        print(f"FAULT: {fault}", file=sys.stderr)
        return 1
    print(f"{tally.rounds} rounds of {PROCESSES} pocas in {time.monotonic() - began:.0f} s: {tally.downloaded} episodes downloaded once each, "
          f"{tally.dropped} plans left to another, {tally.lines} log lines whole, the log moved away {tally.moved} times, seed {arguments.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
