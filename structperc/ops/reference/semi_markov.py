"""Dynamic programs on segments in tensor operations: sums, the k best segmentations, samples.

Notation: U[t, d, c] is the best score (or the log-sum of the scores) of all tokens from t on, beginning with a segment
of d tokens and type c at t; V[t, d, c] that of segments of at least d tokens. A search proceeds by tokens: the next one
continues the segment, or begins another one. So a segmentation is a sequence of labels, and the searches of a chain
apply: label c begins a segment of type c, label C + c continues it.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.ops.reference.forward_backward import log_sum
from structperc.ops.reference.kbest import traced_labels
from structperc.ops.reference.scan import Reduce, Rows, high_precision, scan
from structperc.structures import real_tokens


class Scores(NamedTuple):
    """Scores in double precision that tokens of all sequences share in shape, -inf where a segment does not fit."""

    whole: Tensor  # (B, T, D, C), score of each segment by itself: its tokens, less their levels, and its own
    fits: Tensor  # (B, T, D) bool, segments within the sequence
    pair: Tensor  # (C, C)
    lengths: Tensor  # (B,) int64
    levels: Tensor  # (B, T), what was subtracted from the scores of each token; 0 in the padding
    invalid: Tensor  # (B,) bool, a score of +inf or NaN


def prepare(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Scores:
    """Return the scores of all segments, as sums over their tokens from the first one on.

    `token`: (B, T, C). `segment`: (B or 1, T or 1, D, C). `pair`: (C, C). `lengths`: (B,) int64.
    """
    (B, T, C), D = token.shape, segment.shape[2]
    lengths = lengths.to(token.device, non_blocking=True)
    real, steps = real_tokens(lengths, T), torch.arange(T, device=token.device)
    fits = steps.view(1, T, 1) + torch.arange(1, D + 1, device=token.device) <= lengths.view(B, 1, 1)
    own, added = high_precision(torch.where(real.unsqueeze(2), token, 0)), high_precision(segment).expand(B, T, D, C)
    added = torch.where(fits.unsqueeze(3), added, -torch.inf)
    highest = own.detach().amax(2)
    levels = torch.where(real & (highest.abs() < torch.inf), highest, 0)
    totals: list[Tensor] = []
    following = own - levels.unsqueeze(2)
    for d in range(D):
        later = torch.nn.functional.pad(following[:, d:], (0, 0, 0, min(d, T)))
        totals.append(later if d == 0 else totals[-1] + later)
    whole = torch.stack(totals, 2) if D else own.new_empty(B, T, 0, C)
    several = (~(pair.detach() < torch.inf)).any() & (lengths > 1)
    invalid = (~(own.detach() < torch.inf)).flatten(1).any(1) | (~(added.detach() < torch.inf)).flatten(1).any(1)
    possible = fits.unsqueeze(3) & (added > -torch.inf)
    whole = torch.where(possible, torch.where(possible, whole, 0) + added, -torch.inf)
    return Scores(whole, fits, high_precision(pair), lengths, levels, invalid | several)


def scores_after(scores: Scores, reduce: Reduce) -> Tensor:
    """Reduce the scores of all that follows a segment of each type that ends before token t.

    Returns (B, T + 1, C): 0 at the end of a sequence, -inf behind it.
    """
    B, T, D, C = scores.whole.shape
    steps = torch.arange(T, device=scores.whole.device)

    def step(ring: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        whole, at = here
        begun = reduce((whole + ring).transpose(1, 2))  # (B, C)
        after = reduce(scores.pair + begun.unsqueeze(1))
        after = torch.where((at < scores.lengths).unsqueeze(1), after, -torch.inf)
        after = torch.where((at == scores.lengths).unsqueeze(1), 0, after)
        return torch.cat([after.unsqueeze(1), ring[:, :-1]], 1), after

    end = torch.where((scores.lengths == T).view(B, 1, 1), scores.whole.new_zeros(B, 1, C), -torch.inf)
    ring = torch.cat([end, scores.whole.new_full((B, D - 1, C), -torch.inf)], 1)
    found = scan(step, ring, (scores.whole.transpose(0, 1).flip(0), steps.flip(0)))
    found = found.flip(0).transpose(0, 1) if T else ring[:, :0]
    return torch.cat([found, end], 1)


def scores_before(scores: Scores, reduce: Reduce) -> Tensor:
    """Reduce the scores of all that precedes a segment of each type that begins at token t.

    Returns (B, T, C), 0 at t = 0.
    """
    B, T, D, C = scores.whole.shape
    if not T:
        return scores.whole.new_empty(B, 0, C)
    ending = torch.stack(
        [torch.nn.functional.pad(scores.whole[:, : max(T - d, 0), d], (0, 0, min(d, T), 0)) for d in range(D)], 2
    )  # (B, T, D, C), by last token; what does not fit meets a ring of -inf

    def step(ring: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        (ending,) = here
        ended = reduce((ending + ring).transpose(1, 2))
        before = reduce((ended.unsqueeze(2) + scores.pair).transpose(1, 2))
        return torch.cat([before.unsqueeze(1), ring[:, :-1]], 1), before

    start = scores.whole.new_zeros(B, 1, C)
    ring = torch.cat([start, scores.whole.new_full((B, D - 1, C), -torch.inf)], 1)
    found = scan(step, ring, (ending.transpose(0, 1)[:-1],))
    return torch.cat([start, found.transpose(0, 1)], 1) if T > 1 else start


def scores_from(scores: Scores, after: Tensor) -> Tensor:
    """Return U (B, T, D, C) from the result of `scores_after`."""
    T, D = scores.whole.shape[1:3]
    padded = torch.nn.functional.pad(after, (0, 0, 0, D), value=-torch.inf)
    return scores.whole + torch.stack([padded[:, d + 1 : d + 1 + T] for d in range(D)], 2)


class Choices(NamedTuple):
    """Scores of the choices by which a segmentation is drawn from left to right, and probabilities of segments.

    Probabilities are products of those of choices, so that they add up to 1 whatever the size of the scores.
    """

    first: Tensor  # (B, 1, C) types of the first segment; (B, 0, C) without tokens
    types: Tensor  # (B, T, C, C) types of the segment that begins at a token, by type of the one before it
    sizes: Tensor  # (B, T, C, D) numbers of tokens of the segment that begins at a token, by type
    joined: Tensor  # (B, T, C, C) probabilities of `types`
    segments: Tensor  # (B, T, D, C) probabilities of segments
    ended: Tensor  # (B, T, C) probabilities of the types of segments that end before a token


def _choices(scores: Scores) -> Choices:
    B, T, D, C = scores.whole.shape
    sizes = scores_from(scores, scores_after(scores, log_sum)).transpose(2, 3)
    begun, steps = log_sum(sizes), torch.arange(T, device=scores.whole.device)
    types = scores.pair + begun.unsqueeze(2)
    start, joined = torch.where(steps.view(T, 1) == 0, _softmax(begun), 0), _softmax(types)

    def step(ring: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        start, joined, shares = here
        begins = start + (ring[:, 0].unsqueeze(2) * joined).sum(1)
        each = begins.unsqueeze(1) * shares.transpose(1, 2)
        return torch.cat([ring[:, 1:], torch.zeros_like(ring[:, :1])], 1) + each, each

    inputs = tuple(x.transpose(0, 1) for x in (start, joined, _softmax(sizes)))
    segments = scan(step, scores.whole.new_zeros(B, D, C), inputs).transpose(0, 1)
    segments = torch.where(scores.fits.unsqueeze(3), segments, 0)  # also in invalid sequences
    return Choices(begun[:, :1], types, sizes, joined, segments, _ended_before(segments))


def _ended_before(segments: Tensor) -> Tensor:
    """Return the sums (B, T, C) of the entries (B, T, D, C) of all segments that end before a token."""
    T, D = segments.shape[1:3]
    parts = [
        torch.nn.functional.pad(segments[:, : max(T - d, 0), d - 1], (0, 0, min(d, T), 0)) for d in range(1, D + 1)
    ]
    return torch.stack(parts).sum(0)


def _softmax(scores: Tensor) -> Tensor:
    """Return the softmax along the last dimension, 0 where nothing is possible."""
    possible = scores.detach().amax(-1, keepdim=True) > -torch.inf
    return torch.where(possible, torch.where(possible, scores, 0).softmax(-1), 0)


def semi_markov_sums(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_sums`."""
    scores = prepare(token, segment, pair, lengths)
    found, invalid, nonempty = _choices(scores), scores.invalid, scores.lengths > 0
    level = log_sum(found.first).sum(1)
    total = torch.where(nonempty, level + scores.levels.sum(1), 0).masked_fill(invalid, torch.nan)
    segments, tokens = found.segments, _tokens_of_segments(found.segments)
    pairs = (found.ended.unsqueeze(3) * found.joined).sum(1)
    wrong = (invalid & nonempty).view(-1, 1, 1)
    segments = segments.masked_fill(wrong.unsqueeze(3) & scores.fits.unsqueeze(3), torch.nan)
    tokens, pairs = tokens.masked_fill(wrong & scores.fits[:, :, :1], torch.nan), pairs.masked_fill(wrong, torch.nan)
    dtype = token.dtype
    return total.to(dtype), segments.to(dtype), tokens.to(dtype), pairs.to(dtype)


