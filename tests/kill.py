"""Kills poca at random instants, lets it go on, and looks for anything lost, doubled, half or forgotten.

    make kill ROUNDS=200        or: python -m tests.kill --rounds 200 --seed 7

A round: the feeds grow, the listener deletes something, a subscription gets another title now and then; poca is started
and killed (by SIGKILL, now and then by SIGTERM); then it runs to its end. What there has to be then is known from what was
published and what the listener deleted, and is compared with the disk, with the history and with the server's own records.

The choices are seeded; the instants are as exact as the machine keeps them.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, SIGTERM

from poca.errors import StateError
from poca.model import Fate, Stage
from tests.server import Answer, Raw, Reply, Request, Server
from tests.world import Home, Item, Show, ended

ROUNDS_A_HOME = 20          # then everything begins anew: the first run of a history can be killed, too
CHUNKS = 10                 # of a dripping download


class Loss(AssertionError):
    """Something that must never be."""


@dataclass
class Listener:
    """A subscription, and what there has to be of it."""

    show: Show
    title: str
    max_number: int
    from_the_top: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)      # titles of episodes, by the user
    renamed: int = 0

    def subscription(self) -> dict[str, object]:
        options = {"from_the_top": True} if self.from_the_top else {}
        return self.show.subscription(self.title, max_number=self.max_number, **options, **({"metadata": self.metadata} if self.metadata else {}))

    def should_hold(self) -> list[Item]:
        """By the contract: the oldest that are not deleted, or of the newest those that are not deleted."""
        if self.from_the_top:
            return [item for item in self.show.items if item.title not in self.deleted][: self.max_number]
        return [item for item in self.show.items[-self.max_number :] if item.title not in self.deleted]


@dataclass
class Tally:
    rounds: int = 0
    hits: int = 0               # kills that met a run before its end
    resumed: int = 0            # downloads that went on where a killed run had left them
    stages: Counter[str] = field(default_factory=Counter)      # of episodes, as the killed runs left them in the history


def dripping(item: Item, pause: float, etag: str) -> Reply | Raw:
    """An episode that takes its time; with an ETag it can be resumed."""
    def answer(request: Request) -> Answer:
        asked = request.headers.get("range", "") if etag and request.headers.get("if-range", etag) == etag else ""
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        if asked and start >= len(item.body):
            return Reply(416, headers={"Content-Range": f"bytes */{len(item.body)}"})
        rest = item.body[start:]
        lines = [f"HTTP/1.1 {'206' if asked else '200'} So it is", f"Content-Length: {len(rest)}", "Content-Type: audio/mpeg", "Connection: close"]
        lines += [f"ETag: {etag}"] * bool(etag) + [f"Content-Range: bytes {start}-{len(item.body) - 1}/{len(item.body)}"] * bool(asked)

        def steps() -> Iterator[bytes | float]:
            yield "\r\n".join([*lines, "", ""]).encode()
            size = max(1, len(item.body) // CHUNKS)
            for at in range(0, len(rest), size):
                yield rest[at : at + size]
                yield pause

        return Raw(steps())

    return answer


class Trial:
    """One home and its shows, over some rounds."""

    def __init__(self, server: Server, folder: Path, chance: random.Random, number: int, tally: Tally) -> None:
        self.server, self.chance, self.tally = server, chance, tally
        self.home = Home(folder)
        self.span = 0.5             # seconds from the first request of a run to its end, as measured
        self.start = 0.3            # seconds from the start of a run to its first request
        self.held: dict[str, int] = {}      # media path -> requests for it when the history first held it
        self.listeners = [
            Listener(self.show(f"plain{number}"), "Plain", 3),
            Listener(self.show(f"slow{number}"), "Slow", 2),
            Listener(self.show(f"tagged{number}"), "Tagged", 3, metadata={"artist": "Jane"}),
            Listener(self.show(f"serial{number}"), "Serial", 2, from_the_top=True),
        ]

    def show(self, name: str) -> Show:
        def media(item: Item) -> object:
            if not name.startswith("slow") and self.chance.random() < 0.6:
                return Reply(body=item.body, type="audio/mpeg", etag='"whole"', ranges=True)
            return dripping(item, self.chance.uniform(0.001, 0.01), self.chance.choice(['"strong"', '"strong"', 'W/"weak"', ""]))

        return Show(self.server, name, frames=self.chance.randint(20, 400), media=media, window=0 if name.startswith("serial") else 8)

    # ---------------------------------------------------------------------------------------------------- one round

    def round(self) -> None:
        for listener in self.listeners:
            listener.show.publish(self.chance.choice([0, 0, 1, 1, 2]) if listener.show.items else self.chance.randint(1, 4))
            self.delete_something(listener)
            if self.chance.random() < 0.08:
                listener.renamed += 1
                listener.title = f"{listener.title.split()[0]} {listener.renamed}"
        self.home.write(*(listener.subscription() for listener in self.listeners))
        self.tally.rounds += 1
        self.killed_run()
        self.look_at_files()
        self.run_to_the_end()
        self.look_at_everything()

    def delete_something(self, listener: Listener) -> None:
        there = [item for item in listener.should_hold() if (self.home.base / self.path(listener, item)).exists()]
        if there and self.chance.random() < 0.25:
            item = self.chance.choice(there)
            (self.home.base / self.path(listener, item)).unlink()
            listener.deleted.add(item.title)

    def path(self, listener: Listener, item: Item) -> str:
        return f"{listener.title}/{item.path.rpartition('/')[2]}"

    def killed_run(self) -> None:
        """Starts poca and kills it: some time after its start, or after its first request, or as soon as a name in
        base_dir has come or gone, which is when the history and the disk are apart."""
        before, names = len(self.server.requests), self.names()
        process = self.home.start()
        kind, share = self.chance.choice("srrnnn"), self.chance.random()
        wait = self.chance.randint(1, 4)            # the how many-th change of names
        if kind == "s":
            self.sleep(process, share * (self.start + self.span))
        else:
            began = time.monotonic()
            while process.poll() is None and len(self.server.requests) == before:
                time.sleep(0.001)
            self.start, began = 0.7 * self.start + 0.3 * (time.monotonic() - began), time.monotonic()
            if kind == "r":
                self.sleep(process, share * self.span)
            else:
                while process.poll() is None and wait:
                    time.sleep(0.0005)
                    if (now := self.names()) != names:
                        names, wait = now, wait - 1
                self.sleep(process, share * 0.012)
        hit = process.poll() is None
        politely = self.chance.random() < 0.25
        process.send_signal(SIGTERM if politely else SIGKILL)
        done = ended(process, 20)
        # SIGTERM is the system's to carry out before poca listens to it, and when it listens no more.
        if done.code not in ((143, -SIGTERM, 0) if politely else (-SIGKILL, 0)):
            raise Loss(f"killed, it ends with {done.code}: {done.out}{done.err}")
        if hit:
            self.tally.hits += 1
            self.tally.stages.update(self.left_at())
        elif kind == "r":
            self.span = 0.7 * self.span + 0.3 * (time.monotonic() - began)

    def left_at(self) -> list[str]:
        """The steps that the killed run was at, by the history."""
        try:
            episodes = [episode for history in self.home.histories().values() for episode in history.episodes]
        except StateError:
            return ["a commit"]     # which only a run that may write can take back
        return [str(episode.stage) for episode in episodes if episode.stage is not Stage.NONE]

    def names(self) -> set[tuple[str, ...]]:
        found = set()
        for listener in self.listeners:
            try:
                found.add((listener.title, *sorted(os.listdir(self.home.base / listener.title))))  # noqa: PTH208
            except FileNotFoundError:
                continue
        return found

    def sleep(self, process: subprocess.Popen[str], seconds: float) -> None:
        end = time.monotonic() + seconds
        while process.poll() is None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.002))

    def run_to_the_end(self) -> None:
        """One run has to put everything right, and now and then it is seen that the next one finds nothing to do."""
        for quiet in (False, True)[: 1 + (self.chance.random() < 0.25)]:
            before = len(self.server.requests)
            done = ended(self.home.start(), 60)
            requests = list(self.server.requests)[before:]
            self.tally.resumed += sum("range" in request.headers for request in requests)
            if done.code != 0 or done.err:
                raise Loss(f"exit {done.code}: {done.out}{done.err}")
            if quiet and (done.out or any(not request.path.endswith(".xml") for request in requests)):
                raise Loss(f"a run after the one that did everything had something to do: {done.out}")
            self.look_at_requests()

    # ----------------------------------------------------------------------------------------------------- the looks

    def look_at_files(self) -> Counter[str]:
        """Every visible file is one whole episode, and no two are the same one; right after the kill, too."""
        found: Counter[str] = Counter()
        bodies = {item.body: (listener, item) for listener in self.listeners for item in listener.show.items}
        for name, body in self.home.files().items():
            match = bodies.get(body) or next((bodies[whole] for whole in bodies if body.endswith(whole) and len(body) < len(whole) + 8192), None)
            if match is None:
                raise Loss(f"{name} is half an episode, or none")
            found[match[1].path] += 1
            if match[0].metadata and body == match[1].body:
                raise Loss(f"{name} has no tags")
            if not match[0].metadata and body != match[1].body:
                raise Loss(f"{name} is not what was served")
        if doubled := [path for path, count in found.items() if count > 1]:
            raise Loss(f"there twice: {doubled}")
        return found

    def look_at_requests(self) -> None:
        """What the history once held was never asked for again."""
        asked = Counter(request.path for request in list(self.server.requests))
        for title, history in self.home.histories().items():
            for episode in history.episodes:
                path = "/" + episode.url.split("/", 3)[3]
                if path in self.held and asked[path] > self.held[path]:
                    raise Loss(f"{title}: {episode.title} was asked for again after it was held")
                if episode.fate is Fate.HELD or episode.stage is Stage.DELETING:
                    self.held.setdefault(path, asked[path])

    def look_at_everything(self) -> None:
        found = self.look_at_files()
        should = {item.path for listener in self.listeners for item in listener.should_hold()}
        if set(found) != should:
            raise Loss(f"lost: {sorted(should - set(found))}; too many: {sorted(set(found) - should)}")
        if hidden := self.home.hidden():
            raise Loss(f"left over: {hidden}")
        files, histories = set(self.home.files()), self.home.histories()
        held = [episode.path for history in histories.values() for episode in history.episodes if episode.fate is Fate.HELD]
        if sorted(held) != sorted(files):
            raise Loss(f"the history holds {sorted(held)}, the disk {sorted(files)}")
        for listener in self.listeners:
            episodes = histories[listener.title].episodes
            if unfinished := [episode.title for episode in episodes if episode.stage is not Stage.NONE or episode.fate is Fate.PENDING]:
                raise Loss(f"{listener.title}: unfinished {unfinished}")
            deleted = {episode.title for episode in episodes if episode.fate is Fate.DELETED}
            if deleted != listener.deleted:
                raise Loss(f"{listener.title}: taken for the user's deletions {deleted}, which were {listener.deleted}")


def play(rounds: int, seed: int, *, memory: bool = False) -> Tally:
    """Raises Loss, with the round it happened in. ``memory``: the first home is not on a disk."""
    chance, tally = random.Random(seed), Tally()
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with Server() as server, ExitStack() as folders:
        trial = None
        for number in range(rounds):
            if trial is None or number % ROUNDS_A_HOME == 0:
                # On a disk a run spends its time flushing what it records; in memory it is elsewhere when it is killed.
                place = in_memory if number // ROUNDS_A_HOME % 2 != memory else None
                folder = folders.enter_context(tempfile.TemporaryDirectory(prefix="poca-kill-", dir=place))
                trial = Trial(server, Path(folder), chance, number, tally)
            try:
                trial.round()
            except Loss as loss:
                raise Loss(f"round {number + 1}, seed {seed}: {loss}") from None
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kill")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    began = time.monotonic()
    try:
        tally = play(arguments.rounds, arguments.seed)
    except Loss as loss:
        print(f"LOSS: {loss}", file=sys.stderr)
        return 1
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(tally.stages.items()))
    print(f"{tally.rounds} rounds in {time.monotonic() - began:.0f} s, {tally.hits} kills hit a run (episodes left at: {stages}), "
          f"{tally.resumed} downloads resumed, seed {arguments.seed}: nothing lost, doubled, half or orphaned")
    return 0


if __name__ == "__main__":
    sys.exit(main())
