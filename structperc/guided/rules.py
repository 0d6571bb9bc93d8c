"""Rules of learning: when a chosen candidate is accepted, and when the weights are changed."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from structperc.errors import InputError
from structperc.guided import compiled
from structperc.guided.arrays import Lessons


class Progress(NamedTuple):
    """What is counted while the sentences of a mini-batch are visited once."""

    updates: int
    decisions: int  # how often a candidate was chosen: accepted tokens, and the choices that were not accepted
    errors: int  # how often the top hypothesis of the chosen candidate was not gold


class Rule(ABC):
    """Base of the rules that learn: Algorithm 2 of Shen et al. 2007 as a compiled function of `Lessons`.

    The order of inference and the scores of actions are learned together, sentence by sentence: each sees the weights
    that the one before left.
    """

    @abstractmethod
    def learn(self, lessons: Lessons) -> Progress:
        """Visit the sentences once, and change the weights where the rule says so."""


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

    def learn(self, lessons: Lessons) -> Progress:
        """Visit the sentences once, and accept what is gold."""
        return Progress(*compiled.learn_aggressively(lessons, float(self.margin), int(self.limit)))


class EarlyUpdate(Rule):
    """Accept what is chosen, right or wrong, as long as some state holds the gold hypothesis (not aggressive).

    Collins & Roark 2004: when no state of the chosen candidate holds it any more, or the sentence is complete and
    it is not on top, the features of all actions of the gold hypothesis on this span are promoted, those of the top
    hypothesis demoted, and the sentence is left. Other spans of the sentence are not compared.
    """

    def learn(self, lessons: Lessons) -> Progress:
        """Visit the sentences once, and accept all."""
        return Progress(*compiled.learn_early(lessons))
