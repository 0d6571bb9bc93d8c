"""Whoever reads segments reads the same ones: labels, metric, non-local features and criteria, in every scheme.

The reference below is written without any of them: conlleval's rule, sentence by sentence.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
import torch

from structperc.criteria import MCEFLoss, Sigmoid
from structperc.criteria.mce_f import SegmentCounts
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.data.tag_schemes import PREFIX_SCHEMES, SCHEMES, spans
from structperc.metrics.counts import opened_segments, segment_counts, sentence_boundaries
from structperc.nonlocal_features import CandidateSegments
from structperc.ragged import Ragged
from structperc.structures import Batch, Candidates, Lattice, Scored, SentenceBoundaries, Words

Found = set[tuple[str, int, int]]  # type, first token, token after the last


def naive(labels: Sequence[str], sentences: Sequence[int]) -> Found:
    """Segments of a sequence whose tokens have these numbers of sentences."""
    found, current = set(), None
    for t, label in enumerate([*labels, "O"]):
        letter, _, kind = label.partition("-")
        before = labels[t - 1] if t else "O"
        new_sentence = t in (0, len(labels)) or sentences[t] != sentences[t - 1]
        begins = new_sentence or letter in "BSUW" or before[0] in "OELSUW" or before.partition("-")[2] != kind
        if current and (letter == "O" or begins):
            found.add((current[0], current[1], t))
            current = None
        if letter != "O" and begins:
            current = (kind, t)
    return found


class Document:
    """A sequence of sentences with random labels, which any label may follow."""

    def __init__(self, label_set: LabelSet, draw: random.Random) -> None:
        sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 3))]
        self.sentences = [number for number, size in enumerate(sizes) for _ in range(size)]
        self.labels = draw.choices(label_set.names, k=len(self.sentences))
        self.segments = naive(self.labels, self.sentences)


def batch_of(documents: Sequence[Document]) -> tuple[Batch, SentenceBoundaries]:
    lengths = torch.tensor([len(d.labels) for d in documents])
    T = int(lengths.max())
    numbers = torch.zeros(len(documents), T, dtype=torch.int64)
    for row, document in zip(numbers, documents, strict=True):
        row[: len(document.sentences)] = torch.tensor(document.sentences)
    boundaries = sentence_boundaries(lengths, T, numbers)
    none = Ragged(torch.zeros(0, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))
    words = Words(*[numbers] * 4)
    rows = torch.arange(len(documents))
    return Batch(none, None, lengths, None, numbers, boundaries.first, boundaries.last, rows, words), boundaries


def ids_of(documents: Sequence[Document], label_set: LabelSet, padding: int = 0) -> torch.Tensor:
    ids = torch.full((len(documents), max(len(d.labels) for d in documents)), padding)
    for row, document in zip(ids, documents, strict=True):
        row[: len(document.labels)] = torch.from_numpy(label_set.encode(document.labels))
    return ids


def named(rows, starts, ends, types, label_set: LabelSet, B: int) -> list[Found]:
    """The segments of each of B sequences."""
    found: list[Found] = [set() for _ in range(B)]
    for b, start, end, kind in zip(*(part.tolist() for part in (rows, starts, ends, types)), strict=True):
        found[b].add((label_set.type_names[kind], start, end))
    return found


def by_names(documents, batch, boundaries, label_set) -> list[Found]:
    """`spans`, sentence by sentence."""
    found: list[Found] = []
    for document in documents:
        edges = [t for t in range(len(document.labels)) if document.sentences[t] != ([-1, *document.sentences][t])]
        parts = pairwise([*edges, len(document.labels)])
        found.append({(kind, a + s, a + e) for a, b in parts for kind, s, e in spans(document.labels[a:b])})
    return found


def by_tensors(documents, batch, boundaries, label_set) -> list[Found]:
    """`segment_boundaries`, with a padding that holds no label."""
    ids = ids_of(documents, label_set, -100)
    first, last = segment_boundaries(ids, boundaries.real, boundaries.first, label_set)
    rows, starts = first.nonzero().unbind(1)
    types = label_set.types[ids[rows, starts]]
    return named(rows, starts, last.nonzero()[:, 1] + 1, types, label_set, len(documents))


def by_metric(documents, batch, boundaries, label_set) -> list[Found]:
    """`opened_segments`."""
    kind, end = opened_segments(ids_of(documents, label_set), boundaries, label_set)
    rows, starts = (kind >= 0).nonzero().unbind(1)
    return named(rows, starts, end[rows, starts] + 1, kind[rows, starts], label_set, len(documents))


def by_units(documents, batch, boundaries, label_set) -> list[Found]:
    """`SegmentCounts`."""
    ids = ids_of(documents, label_set, -100)
    places, types = SegmentCounts()(ids, boundaries.real, boundaries.first, label_set)
    return named(*places, types, label_set, len(documents))


def by_nonlocal_features(documents, batch, boundaries, label_set) -> list[Found]:
    """`CandidateSegments`, of each labelling between two others."""
    ids = ids_of(documents, label_set)
    labels = torch.stack([ids.flip(1), ids, torch.full_like(ids, len(label_set) - 1)], 1)
    read = CandidateSegments(batch, labels, torch.ones(labels.shape[:2], dtype=torch.bool), label_set)
    T = ids.shape[1]
    span = read.holders.row_ids[read.holders.ids % 3 == 1]
    rows = read.spans.starts[span] // T
    starts, ends = read.spans.starts[span] - rows * T, read.spans.ends[span] - rows * T
    return named(rows, starts, ends, read.spans.types[span], label_set, len(documents))


READERS = [by_names, by_tensors, by_metric, by_units, by_nonlocal_features]


@pytest.mark.parametrize("scheme", PREFIX_SCHEMES)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_readers_equal_the_reference(reader, scheme):
    for seed in range(25):
        draw = random.Random(seed)
        label_set = LabelSet.from_corpus([f"{next(iter(SCHEMES[scheme]))}-{kind}" for kind in "XY"], scheme)
        names = draw.sample(label_set.names, k=len(label_set))  # whichever label is the first
        label_set = LabelSet(tuple(names), scheme)
        documents = [Document(label_set, draw) for _ in range(4)]
        batch, boundaries = batch_of(documents)
        assert reader(documents, batch, boundaries, label_set) == [d.segments for d in documents]


@pytest.mark.parametrize("scheme", PREFIX_SCHEMES)
def test_counts_equal_the_reference(scheme):
    for seed in range(25):
        draw = random.Random(seed)
        label_set = LabelSet.from_corpus([f"{next(iter(SCHEMES[scheme]))}-X"], scheme)
        documents = [Document(label_set, draw) for _ in range(4)]
        batch, _ = batch_of(documents)
        gold = ids_of(documents, label_set)
        others = [draw.choices(label_set.names, k=len(d.labels)) for d in documents]
        found = [naive(labels, d.sentences) for labels, d in zip(others, documents, strict=True)]
        for document, labels in zip(documents, others, strict=True):
            document.labels = labels
        counts = segment_counts(ids_of(documents, label_set), gold, batch.lengths, label_set, batch.sentences)
        assert counts.correct[:, 0].tolist() == [len(f & d.segments) for f, d in zip(found, documents, strict=True)]
        assert counts.found[:, 0].tolist() == [len(f) for f in found]
        assert counts.gold[:, 0].tolist() == [len(d.segments) for d in documents]


def boundary_cases() -> Iterator[tuple[str, list[str]]]:
    """Labels on both sides of the boundary of two sentences of one token that would be read on without it."""
    yield "IOB1", ["I-A", "I-A"]
    yield "IOB2", ["B-A", "I-A"]
    yield "IOBES", ["B-A", "E-A"]
    yield "BILOU", ["B-A", "L-A"]


@pytest.mark.parametrize(("scheme", "labels"), boundary_cases())
def test_segments_end_with_sentences(scheme, labels):
    label_set = LabelSet.from_corpus(labels, scheme)
    document = Document(label_set, random.Random(0))
    document.labels, document.sentences = labels, [0, 1]
    batch, boundaries = batch_of([document])
    assert spans(labels) == [("A", 0, 2)]  # one sentence
    for reader in READERS:
        assert reader([document], batch, boundaries, label_set) == [{("A", 0, 1), ("A", 1, 2)}], reader.__name__


@pytest.mark.parametrize(("starts", "wanted"), [(None, 1), ([True, True], 2)])
def test_mce_f_counts_the_segments_of_sentences(starts, wanted):
    """Gold is I-A | I-A in IOB1: true positives and false negatives of one segment, or of two sentences' two."""
    label_set = LabelSet(("O", "I-A"), "IOB1")
    gold = torch.tensor([[1, 1]])
    lattice = Lattice(torch.zeros(1, 2, 2), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
    candidates = Candidates(torch.tensor([[[1, 1], [0, 0]]]), torch.zeros(1, 2), torch.ones(1, 2, dtype=torch.bool))
    zeros = torch.zeros(1), torch.zeros(1, 2), torch.zeros(1), torch.zeros(1, 2)
    criterion = MCEFLoss(smoothing=Sigmoid())
    criterion.allocate(label_set)
    scored = Scored(lattice, gold, candidates, *zeros, None if starts is None else torch.tensor([starts]))
    assert criterion.counts(scored)[0, :2].sum().item() == wanted
