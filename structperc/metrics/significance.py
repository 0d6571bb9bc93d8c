"""McNemar's test on paired right and wrong answers: whether two systems differ by more than chance."""

from typing import NamedTuple

import torch
from scipy.stats import binomtest
from torch import Tensor

from structperc.errors import InputError


class McNemar(NamedTuple):
    """The numbers of items that both systems, one alone or none got right, and the two-sided p-value."""

    both: int
    only_a: int
    only_b: int
    neither: int
    p: float

    @property
    def accuracy_a(self) -> float:
        """The share of items that A got right; 0.0 without any items."""
        return (self.both + self.only_a) / max(sum(self[:4]), 1)

    @property
    def accuracy_b(self) -> float:
        """The share of items that B got right; 0.0 without any items."""
        return (self.both + self.only_b) / max(sum(self[:4]), 1)


def mcnemar(a: Tensor, b: Tensor) -> McNemar:
    """Return the test of two systems; a (n,) bool and b (n,) bool say which items each of them got right.

    McNemar 1947 in its exact form, at any number of items: under the hypothesis of equal systems, each item
    that one alone got right is either's with probability 1/2, so only_a is binomial. With nothing to tell the
    systems apart p = 1. Tokens of one sentence are not independent, as the test takes them to be; the
    test on sentences is the more careful one.

    Raises InputError unless both are bool and of one length.
    """
    if a.dtype != torch.bool or b.dtype != torch.bool or a.shape != b.shape:
        raise InputError(
            f"a and b must be bool and of one length, got {a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        )
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    both = int((a & b).sum())
    p = binomtest(only_a, only_a + only_b).pvalue if only_a != only_b else 1.0
    return McNemar(both, only_a, only_b, len(a) - both - only_a - only_b, float(p))
