"""Spans of characters against tokens, by naive loops."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.errors import InputError
from structperc.text import TextSpan, line_sentences, placed, to_tokens, tokenized

TEXT = "Anna Lind met Bo.\nBo left Rome"


def naive(text, spans):
    """Token spans by looking at each pair of tokens; None where a span has none or one overlaps."""
    found, taken = [], set()
    for start, end, kind in sorted(span[:3] for span in spans):
        fits = [
            (i, j + 1, kind)
            for a, b in zip(text.sentences[:-1], text.sentences[1:], strict=True)
            for i in range(a, b)
            for j in range(i, b)
            if text.tokens[i][0] == start and text.tokens[j][1] == end
        ]
        if not fits or taken & set(range(*fits[0][:2])):
            return None
        taken |= set(range(*fits[0][:2]))
        found += fits
    return found


@settings(max_examples=60)
@given(
    st.text("ab.\n ", max_size=12).flatmap(
        lambda text: st.tuples(
            st.just(text),
            st.lists(st.builds(TextSpan, *[st.integers(-1, len(text) + 1)] * 2, st.sampled_from("XY")), max_size=3),
        )
    )
)
def test_spans_have_the_tokens_that_naive_loops_find(drawn):
    text, spans = tokenized(drawn[0], sentences=line_sentences), drawn[1]
    expected = naive(text, spans)
    if expected is None:
        with pytest.raises(InputError, match=r"^row 1: span "):
            to_tokens(text, spans, "row 1")
    else:
        assert to_tokens(text, spans, "row 1") == expected


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 7)], "row 7: span 0..7 'Anna Li' cuts the token 'Lind' at 5..9; move it"),
        ([(0, 5)], "row 7: span 0..5 'Anna ' begins or ends in white space"),
        ([(3, 3)], "row 7: span 3..3 is empty or not within the text of 30 characters"),
        ([(14, 20)], "row 7: span 14..20 'Bo.\\nBo' crosses the end of a sentence"),
        ([(5, 9), (0, 9)], "row 7: span 5..9 'Lind' overlaps the span before it"),
    ],
)
def test_spans_that_do_not_fit_are_named(spans, message):
    with pytest.raises(InputError) as error:
        to_tokens(tokenized(TEXT), [TextSpan(*span, "PER") for span in spans], "row 7")
    assert str(error.value).startswith(message)


def test_words_are_found_in_their_text():
    text = placed([["Anna", "Lind"], [], ["met"]], "Anna  Lind\tmet", "row 1")
    assert text.words == ["Anna", "Lind", "met"]
    assert list(text.sentences) == [0, 2, 3]
    for words in (["Lind"], ["Anna", "met"], ["Anna", ""], ["Anna", "Lind", "met", "met"]):
        with pytest.raises(InputError, match="row 1: the text has no word"):
            placed([words], "Anna  Lind\tmet", "row 1")
