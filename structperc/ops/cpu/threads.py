"""Threads that share the sequences of a batch."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
from torch import Tensor

WORTH_A_THREAD = 2**20  # additions, some 0.5 ms: to call another thread takes 0.05 ms
SLICES = 8  # of a batch, for each thread: sequences differ in length


def run_in_threads(kernel: Callable[..., Any], B: int, work: int, *arguments: Any) -> bool:
    """Run kernel(start, stop, *arguments) on slices of B sequences, in as many threads as pay, at most torch's.

    Each sequence takes `work` additions or the time of so many, and is processed by one thread with memory of its own:
    results do not depend on the number of threads. Tensors become arrays; contiguous ones share their memory.

    Returns:
        Whether the kernel returned True for any slice.
    """
    arrays = [x.contiguous().numpy(force=True) if isinstance(x, Tensor) else x for x in arguments]
    threads = min(torch.get_num_threads(), B, 1 + B * work // WORTH_A_THREAD)
    if threads <= 1:
        return bool(B and kernel(0, B, *arrays))
    step = -(-B // (threads * SLICES))
    slices = iter([(start, min(start + step, B)) for start in range(0, B, step)])  # each thread takes the next one

    def run(slices: Iterable[tuple[int, int]]) -> bool:
        return any(kernel(*bounds, *arrays) for bounds in slices)

    others = [_pool(os.getpid(), threads - 1).submit(run, slices) for _ in range(threads - 1)]
    found = run(slices)
    return any([found, *(other.result() for other in others if not other.cancel())])


@cache  # a forked process has no threads of its parent
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="structperc")
