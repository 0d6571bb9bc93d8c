"""Sums over all labellings: log-partition, marginal probabilities, samples (forward-backward).

The labels next to given ones: their probabilities.

Local normalisation: each label's probability given the one before, the chain of a maximum-entropy tagger.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain.lattices import expand_edges, to_double, token_mask, validate_lattice
from structperc.ops import any_invalid, expectations, log_following
from structperc.ops import sample as drawn
from structperc.structures import Lattice


def log_partition(lattice: Lattice) -> Tensor:
    """Return log Z (B,), the log of the sum of exp(score of y) over all labellings y; 0 for an empty sequence.

    Its gradients are the marginals, those of one transition matrix as small as the matrix; further derivatives are
    taken in tensor operations. Without any legal labelling log Z = -inf and the gradient is 0.
    """
    lattice = validate_lattice(lattice)
    return expectations(*lattice, torch.is_grad_enabled() and lattice.edge.requires_grad)[0]


def marginals(lattice: Lattice) -> Tensor:
    """Return p(y_t = y | x) as (B, T, L); it is 0 where impossible, in the padding, and without a legal labelling.

    Differentiable.
    """
    return expectations(*validate_lattice(lattice), False)[1]


def edge_marginals(lattice: Lattice) -> Tensor:
    """Return p(y_{t-1} = i, y_t = j | x) as (B, T, L, L); it is 0 at t = 0 and in the padding. Differentiable."""
    return _each(validate_lattice(lattice))[2]


@torch.no_grad()
def sample(lattice: Lattice, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Return n labellings of each sequence, drawn independently from p(y | x): (B, n, T) int64, 0 in the padding.

    Backward filtering, forward sampling. A sequence without any legal labelling gets labels 0.
    """
    lattice = validate_lattice(lattice)
    B, T, _ = lattice.unary.shape
    dtype = torch.float32 if lattice.unary.device.type == "mps" else torch.float64
    noise = torch.rand(B, n, T, generator=generator, dtype=dtype, device=lattice.unary.device)
    return drawn(*lattice, noise)


