"""The tokens of some sequences side by side, as a mini-batch holds them, compiled."""

import numpy as np

from structperc.kernels.compiled import kernel


def side_by_side(tokens: np.ndarray, looks: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return what stands at the n tokens of B sequences, (8, B, T) int64, and zeros in the padding.

    That is the label, the number of the sentence, whether it begins and whether it ends there, and the numbers of
    `Words`. tokens (n, 3) and looks (4, V) are those of `Arrays`, lengths (B,) how many tokens each sequence has.
    """
    # made here: numpy asks the system for zeros, a kernel writes them, which takes up to five times as long
    rows = np.zeros((8, len(lengths), int(lengths.max(initial=0))), np.int64)
    _fill(tokens, looks, lengths, rows)
    return rows


@kernel
def _fill(tokens, looks, lengths, rows):  # type: ignore[no-untyped-def]
    """Write what is no padding, and nothing else: sequences in the order in which they are learned differ in length."""
    start = 0
    for b in range(len(lengths)):
        stop = start + lengths[b]
        for i in range(start, stop):
            t, sentence, word = i - start, tokens[i, 1], tokens[i, 2]
            rows[0, b, t], rows[1, b, t] = tokens[i, 0], sentence
            rows[2, b, t] = i == start or tokens[i - 1, 1] != sentence
            rows[3, b, t] = i == stop - 1 or tokens[i + 1, 1] != sentence
            for k in range(4):
                rows[4 + k, b, t] = looks[k, word]
        start = stop
