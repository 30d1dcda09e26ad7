"""Disks that are full, read-only, broken or gone, at every step. Whatever fails: no file is lost, none is half, it is told
in a sentence, and the next run on a healthy disk puts all right."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from poca.model import Fate
from tests.server import Answer, Reply, Request, Server
from tests.world import POCA, Done, Home, Show, ended

SHIM = Path(__file__).parents[1] / "data" / "badcalls.c"
FRAMES = 60             # 25 KB an episode
EVERY_CALL = "POCA_EVERY_CALL" in os.environ        # else the first ones and some of the others


def told(done: Done) -> str:
    """What a run that failed says, which must be sentences and no fault of poca's own."""
    assert done.code in (1, 2) and done.err.strip(), done
    assert "fault of poca" not in done.out + done.err and "Errno" not in done.err, done.err
    return done.err


def all_whole(home: Home, show: Show, at_least: int) -> None:
    """Each visible file is a whole episode, and there are as many as before."""
    bodies = {f"Show/{item.path.rpartition('/')[2]}": item.body for item in show.items}
    files = home.files()
    for name, body in files.items():
        assert body == bodies[name], f"{name} is not what it is called: {len(body)} of {len(bodies[name])} bytes"
    assert len(files) >= at_least, f"of {at_least} files {sorted(files)} are left"


def put_right(home: Home, show: Show, newest: int) -> None:
    """The next run on a healthy disk leaves just the newest episodes, and the one after that has nothing to do."""
    done = home.run()
    assert done.code == 0, done
    healed(home, show, newest)
    assert home.run().silent


def healed(home: Home, show: Show, newest: int) -> None:
    assert home.files() == {f"Show/{item.path.rpartition('/')[2]}": item.body for item in show.items[-newest:]}
    assert home.hidden() == []
    fates = home.fates("Show")
    assert Fate.DELETED not in fates.values(), "what the disk did was taken for the user's doing"
    assert {title for title, fate in fates.items() if fate is Fate.HELD} == {item.title for item in show.items[-newest:]}


# ------------------------------------------------------------------------------------------- a step of each kind that fails

DRIVER = """
import ctypes, json, os, sys
import poca.app, poca.config, poca.conffile, poca.cover, poca.executor, poca.feed, poca.feedfast, poca.recovery, poca.renames, poca.runlog
import poca.state, poca.web, poca.worker
shim = ctypes.CDLL(None)
for line in sys.stdin:
    config, out, mark, call, after, times, code = json.loads(line)
    child = os.fork()
    if not child:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{out}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        shim.bad_calls(mark.encode(), call.encode(), ctypes.c_long(after), ctypes.c_long(times), code)
        ended = poca.app.main(["--config", config])
        seen = shim.bad_calls_seen()
        shim.bad_calls(b"", b"", 0, 0, 0)
        sys.stdout.flush(), sys.stderr.flush()
        os.close(os.open(f"{out}/seen", os.O_WRONLY | os.O_CREAT))
        with open(f"{out}/seen", "w") as file:
            file.write(str(seen))
        os._exit(ended)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass
class Driver:
    """Runs of poca in children of one process, which is quicker than a program for each."""

    process: subprocess.Popen[str]
    folder: Path

    def run(self, home: Home, mark: str = "", call: str = "", after: int = 0, times: int = -1, code: int = 0) -> tuple[Done, int]:
        """What came of it, and how many such calls there were."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([str(home.config), str(self.folder), mark, call, after, times, code]) + "\n")
        self.process.stdin.flush()
        ended_with = int(self.process.stdout.readline())
        out, err, seen = ((self.folder / name).read_text(encoding="utf-8") for name in ("out", "err", "seen"))
        assert "Traceback" not in out + err, err
        return Done(ended_with, out, err, 0), int(seen)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc to make what lets calls fail")
    folder = tmp_path_factory.mktemp("driver")
    library = folder / "badcalls.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"], check=True)
    env = {**Home(folder / "home").env, "LD_PRELOAD": str(library)}
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        yield Driver(process, folder)
        assert process.stdin
        process.stdin.close()


@pytest.fixture
def show(server: Server) -> Show:
    return Show(server, "show", FRAMES).publish(3)


@pytest.fixture
def before(home: Home, show: Show) -> Callable[[str], Home]:
    """Makes homes in which three episodes are held, two newer ones having come out since; their max_number is 3."""
    home.write(show.subscription(max_number=3))
    assert home.run().code == 0
    show.publish(2)

    def make(name: str) -> Home:
        copy = Home(home.folder / name)
        shutil.copytree(home.base, copy.base)
        shutil.copytree(home.state, copy.state)
        copy.write(show.subscription(max_number=3))
        return copy

    return make


