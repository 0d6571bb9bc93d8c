"""Segments that a first model finds likely, against all label sequences, and a tagger that is limited to them."""

import shutil
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from structperc import Corpus, FeatureExtractor, Tagger
from structperc.chain import KBest
from structperc.criteria import CRFLoss, HingeLoss
from structperc.data.tag_schemes import spans
from structperc.datamodules.encoded import EncodedCorpus
from structperc.errors import InputError
from structperc.features import CaseElsewhere
from structperc.ops.operators import path_score
from structperc.optim import Perceptron
from structperc.reranking import LikelySegments
from structperc.scorers import SegmentFeatures, SegmentLinear, SparseLinear
from tests.tiny import Sentences, sentences

D, THRESHOLD = 2, 0.05
TEXT = [["Anna", "met", "Bo"], ["Paris", "Rome", "Anna", "Bo"], ["the"]]


def randomize(tagger, seed):
    torch.manual_seed(seed)
    for p in tagger.parameters():
        torch.nn.init.normal_(p)


@pytest.fixture
def data():
    return Sentences([one[:4] for one in sentences(12)])


@pytest.fixture
def first(data, tmp_path):
    tagger = Tagger(FeatureExtractor(["w[0]"], cutoff=1, progress=False), SparseLinear(), CRFLoss(), KBest(1))
    tagger.build_vocabulary(data)
    randomize(tagger, 0)
    tagger.save(tmp_path / "first")
    return tagger


@pytest.fixture
def second(data, first, tmp_path, monkeypatch):
    monkeypatch.setenv("MODELS", str(tmp_path))
    segments = SegmentFeatures(["w[all]", "length"], D, cutoff=2, candidates=LikelySegments("$MODELS/first", THRESHOLD))
    features = FeatureExtractor(["w[0]"], progress=False)
    tagger = Tagger(features, SegmentLinear(SparseLinear(), segments), HingeLoss(), KBest(1), optimizer=Perceptron)
    tagger.build_vocabulary(data)
    randomize(tagger, 1)
    return tagger


def sequences(tagger, words):
    """All label sequences of a sentence with their scores."""
    corpus = Corpus.from_sentences([{"word": words}])
    (batch,) = tagger.batches(corpus)
    with torch.no_grad():
        lattice = tagger.eval()(batch)
    every = torch.tensor([*product(range(len(tagger.labels)), repeat=len(words))])
    unary, edge = lattice.unary.double(), lattice.edge.double().expand(-1, len(words), -1, -1)
    local = path_score(unary, edge, lattice.lengths, every, torch.zeros(len(every), dtype=torch.int64))
    return lattice, [(tagger.labels.decode(one), s) for one, s in zip(every, local.tolist(), strict=True)]


def likely(first, words):
    """First token and length of the likely segments, by the sum over all label sequences."""
    _, found = sequences(first, words)
    weights = {tuple(labels): np.exp(score) for labels, score in found}
    shares = Counter()
    for labels, weight in weights.items():
        for span in spans(labels):
            shares[span] += weight / sum(weights.values())
    best = max(weights, key=weights.get)
    kept = {span for span, share in shares.items() if share > THRESHOLD} | {*spans(best)}
    return {(span.start, span.end - span.start) for span in kept if span.end - span.start <= D}


def test_likely_segments_of_all_label_sequences(first, second):
    rows, candidates, start = [{"word": words} for words in TEXT], second.scorer.segments.candidates, 0
    corpus = Corpus.from_sentences(rows)
    found = candidates.find(corpus, D)
    expected = np.zeros((corpus.tokens, D), bool)
    for words in TEXT:
        for t, n in likely(first, words):
            expected[start + t, n - 1] = True
        start += len(words)
    assert expected.any()
    assert not expected.all()
    assert np.array_equal(found, expected)
    one_document = Corpus.from_sentences(rows, [0, 0, 0], "document")  # the first model was trained on sentences
    assert np.array_equal(candidates.find(one_document, D), expected)
    labelled = corpus.replace_column("label", ["U-NEW"] * corpus.tokens)  # a scheme and a type of the second model
    assert np.array_equal(candidates.find(labelled, D), expected)


def test_features_are_counted_in_candidates(data, first, second):
    counts, corpus = Counter(), data.corpus("train")
    for words, labels in zip(*(corpus.sentences_of(corpus.columns[name]) for name in ("word", "label")), strict=True):
        gold = {(span.start, span.end - span.start) for span in spans(labels) if span.end - span.start <= D}
        for t, n in likely(first, words) | gold:
            counts.update([f"w[all]={' '.join(words[t : t + n])}", f"length={n}"])
    segments = second.scorer.segments
    known = {name for name, count in counts.items() if count >= 2}
    assert len(known) < len(counts)
    assert {*segments.feature_names(range(segments.n_features))} == known


