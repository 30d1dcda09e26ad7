"""Kinds of media: by their bytes, by the extension of a name, by the type that a feed or a server tells.

Bytes are believed first, since servers call pages audio and audio text. Signatures follow the formats' own documents: ISO
11172-3 and 13818-3 (MPEG audio frames), ISO 13818-7 (ADTS), ISO 14496-12 (boxes), RFC 3533 (Ogg), RFC 9639 (FLAC), ID3v2.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from enum import StrEnum


class Kind(StrEnum):
    """A container or stream of audio or video, as its bytes show it."""

    MP3 = "mp3"                 # MPEG audio of any layer, ID3v2 in front or not
    AAC = "aac"                 # ADTS or ADIF
    MP4 = "mp4"                 # also m4a, m4b, QuickTime
    OGG = "ogg"                 # Vorbis
    OPUS = "opus"
    SPEEX = "speex"
    OGA = "oga"                 # another codec in Ogg, FLAC say
    OGV = "ogv"                 # Theora
    FLAC = "flac"
    WAV = "wav"
    AIFF = "aiff"
    ASF = "asf"                 # wma, wmv
    WEBM = "webm"               # Matroska
    MPEG = "mpeg"               # program or transport stream
    AVI = "avi"
    FLV = "flv"
    AMR = "amr"
    CAF = "caf"
    APE = "ape"
    WAVPACK = "wavpack"
    MUSEPACK = "musepack"


_MAGIC = (
    (0, b"fLaC", Kind.FLAC),
    (0, b"\x1a\x45\xdf\xa3", Kind.WEBM),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", Kind.ASF),
    (8, b"WAVE", Kind.WAV),
    (8, b"AIFF", Kind.AIFF),
    (8, b"AIFC", Kind.AIFF),
    (8, b"AVI ", Kind.AVI),
    (0, b"ADIF", Kind.AAC),
    (0, b"\x00\x00\x01\xba", Kind.MPEG),
    (0, b"FLV\x01", Kind.FLV),
    (0, b"#!AMR", Kind.AMR),
    (0, b"caff\x00\x01", Kind.CAF),
    (0, b"MAC \x8c", Kind.APE),
    (0, b"MAC \x96", Kind.APE),
    (0, b"wvpk", Kind.WAVPACK),
    (0, b"MPCK", Kind.MUSEPACK),
    (0, b"MP+\x07", Kind.MUSEPACK),
)
_CHUNKED = {Kind.WAV: (b"RIFF", b"RF64"), Kind.AIFF: (b"FORM",), Kind.AVI: (b"RIFF",)}
_OGG_CODECS = ((b"\x80theora", Kind.OGV), (b"\x01vorbis", Kind.OGG), (b"OpusHead", Kind.OPUS), (b"Speex   ", Kind.SPEEX))
_PICTURE_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis", b"crx "})
_BOXES = frozenset({b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EXTENSION_OF_KIND = {
    Kind.MP4: ".m4a", Kind.SPEEX: ".spx", Kind.AIFF: ".aiff", Kind.ASF: ".wma", Kind.MPEG: ".mpg", Kind.WAVPACK: ".wv",
    Kind.MUSEPACK: ".mpc",
}
_AUDIO = _words("mp3 m4a m4b m4p m4r aac ogg oga opus spx flac wav wave aif aiff aifc wma mp2 mpga mpa mka ac3 amr awb "
                "3ga ape wv mpc caf au snd ra weba")
_VIDEO = _words("mp4 m4v mov qt avi mkv webm mpg mpeg mpe wmv asf ogv ogm 3gp 3g2 flv f4v ts m2ts divx vob rm")
_EXTENSIONS = {ending: f".{ending}" for ending in _AUDIO | _VIDEO}
_NO_MEDIA = _words("jpg jpeg jpe png gif webp svg bmp tif tiff ico heic avif pdf epub mobi doc docx odt rtf ppt pptx odp xls xlsx ods "
                   "txt md csv htm html xhtml xml rss atom opml json srt vtt sub torrent zip rar 7z gz tar exe swf "
                   "m3u m3u8 pls")
_TYPES = {
    ".mp3": "audio/mpeg audio/mp3 audio/mpeg3 audio/x-mpeg audio/x-mpeg3 audio/x-mp3 audio/mpg audio/x-mpg application/mp3",
    ".m4a": "audio/mp4 audio/m4a audio/x-m4a audio/mp4a-latm audio/x-mp4",
    ".m4b": "audio/m4b audio/x-m4b",
    ".aac": "audio/aac audio/x-aac audio/aacp",
    ".ogg": "audio/ogg audio/x-ogg audio/vorbis application/ogg application/x-ogg",
    ".opus": "audio/opus audio/x-opus",
    ".spx": "audio/speex audio/x-speex",
    ".flac": "audio/flac audio/x-flac",
    ".wav": "audio/wav audio/x-wav audio/wave audio/vnd.wave audio/x-pn-wav",
    ".aiff": "audio/aiff audio/x-aiff",
    ".wma": "audio/x-ms-wma",
    ".amr": "audio/amr audio/amr-wb",
    ".caf": "audio/x-caf",
    ".mka": "audio/x-matroska audio/matroska",
    ".webm": "audio/webm video/webm",
    ".mp4": "video/mp4 video/mpeg4 application/mp4",
    ".m4v": "video/m4v video/x-m4v",
    ".mov": "video/quicktime",
    ".mpg": "video/mpeg video/mpg video/x-mpeg",
    ".mkv": "video/x-matroska video/matroska",
    ".avi": "video/x-msvideo video/avi",
    ".wmv": "video/x-ms-wmv",
    ".asf": "video/x-ms-asf",
    ".ogv": "video/ogg",
    ".flv": "video/x-flv",
    ".3gp": "video/3gpp audio/3gpp",
    ".ts": "video/mp2t",
}
_EXTENSION_OF_TYPE = {mime: extension for extension, mimes in _TYPES.items() for mime in mimes.split()}
_PLAYLISTS = _words("audio/mpegurl audio/x-mpegurl application/vnd.apple.mpegurl application/x-mpegurl audio/x-scpls audio/scpls")
_SILENT_TYPES = _words("application/octet-stream binary/octet-stream application/x-octet-stream application/binary application/force-download "
                       "application/x-force-download application/download application/x-download application/unknown "
                       "application/x-unknown */*")
_DOCUMENT_TYPES = _words("application/pdf application/epub+zip application/zip application/x-zip-compressed application/json "
                         "application/xml application/xhtml+xml application/rss+xml application/atom+xml application/msword application/rtf "
                         "application/javascript application/x-shockwave-flash application/json+chapters application/srt "
                         "application/x-subrip") | _PLAYLISTS
_TORRENT = "application/x-bittorrent"


# ------------------------------------------------------------------------------------------------------ by bytes

def sniff(head: bytes) -> Kind | None:
    """The kind of media that a file beginning with ``head`` is, None when its bytes show none.

    ``head``: the first 64 KiB, or the whole file where it is smaller. A tag that does not end within it counts as an
    MP3's; junk may stand before the first frame of an MP3, as long as frames follow within ``head``.
    """
    at = 0
    while end := _id3_end(head, at):
        at = end
    body = head[at:]
    if kind := _by_signature(body) or _by_first_frames(body):
        return kind
    if at:
        # The tag may be longer than the head, or lie about its size; it proves enough by itself.
        return Kind.MP3
    return Kind.MP3 if any(_mpeg_frames(head, found.start(), 3) for found in _SYNC.finditer(head)) else None


def _id3_end(head: bytes, at: int) -> int:
    """Where the ID3v2 tag at ``at`` ends by its own account (ID3v2.4, 3.1), 0 where there is none."""
    tag = head[at:at + 10]
    if len(tag) < 10 or not tag.startswith(b"ID3") or tag[3] not in (2, 3, 4) or tag[4] == 0xFF or max(tag[6:]) > 0x7F:
        return 0
    size = tag[6] << 21 | tag[7] << 14 | tag[8] << 7 | tag[9]
    footer = 10 if tag[3] == 4 and tag[5] & 0x10 else 0
    return at + 10 + size + footer


def _by_signature(head: bytes) -> Kind | None:
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset) and (kind not in _CHUNKED or head.startswith(_CHUNKED[kind])):
            return kind
    if head.startswith(b"OggS"):
        return next((kind for codec, kind in _OGG_CODECS if codec in head[:512]), Kind.OGA)
    if head[4:8] == b"ftyp":
        return None if head[8:12] in _PICTURE_BRANDS else Kind.MP4
    if head[4:8] in _BOXES and head[0] < 0x20:      # a size no letter can stand for: "The free ..." is no box
        return Kind.MP4
    if len(head) > 3 * 188 and head[0] == head[188] == head[376] == head[564] == 0x47:
        return Kind.MPEG
    return None


def _by_first_frames(head: bytes) -> Kind | None:
    if _mpeg_frames(head, 0, 2):
        return Kind.MP3
    return Kind.AAC if _adts_frames(head) else None


_SYNC = re.compile(rb"(?=\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff][\x10-\xef])")
_BITRATES = {   # kbit/s by (MPEG-1?, layer), index 1 to 14
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = (44100, 48000, 32000)      # Hz of MPEG-1


def _mpeg_frame(head: bytes, at: int) -> tuple[int, tuple[int, int, int]] | None:
    """Length in bytes of the MPEG audio frame at ``at``, and what all frames of a stream have in common."""
    if at + 4 > len(head) or not _SYNC.match(head, at):
        return None
    version, layer = head[at + 1] >> 3 & 3, 4 - (head[at + 1] >> 1 & 3)
    rate, padding = head[at + 2] >> 2 & 3, head[at + 2] >> 1 & 1
    if rate == 3:
        return None
    hertz = _RATES[rate] >> {3: 0, 2: 1, 0: 2}[version]
    bits = _BITRATES[version == 3, layer][(head[at + 2] >> 4) - 1] * 1000
    slots = 12 if layer == 1 else 72 if layer == 3 and version != 3 else 144
    return (slots * bits // hertz + padding) * (4 if layer == 1 else 1), (version, layer, rate)


def _mpeg_frames(head: bytes, at: int, enough: int) -> bool:
    """Whether ``enough`` frames of one stream follow each other from ``at``; where the head ends first, one less will do."""
    common = None
    for count in range(enough):
        if at + 4 > len(head):
            return count == enough - 1 and (count > 1 or at == len(head))
        frame = _mpeg_frame(head, at)
        if frame is None or common not in (None, frame[1]):
            return False
        length, common = frame
        at += length
    return True


def _adts_frames(head: bytes) -> bool:
    """Whether two ADTS frames follow each other from the start, or one fills the head."""
    at = 0
    for count in range(2):
        if count and at == len(head):
            return True
        if at + 7 > len(head) or head[at] != 0xFF or head[at + 1] & 0xF6 != 0xF0 or head[at + 2] >> 2 & 15 > 12:
            return False
        length = (head[at + 3] & 3) << 11 | head[at + 4] << 3 | head[at + 5] >> 5
        if length < 7:
            return False
        at += length
    return True


_CONTROLS = bytes([*range(9), 11, *range(14, 27), *range(28, 32), 127])     # ESC is left out: ISO-2022 needs it
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype|!--|\?xml|/?(?:html|head|body|title|script|meta|rss|error|response)\b)", re.IGNORECASE)
_UTF16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))


def looks_like_text(head: bytes) -> bool:
    """Whether a file beginning with ``head`` is a page, a data document or a message in words, in any usual encoding.

    Nothing at all is no text.
    """
    if _MARKUP.match(head):
        return True
    if any(head.startswith(mark) and _readable(head, encoding) for mark, encoding in _UTF16):
        return True
    if not head.strip() or len(head.translate(None, _CONTROLS)) != len(head):
        return False
    if _decodes(head, "utf-8"):
        return True
    # A byte encoding (Latin, Cyrillic, Shift-JIS ...): chance makes a few bytes without controls, but not many, and
    # words have spaces between them or marks of ASCII around them.
    ascii_share = sum(byte < 0x80 for byte in head[:4096]) / min(len(head), 4096)
    return ascii_share > 0.7 or (len(head) >= 64 and ascii_share > 0.05)


def _decodes(head: bytes, encoding: str) -> str:
    """The text in ``head``, which may end within a letter; "" where it is not of this encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return ""


