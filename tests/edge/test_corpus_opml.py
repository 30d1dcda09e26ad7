"""Subscription lists as real apps wrote them, where the corpus is at hand: every feed in them is found."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from poca.confedit import add_subscriptions
from poca.naming import fold, folder
from poca.options import SECTIONS
from poca.subscribe.opml import read

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "opml"
FILES = sorted(CORPUS.glob("*.opml"))

pytestmark = pytest.mark.skipif(not FILES, reason="the corpus is not beside the repository")


def addresses(path: Path) -> list[str]:
    """All addresses of feeds in the file, found in another way."""
    text = path.read_bytes().decode("windows-1251" if "1251" in path.name else "utf-8")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return [html.unescape(url).strip().replace("HTTP://", "http://") for url in re.findall(r'xmlUrl="([^"]*)"', text)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_feed_is_found_once(path):
    found = read(path.read_bytes())
    urls = [str(values["url"]) for values in found.subscriptions]
    assert len(urls) == len(set(urls))
    assert set(urls) == {url for url in addresses(path) if url.startswith("http")}
    left_out = [note for note in found.notes if "is left out" in note]
    assert len(urls) + len(left_out) == len(addresses(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_feed_makes_a_subscription_that_the_config_takes(path):
    found = read(path.read_bytes())
    text = add_subscriptions("", found.subscriptions)
    folders = [fold(folder(str(values["title"]), "ntfs")) for values in found.subscriptions]
    assert len(set(folders)) == len(folders)
    for values in found.subscriptions:
        for name, value in values.items():
            SECTIONS["subscription"][name].type.read(str(value))
        assert str(values["title"]) == str(values["title"]).strip() != ""
        assert "CDATA" not in str(values["title"])
        assert "&#" not in str(values["title"])
    assert text.count("- title: ") == len(found.subscriptions)


@pytest.mark.skipif(len(FILES) < 21, reason="not the whole corpus is there")
def test_titles_come_as_they_were_meant():
    titles = {path.name: [values["title"] for values in read(path.read_bytes()).subscriptions] for path in FILES}
    assert all("\u0400" < letter < "\u0500" for title in titles["fixture-windows-1251.opml"] for letter in str(title).rstrip("12"))
    assert titles["fixture-podstation.opml"][0] == "Feed with escaped chars - < > & ' \""
    assert titles["alacast-2008-illformed.opml"][0] == "OurSQL' default feed"
    assert titles["podcastaddict-adefaria-illformed.opml"][0] == "All About Android (MP3)"


@pytest.mark.skipif(len(FILES) < 21, reason="not the whole corpus is there")
def test_folders_of_an_app_become_categories():
    found = {path.name: {str(values.get("category", "")) for values in read(path.read_bytes()).subscriptions} for path in FILES}
    assert found["pocketcasts-ianbarton.opml"] == {""}
    assert len(found["netnewswire-subs-folders.opml"]) > 2
