"""Encoders of tokens in their context: windows of neighbouring vectors and the bidirectional LSTM."""

from collections.abc import Callable
from typing import cast, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structperc.encoders.base import ContextEncoder, TokenEmbedder, check_share, variational_dropout
from structperc.errors import InputError
from structperc.features.extractor import Within
from structperc.structures import Batch, padded_places, real_tokens


class Window(ContextEncoder):
    """Concatenated vectors of a token and of `window_size` tokens on either side. Collobert et al. 2011.

    Vectors outside the sequence are zero.

    Args:
        inputs: token embedders; their vectors are concatenated.
        window_size: number of tokens on each side; 0 for the vectors of the tokens without context.

    Raises:
        InputError: no input, or a negative window size.

    Example:
        >>> from structperc.encoders import CharCNN, Window, WordEmbedding
        >>> encoder = Window([WordEmbedding(width=100), CharCNN(width=30)], window_size=2)
        >>> encoder.input_width, encoder.width  # 5 tokens
        (130, 650)
    """

    def __init__(self, inputs: list[TokenEmbedder], window_size: int = 2) -> None:
        super().__init__(inputs)
        if window_size < 0:
            raise InputError(f"Window: window_size must be >= 0, got {window_size}")
        self.window_size = window_size
        self.width = (2 * window_size + 1) * self.input_width

    def forward(self, batch: Batch) -> Tensor:
        """Return the vectors (B, T, D) of the tokens with their neighbours."""
        vectors, T = self.embed(batch), batch.sentences.shape[1]
        around = pad(vectors, (0, 0, self.window_size, self.window_size))
        real = real_tokens(batch.lengths.to(vectors.device), T)
        seen = torch.cat([around[:, shift : shift + T] for shift in range(2 * self.window_size + 1)], 2)
        return torch.where(real[:, :, None], seen, 0.0)


def encode_sentences(encode: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, batch: Batch) -> Tensor:
    """Encode the sentences of a batch independently, and return the vectors of their tokens.

    `encode`: function of vectors (S, T', D) and lengths (S,) that returns vectors (S, T', E), 0 in the padding.
    `vectors`: vectors (B, T, D) of the tokens. `batch`: batch with the boundaries of the sentences. Returns vectors (B,
    T, E), 0 in the padding.
    """
    (B, T, D), device = vectors.shape, vectors.device
    starts = batch.first.to(device).flatten().nonzero().squeeze(1)
    lengths = batch.last.to(device).flatten().nonzero().squeeze(1) - starts + 1
    places, real = padded_places(starts, lengths)
    encoded = encode(vectors.reshape(B * T, D)[places] * real.unsqueeze(2), lengths)
    whole = encoded.new_zeros(B * T, encoded.shape[2])
    return whole.index_copy(0, places[real], encoded[real]).view(B, T, encoded.shape[2])


class BiLSTM(ContextEncoder):
    """Bidirectional LSTM over the vectors of tokens. Huang, Xu & Yu 2015; Lample et al. 2016; Ma & Hovy 2016.

    Results do not depend on the padding of a batch. Dropout is variational, on the inputs and the output of each layer.

    Args:
        inputs: token embedders; their vectors are concatenated.
        hidden: units in each direction; D is twice that.
        layers: number of stacked LSTMs.
        dropout: share of components that are dropped in training.
        within: context of a token: its "sequence", or only its "sentence" if sequences are documents. A tagger trained
            on sentences then gives the same scores to documents.

    Raises:
        InputError: no input, sizes below 1, an invalid share, or an unknown `within`.
    """

    def __init__(
        self,
        inputs: list[TokenEmbedder],
        hidden: int = 200,
        layers: int = 1,
        dropout: float = 0.5,
        within: Within = "sequence",
    ) -> None:
        super().__init__(inputs)
        for name, size in (("hidden", hidden), ("layers", layers)):
            if size < 1:
                raise InputError(f"BiLSTM: {name} must be >= 1, got {size}")
        check_share("BiLSTM: dropout", dropout)
        if within not in get_args(Within):
            raise InputError(f"BiLSTM: within must be sequence or sentence, got {within!r}")
        self.hidden, self.layers, self.dropout, self.within = hidden, layers, dropout, within
        self.width = 2 * hidden
        widths = [self.input_width, *[self.width] * (layers - 1)]
        self.onward, self.back = (nn.ModuleList(nn.LSTM(D, hidden, batch_first=True) for D in widths) for _ in range(2))

    def forward(self, batch: Batch) -> Tensor:
        """Return the vectors (B, T, D) of the tokens in their sequences, or in their sentences."""
        vectors = variational_dropout(self.embed(batch), self.dropout, self.training)
        if self.within == "sentence":
            return encode_sentences(self._encode, vectors, batch)
        return self._encode(vectors, batch.lengths)

    def _encode(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        for onward, back in zip(self.onward, self.back, strict=True):
            hidden = _bidirectional(cast(nn.LSTM, onward), cast(nn.LSTM, back), vectors, lengths)
            vectors = variational_dropout(hidden, self.dropout, self.training)
        return vectors


def _bidirectional(onward: nn.LSTM, back: nn.LSTM, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Run a pair of LSTMs on vectors (B, T, D); return (B, T, 2 hidden), 0 in the padding.

    Each sequence is reversed without its padding, which comes last in both directions and affects no state. This takes
    half the time of packed sequences on CPUs.
    """
    (B, T, _), lengths = vectors.shape, lengths.to(vectors.device)
    real = real_tokens(lengths, T).unsqueeze(2)
    turned = (lengths.unsqueeze(1) - 1 - torch.arange(T, device=vectors.device)).clamp(min=0).unsqueeze(2)
    if B * T == 0:
        return vectors.new_zeros(B, T, 2 * onward.hidden_size)
    if vectors.device.type == "cpu":  # many CPUs do not support recurrent networks in half precision
        with torch.autocast("cpu", enabled=False):
            dtype = next(onward.parameters()).dtype
            return _turned_back(onward, back, vectors.to(dtype), turned, real)
    return _turned_back(onward, back, vectors, turned, real)


def _turned_back(onward: nn.LSTM, back: nn.LSTM, vectors: Tensor, turned: Tensor, real: Tensor) -> Tensor:
    forwards, _ = onward(vectors)
    backwards, _ = back(vectors.gather(1, turned.expand_as(vectors)))
    return torch.where(real, torch.cat([forwards, backwards.gather(1, turned.expand_as(backwards))], 2), 0.0)
