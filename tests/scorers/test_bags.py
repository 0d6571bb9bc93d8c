"""Sums of weight rows and their dense gradient by transposed features, one occurrence at a time."""

import pytest
import torch

from structperc.ragged import Ragged
from structperc.scorers.sparse_linear import sum_features

ROWS, COLUMNS = 7, 3
BAGS = {
    "plain": [[0, 3], [5], [3, 1, 0]],
    "empty bags": [[], [4, 0], [], [], [0], []],
    "repeated ids": [[2, 2, 1], [2], [1, 1, 1, 2]],
    "one token": [[6, 5, 4, 3, 2, 1, 0]],
    "one id": [[3], [3], [3]],
    "no ids": [[], []],
    "no tokens": [],
}

each_bags = pytest.mark.parametrize("bags", BAGS.values(), ids=BAGS)


def ragged(bags):
    offsets = [0]
    for bag in bags:
        offsets.append(offsets[-1] + len(bag))
    ids = torch.tensor([i for bag in bags for i in bag], dtype=torch.int32)
    return Ragged(ids, torch.tensor(offsets, dtype=torch.int32))


def table(seed=0, dtype=torch.float32):
    return torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()


def naive(weight, bags):
    """(n, C), differentiable."""
    zero = 0 * weight.sum(0)
    sums = [sum((weight[i] for i in bag), zero) for bag in bags]
    return torch.stack(sums) if sums else zero[None][:0]


@each_bags
def test_transposed_features(bags):
    features = ragged(bags).transpose()
    present, tokens, offsets, _ = features.transposed
    assert present.tolist() == sorted({i for bag in bags for i in bag})
    assert present.dtype == torch.int64
    assert tokens.dtype == offsets.dtype == torch.int32
    assert len(offsets) == len(present) + 1
    for r, feature in enumerate(present.tolist()):
        expected = [token for token, bag in enumerate(bags) for i in bag if i == feature]
        assert tokens[offsets[r] : offsets[r + 1]].tolist() == expected
    assert features.ids.tolist() == [i for bag in bags for i in bag]
    assert torch.equal(features.offsets, ragged(bags).offsets)


@each_bags
def test_sums_and_gradients(bags):
    weights = [table() for _ in range(4)]
    plain = ragged(bags)
    expected = naive(weights[0], bags)
    upstream = torch.randn(len(bags), COLUMNS, generator=torch.Generator().manual_seed(1))
    expected.backward(upstream)
    ways = [(plain.transpose(), False, 1), (plain, False, 0), (plain.transpose(), True, 2)]
    for weight, (features, sparse, dims) in zip(weights[1:], ways, strict=True):
        found = sum_features(weight, features, sparse_grad=sparse)
        torch.testing.assert_close(found, expected)
        found.backward(upstream)
        assert weight.grad.sparse_dim() == dims
        torch.testing.assert_close(weight.grad.to_dense(), weights[0].grad)


@each_bags
def test_weighted_sums_and_gradients(bags):
    plain = ragged(bags)
    features = plain._replace(weights=torch.linspace(-2, 3, len(plain.ids)))
    weights, shares, zero = [table() for _ in range(4)], iter(features.weights), torch.zeros(COLUMNS)
    sums = [sum((next(shares) * weights[0][i] for i in bag), 0 * weights[0].sum(0)) for bag in bags]
    expected = torch.stack(sums) if sums else zero[None][:0] + 0 * weights[0].sum()
    upstream = torch.randn(len(bags), COLUMNS, generator=torch.Generator().manual_seed(1))
    expected.backward(upstream)
    for weight, (made, sparse) in zip(
        weights[1:], [(features.transpose(), False), (features, False), (features, True)], strict=True
    ):
        found = sum_features(weight, made, sparse_grad=sparse)
        torch.testing.assert_close(found, expected)
        found.backward(upstream)
        torch.testing.assert_close(weight.grad.to_dense(), weights[0].grad)


@pytest.mark.parametrize("dense", [True, False])
def test_gradients_of_several_batches_add_up(dense):
    weight, bags = table(), [*BAGS["plain"], *BAGS["repeated ids"]]
    weight.grad = torch.zeros_like(weight) if dense else None
    for part in ("plain", "repeated ids"):
        sum_features(weight, ragged(BAGS[part]).transpose(), sparse_grad=False).square().sum().backward()
    other = table()
    naive(other, bags).square().sum().backward()
    assert weight.grad.is_sparse != dense
    torch.testing.assert_close(weight.grad.to_dense(), other.grad)


def test_expanded_gradient():
    """As that of a sum, whose rows are one number in memory."""
    weight, other = table(), table()
    sum_features(weight, ragged(BAGS["repeated ids"]).transpose(), sparse_grad=False).t().sum().backward()
    naive(other, BAGS["repeated ids"]).sum().backward()
    torch.testing.assert_close(weight.grad.to_dense(), other.grad)
