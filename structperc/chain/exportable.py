"""Viterbi in tensor operations alone, for torch.export: any number of sequences and of tokens, one graph.

`viterbi` follows its labels on the host, which no exported program can. Here both loops over tokens are scans: one
node of the graph each, however long sequences are.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from structperc.chain.recursion import every_edge, full_precision, live
from structperc.structures import Lattice

Rows = tuple[Tensor, ...]


class Halves(NamedTuple):
    """Each sequence read from both ends at the same time, S = T // 2 + 1 steps; they meet at token length // 2.

    Directions: 0 from the first token on, 1 from the last one back. What lies after the meeting is read and not used.
    """

    tokens: Tensor  # (S, 2, B) read at each step
    edges: Tensor  # (S + 1, 2, B) whose edge joins a token with the one a step before
    stops: Tensor  # (2, B) the step that reads the token where the halves meet


def exportable_viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return scores (B,) and labels (B, T) int64, 0 in the padding, of a lattice with T >= 1, without gradients.

    They equal those of `viterbi` bit for bit: ties are decided as there, scores are -inf with labels 0 where no
    labelling is legal, and 0 where there is no token. Outside of exported programs `viterbi` is the faster one.
    """
    lattice = Lattice(full_precision(lattice.unary.detach()), full_precision(lattice.edge.detach()), lattice.lengths)
    halves = _halves(lattice)
    row = torch.arange(lattice.unary.shape[0], device=lattice.unary.device)
    own = lattice.unary[row, halves.tokens]  # (S, 2, B, L)
    arriving = _arriving(own, lattice, halves)
    states, (near, far) = arriving + own, halves.stops
    scores, middle = (arriving[near, 0, row] + states[far, 1, row]).max(1)
    labels = _unpacked(_traced(middle, states, lattice, halves), lattice, halves)
    labels = torch.where(live(lattice) & (scores > -torch.inf).unsqueeze(1), labels, 0)
    return torch.where(lattice.lengths > 0, scores, 0), labels


def _halves(lattice: Lattice) -> Halves:
    (_, T, _), lengths = lattice.unary.shape, lattice.lengths
    step = torch.arange(T // 2 + 2, device=lengths.device).view(-1, 1, 1)
    ahead = step.expand(-1, 1, lengths.shape[0])
    tokens = torch.cat([ahead, lengths - 1 - step], 1)
    edges = torch.cat([ahead, lengths - step], 1)
    stops = torch.stack([lengths // 2, (lengths - 1).clamp(min=0) // 2])
    return Halves(tokens[:-1].clamp(0, T - 1), edges.clamp(0, T - 1), stops)


def _arriving(own: Tensor, lattice: Lattice, halves: Halves) -> Tensor:
    """Unary scores (S, 2, B, L) -> (S, 2, B, L), the best score of the steps before each label; 0 at the first."""
    table, row = every_edge(lattice), torch.arange(own.shape[2], device=own.device)

    def step(state: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        first, token, unary = here
        ahead, back = table[row, token]  # (B, L, L), label before and label after in the text
        arriving = (state.unsqueeze(3) + torch.stack([ahead, back.mT])).amax(2)
        arriving = torch.where(first, 0, arriving)
        return arriving + unary, arriving

    first = torch.arange(own.shape[0], device=own.device).view(-1, 1, 1, 1) == 0
    return _scan(step, torch.zeros_like(own[0]), (first, halves.edges[:-1], own))


def _traced(middle: Tensor, states: Tensor, lattice: Lattice, halves: Halves) -> Tensor:
    """Labels (B,) where the halves meet -> (S, 2, B), from there outwards; after the meeting the same labels."""
    table, row = every_edge(lattice), torch.arange(middle.shape[0], device=middle.device)

    def step(label: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        known, token, state = here
        ahead, back = table[row, token[0], :, label[0]], table[row, token[1], label[1]]
        label = torch.where(known, label, (state + torch.stack([ahead, back])).argmax(2))
        return label, label.clone()  # a scan hands out no tensor twice

    known = torch.arange(states.shape[0], device=states.device).view(-1, 1, 1) >= halves.stops
    outwards = tuple(rows.flip(0) for rows in (known, halves.edges[1:], states))
    return _scan(step, middle.expand(2, -1).clone(), outwards).flip(0)


def _unpacked(labels: Tensor, lattice: Lattice, halves: Halves) -> Tensor:
    """(S, 2, B) -> (B, T); anything in the padding."""
    B, T, _ = lattice.unary.shape
    token, lengths = torch.arange(T, device=labels.device), lattice.lengths.unsqueeze(1)
    far = token > halves.stops[0].unsqueeze(1)
    step = torch.where(far, lengths - 1 - token, token).clamp(0, T // 2)
    return labels[step, far.long(), torch.arange(B, device=labels.device).unsqueeze(1)]


def _scan(step: Callable[[Tensor, Rows], tuple[Tensor, Tensor]], carry: Tensor, inputs: Rows) -> Tensor:
    """What the steps put out, stacked; each gets what the one before carries on, and its row of the inputs.

    While a program is exported this is torch's own scan: a loop would be unrolled, for one T. Elsewhere that would
    be compiled anew for every shape.
    """
    if torch.compiler.is_exporting():
        from torch._higher_order_ops.scan import scan  # a prototype: needed by those alone who export

        return scan(step, carry, inputs)[1]
    outputs = []
    for here in zip(*inputs, strict=True):
        carry, output = step(carry, here)
        outputs.append(output)
    return torch.stack(outputs)


class ExportableViterbi(nn.Module):
    """`exportable_viterbi` as a module of tensors, to be exported by itself or called after a scorer."""

    def forward(self, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (B,), labels (B, T) from unary (B, T, L), edge (B, T, L, L) or (1, 1, L, L), lengths (B,)."""
        return exportable_viterbi(Lattice(unary, edge, lengths))
