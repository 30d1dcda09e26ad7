"""Shows what poca does, without the internet: a small feed with real audio, served from 127.0.0.1, and three runs.

    make demo
"""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import tempfile
import threading
import wave
from email.utils import formatdate
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ITEM = """<item><title>{title}</title><guid isPermaLink="false">demo-{number}</guid><pubDate>{date}</pubDate>
<enclosure url="http://127.0.0.1:{port}/tone-{number}.wav" length="{length}" type="audio/wav"/></item>"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def tone(path: Path, number: int) -> None:
    """Two seconds of a tone, the higher the newer the episode."""
    with wave.open(str(path), "wb") as audio:
        audio.setnchannels(1)
        audio.setsampwidth(2)
        audio.setframerate(16_000)
        pitch = 220 * 2 ** (number / 12)
        audio.writeframes(b"".join(struct.pack("<h", int(8000 * math.sin(6.2832 * pitch * i / 16_000))) for i in range(32_000)))


def publish(site: Path, port: int, count: int) -> None:
    for number in range(1, count + 1):
        tone(site / f"tone-{number}.wav", number)
    sizes = {n: (site / f"tone-{n}.wav").stat().st_size for n in range(count, 0, -1)}
    items = [
        ITEM.format(title=f"Tone {n}", number=n, date=formatdate(1_767_225_600 + n * 86_400), port=port, length=size) for n, size in sizes.items()
    ]
    (site / "feed.xml").write_text(f'<rss version="2.0"><channel><title>Tones</title>{"".join(items)}</channel></rss>', encoding="utf-8")


def show(heading: str, home: Path) -> None:
    print(f"\n== {heading}\n$ poca --config config.yaml", flush=True)
    done = subprocess.run([Path(sys.executable).with_name("poca"), "--config", home / "config.yaml"], check=False)
    files = sorted(path.name for path in (home / "podcasts" / "The Tone Hour").iterdir() if not path.name.startswith("."))
    print(f"(exit {done.returncode})\n$ ls 'podcasts/The Tone Hour'\n{'  '.join(files)}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="poca-demo-") as folder:
        home, site = Path(folder), Path(folder) / "site"
        site.mkdir()
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        (home / "config.yaml").write_text(
            "settings:\n  base_dir: podcasts\n  state_dir: state\nsubscriptions:\n"
            f"  - title: The Tone Hour\n    url: http://127.0.0.1:{port}/feed.xml\n    max_number: 3\n",
            encoding="utf-8",
        )
        print((home / "config.yaml").read_text(encoding="utf-8"))
        publish(site, port, 3)
        show("The first run: the three newest episodes come", home)
        show("The second run: nothing to do", home)
        publish(site, port, 4)
        show("The third run: a new episode is out, and the oldest goes", home)
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
