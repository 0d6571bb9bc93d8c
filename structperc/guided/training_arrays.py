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

OFFSETS = (-2, -1, 1, 2)  # offsets of the neighbours in a window
UNKNOWN = -1  # label that is not decided yet
COMPILED = (torch.float32, torch.float64)  # types that the compiled functions support


class TokenArrays(NamedTuple):
    """Features of the n tokens of one or more sentences, concatenated."""

    ids: ndarray  # (M,) int32, features of all tokens
    offsets: ndarray  # (n + 1,) int64, token t has the features ids[offsets[t]:offsets[t + 1]]
    keys: ndarray  # (n, H) int64, hashes of the words of the H templates with words


class WeightArrays(NamedTuple):
    """Weights of the model and the F context templates, templates without words first."""

    node: ndarray  # (R, L) weights of token features
    table: ndarray  # (C, L) weights of context features; row 0 is for templates that do not fire
    radix: ndarray  # (F, 4) int64, factors of the labels in the number of a combination
    first: ndarray  # (F,) int64, first row of a template
    size: int  # number of rows that templates with words share
    before: ndarray  # templates with labels only before the token
    after: ndarray  # templates with labels only after the token
    around: ndarray  # templates with labels on both sides


class WeightSums(NamedTuple):
    """Sums for the averages of the weights; without rows if weights are not averaged."""

    node: ndarray  # (R, L) float64
    table: ndarray  # (C, L) float64


class TrainingData(NamedTuple):
    """A mini-batch, the weights and the options of learning."""

    starts: ndarray  # (S + 1,) int64, sentence s has the tokens starts[s], ..., starts[s + 1] - 1
    text: TokenArrays
    gold: ndarray  # (n,) int64, without numbers if there are sets of allowed labels
    allowed: ndarray  # (n, L) bool, allowed labels; only the gold label if there are no sets
    factors: ndarray  # (n,) float64, weights of the sentences at their tokens; without numbers if all are 1
    weights: WeightArrays
    sums: WeightSums
    steps: int  # decisions so far
    beam: int
    easiest: bool


def to_cpu(x: Tensor) -> Tensor:
    """Return x in a form that compiled functions can read, a copy if necessary."""
    dtype = x.dtype if x.dtype in COMPILED or not x.is_floating_point() else torch.float32
    return x.detach().to("cpu", dtype).contiguous()


@contextmanager
def writable_arrays(*tensors: Tensor) -> Iterator[list[ndarray]]:
    """Return a context with writable arrays: views of the tensors, or copies that are written back at the end."""
    copies = [to_cpu(x) for x in tensors]
    yield [copy.numpy() for copy in copies]
    for x, copy in zip(tensors, copies, strict=True):
        if copy.data_ptr() != x.data_ptr():
            x.copy_(copy)


def sentence_starts(batch: Batch | FlatBatch) -> ndarray:
    """Return the boundaries (B + 1,) int64 of the sentences of a batch among its real tokens."""
    return boundaries(to_cpu(batch.lengths)).numpy()


def without_padding(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the values (n,) of the real tokens, on the CPU; values (B, T), lengths (B,)."""
    from structperc.kernels.slices import remove_padding  # needs numba

    return torch.from_numpy(remove_padding(to_cpu(values).numpy(), to_cpu(lengths).numpy()))


def check_range(numbers: Tensor | ndarray, count: int, what: str) -> None:
    """Raise InputError for numbers outside 0..count - 1."""
    if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) >= count):
        raise InputError(f"GuidedModel: a {what} is outside of 0..{count - 1}; encode batches with the same tagger")


class Decisions(NamedTuple):
    """Best hypothesis of each sentence and the order of its decisions: the result of `GuidedModel.decode`.

    A token is decided when it is taken from the queue, with the label `first` of the best hypothesis at that time. With
    a beam of more than one state another hypothesis may win in the end: labels, windows and U are those of its actions.

    Example:
        >>> import torch
        >>> from structperc.guided.training_arrays import Decisions
        >>> decisions = Decisions.empty(B=1, T=3, dtype=torch.float32)._replace(order=torch.tensor([[1, 0, 2]]))
        >>> decisions.order.argsort(1)  # the second token was decided first
        tensor([[1, 0, 2]])
    """

    labels: Tensor  # (B, T) int64, 0 in the padding
    order: Tensor  # (B, T) int64, the step in which a token was decided, from 0; -1 in the padding
    first: Tensor  # (B, T) int64, label of the best hypothesis in that step; 0 in the padding
    windows: Tensor  # (B, T, 4) int64, labels at the offsets -2, -1, 1, 2 that the action used; else UNKNOWN
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
