"""Numbers of strings of words, whatever their length, so that comparing two costs one comparison."""

from torch import Tensor
from torch.nn.functional import pad

BASE, ROW = 0x5851F42D4C957F2D, 0x2545F4914F6CDD1D  # odd, so that multiplying by them loses nothing modulo 2**64


class Hashes:
    """Strings of one sequence have the same number if they have the same words.

    Polynomial prefix sums of the numbers of the words, modulo 2**64, so that a string costs one subtraction; the
    sequence is folded in. The numbers of words are 63 random bits: two given strings that differ, or are of two
    sequences, share a number with a probability of about 2**-63, so that among the 10,000 strings of a large batch
    any two do with 5e-12. (It is larger for long strings that have the same words in certain regular orders.)
    """

    def __init__(self, words: Tensor) -> None:
        """Words (B, T) int64."""
        self.T = words.shape[1]
        self.powers = words.new_full((words.numel() + 1,), BASE).cumprod(0)
        self.sums = pad((words.flatten() * self.powers[:-1]).cumsum(0), (1, 0))

    def __call__(self, starts: Tensor, ends: Tensor) -> Tensor:
        """Strings of the places starts <= b * T + t < ends -> their numbers, int64."""
        levelled = (self.sums[ends] - self.sums[starts]) * self.powers[len(self.powers) - 1 - starts]
        return levelled + starts // self.T * ROW
