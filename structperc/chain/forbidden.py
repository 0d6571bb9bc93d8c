"""Label sequences without forbidden spans, as paths of states that remember where a segment began.

The states are those of `data.forbidden_spans`.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.constraints import allow
from structperc.chain.decoders import Decoder
from structperc.chain.kbest import KBest, kbest
from structperc.chain.lattices import token_mask, validate_lattice
from structperc.chain.segment_scores import segments_of
from structperc.chain.viterbi import viterbi
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice, SpanStates


def forbid(lattice: Lattice, states: SpanStates) -> Lattice:
    """Return the scores of states in place of labels: those of all label sequences without forbidden spans.

    Each of these label sequences is one sequence of states, with its score. `states.labels` of a result of `viterbi`,
    `kbest` or `sample` are its labels; sums over the states of a label are its marginals. In a lattice with scores of
    segments, labels remain, which are the first states, and forbidden segments get the score -inf. `states`: the M
    states of these sequences, such as `data.forbidden_spans.segment_states` returns. Returns the lattice of M states:
    unary (B, T, M), edge (B, T, M, M); or of L labels, if there are scores of segments.

    Example:
        >>> import torch
        >>> from structperc.chain import forbid, viterbi
        >>> from structperc.structures import Lattice, SpanStates
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([1]))
        >>> possible = torch.tensor([[[True, False]]])  # the only token must not be a segment
        >>> states = SpanStates(torch.tensor([0, 1]), possible, torch.ones(1, 1, 2, 2).bool())
        >>> viterbi(forbid(lattice, states))
        (tensor([0.]), tensor([[0]]))
    """
    segments = lattice.segments
    if segments is not None:
        scores = segments.scores.masked_fill(~_segments_left(lattice, states), -torch.inf)
        return lattice._replace(segments=segments._replace(scores=scores))
    lattice, numbers = validate_lattice(lattice), states.labels
    unary = lattice.unary[:, :, numbers].masked_fill(~states.possible, -torch.inf)
    edge = lattice.edge[:, :, numbers][:, :, :, numbers].masked_fill(~states.follows, -torch.inf)
    return Lattice(unary, edge, lattice.lengths)


def _segments_left(lattice: Lattice, states: SpanStates) -> Tensor:
    """Return a mask (B, T, D, C) of the segments that some sequence of states contains."""
    scores, table = segments_of(lattice)
    (D, C), T, outside = scores.shape[2:], lattice.unary.shape[1], table[-1, 0]
    one, first, middle, last = (states.labels == label.unsqueeze(1) for label in table[:C].unbind(1))  # (C, M)
    into, out = states.follows[..., outside, :], states.follows[..., outside].roll(-1, 1)  # from and to O
    steps = torch.arange(T, device=into.device)
    into = states.possible & (into | (steps == 0).unsqueeze(1))
    ends = steps == lattice.lengths.to(steps.device).unsqueeze(1) - 1
    out = states.possible & (out | ends.unsqueeze(2)) & token_mask(lattice).unsqueeze(2)
    found = [((into & out).unsqueeze(2) & one).any(3)]
    run = into.unsqueeze(2) & first  # (B, T, C, M), states of the tokens d after the first ones
    for d in range(1, D):
        later = min(d, T)
        moves, left = (pad(x[:, later:], (0, 0) * (x.dim() - 2) + (0, later)) for x in (states.follows, out))
        run = (run.float() @ moves.float()) > 0
        found.append((run & last & left.unsqueeze(2)).any(3))
        run = run & middle & pad(states.possible[:, later:], (0, 0, 0, later)).unsqueeze(2)
    return torch.stack(found, 2)


def state_path(labels: Tensor, lengths: Tensor, states: SpanStates) -> Tensor:
    """Return the states (B, T) int64 of label sequences without forbidden spans.

    `labels`: (B, T) int64, any label in the padding. `lengths`: (B,) int64, number of tokens of each sequence.
    `states`: the M states of these sequences.
    """
    same = labels.unsqueeze(2) == states.labels
    M = len(states.labels)
    zeros = Lattice(torch.zeros(same.shape, device=same.device), torch.zeros(1, 1, M, M, device=same.device), lengths)
    own = states._replace(labels=torch.arange(M, device=same.device))
    return viterbi(forbid(allow(zeros, same), own))[1]


class ForbidSpans(Decoder):
    """Decoder that finds the best label sequences without forbidden spans, with the scores of another one.

    Args:
        decoder: a `KBest` or `LabelBias`.
        states: the states of the sequences of one mini-batch.

    Raises:
        InputError: another decoder, which needs all label sequences.
    """

    def __init__(self, decoder: Decoder, states: SpanStates) -> None:
        super().__init__()
        if not isinstance(decoder, KBest):
            name = type(decoder).__name__
            raise InputError(f"{name} does not support forbidden spans; use another decoder (tag --bias none)")
        self.decoder, self.states, self.k = decoder, states, decoder.k

    def forward(self, lattice: Lattice) -> Candidates:
        """Return the k best label sequences without forbidden spans, best first."""
        found = kbest(forbid(self.decoder.scores(lattice), self.states), self.k)
        return found._replace(labels=self.states.labels[found.labels])

    def best(self, lattice: Lattice) -> Tensor:
        """Return the best labels (B, T) int64 without forbidden spans."""
        return self.states.labels[viterbi(forbid(self.decoder.scores(lattice), self.states))[1]]
