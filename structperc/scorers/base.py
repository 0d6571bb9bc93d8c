"""The contract of a scorer, and what it has in common with everything that holds local weights."""

from abc import ABC, abstractmethod

from torch import nn

from structperc.data.corpus import Corpus
from structperc.ragged import Ragged
from structperc.structures import Batch, Lattice


class LocalWeights(nn.Module, ABC):
    """What holds the local weights of a tagger: a scorer, or what scores the candidates of a list.

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
