"""Which positions of a row are tokens of its chain: masks of any form, without sizes that depend on them."""

from typing import NamedTuple

import torch
from torch import Tensor

from structperc.structures import real_tokens

SKIPPED = -100  # the label of a position that is no token, as losses of torch and transformers skip it


class Places(NamedTuple):
    """The tokens of each row's chain, wherever they stand; a chain is as long as its row, padded on the right.

    As no size depends on the mask, no device is waited for, and one exported program takes all masks.
    """

    order: Tensor  # (B, T) int64, the positions of the tokens in their order, then all others
    lengths: Tensor  # (B,) int64, how many tokens there are

    @classmethod
    def of(cls, kept: Tensor) -> "Places":
        """Find the tokens that kept (B, T) bool marks."""
        lengths = kept.sum(1)
        place = (kept.cumsum(1) - 1).where(kept, lengths[:, None] + (~kept).cumsum(1) - 1)  # in the chain
        positions = torch.arange(kept.shape[1], device=kept.device).expand_as(place)
        return cls(torch.zeros_like(place).scatter(1, place, positions), lengths)  # ONNX has no stable sort

    @property
    def real(self) -> Tensor:
        """Mask (B, T) bool of the chains, True at their tokens."""
        return real_tokens(self.lengths, self.order.shape[1])

    def chain(self, values: Tensor) -> Tensor:
        """Move values (B, T, ...) of positions to the left: those of the tokens come first, then all others."""
        order = self.order.reshape(*self.order.shape, *[1] * (values.dim() - 2))
        return values.gather(1, order.expand_as(values))

    def back(self, values: Tensor, fill: float = SKIPPED) -> Tensor:
        """Move values (B, T) or (B, K, T) of chains back to the positions of their tokens; `fill` is at all others."""
        order, real = self.order, self.real
        if values.dim() == 3:
            order, real = order[:, None].expand_as(values), real[:, None]
        return torch.full_like(values, fill).scatter(-1, order, values.where(real, fill))
