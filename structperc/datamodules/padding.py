"""The tokens of some sequences side by side, as a mini-batch holds them, compiled."""

import numpy as np

from structperc.kernels.jit import kernel


def pad_tokens(tokens: np.ndarray, looks: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what stands at the n tokens of B sequences, and zeros in the padding.

    tokens (n, 3) and looks (4, V) are those of `CorpusArrays`, lengths (B,) how many tokens each sequence has.

    -> (6, B, T) int64, the label, the number of the sentence and the numbers of `Words`; (2, B, T) bool, whether the
    sentence begins and whether it ends there.
    """
    # made here: numpy asks the system for zeros, a kernel writes them, which takes up to five times as long
    T = int(lengths.max(initial=0))
    numbers, bounds = np.zeros((6, len(lengths), T), np.int64), np.zeros((2, len(lengths), T), bool)
    _fill(tokens, looks, lengths, numbers, bounds)
    return numbers, bounds


@kernel
def _fill(tokens, looks, lengths, numbers, bounds):  # type: ignore[no-untyped-def]
    """Write what is no padding, and nothing else: sequences in the order in which they are learned differ in length."""
    start = 0
    for b in range(len(lengths)):
        stop = start + lengths[b]
        for i in range(start, stop):
            t, sentence, word = i - start, tokens[i, 1], tokens[i, 2]
            numbers[0, b, t], numbers[1, b, t] = tokens[i, 0], sentence
            for k in range(4):
                numbers[2 + k, b, t] = looks[k, word]
            bounds[0, b, t] = i == start or tokens[i - 1, 1] != sentence
            bounds[1, b, t] = i == stop - 1 or tokens[i + 1, 1] != sentence
        start = stop
