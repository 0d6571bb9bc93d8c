"""Probabilities of the labels and segments of a label sequence, under a model that is trained by likelihood."""

import torch
from torch import Tensor

from structperc.chain.marginals import marginals, next_marginals, previous_marginals, step_log_probabilities
from structperc.chain.minimum_risk import ProbableSegments, probable_segments
from structperc.chain.segment_scores import segment_probabilities
from structperc.chain.segments import Segments, segment_marginals
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.predictor.base import Entities, ProbableSpan, check_min_probability
from structperc.structures import Lattice, SentenceBoundaries


@torch.no_grad()
def token_confidence(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return the probability p(y_t = label | x) of each label.

    `lattice`: scores of a probabilistic model, such as one trained with `CRFLoss`. `labels`: (B, T) int64, any label in
    the padding. Returns probabilities (B, T).
    """
    return marginals(lattice).gather(2, labels.unsqueeze(2)).squeeze(2)


@torch.no_grad()
def segment_confidence(
    lattice: Lattice,
    labels: Tensor,
    segments: Segments,
    boundaries: SentenceBoundaries,
    label_set: LabelSet,
) -> Tensor:
    """Return the probability of each segment, with exactly these boundaries.

    It is p(the labels on the segment) times the conditional probabilities that neither neighbour belongs to it, in the
    lattice of a constrained tagger. In IOB1, where a segment begins with B after another one of its type and otherwise
    with I, it is the sum for both labels. `lattice`: scores of a probabilistic model. `labels`: (B, T) int64, any label
    in the padding. `segments`: S segments of these labels. `boundaries`: real tokens, first and last tokens of
    sentences. `label_set`: names and tag scheme of the labels. Returns probabilities (S,), in 0..1.
    """
    if not len(segments.rows):
        return lattice.unary.new_zeros(0)
    if lattice.segments is not None:
        return _segment_scores_confidence(lattice, labels, segments, label_set)
    total = _written_confidence(lattice, labels, segments, boundaries, label_set)
    if label_set.scheme == "IOB1":
        where = segments.rows, segments.starts
        for other in _other_first_labels(label_set).to(labels.device)[labels[where]].unbind(1):
            changed = labels.index_put(where, other.clamp(min=0))
            also = _written_confidence(lattice, changed, segments, boundaries, label_set)
            total = total + also.where(other >= 0, 0)
    return total.clamp(max=1).to(lattice.unary.dtype)


def _segment_scores_confidence(lattice: Lattice, labels: Tensor, segments: Segments, label_set: LabelSet) -> Tensor:
    """Return the probability (S,) of each segment of a lattice with scores of segments."""
    rows, starts, ends = segments
    table, kinds = segment_probabilities(lattice), label_set.types.to(labels.device)[labels[rows, starts]]
    sizes, D = ends - starts, table.shape[2]
    return table[rows, starts, sizes.clamp(max=D) - 1, kinds].where(sizes <= D, 0)


def _other_first_labels(label_set: LabelSet) -> Tensor:
    """Return for each label of IOB1 the other ones of its type (L, n) int64, filled up with -1."""
    types = label_set.types.tolist()
    same = [[i for i, other in enumerate(types) if other == kind and i != own] for own, kind in enumerate(types)]
    return torch.tensor([ids + [-1] * (max(map(len, same)) - len(ids)) for ids in same])


def _written_confidence(
    lattice: Lattice, labels: Tensor, segments: Segments, boundaries: SentenceBoundaries, label_set: LabelSet
) -> Tensor:
    """Return the probability (S,) float64 of each segment with exactly these labels."""
    rows, starts, ends = segments
    may_continue = ((label_set.types >= 0) & ~label_set.opening).to(labels.device)  # (L, L), label j after i
    left, right = (rows, starts), (rows, ends - 1)
    before = (previous_marginals(lattice, labels)[left] * may_continue.T[labels[left]]).sum(1)
    following = next_marginals(lattice, labels)
    after = (following[right] * may_continue[labels[right]]).sum(1)
    open_left = before.masked_fill(boundaries.first[left], 0).clamp(0, 1)
    open_right = after.masked_fill(boundaries.last[right], 0).clamp(0, 1)
    return segment_marginals(lattice, labels, segments, following) * (1 - open_left) * (1 - open_right)


@torch.no_grad()
def entities(
    lattice: Lattice,
    labels: Tensor,
    boundaries: SentenceBoundaries,
    label_set: LabelSet,
    min_probability: float | None = None,
) -> list[Entities]:
    """Return the segments of label sequences with their exact probabilities, and the probabilities of the sequences.

    `lattice`: scores of a probabilistic model, with -inf for what the tag scheme forbids. `labels`: (B, T) int64, any
    label in the padding. `boundaries`: real tokens, first and last tokens of sentences. `label_set`: names and tag
    scheme of the labels. `min_probability`: add all other segments with a probability above this number. Returns for
    each of the B sequences its segments, sorted by start, end and descending probability. Raises InputError:
    `min_probability` is not in 0 <= p < 1, or the labels have no tag scheme.
    """
    first, last = segment_boundaries(labels, boundaries.real, boundaries.first, label_set)
    rows, starts = first.nonzero(as_tuple=True)
    segments = Segments(rows, starts, last.nonzero(as_tuple=True)[1] + 1)
    kinds = label_set.types.to(labels.device)[labels[rows, starts]]
    sure = segment_confidence(lattice, labels, segments, boundaries, label_set)
    found: list[dict[tuple[str, int, int], ProbableSpan]] = [{} for _ in range(len(labels))]
    _add_spans(found, label_set, ProbableSegments(*segments, kinds, sure), best=True)
    if min_probability is not None:
        check_min_probability(min_probability, label_set)
        others = probable_segments(lattice, label_set, min_probability, boundaries.first)
        _add_spans(found, label_set, others, best=False)
    sequences = step_log_probabilities(lattice, labels).sum(1).exp().tolist()
    order = (sorted(one.values(), key=lambda span: (span.start, span.end, -span.probability)) for one in found)
    return [Entities(*pair) for pair in zip(order, sequences, strict=True)]


def _add_spans(
    found: list[dict[tuple[str, int, int], ProbableSpan]], label_set: LabelSet, segments: ProbableSegments, best: bool
) -> None:
    """Add segments to those of their rows that are not there yet."""
    for row, start, end, kind, p in zip(*(part.tolist() for part in segments), strict=True):
        span = ProbableSpan(label_set.type_names[kind], start, end, p, best)
        found[row].setdefault((span.type, start, end), span)


@torch.no_grad()
def confidence_within(lattice: Lattice, labels: Tensor, boundaries: SentenceBoundaries, label_set: LabelSet) -> Tensor:
    """Return for each token the confidence (B, T) of its segment, given labels (B, T); NaN outside segments."""
    first, last = segment_boundaries(labels, boundaries.real, boundaries.first, label_set)
    rows, starts = first.nonzero(as_tuple=True)
    segments = Segments(rows, starts, last.nonzero(as_tuple=True)[1] + 1)
    confidence = segment_confidence(lattice, labels, segments, boundaries, label_set)
    within = (label_set.types.to(labels.device)[labels] >= 0) & boundaries.real
    number = (first.flatten().cumsum(0) - 1).clamp(min=0).view(labels.shape)
    nothing = torch.full(labels.shape, torch.nan, dtype=lattice.unary.dtype, device=labels.device)
    return torch.where(within, confidence[number], nothing) if len(confidence) else nothing