FAULTS = [
    ("podcasts/", "write", errno.ENOSPC), ("podcasts/", "write", errno.EIO), ("podcasts/", "fsync", errno.EIO), ("podcasts/", "link", errno.EIO),
    ("podcasts/", "link", errno.ENOSPC), ("podcasts/", "unlink", errno.EIO), ("podcasts/", "unlink", errno.EACCES),
    ("podcasts/", "create", errno.ENOSPC), ("podcasts/", "create", errno.EROFS), ("podcasts/", "read", errno.EIO),
    ("state/poca.db", "write", errno.ENOSPC), ("state/poca.db", "write", errno.EIO), ("state/poca.db", "fsync", errno.EIO),
    ("state/poca.db", "unlink", errno.EIO), ("state/poca.db", "create", errno.ENOSPC), ("state/poca.db", "read", errno.EIO),
    ("state/", "rename", errno.EIO), ("state/poca.log", "write", errno.ENOSPC),
    ("state/locks", "create", errno.EACCES), ("state/locks", "mkdir", errno.ENOSPC),
]


@pytest.mark.parametrize("times", [1, -1], ids=["once", "from then on"])
@pytest.mark.parametrize(("mark", "call", "code"), FAULTS, ids=[f"{mark} {call} {errno.errorcode[code]}" for mark, call, code in FAULTS])
def test_whichever_call_fails_nothing_is_lost_and_the_next_run_puts_it_right(
    mark: str, call: str, code: int, times: int, driver: Driver, before: Callable[[str], Home], show: Show,
) -> None:
    after, seen = 0, 1
    while after < seen:
        home = before(str(after))
        done, seen = driver.run(home, f"{home.folder}/{mark}", call, after, times, code)
        where = f"after {after} of {seen}: {done}"
        all_whole(home, show, 3)
        assert done.code in (0, 1, 2), where
        if done.code:
            told(done)
        if seen > after and mark == "podcasts/" and call in ("write", "create", "link") and times == -1:
            assert done.code, where
        again, _ = driver.run(home)
        assert again.code == 0, (where, again)
        healed(home, show, 3)
        last, _ = driver.run(home)
        assert last.silent and last.code == 0, (where, last)
        shutil.rmtree(home.folder)
        after += 1 if EVERY_CALL or after < 2 else 14


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK])
def test_a_file_system_without_hard_links_is_as_good_as_any(code: int, driver: Driver, before: Callable[[str], Home], show: Show) -> None:
    home = before("x")
    done, seen = driver.run(home, "podcasts/", "link", code=code)
    assert done.code == 0 and seen == 2 and not done.err
    healed(home, show, 3)


@pytest.mark.parametrize("code", [errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ])
def test_a_name_that_the_file_system_refuses_becomes_another(code: int, driver: Driver, before: Callable[[str], Home], show: Show) -> None:
    home = before("x")
    done, seen = driver.run(home, "podcasts/Show/4.mp3", "link", code=code)
    assert done.code == 0 and seen == 1 and not done.err
    bodies = {item.body for item in show.items[-3:]}
    assert set(home.files().values()) == bodies and "Show/4.mp3" not in home.files()
    again, _ = driver.run(home)
    assert again.silent


# --------------------------------------------------------------------------------------------------------- file systems

@contextlib.contextmanager
def mounted(path: Path, options: str, kind: str = "tmpfs", device: str = "tmpfs") -> Iterator[None]:
    path.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", "-t", kind, "-o", options, device, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine cannot mount a {kind}: {done.stderr.strip() or 'mount failed'}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def remount(path: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(path)], check=True)


@pytest.mark.parametrize("kilobytes", [4, 8, 28, 32, 60, 84])
def test_a_base_dir_that_is_full_at_any_point_takes_whole_episodes_only(kilobytes: int, home: Home, show: Show) -> None:
    home.write(show.subscription())
    with mounted(home.base, f"size={kilobytes}k"):
        done = home.run()
        assert done.code in (1, 2)
        assert "room" in told(done) or "no space" in told(done)
        all_whole(home, show, 0)
        assert home.hidden() == [], "a part of which the disk may not have taken all is worth nothing"
        remount(home.base, "size=1m")
        put_right(home, show, 3)


@pytest.mark.parametrize("kilobytes", [4, 24, 44, 64, 76])
def test_a_state_dir_that_is_full_at_any_point_loses_and_doubles_nothing(kilobytes: int, home: Home, show: Show) -> None:
    home.write(show.subscription())
    with mounted(home.state, f"size={kilobytes}k,mode=700"):
        done = home.run()
        if done.code:
            assert "full" in told(done) or "no space" in told(done).lower(), done.err
        all_whole(home, show, 0)
        remount(home.state, "size=1m")
        put_right(home, show, 3)


