"""Features with weights, learned online: against plain arithmetic over all labellings."""

import random
from functools import partial

import numpy as np
import pytest
import torch

from structperc import Corpus, FeatureExtractor, LabelSet, Tagger
from structperc.chain import KBest
from structperc.criteria import HingeLoss, MarginLoss, PerceptronLoss
from structperc.datamodules.encoded import EncodedCorpus
from structperc.features import format_weighted_features
from structperc.optim import PassiveAggressive
from structperc.optim import Perceptron as Additive
from structperc.scorers import SparseLinear
from structperc.taggers.sequential_learning import sequence_learner
from tests.oracle import label_sequences

LABELS = ("A", "B", "C")
LEARNERS = {  # criterion, optimizer, cost, margin, and how far weights move for a loss and a squared norm
    "perceptron": (PerceptronLoss(), Additive, 0.0, None, lambda loss, norm: 1.0),
    "margin": (MarginLoss(2.0), Additive, 0.0, 2.0, lambda loss, norm: 1.0),
    "PA-I": (
        HingeLoss(1.5),
        partial(PassiveAggressive, C=0.2),
        1.5,
        None,
        lambda loss, norm: min(0.2, loss / norm) if norm else 0.0,
    ),
}


def made(n=30, seed=3):
    """Sentences of (features {name: weight}, label); weights are quarters, some of them negative."""
    draw = random.Random(seed)

    def token():
        names = draw.sample("abcdefg", draw.randint(0, 4))
        return {name: draw.choice([-1.5, -0.25, 0.5, 1.0, 2.75]) for name in names}, draw.choice(LABELS)

    return [[token() for _ in range(draw.randint(1, 4))] for _ in range(n)]


def counts(tokens, labels, names):
    """Phi of a labelling, (F * L + L * L,) float64."""
    node, pairs = np.zeros((len(names), len(LABELS))), np.zeros((len(LABELS), len(LABELS)))
    for t, ((features, _), label) in enumerate(zip(tokens, labels, strict=True)):
        for name, weight in features.items():
            node[names.index(name), label] += weight
        if t:
            pairs[labels[t - 1], label] += 1
    return np.concatenate([node.ravel(), pairs.ravel()])


def naive(sentences, names, cost, margin, size):
    """The weights after one pass, their averages over all steps, and the number of updates."""
    weights = np.zeros(len(names) * len(LABELS) + len(LABELS) ** 2)
    total, updates = np.zeros_like(weights), 0
    for tokens in sentences:
        gold = tuple(LABELS.index(label) for _, label in tokens)
        phi = {y: counts(tokens, y, names) for y in label_sequences(len(tokens), len(LABELS))}
        score = {y: phi[y] @ weights + cost * sum(a != b for a, b in zip(y, gold, strict=True)) for y in phi}
        rivals = [y for y in phi if margin is None or y != gold]
        rival = max(rivals, key=score.get)  # the first of several
        gap, change = score[gold] - score[rival], phi[gold] - phi[rival]
        if rival != gold and (gap <= margin if margin is not None else True):
            weights = weights + size(-gap, change @ change) * change
            updates += 1
        total += weights
    return weights, total / len(sentences), updates


@pytest.mark.parametrize("name", LEARNERS)
def test_weights_by_plain_arithmetic(name):
    criterion, optimizer, cost, margin, size = LEARNERS[name]
    sentences = made()
    rows = [
        {
            "word": [""] * len(one),
            "features": [format_weighted_features(features.items()) for features, _ in one],
            "label": [label for _, label in one],
        }
        for one in sentences
    ]
    corpus, features = (
        Corpus.from_sentences(rows),
        FeatureExtractor(cutoff=1, weighted_column="features", progress=False),
    )
    features.fit(corpus)
    tagger = Tagger(features, SparseLinear(), criterion, KBest(2), optimizer)
    tagger.allocate(LabelSet(LABELS, "none"))
    stepping = optimizer(tagger.parameters())
    learned = sequence_learner(tagger, stepping).learn(
        EncodedCorpus(corpus, features, tagger.labels).flat(range(len(corpus)))
    )
    weights, averages, updates = naive(sentences, features.index.names("node"), cost, margin, size)
    assert learned.updates == updates > 10
    np.testing.assert_allclose(flat(tagger), weights, atol=1e-5)
    with stepping.evaluation_weights():
        np.testing.assert_allclose(flat(tagger), averages, atol=1e-5)


def flat(tagger):
    return torch.nn.utils.parameters_to_vector(tagger.parameters()).detach().numpy()
