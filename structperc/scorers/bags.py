"""Sums of weight rows over ragged lists of feature ids, with a gradient that touches only what it must.

Where the ids have weights of their own (`Ragged.weights`), each row is multiplied by that of its id. They are called
`shares` here, since the rows are weights, too.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from structperc.ragged import Ragged, spread


class _BagSum(torch.autograd.Function):
    """embedding_bag whose gradient lists single weights instead of rows or the whole table.

    A perceptron gradient is non-zero at few (token, label) entries: where the compared paths differ. The
    backward pass visits these entries only, so that its cost is (differing entries) x (features of the token). On a
    GPU the host would have to wait for their number: there the gradient lists the whole row of each feature.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, offsets: Tensor, shares: Tensor | None) -> Tensor:
        ctx.save_for_backward(ids, offsets, shares)
        ctx.size = weight.shape
        return _sums(weight.detach(), ids, offsets, shares)  # detached, or embedding_bag prepares a gradient of its own

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        ids, offsets, shares = ctx.saved_tensors
        if grad.device.type != "cpu":
            rows = _shared(grad.index_select(0, Ragged(ids, offsets).owners), shares)
            sparse = torch.sparse_coo_tensor(ids[None].long(), rows, ctx.size, check_invariants=False)
            return sparse, None, None, None
        token, column = grad.nonzero().unbind(1)
        first = offsets.index_select(0, token)
        count = offsets.index_select(0, token + 1) - first
        entry, places = spread(count, first)  # which (token, column) entry each touched weight belongs to
        index = torch.stack([ids.index_select(0, places), column.index_select(0, entry)])
        values = _shared(grad[token, column].index_select(0, entry), shares if shares is None else shares[places])
        return torch.sparse_coo_tensor(index, values, ctx.size, check_invariants=False), None, None, None


class _RowsBagSum(torch.autograd.Function):
    """embedding_bag whose gradient is an embedding_bag, too: for each feature that occurs the sum over its tokens."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, features: Ragged, *transposed: Tensor) -> Tensor:
        ctx.save_for_backward(*transposed)
        ctx.size = weight.shape
        return _sums(weight.detach(), features.ids, features.offsets, features.weights)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        features, tokens, offsets, shares = ctx.saved_tensors
        rows = _sums(grad.contiguous(), tokens, offsets, shares)
        sparse = torch.sparse_coo_tensor(features[None], rows, ctx.size, is_coalesced=True, check_invariants=False)
        return sparse, *[None] * 5


def bag_sum(weight: Tensor, features: Ragged, sparse_grad: bool = True) -> Tensor:
    """Sum of the weight rows of each token's features, times the weights of the features where they have some.

    weight (R, C) and n tokens -> (n, C). The gradient of weight is a COO tensor over single weights (sparse_dim 2,
    uncoalesced) when `sparse_grad`, on a GPU over whole rows (sparse_dim 1, uncoalesced); else over whole rows and
    coalesced for transposed features, which a dense `weight.grad` takes in place; else dense. A token without features
    gives zeros.
    """
    if sparse_grad:
        return _BagSum.apply(weight, features.ids, features.offsets, features.weights)
    if features.transposed is not None:
        return _RowsBagSum.apply(weight, features, *features.transposed)
    return _sums(weight, features.ids, features.offsets, features.weights)


def _sums(weight: Tensor, ids: Tensor, offsets: Tensor, shares: Tensor | None) -> Tensor:
    own = None if shares is None else shares.to(weight.dtype)
    return F.embedding_bag(ids, weight, offsets, mode="sum", per_sample_weights=own, include_last_offset=True)


def _shared(values: Tensor, shares: Tensor | None) -> Tensor:
    """Values (n,) or rows (n, C), each times its share (n,)."""
    return values if shares is None else values * shares.to(values.dtype).view(-1, *[1] * (values.ndim - 1))
