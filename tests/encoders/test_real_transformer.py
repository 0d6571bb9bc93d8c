"""Vectors of a real pretrained transformer, against the library that it comes from."""

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from structperc.encoders import Transformer
from tests.encoders.texts import batch, corpus

WORDS = [
    "Xiao-Ping's",
    "naïve",
    "\u200b",
    "U.N.",
    "talks",
    "in",
    "Świnoujście",
    "broke",
    "down",
    "(",
    "again",
    ")",
    ".",
]


@pytest.fixture(scope="module")
def encoder(pretrained):
    found = Transformer(str(pretrained))
    found.build_vocabulary(corpus([WORDS]))
    return found.eval()


@torch.no_grad()
def test_vectors_of_a_sentence_and_a_long_text(encoder, pretrained):
    """Words are aligned by the tokenizer; the word without pieces is unknown; the second text has three windows."""
    tokenizer, network = AutoTokenizer.from_pretrained(pretrained), AutoModel.from_pretrained(pretrained).eval()
    written = [tokenizer.unk_token if word == "\u200b" else word for word in WORDS]
    given = tokenizer(written, is_split_into_words=True, return_tensors="pt")
    hidden, numbers = network(**given).last_hidden_state[0], given.word_ids()
    expected = hidden[[numbers.index(number) for number in range(len(WORDS))]]
    found = encoder(batch(encoder, [WORDS, WORDS * 40]))
    torch.testing.assert_close(found[0, : len(WORDS)], expected, rtol=0, atol=1e-4)
    similar = torch.cosine_similarity(found[1].unflatten(0, (40, -1)), expected, dim=2)
    assert similar.mean() > 0.6  # windows begin in the middle of the text


@torch.no_grad()
def test_words_of_a_topic_are_similar(encoder):
    sentences = [["The", "bank", "raised", "rates"], ["The", "bank", "lent", "money"], ["The", "bank", "was", "muddy"]]
    rates, money, mud = encoder(batch(encoder, sentences))[:, 1]
    assert torch.cosine_similarity(rates, money, dim=0) > torch.cosine_similarity(rates, mud, dim=0)
