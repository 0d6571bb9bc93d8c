"""The steps in which a guided tagger decided the tokens of a sentence."""

from collections.abc import Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """A token and how it got its label.

    Tokens are taken one by one, each for the label of the hypothesis that leads at the time. In the end another
    hypothesis may win, where the beam keeps more than one: label, U, left and right are those of its action.
    """

    number: int  # from 1
    token: int  # its place in the sentence, from 0
    label: str
    first: str  # label for which the token was taken
    U: float  # score of the action that gave `label`
    left: list[str]  # labels of the tokens before, at most two and as in the text, that the action knew
    right: list[str]  # the same of the tokens after


class Decided(NamedTuple):
    """How a sentence was decided: its words, gold where it is known, and the steps in their order."""

    row: int  # which sequence of the corpus, from 0
    place: str  # "file:line" of its first token
    words: Sequence[str]
    gold: Sequence[str] | None  # labels; None when they are not known
    steps: list[Step]  # of all tokens, in the order of their decisions

    @property
    def score(self) -> float:
        """The score V of the labelling: the sum of its actions' scores."""
        return sum(step.U for step in self.steps)

    @property
    def in_text(self) -> list[Step]:
        """The steps in the order of the tokens in the text."""
        return sorted(self.steps, key=lambda step: step.token)

    def missed(self, step: Step) -> str | None:
        """Return gold's label if the step gave another one; None if it is the same or gold is not known."""
        return None if self.gold is None or step.label == self.gold[step.token] else self.gold[step.token]
