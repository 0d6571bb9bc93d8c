"""Pages: language, title, and contrast of text in light and dark (WCAG 2, level AA)."""

import colorsys
import itertools
import re

import pytest

from structperc.analysis.decision_order import decision_html
from structperc.analysis.weight_ranking import _background
from structperc.reports.html_pages import HUES, render
from tests.pages import Page

CANVAS = {"light": "#ffffff", "dark": "#121212"}  # backgrounds and text of browsers for `color-scheme: light dark`
TEXT = {"light": "#000000", "dark": "#ffffff"}
LEAST = 4.5
Colour = tuple[float, ...]


def page() -> str:
    return "".join(render("text.html", title="A title", notes=["a note"], texts=[], colours={}, counts={}))


def rgb(text: str) -> Colour:
    return tuple(int(text[i : i + 2], 16) / 255 for i in (1, 3, 5))


def mixed(front: Colour, back: Colour, share: float) -> Colour:
    return tuple(share * f + (1 - share) * b for f, b in zip(front, back, strict=True))


def contrast(a: Colour, b: Colour) -> float:
    def luminance(colour: Colour) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def variables(css: str, scheme: str) -> dict[str, Colour]:
    """The colours of `--name: #rrggbb` outside of the media query for dark screens, or within it."""
    query = re.compile(r"@media screen and \(prefers-color-scheme: dark\) \{(.*?\})\s*\}", re.DOTALL)
    part = "".join(query.findall(css)) if scheme == "dark" else query.sub("", css)
    found = re.findall(r"--(\w+): (#[0-9a-f]{6})", part)
    return {name: rgb(value) for name, value in found}


def test_language_and_title():
    text = page()
    assert '<html lang="en">' in text
    assert "<title>A title</title>" in text
    assert "a note" in Page([text]).text


@pytest.mark.parametrize("scheme", CANVAS)
def test_contrast_on_the_background(scheme):
    colours, canvas = variables(page(), scheme), rgb(CANVAS[scheme])
    for name in ("good", "bad", "dim"):
        assert contrast(colours[name], canvas) >= LEAST, name


@pytest.mark.parametrize("scheme", CANVAS)
def test_contrast_on_marks_and_boxes(scheme):
    """Marks mix 30 % of a hue into what is behind them: the background, or a box of the page of decisions."""
    canvas, text = rgb(CANVAS[scheme]), rgb(TEXT[scheme])
    early = variables("".join(decision_html([], "A title")), scheme)["early"]
    for share, hue in itertools.product((0, 0.2, 0.4, 0.6, 0.8, 1), (*HUES, None)):
        behind = mixed(early, canvas, share)
        if hue is not None:
            behind = mixed(colorsys.hls_to_rgb(hue / 360, 0.5, 0.75), behind, 0.3)
        assert contrast(text, behind) >= LEAST, (share, hue)


@pytest.mark.parametrize("scheme", CANVAS)
@pytest.mark.parametrize("sign", [1, -1])
def test_contrast_of_the_largest_weight(scheme, sign):
    red, green, blue, share = map(float, re.findall(r"[\d.]+", _background(sign, 1)))
    behind = mixed((red / 255, green / 255, blue / 255), rgb(CANVAS[scheme]), share)
    assert contrast(rgb(TEXT[scheme]), behind) >= LEAST
