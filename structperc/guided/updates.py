"""Algorithm 2 of Shen et al. 2007, compiled, with the rules `Aggressive` and `EarlyUpdate`."""

from typing import Any, NamedTuple

import numpy as np

from structperc.guided.beam_search import (
    context_row,
    first_candidates,
    generate,
    score_hypotheses,
    sentence,
    static_score,
)
from structperc.guided.chart import (
    accept,
    best_place,
    chart_for,
    clear,
    is_complete,
    is_queued,
    last_window,
    neighbours,
    trace,
)
from structperc.guided.training_arrays import UNKNOWN
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.slices import longest_sequence

UPDATES, DECISIONS, ERRORS = range(3)  # indices of counts


class GoldPath(NamedTuple):
    """Gold labels of a sentence, and the states of the chart that contain the gold hypothesis.

    The gold hypothesis p.G of a span p has the gold labels on all its tokens. gold_state is the state of p whose best
    hypothesis it is: the state after the action with the gold label in the gold states of the contexts. It is -1 if
    there is no such state, and then for all larger spans.

    The gold action p.G.A is scored in the context of the gold labels of those neighbours that are decided, even if no
    state contains them.

    With sets of allowed labels, a hypothesis is right if all its labels are allowed, and gold_state is the best right
    state. p.G is the best hypothesis of the span if it is right. Otherwise p.G.A has the allowed label with the highest
    score in the context of the best hypotheses, which are right in accepted spans; for `EarlyUpdate` see
    `_best_right_action`.
    """

    gold: Any  # (T,) int64
    gold_state: Any  # (T + 2,) int64
    allowed: Any  # (T, L) bool; without rows if only the gold labels are allowed
    right: Any  # (T + 2, B) bool, states with a right hypothesis, if there are sets of allowed labels
    factor: Any  # weight of the sentence


@subkernel
def gold_path(s, data, gold_state, right):
    """Return the gold path of sentence s; gold_state and right are workspaces for the longest sentence."""
    gold_state[0], right[0, 0] = 0, True
    first, last = data.starts[s], data.starts[s + 1]
    factor = data.factors[first] if len(data.factors) and first < last else 1.0
    return GoldPath(data.gold[first:last], gold_state, data.allowed[first:last], right, factor)


@subkernel_no_alloc
def update_candidate(place, text, weights, chart, gold_path):
    """Create or renew the candidate at a place, and find its gold state."""
    generate(place, text, weights, chart)
    gold_state, back, gold = gold_path.gold_state, chart.back, gold_path.gold[place - 1]
    if len(gold_path.allowed):
        _find_right_states(place, chart, gold_path)
        return
    left, right = gold_state[chart.contexts[place, 0]], gold_state[chart.contexts[place, 1]]
    gold_state[place] = -1
    for state in range(chart.states[place]):
        if back[place, state, 0] == gold and back[place, state, 1] == left and back[place, state, 2] == right:
            gold_state[place] = state


@subkernel_no_alloc
def _find_right_states(place, chart, gold_path):
    """Find the states of a candidate whose labels are all allowed, and the best of them."""
    gold_state, right, back = gold_path.gold_state, gold_path.right, chart.back
    before, after = chart.contexts[place, 0], chart.contexts[place, 1]
    gold_state[place] = -1
    for state in range(chart.states[place]):
        label, a, b = back[place, state, 0], back[place, state, 1], back[place, state, 2]
        right[place, state] = gold_path.allowed[place - 1, label] and right[before, a] and right[after, b]
        if right[place, state] and gold_state[place] < 0:
            gold_state[place] = state


@subkernel_no_alloc
def _gold_action(place, text, weights, chart, gold_path):
    """Return the label of p.G.A of a candidate, given contexts whose best hypotheses are right."""
    if len(gold_path.allowed) == 0:
        return gold_path.gold[place - 1]
    if gold_path.gold_state[place] == 0:
        return chart.back[place, 0, 0]
    score_hypotheses(place, text, weights, chart)
    allowed, scores, found = gold_path.allowed[place - 1], chart.scores[0], -1
    for y in range(len(scores)):
        if allowed[y] and (found < 0 or scores[y] > scores[found]):
            found = y
    return found


@subkernel_no_alloc
def _gold_action_window(place, chart, gold_path, windows, w):
    """Fill windows[w] with the labels of the neighbours in the context of `_gold_action`."""
    if gold_path.gold_state[place] == 0:
        last_window(place, 0, chart, windows, w)
        return
    left, right, interfaces = chart.contexts[place, 0], chart.contexts[place, 1], chart.interfaces
    for i in range(2):
        windows[w, i], windows[w, 2 + i] = interfaces[left, 0, 2 + i], interfaces[right, 0, i]


@subkernel_no_alloc
def update_waiting_candidates(label, other, text, weights, chart, gold_path):
    """Renew all queued candidates after weights of features with these two labels have changed."""
    for place in range(1, len(text.offsets)):
        if is_queued(chart.queue, place):
            chart.static[place, label] = static_score(place - 1, label, text, weights)
            chart.static[place, other] = static_score(place - 1, other, text, weights)
            update_candidate(place, text, weights, chart, gold_path)


