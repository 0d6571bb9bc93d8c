"""One recursion over the chain; the reduction and the direction are arguments.

`torch.amax` gives best scores (Viterbi), `torch.logsumexp` gives log-sums (forward-backward). The mirror
image is the same recursion over the tokens in reverse order, run in the same loop. -inf is taken exactly: no
finite stand-in is used that real scores could reach.

Sequences of unequal length are stepped through together, longest first, so that those alive at a step are a
prefix of those alive at the step before. Only real tokens are computed with: padding cannot leak.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.structures import Lattice, real_tokens

Reduce = Callable[..., Tensor]

SMALL = 2**14  # additions per step up to which numpy is faster: a call costs it a third (measured on a CPU)


class Walk(NamedTuple):
    """The order in which sequences are read token by token, in D directions at once, packed step after step.

    Sequences are in the order of the walk, longest first; tokens too: all first, then all second ones, ...
    """

    order: Tensor  # (B,) which sequence is at which place
    tokens: Tensor  # (D, N) where each packed token stands in the flattened (B * T)
    sizes: list[int]  # sequences alive at each step; N is their sum
    signs: list[int]  # (D) +1 forwards, -1 backwards

    @property
    def edges(self) -> Tensor:
        """The places (D, N) of the edges between each token and the one a step before; not read at the first step."""
        later = torch.arange(self.tokens.shape[1], device=self.tokens.device) >= sum(self.sizes[:1])
        return torch.stack([at if sign > 0 else at + later for at, sign in zip(self.tokens, self.signs, strict=True)])


def forwards(lattice: Lattice) -> Walk:
    """Return the walk that goes from the first token of each sequence to its last."""
    return walk(lattice, lattice.lengths.cpu().numpy(), [1])


def backwards(lattice: Lattice) -> Walk:
    """Return the walk that goes from the last token of each sequence to its first."""
    return walk(lattice, lattice.lengths.cpu().numpy(), [-1])


def both_ways(lattice: Lattice) -> Walk:
    """Return the walk that goes both ways at once: two passes in one loop."""
    return walk(lattice, lattice.lengths.cpu().numpy(), [1, -1])


def walk(lattice: Lattice, counts: np.ndarray, signs: list[int]) -> Walk:
    """Return the walk over the first counts (B,) tokens in each direction.

    The counts must not fall where the lengths rise.
    """
    lengths, T = lattice.lengths.cpu().numpy(), lattice.unary.shape[1]
    order = (-lengths).argsort(kind="stable")
    alive = counts[order] > np.arange(T)[:, None]
    step, place = alive.nonzero()
    row = order[place]
    ahead, back = row * T + step, row * T + lengths[row] - 1 - step
    tokens = np.array([ahead if sign > 0 else back for sign in signs])
    sizes = np.bincount(step).tolist()
    on_device = [torch.from_numpy(x).to(lattice.unary.device) for x in (order, tokens)]
    return Walk(on_device[0], on_device[1], sizes, signs)


def pack_unary(lattice: Lattice, walk: Walk) -> Tensor:
    """Return the unary scores (L, D, N) of the tokens of a walk, float32 or float64."""
    rows = torch.embedding(lattice.unary.flatten(0, 1), walk.tokens)
    return full_precision(rows).permute(2, 0, 1).contiguous()


def pack_edge(lattice: Lattice, walk: Walk) -> Tensor:
    """Return the edge scores (D, N, L, L) of a walk, or (D, 1, L, L) when one matrix serves all tokens.

    The last dimension is the label one step before.
    """
    if is_stationary(lattice.edge):
        packed = [full_precision(lattice.edge[0, :1])] * len(walk.signs)
    else:
        packed = [edges_at(lattice, places) for places in walk.edges]
    return torch.stack([e.mT if sign > 0 else e for e, sign in zip(packed, walk.signs, strict=True)])


def recurse(unary: Tensor, edge: Tensor, sizes: list[int], reduce: Reduce) -> Tensor:
    """Return what arrives at each label from the steps before, (L, D, N), its own unary score excluded.

    a_0 = 0 and a_k(j) = reduce_i ( a_{k-1}(i) + u_{k-1}(i) + e_k(j, i) ).
    The sequences are the last dimension, so that additions and reductions run along them.
    """
    arriving = torch.zeros_like(unary)
    if not sizes:
        return arriving
    L, D, _ = unary.shape
    work = L * L * D * sizes[0]
    tensors = arriving, unary, unary.new_empty(work), *_by_step(edge, sizes)
    if unary.is_cpu and work <= SMALL:
        _loop(*(x.numpy() for x in tensors), sizes=sizes, add=np.add, reduce=ON_ARRAYS[reduce])
    else:
        _loop(*tensors, sizes=sizes, add=torch.add, reduce=reduce)
    return arriving


def _loop(arriving: Any, unary: Any, scratch: Any, *edges: Any, sizes: list[int], add: Any, reduce: Any) -> None:
    """Fill `arriving`, on tensors or on arrays."""
    L, D, _ = unary.shape
    stop = sizes[0]
    state = unary[:, :, :stop]
    for k in range(1, len(sizes)):
        n, start, stop = sizes[k], stop, stop + sizes[k]
        if k == 1 or n < sizes[k - 1]:
            state = state[:, :, :n]
            terms = scratch[: L * L * D * n].reshape(L, L, D, n)
        add(state[:, None], edges[k], out=terms)
        here = arriving[:, :, start:stop]
        reduce(terms, 0, out=here)
        state = here + unary[:, :, start:stop]


@np.errstate(divide="ignore")  # log 0 = -inf
def _logsumexp(terms: np.ndarray, axis: int, out: np.ndarray) -> None:
    """torch.logsumexp on an array whose entries may be overwritten."""
    highest = np.maximum(terms.max(axis), np.finfo(terms.dtype).min)  # -inf - -inf would be NaN
    terms -= highest
    np.exp(terms, out=terms)
    np.add.reduce(terms, axis, out=out)
    np.log(out, out=out)
    out += highest


ON_ARRAYS: dict[Reduce, Any] = {torch.amax: np.maximum.reduce, torch.logsumexp: _logsumexp}


def _by_step(edge: Tensor, sizes: list[int]) -> list[Tensor]:
    """(D, N or 1, L, L) -> per step (L one step before, L, D, n)."""
    edge = edge.permute(3, 2, 0, 1)
    if edge.shape[3] > 1 or sum(sizes) <= 1:
        return list(edge.split(sizes, 3))
    repeated = edge.expand(-1, -1, -1, sizes[0]).contiguous()  # twice as fast to add as a broadcast
    return [repeated if n == sizes[0] else repeated[..., :n] for n in sizes]


def completions(lattice: Lattice, reduce: Reduce) -> Tensor:
    """Return the reduction over all after each label, (B, T, L), its own unary score excluded; 0 in the padding."""
    return _reduced(lattice, backwards(lattice), reduce)[0]


def before_and_after(lattice: Lattice, reduce: Reduce) -> tuple[Tensor, Tensor]:
    """Return two tensors (B, T, L): the reductions over all before and all after each label, its own unary excluded.

    `before + unary + after` is the max-marginal (amax) or the unnormalised log-marginal (logsumexp).
    0 in the padding.
    """
    before, after = _reduced(lattice, both_ways(lattice), reduce)
    return before, after


def _reduced(lattice: Lattice, walk: Walk, reduce: Reduce) -> Tensor:
    unary = pack_unary(lattice, walk)
    packed = recurse(unary, pack_edge(lattice, walk), walk.sizes, reduce).permute(1, 2, 0)
    B, T, L = lattice.unary.shape
    result = unary.new_zeros(len(walk.signs), B * T, L)
    result.scatter_(1, walk.tokens.unsqueeze(2).expand(-1, -1, L), packed)
    return result.view(len(walk.signs), B, T, L)


def edges_at(lattice: Lattice, places: Tensor) -> Tensor:
    """Return the edge scores (N, L, L) at places (N,) of the flattened (B * T), float32 or float64."""
    if is_stationary(lattice.edge):
        return full_precision(lattice.edge[0, 0]).expand(len(places), -1, -1)
    return full_precision(lattice.edge.flatten(0, 1).index_select(0, places))


def every_edge(lattice: Lattice) -> Tensor:
    """Return the edge scores (B, T, L, L); those of a stationary matrix are an expanded view."""
    return lattice.edge.expand(*lattice.unary.shape, -1)


def narrowed(lattice: Lattice) -> Lattice:
    """Return the lattice with an expanded view of one transition matrix replaced by the matrix, (1, 1, L, L).

    So large is its gradient then, too.
    """
    expanded = is_stationary(lattice.edge) and lattice.edge.shape[:2] != (1, 1)
    return lattice._replace(edge=lattice.edge[:1, :1]) if expanded else lattice


def array(x: Tensor) -> Any:
    """Return x as an array on a CPU, where a numpy call costs a third of a torch call; elsewhere the tensor itself."""
    return x.numpy() if x.is_cpu and not torch.compiler.is_exporting() else x


def live(lattice: Lattice) -> Tensor:
    """Return a mask (B, T) bool, True at real tokens."""
    return real_tokens(lattice.lengths.to(lattice.unary.device), lattice.unary.shape[1])


def full_precision(x: Tensor) -> Tensor:
    """Return half precision as float32, since a sum over a sequence in bfloat16 loses the score; others unchanged."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def is_stationary(edge: Tensor) -> bool:
    """Return whether one transition matrix serves all sequences and tokens."""
    return edge.numel() > 0 and all(edge.stride(d) == 0 or edge.shape[d] == 1 for d in (0, 1))
