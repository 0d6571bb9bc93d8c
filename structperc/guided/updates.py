"""Algorithm 2 of Shen et al. 2007, compiled, with the rules `Aggressive` and `EarlyUpdate`."""

from typing import Any, NamedTuple

import numpy as np

from structperc.guided.beam_search import context_row, generate, score_hypotheses, score_token, sentence
from structperc.guided.chart import (
    accept,
    best_place,
    chart_for,
    fill_window,
    is_queued,
    last_window,
    neighbours,
    start,
    trace,
)
from structperc.guided.training_arrays import UNKNOWN, TrainingData
from structperc.kernels.jit import kernel, subkernel_no_alloc

UPDATES, DECISIONS, ERRORS = range(3)  # indices of counts


class GoldPath(NamedTuple):
    """Right labels of a sentence; the chart has the states that contain the gold hypothesis.

    A hypothesis is right if all its labels are allowed, and gold_state of a span is the best state whose best
    hypothesis is right, -1 if there is none: with gold labels, the state of the gold hypothesis p.G.

    With gold labels, the gold action p.G.A is scored in the context of the gold labels of those neighbours that are
    decided, even if no state contains them. With sets of allowed labels, p.G is the best hypothesis of the span if it
    is right. Otherwise p.G.A has the allowed label with the highest score in the context of the best hypotheses, which
    are right in accepted spans; for `EarlyUpdate` see `_best_right_action`.
    """

    gold: Any  # (T,) int64; without numbers if there are sets of allowed labels
    allowed: Any  # (T, L) bool
    factor: Any  # weight of the sentence


@subkernel_no_alloc
def update_candidate(place, text, weights, chart, own):
    """Create or renew the candidate at a place, and find its right states, the best of them first."""
    generate(place, text, weights, chart)
    gold_state, right, back = chart.gold_state, chart.right, chart.back
    before, after = chart.contexts[place, 0], chart.contexts[place, 1]
    gold_state[place] = -1
    for state in range(chart.states[place]):
        label, a, b = back[place, state, 0], back[place, state, 1], back[place, state, 2]
        right[place, state] = own.allowed[place - 1, label] and right[before, a] and right[after, b]
        if right[place, state] and gold_state[place] < 0:
            gold_state[place] = state


@subkernel_no_alloc
def _gold_action(place, text, weights, chart, own):
    """Return label and context states of p.G.A of a candidate, given contexts whose best hypotheses are right."""
    if len(own.gold):
        return own.gold[place - 1], 0, 0
    if chart.gold_state[place] == 0:
        return chart.back[place, 0, 0], chart.back[place, 0, 1], chart.back[place, 0, 2]
    return _best_right_action(place, 1, text, weights, chart, own)


@subkernel_no_alloc
def _best_right_action(place, rows, text, weights, chart, own):
    """Return label and context states of the best hypothesis that adds an allowed label to right hypotheses.

    Contexts are at most the first `rows` combinations.
    """
    totals, pairs, right, allowed, row, label = chart.totals, chart.pairs, chart.right, own.allowed[place - 1], 0, -1
    before, after = chart.contexts[place, 0], chart.contexts[place, 1]
    for m in range(min(rows, score_hypotheses(place, text, weights, chart))):
        if right[before, pairs[m, 0]] and right[after, pairs[m, 1]]:
            for y in range(totals.shape[1]):
                if allowed[y] and (label < 0 or totals[m, y] > totals[row, label]):
                    row, label = m, y
    return label, pairs[row, 0], pairs[row, 1]


@subkernel_no_alloc
def update_waiting_candidates(text, weights, chart, own):
    """Renew all queued candidates after a change of weights."""
    for place in range(1, len(text.offsets)):
        if is_queued(chart.queue, place):
            score_token(place, text, weights, chart)
            update_candidate(place, text, weights, chart, own)


@subkernel_no_alloc
def gold_window(place, chart, own, windows, w):
    """Fill windows[w] with the gold labels of the neighbours that were decided at the last action on a span."""
    left, right, interfaces, gold = chart.contexts[place, 0], chart.contexts[place, 1], chart.interfaces, own.gold
    for i in range(2):
        windows[w, i] = gold[place - 3 + i] if interfaces[left, 0, 2 + i] != UNKNOWN else UNKNOWN
        windows[w, 2 + i] = gold[place + i] if interfaces[right, 0, i] != UNKNOWN else UNKNOWN


@subkernel_no_alloc
def update_weights(place, label, windows, w, amount, steps, text, data):
    """Add to the weights of all features of an action, and to their sums; `steps` decisions were made before."""
    token, ids, keys, radix, first = place - 1, text.ids, text.keys, data.weights.radix, data.weights.first
    for i in range(text.offsets[token], text.offsets[token + 1]):
        _add(ids[i], label, amount, steps, data.weights.node, data.sums.node)
    for f in range(len(first)):
        row = context_row(f, windows, w, keys, token, radix, first, data.weights.size)
        if row:
            _add(row, label, amount, steps, data.weights.table, data.sums.table)


@subkernel_no_alloc
def _add(row, label, amount, steps, weights, sums):
    weights[row, label] += amount
    if len(sums):
        sums[row, label] += np.float64(amount) * steps


