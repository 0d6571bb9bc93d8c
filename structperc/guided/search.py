"""Algorithm 1 of Shen et al. 2007: label the token first about which one is most confident."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.guided.chart import REACH, Chart
from structperc.guided.context import UNKNOWN


class Decisions(NamedTuple):
    """The best hypothesis about each sentence, and how it came about.

    The order is that in which tokens were taken from the queue, each for the action of the hypothesis that led at
    the time, with the label `first`. With a beam of more than one state another hypothesis may win in the end:
    labels, windows and U are those of its actions.
    """

    labels: Tensor  # (B, T) int64, 0 in the padding
    order: Tensor  # (B, T) int64, the step in which a token was decided, from 0; -1 in the padding
    first: Tensor  # (B, T) int64, label that led in that step; 0 in the padding
    windows: Tensor  # (B, T, 4) int64, labels at the offsets -2, -1, 1, 2 that were known to the action; else UNKNOWN
    U: Tensor  # (B, T) score of the action; 0 in the padding
    scores: Tensor  # (B,) float64, V of the hypothesis, the sum of U


def decide(chart: Chart) -> Decisions:
    """Label all sentences of a new chart, which advance together by one token each step, and return the decisions.

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
    actions, U = chart.last_actions(places, states), chart.U[places, states]
    scores = torch.zeros(len(chart.lengths), dtype=torch.float64, device=U.device)
    return Decisions(
        labels=_spread(chart, places, actions.labels),
        order=_padded(chart, order),
        first=_padded(chart, chart.back[:, 0, 0]),
        windows=_spread(chart, places, actions.windows, UNKNOWN),
        U=_spread(chart, places, U),
        scores=scores.index_add_(0, chart.sentence(places), U.double()),
    )


def _spread(chart: Chart, places: Tensor, values: Tensor, fill: int = 0) -> Tensor:
    """Values (n, ...) of the tokens at places (n,) -> (B, T, ...)."""
    table = values.new_full((chart.none + 1, *values.shape[1:]), fill)
    return _padded(chart, table.index_put((places,), values))


def _padded(chart: Chart, values: Tensor) -> Tensor:
    """(places + 1, ...) -> (B, T, ...)."""
    return values[:-1].unflatten(0, (-1, chart.width))[:, REACH : REACH + chart.T].contiguous()