@pytest.mark.parametrize("words", TEXT)
def test_best_label_sequence_of_candidates(first, second, words):
    lattice, found = sequences(second, words)
    kept, types = likely(first, words), list(second.labels.type_names)

    def total(labels, score):
        if any((span.start, span.end - span.start) not in kept for span in spans(labels)):
            return -torch.inf
        return score + sum(
            lattice.segments.scores[0, span.start, span.end - span.start - 1, types.index(span.type)].item()
            for span in spans(labels)
        )

    legal = [labels for labels, _ in found if second.constraints is not None]
    assert len(legal) == len(found)
    best = max(found, key=lambda one: total(*one))
    assert second.tag([words]) == [best[0]]


def test_gold_segments_are_candidates_in_training(data, second):
    corpus = data.corpus("train")
    batch = EncodedCorpus(corpus, second.features, second.labels, second.inputs(corpus))[range(len(corpus))]
    pruned, scored = second.eval().score_batch(batch), second.train().score_batch(batch)
    assert (pruned.gold_scores == -torch.inf).any()
    assert scored.gold_scores.isfinite().all()
    fewer, every = (one.lattice.segments.scores for one in (pruned, scored))
    more = (fewer == -torch.inf) & (every > -torch.inf)
    assert (every[more] != 0).all()  # they have features


def test_saved_tagger_contains_the_first_model(data, second, tmp_path):
    second.save(tmp_path / "second")
    shutil.rmtree(tmp_path / "first")
    again = Tagger.load(tmp_path / "second")
    assert again.kbest(TEXT, 5) == second.kbest(TEXT, 5)
    segments = SegmentFeatures(["w[all]", "length"], D, candidates=LikelySegments("none"))
    further = Tagger(
        FeatureExtractor(["w[0]"], progress=False),
        SegmentLinear(SparseLinear(), segments),
        HingeLoss(),
        KBest(1),
        init_from=str(tmp_path / "second"),
    )
    further.build_vocabulary(data)
    assert further.tag(TEXT) == second.tag(TEXT)


def test_extent_is_that_of_the_first_model(data, tmp_path):
    features = FeatureExtractor(["case[0]"], documents={"case": CaseElsewhere()}, progress=False)
    first = Tagger(features, SparseLinear(), CRFLoss(), KBest(1))
    first.build_vocabulary(data)
    first.save(tmp_path / "first")
    candidates, again = LikelySegments(str(tmp_path / "first")), LikelySegments("none")
    candidates.build_vocabulary(data.corpus("train"))
    again.load_state(candidates.to_state())
    assert (candidates.extent, again.extent) == ("document", "document")
    assert candidates.source_files() == [str(tmp_path / "first")]
    with pytest.raises(InputError, match="first model"):  # its weights are not loaded yet
        again.find(data.corpus("train"), D)
    state = candidates.to_state()
    damaged = {**state["tagger"], "scorer": {"class_path": "structperc.scorers.SegmentLinear", "init_args": {}}}
    again.load_state({**state, "tagger": damaged})
    again.weights = candidates.weights
    with pytest.raises(InputError, match="first model"):
        again.find(data.corpus("train"), D)


def test_errors(data, first, tmp_path):
    with pytest.raises(InputError, match="threshold"):
        LikelySegments("first", threshold=1.0)
    assert LikelySegments("first", threshold=0.0).threshold == 0
    with pytest.raises(InputError, match="none"):
        LikelySegments("none").build_vocabulary(data.corpus("train"))
    first.criterion = HingeLoss()
    first.save(tmp_path / "first")
    with pytest.raises(InputError, match=r"/first: .*HingeLoss"):
        LikelySegments(str(tmp_path / "first")).build_vocabulary(data.corpus("train"))
    plain = Tagger(FeatureExtractor(["bias"], progress=False), SparseLinear(), CRFLoss(), KBest(1))
    plain.build_vocabulary(Sentences([[("a", "N"), ("b", "V")]], scheme="none"))
    plain.save(tmp_path / "plain")
    with pytest.raises(InputError, match=r"/plain: its labels have no tag scheme"):
        LikelySegments(str(tmp_path / "plain")).build_vocabulary(data.corpus("train"))
