"""Audio files for tests: made here, made by ffmpeg, or of a corpus beside the repository; and what other programs read in them."""

from __future__ import annotations

import io
import json
import math
import shutil
import struct
import subprocess
import tempfile
import wave
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.origin import mp3

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "audio"
FFMPEG = {"m4a": ["-c:a", "aac"], "mp4": ["-c:a", "aac", "-movflags", "+faststart"], "ogg": ["-c:a", "libvorbis"], "opus": ["-c:a", "libopus"],
          "flac": ["-c:a", "flac"], "aac": ["-c:a", "aac", "-f", "adts"], "webm": ["-c:a", "libopus"], "lame": ["-c:a", "libmp3lame", "-f", "mp3"]}
MADE = ("mp3", "wav", "aiff", *FFMPEG)
TAGGED = ("mp3", "lame", "wav", "aiff", "m4a", "mp4", "ogg", "opus", "flac")        # kinds in which poca writes tags


def corpus() -> list[Path]:
    return sorted(CORPUS.iterdir()) if CORPUS.is_dir() else []


def need_ffmpeg() -> None:
    if not (shutil.which("ffmpeg") and shutil.which("ffprobe")):
        pytest.skip("ffmpeg and ffprobe are not installed")


@cache
def sound(kind: str) -> bytes:
    """A second of sound of a kind, without tags of its own but what ffmpeg writes."""
    match kind:
        case "mp3":
            return mp3(40)
        case "wav":
            return _wav()
        case "aiff":
            return _aiff()
    need_ffmpeg()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"a.{'mp3' if kind == 'lame' else kind}"
        subprocess.run(["ffmpeg", "-v", "error", "-i", "pipe:0", *FFMPEG[kind], "-map_metadata", "-1", str(made)], input=_wav(), check=True)
        return made.read_bytes()


def _samples() -> bytes:
    return struct.pack("<8000h", *(int(9000 * math.sin(n / 9)) for n in range(8000)))


def _wav() -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(_samples())
    return buffer.getvalue()


def _aiff() -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return name + struct.pack(">I", len(content)) + content

    rate = struct.pack(">HQ", 16383 + 12, 8000 << 51)       # 8000 as an 80-bit float
    common = struct.pack(">hIh", 1, 8000, 16) + rate
    swapped = struct.pack(">8000h", *struct.unpack("<8000h", _samples()))
    return chunk(b"FORM", b"AIFF" + chunk(b"COMM", common) + chunk(b"SSND", bytes(8) + swapped))


def played(path: Path) -> str:
    """What ffmpeg takes for the sound of a file, packet by packet, as a hash; "" where it finds none."""
    need_ffmpeg()
    made = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-map", "0:a", "-c", "copy", "-f", "md5", "-"], capture_output=True, text=True)
    return made.stdout.strip()


def probed(path: Path) -> dict[str, Any]:
    """``tags`` (lower-case names), ``chapters`` and ``pictures`` (how many), as ffprobe reads them."""
    need_ffmpeg()
    made = subprocess.run(
        ["ffprobe", "-v", "error", "-show_format", "-show_streams", "-show_chapters", "-of", "json", str(path)], capture_output=True, check=True
    )
    told = json.loads(made.stdout)
    tags = dict(told["format"].get("tags", {}))
    for stream in told["streams"]:
        if stream["codec_type"] == "audio":
            tags.update(stream.get("tags", {}))
    pictures = sum(stream.get("disposition", {}).get("attached_pic", 0) for stream in told["streams"])
    return {"tags": {name.lower(): value for name, value in tags.items()}, "chapters": len(told["chapters"]), "pictures": pictures}
