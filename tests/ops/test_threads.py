"""Threads that share the sequences of a batch, by number of threads, under interruption and after a fork."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from structperc.kernels.jit import kernel
from structperc.ops import operators as ops
from structperc.ops import segment_operators
from structperc.ops.cpu import threads as sharing
from structperc.ops.cpu.threads import run_in_threads

BIG = 10**9  # additions, worth all threads

PROGRAM = """
import torch
from structperc.ops.operators import viterbi
torch.set_num_threads(2)
print(viterbi(torch.zeros(64, 200, 9), torch.zeros(1, 1, 9, 9), torch.full((64,), 200))[0].sum().item())
"""


@kernel
def visit(start, stop, visits, marked):  # type: ignore[no-untyped-def]
    """Count visits (B, N) of sequences; True for one that is marked, ValueError for one that is marked twice."""
    found = False
    for b in range(start, stop):
        for n in range(visits.shape[1]):
            visits[b, n] += 1
        if marked[b] == 2:
            raise ValueError("marked twice")
        found |= marked[b] == 1
    return found


@kernel
def weighted_sums(start, stop, x, factor, weights, sums):  # type: ignore[no-untyped-def]
    """Fill sums (B,) with the sums of x (B, N, M) times weights (N, M) times a factor."""
    for b in range(start, stop):
        for n in range(x.shape[1]):
            for m in range(x.shape[2]):
                sums[b] += factor * weights[n, m] * x[b, n, m]
    return False


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def visits_of(B: int, N: int = 3) -> np.ndarray:
    visits = np.zeros((B, N), np.int64)
    assert not run_in_threads(visit, B, BIG, visits, np.zeros(B, np.int64))
    return visits


@pytest.mark.parametrize("B", [0, 1, 2, 3, 7, 64])
def test_each_sequence_is_worked_on_once(B: int) -> None:
    for threads in (1, 2, 5, 3, 1, 2):
        torch.set_num_threads(threads)
        assert (visits_of(B) == 1).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_and_errors_of_threads(threads: int) -> None:
    torch.set_num_threads(threads)
    visits, marked = np.zeros((30, 1), np.int64), np.zeros(30, np.int64)
    marked[17] = 1
    assert run_in_threads(visit, 30, BIG, visits, marked)
    marked[11] = 2
    with pytest.raises(ValueError, match="marked twice"):
        run_in_threads(visit, 30, BIG, visits, marked)
    assert (visits_of(30) == 1).all()


def test_tensors_of_any_strides() -> None:
    """Kernels work in the memory of tensors; those that are not contiguous are copied."""
    x = torch.arange(24.0, dtype=torch.float64).view(2, 3, 4).permute(2, 0, 1)
    for kind in (torch.float32, torch.int32, torch.bool):
        sums = torch.zeros(4, dtype=torch.float64)
        run_in_threads(weighted_sums, 4, BIG, x.to(kind), 3, torch.ones(2, 1).expand(2, 3), sums)
        torch.testing.assert_close(sums, 3 * x.to(kind).double().sum((1, 2)), rtol=0, atol=0)


def test_concurrent_callers() -> None:
    wrong = []

    def call() -> None:
        wrong.extend(b for _ in range(300) for b in np.flatnonzero((visits_of(16, 50) != 1).any(1)))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_process() -> None:
    """Also one that is forked while threads are at work."""
    visits_of(64)  # compiled by now
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [visits_of(64, 2000) for _ in iter(stop.is_set, True)])
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                fine = all((visits_of(64) == 1).all() for _ in range(20))
                os._exit(0 if fine else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        busy.join()


def visit_until_alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        visits_of(64, 500)


def test_ctrl_c_leaves_nothing_behind() -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press) if hasattr(signal, "SIGALRM") else pytest.skip("no alarms here")
    try:
        for n in range(20):
            with pytest.raises(KeyboardInterrupt):
                visit_until_alarm(0.002 + 0.0003 * n)
            assert (visits_of(64) == 1).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_program_ends_quietly() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.0\n", "")


def test_independence_of_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "WORTH_A_THREAD", 1)
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    unary, edge, lengths = torch.randn(70, 40, 9), torch.randn(1, 1, 9, 9), torch.randint(41, (70,))
    noise = torch.rand(70, 3, 40, dtype=torch.float64)
    found = []
    try:
        for n in (1, 2, 5):
            torch.set_num_threads(n)
            lattice, segments = (unary, edge, lengths), (unary, edge[:, :, :4], edge[0, 0], lengths)
            found.append(
                [
                    *ops.viterbi(*lattice),
                    *ops.kbest(*lattice, 7),
                    *ops.kbest(*lattice, 300),
                    *ops.forward_backward(*lattice, True),
                    *ops.best_before_and_after(*lattice),
                    ops.sample(*lattice, noise),
                    ops.local_log_partition(*lattice),
                    *ops.best_before_and_after_backward(*lattice, unary, unary),
                    *ops.local_log_partition_backward(*lattice, unary),
                    *segment_operators.semi_markov_viterbi(*segments),
                    *segment_operators.semi_markov_kbest(*segments, 3),
                    *segment_operators.semi_markov_sums(*segments),
                    *segment_operators.semi_markov_log_partition(*segments, True),
                ]
            )
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(x.equal(y) for x, y in zip(found[0], other, strict=True))


def test_negative_views() -> None:
    scores, edge, lengths = torch.randn(3, 5, 4), torch.randn(1, 1, 4, 4), torch.tensor([5, 2, 4])
    found, wanted = (ops.viterbi(unary, edge, lengths) for unary in (torch._neg_view(scores), -scores))
    assert all(x.equal(y) for x, y in zip(found, wanted, strict=True))
