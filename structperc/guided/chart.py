"""Spans of one sentence, their states, and the queue of candidates, compiled.

The queue is a tournament tree: an array of 2 n scores, n a power of two. The last n are the scores of the places, -inf
without a candidate, and each other one is the maximum of two, so that the maximum and a change cost O(log n).

A state of a span is the labels at both ends; tokens outside depend only on these. Its interfaces are four labels
(first, second, last but one, last), UNKNOWN if the span is too short: a span of one token has (y, UNKNOWN, UNKNOWN, y),
an empty span has four UNKNOWN.
"""

from typing import Any, NamedTuple

import numpy as np

from structperc.guided.training_arrays import UNKNOWN, WeightArrays
from structperc.kernels.jit import subkernel_no_alloc
from structperc.kernels.sum_product import max_score


def make_queue(places: int, dtype: Any) -> np.ndarray:
    """Return an empty queue with at least `places` places."""
    return np.full(2 << (places - 1).bit_length(), -np.inf, dtype)


@subkernel_no_alloc
def set_score(queue, place, score):
    """Set the score of a place; -inf removes its candidate."""
    i = len(queue) // 2 + place
    queue[i] = score
    while i > 1:
        i //= 2
        queue[i] = max(queue[2 * i], queue[2 * i + 1])


@subkernel_no_alloc
def best_place(queue):
    """Return the place of the highest score, of equal scores the first; the queue must not be empty."""
    i = 1
    while i < len(queue) // 2:
        i = 2 * i + (queue[2 * i] < queue[2 * i + 1])
    return i - len(queue) // 2


