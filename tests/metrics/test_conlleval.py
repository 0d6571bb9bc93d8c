"""Against what the official conlleval script printed, line by line, where the recorded cases are at hand."""

import json

import pytest

from structperc.data.labels import LabelSet
from structperc.metrics import SegmentF1

# The script does not know that S stands alone and that E closes; we read these letters as IOBES means them.
READ_AS_IOBES = {"spyysalo_E_B", "iobes_S_adjacent"}


def sentences_of(case):
    if "raw" not in case:
        return case.get("sentences")
    blocks = case["raw"].strip().split("\n\n")
    return [[[line.split()[i] for line in block.splitlines()] for i in (-2, -1)] for block in blocks]


def metric_of(sentences, padded):
    names = {name for pair in sentences for row in pair for name in row}
    scheme = "IOBES" if any(name[:2] in ("S-", "E-") for name in names) else "IOB2"
    labels = LabelSet(tuple(sorted(names)), scheme)
    metric = SegmentF1(labels)
    gold, lengths = padded(labels, [pair[0] for pair in sentences])
    metric.update(padded(labels, [pair[1] for pair in sentences])[0], gold, lengths)
    return metric


def test_recorded_output(corpora, padded):
    path = corpora / "conlleval_cases" / "cases.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    recorded = {case["name"]: case for case in json.loads(path.read_text(encoding="utf-8"))}
    texts = {name: sentences for name, case in recorded.items() if (sentences := sentences_of(case))}
    assert len(texts) > 60
    for name, sentences in texts.items():
        *printed, _ = metric_of(sentences, padded).table().splitlines()
        expected = list(dict.fromkeys(recorded[name]["perl_output"]))  # it prints a nameless type twice
        assert (printed == expected) == (name not in READ_AS_IOBES), (name, printed, expected)


def test_real_labels_against_themselves(corpora, padded):
    path = corpora / "conll2003" / "eng.testa"
    if not path.is_file():
        pytest.skip(f"no {path}")
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[line.split()[-1] for line in block.splitlines() if "-DOCSTART-" not in line] for block in blocks]
    scores = metric_of([(row, row) for row in rows], padded).compute()
    assert (scores.total, scores.tokens) == ((5942,) * 3, 51362)
    assert scores.f1 == 1.0
