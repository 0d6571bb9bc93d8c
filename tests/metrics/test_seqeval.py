"""The dictionary of evaluate's seqeval, in both modes, of labels legal or not."""

import random

import pytest
from seqeval import scheme as schemes
from seqeval.metrics import accuracy_score, classification_report

from structperc.errors import InputError
from structperc.metrics import seqeval_scores

LETTERS = {"IOB1": "IB", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}


def some_rows(scheme, seed):
    """Any labels, and predictions that have most of them; now and then no segment at all."""
    draw = random.Random(seed)
    labels = ["O", *(f"{letter}-{kind}" for letter in LETTERS[scheme] for kind in ("X", "a-b")), LETTERS[scheme][0]]
    gold = [draw.choices(labels, k=draw.randint(0, 9)) for _ in range(draw.randint(1, 6))]
    changed = [[draw.choice(labels) if draw.random() < 0.2 else label for label in row] for row in gold]
    return changed, gold


def theirs(predictions, references, scheme, mode):
    """As evaluate makes it of seqeval's report."""
    kind = scheme and getattr(schemes, scheme)
    report = classification_report(references, predictions, output_dict=True, mode=mode, scheme=kind, zero_division=0)
    overall = report.pop("micro avg")
    report = {name: own for name, own in report.items() if name not in ("macro avg", "weighted avg")}
    shares = {"precision": "precision", "recall": "recall", "f1-score": "f1"}
    return {
        **{
            name: {own: row[key] for key, own in shares.items()} | {"number": row["support"]}
            for name, row in report.items()
        },
        **{f"overall_{own}": overall[key] for key, own in shares.items()},
        "overall_accuracy": accuracy_score(references, predictions),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", [None, "strict"])
@pytest.mark.parametrize("scheme", LETTERS)
def test_scores_are_seqevals(scheme, mode):
    """Its default mode knows no L and no U, and a report of no segment is an error there."""
    if (scheme, mode) == ("BILOU", None):
        return
    for seed in range(150):
        predictions, references = some_rows(scheme, seed)
        found = seqeval_scores(predictions, references, scheme, mode)
        assert mode is not None or found == seqeval_scores(predictions, references)
        if any(isinstance(own, dict) for own in found.values()):
            wanted = theirs(predictions, references, scheme, mode)
            assert found.keys() == wanted.keys()
            for name, own in wanted.items():
                assert found[name] == pytest.approx(own, abs=1e-12)
    nothing = seqeval_scores([["O"], []], [["O"], []], scheme, mode)
    assert nothing == {"overall_precision": 0, "overall_recall": 0, "overall_f1": 0, "overall_accuracy": 1}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([["O"]], [["O"]], None, "strict"), "mode strict needs a scheme: IOB1, IOB2, IOBES, BILOU"),
        (([["O"]], [["O"]], "IOE2"), "scheme must be one of IOB1, IOB2, IOBES, BILOU, got 'IOE2'"),
        (([["O"]], [["O"]], "IOB2", "loose"), "mode must be None or 'strict', got 'loose'"),
        (([["O"]], []), "predictions have 1 sentences, references 0"),
        (([["O"], ["O"]], [["O"], ["O", "O"]]), "sentence 1: predictions have 1 labels, references 2"),
        (([["S-X"]], [["O"]], "IOB2", "strict"), "label 'S-X' is not of scheme IOB2"),
        (([["PER"]], [["O"]]), "label 'PER' is not of scheme IOBES"),
    ],
)
def test_refusals(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        seqeval_scores(*arguments)
