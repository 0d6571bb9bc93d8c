"""Viterbi in tensor operations: no copy to the host, and one graph of any length for exporters."""

import torch
from torch import Tensor

from structperc.ops.tensors.paths import path_score
from structperc.ops.tensors.scans import Rows, any_invalid, as_long_as, edges_into, levelled, scan
from structperc.structures import real_tokens


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The contract is that of `structperc.ops.viterbi`."""
    unary, edge = unary.detach(), edge.detach()
    steps, lengths = as_long_as(lengths, unary)
    onward, legal = best_onward(unary, edge, lengths)
    invalid, labels = any_invalid(unary, edge, lengths), _follow(onward, edge, steps, lengths)
    labels = torch.where(real_tokens(lengths, unary.shape[1]) & (legal & ~invalid).unsqueeze(1), labels, 0)
    rows = torch.arange(unary.shape[0], device=unary.device)
    scores = path_score(unary, edge, lengths, labels, rows)
    return torch.where(legal, scores, -torch.inf).masked_fill(invalid, torch.nan), labels


def best_onward(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """-> (B, T, L) best score from each label on, scores levelled; (B,) whether any labelling is legal.

    What it says of the padding means nothing.
    """
    B, T, L = unary.shape
    own = levelled(unary)
    steps = torch.arange(T, device=unary.device)
    ahead = steps + 1 < lengths.unsqueeze(1)  # (B, T), a real token follows

    def step(after: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        unary, edge, follows = here  # edge (B or 1, L, L), out of this token
        best = (edge + after.unsqueeze(1)).amax(2)
        onward = unary + torch.where(follows.unsqueeze(1), best, 0)
        return onward, onward.clone()  # a scan hands out no tensor twice

    out_of = edges_into(edge, T)[(steps + 1).clamp(max=T - 1)]
    backwards = tuple(x.flip(0) for x in (own.transpose(0, 1), out_of, ahead.T))
    onward = scan(step, own.new_zeros(B, L), backwards).flip(0).transpose(0, 1)
    if not T:
        return own, lengths == 0
    return onward, (onward[:, 0].amax(1) > -torch.inf) | (lengths == 0)


def _follow(onward: Tensor, edge: Tensor, steps: Tensor, lengths: Tensor) -> Tensor:
    """Best scores from each label on -> (B, T), the best label after each one, the lowest among equals."""
    B, T, _ = onward.shape

    def step(label: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        token, onward, edge = here
        edge = edge.expand(B, -1, -1)
        into = edge.gather(1, label.view(-1, 1, 1).expand(-1, 1, edge.shape[2])).squeeze(1)
        label = (torch.where(token > 0, into, 0) + onward).argmax(1)
        return label, label.clone()

    first = torch.zeros(B, dtype=torch.int64, device=onward.device)
    return scan(step, first, (steps, onward.transpose(0, 1), edges_into(edge, T))).T
