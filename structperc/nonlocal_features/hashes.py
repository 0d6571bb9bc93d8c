"""Numbers of strings and of tuples, so that comparing two costs one comparison."""

from torch import Tensor
from torch.nn.functional import pad

BASE, ROW = 0x5851F42D4C957F2D, 0x2545F4914F6CDD1D  # odd, so that multiplying by them loses nothing modulo 2**64
UPPER = 0xFFFFFFFF  # of the upper half of a number, without its sign
INVERSE = pow(BASE, -1, 2**64) - 2**64  # as int64


class Hashes:
    """Strings have the same number if they have the same words, in any batch.

    Polynomial prefix sums of the numbers of the words, modulo 2**64, so that a string costs one subtraction. The
    numbers of words are 63 random bits: two given strings that differ share a number with a probability of about
    2**-63, so that among the 10,000 strings of a large batch any two do with 5e-12. (It is larger for long strings
    that have the same words in certain regular orders.)
    """

    def __init__(self, words: Tensor) -> None:
        """Words (B, T) int64."""
        self.T = words.shape[1]
        powers = words.new_full((words.numel(),), BASE).cumprod(0)
        self.inverse_powers = words.new_full((words.numel(),), INVERSE).cumprod(0)
        self.sums = pad((words.flatten() * powers).cumsum(0), (1, 0))

    def __call__(self, starts: Tensor, ends: Tensor) -> Tensor:
        """Strings of the places starts <= b * T + t < ends -> their numbers, int64."""
        return (self.sums[ends] - self.sums[starts]) * self.inverse_powers[starts]

    def of_rows(self, starts: Tensor, ends: Tensor) -> Tensor:
        """Return numbers of strings as a call does, but equal strings of two sequences have different numbers."""
        return self(starts, ends) + starts // self.T * ROW


def combined(first: Tensor, *others: Tensor | int) -> Tensor:
    """Return a number, int64, for each tuple of numbers, given as columns that broadcast.

    Tuples of the same length that differ share a number about as rarely as random numbers of 64 bits do.
    """
    number = first
    for other in others:
        number = mixed(number) * BASE + other
    return mixed(number)


def mixed(number: Tensor) -> Tensor:
    """Return a bijection of int64 after which neighbours are far apart and sums mean nothing.

    It says the same of a tensor, of an array and, compiled, of a number.
    """
    number = (number ^ ((number >> 32) & UPPER)) * ROW
    return number ^ ((number >> 32) & UPPER)
