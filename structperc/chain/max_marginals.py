"""The best score of any labelling through each label."""

import torch
from torch import Tensor

from structperc.chain.recursion import before_and_after, live
from structperc.structures import Lattice


@torch.no_grad()
def max_marginals(lattice: Lattice) -> Tensor:
    """m[b, t, y] = best score of a labelling of sequence b with label y at token t -> (B, T, L).

    -inf where there is none, and in the padding. To rounding, max_y m[b, t, y] is the Viterbi score at every
    t, and the second best labelling scores max over t and y != v_t of m[b, t, y], v being the best labelling.
    """
    before, after = before_and_after(lattice, torch.amax)
    return (before + lattice.unary + after).where(live(lattice).unsqueeze(2), -torch.inf)
