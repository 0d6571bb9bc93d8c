"""The light tagger of a saved model against the whole one: the same labels, whatever the model is made of."""

import random
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import structperc
from structperc.chain import KBest, LabelBias
from structperc.criteria import CRFLoss, HingeLoss, MarginLoss, PerceptronLoss
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import forced_labels
from structperc.errors import InputError
from structperc.features import (
    CaseElsewhere,
    Clusters,
    FeatureExtractor,
    Gazetteer,
    LineKind,
    LongestMention,
    OtherMentions,
    TokenMajority,
)
from structperc.predictor.limits import with_limits
from structperc.predictor.sparse import SparsePredictor
from structperc.scorers import SegmentFeatures, SegmentLinear, SparseLinear
from structperc.taggers import Tagger

WORDS = ["Anna", "Bo", "paris", "Rome", "in", "saw", "ROME", "the", "1996", "."]
NODE = ["bias", {"of": ["w", "s2"], "at": [-1, 0, 1]}, "w[-1]|w[0]"]
EDGE = ["bias", {"of": ["w"], "at": [0, 1]}]
SEGMENTS = ("length", "w[all]", "w[first]|s2[last]", "w[-1]")
TYPES = {
    "IOB2": ["B-LOC", "B-PER", "O"],
    "IOB1": ["I-LOC", "O"],
    "BILOU": ["U-LOC", "U-PER", "O"],
    "none": ["N", "V", "D"],
}
RESOURCES = {
    "node": [*NODE, "gl[0]", "c2[-1]", "kind[0]", "other[0]", "case[0]", "longest[0]", "majority[0]"],
    "gazetteers": {"gl": Gazetteer(["Rome", "Anna Bo"])},
    "clusters": Clusters({"Rome": "011", "in": "10"}),
    "documents": {
        "kind": LineKind(),
        "other": OtherMentions("wl", 1),
        "case": CaseElsewhere(),
        "longest": LongestMention("w", "before"),
        "majority": TokenMajority("tag"),
    },
}


class Case(NamedTuple):
    """A model, and what its corpora are like."""

    features: dict[str, Any] = {"node": NODE}  # noqa: RUF012  # immutable here
    scheme: str = "IOB2"
    transitions: bool = True
    criterion: Any = PerceptronLoss
    unit: str = "sentence"
    weights: tuple[float, ...] = ()  # one of these each; normally distributed if there are none
    columns: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()  # templates of segments
    hash_bits: int | None = None  # of segments


CASES = {
    "transitions": Case(),
    "no transitions": Case(transitions=False),
    "edge features": Case({"node": NODE, "edge": EDGE}),
    "edges as nodes": Case({"node": NODE, "edge": NODE}, transitions=False),
    "edge features that never occurred": Case({"node": NODE, "edge": ["w[0]|w[1]|w[2]|w[3]"], "cutoff": 9}),
    "no scheme": Case({"node": NODE, "edge": EDGE}, "none"),
    "IOB1": Case(scheme="IOB1"),
    "BILOU": Case({"node": NODE, "edge": EDGE}, "BILOU"),
    "documents": Case({"node": NODE, "edge": EDGE}, "BILOU", unit="document"),
    "documents of one table": Case(scheme="BILOU", unit="document"),
    "sentences apart": Case(criterion=lambda: MarginLoss(1.0, "sentence"), unit="document", scheme="none"),
    "sentences apart with edges": Case({"node": NODE, "edge": EDGE}, criterion=lambda: HingeLoss(1.0, "sentence")),
    "windows within sentences": Case({"node": NODE, "within": "sentence"}, unit="document"),
    "resources": Case(RESOURCES, unit="document", columns=("tag",)),
    "hashed": Case({"node": NODE, "edge": EDGE, "hash_bits": 5}),
    "hashed resources": Case({**RESOURCES, "edge": NODE, "hash_bits": 16}, unit="document", columns=("tag",)),
    "likelihood": Case({"node": NODE, "edge": EDGE}, criterion=CRFLoss),
    "segments": Case(segments=SEGMENTS),
    "segments of documents": Case(scheme="BILOU", unit="document", segments=(*SEGMENTS, "tag[all]"), columns=("tag",)),
    "segments of sentences apart": Case(
        criterion=lambda: HingeLoss(1.0, "sentence"), unit="document", segments=SEGMENTS
    ),
    "hashed segments": Case(segments=SEGMENTS, hash_bits=10),
    "segments with ties": Case(transitions=False, segments=SEGMENTS, weights=(0.0, 0.0, 1.0)),
    "ties": Case({"node": NODE, "edge": EDGE}, unit="document", weights=(0.0,)),
    "ties of some labels": Case({"node": NODE, "edge": EDGE}, weights=(0.0, 0.0, 1.0)),
    "ties but for rounding": Case(scheme="none", weights=(0.1, 0.2, 0.3, -0.3)),
}


