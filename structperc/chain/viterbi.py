"""The best labelling of each sequence (Viterbi 1967)."""

import torch
from torch import Tensor, nn

from structperc.chain.recursion import (
    Walk,
    full_precision,
    halves,
    pack_edges,
    pack_unary,
    recurse,
)
from structperc.structures import Lattice


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """-> scores (B,), labels (B, T) int64 with 0 in the padding; no gradients, use `path_score` for these.

    The two halves of a sequence are searched at the same time, each from its end, and joined in the middle. No
    back-pointers: the predecessor is the argmax over L candidates, recomputed at trace-back. Ties go to the lowest
    label, decided in the middle first and then outwards. A sequence without any legal labelling scores -inf and
    gets labels 0; an empty sequence scores 0.
    """
    B, T, _ = lattice.unary.shape
    path = halves(lattice)
    if not path.sizes:
        return full_precision(lattice.unary).new_zeros(B), lattice.lengths.new_zeros(B, T, dtype=torch.int64)
    unary, edges = pack_unary(lattice, path), pack_edges(lattice, path)
    states = recurse(unary, edges, path.sizes, torch.amax) + unary
    last = path.last()
    scores, ends = _join(lattice, states[:, last].t())
    packed = torch.zeros_like(path.row)
    rows = path.order[: path.sizes[0]]
    packed[last[rows]] = ends[rows]
    _trace(packed, states, edges, path)
    labels = torch.zeros(B * T, dtype=torch.int64, device=packed.device)
    labels[path.token] = packed
    return scores, labels.view(B, T).where(scores.isfinite().unsqueeze(1), 0)


def _join(lattice: Lattice, ends: Tensor) -> tuple[Tensor, Tensor]:
    """States (2B, L) at the inner ends of the halves -> scores (B,), labels (2B,) there."""
    B, _, L = lattice.unary.shape
    lengths = lattice.lengths.to(ends.device)
    head, tail = ends.split(B)
    middle = (lengths + 1).div(2, rounding_mode="floor").clamp(max=lattice.edge.shape[1] - 1)
    bridge = full_precision(lattice.edge[torch.arange(B, device=ends.device), middle]) + tail.unsqueeze(1)
    bridge = bridge.where((lengths > 1).view(-1, 1, 1), 0)
    scores, pair = (head.unsqueeze(2) + bridge).flatten(1).max(1)
    return scores.where(lengths > 0, 0), torch.cat([pair // L, pair % L])


def _trace(packed: Tensor, states: Tensor, edges: list[Tensor], path: Walk) -> None:
    """Fill packed labels (N,), given those of each row's last token, from the inner ends outwards."""
    labels, before = packed.split(path.sizes), states.split(path.sizes, 1)
    for k in range(len(path.sizes) - 1, 0, -1):
        into = edges[k].gather(1, labels[k].expand(len(states), 1, -1)).squeeze(1)
        n = path.sizes[k]
        torch.argmax(into + before[k - 1][:, :n], 0, out=labels[k - 1][:n])


class Viterbi(nn.Module):
    """`viterbi` as a module."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """-> scores (B,), labels (B, T)."""
        return viterbi(lattice)
