"""Allowed labels in predictions: the best label sequence of all that are allowed, with and without PyTorch."""

import math
import random

import pytest
import torch

import structperc
from structperc.chain import KBest, MinimumSegmentRisk
from structperc.criteria import CRFLoss
from structperc.data import LabelSet
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.guided import ContextFeatures
from structperc.nonlocal_features import ConjunctionConsistency
from structperc.scorers import SparseLinear
from structperc.taggers import GuidedTagger, Tagger

SENTENCES = [["Anna", "met", "Bo"], ["Rome", "Bo"], ["met"]]
LABELS = LabelSet.from_corpus(["B-PER", "B-LOC"], "IOB2")
PARTS = SparseLinear(), CRFLoss(), KBest(2)


def tagger(cls, *options, **named):
    features = FeatureExtractor(["w[0]", "w[-1]"], cutoff=1, progress=False)
    features.fit(structperc.Corpus.from_sentences([{"word": words} for words in SENTENCES]))
    made = cls(features, *options, **named)
    made.allocate(LABELS)
    torch.manual_seed(3)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


def random_lists(seed):
    draw = random.Random(seed)
    return [[draw.choice([None, ["O", *draw.sample(LABELS.names, 2)]]) for _ in words] for words in SENTENCES]


def possible(labels, allowed):
    return all(own is None or label in own for label, own in zip(labels, allowed, strict=True))


def test_the_best_of_the_allowed_sequences(tmp_path):
    made = tagger(Tagger, *PARTS)
    made.save(tmp_path / "model")
    light = structperc.load(tmp_path / "model")
    every = made.kbest(SENTENCES, k=5**3)
    for seed in range(8):
        allowed = random_lists(seed)
        expected = [
            next(one.labels for one in own if possible(one.labels, given))
            for own, given in zip(every, allowed, strict=True)
        ]
        assert made.tag(SENTENCES, allowed=allowed) == expected == light.tag(SENTENCES, allowed=allowed)


def test_probabilities_are_conditional():
    """On the allowed labels: shares of the sum over the allowed label sequences."""
    made, allowed = tagger(Tagger, *PARTS), random_lists(2)
    every = made.kbest(SENTENCES, k=5**3)
    for own, given, found in zip(every, allowed, made.entities(SENTENCES, allowed=allowed), strict=True):
        left = [math.exp(one.log_probability) for one in own if possible(one.labels, given)]
        assert found.probability == pytest.approx(left[0] / sum(left), rel=1e-4)


def test_candidates_for_nonlocal_features_are_allowed_ones():
    made = tagger(Tagger, *PARTS, nonlocal_features=[ConjunctionConsistency()], decoder=KBest(5))
    for seed in range(3):
        allowed = random_lists(seed)
        found = made.tag(SENTENCES, [0, 0, 0], allowed)
        assert all(map(possible, found, allowed))


def test_taggers_without_support():
    guided, risky = (
        tagger(GuidedTagger, ContextFeatures(["t[-1]"])),
        tagger(Tagger, *PARTS, decoder=MinimumSegmentRisk()),
    )
    for made, name in ((guided, "guided"), (risky, "MinimumSegmentRisk")):
        with pytest.raises(InputError, match=name):
            made.tag(SENTENCES, allowed=[[["O"], None, None], None, None])
