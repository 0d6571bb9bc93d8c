"""Tokens and sentences of running text."""

from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.errors import InputError
from structperc.text import RuleTokenizer, tokenize
from structperc.text.alignment import join_words
from structperc.text.tokenizer import (
    character_tokens,
    conll_tokens,
    line_sentences,
    one_sentence,
    rule_sentences,
    strip_invisible,
    ud_tokens,
)
from tests.text.detokenised import agreement, sentences_of

PIECES = st.sampled_from(
    ["Anna", "U.S.", "n't", "'s", "’s", "-", ".", "...", "can", "not", "http://a.b/c?d", "a@b.c", "5", "1,000", ":-)"]
) | st.sampled_from(
    ['"', "(", ")", " ", "\n", "\r\n", "\u2028", "\u00a0", "é", "e\u0301", "\u0928\u093f", "\U0001f600", "$", "!?"]
)
HIDDEN = [*"\u200b\u200d\u200e\u2066\u2069\ufe0f\ufeff\u00ad\u0301\u0903\u20e3\x07\x80\u3164\U0001f3fd\U000e0067"]
HIDING = (
    st.lists(PIECES | st.sampled_from(HIDDEN), max_size=25)
    .map("".join)  # a joiner makes one picture of two
    .map(lambda text: text.replace("\U0001f600", "") if "\u200d" in text else text)
)
TEXTS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=25).map("".join))
SPLITS = (rule_sentences, line_sentences, one_sentence)


def visible(text):
    return "".join(char for char in text if char not in HIDDEN and not char.isspace())


@settings(max_examples=60)
@given(HIDING)
def test_invisible_characters(text):
    for cut in (conll_tokens, ud_tokens, character_tokens):
        found = tokenize(text, cut)
        at = 0
        for start, end in found.tokens:
            assert at <= start < end <= len(text)
            assert visible(text[start:end])
            left = text[at:start]
            assert not visible(left)
            assert not left[-1:] or left[-1].isspace()  # what is hidden is with the token beside it
            at = end
        assert not visible(text[at:])
        assert not text[at:] or text[at].isspace() or not found.tokens
        shown = "".join(char for char in text if char not in HIDDEN)
        assert [visible(word) for word in found.words] == tokenize(shown, cut).words
        assert list(found.sentences) == list(tokenize(shown, cut).sentences)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\ufeffAnna\u200b met\u2066 Bo\u2069.", ["\ufeffAnna\u200b", "met\u2066", "Bo\u2069", "."]),
        ("co\u00adop \u200b it\u200d's", ["co\u00adop", "it\u200d", "'s"]),
        ("\u2764\ufe0f\U0001f44d\U0001f3fd 1\ufe0f\u20e3", ["\u2764\ufe0f", "\U0001f44d\U0001f3fd", "1\ufe0f\u20e3"]),
        ("\U0001f469\U0001f3fd\u200d\U0001f680\U0001f44d", ["\U0001f469\U0001f3fd\u200d\U0001f680", "\U0001f44d"]),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"]),
        ("\u200b \ufeff\n", []),
    ],
)
def test_tokens_of_combined_characters(text, words):
    assert both(text) == [words] * 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ABC\u516c\u53f8\u8d5a3.5\u4e07(\u7ea6)", "ABC \u516c \u53f8 \u8d5a 3.5 \u4e07 ( \u7ea6 )"),
        ("iPhone\u306f\u30b9\u30de\u30db\u3002", "iPhone \u306f \u30b9 \u30de \u30db \u3002"),
        ("\u0e04\u0e23\u0e31\u0e1a", "\u0e04 \u0e23\u0e31 \u0e1a"),
    ],
)
def test_tokens_of_scripts_without_spaces(text, words):
    assert tokenize(text, character_tokens).words == words.split()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("\u884c\u3063\u305f\u3002\u5f7c\u306f\u3002", ["\u884c\u3063\u305f\u3002", "\u5f7c\u306f\u3002"]),
        (
            "\u300c\u884c\u3051\u3002\u300d\u3068\uff01\uff1f\u5f7c",
            ["\u300c\u884c\u3051\u3002\u300d\u3068\uff01\uff1f", "\u5f7c"],
        ),
    ],
)
def test_full_width_terminators(text, sentences):
    found = tokenize(text, character_tokens)
    assert ["".join(found.words[a:b]) for a, b in pairwise(found.sentences)] == sentences


