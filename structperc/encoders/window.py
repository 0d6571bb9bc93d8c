"""The vectors of neighbouring tokens side by side: the smallest encoder that sees a context."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.encoders.base import ContextEncoder, TokenEmbedder
from structperc.errors import InputError
from structperc.structures import Batch, real_tokens


class Window(ContextEncoder):
    """Vectors of the `window_size` tokens before, of the token and of the `window_size` tokens after it. Collobert et
    al. 2011.

    Zeros stand beyond the boundaries of a sequence.

    Args:
        inputs: token embedders; their vectors are put one after the other.
        window_size: tokens to each side; 0 gives the vectors of the tokens alone.

    Raises:
        InputError: no input, a negative reach.
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
