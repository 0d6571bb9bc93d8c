"""Scores of +inf and NaN: results of every operator on every device; ignored in the padding."""

import importlib.util
import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch

from structperc.errors import InputError, InvalidScoreError
from structperc.ops import operators as ops
from structperc.ops.registration import implementation
from tests.ops.lattices import make

T, L = 4, 3
LENGTHS = torch.tensor([T, 3, 2, 0])
SHAPES = [(1, 1), (4, 1), (1, T), (4, T)]  # of the edges
NUMBERS = [math.nan, -math.nan, math.inf]
SEARCHES: list[tuple[str, tuple[Any, ...]]] = [
    ("viterbi", ()),
    ("kbest", (3,)),
    ("sample", (torch.full((4, 2, T), 0.5, dtype=torch.float64),)),
]
SUMS: list[tuple[str, tuple[Any, ...]]] = [
    ("forward_backward", (True,)),
    ("best_before_and_after", ()),
]


Scores = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(params=["reference", "cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and (importlib.util.find_spec("triton") is None or torch.cuda.is_available()):
        pytest.skip("kernels are interpreted on a CPU")
    return request.param


def lattice(turn: int) -> Scores:
    generator = torch.Generator().manual_seed(turn)
    unary = torch.randn(4, T, L, generator=generator, dtype=torch.float64)
    return unary, torch.randn(*SHAPES[turn], L, L, generator=generator, dtype=torch.float64)


@cache
def valid(name: str, more: tuple[Any, ...], turn: int) -> tuple[torch.Tensor, ...]:
    """What the reference makes of the lattice without invalid scores."""
    return results(implementation("reference", name)(*lattice(turn), LENGTHS, *more))


def spoilt(turn: int, number: float, kind: str) -> tuple[Scores, list[bool]]:
    """A lattice with an invalid score, and which sequences read it."""
    (unary, edge), shape = lattice(turn), SHAPES[turn]
    if kind == "unary":
        unary[1, 2, 2], wrong = number, [False, True, False, False]
    elif kind == "edge":
        edge[min(1, shape[0] - 1), min(2, shape[1] - 1), 0, 1] = number
        wrong = [shape[0] == 1, True, shape == (1, 1), False]
    else:
        unary[1, 3], unary[3], wrong = number, number, [False] * 4
        if shape[1] > 1:
            edge[:, 0] = number
            edge[min(1, shape[0] - 1), 3] = edge[0, 3] if shape[0] == 1 else number
    return (unary, edge), wrong


def cases(device: str) -> Iterator[tuple[int, Scores, list[bool]]]:
    """Lattices with invalid scores: one in each, but in few lattices where kernels are interpreted, which is slow."""
    if device != "cuda":
        for turn, number, kind in itertools.product(range(len(SHAPES)), NUMBERS, ("edge", "padding")):
            yield turn, *spoilt(turn, number, kind)
        return
    for turn in (0, 3):  # edge scores of all sequences and tokens, and of each
        rows, steps = SHAPES[turn]
        outside, own, edge = (NUMBERS[(turn + i) % 3] for i in range(3))
        scores, _ = spoilt(turn, outside, "padding")
        scores[0][0, 2, 1] = own
        if rows == 1:
            yield turn, *spoilt(turn, edge, "edge")
        else:
            scores[1][2, min(1, steps - 1), 0, 1] = edge
        yield turn, scores, [True, False, rows > 1, False]


def results(found: Any) -> tuple[torch.Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_searches_raise_or_return_nan(device: str) -> None:
    for name, more in SEARCHES:
        search: Callable[..., Any] = implementation(device, name)
        for turn, scores, wrong in cases(device):
            if device == "cpu" and any(wrong):
                with pytest.raises(InvalidScoreError, match=r"(NaN|inf).*token.* of .*sequence.*label [012]"):
                    search(*scores, LENGTHS, *more)
                continue
            rows = torch.tensor(wrong)
            for x, y in zip(results(search(*scores, LENGTHS, *more)), valid(name, more, turn), strict=True):
                torch.testing.assert_close(x[~rows], y[~rows])
                assert x[rows].isnan().all() if x.is_floating_point() else not x[rows].any()


def test_sums_are_nan_for_their_sequence_only(device: str) -> None:
    for name, more in SUMS:
        add = implementation(device, name)
        for turn, scores, wrong in cases(device):
            rows = torch.tensor(wrong)
            for x, y in zip(results(add(*scores, LENGTHS, *more)), valid(name, more, turn), strict=True):
                torch.testing.assert_close(x[~rows], y[~rows])
                inside = torch.arange(x.shape[1]) < LENGTHS[rows, None] if x.dim() == 3 else ...
                assert x[rows][inside].isnan().all() if x.dim() < 4 else x[rows].isnan().any((1, 2, 3)).all()
                assert x.dim() != 3 or not x[rows][~inside].any()


def test_local_sums_are_nan_where_one_is_a_term(device: str) -> None:
    unary, edge = torch.zeros(1, 3, 2), torch.zeros(1, 1, 2, 2)
    for number in NUMBERS:
        unary[0, 2, 1] = number
        found = implementation(device, "local_log_partition")(unary, edge, torch.tensor([3]))
        torch.testing.assert_close(found[0, 0], torch.full((2,), math.log(2)))
        assert found[0, 1].isnan().all()


def test_invalid_scores_and_lengths_are_located() -> None:
    unary, edge, lengths = make("dense", 3, 4, torch.float32, 0)
    edge[3, 2, 1, 0], lengths[3] = torch.inf, 4
    with pytest.raises(InvalidScoreError, match=r"\+inf .*token 2 .*sequence 3, label 1 .*label 0"):
        ops.viterbi(unary, edge, lengths)
    edge[3, 2, 1, 0], unary[5, 0, 2], lengths[5] = 0, torch.inf, 1
    with pytest.raises(InputError, match=r"\+inf .*token 0 .*sequence 5, label 2"):
        ops.kbest(unary, edge, lengths, 3)
    wrong = ops.forward_backward(unary, edge, lengths, False)[0].isnan()  # a loss that a training stops at
    assert wrong.nonzero().tolist() == [[5]]
    unary[5, 0, 2], lengths[7] = 0, 5
    with pytest.raises(InputError, match=r"^lengths: sequence 7 .*24 .*5 .*0\.\.4$"):
        ops.forward_backward(unary, edge, lengths, False)
    lengths[7] = -1
    with pytest.raises(InputError, match=r"^lengths: sequence 7 .*24 .*-1 "):
        ops.best_before_and_after(unary, edge, lengths)
