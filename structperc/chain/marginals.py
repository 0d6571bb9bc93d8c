"""Sums over all labellings: log-partition, marginal probabilities, entropies, samples (forward-backward)."""

import torch
from torch import Tensor

from structperc.chain.lattices import checked, doubled, every_edge
from structperc.errors import InputError
from structperc.ops import expectations
from structperc.ops import sample as drawn
from structperc.structures import Lattice


def log_partition(lattice: Lattice) -> Tensor:
    """Return log Z (B,), the log of the sum of exp(score of y) over all labellings y; 0 for an empty sequence.

    Its gradients are the marginals, those of one transition matrix as small as the matrix; further derivatives are
    taken in tensor operations. Without any legal labelling log Z = -inf and the gradient is 0.
    """
    lattice = checked(lattice)
    return expectations(*lattice, torch.is_grad_enabled() and lattice.edge.requires_grad)[0]


def marginals(lattice: Lattice) -> Tensor:
    """Return p(y_t = y | x) as (B, T, L); it is 0 where impossible, in the padding, and without a legal labelling.

    Differentiable.
    """
    return expectations(*checked(lattice), False)[1]


def edge_marginals(lattice: Lattice) -> Tensor:
    """Return p(y_{t-1} = i, y_t = j | x) as (B, T, L, L); it is 0 at t = 0 and in the padding. Differentiable."""
    return _each(checked(lattice))[2]


def entropy(lattice: Lattice) -> Tensor:
    """Return the entropy H(y | x) in nats (B,), a sum of conditional entropies and so no difference of large numbers.

    It is 0 for an empty sequence and for one without any legal labelling. Differentiable.
    """
    nodes, pairs = marginals_of_pairs(lattice)
    return -_sum(nodes, pairs, *_logs(nodes, pairs)).to(checked(lattice).unary.dtype)


def cross_entropy(lattice: Lattice, other: Lattice) -> Tensor:
    """Return -sum over y of p(y) log q(y) in nats (B,), p of the first lattice and q of the other. Differentiable.

    Both have the same shape (B, T, L) and lengths, which is not looked at; InputError for another shape. +inf where the
    first allows a labelling that the other does not, 0 where the first allows none.
    """
    _same_shape(lattice, other)
    nodes, pairs = marginals_of_pairs(lattice)
    return -_sum(nodes, pairs, *_logs(*marginals_of_pairs(other))).to(checked(lattice).unary.dtype)


def divergence(lattice: Lattice, other: Lattice) -> Tensor:
    """Return KL(p || q), the sum over y of p(y) log(p(y) / q(y)), in nats (B,); never a difference of large sums.

    Arguments and errors are those of `cross_entropy`.
    """
    _same_shape(lattice, other)
    nodes, pairs = marginals_of_pairs(lattice)
    (first, later), (other_first, other_later) = _logs(nodes, pairs), _logs(*marginals_of_pairs(other))
    shares = first.where(nodes[:, :1] > 0, 0) - other_first, later.where(pairs > 0, 0) - other_later
    return _sum(nodes, pairs, *shares).to(checked(lattice).unary.dtype)


@torch.no_grad()
def sample(lattice: Lattice, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Return n labellings of each sequence, drawn independently from p(y | x): (B, n, T) int64, 0 in the padding.

    Backward filtering, forward sampling. A sequence without any legal labelling gets labels 0.
    """
    lattice = checked(lattice)
    B, T, _ = lattice.unary.shape
    dtype = torch.float32 if lattice.unary.device.type == "mps" else torch.float64
    noise = torch.rand(B, n, T, generator=generator, dtype=dtype, device=lattice.unary.device)
    return drawn(*lattice, noise)


def marginals_of_pairs(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return probabilities of labels (B, T, L) and of the pairs into each token (B, T, L, L), in double precision."""
    return _each(doubled(checked(lattice)))[1:]


def _each(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """Expectations with the pairs of each token by itself, (B, T, L, L)."""
    return expectations(lattice.unary, every_edge(lattice), lattice.lengths, True)


def _logs(nodes: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """-> log p(y_0) (B, 1, L), log p(y_t | y_{t-1}) (B, T, L, L); -inf where the probability is 0."""
    before = torch.nn.functional.pad(nodes[:, :-1], (0, 0, 1, 0)) if nodes.shape[1] else nodes
    share = pairs / torch.where(before > 0, before, 1).unsqueeze(3)
    return _log(nodes[:, :1]), _log(share)


def _log(p: Tensor) -> Tensor:
    """log p; -inf without a gradient where p is 0."""
    return torch.where(p > 0, torch.where(p > 0, p, 1).log(), -torch.inf)


def _sum(nodes: Tensor, pairs: Tensor, first: Tensor, later: Tensor) -> Tensor:
    """Expected sum (B,) of what the first label and each pair contribute; what has no probability adds nothing."""
    start = nodes[:, :1]
    own = (start * torch.where(start > 0, first, 0)).sum((1, 2))
    return own + (pairs * torch.where(pairs > 0, later, 0)).sum((1, 2, 3))


def _same_shape(lattice: Lattice, other: Lattice) -> None:
    if lattice.unary.shape != other.unary.shape:
        shapes = f"{tuple(lattice.unary.shape)} and {tuple(other.unary.shape)}"
        raise InputError(f"unary: two lattices are compared that have the same shape, got {shapes}")
