"""The k best label sequences in tensor operations: prefixes, extended token by token.

Best scores from each label on turn each edge into the loss against the best continuation, at least 0. The k prefixes of
smallest loss are kept, each is extended by L labels, and the k smallest are kept again. This is exact: the loss of a
prefix is that of its best completion, and different prefixes have different completions. Losses are sums of
non-negative numbers, so that nothing is lost to rounding near the boundary, as with g + h of an A* search. Prefixes are
in lexicographic order: of equal ones the first are kept. After the tree-trellis search of Soong & Huang (1991) and the
lazy lists of Huang & Chiang (2005).
"""

import torch
from torch import Tensor

from structperc.ops.reference.paths import path_score
from structperc.ops.reference.scan import any_invalid, edges_into, steps_and_lengths
from structperc.ops.reference.viterbi import best_suffix_scores
from structperc.structures import real_tokens


def kbest(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `structperc.ops.operators.kbest`."""
    (B, T, _), device = unary.shape, unary.device
    unary, edge = unary.detach(), edge.detach()
    lengths = steps_and_lengths(unary, lengths)[1]
    suffix, legal = best_suffix_scores(unary, edge, lengths)
    losses = unary.new_full((B, k), torch.inf)
    losses[:, 0] = torch.where(legal, 0, torch.inf)
    last = torch.zeros(B, k, dtype=torch.int64, device=device)  # label of each prefix
    picks = []
    for t, into in enumerate(edges_into(edge, T)):
        losses, pick = _extended(losses, last, _losses(suffix[:, t], into, t), t < lengths)
        last = pick % unary.shape[2]
        picks.append(pick)
    labels = traced_labels(picks, last, unary.shape[2])
    invalid = any_invalid(unary, edge, lengths).unsqueeze(1)
    valid = (losses < torch.inf) & ~invalid
    labels = torch.where(real_tokens(lengths, unary.shape[1]).unsqueeze(1) & valid.unsqueeze(2), labels, 0)
    rows = torch.arange(B, device=device).repeat_interleave(k)
    scores = path_score(unary, edge, lengths, labels.flatten(0, 1), rows).view(B, k)
    scores = torch.where(valid, scores, -torch.inf).masked_fill(invalid, torch.nan)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return labels.gather(1, order.unsqueeze(2).expand(-1, -1, T)), scores, valid.gather(1, order)


def _losses(suffix: Tensor, into: Tensor, t: int) -> Tensor:
    """Return losses (B, L, L) from best scores (B, L) from each label on and edges (B or 1, L, L) into the token."""
    through = (into if t else torch.zeros_like(into)) + suffix.unsqueeze(1)
    return torch.where(through > -torch.inf, through.amax(2, keepdim=True) - through, torch.inf)


def _extended(losses: Tensor, last: Tensor, step: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Extend prefixes by a token; return losses (B, k) and choices (B, k), prefix * L + label."""
    k, L = losses.shape[1], step.shape[1]
    chosen = step.gather(1, last.unsqueeze(2).expand(-1, -1, L))
    nothing = torch.full_like(chosen, torch.inf)
    nothing.scatter_(2, last.unsqueeze(2), 0)  # prefixes do not change in the padding
    extended = (losses.unsqueeze(2) + torch.where(real.view(-1, 1, 1), chosen, nothing)).flatten(1)
    pick = extended.sort(dim=1, stable=True)[1][:, :k].sort(1)[0]
    return extended.gather(1, pick), pick


def traced_labels(picks: list[Tensor], last: Tensor, L: int) -> Tensor:
    """Return the labels (B, k, T) of the choices of each token."""
    slot, labels = torch.arange(last.shape[1], device=last.device).expand_as(last), []
    for pick in reversed(picks):
        chosen = pick.gather(1, slot)
        slot = chosen // L
        labels.append(chosen % L)
    return torch.stack(labels[::-1], 2) if labels else last.new_zeros(*last.shape, 0)
