"""The k best of lattices too long to enumerate, where few tokens leave a choice: what the reference lists."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from structperc.errors import InvalidScoreError
from structperc.ops.registration import implementation

Tables = tuple[Tensor, Tensor, Tensor]

search = {device: implementation(device, "kbest") for device in ("reference", "cpu")}
viterbi = implementation("cpu", "viterbi")


@pytest.fixture(params=[torch.float64, torch.float32], ids=str)
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


def clear(L: int, T: int, dtype: torch.dtype, seed: int, whole: bool = True) -> Tables:
    """Four sequences of about T tokens, most of which prefer one label by far; whole scores make ties, exact ones."""
    torch.manual_seed(seed)
    unary, edge = torch.randn(4, T, L) * 1.5, torch.randn(*((4, T), (1, 1), (4, 1))[seed % 3], L, L)
    if whole:
        unary, edge = unary.round(), edge.round()
    preferred = torch.randint(L, (4, T, 1))
    unary.scatter_add_(2, preferred, 40.0 * (torch.rand(4, T, 1) < 0.9))
    if seed % 4 == 3:
        edge[torch.rand(edge.shape) < 0.2] = -torch.inf
    return unary.to(dtype), edge.to(dtype), torch.tensor([T, T - 1, T // 2, 1])


def lattices(dtype: torch.dtype, whole: bool = True) -> Iterator[Tables]:
    for seed in (3, 7, 8):  # each number of labels with other edge scores, two of them with impossible steps
        yield clear((2, 3, 9)[seed // 4], 50 + 9 * seed, dtype, seed, whole)


def same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    assert found[0].equal(expected[0])
    torch.testing.assert_close(found[1], expected[1])
    assert found[2].equal(expected[2])


def test_distant_ties(dtype: torch.dtype) -> None:
    """Two labellings are equally good, and leaving either of them costs 1."""
    T = 260
    unary, edge = torch.zeros(1, T, 2, dtype=dtype), torch.zeros(1, T, 2, 2, dtype=dtype)
    unary[0, 2:, 1] = -100
    edge[0, 1] = torch.tensor([[-1, 0], [0, -1]])
    labels, scores, valid = search["cpu"](unary, edge, torch.tensor([T]), 3)
    assert labels[0, :, :2].tolist() == [[0, 1], [1, 0], [0, 0]]
    assert not labels[0, :, 2:].any()
    assert scores.tolist() == [[0, 0, -1]]
    assert valid.all()


@pytest.mark.parametrize("k", [7, 300])
def test_long_sequences_of_clear_tokens(dtype: torch.dtype, k: int) -> None:
    for whole in (True, False):
        for tables in lattices(dtype, whole):
            found, expected = search["cpu"](*tables, k), search["reference"](*tables, k)
            if whole:
                same(found, expected)
            torch.testing.assert_close(found[1], expected[1])


def test_prefixes_of_lists(dtype: torch.dtype) -> None:
    for tables in lattices(dtype):
        longest = search["cpu"](*tables, 300)
        for k in (1, 5, 6, 150, 250):
            same(search["cpu"](*tables, k), tuple(x[:, :k] for x in longest))
        scores, labels = viterbi(*tables)
        assert longest[0][:, 0].equal(labels)
        assert longest[1][:, 0].equal(scores)


@pytest.mark.parametrize("k", [100, 1000])
def test_more_candidates_than_paths(dtype: torch.dtype, k: int) -> None:
    """Labels that never fall: of T tokens, T + 1 labellings with two labels; and where nothing is legal, none."""
    unary, edge = torch.zeros(2, 60, 2, dtype=dtype), torch.zeros(1, 1, 2, 2, dtype=dtype)
    edge[0, 0, 1, 0] = unary[1, 30] = -torch.inf
    tables = unary, edge, torch.tensor([60, 60])
    labels, _, valid = found = search["cpu"](*tables, k)
    assert valid.sum(1).tolist() == [61, 0]
    assert labels[0, :61].sum(1).tolist() == list(range(61))
    same(found, search["reference"](*tables, k))


@pytest.mark.parametrize(("L", "T", "dtype"), [(2, 40, torch.float64), (9, 20, torch.float32)])
def test_very_long_lists(L: int, T: int, dtype: torch.dtype) -> None:
    tables = clear(L, T, dtype, L)
    same(search["cpu"](*tables, 6400), search["reference"](*tables, 6400))


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_scores_of_any_size(dtype: torch.dtype, size: float) -> None:
    """Whole multiples of a power of two: losses are exact, so that the order is known."""
    size = 2.0 ** round(torch.tensor(size).log2().item())
    for k in (30, 300):
        unary, edge, lengths = clear(3, 50, dtype, 4)
        tables = unary * size, edge * size, lengths
        same(search["cpu"](*tables, k), search["reference"](*tables, k))


def test_outliers_leave_the_bound_close(dtype: torch.dtype) -> None:
    """Losses of 1 beside those of 1e9: labellings are counted again until the bins are fine enough."""
    unary, edge, lengths = clear(3, 60, dtype, 5)
    unary[:, ::2, 1] -= 2.0**30
    same(search["cpu"](unary, edge, lengths, 2000), search["reference"](unary, edge, lengths, 2000))


def test_invalid_scores(dtype: torch.dtype) -> None:
    for value in (torch.nan, torch.inf):
        for k in (3, 300):
            unary, edge, lengths = clear(3, 40, dtype, 2)
            unary[torch.rand(unary.shape) < 0.2], unary[:, 0, 1] = value, value
            with pytest.raises(InvalidScoreError):
                search["cpu"](unary, edge, lengths, k)
            labels, scores, valid = search["reference"](unary, edge, lengths, k)
            assert not labels.any()
            assert scores.isnan().all()
            assert not valid.any()
