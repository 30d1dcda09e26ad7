"""The names that `metadata` takes, and what each becomes in each format: one table, for the code, the docs and
``poca-subscribe tags``. Pure.

ID3 frames follow ID3v2.4 (4) with iTunes' own TDES, TCAT, TKWD, TCMP, TSO2 and TSOC; MP4 atoms are iTunes', and where it has
none the free-form ones that other taggers write; Vorbis comments are by their usual field names.
"""

from __future__ import annotations

from typing import NamedTuple

FORMATS = ("mp3", "mp4", "vorbis")      # mp3: also wav and aiff; vorbis: ogg, opus and flac


class Tag(NamedTuple):
    """A row of the table; "" where a format has no such tag."""

    name: str
    mp3: str                    # ID3 frame; TXXX:DESCRIPTION
    mp4: str                    # atom; ----:MEAN:NAME for a free-form one
    vorbis: str                 # field

    def target(self, form: str) -> str:
        """What the name becomes in one of FORMATS."""
        return {"mp3": self.mp3, "mp4": self.mp4, "vorbis": self.vorbis}[form]


def _free(name: str) -> str:
    return f"----:com.apple.iTunes:{name}"


TAGS = {tag.name: tag for tag in (
    Tag("title", "TIT2", "©nam", "TITLE"),
    Tag("artist", "TPE1", "©ART", "ARTIST"),
    Tag("album", "TALB", "©alb", "ALBUM"),
    Tag("albumartist", "TPE2", "aART", "ALBUMARTIST"),
    Tag("genre", "TCON", "©gen", "GENRE"),
    Tag("date", "TDRC", "©day", "DATE"),
    Tag("comment", "COMM", "©cmt", "COMMENT"),
    Tag("description", "TDES", "desc", "DESCRIPTION"),
    Tag("lyrics", "USLT", "©lyr", "LYRICS"),
    Tag("track", "TRCK", "trkn", "TRACKNUMBER"),
    Tag("tracknumber", "TRCK", "trkn", "TRACKNUMBER"),
    Tag("disc", "TPOS", "disk", "DISCNUMBER"),
    Tag("discnumber", "TPOS", "disk", "DISCNUMBER"),
    Tag("chapters", "CHAP, CTOC", "chpl, chap", "CHAPTERxxx"),      # can be removed only
    Tag("composer", "TCOM", "©wrt", "COMPOSER"),
    Tag("copyright", "TCOP", "cprt", "COPYRIGHT"),
    Tag("language", "TLAN", _free("LANGUAGE"), "LANGUAGE"),
    Tag("website", "WOAR", "", "WEBSITE"),
    Tag("organization", "TPUB", _free("LABEL"), "ORGANIZATION"),
    Tag("category", "TCAT", "catg", "CATEGORY"),
    Tag("keywords", "TKWD", "keyw", "KEYWORDS"),
    Tag("grouping", "TIT1", "©grp", "GROUPING"),
    Tag("subtitle", "TIT3", _free("SUBTITLE"), "SUBTITLE"),
    Tag("version", "TIT3", _free("VERSION"), "VERSION"),
    Tag("discsubtitle", "TSST", _free("DISCSUBTITLE"), "DISCSUBTITLE"),
    Tag("originaldate", "TDOR", _free("ORIGINALDATE"), "ORIGINALDATE"),
    Tag("author", "TOLY", "", "AUTHOR"),
    Tag("lyricist", "TEXT", _free("LYRICIST"), "LYRICIST"),
    Tag("conductor", "TPE3", _free("CONDUCTOR"), "CONDUCTOR"),
    Tag("arranger", "TPE4", _free("ARRANGER"), "ARRANGER"),
    Tag("performer", "TXXX:PERFORMER", _free("PERFORMER"), "PERFORMER"),
    Tag("encodedby", "TENC", "©too", "ENCODED-BY"),
    Tag("isrc", "TSRC", _free("ISRC"), "ISRC"),
    Tag("media", "TMED", _free("MEDIA"), "MEDIA"),
    Tag("mood", "TMOO", _free("MOOD"), "MOOD"),
    Tag("bpm", "TBPM", "tmpo", "BPM"),
    Tag("length", "TLEN", "", "LENGTH"),
    Tag("compilation", "TCMP", "cpil", "COMPILATION"),
    Tag("titlesort", "TSOT", "sonm", "TITLESORT"),
    Tag("artistsort", "TSOP", "soar", "ARTISTSORT"),
    Tag("albumsort", "TSOA", "soal", "ALBUMSORT"),
    Tag("albumartistsort", "TSO2", "soaa", "ALBUMARTISTSORT"),
    Tag("composersort", "TSOC", "soco", "COMPOSERSORT"),
)}

ONLY_V24 = frozenset({"TMOO", "TSOA", "TSOP", "TSOT", "TSST"})     # frames that ID3v2.3 lacks


def table(form: str) -> tuple[tuple[str, str], ...]:
    """Each name that a format knows, with what it becomes there. ``form``: one of FORMATS."""
    return tuple((tag.name, tag.target(form)) for tag in TAGS.values() if tag.target(form))