LIKELY = {  # those with probabilities; large weights leave nothing to products of probabilities
    name: case._replace(criterion=CRFLoss)
    for name, case in {
        **{name: CASES[name] for name in ("transitions", "edge features", "no scheme", "IOB1", "documents")},
        "ties of some labels": CASES["ties of some labels"],
        "documents of one table": CASES["documents of one table"],
        "resources": CASES["resources"],
        "segments": CASES["segments"],
        "segments of documents": CASES["segments of documents"],
        "large weights of segments": Case(weights=(0.0, 40.0, -90.0, 300.0), unit="document", segments=SEGMENTS),
        "large weights": Case(scheme="BILOU", weights=(0.0, 40.0, -90.0, 300.0), unit="document"),
        "large weights of edges": Case({"node": NODE, "edge": EDGE}, weights=(0.0, 90.0, -400.0), unit="document"),
    }.items()
}


def corpus_of(case: Case, seed: int, count: int = 40) -> Corpus:
    """Random sentences, some without a token, in documents of up to three; words of seed 0 are those of training."""
    draw = random.Random(seed)
    words = WORDS if seed == 0 else [*WORDS, "unknown", "Ünseen"]
    rows, documents = [], []
    for number in range(count):
        own = draw.choices(words, k=draw.choice([0, 1, 1, 2, 3, 5, 8]))
        rows.append({"word": own, **{role: draw.choices(["O", "B-X", "B-Y"], k=len(own)) for role in case.columns}})
        documents.append(number // 3)
    return Corpus.from_sentences(rows, documents, case.unit)


def tagger_of(case: Case) -> Tagger:
    features = FeatureExtractor(**{"cutoff": 1, "progress": False, **case.features})
    features.fit(corpus_of(case, 0))
    scorer = SparseLinear(case.transitions)
    if case.segments:
        scorer = SegmentLinear(scorer, SegmentFeatures(list(case.segments), 4, cutoff=1, hash_bits=case.hash_bits))
        scorer.build_vocabulary(corpus_of(case, 0))
    tagger = Tagger(features, scorer, case.criterion(), KBest(2))
    tagger.unit = case.unit
    tagger.allocate(LabelSet.from_corpus(TYPES[case.scheme], case.scheme))
    torch.manual_seed(1)
    for parameter in tagger.parameters():
        values = torch.tensor(case.weights or torch.randn(1000).tolist())
        parameter.data = values[torch.randint(len(values), parameter.shape)]
    return tagger


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_labels_equal_those_of_the_tagger(case, tmp_path):
    tagger = tagger_of(case)
    tagger.save(tmp_path / "model")
    light = structperc.load(tmp_path / "model")
    assert isinstance(light, SparsePredictor)
    assert (light.labels, light.unit, light.probabilistic) == (tagger.labels, case.unit, tagger.probabilistic)
    for seed in range(4):
        corpus = corpus_of(case, seed)
        labels = tagger.label(corpus)
        assert light.label(corpus) == labels
        assert seed == 0 or case.weights == (0.0,) or len({name for one in labels for name in one}) > 1
    assert light.label(corpus_of(case, 5, count=0)) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("light")
    tagger_of(Case()).save(folder / "plain")
    tagger_of(Case(criterion=CRFLoss)).save(folder / "likely")
    tagger_of(Case(RESOURCES, columns=("tag",))).save(folder / "columns")
    return folder


@pytest.fixture
def light(folder):
    return structperc.load(folder / "plain")


def test_sentences_and_documents(folder, light):
    sentences, documents = [["Anna", "saw", "Bo"], [], ["Rome"], ["in", "xyz"]], [0, 0, 1, 1]
    whole = Tagger.load(folder / "plain")
    assert light.tag(iter(sentences)) == whole.tag(sentences)
    assert light.tag(sentences, documents) == whole.tag(sentences, documents)
    assert light.tag([]) == []
    assert light.tag([[]]) == [[]]


@pytest.mark.parametrize("case", LIKELY.values(), ids=list(LIKELY))
def test_probabilities_equal_those_of_the_tagger(case, tmp_path):
    tagger = tagger_of(case)
    tagger.save(tmp_path / "model")
    light = structperc.load(tmp_path / "model")
    assert isinstance(light, SparsePredictor)
    for seed in (0, 1):
        corpus = corpus_of(case, seed)
        minimum = None if case.scheme == "none" else 0.1
        labels, tokens, segments, spans, logs = light.predict(corpus, True, minimum)
        expected = tagger.double().predict(corpus, True, minimum)
        assert labels == expected.labels
        np.testing.assert_allclose(tokens, expected.tokens, rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(segments, expected.segments, rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(logs, expected.log_probabilities, rtol=1e-4, atol=1e-6)
        for one, other in zip(spans or [], expected.spans or [], strict=True):
            assert (*one[:3], one.best) == (*other[:3], other.best)
            assert one.probability == pytest.approx(other.probability, rel=1e-4)
        assert np.isnan(segments).all() == (case.scheme == "none" or set(labels) == {"O"})
    nothing = light.predict(corpus_of(case, 5, count=0), confident=True)
    assert (nothing.labels, nothing.tokens.tolist(), nothing.segments.tolist()) == ([], [], [])


@pytest.mark.parametrize("name", ["documents of one table", "segments of documents"])
def test_biases_and_temperatures_equal_those_of_the_tagger(name, tmp_path):
    tagger, corpus = tagger_of(CASES[name]), corpus_of(CASES[name], 1)
    without = tagger.label(corpus)
    tagger.biases.add("recall", LabelBias({"O": -1.5, "U-PER": 0.5}))
    tagger.biases.use("recall")
    tagger.temperature = 1.7
    tagger.save(tmp_path / "model")
    light = structperc.load(tmp_path / "model")
    assert isinstance(light, SparsePredictor)
    assert light.label(corpus) == tagger.label(corpus) != without
    found, expected = light.predict(corpus, True, 0.1), tagger.double().predict(corpus, True, 0.1)
    np.testing.assert_allclose(found.tokens, expected.tokens, rtol=1e-5)
    np.testing.assert_allclose(found.segments, expected.segments, rtol=1e-5)
    np.testing.assert_allclose(found.log_probabilities, expected.log_probabilities, rtol=1e-4, atol=1e-6)
    assert [span[:3] for span in found.spans] == [span[:3] for span in expected.spans]


def test_limits_of_segments_equal_those_of_the_tagger(tmp_path):
    case = CASES["segments of documents"]._replace(criterion=CRFLoss)
    tagger, draw = tagger_of(case), random.Random(1)
    tagger.save(tmp_path / "model")
    light, whole = structperc.load(tmp_path / "model"), tagger_of(case).double()
    corpus = corpus_of(case, 1)
    lengths = np.diff(corpus.sentences).tolist()
    names = [name for name in tagger.labels.names if name != "O"]
    allowed = [[draw.choice([None, ["O", *draw.sample(names, 4)]]) for _ in range(length)] for length in lengths]
    places = [(draw.choice(["LOC", "PER"]), *sorted(draw.sample(range(n + 1), 2))) if n else None for n in lengths]
    forbidden = [place and [place] for place in places]
    for limits in ((allowed, None), (None, forbidden), (allowed, forbidden)):
        limited = with_limits(corpus, *limits)
        assert light.label(limited) == tagger.label(limited) != light.label(corpus)
        found, expected = light.predict(limited, True, 0.1), whole.predict(limited, True, 0.1)
        np.testing.assert_allclose(found.tokens, expected.tokens, rtol=1e-5)
        np.testing.assert_allclose(found.segments, expected.segments, rtol=1e-5)
        np.testing.assert_allclose(found.log_probabilities, expected.log_probabilities, rtol=1e-4, atol=1e-6)
        assert [span[:3] for span in found.spans] == [span[:3] for span in expected.spans]


def test_forced_segments_beyond_the_longest(tmp_path):
    tagger = tagger_of(CASES["segments"])
    tagger.save(tmp_path / "model")
    for one in (tagger, structperc.load(tmp_path / "model")):
        for length in (4, 5):
            forced = forced_labels(6, [("PER", 1, 1 + length)], one.labels)
            limited = [["in", *["Anna"] * 5]], None, [forced]
            if length == 4:
                assert one.tag(*limited)[0][1:5] == ["B-PER", *["I-PER"] * 3]
            else:
                with pytest.raises(InputError, match=r"sentence 1, token 2: .*'Anna'"):
                    one.tag(*limited)


def test_confidences_equal_those_of_the_tagger(folder):
    text = "Anna Bo saw Rome. The ROME in 1996."
    spans, expected = (load(folder / "likely").annotate(text) for load in (structperc.load, Tagger.load))
    assert [span[:3] for span in spans] == [span[:3] for span in expected]
    assert [span.confidence for span in spans] == pytest.approx([span.confidence for span in expected], rel=1e-5)
    assert all(0 < span.confidence < 1 for span in spans)


def test_model_without_probabilities(light):
    with pytest.raises(InputError, match="PerceptronLoss"):
        light.predict(light.read([["Anna"]]), confident=True)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (lambda tagger: tagger.tag(["Anna"]), "a list of words, got the string"),
        (lambda tagger: tagger.tag("Anna left"), r"a list of lists of words, got 'Anna left'; .* \[words\]"),
        (lambda tagger: tagger.tag(None), "a list of lists of words, got None"),
        (lambda tagger: tagger.tag([None]), "a list of words, got None"),
        (lambda tagger: tagger.tag({"word": ["Anna"]}), "expected a list of lists of words"),
        (lambda tagger: tagger.tag([["Anna"], ["Bo", 1]]), "sentence 2, token 2: expected words to be strings, got 1"),
        (lambda tagger: tagger.tag([[["Anna"]]]), "sentence 1, token 1: expected words to be strings"),
        (lambda tagger: tagger.tag([["Anna"]]), "'tag'"),
        (lambda tagger: tagger.annotate("Anna"), "this model requires the column tag"),
    ],
    ids=["string", "text", "nothing", "no sentence", "columns", "number", "nested", "column", "one text"],
)
def test_bad_input_is_one_line(folder, asked, reason):
    with pytest.raises(InputError, match=reason) as error:
        asked(structperc.load(folder / "columns"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("segments", [(), SEGMENTS], ids=["labels", "segments"])
def test_infinite_scores_are_refused(segments, tmp_path):
    tagger = tagger_of(Case(weights=(3e38,), segments=segments))
    tagger.save(tmp_path / "model")
    light = structperc.load(tmp_path / "model")
    for one in (tagger, light):
        with pytest.raises(InputError, match=r"\+inf.* (at|in) "):
            one.tag([["in"], ["Anna", "Bo"]])
