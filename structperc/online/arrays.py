"""What the kernels of online learning read and write: tensors of a batch and of a tagger, as arrays."""

from typing import NamedTuple

from numpy import ndarray


class Units(NamedTuple):
    """The stretches of tokens that are learned one after the other: unit u is the tokens bounds[u], ..., n tokens."""

    bounds: ndarray  # (U + 1,) int64
    gold: ndarray  # (n,) int64
    first: ndarray  # (n,) bool, first token of a sentence
    last: ndarray  # (n,) bool, last token of a sentence


class Margin(NamedTuple):
    """The numbers of a rule; see `criteria.Rule`."""

    other: bool
    cost: float
    limit: float
