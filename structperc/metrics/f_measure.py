"""The F measure whose gamma says how many times recall counts as much as precision."""

from math import inf

from structperc.errors import InputError


def f_measure(*, correct: int, found: int, gold: int, gamma: float = 1.0) -> float:
    """Return F_gamma, in 0..1, of counts of segments; Eq. 13 of Suzuki, McDermott & Isozaki 2006:

        F_gamma = (gamma^2 + 1) TP / (gamma^2 FN + FP + (gamma^2 + 1) TP).

    With TP = correct, FN = gold - correct and FP = found - correct the denominator is gamma^2 gold + found. gamma = 1
    is the measure of conlleval; above 1 recall counts more, below 1 precision. The result is 0.0 where there is neither
    a gold nor a predicted segment. Raises InputError unless 0 < gamma < infinity.
    """
    check_gamma(gamma)
    weighted = gamma * gamma * gold + found
    return (gamma * gamma + 1) * correct / weighted if weighted else 0.0


def check_gamma(gamma: float) -> None:
    """Raise InputError unless 0 < gamma < infinity."""
    if not 0 < gamma < inf:
        raise InputError(f"gamma must be > 0 and finite, got {gamma}; 1 is the F measure of conlleval")
