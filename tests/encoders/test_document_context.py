"""Sentences encoded with their neighbours in the document, against the network on the concatenated pieces."""

import logging
from itertools import accumulate, pairwise

import pytest
import torch
from transformers import AutoModel

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import EncodedCorpus, split_batch
from structperc.encoders import Transformer
from structperc.features import FeatureExtractor

SENTENCES = [
    ["Anna", "met", "Bo", "in", "Rome", "."],
    ["no"],
    ["in", "Rome", "Bo", "met", "Anna"],
    ["Rome", "in", "in"],
    ["Anna"] * 40,  # 80 pieces, more than a window
    ["Bo", "met", "Anna"],
    ["in", "in", "Bo"],
]
DOCUMENTS = [0, 0, 0, 1, 1, 1, 2]


def corpus(unit="sentence", documents=DOCUMENTS):
    rows = [{"word": words, "label": ["O"] * len(words)} for words in SENTENCES]
    return Corpus.from_sentences(rows, documents, unit)


def learned(folder, made=None, **options):
    encoder = Transformer(str(folder), **{"within": "document", "context_pieces": 5, **options})
    encoder.build_vocabulary(made or corpus())
    return encoder.eval()


def encoded(encoder, made):
    features = FeatureExtractor(progress=False)
    features.fit(made)
    inputs = encoder.encode_inputs(made)
    labels = LabelSet(("O", "B-X", "I-X"))
    return EncodedCorpus(made, features, labels, inputs, piece_counts=encoder.piece_counts(inputs))


@torch.no_grad()
def naive(encoder, network, number, size):
    """(T, D): first pieces of the words of a sentence, with up to `size` pieces of its document on each side."""

    def pieces(numbers):
        words = (word for n in numbers for word in SENTENCES[n])
        return [piece for word in words for piece in encoder.tokenizer.encode(word, add_special_tokens=False).ids]

    same = [n for n, document in enumerate(DOCUMENTS) if document == DOCUMENTS[number]]
    before = pieces(n for n in same if n < number)[-size:]
    after = pieces(n for n in same if n > number)[:size]
    hidden = network(torch.tensor([[2, *before, *pieces([number]), *after, 3]])).last_hidden_state[0]
    lengths = [len(encoder.tokenizer.encode(word, add_special_tokens=False).ids) for word in SENTENCES[number]]
    return hidden[[1 + len(before) + start for start in accumulate(lengths[:-1], initial=0)]]


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_vectors_are_those_of_the_concatenated_pieces(bert, unit):
    encoder, network = learned(bert), AutoModel.from_pretrained(bert).eval()
    rows = encoded(encoder, corpus(unit))
    batch = rows[list(range(len(rows)))]
    found = torch.cat([one[:n] for one, n in zip(encoder(batch), batch.lengths, strict=True)])
    ends = corpus().sentences
    for number in (0, 1, 2, 3, 5, 6):  # the others fit a window
        expected = naive(encoder, network, number, 5)
        torch.testing.assert_close(found[ends[number] : ends[number + 1]], expected, rtol=0, atol=1e-5)
    alone = learned(bert, within="sequence")
    long = encoded(alone, corpus())[[4]]
    torch.testing.assert_close(found[ends[4] : ends[5]], alone(long)[0], rtol=0, atol=1e-5)


def test_independence_of_the_batch(bert):
    encoder = learned(bert, pool="mean")
    rows = encoded(encoder, corpus())
    whole = encoder(rows[[4, 0, 2, 1, 3, 5, 6]])
    for place, row in enumerate([4, 0, 2, 1, 3, 5, 6]):
        n = len(SENTENCES[row])
        torch.testing.assert_close(whole[place, :n], encoder(rows[[row]])[0], rtol=0, atol=1e-5)
    (first, *_) = split_batch(rows[[0, 2, 1]], 2**20)
    torch.testing.assert_close(encoder(first)[0], whole[1, :6], rtol=0, atol=1e-5)


def test_context_fills_a_window(bert):
    """Windows have 62 pieces of words; the short document before sentence 2 leaves more for what is after it."""
    encoder = learned(bert, context_pieces=100)
    own, left, right = encoder.encode_inputs(corpus())
    sizes = encoder.piece_counts([own, left, right])
    ends = corpus().sentences
    in_window = [int(sizes[a:b].sum()) for a, b in pairwise(ends)]
    pieces = [int(own.counts[a:b].sum()) for a, b in pairwise(ends)]
    assert in_window[:3] == [sum(pieces[:3])] * 3
    assert in_window[3:] == [62, 80, 62, pieces[6]]


def test_sentences_without_documents_have_no_context(bert):
    alone = [DOCUMENTS[0] + n for n in range(len(SENTENCES))]
    encoder, without = learned(bert), learned(bert, within="sequence")
    one, other = (encoded(x, corpus(documents=alone)) for x in (encoder, without))
    torch.testing.assert_close(encoder(one[[0, 1, 2]]), without(other[[0, 1, 2]]), rtol=0, atol=1e-5)


def test_lengths_in_pieces(bert):
    assert encoded(learned(bert, within="sequence"), corpus()).lengths.tolist()[3:5] == [6, 80]
    assert encoded(learned(bert), corpus()).lengths.tolist()[3:5] == [11, 80]


def test_empty_sentences(bert):
    made = Corpus.from_sentences([{"word": words} for words in ([], ["Anna"], [], ["met"])], [0, 0, 0, 0])
    encoder = learned(bert)
    _, left, right = encoder.encode_inputs(made)
    assert [left.counts.tolist(), right.counts.tolist()] == [[0, 2], [1, 0]]


def test_warning_without_documents(bert, caplog):
    with caplog.at_level(logging.WARNING):
        learned(bert)
        assert not caplog.records
        learned(bert, corpus(documents=range(7)))
    assert "within: document" in caplog.text
