"""One order of arguments: (y_true, y_pred) for names, (preds, target) for tensors."""

import inspect

import pytest
import torch
from torchmetrics import Metric

from structperc import metrics
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics import SegmentF1, SegmentPrecision, SegmentRecall, mcnemar
from structperc.metrics.confidence_bins import bin_sums
from structperc.metrics.counts import token_counts

LABELS = LabelSet(("O", "B-P", "I-P"))
GOLD, PREDICTED = torch.tensor([[1, 0, 1]]), torch.tensor([[1, 0, 0]])
PUBLIC = {name: getattr(metrics, name) for name in metrics.__all__}


def parameters(part):
    found = part.update if inspect.isclass(part) and issubclass(part, Metric) else part
    return [name for name in inspect.signature(found).parameters if name not in ("self", "args", "kwargs")]


@pytest.mark.parametrize("name", PUBLIC)
def test_argument_order(name):
    given = parameters(PUBLIC[name])
    assert not {"references", "predicted"} & set(given)
    if {"y_true", "y_pred"} & set(given):
        assert given[:2] == ["y_true", "y_pred"]
    if {"preds", "target"} & set(given):
        assert given[:2] in (["preds", "target"], ["candidates", "target"])
    if "predictions" in given:
        assert given[:2] == ["gold", "predictions"]


def test_metrics_take_keywords_of_torchmetrics():
    """One of one predicted segment is right, of two gold ones."""
    for kind, share in ((SegmentPrecision, 1.0), (SegmentRecall, 0.5)):
        metric = kind(LABELS)
        metric.update(target=GOLD, preds=PREDICTED)
        assert metric.compute() == metric(PREDICTED, GOLD) == share


@pytest.mark.parametrize(
    ("preds", "target", "lengths", "facts"),
    [
        (torch.rand(1, 3, 3), GOLD, [3], ["preds", "float32"]),
        (PREDICTED, GOLD.bool(), [3], ["target", "bool"]),
        (PREDICTED, GOLD, [3.0], ["lengths", "float32"]),
        (PREDICTED[:, :2], GOLD, [3], ["(1, 2)", "(1, 3)"]),
        (PREDICTED[0], GOLD[0], [3], ["(3,)"]),
        (PREDICTED, GOLD, [3, 3], ["lengths", "(2,)"]),
    ],
)
def test_tensors_of_other_shapes_and_types(preds, target, lengths, facts):
    for call in (SegmentF1(LABELS).update, SegmentRecall(LABELS).update, token_counts):
        with pytest.raises(InputError) as caught:
            call(preds, target, torch.tensor(lengths))
        assert [fact for fact in facts if fact not in str(caught.value)] == []


def test_answers_are_bool():
    yes, half = torch.ones(2, dtype=torch.bool), torch.tensor([0.5, 0.5])
    for call in (lambda: mcnemar(yes, half), lambda: mcnemar(yes, yes[:1]), lambda: bin_sums(yes, half, 2)):
        with pytest.raises(InputError, match="must be bool"):
            call()
