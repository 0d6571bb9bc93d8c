"""Minimum-Bayes-risk decoding: labels with the highest expected number of correct tokens or segments.

Both decoders need probabilities. For a model whose scores are not log-probabilities, divide them by a temperature that
was fitted on development data.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain.decoders import Decoder
from structperc.chain.lattices import map_scores, to_double, token_mask, validate_lattice
from structperc.chain.marginals import edge_marginals, marginals
from structperc.chain.segment_scores import segment_probabilities
from structperc.chain.viterbi import viterbi
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import BEGIN, END, INSIDE, SINGLE, parse_tag
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice


def scale(lattice: Lattice, temperature: float) -> Lattice:
    """Return a lattice with all scores divided by a temperature; its best label sequences stay the same.

    `temperature`: above 1 probabilities become more equal, below 1 more different (Guo et al. 2017, Eq. 9).

    Raises:
        InputError: the temperature is not a positive number.
    """
    check_temperature(temperature)
    return map_scores(lambda scores: scores / temperature, lattice)


def check_temperature(temperature: float) -> None:
    """Raise InputError unless a temperature is a positive number."""
    if not 0 < temperature < torch.inf:
        raise InputError(f"temperature must be a positive number, got {temperature}")


# -- tokens --------------------------------------------------------------------------------------------------


@torch.no_grad()
def minimum_token_risk(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the possible label sequence with the highest expected number of correct labels.

    It maximises sum_t p(y_t | x) over the label sequences whose labels and pairs of labels have finite scores: Viterbi
    search over marginals (posterior decoding). Returns the expected number of correct labels (B,) and the labels (B, T)
    int64, 0 in the padding.

    Raises:
        InvalidScoreError: on a CPU, a score of +inf or NaN.
    """
    gains = map_scores(_possible, lattice)
    return viterbi(gains._replace(unary=marginals(lattice) + gains.unary))


def _possible(scores: Tensor) -> Tensor:
    """Return 0 for possible scores, -inf for others."""
    return torch.where(scores == -torch.inf, scores, 0)


