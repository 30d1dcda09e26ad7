"""One URL -> one complete file: a real server on 127.0.0.1, real files."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poca.download import Downloaded, Part, download
from poca.errors import DiskError, DiskFullError, Interrupted, Trouble, WebError
from poca.media import Kind
from poca.model import Settings
from poca.web import Web
from tests.origin import Origin, Reply, mp3, origin

WHOLE = mp3(400)        # 166,800 bytes
HTML = b"<!DOCTYPE html><html><head><title>Not found</title></head><body>Your session has ended.</body></html>"


@pytest.fixture
def server() -> Iterator[Origin]:
    with origin() as server:
        yield server


class Client:
    """Downloads into one part, as the history would remember it from try to try."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.settings = Settings(folder, folder / "state", **{"timeout": 5, "min_speed": 0, **settings})
        self.path = folder / ".poca-0123.part"
        self.etag, self.total = "", None
        self.begun: list[tuple[str, int | None]] = []
        self.progress: list[tuple[int, int | None]] = []

    def get(self, url: str, **options: Any) -> Downloaded:
        def begun(etag: str, total: int | None) -> None:
            self.etag, self.total = etag, total
            self.begun.append((etag, total))

        def progress(have: int, total: int | None) -> None:
            self.progress.append((have, total))

        part = Part(self.path, self.etag, self.total)
        return download(Web(self.settings), url, part, self.settings, **{"begun": begun, "progress": progress, **options})

    def fails(self, url: str, trouble: Trouble, **options: Any) -> WebError:
        with pytest.raises(WebError) as caught:
            self.get(url, **options)
        assert caught.value.trouble is trouble, str(caught.value)
        return caught.value


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


# ---------------------------------------------------------------------------------------------------- a whole file

def test_a_file_comes_whole_and_says_what_it_is(server: Origin, client: Client) -> None:
    url = server.give("/a.mp3", WHOLE)
    assert client.get(url) == Downloaded(len(WHOLE), Kind.MP3, "audio/mpeg", url)
    assert client.path.read_bytes() == WHOLE
    assert client.begun == [('"one"', len(WHOLE))]
    assert client.progress[-1] == (len(WHOLE), len(WHOLE))
    assert server.asked("/a.mp3")[0]["accept-encoding"] == "identity"


def test_a_file_without_a_told_length_is_taken_as_it_comes(server: Origin, client: Client) -> None:
    assert client.get(server.give("/a.mp3", Reply(WHOLE, total=-1))).size == len(WHOLE)
    assert client.path.read_bytes() == WHOLE


def test_the_record_is_made_before_the_first_byte_is_written(server: Origin, client: Client) -> None:
    client.path.write_bytes(b"old bytes of another file")
    sizes = []
    client.get(server.give("/a.mp3", WHOLE), begun=lambda *_: sizes.append(client.path.stat().st_size))
    assert sizes == [0]


def test_a_weak_etag_is_not_remembered(server: Origin, client: Client) -> None:
    client.get(server.give("/a.mp3", Reply(WHOLE, etag='W/"one"')))
    assert client.begun == [("", len(WHOLE))]


# ------------------------------------------------------------------------------------------------------- resuming

def cut_off(server: Origin, client: Client, *rest: Reply, first: Reply | None = None) -> str:
    """A download that was cut off after 100,000 bytes."""
    url = server.give("/a.mp3", first or Reply(WHOLE, cut=100_000), *rest)
    client.fails(url, Trouble.CUT)
    assert client.path.read_bytes() == WHOLE[:100_000]
    return url


def test_a_download_that_was_cut_off_goes_on_where_it_ended(server: Origin, client: Client) -> None:
    url = cut_off(server, client, Reply(WHOLE))
    assert client.get(url).size == len(WHOLE)
    assert client.path.read_bytes() == WHOLE
    assert server.asked("/a.mp3")[1]["range"] == "bytes=100000-"
    assert server.asked("/a.mp3")[1]["if-range"] == '"one"'
    assert len(server.requests) == 2
    assert client.begun[-1] == ('"one"', len(WHOLE))


@pytest.mark.parametrize("etag", ["", 'W/"one"', "unquoted"])
def test_without_a_strong_etag_it_starts_over(server: Origin, client: Client, etag: str) -> None:
    url = cut_off(server, client, Reply(WHOLE), first=Reply(WHOLE, cut=100_000, etag=etag))
    client.get(url)
    assert client.path.read_bytes() == WHOLE
    assert "range" not in server.asked("/a.mp3")[1]


