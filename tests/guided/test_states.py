"""States of spans, and the best ones of a candidate, against lists and dictionaries."""

import random

import pytest
import torch

from structperc.guided.context import UNKNOWN
from structperc.guided.queue import Queue
from structperc.guided.states import OPEN, best_states, first_best, joined


def interfaces(labels):
    """Of a hypothesis about a span."""
    if len(labels) < 2:
        return [*labels, UNKNOWN, UNKNOWN, *labels] if labels else [UNKNOWN] * 4
    return [*labels[:2], *labels[-2:]]


@pytest.mark.parametrize("before", range(5))
@pytest.mark.parametrize("after", range(5))
def test_interfaces_of_joined_spans(before, after):
    left, right = list(range(before)), list(range(10, 10 + after))
    for label in (5, OPEN):
        found = joined(torch.tensor(interfaces(left)), label, torch.tensor(interfaces(right)))
        assert found.tolist() == interfaces([*left, label, *right])


@pytest.mark.parametrize("beam", [1, 2, 3, 9])
@pytest.mark.parametrize("span", [(1, 1), (0, 1), (2, 3), (0, 2), (3, 0), (0, 0)])
def test_best_states(span, beam):
    """Few values: many ties."""
    draw = random.Random(beam)
    for L in (1, 2, 4):
        pairs = [draw_pairs(draw, span, L) for _ in range(4)]
        scores = [[[draw.randint(-1, 1) for _ in range(L)] for _ in own] for own in pairs]
        codes = [joined(torch.tensor(a), OPEN, torch.tensor(b)).tolist() for own in pairs for a, b in own]
        owner = torch.tensor([n for n, own in enumerate(pairs) for _ in own])
        flat = torch.tensor([row for own in scores for row in own]).float()
        V, row, label = best_states(flat, torch.tensor(codes), owner, 4, beam)
        first = 0
        for n, own in enumerate(pairs):
            wanted = ranked(scores[n], own)[:beam]
            k = len(wanted)
            found = zip(V[n].tolist(), (row[n] - first).tolist(), label[n].tolist(), strict=True)
            assert list(found)[:k] == wanted
            assert V[n, k:].eq(-torch.inf).all()
            first += len(own)


def draw_pairs(draw, span, L):
    """Up to four combinations of contexts, interfaces of each."""
    return [
        tuple(interfaces([draw.randrange(L) for _ in range(length)]) for length in span)
        for _ in range(draw.randint(1, 4))
    ]


def ranked(scores, pairs):
    """(score, combination, label) of the best hypothesis of each state, best first, in the order of both on ties."""
    best = {}
    for p, (left, right) in enumerate(pairs):
        for label, score in enumerate(scores[p]):
            state = tuple(joined(torch.tensor(left), label, torch.tensor(right)).tolist())
            if state not in best or score > best[state][0]:
                best[state] = (score, p, label)
    return sorted(best.values(), key=lambda found: (-found[0], found[1:]))


def test_best_of_nothing():
    none, empty = torch.zeros(0), torch.zeros(0, dtype=torch.int64)
    assert [x.shape for x in first_best(none, empty, 0)] == [(0,), (0,)]
    found = best_states(torch.zeros(0, 3), torch.zeros(0, 4).long(), empty, 0, 2)
    assert [x.shape for x in found] == [(0, 2)] * 3


@pytest.mark.parametrize("places", [1, 4, 7, 50])
def test_queue_against_a_dictionary(places):
    draw = random.Random(places)
    queue = Queue(3, places, torch.zeros(1))
    waiting = [{} for _ in range(3)]
    for _ in range(60):
        for s, own in enumerate(waiting):
            place = draw.randrange(places)
            if own.pop(place, None) is None or draw.random() < 0.5:
                own[place] = float(draw.randint(-2, 2))
            queue.put(torch.tensor([s * queue.width + place]), own.get(place, -torch.inf))
        some = [s for s, own in enumerate(waiting) if own]
        best = [
            min(own, key=lambda place: (-own[place], place)) + s * queue.width for s, own in enumerate(waiting) if own
        ]
        assert queue.best(torch.tensor(some, dtype=torch.int64)).tolist() == best
        everything = [s * queue.width + place for s in some for place in sorted(waiting[s])]
        assert queue.waiting(torch.tensor(some, dtype=torch.int64)).tolist() == everything
