"""The tokens of some sequences side by side, as a mini-batch holds them, compiled."""

import numpy as np

from structperc.kernels.compiled import kernel


@kernel
def side_by_side(tokens, looks, lengths):  # type: ignore[no-untyped-def]
    """Return what stands at the n tokens of B sequences, (8, B, T) int64, and zeros in the padding.

    That is the label, the number of the sentence, whether it begins and whether it ends there, and the numbers of
    `Words`. tokens (n, 3) and looks (4, V) are those of `Arrays`, lengths (B,) how many tokens each sequence has.

    Only what is no padding is read and written: sequences in the order in which they are learned differ in length.
    """
    longest = lengths.max() if len(lengths) else 0
    rows = np.zeros((8, len(lengths), longest), np.int64)
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
    return rows
