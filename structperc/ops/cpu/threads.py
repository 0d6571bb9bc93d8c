"""Threads that share the sequences of a batch."""

import os
from _thread import start_new_thread
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor

WORTH_A_THREAD = 2**20  # additions, some 0.5 ms: to call another thread takes 0.05 ms
SLICES = 8  # of a batch, for each thread: sequences differ in length


def run_in_threads(kernel: Callable[..., Any], B: int, work: int, *arguments: Any) -> bool:
    """Run kernel(start, stop, *arguments) on slices of B sequences, in as many threads as pay, at most torch's.

    Each sequence takes `work` additions or the time of so many, and is processed by one thread with memory of its own:
    results do not depend on the number of threads. Tensors become arrays; contiguous ones share their memory. Returns
    whether the kernel returned True for any slice.
    """
    arrays = [x.contiguous().numpy(force=True) if isinstance(x, Tensor) else x for x in arguments]
    threads = min(torch.get_num_threads(), B, 1 + B * work // WORTH_A_THREAD)
    if threads <= 1:
        return bool(B and kernel(0, B, *arrays))
    step = -(-B // (threads * SLICES))
    slices = iter([(start, min(start + step, B)) for start in range(0, B, step)])  # each thread takes the next one

    def run() -> bool:
        return any(kernel(*bounds, *arrays) for bounds in slices)

    helpers = threads - 1
    waiting = [None] * helpers  # one for each helper that has not begun
    outcomes: SimpleQueue[bool | BaseException] = SimpleQueue()

    def help_out() -> None:
        try:
            waiting.pop()
        except IndexError:
            return  # came too late
        try:
            outcomes.put(run())
        except BaseException as error:
            outcomes.put(error)

    tasks = _tasks(os.getpid(), helpers)
    for _ in range(helpers):
        tasks.put(help_out)
    found, begun = run(), helpers
    while waiting:
        try:
            waiting.pop()
        except IndexError:
            break
        begun -= 1
    for outcome in [outcomes.get() for _ in range(begun)]:
        if isinstance(outcome, BaseException):
            raise outcome
        found |= outcome
    return found


@cache  # a forked process has no threads of its parent
def _tasks(process: int, threads: int) -> "SimpleQueue[Callable[[], None]]":
    """Return the tasks of so many threads.

    Ctrl-C may arrive between any two steps of Python. Neither a queue nor the start of a thread takes a lock in Python,
    which would be held for ever: with ThreadPoolExecutor, all later calls might wait.
    """
    tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
    for _ in range(threads):
        start_new_thread(_work, (tasks,))
    return tasks


def _work(tasks: "SimpleQueue[Callable[[], None]]") -> None:
    while True:
        tasks.get()()
