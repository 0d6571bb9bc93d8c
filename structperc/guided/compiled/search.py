"""Algorithm 1 of Shen et al. 2007: label the token first about which one is most confident."""

from typing import Any

import numpy as np

from structperc.guided.arrays import Text, Weights
from structperc.guided.compiled.candidates import generate
from structperc.guided.compiled.chart import accept, beside, chart_for, clear, last_window, trace
from structperc.guided.compiled.queue import best
from structperc.guided.decisions import Decisions
from structperc.kernels.jit import kernel, subkernel, subkernel_no_alloc
from structperc.kernels.slices import longest_sequence
from structperc.ops.cpu.checks import arrays
from structperc.ops.cpu.threads import run_in_threads, take

ROWS = 64  # that are added up for a token, with what else it takes


def decide(starts: np.ndarray, text: Text, weights: Weights, beam: int, easiest: bool, found: Decisions) -> None:
    """Label sentences, sentence s the tokens starts[s], ..., starts[s + 1] - 1, and fill in what was found."""
    S, additions = len(starts) - 1, ROWS * len(text.keys) * weights.node.shape[1]
    filled: Any = arrays(*found)
    run_in_threads(_decide, S, additions // max(1, S), starts, text, weights, beam, easiest, Decisions(*filled))


@subkernel
def _decide(side, turns, starts, text, weights, beam, easiest, found):  # type: ignore[no-untyped-def]
    chart = chart_for(longest_sequence(starts), beam, weights)
    for _ in range(len(starts) - 1):
        s = take(side, turns)
        if s < 0:
            break
        own = sentence(s, starts, text)
        clear(chart)
        for place in first_candidates(easiest, own):
            generate(place, own, weights, chart)
        for number in range(len(own.offsets) - 1):
            place = best(chart.queue)
            accept(place, chart)
            found.order[s, place - 1], found.first[s, place - 1] = number, chart.back[place, 0, 0]
            for near in beside(place, easiest, own, chart):
                if near:
                    generate(near, own, weights, chart)
        if len(own.offsets) > 1:
            _read(s, chart, found)


@kernel
def sentence(s, starts, text):  # type: ignore[no-untyped-def]
    """Return the text of one sentence."""
    return Text(text.ids, text.offsets[starts[s] : starts[s + 1] + 1], text.keys[starts[s] : starts[s + 1]])


@subkernel_no_alloc
def first_candidates(easiest, text):  # type: ignore[no-untyped-def]
    """Return the range of the candidates when nothing is accepted yet."""
    T = len(text.offsets) - 1
    return range(1, 1 + (T if easiest else min(T, 1)))


@subkernel_no_alloc
def _read(s, chart, found):  # type: ignore[no-untyped-def]
    """Write down the best hypothesis about sentence s."""
    for i in range(trace(chart.spans[1], chart)):
        place = chart.members[i]
        state, t = chart.chosen[place], place - 1
        found.labels[s, t], found.U[s, t] = chart.back[place, state, 0], chart.U[place, state]
        found.scores[s] += chart.U[place, state]
        last_window(place, state, chart, found.windows[s], t)
