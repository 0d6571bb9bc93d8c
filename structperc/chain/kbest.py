"""The k best labellings of each sequence, exactly, by their loss against the best one."""

from typing import Any

import torch
from torch import Tensor, nn

from structperc.chain.memory import check_memory
from structperc.chain.path import path_score
from structperc.chain.recursion import array
from structperc.chain.sidetracks import Forks, at_every_token, every_token, forks
from structperc.chain.viterbi import viterbi
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice

MANY = 500  # tokens * labels of a sequence from where on it pays to look for its forks (measured)
LONG = 1000  # lists from here on keep their choices in 4 bytes; shorter ones save the conversion
CACHED = 2**17  # labels scored at a time: long lists are scored in parts that stay in the cache


@torch.no_grad()
def kbest(lattice: Lattice, k: int) -> Candidates:
    """Return the k best labellings of each sequence, best first, none twice; without gradients, which `path_score` has.

    Backward best scores turn each edge into the loss it costs against the best continuation, at least 0, so
    that the best continuation of any prefix is free. Going forwards, only the k prefixes of smallest loss are
    kept (k in all, not k per label), each is extended by L labels, and the k smallest are kept again. This is
    exact: different prefixes have different completions, and the loss of a prefix is the loss of its best
    completion. Each step adds a number that is not negative, so that nothing is lost to rounding near the
    boundary, as g + h of an A* search may lose it. Long sequences are first cut down to the tokens where the k
    best can differ (`sidetracks`).

    Work O(T L^2 + S (k L + selection)) for S <= T such tokens, memory O(T k). The scores are sums over the
    lattice as given, not the losses. An empty sequence has one candidate, the empty path with score 0. Which of
    several equal candidates are kept at the boundary is not defined. Raises InputError for k < 1, and for lists that do
    not fit into memory.

    After the tree-trellis search of Soong & Huang (1991) and the lazy lists of Huang & Chiang (2005).
    """
    if k < 1:
        raise InputError(f"k must be >= 1, got {k}")
    if k == 1:
        scores, labels = viterbi(lattice)
        return Candidates(labels.unsqueeze(1), scores.unsqueeze(1), (scores.abs() < torch.inf).unsqueeze(1))
    check_memory(k, lattice.unary.shape, lattice.unary.device)
    found = forks(lattice, k) if _long(lattice, k) else every_token(lattice)
    losses, picks = _search(found, k)
    labels = _trace(picks, found, losses.shape[1], lattice.unary.shape[1])
    valid = torch.empty_like(losses, dtype=torch.bool).index_copy_(0, found.order, losses.isfinite())
    return _rescored(lattice, labels, valid, k)


def _long(lattice: Lattice, k: int) -> bool:
    """Whether sequences are so long, on average, that the k best leave most tokens without a choice."""
    return int(lattice.lengths.sum()) * lattice.unary.shape[2] > (2 * k + MANY) * len(lattice.lengths)


def _search(found: Forks, k: int) -> tuple[Tensor, list[Tensor]]:
    """-> losses (B, W) of whole labellings; per fork (n, w) the choices `prefix * L + label`; w <= W <= k.

    Sequences are in the order of the forks. One keeps the list it had at its last fork; one without any has a
    single labelling.
    """
    (n, L), sizes = found.losses[0].shape, [*found.sizes, 0]
    final = found.losses[0].new_full((len(found.order), min(k, L ** len(found.losses))), torch.inf)
    final[:, 0] = 0
    losses, rows, picks = final[:n, :1], torch.arange(n, device=final.device), []
    row_of_pick = rows.unsqueeze(1) * L + torch.arange(L, device=rows.device).repeat(k)
    for s, n in enumerate(found.sizes):
        extended = found.losses[s].index_select(0, rows).add_(losses.reshape(-1, 1))
        losses, pick = _smallest(extended.view(n, -1), k)
        picks.append(pick if k < LONG else pick.to(torch.int32))
        if n > sizes[s + 1]:
            ongoing, width = sizes[s + 1], losses.shape[1]
            final[ongoing:n, :width] = losses[ongoing:]
            losses, pick, row_of_pick = losses[:ongoing], pick[:ongoing], row_of_pick[:ongoing]
        rows = row_of_pick.gather(1, pick).view(-1)
    return final, picks


def _smallest(losses: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k smallest of each row, in no order, and their places."""
    if losses.shape[1] <= k:
        return losses, torch.arange(losses.shape[1], device=losses.device).expand_as(losses)
    return losses.topk(k, 1, largest=False, sorted=False)


def _trace(picks: list[Tensor], found: Forks, width: int, T: int) -> Tensor:
    """-> labels (B, W, T) of the lists at the last forks; 0 in the padding."""
    order, L = found.order, found.losses[0].shape[1]
    chosen = order.new_zeros(T if found.labels is None else len(found.losses), len(order), width)
    widths = torch.tensor([1, *(pick.shape[1] for pick in picks)], device=order.device)
    slots = torch.arange(width, device=order.device).minimum(widths[found.counts].unsqueeze(1) - 1)
    places = torch.arange(len(order), device=order.device).unsqueeze(1)
    _follow([array(pick) for pick in picks], L, *(array(x) for x in (chosen, slots, places)))
    at_forks = chosen.new_empty(len(order), width, len(chosen))
    at_forks[order] = chosen.remainder_(L).permute(1, 2, 0)
    return at_every_token(found, at_forks)


def _follow(picks: list[Any], L: int, chosen: Any, slots: Any, places: Any) -> None:
    """Fill `chosen` (T, B, W) with the choices that lead to `slots` (B, W); on tensors or on arrays."""
    for t in range(len(picks) - 1, -1, -1):
        n = len(picks[t])
        pick = picks[t][places[:n], slots[:n]]
        chosen[t, :n] = pick
        slots[:n] = pick // L


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
    """The k best labellings of a lattice: `kbest`, as a module that holds k."""

    def __init__(self, k: int = 20):
        super().__init__()
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        self.k = k

    def forward(self, lattice: Lattice) -> Candidates:
        """Return the k best labellings, best first."""
        return kbest(lattice, self.k)
