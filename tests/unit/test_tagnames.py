"""The table of tag names: whole, without contradictions, and the same in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poca import config, tagnames
from poca.model import Config

DOCS = Path(__file__).parents[2] / "docs" / "tags.rst"


def config_with(tmp_path: Path, metadata: str) -> Config:
    file = tmp_path / "config.yaml"
    file.write_text(f"settings: {{base_dir: {tmp_path}}}\nsubscriptions:\n- title: Show\n  url: http://127.0.0.1/\n  metadata: {metadata}\n")
    return config.read(file)


def test_the_config_takes_each_name_of_the_table(tmp_path: Path) -> None:
    names = ", ".join(f"{name}: ''" for name in tagnames.TAGS)
    assert config_with(tmp_path, f"{{{names}}}").faults == ()
    assert {"artist", "comment", "description", "chapters", "track", "date"} <= set(tagnames.TAGS)


@pytest.mark.parametrize(("metadata", "told"), [
    ("{artits: Jane}", "artist"),
    ("{chapters: One}", "chapters"),
    ("{title: '{episod_title}'}", "{episode_title}"),
    ("{title: 'a { brace'}", "single {"),
])
def test_what_no_tag_can_be_is_a_fault_of_the_config(tmp_path: Path, metadata: str, told: str) -> None:
    faults = config_with(tmp_path, metadata).faults
    assert len(faults) == 1
    assert told in faults[0].message


@pytest.mark.parametrize("form", tagnames.FORMATS)
def test_comment_and_description_are_two_tags_in_each_format(form: str) -> None:
    table = dict(tagnames.table(form))
    assert table["comment"] != table["description"]


def test_each_name_means_something_to_some_format() -> None:
    known = {name for form in tagnames.FORMATS for name, _ in tagnames.table(form)}
    assert known == set(tagnames.TAGS)


@pytest.mark.parametrize("tag", tagnames.TAGS.values(), ids=tagnames.TAGS)
def test_targets_have_the_form_that_their_format_asks_for(tag: tagnames.Tag) -> None:
    assert re.fullmatch(r"[a-z]+", tag.name)
    if tag.name != "chapters":
        assert re.fullmatch(r"[A-Z][A-Z0-9]{3}(:.+)?|", tag.mp3)
        assert re.fullmatch(r"[©A-Za-z]{4}|----:com\.apple\.iTunes:.+|", tag.mp4)
        assert re.fullmatch(r"[ -<>-}]+", tag.vorbis)       # Vorbis I, 5.2.2


def test_frames_that_id3v2_3_lacks_are_those_that_mutagen_drops() -> None:
    from mutagen.id3 import ID3, Frames

    for tag in tagnames.TAGS.values():
        frame = tag.mp3.partition(":")[0]
        if frame in ("COMM", "USLT", "WOAR", "TXXX") or tag.name == "chapters":
            continue
        tags = ID3()
        tags.add(Frames[frame](encoding=3, text=["2024"]))
        tags.update_to_v23()
        assert (len(tags) == 0) == (frame in tagnames.ONLY_V24), tag.name


def test_the_docs_hold_the_same_table() -> None:
    rows = re.findall(r"^   \* - (.*)\n     - (.*)\n     - (.*)\n     - (.*)$", DOCS.read_text(), re.MULTILINE)
    cells = [tuple(cell.strip("`").replace("none", "") for cell in row) for row in rows[1:]]
    assert cells == [(tag.name, tag.mp3, tag.mp4, tag.vorbis) for tag in tagnames.TAGS.values()]
