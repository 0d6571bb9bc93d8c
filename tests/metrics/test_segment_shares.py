"""Metrics of one number: the shares of seqeval, in the tools that torchmetrics and Lightning have for such metrics."""

import pytest
import pytorch_lightning as pl
import torch
from seqeval.metrics import classification_report
from torch.utils.data import DataLoader
from torchmetrics import MetricCollection, MetricTracker

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics import SegmentF1, SegmentFScore, SegmentPrecision, SegmentRecall

LABELS = LabelSet(("O", "B-A", "I-A", "B-B", "I-B", "B-C", "I-C", "B-D", "I-D"))
KINDS = {"precision": SegmentPrecision, "recall": SegmentRecall, "f1-score": SegmentFScore}


def some(seed, n=12, T=9):
    """Predicted and gold; of C there is only gold, of D nothing at all."""
    draw = torch.Generator().manual_seed(seed)
    gold = torch.randint(0, 7, (n, T), generator=draw)
    other = torch.randint(0, 5, (n, T), generator=draw)
    return other.where((torch.rand(n, T, generator=draw) < 0.3) | (gold > 4), gold), gold


def names(rows, kept):
    return [LABELS.decode(row[own]) for row, own in zip(rows, kept, strict=True)]


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
def test_shares_are_those_of_seqeval(average):
    predicted, gold = some(1)
    kept = torch.rand(gold.shape, generator=torch.Generator().manual_seed(2)) < 0.8
    report = classification_report(names(gold, kept), names(predicted, kept), output_dict=True, zero_division=0)
    for name, kind in KINDS.items():
        metric = kind(LABELS, average)
        for rows in (slice(0, 5), slice(5, 12)):
            metric.update(predicted[rows], gold[rows].where(kept[rows], -100))
        assert metric.compute().item() == pytest.approx(report[f"{average} avg"][name], abs=1e-12)
    counted = SegmentF1(LABELS)
    counted.update(predicted, gold, torch.full((12,), 9))
    report = classification_report(
        names(gold, gold >= 0), names(predicted, gold >= 0), output_dict=True, zero_division=0
    )
    assert counted.compute().macro_f1 == pytest.approx(report["macro avg"]["f1-score"], abs=1e-12)


def test_lengths_and_sentences_are_those_of_segment_f1():
    predicted, gold = some(3)
    lengths, sentences = torch.arange(12) % 10, torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2]).expand(12, -1)
    whole = SegmentF1(LABELS)
    whole.update(predicted, gold, lengths, sentences)
    labelled = gold.where(torch.arange(9) < lengths[:, None], -100)
    for beta in (1.0, 2.0):
        for given in ((gold, lengths, sentences), (labelled, None, sentences)):
            metric = SegmentFScore(LABELS, beta=beta)
            metric.update(predicted, *given)
            assert metric.compute().item() == pytest.approx(whole.compute().f(beta), abs=1e-12)


def test_nothing_scores_zero():
    for average in ("micro", "macro", "weighted"):
        metric = SegmentFScore(LABELS, average)
        metric.update(torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 3, dtype=torch.int64))
        assert metric.compute() == 0


def test_collections_trackers_and_plots_take_them():
    shares = MetricCollection(
        {name: kind(LABELS) for name, kind in KINDS.items()} | {"macro": SegmentFScore(LABELS, "macro")}
    )
    tracker = MetricTracker(shares, maximize=[True] * 4)
    single = MetricTracker(SegmentFScore(LABELS))
    expected = []
    for seed in range(3):
        predicted, gold = some(seed)
        alone = SegmentF1(LABELS)
        for metric in (tracker, single):
            metric.increment()
            metric.update(predicted[:6], gold[:6])
            metric(predicted[6:], gold[6:])
        alone.update(predicted, gold, torch.full((12,), 9))
        expected.append(alone.compute().f1)
    assert [round(float(f), 9) for f in tracker.compute_all()["f1-score"]] == [round(f, 9) for f in expected]
    best, step = single.best_metric(return_step=True)
    assert (best, step) == (pytest.approx(max(expected)), expected.index(max(expected)))
    _, axes = SegmentFScore(LABELS).plot(list(single.compute_all()))
    assert axes.lines[0].get_ydata().tolist() == pytest.approx(expected)


class Network(pl.LightningModule):
    """Predicts what it is given, and logs how good that is."""

    def __init__(self) -> None:
        super().__init__()
        self.f1, self.macro = SegmentFScore(LABELS), SegmentFScore(LABELS, "macro")

    def validation_step(self, batch, _):
        self.f1.update(*batch)
        self.macro(*batch)
        self.log("f1", self.f1)
        self.log("macro", self.macro)


def test_lightning_logs_them_over_batches():
    predicted, gold = some(4)
    trainer = pl.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, barebones=False
    )
    (logged,) = trainer.validate(
        Network(), DataLoader(list(zip(predicted, gold, strict=True)), batch_size=5), verbose=False
    )
    for name, average in (("f1", "micro"), ("macro", "macro")):
        whole = SegmentFScore(LABELS, average)
        whole.update(predicted, gold)
        assert logged[name] == pytest.approx(whole.compute().item())


@pytest.mark.parametrize(
    ("labels", "options", "complaint"),
    [
        (LabelSet(("a", "b"), "none"), {}, "SegmentFScore: labels of scheme none have no segments; use TokenAccuracy"),
        (LABELS, {"average": "most"}, "SegmentFScore: average must be micro, macro or weighted, got 'most'"),
        (LABELS, {"beta": 0}, "beta must be > 0"),
    ],
)
def test_refusals(labels, options, complaint):
    with pytest.raises(InputError, match=complaint):
        SegmentFScore(labels, **options)
