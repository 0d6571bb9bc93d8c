"""Weights that several processes have moved, listed and mixed, against means taken weight by weight."""

from itertools import pairwise

import numpy as np
import pytest

from structperc.online.parameter_averaging import average_entries, moved_entries

SIZES = (40, 0, 1037)  # weights of three parameters, the second one without any


def tables(moved, weights, sums):
    """What `moved_entries` reads of each parameter, of arrays of all weights."""
    bounds = np.cumsum((0, *SIZES))
    spans = [slice(*pair) for pair in pairwise(bounds)]
    return [(moved[s], int(s.start), weights[s], sums[s] if len(sums) else sums) for s in spans]


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("processes", [2, 3, 5])
def test_mean_over_processes_with_updates(processes: int, average: bool) -> None:
    random = np.random.default_rng(processes)
    N = sum(SIZES)
    begin, begin_sums = random.standard_normal(N).astype(np.float32), random.standard_normal(N if average else 0)
    moved = (random.random((processes, N)) < 0.3).astype(np.uint8)
    moved[0, :8] = 0  # a process without moves at the first weights, one with all, one with none
    moved[1, :], moved[-1, SIZES[0] :] = 1, 0
    weights = np.where(moved, random.standard_normal((processes, N)).astype(np.float32), begin)
    sums = np.where(moved, random.standard_normal((processes, N)), begin_sums) if average else np.zeros((processes, 0))
    lists = [moved_entries(tables(*own)) for own in zip(moved, weights, sums, strict=True)]
    for own, entries in enumerate(lists):
        assert entries["place"].tolist() == np.flatnonzero(moved[own]).tolist()
    ends = np.cumsum([len(one) for one in lists])

    movers = np.maximum(moved.sum(0), 1)
    mean = np.where(moved.any(0), np.where(moved, weights, 0.0).sum(0) / movers, begin)
    mean_sums = np.where(moved.any(0), np.where(moved, sums, 0.0).sum(0) / movers, begin_sums) if average else sums[0]
    for own in range(processes):
        heads = np.append(0, ends[:-1])
        for table in tables(moved[own], weights[own], sums[own]):
            average_entries(np.concatenate(lists), heads, ends, own, *table)
        assert heads.tolist() == ends.tolist()
    assert not moved.any()
    np.testing.assert_allclose(weights[0], mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sums[0], mean_sums, rtol=1e-12, atol=1e-12)
    assert (weights == weights[0]).all()
    assert (sums == sums[0]).all()
