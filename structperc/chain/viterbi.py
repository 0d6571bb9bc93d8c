"""The best labelling of each sequence (Viterbi 1967)."""

import numpy as np
import torch
from torch import Tensor, nn

from structperc.chain.recursion import full_precision, pack_edge, pack_unary, recurse, walk
from structperc.structures import Lattice


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """-> scores (B,), labels (B, T) int64 with 0 in the padding; no gradients, `path_score` has them.

    Each sequence is searched from both ends at the same time, which halves the number of dependent steps; the
    two searches meet at token length // 2. No back-pointers: the predecessor is the argmax over L candidates,
    recomputed at trace-back. Ties go to the lowest label, decided in the middle first and then outwards.
    A sequence without any legal labelling scores -inf and gets labels 0; an empty sequence scores 0.
    """
    B, T, _ = lattice.unary.shape
    scores = full_precision(lattice.unary).new_zeros(B)
    labels = torch.zeros(B, T, dtype=torch.int64, device=scores.device)
    lengths = lattice.lengths.cpu().numpy()
    halves = walk(lattice, np.where(lengths > 0, lengths // 2 + 1, 0), [1, -1])
    if halves.sizes:
        unary, edge = pack_unary(lattice, halves), pack_edge(lattice, halves)
        arriving = recurse(unary, edge, halves.sizes, torch.amax)
        states = unary.add_(arriving)
        near, far, far_sizes = _meeting(np.sort(lengths[lengths > 0])[::-1], halves.sizes)
        best, label = arriving[:, 0].index_select(1, near).add_(states[:, 1].index_select(1, far)).max(0)
        packed = torch.zeros_like(halves.tokens)
        packed[0, near] = packed[1, far] = label
        packed = _trace(packed, states, edge, halves.sizes, far_sizes)
        scores[halves.order[: len(best)]] = best
        for half in (1, 0):  # the far half of an even length has read one token more than it has labelled
            labels.view(-1).scatter_(0, halves.tokens[half], packed[half])
    return scores, labels.masked_fill_((scores == -torch.inf).unsqueeze(1), 0)


def _meeting(lengths: np.ndarray, sizes: list[int]) -> tuple[Tensor, Tensor, list[int]]:
    """Lengths in the order of the walk -> packed places of token length // 2 seen from the first and from the
    last token, and how many sequences the far half labels at each step."""
    alive, place = np.array(sizes), np.arange(len(lengths))
    starts = alive.cumsum() - alive
    near, far = lengths // 2, (lengths - 1) // 2
    far_sizes = (far >= np.arange(len(sizes))[:, None]).sum(1).tolist()
    return torch.from_numpy(starts[near] + place), torch.from_numpy(starts[far] + place), far_sizes


def _trace(packed: Tensor, states: Tensor, edge: Tensor, near_sizes: list[int], far_sizes: list[int]) -> Tensor:
    """Packed labels (2, N), given those where the halves meet, filled from there outwards.

    On the host, in numpy: so small are the steps that the calls are all that counts.
    """
    L = len(states)
    table, before = edge.reshape(-1, L).cpu().numpy(), states.permute(1, 2, 0).contiguous().cpu().numpy()
    labels = packed.cpu().numpy()
    rows = np.broadcast_to(np.arange(0, len(table), L).reshape(2, -1), labels.shape)
    stop = rows.shape[1]
    for k in range(len(near_sizes) - 1, 0, -1):
        here, n, m = stop - near_sizes[k], near_sizes[k], far_sizes[k]
        start = here - near_sizes[k - 1]
        scores = table.take(rows[:, here:stop] + labels[:, here:stop], 0)
        scores += before[:, start : start + n]
        best = scores.argmax(2)
        labels[0, start : start + n] = best[0]
        labels[1, start : start + m] = best[1, :m]
        stop = here
    return torch.from_numpy(labels).to(packed.device)


class Viterbi(nn.Module):
    """`viterbi` as a module."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """-> scores (B,), labels (B, T)."""
        return viterbi(lattice)
