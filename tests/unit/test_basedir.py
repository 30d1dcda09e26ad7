"""base_dir: whether it is ours, and what lies in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from poca import basedir
from poca.errors import BaseDirError, DiskError
from poca.model import Episode, Fate

AUDIO = b"ID3\x04\x00\x00\x00\x00\x00\x00" + b"\xff\xfb\x50\xc4" * 400


def held(path: str, size: int = 10, fate: Fate = Fate.HELD) -> Episode:
    return Episode(path, "", "", "", fate=fate, path=path, size=size)


def write(path: Path, content: bytes = b"0123456789") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class TestMarker:
    def test_the_folder_and_its_marker_are_made_when_the_history_knows_no_file(self, tmp_path):
        marker, told = basedir.settle(tmp_path / "a" / "podcasts", "", [])
        assert basedir.read_marker(tmp_path / "a" / "podcasts") == marker != ""
        assert told == ""

    def test_a_marker_that_is_there_is_learnt_by_a_history_without_files(self, tmp_path):
        first, _ = basedir.settle(tmp_path, "", [])
        assert basedir.settle(tmp_path, "", [])[0] == first

    def test_pocas_that_begin_at_once_in_a_new_folder_agree_on_one_marker(self, tmp_path):
        with ThreadPoolExecutor(8) as pool:
            for number in range(30):
                base = tmp_path / str(number) / "podcasts"
                markers = set(pool.map(lambda _, base=base: basedir.settle(base, "", [])[0], range(8)))
                assert markers == {basedir.read_marker(base)}
                assert [path.name for path in base.iterdir()] == [basedir.MARKER]

    def test_looking_only_makes_nothing(self, tmp_path):
        basedir.settle(tmp_path / "podcasts", "", [], look_only=True)
        assert list(tmp_path.iterdir()) == []

    def test_a_copy_with_half_of_the_files_gets_its_marker_back(self, tmp_path):
        write(tmp_path / "Show/a.mp3")
        marker, told = basedir.settle(tmp_path, "m1", [("Show/a.mp3", 10), ("Show/b.mp3", 10)])
        assert marker == basedir.read_marker(tmp_path) == "m1"
        assert "marker" in told

    @pytest.mark.parametrize("size", [9, 11])
    def test_files_of_other_sizes_do_not_count(self, tmp_path, size):
        write(tmp_path / "Show/a.mp3")
        with pytest.raises(BaseDirError, match="0 of the 1"):
            basedir.settle(tmp_path, "m1", [("Show/a.mp3", size)])

    def test_an_empty_mount_point_is_refused_and_stays_empty(self, tmp_path):
        with pytest.raises(BaseDirError, match="mounted"):
            basedir.settle(tmp_path, "m1", [("Show/a.mp3", 10)])
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there_is_refused_and_not_made(self, tmp_path):
        with pytest.raises(BaseDirError, match="is not there"):
            basedir.settle(tmp_path / "gone", "m1", [("Show/a.mp3", 10)])
        assert not (tmp_path / "gone").exists()

    def test_the_marker_of_another_history_is_refused_and_the_need_of_two_state_dirs_is_told(self, tmp_path):
        basedir.write_marker(tmp_path, "other")
        write(tmp_path / "Show/a.mp3")
        with pytest.raises(BaseDirError, match="state_dir"):
            basedir.settle(tmp_path, "m1", [("Show/a.mp3", 10)])

    def test_a_base_dir_that_cannot_be_made_is_told(self, tmp_path):
        write(tmp_path / "file")
        with pytest.raises(BaseDirError, match="cannot be used"):
            basedir.settle(tmp_path / "file" / "podcasts", "", [])


class TestPresent:
    def look(self, base: Path, *episodes: Episode):
        basedir.write_marker(base, "m")
        return basedir.present(base, "m", episodes)

    def test_what_is_there_and_what_is_not(self, tmp_path):
        write(tmp_path / "Show/a.mp3")
        assert self.look(tmp_path, held("Show/a.mp3"), held("Show/b.mp3")) == {"Show/a.mp3": 10}

    def test_a_deleted_one_that_is_back_is_seen(self, tmp_path):
        write(tmp_path / "Show/a.mp3")
        assert self.look(tmp_path, held("Show/a.mp3", fate=Fate.DELETED)) == {"Show/a.mp3": 10}

    def test_one_that_poca_removed_is_not_looked_for(self, tmp_path):
        write(tmp_path / "Show/a.mp3")
        assert self.look(tmp_path, held("Show/a.mp3", fate=Fate.REMOVED)) == {}

    def test_a_changed_file_is_there_as_long_as_it_is_media(self, tmp_path):
        write(tmp_path / "Show/a.mp3", AUDIO)
        write(tmp_path / "Show/b.mp3", b"a text of the user's")
        assert self.look(tmp_path, held("Show/a.mp3"), held("Show/b.mp3")) == {"Show/a.mp3": len(AUDIO)}

    def test_any_other_error_than_no_such_file_is_an_error(self, tmp_path):
        write(tmp_path / "Show")
        with pytest.raises(DiskError, match=r"Show/a\.mp3"):
            self.look(tmp_path, held("Show/a.mp3"))

    def test_no_marker_means_that_nothing_is_known(self, tmp_path):
        with pytest.raises(DiskError, match="mounted"):
            basedir.present(tmp_path, "m", [held("Show/a.mp3")])


class TestStrangers:
    def test_media_that_the_history_does_not_know_and_nothing_else(self, tmp_path):
        for name in ("Show/a.mp3", "Show/b.mp3", "Show/sub/c.mp3", "Show/.hidden.mp3", "Other/d.mp3"):
            write(tmp_path / name, AUDIO)
        write(tmp_path / "Show/text.mp3", b"mine")
        write(tmp_path / "Show/notes.txt")
        found = basedir.strangers(tmp_path, "Show", ["Show/a.mp3"])
        assert {path: stranger.media for path, stranger in found.items()} == {"Show/b.mp3": True, "Show/sub/c.mp3": True, "Show/text.mp3": False}

    def test_a_folder_that_is_not_there_yet_holds_none(self, tmp_path):
        assert basedir.strangers(tmp_path, "Show", []) == {}

    def test_a_file_in_the_place_of_the_folder_is_told(self, tmp_path):
        write(tmp_path / "Show")
        with pytest.raises(DiskError, match="is a file"):
            basedir.strangers(tmp_path, "Show", [])

    def test_links_to_folders_are_not_followed(self, tmp_path):
        write(tmp_path / "elsewhere/a.mp3", AUDIO)
        (tmp_path / "Show").mkdir()
        (tmp_path / "Show/link").symlink_to(tmp_path / "elsewhere")
        assert basedir.strangers(tmp_path, "Show", []) == {}