@settings(max_examples=40)
@given(TEXTS)
def test_tokens_cover_the_text(text):
    for cut in (conll_tokens, ud_tokens, character_tokens):
        for sentences in SPLITS:
            found = tokenize(text, cut, sentences)  # checks their order
            assert strip_invisible("".join(found.words)) == strip_invisible("".join(text.split()))
            assert not any(word.split() != [word] for word in found.words)
            assert list(chain.from_iterable(found.word_lists)) == found.words
            assert all(found.word_lists)


@settings(max_examples=40)
@given(st.lists(st.lists(st.text(st.characters(categories=["L", "P"]), min_size=1), max_size=4), max_size=4))
def test_words_are_where_a_text_of_them_has_them(sentences):
    found = join_words(sentences)
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
def test_undisputed_tokens(text, expected):
    assert both(text) == [expected.split()] * 2


def test_disputed_tokens():
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
    assert len(tokenize(text).sentences) == n + 1


def test_sentences_by_line():
    assert tokenize("Bo left. She\n\nstayed\r\nhere", sentences=line_sentences).word_lists == [
        ["Bo", "left", ".", "She"],
        ["stayed"],
        ["here"],
    ]


def test_a_tokenizer_of_ones_own():
    assert RuleTokenizer([r"\d", r"\w+"])("12 ab!") == [(0, 1), (1, 2), (3, 5)]
    assert RuleTokenizer([r"(a)\1", r"(b)\1", r"\w"])("aabba") == [(0, 2), (2, 4), (4, 5)]
    assert tokenize("a b", lambda text: [(0, 3)]).words == ["a b"]
    for boundaries in ([], [0], [1, 2], [0, 2, 2], [0, 1], None, ["0"]):
        with pytest.raises(InputError, match="splitter"):
            tokenize("a b", sentences=lambda *_, found=boundaries: found)
    with pytest.raises(InputError, match="string"):
        tokenize(["a"])


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([(0, 4), (4, 9), (9, 14)], ["Anna", "Lind", "left"]),  # byte-level: a word with the space before it
        ([(0, 5), (5, 10), (10, 15)], ["Anna", "Lind", "left"]),
        ([(0, 4), (4, 5), (5, 9), (9, 10), (10, 15)], ["Anna", "Lind", "left"]),
        ([[0, 4], (5, 9)], ["Anna", "Lind"]),
        ([], []),
    ],
)
def test_blanks_are_no_part_of_tokens(offsets, words):
    assert tokenize("Anna Lind left ", lambda text: offsets).words == words


def test_invisible_tokens():
    assert tokenize("a \u200b b", lambda text: [(0, 1), (2, 3), (4, 5)]).words == ["a", "b"]


@pytest.mark.parametrize(
    ("offsets", "named"),
    [
        (["a", "b"], "'a'"),
        ("a b", "'a b'"),
        (None, "None"),
        ([(0.0, 1.0)], "(0.0, 1.0)"),
        ([(0, 0)], "0..0, which is empty"),
        ([(0, 2), (0, 1)], "0..1 'a', which overlaps the previous token 0..1"),
        ([(-1, 1)], "-1..1"),
    ],
)
def test_invalid_offsets(offsets, named):
    with pytest.raises(InputError, match="tokenizer") as error:
        tokenize("a b", lambda text: offsets)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_long_runs_of_a_letter_take_no_time():
    for letter in ("a", "a.", "a-", "-", "a+", "'", " ", "a@", "1,", "St. ", "\u200b", " \u0301"):
        assert conll_tokens(letter * 20_000) is not None


@pytest.mark.parametrize(
    ("file", "cut", "tight", "tokens", "whole"),
    [("conll2003/eng.testa", conll_tokens, "", 0.999, 0.992), ("ud_ewt/dev.txt", ud_tokens, "-/", 0.996, 0.979)],
)
def test_sentences_of_corpora(corpora, file, cut, tight, tokens, whole):
    found = agreement(sentences_of(corpora / file), cut, tight)
    assert found[0] > tokens
    assert found[1] > whole
