"""Do two systems differ by more than chance? McNemar's test on paired right and wrong answers."""

from typing import NamedTuple

from scipy.stats import binomtest
from torch import Tensor


class McNemar(NamedTuple):
    """How many items both systems, one alone or none got right, and the two-sided p-value."""

    both: int
    only_a: int
    only_b: int
    neither: int
    p: float

    @property
    def accuracy_a(self) -> float:
        """Share of items that A got right; 0.0 without any."""
        return (self.both + self.only_a) / max(sum(self[:4]), 1)

    @property
    def accuracy_b(self) -> float:
        """Share of items that B got right; 0.0 without any."""
        return (self.both + self.only_b) / max(sum(self[:4]), 1)


def mcnemar(a: Tensor, b: Tensor) -> McNemar:
    """a (n,) bool, b (n,) bool: did the systems get item i right -> McNemar.

    McNemar 1947 in its exact form, at any number of items: under the hypothesis of equal systems, each item
    that one alone got right is either's with probability 1/2, so only_a is binomial. Nothing to tell the
    systems apart: p = 1. Tokens of one sentence are not independent, as the test takes them to be; the
    test on sentences is the more careful one.
    """
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    both = int((a & b).sum())
    p = binomtest(only_a, only_a + only_b).pvalue if only_a != only_b else 1.0
    return McNemar(both, only_a, only_b, len(a) - both - only_a - only_b, float(p))
