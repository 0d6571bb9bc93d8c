"""Restrictions: maps from a lattice to a lattice with a score of -inf for each label sequence that is not possible.

All searches, sums and criteria respect them. Gradients reach all other scores.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structperc.chain.confidence import token_confidence
from structperc.chain.decoders import Decoder
from structperc.chain.kbest import KBest
from structperc.chain.lattices import full_precision, narrow_edges, token_mask, validate_lattice
from structperc.chain.marginals import marginals
from structperc.chain.minimum_risk import MinimumSegmentRisk
from structperc.chain.segment_scores import segments_of
from structperc.chain.viterbi import viterbi
from structperc.data.forbidden_spans import RepeatedLabels, segment_states
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import Span
from structperc.errors import InputError
from structperc.structures import Lattice


def allow(lattice: Lattice, mask: Tensor) -> Lattice:
    """Forbid all labels outside a mask, such as partial labels or the entries of a tag dictionary.

    `mask`: bool, True at allowed labels; of any shape that broadcasts to (B, T, L). Returns the lattice with unary
    scores of -inf at all other labels.

    Example:
        >>> import torch
        >>> from structperc.chain import allow, viterbi
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> allowed = torch.tensor([[[True, False], [True, True]]])  # the first label must be 0
        >>> viterbi(allow(lattice, allowed))
        (tensor([2.]), tensor([[0, 0]]))
    """
    return lattice._replace(unary=lattice.unary.masked_fill(~mask, -torch.inf))


def constrain(
    lattice: Lattice,
    start: Tensor,
    transition: Tensor,
    end: Tensor,
    first: Tensor | None = None,
    last: Tensor | None = None,
) -> Lattice:
    """Forbid first labels, pairs of labels and last labels, for example those that a tag scheme excludes.

    A stationary transition matrix stays one matrix. Half precision becomes float32. Returns the lattice with scores of
    -inf for all that is forbidden.

    Args:
        start: (L,) bool, True at labels that may begin a sentence.
        transition: (L, L) bool, True at pairs (label before, label) that may follow one another.
        end: (L,) bool, True at labels that may end a sentence.
        first: (B, T) bool, True at the first tokens of sentences; by default, each sequence is one sentence.
        last: (B, T) bool, True at the last tokens of sentences.
    """
    if first is None or last is None:
        steps = torch.arange(lattice.unary.shape[1], device=lattice.unary.device)
        first = steps == 0 if first is None else first
        last = steps == lattice.lengths.to(steps.device).unsqueeze(1) - 1 if last is None else last
    barred = (first.unsqueeze(-1) & ~start) | (last.unsqueeze(-1) & ~end)
    unary, edge = full_precision(lattice.unary), full_precision(narrow_edges(lattice).edge)
    unary = unary.masked_fill(barred, -torch.inf)
    return lattice._replace(unary=unary, edge=edge.masked_fill(~transition, -torch.inf))


class Constraints(nn.Module):
    """Module that forbids what the tag scheme of a label set excludes; see `constrain`.

    The masks move with the module to a device, and are not part of its state.

    Attributes:
        start: (L,) bool, labels that may begin a sentence.
        transition: (L, L) bool, pairs (label before, label) that may follow one another.
        end: (L,) bool, labels that may end a sentence.
        unconstrained: True if the scheme is "none", so that nothing is forbidden.

    Example:
        >>> import torch
        >>> from structperc.chain import Constraints
        >>> from structperc.data import LabelSet
        >>> constraints = Constraints()
        >>> constraints.allocate(LabelSet(("O", "B-PER", "I-PER"), "IOB2"))
        >>> constraints.start
        tensor([ True,  True, False])
    """

    start: Tensor
    transition: Tensor
    end: Tensor
    unconstrained = False  # without a tag scheme

    def allocate(self, labels: LabelSet) -> None:
        """Create the masks of the labels that may begin a sentence, end it, and follow one another."""
        for name, mask in (("start", labels.start), ("transition", labels.transition), ("end", labels.end)):
            self.register_buffer(name, mask, persistent=False)
        self.unconstrained = labels.scheme == "none"

    def forward(self, lattice: Lattice, first: Tensor | None = None, last: Tensor | None = None) -> Lattice:
        """Return the lattice with -inf for all that the tag scheme forbids; see `constrain`."""
        if self.unconstrained:
            return lattice._replace(
                unary=full_precision(lattice.unary), edge=full_precision(narrow_edges(lattice).edge)
            )
        return constrain(lattice, self.start, self.transition, self.end, first, last)


class Restriction(NamedTuple):
    """The label sequences of a mini-batch that are possible: a map of a lattice to a lattice.

    To exclude spans, labels are not enough: the restricted lattice has the scores of M states in place of labels, which
    remember where a segment began (`data.forbidden_spans`). Each possible label sequence is one sequence of states,
    with its score. In a lattice with scores of segments, labels remain, and impossible segments get the score -inf.
    Without fields, all label sequences are possible.

    Example:
        >>> import torch
        >>> from structperc.chain import Restriction, viterbi
        >>> from structperc.data import LabelSet, Span
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 2.0, 0.0]]]), torch.zeros(1, 1, 3, 3), torch.tensor([1]))
        >>> labels, first = LabelSet(("O", "B-PER", "I-PER")), torch.tensor([[True]])
        >>> restriction = Restriction().without([[Span("PER", 0, 1)]], first, lattice.lengths, labels, slots=1)
        >>> restriction.labels(viterbi(restriction(lattice))[1])
        tensor([[0]])
    """

    possible: Tensor | None = None  # (B, T, L) bool, labels that are possible; or (B, T, M), states; None: all labels
    numbers: Tensor | None = None  # (M,) int64, label of each state, the first L of which are labels; None: labels
    follows: Tensor | None = None  # (B, T, M, M) bool, pairs (state before, state) at each token but the first

    def without(
        self, spans: Sequence[Iterable[Span]], first: Tensor, lengths: Tensor, labels: LabelSet, slots: int
    ) -> "Restriction":
        """Exclude spans from a restriction to labels.

        Args:
            spans: for each of the B sequences those that are impossible, in its tokens.
            first: (B, T) bool, first tokens of sentences.
            lengths: (B,) int64, number of tokens of each sequence.
            labels: the label set.
            slots: number of slots, see `data.forbidden_spans.slots_needed`.
        """
        (B, T), rows = first.shape, zip(spans, first.cpu().numpy(), lengths.tolist(), strict=True)
        states = [segment_states(own, starts[:length], labels, slots) for own, starts, length in rows]
        M = len(states[0].labels)
        possible, follows = np.zeros((B, T, M), bool), np.zeros((B, T, M, M), bool)
        for row, (_, own, steps) in enumerate(states):
            possible[row, : len(own)], follows[row, : len(steps)] = own, steps
        both, numbers, pairs = (torch.from_numpy(x).to(first.device) for x in (possible, states[0].labels, follows))
        return Restriction(both if self.possible is None else both & self.possible[:, :, numbers], numbers, pairs)

    def __call__(self, lattice: Lattice) -> Lattice:
        """Return the lattice of labels or states, with -inf for all that is impossible."""
        if self.possible is None:
            return lattice
        if self.numbers is None or self.follows is None:
            return allow(lattice, self.possible)
        segments = lattice.segments
        if segments is not None:
            counts = lattice.unary.new_zeros(lattice.unary.shape)
            lattice = allow(lattice, counts.index_add(2, self.numbers, self.possible.to(counts)) > 0)
            left = _segments_left(lattice, self.possible, self.numbers, self.follows)
            return lattice._replace(segments=segments._replace(scores=segments.scores.masked_fill(~left, -torch.inf)))
        lattice, numbers = validate_lattice(lattice), self.numbers
        unary = lattice.unary[:, :, numbers].masked_fill(~self.possible, -torch.inf)
        edge = lattice.edge[:, :, numbers][:, :, :, numbers].masked_fill(~self.follows, -torch.inf)
        return Lattice(unary, edge, lattice.lengths)

    def take(self, places: Any) -> "Restriction":
        """Return the restriction of some sequences; `places` is an index of tensors (B, T, ...)."""
        possible, follows = (None if x is None else x[places] for x in (self.possible, self.follows))
        return Restriction(possible, self.numbers, follows)

    def labels(self, found: Tensor) -> Tensor:
        """Return the labels of a result of a search in the restricted lattice, of any shape."""
        return found if self.numbers is None else self.numbers[found]

    def states(self, lattice: Lattice, labels: Tensor) -> Tensor:
        """Return possible label sequences (B, T) int64 as sequences of states of the restricted lattice."""
        if self.numbers is None or lattice.segments is not None:
            return labels
        return viterbi(allow(lattice, labels.unsqueeze(2) == self.numbers))[1]

    def label_set(self, labels: LabelSet) -> LabelSet:
        """Return the labels of the states."""
        if self.numbers is None:
            return labels
        return RepeatedLabels(tuple(labels.names[number] for number in self.numbers.tolist()), labels.scheme)

    def probabilities(self, lattice: Lattice, labels: Tensor) -> Tensor:
        """Return the probabilities (B, T) of labels (B, T), given the restricted lattice."""
        if self.numbers is None or lattice.segments is not None:
            return token_confidence(lattice, labels)
        return (marginals(lattice) * (labels.unsqueeze(2) == self.numbers)).sum(2)

    def search(self, decoder: Decoder, lattice: Lattice) -> tuple[Decoder, Lattice]:
        """Return a decoder, and the restricted lattice in which it finds what another one finds in a lattice.

        Raises:
            InputError: a decoder that does not support the restriction, such as one that needs all label sequences.
        """
        if self.possible is None:
            return decoder, lattice
        if isinstance(decoder, KBest):
            return KBest(decoder.k), self(decoder.scores(lattice))
        if self.numbers is not None or isinstance(decoder, MinimumSegmentRisk):
            what = "allowed labels" if self.numbers is None else "forbidden spans"
            name = type(decoder).__name__
            raise InputError(f"{name} does not support {what}; use another decoder (tag --bias none)")
        return decoder, self(lattice)


def _segments_left(lattice: Lattice, possible: Tensor, numbers: Tensor, follows: Tensor) -> Tensor:
    """Return a mask (B, T, D, C) of the segments that some sequence of states contains."""
    scores, table = segments_of(lattice)
    (D, C), T, outside = scores.shape[2:], lattice.unary.shape[1], table[-1, 0]
    one, first, middle, last = (numbers == label.unsqueeze(1) for label in table[:C].unbind(1))  # (C, M)
    into, out = follows[..., outside, :], follows[..., outside].roll(-1, 1)  # from and to O
    steps = torch.arange(T, device=into.device)
    into = possible & (into | (steps == 0).unsqueeze(1))
    ends = steps == lattice.lengths.to(steps.device).unsqueeze(1) - 1
    out = possible & (out | ends.unsqueeze(2)) & token_mask(lattice).unsqueeze(2)
    found = [((into & out).unsqueeze(2) & one).any(3)]
    run = into.unsqueeze(2) & first  # (B, T, C, M), states of the tokens d after the first ones
    for d in range(1, D):
        later = min(d, T)
        moves, left = (pad(x[:, later:], (0, 0) * (x.dim() - 2) + (0, later)) for x in (follows, out))
        run = (run.float() @ moves.float()) > 0
        found.append((run & last & left.unsqueeze(2)).any(3))
        run = run & middle & pad(possible[:, later:], (0, 0, 0, later)).unsqueeze(2)
    return torch.stack(found, 2)
