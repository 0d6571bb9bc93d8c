"""Tokens and sentences of running text."""

from itertools import chain

import pytest
from detokenised import agreement, sentences_of
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.errors import InputError
from structperc.text import (
    RuleTokenizer,
    conll_tokens,
    joined,
    line_sentences,
    one_sentence,
    rule_sentences,
    tokenized,
    ud_tokens,
)

PIECES = st.sampled_from(
    ["Anna", "U.S.", "n't", "'s", "’s", "-", ".", "...", "can", "not", "http://a.b/c?d", "a@b.c", "5", "1,000", ":-)"]
) | st.sampled_from(
    ['"', "(", ")", " ", "\n", "\r\n", "\u2028", "\u00a0", "é", "e\u0301", "\u0928\u093f", "\U0001f600", "$", "!?"]
)
TEXTS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=25).map("".join))
SPLITS = (rule_sentences, line_sentences, one_sentence)


@settings(max_examples=40)
@given(TEXTS)
def test_tokens_are_the_text_without_its_white_space(text):
    for cut in (conll_tokens, ud_tokens):
        for sentences in SPLITS:
            found = tokenized(text, cut, sentences)  # checks their order
            assert "".join(found.words) == "".join(text.split())
            assert not any(word.split() != [word] for word in found.words)
            assert list(chain.from_iterable(found.word_lists)) == found.words
            assert all(found.word_lists)


@settings(max_examples=40)
@given(st.lists(st.lists(st.text(st.characters(categories=["L", "P"]), min_size=1), max_size=4), max_size=4))
def test_words_are_where_a_text_of_them_has_them(sentences):
    found = joined(sentences)
    assert found.word_lists == [words for words in sentences if words]


def both(text):
    return [[text[a:b] for a, b in cut(text)] for cut in (conll_tokens, ud_tokens)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Angela Merkel visited Stromburg.", "Angela Merkel visited Stromburg ."),
        ("He didn't say \"it's Bo's\", O'Brien did.", "He did n't say \" it 's Bo 's \" , O'Brien did ."),
        ("Mr. J. Smith of Savin Corp. (U.S.) at 5 p.m. today", "Mr. J. Smith of Savin Corp. ( U.S. ) at 5 p.m. today"),
        ("paid $1,000.50 (US$ 3) on 1996-08-22, 5:30", "paid $ 1,000.50 ( US$ 3 ) on 1996-08-22 , 5:30"),
        ("see http://a.b/c?d=e, www.x.org. or a.b@c.org!", "see http://a.b/c?d=e , www.x.org . or a.b@c.org !"),
        ("well... yes -- no; the workers’ café’s", "well ... yes -- no ; the workers ’ café ’s"),
        ("\u0928\u093f\u092e \U0001f600", "\u0928\u093f\u092e \U0001f600"),
    ],
)
def test_tokens_that_corpora_agree_about(text, expected):
    assert both(text) == [expected.split()] * 2


def test_tokens_that_corpora_disagree_about():
    assert both("third-quarter e-mail, 555-1234: cannot!!") == [
        ["third-quarter", "e-mail", ",", "555-1234", ":", "cannot", "!!"],
        ["third", "-", "quarter", "e-mail", ",", "555-1234", ":", "can", "not", "!!"],
    ]
    assert both("1. Anna\n2. Bo") == [["1.", "Anna", "2.", "Bo"], ["1", ".", "Anna", "2", ".", "Bo"]]


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ('Bo left. She stayed! Why? "Because." He said.', 5),
        ("Mr. Smith met J. Doe of the U.S. Army. it was late", 1),
        ("He lives in the U.S. The rest (all of it.) Nobody knows.", 3),
        ("A heading\n\nand a line\nthat goes on.", 2),
        ("at 5 p.m. He left...and so on", 2),
        ("", 0),
        (" \n\n ", 0),
    ],
)
def test_sentences(text, n):
    assert len(tokenized(text).sentences) == n + 1


def test_sentences_that_lines_are():
    assert tokenized("Bo left. She\n\nstayed\r\nhere", sentences=line_sentences).word_lists == [
        ["Bo", "left", ".", "She"],
        ["stayed"],
        ["here"],
    ]


def test_a_tokenizer_of_ones_own():
    assert RuleTokenizer([r"\d", r"\w+"])("12 ab!") == [(0, 1), (1, 2), (3, 5)]
    assert RuleTokenizer([r"(a)\1", r"(b)\1", r"\w"])("aabba") == [(0, 2), (2, 4), (4, 5)]
    assert tokenized("a b", lambda text: [(0, 3)]).words == ["a b"]
    for wrong in ([(0, 0)], [(1, 2), (0, 1)], [(0, 4)], [(-1, 1)]):
        with pytest.raises(InputError, match="the tokenizer gives the token"):
            tokenized("a b", lambda text, wrong=wrong: wrong)
    for boundaries in ([], [0], [1, 2], [0, 2, 2], [0, 1]):
        with pytest.raises(InputError, match="the sentence splitter gives"):
            tokenized("a b", sentences=lambda *_, found=boundaries: found)
    with pytest.raises(InputError, match="a text is a string, not"):
        tokenized(["a"])


def test_long_runs_of_a_letter_take_no_time():
    for letter in ("a", "a.", "a-", "-", "a+", "'", " ", "a@", "1,", "St. "):
        assert conll_tokens(letter * 20_000) is not None


@pytest.mark.parametrize(
    ("file", "cut", "tight", "tokens", "whole"),
    [
        ("conll2003/eng.testa", conll_tokens, "", 0.999, 0.992),
        ("ud_ewt/dev.txt", ud_tokens, "-/", 0.996, 0.979),
    ],
)
def test_corpora_are_cut_as_they_were(corpora, file, cut, tight, tokens, whole):
    found = agreement(sentences_of(corpora / file), cut, tight)
    assert found[0] > tokens
    assert found[1] > whole
