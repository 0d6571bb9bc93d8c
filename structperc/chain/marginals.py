"""Sums over all labellings: log-partition, marginal probabilities, entropy, samples (forward-backward)."""

from typing import Any

import torch
from torch import Tensor

from structperc.chain.recursion import before_and_after, completions, every_edge, full_precision, live, narrowed
from structperc.chain.scaled import ForwardSums, forward_sums, log_sum, node_probabilities, pair_sums, unpacked
from structperc.structures import Lattice


def log_partition(lattice: Lattice) -> Tensor:
    """Return log Z (B,), the log of the sum of exp(score of y) over all labellings y; 0 for an empty sequence.

    Differentiable once (RuntimeError under create_graph=True): the gradients are the marginals, computed by
    forward-backward and not through the loop. Without any legal labelling log Z = -inf and the gradient is 0.
    With a stationary edge the sums are products of probabilities in float64 where these cannot underflow, and the
    gradient of the matrix is as small as the matrix; otherwise, and with dense edges, sums of logarithms.
    """
    return _LogPartition.apply(*narrowed(lattice))


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
        lattice = Lattice(unary, edge, lengths)
        ctx.save_for_backward(*lattice)
        ctx.products, ctx.logs = forward_sums(lattice), None
        if ctx.products is not None:
            return log_sum(lattice, ctx.products).to(full_precision(unary).dtype)
        ctx.logs = before_and_after(lattice, torch.logsumexp)
        return _total(lattice, ctx.logs[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("log_partition has first derivatives only; leave out create_graph=True")
        lattice = Lattice(*ctx.saved_tensors)
        with_pairs = ctx.needs_input_grad[1]
        nodes = None if ctx.products is None else node_probabilities(ctx.products)
        if nodes is not None:
            own, pairs = _expected_by_products(lattice, ctx.products, nodes, grads[0], with_pairs)
        else:
            before, after = ctx.logs or before_and_after(lattice, torch.logsumexp)
            own, pairs = _expected_by_logs(lattice, before, after, grads[0], with_pairs)
        return own.to(lattice.unary.dtype), None if pairs is None else pairs.to(lattice.edge.dtype), None


def _expected_by_products(
    lattice: Lattice, found: ForwardSums, nodes: Tensor, weights: Tensor, with_pairs: bool
) -> tuple[Tensor, Tensor | None]:
    """Probabilities of labels and pairs, each sequence's times its weight (B,), in the shapes of the tables.

    Node probabilities (N, L) are overwritten.
    """
    rows = found.walk.tokens[0] // lattice.unary.shape[1]
    nodes.mul_(weights.index_select(0, rows).unsqueeze(1))
    pairs = pair_sums(found, nodes).view_as(lattice.edge) if with_pairs else None
    return unpacked(lattice, found, nodes.to(lattice.unary.dtype)), pairs


def _expected_by_logs(
    lattice: Lattice, before: Tensor, after: Tensor, weights: Tensor, with_pairs: bool
) -> tuple[Tensor, Tensor | None]:
    """The same by log-sums."""
    weights = weights.view(-1, 1, 1)
    nodes = weights * _node_probabilities(lattice, before, after)
    if not with_pairs:
        return nodes, None
    pairs = weights.unsqueeze(3) * _edge_probabilities(lattice, before, after)
    return nodes, pairs.sum_to_size(lattice.edge.shape)


@torch.no_grad()
def marginals(lattice: Lattice) -> Tensor:
    """Return p(y_t = y | x) as (B, T, L); it is 0 where impossible, in the padding, and without a legal labelling."""
    found = forward_sums(lattice)
    nodes = None if found is None else node_probabilities(found)
    if found is None or nodes is None:
        return _node_probabilities(lattice, *before_and_after(lattice, torch.logsumexp))
    return unpacked(lattice, found, nodes.to(full_precision(lattice.unary).dtype))


@torch.no_grad()
def edge_marginals(lattice: Lattice) -> Tensor:
    """Return p(y_{t-1} = i, y_t = j | x) as (B, T, L, L); it is 0 at t = 0 and in the padding."""
    return _edge_probabilities(lattice, *before_and_after(lattice, torch.logsumexp))


@torch.no_grad()
def entropy(lattice: Lattice) -> Tensor:
    """Return the entropy H(y | x) in nats (B,), a sum of conditional entropies and so no difference of large numbers.

    It is 0 for an empty sequence and for one without any legal labelling.
    """
    before, after = before_and_after(lattice, torch.logsumexp)
    first, later = _conditionals(lattice, after)
    pairs = _edge_probabilities(lattice, before, after)
    return -(_times_log(first.exp(), first).sum((1, 2)) + _times_log(pairs, later).sum((1, 2, 3)))


@torch.no_grad()
def sample(lattice: Lattice, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Return n labellings of each sequence, drawn independently from p(y | x): (B, n, T) int64, 0 in the padding.

    Backward filtering, forward sampling; a draw is the argmax of log-probabilities plus Gumbel noise.
    A sequence without any legal labelling gets labels 0.
    """
    first, later = _conditionals(lattice, completions(lattice, torch.logsumexp))
    B, T, L = lattice.unary.shape
    labels = torch.zeros(B, n, T, dtype=torch.int64, device=first.device)
    row = torch.arange(B, device=first.device).unsqueeze(1)
    for t in range(T):
        scores = first if t == 0 else later[row, t, labels[:, :, t - 1]]
        noise = first.new_empty(B, n, L).exponential_(generator=generator).log_()
        labels[:, :, t] = (scores - noise).argmax(2)
    possible = (first > -torch.inf).flatten(1).any(1).view(-1, 1, 1)
    return labels.where(live(lattice).unsqueeze(1) & possible, 0)


def _total(lattice: Lattice, after: Tensor) -> Tensor:
    if not lattice.unary.shape[1]:
        return after.new_zeros(len(after))
    total = (full_precision(lattice.unary[:, 0]) + after[:, 0]).logsumexp(1)
    return total.where(lattice.lengths.to(total.device) > 0, 0)


def _node_probabilities(lattice: Lattice, before: Tensor, after: Tensor) -> Tensor:
    """Normalised token by token: the rounding of long sums cancels, and the labels of a token sum to 1."""
    return normalised(before + full_precision(lattice.unary) + after, live(lattice))


def _edge_probabilities(lattice: Lattice, before: Tensor, after: Tensor) -> Tensor:
    unary = full_precision(lattice.unary)
    real = live(lattice)
    edge = every_edge(lattice)
    pairs = after.new_zeros(edge.shape)
    right, left = (unary + after)[:, 1:].unsqueeze(2), (before + unary)[:, :-1].unsqueeze(3)
    scores = left + full_precision(edge[:, 1:]) + right
    pairs[:, 1:] = normalised(scores.flatten(2), real[:, 1:]).view_as(scores)
    return pairs


def normalised(scores: Tensor, real: Tensor) -> Tensor:
    """Return exp(scores) over its sum along the last dimension; 0 where nothing is possible and in the padding."""
    possible = real & (scores.amax(-1) > -torch.inf)
    return scores.where(possible.unsqueeze(-1), 0).softmax(-1).where(possible.unsqueeze(-1), 0)


def _conditionals(lattice: Lattice, after: Tensor) -> tuple[Tensor, Tensor]:
    """log p(y_0) (B, 1, L), log p(y_t | y_{t-1}) (B, T, L, L); -inf where impossible and in the padding."""
    real = live(lattice)
    ahead = full_precision(lattice.unary) + after
    later = full_precision(every_edge(lattice)) + ahead.unsqueeze(2)
    return _log_normalised(ahead[:, :1], real[:, :1]), _log_normalised(later, real.unsqueeze(2))


def _log_normalised(scores: Tensor, real: Tensor) -> Tensor:
    possible = (real & (scores.amax(-1) > -torch.inf)).unsqueeze(-1)
    return scores.where(possible, 0).log_softmax(-1).where(possible, -torch.inf)


def _times_log(p: Tensor, log: Tensor) -> Tensor:
    return (p * log).where(p > 0, 0)