def learn(data: TrainingData, aggressive: bool, margin: float, limit: int) -> tuple[int, int, int]:
    """Learn from each sentence by one of the two rules; return the numbers of updates, decisions and errors."""
    counts = np.zeros(3, np.int64)
    _learn(data, aggressive, margin, limit, chart_for(data.starts, data.beam, data.weights), counts)
    return int(counts[UPDATES]), int(counts[DECISIONS]), int(counts[ERRORS])


@kernel
def _learn(data, aggressive, margin, limit, chart, counts):
    for s in range(len(data.starts) - 1):
        text, first, last = sentence(s, data.starts, data.text), data.starts[s], data.starts[s + 1]
        factor = data.factors[first] if len(data.factors) and first < last else 1.0
        own = GoldPath(data.gold[first:last], data.allowed[first:last], factor)
        if not factor > 0 or first == last:
            continue
        for place in start(chart, data.easiest, text):
            update_candidate(place, text, data.weights, chart, own)
        if aggressive:
            _learn_aggressively(text, own, data, chart, margin, counts[UPDATES] + limit * (last - first), counts)
        else:
            _learn_early(text, own, data, chart, counts)


@subkernel_no_alloc
def _learn_aggressively(text, own, data, chart, margin, most, counts):
    """Learn from one sentence until it has its gold labels, or `most` updates are made."""
    while counts[UPDATES] < most:
        place = best_place(chart.queue)
        gold, a, b = _gold_action(place, text, data.weights, chart, own)
        label = _rival(place, margin, text, data.weights, chart, own)
        counts[ERRORS] += chart.gold_state[place] != 0
        if label < 0:
            counts[DECISIONS] += 1
            accept(place, chart)
            before, after = neighbours(place, data.easiest, text, chart)
            if not before and not after:
                return
            for near in (before, after):
                if near:
                    update_candidate(near, text, data.weights, chart, own)
        else:
            steps, left, right = data.steps + counts[DECISIONS], chart.contexts[place, 0], chart.contexts[place, 1]
            update_weights(place, label, chart.windows, 0, -own.factor, steps, text, data)
            fill_window(left, a, right, b, chart.interfaces, chart.windows, 0)
            update_weights(place, gold, chart.windows, 0, own.factor, steps, text, data)
            counts[UPDATES] += 1
            counts[DECISIONS] += 1
            update_waiting_candidates(text, data.weights, chart, own)


@subkernel_no_alloc
def _rival(place, margin, text, weights, chart, own):
    """Return the wrong label of the chosen candidate, or one within the margin, or -1; windows[0] is its window."""
    if chart.gold_state[place] != 0:
        last_window(place, 0, chart, chart.windows, 0)
        return chart.back[place, 0, 0]
    if margin == 0:
        return -1
    totals, windows, back, allowed, row, label = chart.totals, chart.windows, chart.back, own.allowed[place - 1], 0, -1
    for m in range(score_hypotheses(place, text, weights, chart)):
        for y in range(totals.shape[1]):
            if not allowed[y] and (label < 0 or totals[m, y] > totals[row, label]):
                row, label = m, y
    best = back[place, 0, 1] * chart.states[chart.contexts[place, 1]] + back[place, 0, 2]
    if label < 0 or totals[best, back[place, 0, 0]] - totals[row, label] > margin:
        return -1
    for i in range(4):
        windows[0, i] = windows[row, i]
    return label


@subkernel_no_alloc
def _learn_early(text, own, data, chart, counts):
    """Learn from one sentence until it is labelled, or the gold hypothesis is lost."""
    left = False
    while not left:
        place = best_place(chart.queue)
        gold_state, (before, after) = chart.gold_state[place], neighbours(place, data.easiest, text, chart)
        left = not before and not after
        counts[ERRORS] += gold_state != 0
        if gold_state < 0 or (left and gold_state > 0):
            _correct(place, data.steps + counts[DECISIONS], text, own, data, chart)
            counts[UPDATES] += 1
            left = True
        counts[DECISIONS] += 1
        accept(place, chart)
        for near in (before, after):
            if near and not left:
                update_candidate(near, text, data.weights, chart, own)


@subkernel_no_alloc
def _correct(place, steps, text, own, data, chart):
    """Decrease the weights of all actions of the best hypothesis of a span, increase those of the gold hypothesis."""
    label, a, b = -1, np.int64(-1), np.int64(-1)
    if len(own.gold) == 0:
        label, a, b = _best_right_action(place, len(chart.pairs), text, data.weights, chart, own)
    for i in range(trace(place, chart)):
        inner = chart.members[i]
        _update_action(inner, -own.factor, steps, text, data, chart)
        if label < 0:
            gold_window(inner, chart, own, chart.windows, 0)
            update_weights(inner, own.gold[inner - 1], chart.windows, 0, own.factor, steps, text, data)
    if label >= 0:
        chart.back[place, 0, 0], chart.back[place, 0, 1], chart.back[place, 0, 2] = label, a, b
        for i in range(trace(place, chart)):
            _update_action(chart.members[i], own.factor, steps, text, data, chart)


@subkernel_no_alloc
def _update_action(place, amount, steps, text, data, chart):
    """Add to the weights of the action at a place in the traced hypothesis."""
    state = chart.chosen[place]
    last_window(place, state, chart, chart.windows, 0)
    update_weights(place, chart.back[place, state, 0], chart.windows, 0, amount, steps, text, data)
