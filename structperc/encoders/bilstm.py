"""Recurrent networks in both directions."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from structperc.data.corpus import Corpus
from structperc.encoders.base import EmbeddedTokens, Encoder, TokenEmbedder, check_share, variational_dropout
from structperc.errors import InputError
from structperc.features.encoded import Ragged
from structperc.structures import Batch


class BiLSTM(Encoder):
    """Bidirectional LSTM over the vectors of tokens. Huang, Xu & Yu 2015; Lample et al. 2016; Ma & Hovy 2016.

    Sequences are packed: what stands in the padding of a batch changes nothing. Dropout is variational, on the inputs
    and on the output of each layer.

    Args:
        inputs: token embedders; their vectors are put one behind the other.
        hidden: units in each direction; D is twice that.
        layers: LSTMs on top of each other.
        dropout: share of components that is dropped in training.

    Raises:
        InputError: no input, sizes below 1, a share that is none.
    """

    def __init__(self, inputs: list[TokenEmbedder], hidden: int = 200, layers: int = 1, dropout: float = 0.5) -> None:
        super().__init__()
        for name, size in (("hidden", hidden), ("layers", layers)):
            if size < 1:
                raise InputError(f"BiLSTM: {name} must be >= 1, got {size}")
        check_share("BiLSTM: dropout", dropout)
        self.inputs, self.hidden, self.layers, self.dropout = EmbeddedTokens(inputs), hidden, layers, dropout
        self.width = 2 * hidden
        widths = [self.inputs.width, *[self.width] * (layers - 1)]
        self.lstms = nn.ModuleList(nn.LSTM(D, hidden, batch_first=True, bidirectional=True) for D in widths)
        self.n_inputs = self.inputs.n_inputs

    def learn(self, corpus: Corpus) -> None:
        """What the inputs learn."""
        self.inputs.learn(corpus)

    def read(self, corpus: Corpus) -> list[Ragged]:
        """An input for each token embedder."""
        return self.inputs.read(corpus)

    def forward(self, batch: Batch) -> Tensor:
        """-> (B, T, D)."""
        vectors = variational_dropout(self.inputs(batch), self.dropout, self.training)
        for lstm in self.lstms:
            vectors = variational_dropout(_packed(lstm, vectors, batch.lengths), self.dropout, self.training)
        return vectors


def _packed(lstm: nn.Module, vectors: Tensor, lengths: Tensor) -> Tensor:
    """(B, T, D) -> (B, T, 2 hidden), 0 in the padding. Empty sequences are run as one token of padding."""
    B, T, _ = vectors.shape
    if B * T == 0:
        return vectors.new_zeros(B, T, 2 * lstm.hidden_size)  # type: ignore[arg-type,operator]
    alive = lengths.clamp(min=1).cpu()
    states, _ = lstm(pack_padded_sequence(vectors, alive, batch_first=True, enforce_sorted=False))
    found, _ = pad_packed_sequence(states, batch_first=True, total_length=T)
    real = torch.arange(T, device=found.device) < lengths.to(found.device)[:, None]
    return torch.where(real[:, :, None], found, 0.0)
