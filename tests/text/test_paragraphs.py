"""Texts that are cut at paragraphs have the tokens and sentences of the whole."""

import random

import pytest

from structperc.text import tokenize
from structperc.text.tokenizer import (
    character_tokens,
    conll_tokens,
    line_sentences,
    paragraph_ends,
    rule_sentences,
    ud_tokens,
)

PARTS = ["J.", "No.", "1.", "12.", "US$", "5", "etc.", "Mr.", "Anna", "left"]
PARTS += ["The", "'", '"', ")", "a.", "é.", "x_B.", "3.5", "\u200b"]
GAPS = [" ", " ", "\n", "\n\n", "\n \n", "\r\n\r\n", "\n\t\n\n", " \n\n ", "", "\u2069\n\n"]


def words_of(text, tokenizer, sentences):
    return tokenize(text, tokenizer, sentences).word_lists


@pytest.mark.parametrize("tokenizer", [conll_tokens, ud_tokens, character_tokens])
@pytest.mark.parametrize("sentences", [rule_sentences, line_sentences])
def test_parts_of_a_text(tokenizer, sentences):
    draw, cuts = random.Random(5), 0
    for _ in range(600):
        text = "".join(draw.choice(PARTS) + draw.choice(GAPS) for _ in range(draw.randint(1, 12))) + "\n"
        ends = list(paragraph_ends(text))
        cuts += len(ends)
        parts = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
        found = [one for part in parts for one in words_of(part, tokenizer, sentences)]
        assert found == words_of(text, tokenizer, sentences), (text, ends)
    assert cuts > 300


def test_no_cut_within_context():
    assert list(paragraph_ends("Anna J.\n\nSmith\n\n")) == [len("Anna J.\n\nSmith\n\n")]
    assert list(paragraph_ends("\n\nAnna\n\nBo\n")) == [len("\n\nAnna\n\n")]
