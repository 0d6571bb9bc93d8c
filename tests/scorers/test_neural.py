"""Scores of vectors against a matrix product; sums of scorers against their parts."""

import pytest
import torch
from torch import nn

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import EncodedCorpus
from structperc.encoders import BiLSTM, CharCNN, Encoder, Window, WordEmbedding
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.scorers import Neural, SparseLinear, Sum

SENTENCES = [["Anna", "met", "Bo"], ["no"], ["Bo", "met", "Anna", "in", "Rome"]]
LABELS = LabelSet(("O", "B-X", "I-X"))


def window():
    return Window([WordEmbedding(4, cutoff=1)], window_size=1)


def batch_for(scorer, node=("bias",)):
    """All sentences in one batch, and the scorer with random weights."""
    torch.manual_seed(2)
    corpus = Corpus.from_sentences([{"word": words} for words in SENTENCES])
    features = FeatureExtractor(list(node), cutoff=1, progress=False)
    features.fit(corpus)
    scorer.build_vocabulary(corpus)
    scorer.allocate(features.n_node_features, 0, 3)
    for p in scorer.parameters():
        nn.init.normal_(p)
    return EncodedCorpus(corpus, features, LABELS, scorer.encode_inputs(corpus))[[0, 1, 2]]


def test_scores_and_transitions():
    scorer = Neural(window())
    batch = batch_for(scorer)
    lattice = scorer(batch)
    vectors = scorer.encoder(batch)
    torch.testing.assert_close(lattice.unary, vectors @ scorer.head.weight.T + scorer.head.bias)
    assert torch.equal(lattice.edge[0, 0], scorer.transition)
    assert lattice.lengths.tolist() == [3, 1, 5]


def test_without_transitions_pairs_have_no_scores():
    scorer = Neural(window(), transitions=False)
    lattice = scorer(batch_for(scorer))
    assert lattice.edge.shape == (1, 1, 3, 3)
    assert not lattice.edge.any()
    assert scorer.transition is None


def test_scores_in_single_precision():
    scorer = Neural(window())
    batch = batch_for(scorer)
    with torch.autocast("cpu", torch.bfloat16):
        lattice = scorer(batch)
    assert lattice.unary.dtype == lattice.edge.dtype == torch.float32


@pytest.mark.parametrize("order", [1, -1])
def test_sum_of_scorers(order):
    lstm = Neural(BiLSTM([CharCNN(3), WordEmbedding(4, cutoff=1)], hidden=3, dropout=0), transitions=False)
    parts = [SparseLinear(sparse_grad=False), Neural(window()), lstm][::order]
    scorer = Sum(parts)
    batch = batch_for(scorer, node=["bias", {"of": ["w"], "at": [-1, 0]}])
    assert scorer.n_inputs == len(batch.inputs) == 3
    cuts = {1: [(0, 0), (0, 1), (1, 3)], -1: [(0, 2), (2, 3), (3, 3)]}[order]
    lattices = [part(batch._replace(inputs=batch.inputs[a:b])) for part, (a, b) in zip(parts, cuts, strict=True)]
    found = scorer(batch)
    torch.testing.assert_close(found.unary, sum(lattice.unary for lattice in lattices))
    torch.testing.assert_close(found.edge, sum(lattice.edge for lattice in lattices))


class Constant(Encoder):
    """An encoder of a user: the same vector everywhere."""

    width, n_inputs = 2, 0

    def encode_inputs(self, corpus):
        return []

    def forward(self, batch):
        return torch.ones(*batch.sentences.shape, 2)


def test_own_encoder():
    scorer = Neural(Constant(), transitions=False)
    lattice = scorer(batch_for(scorer))
    torch.testing.assert_close(lattice.unary[2, 4], scorer.head(torch.ones(2)))


def test_invalid_scorers():
    with pytest.raises(InputError, match="scorers"):
        Sum([])
    with pytest.raises(InputError, match="template"):
        SparseLinear().allocate(0, 0, 3)
