"""Algorithm 1 of Shen et al. 2007, compiled: label the token with the highest action score first.

A candidate is a token that may be labelled next, with all label hypotheses for the resulting span; only the best
are stored. A window is the labels at the offsets -2, -1, 1 and 2 from a token, UNKNOWN if not decided.
"""

from typing import Any

import numpy as np

from structperc.guided.chart import (
    OPEN,
    accept,
    best_place,
    best_states,
    chart_for,
    fill_window,
    is_queued,
    join,
    last_window,
    neighbours,
    set_score,
    start,
    trace,
)
from structperc.guided.training_arrays import UNKNOWN, Decisions, TokenArrays, WeightArrays
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.scores import sum_rows
from structperc.nonlocal_features.strings import mixed
from structperc.ops.cpu.threads import run_in_threads

_mixed = subkernel_no_alloc(mixed)


@subkernel_no_alloc
def score_token(place, text, weights, chart):
    """Fill in the scores of the labels of a token without context: sums of the weights of its features."""
    first, last = text.offsets[place - 1], text.offsets[place]
    sum_rows(weights.node, text.ids, weights.node[0, :0], first, last, True, chart.static, place)


@subkernel_no_alloc
def add_context(templates, token, windows, n, text, weights, scores):
    """Add the weights of the templates that fire at a token in windows (n, 4) to scores (n, L)."""
    keys, table, radix, first, size = text.keys, weights.table, weights.radix, weights.first, weights.size
    for w in range(n):
        for i in range(len(templates)):
            row = context_row(templates[i], windows, w, keys, token, radix, first, size)
            if row:
                for y in range(scores.shape[1]):
                    scores[w, y] += table[row, y]


@subkernel_no_alloc(forceinline=True)
def context_row(f, windows, w, keys, token, radix, first, size):
    """Return the row of template f at a token in windows[w]; 0 if it does not fire."""
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


LOWEST = np.finfo(np.float32).min


@subkernel_no_alloc
def generate(place, text, weights, chart):
    """Create or renew the candidate at a place."""
    if not is_queued(chart.queue, place):
        score_token(place, text, weights, chart)
    M = score_hypotheses(place, text, weights, chart)
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
    set_score(chart.queue, place, U[place, 0] if U[place, 0] > LOWEST else LOWEST)  # queued even if -inf or NaN


@subkernel_no_alloc
def score_hypotheses(place, text, weights, chart):
    """Fill in the hypotheses, contexts and ends of the candidate at a place; return the number of context pairs."""
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
            fill_window(left, a, right, b, interfaces, windows, row)
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
def _sides(place, left, right, text, weights, chart):
    """Fill in the scores of labels with one context only; the scores without context are part of the left ones."""
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


ROWS = 64  # rows of weights per token, for the number of threads


def decide(
    starts: np.ndarray, text: TokenArrays, weights: WeightArrays, beam: int, easiest: bool, found: Decisions
) -> None:
    """Label sentences, sentence s being the tokens starts[s]:starts[s + 1], and fill in the decisions."""
    S, additions = len(starts) - 1, ROWS * len(text.keys) * weights.node.shape[1]
    filled: Any = [values.numpy() for values in found]

    def run(*slice_and_arrays: Any) -> None:
        _decide(*slice_and_arrays, chart_for(starts, beam, weights))

    run_in_threads(run, S, additions // max(1, S), starts, text, weights, easiest, Decisions(*filled))


@kernel
def _decide(first, stop, starts, text, weights, easiest, found, chart):
    for s in range(first, stop):
        own = sentence(s, starts, text)
        for place in start(chart, easiest, own):
            generate(place, own, weights, chart)
        for number in range(len(own.offsets) - 1):
            place = best_place(chart.queue)
            accept(place, chart)
            found.order[s, place - 1], found.first[s, place - 1] = number, chart.back[place, 0, 0]
            for near in neighbours(place, easiest, own, chart):
                if near:
                    generate(near, own, weights, chart)
        if len(own.offsets) > 1:
            _write_decisions(s, chart, found)


@subkernel
def sentence(s, starts, text):
    """Return the tokens of one sentence."""
    return TokenArrays(text.ids, text.offsets[starts[s] : starts[s + 1] + 1], text.keys[starts[s] : starts[s + 1]])


@subkernel_no_alloc
def _write_decisions(s, chart, found):
    """Write the best hypothesis of sentence s."""
    for i in range(trace(chart.spans[1], chart)):
        place = chart.members[i]
        state, t = chart.chosen[place], place - 1
        found.labels[s, t], found.U[s, t] = chart.back[place, state, 0], chart.U[place, state]
        found.scores[s] += chart.U[place, state]
        last_window(place, state, chart, found.windows[s], t)
