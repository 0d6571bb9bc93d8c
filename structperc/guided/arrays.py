"""What compiled functions read and write: tensors of a batch and of a model, as arrays."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from numpy import ndarray
from torch import Tensor

from structperc.errors import InputError
from structperc.ragged import boundaries
from structperc.structures import Batch

COMPILED = (torch.float32, torch.float64)  # what the functions are written for


class Text(NamedTuple):
    """What is seen of the n tokens of one or more sentences, one after the other."""

    ids: ndarray  # (M,) int32, features of all tokens
    offsets: ndarray  # (n + 1,) int64, those of token t are ids[offsets[t]:offsets[t + 1]]
    keys: ndarray  # (n, H) int64, numbers of what the H templates with words see of the words


class Weights(NamedTuple):
    """A row of L weights for each feature; F templates look at labels, those without words first."""

    node: ndarray  # (R, L) of features of tokens
    table: ndarray  # (C, L) of combinations of labels next to a token; row 0 is of those that do not fire
    radix: ndarray  # (F, 4) int64, by what a label counts in the number of a combination
    first: ndarray  # (F,) int64, first row of a template
    size: int  # rows that templates with words share
    before: ndarray  # templates that look at labels before the token alone
    after: ndarray  # at labels after it alone
    around: ndarray  # at both


class Sums(NamedTuple):
    """What is added up for the averages of the weights; without rows where no averages are kept."""

    node: ndarray  # (R, L) float64
    table: ndarray  # (C, L) float64


class Lessons(NamedTuple):
    """A mini-batch to learn from, sentence after sentence, and what is learned."""

    starts: ndarray  # (S + 1,) int64, sentence s has the tokens starts[s], ..., starts[s + 1] - 1
    text: Text
    gold: ndarray  # (n,) int64
    weights: Weights
    sums: Sums
    steps: int  # decisions until now
    beam: int
    easiest: bool


def here(x: Tensor) -> Tensor:
    """Return what compiled functions can read: x itself if it is that already, else a copy."""
    dtype = x.dtype if x.dtype in COMPILED or not x.is_floating_point() else torch.float32
    return x.detach().to("cpu", dtype).contiguous()


@contextmanager
def changed(*tensors: Tensor) -> Iterator[list[ndarray]]:
    """Hand out arrays to be changed, of tensors themselves or, where functions cannot reach these, of copies."""
    copies = [here(x) for x in tensors]
    yield [own.numpy() for own in copies]
    for x, own in zip(tensors, copies, strict=True):
        if own.data_ptr() != x.data_ptr():
            x.copy_(own)


def starts_of(batch: Batch) -> ndarray:
    """Return where the sentences of a batch begin among its real tokens, and at last where they end: (B + 1,) int64."""
    return boundaries(here(batch.lengths)).numpy()


def of_tokens(values: Tensor, batch: Batch) -> ndarray:
    """Return the values (B, T, ...) of the real tokens of a batch, (n, ...)."""
    from structperc.kernels.slices import remove_padding  # which needs a compiler

    return remove_padding(here(values).numpy(), here(batch.lengths).numpy())


def check_range(numbers: Tensor | ndarray, count: int, what: str) -> None:
    """Raise InputError for numbers outside of 0..count - 1."""
    if len(numbers) and (int(numbers.min()) < 0 or int(numbers.max()) >= count):
        raise InputError(f"GuidedModel: there is a {what} outside of 0..{count - 1}; give batches that it has encoded")
