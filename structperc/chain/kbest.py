"""The k best labellings of each sequence, exactly, by their loss against the best one."""

import torch
from torch import Tensor, nn

from structperc.chain.path import path_score
from structperc.chain.recursion import Walk, completions, edges_at, forwards, full_precision
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice


@torch.no_grad()
def kbest(lattice: Lattice, k: int) -> Candidates:
    """The k best labellings -> Candidates, best first, no labelling twice; no gradients, use `path_score` for these.

    Backward best scores turn each edge into the loss it costs against the best continuation, at least 0, so that
    the best continuation of any prefix is free. Going forwards, only the k prefixes of smallest loss are kept (k in
    all, not per label), each is extended by L labels, and the k smallest are kept again. This is exact: different
    prefixes have different completions, and the loss of a prefix is the loss of its best completion. Each step adds
    a number that is not negative, so no path is lost to rounding near the border, as g + h of an A* search may.

    Work O(T (k L + selection)), memory O(T k). The scores are sums over the lattice as given, not the losses.
    After the tree-trellis search of Soong & Huang (1991) and the lazy lists of Huang & Chiang (2005).
    Raises InputError for k < 1.
    """
    if k < 1:
        raise InputError(f"k must be >= 1, got {k}")
    walk = forwards(lattice)
    losses, picks = _search(_losses(lattice, walk), walk, k)
    labels = _trace(picks, walk, lattice, losses.shape[1])
    valid = torch.empty_like(losses, dtype=torch.bool).index_copy_(0, walk.order, losses.isfinite())
    return _rescored(lattice, labels, valid, k)


def _losses(lattice: Lattice, walk: Walk) -> list[Tensor]:
    """-> per step (n, L before, L), what a label costs against the best one after the label before; +inf: impossible.

    At the first step the label before is one and the same: (n, 1, L).
    """
    onward = (full_precision(lattice.unary) + completions(lattice, torch.amax)).flatten(0, 1)[walk.tokens[0]]
    first, *rest = walk.sizes or [0]
    through = edges_at(lattice, walk.edges[0, first:]) + onward[first:].unsqueeze(1)
    return [_loss(onward[:first].unsqueeze(1)), *_loss(through).split(rest)]


def _loss(scores: Tensor) -> Tensor:
    best = scores.amax(-1, keepdim=True)
    return (best - scores).where(scores.isfinite(), torch.inf)


def _search(steps: list[Tensor], walk: Walk, k: int) -> tuple[Tensor, list[Tensor]]:
    """-> losses (B, W) of whole labellings, and per step (n, w) the choices `prefix * L + label`; w <= W <= k.

    Rows are in the order of the walk. A row keeps the list it had at its last token; an empty one, the empty walk.
    """
    (n, _, L), B = steps[0].shape, len(walk.order)
    final, picks = steps[0].new_full((B, min(k, L ** len(steps))), torch.inf), []
    final[:, 0] = 0
    losses, label = steps[0].new_zeros(n, 1), walk.order.new_zeros(n, 1)
    for n, step in zip(walk.sizes, steps, strict=False):
        place = torch.arange(n, device=label.device).unsqueeze(1) * step.shape[1]
        extended = step.flatten(0, 1)[label[:n] + place] + losses[:n].unsqueeze(2)
        losses, pick = _keep(extended.flatten(1), k)
        final[:n, : losses.shape[1]] = losses
        label = pick % L
        picks.append(pick)
    return final, picks


def _keep(losses: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k smallest of each row, in no order, and their places."""
    if losses.shape[1] <= k:
        return losses, torch.arange(losses.shape[1], device=losses.device).expand_as(losses)
    return losses.topk(k, 1, largest=False, sorted=False)


def _trace(picks: list[Tensor], walk: Walk, lattice: Lattice, width: int) -> Tensor:
    """-> labels (B, W, T) of the lists at the last tokens; 0 in the padding."""
    B, T, L = lattice.unary.shape
    labels = torch.zeros(T, B, width, dtype=torch.int64, device=walk.order.device)
    ends = torch.tensor([1, *(pick.shape[1] for pick in picks)], device=labels.device)
    ends = ends[lattice.lengths.to(labels.device)[walk.order]]
    slot = torch.arange(width, device=ends.device).minimum(ends.unsqueeze(1) - 1)
    for t in range(len(picks) - 1, -1, -1):
        n = walk.sizes[t]
        pick = picks[t].gather(1, slot[:n])
        labels[t, :n] = pick % L
        slot[:n] = pick // L
    out = torch.zeros_like(labels.permute(1, 2, 0))
    out[walk.order] = labels.permute(1, 2, 0)
    return out


def _rescored(lattice: Lattice, labels: Tensor, valid: Tensor, k: int) -> Candidates:
    """Best first by the scores of the lattice itself, width k."""
    scores = path_score(lattice, labels).where(valid, -torch.inf)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    valid = valid.gather(1, order)
    labels = labels.gather(1, order.unsqueeze(2).expand_as(labels)).where(valid.unsqueeze(2), 0)
    missing = k - scores.shape[1]
    return Candidates(
        nn.functional.pad(labels, (0, 0, 0, missing)),
        nn.functional.pad(scores, (0, missing), value=-torch.inf),
        nn.functional.pad(valid, (0, missing)),
    )


class KBest(nn.Module):
    """`kbest` with its k."""

    def __init__(self, k: int = 20):
        super().__init__()
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        self.k = k

    def forward(self, lattice: Lattice) -> Candidates:
        """-> Candidates of width k."""
        return kbest(lattice, self.k)