def test_a_log_whose_disk_is_full_is_told_once_and_its_lines_are_not_lost(home: Home, show: Show, tmp_path: Path) -> None:
    with mounted(tmp_path / "logs", "size=4k"):
        (tmp_path / "logs" / "ballast").write_bytes(bytes(4096))
        home.write(show.subscription(), settings={"logfile": str(tmp_path / "logs" / "poca.log")})
        done = home.run()
        assert done.code == 1
        assert done.err.count("cannot be written: No space left on device") == 1, done.err
        assert done.err.count("downloaded Show/") == 3 or done.err.count("downloaded 1.mp3") == 1, done.err
        healed(home, show, 3)
        (tmp_path / "logs" / "ballast").unlink()
        show.publish()
        assert home.run().code == 0
        assert "4.mp3" in (tmp_path / "logs" / "poca.log").read_text(encoding="utf-8")


def test_a_base_dir_that_became_read_only_is_told_and_left_alone(home: Home, show: Show) -> None:
    home.write(show.subscription(max_number=3))
    with mounted(home.base, "size=1m"):
        assert home.run().code == 0
        show.publish(2)
        remount(home.base, "ro")
        assert "read-only" in told(home.run())
        all_whole(home, show, 3)
        remount(home.base, "rw")
        put_right(home, show, 3)


def test_a_state_dir_that_became_read_only_stops_poca_before_it_does_anything(home: Home, show: Show) -> None:
    home.write(show.subscription(max_number=3))
    with mounted(home.state, "size=1m,mode=700"):
        assert home.run().code == 0
        show.publish(2)
        asked = len(show.asked())
        remount(home.state, "ro")
        done = home.run()
        assert done.code == 2 and told(done)
        assert len(show.asked()) == asked
        healed_files = set(home.files())
        assert home.run("--dry-run").code == 0
        remount(home.state, "rw")
        assert set(home.files()) == healed_files
        put_right(home, show, 3)


@pytest.mark.parametrize("kind", ["vfat", "exfat", "ntfs3"])
def test_on_the_file_systems_of_players_and_sticks_all_titles_have_names(kind: str, home: Home, server: Server, tmp_path: Path) -> None:
    maker, image = shutil.which(f"mkfs.{kind.removesuffix('3')}"), tmp_path / "image"
    if not maker:
        pytest.skip(f"there is no program that makes a {kind}")
    image.write_bytes(bytes(8_000_000))
    subprocess.run([maker, str(image)], check=True, capture_output=True)
    show = Show(server, "show").publish(8)
    titles = ['a:b*c?"<>|\\', "CON", "Ends with dots...", "e\u0301", "\u00e9", "UPPER", "upper", "x" * 300]
    for item, title in zip(show.items, titles, strict=True):
        item.title = title
    for level in ("ntfs", "permissive"):
        other = Home(tmp_path / level)
        other.write(show.subscription(rename="{episode_title}"), settings={"filenames": level})
        with mounted(other.base, "loop", kind, str(image)):
            done = other.run()
            assert done.code == 0, done
            assert sorted(other.files().values()) == sorted(item.body for item in show.items)
            assert other.run().silent
            subprocess.run(["find", str(other.base), "-mindepth", "1", "-delete"], check=True)


# ---------------------------------------------------------------------------------------------------------- permissions

