"""Threads that share the sequences of a batch.

Each thread takes the next sequence that is left, the caller like its helpers, until there is none; then the caller
waits for the helpers that are still at work. A helper that comes late, since its core sleeps or is busy, costs nothing
but its help; of the threads of OpenMP, which torch uses, all are waited for.

A task is published in a state array that helpers poll without the GIL: that takes a microsecond, where a queue of
Python takes 20 to 50. A helper polls for a while after its last task, then sleeps until it is woken. No helper is ever
needed: one state serves one task at a time, a caller that finds it busy works alone, and a forked process, which has no
threads of its parent, gets its own.

Kernels borrow the memory of tensors: address, sizes and dtype, see `numba_internals.borrow_arrays`.
"""

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import types
from torch import Tensor

from structperc.kernels.jit import kernel, subkernel_no_alloc
from structperc.kernels.numba_internals import borrow_arrays, intrinsic, pointer_to, result_of, run_task, task_of

WORTH_A_THREAD = 2**16  # additions, some 0.04 ms: to call a helper and to wait for its last sequence takes 0.01 ms
STATE, TASK, RECORD = range(3)  # elements of the array that helpers poll
INSIDE, SEAT, TAKEN = 1, 1 << 20, 1 << 40  # STATE counts helpers at work, free seats, and the task; 0 without a task
END = 1 << 32  # turns (1,) is the first sequence that is left plus END times the index behind the last one
POLLS = 3000  # of 0.1 to 0.3 microseconds, before a helper sleeps
QUICK_POLLS = 1000  # for the last helpers of a task, before the caller gives up its core
ORDER = "seq_cst"  # all threads see all atomic operations in one order
DTYPES = {torch.from_numpy(np.empty(0, x)).dtype: np.dtype(x) for x in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "?")}
_yield_core = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def run_in_threads(kernel: Callable[..., Any], B: int, work: int, *arguments: Any) -> bool:
    """Run kernel(side, turns, *arguments) in as many threads as pay, at most torch's; each calls `next_sequence`.

    There are B sequences, each of `work` additions or the time of so many. Each is processed by one thread with memory
    of its own: results do not depend on the number of threads. Tensors become arrays; contiguous ones share their
    memory. Returns whether the kernel returned True in any thread.
    """
    threads = min(torch.get_num_threads(), B, 1 + B * work // WORTH_A_THREAD)
    if threads == 0:
        return False
    arguments = tuple(x.contiguous() if isinstance(x, Tensor) else x for x in arguments)  # alive until the end
    helpers = _helpers(os.getpid())
    if threads > 1:
        helpers.wake(threads - 1)
    return bool(_shared(kernel)(helpers.address, threads - 1, B, lend(*arguments)))


def lend(*arguments: Any) -> tuple[Any, ...]:
    """Return contiguous tensors as (address, sizes, numpy dtype), anything else as it is."""
    return tuple([(x.data_ptr(), (*x.shape,), DTYPES[x.dtype]) if isinstance(x, Tensor) else x for x in arguments])


@intrinsic
def load_atomic(context: Any, array: Any, index: Any) -> Any:
    """Return the number at an index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(pointer_to(context, builder, signature, arguments), ORDER, align=8)

    return types.int64(array, types.int64), generate


@intrinsic
def store_atomic(context: Any, array: Any, index: Any, number: Any) -> Any:
    """Store a number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], pointer_to(context, builder, signature, arguments), ORDER, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def compare_and_swap(context: Any, array: Any, index: Any, old: Any, new: Any) -> Any:
    """Store the new number if the old one is there; return whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = pointer_to(context, builder, signature, arguments)
        return builder.extract_value(builder.cmpxchg(pointer, arguments[2], arguments[3], ORDER, ORDER), 1)

    return types.boolean(array, types.int64, types.int64, types.int64), generate


@subkernel_no_alloc
def add_atomic(array, index, number):
    """Add to a number."""
    old = load_atomic(array, index)
    while not compare_and_swap(array, index, old, old + number):
        old = load_atomic(array, index)


@subkernel_no_alloc
def next_sequence(side, turns):
    """Return the next sequence that is left, -1 if there is none.

    The caller, on side 0, begins with the first sequence and helpers with the last one: what a thread read and wrote
    for the batch before stays with its core.
    """
    while True:
        left = load_atomic(turns, 0)
        first, end = left % END, left // END
        if first >= end:
            return -1
        if compare_and_swap(turns, 0, left, left + 1 if side == 0 else left - END):
            return first if side == 0 else end - 1


class Helpers:
    """Threads of this process that help others, and the state (3,) that they poll."""

    def __init__(self) -> None:
        self.state = np.zeros(24, np.int64)[8:11]  # in a cache line of its own
        self.address = lend(torch.from_numpy(self.state))
        self.threads: list[tuple[threading.Thread, threading.Lock]] = []
        self.leaving = False
        atexit.register(self.stop)  # a kernel must not return to an interpreter that is gone

    def wake(self, count: int) -> None:
        """Make `count` threads poll the state."""
        while len(self.threads) < count:
            asleep = threading.Lock()
            thread = threading.Thread(target=self._serve, args=(asleep,), name="structperc", daemon=True)
            thread.start()
            self.threads.append((thread, asleep))
        self._release(count)

    def stop(self) -> None:
        """End the threads."""
        self.leaving = True
        self._release(len(self.threads))
        for thread, _ in self.threads:
            thread.join()

    def _release(self, count: int) -> None:
        for _, asleep in self.threads[:count]:
            with suppress(RuntimeError):  # another thread was faster
                if asleep.locked():
                    asleep.release()

    def _serve(self, asleep: threading.Lock) -> None:
        while True:
            asleep.acquire()
            if self.leaving:
                return
            _poll_for_tasks(self.state)


@cache
def _helpers(process: int) -> Helpers:
    return Helpers()


@cache
def _shared(compiled: Callable[..., Any]) -> Any:
    """Return the kernel that runs another one with `helpers` helpers on B sequences; state and arguments are lent."""

    @kernel
    def share(state, helpers, B, arguments):
        turns = np.empty(1, np.int64)
        turns[0] = B * END
        given = (turns, *borrow_arrays(arguments))
        task, record = task_of(compiled, given)
        _run_together(borrow_arrays(state)[0], helpers, task, record)
        return result_of(record, given)

    return share


@kernel
def _run_together(state, helpers, task, record):
    """Run a task with at most so many helpers; alone while they help another thread."""
    if helpers == 0 or not compare_and_swap(state, STATE, 0, TAKEN):
        run_task(task, record, 0)
        return
    store_atomic(state, TASK, task)
    store_atomic(state, RECORD, record)
    store_atomic(state, STATE, TAKEN + helpers * SEAT)
    run_task(task, record, 0)
    seen = load_atomic(state, STATE)
    while not compare_and_swap(state, STATE, seen, seen & ~(TAKEN - SEAT)):  # no more seats
        seen = load_atomic(state, STATE)
    polls = 0
    while load_atomic(state, STATE) != TAKEN:
        polls += 1
        if polls > QUICK_POLLS:
            _yield_core()
    store_atomic(state, STATE, 0)


@kernel
def _poll_for_tasks(state):
    """Help with tasks until there has been none for a while."""
    polls = 0
    while polls < POLLS:
        seen = load_atomic(state, STATE)
        if seen & (TAKEN - SEAT) == 0:
            polls += 1
            _yield_core()
        elif compare_and_swap(state, STATE, seen, seen - SEAT + INSIDE):
            run_task(load_atomic(state, TASK), load_atomic(state, RECORD), 1)
            add_atomic(state, STATE, -INSIDE)
            polls = 0
