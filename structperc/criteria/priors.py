"""Priors, penalties that keep weights small: the negative logarithm of a density, up to a constant."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from structperc.errors import InputError

PART = 2**18  # weights summed at a time: the copy in float64 stays in the cache


class Prior(nn.Module):
    """Gaussian or Laplacian prior of the weights. Suzuki, McDermott & Isozaki 2006, Eq. 2 and 9.

    `forward(parameters)` returns ||w||_phi^phi / (phi C). phi = 2 is a Gaussian of variance C (sigma^2 in Kazama &
    Torisawa 2007), phi = 1 a Laplacian of scale C. The gradient is w / C or sign(w) / C, 0 at w = 0. Training adds it
    to the loss of the whole corpus.

    Args:
        C: width of the prior; larger values constrain the weights less. The papers try 10^-5 ... 10^5.
        phi: norm, 1 or 2.

    Raises:
        InputError: C is not positive, or phi is neither 1 nor 2.

    Example:
        >>> import torch
        >>> from structperc.criteria import Prior
        >>> weights = [torch.tensor([3.0, -4.0])]
        >>> Prior(C=2.0)(weights), Prior(C=2.0, phi=1)(weights)  # 25 / (2 * 2) and 7 / 2
        (tensor(6.2500, dtype=torch.float64), tensor(3.5000, dtype=torch.float64))
    """

    def __init__(self, C: float, phi: int = 2) -> None:
        super().__init__()
        if not C > 0:
            raise InputError(f"Prior: C must be > 0, got {C}")
        if phi not in (1, 2):
            raise InputError(f"Prior: phi must be 1 or 2, got {phi}")
        self.C, self.phi = C, phi

    def forward(self, parameters: Iterable[Tensor]) -> Tensor:
        """Return the penalty of all parameters, () float64, differentiable once; 0 for no parameters."""
        powers = [_Power.apply(weights, self.phi) for weights in parameters]
        device = powers[0].device if powers else None
        total = sum((power.to(device) for power in powers), start=torch.zeros((), dtype=torch.float64, device=device))
        return total / (self.phi * self.C)


class _Power(torch.autograd.Function):
    """Sum of |w|^phi in float64, which makes no copy of the large weight tables except the gradient."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, phi: int) -> Tensor:
        ctx.save_for_backward(weights)
        ctx.phi = phi
        parts = weights.reshape(-1).split(PART)
        return torch.stack([torch.linalg.vector_norm(part.double(), phi) ** phi for part in parts]).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        if ctx.phi == 1:
            return weights.sign().mul_(grad.to(weights)), None
        return weights * (2 * grad).to(weights), None
