"""Accepted spans P and candidate spans Q of one sentence."""

from typing import Any, NamedTuple

import numpy as np

from structperc.guided.compiled.queue import empty_queue, put
from structperc.guided.templates import UNKNOWN
from structperc.kernels.jit import subkernel, subkernel_no_alloc


class Chart(NamedTuple):
    """Spans of a sentence, each with its best B states (Shen et al. 2007, §2.2); memory for sentences up to T tokens.

    A span has the place of the token that was, or would be, labelled last: accepting a candidate changes what is in
    the queue and which span ends where, nothing else. Its contexts are the spans next to that token. Token t has the
    place t + 1; place 0 stands for no span, with a single state.

    V is kept relative to the best hypothesis of the span: only differences between its states matter to any choice,
    and so they do not drown in the score of a long text.
    """

    queue: Any  # action scores of the candidates
    spans: Any  # (T + 2,) which span begins or ends at a place
    ends: Any  # (T + 2, 2) first and last place of a span
    contexts: Any  # (T + 2, 2) spans left and right of the last token
    states: Any  # (T + 2,) how many states a span has
    interfaces: Any  # (T + 2, B, 4)
    back: Any  # (T + 2, B, 3) label, left state, right state of the last action
    U: Any  # (T + 2, B) score of the last action
    V: Any  # (T + 2, B)
    static: Any  # (T + 2, L) scores of all labels, without context, of tokens that are in the queue
    members: Any  # (T + 2,) places of the tokens of a span that was traced
    chosen: Any  # (T + 2,) and their states
    windows: Any  # (B * B, 4)
    before: Any  # (B, L) scores of labels by the left context alone
    after: Any  # (B, L) by the right context alone
    # All hypotheses of a candidate: combinations of a left and a right context state, each with all labels.
    pairs: Any  # (B * B, 2) states left and right
    joint: Any  # (B * B, 4) interfaces, OPEN where an action puts its label
    scores: Any  # (B * B, L) of the actions
    totals: Any  # (B * B, L) of the hypotheses, relative to the best ones of the contexts
    highest: Any  # (B * B,)
    best: Any  # (B,) totals of the best states
    found: Any  # (B, 2) their combinations and labels


@subkernel
def chart_for(T, beam, weights):  # type: ignore[no-untyped-def]
    """Return a chart for sentences of up to T tokens."""
    P, pairs, L, dtype = T + 2, beam * beam, weights.node.shape[1], weights.node.dtype
    return Chart(
        empty_queue(P, dtype),
        np.empty(P, np.int64),
        np.empty((P, 2), np.int64),
        np.empty((P, 2), np.int64),
        np.empty(P, np.int64),
        np.empty((P, beam, 4), np.int64),
        np.empty((P, beam, 3), np.int64),
        np.empty((P, beam), dtype),
        np.empty((P, beam), dtype),
        np.empty((P, L), dtype),
        np.empty(P, np.int64),
        np.empty(P, np.int64),
        np.empty((pairs, 4), np.int64),
        np.empty((beam, L), dtype),
        np.empty((beam, L), dtype),
        np.empty((pairs, 2), np.int64),
        np.empty((pairs, 4), np.int64),
        np.empty((pairs, L), dtype),
        np.empty((pairs, L), dtype),
        np.empty(pairs, dtype),
        np.empty(beam, dtype),
        np.empty((beam, 2), np.int64),
    )


@subkernel_no_alloc
def clear(chart):  # type: ignore[no-untyped-def]
    """Begin a sentence: nothing is accepted, nobody waits."""
    chart.queue[:] = -np.inf
    chart.spans[:] = 0
    chart.states[0], chart.V[0, 0] = 1, 0
    chart.interfaces[0] = UNKNOWN


@subkernel_no_alloc
def accept(place, chart):  # type: ignore[no-untyped-def]
    """Turn a candidate into a span of P that takes the place of its contexts."""
    chart.spans[chart.ends[place, 0]] = chart.spans[chart.ends[place, 1]] = place
    put(chart.queue, place, -np.inf)


@subkernel_no_alloc
def beside(place, easiest, text, chart):  # type: ignore[no-untyped-def]
    """Return the places of the candidates next to a span that was accepted, 0 where there is none."""
    before, after = chart.ends[place, 0] - 1, chart.ends[place, 1] + 1
    return before if easiest else 0, after if after < len(text.offsets) else 0


@subkernel_no_alloc
def complete(place, text, chart):  # type: ignore[no-untyped-def]
    """Tell whether a span is the whole sentence."""
    return chart.ends[place, 0] == 1 and chart.ends[place, 1] == len(text.offsets) - 1


@subkernel_no_alloc
def last_window(place, state, chart, windows, w):  # type: ignore[no-untyped-def]
    """Fill windows[w] with the labels that the last action of a state's best hypothesis knew."""
    left, right, interfaces = chart.contexts[place, 0], chart.contexts[place, 1], chart.interfaces
    a, b = chart.back[place, state, 1], chart.back[place, state, 2]
    for i in range(2):
        windows[w, i], windows[w, 2 + i] = interfaces[left, a, 2 + i], interfaces[right, b, i]


@subkernel_no_alloc
def trace(place, chart):  # type: ignore[no-untyped-def]
    """Fill in members and chosen for the best hypothesis of a span, and return how many tokens it has."""
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
