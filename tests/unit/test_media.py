"""Kinds of media by bytes, by name and by type."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from poca.media import Kind, enclosure_rank, extension_of_kind, extension_of_type, is_media_type, looks_like_text, media_extension, sniff

AUDIO = Path(__file__).parents[3] / "shared" / "corpus" / "audio"
FRAME = b"\xff\xfb\x90\x64" + bytes(413)        # MPEG-1 layer III, 128 kbit/s, 44100 Hz
KIND_OF_SUFFIX = {
    ".mp3": Kind.MP3, ".m4a": Kind.MP4, ".m4b": Kind.MP4, ".mp4": Kind.MP4, ".aac": Kind.AAC, ".ogg": Kind.OGG, ".opus": Kind.OPUS,
    ".spx": Kind.SPEEX, ".flac": Kind.FLAC, ".wav": Kind.WAV, ".aif": Kind.AIFF, ".wma": Kind.ASF,
}


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def id3(size: int, told: int | None = None, version: int = 4) -> bytes:
    told = size if told is None else told
    return b"ID3" + bytes([version, 0, 0, told >> 21 & 127, told >> 14 & 127, told >> 7 & 127, told & 127]) + bytes(size)


def ogg(codec: bytes) -> bytes:
    return b"OggS\0\2" + bytes(20) + b"\1\x1e" + codec + bytes(40)


def test_every_real_audio_file_is_known_by_its_bytes_and_is_no_text() -> None:
    if not AUDIO.is_dir():
        pytest.skip("the collection of real audio files is not here")
    files = [path for path in AUDIO.iterdir() if path.stat().st_size]
    assert files
    for path in files:
        head = path.read_bytes()[:65536]
        assert sniff(head) == KIND_OF_SUFFIX[path.suffix], path.name
        assert not looks_like_text(head), path.name


@pytest.mark.parametrize(("head", "kind"), [
    (FRAME * 3, Kind.MP3),
    (FRAME, Kind.MP3),
    (noise(2048) + FRAME * 20, Kind.MP3),
    (b"\0" * 2048 + FRAME * 3, Kind.MP3),
    (b"\xff" * 2000 + FRAME * 3, Kind.MP3),
    (id3(500) + FRAME * 3, Kind.MP3),
    (id3(20) + id3(30) + FRAME * 3, Kind.MP3),
    (id3(100, told=10_000_000) + FRAME * 3, Kind.MP3),
    (id3(2000, told=3) + FRAME * 3, Kind.MP3),
    (id3(70_000)[:65536], Kind.MP3),
    (id3(64) + b"fLaC\0\0\0\x22" + bytes(34), Kind.FLAC),
    (id3(64) + (b"\xff\xf1\x50\x80\x02\x00\xfc" + bytes(9)) * 3, Kind.AAC),
    ((b"\xff\xf1\x50\x80\x02\x00\xfc" + bytes(9)) * 3, Kind.AAC),
    (b"\0\0\0\x20ftypM4A \0\0\0\0" + bytes(40), Kind.MP4),
    (b"\0\0\0\x08wide\0\0\1\0mdat" + bytes(40), Kind.MP4),
    (ogg(b"\1vorbis"), Kind.OGG),
    (ogg(b"OpusHead"), Kind.OPUS),
    (ogg(b"Speex   "), Kind.SPEEX),
    (ogg(b"\x7fFLAC"), Kind.OGA),
    (ogg(b"\x80theora"), Kind.OGV),
    (b"RIFF\0\0\0\0WAVEfmt " + bytes(100), Kind.WAV),
    (b"FORM\0\0\0\0AIFFCOMM" + bytes(100), Kind.AIFF),
    (b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81" + bytes(40), Kind.WEBM),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11" + bytes(40), Kind.ASF),
    ((b"G" + bytes(187)) * 5, Kind.MPEG),
])
def test_media_are_known_by_their_bytes_and_are_no_text(head: bytes, kind: Kind) -> None:
    assert sniff(head) == kind
    assert not looks_like_text(head)


@pytest.mark.parametrize("rate", range(3))
@pytest.mark.parametrize("version", [0, 2, 3])
@pytest.mark.parametrize("layer", [1, 2, 3])
def test_frames_of_every_mpeg_version_layer_and_rate_make_an_mp3(version: int, layer: int, rate: int) -> None:
    hertz = [44100, 48000, 32000][rate] // {3: 1, 2: 2, 0: 4}[version]
    bits = {(3, 1): 256, (3, 2): 128, (3, 3): 112}.get((version, layer), 128 if layer == 1 else 64) * 1000
    samples = 384 if layer == 1 else 576 if layer == 3 and version != 3 else 1152
    length = samples // 32 * bits // hertz * 4 if layer == 1 else samples // 8 * bits // hertz
    frame = bytes([0xFF, 0xE1 | version << 3 | (4 - layer) << 1, 8 << 4 | rate << 2, 0])
    assert sniff(noise(300) + frame.ljust(length, b"\0") * 4) == Kind.MP3


@pytest.mark.parametrize("size", [1, 10, 100, 5000, 65536])
def test_random_bytes_are_no_media(size: int) -> None:
    assert [seed for seed in range(40) if sniff(noise(size, seed))] == []


def test_headers_of_different_streams_make_no_mp3() -> None:
    assert sniff(noise(300) + FRAME + b"\xff\xf3\x90\x64" + bytes(257) + FRAME + b"\xff\xf3\x90\x64") is None


def test_random_bytes_and_silence_are_no_text() -> None:
    assert [seed for seed in range(200) if looks_like_text(noise(20, seed))] == []
    assert [seed for seed in range(200) if looks_like_text(noise(300, seed))] == []
    assert not any(looks_like_text(bytes([byte]) * 5000) for byte in (0, 0x7F, 0x80, 0xFF))


@pytest.mark.parametrize("text", [
    "<!DOCTYPE html><html><head><title>Anmelden für Gäste</title></head></html>",
    "\n  <html>\n<body>Bitte wählen</body></html>",
    '<?xml version="1.0"?>\n<Error><Code>Verboten für Gäste</Code></Error>',
    '{"error": "nicht gefunden: ä"}',
    "code 77: access refused, désolé",
    "The free trial has ended, señor",
    "The big WAVE is over, señor",
    "ID3 is what this message for Zoë begins with, and words follow",
    "Not found\r\n\tübrigens\n",
])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_pages_and_messages_are_text_and_no_media(text: str, encoding: str) -> None:
    for head in (text.encode(encoding), text.encode("utf-16-be") if encoding == "utf-16" and text[0] == "<" else text.encode(encoding)):
        assert looks_like_text(head)
        assert sniff(head) is None


@pytest.mark.parametrize(("text", "encoding"), [
    ("Файл не найден. Обратитесь к администратору сервера, пожалуйста, или попробуйте позже.", "windows-1251"),
    ("ファイルが見つかりません。 あとでもう一度お試しください。 サーバーの管理者に連絡してください。 ", "shift-jis"),
    ("ファイルが見つかりません", "iso-2022-jp"),
    ("找不到文件", "utf-8"),
])
def test_messages_in_other_encodings_are_text(text: str, encoding: str) -> None:
    assert looks_like_text(text.encode(encoding))
    assert sniff(text.encode(encoding)) is None


def test_text_that_is_cut_within_a_letter_is_still_text() -> None:
    assert looks_like_text("ü".encode() * 500 + "ü".encode()[:1])


def test_a_page_with_a_stray_control_character_is_text() -> None:
    assert looks_like_text(b"<html><body>oops\x00\x07</body></html>")


def test_nothing_is_neither_media_nor_text() -> None:
    assert sniff(b"") is None
    assert not looks_like_text(b"")


@pytest.mark.parametrize("head", [
    b"\x89PNG\r\n\x1a\n" + bytes(100), b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n" + noise(300), b"PK\3\4" + noise(300),
    b"\xff\xd8\xff\xe0\0\x10JFIF" + noise(300), b"\0\0\0\x18ftypheic" + bytes(100), struct.pack("<I", 7) * 100,
])
def test_pictures_and_documents_are_no_media(head: bytes) -> None:
    assert sniff(head) is None


@pytest.mark.parametrize(("name", "extension"), [
    ("a.mp3", ".mp3"), ("A B.MP3", ".mp3"), ("a.tar.opus", ".opus"), ("a.m4b ", ".m4b"), ("a.php", ""), ("mp3", ""), ("a.", ""), ("", ""),
    ("v1.5", ""), ("x.mp3/", ""), ("a.mkv", ".mkv"),
])
def test_only_an_extension_of_audio_or_video_counts(name: str, extension: str) -> None:
    assert media_extension(name) == extension


@pytest.mark.parametrize(("mime", "extension"), [
    ("audio/mpeg", ".mp3"), ("Audio/MPEG; charset=binary", ".mp3"), ("audio/x-m4a", ".m4a"), ("audio/mp4", ".m4a"), ("video/mp4", ".mp4"),
    ("audio/ogg", ".ogg"), ("audio/opus", ".opus"), ("application/octet-stream", ""), ("text/html", ""), ("", ""),
])
def test_a_type_gives_its_usual_extension(mime: str, extension: str) -> None:
    assert extension_of_type(mime) == extension


def test_every_kind_gives_an_extension_that_is_known() -> None:
    for kind in Kind:
        assert media_extension("a" + extension_of_kind(kind)), kind
    assert extension_of_kind(Kind.MP3) == ".mp3"
    assert extension_of_kind(Kind.MP4) == ".m4a"


@pytest.mark.parametrize(("mime", "media"), [
    ("audio/mpeg", True), ("VIDEO/x-anything; a=b", True), ("application/ogg", True), ("audio/x-mpegurl", False), ("text/html", False),
    ("application/octet-stream", False), ("", False), ("image/jpeg", False),
])
def test_media_types(mime: str, media: bool) -> None:
    assert is_media_type(mime) is media


@pytest.mark.parametrize(("mime", "url", "rank"), [
    ("audio/mpeg", "https://h/x", 0),
    ("audio/mpeg", "https://h/x.mp4", 0),
    ("application/ogg", "https://h/x", 0),
    ("video/mp4", "https://h/x.mp3", 1),
    ("", "https://h/x.mp3", 0),
    ("", "https://h/X.MP3?sig=a/b.jpg#t=1", 0),
    ("", "https://h/x.m4v", 1),
    ("", "https://h/get.php?file=x.mp3", 0),
    ("", "https://h/get.php?id=3", 2),
    ("", "https://h/stream", 2),
    ("application/octet-stream", "https://h/x.ogg", 0),
    ("application/octet-stream", "https://h/x", 2),
    ("application/octet-stream", "https://h/x.pdf", None),
    ("mp3", "https://h/x.mp3", 0),
    ("nonsense", "https://h/x", 2),
    ("image/jpeg", "https://h/x.mp3", 0),           # feeds do that
    ("image/jpeg", "https://h/x.jpg", None),
    ("image/jpeg", "https://h/x", None),
    ("text/html", "https://h/x", None),
    ("application/pdf", "https://h/x", None),
    ("application/x-bittorrent", "https://h/x.mp3", None),
    ("", "https://h/x.mp3.torrent", None),
    ("", "https://h/x.jpg?size=3", None),
    ("audio/x-mpegurl", "https://h/x.m3u", None),
    ("application/x-anything", "https://h/x", 2),
    ("", "http://[broken", 2),
])
def test_an_enclosure_is_judged_by_type_and_where_that_fails_by_extension(mime: str, url: str, rank: int | None) -> None:
    assert enclosure_rank(mime, url) == rank
