"""Entropy of the label sequences of a lattice, cross-entropy and divergence from those of another one."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from structperc.chain.lattices import to_double, token_mask, validate_lattice
from structperc.errors import InputError
from structperc.ops import any_invalid
from structperc.structures import Lattice


def entropy(lattice: Lattice) -> Tensor:
    """Return the entropy H(y | x) in nats (B,), a sum of conditional entropies, which avoids differences of large sums.

    It is 0 for an empty sequence and for one without a possible path, NaN where a score is +inf or NaN. Differentiable.
    It takes memory for the pairs of one token; with gradients, for those of all.
    """
    return _expected(lattice, lattice, lambda own, _: -own)


def cross_entropy(lattice: Lattice, other: Lattice) -> Tensor:
    """Return -sum over y of p(y) log q(y) in nats (B,), p of the first lattice and q of the other. Differentiable.

    Both must have the same lengths, which is not checked. It is +inf where the first allows a path that the other does
    not, 0 where the first allows none.

    Raises:
        InputError: shapes differ.
    """
    return _expected(lattice, other, lambda _, others: -others)


def divergence(lattice: Lattice, other: Lattice) -> Tensor:
    """Return KL(p || q), the sum over y of p(y) log(p(y) / q(y)), in nats (B,), without differences of large sums.

    Arguments and errors are those of `cross_entropy`.
    """
    return _expected(lattice, other, lambda own, others: own - others)


def _expected(lattice: Lattice, other: Lattice, share: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return the expected sum (B,) over the tokens of share(log p(y_t | y_{t-1}), log q(y_t | y_{t-1}))."""
    if lattice.unary.shape != other.unary.shape:
        shapes = f"{tuple(lattice.unary.shape)} and {tuple(other.unary.shape)}"
        raise InputError(f"unary: expected two lattices of the same shape, got {shapes}")
    steps = ((x, x) for x in _steps(lattice)) if other is lattice else zip(_steps(lattice), _steps(other), strict=True)
    unary = validate_lattice(lattice).unary
    following = unary.new_zeros(len(unary), 1, dtype=to_double(validate_lattice(lattice)).unary.dtype)
    invalid = any_invalid(*_constant(lattice)) | any_invalid(*_constant(other))
    for own, others in steps:
        p = own.exp()
        shares = (share(own, others) + following.unsqueeze(1)).where(p > 0, 0)  # probability 0 adds nothing
        finite = shares < torch.inf  # the rest has no gradient
        following = (p * shares.where(finite, 0)).sum(2).where(finite.all(2), torch.inf)
    return following[:, 0].to(unary.dtype).masked_fill(invalid, torch.nan)


def _constant(lattice: Lattice) -> Lattice:
    return Lattice(*(x.detach() for x in validate_lattice(lattice)))


def _steps(lattice: Lattice) -> Iterator[Tensor]:
    """Yield log p(y_t | y_{t-1}) (B, L, L) from the last token back to the second, then log p(y_0) (B, 1, L).

    They are in double precision, -inf where the probability is 0, where no label can follow, and in the padding.
    """
    lattice = to_double(validate_lattice(lattice))
    unary, edge, real = lattice.unary, lattice.edge, token_mask(lattice)
    after = torch.zeros_like(unary[:, :1, :])
    for t in range(unary.shape[1] - 1, -1, -1):
        scores = unary[:, t : t + 1] + after
        scores = scores + edge[:, min(t, edge.shape[1] - 1)] if t else scores
        scores = scores.where(real[:, t, None, None], -torch.inf)
        most = scores.detach().amax((1, 2), keepdim=True)
        scores = scores - most.where(most > -torch.inf, 0)  # so that long sequences lose no digits
        possible = scores.amax(2, keepdim=True) > -torch.inf
        sums = scores.where(possible, 0).logsumexp(2, keepdim=True).where(possible, -torch.inf)
        yield (scores - sums.where(possible, 0)).where(possible, -torch.inf)
        after = sums.transpose(1, 2).where(real[:, t, None, None], 0)
