"""Viterbi: the best labelling of padded batches, against `decode` of pytorch-crf."""

import warnings

import torch
from torchcrf import CRF

from benchmarks.timing import interleaved
from structperc.chain import viterbi
from structperc.structures import Lattice

SIZES = [(64, 50, 9), (32, 200, 9), (32, 50, 45)]  # (B, T, L)


def run(smoke: bool) -> list[dict]:
    """Return one row per size, milliseconds per batch, both finding the same labels; and one for a single sentence."""
    rows = [_row(*size, repeats=1 if smoke else 101) for size in SIZES]
    return [*rows, _call(10 if smoke else 2000)]


def _row(B: int, T: int, L: int, repeats: int) -> dict:
    torch.manual_seed(0)
    emissions, crf = torch.randn(B, T, L) * 3, CRF(L, batch_first=True)
    lattice = _lattice(crf, emissions)
    if viterbi(lattice)[1].tolist() != _decode(crf, emissions):
        raise AssertionError("the peer finds other labels")
    ours, peer = interleaved(repeats, lambda: viterbi(lattice), lambda: _decode(crf, emissions))
    return {
        "what": "Viterbi, against pytorch-crf decode",
        "size": f"(B, T, L) = ({B}, {T}, {L})",
        "ours": ours,
        "peer": peer,
        "ratio": peer / ours,
        "unit": "ms",
        "target": "40",
    }


def _call(repeats: int) -> dict:
    torch.manual_seed(0)
    lattice = Lattice(torch.randn(1, 25, 9), torch.randn(1, 1, 9, 9), torch.tensor([25]))
    (ours,) = interleaved(repeats, lambda: viterbi(lattice))
    return {
        "what": "Viterbi of one sentence, a call",
        "size": "(B, T, L) = (1, 25, 9)",
        "ours": ours,
        "peer": None,
        "ratio": None,
        "unit": "ms",
        "target": "≤ 0.06 ms",
    }


@torch.no_grad()
def _lattice(crf: CRF, emissions: torch.Tensor) -> Lattice:
    unary = emissions.clone()
    unary[:, 0] += crf.start_transitions
    unary[:, -1] += crf.end_transitions
    B, T, L = unary.shape
    return Lattice(unary, crf.transitions.expand(B, T, L, L), torch.full((B,), T))


@torch.no_grad()
def _decode(crf: CRF, emissions: torch.Tensor) -> list[list[int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return crf.decode(emissions)
