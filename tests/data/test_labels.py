from itertools import chain, pairwise
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structperc.data.labels import LabelSet, segment_boundaries
from structperc.data.tag_schemes import (
    SCHEMES,
    Scheme,
    Span,
    convert,
    first_violation,
    label_type,
    parse_notation,
    repair,
    spans,
)
from structperc.errors import InputError
from structperc.structures import real_tokens
from tests.oracle import label_sequences

SEGMENT_SCHEMES = ["IOB1", "IOB2", "IOBES", "BILOU", "BMES", "BMEWO"]
NOTATIONS = ["IOB1 b-TYPE", "IOB2 TYPE-B", "IOBES b_TYPE O", "BMES TYPE/b", "BILOU B:TYPE 0"]
TYPES = ["PER", "creative-work"]


@st.composite
def labellings(draw: st.DrawFn) -> tuple[list[Span], list[str]]:
    """Random segments and their IOB2 labels, written down without the code under test."""
    segments, labels = [], []
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(TYPES)), max_size=6)
    ):
        labels += ["O"] * gap
        segments.append(Span(kind, len(labels), len(labels) + length))
        labels += [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
    return segments, labels + ["O"] * draw(st.integers(0, 2))


@given(labellings(), st.sampled_from([*SEGMENT_SCHEMES, *NOTATIONS]), st.sampled_from([*SEGMENT_SCHEMES, *NOTATIONS]))
def test_schemes_hold_the_same_segments(drawn, source, target):
    segments, iob2 = drawn
    there = convert(iob2, "IOB2", source)
    again = convert(there, source, target)
    assert spans(iob2) == spans(there, source) == spans(again, target) == segments
    assert convert(again, target, "IOB2") == iob2
    assert first_violation(again, target) is None
    assert repair(again, target) == (again, 0)


@pytest.mark.parametrize(
    ("scheme", "labels"),
    [
        ("IOB1", ["I-A", "I-A", "B-A", "O", "I-B", "I-A"]),
        ("IOB2", ["B-A", "I-A", "B-A", "O", "B-B", "B-A"]),
        ("IOBES", ["B-A", "E-A", "S-A", "O", "S-B", "S-A"]),
        ("BILOU", ["B-A", "L-A", "U-A", "O", "U-B", "U-A"]),
        ("BMES", ["B-A", "E-A", "S-A", "O", "S-B", "S-A"]),
        ("BMEWO", ["B-A", "E-A", "W-A", "O", "W-B", "W-A"]),
    ],
)
def test_segments_written_in_each_scheme(scheme, labels):
    assert spans(labels) == [Span("A", 0, 2), Span("A", 2, 3), Span("B", 4, 5), Span("A", 5, 6)]
    assert convert(["B-A", "I-A", "B-A", "O", "B-B", "B-A"], "IOB2", scheme) == labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["O", "I-A", "I-A"], [Span("A", 1, 3)]),
        (["B-A", "I-B"], [Span("A", 0, 1), Span("B", 1, 2)]),
        (["S-A", "I-A"], [Span("A", 0, 1), Span("A", 1, 2)]),
        (["E-A", "E-A"], [Span("A", 0, 1), Span("A", 1, 2)]),
        (["B", "I", "O", "I"], [Span("", 0, 2), Span("", 3, 4)]),
        (["B-a-b", "I-a-c"], [Span("a-b", 0, 1), Span("a-c", 1, 2)]),
        ([], []),
    ],
)
def test_illegal_labels_as_conlleval(labels, expected):
    assert spans(labels) == expected


@pytest.mark.parametrize("scheme", SEGMENT_SCHEMES)
def test_masks_and_violations(scheme):
    """Legal is what encoding some segments can produce: the labelling that its own segments give back."""
    types = ["A", "B"] if scheme in ("IOB1", "IOB2") else ["A"]
    label_set = LabelSet.from_corpus([f"B-{kind}" for kind in types], scheme)
    for labels in chain.from_iterable(label_sequences(length, label_set.names) for length in range(5)):
        legal = convert(labels, scheme, scheme) == list(labels)
        assert (first_violation(labels, scheme) is None) == legal
        ids = label_set.encode(labels)
        by_masks = all(label_set.transition[a, b] for a, b in pairwise(ids))
        if len(ids):
            by_masks = by_masks and label_set.start[ids[0]] and label_set.end[ids[-1]]
        assert bool(by_masks) == legal
        repaired, changed = repair(labels, scheme)
        assert first_violation(repaired, scheme) is None
        assert spans(repaired) == spans(labels)
        assert (changed == 0) == legal