def node_and_edge_marginals(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return probabilities of labels (B, T, L) and of the pairs into each token (B, T, L, L), in double precision."""
    return _each(to_double(validate_lattice(lattice)))[1:]


def _each(lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """Expectations with the pairs of each token by itself, (B, T, L, L)."""
    return expectations(lattice.unary, expand_edges(lattice), lattice.lengths, True)


MOST = 1 << 23  # pairs in a table


@torch.no_grad()
def next_marginals(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return p(y_{t+1} = j | y_t = label, x) as (B, T, L), in double precision, for labels (B, T) int64.

    It is 0 at last tokens, in the padding, whose labels are any, and where the label is impossible; NaN at all tokens
    of a sequence with a score that is +inf or NaN.
    """
    lattice = to_double(validate_lattice(lattice))
    if _has_small_tables(lattice):
        nodes, pairs = node_and_edge_marginals(lattice)
        both = pad(_at(pairs[:, 1:], labels[:, :-1]), (0, 0, 0, 1))
        return _of_valid(_share(both, _at(nodes.unsqueeze(3), labels)), lattice)
    unary, real, found = lattice.unary, token_mask(lattice), torch.zeros_like(lattice.unary)
    after = torch.zeros_like(unary[:, 0])
    for t in range(unary.shape[1] - 2, -1, -1):
        table = _edge(lattice, t + 1) + (unary[:, t + 1] + after).unsqueeze(1)
        found[:, t] = _at(table, labels[:, t]).softmax(1).where(real[:, t + 1, None], 0)
        after = _levelled(table.logsumexp(2)).where(real[:, t + 1, None], 0)
    return _of_possible(found, lattice, labels)


@torch.no_grad()
def previous_marginals(lattice: Lattice, labels: Tensor) -> Tensor:
    """Return p(y_{t-1} = i | y_t = label, x) as (B, T, L), as `next_marginals`; it is 0 at first tokens."""
    lattice = to_double(validate_lattice(lattice))
    if _has_small_tables(lattice):
        nodes, pairs = node_and_edge_marginals(lattice)
        return _of_valid(_share(_at(pairs.transpose(2, 3), labels), _at(nodes.unsqueeze(3), labels)), lattice)
    unary, real, found = lattice.unary, token_mask(lattice), torch.zeros_like(lattice.unary)
    before = unary[:, 0]
    for t in range(1, unary.shape[1]):
        table = (_edge(lattice, t) + before.unsqueeze(2)).transpose(1, 2)
        found[:, t] = _at(table, labels[:, t]).softmax(1).where(real[:, t, None], 0)
        before = _levelled(table.logsumexp(2) + unary[:, t])
    return _of_possible(found, lattice, labels)


def _has_small_tables(lattice: Lattice) -> bool:
    return lattice.unary.numel() * lattice.unary.shape[2] <= MOST


def _edge(lattice: Lattice, t: int) -> Tensor:
    """(B or 1, L, L): scores of the pairs into a token."""
    return lattice.edge[:, min(t, lattice.edge.shape[1] - 1)]


def _at(tables: Tensor, labels: Tensor) -> Tensor:
    """Rows `labels` (...) of tables (..., L, M), (..., M)."""
    return tables.take_along_dim(labels[..., None, None], -2).squeeze(-2)


def _levelled(sums: Tensor) -> Tensor:
    """Sums (B, L) less the largest of each row, so that long sequences lose nothing."""
    most = sums.amax(1, keepdim=True)
    return sums - most.where(most > -torch.inf, 0)


def _of_possible(shares: Tensor, lattice: Lattice, labels: Tensor) -> Tensor:
    return _of_valid(shares.where(_at(marginals(lattice).unsqueeze(3), labels) > 0, 0), lattice)


def _of_valid(shares: Tensor, lattice: Lattice) -> Tensor:
    """Shares (B, T, L), NaN at the tokens of sequences with a score that is +inf or NaN."""
    return shares.masked_fill((any_invalid(*lattice).unsqueeze(1) & token_mask(lattice)).unsqueeze(2), torch.nan)


def _share(both: Tensor, given: Tensor) -> Tensor:
    return (both / given).where(given > 0, 0).clamp(max=1)


def locally_normalised(lattice: Lattice) -> Lattice:
    """Return the lattice whose path scores are log p(y | x) = sum over t of log p(y_t | y_{t-1}, x). Ratnaparkhi 1996.

    p(y_0 = j) is the softmax over j of unary[0, j], p(y_t = j | y_{t-1} = i) that of unary[t, j] + edge[t, i, j].
    A log-sum over what may follow label i at t - 1 depends on t and i alone: it is taken off unary[t - 1, i], and the
    edges stay as they are, stationary ones too. So only whole paths have log-probabilities, single entries have not,
    and to normalise the result again gives another model. Half precision is upcast to float32.

    What is impossible stays so and has no share. A label that nothing may follow, at a token that is not the last, is
    impossible, too: its share is lost, and the probabilities of all labellings sum to less than 1. In the lattice of
    a tag scheme there is none. A sequence without any legal labelling has none afterwards.
    """
    unary, edge, lengths = lattice = validate_lattice(lattice)
    taken = log_following(*lattice)
    if unary.shape[1]:
        real = lengths > 0
        start = torch.where(real, _log_sum(torch.where(real.unsqueeze(1), unary[:, 0], 0)), 0).view(-1, 1, 1)
        taken = torch.cat([taken[:, :1] + start, taken[:, 1:]], 1)
    return Lattice(unary - taken, edge, lengths)


def _log_sum(scores: Tensor) -> Tensor:
    """torch.logsumexp along the last dimension; +inf, without a gradient, where all are impossible."""
    possible = scores.amax(-1) != -torch.inf
    return torch.where(possible, torch.where(possible.unsqueeze(-1), scores, 0).logsumexp(-1), torch.inf)
