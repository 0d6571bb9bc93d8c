"""The labels next to given ones: their probabilities.

Tables of the pairs into each token are the fastest way as long as they are small. Where there are many labels or
tokens the sums are taken token by token, in memory for the pairs of one token.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.lattices import checked, doubled, live
from structperc.chain.marginals import marginals, marginals_of_pairs
from structperc.ops import any_invalid
from structperc.structures import Lattice

MOST = 1 << 23  # pairs in a table


@torch.no_grad()
def next_marginals(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return p(y_{t+1} = j | y_t = label, x) as (B, T, L), in double precision, for labels (B, T) int64.

    It is 0 at last tokens, in the padding, whose labels are any, and where the label is impossible; NaN at all tokens
    of a sequence with a score that is +inf or NaN.
    """
    lattice = doubled(checked(lattice))
    if _has_small_tables(lattice):
        nodes, pairs = marginals_of_pairs(lattice)
        both = pad(_at(pairs[:, 1:], labels[:, :-1]), (0, 0, 0, 1))
        return _of_valid(_share(both, _at(nodes.unsqueeze(3), labels)), lattice)
    unary, real, found = lattice.unary, live(lattice), torch.zeros_like(lattice.unary)
    after = torch.zeros_like(unary[:, 0])
    for t in range(unary.shape[1] - 2, -1, -1):
        table = _edge(lattice, t + 1) + (unary[:, t + 1] + after).unsqueeze(1)
        found[:, t] = _at(table, labels[:, t]).softmax(1).where(real[:, t + 1, None], 0)
        after = _levelled(table.logsumexp(2)).where(real[:, t + 1, None], 0)
    return _of_possible(found, lattice, labels)


@torch.no_grad()
def previous_marginals(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return p(y_{t-1} = i | y_t = label, x) as (B, T, L), as `next_marginals`; it is 0 at first tokens."""
    lattice = doubled(checked(lattice))
    if _has_small_tables(lattice):
        nodes, pairs = marginals_of_pairs(lattice)
        return _of_valid(_share(_at(pairs.transpose(2, 3), labels), _at(nodes.unsqueeze(3), labels)), lattice)
    unary, real, found = lattice.unary, live(lattice), torch.zeros_like(lattice.unary)
    before = unary[:, 0]
    for t in range(1, unary.shape[1]):
        table = (_edge(lattice, t) + before.unsqueeze(2)).transpose(1, 2)
        found[:, t] = _at(table, labels[:, t]).softmax(1).where(real[:, t, None], 0)
        before = _levelled(table.logsumexp(2) + unary[:, t])
    return _of_possible(found, lattice, labels)


def _has_small_tables(lattice: Lattice) -> bool:
    return lattice.unary.numel() * lattice.unary.shape[2] <= MOST


def _edge(lattice: Lattice, t: int) -> Tensor:
    """(B or 1, L, L): scores of the pairs into a token."""
    return lattice.edge[:, min(t, lattice.edge.shape[1] - 1)]


def _at(tables: Tensor, labels: Tensor) -> Tensor:
    """Rows `labels` (...) of tables (..., L, M), (..., M)."""
    return tables.take_along_dim(labels[..., None, None], -2).squeeze(-2)


def _levelled(sums: Tensor) -> Tensor:
    """Sums (B, L) less the largest of each row, so that long sequences lose nothing."""
    most = sums.amax(1, keepdim=True)
    return sums - most.where(most > -torch.inf, 0)


def _of_possible(shares: Tensor, lattice: Lattice, labels: Tensor) -> Tensor:
    return _of_valid(shares.where(_at(marginals(lattice).unsqueeze(3), labels) > 0, 0), lattice)


def _of_valid(shares: Tensor, lattice: Lattice) -> Tensor:
    """Shares (B, T, L), NaN at the tokens of sequences with a score that is +inf or NaN."""
    return shares.masked_fill((any_invalid(*lattice).unsqueeze(1) & live(lattice)).unsqueeze(2), torch.nan)


def _share(both: Tensor, given: Tensor) -> Tensor:
    return (both / given).where(given > 0, 0).clamp(max=1)
