"""The pictures of the documentation are those that docs/figures.py draws."""

import re

import matplotlib
import pytest

import structperc
from docs.figures import FIGURES, LAYERS, write
from tests.docs.written import DOCS, PAGES, ROOT

PINNED = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", FIGURES)
def test_each_page_shows_its_picture(name):
    assert (DOCS / "images" / f"{name}.svg").is_file()
    (page,) = [PAGES[f"{part}/{name}"] for part in ("concepts", "how_to", "results") if f"{part}/{name}" in PAGES][:1]
    alternative_texts = re.findall(rf"!\[([^\]]+)\]\(\.\./images/{name}\.svg\)", page)
    assert [len(text.split()) > 10 for text in alternative_texts] == [True]


@pytest.mark.skipif(f"matplotlib=={matplotlib.__version__}" not in PINNED, reason="drawn by another matplotlib")
@pytest.mark.parametrize("name", FIGURES)
def test_stored_pictures_are_those_of_the_script(name, tmp_path):
    (drawn,) = write(tmp_path, [name])
    assert _numbered(drawn) == _numbered(DOCS / "images" / drawn.name), "run python -m docs.figures"


def _numbered(path):
    """Return a picture with its letters numbered in their order, as versions of a font number them differently."""
    letters, text = {}, path.read_text(encoding="utf-8")
    return re.sub(r"DejaVuSans-[0-9a-f]+", lambda found: str(letters.setdefault(found[0], len(letters))), text)


def test_layers_are_the_packages_in_their_order():
    drawn = [package for _, packages, _ in LAYERS for package in packages]
    assert drawn == re.findall(r"^(\w+)  ", str(structperc.__doc__), re.MULTILINE)