def as_user(home: Home, *arguments: str) -> Done:
    """A run without root's rights to pass over permissions."""
    prefix: list[str] = []
    if not os.geteuid():
        if not shutil.which("setpriv"):
            pytest.skip("there is no setpriv, by which root gives up its rights")
        prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
    command = [*prefix, str(POCA), "--config", str(home.config), *arguments]
    return ended(subprocess.Popen(command, env=home.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


@contextlib.contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


@pytest.mark.parametrize(("where", "bits", "code"), [
    ("podcasts", 0o500, 0), ("podcasts", 0o000, 2), ("podcasts/Show", 0o500, 1), ("podcasts/Show", 0o000, 1), ("podcasts/Show", 0o600, 1),
    ("podcasts/Show/3.mp3", 0o000, 0), ("podcasts/.poca-base", 0o000, 0), ("state", 0o500, 2), ("state", 0o000, 2), ("state/poca.db", 0o400, 2),
    ("state/poca.db", 0o000, 2), ("state/locks", 0o500, 0), ("state/locks", 0o000, 1), ("state/poca.log", 0o400, 1), ("config.yaml", 0o000, 2),
])
def test_what_may_not_be_read_or_written_is_told_and_nothing_is_lost(
    where: str, bits: int, code: int, before: Callable[[str], Home], show: Show,
) -> None:
    home = before("x")
    assert as_user(home, "--dry-run").code == 0
    with mode(home.folder / where, bits):
        done = as_user(home)
        assert done.code == code, done
        if code:
            told(done)
    all_whole(home, show, 3)
    put_right(home, show, 3)


# ------------------------------------------------------------------------------------------- what happens during a run

def while_asked_for(show: Show, number: int, action: Callable[[], object]) -> None:
    """Does something when an episode is asked for, before it is given out."""
    item = show.items[number - 1]
    once = threading.Lock()

    def answer(request: Request) -> Answer:
        if once.acquire(blocking=False):
            action()
        return Reply(body=item.body, type="audio/mpeg", etag=f'"{number}"', ranges=True)

    show.server.routes[item.path] = answer


@pytest.mark.parametrize("instead", ["nothing", "an empty folder", "a file", "another folder of poca"])
def test_a_base_dir_that_goes_away_during_a_run_is_no_deletion_by_the_user(instead: str, before: Callable[[str], Home], show: Show) -> None:
    home = before("x")
    away = home.folder / "away"

    def unplug() -> None:
        home.base.rename(away)
        if instead == "an empty folder":
            home.base.mkdir()
        elif instead == "a file":
            home.base.write_text("here was base_dir", encoding="ascii")
        elif instead == "another folder of poca":
            (home.base / "Show").mkdir(parents=True)
            (home.base / ".poca-base").write_text("another\n", encoding="ascii")

    while_asked_for(show, 4, unplug)
    told(home.run())
    told(home.run())            # still away
    if home.base.is_dir():
        assert not home.files(), "an episode was put into the mount point"
        shutil.rmtree(home.base)
    elif home.base.exists():
        home.base.unlink()
    away.rename(home.base)
    all_whole(home, show, 3)
    put_right(home, show, 3)


@pytest.mark.parametrize("instead", ["nothing", "a file", "a link to nowhere", "a link to another place"])
def test_a_folder_that_goes_away_during_a_run_is_made_anew_or_told(instead: str, before: Callable[[str], Home], show: Show) -> None:
    home = before("x")
    folder, elsewhere = home.base / "Show", home.folder / "elsewhere"

    def remove() -> None:
        folder.rename(home.folder / "gone")
        if instead == "a file":
            folder.write_text("here was a folder", encoding="ascii")
        elif instead == "a link to nowhere":
            folder.symlink_to(home.folder / "nowhere")
        elif instead == "a link to another place":
            elsewhere.mkdir()
            folder.symlink_to(elsewhere)

    while_asked_for(show, 4, remove)
    done = home.run()
    assert done.code in (0, 1), done
    if done.code:
        told(done)
    assert not elsewhere.exists() or not list(elsewhere.glob("*.mp3")), "something was put outside base_dir"
    if not folder.is_symlink() and folder.is_dir():
        shutil.rmtree(folder)
    elif folder.is_symlink() or folder.exists():
        folder.unlink()
    (home.folder / "gone").rename(folder)
    all_whole(home, show, 3)
    assert home.run().code == 0
    all_whole(home, show, 3)
    assert home.hidden() == []


def test_a_folder_that_is_a_file_is_told_and_stays(home: Home, show: Show) -> None:
    home.write(show.subscription(), {"title": "Other", "url": show.url})
    home.base.mkdir()
    (home.base / "Show").write_text("mine", encoding="ascii")
    done = home.run()
    assert done.code == 1 and "is a file, not a folder" in told(done)
    assert (home.base / "Show").read_text(encoding="ascii") == "mine"
    assert len(home.files()) == 4, "the other subscription is not run"
    (home.base / "Show").unlink()
    assert home.run().code == 0
    assert len(home.files()) == 6


def test_an_episode_that_became_a_folder_is_left_alone(before: Callable[[str], Home], show: Show) -> None:
    home = before("x")
    (home.base / "Show" / "1.mp3").unlink()
    (home.base / "Show" / "1.mp3").mkdir()
    (home.base / "Show" / "1.mp3" / "notes.txt").write_text("mine", encoding="ascii")
    assert home.run().code in (0, 1)
    assert (home.base / "Show" / "1.mp3" / "notes.txt").read_text(encoding="ascii") == "mine"


def test_each_kind_of_file_in_the_way_of_state_and_log_is_told(home: Home, show: Show, tmp_path: Path) -> None:
    nowhere = tmp_path / "no" / "where"
    ways: Mapping[str, Callable[[Path], object]] = {"a folder": Path.mkdir, "a link to nowhere": lambda path: path.symlink_to(nowhere)}
    for name, make in ways.items():
        for where in ("poca.db", "poca.log", "poca.db.lock", "locks"):
            other = Home(tmp_path / f"{name} {where}".replace(" ", "-"))
            other.write(show.subscription())
            other.state.mkdir()
            if (where, name) == ("locks", "a folder"):
                continue
            make(other.state / where)
            done = other.run()
            assert done.code in (1, 2) and told(done), (name, where, done)
            all_whole(other, show, 0)
            there = other.state / where
            there.rmdir() if there.is_dir() and not there.is_symlink() else there.unlink()
            put_right(other, show, 3)
