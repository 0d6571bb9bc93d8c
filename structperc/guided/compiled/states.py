"""States of spans: the labels at both ends, which is all that tokens outside may see of a hypothesis.

The interfaces of a state are four labels (first, second, last but one, last), UNKNOWN where the span is too short:
a span of one token has (y, UNKNOWN, UNKNOWN, y). Those of no span at all are four UNKNOWN.
"""

import numpy as np

from structperc.guided.templates import UNKNOWN
from structperc.kernels.jit import ORDERED, subkernel_no_alloc

OPEN = -2  # in place of the label of the action, as long as it can be any


@subkernel_no_alloc
def join(left, a, right, b, interfaces, joint, row):  # type: ignore[no-untyped-def]
    """Fill joint[row] with the interfaces that states a and b of two spans make with any label between them."""
    for i in range(2):
        joint[row, i], joint[row, 3 - i] = interfaces[left, a, i], interfaces[right, b, 3 - i]
    if joint[row, 0] == UNKNOWN:
        joint[row, 0], joint[row, 1] = OPEN, interfaces[right, b, 0]
    elif joint[row, 1] == UNKNOWN:
        joint[row, 1] = OPEN
    if joint[row, 3] == UNKNOWN:
        joint[row, 3], joint[row, 2] = OPEN, interfaces[left, a, 3]
    elif joint[row, 2] == UNKNOWN:
        joint[row, 2] = OPEN


@subkernel_no_alloc
def best_states(M, joint, scores, highest, best, found):  # type: ignore[no-untyped-def]
    """Find the best states of a candidate, each with its best hypothesis, and return how many there are.

    scores (M, L) of the hypotheses are used up: M combinations of contexts, each with all labels. joint (M, 4):
    interfaces of the combinations, OPEN where an action puts its label. Hypotheses of equal interfaces are of one
    state. highest (M,) is memory; best (B,) takes scores, found (B, 2) combinations and labels, the best state first.
    Of equal scores the first combination comes first, then the lowest label.
    """
    for m in range(M):
        highest[m] = _highest(m, scores)
    for n in range(len(found)):
        row = 0
        for m in range(1, M):
            row = m if highest[m] > highest[row] else row
        if n and not highest[row] > -np.inf:
            return n
        best[n], found[n, 0], found[n, 1] = highest[row], row, _place(highest[row], row, scores)
        _close(row, found[n, 1], M, joint, scores, highest)
    return len(found)


@subkernel_no_alloc
def _close(row, label, M, joint, scores, highest):  # type: ignore[no-untyped-def]
    """Take out all hypotheses of the state of this one."""
    labelled = False  # whether hypotheses of different labels differ in state
    for i in range(4):
        labelled |= joint[row, i] == OPEN
    for m in range(M):
        same = True
        for i in range(4):
            same &= joint[m, i] == joint[row, i]
        if same and labelled:
            scores[m, label] = -np.inf
            highest[m] = _highest(m, scores)
        elif same:
            highest[m] = -np.inf


@subkernel_no_alloc(fastmath=ORDERED)
def _highest(m, scores):  # type: ignore[no-untyped-def]
    found = scores[m, 0]
    for y in range(1, scores.shape[1]):
        found = scores[m, y] if scores[m, y] > found else found
    return found


@subkernel_no_alloc
def _place(score, m, scores):  # type: ignore[no-untyped-def]
    """Return the first place of a score in scores[m]."""
    for y in range(scores.shape[1]):
        if scores[m, y] == score:
            return y
    return 0