@pytest.mark.parametrize("scheme", SEGMENT_SCHEMES)
def test_boundaries_are_the_spans(scheme):
    label_set = LabelSet.from_corpus(["B-A", "B-B"], scheme)
    batch = [label_set.decode(ids) for ids in np.random.default_rng(0).integers(0, len(label_set), (200, 5))]
    lengths = torch.tensor([i % 6 for i in range(200)])
    ids = torch.stack([torch.from_numpy(label_set.encode(labels)) for labels in batch])
    real = real_tokens(lengths, 5)
    starts = (torch.arange(5) == 0).expand_as(real)
    first, last = segment_boundaries(torch.where(real, ids, -100), real, starts, label_set)
    for row, (labels, length) in enumerate(zip(batch, lengths.tolist(), strict=True)):
        starts, ends = first[row].nonzero()[:, 0].tolist(), last[row].nonzero()[:, 0].tolist()
        kinds = [label_set.type_names[label_set.types[ids[row, t]]] for t in starts]
        found = [Span(k, a, b + 1) for k, a, b in zip(kinds, starts, ends, strict=True)]
        assert found == spans(labels[:length])


def test_shapes_of_boundaries():
    label_set = LabelSet(("O", "B-A", "I-A"), "IOB2")
    none = torch.ones(2, 3, 0, dtype=torch.bool)
    first, last = segment_boundaries(torch.zeros(2, 3, 0, dtype=torch.int64), none, none, label_set)
    assert first.shape == last.shape == (2, 3, 0)
    labels = torch.tensor([[[1, 2, 0], [2, 1, 1]]])
    first, last = segment_boundaries(labels, torch.ones(1, 1, 3) > 0, torch.arange(3) == 0, label_set)
    assert first.tolist() == [[[True, False, False], [True, True, True]]]
    assert last.tolist() == [[[False, True, False], [True, True, True]]]


@pytest.mark.parametrize(
    ("labels", "scheme", "at"),
    [
        (["O", "B-A"], "IOB1", 1),
        (["I-A", "B-B"], "IOB1", 1),
        (["I-A"], "IOB2", 0),
        (["U-A", "L-A"], "BILOU", 1),
        (["O", "B-A"], "IOBES", 1),  # illegal at the end
        ([], "IOBES", None),
    ],
)
def test_first_violation(labels, scheme, at):
    assert first_violation(labels, scheme) == at


def test_repair_counts_the_changed_labels():
    assert repair(["I-A", "I-A", "O", "B-B", "I-A"], "IOB2") == (["B-A", "I-A", "O", "B-B", "B-A"], 2)
    assert repair(["B-A", "O", "I-A"], "IOBES") == (["S-A", "O", "S-A"], 2)
    assert repair(["NN", "IN"], "none") == (["NN", "IN"], 0)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("IOB2 b-TYPE", ["b-A", "i-A", "b-A", "o", "b-B-c"]),
        ("IOB2 b-TYPE O", ["b-A", "i-A", "b-A", "O", "b-B-c"]),
        ("IOB2 TYPE-B", ["A-B", "A-I", "A-B", "O", "B-c-B"]),
        ("IOBES TYPE_b 0", ["A_b", "A_e", "A_s", "0", "B-c_s"]),
        ("BMES B:TYPE NONE", ["B:A", "E:A", "S:A", "NONE", "S:B-c"]),
    ],
)
def test_segments_written_in_each_notation(name, labels):
    assert parse_notation(name).name == name
    assert spans(labels, name) == [Span("A", 0, 2), Span("A", 2, 3), Span("B-c", 4, 5)]
    assert convert(["B-A", "I-A", "B-A", "O", "B-B-c"], "IOB2", name) == labels
    with pytest.raises(InputError, match="'X'"):
        first_violation(["X"], name)


@pytest.mark.parametrize("name", ["BIO", "IOB2 TYPE", "IOB2 X-TYPE", "IOB2 B TYPE"])
def test_names_of_no_notation(name):
    with pytest.raises(InputError, match="unknown"):
        parse_notation(name)


@pytest.mark.parametrize("label", ["S-A", "B-", "", "O-A"])
def test_labels_of_another_scheme_are_refused(label):
    with pytest.raises(InputError, match=f"'{label}' .*IOB2"):
        first_violation(["O", label], "IOB2")


