"""Checks and timings of the operators on segments on a GPU: python -m benchmarks.gpu_segments SECTION.

Without a GPU the checks run in Triton's interpreter, on fewer and smaller lattices; there are no timings then.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from benchmarks import gpu
from benchmarks.gpu import (
    DEVICE,
    GPU,
    Call,
    Kind,
    captured,
    compare_with_reference,
    microseconds,
    on_cpu,
    once,
    results,
    shared_checks,
    shown,
)
from structperc.ops.registration import implementation
from structperc.ops.segment_operators import semi_markov_kbest, semi_markov_log_partition, semi_markov_viterbi
from structperc.structures import Lattice

SIZES = [(64, 50, 8, 4), (1024, 512, 8, 4), (64, 128, 8, 37), (16, 128, 16, 129)]  # (B, T, D, C)
SMALL = (64, 50, 8, 4) if GPU else (3, 4, 3, 2)
KINDS = [(2, 1), (3, 3), (4, 8), (37, 8), (64, 32), (129, 8)] if GPU else [(3, 3)]  # (C, D)
RUNS = 100 if GPU else 2


def tables(B: int, T: int, D: int, C: int, shared: bool = False, ragged: bool = True) -> tuple[Tensor, ...]:
    """Return random scores of tokens, segments and pairs, and lengths on the device; segment scores by length if
    `shared`."""
    torch.manual_seed(C)
    token, segment = torch.randn(B, T, C) * 3, torch.randn(*((1, 1) if shared else (B, T)), D, C)
    lengths = torch.randint(T // 2, T + 1, (B,)) if ragged else torch.full((B,), T)
    return tuple(x.to(DEVICE) for x in (token, segment, torch.randn(C, C), lengths))


def operators(B: int, T: int) -> list[Call]:
    """Return all operators on segments, for B sequences of T tokens."""
    noise = torch.rand(B, 3, T, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(DEVICE)
    more: dict[str, tuple[Any, ...]] = {"viterbi": (), "kbest": (20,), "sums": (), "best": (), "sample": (noise,)}
    return [Call(f"semi_markov_{name}", given) for name, given in more.items()]


def check_type_counts() -> str:
    """Compare every operator with the reference, for several numbers of types and longest segments."""
    for C, D in KINDS:
        for shared in (True, False):
            compare_with_reference(operators(3, 6), tables(3, 6, D, C, shared))
    return f"(C, D) = {KINDS}, segment scores by length and of each segment"


def decode(*lattice: Tensor) -> tuple[Tensor, ...]:
    """Return the score and the labels of the best segmentations."""
    return semi_markov_viterbi(*lattice)


def gradients(*lattice: Tensor) -> tuple[Tensor, ...]:
    """Return the log-partition and its gradients."""
    *scores, lengths = lattice
    inputs = [x.requires_grad_() for x in scores]
    value = semi_markov_log_partition(*inputs, lengths, True)[0].sum()
    return value.detach(), *torch.autograd.grad(value, inputs)


def best_20(*lattice: Tensor) -> Any:
    """Return the 20 best segmentations."""
    return semi_markov_kbest(*lattice, 20)


SEGMENTS = Kind(tables, operators, decode, best_20, gradients)
CHECKS = {"numbers of types": check_type_counts, **shared_checks(SEGMENTS, RUNS, [SMALL])}


def run_small() -> bool:
    """Run every operator once on small lattices, for compute-sanitizer."""
    for C, D in ((3, 3), (37, 8), (70, 5)):
        for call in operators(5, 7):
            results(call, tables(5, 7, D, C))
    return True


def run_times() -> bool:
    """Print a table of the operators at each size, against the reference and against a chain of as many labels."""
    if not GPU:
        print("no GPU: no timings")
        return True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; microseconds a call, and tokens a second\n")
    print(
        "| what | (B, T, D, C) | structperc | in a CUDA graph | tokens/s | chain of C labels | in a CUDA graph", end=""
    )
    print(" | plain tensors | CPU + transfer |\n|---|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        B, T, _, C = size
        for what, ours, chain, plain in rows():
            given, labels = tables(*size, ragged=False), gpu.tables(B, T, C, ragged=False)
            calls = microseconds(lambda ours=ours, given=given: ours(*given))
            figures = [calls, microseconds(captured(ours, given)[0]), 1e6 * B * T / calls]
            figures.append(microseconds(lambda chain=chain, labels=labels: chain(*labels)))
            figures.append(microseconds(captured(chain, labels)[0]))
            figures.append(once(lambda plain=plain, given=given: plain(*(x.detach() for x in given))))
            figures.append(once(lambda ours=ours, given=given: on_cpu(ours, given)))
            print(f"| {what} | {size} | {' | '.join(map(shown, figures))} |", flush=True)
    return True


def rows() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any], Callable[..., Any]]]:
    """Yield the name of a row, our function, that of the chain, and that of plain tensors."""
    yield "Viterbi", decode, gpu.decode, implementation("reference", "semi_markov_viterbi")
    yield (
        "k-best 20",
        best_20,
        gpu.best_20,
        lambda *given: implementation("reference", "semi_markov_kbest")(*given, 20),
    )
    yield "log-partition with gradient", gradients, chain_gradients, implementation("reference", "semi_markov_sums")


def chain_gradients(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Return the log-partition of a chain and its gradients."""
    inputs = unary.requires_grad_(), edge.requires_grad_()
    value = gpu.log_partition(Lattice(*inputs, lengths)).sum()
    return value.detach(), *torch.autograd.grad(value, inputs)


SECTIONS = {"checks": lambda: gpu.run_checks(CHECKS), "small": run_small, "times": run_times}

if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.gpu_segments", description="A section of benchmarks/gpu.sh.")
    parser.add_argument("section", choices=SECTIONS)
    sys.exit(not SECTIONS[parser.parse_args().section]())
