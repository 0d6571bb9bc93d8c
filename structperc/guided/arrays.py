"""Arguments and results of the compiled functions: arrays of a batch and of a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from numpy import ndarray
from torch import Tensor

from structperc.errors import InputError
from structperc.ragged import boundaries
from structperc.structures import Batch, FlatBatch

OFFSETS = (-2, -1, 1, 2)  # of the neighbours in a window
UNKNOWN = -1  # label that is not decided yet
COMPILED = (torch.float32, torch.float64)  # types that the compiled functions support


class TokenArrays(NamedTuple):
    """Features of the n tokens of one or more sentences, concatenated."""

    ids: ndarray  # (M,) int32, features of all tokens
    offsets: ndarray  # (n + 1,) int64, those of token t are ids[offsets[t]:offsets[t + 1]]
    keys: ndarray  # (n, H) int64, hashes of the words of the H templates with words


class WeightArrays(NamedTuple):
    """Weights of the model and the F context templates, those without words first."""

    node: ndarray  # (R, L) of token features
    table: ndarray  # (C, L) of context features; row 0 is that of templates that do not fire
    radix: ndarray  # (F, 4) int64, factors of the labels in the number of a combination
    first: ndarray  # (F,) int64, first row of a template
    size: int  # rows that templates with words share
    before: ndarray  # templates with labels before the token only
    after: ndarray  # after it only
    around: ndarray  # on both sides


class WeightSums(NamedTuple):
    """Sums for the averages of the weights; without rows where none are kept."""

    node: ndarray  # (R, L) float64
    table: ndarray  # (C, L) float64


class TrainingData(NamedTuple):
    """A mini-batch, the weights and the options of learning."""

    starts: ndarray  # (S + 1,) int64, sentence s has the tokens starts[s], ..., starts[s + 1] - 1
    text: TokenArrays
    gold: ndarray  # (n,) int64
    weights: WeightArrays
    sums: WeightSums
    steps: int  # decisions so far
    beam: int
    easiest: bool


def to_cpu(x: Tensor) -> Tensor:
    """Return x as compiled functions can read it, a copy where necessary."""
    dtype = x.dtype if x.dtype in COMPILED or not x.is_floating_point() else torch.float32
    return x.detach().to("cpu", dtype).contiguous()


@contextmanager
def writable_arrays(*tensors: Tensor) -> Iterator[list[ndarray]]:
    """Return arrays to be changed, of the tensors or of copies that are written back at the end."""
    copies = [to_cpu(x) for x in tensors]
    yield [own.numpy() for own in copies]
    for x, own in zip(tensors, copies, strict=True):
        if own.data_ptr() != x.data_ptr():
            x.copy_(own)


def sentence_starts(batch: Batch | FlatBatch) -> ndarray:
    """Return the boundaries (B + 1,) int64 of the sentences of a batch among its real tokens."""
    return boundaries(to_cpu(batch.lengths)).numpy()


def without_padding(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the values (n,) of the real tokens, on the CPU; values (B, T), lengths (B,)."""
    from structperc.kernels.slices import remove_padding  # needs numba

    return torch.from_numpy(remove_padding(to_cpu(values).numpy(), to_cpu(lengths).numpy()))


def check_range(numbers: Tensor | ndarray, count: int, what: str) -> None:
    """Raise InputError for numbers outside of 0..count - 1."""
    if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) >= count):
        raise InputError(f"GuidedModel: a {what} is outside of 0..{count - 1}; encode batches with the same tagger")


class Decisions(NamedTuple):
    """The best hypothesis of each sentence and the order of its decisions.

    The order is that in which tokens were taken from the queue, for the action of the hypothesis that led at the time,
    with the label `first`. With a beam of more than one state another hypothesis may win in the end: labels, windows
    and U are those of its actions.
    """

    labels: Tensor  # (B, T) int64, 0 in the padding
    order: Tensor  # (B, T) int64, the step in which a token was decided, from 0; -1 in the padding
    first: Tensor  # (B, T) int64, label that led in that step; 0 in the padding
    windows: Tensor  # (B, T, 4) int64, labels at the offsets -2, -1, 1, 2 that were known to the action; else UNKNOWN
    U: Tensor  # (B, T) score of the action; 0 in the padding
    scores: Tensor  # (B,) float64, V of the hypothesis, the sum of U

    @classmethod
    def empty(cls, B: int, T: int, dtype: torch.dtype) -> "Decisions":
        """Return the decisions before inference."""
        whole: dict[str, Any] = {"dtype": torch.int64}
        return cls(
            torch.zeros(B, T, **whole),
            torch.full((B, T), -1, **whole),
            torch.zeros(B, T, **whole),
            torch.full((B, T, 4), UNKNOWN, **whole),
            torch.zeros(B, T, dtype=dtype),
            torch.zeros(B, dtype=torch.float64),
        )
