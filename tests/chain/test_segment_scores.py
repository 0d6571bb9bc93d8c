"""Searches and sums of a lattice with scores of segments, against all label sequences."""

import pytest
import torch

from structperc import LabelSet
from structperc.chain import Constraints, kbest, log_partition, marginals, max_marginals, path_score, scale, viterbi
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.structures import Lattice, LatticeWithSegments
from tests.oracle import ranked

B, T, D = 3, 4, 3


def make(scheme):
    torch.manual_seed(len(scheme))
    labels, constraints = LabelSet.from_corpus(["B-A", "B-B"], scheme), Constraints()
    constraints.allocate(labels)
    unary, edge = torch.randn(B, T, len(labels)), torch.randn(1, 1, len(labels), len(labels))
    unary[1, 3:], unary[2, 0] = torch.nan, 0.0  # padding
    lengths, segment = torch.tensor([4, 3, 0]), torch.randn(B, T, D, 2)
    return labels, constraints(LatticeWithSegments(unary, edge, lengths, segment, labels.segment_labels))


def all_paths(labels, lattice, row):
    """Score and labels of all label sequences, best first."""
    found = []
    for score, path in ranked(Lattice(*lattice[:3]), row):
        segments = spans(labels.decode(path))
        if all(end - start <= D for _, start, end in segments):
            kinds = [labels.type_names.index(kind) for kind, _, _ in segments]
            places = [(start, end - start - 1, k) for k, (_, start, end) in zip(kinds, segments, strict=True)]
            found.append((score + sum(float(lattice.segment[row][place]) for place in places), path))
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
        scores = torch.tensor([score for score, _ in paths])
        assert [tuple(one[:n].tolist()) for one in found.labels[row, valid]] == [path for _, path in paths[:8]]
        torch.testing.assert_close(found.scores[row, valid], scores[:8])
        torch.testing.assert_close(again[row, valid], scores[:8])
        torch.testing.assert_close(total[row], scores.logsumexp(0))
        torch.testing.assert_close(halved[row], (scores / 2).logsumexp(0))
        expected = torch.zeros(T, len(labels))
        for share, (_, path) in zip(scores.softmax(0), paths, strict=True):
            expected[torch.arange(n), list(path)] += share
        torch.testing.assert_close(p[row], expected)


def test_gradients():
    _, lattice = make("IOB2")
    inputs = [
        x.double().nan_to_num(neginf=-2.0).requires_grad_() for x in (lattice.unary, lattice.edge, lattice.segment)
    ]
    path = kbest(lattice, 2).labels

    def scores(unary, edge, segment):
        made = LatticeWithSegments(unary, edge, lattice.lengths, segment, lattice.labels)
        return log_partition(made), path_score(made, path)

    assert torch.autograd.gradcheck(scores, inputs)


def test_too_long_segments_are_impossible():
    labels, lattice = make("IOB2")
    path = torch.tensor([labels.encode(["B-A", "I-A", "I-A", "I-A"]).tolist()] * B)
    assert path_score(lattice, path)[0] == -torch.inf


def test_other_functions_refuse_scores_of_segments():
    _, lattice = make("IOB2")
    with pytest.raises(InputError, match="segments"):
        max_marginals(lattice)
    with pytest.raises(InputError, match="edge"):
        viterbi(lattice._replace(edge=lattice.edge + torch.zeros(B, T, 1, 1)))


def test_schemes_without_beginnings():
    with pytest.raises(InputError, match="IOB1"):
        LabelSet.from_corpus(["I-A"], "IOB1").segment_labels  # noqa: B018
