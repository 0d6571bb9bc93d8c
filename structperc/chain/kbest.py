"""The k best labellings of each sequence, exactly, by their loss against the best one."""

from typing import Any

import torch
from torch import Tensor, nn

from structperc.chain.path import path_score
from structperc.chain.recursion import Walk, completions, edges_at, forwards, full_precision
from structperc.chain.two_best import two_best
from structperc.chain.viterbi import viterbi
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice

FEW_LABELS = 16  # up to here the two best are found faster from max-marginals (measured: L = 9, 23, 50)

LONG = 1000  # lists from here on keep their choices in 4 bytes; shorter ones save the conversion
CACHED = 2**17  # labels scored at a time: long lists are scored in parts that stay in the cache


@torch.no_grad()
def kbest(lattice: Lattice, k: int) -> Candidates:
    """The k best labellings of each sequence, best first, none twice; no gradients, `path_score` has them.

    Backward best scores turn each edge into the loss it costs against the best continuation, at least 0, so
    that the best continuation of any prefix is free. Going forwards, only the k prefixes of smallest loss are
    kept (k in all, not k per label), each is extended by L labels, and the k smallest are kept again. This is
    exact: different prefixes have different completions, and the loss of a prefix is the loss of its best
    completion. Each step adds a number that is not negative, so that nothing is lost to rounding near the
    border, as g + h of an A* search may lose it.

    Work O(T (k L + selection)), memory O(T k). The scores are sums over the lattice as given, not the losses.
    An empty sequence has one candidate, the empty path with score 0. Which of several equal candidates are
    kept at the border is not defined. Raises InputError for k < 1.

    After the tree-trellis search of Soong & Huang (1991) and the lazy lists of Huang & Chiang (2005).
    """
    if k < 1:
        raise InputError(f"k must be >= 1, got {k}")
    if k == 1:
        scores, labels = viterbi(lattice)
        return Candidates(labels.unsqueeze(1), scores.unsqueeze(1), scores.isfinite().unsqueeze(1))
    if k == 2 and lattice.unary.shape[1] and lattice.unary.shape[2] <= FEW_LABELS:
        return two_best(lattice)
    walk = forwards(lattice)
    losses, picks = _search(_losses(lattice, walk), walk, k)
    labels = _trace(picks, lattice, walk, losses.shape[1])
    valid = torch.empty_like(losses, dtype=torch.bool).index_copy_(0, walk.order, losses.isfinite())
    return _rescored(lattice, labels, valid, k)


def _losses(lattice: Lattice, walk: Walk) -> list[Tensor]:
    """-> per step (n * L before, L): what a label costs against the best one; +inf where impossible.

    At the first step there is no label before: (n, L).
    """
    onward = (full_precision(lattice.unary) + completions(lattice, torch.amax)).flatten(0, 1)
    onward = onward.index_select(0, walk.tokens[0])
    first, *rest = walk.sizes or [0]
    through = edges_at(lattice, walk.edges[0, first:]) + onward[first:].unsqueeze(1)
    return [_loss(onward[:first]), *_loss(through).flatten(0, 1).split([n * onward.shape[1] for n in rest])]


def _loss(scores: Tensor) -> Tensor:
    best = scores.amax(-1, keepdim=True)
    return (best - scores).where(scores > -torch.inf, torch.inf)


def _search(steps: list[Tensor], walk: Walk, k: int) -> tuple[Tensor, list[Tensor]]:
    """-> losses (B, W) of whole labellings; per step (n, w) the choices `prefix * L + label`; w <= W <= k.

    Sequences are in the order of the walk. One keeps the list it had at its last token; an empty one, the
    empty path.
    """
    (n, L), sizes = steps[0].shape, [*walk.sizes, 0]
    final = steps[0].new_full((len(walk.order), min(k, L ** len(steps))), torch.inf)
    final[:, 0] = 0
    losses, rows, picks = final[:n, :1], torch.arange(n, device=final.device), []
    row_of_pick = rows.unsqueeze(1) * L + torch.arange(L, device=rows.device).repeat(k)
    for t, n in enumerate(walk.sizes):
        extended = steps[t].index_select(0, rows).add_(losses.reshape(-1, 1))
        losses, pick = _smallest(extended.view(n, -1), k)
        picks.append(pick if k < LONG else pick.to(torch.int32))
        if n > sizes[t + 1]:
            ongoing, width = sizes[t + 1], losses.shape[1]
            final[ongoing:n, :width] = losses[ongoing:]
            losses, pick, row_of_pick = losses[:ongoing], pick[:ongoing], row_of_pick[:ongoing]
        rows = row_of_pick.gather(1, pick).view(-1)
    return final, picks


def _smallest(losses: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k smallest of each row, in no order, and their places."""
    if losses.shape[1] <= k:
        return losses, torch.arange(losses.shape[1], device=losses.device).expand_as(losses)
    return losses.topk(k, 1, largest=False, sorted=False)


def _trace(picks: list[Tensor], lattice: Lattice, walk: Walk, width: int) -> Tensor:
    """-> labels (B, W, T) of the lists at the last tokens; 0 in the padding."""
    B, T, L = lattice.unary.shape
    chosen = walk.order.new_zeros(T, B, width)
    widths = torch.tensor([1, *(pick.shape[1] for pick in picks)], device=chosen.device)
    last = widths[lattice.lengths.to(chosen.device)[walk.order]].unsqueeze(1) - 1
    slots = torch.arange(width, device=chosen.device).minimum(last)
    places = torch.arange(B, device=chosen.device).unsqueeze(1)
    _follow([_array(pick) for pick in picks], L, *(_array(x) for x in (chosen, slots, places)))
    labels = torch.empty_like(chosen).view(B, width, T)
    labels[walk.order] = chosen.remainder_(L).permute(1, 2, 0)
    return labels


def _follow(picks: list[Any], L: int, chosen: Any, slots: Any, places: Any) -> None:
    """Fill `chosen` (T, B, W) with the choices that lead to `slots` (B, W); on tensors or on arrays."""
    for t in range(len(picks) - 1, -1, -1):
        n = len(picks[t])
        pick = picks[t][places[:n], slots[:n]]
        chosen[t, :n] = pick
        slots[:n] = pick // L


def _array(x: Tensor) -> Any:
    """On a CPU a numpy call costs a third of a torch call."""
    return x.numpy() if x.is_cpu else x


def _rescored(lattice: Lattice, labels: Tensor, valid: Tensor, k: int) -> Candidates:
    """Best first by the scores of the lattice itself, width k."""
    parts = labels.split(1 + CACHED // (1 + labels[:, 0].numel()), 1)
    scores = torch.cat([path_score(lattice, part) for part in parts], 1).where(valid, -torch.inf)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    valid = valid.gather(1, order)
    labels = labels[torch.arange(len(order), device=order.device).unsqueeze(1), order]
    labels = labels.masked_fill_(~valid.unsqueeze(2), 0)
    missing = k - scores.shape[1]
    return Candidates(
        nn.functional.pad(labels, (0, 0, 0, missing)) if missing else labels,
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
