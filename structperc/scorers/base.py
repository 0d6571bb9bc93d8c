"""Base class of scorers and of modules with local weights; the sum of several scorers."""

from abc import ABC, abstractmethod
from functools import reduce
from itertools import accumulate, pairwise
from typing import cast

import torch
from torch import nn

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.ragged import Ragged
from structperc.structures import Batch, Lattice


class LocalWeights(nn.Module, ABC):
    """Base class of holders of local weights: scorers of lattices and scorers of listed candidates.

    Its options are kept under their own names, from which a saved model is built again.
    """

    sparse_grad = False  # whether gradients of weights may be COO tensors, so that no dense ones are made for them

    @abstractmethod
    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights once features and labels are known."""


class Scorer(LocalWeights):
    """Base of scorers: forward(batch) -> Lattice."""

    n_inputs = 0  # how many of `batch.inputs` it reads

    def learn(self, corpus: Corpus) -> None:
        """Take from the training data what is needed to read text beside feature ids; most take nothing."""

    def read(self, corpus: Corpus) -> list[Ragged]:
        """Return what the scorer finds in `batch.inputs`; most look at feature ids alone and return nothing."""
        return []

    @abstractmethod
    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch: unary (B, T, L) and edge (B, T, L, L) or (1, 1, L, L)."""


class Sum(Scorer):
    """The sum of the scores of several scorers, such as SparseLinear and Neural, trained together.

    One of them should have transitions; with two, their tables add up and say nothing more than one.

    Args:
        scorers: at least one.

    Raises:
        InputError: no scorer; sparse gradients, which optimizers of dense weights do not take.
    """

    def __init__(self, scorers: list[Scorer]) -> None:
        super().__init__()
        if not scorers:
            raise InputError("Sum: scorers is empty; give at least one")
        if any(scorer.sparse_grad for scorer in scorers) and not all(scorer.sparse_grad for scorer in scorers):
            raise InputError("Sum: set sparse_grad: false of SparseLinear, as the other scorers have dense gradients")
        self.scorers = nn.ModuleList(scorers)
        self.sparse_grad = scorers[0].sparse_grad
        self.n_inputs = sum(scorer.n_inputs for scorer in scorers)

    @property
    def parts(self) -> list[Scorer]:
        """The scorers that are added up, in their order."""
        return cast(list[Scorer], list(self.scorers))

    def learn(self, corpus: Corpus) -> None:
        """Let each scorer take from the training data what it needs."""
        for scorer in self.parts:
            scorer.learn(corpus)

    def read(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of all scorers, one after the other."""
        return [one for scorer in self.parts for one in scorer.read(corpus)]

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights of each scorer."""
        for scorer in self.parts:
            scorer.allocate(n_node, n_edge, n_labels)

    def forward(self, batch: Batch) -> Lattice:
        """Return the sum of the lattices of all scorers.

        Its unary scores are (B, T, L), its edge scores (B, T, L, L), or (1, 1, L, L) where all scorers have such.
        """
        ends = list(accumulate((scorer.n_inputs for scorer in self.parts), initial=0))
        cut = [batch._replace(inputs=batch.inputs[a:b]) for a, b in pairwise(ends)]
        found = [scorer(part) for scorer, part in zip(self.parts, cut, strict=True)]
        unary = reduce(torch.add, [lattice.unary for lattice in found])
        edge = reduce(torch.add, [lattice.edge for lattice in found])
        return Lattice(unary, edge, batch.lengths)
