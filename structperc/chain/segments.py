"""Scores and probabilities of segments: what a labelling says between two tokens, against everything else.

They need no dynamic program of their own: the best into a segment's start, its own terms, the best out of its
end (the segment-wise misclassification measures of Suzuki, McDermott & Isozaki 2006, Eq. 13).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain.marginals import normalised
from structperc.chain.recursion import before_and_after, every_edge, full_precision, live
from structperc.structures import Lattice


class Segments(NamedTuple):
    """Segment s is the tokens starts[s] <= t < ends[s] of sequence rows[s], at least one, all real."""

    rows: Tensor  # (S,) int64
    starts: Tensor  # (S,) int64
    ends: Tensor  # (S,) int64


@torch.no_grad()
def best_with(lattice: Lattice, labels: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
    """Best labelling that agrees with `labels` (B, T) on the segment -> scores (S,), labellings (S, T).

    -inf and labels 0 where there is none. `path_score(lattice, labellings, segments.rows)` has the gradients.
    """
    before, after = before_and_after(lattice, torch.amax)
    rows, starts, ends = segments
    terms, places, inside = _terms(lattice, labels, segments)
    outer = before[rows, starts, labels[rows, starts]] + after[rows, ends - 1, labels[rows, ends - 1]]
    scores = terms.sum(1) + outer
    fixed = labels.new_zeros(len(rows), labels.shape[1])
    fixed.scatter_add_(1, places, labels[rows.unsqueeze(1), places].where(inside, 0))
    return scores, _completed(lattice, before, after, segments, fixed, scores)


@torch.no_grad()
def best_without(lattice: Lattice, labels: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
    """Best labelling that differs from `labels` (B, T) in the segment -> scores (S,), labellings (S, T).

    Its score is the largest max-marginal of another label at a token of the segment. -inf and labels 0 where
    there is none. `path_score(lattice, labellings, segments.rows)` has the gradients.
    """
    before, after = before_and_after(lattice, torch.amax)
    real = live(lattice)
    others = (before + full_precision(lattice.unary) + after).where(real.unsqueeze(2), -torch.inf)
    others.scatter_(2, labels.where(real, 0).unsqueeze(2), -torch.inf)
    score, other = others.max(2)
    rows = segments.rows.unsqueeze(1)
    places, inside = _places(segments)
    scores, at = score[rows, places].where(inside, -torch.inf).max(1)
    starts = segments.starts + at
    fixed = labels.new_zeros(len(at), labels.shape[1])
    fixed.scatter_(1, starts.unsqueeze(1), other[segments.rows, starts].unsqueeze(1))
    pivot = Segments(segments.rows, starts, starts + 1)
    return scores, _completed(lattice, before, after, pivot, fixed, scores)


@torch.no_grad()
def segment_marginals(lattice: Lattice, labels: Tensor, segments: Segments) -> Tensor:
    """Probability that exactly these labels (B, T) stand on the segment -> (S,).

    p(first label) times the conditional probabilities of the next ones, so that long sums never meet.
    """
    before, after = before_and_after(lattice, torch.logsumexp)
    nodes = normalised(before + full_precision(lattice.unary) + after, live(lattice))
    rows, starts, _ = segments
    first = nodes[rows, starts, labels[rows, starts]]
    terms, places, inside = _terms(lattice, labels, segments)
    onward = after[rows.unsqueeze(1), places, labels[rows.unsqueeze(1), places]]
    later = (terms[:, 1:] + onward[:, 1:] - onward[:, :-1]).where(inside[:, 1:], 0)
    return (first * later.sum(1).exp()).where(first > 0, 0)


def _places(segments: Segments) -> tuple[Tensor, Tensor]:
    """-> tokens of each segment (S, M), repeating the last one, and which of them are inside."""
    longest = int((segments.ends - segments.starts).max()) if len(segments.rows) else 1
    places = segments.starts.unsqueeze(1) + torch.arange(longest, device=segments.starts.device)
    ends = segments.ends.unsqueeze(1)
    return places.minimum(ends - 1), places < ends


def _terms(lattice: Lattice, labels: Tensor, segments: Segments) -> tuple[Tensor, Tensor, Tensor]:
    """-> the segment's own terms (S, M), without the edge into its start; its tokens; which are inside."""
    places, inside = _places(segments)
    rows = segments.rows.unsqueeze(1)
    label = labels[rows, places]
    terms = full_precision(lattice.unary[rows, places, label])
    terms[:, 1:] += full_precision(every_edge(lattice)[rows, places[:, 1:], label[:, :-1], label[:, 1:]])
    return terms.where(inside, 0), places, inside


def _completed(
    lattice: Lattice, before: Tensor, after: Tensor, segments: Segments, paths: Tensor, scores: Tensor
) -> Tensor:
    """Extend labels fixed on segments (S, T) to the best whole labellings, leftwards and rightwards."""
    rows, starts, ends = segments
    unary, edge = full_precision(lattice.unary), full_precision(every_edge(lattice))
    inwards, onwards = before + unary, unary + after
    for t in range(int(starts.max()) - 1 if len(rows) else -1, -1, -1):
        best = (inwards[rows, t] + edge[rows, t + 1, :, paths[:, t + 1]]).argmax(1)
        paths[:, t] = best.where(t < starts, paths[:, t])
    for t in range(int(ends.min()) if len(rows) else paths.shape[1], paths.shape[1]):
        best = (edge[rows, t, paths[:, t - 1]] + onwards[rows, t]).argmax(1)
        paths[:, t] = best.where(t >= ends, paths[:, t])
    return paths.where(live(lattice)[rows] & (scores > -torch.inf).unsqueeze(1), 0)
