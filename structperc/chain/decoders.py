"""Searches for the labels that a tagger predicts: the base class, and the best label sequence with biases of labels."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from structperc.compiled_forms import Compilable
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice


class Decoder(Compilable, nn.Module, ABC):
    """Base class of the searches for the labels that a tagger predicts.

    Attributes:
        k: number of candidates that `forward` returns.
    """

    k = 1
    form_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {"compiled": ("forward", "best", "scores")}

    def compiled(self) -> Mapping[str, float] | None:
        """Return numbers of labels by name, if the decoder returns the best path of scores to which they are added.

        None if it needs its own code. A subclass that redefines the search has none, unless it redefines this method.
        """
        return None

    def allocate(self, labels: LabelSet) -> None:  # most decoders need no labels
        """Prepare for the labels of a tagger. Raises InputError if the decoder does not support them."""

    @abstractmethod
    def forward(self, lattice: Lattice) -> Candidates:
        """Return up to k label sequences, the best one first."""

    def best(self, lattice: Lattice) -> Tensor:
        """Return the best labels (B, T) int64."""
        return self(lattice).labels[:, 0]


def add_label_bias(lattice: Lattice, bias: Tensor) -> Lattice:
    """Return a lattice with a number (L,) added to the score of each label at every token.

    Minkov, Wang, Tomasic & Cohen 2006 lower the score of "O" in this way, for more recall. A bias of the labels that
    begin segments, such as "B-PER", is one of all transitions into these segments. `bias`: (L,), added to the unary
    scores.

    Example:
        >>> import torch
        >>> from structperc.chain import viterbi
        >>> from structperc.chain.decoders import add_label_bias
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[1.0, 0.0], [3.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> viterbi(add_label_bias(lattice, torch.tensor([-2.0, 0.0])))
        (tensor([1.]), tensor([[1, 0]]))
    """
    return lattice._replace(unary=lattice.unary + bias.to(lattice.unary))


def bias_of_labels(bias: Mapping[str, float], labels: LabelSet) -> Tensor:
    """Return the bias (L,) float32 of each label of a label set, 0 for labels without one.

    `bias`: numbers of labels by name. Raises InputError: a label that is not in the label set.
    """
    unknown = sorted(bias.keys() - set(labels.names))
    if unknown:
        raise InputError(f"bias: unknown label {unknown[0]!r}; the labels are {', '.join(labels.names)}")
    return torch.tensor([float(bias.get(name, 0.0)) for name in labels.names])
