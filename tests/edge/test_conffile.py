"""The config file on disk is changed in one step or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from poca.confedit import add_subscriptions, remove_subscription, set_value
from poca.conffile import create, edit
from poca.errors import EditError
from poca.locks import config_lock

TEXT = "# mine\nsubscriptions:\n  - title: Früh\n    url: https://a.example/feed?key=secret   # daily\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_bytes(TEXT.encode())
    return path


def add(title: str = "Abend", url: str = "https://b.example/"):
    return partial(add_subscriptions, several=[{"title": title, "url": url}])


def leftovers(path: Path) -> list[str]:
    """What is in the folder besides the config and its lock."""
    return [p.name for p in path.parent.iterdir() if p.name not in (path.name, f".{path.name}.lock")]


def test_an_edit_leaves_the_other_lines_as_they_are(config):
    edit(config, add())
    assert config.read_text() == TEXT + "  - title: Abend\n    url: https://b.example/\n"
    edit(config, partial(remove_subscription, title="Abend"))
    assert config.read_text() == TEXT
    assert leftovers(config) == []


def test_the_mode_stays(config):
    config.chmod(0o640)
    edit(config, add())
    assert stat.S_IMODE(config.stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_the_owner_stays(config):
    os.chown(config, 1234, 2345)
    edit(config, add())
    assert (config.stat().st_uid, config.stat().st_gid) == (1234, 2345)


def test_a_symlink_stays_and_its_target_is_written(config, tmp_path):
    (tmp_path / "home").mkdir()
    link = tmp_path / "home" / "poca.yaml"
    link.symlink_to("../config.yaml")
    edit(link, add())
    assert link.is_symlink()
    assert "Abend" in config.read_text()
    assert [p.name for p in link.parent.iterdir()] == ["poca.yaml"]


def test_bom_and_line_endings_stay(config):
    old = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    config.write_bytes(old)
    edit(config, add())
    assert config.read_bytes() == old + b"  - title: Abend\r\n    url: https://b.example/\r\n"


def test_an_edit_that_changes_nothing_does_not_touch_the_file(config):
    before = config.stat()
    edit(config, partial(set_value, title="Früh", key="url", value="https://a.example/feed?key=secret"))
    assert (config.stat().st_ino, config.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert leftovers(config) == []


def test_what_an_editor_saves_meanwhile_is_kept(config):
    asked = []

    def change(text: str) -> str:
        asked.append(text)
        if len(asked) == 2:
            config.write_text("# saved meanwhile\n" + TEXT)
        return add()(text)

    edit(config, change)
    assert config.read_text() == "# saved meanwhile\n" + TEXT + "  - title: Abend\n    url: https://b.example/\n"
    assert leftovers(config) == []


def test_a_file_that_never_rests_is_left_alone(config):
    def change(text: str) -> str:
        config.write_text(text + "#\n")
        return add()(text)

    with pytest.raises(EditError, match="keeps being changed by another program"):
        edit(config, change)
    assert "Abend" not in config.read_text()
    assert leftovers(config) == []


def test_two_who_edit_at_once_lose_nothing(config):
    threads = [threading.Thread(target=edit, args=(config, add(f"Show {n}")), kwargs={"wait": 30}) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"title: Show {n}\n" in config.read_text() for n in range(8))


def test_a_config_that_another_poca_edits_is_left_alone(config):
    with config_lock(config) as held:
        assert held
        with pytest.raises(EditError, match="another poca is busy with it") as caught:
            edit(config, add(), wait=0.05)
    assert config.read_text() == TEXT
    assert "after line 4 write:\n  - title: Abend\n    url: https://b.example/" in str(caught.value)


def test_a_read_only_file_is_left_alone_and_told_what_to_write(config):
    config.chmod(0o444)
    with pytest.raises(EditError) as caught:
        edit(config, add(url="https://joe:pw@b.example/feed?key=secret"))
    assert config.read_text() == TEXT
    assert str(config) in str(caught.value)
    assert "read-only" in str(caught.value)
    assert "after line 4 write:\n  - title: Abend\n    url: https://***@b.example/feed?…" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "pw" not in str(caught.value).replace(str(config), "")


def test_what_to_write_by_hand_names_the_lines_to_change_and_to_delete(config):
    config.chmod(0o444)
    with pytest.raises(EditError, match=r"instead of line 4 write:\n    url: https://new\.example/ # daily$"):
        edit(config, partial(set_value, title="Früh", key="url", value="https://new.example/"))
    edit_two = TEXT + "  - title: Abend\n    url: x\n"
    config.chmod(0o644)
    config.write_text(edit_two)
    config.chmod(0o444)
    with pytest.raises(EditError, match=r"delete the lines 5 to 6\.$"):
        edit(config, partial(remove_subscription, title="Abend"))


SOMEBODY_ELSE = """
import os, resource, signal, sys
from functools import partial
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from poca.confedit import add_subscriptions
from poca.conffile import edit
from poca.errors import EditError
import filelock
os.chdir(sys.argv[2])
if os.geteuid() == 0:
    os.setegid(65534); os.seteuid(65534)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    edit(Path("config.yaml"), partial(add_subscriptions, several=[{"title": "Abend", "url": "https://b.example/"}]))
