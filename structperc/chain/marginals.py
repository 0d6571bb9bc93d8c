"""Sums over all label sequences: log-partition, marginals, samples, entropy, divergence; local normalisation."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.lattices import expand_edges, operands, to_double, token_mask, validate_lattice
from structperc.chain.segment_scores import (
    entropy_of_labels,
    label_marginals,
    sampled_labels,
    steps_of_labels,
    sum_of_paths,
)
from structperc.errors import InputError
from structperc.ops.operators import forward_backward, local_log_partition
from structperc.ops.operators import sample as sample_paths
from structperc.ops.reference.scan import any_invalid
from structperc.structures import Lattice


def log_partition(lattice: Lattice) -> Tensor:
    """Return the log-partition of each sequence, log Z = log sum_y exp(score(y)) over all label sequences y.

    The gradient of log Z is the marginals. Higher derivatives are available too. Returns log Z (B,), 0 for an empty
    sequence; -inf, with a gradient of 0, where no label sequence is possible.
    """
    if lattice.segments is not None:
        return sum_of_paths(lattice)
    unary, edge, lengths = operands(lattice)
    return forward_backward(unary, edge, lengths, torch.is_grad_enabled() and edge.requires_grad)[0]


def marginals(lattice: Lattice) -> Tensor:
    """Return the probability p(y_t = y | x) of each label at each token. Differentiable.

    Returns the probabilities (B, T, L), 0 where impossible and in the padding.

    Example:
        >>> import torch
        >>> from structperc.chain import marginals
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> marginals(lattice)
        tensor([[[0.2689, 0.7311],
                 [0.8808, 0.1192]]])
    """
    if lattice.segments is not None:
        return label_marginals(lattice)
    return forward_backward(*operands(lattice), False)[1]


def edge_marginals(lattice: Lattice) -> Tensor:
    """Return the probability p(y_{t-1} = i, y_t = j | x) of each pair of labels at each token. Differentiable.

    Returns the probabilities (B, T, L, L), 0 at the first token, where impossible, and in the padding.
    """
    return _forward_backward(validate_lattice(lattice))[2]


@torch.no_grad()
def sample(lattice: Lattice, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw label sequences independently from p(y | x).

    `n`: number of label sequences drawn for each sequence. `generator`: random number generator, on the device of the
    lattice. Returns labels (B, n, T) int64, 0 in the padding and where no label sequence is possible.

    Raises:
        InvalidScoreError: on a CPU, a score of +inf or NaN.

    Example:
        >>> import torch
        >>> from structperc.chain import sample
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> labels = sample(lattice, n=1000, generator=torch.Generator().manual_seed(0))
        >>> 0.7 < labels[0, :, 0].float().mean() < 0.76  # the marginal is 0.73
        tensor(True)
    """
    B, T = lattice.unary.shape[:2]
    dtype = torch.float32 if lattice.unary.device.type == "mps" else torch.float64
    noise = torch.rand(B, n, T, generator=generator, dtype=dtype, device=lattice.unary.device)
    if lattice.segments is not None:
        return sampled_labels(lattice, noise)
    return sample_paths(*operands(lattice), noise)


