"""Allowed labels and forbidden spans: the best label sequence of all that are left, with and without PyTorch."""

import math
import random

import pytest
import torch

import structperc
from structperc.chain import KBest, LabelBias, MinimumSegmentRisk
from structperc.criteria import CRFLoss
from structperc.data import LabelSet, Span, spans
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.guided import ContextFeatures
from structperc.nonlocal_features import ConjunctionConsistency
from structperc.predictor.limits import with_limits
from structperc.scorers import SparseLinear
from structperc.taggers import GuidedTagger, Tagger

SENTENCES = [["Anna", "met", "Bo"], ["Rome", "Bo"], ["met"]]
LABELS = LabelSet.from_corpus(["B-PER", "B-LOC"], "IOB2")
PARTS = SparseLinear(), CRFLoss(), KBest(2)


def tagger(cls, *options, labels=LABELS, **named):
    features = FeatureExtractor(["w[0]", "w[-1]"], cutoff=1, progress=False)
    features.fit(structperc.Corpus.from_sentences([{"word": words} for words in SENTENCES]))
    made = cls(features, *options, **named)
    made.allocate(labels)
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


def random_spans(seed):
    draw = random.Random(seed)
    starts = [[draw.randrange(len(words)) for _ in range(draw.randint(0, 3))] for words in SENTENCES]
    return [
        [Span(draw.choice(["PER", "LOC"]), a, draw.randint(a + 1, len(words))) for a in own] or None
        for words, own in zip(SENTENCES, starts, strict=True)
    ]


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2"])
def test_labels_and_probabilities_without_forbidden_spans(scheme, tmp_path):
    """The best of all label sequences without them, and shares of the sum over these, equal without PyTorch."""
    made = tagger(
        Tagger, *PARTS, labels=LabelSet.from_corpus(["I-PER", "I-LOC"] if scheme == "IOB1" else [*LABELS.names], scheme)
    )
    made.save(tmp_path / "model")
    every = made.kbest(SENTENCES, k=5**3)
    for predictor in (made, structperc.load(tmp_path / "model")):
        for seed in range(3):
            forbidden = random_spans(seed)
            found = predictor.entities(SENTENCES, min_probability=0.02, forbidden=forbidden)
            tagged = predictor.tag(SENTENCES, forbidden=forbidden)
            for own, bad, entities, labels in zip(every, forbidden, found, tagged, strict=True):
                left = [one for one in own if not {*(bad or ())} & {*spans(one.labels)}]
                total = sum(math.exp(one.log_probability) for one in left)
                shares = {
                    span: sum(math.exp(one.log_probability) for one in left if span in spans(one.labels)) / total
                    for one in left
                    for span in spans(one.labels)
                }
                assert labels == left[0].labels
                assert entities.probability == pytest.approx(math.exp(left[0].log_probability) / total, rel=1e-4)
                probabilities = {Span(*span[:3]): span.probability for span in entities.spans}
                assert probabilities == pytest.approx({s: shares[s] for s in probabilities}, rel=1e-3)
                assert {span for span, p in shares.items() if p > 0.021} <= set(probabilities)


def test_probabilities_of_tokens_without_forbidden_spans(tmp_path):
    made, forbidden = tagger(Tagger, *PARTS), [[Span("PER", 0, 1), Span("LOC", 0, 2)], None, [Span("LOC", 0, 1)]]
    made.save(tmp_path / "model")
    every = made.kbest(SENTENCES, k=5**3)
    for predictor in (made, structperc.load(tmp_path / "model")):
        corpus = with_limits(predictor.read(SENTENCES), None, forbidden)
        parts = predictor.predict(corpus, confident=True).split(map(len, SENTENCES))
        for own, bad, part in zip(every, forbidden, parts, strict=True):
            left = [one for one in own if not {*(bad or ())} & {*spans(one.labels)}]
            weights = [math.exp(one.log_probability) for one in left]
            for t, label in enumerate(part.labels):
                share = sum(p for one, p in zip(left, weights, strict=True) if one.labels[t] == label) / sum(weights)
                assert part.tokens[t] == pytest.approx(share, rel=1e-4)


@pytest.mark.parametrize("further", [[], [ConjunctionConsistency()]], ids=["local", "nonlocal"])
def test_forbidden_spans_with_biases_and_nonlocal_features(further):
    made = tagger(Tagger, *PARTS, nonlocal_features=further, decoder=LabelBias({"O": -9.0}, k=5))
    for seed in range(3):
        forbidden = random_spans(seed)
        found = made.tag(SENTENCES, [0, 0, 0], forbidden=forbidden)
        assert not any({*(bad or ())} & {*spans(labels)} for bad, labels in zip(forbidden, found, strict=True))


def test_taggers_without_support():
    guided, risky = (
        tagger(GuidedTagger, ContextFeatures(["t[-1]"])),
        tagger(Tagger, *PARTS, decoder=MinimumSegmentRisk()),
    )
    for made, name in ((guided, "guided"), (risky, "MinimumSegmentRisk")):
        with pytest.raises(InputError, match=name):
            made.tag(SENTENCES, allowed=[[["O"], None, None], None, None])
        with pytest.raises(InputError, match=name):
            made.tag(SENTENCES, forbidden=[[("PER", 0, 1)], None, None])
