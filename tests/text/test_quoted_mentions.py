"""Mentions without offsets are found in their text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structperc.text import find_quotes


@pytest.mark.parametrize(
    ("text", "quotes", "expected"),
    [
        ("Bo met Bo and Bo", ["Bo", "Bo", "Bo", "Bo"], [(0, 2), (7, 9), (14, 16), None]),
        ("Bo Berg met Bo", ["Bo", "Bo Berg"], [(12, 14), (0, 7)]),
        ("the University of Oslo", ["University of Oslo", "Oslo"], [(4, 22), (18, 22)]),
        ("Bonn, Bo-Bo", ["Bo"], [(6, 8)]),
        ("Oslo saw Bo", ["Bo", "Oslo"], [(9, 11), (0, 4)]),
        ("Oslo, ANNA met Bo", ["Anna", "oslo", "bo"], [(6, 10), (0, 4), (15, 17)]),
        ("a \u201cBig\n  Tent\u201d party", ['"Big Tent"'], [(2, 14)]),
        ("An\u00adna left", ["Anna"], [(0, 5)]),
        ("Stra\u00dfe", ["STRASSE", "STRAS"], [(0, 6), None]),
        ("\u5b89\u5a1c\u5728\u5965\u65af\u9646", ["\u5b89\u5a1c", "\u5965\u65af\u9646"], [(0, 2), (3, 6)]),
        ("Bo", [" Bo ", ""], [(0, 2), None]),
    ],
)
def test_find_quotes(text, quotes, expected):
    assert find_quotes(text, quotes) == expected


@given(st.lists(st.sampled_from(["Anna", "Bo", "Oslo"]), max_size=8))
def test_all_words_of_a_text_are_found_in_order(words):
    text = " and ".join(words)
    found = find_quotes(text, words)
    assert [text[slice(*place)] for place in found] == words
    assert found == sorted(set(found))
