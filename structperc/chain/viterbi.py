"""The best labelling of each sequence (Viterbi 1967)."""

import numpy as np
import torch
from torch import Tensor, nn

from structperc.chain.recursion import pack_edge, pack_unary, recurse, walk
from structperc.structures import Lattice


@torch.no_grad()
def viterbi(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return scores (B,) and labels (B, T) int64, 0 in the padding; without gradients, which `path_score` has.

    Each sequence is searched from both ends at the same time, which halves the number of dependent steps; the
    two searches meet at token length // 2. No back-pointers: the predecessor is the argmax over L candidates,
    recomputed at trace-back. Ties go to the lowest label, decided in the middle first and then outwards.
    A sequence without any legal labelling scores -inf and gets labels 0; an empty sequence scores 0.

    What follows the recursion is done on the host, in numpy: so small are its steps that the calls are all that
    counts.
    """
    B, T, _ = lattice.unary.shape
    lengths = _host(lattice.lengths)
    halves = walk(lattice, np.where(lengths > 0, lengths // 2 + 1, 0), [1, -1])
    unary, edge = pack_unary(lattice, halves), pack_edge(lattice, halves)
    arriving = recurse(unary, edge, halves.sizes, torch.amax)
    states, tokens, order = _host(unary.add_(arriving)), _host(halves.tokens), _host(halves.order)
    scores, labels = np.zeros(B, states.dtype), np.zeros((B, T), np.int64)
    if halves.sizes:
        alive = order[: halves.sizes[0]]
        near, far, far_sizes = _meeting(lengths[alive], halves.sizes)
        through = _host(arriving)[:, 0].take(near, 1) + states[:, 1].take(far, 1)
        packed = np.zeros_like(tokens)
        packed[0, near] = packed[1, far] = through.argmax(0)
        packed = _trace(packed, states, _host(edge), halves.sizes, far_sizes)
        scores[alive] = through.max(0)
        for half in (1, 0):  # the far half of an even length has read one token more than it has labelled
            labels.reshape(-1)[tokens[half]] = packed[half]
        labels[scores == -np.inf] = 0
    return torch.from_numpy(scores).to(unary.device), torch.from_numpy(labels).to(unary.device)


def _host(x: Tensor) -> np.ndarray:
    return x.cpu().numpy()


def _meeting(lengths: np.ndarray, sizes: list[int]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Lengths in the order of the walk -> packed places of token length // 2 seen from the first and from the
    last token, and how many sequences the far half labels at each step."""
    alive, place = np.array(sizes), np.arange(len(lengths))
    starts = alive.cumsum() - alive
    near, far = lengths // 2, (lengths - 1) // 2
    far_sizes = len(far) - far[::-1].searchsorted(np.arange(len(sizes)))
    return starts[near] + place, starts[far] + place, far_sizes.tolist()


def _trace(
    labels: np.ndarray, states: np.ndarray, edge: np.ndarray, near_sizes: list[int], far_sizes: list[int]
) -> np.ndarray:
    """Packed labels (2, N), given those where the halves meet and 0 elsewhere, filled from there outwards."""
    L = len(states)
    table, before = edge.reshape(-1, L), np.ascontiguousarray(states.transpose(1, 2, 0))
    rows = labels + np.arange(0, len(table), L).reshape(2, -1)  # of the table, as far as labels are known
    stop = labels.shape[1]
    for k in range(len(near_sizes) - 1, 0, -1):
        here, n, m = stop - near_sizes[k], near_sizes[k], far_sizes[k]
        start = here - near_sizes[k - 1]
        scores = table.take(rows[:, here:stop], 0)
        scores += before[:, start : start + n]
        best = scores.argmax(2)
        rows[0, start : start + n] += best[0]
        rows[1, start : start + m] += best[1, :m]
        stop = here
    return rows % L


class Viterbi(nn.Module):
    """The best labelling of a lattice: `viterbi`, as a module."""

    def forward(self, lattice: Lattice) -> tuple[Tensor, Tensor]:
        """Return the score (B,) and the labels (B, T) of the best labelling."""
        return viterbi(lattice)
