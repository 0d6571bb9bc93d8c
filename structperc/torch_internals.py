"""The only module that uses internals of torch which have no public counterpart.

Reasons:

* `sparse_indices`, `sparse_values` (`_indices`, `_values`): the public `indices` and `values` need a coalesced tensor,
  and sorting the entries of every gradient would take longer than the step.
* `mark_stepped` (`_opt_called`): schedules of learning rates warn unless `Optimizer.step` was called, also where an
  optimizer makes its steps in another way.
* `is_transforming` (`torch._C`, `_current_level`): nothing public says whether a transform of torch.func, a dispatch
  mode or differentiation in forward mode is active.
* `exported_scan` (`torch._higher_order_ops`): the only loop of any length in exported graphs is a prototype.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

CHECKED_WITH = (2, 13)  # the latest version of torch that the tests passed with


def sparse_indices(gradient: Tensor) -> Tensor:
    """Return the indices (d, n) of a sparse COO tensor, which may occur several times each."""
    return gradient._indices()


def sparse_values(gradient: Tensor) -> Tensor:
    """Return the values (n, ...) of a sparse COO tensor, in the order of `sparse_indices`."""
    return gradient._values()


def mark_stepped(optimizer: Any) -> None:
    """Mark a step of an optimizer that was made without `step`; without effect where torch has no such mark."""
    optimizer._opt_called = True


def is_transforming() -> bool:
    """Return whether calls are recorded or changed: by torch.func, a dispatch mode, or derivatives in forward mode."""
    modes = torch._C._len_torch_dispatch_stack() > 0 or forward_ad._current_level >= 0
    return modes or torch._C._are_functorch_transforms_active()


def exported_scan(step: Any, carry: Tensor, inputs: Any) -> Tensor:
    """Return the stacked outputs of the steps as one node of an exported graph.

    Raises:
        RuntimeError: this version of torch has no such node.
    """
    try:
        from torch._higher_order_ops.scan import scan
    except ImportError as error:
        version = ".".join(map(str, CHECKED_WITH))
        raise RuntimeError(f"torch.export of this model was checked with torch {version}: install it") from error
    return scan(step, carry, inputs)[1]
