"""Algorithm 2 of Shen et al. 2007 with `structperc.guided.EarlyUpdate`: right or wrong is accepted."""

import numpy as np

from structperc.guided.compiled.chart import accept, beside, chart_for, clear, complete, last_window, trace
from structperc.guided.compiled.lessons import DECISIONS, ERRORS, UPDATES, gold_window, lesson_of, move, present
from structperc.guided.compiled.queue import best
from structperc.guided.compiled.search import first_candidates, sentence
from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.slices import longest_sequence


@kernel
def learn_early(lessons):  # type: ignore[no-untyped-def]
    """Learn from sentence after sentence; return how many updates, decisions and errors there were."""
    T = longest_sequence(lessons.starts)
    chart, held, counts = chart_for(T, lessons.beam, lessons.weights), np.empty(T + 2, np.int64), np.zeros(3, np.int64)
    for s in range(len(lessons.starts) - 1):
        text, own = sentence(s, lessons.starts, lessons.text), lesson_of(s, lessons, held)
        if len(own.gold):
            _visit(text, own, lessons, chart, counts)
    return counts[UPDATES], counts[DECISIONS], counts[ERRORS]


@subkernel_no_alloc
def _visit(text, own, lessons, chart, counts):  # type: ignore[no-untyped-def]
    """Learn from one sentence until it is labelled, or gold's hypothesis is lost."""
    clear(chart)
    for place in first_candidates(lessons.easiest, text):
        present(place, text, lessons.weights, chart, own)
    left = False
    while not left:
        place = best(chart.queue)
        held, left = own.held[place], complete(place, text, chart)
        counts[ERRORS] += held != 0
        if held < 0 or (left and held > 0):
            _correct(place, lessons.steps + counts[DECISIONS], text, own, lessons, chart)
            counts[UPDATES] += 1
            left = True
        counts[DECISIONS] += 1
        accept(place, chart)
        for near in beside(place, lessons.easiest, text, chart):
            if near and not left:
                present(near, text, lessons.weights, chart, own)


@subkernel_no_alloc
def _correct(place, steps, text, own, lessons, chart):  # type: ignore[no-untyped-def]
    """Demote all actions of the best hypothesis of a span, promote those of gold's."""
    for i in range(trace(place, chart)):
        inner = chart.members[i]
        state = chart.chosen[inner]
        last_window(inner, state, chart, chart.windows, 0)
        move(inner, chart.back[inner, state, 0], chart.windows, 0, -1, steps, text, lessons)
        gold_window(inner, chart, own, chart.windows, 0)
        move(inner, own.gold[inner - 1], chart.windows, 0, 1, steps, text, lessons)
