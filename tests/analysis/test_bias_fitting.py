"""Biases and temperatures fitted on development data, against naive counts and searches."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch

from structperc import Corpus, LabelSet, Tagger
from structperc.analysis import bias_fitting, certified_bias
from structperc.analysis.bias_fitting import (
    METHODS,
    SegmentCounter,
    cost_goal,
    document_numbers,
    f_goal,
    fit_bias,
    fit_temperature,
    precision_goal,
    recall_goal,
)
from structperc.analysis.bias_report import bias_lines, certified_lines
from structperc.analysis.certified_bias import choosing_documents, fit_certified_bias, threshold_counts
from structperc.chain import KBest, LabelBias, SegmentThreshold, log_partition, path_score
from structperc.chain.minimum_risk import scale
from structperc.criteria import PerceptronLoss
from structperc.data import Synthetic, spans
from structperc.data.conll import write_conll
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import recall_p_value
from structperc.metrics.f_measure import SegmentScore
from structperc.nonlocal_features import MajorityPhrase
from structperc.scorers import SparseLinear


@pytest.fixture(scope="module")
def dev() -> Corpus:
    return Synthetic().corpus("dev").slice(0, 25)


def made(corpus: Corpus, **parts) -> Tagger:
    """A tagger that has counted the labels of words, as a perceptron scores them: not log-probabilities."""
    features = FeatureExtractor(["w[0]", "bias"], cutoff=1)
    features.fit(corpus)
    tagger = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1), **parts)
    tagger.allocate(LabelSet.from_corpus(corpus.columns["label"], "IOB2"))
    gold = torch.from_numpy(tagger.labels.encode(corpus.columns["label"]))
    ids, ends = features.ids(corpus)[0][:2]
    with torch.no_grad():
        for token, (first, last) in enumerate(pairwise(ends.tolist())):
            tagger.scorer.node[ids[first:last], gold[token]] += 1.0
        tagger.scorer.node.clamp_(max=4.0)
    return tagger.eval()


@pytest.fixture(autouse=True)
def coarse(monkeypatch) -> None:
    """A coarse grid, to save time."""
    monkeypatch.setattr(bias_fitting, "GRID", np.linspace(-4, 4, 5))


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return made(Synthetic().corpus("train").slice(0, 60))


def naive(tagger: Tagger, corpus: Corpus) -> SegmentScore:
    gold, found = corpus.sentences_of(corpus.columns["label"]), tagger.label(corpus)
    pairs = [(set(spans(a)), set(spans(b))) for a, b in zip(gold, found, strict=True)]
    return SegmentScore(*(sum(map(len, sets)) for sets in zip(*((a & b, b, a) for a, b in pairs), strict=True)))


def test_temperature_has_the_highest_likelihood(tagger, dev, caplog):
    (batch,) = tagger.batches(dev)
    lattice = tagger(batch)

    def loss(T: float) -> float:
        losses = log_partition(scale(lattice, T)) - path_score(scale(lattice, T), batch.gold)
        return float(losses[losses.isfinite()].double().sum())

    T = fit_temperature(tagger, dev)
    assert not caplog.records
    assert loss(T) < min(loss(T * 1.01), loss(T / 1.01))
    assert loss(T) < min(map(loss, (0.1, 0.5, 1.0, 2.0, 10.0)))


@pytest.mark.parametrize(("factor", "reason"), [(1, "not trained on"), (-1, "chance")])
def test_warning_about_a_likelihood_without_a_maximum(caplog, factor, reason):
    corpus = Corpus.from_sentences([{"word": ["Anna", "left"], "label": ["B-PER", "O"]}])
    tagger = made(corpus)
    with torch.no_grad():
        tagger.scorer.node.mul_(factor)
    assert np.isfinite(fit_temperature(tagger, corpus))
    (record,) = caplog.records
    assert reason in record.getMessage()


def test_counts_are_those_of_predictions(tagger, dev):
    counter = SegmentCounter(tagger, dev)
    assert counter.score(tagger.decoder) == naive(tagger, dev)
    tagger.biases.add("own", LabelBias({"O": -2.0}))
    tagger.biases.add("all", SegmentThreshold(0.05, temperature=2.0))
    tagger.biases.use("own")
    assert counter.score(tagger.biases.decoders["own"]) == naive(tagger, dev)
    tagger.biases.use("all")
    found = tagger.predict(dev).spans
    sentences = zip(dev.sentences, dev.sentences_of(dev.columns["label"]), strict=False)
    gold = {(s.type, first + s.start, first + s.end) for first, labels in sentences for s in spans(labels)}
    correct, n, n_gold = counter.score(tagger.biases.decoders["all"])
    assert (correct, n, n_gold) == (len({s[:3] for s in found} & gold), len(found), len(gold))
    tagger.biases.use(None)
    tagger.biases.decoders.clear()


GOALS = recall_goal(0.9), cost_goal({"missed": 3})


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.name)
def test_the_chosen_decoder_has_the_best_score_of_all_that_were_tried(tagger, dev, goal):
    found = fit_bias(tagger, dev, goal, ["outside", "types", "segments"])
    keys = [goal.key(point.score) for curve in found.curves for point in curve.points]
    assert goal.key(found.chosen.best.score) == max(keys)
    assert max(keys) >= goal.key(found.before)
    score = SegmentCounter(tagger, dev).score(found.chosen.best.decoder)
    assert score == found.chosen.best.score
    for share, (low, high) in zip((score.precision, score.recall, score.f1), found.intervals, strict=True):
        assert low <= share <= high


def test_overlap_only_where_nothing_else_reaches_the_goal(tagger, dev):
    assert [curve.method for curve in fit_bias(tagger, dev, f_goal(1)).curves] == [
        method for method in METHODS if method != "overlap"
    ]
    found = fit_bias(tagger, dev, recall_goal(1.0))
    assert found.chosen.method == "overlap"
    assert found.chosen.best.score.recall > max(curve.best.score.recall for curve in found.curves[:-1])


def test_goals_by_hand():
    few, many = SegmentScore(correct=8, found=10, gold=12), SegmentScore(correct=10, found=20, gold=12)
    assert recall_goal(0.8).key(few) < recall_goal(0.8).key(many)
    assert recall_goal(0.5).key(few) > recall_goal(0.5).key(many)
    assert precision_goal(0.8).key(few) > precision_goal(0.8).key(many)
    assert cost_goal({}).key(few) == (-(4 + 2),)
    assert cost_goal({"missed": 5}).key(many) == (-(10 + 10),)
    assert f_goal(2).key(few) == (pytest.approx(5 * 8 / (4 * 12 + 10)),)


def test_nonlocal_features_and_errors(tagger, dev):
    whole = made(dev, nonlocal_features=[MajorityPhrase()], decoder=KBest(3))
    found = fit_bias(whole, dev, f_goal(2), ["outside"])
    assert found.chosen.best.decoder.k == 3
    whole.biases.add("f2", found.chosen.best.decoder)
    whole.biases.use("f2")
    assert naive(whole, dev) == found.chosen.best.score
    with pytest.raises(InputError, match="segments"):
        fit_bias(whole, dev, f_goal(2), ["segments"])
    with pytest.raises(InputError, match="non-local"):
        fit_temperature(whole, dev)
    with pytest.raises(InputError, match="no segments"):
        fit_bias(whole, dev.replace_column("label", ["O"] * dev.tokens), f_goal(2), ["outside"])
    with pytest.raises(InputError, match="recall"):
        recall_goal(1.5)
    with pytest.raises(InputError, match="wrong"):
        cost_goal({"wrong": 1.0})


@pytest.fixture(scope="module")
def documents() -> Corpus:
    return Synthetic(dev=60).corpus("dev")


def test_counts_of_rising_thresholds_are_those_of_each(tagger, dev):
    counter = SegmentCounter(tagger, dev)
    for threshold, temperature in ((0.01, 2.0), (0.3, 2.0), (0.3, 1.0), (0.1, 1.0)):
        decoder = SegmentThreshold(threshold, temperature)
        decoder.allocate(tagger.labels)
        assert (counter(decoder) == SegmentCounter(tagger, dev)(decoder)).all()


@pytest.mark.parametrize("next_documents", [None, 60])
def test_the_chosen_threshold_is_the_last_before_the_first_failure(tagger, documents, next_documents):
    found = fit_certified_bias(tagger, documents, 0.7, 0.9, next_documents).fitted
    numbers = document_numbers(documents)
    choosing = choosing_documents(60)
    assert found.temperature == fit_temperature(tagger, documents.subset(choosing[numbers]))
    p = []
    for decoder, counts in threshold_counts(
        SegmentCounter(tagger, documents), numbers, found.chosen.method, found.temperature
    ):
        p.append(recall_p_value(counts[~choosing], 0.7, next_documents))
        if p[-1] > 0.1:
            break
        last = decoder, SegmentScore(*counts[~choosing].sum(0).tolist())
    assert len(found.chosen.points) == len(p) - 1
    assert found.chosen.points[-1].score == last[1]
    assert found.chosen.best.score.precision == max(point.score.precision for point in found.chosen.points)


def test_segments_without_overlap_are_preferred_where_they_suffice(tagger, documents, monkeypatch):
    monkeypatch.setattr(certified_bias, "SEQUENCE", [8.0, 4.0, 0.0])  # fewer thresholds
    assert fit_certified_bias(tagger, documents, 0.2).fitted.chosen.method == "segments"
    found = fit_certified_bias(tagger, documents, 0.2, methods=["overlap"])
    assert found.fitted.chosen.method == "overlap"
    assert (found.documents, found.unit) == (48, "documents")


def test_reports_of_costs_and_guarantees(tagger, documents):
    found = fit_bias(tagger, documents, recall_goal(0.95), ["segments", "overlap"])
    price = 100 * (found.before.precision - found.chosen.best.score.precision)
    limit = 100 * max(point.score.recall for point in found.curves[0].points)
    lines = list(bias_lines(found, "recall"))
    assert f"{price:.2f} points of precision" in lines[-2]
    assert f"{limit:.2f}" in lines[-1]
    certified = list(certified_lines(fit_certified_bias(tagger, documents, 0.7, 0.9, 25), "recall"))
    assert "next 25 documents" in certified[-2]
    assert "48 documents" in certified[-1]


@pytest.fixture
def calibrated(run, tagger, dev, tmp_path):
    tagger.save(tmp_path / "run" / "model")
    write_conll(tmp_path / "dev.txt", dev, ["word", "label"])
    return partial(run, "calibrate", tmp_path / "run" / "model", tmp_path / "dev.txt")


def test_calibrate_saves_biases_temperature_and_a_figure(run, calibrated, tagger, dev, tmp_path):
    model, file = tmp_path / "run" / "model", tmp_path / "dev.txt"
    weights = (model / "model.safetensors").read_bytes()
    calibrated("--recall", 0.9, "--methods", "outside", "--default")
    more = ("--methods", "segments", "--name", "three", "--temperature", "--plot", tmp_path / "c.svg")
    calibrated("--cost", "missed=3", *more)
    assert (tmp_path / "run" / "recall.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "c.svg").read_text()
    assert (model / "model.safetensors").read_bytes() == weights
    loaded = Tagger.load(model)
    assert (list(loaded.biases.decoders), loaded.biases.default) == (["recall", "three"], "recall")
    assert loaded.temperature == pytest.approx(fit_temperature(tagger, dev))
    recall = naive(loaded, dev)
    assert f"recall: {100 * recall.recall:6.2f}%" in run("evaluate", model, file)
    for name in ("three", "none"):
        loaded.biases.use(None if name == "none" else name)
        assert f"recall: {100 * naive(loaded, dev).recall:6.2f}%" in run("evaluate", model, file, "--bias", name)
    tagged = run("tag", model, file, "--bias", "none", "--probabilities").splitlines()
    labels = [line.split()[-1] for line in tagged if line and not line.startswith(("#", "-DOCSTART-"))]
    assert labels == [label for one in tagger.label(dev) for label in one]


def test_guarantee_on_the_command_line(run, fails, tagger, documents, tmp_path):
    model, file = tmp_path / "run" / "model", tmp_path / "dev.txt"
    tagger.save(model)
    write_conll(file, documents, ["word", "label"])
    assert "0.953" in fails("calibrate", model, file, "--recall", 0.99, "--guarantee", 0.9)  # 0.1 ** (1 / 48)
    assert not Tagger.load(model).biases.decoders
    assert "0.7 on all text" in run("calibrate", model, file, "--recall", 0.7, "--guarantee", 0.9)
    expected = fit_certified_bias(tagger, documents, 0.7).fitted.chosen.best.decoder
    assert Tagger.load(model).biases.decoders["recall"].threshold == pytest.approx(expected.threshold)


def test_overlapping_segments_in_outputs(run, fails, calibrated, tmp_path):
    model, file = tmp_path / "run" / "model", tmp_path / "dev.txt"
    calibrated("--recall", 1, "--methods", "overlap", "--default")
    assert "found: " in run("evaluate", model, file)
    assert "overlap" in fails("tag", model, file, "--format", "html")
    assert '"confidence"' in run("tag", model, file, "--format", "jsonl")


def test_reliability_shows_both_temperatures(run, calibrated, tmp_path):
    calibrated("--temperature")
    command = ("evaluate", tmp_path / "run" / "model", tmp_path / "dev.txt")
    lines = run(*command, "--types", "--reliability", 5).splitlines()
    rows = [line.split() for line in lines[1 : lines.index("")]]
    ece = {temperature: float(row[-2]) for row in rows if "tokens" in row for temperature in [row[2]]}
    assert len(ece) == 2
    assert ece.pop("1") > min(ece.values())
    assert len(rows) == 2 * (2 + 4)


def test_bad_command_lines(fails, calibrated, tmp_path):
    calibrated("--temperature")
    model, file = tmp_path / "run" / "model", tmp_path / "dev.txt"
    assert "--recall" in fails("calibrate", model, file)
    assert "missed" in fails("calibrate", model, file, "--cost", "missed=x")
    assert "missed=5 missed=2" in fails("calibrate", model, file, "--cost", "missed=5", "--cost", "missed=2")
    assert "--default" in fails("calibrate", model, file, "--temperature", "--default")
    assert "sideways" in fails("calibrate", model, file, "--recall", 0.9, "--methods", "sideways")
    assert "recall" in fails("tag", model, file, "--bias", "recall")
    assert "-k" in fails("tag", model, file, "--bias", "recall", "-k", 2)
    assert "--recall" in fails("calibrate", model, file, "--beta", 2, "--guarantee", 0.9)
    assert "--guarantee" in fails("calibrate", model, file, "--recall", 0.9, "--next-documents", 10)
    assert "0.999" in fails("calibrate", model, file, "--recall", 0.9, "--guarantee", 1)
    assert "overlap" in fails("calibrate", model, file, "--recall", 0.9, "--guarantee", 0.9, "--methods", "outside")
    assert np.isfinite(Tagger.load(model).temperature)
