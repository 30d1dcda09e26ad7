"""Tags of real files: what other programs read afterwards, and that the sound is what it was."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from mutagen.flac import FLAC, Picture
from mutagen.id3 import APIC, CHAP, COMM, CTOC, ID3, PRIV, TIT2, TXXX, USLT, CTOCFlags
from mutagen.mp4 import MP4

from poca import tagging
from poca.errors import TagError
from poca.model import Settings
from poca.tagging import Edits, Tagged
from poca.templates import Named
from tests import builders, sounds
from tests.origin import mp3

SOME = (("artist", ("Jémand 你",)), ("album", ("The Show",)), ("comment", ("hällo 你好",)))


@pytest.fixture
def put(tmp_path: Path) -> Callable[[bytes], Path]:
    def put(content: bytes) -> Path:
        part = tmp_path / ".poca-0123456789ab.part"
        part.write_bytes(content)
        return part
    return put


def tags_of(part: Path, extension: str) -> dict[str, str]:
    """As ffprobe reads them, which goes by the name for a few kinds."""
    named = part.with_name(f"named.{extension}")
    shutil.copy(part, named)
    return dict(sounds.probed(named)["tags"])


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(part: Path, *values: tuple[str, tuple[str, ...]]) -> str:
    """What is told of a file that cannot be tagged; it must be as before, and alone."""
    before = part.read_bytes()
    with pytest.raises(TagError) as caught:
        tagging.tag(part, Edits(values or SOME))
    assert part.read_bytes() == before
    assert names_in(part.parent) == [part.name]
    assert "stays as it came" in str(caught.value)
    return str(caught.value)


def chapters() -> list[CHAP | CTOC]:
    made = [CHAP(element_id=f"c{n}", start_time=n * 100, end_time=n * 100 + 99, sub_frames=[TIT2(encoding=3, text=f"Part {n}")]) for n in range(3)]
    return [*made, CTOC(element_id="toc", flags=CTOCFlags.TOP_LEVEL | CTOCFlags.ORDERED, child_element_ids=["c0", "c1", "c2"])]


def rich_mp3(version: int, *frames: object) -> bytes:
    """An MP3 whose tag has a bit of everything, its v1 at the end."""
    import io

    tags = ID3()
    for frame in (
        TIT2(encoding=3, text="Old"), COMM(encoding=3, lang="deu", desc="", text="old"), COMM(encoding=3, lang="eng", desc="iTunNORM", text=" 0000"),
        APIC(encoding=3, mime="image/png", type=3, desc="", data=b"\x89PNG\r\n\x1a\n" + bytes(200_000)), USLT(encoding=3, lang="eng", text="la la"),
        PRIV(owner="me", data=b"secret"), TXXX(encoding=3, desc="KEEP", text="kept"), *chapters(), *frames,
    ):
        tags.add(frame)
    if version == 3:
        tags.update_to_v23()
    file = io.BytesIO(mp3(40))
    tags.save(file, v2_version=version, v1=2)
    return file.getvalue()


# ------------------------------------------------------------------------------------------------------ every format

@pytest.mark.parametrize("kind", sounds.TAGGED)
def test_another_program_reads_the_tags_and_hears_the_same_sound(put: Callable[[bytes], Path], kind: str) -> None:
    part = put(sounds.sound(kind))
    before = sounds.played(part)
    assert tagging.tag(part, Edits(SOME, track=7)) == Tagged(7)
    tags = tags_of(part, kind)
    assert (tags["artist"], tags["album"], tags["comment"], tags["track"]) == ("Jémand 你", "The Show", "hällo 你好", "7")
    assert before == sounds.played(part) != ""
    assert names_in(part.parent) == [part.name, f"named.{kind}"]


@pytest.mark.parametrize("kind", sounds.TAGGED)
def test_an_empty_value_removes_a_tag_and_only_that(put: Callable[[bytes], Path], kind: str) -> None:
    part = put(sounds.sound(kind))
    tagging.tag(part, Edits(SOME))
    tagging.tag(part, Edits((("comment", ()), ("album", ()))))
    tags = tags_of(part, kind)
    assert "comment" not in tags
    assert "album" not in tags
    assert tags["artist"] == "Jémand 你"


def test_comment_and_description_are_told_apart(put: Callable[[bytes], Path]) -> None:
    both = Edits((("comment", ("C",)), ("description", ("D",))))
    part = put(sounds.sound("m4a"))
    tagging.tag(part, both)
    tags = tags_of(part, "m4a")
    assert (tags["comment"], tags["description"]) == ("C", "D")
    part = put(sounds.sound("flac"))        # ffprobe shows only one of the two
    tagging.tag(part, both)
    assert (FLAC(part)["comment"], FLAC(part)["description"]) == (["C"], ["D"])
    part = put(mp3(40))
    tagging.tag(part, both)
    assert (str(ID3(part)["COMM::eng"]), str(ID3(part)["TDES"])) == ("C", "D")


@pytest.mark.parametrize("path", sounds.corpus() or [None], ids=lambda path: path.name if path else "none")
@pytest.mark.parametrize("version", [3, 4])
def test_no_file_of_the_corpus_loses_a_byte_of_its_sound(put: Callable[[bytes], Path], path: Path | None, version: int) -> None:
    if path is None:
        pytest.skip("the corpus of audio files is not beside the repository")
    part = put(path.read_bytes())
    before = sounds.played(path)
    try:
        tagging.tag(part, Edits((*SOME, ("chapters", ())), 7, id3v2version=version))
    except TagError:
        assert part.read_bytes() == path.read_bytes()
        return
    if path.suffix == ".mp3":
        # ffmpeg reads on from a last frame that is cut off into the tag behind it.
        old, new = (_between_tags(content) for content in (path.read_bytes(), part.read_bytes()))
        assert old == new != b""
    else:
        assert sounds.played(part) == before


def _between_tags(content: bytes) -> bytes:
    if content.startswith(b"ID3"):
        size = 0
        for byte in content[6:10]:
            size = size * 128 + byte
        content = content[10 + size:]
    return content[:-128] if content[-128:].startswith(b"TAG") else content


# --------------------------------------------------------------------------------------------------------------- ID3

@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("before", [3, 4])
def test_all_other_frames_survive_also_a_change_of_version(put: Callable[[bytes], Path], before: int, version: int) -> None:
    part = put(rich_mp3(before))
    tagging.tag(part, Edits((("artist", ("Jane",)), ("comment", ("new",))), id3v2version=version))
    tags = ID3(part, translate=False)
    assert tags.version[1] == version
    assert [str(comment) for comment in tags.getall("COMM:")] == ["new"]
    assert str(tags["COMM:iTunNORM:eng"]) == " 0000"
    parts = sorted(tags.getall("CHAP"), key=lambda chapter: chapter.start_time)
    assert [str(chapter.sub_frames["TIT2"]) for chapter in parts] == ["Part 0", "Part 1", "Part 2"]
    assert tags["CTOC:toc"].child_element_ids == ["c0", "c1", "c2"]
    assert len(tags["APIC:"].data) == 200_008
    assert (tags["PRIV:me:secret"].data, str(tags["TXXX:KEEP"]), str(tags.getall("USLT")[0])) == (b"secret", "kept", "la la")
    assert part.read_bytes().endswith(mp3(40))


def raw_frame(version: int, name: bytes, data: bytes) -> bytes:
    size = struct.pack(">I", len(data)) if version == 3 else bytes(len(data) >> shift & 0x7F for shift in (21, 14, 7, 0))
    return name + size + b"\0\0" + data


def raw_mp3(version: int, *frames: tuple[bytes, bytes]) -> bytes:
    body = b"".join(raw_frame(version, *frame) for frame in frames)
    return b"ID3" + bytes([version, 0, 0]) + bytes(len(body) >> shift & 0x7F for shift in (21, 14, 7, 0)) + body + mp3(20)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("before", [3, 4])
def test_frames_that_nobody_knows_are_carried_over_in_the_new_version(put: Callable[[bytes], Path], before: int, version: int) -> None:
    part = put(raw_mp3(before, (b"TIT2", b"\0Old"), (b"XYZZ", b"a" * 300)))
    tagging.tag(part, Edits((("artist", ("Jane",)),), id3v2version=version))
    assert raw_frame(version, b"XYZZ", b"a" * 300) in part.read_bytes()


def test_version_3_has_no_frame_or_encoding_of_version_4(put: Callable[[bytes], Path]) -> None:
    part = put(mp3(40))
    wishes = (*SOME, ("date", ("2025-01-31",)), ("originaldate", ("1999",)), ("lyrics", ("la",)), ("performer", ("Ján",)), ("mood", ("calm",)))
    done = tagging.tag(part, Edits(wishes, id3v2version=3))
    tags = ID3(part, translate=False)
    assert tags.version == (2, 3, 0)
    assert all(getattr(frame, "encoding", 1) in (0, 1) for frame in tags.values())
    assert (str(tags["TYER"]), str(tags["TDAT"]), str(tags["TORY"])) == ("2025", "3101", "1999")
    assert all(frame.lang == "eng" for frame in (*tags.getall("COMM"), *tags.getall("USLT")))
    assert not {"TDRC", "TDOR", "TMOO"} & set(tags)
    assert done.unknown == (("mood", "ID3v2.3"),)


def test_a_date_takes_the_place_of_all_frames_of_the_old_one(put: Callable[[bytes], Path]) -> None:
    part = put(raw_mp3(3, (b"TYER", b"\x001999"), (b"TDAT", b"\x003112"), (b"TIME", b"\x002359")))
    tagging.tag(part, Edits((("date", ("2025",)),), id3v2version=3))
    tags = ID3(part, translate=False)
    assert {name: str(tags[name]) for name in tags} == {"TYER": "2025"}


@pytest.mark.parametrize(("remove", "left"), [(True, False), (False, True)])
def test_the_tag_of_version_1_goes_or_follows(put: Callable[[bytes], Path], remove: bool, left: bool) -> None:
    part = put(rich_mp3(4))
    tagging.tag(part, Edits((("title", ("New",)),), id3removev1=remove))
    end = part.read_bytes()[-128:]
    assert end.startswith(b"TAGNew\0") == left
    assert end.startswith(b"TAG") == left


def test_what_only_the_tag_of_version_1_tells_is_not_lost_with_it(put: Callable[[bytes], Path]) -> None:
    part = put(mp3(40) + (b"TAG" + b"Old title".ljust(30, b"\0")).ljust(127, b"\0") + b"\xff")
    tagging.tag(part, Edits((("artist", ("Jane",)),)))
    assert str(ID3(part, load_v1=False)["TIT2"]) == "Old title"
    assert part.read_bytes().endswith(mp3(40))


def test_removing_the_last_frame_removes_the_tag(put: Callable[[bytes], Path]) -> None:
    part = put(raw_mp3(4, (b"COMM", b"\0eng\0old")))
    tagging.tag(part, Edits((("comment", ()),)))
    assert part.read_bytes() == mp3(20)


def test_removing_what_is_not_there_changes_nothing(put: Callable[[bytes], Path]) -> None:
    part = put(mp3(20))
    tagging.tag(part, Edits((("comment", ()), ("chapters", ()))))
    assert part.read_bytes() == mp3(20)


def test_junk_before_the_first_frame_stays(put: Callable[[bytes], Path]) -> None:
    junk = bytes(n * 7 % 250 for n in range(2000))
    part = put(junk + mp3(40))
    tagging.tag(part, Edits(SOME))
    assert part.read_bytes().endswith(junk + mp3(40))


# ---------------------------------------------------------------------------------------------------------- chapters

@pytest.mark.parametrize("version", [3, 4])
def test_chapters_of_an_mp3_go_when_asked_to(put: Callable[[bytes], Path], version: int) -> None:
    part = put(rich_mp3(version))
    tagging.tag(part, Edits((("chapters", ()),)))
    tags = ID3(part)
    assert not tags.getall("CHAP")
    assert not tags.getall("CTOC")
    assert str(tags["TXXX:KEEP"]) == "kept"


@pytest.mark.parametrize("name", ["antennapod-nero-chapters.m4a", "antennapod-auphonic.m4a", "mutagen-ep9.m4b", "mutagen-nero-chapters.m4b",
                                  "antennapod-auphonic.ogg", "antennapod-auphonic.opus", "antennapod-auphonic-chapters.mp3"])
def test_chapters_go_from_each_format_where_another_program_sees_them(put: Callable[[bytes], Path], name: str) -> None:
    source = sounds.CORPUS / name
    if not source.exists():
        pytest.skip("the corpus of audio files is not beside the repository")
    assert sounds.probed(source)["chapters"] > 0
    part = put(source.read_bytes())
    # ffprobe 5.1 takes sizes within a chapter of ID3v2.4 for those of ID3v2.3, and shows no chapter that has a picture.
    tagging.tag(part, Edits((("artist", ("Jane",)),), id3v2version=3))
    assert sounds.probed(part)["chapters"] == sounds.probed(source)["chapters"]
    tagging.tag(part, Edits((("chapters", ()),)))
    assert sounds.probed(part)["chapters"] == 0
    assert sounds.played(part) == sounds.played(source)


# ---------------------------------------------------------------------------------------------- Vorbis, MP4, and types

def test_pictures_of_flac_and_mp4_survive(put: Callable[[bytes], Path]) -> None:
    part = put(sounds.sound("flac"))
    flac, picture = FLAC(part), Picture()
    picture.data, picture.mime, picture.type = b"\x89PNG\r\n\x1a\n" + bytes(70_000), "image/png", 3
    flac.add_picture(picture)
    flac.save()
    tagging.tag(part, Edits(SOME))
    assert [len(picture.data) for picture in FLAC(part).pictures] == [70_008]
    part = put(sounds.sound("m4a"))
    mp4 = MP4(part)
    mp4["covr"] = [b"\x89PNG\r\n\x1a\n" + bytes(70_000)]
    mp4["----:org.example:KEEP"] = [b"kept"]
    mp4.save()
    tagging.tag(part, Edits(SOME))
    assert (len(MP4(part)["covr"][0]), MP4(part)["----:org.example:KEEP"]) == (70_008, [b"kept"])


@pytest.mark.parametrize(("name", "written", "atom", "value"), [
    ("track", "3/12", "trkn", [(3, 12)]), ("disc", "2", "disk", [(2, 0)]), ("bpm", "120", "tmpo", [120]), ("compilation", "yes", "cpil", True),
    ("language", "deu", "----:com.apple.iTunes:LANGUAGE", [b"deu"]), ("keywords", "a, b", "keyw", ["a, b"]),
])
def test_values_of_mp4_have_the_types_of_their_atoms(put: Callable[[bytes], Path], name: str, written: str, atom: str, value: object) -> None:
    part = put(sounds.sound("m4a"))
    tagging.tag(part, Edits(((name, (written,)),)))
    assert MP4(part)[atom] == value


def test_an_m4a_without_any_tag_gets_some_and_its_sound_is_found_again(put: Callable[[bytes], Path]) -> None:
    for name in ("mutagen-no-tags.m4a", "quodlibet-h264_aac.mp4"):
        if not (sounds.CORPUS / name).exists():
            pytest.skip("the corpus of audio files is not beside the repository")
        part = put((sounds.CORPUS / name).read_bytes())
        tagging.tag(part, Edits((("lyrics", ("la " * 20_000,)),)))
        assert sounds.played(part) == sounds.played(sounds.CORPUS / name) != ""


def test_a_tag_that_a_format_lacks_is_told_and_the_others_are_written(put: Callable[[bytes], Path]) -> None:
    part = put(sounds.sound("m4a"))
    assert tagging.tag(part, Edits((("website", ("http://x/",)), ("artist", ("Jane",)), ("length", ())))).unknown == (("website", "MP4"),)
    assert MP4(part)["©ART"] == ["Jane"]


@pytest.mark.parametrize(("kind", "name", "value"), [
    ("mp3", "date", "yesterday"), ("mp3", "date", "12024"), ("m4a", "track", "seven"), ("m4a", "bpm", "70000"),
])
def test_a_value_that_cannot_stand_there_is_told_and_nothing_is_written(put: Callable[[bytes], Path], kind: str, name: str, value: str) -> None:
    told = refused(put(sounds.sound(kind)), (name, (value,)), ("artist", ("Jane",)))
    assert name in told
    assert value in told


# ---------------------------------------------------------------------------------------------------- track numbering

@pytest.mark.parametrize("kind", sounds.TAGGED)
def test_a_number_is_given_only_where_it_is_missing(put: Callable[[bytes], Path], kind: str) -> None:
    part = put(sounds.sound(kind))
    assert tagging.tag(part, Edits(track=5, only_missing=True)).track == 5
    numbered = part.read_bytes()
    assert tagging.tag(part, Edits(track=6, only_missing=True)) == Tagged()
    assert part.read_bytes() == numbered
    assert tagging.tag(part, Edits(track=7)).track == 7
    assert tags_of(part, kind)["track"] == "7"


# ------------------------------------------------------------------------------------------------------- broken files

@pytest.mark.parametrize("kind", ["aac", "webm"])
def test_kinds_without_tags_of_poca_stay_as_they_came(put: Callable[[bytes], Path], kind: str) -> None:
    assert kind in refused(put(sounds.sound(kind)))


@pytest.mark.parametrize("content", [b"", b"\0" * 9000, os.urandom(50_000).replace(b"\xff", b"\0"), b"ID3\4\0\0\0\0\0\x14" + bytes(20)])
def test_a_file_without_sound_stays_as_it_came(put: Callable[[bytes], Path], content: bytes) -> None:
    assert "no audio" in refused(put(content))


def id3_claiming(size: int) -> bytes:
    return b"ID3\4\0\0" + bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0)) + b"TIT2\0\0\0\4\0\0\3Old"


@pytest.mark.parametrize("claimed", [5_000, 12_000, 20_000, 268_000_000])
def test_a_tag_that_says_it_is_longer_than_it_is_costs_no_sound(put: Callable[[bytes], Path], claimed: int) -> None:
    told = refused(put(id3_claiming(claimed) + mp3(40)))
    assert "longer than it is" in told or "no audio" in told


def test_a_tag_that_is_larger_than_poca_reads_is_left_alone(put: Callable[[bytes], Path]) -> None:
    part = put(id3_claiming(70_000_000))
    with part.open("r+b") as file:
        file.truncate(70_000_010)
        file.seek(0, 2)
        file.write(mp3(40))
    with pytest.raises(TagError, match=r"70\.0 MB"):
        tagging.tag(part, Edits(SOME))


@pytest.mark.parametrize("kind", sounds.TAGGED)
def test_half_a_file_is_tagged_without_harm_or_left_alone(put: Callable[[bytes], Path], kind: str) -> None:
    whole = sounds.sound(kind)
    for share in (10, 30, 50, 90, 99):
        part = put(whole[:len(whole) * share // 100])
        before = sounds.played(part)
        try:
            tagging.tag(part, Edits(SOME))
        except TagError:
            assert part.read_bytes() == whole[:len(whole) * share // 100]
        assert sounds.played(part) == before


def test_a_tag_in_front_of_an_mp4_is_left_alone(put: Callable[[bytes], Path]) -> None:
    refused(put(b"ID3\4\0\0\0\0\0\x14" + bytes(20) + sounds.sound("m4a")))


def test_sound_that_would_be_lost_keeps_the_file_as_it_was(put: Callable[[bytes], Path]) -> None:
    # Two ID3 chunks: mutagen takes the first for the tag, and the second lies about its length.
    wav = sounds.sound("wav")
    broken = wav[:12] + b"id3 " + struct.pack("<I", len(wav) * 2) + wav[12:]
    part = put(broken)
    try:
        tagging.tag(part, Edits(SOME))
    except TagError:
        assert part.read_bytes() == broken
    assert wav[12:] in part.read_bytes()


def test_a_disk_that_refuses_the_copy_keeps_the_file(put: Callable[[bytes], Path]) -> None:
    part = put(mp3(40))
    blocked = part.parent / ".poca-0123456789ab.tagging.part"
    blocked.mkdir()
    with pytest.raises(TagError, match="directory"):
        tagging.tag(part, Edits(SOME))
    assert part.read_bytes() == mp3(40)


def test_a_copy_that_a_crash_left_is_in_nobodys_way(put: Callable[[bytes], Path], tmp_path: Path) -> None:
    part = put(mp3(40))
    stranger = tmp_path / "stranger"
    stranger.write_text("mine")
    (tmp_path / ".poca-0123456789ab.tagging.part").symlink_to(stranger)
    tagging.tag(part, Edits(SOME))
    assert stranger.read_text() == "mine"
    assert names_in(tmp_path) == [part.name, "stranger"]


# ------------------------------------------------------------------------------------------------- what a config asks

def asked(metadata: dict[str, str | list[str]], *, numbering: str = "no", **entry: object) -> Edits:
    pairs = tuple((name, value) for name, values in metadata.items() for value in ([values] if isinstance(values, str) else values))
    show = builders.subscription(metadata=pairs, track_numbering=numbering)
    return tagging.edits(show, Named("ab12", builders.entry(3, **entry)), Settings(Path("/x"), Path("/y")), 9)


def test_values_take_the_fields_of_rename_as_the_feed_tells_them() -> None:
    metadata: dict[str, str | list[str]] = {"title": "{episode_title}: {season}", "date": "{date:%Y}", "artist": ["{author}", "{title}"]}
    made = asked(metadata, title="A/B <c>? ", author="Jane", season=2)
    assert made.values == (("title", ("A/B <c>? : 2",)), ("date", ("2021",)), ("artist", ("Jane", "Show")))


def test_a_text_of_which_nothing_is_left_leaves_the_tag_as_it_is() -> None:
    made = asked({"date": "{date:%Y}", "artist": ["{author}", "Jane"], "comment": ""}, published=None)
    assert made.values == (("artist", ("Jane",)), ("comment", ()))


def test_braces_slashes_and_lines_of_a_value_stay() -> None:
    assert asked({"comment": "http://x/{{a}}//b\nEnd "}).values == (("comment", ("http://x/{a}//b\nEnd ",)),)


def test_what_a_feed_smuggles_in_does_not_reach_a_tag() -> None:
    assert asked({"title": "{uid}"}, guid="a\0b\ud800c").values == (("title", ("abc",)),)


def test_numbers_are_asked_for_only_where_they_are_wanted() -> None:
    assert asked({}).track is None
    assert (asked({}, numbering="yes").track, asked({}, numbering="yes").only_missing) == (9, False)
    assert (asked({}, numbering="if missing").track, asked({}, numbering="if missing").only_missing) == (9, True)
