"""Log-partition and its gradient, against forward and backward of pytorch-crf, and with many labels."""

import resource
import time

import torch
from torch import Tensor
from torchcrf import CRF

from benchmarks.timing import interleaved
from structperc.chain import log_partition, path_score
from structperc.structures import Lattice

SIZES = [(64, 50, 9), (32, 200, 9), (32, 50, 45)]  # (B, T, L)
MANY = (32, 50, 400)


def run(smoke: bool) -> list[dict]:
    """Return one row per size, milliseconds per batch, both with the same loss; and one for 400 labels."""
    rows = [_row(*size, repeats=1 if smoke else 31) for size in SIZES]
    return rows if smoke else [*rows, *_many()]


def _row(B: int, T: int, L: int, repeats: int) -> dict:
    torch.manual_seed(0)
    crf, emissions = CRF(L, batch_first=True), (torch.randn(B, T, L) * 3).requires_grad_()
    between = torch.zeros(T - 2, L)
    gold, lengths = torch.randint(L, (B, T)), torch.full((B,), T)

    def ours() -> Tensor:
        ends = torch.cat([crf.start_transitions[None], between, crf.end_transitions[None]])
        lattice = Lattice(emissions + ends, crf.transitions.view(1, 1, L, L), lengths)
        loss = (log_partition(lattice) - path_score(lattice, gold)).sum()
        loss.backward()
        return loss.detach()

    def theirs() -> Tensor:
        loss = -crf(emissions, gold)
        loss.backward()
        return loss.detach()

    torch.testing.assert_close(ours(), theirs(), rtol=1e-4, atol=1e-2)
    mine, peer = interleaved(repeats, ours, theirs)
    return {
        "what": "likelihood with gradient, against pytorch-crf",
        "size": f"(B, T, L) = ({B}, {T}, {L})",
        "ours": mine,
        "peer": peer,
        "ratio": peer / mine,
        "unit": "ms",
        "target": "10",
    }


def _many() -> list[dict]:
    """One transition matrix, and edges of each token: 1 GB of scores, another one of gradients."""
    torch.manual_seed(0)
    B, T, L = MANY
    rows = []
    for what, shape in (("one matrix", (1, 1)), ("edges of each token", (B, T))):
        unary, edge = torch.randn(B, T, L, requires_grad=True), torch.randn(*shape, L, L, requires_grad=True)
        lattice = Lattice(unary, edge, torch.full((B,), T))
        log_partition(lattice).sum().backward()
        start = time.perf_counter()
        log_partition(lattice).sum().backward()
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append(
            {
                "what": f"log-partition with gradient, {what}; peak memory {memory:.1f} GB",
                "size": f"(B, T, L) = ({B}, {T}, {L})",
                "ours": seconds,
                "peer": None,
                "ratio": None,
                "unit": "s",
                "target": None,
            }
        )
    return rows