@subkernel_no_alloc
def gold_window(place, chart, gold_path, windows, w):
    """Fill windows[w] with the gold labels of the neighbours that were decided at the last action on a span."""
    left, right, interfaces, gold = chart.contexts[place, 0], chart.contexts[place, 1], chart.interfaces, gold_path.gold
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


@kernel
def learn(data, aggressive, margin, limit):
    """Learn from each sentence by one of the two rules; return the numbers of updates, decisions and errors."""
    T = longest_sequence(data.starts)
    chart, gold_state, counts = chart_for(T, data.beam, data.weights), np.empty(T + 2, np.int64), np.zeros(3, np.int64)
    right = np.zeros((T + 2, data.beam), np.bool_)
    for s in range(len(data.starts) - 1):
        text, own = sentence(s, data.starts, data.text), gold_path(s, data, gold_state, right)
        if not own.factor > 0:
            continue
        if len(own.gold) and aggressive:
            _learn_aggressively(text, own, data, chart, margin, counts[UPDATES] + limit * len(own.gold), counts)
        elif len(own.gold):
            _learn_early(text, own, data, chart, counts)
    return counts[UPDATES], counts[DECISIONS], counts[ERRORS]


@subkernel_no_alloc
def _learn_aggressively(text, own, data, chart, margin, most, counts):
    """Learn from one sentence until it has its gold labels, or `most` updates are made."""
    clear(chart)
    for place in first_candidates(data.easiest, text):
        update_candidate(place, text, data.weights, chart, own)
    while counts[UPDATES] < most:
        place = best_place(chart.queue)
        gold = _gold_action(place, text, data.weights, chart, own)
        label = _rival(place, margin, text, data.weights, chart, own)
        counts[ERRORS] += own.gold_state[place] != 0
        if label < 0:
            counts[DECISIONS] += 1
            accept(place, chart)
            if is_complete(place, text, chart):
                return
            for near in neighbours(place, data.easiest, text, chart):
                if near:
                    update_candidate(near, text, data.weights, chart, own)
        else:
            steps = data.steps + counts[DECISIONS]
            update_weights(place, label, chart.windows, 0, -own.factor, steps, text, data)
            _gold_action_window(place, chart, own, chart.windows, 0)
            update_weights(place, gold, chart.windows, 0, own.factor, steps, text, data)
            counts[UPDATES] += 1
            counts[DECISIONS] += 1
            update_waiting_candidates(gold, label, text, data.weights, chart, own)


@subkernel_no_alloc
def _rival(place, margin, text, weights, chart, own):
    """Return the wrong label of the chosen candidate, or one within the margin, or -1; windows[0] is its window."""
    if own.gold_state[place] != 0:
        last_window(place, 0, chart, chart.windows, 0)
        return chart.back[place, 0, 0]
    if margin == 0:
        return -1
    totals, windows, back, token, row, label = chart.totals, chart.windows, chart.back, place - 1, 0, -1
    gold, allowed, complete = own.gold[token], own.allowed, len(own.allowed) == 0
    for m in range(score_hypotheses(place, text, weights, chart)):
        for y in range(totals.shape[1]):
            wrong = y != gold if complete else not allowed[token, y]
            if wrong and (label < 0 or totals[m, y] > totals[row, label]):
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
    clear(chart)
    for place in first_candidates(data.easiest, text):
        update_candidate(place, text, data.weights, chart, own)
    left = False
    while not left:
        place = best_place(chart.queue)
        gold_state, left = own.gold_state[place], is_complete(place, text, chart)
        counts[ERRORS] += gold_state != 0
        if gold_state < 0 or (left and gold_state > 0):
            _correct(place, data.steps + counts[DECISIONS], text, own, data, chart)
            counts[UPDATES] += 1
            left = True
        counts[DECISIONS] += 1
        accept(place, chart)
        for near in neighbours(place, data.easiest, text, chart):
            if near and not left:
                update_candidate(near, text, data.weights, chart, own)


@subkernel_no_alloc
def _correct(place, steps, text, own, data, chart):
    """Decrease the weights of all actions of the best hypothesis of a span, increase those of the gold hypothesis."""
    label, a, b = _best_right_action(place, text, data.weights, chart, own) if len(own.allowed) else (-1, -1, -1)
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


@subkernel_no_alloc
def _best_right_action(place, text, weights, chart, own):
    """Return label and context states of the best hypothesis that adds an allowed label to right hypotheses."""
    totals, pairs, allowed, row, label = chart.totals, chart.pairs, own.allowed[place - 1], 0, -1
    before, after = chart.contexts[place, 0], chart.contexts[place, 1]
    for m in range(score_hypotheses(place, text, weights, chart)):
        if own.right[before, pairs[m, 0]] and own.right[after, pairs[m, 1]]:
            for y in range(totals.shape[1]):
                if allowed[y] and (label < 0 or totals[m, y] > totals[row, label]):
                    row, label = m, y
    return label, pairs[row, 0], pairs[row, 1]
