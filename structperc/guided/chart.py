"""Accepted spans P and candidate spans Q of a mini-batch of sentences."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from structperc.guided.context import UNKNOWN
from structperc.guided.queue import Queue
from structperc.guided.states import OPEN, best_states, joined
from structperc.structures import real_tokens

Order = Literal["easiest", "left-to-right"]
REACH = 2  # labels of an interface

# tokens (N,) of candidates, their combinations of contexts by candidate (M,) and window (M, 4) -> U (M, L)
ActionScores = Callable[[Tensor, Tensor, Tensor], Tensor]


class Actions(NamedTuple):
    """Labels that tokens are given, and the labels of their neighbours that are known then."""

    tokens: Tensor  # (n,) int64, numbers among the real tokens of the batch
    labels: Tensor  # (n,) int64
    windows: Tensor  # (n, 4) int64 at the offsets -2, -1, 1, 2; UNKNOWN where not decided


class Hypotheses(NamedTuple):
    """All hypotheses of N candidates: M combinations of a left and a right context state, each with all labels."""

    owner: Tensor  # (M,) int64, the candidate, ascending
    left: Tensor  # (M,) int64, state
    right: Tensor  # (M,) int64, state
    interfaces: Tensor  # (M, 4), OPEN where an action puts its label
    U: Tensor  # (M, L) scores of the actions
    V: Tensor  # (M, L) scores of the hypotheses, relative to the best ones of the contexts


class Chart:
    """Spans of S sentences, each with its best B states (Shen et al. 2007, §2.2).

    A span has the place of the token that was, or would be, labelled last: accepting a candidate changes what is in
    the queue and which span ends where, nothing else. Its contexts are the spans next to that token. Token t of
    sentence s has the place s * width + 2 + t; the last place of all stands for no span, with a single state.

    V is kept relative to the best hypothesis of the span: only differences between its states matter to any choice,
    and so they do not drown in the score of a long text.

    Args:
        lengths: (S,) of the sentences.
        T: to how many tokens they are padded.
        beam: B.
        order: with "left-to-right" only the token after the accepted span is a candidate.
        scores: U of actions.
        like: dtype and device of the scores.
    """

    def __init__(self, lengths: Tensor, T: int, beam: int, order: Order, scores: ActionScores, like: Tensor) -> None:
        self.lengths, self.T, self.beam, self.order, self.scores = lengths, T, beam, order, scores
        self.queue = Queue(len(lengths), T + 2 * REACH, like)
        self.width = self.queue.width
        self.none = len(lengths) * self.width
        self._number_tokens(lengths)
        self.spans = lengths.new_full((self.none + 1,), self.none)  # which span begins or ends at a place
        self.ends = lengths.new_zeros(self.none + 1, 2)  # first and last place of a span
        self.contexts = lengths.new_full((self.none + 1, 2), self.none)  # spans left and right of the last token
        self.interfaces = lengths.new_full((self.none + 1, beam, 4), UNKNOWN)
        self.back = lengths.new_zeros(self.none + 1, beam, 3)  # label, left state, right state of the last action
        self.U = like.new_zeros(self.none + 1, beam)
        self.V = like.new_full((self.none + 1, beam), -torch.inf)
        self.V[self.none, 0] = 0

    def _number_tokens(self, lengths: Tensor) -> None:
        real = torch.nn.functional.pad(real_tokens(lengths, self.width - REACH), (REACH, 0))
        self.real = torch.nn.functional.pad(real.flatten(), (0, 1))  # (places + 1,)
        self.token = self.real.cumsum(0) - 1  # at real places, number among the tokens
        self.places = self.real.nonzero()[:, 0]  # (n,) of the tokens

    def sentence(self, places: Tensor) -> Tensor:
        """Return the sentence that each place belongs to."""
        return places // self.width

    def first_candidates(self) -> Tensor:
        """Return the places of the candidates when nothing is accepted yet."""
        return self.places if self.order == "easiest" else self.places[~self.real[self.places - 1]]

    def next_candidates(self, accepted: Tensor) -> Tensor:
        """Return the places of the candidates next to spans that have been accepted."""
        before, after = self.ends[accepted].unbind(1)
        near = torch.stack([before - 1, after + 1], 1) if self.order == "easiest" else after + 1
        return near[self.real[near]]

    def generate(self, places: Tensor) -> None:
        """Make or renew the candidates at places (N,) with all that is accepted next to them."""
        found = self.hypotheses(places)
        V, row, label = best_states(found.V, found.interfaces, found.owner, len(places), self.beam)
        chosen = found.interfaces[row]
        self.interfaces[places] = label.unsqueeze(2).where(chosen == OPEN, chosen)
        self.back[places] = torch.stack([label, found.left[row], found.right[row]], 2)
        self.U[places] = U = found.U[row, label]
        self.V[places] = V - V[:, :1]
        self.queue.put(places, U[:, 0])

    def hypotheses(self, places: Tensor) -> Hypotheses:
        """Return all hypotheses of the candidates at places (N,), and note their contexts and where they end."""
        beside = torch.stack([self.spans[places - 1], self.spans[places + 1]], 1)
        self.contexts[places] = beside
        outer = torch.stack([self.ends[beside[:, 0], 0], self.ends[beside[:, 1], 1]], 1)
        self.ends[places] = outer.where(beside != self.none, places.unsqueeze(1))
        V_left, V_right = self.V[beside].unbind(1)
        V = V_left.unsqueeze(2) + V_right.unsqueeze(1)
        owner, left, right = V.isfinite().nonzero().unbind(1)
        before, after = self.interfaces[beside[owner, 0], left], self.interfaces[beside[owner, 1], right]
        U = self.scores(self.token[places], owner, torch.cat([before[:, 2:], after[:, :2]], 1))
        return Hypotheses(owner, left, right, joined(before, OPEN, after), U, U + V[owner, left, right].unsqueeze(1))

    def accept(self, places: Tensor) -> None:
        """Turn candidates, at most one of each sentence, into spans of P that take the place of their contexts."""
        self.spans[self.ends[places]] = places.unsqueeze(1)
        self.queue.put(places, -torch.inf)

    def complete(self, places: Tensor) -> Tensor:
        """Tell which of the spans (n,) are whole sentences, (n,) bool."""
        first, last = self.ends[places].unbind(1)
        return last - first + 1 == self.lengths[self.sentence(places)]

    def last_actions(self, places: Tensor, states: Tensor) -> Actions:
        """Return the last actions of the best hypotheses of states (n,) of spans (n,)."""
        label, left, right = self.back[places, states].unbind(1)
        return Actions(self.token[places], label, self.windows(places, left, right))

    def windows(self, places: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """Return the labels (n, 4) next to the last actions of spans (n,) in the context states left and right (n,)."""
        before, after = self.contexts[places].unbind(1)
        return torch.cat([self.interfaces[before, left, 2:], self.interfaces[after, right, :2]], 1)

    def trace(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the places (m,) of all tokens of spans (n,), and the states (m,) along their best hypotheses."""
        states = torch.zeros_like(self.spans)
        found = [places]
        while len(found[-1]):
            inner = self.contexts[found[-1]]
            states[inner] = self.back[found[-1], states[found[-1]], 1:]
            found.append(inner[inner != self.none])
        members = torch.cat(found)
        return members, states[members]