def test_without_a_known_total_it_starts_over(server: Origin, client: Client) -> None:
    client.path.write_bytes(WHOLE[:100_000])
    client.etag = '"one"'
    client.get(server.give("/a.mp3", WHOLE))
    assert client.path.read_bytes() == WHOLE
    assert "range" not in server.asked("/a.mp3")[0]


def test_a_server_that_ignores_the_range_is_not_appended(server: Origin, client: Client) -> None:
    url = cut_off(server, client, Reply(WHOLE, ranges=False))
    assert client.get(url).size == len(WHOLE)
    assert client.path.read_bytes() == WHOLE
    assert len(server.requests) == 2


def test_another_file_under_the_same_url_starts_over(server: Origin, client: Client) -> None:
    other = mp3(300, seed=9)
    url = cut_off(server, client, Reply(other, etag='"two"'))
    client.get(url)
    assert client.path.read_bytes() == other
    assert client.begun[-1] == ('"two"', len(other))


@pytest.mark.parametrize("wrong", [{"range_start": 7}, {"total": len(WHOLE) + 1}, {"headers": {"ETag": '"two"'}}])
def test_a_206_that_does_not_fit_starts_over_within_the_same_call(server: Origin, client: Client, wrong: dict[str, Any]) -> None:
    url = cut_off(server, client, Reply(WHOLE, **wrong), Reply(WHOLE))
    assert client.get(url).size == len(WHOLE)
    assert client.path.read_bytes() == WHOLE
    assert ["range" in headers for headers in server.asked("/a.mp3")] == [False, True, False]


def test_a_416_drops_the_part_and_starts_over_once(server: Origin, client: Client) -> None:
    shorter = WHOLE[: 417 * 100]
    url = cut_off(server, client, Reply(shorter))
    assert client.get(url).size == len(shorter)
    assert client.path.read_bytes() == shorter
    assert len(server.requests) == 3


def test_a_416_to_a_request_without_range_is_a_failure(server: Origin, client: Client) -> None:
    error = client.fails(server.give("/a.mp3", Reply(b"", 416)), Trouble.STATUS)
    assert error.status == 416
    assert len(server.requests) == 1


def test_a_206_that_nobody_asked_for_is_a_failure(server: Origin, client: Client) -> None:
    client.fails(server.give("/a.mp3", Reply(WHOLE, 206)), Trouble.STATUS)


def test_a_part_that_is_whole_already_costs_one_byte(server: Origin, client: Client) -> None:
    client.path.write_bytes(WHOLE)
    client.etag, client.total = '"one"', len(WHOLE)
    assert client.get(server.give("/a.mp3", WHOLE)) == Downloaded(len(WHOLE), Kind.MP3, "audio/mpeg", server.base + "/a.mp3")
    assert client.path.read_bytes() == WHOLE
    assert server.asked("/a.mp3")[0]["range"] == f"bytes={len(WHOLE) - 1}-"


def test_a_part_longer_than_its_total_is_not_gone_on_with(server: Origin, client: Client) -> None:
    client.path.write_bytes(WHOLE + b"x")
    client.etag, client.total = '"one"', len(WHOLE)
    client.get(server.give("/a.mp3", WHOLE))
    assert client.path.read_bytes() == WHOLE
    assert "range" not in server.asked("/a.mp3")[0]


def test_a_resumed_file_is_judged_by_its_own_head(server: Origin, client: Client) -> None:
    """The rest of an MP3 that begins in the middle of a frame of zeros is of unknown kind by itself."""
    whole = WHOLE[: 417 * 3] + bytes(50_000)
    url = server.give("/a", Reply(whole, cut=20_000), Reply(whole, type="application/octet-stream"))
    client.fails(url, Trouble.CUT)
    assert client.get(url).kind is Kind.MP3
    assert client.path.read_bytes() == whole


# --------------------------------------------------------------------------------------------- lengths and endings

@pytest.mark.parametrize("sent", [100_000, 10_000])
def test_a_file_shorter_than_its_answer_told_is_cut_off_and_the_part_is_kept(server: Origin, client: Client, sent: int) -> None:
    error = client.fails(server.give("/a.mp3", Reply(WHOLE, cut=sent)), Trouble.CUT)
    assert not error.again
    assert client.path.read_bytes() == WHOLE[:sent]


@pytest.mark.parametrize("reply", [Reply(b""), Reply(b"", total=-1)])
def test_an_empty_answer_is_refused_and_leaves_nothing(server: Origin, client: Client, reply: Reply) -> None:
    assert "empty" in str(client.fails(server.give("/a.mp3", reply), Trouble.CUT))
    assert not client.path.exists()


