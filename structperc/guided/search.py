"""Algorithm 1 of Shen et al. 2007: label the token first about which one is most confident."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.guided.chart import REACH, Chart


class Decisions(NamedTuple):
    """The best hypothesis about each sentence, and how it came about."""

    labels: Tensor  # (B, T) int64, 0 in the padding
    order: Tensor  # (B, T) int64, the step in which a token was decided, from 0; -1 in the padding
    scores: Tensor  # (B,) float64, V of the hypothesis


def decide(chart: Chart) -> Decisions:
    """Label all sentences of a new chart, which advance together, by a token each step.

    Of candidates whose top hypotheses' actions score equal that of the first token comes next; for equal hypotheses
    see `states.best_states`.
    """
    order = torch.full_like(chart.spans, -1)
    chart.generate(chart.first_candidates())
    for step in range(max(chart.lengths.tolist(), default=0)):
        places = chart.queue.best((chart.lengths > step).nonzero()[:, 0])
        chart.accept(places)
        order[places] = step
        chart.generate(chart.next_candidates(places))
    return _read(chart, order)


def _read(chart: Chart, order: Tensor) -> Decisions:
    """The top hypotheses of complete spans."""
    roots = chart.spans[chart.places[~chart.real[chart.places - 1]]]
    places, states = chart.trace(roots)
    labels = torch.zeros_like(order).index_put((places,), chart.back[places, states, 0])
    U = chart.U[places, states].double()
    scores = U.new_zeros(len(chart.lengths)).index_add_(0, chart.sentence(places), U)
    return Decisions(_padded(chart, labels), _padded(chart, order), scores)


def _padded(chart: Chart, values: Tensor) -> Tensor:
    """(places + 1,) -> (B, T)."""
    return values[:-1].view(-1, chart.width)[:, REACH : REACH + chart.T].contiguous()
