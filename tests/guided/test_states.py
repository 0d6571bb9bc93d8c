"""States of spans, the best ones of a candidate, and the queue, against lists and dictionaries."""

import random
from itertools import product

import numpy as np
import pytest

from structperc.guided import chart
from structperc.guided.chart import OPEN, make_queue
from structperc.guided.training_arrays import UNKNOWN
from structperc.kernels.jit import kernel


def called(function):
    """For Python, too, what otherwise only other kernels call."""

    @kernel
    def call(*arguments):
        return function(*arguments)

    return call


best, set_score, is_queued, best_states, join = map(
    called, (chart.best_place, chart.set_score, chart.is_queued, chart.best_states, chart.join)
)


def interfaces(labels):
    """Of a hypothesis about a span."""
    if len(labels) < 2:
        return [*labels, UNKNOWN, UNKNOWN, *labels] if labels else [UNKNOWN] * 4
    return [*labels[:2], *labels[-2:]]


def joined(pairs):
    """Interfaces (n, 4) with an open label between the two of each pair."""
    spans, joint = (
        np.array([[left for left, _ in pairs], [right for _, right in pairs]]),
        np.zeros((len(pairs), 4), int),
    )
    for row in range(len(pairs)):
        join(0, row, 1, row, spans, joint, row)
    return joint


def test_interfaces_of_joined_spans():
    for before, after in product(range(5), repeat=2):
        left, right = list(range(before)), list(range(10, 10 + after))
        found = joined([(interfaces(left), interfaces(right))])
        assert found[0].tolist() == interfaces([*left, OPEN, *right])


@pytest.mark.parametrize("beam", [1, 3, 9])
@pytest.mark.parametrize("span", [(1, 1), (0, 1), (2, 3), (0, 2), (3, 0), (0, 0)])
def test_best_states(span, beam):
    """Few values: many ties."""
    draw = random.Random(beam)
    for L in (1, 2, 4, 1, 2, 4):
        pairs = draw_pairs(draw, span, L)
        scores, M = [[draw.randint(-1, 1) for _ in range(L)] for _ in pairs], len(pairs)
        memory, V, found = np.empty(M, np.float32), np.empty(beam, np.float32), np.empty((beam, 2), int)
        n = best_states(M, joined(pairs), np.array(scores, np.float32), memory, V, found)
        wanted = ranked(scores, pairs)[:beam]
        assert list(zip(V[:n].tolist(), *found[:n].T.tolist(), strict=True)) == wanted


def draw_pairs(draw, span, L):
    """Up to four combinations of contexts, interfaces of each."""
    return [
        tuple(interfaces([draw.randrange(L) for _ in range(length)]) for length in span)
        for _ in range(draw.randint(1, 4))
    ]


def ranked(scores, pairs):
    """(score, combination, label) of the best hypothesis of each state, best first, in the order of both on ties."""
    best = {}
    for p, joint in enumerate(joined(pairs).tolist()):
        for label, score in enumerate(scores[p]):
            state = tuple(label if own == OPEN else own for own in joint)
            if state not in best or score > best[state][0]:
                best[state] = (score, p, label)
    return sorted(best.values(), key=lambda found: (-found[0], found[1:]))


@pytest.mark.parametrize("places", [1, 4, 7, 50])
def test_queue_against_a_dictionary(places):
    draw = random.Random(places)
    queue, waiting = make_queue(places, np.dtype(np.float32)), {}
    for _ in range(100):
        place = draw.randrange(places)
        if waiting.pop(place, None) is None or draw.random() < 0.5:
            waiting[place] = float(draw.randint(-2, 2))
        set_score(queue, place, waiting.get(place, -np.inf))
        assert [place for place in range(places) if is_queued(queue, place)] == sorted(waiting)
        if waiting:
            assert best(queue) == min(waiting, key=lambda place: (-waiting[place], place))