@pytest.mark.parametrize("status", [404, 403, 500, 204])
def test_a_status_that_is_no_success_leaves_nothing_of_itself(server: Origin, client: Client, status: int) -> None:
    client.path.write_bytes(WHOLE[:5000])
    error = client.fails(server.give("/a.mp3", Reply(b"", status)), Trouble.STATUS)
    assert error.status == status
    assert client.path.read_bytes() == WHOLE[:5000]


# ------------------------------------------------------------------------------------------------ stalls and limits

def test_a_download_that_falls_silent_is_given_up_and_the_part_kept(server: Origin, tmp_path: Path) -> None:
    client = Client(tmp_path, timeout=0.5, min_speed=1000)
    error = client.fails(server.give("/a.mp3", Reply(WHOLE, stall=30_000)), Trouble.STALLED)
    assert not error.again
    assert client.path.read_bytes() == WHOLE[:30_000]


def test_a_download_that_drips_too_slowly_is_given_up_and_the_part_kept(server: Origin, tmp_path: Path) -> None:
    client = Client(tmp_path, timeout=0.6, min_speed=1000)
    error = client.fails(server.give("/a.mp3", Reply(WHOLE, drip=(50, 0.1))), Trouble.STALLED)
    assert not error.again
    assert 0 < client.path.stat().st_size < 1000


def test_a_quick_start_does_not_excuse_a_later_stall(server: Origin, tmp_path: Path) -> None:
    """100 kB at once would be an average above the least speed for more than a minute."""
    client = Client(tmp_path, timeout=0.4, min_speed=1000)
    client.fails(server.give("/a.mp3", Reply(WHOLE, at_once=100_000, drip=(20, 0.05))), Trouble.STALLED)
    assert 100_000 < client.path.stat().st_size < 101_000


def test_a_slow_download_goes_on_when_no_least_speed_is_set(server: Origin, tmp_path: Path) -> None:
    client = Client(tmp_path, timeout=0.3, min_speed=0)
    small = mp3(2)
    assert client.get(server.give("/a.mp3", Reply(small, drip=(100, 0.1)))).size == len(small)


def test_a_told_length_past_the_limit_is_refused_before_a_byte_is_written(server: Origin, tmp_path: Path) -> None:
    client = Client(tmp_path, max_episode_mb=0.1)
    error = client.fails(server.give("/a.mp3", WHOLE), Trouble.TOO_LARGE)
    assert "max_episode_mb" in str(error)
    assert client.progress == []
    assert not client.path.exists()


def test_a_stream_without_end_is_ended_by_the_limit_and_its_part_dropped(server: Origin, tmp_path: Path) -> None:
    client = Client(tmp_path, max_episode_mb=0.1)
    client.fails(server.give("/live", Reply(WHOLE, total=-1, drip=(50_000, 0.05))), Trouble.TOO_LARGE)
    assert client.progress
    assert not client.path.exists()


