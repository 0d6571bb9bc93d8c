"""Sums over all labellings: log-partition, marginal probabilities, entropies, samples (forward-backward)."""

import torch
from torch import Tensor

from structperc import ops
from structperc.chain.lattices import checked, every_edge
from structperc.errors import InputError
from structperc.structures import Lattice


def log_partition(lattice: Lattice) -> Tensor:
    """log Z = log sum over labellings y of exp(score of y) -> (B,); 0 for an empty sequence.

    Its gradients are the marginals, those of one transition matrix as small as the matrix; further derivatives are
    taken in tensor operations. Without any legal labelling log Z = -inf and the gradient is 0.
    """
    lattice = checked(lattice)
    return ops.expectations(*lattice, torch.is_grad_enabled() and lattice.edge.requires_grad)[0]


def marginals(lattice: Lattice) -> Tensor:
    """p(y_t = y | x) -> (B, T, L); 0 where impossible, in the padding, and without a legal labelling. Differentiable."""
    return ops.expectations(*checked(lattice), False)[1]


def edge_marginals(lattice: Lattice) -> Tensor:
    """p(y_{t-1} = i, y_t = j | x) -> (B, T, L, L); 0 at t = 0 and in the padding. Differentiable."""
    return _each(checked(lattice))[2]


def entropy(lattice: Lattice) -> Tensor:
    """H(y | x) in nats -> (B,), a sum of conditional entropies and so no difference of large numbers. Differentiable.

    0 for an empty sequence and for one without any legal labelling.
    """
    nodes, pairs = marginals_of_pairs(lattice)
    return -_sum(nodes, pairs, *_logs(nodes, pairs)).to(checked(lattice).unary.dtype)


def cross_entropy(lattice: Lattice, other: Lattice) -> Tensor:
    """-sum over y of p(y) log q(y) in nats -> (B,), p of the first lattice and q of the other. Differentiable.

    Both have the same shape (B, T, L) and lengths, which is not looked at; InputError for another shape. +inf where the
    first allows a labelling that the other does not, 0 where the first allows none.
    """
    _same_shape(lattice, other)
    nodes, pairs = marginals_of_pairs(lattice)
    return -_sum(nodes, pairs, *_logs(*marginals_of_pairs(other))).to(checked(lattice).unary.dtype)


def divergence(lattice: Lattice, other: Lattice) -> Tensor:
    """KL(p || q) = sum over y of p(y) log(p(y) / q(y)) in nats -> (B,), as `cross_entropy`; never a difference of sums."""
    _same_shape(lattice, other)
    nodes, pairs = marginals_of_pairs(lattice)
    (first, later), (other_first, other_later) = _logs(nodes, pairs), _logs(*marginals_of_pairs(other))
    shares = first.where(nodes[:, :1] > 0, 0) - other_first, later.where(pairs > 0, 0) - other_later
    return _sum(nodes, pairs, *shares).to(checked(lattice).unary.dtype)


@torch.no_grad()
def sample(lattice: Lattice, n: int, generator: torch.Generator | None = None) -> Tensor:
    """n labellings of each sequence, drawn independently from p(y | x) -> (B, n, T) int64, 0 in the padding.

    Backward filtering, forward sampling. A sequence without any legal labelling gets labels 0.
    """
    lattice = checked(lattice)
    B, T, _ = lattice.unary.shape
    dtype = torch.float32 if lattice.unary.device.type == "mps" else torch.float64
    noise = torch.rand(B, n, T, generator=generator, dtype=dtype, device=lattice.unary.device)
    return ops.sample(*lattice, noise)


def marginals_of_pairs(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Probabilities of labels (B, T, L) and of the pairs into each token (B, T, L, L), in double precision."""
    return _each(_double(lattice))[1:]


def _double(lattice: Lattice) -> Lattice:
    lattice = checked(lattice)
    if lattice.unary.device.type == "mps":  # which has no float64
        return lattice
    return lattice._replace(unary=lattice.unary.double(), edge=lattice.edge.double())


def _each(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """Expectations with the pairs of each token by itself, (B, T, L, L)."""
    return ops.expectations(lattice.unary, every_edge(lattice), lattice.lengths, True)


def _logs(nodes: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """-> log p(y_0) (B, 1, L), log p(y_t | y_{t-1}) (B, T, L, L); -inf where the probability is 0."""
    before = torch.nn.functional.pad(nodes[:, :-1], (0, 0, 1, 0)) if nodes.shape[1] else nodes
    share = pairs / torch.where(before > 0, before, 1).unsqueeze(3)
    return _log(nodes[:, :1]), _log(share)


def _log(p: Tensor) -> Tensor:
    """log p; -inf without a gradient where p is 0."""
    return torch.where(p > 0, torch.where(p > 0, p, 1).log(), -torch.inf)


def _sum(nodes: Tensor, pairs: Tensor, first: Tensor, later: Tensor) -> Tensor:
    """Expected sum (B,) of what the first label and each pair contribute; what has no probability contributes nothing."""
    start = nodes[:, :1]
    own = (start * torch.where(start > 0, first, 0)).sum((1, 2))
    return own + (pairs * torch.where(pairs > 0, later, 0)).sum((1, 2, 3))


def _same_shape(lattice: Lattice, other: Lattice) -> None:
    if lattice.unary.shape != other.unary.shape:
        shapes = f"{tuple(lattice.unary.shape)} and {tuple(other.unary.shape)}"
        raise InputError(f"unary: two lattices are compared that have the same shape, got {shapes}")