def test_conversion_needs_segments():
    assert convert(["NN", "-LRB-"], "none", "none") == ["NN", "-LRB-"]
    with pytest.raises(InputError, match=r"none .*IOB2"):
        convert(["NN"], "none", "IOB2")
    with pytest.raises(InputError, match=r"'BIO'.*IOB1, IOB2"):
        convert(["O"], "IOB2", "BIO")


@pytest.mark.parametrize(
    ("scheme", "names"),
    [
        ("IOB1", ("O", "I-A", "B-A", "I-B", "B-B")),
        ("IOB2", ("O", "B-A", "I-A", "B-B", "I-B")),
        ("IOBES", ("O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B")),
        ("BILOU", ("O", "B-A", "I-A", "L-A", "U-A", "B-B", "I-B", "L-B", "U-B")),
        ("BMES", ("O", "B-A", "M-A", "E-A", "S-A", "B-B", "M-B", "E-B", "S-B")),
        ("BMEWO", ("O", "B-A", "M-A", "E-A", "W-A", "B-B", "M-B", "E-B", "W-B")),
    ],
)
def test_label_set_of_a_corpus_is_complete(scheme, names):
    label_set = LabelSet.from_corpus(iter([names[-1], "B-A", names[-1]]), scheme)
    assert label_set.names == names
    assert label_set == LabelSet(list(names), scheme)
    assert label_set.type_names == ("A", "B")
    assert [label_set.index(name) for name in names] == list(range(len(names)))
    assert LabelSet.from_corpus([], scheme).names == ("O",)


def test_label_set_tensors():
    label_set = LabelSet(("O", "B-PER", "I-PER", "B-LOC"), "IOB2")
    assert label_set.start.tolist() == [True, True, False, True]
    assert label_set.end.tolist() == [True] * 4
    assert label_set.transition.int().tolist() == [[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]]
    assert label_set.type_names == ("LOC", "PER")
    assert label_set.types.tolist() == [-1, 1, 1, 0]
    assert label_set.types.dtype == torch.int64
    assert (label_set.start.dtype, label_set.transition.dtype, label_set.end.dtype) == (torch.bool,) * 3


def test_label_set_without_scheme():
    label_set = LabelSet.from_corpus(["VB", "-LRB-", "NN", "VB"], "none")
    assert label_set.names == ("-LRB-", "NN", "VB")
    assert label_set.start.all()
    assert label_set.transition.all()
    assert label_set.end.all()
    assert label_set.type_names == ()
    assert label_set.types.tolist() == [-1, -1, -1]


def test_encode_and_decode():
    label_set = LabelSet(("O", "B-PER", "I-PER"), "IOB2")
    ids = label_set.encode(["B-PER", "I-PER", "O"])
    assert ids.dtype == np.int64
    assert ids.tolist() == [1, 2, 0]
    assert label_set.encode([]).shape == (0,)
    for form in (ids, torch.from_numpy(ids), ids.tolist()):
        assert label_set.decode(form) == ["B-PER", "I-PER", "O"]
    for bad in (-1, 3, -100):
        with pytest.raises(ValueError, match="3 labels"):
            label_set.decode([0, bad])


@pytest.mark.parametrize(("where", "place"), [("dev.txt", "dev.txt"), (lambda i: f"dev.txt:{i + 7}", "dev.txt:8")])
def test_unknown_labels(where, place):
    label_set = LabelSet(("O", "B-PER", "I-PER"), "IOB2")
    with pytest.raises(InputError, match=f"^{place}: .*'B-LOC'.* O, B-PER, I-PER"):
        label_set.encode(["O", "B-LOC"], where)


@pytest.mark.parametrize(
    ("names", "scheme"), [((), "none"), (("O", "O"), "IOB2"), (("O", "PER"), "IOB2"), (("O",), "BIO")]
)
def test_invalid_label_sets(names, scheme):
    with pytest.raises(InputError):
        LabelSet(names, scheme)


def test_all_schemes_are_tested():
    assert set(SCHEMES) == {*SEGMENT_SCHEMES, "IO", "none"} == set(get_args(Scheme))


def test_type_of_a_label():
    labels = ["O", "B-PER", "I-PER", "S-creative-work", "B", "NN", "NN-", "B-O"]
    assert list(map(label_type, labels)) == [None, "PER", "PER", "creative-work", "B", "NN", "NN-", "O"]
