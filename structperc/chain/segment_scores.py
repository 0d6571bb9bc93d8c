"""Searches and sums for a lattice with scores of segments: its label sequences as segmentations, and back.

Segments of one token and longer ones are different kinds, since they have different labels: the C types of segments of
one token, then O, then the C types of longer ones. All scores, also those of labels and label pairs, become scores of
whole segments and of pairs of neighbours, for the operators of `ops`. If sentences are independent, there
are two kinds in place of each: one for segments within a sentence, and one for those at its end, whose pairs score 0.
"""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.lattices import check_starts, full_precision, is_stationary, operands
from structperc.data.labels import shift
from structperc.errors import InputError
from structperc.ops.operators import path_score as scores_of
from structperc.ops.reference.forward_backward import log_sum
from structperc.ops.reference.semi_markov import prepare, scores_after, scores_from, semi_markov_entropy
from structperc.ops.segment_operators import (
    SemiMarkovScores,
    semi_markov_best,
    semi_markov_kbest,
    semi_markov_log_partition,
    semi_markov_sample,
    semi_markov_sums,
    semi_markov_viterbi,
)
from structperc.structures import Candidates, Lattice, SegmentScores, real_tokens


def best_labels(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the results of `chain.viterbi`."""
    scores, found = semi_markov_viterbi(*semi_markov_scores(lattice))
    return scores, _labels(lattice, found, scores > -torch.inf)


def sampled_labels(lattice: Lattice, noise: Tensor) -> Tensor:
    """Return the results of `chain.sample` for random numbers (B, n, T)."""
    found = semi_markov_sample(*semi_markov_scores(lattice), noise)
    return _labels(lattice, found, (sum_of_paths(lattice) > -torch.inf).unsqueeze(1))


def entropy_of_labels(lattice: Lattice) -> Tensor:
    """Return the results of `chain.entropy`."""
    return semi_markov_entropy(*semi_markov_scores(lattice))


def kbest_labels(lattice: Lattice, k: int) -> Candidates:
    """Return the results of `chain.kbest`."""
    found, scores, valid = semi_markov_kbest(*semi_markov_scores(lattice), k)
    return Candidates(_labels(lattice, found, valid), scores, valid)


def best_with_labels(lattice: Lattice) -> Tensor:
    """Return the results of `chain.max_marginals`."""
    best = _by_kind(lattice, semi_markov_best(*semi_markov_scores(lattice))).amax(4)
    (T, D), table = best.shape[1:3], segments_of(lattice).labels
    C = len(table) - 1
    one, first, middle, last = table[:C].unbind(1)
    found = best.new_full(lattice.unary.shape, -torch.inf)

    def add(labels: Tensor, scores: Tensor, d: int = 0) -> None:
        """Add scores of segments by first token, with these labels at the token d later."""
        moved = pad(scores[:, : max(T - d, 0)], (0, 0, min(d, T), 0), value=-torch.inf)
        found[..., labels] = torch.maximum(found[..., labels], moved)

    add(torch.cat([one, table[C:, 0]]), best[:, :, 0, : C + 1])
    for d in range(1, D):
        longer = best[:, :, d, C + 1 :]
        for i, labels in enumerate([first, *[middle] * (d - 1), last]):
            add(labels, longer, i)
    return found


def sum_of_paths(lattice: Lattice) -> Tensor:
    """Return the results of `chain.log_partition`."""
    scores = semi_markov_scores(lattice)
    with_gradient = torch.is_grad_enabled() and any(x.requires_grad for x in scores)
    total: Tensor = semi_markov_log_partition(*scores, with_gradient)[0]
    return total


def label_marginals(lattice: Lattice) -> Tensor:
    """Return the results of `chain.marginals`: the derivatives of log Z."""
    differentiable, unary = torch.is_grad_enabled(), lattice.unary
    with torch.enable_grad():
        unary = unary if unary.requires_grad and differentiable else unary.detach().requires_grad_()
        total = sum_of_paths(lattice._replace(unary=unary)).sum()
        return torch.autograd.grad(total, unary, create_graph=differentiable)[0]


def segment_probabilities(lattice: Lattice) -> Tensor:
    """Return the probability of each segment (Sarawagi & Cohen 2004, Section 3.2). Differentiable.

    For a lattice without scores of segments, add zeros: `SegmentScores(torch.zeros(1, 1, D, C), labels)`. Returns the
    probabilities (B, T, D, C) of segments by first token, number of tokens less 1, and type; 0 where impossible and in
    the padding.

    Raises:
        InputError: wrong shapes, or no scores of segments.

    Example:
        >>> import torch
        >>> from structperc.chain import segment_probabilities
        >>> from structperc.structures import Lattice, SegmentScores
        >>> unary, edge = torch.zeros(1, 2, 3), torch.zeros(1, 1, 3, 3)  # O, B, I
        >>> segments = SegmentScores(torch.zeros(1, 1, 2, 1), torch.tensor([[1, 1, 2, 2], [0, 0, 0, 0]]))
        >>> lattice = Lattice(unary, edge, torch.tensor([2]), segments=segments)
        >>> segment_probabilities(lattice).squeeze()  # O O, O B, B O, B B, B I
        tensor([[0.4000, 0.2000],
                [0.4000, 0.0000]])
    """
    return _by_type(lattice, _by_kind(lattice, semi_markov_sums(*semi_markov_scores(lattice))[1]).sum(4))


def segment_max_marginals(lattice: Lattice) -> Tensor:
    """Return the best score of a label sequence that contains a given segment, for all segments.

    The gradient of an entry is the gradient of the score of its label sequence, of one of several equal ones. Returns
    the scores (B, T, D, C) of segments by first token, number of tokens less 1, and type; -inf where impossible and in
    the padding, NaN for a sequence with a score of +inf or NaN.

    Raises:
        InputError: wrong shapes, or no scores of segments.
    """
    return _by_type(lattice, _by_kind(lattice, semi_markov_best(*semi_markov_scores(lattice))).amax(4))


def limit_lengths(lattice: Lattice, longest: Sequence[int] | Tensor) -> Lattice:
    """Make segments impossible that are too long for their type. Differentiable.

    `longest`: the largest number of tokens of a segment of each of the C types.

    Raises:
        InputError: no scores of segments, or another number of types.

    Example:
        >>> import torch
        >>> from structperc.chain.segment_scores import limit_lengths
        >>> from structperc.structures import Lattice, SegmentScores
        >>> labels = torch.tensor([[1, 1, 2, 2], [3, 3, 4, 4], [0, 0, 0, 0]])
        >>> segments = SegmentScores(torch.zeros(1, 1, 3, 2), labels)
        >>> lattice = Lattice(torch.zeros(1, 3, 5), torch.zeros(1, 1, 5, 5), torch.tensor([3]), segments=segments)
        >>> limit_lengths(lattice, [1, 2]).segments.scores[0, 0]  # (D, C)
        tensor([[0., 0.],
                [-inf, 0.],
                [-inf, -inf]])
    """
    segments = segments_of(lattice)
    D, C = segments.scores.shape[2:]
    most = torch.as_tensor(longest, device=segments.scores.device)
    if most.shape != (C,):
        raise InputError(f"longest: expected {C} numbers of tokens, one of each type, got {tuple(most.shape)}")
    fits = torch.arange(1, D + 1, device=most.device).unsqueeze(1) <= most
    return lattice._replace(segments=segments._replace(scores=segments.scores.where(fits, -torch.inf)))


def segments_of(lattice: Lattice) -> SegmentScores:
    """Return the scores of segments of a lattice. Raises InputError if it has none."""
    if lattice.segments is None:
        raise InputError(
            "the lattice has no scores of segments; give it some, such as segments=SegmentScores(torch.zeros(1, 1, D, "
            "C), label_set.segment_labels)"
        )
    return lattice.segments


def _by_kind(lattice: Lattice, values: Tensor) -> Tensor:
    """Return values (B, T, D, ...) of segments of a lattice by kind, within sentences and at their ends."""
    return values.unflatten(3, (-1, 1 if lattice.starts is None else 2))


def _by_type(lattice: Lattice, values: Tensor) -> Tensor:
    """Return values (B, T, D, 2 C + 1) of segments by kind as (B, T, D, C) by type."""
    C = len(segments_of(lattice).labels) - 1
    return torch.cat([values[:, :, :1, :C], values[:, :, 1:, C + 1 :]], 2)


def steps_of_labels(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return the results of `chain.step_log_probabilities`, those of whole segments at their first tokens."""
    (B, T), found = labels.shape, semi_markov_scores(lattice)
    rows = torch.arange(B, device=labels.device)
    first, size, kind = _segments(lattice, labels, rows)
    C, D = len(segments_of(lattice).labels) - 1, found.segment.shape[2]
    kind = torch.where((kind < C) & (size > 1), kind + C + 1, kind)  # of `semi_markov_scores`
    begin = torch.arange(T, device=labels.device)
    if lattice.starts is not None:
        kind = 2 * kind + pad(lattice.starts, (0, 1)).gather(1, (begin + size).clamp(0, T)).long()
    scores = prepare(*found)
    after = scores_after(scores, log_sum)
    through, rows = scores_from(scores, after), rows.unsqueeze(1)
    own = through[rows, begin, (size - 1).clamp(0, D - 1), kind]
    latest = begin.where(first, 0).cummax(1).values
    before = pad(kind.gather(1, latest)[:, :-1], (1, 0))
    joined = scores.pair[before, kind] - after[rows, begin, before]
    start = -log_sum(log_sum(through[:, :1].transpose(2, 3)))
    steps = own + torch.where(begin > 0, joined, start)
    impossible = (own == -torch.inf) | (size > D)
    steps = torch.where(first, steps.masked_fill(impossible, -torch.inf), 0)
    real = real_tokens(scores.lengths, T)
    return torch.where(real, steps.masked_fill(scores.invalid.unsqueeze(1), torch.nan), 0)


def score_of_labels(lattice: Lattice, labels: Tensor, rows: Tensor) -> Tensor:
    """Return the scores (S,) of label sequences (S, T), which belong to the sequences rows (S,).

    A label that cannot continue a segment begins one. The score is -inf if a segment has more than D tokens.
    """
    table = _checked(lattice).scores
    (D, C), T = table.shape[2:], labels.shape[1]
    local = scores_of(*operands(lattice._replace(segments=None)), labels, rows)
    if not T:
        return local
    first, size, kind = _segments(lattice, labels, rows)
    counted, steps = first & (kind < C), torch.arange(T, device=labels.device)
    places = rows.unsqueeze(1) * (len(table) > 1), steps * (table.shape[1] > 1)
    found = full_precision(table)[(*places, (size - 1).clamp(0, D - 1), kind.clamp(max=C - 1))].where(counted, 0)
    return local + found.masked_fill(counted & (size > D), -torch.inf).sum(1).to(local.dtype)


def _segments(lattice: Lattice, labels: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the segments of label sequences (S, T), which belong to the sequences rows (S,).

    Returns the mask of their first tokens (S, T), and there the number of tokens up to the end, and the type, C for O.
    """
    lengths, T = lattice.lengths.to(labels.device)[rows], labels.shape[1]
    kinds, begins = segment_kinds(segments_of(lattice).labels, lattice.unary.shape[2])
    real, steps = real_tokens(lengths, T), torch.arange(T, device=labels.device)
    own = labels.where(real, 0)
    first = begins[own] | ~real | (steps == 0)
    if lattice.starts is not None:
        first = first | lattice.starts[rows]
    following = pad(steps.where(first, T)[:, 1:], (0, 1), value=T).flip(1).cummin(1).values.flip(1)
    return first & real, following.clamp(max=lengths.unsqueeze(1)) - steps, kinds[own]


def semi_markov_scores(lattice: Lattice) -> SemiMarkovScores:
    """Return the scores of a lattice as scores of segments and of pairs of neighbours. Differentiable.

    Raises InputError: wrong shapes, or scores of label pairs that differ between tokens.
    """
    scores, table = _checked(lattice)
    if not is_stationary(lattice.edge):
        raise InputError("scores of segments need one matrix of label pairs for all tokens: remove features.edge")
    unary, edge, lengths = operands(lattice._replace(starts=None, segments=None))
    (B, T, _), D, edge = unary.shape, scores.shape[2], edge[0, 0]
    added = full_precision(scores).to(unary.dtype)
    types, outside = table[:-1], table[-1, :1]
    of_one, first, middle, last = unary[..., types.T.flatten()].unflatten(2, (4, len(types))).unbind(2)
    nothing = unary.new_full((B, T, len(types) + 1), -torch.inf)
    found = torch.cat([of_one + added[:, :, 0], unary[..., outside], nothing[..., 1:]], 2).unsqueeze(2)
    if D > 1:
        begin, inner, end = types[:, 1:].unbind(1)
        later = torch.cat([edge[begin, inner].unsqueeze(0), edge[inner, inner].expand(D - 2, -1)])
        ends = torch.cat([edge[begin, end].unsqueeze(0), edge[inner, end].expand(D - 2, -1)])
        steps = windows(middle, D)[:, :, 1:] + later
        runs = torch.stack([*accumulate([first, *steps.unbind(2)[:-1]])], 2)  # all tokens but the last one
        longer = runs + (windows(last, D)[:, :, 1:] + ends) + added[:, :, 1:]
        found = torch.cat([found, torch.cat([nothing.unsqueeze(2).expand(-1, -1, D - 1, -1), longer], 3)], 2)
    begin, end = torch.cat([types[:, 0], outside, types[:, 1]]), torch.cat([types[:, 0], outside, types[:, 3]])
    pair = edge[end.unsqueeze(1), begin]
    if lattice.starts is not None:
        found, pair = _separated(found, pair, lattice.starts)
    return SemiMarkovScores(unary.new_zeros(B, T, len(pair)), found, pair, lengths)


def _checked(lattice: Lattice) -> SegmentScores:
    """Return the scores of segments of a lattice after checks of shapes."""
    segments, (B, T) = segments_of(lattice), lattice.unary.shape[:2]
    C, found = len(segments.labels) - 1, tuple(segments.scores.shape)
    if len(found) != 4 or found[0] not in (1, B) or found[1] not in (1, T) or not found[2] or found[3] != C:
        raise InputError(f"segments.scores: expected shape ({B} or 1, {T} or 1, D, {C}) with D >= 1, got {found}")
    check_starts(lattice)
    return segments


def _separated(segment: Tensor, pair: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scores of twice as many kinds: k becomes 2 k, and 2 k + 1 for a segment that ends a sentence.

    In this order the first of equal label sequences stays the first.
    """
    T, D = segment.shape[1:3]
    sentence = pad(starts, (0, D + 1)).cumsum(1).unfold(1, D + 1, 1)[:, :T]  # (B, T, D + 1), of the tokens from t on
    across, ends = sentence[..., :1] < sentence[..., :-1], sentence[..., :-1] < sentence[..., 1:]
    within = segment.masked_fill((across | ends).unsqueeze(3), -torch.inf)
    last = segment.masked_fill((across | ~ends).unsqueeze(3), -torch.inf)
    pairs = torch.stack([pair, torch.zeros_like(pair)], 1).flatten(0, 1)
    return torch.stack([within, last], 4).flatten(3), pairs.repeat_interleave(2, 1)


def windows(values: Tensor, D: int) -> Tensor:
    """Return for each token the values of D tokens from it on, 0 beyond the end.

    `values`: (B, T, F). `D`: number of tokens. Returns (B, T, D, F).
    """
    return pad(values, (0, 0, 0, D)).unfold(1, D, 1)[:, : values.shape[1]].transpose(2, 3)


def segment_kinds(table: Tensor, n_labels: int) -> tuple[Tensor, Tensor]:
    """Return the type (L,) int64 of each label, C for O, and a mask (L,) of the labels that begin a segment.

    `table`: labels of segments, see `SegmentScores.labels`. `n_labels`: L.
    """
    C = len(table) - 1
    kinds = table.new_full((n_labels,), C)
    kinds[table[:C]] = torch.arange(C, device=table.device).unsqueeze(1)
    begins = torch.zeros(n_labels, dtype=torch.bool, device=table.device)
    begins[table[:, :2]] = True
    return kinds, begins


def _labels(lattice: Lattice, found: Tensor, valid: Tensor) -> Tensor:
    """Return the labels of segmentations (..., T), 0 in the padding and where not valid (...)."""
    table = segments_of(lattice).labels
    types, outside = table[:-1], table[-1:]
    kinds = torch.cat([types[:, [0] * 4], outside, types])  # of one token, O, longer
    kinds = kinds if lattice.starts is None else kinds.repeat_interleave(2, 0)
    begins, kind = found < len(kinds), kinds[found % len(kinds)]
    ends = shift(begins, -1, True)
    lengths = lattice.lengths.to(found.device).view(-1, *[1] * (found.dim() - 1))
    steps = torch.arange(found.shape[-1], device=found.device)
    ends = ends | (steps == lengths - 1)
    column = torch.where(begins, 1, torch.where(ends, 3, 2))
    labels = kind.gather(-1, column.unsqueeze(-1)).squeeze(-1)
    return labels.where((steps < lengths) & valid.unsqueeze(-1), 0)
