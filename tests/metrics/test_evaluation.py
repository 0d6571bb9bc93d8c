import pytest
import torch
from torchmetrics import MetricCollection

from structperc.data.labels import LabelSet
from structperc.metrics import OracleF1, SegmentF1, SentenceAccuracy, TokenAccuracy
from structperc.metrics.torchmetrics_classes import Evaluation
from structperc.structures import Candidates

LABELS = LabelSet(("O", "B-P", "I-P"))
GOLD = torch.tensor([[1, 2, 0, 1], [0, 1, 0, 0]])
PREDICTED = torch.tensor([[1, 2, 0, 0], [0, 1, 1, 0]])
LENGTHS = torch.tensor([4, 2])


def test_all_scores_by_hand():
    evaluation = Evaluation(LABELS)
    evaluation.update(PREDICTED, GOLD, LENGTHS)
    shares = {"score": 0.8, "precision": 1.0, "recall": 2 / 3}
    assert evaluation.compute() == shares | {"token_accuracy": 5 / 6, "sentence_accuracy": 0.5}
    evaluation.reset()
    evaluation.update(PREDICTED, GOLD, LENGTHS, torch.tensor([[0, 0, 0, 1], [2, 2, 2, 2]]))
    assert evaluation.compute()["sentence_accuracy"] == pytest.approx(2 / 3)


def test_token_accuracy_without_segments():
    evaluation = Evaluation(LabelSet(("DT", "NN", "VB"), "none"))
    evaluation.update(PREDICTED, GOLD, LENGTHS)
    assert evaluation.compute() == {"score": 5 / 6, "token_accuracy": 5 / 6, "sentence_accuracy": 0.5}
    assert evaluation.table() == "token accuracy: 83.33%\nsentence accuracy: 50.00%"


def test_recall_counts_more_with_a_higher_gamma():
    """Two of two found segments are right, three are wanted."""
    for beta, expected in ((0.5, 1.25 * 2 / (0.25 * 3 + 2)), (1.0, 0.8), (2.0, 5 * 2 / (4 * 3 + 2))):
        evaluation = Evaluation(LABELS, beta)
        evaluation.update(PREDICTED, GOLD, LENGTHS)
        assert evaluation.compute()["score"] == pytest.approx(expected, abs=1e-15)
        assert f"FB{beta:g}: {100 * expected:6.2f}" in evaluation.table()


def test_table_has_each_accuracy_once():
    evaluation = Evaluation(LABELS)
    evaluation.update(PREDICTED, GOLD, LENGTHS)
    lines = evaluation.table().splitlines()
    assert lines[0] == "processed 6 tokens with 3 phrases; found: 2 phrases; correct: 2."
    assert lines[1].startswith("accuracy:  83.33%;")
    assert lines[-2:] == ["improper labels: 0", "sentence accuracy: 50.00%"]


def test_metrics_with_the_same_prefix():
    """A collection shares the counts of metrics whose states look the same after the first batch."""
    accuracies = MetricCollection([TokenAccuracy(), SentenceAccuracy()])
    segments = MetricCollection([SegmentF1(LABELS), OracleF1(LABELS)])
    for predicted, lengths in ((GOLD, torch.tensor([1, 1])), (PREDICTED, LENGTHS)):
        lists = Candidates(torch.stack([predicted, GOLD], 1), torch.zeros(2, 2), torch.ones(2, 2, dtype=torch.bool))
        accuracies.update(predicted, GOLD, lengths)
        segments.update(preds=predicted, candidates=lists, target=GOLD, lengths=lengths)
    assert accuracies.compute() == {"TokenAccuracy": pytest.approx(7 / 8), "SentenceAccuracy": pytest.approx(3 / 4)}
    assert segments.compute()["OracleF1"].total == (4, 4, 4)
    assert segments.compute()["SegmentF1"].total == (3, 3, 4)
