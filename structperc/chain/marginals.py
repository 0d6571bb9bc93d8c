"""Sums over all label sequences: log-partition, marginals, samples, entropy, divergence; local normalisation."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.lattices import expand_edges, to_double, token_mask, validate_lattice
from structperc.errors import InputError
from structperc.ops import any_invalid, forward_backward, local_log_partition
from structperc.ops import sample as sample_paths
from structperc.structures import Lattice


def log_partition(lattice: Lattice) -> Tensor:
    """Return log Z (B,) = log sum_y exp(score(y)) over all label sequences y; 0 for an empty sequence.

    Its gradients are the marginals, those of one transition matrix in the shape of the matrix; further derivatives are
    taken in tensor operations. Without a possible path log Z is -inf and the gradient 0.
    """
    lattice = validate_lattice(lattice)
    return forward_backward(*lattice, torch.is_grad_enabled() and lattice.edge.requires_grad)[0]


def marginals(lattice: Lattice) -> Tensor:
    """Return p(y_t = y | x) as (B, T, L), 0 where impossible and in the padding. Differentiable."""
    return forward_backward(*validate_lattice(lattice), False)[1]


def edge_marginals(lattice: Lattice) -> Tensor:
    """Return p(y_{t-1} = i, y_t = j | x) as (B, T, L, L), 0 at t = 0 and in the padding. Differentiable."""
    return _forward_backward(validate_lattice(lattice))[2]


@torch.no_grad()
def sample(lattice: Lattice, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Return n label sequences (B, n, T) int64 of each sequence, drawn independently from p(y | x).

    Labels are 0 in the padding and for a sequence without a possible path.
    """
    lattice = validate_lattice(lattice)
    B, T, _ = lattice.unary.shape
    dtype = torch.float32 if lattice.unary.device.type == "mps" else torch.float64
    noise = torch.rand(B, n, T, generator=generator, dtype=dtype, device=lattice.unary.device)
    return sample_paths(*lattice, noise)


def _forward_backward(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """Return log Z, marginals (B, T, L) and edge marginals (B, T, L, L)."""
    return forward_backward(lattice.unary, expand_edges(lattice), lattice.lengths, True)


MAX_PAIRS = 1 << 23  # above, the sums are taken token by token, in memory for the pairs of one token


@torch.no_grad()
def next_marginals(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return p(y_{t+1} = j | y_t = label, x) as (B, T, L), in double precision, for labels (B, T) int64.

    It is 0 at last tokens, in the padding (whose labels are ignored) and where the label is impossible; NaN at all
    tokens of a sequence with a score of +inf or NaN.
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
    """Return p(y_{t-1} = i | y_t = label, x) as (B, T, L), 0 at first tokens; the rest is as in `next_marginals`."""
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
    return shares.masked_fill((any_invalid(*lattice).unsqueeze(1) & token_mask(lattice)).unsqueeze(2), torch.nan)


def _ratio(both: Tensor, given: Tensor) -> Tensor:
    return (both / given).where(given > 0, 0).clamp(max=1)


def locally_normalised(lattice: Lattice) -> Lattice:
    """Return the lattice of a MEMM: path scores are log p(y | x) = sum_t log p(y_t | y_{t-1}, x) (Ratnaparkhi 1996).

    p(y_0 = j) is the softmax over j of unary[0, j], p(y_t = j | y_{t-1} = i) that of unary[t, j] + edge[t, i, j]. The
    normaliser of label i at t - 1 is subtracted from unary[t - 1, i] and the edges are unchanged, so that only scores
    of whole paths are log-probabilities.

    What is impossible stays so. A label that no label can follow, before the last token, is impossible too: its share
    is lost, and the probabilities of all paths sum to less than 1. Lattices of a tag scheme have no such label.
    """
    unary, edge, lengths = lattice = validate_lattice(lattice)
    normalisers = local_log_partition(*lattice)
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
    """Return the entropy H(y | x) in nats (B,), a sum of conditional entropies, which avoids differences of large sums.

    It is 0 for an empty sequence and for one without a possible path, NaN where a score is +inf or NaN. Differentiable.
    It takes memory for the pairs of one token; with gradients, for those of all.
    """
    return _expected_sum(lattice, lattice, lambda own, _: -own)


def cross_entropy(lattice: Lattice, other: Lattice) -> Tensor:
    """Return -sum over y of p(y) log q(y) in nats (B,), p of the first lattice and q of the other. Differentiable.

    Both must have the same lengths, which is not checked. It is +inf where the first allows a path that the other does
    not, 0 where the first allows none.

    Raises:
        InputError: shapes differ.
    """
    return _expected_sum(lattice, other, lambda _, others: -others)


def divergence(lattice: Lattice, other: Lattice) -> Tensor:
    """Return KL(p || q), the sum over y of p(y) log(p(y) / q(y)), in nats (B,), without differences of large sums.

    Arguments and errors are those of `cross_entropy`.
    """
    return _expected_sum(lattice, other, lambda own, others: own - others)


def _expected_sum(lattice: Lattice, other: Lattice, share: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return the expected sum (B,) over the tokens of share(log p(y_t | y_{t-1}), log q(y_t | y_{t-1}))."""
    if lattice.unary.shape != other.unary.shape:
        shapes = f"{tuple(lattice.unary.shape)} and {tuple(other.unary.shape)}"
        raise InputError(f"unary: expected two lattices of the same shape, got {shapes}")
    own_steps = _step_log_probs(lattice)
    steps = ((x, x) for x in own_steps) if other is lattice else zip(own_steps, _step_log_probs(other), strict=True)
    unary = validate_lattice(lattice).unary
    following = unary.new_zeros(len(unary), 1, dtype=to_double(validate_lattice(lattice)).unary.dtype)
    invalid = any_invalid(*_detached(lattice)) | any_invalid(*_detached(other))
    for own, others in steps:
        p = own.exp()
        shares = (share(own, others) + following.unsqueeze(1)).where(p > 0, 0)  # probability 0 adds nothing
        finite = shares < torch.inf  # the rest has no gradient
        following = (p * shares.where(finite, 0)).sum(2).where(finite.all(2), torch.inf)
    return following[:, 0].to(unary.dtype).masked_fill(invalid, torch.nan)


def _detached(lattice: Lattice) -> Lattice:
    return Lattice(*(x.detach() for x in validate_lattice(lattice)))


def _step_log_probs(lattice: Lattice) -> Iterator[Tensor]:
    """Yield log p(y_t | y_{t-1}) (B, L, L) from the last token back to the second, then log p(y_0) (B, 1, L).

    They are in double precision, -inf where the probability is 0, where no label can follow, and in the padding.
    """
    lattice = to_double(validate_lattice(lattice))
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