def semi_markov_log_partition(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_log_partition`."""
    return for_gradient(semi_markov_sums(token, segment, pair, lengths), segment, with_gradient)


def for_gradient(
    sums: tuple[Tensor, Tensor, Tensor, Tensor], segment: Tensor, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the results of `semi_markov_log_partition`, given those of `semi_markov_sums`."""
    total, segments, tokens, pairs = sums
    if not with_gradient:
        segments, tokens, pairs = (x.new_zeros(len(x), 0, *x.shape[2:]) for x in (segments, tokens, pairs))
    elif segment.shape[1] == 1:
        segments = segments.sum(1, keepdim=True)
    return total, segments, tokens, pairs


def _tokens_of_segments(segments: Tensor) -> Tensor:
    """Return the sums (B, T, C) of the entries (B, T, D, C) of all segments that contain a token."""
    T, D = segments.shape[1:3]
    at_least = segments.flip(2).cumsum(2).flip(2)  # of segments that begin here, with at least so many tokens
    parts = [torch.nn.functional.pad(at_least[:, : max(T - d, 0), d], (0, 0, min(d, T), 0)) for d in range(D)]
    return torch.stack(parts).sum(0)


def semi_markov_best(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Implement `structperc.ops.segment_operators.semi_markov_best`."""
    scores = prepare(token, segment, pair, lengths)
    before, through = scores_before(scores, _highest), scores_from(scores, scores_after(scores, _highest))
    level = scores.levels.sum(1).view(-1, 1, 1, 1)
    best = torch.where(through > -torch.inf, before.unsqueeze(2) + through + level, -torch.inf)
    best = best.masked_fill(scores.invalid.view(-1, 1, 1, 1) & scores.fits.unsqueeze(3), torch.nan)
    return best.to(token.dtype)


def _highest(scores: Tensor) -> Tensor:
    return scores.max(-1).values  # its gradient is that of one of several equal scores


# -- segmentations, token by token ---------------------------------------------------------------------------


class Continuations(NamedTuple):
    """Tables from which the next label of a segmentation is chosen."""

    begin: Tensor  # (B, T, C), best score or log-sum of all from t on, if a segment of this type begins at t
    at_least: Tensor  # V (B, T, D + 1, C), the last one -inf
    whole: Tensor  # (B, T, D, C)
    pair: Tensor  # (C, C)

    def choices(self, t: int, starts: Tensor, kinds: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the next labels (B, n, 2 C) and of the state, before token t >= 1.

        `t`: the token. `starts`: (B, n) int64, where the open segment of each segmentation begins. `kinds`: (B, n)
        int64, its type.
        """
        B, n = starts.shape
        _, _, D, C = self.whole.shape
        rows, size = torch.arange(B, device=starts.device).unsqueeze(1), t - starts
        closed = self.whole[rows, starts, (size - 1).clamp(max=D - 1), kinds]
        closed = torch.where(size <= D, closed, -torch.inf)
        begun = closed.unsqueeze(2) + (self.pair[kinds] + self.begin[:, t].unsqueeze(1))
        inside = torch.full((B, n, C), -torch.inf, dtype=begun.dtype, device=begun.device)
        further = self.at_least[rows, starts, size.clamp(max=D), kinds]
        inside.scatter_(2, kinds.unsqueeze(2), further.unsqueeze(2))
        return torch.cat([begun, inside], 2), self.at_least[rows, starts, (size - 1).clamp(max=D), kinds]


def _continuations(scores: Scores, largest: bool) -> Continuations:
    through = scores_from(scores, scores_after(scores, _highest if largest else log_sum))
    flipped = through.flip(2)
    at_least = (_running_max if largest else _running_log_sum)(flipped).flip(2)
    at_least = torch.nn.functional.pad(at_least, (0, 0, 0, 1), value=-torch.inf)
    return Continuations(at_least[:, :, 0], at_least, scores.whole, scores.pair)


def _running_max(scores: Tensor) -> Tensor:
    return scores.cummax(2)[0] if scores.numel() else scores


def _running_log_sum(scores: Tensor) -> Tensor:
    """Return running log-sums (B, T, D, C) along D."""
    sums = [scores[:, :, 0]]
    for d in range(1, scores.shape[2]):
        sums.append(log_sum(torch.stack([sums[-1], scores[:, :, d]], -1)))
    return torch.stack(sums, 2)


def semi_markov_kbest(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_kbest`; losses as in `structperc.ops.reference.kbest`."""
    (B, T, C), device = token.shape, token.device
    scores = prepare(token.detach(), segment.detach(), pair.detach(), lengths)
    tables = _continuations(scores, largest=True)
    possible = (tables.begin[:, 0].amax(1) > -torch.inf) | (scores.lengths == 0) if T else scores.lengths == 0
    losses = token.new_full((B, k), torch.inf, dtype=torch.float64)
    losses[:, 0] = torch.where(possible & ~scores.invalid, 0, torch.inf)
    starts = kinds = last = torch.zeros(B, k, dtype=torch.int64, device=device)
    picks = []
    for t in range(T):
        if t == 0:
            begun = torch.nn.functional.pad(tables.begin[:, :1], (0, C), value=-torch.inf).expand(-1, k, -1)
            choices, state = begun, begun.amax(2)
        else:
            choices, state = tables.choices(t, starts, kinds)
        step = torch.where(choices > -torch.inf, state.unsqueeze(2) - choices, torch.inf).clamp(min=0)
        losses, pick = _extended(losses, last, step, t < scores.lengths)
        slot, last = pick // (2 * C), pick % (2 * C)
        starts = torch.where(last < C, t, starts.gather(1, slot))
        kinds = last % C
        picks.append(pick)
    labels, valid = traced_labels(picks, last, 2 * C), losses < torch.inf
    real = real_tokens(scores.lengths, T)
    labels = torch.where(real.unsqueeze(1) & valid.unsqueeze(2), labels, 0)
    found = semi_markov_path_score(token.detach(), segment.detach(), pair.detach(), scores.lengths, labels)
    found = torch.where(valid, found, -torch.inf).masked_fill(scores.invalid.unsqueeze(1), torch.nan)
    found, order = found.sort(dim=1, descending=True, stable=True)
    return labels.gather(1, order.unsqueeze(2).expand(-1, -1, T)), found, valid.gather(1, order)


def _extended(losses: Tensor, last: Tensor, step: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Extend prefixes by a label; return losses (B, k) and choices (B, k), prefix * labels + label."""
    nothing = torch.full_like(step, torch.inf)
    nothing.scatter_(2, last.unsqueeze(2), 0)  # prefixes do not change in the padding
    extended = (losses.unsqueeze(2) + torch.where(real.view(-1, 1, 1), step, nothing)).flatten(1)
    pick = extended.sort(dim=1, stable=True)[1][:, : losses.shape[1]].sort(1)[0]
    return extended.gather(1, pick), pick


def semi_markov_viterbi(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.segment_operators.semi_markov_viterbi`."""
    labels, scores, _ = semi_markov_kbest(token, segment, pair, lengths, 1)
    return scores[:, 0], labels[:, 0]


def semi_markov_sample(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Implement `structperc.ops.segment_operators.semi_markov_sample`."""
    (B, T, C), n = token.shape, noise.shape[1]
    scores = prepare(token.detach(), segment.detach(), pair.detach(), lengths)
    tables = _continuations(scores, largest=False)
    starts = kinds = torch.zeros(B, n, dtype=torch.int64, device=token.device)
    drawn = []
    for t in range(T):
        if t:
            choices, _ = tables.choices(t, starts, kinds)
        else:
            choices = torch.nn.functional.pad(tables.begin[:, :1], (0, C), value=-torch.inf).expand(-1, n, -1)
        highest = choices.amax(2, keepdim=True)
        shares = (choices - torch.where(highest > -torch.inf, highest, 0)).exp()
        below = shares.cumsum(2)
        exceeds = (below > noise[:, :, t].unsqueeze(2) * below[..., -1:]) & (shares > 0)
        label = exceeds.to(torch.int8).argmax(2)
        starts, kinds = torch.where(label < C, t, starts), label % C
        drawn.append(label)
    labels = torch.stack(drawn, 2) if drawn else noise.new_zeros(B, n, 0, dtype=torch.int64)
    possible = tables.begin[:, 0].amax(1) > -torch.inf if T else scores.lengths == 0
    return torch.where(
        real_tokens(scores.lengths, T).unsqueeze(1) & (possible & ~scores.invalid).view(-1, 1, 1), labels, 0
    )


def semi_markov_path_score(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
    """Return the scores (B, n) of segmentations (B, n, T), sums in double precision; differentiable.

    A segment of more than D tokens is impossible, and so is a label that continues no segment of its type. The score is
    NaN if a label of a token is outside 0..2C - 1.
    """
    (B, T, C), D = token.shape, segment.shape[2]
    lengths, steps = lengths.to(token.device, non_blocking=True), torch.arange(T, device=token.device)
    real = real_tokens(lengths, T).unsqueeze(1)
    known = ((labels >= 0) & (labels < 2 * C)) | ~real
    labels = torch.where(real & known, labels, 0)
    kinds, begins, before = labels % C, labels < C, (steps - 1).clamp(min=0)
    starts = torch.where(begins, steps, 0).cummax(2)[0]
    sizes = steps - starts + 1
    ends = real & (begins[:, :, (steps + 1).clamp(max=T - 1)] | (steps == lengths.view(-1, 1, 1) - 1))
    rows = torch.arange(B, device=token.device).view(B, 1, 1)
    places = rows * (len(segment) > 1), starts * (segment.shape[1] > 1), (sizes - 1).clamp(max=D - 1), kinds
    joined = real & begins & (steps > 0)
    terms = (
        torch.where(real, token[rows, steps, kinds], 0),
        torch.where(ends, segment[places], 0),
        torch.where(joined, pair[kinds[:, :, before], kinds], 0),
    )
    total = sum((high_precision(x).sum(2) for x in terms), start=torch.zeros((), device=token.device))
    broken = real & ~begins & ((steps == 0) | (kinds != kinds[:, :, before]))
    total = torch.where((broken | (ends & (sizes > D))).any(2), -torch.inf, total)
    return torch.where(known.all(2), total, torch.nan).to(token.dtype)


def semi_markov_entropy(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Return the entropies (B,) of the distributions over segmentations; differentiable.

    A segmentation is drawn from left to right: the type of the next segment given the last one, then its length. The
    entropy is the expected sum of the entropies of these choices.
    """
    scores = prepare(token, segment, pair, lengths)
    found = _choices(scores)
    of_sizes, of_types = found.segments.sum(2) * _entropies(found.sizes), found.ended * _entropies(found.types)
    total = _entropies(found.first).sum(1) + (of_sizes + of_types).sum((1, 2))
    return total.masked_fill(scores.invalid & (scores.lengths > 0), torch.nan).to(token.dtype)


def _entropies(scores: Tensor) -> Tensor:
    """Return the entropies of softmax distributions along the last dimension, 0 where nothing is possible."""
    possible, highest = scores > -torch.inf, scores.detach().amax(-1, keepdim=True)
    shifted = torch.where(possible, scores - torch.where(highest > -torch.inf, highest, 0), -torch.inf)
    sums = log_sum(shifted).unsqueeze(-1)
    logs = torch.where(possible, torch.where(possible, shifted, 0) - torch.where(sums > -torch.inf, sums, 0), 0)
    return -torch.where(possible, logs.exp() * logs, 0).sum(-1)
