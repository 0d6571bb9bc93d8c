"""Vectors of features: what templates see of a token, as an encoder's input."""

import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.encoders.base import TokenEmbedder, check_share
from structperc.errors import InputError
from structperc.ragged import Ragged
from structperc.structures import Batch


class FeatureEmbedding(TokenEmbedder):
    """The sum of one row for each node feature of the token, times its weight, divided by the root of their number.

    So clusters, gazetteers, affixes and evidence of the document enter an encoder as they enter a linear model, from
    the node templates of the tagger's `features`. Templates of single attributes at the token itself suit best:
    what stands beside it the encoder sees by itself. Tokens without features have the vector 0.

    Args:
        width: D of the vectors.
        dropout: share of the features that is left out in training, each by itself.

    Raises:
        InputError: a width below 1, a share that is none; in training, templates that give no feature.
    """

    n_inputs = 0
    table: nn.Parameter  # (F, D)

    def __init__(self, width: int = 50, dropout: float = 0.0) -> None:
        super().__init__()
        if width < 1:
            raise InputError(f"FeatureEmbedding: width must be >= 1, got {width}")
        check_share("FeatureEmbedding: dropout", dropout)
        self.width, self.dropout = width, dropout

    def allocate(self, n_features: int) -> None:
        """Create rows (F, D) for so many features, from a normal distribution of spread 1 / sqrt(D)."""
        if not n_features:
            raise InputError("FeatureEmbedding: there is no node feature; give templates as model.features")
        self.table = nn.Parameter(torch.randn(n_features, self.width) / self.width**0.5)

    def read(self, corpus: Corpus) -> list[Ragged]:
        """Return nothing: features are extracted for the whole tagger."""
        return []

    def numbers(self, batch: Batch) -> Ragged:
        """Return the node features of the tokens."""
        return batch.nodes

    def forward(self, numbers: Ragged) -> Tensor:
        """Return the vectors (n, D) of n tokens, each from a list of features."""
        ones = self.table.new_ones(numbers.ids.shape)
        shares = ones if numbers.weights is None else numbers.weights.to(ones)
        shares = nn.functional.dropout(shares, self.dropout, self.training)
        sums = nn.functional.embedding_bag(
            numbers.ids, self.table, numbers.offsets, mode="sum", per_sample_weights=shares, include_last_offset=True
        )
        return sums / numbers.counts.clamp(min=1).to(sums.dtype).sqrt().unsqueeze(1)
