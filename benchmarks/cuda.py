"""Operators on a GPU: Triton's kernels against the reference in tensor operations on the same device.

Rows appear where there is a CUDA device. Times are those of the device between two events, after a warm-up that
compiles the kernels.
"""

from collections.abc import Callable
from typing import Any

import torch

from structperc.ops import implementation

SIZES = [(64, 50, 9), (32, 200, 9), (32, 50, 45), (1024, 50, 23)]  # (B, T, L)
OPERATORS: dict[str, tuple[Any, ...]] = {"viterbi": (), "kbest": (20,), "forward_backward": (True,)}


def run(smoke: bool) -> list[dict]:
    """Return one row per operator and size, milliseconds per batch; none without a CUDA device."""
    if not torch.cuda.is_available():
        return []
    repeats = 2 if smoke else 50
    return [_row(name, more, size, repeats) for name, more in OPERATORS.items() for size in SIZES]


def _row(name: str, more: tuple[Any, ...], size: tuple[int, int, int], repeats: int) -> dict:
    torch.manual_seed(0)
    B, T, L = size
    tables = torch.randn(B, T, L) * 3, torch.randn(1, 1, L, L), torch.full((B,), T)
    lattice = tuple(x.cuda() for x in tables)
    ours, reference = (
        _milliseconds(implementation(device, name), (*lattice, *more), repeats) for device in ("cuda", "reference")
    )
    return {
        "what": f"{name} on {torch.cuda.get_device_name()}, against tensor operations",
        "size": f"(B, T, L) = ({B}, {T}, {L})",
        "ours": ours,
        "peer": reference,
        "ratio": reference / ours,
        "unit": "ms",
        "target": None,
    }


def _milliseconds(operator: Callable[..., Any], arguments: tuple[Any, ...], repeats: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    operator(*arguments)
    times = []
    for _ in range(repeats):
        start.record()
        operator(*arguments)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)
