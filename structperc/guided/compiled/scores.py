"""Scores of actions: sums of rows of weights, by features of the token and by labels next to it.

A window is the labels at the offsets -2, -1, 1 and 2 from a token, UNKNOWN where they are not decided.
"""

import numpy as np

from structperc.guided.templates import UNKNOWN
from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.nonlocal_features.strings import mixed

_mixed = subkernel_no_alloc(mixed)


@subkernel_no_alloc
def static_scores(token, text, weights, scores):  # type: ignore[no-untyped-def]
    """Fill scores (L,) with the sums of the weights of a token's features."""
    ids, node = text.ids, weights.node
    for y in range(len(scores)):
        scores[y] = 0
    for i in range(text.offsets[token], text.offsets[token + 1]):
        row = node[ids[i]]
        for y in range(len(scores)):
            scores[y] += row[y]


@subkernel_no_alloc
def static_score(token, label, text, weights):  # type: ignore[no-untyped-def]
    """Return the sum that `static_scores` has for one label."""
    ids, node = text.ids, weights.node
    score = node.dtype.type(0)
    for i in range(text.offsets[token], text.offsets[token + 1]):
        score += node[ids[i], label]
    return score


@subkernel_no_alloc
def add_context(templates, token, windows, n, text, weights, scores):  # type: ignore[no-untyped-def]
    """Add the weights of these templates, where they fire at a token in windows (n, 4), to scores (n, L)."""
    keys, table, radix, first, size = text.keys, weights.table, weights.radix, weights.first, weights.size
    for w in range(n):
        for i in range(len(templates)):
            row = context_row(templates[i], windows, w, keys, token, radix, first, size)
            if row:
                for y in range(scores.shape[1]):
                    scores[w, y] += table[row, y]


@subkernel_no_alloc(forceinline=True)
def context_row(f, windows, w, keys, token, radix, first, size):  # type: ignore[no-untyped-def]
    """Return the row of template f at a token in windows[w]; 0 where it does not fire."""
    number = 0
    for i in range(4):
        if radix[f, i]:
            if windows[w, i] == UNKNOWN:
                return 0
            number += windows[w, i] * radix[f, i]
    exact = len(first) - keys.shape[1]
    if f >= exact:
        number = _mixed(keys[token, f - exact] + number) % size
    return first[f] + number


@kernel
def rows(windows, keys, weights):  # type: ignore[no-untyped-def]
    """Return the rows (n, F) of the table for windows (n, 4) and keys (n, H)."""
    radix, first, size = weights.radix, weights.first, weights.size
    found = np.empty((len(windows), len(first)), np.int64)
    for n in range(len(windows)):
        for f in range(len(first)):
            found[n, f] = context_row(f, windows, n, keys, n, radix, first, size)
    return found
