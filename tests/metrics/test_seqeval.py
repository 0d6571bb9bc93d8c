"""Scores, dictionary and report of seqeval, in both modes, of labels legal or not."""

import random

import numpy as np
import pytest
import torch
from seqeval import metrics as peer
from seqeval import scheme as schemes

from structperc.errors import InputError
from structperc.metrics import (
    classification_report,
    segment_f1_score,
    segment_precision_score,
    segment_recall_score,
    seqeval_scores,
)

LETTERS = {"IOB1": "IB", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}


def some_rows(scheme, seed):
    """Gold of any labels, and predictions that have most of them; now and then no segment at all."""
    draw = random.Random(seed)
    labels = ["O", *(f"{letter}-{kind}" for letter in LETTERS[scheme] for kind in ("X", "a-b")), LETTERS[scheme][0]]
    gold = [draw.choices(labels, k=draw.randint(0, 9)) for _ in range(draw.randint(1, 6))]
    return gold, [[draw.choice(labels) if draw.random() < 0.2 else label for label in row] for row in gold]


def dictionary(report, accuracy):
    """As evaluate makes it of seqeval's report."""
    overall = report["micro avg"]
    shares = {"precision": "precision", "recall": "recall", "f1-score": "f1"}
    rows = {name: row for name, row in report.items() if not name.endswith(" avg")}
    kinds = {n: {own: row[key] for key, own in shares.items()} | {"number": row["support"]} for n, row in rows.items()}
    return kinds | {f"overall_{own}": overall[key] for key, own in shares.items()} | {"overall_accuracy": accuracy}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", [None, "strict"])
@pytest.mark.parametrize("scheme", LETTERS)
def test_equals_seqeval(scheme, mode):
    """Its default mode knows no L and no U, and a report of no segment is an error there."""
    if (scheme, mode) == ("BILOU", None):
        return
    theirs = {"mode": mode, "scheme": getattr(schemes, scheme), "zero_division": 0}
    for seed in range(30):
        rows = some_rows(scheme, seed)
        found = seqeval_scores(*rows, scheme=scheme, mode=mode)
        assert mode is not None or found == seqeval_scores(*rows)
        if any(isinstance(own, dict) for own in found.values()):
            report = peer.classification_report(*rows, output_dict=True, **theirs)
            expected = dictionary(report, peer.accuracy_score(*rows))
            assert found.keys() == expected.keys()
            for name, own in expected.items():
                assert found[name] == pytest.approx(own, abs=1e-12)
            ours = classification_report(*rows, output_dict=True, scheme=scheme, mode=mode)
            assert list(ours) == [kind or "_" for kind in report]
            for kind, row in report.items():
                assert ours[kind] == pytest.approx(row, abs=1e-12)
    nothing = seqeval_scores([["O"], []], [["O"], []], scheme=scheme, mode=mode)
    assert nothing == {"overall_precision": 0, "overall_recall": 0, "overall_f1": 0, "overall_accuracy": 1}


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_arguments_are_in_the_order_of_seqeval(name, average):
    """Precision and recall differ here, so that an exchange would show."""
    rows = [["B-PER", "O", "B-LOC", "O"], ["I-PER"]], [["B-PER", "O", "O", "O"], ["B-PER"]]
    ours = {"precision": segment_precision_score, "recall": segment_recall_score, "f1": segment_f1_score}[name]
    theirs = getattr(peer, f"{name}_score")
    both = [theirs(*rows, average=average, zero_division=0), theirs(*rows[::-1], average=average, zero_division=0)]
    assert [ours(*rows, average=average), ours(y_true=rows[1], y_pred=rows[0], average=average)] == pytest.approx(both)
    assert type(ours(*rows)) is float
    if name != "f1" and average == "micro":
        assert both[0] != both[1]
        assert seqeval_scores(*rows)[f"overall_{name}"] == both[0]


@pytest.mark.parametrize("digits", [2, 4])
def test_the_report_is_the_text_of_seqeval(digits):
    gold = [[label for label in row if label != "B"] for row in some_rows("IOB2", 7)[0]]
    rows = gold, [row[::-1] for row in gold]
    assert classification_report(*rows, digits=digits) == peer.classification_report(*rows, digits=digits)


def test_the_report_of_no_segment():
    report = classification_report([["O"]], [["O"]], output_dict=True)
    assert set(report) == {"micro avg", "macro avg", "weighted avg"}
    assert report["macro avg"] == {"precision": 0, "recall": 0, "f1-score": 0, "support": 0}
    assert "weighted avg" in classification_report([["O"]], [["O"]])


def test_sequences_of_all_kinds_are_sentences():
    gold = np.empty(2, object)
    gold[:] = [np.array(["B-X", "O"]), ("O",)]
    lists = [["B-X", "O"], ["O"]]
    assert seqeval_scores(gold, tuple(lists)) == seqeval_scores(lists, iter(lists))
    assert segment_f1_score(np.array([["B-X", "O"]]), [["B-X", "O"]]) == 1.0


X = [["O"]]


@pytest.mark.parametrize(
    ("arguments", "options", "facts"),
    [
        ((X, X), {"mode": "strict"}, ["needs a scheme", "IOB1, IOB2, IOBES, BILOU"]),
        ((X, X), {"scheme": "IOE2"}, ["IOB1, IOB2, IOBES, BILOU", "'IOE2'"]),
        ((X, X), {"scheme": "IOB2", "mode": "loose"}, ["'strict'", "'loose'"]),
        ((X, []), {}, ["y_true has 1 sentence,", "y_pred has 0"]),
        (([["O"], ["O"]], [["O"], ["O", "O"]]), {}, ["sentence 2", "y_true has 1 label,", "y_pred has 2"]),
        ((X, [["S-X"]]), {"scheme": "IOB2", "mode": "strict"}, ["y_pred, sentence 1, token 1", "'S-X'", "IOB2"]),
        (([["O", "PER"]], [["O", "O"]]), {}, ["y_true, sentence 1, token 2", "'PER'", "sklearn.metrics"]),
        (([["O"], ["PER-B"]], [["O"], ["O"]]), {}, ["y_true, sentence 2, token 1", "'PER-B'", "write 'B-PER'"]),
        ((X, [["0"]]), {}, ["y_pred, sentence 1, token 1", "'0'", "write 'O'"]),
        ((["O", "B-A"], ["O", "B-A"]), {}, ["y_true", "one sentence", "[y_true]"]),
        (([[0, 1]], [[0, 1]]), {}, ["y_true, sentence 1, token 1", "string, got 0"]),
        ((torch.tensor([[0, 1]]), X), {}, ["y_true, sentence 1, token 1", "got tensor(0)"]),
        (([["O", None]], X), {}, ["y_true, sentence 1, token 2", "None"]),
        (([["O"], None], X), {}, ["y_true, sentence 2", "None"]),
        ((X, None), {}, ["y_pred", "None"]),
        (("O B-A", X), {}, ["y_true", "'O B-A'"]),
        (({"a": ["O"]}, X), {}, ["y_true"]),
    ],
)
def test_refusals(arguments, options, facts):
    for score in (seqeval_scores, segment_recall_score, classification_report):
        with pytest.raises(InputError) as caught:
            score(*arguments, **options)
        assert [fact for fact in facts if fact not in str(caught.value)] == []
        assert "\n" not in str(caught.value)


def test_an_unknown_average():
    with pytest.raises(InputError, match="micro, macro or weighted, got 'binary'"):
        segment_f1_score(X, X, average="binary")
