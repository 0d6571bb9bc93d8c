"""Sums over all labellings: log-partition, marginal probabilities, samples (forward-backward)."""

import torch
from torch import Tensor

from structperc.chain.lattices import checked, doubled, every_edge
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
