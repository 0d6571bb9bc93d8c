"""Candidates: all hypotheses about a span, of which the best states are kept."""

import numpy as np

from structperc.guided.compiled.queue import put, waits
from structperc.guided.compiled.scores import add_context, static_scores
from structperc.guided.compiled.states import OPEN, best_states, join
from structperc.guided.templates import UNKNOWN
from structperc.kernels.jit import subkernel_no_alloc

LOWEST = np.finfo(np.float32).min


@subkernel_no_alloc
def generate(place, text, weights, chart):  # type: ignore[no-untyped-def]
    """Make or renew the candidate at a place with all that is accepted next to it."""
    if not waits(chart.queue, place):
        static_scores(place - 1, text, weights, chart.static[place])
    M = hypothesise(place, text, weights, chart)
    found, best, back, interfaces, U = chart.found, chart.best, chart.back, chart.interfaces, chart.U
    scores, pairs, spans = chart.scores, chart.pairs, chart.joint
    n = best_states(M, spans, chart.totals, chart.highest, best, found)
    for state in range(n):
        m, label = found[state, 0], found[state, 1]
        for i in range(4):
            interfaces[place, state, i] = label if spans[m, i] == OPEN else spans[m, i]
        back[place, state, 0], back[place, state, 1], back[place, state, 2] = label, pairs[m, 0], pairs[m, 1]
        U[place, state] = scores[m, label]
        chart.V[place, state] = best[state] - best[0]
    chart.states[place] = n
    put(chart.queue, place, U[place, 0] if U[place, 0] > LOWEST else LOWEST)  # it waits even if it is -inf or NaN


@subkernel_no_alloc
def hypothesise(place, text, weights, chart):  # type: ignore[no-untyped-def]
    """Fill in all hypotheses of the candidate at a place, its contexts and ends; return the number of combinations."""
    left, right, ends, V = chart.spans[place - 1], chart.spans[place + 1], chart.ends, chart.V
    chart.contexts[place, 0], chart.contexts[place, 1] = left, right
    ends[place, 0] = ends[left, 0] if left else place
    ends[place, 1] = ends[right, 1] if right else place
    n, m = chart.states[left], chart.states[right]
    scores, totals, pairs, joint = chart.scores, chart.totals, chart.pairs, chart.joint
    before, after, interfaces, windows = chart.before, chart.after, chart.interfaces, chart.windows
    _sides(place, left, right, text, weights, chart)
    for a in range(n):
        for b in range(m):
            row = a * m + b
            pairs[row, 0], pairs[row, 1] = a, b
            join(left, a, right, b, interfaces, joint, row)
            for i in range(2):
                windows[row, i], windows[row, 2 + i] = interfaces[left, a, 2 + i], interfaces[right, b, i]
            for y in range(scores.shape[1]):
                scores[row, y] = before[a, y] + after[b, y]
    if left and right:
        add_context(weights.around, place - 1, windows, n * m, text, weights, scores)
    for row in range(n * m):
        outside = V[left, pairs[row, 0]] + V[right, pairs[row, 1]]
        for y in range(scores.shape[1]):
            totals[row, y] = scores[row, y] + outside
    return n * m


@subkernel_no_alloc
def _sides(place, left, right, text, weights, chart):  # type: ignore[no-untyped-def]
    """Fill in the scores of labels by one context alone; those without context are with the left one."""
    before, after, interfaces, windows, static = (
        chart.before,
        chart.after,
        chart.interfaces,
        chart.windows,
        chart.static,
    )
    for a in range(chart.states[left]):
        windows[a, 0], windows[a, 1] = interfaces[left, a, 2], interfaces[left, a, 3]
        windows[a, 2] = windows[a, 3] = UNKNOWN
        for y in range(before.shape[1]):
            before[a, y] = static[place, y]
    if left:
        add_context(weights.before, place - 1, windows, chart.states[left], text, weights, before)
    for b in range(chart.states[right]):
        windows[b, 0] = windows[b, 1] = UNKNOWN
        windows[b, 2], windows[b, 3] = interfaces[right, b, 0], interfaces[right, b, 1]
        for y in range(after.shape[1]):
            after[b, y] = 0
    if right:
        add_context(weights.after, place - 1, windows, chart.states[right], text, weights, after)
