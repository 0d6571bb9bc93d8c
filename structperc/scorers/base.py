"""The contract of a scorer."""

from abc import ABC, abstractmethod

from torch import nn

from structperc.data.corpus import Corpus
from structperc.ragged import Ragged
from structperc.structures import Batch, Lattice


class Scorer(nn.Module, ABC):
    """forward(batch) -> Lattice. Scorers keep their options under their own names, as saved models need them."""

    sparse_grad = False  # whether gradients of weights are COO tensors
    n_inputs = 0  # how many of `batch.inputs` it reads

    def learn(self, corpus: Corpus) -> None:
        """Take from the training data what is needed to read text beside feature ids; most take nothing."""

    def read(self, corpus: Corpus) -> list[Ragged]:
        """What the scorer finds in `batch.inputs`; most look at feature ids alone."""
        return []

    @abstractmethod
    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights once features and labels are known."""

    @abstractmethod
    def forward(self, batch: Batch) -> Lattice:
        """-> Lattice of unary (B, T, L) and edge (B, T, L, L) or (1, 1, L, L)."""
