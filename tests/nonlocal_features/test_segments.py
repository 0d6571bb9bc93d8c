"""What is read from many labellings, each thing once: the same segments, the same strings, and not too much of it."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.nonlocal_features import (
    CandidateSegments,
    ConjunctionConsistency,
    MajorityPhrase,
    MajoritySuperphrase,
    NonlocalFeature,
    PhraseConsistency,
    SubphraseConsistency,
    candidate_segments,
)
from structperc.nonlocal_features.strings import Hashes, combined
from tests.nonlocal_features import naive
from tests.nonlocal_features.labelled import Case, make_batch

LABELS = LabelSet(("O", "B-LOC", "I-LOC", "B-PER", "I-PER"))


class Largest(TorchDispatchMode):
    """Elements of the largest tensor that any operation makes."""

    elements = 0

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        made = operation(*arguments, **(options or {}))
        parts = made if isinstance(made, tuple | list) else [made]
        own = [part.numel() for part in parts if isinstance(part, Tensor) and not part._is_view()]
        self.elements = max(self.elements, *own, 0)
        return made


def segments_of(case: Case) -> CandidateSegments:
    return CandidateSegments(case.batch, case.labels, case.valid, case.label_set)


def case_of(document: list[list[str]], labels: Tensor) -> Case:
    """One document with labels (K, T)."""
    return Case([document], make_batch([document]), labels[None], torch.ones(1, len(labels), dtype=torch.bool), LABELS)


def features() -> list[NonlocalFeature]:
    made = [PhraseConsistency(), SubphraseConsistency(), MajorityPhrase(), MajoritySuperphrase()]
    made.append(ConjunctionConsistency())
    for feature in made:
        feature.allocate(LABELS)
    return made


def test_tally_sums_weights(case: Case) -> None:
    found = segments_of(case)
    rows = found.spans.starts // max(1, case.batch.sentences.shape[1])
    weights = torch.randint(-9, 10, rows.shape).float()
    sums = found.text.tally(found.spans.copies, rows, len(case.documents), weights)
    K = case.valid.shape[1]
    assert sums.shape == (len(case.documents), K)
    copies = (found.spans.copies - found.text.common + 1).clamp(min=0)
    for b in range(len(case.documents)):
        for k in range(K):
            held = torch.isin(copies, found.text.taken[:, k]) & (rows == b)
            assert sums[b, k] == weights[held].sum()


def test_ids_of_equal_strings(case: Case) -> None:
    T = case.batch.sentences.shape[1]
    lengths = case.batch.lengths.tolist()
    parts = [(b, i, j) for b, n in enumerate(lengths) for i in range(n) for j in range(i + 1, min(n, i + 5) + 1)]
    b, i, j = torch.tensor(parts).reshape(-1, 3).unbind(1)
    numbers = Hashes(case.batch.words.exact).of_rows(b * T + i, b * T + j).tolist()
    flat = [[word for sentence in document for word in sentence] for document in case.documents]
    strings = [(b, *flat[b][i:j]) for b, i, j in parts]
    assert len(set(strings)) == len(set(numbers)) == len(set(zip(strings, numbers, strict=True)))


def test_ids_of_strings(case: Case) -> None:
    words = case.batch.words.exact
    T = words.shape[1]
    places = [(b * T + i, b * T + j) for b, n in enumerate(case.batch.lengths) for i in range(n) for j in range(i, n)]
    starts, ends = torch.tensor(places).reshape(-1, 2).add(torch.tensor([0, 1])).unbind(1)
    numbers = Hashes(words)(starts, ends).tolist()
    strings = [tuple(words.flatten()[i:j].tolist()) for i, j in zip(starts.tolist(), ends.tolist(), strict=True)]
    assert len(set(strings)) == len(set(numbers)) == len(set(zip(strings, numbers, strict=True)))
    for string, number in zip(strings[:20], numbers, strict=False):
        assert Hashes(torch.tensor([string]))(torch.tensor([0]), torch.tensor([len(string)])).item() == number
        assert len(string) > 1 or string[0] == number


def test_tuples_of_numbers_differ() -> None:
    small, large = torch.arange(-9, 10), torch.randint(2**62, (19,))
    grids = [torch.cartesian_prod(small, large, small), torch.cartesian_prod(large, large)]
    for tuples in grids:
        assert len(combined(*tuples.unbind(1)).unique()) == len(tuples)
    assert len(combined(small.unsqueeze(1), small, 7).unique()) == 19 * 19


def test_holders_are_found_part_by_part(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = segments_of(case).holders
    with monkeypatch.context() as patch:
        patch.setattr(candidate_segments, "PLACES", 3 * case.valid.shape[1])
        parts = segments_of(case).holders
    assert torch.equal(parts.ids, whole.ids)
    assert torch.equal(parts.offsets, whole.offsets)


def test_candidates_with_a_segment(case: Case) -> None:
    found = segments_of(case)
    K, T = case.valid.shape[1], case.batch.sentences.shape[1]
    held = [part.tolist() for part in found.holders.ids.split(found.holders.counts.tolist())]
    each: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for start, end, kind, _, holders in zip(*(x.tolist() for x in found.spans), held, strict=True):
        for labelling in holders:
            b, k = divmod(labelling, K)
            span = (start - b * T, end - b * T, case.label_set.type_names[kind])
            each.setdefault((b, k), []).append(span)
    for b, k in case.valid.nonzero().tolist():
        wanted, at = [], 0
        for sentence in case.documents[b]:
            labels = case.names(b, k)[at : at + len(sentence)]
            wanted += [(start + at, end + at, kind) for kind, start, end in spans(labels)]
            at += len(sentence)
        assert sorted(each.pop((b, k), [])) == wanted
    assert not each


@pytest.mark.usefixtures("tensors")
def test_agreement_of_candidates() -> None:
    document = [["x"] * 10] * 100
    labels = torch.tensor([1, 2, 0, 3, 0, 0, 1, 0, 0, 0]).repeat(100).repeat(500, 1)
    changed = torch.tensor([0, 47, 900])
    labels[:, changed] = torch.randint(5, (500, 3))
    text = segments_of(case_of(document, labels)).text
    assert text.common == 300 - 3  # segments at 0 and 900, and the one at 46, which may go on at 47
    assert len(text.starts) == 3
    assert len(text.places) <= 400 + 3 * 5 * 3
    with Largest() as largest:
        found = segments_of(case_of(document, labels))
        for feature in features():
            feature(found)
    assert largest.elements <= labels.numel()


def test_neighbouring_segments_are_read_apart() -> None:
    labels = torch.ones(40, 100, dtype=torch.int64)
    labels[:, 50] = torch.randint(1, 5, (40,))
    text = segments_of(case_of([["x"] * 100], labels)).text
    assert (text.common, len(text.starts)) == (97, 1)  # only the token and its neighbours may be one segment
    assert len(text.places) <= 97 + 4 * 3


@pytest.mark.usefixtures("way")
def test_long_differences_between_candidates() -> None:
    torch.manual_seed(0)
    document = [[*(["x", "y"] * n)[:n], "o"] for n in (1, 2, 3, 5, 9, 40)]
    labels = torch.cat(
        [torch.cat([torch.randint(1, 5, (300, len(s) - 1)), torch.zeros(300, 1)], 1) for s in document], 1
    )
    case = case_of(document, labels.long())
    for feature, count in zip(features(), [naive.phrase, naive.subphrase], strict=False):
        counts = feature.counts(segments_of(case))
        stem = feature.names(["LOC"])[0].partition("(")[0]
        for k in range(0, 300, 10):
            found = {f"{stem}({a},{b})": n for (a, b), n in count(document, case.names(0, k)).items()}
            assert counts[k].tolist() == [found.get(name, 0) for name in feature.names(LABELS.type_names)]


@pytest.mark.usefixtures("way")
def test_a_segment_of_a_whole_document() -> None:
    T, K = 1000, 20
    words = [f"w{i % 97}" for i in range(T)]
    labels = torch.zeros(K, T, dtype=torch.int64)
    labels[:, ::10] = 1
    labels[0], labels[0, 0] = 2, 1  # one entity of 1000 words, then one of 999, then many of one word
    labels[1], labels[1, 0] = 4, 0
    case = case_of([words], labels)
    with Largest() as largest:
        found = segments_of(case)
        counts = [feature.counts(found) for feature in features()]
    assert largest.elements <= 8 * K * T
    for counted, count in zip(counts, [naive.phrase, naive.subphrase, naive.majority_phrase], strict=False):
        for k in range(3):
            assert counted[k].sum() == count([words], case.names(0, k)).total()


@pytest.mark.usefixtures("way")
def test_linear_work_for_equal_entities() -> None:
    n = 200
    labels = torch.tensor([1, 0]).repeat(n).repeat(3, 1)
    labels[1, 0], labels[2, 2] = 3, 0
    case = case_of([["x", ","] * n], labels)
    with Largest() as largest:
        found = segments_of(case)
        phrase, _, majority, _, conjunction = (feature.counts(found) for feature in features())
    assert largest.elements <= 50 * n
    pairs = n * (n - 1) / 2
    assert phrase.tolist() == [[pairs, 0, 0], [pairs - n + 1, n - 1, 0], [pairs - n + 1, 0, 0]]
    assert majority.tolist() == [[n, 0, 0, 0], [n - 1, 0, 1, 0], [n - 1, 0, 0, 0]]
    assert conjunction[:2].tolist() == phrase[:2].tolist()
    assert conjunction[2].tolist() == [(n - 2) * (n - 3) / 2, 0, 0]
