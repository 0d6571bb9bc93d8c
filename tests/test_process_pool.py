"""Processes that share work: order, errors, laziness, ends."""

import operator
import os
import signal
import subprocess
import sys
from functools import partial
from itertools import count
from time import sleep

import pytest

from structperc.errors import InputError
from structperc.process_pool import Workers


def test_order_of_results(left):
    taken = []
    given = (None if i == 5 else i for i in count() if taken.append(i) is None)
    found = Workers(2).each(partial(partial, operator.mul, 3), given)
    assert next(found) == 0
    assert len(taken) in (3, 4, 5)
    assert [next(found) for _ in range(4)] == [3, 6, 9, 12]
    assert taken[-1] <= 5  # nothing is taken that has to be waited for before all results are yielded
    assert next(found) == 18
    found.close()
    assert left() == set()


def test_workers_do_not_wait_for_their_turn(left):
    found = Workers(2).each(partial(partial, _slept), [0.5, 0.0, 0.1, 0.0, 0.2])
    processes = list(found)
    assert len({*processes[1:4]}) == 1
    assert processes[0] not in processes[1:4]
    assert left() == set()


def _slept(seconds):
    sleep(seconds)
    return os.getpid()


def test_an_error_in_a_worker_ends_all(left):
    found = Workers(2).each(partial(partial, operator.truediv, 6), [3, 2, 0, 1, 1, 1])
    assert [next(found), next(found)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert left() == set()


def test_killed_worker(left):
    found = Workers(2, "buy memory").each(partial(partial, signal.raise_signal), [signal.SIGKILL, 0])
    with pytest.raises(InputError, match=r"; buy memory$"):
        next(found)
    assert left() == set()


def test_worker_that_cannot_start(left):
    with pytest.raises(FileNotFoundError):
        list(Workers(2).each(partial(os.stat, "/nowhere/at/all"), [1, 2]))
    assert left() == set()


def test_one_worker_is_this_process(left):
    made = []
    found = Workers(3).at_most(1).each(lambda: made.append(0) or partial(operator.mul, 3), [1, None, 2])
    assert (next(found), left()) == (3, set())
    assert ([*found], made) == ([6], [0])


def test_main_module_is_not_run_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import operator\nfrom functools import partial\nfrom structperc.process_pool import Workers\n"
        "print('once', *Workers(2).each(partial(partial, operator.mul, 3), [1, 2]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("once 3 6\n", "")