class MinimumTokenRisk(Decoder):
    """Decoder for the highest expected number of correct labels; see `minimum_token_risk`.

    Args:
        temperature: number by which the scores are divided to be log-probabilities.

    Raises:
        InputError: the temperature is not a positive number.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__()
        check_temperature(temperature)
        self.temperature = temperature

    def forward(self, lattice: Lattice) -> Candidates:
        """Return one candidate; its score is the expected number of correct labels."""
        return _one_candidate(*minimum_token_risk(scale(lattice, self.temperature)))


# -- segments ------------------------------------------------------------------------------------------------


class ProbableSegments(NamedTuple):
    """S segments with their probabilities: tokens starts[s] <= t < ends[s] of sequence rows[s] are of type kinds[s]."""

    rows: Tensor  # (S,) int64
    starts: Tensor  # (S,) int64
    ends: Tensor  # (S,) int64
    kinds: Tensor  # (S,) int64, index in `LabelSet.type_names`
    probabilities: Tensor  # (S,) float64


@torch.no_grad()
def probable_segments(
    lattice: Lattice, labels: LabelSet, threshold: float, first: Tensor | None = None
) -> ProbableSegments:
    """Return all segments with a probability above a threshold, with exactly their type, first and last token.

    Segments are those of the rule of conlleval (see `data.spans`) in each label sequence, whose probability is
    exp(score - log Z). Longer segments are computed as long as some segment of this length can be above the threshold.
    `threshold`: 0 <= threshold < 1. `first`: (B, T) bool, first tokens of sentences; by default, each sequence is one
    sentence. Returns the segments, shorter ones first.

    Raises:
        InputError: the threshold is outside 0..1.
    """
    if not 0 <= threshold < 1:
        raise InputError(f"threshold must be at least 0 and below 1, got {threshold}")
    if lattice.segments is not None:
        table = segment_probabilities(to_double(lattice)).permute(2, 0, 1, 3)
        sizes, rows, starts, kinds = (table > threshold).nonzero(as_tuple=True)
        return ProbableSegments(rows, starts, starts + sizes + 1, kinds, table[sizes, rows, starts, kinds])
    lattice = to_double(validate_lattice(lattice))
    nodes, pairs = marginals(lattice), edge_marginals(lattice)
    types, opening = labels.types.to(nodes.device), labels.opening.to(nodes.device)
    inside = types >= 0
    of_type = (types.unsqueeze(1) == torch.arange(len(labels.type_names), device=types.device)).to(nodes)  # (L, C)
    steps = pairs / nodes.roll(1, 1).clamp(min=torch.finfo(nodes.dtype).tiny).unsqueeze(3)  # p(y_t = j | y_{t-1} = i)
    steps = (steps * (inside & ~opening)).clamp(0, 1)
    mass = (pairs * (inside & opening)).sum(2)  # (B, T, L), probability that a segment begins with this label
    mass[:, :1] = nodes[:, :1] * inside
    if first is not None:
        mass = torch.where(first.unsqueeze(2), nodes * inside, mass)
        steps = steps.masked_fill(first[:, :, None, None], 0)
    leaving = 1 - steps.sum(3).roll(-1, 1)  # (B, T, L), probability that a segment with this label ends here
    ends = torch.arange(nodes.shape[1], device=nodes.device) == lattice.lengths.unsqueeze(1) - 1
    leaving = leaving.masked_fill(ends.unsqueeze(2), 1).clamp(0, 1)
    found = []
    for size in range(1, max(1, nodes.shape[1]) + 1):
        table = (mass * leaving) @ of_type  # (B, T, C), by last token
        rows, last, kinds = (table > threshold).nonzero(as_tuple=True)
        found.append(ProbableSegments(rows, last + 1 - size, last + 1, kinds, table[rows, last, kinds]))
        if not bool((mass.sum(2) > threshold).any()):
            break
        mass = torch.cat([torch.zeros_like(mass[:, :1]), torch.einsum("bti,btij->btj", mass[:, :-1], steps[:, 1:])], 1)
    return ProbableSegments(*(torch.cat(parts) for parts in zip(*found, strict=True)))


@torch.no_grad()
def minimum_segment_risk(lattice: Lattice, labels: LabelSet, threshold: float = 0.5) -> tuple[Tensor, Tensor]:
    """Return the segments with the highest expected number of correct ones, minus a threshold for each.

    It maximises sum_s (p(s | x) - threshold) over all sets of segments without overlap, exactly. A segment pays off if
    its probability is above the threshold: a high one gives precision, a low one recall. With costs c_m of a missed and
    c_s of a spurious segment, the lowest expected cost has the threshold c_s / (c_m + c_s). The labels are legal in the
    tag scheme, but their score may be -inf if the lattice forbids more than the scheme. `labels`: names and tag scheme
    of the labels, not IOB1, IO or "none". `threshold`: 0 <= threshold < 1. Returns the sum (B,) float64 of each
    sequence, and its labels (B, T) int64, 0 in the padding.

    Raises:
        InputError: another scheme, or the threshold is outside 0..1.

    Example:
        >>> import torch
        >>> from structperc.chain.minimum_risk import minimum_segment_risk
        >>> from structperc.data import LabelSet
        >>> from structperc.structures import Lattice
        >>> unary = torch.tensor([[[3.0, 1.0, 0.0], [1.0, 0.0, 0.0]]]).log()  # O or B-PER, then O
        >>> lattice = Lattice(unary, torch.zeros(1, 1, 3, 3), torch.tensor([2]))
        >>> label_set = LabelSet(("O", "B-PER", "I-PER"), "IOB2")
        >>> [minimum_segment_risk(lattice, label_set, threshold)[1].tolist() for threshold in (0.5, 0.1)]
        [[[0, 0]], [[1, 0]]]
    """
    check_segment_labels(labels)
    segments = probable_segments(lattice, labels, threshold)
    B, T, _ = lattice.unary.shape
    by_end: list[list[list[tuple[int, int, float]]]] = [[[] for _ in range(T + 1)] for _ in range(B)]
    for row, start, end, kind, p in zip(*(part.tolist() for part in segments), strict=True):
        by_end[row][end].append((start, kind, p - threshold))
    chosen = [_best_segments(row) for row in by_end]
    written = _written_labels(labels)
    best = torch.full((B, T), labels.index("O"))
    for row, (_, spans) in zip(best, chosen, strict=True):
        for start, end, kind in spans:
            begin, inner, final, single = written[kind]
            row[start:end] = inner
            row[end - 1] = final
            row[start] = single if end == start + 1 else begin
    sums = torch.tensor([total for total, _ in chosen], dtype=torch.float64, device=lattice.unary.device)
    return sums, best.to(lattice.unary.device).where(token_mask(lattice), 0)


def _best_segments(by_end: list[list[tuple[int, int, float]]]) -> tuple[float, list[tuple[int, int, int]]]:
    """Return the highest sum of gains of segments without overlap, and these segments (start, end, kind).

    `by_end` has the segments (start, kind, gain) that end before each token.
    """
    totals = [0.0]  # of the tokens before t
    through: list[tuple[int, int] | None] = [None]  # start and kind of the segment that ends there
    for ending in by_end[1:]:
        best, choice = totals[-1], None
        for start, kind, gain in ending:
            if totals[start] + gain > best:
                best, choice = totals[start] + gain, (start, kind)
        totals.append(best)
        through.append(choice)
    spans, t = [], len(totals) - 1
    while t:
        choice = through[t]
        if choice is not None:
            spans.append((choice[0], t, choice[1]))
        t = t - 1 if choice is None else choice[0]
    return totals[-1], spans


def check_segment_labels(labels: LabelSet) -> None:
    """Raise InputError for labels whose scheme has no label of its own for the first token of each segment."""
    if labels.scheme in ("IOB1", "IO", "none"):
        raise InputError(f"decoding of segments does not support the scheme {labels.scheme}; use IOB2 (data.scheme)")


def _written_labels(labels: LabelSet) -> list[list[int]]:
    """Return the ids of the first, inner, last and only label of a segment of each type."""
    ids = {tuple(parse_tag(name, labels.scheme)): i for i, name in enumerate(labels.names)}
    prefixes = (BEGIN, INSIDE, INSIDE, BEGIN) if labels.scheme == "IOB2" else (BEGIN, INSIDE, END, SINGLE)
    outside = labels.index("O")  # for a label without training data, whose segments have probability 0
    return [[ids.get((prefix, kind), outside) for prefix in prefixes] for kind in labels.type_names]


class MinimumSegmentRisk(Decoder):
    """Decoder for the highest expected number of correct segments, minus a threshold; see `minimum_segment_risk`.

    Args:
        threshold: probability above which a segment pays off, 0 <= threshold < 1.
        temperature: number by which the scores are divided to be log-probabilities.

    Raises:
        InputError: a number is out of range, or (from `allocate`) the labels are of scheme IOB1, IO or "none".
    """

    labels: LabelSet

    def __init__(self, threshold: float = 0.5, temperature: float = 1.0) -> None:
        super().__init__()
        if not 0 <= threshold < 1:
            raise InputError(f"threshold must be at least 0 and below 1, got {threshold}")
        check_temperature(temperature)
        self.threshold, self.temperature = threshold, temperature

    def allocate(self, labels: LabelSet) -> None:
        """Keep the labels. Raises InputError for the schemes IOB1, IO and "none"."""
        check_segment_labels(labels)
        self.labels = labels

    def forward(self, lattice: Lattice) -> Candidates:
        """Return one candidate; its score is the expected number of correct segments minus the threshold for each."""
        return _one_candidate(*minimum_segment_risk(scale(lattice, self.temperature), self.labels, self.threshold))


class SegmentThreshold(MinimumSegmentRisk):
    """Decoder that finds all segments with a probability above a threshold, also those that overlap.

    It reaches a higher recall than any label sequence, which has one segment for each token. `segments` returns them;
    the labels are those of `MinimumSegmentRisk`, a part of them without overlap.

    Args:
        threshold: probability of the segments that are found, 0 <= threshold < 1.
    """

    def segments(self, lattice: Lattice) -> ProbableSegments:
        """Return all segments above the threshold; see `probable_segments`."""
        return probable_segments(scale(lattice, self.temperature), self.labels, self.threshold)


def _one_candidate(scores: Tensor, labels: Tensor) -> Candidates:
    return Candidates(labels.unsqueeze(1), scores.unsqueeze(1), torch.ones_like(scores, dtype=torch.bool).unsqueeze(1))
