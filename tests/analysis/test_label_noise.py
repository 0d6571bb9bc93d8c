"""Label noise: folds whose segments training does not contain, and the rank of a wrong label."""

import sys

import pytest

from structperc import Corpus, FeatureExtractor, Tagger
from structperc.analysis import label_noise
from structperc.analysis.label_noise import Contradiction, LabelNoise, noise_lines, noise_rows
from structperc.chain import KBest
from structperc.criteria import MarginLoss
from structperc.data import Span
from structperc.errors import InputError
from structperc.metrics.segment_errors import SegmentPair
from structperc.nonlocal_features import MajorityPhrase
from structperc.reranking.jackknife import JackKnife, TrainingPart
from structperc.scorers import SparseLinear
from structperc.sklearn import SequenceTagger

WORDS = [["Anna", "left"], ["in", "Oslo"], ["Bo", "left"], ["in", "Oslo"], ["in", "Rome"], ["she", "left"]]
CLEAN = [["B-PER", "O"], ["O", "B-LOC"], ["B-PER", "O"], ["O", "B-LOC"], ["O", "B-LOC"], ["O", "O"]]
NOISY = [*CLEAN[:3], ["O", "B-PER"], *CLEAN[4:]]


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(max_iterations=10).fit(WORDS, CLEAN).tagger_


def data_of(labels, **options):
    sentences = [{"word": words, "label": own} for words, own in zip(WORDS, labels, strict=True)]
    return TrainingPart(Corpus.from_sentences(sentences), scheme="IOB2", **options)


class Plan(JackKnife):
    """A plan that returns a fixed tagger for each seed, and keeps the words of the parts."""

    others = {}  # noqa: RUF012  # taggers of seeds other than the first

    def train(self, first, data, corpus, fold, **options):
        self.parts.append(set(corpus.columns["word"]))
        return self.others.get(self.seed, first)


def test_a_wrong_label_comes_first(tagger):
    plan = Plan(folds=3)
    plan.parts = []
    whole = label_noise(tagger, data_of(NOISY), plan, rounds=2)
    found = whole.contradictions
    assert whole.f1 == pytest.approx(4 / 5)  # of 5 names
    assert (found[0].pair, found[0].models) == ((Span("PER", 1, 2), Span("LOC", 1, 2)), 2)
    assert found[0].probability > 0.5
    assert found[0].place.endswith("sentence 4, token 2")
    assert [one.pair.kind for one in found] == ["type"]
    assert len(plan.parts) == 6
    assert sum("Oslo" in part for part in plan.parts) <= 4  # not where a copy of it is held out
    assert "gold PER Oslo, predicted LOC Oslo" in next(iter(noise_lines(whole, 1)))
    (row,) = noise_rows(found)
    assert (row["text"], row["spans"]) == ("in Oslo", [{"start": 3, "end": 7, "type": "PER"}])
    assert row["contradictions"][0]["predicted"] == {"start": 3, "end": 7, "type": "LOC"}
    assert found[0].row()[3:] == ["wrong type", "PER", "Oslo", "LOC", "Oslo", "in Oslo"]


def test_models_of_other_rounds(tagger):
    """A contradiction that one of two rounds finds has half of its probability."""
    once, twice = Plan(folds=3), Plan(folds=3)
    once.parts, twice.parts = [], []
    persons = [*NOISY[:1], NOISY[3], *NOISY[2:]]  # both are PER
    twice.others = {twice.seed + 1: SequenceTagger(max_iterations=10).fit(WORDS, persons).tagger_}
    (one,) = label_noise(tagger, data_of(NOISY), once).contradictions
    found = {other.sentence: other for other in label_noise(tagger, data_of(NOISY), twice, rounds=2).contradictions}
    assert (found[3].pair, found[3].models) == (one.pair, 1)
    assert found[3].probability == pytest.approx(one.probability / 2)


@pytest.mark.parametrize(
    ("scheme", "gold", "kinds"),
    [
        ("IOB2", [["B-LOC", "O", "O"], ["B-PER", "O", "O"]], ["both", "missed", "spurious"]),
        ("none", [["O", "O", "O"], ["O", "O", "B-PER"]], ["type"] * 4),
    ],
)
def test_probabilities_are_those_of_segments_or_labels(scheme, gold, kinds, monkeypatch):
    words, labels = [["Anna", "Bo", "left"], ["in", "Oslo", "now"]], [["B-PER", "I-PER", "O"], ["O", "B-LOC", "O"]]
    tagger = SequenceTagger(max_iterations=4, scheme=scheme).fit(words, labels).tagger_
    table = tagger.marginals(words)
    every = Corpus.from_sentences([{"word": own} for own in words])
    likely = {} if scheme == "none" else {one[:3]: one[3] for one in tagger.predict(every, min_probability=0).spans}

    def probability(n, span):
        if scheme == "none":
            return table[n][span.start][tagger.labels.index(span.type)].item()
        return likely[span.type, 3 * n + span.start, 3 * n + span.end]

    monkeypatch.setattr(sys.modules["structperc.analysis.label_noise"], "fit_temperature", lambda *_: 1.0)
    plan = Plan(folds=2)
    plan.parts = []
    corpus = Corpus.from_sentences([{"word": own, "label": y} for own, y in zip(words, gold, strict=True)])
    found = label_noise(tagger, TrainingPart(corpus, scheme=scheme), plan).contradictions
    assert sorted(one.pair.kind for one in found) == kinds
    for one in found:
        predicted, missed = one.pair.found, one.pair.gold
        expected = probability(one.sentence, predicted) if predicted else 1 - probability(one.sentence, missed)
        assert one.probability == pytest.approx(expected)


def test_weak_models_are_reported():
    """Of ten names, 4 are contradicted by both rounds and 2 by one; 1 segment is spurious."""
    wrong, spurious = SegmentPair(Span("PER", 0, 1), Span("LOC", 0, 1)), SegmentPair(None, Span("LOC", 1, 2))
    made = [Contradiction("a:1", ["Bo", "left"], wrong, 0.9, models) for models in (2, 2, 2, 2, 1, 1)]
    found = LabelNoise([*made, Contradiction("a:1", ["Bo", "left"], spurious, 0.9, 2)], segments=10, rounds=2, kept=0.2)
    assert found.contradicted == 0.5
    assert found.f1 == pytest.approx(2 * 10 / (20 + 22))
    assert "--folds" in [*noise_lines(found, 1)][-1]
    strong = found._replace(segments=100)
    assert not strong.weak
    assert len([*noise_lines(strong, 1)]) == len([*noise_lines(found, 1)]) - 1


def test_refused(tagger):
    further = Tagger(
        FeatureExtractor(["w[0]"]), SparseLinear(), MarginLoss(1.0), KBest(2), nonlocal_features=[MajorityPhrase()]
    )
    with pytest.raises(InputError, match="non-local features"):
        label_noise(further, data_of(CLEAN), JackKnife(folds=2))
    with pytest.raises(InputError, match="rounds"):
        label_noise(tagger, data_of(CLEAN), JackKnife(folds=2), rounds=0)
    with pytest.raises(InputError, match=r"data\.unit"):
        label_noise(tagger, data_of(CLEAN, unit="document"), JackKnife(folds=2))
    same = TrainingPart(Corpus.from_sentences(2 * [{"word": ["Bo"], "label": ["B-PER"]}]), scheme="IOB2")
    with pytest.raises(InputError, match="more folds"):
        label_noise(tagger, same, JackKnife(folds=2))
