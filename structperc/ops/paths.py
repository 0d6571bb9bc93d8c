"""The score of given labellings, through which gradients reach a lattice."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from structperc.ops.registration import declare


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    return unary.new_empty(labels.shape[0])


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    unary, edge, lengths, labels, rows = inputs
    ctx.save_for_backward(lengths, labels, rows)
    ctx.shapes = unary.shape, edge.shape


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *path_counts(grad, *ctx.saved_tensors, *ctx.shapes), None, None, None


_path_score = declare(
    "paths",
    "path_score",
    "(Tensor unary, Tensor edge, Tensor lengths, Tensor labels, Tensor rows) -> Tensor",
    _shapes,
    (_keep, _backward),
)


def path_score(unary: Tensor, edge: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Return the score (S,) of each labelling s on sequence rows[s].

    unary is (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,), labels (S, T) and rows (S,), all int64. It is the sum
    of the unary scores plus that of the edge scores along the labels, in double precision where the device has it.
    Labels in the padding are not read. Where a label of a real token is outside 0..L-1 it is NaN; on a CPU that raises
    InputError.
    """
    return _path_score(unary, edge, lengths, labels, rows)


def _tables(
    weights: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor, unary: list[int], edge: list[int]
) -> tuple[Tensor, Tensor]:
    return weights.new_empty(unary), weights.new_empty(edge)


def _keep_paths(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[1:4])


def _backward_counts(ctx: Any, unary: Tensor, edge: Tensor) -> tuple[Tensor | None, ...]:
    return path_score(unary, edge, *ctx.saved_tensors), *[None] * 5


_path_counts = declare(
    "paths",
    "path_counts",
    "(Tensor weights, Tensor lengths, Tensor labels, Tensor rows, SymInt[] unary, SymInt[] edge) -> (Tensor, Tensor)",
    _tables,
    (_keep_paths, _backward_counts),
)


def path_counts(
    weights: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor, unary: Sequence[int], edge: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Return tables of the shapes `unary` and `edge` with the weights (S,) of the labellings that use each entry.

    This is the transpose of `path_score`, whose lengths, labels and rows it takes. Labels outside 0..L-1 are left out.
    """
    return _path_counts(weights, lengths, labels, rows, list(unary), list(edge))
