"""Algorithm 2 of Shen et al. 2007: the order of inference and the scores of actions are learned together."""

from collections.abc import Callable
from typing import NamedTuple

import torch

from structperc.guided.lesson import Lesson, Update
from structperc.guided.rules import Rule


class Progress(NamedTuple):
    """What is counted while the sentences of a lesson are visited once."""

    updates: int
    decisions: int  # how often a candidate was chosen: accepted tokens, and the choices that were not accepted
    errors: int  # how often the top hypothesis of the chosen candidate was not gold


def learn(lesson: Lesson, rule: Rule, move: Callable[[Update, int], None]) -> Progress:
    """Visit the sentences of a lesson once; `move(update, decisions)` changes the weights.

    All sentences choose a candidate each, then the weights move by the sum of their updates, then come the next
    choices. With one sentence that is the paper's algorithm. With several, a candidate is scored by the weights of
    the moment at which it is made: a sentence whose choice was not accepted makes all its queue anew, one whose
    choice was accepted the candidates next to the new span. Returns what was counted.
    """
    chart = lesson.chart
    active = chart.lengths.nonzero()[:, 0]
    lesson.generate(chart.first_candidates())
    decisions, errors = 0, torch.zeros((), dtype=torch.int64, device=active.device)
    while len(active):
        places = chart.queue.best(active)
        verdict = rule(lesson, places)
        errors += (lesson.held[places] != 0).sum()
        decisions += len(active)
        lesson.updates[active] += verdict.corrected.long()
        move(verdict.update, len(active))
        stay = ~verdict.left & ~(verdict.accepted & chart.complete(places))
        chart.accept(places[verdict.accepted])
        accepted, renewed = places[verdict.accepted & stay], active[~verdict.accepted & stay]
        lesson.generate(torch.cat([chart.next_candidates(accepted), chart.queue.waiting(renewed)]))
        active = active[stay]
    return Progress(int(lesson.updates.sum()), decisions, int(errors))
