"""Lists of ids in arrays against lists of lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from structperc.features.string_arrays import IdLists

nested = st.lists(st.integers(0, 9), max_size=3)


def of(lists, weights=None):
    ids = np.array([one for own in lists for one in own], np.int32)
    return IdLists.from_counts(ids, np.array(list(map(len, lists)), np.int64), weights)


def numbered(lists):
    """Each id with a weight of its own."""
    return of(lists, np.arange(sum(map(len, lists)), dtype=np.float32))


def listed(found, values):
    return [values[a:b].tolist() for a, b in zip(found.ends[:-1], found.ends[1:], strict=True)]


@given(st.lists(st.tuples(nested, nested)))
def test_beside(pairs):
    left, right = ([pair[side] for pair in pairs] for side in range(2))
    found = of(left).concatenate(numbered(right))
    assert listed(found, found.ids) == [a + b for a, b in pairs]
    weights = iter(range(sum(map(len, right))))
    assert listed(found, found.weights) == [[*[1] * len(a), *(next(weights) for _ in b)] for a, b in pairs]
    assert of(left).concatenate(of(right)).weights is None
    assert found.ids.dtype == np.int32
    assert found.ends.dtype == np.int64


@given(st.lists(nested, min_size=1), st.lists(st.integers(0, 100)))
def test_select(lists, chosen):
    chosen = [one % len(lists) for one in chosen]
    found = numbered(lists).select(np.array(chosen, np.int64))
    assert listed(found, found.ids) == [lists[one] for one in chosen]
    whole = listed(numbered(lists), numbered(lists).weights)
    assert listed(found, found.weights) == [whole[one] for one in chosen]
