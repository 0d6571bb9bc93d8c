"""The threads that share the sequences of a batch: who has begun to help is waited for, nobody else.

Each thread takes the next sequence that nobody has, the one that asks for help like those that help it, until there is
none; then the former waits for those who are still at work. So a helper that comes late, since its core sleeps or is
busy with another program, costs nothing but its help; of the threads of OpenMP, which torch works with, each is waited
for.

What is to be done stands in a mailbox, in which helpers look without Python's lock: to be found there takes a
microsecond, where a queue of Python's takes 20 to 50. A helper who was of use looks for a while, then sleeps until its
bell rings. As nobody relies on helpers, none is needed either: one mailbox serves one job at a time, who finds it taken
works alone, and a forked process, where threads of its parent do not live, gets others.
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
from structperc.ops.cpu.job import do, job_of, outcome
from structperc.ops.cpu.lending import borrowed, lent
from structperc.ops.cpu.mailbox import add, get, keep_bits, put, put_if

WORTH_A_THREAD = 2**16  # additions, some 0.04 ms: to call a helper and to wait for its last sequence takes 0.01 ms
STATE, TASK, RECORD = range(3)  # places of a mailbox: who is at what job
INSIDE, SEAT, TAKEN = 1, 1 << 20, 1 << 40  # STATE counts who helps, who may still join, and the job; 0 without one
END = 1 << 32  # turns (1,) is the first sequence that is left, and END times the place behind the last one
PATIENCE = 3000  # looks into an empty mailbox, of 0.1 to 0.3 microseconds, before a helper sleeps between batches
QUICK = 1000  # looks after a job's last helpers before their cores may need this one's
_give_way = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())


def run_in_threads(kernel: Callable[..., Any], B: int, work: int, *arguments: Any) -> bool:
    """Run kernel(side, turns, *arguments) in as many threads as pay, at most torch's; each works on what it can `take`.

    There are B sequences, each of so many additions or of what takes as long. Each one is worked on by one thread
    alone, with memory of its own: results do not depend on their number. Tensors become arrays, contiguous ones of
    the same memory. Returns whether the kernel returned True in any thread.
    """
    threads = min(torch.get_num_threads(), B, 1 + B * work // WORTH_A_THREAD)
    if threads == 0:
        return False
    held = [x.contiguous() if isinstance(x, Tensor) else x for x in arguments]  # until the kernel is through
    helpers = _helpers(os.getpid())
    if threads > 1:
        helpers.call(threads - 1)
    return bool(_shared(kernel)(helpers.address, threads - 1, B, lent(*held)))


@subkernel_no_alloc
def take(side, turns):  # type: ignore[no-untyped-def]
    """Return the next sequence that is left to the thread that asks; -1 where none is.

    Who asks for help is on side 0 and begins with the first sequence, helpers with the last one: what a thread has
    read and written for the batch before stays with its core.
    """
    while True:
        left = get(turns, 0)
        first, end = left % END, left // END
        if first >= end:
            return -1
        if put_if(turns, 0, left, left + 1 if side == 0 else left - END):
            return first if side == 0 else end - 1


class Helpers:
    """Threads of this process that help others of it, and their mailbox (3,)."""

    def __init__(self) -> None:
        self.mailbox = np.zeros(24, np.int64)[8:11]  # in lines of the cache in which nothing else is
        self.address = lent(torch.from_numpy(self.mailbox))
        self.threads: list[tuple[threading.Thread, threading.Lock]] = []
        self.leaving = False
        atexit.register(self.leave)  # they would come back from their kernel to an interpreter that is gone

    def call(self, count: int) -> None:
        """Wake so many helpers, who will look in the mailbox."""
        while len(self.threads) < count:
            bell = threading.Lock()
            thread = threading.Thread(target=self._help, args=(bell,), name="structperc", daemon=True)
            thread.start()
            self.threads.append((thread, bell))
        self._ring(count)

    def leave(self) -> None:
        """End the threads."""
        self.leaving = True
        self._ring(len(self.threads))
        for thread, _ in self.threads:
            thread.join()

    def _ring(self, count: int) -> None:
        for _, bell in self.threads[:count]:
            with suppress(RuntimeError):  # somebody else has been faster
                if bell.locked():  # else it is ringing
                    bell.release()

    def _help(self, bell: threading.Lock) -> None:
        """Look in the mailbox when the bell rings, as a lock that is opened."""
        while True:
            bell.acquire()
            if self.leaving:
                return
            _look_for_jobs(self.mailbox)


@cache
def _helpers(process: int) -> Helpers:
    """Helpers of this process, by its number."""
    return Helpers()


@cache
def _shared(compiled: Callable[..., Any]) -> Any:
    """Make a kernel that runs another one with so many helpers on B sequences; the mailbox and arguments are `lent`."""

    @kernel
    def share(mailbox, helpers, B, arguments):  # type: ignore[no-untyped-def]
        turns = np.empty(1, np.int64)
        turns[0] = B * END
        given = (turns, *borrowed(arguments))
        task, record = job_of(compiled, given)
        _together(borrowed(mailbox)[0], helpers, task, record)
        return outcome(record, given)

    return share


@kernel
def _together(mailbox, helpers, task, record):  # type: ignore[no-untyped-def]
    """Do a job with at most so many helpers; alone while they help another thread."""
    if helpers == 0 or not put_if(mailbox, STATE, 0, TAKEN):
        do(task, record, 0)
        return
    put(mailbox, TASK, task)
    put(mailbox, RECORD, record)
    put(mailbox, STATE, TAKEN + helpers * SEAT)
    do(task, record, 0)
    keep_bits(mailbox, STATE, ~(TAKEN - SEAT))
    looks = 0
    while get(mailbox, STATE) != TAKEN:
        looks += 1
        if looks > QUICK:
            _give_way()
    put(mailbox, STATE, 0)


@kernel
def _look_for_jobs(mailbox):  # type: ignore[no-untyped-def]
    """Help with jobs until there has been none for a while."""
    looks = 0
    while looks < PATIENCE:
        state = get(mailbox, STATE)
        if state & (TAKEN - SEAT) == 0:
            looks += 1
            _give_way()
        elif put_if(mailbox, STATE, state, state - SEAT + INSIDE):
            do(get(mailbox, TASK), get(mailbox, RECORD), 1)
            add(mailbox, STATE, -INSIDE)
            looks = 0
