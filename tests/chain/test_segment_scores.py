"""Searches and sums of a lattice with scores of segments, against all label sequences."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from structperc import LabelSet
from structperc.chain import (
    Constraints,
    Restriction,
    entropy,
    kbest,
    log_partition,
    marginals,
    max_marginals,
    path_score,
    sample,
    segment_marginals,
    segment_probabilities,
    viterbi,
)
from structperc.chain.confidence import entities
from structperc.chain.lattices import split_sentences, token_mask
from structperc.chain.marginals import edge_marginals, step_log_probabilities
from structperc.chain.minimum_risk import minimum_token_risk, scale
from structperc.chain.segment_scores import limit_lengths, segment_max_marginals
from structperc.chain.segments import (
    Segments,
    best_with,
    best_without,
    log_partition_with_segment,
    log_partition_without_segment,
    max_score_without_segment,
)
from structperc.data.tag_schemes import Span, spans
from structperc.errors import InputError
from structperc.metrics.counts import sentence_boundaries
from structperc.structures import Lattice, SegmentScores
from tests.oracle import sorted_paths

B, T, D = 3, 4, 3


def make(scheme):
    torch.manual_seed(len(scheme))
    labels, constraints = LabelSet.from_corpus(["B-A", "B-B"], scheme), Constraints()
    constraints.allocate(labels)
    unary, edge = torch.randn(B, T, len(labels)).double(), torch.randn(1, 1, len(labels), len(labels)).double()
    unary[1, 3:], unary[2, 0] = torch.nan, 0.0  # padding
    lengths, segment = torch.tensor([4, 3, 0]), torch.randn(B, T, D, 2).double()
    segments = SegmentScores(segment, labels.segment_labels)
    return labels, constraints(Lattice(unary, edge, lengths, segments=segments))


def with_scores(lattice, scores):
    return lattice._replace(segments=lattice.segments._replace(scores=scores))


def all_paths(labels, lattice, row):
    """Score and labels of all label sequences, best first."""
    found, table = [], lattice.segments.scores
    for score, path in sorted_paths(lattice, row):
        segments = spans(labels.decode(path))
        if all(end - start <= D for _, start, end in segments):
            kinds = [labels.type_names.index(kind) for kind, _, _ in segments]
            places = [(start, end - start - 1, k) for k, (_, start, end) in zip(kinds, segments, strict=True)]
            found.append((score + sum(float(table[row][place]) for place in places), path))
    return sorted(found, key=lambda one: -one[0])


@pytest.mark.parametrize("scheme", ["IOB2", "BILOU"])
def test_all_label_sequences(scheme):
    labels, lattice = make(scheme)
    found, total, p = kbest(lattice, 8), log_partition(lattice), marginals(lattice)
    halved = log_partition(scale(lattice, 2.0))
    assert torch.equal(viterbi(lattice)[1], found.labels[:, 0])
    again = path_score(lattice, found.labels)
    for row, n in enumerate(lattice.lengths.tolist()):
        paths, valid = all_paths(labels, lattice, row), found.valid[row]
        scores = torch.tensor([score for score, _ in paths], dtype=torch.float64)
        assert [tuple(one[:n].tolist()) for one in found.labels[row, valid]] == [path for _, path in paths[:8]]
        torch.testing.assert_close(found.scores[row, valid], scores[:8])
        torch.testing.assert_close(again[row, valid], scores[:8])
        torch.testing.assert_close(total[row], scores.logsumexp(0))
        torch.testing.assert_close(halved[row], (scores / 2).logsumexp(0))
        expected = torch.zeros(T, len(labels), dtype=torch.float64)
        for share, (_, path) in zip(scores.softmax(0), paths, strict=True):
            expected[torch.arange(n), list(path)] += share
        torch.testing.assert_close(p[row], expected)


@pytest.mark.parametrize("scheme", ["IOB2", "BILOU"])
def test_probabilities_of_segments(scheme):
    labels, lattice = make(scheme)
    best = viterbi(lattice)[1]
    boundaries, drawn = sentence_boundaries(lattice.lengths, T), sample(lattice, 5)
    found, spread = entities(lattice, best, boundaries, labels, min_probability=0.0), entropy(lattice)
    expected_labels, chosen = minimum_token_risk(lattice)
    through, p_labels = max_marginals(lattice), marginals(lattice).tolist()
    for row, n in enumerate(lattice.lengths.tolist()):
        paths, expected = all_paths(labels, lattice, row), Counter()
        shares = torch.tensor([score for score, _ in paths], dtype=torch.float64).softmax(0).tolist()
        for p, (_, path) in zip(shares, paths, strict=True):
            expected.update(dict.fromkeys(spans(labels.decode(path)), p))
        assert {Span(*span[:3]): span.probability for span in found[row].spans} == pytest.approx(dict(expected))
        assert found[row].probability == pytest.approx(shares[0])
        assert float(spread[row]) == pytest.approx(-sum(p * np.log(p) for p in shares))
        assert {tuple(path[:n]) for path in drawn[row].tolist()} <= {path for _, path in paths}
        gains = [sum(p_labels[row][t][j] for t, j in enumerate(path)) for _, path in paths]
        assert float(expected_labels[row]) == pytest.approx(max(gains))
        assert tuple(chosen[row, :n].tolist()) == paths[gains.index(max(gains))][1]
        for t in range(n):
            for j in range(len(labels)):
                scores = [score for score, path in paths if path[t] == j]
                assert through[row, t, j].item() == pytest.approx(max(scores, default=-np.inf))


FIRST = torch.tensor([[True, False, True, True], [True, True, False, False], [False] * 4])


@pytest.mark.parametrize("scheme", ["IOB2", "BILOU"])
def test_independent_sentences_by_enumeration(scheme):
    labels, lattice = make(scheme)
    constraints = Constraints()
    constraints.allocate(labels)
    lattice = constraints(
        lattice, FIRST, FIRST.roll(-1, 1) | torch.tensor([[0, 0, 0, 1], [0, 0, 1, 0], [0] * 4]).bool()
    )
    document, parts = lattice._replace(starts=FIRST), split_sentences(lattice._replace(starts=FIRST))[0]
    found = kbest(document, 8)
    again = path_score(document, found.labels)
    for row, sentences in enumerate([(0, 1, 2), (3, 4), ()]):
        paths = [(0.0, ())]
        for one in sentences:
            paths = [(a + b, x + y) for (a, x), (b, y) in product(paths, all_paths(labels, parts, one))]
        paths.sort(reverse=True)
        valid, n = found.valid[row], int(lattice.lengths[row])
        assert [tuple(one[:n].tolist()) for one in found.labels[row, valid]] == [path for _, path in paths[:8]]
        scores = torch.tensor([score for score, _ in paths], dtype=torch.float64)
        torch.testing.assert_close(found.scores[row, valid], scores[:8])
        torch.testing.assert_close(again[row, valid], scores[:8])
        torch.testing.assert_close(log_partition(document)[row], scores.logsumexp(0))


def test_independent_sentences_are_sequences_of_their_own():
    _, lattice = make("IOB2")
    unary, segment = torch.randint(-1, 2, (B, T, 5)).double(), torch.randint(-1, 2, (B, T, D, 2)).double()  # ties
    document = with_scores(lattice, segment)._replace(unary=unary, edge=lattice.edge.round(), starts=FIRST)
    parts, places = split_sentences(document)
    real, owner = token_mask(parts), torch.tensor([0, 0, 0, 1, 1])
    gold = torch.tensor([[1, 2, 2, 2], [3, 4, 4, 0], [0] * 4])  # a label that cannot begin a sentence, but does
    both = (document, gold), (parts, gold.flatten()[places])
    sums = [(log_partition(x), entropy(x), viterbi(x)[0], path_score(x, y)) for x, y in both]
    for whole, part in zip(*sums, strict=True):
        torch.testing.assert_close(whole, torch.zeros(B).double().index_add(0, owner, part))
    tables = [
        (viterbi(x)[1], marginals(x), segment_probabilities(x), max_marginals(x) - viterbi(x)[0].view(-1, 1, 1))
        for x, _ in both
    ]
    steps = [step_log_probabilities(x, y) for x, y in both]
    for whole, part in (*zip(*tables, strict=True), steps):
        torch.testing.assert_close(whole.flatten(0, 1)[places[real]], part[real])
    segments = (Segments(*torch.tensor([[row], [start], [start + 2]])) for row, start in ((1, 1), (4, 0)))
    others = [best_without(x, y, one)[1] for (x, y), one in zip(both, segments, strict=True)]
    assert torch.equal(others[0][0, 1:3], others[1][0, :2])


@pytest.mark.parametrize("scheme", ["IOB2", "BILOU"])
def test_each_segment(scheme):
    """Probabilities and max-marginals of segments are those of the label sequences with them."""
    labels, lattice = make(scheme)
    total, best, p = log_partition(lattice), segment_max_marginals(lattice), segment_probabilities(lattice)
    for row in range(B):
        expected, highest = torch.zeros(T, D, 2).double(), torch.full((T, D, 2), -torch.inf).double()
        for score, path in all_paths(labels, lattice, row)[::-1]:
            for kind, start, end in spans(labels.decode(path)):
                place = start, end - start - 1, labels.type_names.index(kind)
                expected[place] += (score - total[row]).exp()
                highest[place] = score
        torch.testing.assert_close(p[row], expected)
        torch.testing.assert_close(best[row], highest)


def test_sequences_that_agree_on_a_segment():
    labels, lattice = make("IOB2")
    gold = torch.tensor([[1, 2, 0, 3], [0, 1, 2, 0], [0] * 4])
    segments = Segments(torch.tensor([0, 0, 1]), torch.tensor([0, 3, 1]), torch.tensor([2, 4, 3]))
    agreeing, others = (f(lattice, gold, segments) for f in (best_with, best_without))
    sums = [f(lattice, gold, segments) for f in (log_partition_with_segment, log_partition_without_segment)]
    shares = segment_marginals(lattice, gold, segments)
    torch.testing.assert_close(max_score_without_segment(lattice, gold, segments), others[0])
    for s, (row, start, end) in enumerate(zip(*(part.tolist() for part in segments), strict=True)):
        own, parts = tuple(gold[row, start:end].tolist()), ([], [])
        for score, path in all_paths(labels, lattice, row):
            parts[path[start:end] != own].append((score, path))
        for part, (scores, paths), total in zip(parts, (agreeing, others), sums, strict=True):
            assert scores[s].item() == pytest.approx(part[0][0])
            assert tuple(paths[s, : len(part[0][1])].tolist()) == part[0][1]
            expected = torch.tensor([score for score, _ in part], dtype=torch.float64).logsumexp(0)
            torch.testing.assert_close(total[s], expected)
        torch.testing.assert_close(shares[s], (sums[0][s] - log_partition(lattice)[row]).exp())


@pytest.mark.parametrize("scheme", ["IOB2", "BILOU"])
def test_forbidden_spans(scheme):
    labels, lattice = make(scheme)
    barred = [[Span("A", 0, 2), Span("A", 0, 3), Span("B", 3, 4)], [Span("B", 1, 3)], []]
    first = (torch.arange(T) == 0).expand(B, T)
    left = Restriction().without(barred, first, lattice.lengths, labels, slots=2)(lattice)
    for row in range(2):
        paths = all_paths(labels, lattice, row)
        kept = [one for one in paths if not {*spans(labels.decode(one[1]))} & {*barred[row]}]
        assert all_paths(labels, left, row)[: len(kept)] == kept
        assert log_partition(left)[row].item() == pytest.approx(np.logaddexp.reduce([score for score, _ in kept]))


def test_scores_that_sequences_or_tokens_share():
    _, lattice = make("IOB2")
    path, segments = kbest(lattice, 2).labels, Segments(*torch.tensor([[1], [1], [3]]))
    for places in ((slice(1), slice(1)), (slice(1), slice(T)), (slice(B), slice(1))):
        shared = lattice.segments.scores[places]
        found, expected = (
            (
                viterbi(one),
                path_score(one, path),
                entropy(one),
                step_log_probabilities(one, path[:, 0]),
                best_without(one, path[:, 0], segments),
                log_partition(split_sentences(one._replace(starts=FIRST))[0]),
            )
            for one in (with_scores(lattice, shared), with_scores(lattice, shared.expand(B, T, -1, -1)))
        )
        torch.testing.assert_close(found, expected)


def test_longest_segments_of_types():
    _, lattice = make("IOB2")
    p = segment_probabilities(limit_lengths(lattice, [1, 2]))
    assert not p[:, :, 1:, 0].any()
    assert not p[:, :, 2:].any()
    assert p[0, 0, 1, 1] > 0


def test_gradients():
    _, lattice = make("IOB2")
    inputs = [
        x.nan_to_num(neginf=-2.0).requires_grad_() for x in (lattice.unary, lattice.edge, lattice.segments.scores)
    ]
    path = kbest(lattice, 2).labels

    def scores(unary, edge, segment):
        made = with_scores(lattice, segment)._replace(unary=unary, edge=edge)
        return log_partition(made), path_score(made, path)

    assert torch.autograd.gradcheck(scores, inputs)


def test_too_long_segments_are_impossible():
    labels, lattice = make("IOB2")
    path = torch.tensor([labels.encode(["B-A", "I-A", "I-A", "I-A"]).tolist()] * B)
    assert path_score(lattice, path)[0] == -torch.inf


def test_other_functions_refuse_scores_of_segments():
    _, lattice = make("IOB2")
    with pytest.raises(InputError, match="segments"):
        edge_marginals(lattice)
    with pytest.raises(InputError, match="edge"):
        viterbi(lattice._replace(edge=lattice.edge + torch.zeros(B, T, 1, 1)))


def test_equal_scores():
    """Segments of one token come first, then O, then longer segments."""
    table = LabelSet(("O", "B-A", "I-A")).segment_labels
    segments = SegmentScores(torch.zeros(1, 1, 2, 1), table)
    lattice = Lattice(torch.zeros(1, 2, 3), torch.zeros(1, 1, 3, 3), torch.tensor([2]), segments=segments)
    assert kbest(lattice, 5).labels.tolist() == [[[1, 1], [1, 0], [0, 1], [0, 0], [1, 2]]]


def test_wrong_shapes():
    _, lattice = make("IOB2")
    segment = lattice.segments.scores
    for wrong in (segment[:, 1:], segment[:2], segment[..., :1], segment[:, :, :0], segment[..., 0]):
        with pytest.raises(InputError, match="segment"):
            viterbi(with_scores(lattice, wrong))
        with pytest.raises(InputError, match="segment"):
            path_score(with_scores(lattice, wrong), torch.zeros(B, T, dtype=torch.int64))
    for one in (lattice, lattice._replace(segments=None)):
        with pytest.raises(InputError, match="starts"):
            log_partition(one._replace(starts=torch.zeros(B, T - 1).bool()))
    with pytest.raises(InputError, match="longest"):
        limit_lengths(lattice, [1])
    for function in (segment_probabilities, segment_max_marginals, lambda one: limit_lengths(one, [1, 1])):
        with pytest.raises(InputError, match="no scores of segments"):
            function(lattice._replace(segments=None))


def test_no_tokens():
    _, lattice = make("IOB2")
    empty = with_scores(lattice, lattice.segments.scores[:, :0])
    empty = empty._replace(unary=lattice.unary[:, :0], lengths=lattice.lengths * 0)
    assert [x.tolist() for x in viterbi(empty)] == [[0.0] * B, [[]] * B]
    assert marginals(empty).shape == max_marginals(empty).shape == empty.unary.shape
    assert segment_probabilities(empty).shape == segment_max_marginals(empty).shape == (B, 0, D, 2)
    assert (kbest(empty, 2).valid.tolist(), sample(empty, 3).shape) == ([[True, False]] * B, (B, 3, 0))
    assert entropy(empty).tolist() == log_partition(empty).tolist() == [0.0] * B


def test_schemes_without_beginnings():
    with pytest.raises(InputError, match="IOB1"):
        LabelSet.from_corpus(["I-A"], "IOB1").segment_labels  # noqa: B018
