"""Rules of learning: when a chosen candidate is accepted, and when the weights are changed."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.guided.chart import Actions
from structperc.guided.lesson import Lesson, Update
from structperc.guided.states import first_best


class Verdict(NamedTuple):
    """The decision on the chosen candidates (A,) of A sentences, and the update that follows from it."""

    accepted: Tensor  # (A,) bool; the queues of the other sentences are made anew
    corrected: Tensor  # (A,) bool, which make an update
    left: Tensor  # (A,) bool, which end the visit of their sentence
    update: Update  # of all of them


class Rule(ABC):
    """Base of the rules that decide about chosen candidates: rule(lesson, places (A,)) -> Verdict."""

    @abstractmethod
    def __call__(self, lesson: Lesson, places: Tensor) -> Verdict:
        """Judge the chosen candidates, one of each of A sentences."""


class Aggressive(Rule):
    """Accept nothing but gold (Algorithm 2): else update, make the queue anew and choose again.

    A top hypothesis is gold if it gives all tokens of its span gold's labels. If not, the features of gold's last
    action are promoted and those of the top hypothesis's last action demoted. All accepted spans thus have the gold
    hypothesis on top; their V stay as they were when they were accepted.

    With a margin (Krauth & Mézard 1987) a top hypothesis that is gold counts as an error, too, as long as
    V(gold) <= V(rival) + margin, where the rival is the best hypothesis on the same span, with the present weights,
    among those with another label in the last action. Such an update moves this gap by the squared norm of the
    difference of the two actions' features.

    Args:
        margin: in units of the score; 0 for none.
        limit: a sentence is left after `limit` updates per token of it, as not all data can be separated.

    Raises:
        InputError: margin is negative, or limit < 1.
    """

    def __init__(self, margin: float = 0.0, limit: int = 10) -> None:
        if not margin >= 0:
            raise InputError(f"Aggressive: margin must be >= 0, got {margin}")
        if limit < 1:
            raise InputError(f"Aggressive: limit must be >= 1 update per token, got {limit}")
        self.margin, self.limit = margin, limit

    def __call__(self, lesson: Lesson, places: Tensor) -> Verdict:
        """Accept what is gold."""
        wrong = lesson.held[places] != 0
        update = lesson.last_difference(places)
        if self.margin:
            gap, others = _rivals(lesson, places)
            close = ~wrong & (gap <= self.margin)
            update = update._replace(rival=_choose(close, others, update.rival))
            wrong = wrong | close
        sentences = lesson.chart.sentence(places)
        spent = lesson.updates[sentences] + 1 >= self.limit * lesson.chart.lengths[sentences]
        return Verdict(~wrong, wrong, wrong & spent, Update(*(_select(actions, wrong) for actions in update)))


class EarlyUpdate(Rule):
    """Accept what is chosen, right or wrong, as long as some state holds the gold hypothesis (not aggressive).

    Collins & Roark 2004: when no state of the chosen candidate holds it any more, or the sentence is complete and
    it is not on top, the features of all actions of the gold hypothesis on this span are promoted, those of the top
    hypothesis demoted, and the sentence is left. Other spans of the sentence are not compared.
    """

    def __call__(self, lesson: Lesson, places: Tensor) -> Verdict:
        """Accept all."""
        held = lesson.held[places]
        lost = (held < 0) | (lesson.chart.complete(places) & (held > 0))
        return Verdict(torch.ones_like(lost), lost, lost, lesson.whole_difference(places[lost]))


def _rivals(lesson: Lesson, places: Tensor) -> tuple[Tensor, Actions]:
    """V(gold) - V(rival) (A,) of spans whose contexts have gold on top, and the last actions of the rivals."""
    chart, gold = lesson.chart, lesson.gold[places]
    found = chart.hypotheses(places)
    own = found.owner.diff(prepend=found.owner.new_tensor([-1])) > 0  # the first combination is that of the top states
    others = torch.arange(found.V.shape[1], device=gold.device) != gold[found.owner].unsqueeze(1)
    V = found.V.where(others, -torch.inf)
    highest, row = first_best(V.amax(1), found.owner, len(places))
    windows = chart.windows(places, found.left[row], found.right[row])
    gap = found.V[own].gather(1, gold.unsqueeze(1)).squeeze(1) - highest
    return gap, Actions(chart.token[places], V[row].max(1).indices, windows)


def _select(actions: Actions, mask: Tensor) -> Actions:
    return Actions(*(column[mask] for column in actions))


def _choose(mask: Tensor, first: Actions, second: Actions) -> Actions:
    """First where mask (A,), else second."""
    tokens, labels, windows = zip(first, second, strict=True)
    return Actions(tokens[0], labels[0].where(mask, labels[1]), windows[0].where(mask.unsqueeze(1), windows[1]))
