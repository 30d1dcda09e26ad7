"""Round trips of tags: what is written is read again, in any script, in each version, and the sound is never touched."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mutagen.flac import FLAC
from mutagen.id3 import ID3
from mutagen.mp4 import MP4

from poca import tagging, tagnames
from poca.errors import TagError
from poca.tagging import Edits
from tests import sounds
from tests.origin import mp3

# No control characters, no surrogates; white space only within.
texts = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=40).map(lambda t: f"{t}.")
odd = {"chapters", "track", "tracknumber", "disc", "discnumber", "date", "originaldate", "bpm", "compilation", "genre", "lyrics", "comment",
       "website", "version"}
plain = [name for name in tagnames.TAGS if name not in odd]
wishes = st.dictionaries(st.sampled_from(plain), st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=6)
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def tagged(content: bytes, *all_edits: Edits) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="poca-tags-"))
    part = folder / ".poca-1.part"
    part.write_bytes(content)
    for edits in all_edits:
        tagging.tag(part, edits)
    return part


def edits(wish: dict[str, list[str]], **options: int) -> Edits:
    return Edits(tuple((name, tuple(values)) for name, values in wish.items()), **options)  # type: ignore[arg-type]


def gone(part: Path) -> bytes:
    """The content; the file and its folder are removed."""
    content = part.read_bytes()
    part.unlink()
    part.parent.rmdir()
    return content


@few
@given(wishes, st.sampled_from([3, 4]))
def test_texts_of_an_mp3_are_read_again(wish: dict[str, list[str]], version: int) -> None:
    part = tagged(mp3(12), edits({"title": ["0"], **wish}, id3v2version=version))
    tags = ID3(part, translate=False)
    for name, values in wish.items():
        frame = tagnames.TAGS[name].mp3
        if version == 3 and frame in tagnames.ONLY_V24:
            assert frame not in tags
        else:
            assert tags[frame].text == (values if version == 4 else ["/".join(values)])
            assert version == 4 or tags[frame].encoding in (0, 1)
    assert gone(part).endswith(mp3(12))


@few
@given(wishes)
def test_texts_of_a_flac_are_read_again(wish: dict[str, list[str]]) -> None:
    part = tagged(sounds.sound("flac"), edits(wish))
    tags = FLAC(part)
    assert {name: tags[tagnames.TAGS[name].vorbis] for name in wish} == wish
    gone(part)


@few
@given(wishes)
def test_texts_of_an_m4a_are_read_again(wish: dict[str, list[str]]) -> None:
    part = tagged(sounds.sound("m4a"), edits(wish))
    tags = MP4(part)
    for name, values in wish.items():
        atom = tagnames.TAGS[name].mp4
        if atom.startswith("----"):
            assert [bytes(value).decode() for value in tags[atom]] == values
        elif atom:
            assert tags[atom] == values
    gone(part)


@few
@given(wishes, wishes, st.sampled_from([3, 4]), st.sampled_from([3, 4]))
def test_a_second_edit_replaces_what_it_names_and_leaves_the_rest(
    first: dict[str, list[str]], second: dict[str, list[str]], one: int, other: int,
) -> None:
    part = tagged(mp3(12), edits(first, id3v2version=one), edits(second, id3v2version=other))
    both = tagged(mp3(12), edits({**first, **second}, id3v2version=min(one, other)))
    frames = {tagnames.TAGS[name].mp3 for name in second} | {"TIT2"}
    shared = {name for name in first if tagnames.TAGS[name].mp3 not in frames | tagnames.ONLY_V24}
    if shared:          # else there may be no frame at all
        again, wanted = ID3(part), ID3(both)
        for frame in (tagnames.TAGS[name].mp3 for name in shared):
            assert "/".join(again[frame].text) == "/".join(wanted[frame].text)
    assert gone(part).endswith(mp3(12))
    gone(both)


@few
@given(wishes, st.sampled_from([3, 4]))
def test_removing_all_that_was_set_gives_the_file_back(wish: dict[str, list[str]], version: int) -> None:
    part = tagged(mp3(12), edits(wish, id3v2version=version), Edits(tuple((name, ()) for name in wish), id3v2version=version))
    assert gone(part) == mp3(12)


@pytest.mark.parametrize("kind", sounds.TAGGED)
def test_damage_anywhere_leaves_the_file_alone_or_its_sound_whole(kind: str) -> None:
    content = sounds.sound(kind)

    @settings(max_examples=80, deadline=None)
    @given(st.integers(0, min(len(content) - 1, 3000)), st.binary(min_size=1, max_size=8), st.booleans())
    @example(95, b"\x01", False)       # in FLAC the padding now claims to hold the first byte of the sound
    @example(93, b"\x00\x25", False)   # there most of the sound
    @example(44, b"\x25", False)       # and there the comments do
    def damaged(at: int, junk: bytes, cut: bool) -> None:
        broken = content[:at] + junk + (b"" if cut else content[at + len(junk):])
        folder = Path(tempfile.mkdtemp(prefix="poca-tags-"))
        part = folder / ".poca-1.part"
        part.write_bytes(broken)
        try:
            tagging.tag(part, Edits((("artist", ("Jane",)), ("comment", ()), ("chapters", ()))))
        except TagError:
            assert part.read_bytes() == broken
        else:
            # These have all their tags in front.
            assert kind not in ("mp3", "lame", "flac") or part.read_bytes().endswith(broken[len(broken) // 2:])
        assert [path.name for path in folder.iterdir()] == [part.name]
        gone(part)

    damaged()