def _forward_backward(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """Return log Z, marginals (B, T, L) and edge marginals (B, T, L, L)."""
    return forward_backward(lattice.unary, expand_edges(lattice), lattice.lengths, True)


MAX_PAIRS = 1 << 23  # above, the sums are taken token by token, in memory for the pairs of one token


@torch.no_grad()
def next_marginals(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return the probability p(y_{t+1} = j | y_t, x) of each next label, given a label at each token.

    `labels`: (B, T) int64, the given labels y_t; ignored in the padding. Returns the probabilities (B, T, L) float64, 0
    at last tokens, in the padding, and where the given label is impossible; NaN for a sequence with a score of +inf or
    NaN.
    """
    lattice = to_double(validate_lattice(lattice))
    if _has_small_tables(lattice):
        _, nodes, pairs = _forward_backward(lattice)
        both = pad(_select(pairs[:, 1:], labels[:, :-1]), (0, 0, 0, 1))
        return _mark_invalid(_ratio(both, _select(nodes.unsqueeze(3), labels)), lattice)
    unary, real, found = lattice.unary, token_mask(lattice), torch.zeros_like(lattice.unary)
    after = torch.zeros_like(unary[:, 0])
    for t in range(unary.shape[1] - 2, -1, -1):
        table = _edge(lattice, t + 1) + (unary[:, t + 1] + after).unsqueeze(1)
        found[:, t] = _select(table, labels[:, t]).softmax(1).where(real[:, t + 1, None], 0)
        after = _subtract_level(table.logsumexp(2)).where(real[:, t + 1, None], 0)
    return _zero_impossible(found, lattice, labels)


@torch.no_grad()
def previous_marginals(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return the probability p(y_{t-1} = i | y_t, x) of each previous label, given a label at each token.

    `labels`: (B, T) int64, the given labels y_t; ignored in the padding. Returns the probabilities (B, T, L) float64, 0
    at first tokens, in the padding, and where the given label is impossible; NaN for a sequence with a score of +inf or
    NaN.
    """
    lattice = to_double(validate_lattice(lattice))
    if _has_small_tables(lattice):
        _, nodes, pairs = _forward_backward(lattice)
        both = _select(pairs.transpose(2, 3), labels)
        return _mark_invalid(_ratio(both, _select(nodes.unsqueeze(3), labels)), lattice)
    unary, real, found = lattice.unary, token_mask(lattice), torch.zeros_like(lattice.unary)
    before = unary[:, 0]
    for t in range(1, unary.shape[1]):
        table = (_edge(lattice, t) + before.unsqueeze(2)).transpose(1, 2)
        found[:, t] = _select(table, labels[:, t]).softmax(1).where(real[:, t, None], 0)
        before = _subtract_level(table.logsumexp(2) + unary[:, t])
    return _zero_impossible(found, lattice, labels)


def _has_small_tables(lattice: Lattice) -> bool:
    return lattice.unary.numel() * lattice.unary.shape[2] <= MAX_PAIRS


def _edge(lattice: Lattice, t: int) -> Tensor:
    """Return the edge scores (B or 1, L, L) into a token."""
    return lattice.edge[:, min(t, lattice.edge.shape[1] - 1)]


def _select(tables: Tensor, labels: Tensor) -> Tensor:
    """Return rows `labels` (...) of tables (..., L, M) as (..., M)."""
    return tables.take_along_dim(labels[..., None, None], -2).squeeze(-2)


def _subtract_level(sums: Tensor) -> Tensor:
    """Subtract the largest of each row of sums (B, L), so that long sequences lose no digits."""
    most = sums.amax(1, keepdim=True)
    return sums - most.where(most > -torch.inf, 0)


def _zero_impossible(shares: Tensor, lattice: Lattice, labels: Tensor) -> Tensor:
    return _mark_invalid(shares.where(_select(marginals(lattice).unsqueeze(3), labels) > 0, 0), lattice)


def _mark_invalid(shares: Tensor, lattice: Lattice) -> Tensor:
    """Make shares (B, T, L) of sequences with a score of +inf or NaN NaN."""
    wrong = any_invalid(lattice.unary, lattice.edge, lattice.lengths).unsqueeze(1) & token_mask(lattice)
    return shares.masked_fill(wrong.unsqueeze(2), torch.nan)


def _ratio(both: Tensor, given: Tensor) -> Tensor:
    return (both / given).where(given > 0, 0).clamp(max=1)


def step_log_probabilities(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return log p(y_t | y_{t-1}, x) of each label, for the first one log p(y_0 | x). Differentiable.

    In a chain, this is the log-probability of a label given all labels before it: the sum over the tokens of a sequence
    is the log-probability of its labels. It is computed without differences of large sums, token by token. With scores
    of segments, the log-probability of a segment is at its first token, and that of its other labels is 0. `labels`:
    (B, T) int64, any label in the padding. Returns log-probabilities (B, T) float64, 0 in the padding, -inf where
    impossible; NaN for a sequence with a score of +inf or NaN.
    """
    if not labels.shape[1]:
        return labels.double()
    if lattice.segments is not None:
        return steps_of_labels(lattice, labels)
    lattice = validate_lattice(lattice)
    before, own = pad(labels[:, :-1], (1, 0)).unbind(1), labels.unbind(1)  # p(y_0) has one row
    tables = zip(_step_log_probs(lattice), reversed(before), reversed(own), strict=True)
    steps = [_select(table, i).gather(1, j.unsqueeze(1)) for table, i, j in tables]
    real = token_mask(lattice)
    found = torch.cat(steps[::-1], 1).where(real, 0)
    return found.masked_fill(_invalid(lattice).unsqueeze(1) & real, torch.nan)


def locally_normalised(lattice: Lattice) -> Lattice:
    """Return the lattice of a maximum-entropy Markov model (MEMM, Ratnaparkhi 1996).

    The score of a label sequence becomes log p(y | x) = sum_t log p(y_t | y_{t-1}, x). Here p(y_0 = j) is the softmax
    over j of unary[0, j], and p(y_t = j | y_{t-1} = i) is the softmax over j of unary[t, j] + edge[t, i, j]. The log of
    the sum that normalises the labels after label i is subtracted from the unary score of i, and the edge scores are
    unchanged: only scores of whole label sequences are log-probabilities.

    Impossible labels stay impossible. A label becomes impossible if no label can follow it, unless it is at the last
    token: the probabilities of all label sequences then sum to less than 1. Lattices of a tag scheme have no such
    label. Differentiable.
    """
    unary, edge, lengths = operands(lattice)
    normalisers = local_log_partition(unary, edge, lengths)
    if unary.shape[1]:
        real = lengths > 0
        start = torch.where(real, _log_sum(torch.where(real.unsqueeze(1), unary[:, 0], 0)), 0).view(-1, 1, 1)
        normalisers = torch.cat([normalisers[:, :1] + start, normalisers[:, 1:]], 1)
    return Lattice(unary - normalisers, edge, lengths)


def _log_sum(scores: Tensor) -> Tensor:
    """Return torch.logsumexp along the last dimension; +inf, without a gradient, where all are impossible."""
    possible = scores.amax(-1) != -torch.inf
    return torch.where(possible, torch.where(possible.unsqueeze(-1), scores, 0).logsumexp(-1), torch.inf)


def entropy(lattice: Lattice) -> Tensor:
    """Return the entropy H(y | x) of each sequence, in nats.

    It is computed as a sum of conditional entropies, without differences of large sums. It needs memory for the label
    pairs of one token; with gradients, for those of all tokens. Differentiable. Returns the entropy (B,), 0 for an
    empty sequence and where no label sequence is possible; NaN where a score is +inf or NaN.
    """
    if lattice.segments is not None:
        return entropy_of_labels(lattice)
    return _expected_sum(lattice, lattice, lambda own, _: -own)


def cross_entropy(lattice: Lattice, other: Lattice) -> Tensor:
    """Return the cross-entropy -sum_y p(y) log q(y) of two distributions over label sequences, in nats. Differentiable.

    `lattice`: scores of B sequences, which define p. `other`: scores of the same shape and the same lengths, which
    define q. Lengths are not compared. Returns the cross-entropy (B,), +inf if a label sequence is possible in the
    first lattice only, 0 if none is possible there.

    Raises:
        InputError: wrong or different shapes.
    """
    return _expected_sum(lattice, other, lambda _, others: -others)


def divergence(lattice: Lattice, other: Lattice) -> Tensor:
    """Return the Kullback-Leibler divergence KL(p || q) = sum_y p(y) log(p(y) / q(y)), in nats. Differentiable.

    It is computed without differences of large sums. `lattice`: scores of B sequences, which define p. `other`: scores
    of the same shape and the same lengths, which define q. Lengths are not compared. Returns the divergence (B,), +inf
    if a label sequence is possible in the first lattice only, 0 if none is possible there.

    Raises:
        InputError: wrong or different shapes.
    """
    return _expected_sum(lattice, other, lambda own, others: own - others)


def _expected_sum(lattice: Lattice, other: Lattice, share: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return the expected sum (B,) over the tokens of share(log p(y_t | y_{t-1}), log q(y_t | y_{t-1}))."""
    if lattice.unary.shape != other.unary.shape:
        shapes = f"{tuple(lattice.unary.shape)} and {tuple(other.unary.shape)}"
        raise InputError(f"unary: expected two lattices of the same shape, got {shapes}")
    alone, lattice = other is lattice, validate_lattice(lattice)
    other = lattice if alone else validate_lattice(other)
    own_steps, unary = _step_log_probs(lattice), lattice.unary
    steps = ((x, x) for x in own_steps) if alone else zip(own_steps, _step_log_probs(other), strict=True)
    following = unary.new_zeros(len(unary), 1, dtype=to_double(lattice).unary.dtype)
    invalid = _invalid(lattice) | _invalid(other)
    for own, others in steps:
        p = own.exp()
        shares = (share(own, others) + following.unsqueeze(1)).where(p > 0, 0)  # probability 0 adds nothing
        finite = shares < torch.inf  # the rest has no gradient
        following = (p * shares.where(finite, 0)).sum(2).where(finite.all(2), torch.inf)
    return following[:, 0].to(unary.dtype).masked_fill(invalid, torch.nan)


def _invalid(lattice: Lattice) -> Tensor:
    """Return a mask (B,) of the sequences with a score of +inf or NaN."""
    return any_invalid(lattice.unary.detach(), lattice.edge.detach(), lattice.lengths)


def _step_log_probs(lattice: Lattice) -> Iterator[Tensor]:
    """Yield log p(y_t | y_{t-1}) (B, L, L) from the last token back to the second, then log p(y_0) (B, 1, L).

    They are in double precision, -inf where the probability is 0, where no label can follow, and in the padding.
    """
    lattice = to_double(lattice)
    unary, edge, real = lattice.unary, lattice.edge, token_mask(lattice)
    after = torch.zeros_like(unary[:, :1, :])
    for t in range(unary.shape[1] - 1, -1, -1):
        scores = unary[:, t : t + 1] + after
        scores = scores + edge[:, min(t, edge.shape[1] - 1)] if t else scores
        scores = scores.where(real[:, t, None, None], -torch.inf)
        most = scores.detach().amax((1, 2), keepdim=True)
        scores = scores - most.where(most > -torch.inf, 0)  # so that long sequences lose no digits
        possible = scores.amax(2, keepdim=True) > -torch.inf
        sums = scores.where(possible, 0).logsumexp(2, keepdim=True).where(possible, -torch.inf)
        yield (scores - sums.where(possible, 0)).where(possible, -torch.inf)
        after = sums.transpose(1, 2).where(real[:, t, None, None], 0)