@subkernel_no_alloc
def is_queued(queue, place):
    """Return True if there is a candidate at a place."""
    return queue[len(queue) // 2 + place] > -np.inf


class Chart(NamedTuple):
    """Accepted spans P and candidate spans Q of a sentence of up to T tokens, each with its best B states (§2.2).

    A span has the place of the token that was, or would be, labelled last: accepting a candidate changes only the queue
    and the ends of spans. Its contexts are the spans next to that token. Token t has place t + 1; place 0 is no span,
    with a single state.

    V is relative to the best hypothesis of the span: only differences between its states affect any choice, and so they
    keep their digits in long sentences.
    """

    queue: Any  # action scores of the candidates
    spans: Any  # (T + 2,) the span that begins or ends at a place
    ends: Any  # (T + 2, 2) first and last place of a span
    contexts: Any  # (T + 2, 2) spans left and right of the last token
    states: Any  # (T + 2,) number of states
    interfaces: Any  # (T + 2, B, 4)
    back: Any  # (T + 2, B, 3) label, left state, right state of the last action
    U: Any  # (T + 2, B) score of the last action
    V: Any  # (T + 2, B) score of the best hypothesis, see above
    static: Any  # (T + 2, L) scores of labels without context, of tokens in the queue
    members: Any  # (T + 2,) places of the tokens of a traced span
    chosen: Any  # (T + 2,) states of these tokens
    windows: Any  # (B * B, 4)
    before: Any  # (B, L) scores of labels with the left context only
    after: Any  # (B, L) scores of labels with the right context only
    # All hypotheses of a candidate: combinations of a left and a right context state, each with all labels.
    pairs: Any  # (B * B, 2) states left and right
    joint: Any  # (B * B, 4) interfaces, OPEN where an action puts its label
    scores: Any  # (B * B, L) scores of the actions
    totals: Any  # (B * B, L) scores of the hypotheses, relative to the best ones of the contexts
    highest: Any  # (B * B,) highest total of each combination
    best: Any  # (B,) totals of the best states
    found: Any  # (B, 2) combinations and labels of the best states
    # In learning:
    gold_state: Any  # (T + 2,) state with the gold hypothesis, see `updates.GoldPath`
    right: Any  # (T + 2, B) bool, states with a right hypothesis


def chart_for(starts: np.ndarray, beam: int, weights: WeightArrays) -> Chart:
    """Return a chart for any of the sentences, sentence s being the tokens starts[s]:starts[s + 1]."""
    P, pairs, L, dtype = int(np.diff(starts).max(initial=0)) + 2, beam * beam, weights.node.shape[1], weights.node.dtype
    whole: dict[str, Any] = {"spans": P, "ends": (P, 2), "contexts": (P, 2), "states": P, "interfaces": (P, beam, 4)}
    whole |= {"back": (P, beam, 3), "members": P, "chosen": P, "windows": (pairs, 4), "pairs": (pairs, 2)}
    whole |= {"joint": (pairs, 4), "found": (beam, 2), "gold_state": P}
    real: dict[str, Any] = {"U": (P, beam), "V": (P, beam), "static": (P, L), "before": (beam, L), "after": (beam, L)}
    real |= {"scores": (pairs, L), "totals": (pairs, L), "highest": pairs, "best": beam}
    return Chart(
        make_queue(P, dtype),
        right=np.zeros((P, beam), np.bool_),
        **{name: np.empty(shape, np.int64) for name, shape in whole.items()},
        **{name: np.empty(shape, dtype) for name, shape in real.items()},
    )


@subkernel_no_alloc
def start(chart, easiest, text):
    """Clear the chart for a new sentence; return the places of the first candidates."""
    chart.queue[:] = -np.inf
    chart.spans[:] = 0
    chart.states[0], chart.V[0, 0], chart.gold_state[0], chart.right[0, 0] = 1, 0, 0, True
    chart.interfaces[0] = UNKNOWN
    T = len(text.offsets) - 1
    return range(1, 1 + (T if easiest else min(T, 1)))


@subkernel_no_alloc
def accept(place, chart):
    """Turn a candidate into an accepted span that replaces its contexts."""
    chart.spans[chart.ends[place, 0]] = chart.spans[chart.ends[place, 1]] = place
    set_score(chart.queue, place, -np.inf)


@subkernel_no_alloc
def neighbours(place, easiest, text, chart):
    """Return the places of the candidates next to a span, 0 without one: both are 0 if it is the whole sentence."""
    before, after = chart.ends[place, 0] - 1, chart.ends[place, 1] + 1
    return before if easiest else 0, after if after < len(text.offsets) else 0


@subkernel_no_alloc
def fill_window(left, a, right, b, interfaces, windows, w):
    """Fill windows[w] with the labels next to a token between states a and b of two spans."""
    for i in range(2):
        windows[w, i], windows[w, 2 + i] = interfaces[left, a, 2 + i], interfaces[right, b, i]


@subkernel_no_alloc
def last_window(place, state, chart, windows, w):
    """Fill windows[w] with the window of the last action of a state's best hypothesis."""
    left, right, a, b = (
        chart.contexts[place, 0],
        chart.contexts[place, 1],
        chart.back[place, state, 1],
        chart.back[place, state, 2],
    )
    fill_window(left, a, right, b, chart.interfaces, windows, w)


@subkernel_no_alloc
def trace(place, chart):
    """Fill members and chosen with the best hypothesis of a span; return its number of tokens."""
    members, chosen, n = chart.members, chart.chosen, 1
    members[0], chosen[place] = place, 0
    for i in range(chart.ends[place, 1] - chart.ends[place, 0] + 1):
        outer = members[i]
        for side in range(2):
            inner = chart.contexts[outer, side]
            if inner:
                members[n], chosen[inner] = inner, chart.back[outer, chosen[outer], 1 + side]
                n += 1
    return n


OPEN = -2  # in place of the label of the action, while it is not chosen


@subkernel_no_alloc
def join(left, a, right, b, interfaces, joint, row):
    """Fill joint[row] with the interfaces of states a and b of two spans with any label between them."""
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
def best_states(M, joint, scores, highest, best, found):
    """Find the best states of a candidate, each with its best hypothesis; return their number.

    scores (M, L) of the hypotheses are overwritten: M combinations of contexts, each with all labels. joint (M, 4):
    interfaces of the combinations, OPEN at the label of the action. Hypotheses of equal interfaces have the same state.
    highest (M,) is a workspace; best (B,) is filled with scores, found (B, 2) with combinations and labels, the best
    state first. Of equal scores the first combination comes first, then the lowest label.
    """
    for m in range(M):
        highest[m] = max_score(scores[m])
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
def _close(row, label, M, joint, scores, highest):
    """Remove all hypotheses of the same state."""
    by_label = False  # True if hypotheses of different labels differ in state
    for i in range(4):
        by_label |= joint[row, i] == OPEN
    for m in range(M):
        same = True
        for i in range(4):
            same &= joint[m, i] == joint[row, i]
        if same and by_label:
            scores[m, label] = -np.inf
            highest[m] = max_score(scores[m])
        elif same:
            highest[m] = -np.inf


@subkernel_no_alloc
def _place(score, m, scores):
    """Return the first index of a score in scores[m]."""
    for y in range(scores.shape[1]):
        if scores[m, y] == score:
            return y
    return 0
