"""Scores and probabilities of label sequences that agree, or disagree, with a given one on a segment.

Scores of the best ones are sums of max-marginals: the best into a segment's start, its own terms, the best out of its
end (the segment-wise misclassification measures of Suzuki, McDermott & Isozaki 2006, Eq. 13). Functions take labels (B,
T) int64 and S segments of these sequences, and raise InputError for a label outside 0..L-1 and for a segment that is
empty or not within its sequence.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.lattices import is_stationary, operands, to_double, token_mask, validate_lattice
from structperc.chain.marginals import log_partition, marginals, next_marginals
from structperc.chain.viterbi import path_score, viterbi
from structperc.errors import InputError
from structperc.ops.operators import best_before_and_after
from structperc.structures import Lattice


class Segments(NamedTuple):
    """Segments of a batch: segment s is the tokens starts[s] <= t < ends[s] of sequence rows[s].

    Each segment has at least one token, and lies within its sequence.
    """

    rows: Tensor  # (S,) int64
    starts: Tensor  # (S,) int64
    ends: Tensor  # (S,) int64


def max_score_with_segment(
    lattice: Lattice,
    labels: Tensor,
    segments: Segments,
    passes: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Return the score of the best label sequence that agrees with given labels on a segment, for each segment.

    Differentiable once. The gradient is the gradient of the score of this label sequence; of several such sequences, it
    is the one with the lowest labels, from the segment outwards. `passes`: results of `best_before_and_after(lattice)`,
    to share them between calls. Returns the scores (S,), -inf where no label sequence is possible.

    Example:
        >>> import torch
        >>> from structperc.chain.segments import Segments, max_score_with_segment
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> first_token = Segments(torch.tensor([0]), torch.tensor([0]), torch.tensor([1]))
        >>> max_score_with_segment(lattice, torch.tensor([[1, 0]]), first_token)
        tensor([3.])
    """
    lattice = validate_segments(lattice, labels, segments)
    if lattice.segments is not None:
        return _score_of(lattice, segments, *best_with(lattice, labels, segments))
    before, after = passes or best_before_and_after(*operands(lattice))
    rows, starts, ends = segments
    inner = _terms(lattice, labels, segments).sum(1)
    into = _entries(before, _nodes(lattice, rows, starts, labels[rows, starts]))
    out = _entries(after, _nodes(lattice, rows, ends - 1, labels[rows, ends - 1]))
    scores = inner + (into + out)
    return scores.where(scores != -torch.inf, -torch.inf)


