"""The best labelling of each sequence (Viterbi 1967)."""

import torch
from torch import Tensor, nn

from structperc.chain.recursion import (
    Walk,
    edges_at,
    full_precision,
    halves,
    pack_edge,
    pack_unary,
    recurse,
)
from structperc.structures import Lattice


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """-> scores (B,), labels (B, T) int64 with 0 in the padding; no gradients, `path_score` has them.

    The two halves of a sequence are searched at the same time, each from its end, and joined in the middle.
    No back-pointers: the predecessor is the argmax over L candidates, recomputed at trace-back. Ties go to the
    lowest label, decided in the middle first and then outwards. A sequence without any legal labelling scores
    -inf and gets labels 0; an empty sequence scores 0.
    """
    B, T, _ = lattice.unary.shape
    scores = full_precision(lattice.unary).new_zeros(B)
    labels = torch.zeros(B, T, dtype=torch.int64, device=scores.device)
    walk = halves(lattice)
    if walk.sizes:
        unary, edge = pack_unary(lattice, walk), pack_edge(lattice, walk)
        states = recurse(unary, edge, walk.sizes, torch.amax).add_(unary)
        best, packed = _join(lattice, walk, states)
        scores[walk.order[: len(best)]] = best
        _trace(packed, states, edge, walk.sizes)
        labels.view(-1)[walk.tokens] = packed
    return scores, labels.where((scores > -torch.inf).unsqueeze(1), 0)


def _join(lattice: Lattice, walk: Walk, states: Tensor) -> tuple[Tensor, Tensor]:
    """-> scores of the sequences that are not empty, packed labels (2, N) set where each half ends."""
    rows = walk.order[: walk.sizes[0]]
    lengths = lattice.lengths.to(rows.device)[rows]
    near, far = walk.places((lengths - 1) // 2), walk.places((lengths // 2 - 1).clamp(min=0))
    single = (lengths == 1).view(-1, 1, 1)
    middle = rows * lattice.unary.shape[1] + (lengths + 1) // 2
    bridge = edges_at(lattice, middle.where(lengths > 1, 0)) + states[:, 1, far].t().unsqueeze(1)
    joined = states[:, 0, near].t().unsqueeze(2) + bridge.where(~single, 0)
    scores, pair = joined.flatten(1).max(1)
    head, tail = pair // states.shape[0], pair % states.shape[0]
    packed = torch.zeros_like(walk.tokens)
    packed[0, near] = head
    packed[1, near] = tail.where(lengths % 2 == 0, head)  # of an odd length, both halves read the middle token
    return scores, packed


def _trace(packed: Tensor, states: Tensor, edge: Tensor, sizes: list[int]) -> None:
    """Fill packed labels (2, N), given those at the inner ends, from there outwards."""
    L, D, N = states.shape
    table = edge.reshape(-1, L)
    rows = torch.arange(0, len(table), L, device=table.device).view(D, -1).expand(D, N).split(sizes, 1)
    labels, before = packed.split(sizes, 1), states.permute(1, 2, 0).contiguous().split(sizes, 1)
    for k in range(len(sizes) - 1, 0, -1):
        n = sizes[k]
        into = table.index_select(0, (rows[k] + labels[k]).flatten()).view(D, n, L)
        torch.argmax(into.add_(before[k - 1][:, :n]), 2, out=labels[k - 1][:, :n])


class Viterbi(nn.Module):
    """`viterbi` as a module."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """-> scores (B,), labels (B, T)."""
        return viterbi(lattice)
