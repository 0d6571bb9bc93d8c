"""Two threads against one, on batches of many sequences."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.timing import interleaved
from structperc.ops.operators import forward_backward, kbest, viterbi

OPERATORS: dict[str, tuple[Any, ...]] = {
    "viterbi": (viterbi,),
    "kbest": (kbest, 20),
    "forward_backward": (forward_backward, True),
}
CALLS = 5  # in a row, as batches of a corpus come
SIZES = [(2048, 50, 9), (512, 200, 9), (512, 50, 45)]  # (B, T, L)


def run(smoke: bool) -> list[dict]:
    """Return rows of milliseconds, with two threads and with one."""
    before = torch.get_num_threads()
    try:
        sizes, calls, repeats = (SIZES[:1], 1, 1) if smoke else (SIZES, CALLS, 31)
        return [_row(what, size, calls, repeats) for size in sizes for what in OPERATORS]
    finally:
        torch.set_num_threads(before)


def _row(what: str, size: tuple[int, int, int], calls: int, repeats: int) -> dict:
    torch.manual_seed(0)
    B, T, L = size
    lattice = torch.randn(B, T, L) * 3, torch.randn(1, 1, L, L), torch.full((B,), T)
    operator, *further = OPERATORS[what]

    def with_threads(n: int) -> Callable[[], object]:
        def in_a_row() -> None:
            torch.set_num_threads(n)
            for _ in range(calls):
                operator(*lattice, *further)

        return in_a_row

    two, one = interleaved(repeats, with_threads(2), with_threads(1))
    return {
        "what": f"{what}, two threads, against one",
        "size": f"(B, T, L) = ({B}, {T}, {L})",
        "ours": two / calls,
        "peer": one / calls,
        "ratio": one / two,
        "unit": "ms",
        "target": "1.5",
    }
