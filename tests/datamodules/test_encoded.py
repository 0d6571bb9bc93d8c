"""A corpus as arrays: batches hold exactly the strings' features, gold labels and sentence numbers."""

import pytest
import torch

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.words import word_numbers
from structperc.datamodules.encoded import EncodedCorpus, single_sequence, split_flat
from structperc.datamodules.sources import Synthetic
from structperc.features import FeatureExtractor

SENTENCES = [
    {"word": ["Anna", "met", "Bo"], "label": ["B-PER", "O", "B-PER"]},
    {"word": ["Rome"], "label": ["B-LOC"]},
    {"word": ["it", "rained"], "label": ["O", "O"]},
    {"word": ["Bo", "slept"], "label": ["B-PER", "O"]},
]
DOCUMENTS = [0, 0, 1, 1]


def encoded(unit, labelled=True):
    sentences = SENTENCES if labelled else [{"word": s["word"]} for s in SENTENCES]
    corpus = Corpus.from_sentences(sentences, DOCUMENTS, unit)
    features = FeatureExtractor(["w[0]"], cutoff=1)
    features.fit(corpus)
    return EncodedCorpus(corpus, features, LabelSet(("O", "B-LOC", "I-LOC", "B-PER", "I-PER"))), features


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_batches_hold_the_corpus(unit):
    rows, features = encoded(unit)
    names = features.index.names("node")
    size = len(rows)
    order = list(reversed(range(size)))
    batch = rows[order]
    words, token = [], 0
    for b, row in enumerate(order):
        n = int(batch.lengths[b])
        start = int(rows.corpus.starts[row])
        assert n == rows.corpus.lengths[row]
        for t in range(n):
            ids = batch.nodes.ids[batch.nodes.offsets[token] : batch.nodes.offsets[token + 1]]
            assert [names[i] for i in ids] == [f"w[0]={rows.corpus.columns['word'][start + t]}"]
            token += 1
        words += rows.corpus.columns["label"][start : start + n]
        assert not batch.gold[b, n:].any()
    labels = LabelSet(("O", "B-LOC", "I-LOC", "B-PER", "I-PER"))
    live = torch.arange(batch.gold.shape[1]) < batch.lengths[:, None]
    assert labels.decode(batch.gold[live]) == words
    assert batch.rows.tolist() == order


def test_numbers_of_words():
    rows, _ = encoded("sentence")
    batch = rows[[2, 0]]
    for column, long, short in zip(
        batch.words, word_numbers(["Anna", "met", "Bo"]), word_numbers(["it", "rained"]), strict=True
    ):
        assert column.tolist() == [[*short, 0], long.tolist()]


def test_sentence_numbers():
    rows, _ = encoded("document")
    assert rows[[0, 1]].sentences.tolist() == [[0, 0, 0, 1], [0, 0, 1, 1]]
    assert rows.flat([0]).first.tolist() == [True, False, False, True]
    rows, _ = encoded("sentence")
    assert not rows[[0, 1, 2, 3]].sentences.any()


def test_text_without_labels_has_no_gold():
    rows, _ = encoded("sentence", labelled=False)
    assert rows[[0]].gold is None


def test_other_encoder():
    data = Synthetic(train=4, dev=2, test=2)
    taggers = [encoder(["w[0]"], data), encoder(["w[0]", "pos[0]"], data)]
    data.encode(taggers[0], "fit")
    kept = data.encoded("train")
    data.encode(taggers[0], "test")
    assert data.encoded("train") is kept
    data.encode(taggers[1], "fit")
    assert len(data.encoded("train").arrays.nodes.ids) > len(kept.arrays.nodes.ids)


def encoder(templates, data):
    features = FeatureExtractor(templates, cutoff=1)
    labels = LabelSet.from_corpus(data.corpus("train").columns["label"], "IOB2")
    features.fit(data.corpus("train"))
    return lambda corpus: EncodedCorpus(corpus, features, labels)


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_flat_batches(unit):
    rows, _ = encoded(unit)
    order = list(reversed(range(len(rows))))
    padded, flat = rows[order], rows.flat(order)
    real = torch.arange(padded.sentences.shape[1]) < padded.lengths[:, None]
    for name in ("gold", "sentences", "first", "last"):
        assert torch.equal(getattr(flat, name), getattr(padded, name)[real])
    assert all(torch.equal(own, whole[real]) for own, whole in zip(flat.words, padded.words, strict=True))
    for row, part in zip(order, split_flat(flat, len(order)), strict=True):
        batch, wanted = single_sequence(part), rows[[row]]
        assert torch.equal(batch.gold, wanted.gold)
        assert torch.equal(batch.nodes.ids, wanted.nodes.ids)
        assert torch.equal(batch.first, wanted.first)
