"""What the scores of a split are followed by."""

import torch

from structperc.data import LabelSet
from structperc.metrics import Evaluation
from structperc.training.report import LabelledSplit, outcome_lines

LABELS = LabelSet(("O", "B-X", "I-X"), "IOB2")


def lines(predicted, gold, labels=LABELS):
    evaluation = Evaluation(labels)
    evaluation.update(torch.tensor([predicted]), torch.tensor([gold]), torch.tensor([len(gold)]))
    return list(outcome_lines({"dev": LabelledSplit(evaluation, [], 1.0)}, {}))


def test_advice_without_predicted_segments():
    (advice,) = lines([0, 0, 0], [1, 2, 1])[1:]
    assert advice.startswith("dev: nothing is predicted, and gold has 2 segments")
    assert "trainer.max_epochs" in advice
    assert "model.optimizer.init_args.lr" in advice
    assert "gold has 1 segment:" in lines([0, 0], [0, 1])[1]


def test_no_advice():
    assert len(lines([0, 1, 0], [1, 2, 1])) == 1
    assert len(lines([0, 0], [0, 0])) == 1
    assert len(lines([0, 0], [1, 2], LabelSet(("a", "b", "c"), "none"))) == 1
