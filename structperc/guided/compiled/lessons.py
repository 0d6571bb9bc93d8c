"""What learning knows beyond inference: gold labels, which states hold gold's own hypothesis, and how weights move."""

from typing import Any, NamedTuple

import numpy as np

from structperc.guided.compiled.candidates import generate
from structperc.guided.compiled.queue import waits
from structperc.guided.compiled.scores import context_row, static_score
from structperc.guided.templates import UNKNOWN
from structperc.kernels.jit import subkernel, subkernel_no_alloc

UPDATES, DECISIONS, ERRORS = range(3)  # places of what is counted


class Lesson(NamedTuple):
    """Gold labels of a sentence, and where the chart has them.

    p.G, the gold hypothesis on a span p, gives all its tokens gold's labels. `held` says in which state of p it is
    the best hypothesis: it got there by the action of gold's label in the states that hold the gold hypotheses of
    the contexts. Once it is in no state any more, held = -1, it is in none of any larger span.

    The context in which gold's action p.G.A is scored is gold's own labels of those neighbours that are decided,
    whether or not some state holds them.
    """

    gold: Any  # (T,) int64
    held: Any  # (T + 2,) int64


@subkernel
def lesson_of(s, lessons, held):  # type: ignore[no-untyped-def]
    """Return the lesson of sentence s; held is memory for the longest sentence."""
    held[0] = 0
    return Lesson(lessons.gold[lessons.starts[s] : lessons.starts[s + 1]], held)


@subkernel_no_alloc
def present(place, text, weights, chart, lesson):  # type: ignore[no-untyped-def]
    """Make or renew the candidate at a place, and see where gold is."""
    generate(place, text, weights, chart)
    held, back, gold = lesson.held, chart.back, lesson.gold[place - 1]
    left, right = held[chart.contexts[place, 0]], held[chart.contexts[place, 1]]
    held[place] = -1
    for state in range(chart.states[place]):
        if back[place, state, 0] == gold and back[place, state, 1] == left and back[place, state, 2] == right:
            held[place] = state


@subkernel_no_alloc
def present_anew(label, other, text, weights, chart, lesson):  # type: ignore[no-untyped-def]
    """Renew all candidates that wait after weights of features with these two labels have changed."""
    for place in range(1, len(text.offsets)):
        if waits(chart.queue, place):
            chart.static[place, label] = static_score(place - 1, label, text, weights)
            chart.static[place, other] = static_score(place - 1, other, text, weights)
            present(place, text, weights, chart, lesson)


@subkernel_no_alloc
def gold_window(place, chart, lesson, windows, w):  # type: ignore[no-untyped-def]
    """Fill windows[w] with gold's labels of those neighbours that the last action on a span knew."""
    left, right, interfaces, gold = chart.contexts[place, 0], chart.contexts[place, 1], chart.interfaces, lesson.gold
    for i in range(2):
        windows[w, i] = gold[place - 3 + i] if interfaces[left, 0, 2 + i] != UNKNOWN else UNKNOWN
        windows[w, 2 + i] = gold[place + i] if interfaces[right, 0, i] != UNKNOWN else UNKNOWN


@subkernel_no_alloc
def move(place, label, windows, w, amount, steps, text, lessons):  # type: ignore[no-untyped-def]
    """Add to the weights of all features of an action, and to their sums, before which `steps` decisions were made."""
    token, ids, keys, radix, first = place - 1, text.ids, text.keys, lessons.weights.radix, lessons.weights.first
    for i in range(text.offsets[token], text.offsets[token + 1]):
        _add(ids[i], label, amount, steps, lessons.weights.node, lessons.sums.node)
    for f in range(len(first)):
        row = context_row(f, windows, w, keys, token, radix, first, lessons.weights.size)
        if row:
            _add(row, label, amount, steps, lessons.weights.table, lessons.sums.table)


@subkernel_no_alloc
def _add(row, label, amount, steps, weights, sums):  # type: ignore[no-untyped-def]
    weights[row, label] += amount
    if len(sums):
        sums[row, label] += np.float64(amount) * steps