def _readable(head: bytes, encoding: str) -> bool:
    text = _decodes(head, encoding).lstrip("\ufeff")[:4096]
    return bool(text) and all(letter in "\t\n\r\f" or unicodedata.category(letter) not in ("Cc", "Cn", "Co", "Cs") for letter in text)


# -------------------------------------------------------------------------------------------- by name and by type

def _ending(name: str) -> str:
    """Lower-case ending of a name's last part, without its dot; "" where it has none."""
    return name.strip().rpartition("/")[2].rpartition(".")[2].lower() if "." in name else ""


def media_extension(name: str) -> str:
    """``.mp3`` for ``Show.MP3``: the extension that a name ends in, where it is one of audio or video, else ""."""
    return _EXTENSIONS.get(_ending(name), "")


def extension_of_kind(kind: Kind) -> str:
    """The usual extension, with its dot."""
    return _EXTENSION_OF_KIND.get(kind, f".{kind}")


def _bare(mime: str) -> str:
    return mime.partition(";")[0].strip().lower()


def extension_of_type(mime: str) -> str:
    """The extension, with its dot, for a media type; parameters are passed over. "" where the type does not tell."""
    return _EXTENSION_OF_TYPE.get(_bare(mime), "")


def is_media_type(mime: str) -> bool:
    """Whether a Content-Type says audio or video; a playlist is neither."""
    if mime in _EXTENSION_OF_TYPE:
        return True
    mime = _bare(mime)
    return (mime.startswith(("audio/", "video/")) and mime not in _PLAYLISTS) or mime in _EXTENSION_OF_TYPE


def enclosure_rank(mime: str, url: str) -> int | None:
    """How well an enclosure serves as an episode: 0 audio, 1 video, 2 of unknown kind, None: no episode.

    The type decides, unless it says nothing or denies an extension of audio or video (feeds call an .mp3 image/jpeg).
    """
    mime = _bare(mime)
    if mime == _TORRENT:
        return None
    if is_media_type(mime):
        return 1 if mime.startswith("video/") or mime == "application/mp4" else 0
    path, _, query = url.strip().partition("#")[0].partition("?")
    ending = _ending(path)
    for candidate in (ending, _ending(query)):
        if candidate in _AUDIO or candidate in _VIDEO:
            return 0 if candidate in _AUDIO else 1
    tells = "/" in mime and mime not in _SILENT_TYPES
    denied = tells and (mime in _DOCUMENT_TYPES or not mime.startswith("application/"))
    return None if denied or ending in _NO_MEDIA else 2
