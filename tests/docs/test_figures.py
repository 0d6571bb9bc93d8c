"""The pictures of the pages about concepts are those that docs/figures.py draws."""

import re

import pytest

import structperc
from docs.figures import FIGURES, LAYERS, write
from tests.docs.written import DOCS, PAGES


@pytest.mark.parametrize("name", FIGURES)
def test_each_page_shows_its_picture(name):
    assert (DOCS / "images" / f"{name}.svg").is_file()
    alternative_texts = re.findall(rf"!\[([^\]]+)\]\(\.\./images/{name}\.svg\)", PAGES[f"concepts/{name}"])
    assert [len(text.split()) > 10 for text in alternative_texts] == [True]


def test_pictures_are_drawn_the_same_each_time(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        write(folder, ["losses", "guided"])
    for name in ("losses", "guided"):
        first, second = ((folder / f"{name}.svg").read_bytes() for folder in folders)
        assert first == second
        assert b"<dc:date>" not in first


def test_layers_are_the_packages_in_their_order():
    drawn = [package for _, packages, _ in LAYERS for package in packages]
    assert drawn == re.findall(r"^(\w+)  ", str(structperc.__doc__), re.MULTILINE)