def max_score_without_segment(
    lattice: Lattice,
    labels: Tensor,
    segments: Segments,
    passes: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Return the score of the best label sequence that differs from given labels in a segment, for each segment.

    Differentiable once. Of several best label sequences, the gradient is that of the first token that differs, and
    there of the lowest label. `passes`: results of `best_before_and_after(lattice)`, to share them between calls.
    Returns the scores (S,), -inf where no label sequence is possible.
    """
    lattice = validate_segments(lattice, labels, segments)
    if lattice.segments is not None:
        return _score_of(lattice, segments, *best_without(lattice, labels, segments))
    before, after = passes or best_before_and_after(*operands(lattice))
    best, starts, others = _pivots(lattice, before, after, labels, segments)
    nodes = _nodes(lattice, segments.rows, starts, others)
    scores = _entries(before, nodes) + _entries(lattice.unary, nodes) + _entries(after, nodes)
    return scores.where(best != -torch.inf, -torch.inf)


def _score_of(lattice: Lattice, segments: Segments, scores: Tensor, labels: Tensor) -> Tensor:
    """Return the scores (S,) of the label sequences (S, T) that a search found, with gradients."""
    return path_score(lattice, labels, segments.rows).where(scores > -torch.inf, -torch.inf)


@torch.no_grad()
def best_with(lattice: Lattice, labels: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
    """Return the best label sequence that agrees with given labels on a segment, for each segment.

    For scores with gradients use `path_score(lattice, labels, segments.rows)` with the result. Returns scores (S,) and
    labels (S, T); -inf and 0 where no label sequence is possible.

    Raises:
        InvalidScoreError: on a CPU, a score of +inf or NaN.
    """
    return viterbi(_agreeing(validate_segments(lattice, labels, segments), labels[segments.rows], segments))


@torch.no_grad()
def best_without(lattice: Lattice, labels: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
    """Return the best label sequence that differs from given labels in a segment, for each segment.

    Its score is the largest max-marginal of another label at a token of the segment. For scores with gradients use
    `path_score(lattice, labels, segments.rows)` with the result. Returns scores (S,) and labels (S, T); -inf and 0
    where no label sequence is possible.
    """
    lattice = validate_segments(lattice, labels, segments)
    if lattice.segments is not None:
        differing, places = _differing(lattice, labels, segments)
        each, found = viterbi(differing)
        best, at = _by_segment(each, places, segments).max(1)
        first = (segments.ends - segments.starts).cumsum(0) - (segments.ends - segments.starts)
        return best, found[first + at].where((best > -torch.inf).unsqueeze(1), 0)
    scores, tokens, others = _pivots(lattice, *best_before_and_after(*operands(lattice)), labels, segments)
    fixed = labels[segments.rows].scatter(1, tokens.unsqueeze(1), others.unsqueeze(1))
    found = viterbi(_agreeing(lattice, fixed, Segments(segments.rows, tokens, tokens + 1)))[1]
    return scores, found.where((scores > -torch.inf).unsqueeze(1), 0)


@torch.no_grad()
def segment_marginals(lattice: Lattice, labels: Tensor, segments: Segments, following: Tensor | None = None) -> Tensor:
    """Return the probability of given labels on a segment, for each segment.

    It is p(first label) times the conditional probabilities of the next labels, without differences of large sums. With
    scores of segments, it is a ratio of two sums in double precision; `probable_segments` returns the probabilities of
    segments with exactly their first and last token. `following`: results of `next_marginals(lattice, labels)`, to
    share them between calls. Returns the probabilities (S,), 0 where the labels are impossible, NaN for a sequence with
    a score of +inf or NaN.
    """
    lattice = validate_segments(lattice, labels, segments)
    if lattice.segments is not None:
        double = to_double(lattice)
        shares = log_partition_with_segment(double, labels, segments) - log_partition(double)[segments.rows]
        return shares.exp().clamp(max=1).to(lattice.unary.dtype)
    if following is None:
        following = next_marginals(lattice, labels)
    places, inside = _places(segments)
    rows, at = segments.rows.unsqueeze(1), (segments.rows, segments.starts)
    first = marginals(to_double(lattice))[(*at, labels[at])]
    later = following[rows, places[:, :-1], labels[rows, places[:, 1:]]].where(inside[:, 1:], 1)
    return (first * later.prod(1)).to(lattice.unary.dtype)


def _places(segments: Segments) -> tuple[Tensor, Tensor]:
    """Return the tokens of each segment (S, M), the last one repeated, and the mask of those inside."""
    longest = int((segments.ends - segments.starts).max()) if len(segments.rows) else 1
    places = segments.starts.unsqueeze(1) + torch.arange(longest, device=segments.starts.device)
    ends = segments.ends.unsqueeze(1)
    return places.minimum(ends - 1), places < ends


def _terms(lattice: Lattice, labels: Tensor, segments: Segments) -> Tensor:
    """Return the terms of each segment (S, M), without the edge into its start."""
    places, inside = _places(segments)
    rows, L = segments.rows.unsqueeze(1), lattice.unary.shape[2]
    label = labels[rows, places]
    nodes = _nodes(lattice, rows, places, label)
    pairs = label[:, :-1] * L + label[:, 1:]
    many_rows, many_tokens = (int(n > 1) for n in lattice.edge.shape[:2])
    at = rows * many_rows * lattice.edge.shape[1] + places[:, 1:] * many_tokens
    steps = pad(_entries(lattice.edge, pairs + at * L**2), (1, 0))
    return (_entries(lattice.unary, nodes) + steps).where(inside, 0)


@torch.no_grad()
def _pivots(
    lattice: Lattice, before: Tensor, after: Tensor, labels: Tensor, segments: Segments
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best other label in each segment: score, token, label (S,) each; the first among equals."""
    real = token_mask(lattice)
    through = (before + lattice.unary + after).where(real.unsqueeze(2), -torch.inf)
    score, other = through.scatter_(2, labels.where(real, 0).unsqueeze(2), -torch.inf).max(2)
    places, inside = _places(segments)
    scores, at = score[segments.rows.unsqueeze(1), places].where(inside, -torch.inf).max(1)
    tokens = segments.starts + at
    return scores, tokens, other[segments.rows, tokens]


def _nodes(lattice: Lattice, rows: Tensor, places: Tensor, labels: Tensor) -> Tensor:
    """Return the indices of labels in the flattened (B * T * L)."""
    _, T, L = lattice.unary.shape
    return (rows * T + places) * L + labels


def _entries(table: Tensor, places: Tensor) -> Tensor:
    """Return entries of the flattened table; the gradient of an entry is the sum over its uses."""
    return table.reshape(-1).index_select(0, places.flatten()).view(places.shape)


def validate_segments(lattice: Lattice, labels: Tensor, segments: Segments) -> Lattice:
    """Return the lattice as operators need it, after checks of labels and segments.

    Raises InputError: wrong shapes; a label outside 0..L-1; a segment that is empty or not within its sequence.
    """
    if lattice.segments is None:
        lattice = validate_lattice(lattice)
    if labels.shape != lattice.unary.shape[:2]:
        raise InputError(f"labels: expected shape {tuple(lattice.unary.shape[:2])}, got {tuple(labels.shape)}")
    L = lattice.unary.shape[2]
    rows, starts, ends = segments
    wrong = (starts < 0) | (starts >= ends) | (ends > lattice.lengths.to(rows.device)[rows])
    if wrong.any():
        row, start, end = (int(x[wrong][0]) for x in segments)
        raise InputError(
            f"segment {start}..{end} of sequence {row} with {int(lattice.lengths[row])} tokens is empty or reaches "
            "beyond it; give segments 0 <= start < end <= length"
        )
    wrong = ((labels < 0) | (labels >= L)) & token_mask(lattice)
    if wrong.any():
        row, token = wrong.nonzero()[0].tolist()
        raise InputError(
            f"label {int(labels[row, token])} at token {token} of sequence {row} is outside 0..{L - 1}; give real "
            "tokens labels of the lattice"
        )
    return lattice


def log_partition_with_segment(lattice: Lattice, labels: Tensor, segments: Segments) -> Tensor:
    """Return the log of the sum of exp(score) over the label sequences that agree with given labels on a segment.

    Returns the logs (S,), -inf where no label sequence is possible; derivatives are those of `log_partition`.
    """
    lattice = validate_segments(lattice, labels, segments)
    return log_partition(_agreeing(lattice, labels[segments.rows], segments))


def log_partition_without_segment(lattice: Lattice, labels: Tensor, segments: Segments) -> Tensor:
    """Return the log of the sum of exp(score) over the label sequences that differ from given labels in a segment.

    Each label sequence is counted at the first token where it differs, without differences of large sums. This takes
    one lattice for each token of a segment. Returns the logs (S,), -inf where no label sequence is possible;
    derivatives are those of `log_partition`.
    """
    lattice = validate_segments(lattice, labels, segments)
    others, places = _differing(lattice, labels, segments)
    table = _by_segment(log_partition(others), places, segments)
    exists = (table.detach() > -torch.inf).any(1)
    return table.where(exists.unsqueeze(1), 0).logsumexp(1).where(exists, -torch.inf)  # an empty sum has no gradient


def _differing(lattice: Lattice, labels: Tensor, segments: Segments) -> tuple[Lattice, tuple[Tensor, Tensor]]:
    """Return a lattice (N, T, ...) of the paths that differ first at each token of each segment.

    Returns the lattice, the segments of its rows (N,), and their places (N,) within their segments.
    """
    sizes = segments.ends - segments.starts
    owner = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    place = torch.arange(len(owner), device=sizes.device) - (sizes.cumsum(0) - sizes)[owner]
    rows, starts = segments.rows[owner], segments.starts[owner]
    found = _agreeing(lattice, labels[rows], Segments(rows, starts, starts + place))
    turn = found.unary.new_zeros(found.unary.shape, dtype=torch.bool)
    turn[torch.arange(len(owner), device=sizes.device), starts + place, labels[rows, starts + place]] = True
    return found._replace(unary=found.unary.masked_fill(turn, -torch.inf)), (owner, place)


def _by_segment(values: Tensor, places: tuple[Tensor, Tensor], segments: Segments) -> Tensor:
    """Return values (N,) by segment and place as a table (S, M), -inf elsewhere."""
    sizes = segments.ends - segments.starts
    table = values.new_full((len(sizes), int(sizes.max()) if len(sizes) else 1), -torch.inf)
    return table.index_put(places, values)


def _agreeing(lattice: Lattice, labels: Tensor, segments: Segments) -> Lattice:
    """Return a lattice (S, T, ...) of the paths that agree with `labels` (S, T) on each segment, which may be empty."""
    unary, edge, found = lattice.unary, lattice.edge, lattice.segments
    rows, starts, ends = segments
    tokens = torch.arange(unary.shape[1], device=unary.device)
    inside = (tokens >= starts.unsqueeze(1)) & (tokens < ends.unsqueeze(1))
    other = labels.unsqueeze(2) != torch.arange(unary.shape[2], device=unary.device)
    own = unary[rows].masked_fill(inside.unsqueeze(2) & other, -torch.inf)
    edge = edge if is_stationary(edge) or edge.shape[0] == 1 else edge[rows]
    if found is not None and found.scores.shape[0] > 1:
        found = found._replace(scores=found.scores[rows])
    first = None if lattice.starts is None else lattice.starts[rows]
    return Lattice(own, edge, lattice.lengths[rows], first, found)
