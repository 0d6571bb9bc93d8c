"""Processes that share work: order, errors, laziness, ends."""

import multiprocessing
import operator
import os
import signal
from functools import partial
from itertools import count

import pytest

from structperc.commands.workers import in_order
from structperc.errors import InputError


@pytest.fixture
def left():
    """The processes that a test has started and that have not ended."""
    before = set(multiprocessing.active_children())
    return lambda: set(multiprocessing.active_children()) - before


def test_results_come_in_order_and_nothing_is_taken_too_early(left):
    taken = []
    given = (None if i == 5 else i for i in count() if taken.append(i) is None)
    found = in_order(2, partial(partial, operator.mul, 3), given)
    assert next(found) == 0
    assert taken == [0, 1, 2]
    assert [next(found) for _ in range(4)] == [3, 6, 9, 12]
    assert taken == [0, 1, 2, 3, 4, 5]  # of what has to be waited for nothing is taken before all is given out
    assert next(found) == 18
    found.close()
    assert left() == set()


def test_an_error_in_a_worker_ends_all(left):
    found = in_order(2, partial(partial, operator.truediv, 6), [3, 2, 0, 1, 1, 1])
    assert [next(found), next(found)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert left() == set()


def test_a_worker_that_is_killed_ends_all(left):
    found = in_order(1, partial(partial, signal.raise_signal), [signal.SIGKILL, 0])
    with pytest.raises(InputError, match="a worker ended with status -9"):
        next(found)
    assert left() == set()


def test_a_worker_that_cannot_begin_ends_all(left):
    with pytest.raises(FileNotFoundError):
        list(in_order(1, partial(os.stat, "/nowhere/at/all"), [1, 2]))
    assert left() == set()
