"""The kernels for CUDA are compiled for GPUs that need not be there: what Triton's interpreter lets pass is found here.

Nothing is launched: each operator runs on the memory of the host, its kernels compiled in place of a launch, and what
it asks of torch besides is looked through for reads by the host.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SHARED = {"80": 163 * 1024, "90": 227 * 1024}  # bytes of shared memory of a program, by compute capability
READS = ("_local_scalar_dense", "nonzero", "is_nonzero", "item", "masked_select", "unique", "equal", "bincount")


KERNELS = {"_search", "_fill", "_list_paths", "_score", "_count", "_before_and_after", "_push", "_both_passes"} | {
    "_log_sums", "_shares", "_draw"
}  # fmt: skip
OF_SEGMENTS = {
    "_fill_suffixes", "_search_segments", "_sum_segments", "_search_with_each", "_list_segmentations",
    "_draw_segmentations",
}  # fmt: skip
OF_CHUNKS = {
    "_multiply",
    "_join",
    "_search_chunk",
    "_follow_chunk",
    "_score_chunk",
    "_both_passes",
}
SOME = ("9 chunked float32", "400 stationary float32")  # each kernel once, most of them in slabs of labels
MORE = ("9 dense float32", "3 stationary float32", "50 dense float64", "50 stationary float32", "400 dense float32")
ALL = (*SOME, *MORE, "400 stationary float64")
CASES = [("80", SOME), *(pytest.param(capability, ALL, marks=pytest.mark.long) for capability in SHARED)]


@pytest.mark.parametrize(("capability", "lattices"), CASES, ids=["80-some", "80-all", "90-all"])
def test_kernels_compile_without_host_reads(capability: str, lattices: tuple[str, ...]) -> None:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed, so that its kernels cannot be compiled")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    run = subprocess.run(
        [sys.executable, __file__, capability, *lattices], env=environment, capture_output=True, text=True
    )
    if run.returncode == 77:
        pytest.skip(f"Triton cannot compile for CUDA here: {run.stdout.strip()}")
    assert run.returncode == 0, run.stdout + run.stderr
    printed = [line.rsplit(maxsplit=3) for line in run.stdout.splitlines()]
    for lattice in lattices:
        kernels = OF_CHUNKS if "chunked" in lattice else KERNELS | OF_SEGMENTS
        assert {kernel for of, kernel, *_ in printed if of == lattice} == kernels, lattice


def main(capability: str, *lattices: str) -> None:
    """Compile what every operator launches for lattices of some kinds; print kind, kernel, warps and shared memory."""
    target = ("cuda", int(capability), 32)
    from torch.utils._python_dispatch import TorchDispatchMode
    from triton.backends.compiler import GPUTarget
    from triton.runtime import jit
    from triton.runtime.driver import driver

    class Absent:
        """A device of which only the kind is known."""

        def get_current_target(self) -> GPUTarget:
            return GPUTarget(*target)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

    compiled = jit.JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
        kernel = compiled(self, *args, grid=grid, warmup=True, **options)
        print(lattice, self.fn.__name__, kernel.metadata.num_warps, kernel.metadata.shared)
        assert kernel.metadata.shared <= SHARED[capability], (lattice, self.fn.__name__)

    class NoRead(TorchDispatchMode):
        """Refuses what would make the host wait for a GPU."""

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            assert function.name().split("::")[1].split(".")[0] not in READS, function
            return function(*args, **(kwargs or {}))

    try:
        driver.set_active(Absent())
        from triton.backends.nvidia.compiler import CUDABackend

        CUDABackend(GPUTarget(*target))
    except (ImportError, AttributeError, RuntimeError) as reason:
        print(reason)
        sys.exit(77)
    jit.JITFunction.run = compile_only
    for lattice in lattices:
        L, kind, precision = lattice.split()
        with NoRead():
            launch(int(L), kind, precision)


def launch(L: int, kind: str, precision: str) -> None:
    """Call every operator, or those that scan long sequences in chunks."""
    import torch

    from structperc.ops.registration import implementation

    def call(name: str, *args: Any) -> None:
        implementation("cuda", name)(*args)

    B, T, dtype = 3, 5, getattr(torch, precision)

    def lattice(T: int) -> tuple[torch.Tensor, ...]:
        edge = torch.zeros(*((1, 1) if kind == "stationary" else (B, T)), L, L, dtype=dtype)
        return torch.zeros(B, T, L, dtype=dtype), edge, torch.full((B,), T)

    if kind == "chunked":
        call("viterbi", *lattice(4096))
        call("forward_backward", *lattice(4096), True)
        return
    unary, edge, lengths = lattice(T)
    labels, rows, noise = torch.zeros(B, T, dtype=torch.int64), torch.arange(B), torch.rand(B, 2, T).double()
    call("viterbi", unary, edge, lengths)
    call("kbest", unary, edge, lengths, 5)
    call("best_before_and_after", unary, edge, lengths)
    call("best_before_and_after_backward", unary, edge, lengths, unary, unary)
    call("forward_backward", unary, edge, lengths, True)
    call("forward_backward", unary, edge, lengths, False)
    call("local_log_partition", unary, edge, lengths)
    call("local_log_partition_backward", unary, edge, lengths, unary)
    call("sample", unary, edge, lengths, noise)
    call("path_score", unary, edge, lengths, labels, rows)
    call("path_counts", noise[:, 0, 0].to(dtype), lengths, labels, rows, [B, T, L], list(edge.shape))
    segments = torch.zeros(*edge.shape[:2], 8, L, dtype=dtype)  # of up to 8 tokens
    for name, *more in (("viterbi",), ("sums",), ("best",), ("kbest", 5), ("sample", noise)):
        call(f"semi_markov_{name}", unary, segments, edge[0, 0], lengths, *more)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main(*sys.argv[1:])
