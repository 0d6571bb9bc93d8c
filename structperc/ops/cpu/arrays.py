"""Tensors as kernels take them."""

import numpy as np
from torch import Tensor


def arrays(*tensors: Tensor) -> tuple[np.ndarray, ...]:
    """Tensors as contiguous arrays; those that are contiguous share their memory."""
    return tuple((x.detach() if x.requires_grad else x).contiguous().numpy() for x in tensors)
