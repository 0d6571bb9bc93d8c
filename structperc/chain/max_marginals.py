"""The best score of any labelling through each label, differentiable as the score of that labelling."""

import torch
from torch import Tensor

from structperc.chain.lattices import token_mask, validate_lattice
from structperc.ops import best_before_and_after as best_scores
from structperc.structures import Lattice


def max_marginals(lattice: Lattice) -> Tensor:
    """Return m (B, T, L), m[b, t, y] the best score of a labelling of sequence b that has label y at token t.

    It is -inf where there is none, and in the padding. To rounding, max_y m[b, t, y] is the Viterbi score at every
    t, and the second best labelling scores max over t and y != v_t of m[b, t, y], v being the best labelling.

    The gradient of an entry is that of the score of its labelling, the lowest labels among equals from token t
    outwards; 0 where there is none. A score of +inf or NaN makes all entries of its sequence NaN.
    """
    lattice = validate_lattice(lattice)
    before, after = best_scores(*lattice)
    scores = (before + lattice.unary + after).where(token_mask(lattice).unsqueeze(2), -torch.inf)
    return scores.where(scores != -torch.inf, -torch.inf)


def best_before_and_after(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return two tensors (B, T, L): the best score of all before and of all after each label, its own unary excluded.

    They are 0 at the ends and in the padding, -inf where nothing is possible. The gradient of an entry is that
    of the score of its best prefix or suffix, the lowest label among equals at each step, and never NaN. No labelling
    is kept: gradients are pushed back along the best labels, many labellings at once.
    """
    before, after = best_scores(*validate_lattice(lattice))
    return before, after
