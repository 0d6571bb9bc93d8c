"""What learning knows beyond inference: gold labels, and which states hold gold's own hypothesis."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.guided.chart import Actions, Chart
from structperc.guided.context import UNKNOWN
from structperc.guided.templates import OFFSETS


class Update(NamedTuple):
    """The features of actions to promote, and of as many actions to demote."""

    gold: Actions
    rival: Actions


class Lesson:
    """A chart with gold labels.

    p.G, the gold hypothesis on a span p, gives all its tokens gold's labels. `held` says in which state of p it is
    the best hypothesis: it got there by the action of gold's label in the states that hold the gold hypotheses of
    the contexts. Once it is in no state any more, held = -1, it is in none of any larger span.

    The context in which gold's action p.G.A is scored is gold's own labels of those neighbours that are decided,
    whether or not some state holds them.

    Args:
        chart: nothing is accepted in it yet.
        gold: (n,) int64 labels of the tokens of all sentences, one sentence after the other.
    """

    def __init__(self, chart: Chart, gold: Tensor) -> None:
        self.chart = chart
        self.gold = torch.full_like(chart.spans, UNKNOWN).index_put((chart.places,), gold)  # by place
        self.held = torch.zeros_like(chart.spans)
        self.updates = torch.zeros_like(chart.lengths)  # of each sentence, so far

    def generate(self, places: Tensor) -> None:
        """Make the candidates at these places, or make them anew."""
        self.chart.generate(places)
        wanted = torch.cat([self.gold[places].unsqueeze(1), self.held[self.chart.contexts[places]]], 1)
        gold = (self.chart.back[places] == wanted.unsqueeze(1)).all(2) & (self.chart.V[places] > -torch.inf)
        self.held[places] = gold.long().argmax(1).where(gold.any(1), -1)

    def gold_actions(self, places: Tensor) -> Actions:
        """Return gold's last actions on spans (n,)."""
        offsets = torch.tensor(OFFSETS, device=places.device)
        zero = torch.zeros_like(places)
        decided = self.chart.windows(places, zero, zero) != UNKNOWN
        windows = self.gold[(places.unsqueeze(1) + offsets).where(decided, 0)].where(decided, UNKNOWN)
        return Actions(self.chart.token[places], self.gold[places], windows)

    def last_difference(self, places: Tensor) -> Update:
        """Return what to promote and demote: the last actions of gold and of the top hypotheses of spans (n,)."""
        return Update(self.gold_actions(places), self.chart.last_actions(places, torch.zeros_like(places)))

    def whole_difference(self, places: Tensor) -> Update:
        """Return what to promote and demote: all actions of gold and of the top hypotheses of spans (n,)."""
        members, states = self.chart.trace(places)
        return Update(self.gold_actions(members), self.chart.last_actions(members, states))
