"""Slices of arrays of all types and shapes, against numpy's slices."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from structperc.kernels.slices import copy_slices, remove_padding

STARTS, STOPS = np.array([4, 0, 2, 2, 0]), np.array([6, 3, 2, 4, 6])
FLAT = np.arange(6)
READ_ONLY = np.arange(12, dtype=np.int32).reshape(6, 2)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(FLAT > 2, id="bool"),
        pytest.param(FLAT.astype(np.int16), id="two bytes"),
        pytest.param(FLAT.astype(np.float32), id="four bytes"),
        pytest.param(np.arange(36.0).reshape(6, 3, 2), id="rows of rows"),
        pytest.param(np.arange(12)[::2], id="every other number"),
        pytest.param(np.empty((6, 0)), id="empty rows"),
        pytest.param(READ_ONLY, id="read-only"),
    ],
)
def test_slices_are_concatenated(rows):
    found = copy_slices(rows, STARTS, STOPS)
    assert found.dtype == rows.dtype
    assert_array_equal(found, np.concatenate([rows[a:b] for a, b in zip(STARTS, STOPS, strict=True)]))
    assert not np.shares_memory(found, rows)


@pytest.mark.parametrize("type_", [np.int32, np.int64])
def test_no_slice(type_):
    none = np.empty(0, type_)
    assert_array_equal(copy_slices(np.ones((3, 2)), none, none), np.empty((0, 2)))


@pytest.mark.parametrize("lengths", [[], [0, 0], [2, 0, 4, 1]])
def test_padding_is_left_out(lengths):
    numbers = np.arange(len(lengths) * 5 * 2).reshape(len(lengths), 5, 2)
    real = np.arange(5) < np.array(lengths, int)[:, None]
    for values in (numbers, numbers[..., 0] % 3 == 0, numbers[:, ::-1, 0]):
        assert_array_equal(remove_padding(values, np.array(lengths, np.int64)), values[real])
