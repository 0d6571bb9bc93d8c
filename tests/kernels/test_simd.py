"""Logarithms of vectors of two widths, of numbers that are no whole vectors."""

import numpy as np
import pytest
from numba import njit

from structperc.kernels.simd import log, store_masked, vector_functions


@pytest.mark.parametrize("width", [8, 16])
def test_logarithms_are_those_of_numpy(width):
    load, *_ = vector_functions(width)

    @njit
    def logarithms(numbers, found):
        for place in range(0, len(found), width):
            store_masked(found, place, len(found) - place, log(load(numbers, place)))

    near_one = 1 + np.linspace(-1e-3, 1e-3, 1001)
    numbers = np.concatenate([np.geomspace(np.finfo(float).tiny, 1e308, 4003), near_one, [1.0]])
    found = np.full_like(numbers, np.nan)
    logarithms(np.concatenate([numbers, np.ones(width)]), found)
    np.testing.assert_allclose(found, np.log(numbers), rtol=1e-15, atol=0)
