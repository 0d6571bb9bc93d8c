"""Viterbi and best scores before and after each label in tensor operations, without copies to the host."""

import torch
from torch import Tensor

from structperc.ops.reference.paths import path_score
from structperc.ops.reference.scan import (
    Rows,
    any_invalid,
    edges_into,
    high_precision,
    prefix_scores,
    scan,
    steps_and_lengths,
    subtract_levels,
    suffix_scores,
)
from structperc.structures import real_tokens


def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.viterbi`."""
    unary, edge = unary.detach(), edge.detach()
    lengths = steps_and_lengths(unary, lengths)[1]
    suffix, legal = best_suffix_scores(unary, edge, lengths)
    invalid, labels = any_invalid(unary, edge, lengths), _trace_best_path(suffix, edge)
    labels = torch.where(real_tokens(lengths, unary.shape[1]) & (legal & ~invalid).unsqueeze(1), labels, 0)
    rows = torch.arange(unary.shape[0], device=unary.device)
    scores = path_score(unary, edge, lengths, labels, rows)
    return torch.where(legal, scores, -torch.inf).masked_fill(invalid, torch.nan), labels


def best_suffix_scores(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best score from each label on (B, T, L), levels subtracted, and whether a path is possible (B,).

    The former are undefined in the padding.
    """
    own = subtract_levels(unary)
    suffix = own + suffix_scores(own, edge, real_tokens(lengths, unary.shape[1]), lambda scores: scores.amax(-1))
    empty = lengths == 0
    return suffix, (suffix[:, 0].amax(1) > -torch.inf) | empty if unary.shape[1] else empty


def _trace_best_path(suffix: Tensor, edge: Tensor) -> Tensor:
    """Return the best label after each one (B, T), the lowest among equals."""
    B, T, L = suffix.shape

    def step(label: Tensor, here: Rows) -> tuple[Tensor, Tensor]:
        token, suffix, edge = here
        into = edge.expand(B, -1, -1).gather(1, label.view(-1, 1, 1).expand(-1, 1, L)).squeeze(1)
        label = (torch.where(token > 0, into, 0) + suffix).argmax(1)
        return label, label.clone()  # a scan may not return one tensor twice

    first = torch.zeros(B, dtype=torch.int64, device=suffix.device)
    steps = torch.arange(T, device=suffix.device)
    return scan(step, first, (steps, suffix.transpose(0, 1), edges_into(edge, T))).T


def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.best_before_and_after`."""
    lengths = steps_and_lengths(unary, lengths)[1]
    real = real_tokens(lengths, unary.shape[1])
    own, table = high_precision(torch.where(real.unsqueeze(2), unary, 0)), high_precision(edge)
    invalid = (real & any_invalid(unary.detach(), edge.detach(), lengths).unsqueeze(1)).unsqueeze(2)
    before, after = prefix_scores(own, table, real, _best), suffix_scores(own, table, real, _best)
    return before.masked_fill(invalid, torch.nan).to(unary.dtype), after.masked_fill(invalid, torch.nan).to(unary.dtype)


def best_before_and_after_backward(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """Implement `structperc.ops.operators.best_before_and_after_backward`."""
    if not unary.numel():
        return torch.zeros_like(unary), torch.zeros_like(edge)
    with torch.enable_grad():
        inputs = unary.detach().requires_grad_(), edge.detach().requires_grad_()
        found = best_before_and_after(*inputs, lengths)
        own, steps = torch.autograd.grad(found, inputs, (grad_before, grad_after), allow_unused=True)
    return torch.zeros_like(unary) if own is None else own, torch.zeros_like(edge) if steps is None else steps


def _best(scores: Tensor) -> Tensor:
    """Return the highest score along the last dimension; the first of equals has the gradient, none if all are -inf."""
    best = scores.gather(-1, scores.detach().argmax(-1, keepdim=True)).squeeze(-1)
    return torch.where(best > -torch.inf, best, -torch.inf)