except EditError as error:
    print(error)
"""


@pytest.fixture
def open_config() -> Iterator[Path]:
    """A config that every user of the machine may write, in a folder that every user can reach."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(TEXT)
        path.chmod(0o666)
        yield path


def edited_by_somebody_else(path: Path, largest_file: int = 1_000_000) -> str:
    """What an edit by a user without special rights says. ``largest_file``: bytes that fit into a file."""
    command = [sys.executable, "-c", SOMEBODY_ELSE, str(Path(__file__).parents[2]), str(path.parent), str(largest_file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_folder_that_cannot_be_written_leaves_the_file_and_tells_what_to_write(open_config):
    open_config.parent.chmod(0o555)
    said = edited_by_somebody_else(open_config)
    open_config.parent.chmod(0o755)
    assert "config.yaml cannot be changed" in said
    assert "after line 4 write:\n  - title: Abend" in said
    assert open_config.read_text() == TEXT
    assert leftovers(open_config) == []


def test_a_full_disk_leaves_the_old_file_and_nothing_else(open_config):
    open_config.parent.chmod(0o777)
    said = edited_by_somebody_else(open_config, largest_file=50)
    assert "config.yaml cannot be changed" in said
    assert "after line 4 write:\n  - title: Abend" in said
    assert open_config.read_text() == TEXT
    assert leftovers(open_config) == []


def test_a_missing_file_a_dangling_link_and_a_link_to_itself_are_told(tmp_path):
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(EditError, match="There is no config file at"):
        edit(tmp_path / "missing", add())
    with pytest.raises(EditError, match="There is no config file at"):
        edit(tmp_path / "dangling", add())
    with pytest.raises(EditError, match="cannot be read"):
        edit(tmp_path / "loop", add())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dangling", "loop"]


def test_a_folder_and_a_pipe_are_no_config(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(EditError, match="is no regular file"):
            edit(path, add())


def test_a_file_that_is_not_utf8_is_left_alone(config):
    config.write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(EditError, match=r"not written in UTF-8 \(line 3\)"):
        edit(config, add())
    assert config.read_bytes() == TEXT.encode("latin-1")
    assert leftovers(config) == []


def test_a_refused_edit_names_the_file_and_leaves_it(config):
    with pytest.raises(EditError, match=r'config\.yaml: There is no subscription "Nacht"'):
        edit(config, partial(remove_subscription, title="Nacht"))
    assert config.read_text() == TEXT


def test_an_interrupt_leaves_the_old_file_and_nothing_else(config):
    asked = []

    def change(text: str) -> str:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return add()(text)

    with pytest.raises(KeyboardInterrupt):
        edit(config, change)
    assert config.read_text() == TEXT
    assert leftovers(config) == []
    edit(config, add())                 # and the lock is free again


def test_a_text_that_no_file_can_hold_leaves_the_old_file(config):
    with pytest.raises(EditError, match="cannot be changed"):
        edit(config, lambda text: text + "# \ud800\n")
    assert config.read_text() == TEXT
    assert leftovers(config) == []


def test_a_first_config_is_private_and_its_folders_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "config.yaml"
    create(path, "settings: {base_dir: ~/Früh}\n")
    assert path.read_text() == "settings: {base_dir: ~/Früh}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0


def test_a_first_config_never_overwrites(config, tmp_path):
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in (config, tmp_path / "dangling", tmp_path):
        with pytest.raises(EditError, match="already"):
            create(path, "new")
    assert config.read_text() == TEXT
    assert not (tmp_path / "nowhere").exists()


def test_a_first_config_that_cannot_be_made_is_told(config):
    with pytest.raises(EditError, match="cannot be made"):
        create(config / "below" / "a-file.yaml", "new")
