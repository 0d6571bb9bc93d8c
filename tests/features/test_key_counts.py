"""Keys counted piece by piece are those that one sort of all of them counts."""

import numpy as np
import pytest

from structperc.features.exact_index import TABLE, KeyCounts, frequent_keys, template_keys
from structperc.features.string_arrays import View
from structperc.features.templates import parse_templates


@pytest.mark.parametrize("sizes", [[0], [5], [1, 0, 7, 300], [100] * 9])
def test_counts_of_pieces(sizes):
    random = np.random.default_rng(len(sizes))
    chunks = [random.integers(0, 40, n) * 3 - 7 for n in sizes]
    counted = KeyCounts()
    for piece in chunks:
        counted.add(piece)
    keys, counts = counted.total()
    expected = np.unique(np.concatenate(chunks), return_counts=True)
    np.testing.assert_array_equal(keys, expected[0])
    np.testing.assert_array_equal(counts, expected[1])


@pytest.mark.parametrize("size", [50, TABLE])
def test_features_of_pieces(size):
    random = np.random.default_rng(1)
    keys = random.integers(2, 40, 3000) * size + random.integers(2, 40, 3000)  # of two parts, both of which are known
    whole = frequent_keys([keys], (size, size), 3)
    assert len(whole)
    np.testing.assert_array_equal(whole, frequent_keys(np.array_split(keys, 7), (size, size), 3))


@pytest.mark.parametrize("size", [1, 3, 5, 100])
def test_pieces_of_a_view_show_the_same(size):
    random = np.random.default_rng(size)
    starts = np.array([0, 0, 2, 3, 3, 9, 13, 13])
    numbers = {"word": random.integers(4, 9, 13).astype(np.int32)}
    view = View({"w": "word"}, numbers, {"w": random.permutation(9)}, starts, 2)
    chunks = view.chunks(size)
    assert len(chunks) == {1: 4, 3: 3, 5: 2, 100: 1}[size]
    for template in parse_templates([{"of": ["w"], "at": [-2, -1, 0, 1, 2]}, "w[-1]|w[2]"]):
        sizes = [9] * len(template)
        found = [template_keys(piece, template, sizes) for piece in chunks]
        np.testing.assert_array_equal(np.concatenate(found), template_keys(view, template, sizes))
