"""Spans of characters against tokens, by naive loops; mentions without offsets are found in their text."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.errors import InputError
from structperc.text import tokenize
from structperc.text.alignment import TextSpan, align, align_words, merge_sentences, to_character_offsets
from structperc.text.quoted_mentions import find_quotes
from structperc.text.tokenizer import line_sentences

TEXT = "Anna Lind met Bo.\nBo left Rome"


def naive(text, spans):
    """Tokens of spans by looking at each pair of tokens, and the spans that have none or share one; equal are one."""
    found, taken, conflicts = [], set(), []
    for start, end, kind in sorted({span[:3] for span in spans}):
        fits = [
            (i, j + 1, kind)
            for i in range(len(text.tokens))
            for j in range(i, len(text.tokens))
            if text.tokens[i][0] == start and text.tokens[j][1] == end
        ]
        if not fits or taken & set(range(*fits[0][:2])):
            conflicts.append((start, end, kind))
            continue
        taken |= set(range(*fits[0][:2]))
        found += fits
    return found, conflicts


DRAWN = st.text("ab.\n ", max_size=12).flatmap(
    lambda text: st.tuples(
        st.just(text),
        st.lists(
            st.tuples(*[st.integers(-1, len(text) + 1)] * 2, st.sampled_from("XY")).map(lambda one: TextSpan(*one)),
            max_size=3,
        ),
    )
)


@settings(max_examples=60)
@given(DRAWN)
def test_tokens_of_spans(drawn):
    text, spans = tokenize(drawn[0], sentences=line_sentences), drawn[1]
    expected, conflicts = naive(text, spans)
    assert len(align(text, spans, "drop").conflicts) == len(conflicts)
    assert bool(conflicts) == bool(align(text, spans).conflicts)
    assert conflicts or align(text, spans).spans == expected


@settings(max_examples=60)
@given(DRAWN)
def test_expanded_spans(drawn):
    text, spans = tokenize(drawn[0]), drawn[1]
    for start, end, kind in {span[:3] for span in spans}:
        touched = [t for t, (a, b) in enumerate(text.tokens) if a < end and start < b]
        inside = 0 <= start < end <= len(drawn[0])
        expected = [(touched[0], touched[-1] + 1, kind)] if touched and inside else []
        found = align(text, [TextSpan(start, end, kind)], "expand")
        assert found.spans == expected
        assert all(one.dropped == (not expected) for one in found.conflicts)
    kept = align(text, spans, "expand", "longest").spans
    assert all(before[1] <= after[0] for before, after in pairwise(kept))
    assert {one.kind for one in align(text, spans, "drop", "longest").conflicts} >= {
        one.kind for one in align(text, spans).conflicts if one.misaligned
    }


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 7)], "span 0..7 'Anna Li' cuts the token 'Lind' at 5..9"),
        ([(0, 5)], "span 0..5 'Anna ' begins or ends in white space"),
        ([(3, 3)], "span 3..3 is empty or outside the text of 30 characters"),
        ([(5, 9), (0, 9)], "span 5..9 'Lind' overlaps span 0..9 'Anna Lind'"),
    ],
)
def test_misaligned_spans(spans, message):
    (conflict,) = align(tokenize(TEXT), [TextSpan(*span, "PER") for span in spans]).conflicts
    assert conflict.message == message


def test_longest_of_overlapping_spans():
    text = tokenize("Anna Lind of Acme Corp left")
    ends = [(0, 4, "A"), (0, 9, "B"), (5, 17, "C"), (13, 22, "D"), (5, 17, "C")]
    marks = [TextSpan(*one) for one in ends]
    found = align(text, marks, "refuse", "longest")
    assert found.spans == [(0, 1, "A"), (1, 4, "C")]
    assert len(found.conflicts) == 2
    assert [one.kind for one in align(text, [TextSpan(0, 6, "A"), TextSpan(0, 4, "B")]).conflicts] == [
        "token cut",
        "overlap",
    ]
    assert align(text, marks[3:4] * 2).spans == [(3, 5, "D")]


def test_invisible_characters_at_edges():
    text = tokenize("\ufeffAnna\u200b \u2066Lind\u2069 left")
    assert text.words[1] == "\u2066Lind\u2069"
    for start in (0, 1):
        for end in (12, 13):
            assert align(text, [TextSpan(start, end, "PER")]).spans == [(0, 2, "PER")]
    assert align(text, [TextSpan(1, 5, "PER")]).spans == [(0, 1, "PER")]


@settings(max_examples=40)
@given(st.text("aé\u20ac\U0001f600 ", max_size=8), st.sampled_from(["utf-16", "utf-8"]), st.data())
def test_offsets_in_code_units(text, unit, data):
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    codec, width = ("utf-16-le", 2) if unit == "utf-16" else ("utf-8", 1)
    given = [len(text[:at].encode(codec)) // width for at in (start, end)]
    assert to_character_offsets(text, [TextSpan(*given, "X")], unit) == [TextSpan(start, end, "X")]
    if unit == "utf-16" and "\U0001f600" in text:
        inside = len(text[: text.index("\U0001f600")].encode(codec)) // width + 1
        assert to_character_offsets(text, [TextSpan(0, inside, "X")], unit)[0].end > len(text)


def test_no_sentence_ends_inside_of_a_span():
    text = tokenize("Our firm Yahoo! Inc. grew. It is big.")
    assert list(text.sentences) == [0, 4, 7, 11]
    assert list(merge_sentences(text, [(2, 5, "ORG")]).sentences) == [0, 7, 11]
    assert list(merge_sentences(text, [(4, 7, "ORG")]).sentences) == [0, 4, 7, 11]


def test_words_are_found_in_their_text():
    text = align_words([["Anna", "Lind"], [], ["met"]], "Anna  Lind\tmet", "row 1")
    assert text.words == ["Anna", "Lind", "met"]
    assert list(text.sentences) == [0, 2, 3]
    assert align_words([["Anna", "Lind"]], "Anna\u200b Lind", "row 1").tokens == [(0, 4), (6, 10)]
    for words in (["Lind"], ["Anna", "met"], ["Anna", ""], ["Anna", "Lind", "met", "met"]):
        with pytest.raises(InputError, match="row 1: word "):
            align_words([words], "Anna  Lind\tmet", "row 1")


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
