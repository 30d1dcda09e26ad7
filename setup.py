"""All of the metadata is in setup.cfg; here the man pages are built, so that an installed poca has them."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent / "docs" / "man"))

import pages

PAGES = pages.build(Path("build", "man"))
setup(data_files=[(f"share/man/man{page.suffix[1:]}", [str(page)]) for page in PAGES])
