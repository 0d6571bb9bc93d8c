"""The functions of the package: checks, limits of length, labels of tag schemes."""

import pytest
import torch

from structperc.data import LabelSet
from structperc.data.tag_schemes import PREFIX_SCHEMES, Span, encode_spans
from structperc.errors import InputError
from structperc.semi_markov import (
    entropy,
    kbest,
    limit_lengths,
    log_partition,
    marginals,
    max_marginals,
    path_score,
    sample,
    segmentation_of_labels,
    to_labels,
    viterbi,
)
from structperc.structures import SegmentLattice


def lattice(T=5, D=3, C=2, lengths=(5, 2), dtype=torch.float32):
    torch.manual_seed(0)
    B = len(lengths)
    return SegmentLattice(
        torch.randn(B, T, C, dtype=dtype), torch.randn(B, T, D, C, dtype=dtype), torch.randn(C, C, dtype=dtype),
        torch.tensor(lengths),
    )  # fmt: skip


def test_longest_segments_of_types():
    limited = limit_lengths(lattice(), [1, 2])
    p = marginals(limited)
    assert (p[:, :, 1:, 0] == 0).all()
    assert (p[:, :, 2:] == 0).all()
    assert (p[0, 0, 1, 1] > 0).all()
    torch.testing.assert_close(p[0, 0].sum(), torch.tensor(1.0))


def test_no_tokens():
    empty = lattice(T=0, lengths=(0, 0))
    scores, labels = viterbi(empty)
    assert (scores.tolist(), labels.shape) == ([0, 0], (2, 0))
    assert kbest(empty, 2).valid.tolist() == [[True, False]] * 2
    assert log_partition(empty).tolist() == entropy(empty).tolist() == path_score(empty, labels).tolist() == [0, 0]
    assert marginals(empty).shape == max_marginals(empty).shape == (2, 0, 3, 2)
    assert sample(empty, 3).shape == (2, 3, 0)


def test_long_sequences_keep_their_digits():
    """Scores of 1e4 a token: sums reach 1e7, where neighbouring numbers of float32 differ by 1."""
    small = lattice(T=1000, lengths=(1000,))
    small = small._replace(token=(small.token * 64).round() / 64)  # without rounding in the sum below
    large = small._replace(token=small.token + 1e4)
    assert torch.equal(viterbi(large)[1], viterbi(small)[1])
    torch.testing.assert_close(marginals(large), marginals(small), rtol=0, atol=1e-5)
    log_z = [log_partition(one._replace(token=one.token.double())) for one in (small, large)]
    torch.testing.assert_close(log_z[1] - log_z[0], torch.tensor([1e7]).double(), rtol=0, atol=1e-5)


def test_scores_of_impossible_labels():
    labels = torch.tensor([[[0, 2, 2, 2, 0], [0, 3, 0, 0, 0], [2, 0, 0, 0, 0], [0, 2, 2, 1, 0]]])
    assert path_score(lattice(lengths=(5,)), labels).isinf().tolist() == [[True, True, True, False]]
    with pytest.raises(InputError, match="token 1 of sequence 0"):
        path_score(lattice(lengths=(5,)), torch.tensor([[0, 4, 0, 0, 0]]))


@pytest.mark.parametrize("scheme", PREFIX_SCHEMES)
def test_labels_of_schemes(scheme):
    label_set = LabelSet.from_corpus(["B-LOC", "B-PER"], scheme)
    spans = [Span("PER", 0, 1), Span("PER", 1, 4), Span("LOC", 5, 7)], [Span("LOC", 0, 2)]
    ids = torch.tensor([label_set.encode(encode_spans(one, 7, scheme)).tolist() for one in spans])
    lengths = torch.tensor([7, 2])
    found = segmentation_of_labels(ids, lengths, label_set)
    assert found.tolist() == [[2, 2, 5, 5, 0, 1, 4], [1, 4, 0, 0, 0, 0, 0]]
    assert torch.equal(to_labels(found, lengths, label_set), ids)
    assert torch.equal(to_labels(found.unsqueeze(1), lengths, label_set).squeeze(1), ids)


def test_wrong_shapes():
    good = lattice()
    for wrong in (
        {"token": torch.zeros(2, 5)},
        {"segment": torch.zeros(2, 4, 3, 2)},
        {"pair": torch.zeros(3, 3)},
        {"lengths": torch.zeros(3)},
    ):
        with pytest.raises(InputError, match=next(iter(wrong))):
            viterbi(good._replace(**wrong))
    with pytest.raises(InputError, match="longest"):
        limit_lengths(good, [1])
