"""The scan over chunks of long sequences, interpreted, with chunks of a few tokens: the contract of the operators."""

import importlib.util
from typing import Any

import pytest
import torch
from torch import Tensor

from structperc.ops.registration import implementation
from tests.ops import test_contract as contract
from tests.ops import test_invalid_scores as invalid
from tests.ops.test_cuda import NEAR, lattice

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed, so that its kernels cannot be interpreted", allow_module_level=True)

SEARCH, SUM = ("viterbi", ()), ("forward_backward", (True,))


def force(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide all lattices into chunks of that many tokens, of all tokens if there are fewer."""
    monkeypatch.setattr("structperc.ops.cuda.chunks.chunk_length", lambda B, T, L: min(T, tokens))


def results(name: str, more: tuple[Any, ...], tables: tuple[Tensor, ...], device: str = "cuda") -> tuple[Tensor, ...]:
    return implementation(device, name)(*tables, *more)


USED = [(1, 4096, 9, 64), (63, 16384, 16, 128), (1, 5000, 2, 64), (1, 10**6, 9, 1024)]
NOT_USED = [(64, 4096, 9, 4096), (1, 4095, 9, 4095), (1, 4096, 17, 4096), (0, 0, 4, 0)]


@pytest.mark.parametrize(("B", "T", "L", "expected"), [*USED, *NOT_USED])
def test_chunks_for_few_long_sequences_of_few_labels(B: int, T: int, L: int, expected: int) -> None:
    from structperc.ops.cuda.chunks import chunk_length

    assert chunk_length(B, T, L) == expected


@pytest.mark.parametrize(
    ("tokens", "dtype", "batches"),
    [(1, torch.float32, 1), (2, torch.float64, 3)],
)
def test_contract(tokens: int, dtype: torch.dtype, batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    force(tokens, monkeypatch)
    monkeypatch.setattr("tests.ops.lattices.BATCH", 4)  # each chunk of each sequence is a program
    (device,) = contract.devices({"cuda": 4 * batches}, (dtype,))
    contract.test_viterbi(device, dtype)
    contract.test_forward_backward(device, dtype)


def test_invalid_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    force(2, monkeypatch)
    monkeypatch.setattr(invalid, "SEARCHES", [SEARCH])
    monkeypatch.setattr(invalid, "SUMS", [SUM])
    invalid.test_searches_raise_or_return_nan("cuda")
    invalid.test_sums_are_nan_for_their_sequence_only("cuda")


def test_fractions_as_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = torch.float32
    tables = lattice(9, 10, (3, 10), dtype)
    force(4, monkeypatch)
    scores, labels = results(*SEARCH, tables)
    torch.testing.assert_close(scores, results(*SEARCH, tables, "reference")[0], **NEAR[dtype])
    rows = torch.arange(len(labels))
    torch.testing.assert_close(scores, implementation("reference", "path_score")(*tables, labels, rows), **NEAR[dtype])
    for x, y in zip(results(*SUM, tables), results(*SUM, tables, "reference"), strict=True):
        torch.testing.assert_close(x, y, **NEAR[dtype])


def test_results_do_not_depend_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever new memory holds, all results are equal in every bit."""
    from structperc.ops.cuda.blocks import KernelArguments

    force(2, monkeypatch)
    tables, runs = lattice(3, 3, (2, 3), torch.float32, B=2), []
    scratch = KernelArguments.scratch

    def filled(self: KernelArguments, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        memory = scratch(self, *shape, dtype=dtype)
        return memory.fill_(torch.nan if memory.is_floating_point() else torch.iinfo(memory.dtype).max)

    for _ in range(2):
        runs.append([*results(*SEARCH, tables), *results(*SUM, tables)])
        monkeypatch.setattr(KernelArguments, "scratch", filled)
    for x, y in zip(*runs, strict=True):
        assert x.equal(y)


def test_precision_of_high_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    force(4, monkeypatch)
    unary, edge, lengths = lattice(5, 12, (1, 1), torch.float32)
    tables = unary + 1000, edge, lengths
    exact = results(*SUM, (*(x.double() for x in tables[:2]), lengths), "reference")
    for x, y in zip(results(*SUM, tables), exact, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-5, atol=1e-5)
