"""Segments: Viterbi and log-partition against the chain of as many labels, and against SemiMarkov of torch-struct."""

import resource
import time

import torch
from torch import Tensor
from torch_struct import SemiMarkovCRF

from benchmarks.timing import interleaved
from structperc.chain import log_partition as chain_log_partition
from structperc.chain import viterbi as chain_viterbi
from structperc.ops.segment_operators import SemiMarkovScores, semi_markov_log_partition, semi_markov_viterbi
from structperc.structures import Lattice

SIZE = (64, 50, 8, 4)  # B, T, D, C
PEER_SIZE = (8, 20, 8, 4)  # torch-struct keeps (D C)^2 numbers for each token
LONG = (1, 100_000, 8, 4)


def run(smoke: bool) -> list[dict]:
    """Return one row per function and peer, milliseconds per batch; and one for a long sequence."""
    rows = [*_against_chain(1 if smoke else 101), _against_torch_struct(1 if smoke else 11)]
    return rows if smoke else [*rows, _long()]


def _lattice(B: int, T: int, D: int, C: int) -> SemiMarkovScores:
    torch.manual_seed(0)
    token, segment, pair = torch.randn(B, T, C), torch.randn(B, T, D, C), torch.randn(C, C)
    return SemiMarkovScores(*(x.requires_grad_() for x in (token, segment, pair)), torch.full((B,), T))


def _log_partition(scores: SemiMarkovScores) -> Tensor:
    total: Tensor = semi_markov_log_partition(*scores, True)[0]
    return total


def _against_chain(repeats: int) -> list[dict]:
    B, T, _, C = SIZE
    ours = _lattice(*SIZE)
    edge = torch.randn(1, 1, C, C).requires_grad_()
    theirs = Lattice(torch.randn(B, T, C).requires_grad_(), edge, ours.lengths)
    plain = SemiMarkovScores(*(x.detach() for x in ours))
    searches = interleaved(repeats, lambda: semi_markov_viterbi(*plain), lambda: chain_viterbi(theirs))
    sums = interleaved(
        repeats,
        lambda: _log_partition(ours).sum().backward(),
        lambda: chain_log_partition(theirs).sum().backward(),
    )
    return [
        {
            "what": f"{what} of segments, against a chain of {C} labels",
            "size": f"(B, T, D, C) = {SIZE}",
            "ours": mine,
            "peer": peer,
            "ratio": mine / peer,
            "unit": "ms",
            "target": "≤ 3",
        }
        for what, (mine, peer) in (("Viterbi", searches), ("log-partition with gradient", sums))
    ]


def _against_torch_struct(repeats: int) -> dict:
    lattice = _lattice(*PEER_SIZE)

    def ours() -> Tensor:
        total = _log_partition(lattice).sum()
        total.backward()
        return total.detach()

    def theirs() -> Tensor:
        total = SemiMarkovCRF(_potentials(lattice)).partition.sum()
        total.backward()
        return total.detach()

    torch.testing.assert_close(ours(), theirs())
    mine, peer = interleaved(repeats, ours, theirs)
    return {
        "what": "log-partition of segments with gradient, against SemiMarkovCRF of torch-struct",
        "size": f"(B, T, D, C) = {PEER_SIZE}",
        "ours": mine,
        "peer": peer,
        "ratio": peer / mine,
        "unit": "ms",
        "target": "10",
    }


def _potentials(lattice: SemiMarkovScores) -> Tensor:
    """Return the same scores as (B, T, D + 1, C, C): first token, number of tokens, type, type before."""
    token, segment, pair, _ = lattice
    B, T, D, C = segment.shape
    sums = torch.cat([token.new_zeros(B, 1, C), token.cumsum(1)], 1)
    impossible = token.new_full((B, T, C), -1e5)
    whole = [impossible]
    for d in range(1, D + 1):
        fits = sums[:, d:] - sums[:, : T + 1 - d] + segment[:, : T + 1 - d, d - 1]
        whole.append(torch.cat([fits, impossible[:, : d - 1]], 1))
    scores = torch.stack(whole, 2).unsqueeze(4) + pair.T
    none = torch.full((C,), -1e5)
    none[0] = 0.0  # before the first token, one type with pair scores of 0
    first = torch.stack(whole, 2)[:, :1].unsqueeze(4) + none
    return torch.cat([first, scores[:, 1:]], 1)


def _long() -> dict:
    lattice = _lattice(*LONG)
    _log_partition(lattice).sum().backward()
    start = time.perf_counter()
    _log_partition(lattice).sum().backward()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "what": f"log-partition with gradient of one sequence of segments; peak memory {memory:.1f} GB",
        "size": f"(B, T, D, C) = {LONG}",
        "ours": 1000 * (time.perf_counter() - start),
        "peer": None,
        "ratio": None,
        "unit": "ms",
        "target": None,
    }
