"""Linear scores of vectors: the scorer of neural taggers."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.encoders import Encoder
from structperc.ragged import Ragged
from structperc.scorers.base import Scorer
from structperc.structures import Batch, Lattice, WeightAxes


class Neural(Scorer):
    """Linear scores of the vectors of an encoder, with transitions. Collobert et al. 2011; Lample et al. 2016.

    score(y_{t-1}, y_t, x, t) = (W h_t + b)[y_t] + transition[y_{t-1}, y_t] for the encoder's vectors h (B, T, D).
    Scores are float32, also if the encoder runs in half precision.

    Args:
        encoder: encoder of the tokens.
        transitions: learn a stationary (L, L) table, initially zero; otherwise labels are scored independently.

    Example:
        >>> from structperc.encoders import Window, WordEmbedding
        >>> from structperc.scorers import Neural
        >>> scorer = Neural(Window([WordEmbedding(width=100)], window_size=1))
        >>> scorer.allocate(n_node=0, n_edge=0, n_labels=9)  # the tagger calls this
        >>> scorer.head.weight.shape, scorer.transition.shape
        (torch.Size([9, 300]), torch.Size([9, 9]))
    """

    weight_axes: ClassVar[WeightAxes] = {
        "head.weight": ("label", None),
        "head.bias": ("label",),
        "transition": ("label", "label"),
    }
    transition: nn.Parameter | None

    def __init__(self, encoder: Encoder, transitions: bool = True) -> None:
        super().__init__()
        self.encoder, self.transitions = encoder, transitions
        self.n_inputs, self.extent = encoder.n_inputs, encoder.extent

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabulary of the encoder."""
        self.encoder.build_vocabulary(corpus)

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of the encoder."""
        return self.encoder.encode_inputs(corpus)

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token; None if the encoder does not split tokens."""
        return self.encoder.piece_counts(inputs)

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create W (L, D), b (L,), the transition table, and the encoder's weights of node features."""
        self.encoder.allocate(n_node)
        self.head = nn.Linear(self.encoder.width, n_labels)
        self.transition = nn.Parameter(torch.zeros(n_labels, n_labels)) if self.transitions else None

    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch: unary (B, T, L) and edge (1, 1, L, L)."""
        unary = self.head(self.encoder(batch)).float()
        L = unary.shape[2]
        edge = unary.new_zeros(L, L) if self.transition is None else self.transition
        return Lattice(unary, edge.view(1, 1, L, L), batch.lengths)
