"""The kernels for CUDA, interpreted, where the contract's small lattices do not lead: many labels, long sequences."""

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
import torch

from structperc.ops.registration import implementation
from tests.ops.lattices import operator

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed, so that its kernels cannot be interpreted", allow_module_level=True)

NEAR = {torch.float64: {"rtol": 1e-9, "atol": 1e-9}, torch.float32: {"rtol": 1e-5, "atol": 1e-4}}
Tables = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def lattice(L: int, T: int, shape: tuple[int, int], dtype: torch.dtype, B: int = 3) -> Tables:
    """Lengths T, T - 2, ... with NaN in the padding; a tenth of all labels and steps are impossible."""
    torch.manual_seed(L)
    unary, edge = torch.randn(B, T, L).to(dtype), torch.randn(*shape, L, L).to(dtype)
    unary[torch.rand(unary.shape) < 0.1], edge[torch.rand(edge.shape) < 0.1] = -torch.inf, -torch.inf
    lengths = (T - 2 * torch.arange(B)).clamp(min=0)
    unary[torch.arange(T) >= lengths.unsqueeze(1)] = torch.nan
    return unary, edge, lengths


def both(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return operator("cuda", name), implementation("reference", name)


CASES = [
    (70, "dense", torch.float32),
    (70, "stationary", torch.float64),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def tables(request: pytest.FixtureRequest) -> Tables:
    L, kind, dtype = request.param
    shape = {"dense": (2, 3), "stationary": (1, 1)}[kind]
    return lattice(L, 3, shape, dtype, B=2)


OPERATORS = [
    ("viterbi", ()),
    ("kbest", (7,)),
    ("best_before_and_after", ()),
    ("forward_backward", (True,)),
    ("forward_backward", (False,)),
    ("local_log_partition", ()),
]


@pytest.mark.parametrize(("name", "more"), OPERATORS)
def test_many_labels_as_the_reference(tables: Tables, name: str, more: tuple[Any, ...]) -> None:
    compiled, reference = both(name)
    found, expected = compiled(*tables, *more), reference(*tables, *more)
    if isinstance(found, torch.Tensor):
        found, expected = (found,), (expected,)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x, y, **(NEAR[x.dtype] if x.is_floating_point() else {"rtol": 0, "atol": 0}))


def test_samples_of_many_labels(tables: Tables) -> None:
    compiled, reference = both("sample")
    noise = torch.rand(2, 3, 3, dtype=torch.float64)
    assert compiled(*tables, noise).equal(reference(*tables, noise))


@pytest.mark.parametrize(
    ("name", "grads"),
    [("best_before_and_after_backward", 2), ("local_log_partition_backward", 1)],
)
def test_gradients_of_many_labels(tables: Tables, name: str, grads: int) -> None:
    compiled, reference = both(name)
    given = [torch.randn(tables[0].shape).to(tables[0].dtype) for _ in range(grads)]
    padding = torch.arange(3) >= tables[2].unsqueeze(1)
    clean = tables[0].masked_fill(padding.unsqueeze(2), 0)  # derivatives in tensors multiply the padding by 0
    for x, y in zip(compiled(*tables, *given), reference(clean, *tables[1:], *given), strict=True):
        torch.testing.assert_close(x, y, **NEAR[x.dtype])


def test_precision_of_high_scores() -> None:
    unary, edge, lengths = lattice(9, 12, (1, 1), torch.float32)
    unary += 1000
    compiled, reference = both("forward_backward")
    exact = reference(unary.double(), edge.double(), lengths, True)
    for x, y in zip(compiled(unary, edge, lengths, True), exact, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-5, atol=1e-5)


def test_one_sequence_per_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block sizes that a GPU gets: the interpreter alone is given many sequences at once."""
    from structperc.ops.cuda import blocks, kbest

    together, alone = [], []
    cases = lattice(3, 3, (2, 3), torch.float32, B=2), lattice(9, 3, (1, 1), torch.float32, B=1)
    for results in (together, alone):
        for case in cases:
            for name, more in OPERATORS:
                out = operator("cuda", name)(*case, *more)
                results.extend(out if isinstance(out, tuple) else (out,))
        monkeypatch.setattr(blocks, "INTERPRETED", False)
        monkeypatch.setattr(kbest, "INTERPRETED", False)
    for x, y in zip(together, alone, strict=True):
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize(("B", "T"), [(0, 3), (2, 0), (0, 0)])
def test_batches_without_a_token(B: int, T: int) -> None:
    unary, edge, lengths = torch.zeros(B, T, 4), torch.zeros(1, 1, 4, 4), torch.zeros(B, dtype=torch.int64)
    noise = torch.zeros(B, 2, T, dtype=torch.float64)
    rows, labels = torch.arange(B), torch.zeros(B, T, dtype=torch.int64)
    calls = [(name, (unary, edge, lengths, *more)) for name, more in OPERATORS]
    calls += [
        ("sample", (unary, edge, lengths, noise)),
        ("local_log_partition_backward", (unary, edge, lengths, unary)),
        ("path_score", (unary, edge, lengths, labels, rows)),
        ("path_counts", (torch.ones(B), lengths, labels, rows, [B, T, 4], [1, 1, 4, 4])),
    ]
    for name, given in calls:
        found, expected = (implement(*given) for implement in both(name))
        for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, expected)), strict=True):
            assert x.dtype == y.dtype
            assert x.equal(y)
    own, steps = both("best_before_and_after_backward")[0](unary, edge, lengths, unary, unary)
    assert own.shape == unary.shape
    assert steps.equal(torch.zeros_like(edge))
