"""Ragged lists against lists of lists in Python."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from structperc.ragged import Ragged, boundaries, spread
from structperc.structures import padded_places, real_tokens

nested = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6)


def ragged(lists, width=None, dtype=torch.int64):
    """The lists; with a width each id is a row of so many, all equal to it."""
    ids = torch.tensor([i for one in lists for i in one], dtype=torch.int32)
    ids = ids if width is None else ids.unsqueeze(1).expand(-1, width)
    made = Ragged.from_counts(ids, torch.tensor(list(map(len, lists)), dtype=torch.int64))
    return made._replace(offsets=made.offsets.to(dtype))


def listed(found):
    """Lists of Python; offsets must begin at 0 and end where the ids do."""
    assert (int(found.offsets[0]), int(found.offsets[-1])) == (0, len(found.ids))
    assert found.ids.dtype == torch.int32
    ids = found.ids if found.ids.ndim == 1 else found.ids[:, -1]
    return [part.tolist() for part in ids.split(found.counts.tolist())] if len(found.counts) else []


def drawn_rows(data, lists):
    return data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8)) if lists else []


@given(nested)
def test_properties_of_lists(lists):
    made = ragged(lists)
    assert listed(made) == lists
    assert made.counts.tolist() == [len(one) for one in lists]
    assert made.row_ids.tolist() == [i for i, one in enumerate(lists) for _ in one]


@given(st.lists(nested, min_size=1, max_size=4), st.sampled_from([None, 3]))
def test_join(parts, width):
    assert listed(Ragged.join([ragged(part, width) for part in parts])) == [one for part in parts for one in part]


@given(nested, st.data(), st.sampled_from([torch.int32, torch.int64]))
def test_slice_is_a_view(lists, data, dtype):
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(lists))] * 2)))
    whole = ragged(lists, dtype=dtype)
    found = whole.slice(start, stop)
    assert listed(found) == lists[start:stop]
    assert found.offsets.dtype == dtype
    assert found.ids.untyped_storage().data_ptr() == whole.ids.untyped_storage().data_ptr()


@given(nested, st.data(), st.sampled_from([None, 3]), st.sampled_from([torch.int32, torch.int64]))
def test_select(lists, data, width, dtype):
    rows = drawn_rows(data, lists)
    found = ragged(lists, width, dtype).select(torch.tensor(rows, dtype=torch.int64))
    assert listed(found) == [lists[row] for row in rows]
    assert found.ids.shape[1:] == (() if width is None else (width,))
    assert found.offsets.dtype == dtype


@given(nested, st.data())
def test_take(lists, data):
    ends = st.tuples(*[st.integers(0, len(lists))] * 2).map(sorted)
    stretches = np.array(data.draw(st.lists(ends, max_size=5)), np.int64).reshape(-1, 2)
    whole = ragged(lists)
    found = whole.take(stretches[:, 0], stretches[:, 1])
    assert listed(found) == [one for start, stop in stretches for one in lists[start:stop]]
    assert found.offsets.dtype == torch.int32
    found.ids.fill_(-1)  # memory of its own
    assert listed(whole) == lists


@given(nested)
def test_transpose(lists):
    plain = ragged(lists, dtype=torch.int32)
    made = plain.transpose()
    assert torch.equal(made.ids, plain.ids)
    assert torch.equal(made.offsets, plain.offsets)
    present, held, offsets, _ = made.transposed
    assert present.tolist() == sorted({i for one in lists for i in one})
    assert [part.tolist() for part in held.split(offsets.diff().tolist())][: len(present)] == [
        [row for row, one in enumerate(lists) for i in one if i == wanted] for wanted in present.tolist()
    ]


def numbered(lists):
    """Lists of as many ids, all different, each of which is its own weight."""
    made = ragged(lists)
    ids = torch.arange(len(made.ids), dtype=torch.int32)
    return made._replace(ids=ids, weights=ids.float())


@given(nested, st.data())
def test_weights_of_ids(lists, data):
    whole = numbered(lists)
    rows = torch.tensor(drawn_rows(data, lists), dtype=torch.int64)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(lists))] * 2)))
    stretch = np.array([start], np.int64), np.array([stop], np.int64)
    for found in (whole.slice(start, stop), whole.select(rows), whole.take(*stretch)):
        assert torch.equal(found.weights, found.ids.float())
    shuffled = whole._replace(ids=whole.ids % 3).transpose()
    assert torch.equal(shuffled.transposed.weights, whole.weights[(whole.ids % 3).argsort(stable=True)])


@given(nested, nested)
def test_concat_with_and_without_weights(lists, others):
    joined = Ragged.join([numbered(lists), ragged(others)])
    n = sum(map(len, lists))
    assert joined.weights.tolist() == [*range(n), *[1] * (len(joined.ids) - n)]
    assert Ragged.join([ragged(lists), ragged(others)]).weights is None


runs_of_numbers = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 50)), max_size=6)


@given(runs_of_numbers, st.sampled_from([torch.int32, torch.int64]))
def test_boundaries_and_spread_runs(runs, dtype):
    counts, first = torch.tensor(runs, dtype=dtype).view(-1, 2).unbind(1)
    assert boundaries(counts).tolist() == [sum(n for n, _ in runs[:i]) for i in range(len(runs) + 1)]
    row_ids, numbers = spread(counts, first)
    assert row_ids.tolist() == [i for i, (n, _) in enumerate(runs) for _ in range(n)]
    assert numbers.tolist() == [a + step for n, a in runs for step in range(n)]
    assert spread(counts)[1].tolist() == [step for n, _ in runs for step in range(n)]
    assert numbers.dtype == torch.int64


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=5))
def test_padded_places(sequences):
    starts, lengths = (torch.tensor([s[i] for s in sequences], dtype=torch.int64) for i in range(2))
    places, real = padded_places(starts, lengths)
    T = max((n for _, n in sequences), default=0)
    assert places.tolist() == [[a + t if t < n else 0 for t in range(T)] for a, n in sequences]
    assert torch.equal(real, real_tokens(lengths, T))
