"""Stretches of a corpus side by side, as a mini-batch holds them, compiled."""

import numpy as np

from structperc.kernels.compiled import kernel


@kernel
def side_by_side(columns, starts, stops):  # type: ignore[no-untyped-def]
    """Return columns (C, N) from starts[b] to stops[b], a row b for each (C, B, T), and zeros in the padding.

    Only what is no padding is read and written: sequences in the order in which they are learned differ in length.
    """
    longest = (stops - starts).max() if len(starts) else 0
    rows = np.zeros((len(columns), len(starts), longest), columns.dtype)
    for c in range(len(columns)):
        for b in range(len(starts)):
            rows[c, b, : stops[b] - starts[b]] = columns[c, starts[b] : stops[b]]
    return rows
