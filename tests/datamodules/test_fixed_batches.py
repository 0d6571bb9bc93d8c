"""Mini-batches that are cut once: those of the corpus, sorted by length, with transposed features."""

import pytest
import torch

from structperc.criteria import CRFLoss
from structperc.datamodules.encoded import PrecomputedBatches
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.ragged import Ragged
from tests.tiny import EDGE, NODE, Sentences, make_tagger, sentences

SIZE = 4


def encoded(edge=(), n=11, **options):
    data = Sentences(sentences(n), batch_size=SIZE, **options)
    tagger = make_tagger(data, CRFLoss(), edge=edge)
    data.encode(tagger.encode, "fit")
    return data, tagger


def precomputed(rows):
    return PrecomputedBatches(rows, LengthBatchSampler(rows.lengths, SIZE, shuffle=False))


def assert_features(found, plain):
    assert torch.equal(found.ids, plain.ids)
    assert torch.equal(found.offsets, plain.offsets)
    present, tokens, offsets, _ = found.transposed
    occurrences = [
        (int(feature), token)
        for token in range(len(plain.offsets) - 1)
        for feature in plain.ids[plain.offsets[token] : plain.offsets[token + 1]]
    ]
    listed = [
        (feature, token)
        for r, feature in enumerate(present.tolist())
        for token in tokens[offsets[r] : offsets[r + 1]].tolist()
    ]
    assert listed == sorted(occurrences)


@pytest.mark.parametrize("edge", [(), EDGE, NODE], ids=["nodes", "edges", "the same"])
def test_fixed_batches(edge):
    data, _ = encoded(edge)
    rows = data.encoded("train")
    fixed = precomputed(rows)
    assert len(fixed) == 3
    for batch in (fixed[i] for i in range(3)):
        plain = rows[batch.rows.tolist()]
        for name, own, other in zip(plain._fields, batch, plain, strict=True):
            if isinstance(other, Ragged):
                assert_features(own, other)
            elif name in ("words", "inputs"):
                assert all(torch.equal(a, b) for a, b in zip(own, other, strict=True))
            else:
                assert other is None if own is None else torch.equal(own, other)
        assert (batch.edges is batch.nodes) == (edge == NODE)


def test_every_sequence_once_and_lengths_in_order():
    data, _ = encoded()
    batches = precomputed(data.encoded("train")).batches
    assert sorted(row for batch in batches for row in batch.rows.tolist()) == list(range(11))
    assert [len(batch.rows) for batch in batches] == [4, 4, 3]
    lengths = [n for batch in batches for n in batch.lengths.tolist()]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 1


def test_same_batches_in_all_epochs():
    data, _ = encoded(shuffle=False)
    loader = data.train_dataloader()
    assert all(a.nodes.transposed.lists is b.nodes.transposed.lists for a, b in zip(loader, loader, strict=True))


def test_shuffled_batches():
    data, _ = encoded(shuffle=True)
    assert all(batch.nodes.transposed is None for batch in data.train_dataloader())


@pytest.mark.parametrize("edge", [(), EDGE, NODE], ids=["nodes", "edges", "the same"])
def test_gradient_of_fixed_batches(edge):
    data, tagger = encoded(edge)
    rows = data.encoded("train")
    for batch in precomputed(rows):
        gradients = []
        for given in (batch, rows[batch.rows.tolist()]):
            loss = tagger.criterion(tagger.score_batch(given)).sum()
            gradients.append(torch.autograd.grad(loss, list(tagger.parameters())))
        for a, b in zip(*gradients, strict=True):
            torch.testing.assert_close(a.to_dense(), b)