def test_a_stream_that_tells_no_length_leaves_min_free_mb_of_the_disk(server: Origin, tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    client = Client(tmp_path, min_free_mb=2 * free / 1_000_000)
    with pytest.raises(DiskFullError, match="min_free_mb"):
        client.get(server.give("/live", Reply(WHOLE * 300, total=-1)))
    assert max(have for have, _ in client.progress) < 20_000_000
    assert not client.path.exists()


def test_an_interruption_passes_at_once_and_keeps_the_part(server: Origin, client: Client) -> None:
    url = server.give("/a.mp3", Reply(WHOLE, stall=30_000))

    def interrupt(*_: object) -> None:
        raise Interrupted(130)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        begin = time.monotonic()
        with pytest.raises(Interrupted):
            client.get(url)
        assert time.monotonic() - begin < 3     # the silence alone would last 5 s
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert client.path.read_bytes() == WHOLE[:30_000]


# ------------------------------------------------------------------------------------------------------ what it is

@pytest.mark.parametrize("body", [HTML, b'{"error": "expired"}', b"code 77: access refused", HTML * 2000])
@pytest.mark.parametrize("mime", ["audio/mpeg", "text/html"])
def test_a_page_or_message_is_refused_whatever_it_calls_itself(server: Origin, client: Client, body: bytes, mime: str) -> None:
    client.fails(server.give("/a.mp3", Reply(body, type=mime)), Trouble.TEXT)
    assert not client.path.exists()


def test_a_long_page_is_refused_by_its_beginning(server: Origin, client: Client) -> None:
    client.fails(server.give("/a.mp3", Reply(HTML * 20_000, drip=(100_000, 0.05))), Trouble.TEXT)
    assert client.progress[-1][0] < len(HTML) * 5000


def test_the_refusal_quotes_the_message_without_its_secrets(server: Origin, client: Client) -> None:
    error = client.fails(server.give("/a.mp3", b"access refused\x1b[31m for https://me:secret@x.example/?token=abc"), Trouble.TEXT)
    assert "access refused" in str(error)
    assert "secret" not in str(error)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("mime", ["text/plain", "text/html", "application/json", ""])
def test_media_by_its_bytes_is_taken_whatever_its_type_says(server: Origin, client: Client, mime: str) -> None:
    assert client.get(server.give("/download", Reply(WHOLE, type=mime))).kind is Kind.MP3


UNKNOWN = bytes(i * 37 % 251 for i in range(9000))


@pytest.mark.parametrize(
    ("path", "mime", "options"),
    [
        ("/a", "audio/mpeg", {}),
        ("/a", "video/x-unheard-of", {}),
        ("/a.mp3", "application/octet-stream", {}),
        ("/a", "", {"extension": ".m4a"}),
        ("/a", "", {"feed_type": "audio/mpeg"}),
    ],
)
def test_unknown_bytes_are_taken_when_type_or_extension_say_audio_or_video(
    server: Origin, client: Client, path: str, mime: str, options: dict[str, str]
) -> None:
    assert client.get(server.give(path, Reply(UNKNOWN, type=mime)), **options) == Downloaded(9000, None, mime, server.base + path)


@pytest.mark.parametrize("mime", ["application/pdf", "application/octet-stream", ""])
def test_unknown_bytes_that_nothing_calls_media_are_refused(server: Origin, client: Client, mime: str) -> None:
    client.fails(server.give("/a", Reply(UNKNOWN, type=mime)), Trouble.TEXT)
    assert not client.path.exists()


def test_a_packed_file_is_refused_but_a_mere_label_is_not(server: Origin, client: Client) -> None:
    packed = server.give("/a.mp3", Reply(UNKNOWN, headers={"Content-Encoding": "gzip"}))
    client.fails(packed, Trouble.ENCODING)
    assert not client.path.exists()
    assert client.get(server.give("/b.mp3", Reply(WHOLE, headers={"Content-Encoding": "gzip"}))).kind is Kind.MP3


# ------------------------------------------------------------------------------------------------------------ disk

def test_a_folder_that_is_not_there_is_an_error_of_the_disk(server: Origin, client: Client) -> None:
    client.path = client.path.parent / "nowhere" / "x.part"
    with pytest.raises(DiskError, match="no such file"):
        client.get(server.give("/a.mp3", WHOLE))


def test_a_link_in_the_place_of_the_part_is_not_followed(server: Origin, client: Client, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    client.path.symlink_to(tmp_path / "mine.txt")
    with pytest.raises(DiskError):
        client.get(server.give("/a.mp3", WHOLE))
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_full_disk_is_told_as_such_and_drops_the_part(server: Origin, tmp_path: Path) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(mounted)], capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        client = Client(mounted)
        with pytest.raises(DiskFullError):
            client.get(server.give("/a.mp3", WHOLE))
        assert not client.path.exists()
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_no_room_found_out_when_the_length_is_known_drops_the_part(server: Origin, client: Client) -> None:
    def begun(etag: str, total: int | None) -> None:
        raise DiskFullError("no room")

    with pytest.raises(DiskFullError):
        client.get(server.give("/a.mp3", WHOLE), begun=begun)
    assert not client.path.exists()


def test_a_file_too_large_for_the_file_system_counts_as_too_large(server: Origin, client: Client) -> None:
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        client.fails(server.give("/a.mp3", WHOLE), Trouble.TOO_LARGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not client.path.exists()


# --------------------------------------------------------------------------------------------------------- no server

def test_a_server_that_says_nothing_may_be_asked_again(server: Origin, tmp_path: Path) -> None:
    client = Client(tmp_path, timeout=0.3)
    error = client.fails(server.give("/a.mp3", Reply(WHOLE, stall=0)), Trouble.SILENT)
    assert error.again
    assert not client.path.exists()


def test_a_refused_connection_leaves_the_part_as_it_is(client: Client) -> None:
    with origin() as gone:
        url = gone.give("/a.mp3", WHOLE)
    client.path.write_bytes(WHOLE[:5000])
    error = client.fails(url, Trouble.CONNECT)
    assert error.again
    assert client.path.read_bytes() == WHOLE[:5000]
