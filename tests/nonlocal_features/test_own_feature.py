"""The feature that docs/how_to/nonlocal_features.md shows is a working one."""

import re
from collections import Counter
from pathlib import Path

import torch

from structperc.nonlocal_features import CandidateSegments
from tests.nonlocal_features.labelled import Case
from tests.nonlocal_features.naive import entities

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "nonlocal_features.md"


def test_counts_of_the_example(case: Case) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    feature = names["Lengths"]()
    feature.allocate(case.label_set)
    counts = feature.counts(CandidateSegments(case.batch, case.labels, case.valid, case.label_set))
    columns = feature.names(case.label_set.type_names)
    K = case.labels.shape[1]
    for b, document in enumerate(case.documents):
        for k in case.valid[b].nonzero().squeeze(1).tolist():
            found = entities(document, case.names(b, k))
            expected = Counter(f"length({e.type},{len(e.words) if len(e.words) < 4 else 'more'})" for e in found)
            assert counts[b * K + k].tolist() == [expected[name] for name in columns]


def test_segments_of_column_minus_one(case: Case) -> None:
    segments = CandidateSegments(case.batch, case.labels, case.valid, case.label_set)
    types, C = segments.spans.types, len(case.label_set.type_names)
    kept = segments.count_spans(types.where(types != 0, -1), C)
    assert not kept[:, 0].any()
    assert torch.equal(kept[:, 1:], segments.count_spans(types, C)[:, 1:])
