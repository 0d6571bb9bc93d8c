"""Algorithm 2 of Shen et al. 2007 with `structperc.guided.Aggressive`: nothing but gold is accepted."""

import numpy as np

from structperc.guided.compiled.candidates import hypothesise
from structperc.guided.compiled.chart import accept, beside, chart_for, clear, complete, last_window
from structperc.guided.compiled.lessons import (
    DECISIONS,
    ERRORS,
    UPDATES,
    gold_window,
    lesson_of,
    move,
    present,
    present_anew,
)
from structperc.guided.compiled.queue import best
from structperc.guided.compiled.search import first_candidates, sentence
from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.slices import longest_sequence


@kernel
def learn_aggressively(lessons, margin, limit):  # type: ignore[no-untyped-def]
    """Learn from sentence after sentence; return how many updates, decisions and errors there were."""
    T = longest_sequence(lessons.starts)
    chart, held, counts = chart_for(T, lessons.beam, lessons.weights), np.empty(T + 2, np.int64), np.zeros(3, np.int64)
    for s in range(len(lessons.starts) - 1):
        text, own = sentence(s, lessons.starts, lessons.text), lesson_of(s, lessons, held)
        if len(own.gold):
            _visit(text, own, lessons, chart, margin, counts[UPDATES] + limit * len(own.gold), counts)
    return counts[UPDATES], counts[DECISIONS], counts[ERRORS]


@subkernel_no_alloc
def _visit(text, own, lessons, chart, margin, most, counts):  # type: ignore[no-untyped-def]
    """Learn from one sentence until it is labelled as gold, or all updates up to the most are spent."""
    clear(chart)
    for place in first_candidates(lessons.easiest, text):
        present(place, text, lessons.weights, chart, own)
    while counts[UPDATES] < most:
        place = best(chart.queue)
        label = _rival(place, margin, text, lessons.weights, chart, own)
        counts[ERRORS] += own.held[place] != 0
        if label < 0:
            counts[DECISIONS] += 1
            accept(place, chart)
            if complete(place, text, chart):
                return
            for near in beside(place, lessons.easiest, text, chart):
                if near:
                    present(near, text, lessons.weights, chart, own)
        else:
            gold, steps = own.gold[place - 1], lessons.steps + counts[DECISIONS]
            move(place, label, chart.windows, 0, -1, steps, text, lessons)
            gold_window(place, chart, own, chart.windows, 0)
            move(place, gold, chart.windows, 0, 1, steps, text, lessons)
            counts[UPDATES] += 1
            counts[DECISIONS] += 1
            present_anew(gold, label, text, lessons.weights, chart, own)


@subkernel_no_alloc
def _rival(place, margin, text, weights, chart, own):  # type: ignore[no-untyped-def]
    """Return the label that the chosen candidate wrongly, or nearly, has, or -1; windows[0] is what it knew."""
    if own.held[place] != 0:
        last_window(place, 0, chart, chart.windows, 0)
        return chart.back[place, 0, 0]
    if margin == 0:
        return -1
    gold, totals, windows, row, label = own.gold[place - 1], chart.totals, chart.windows, 0, -1
    for m in range(hypothesise(place, text, weights, chart)):
        for y in range(totals.shape[1]):
            if y != gold and (label < 0 or totals[m, y] > totals[row, label]):
                row, label = m, y
    if label < 0 or totals[0, gold] - totals[row, label] > margin:
        return -1
    for i in range(4):
        windows[0, i] = windows[row, i]
    return label
