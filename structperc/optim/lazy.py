"""LazyAdamW: AdamW whose steps change only the rows that have gradients, for weights of sparse features."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from structperc.torch_internals import sparse_indices, sparse_values


class LazyAdamW(torch.optim.AdamW):
    """AdamW that also accepts sparse gradients, and then changes only the rows of weights and moments that have one.

    Loshchilov & Hutter 2019, Algorithm 2, for parameters with dense gradients: those of an encoder and its head. For
    sparse gradients, such as those of SparseLinear with sparse_grad, the same formulas hold for the touched rows. All
    other rows keep their weights and moments, so weight decay shrinks a row only when it has a gradient. Like
    `torch.optim.SparseAdam`, the bias correction counts all steps of a parameter, not those of a row. The cost of a
    step grows with the number of touched rows instead of all rows.

    Args:
        params: Parameters or groups.
        lr: Learning rate.
        betas: Decay rates of the averages of gradients and of their squares.
        eps: Added to the denominator.
        weight_decay: Weight decay of a step is lr * weight_decay * weight.
        fused: Use torch's fused implementation for the dense gradients, which is several times as fast on a CPU.

    Example:
        >>> import torch
        >>> from structperc.optim import LazyAdamW
        >>> table = torch.nn.Parameter(torch.zeros(3, 2))
        >>> table.grad = torch.sparse_coo_tensor([[1]], [[4.0, -4.0]], (3, 2), check_invariants=True)  # of row 1
        >>> optimizer = LazyAdamW([table], lr=0.5)
        >>> optimizer.step()
        >>> table.round(decimals=3).tolist()
        [[0.0, 0.0], [-0.5, 0.5], [0.0, 0.0]]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        fused: bool = False,
    ) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        for options in (self.defaults, *self.param_groups):  # the argument of AdamW would make float16 rows unscaled
            options["fused"] = fused

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make a step; return the loss of the closure, which computes the gradients, or None."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        sparse = [
            (p, p.grad, group)
            for group in self.param_groups
            for p in group["params"]
            if p.grad is not None and p.grad.is_sparse
        ]
        for p, gradient, group in sparse:
            self._update_rows(p, *row_gradients(gradient), group)
            p.grad = None  # torch steps over it
        super().step()
        for p, gradient, _ in sparse:
            p.grad = gradient
        return loss

    def _update_rows(self, p: Tensor, rows: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        """Update rows (n,) of a parameter and its moments with their gradients (n, ...), as AdamW would."""
        state = self.state[p]
        if not state:
            state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
        state["step"] += 1
        step, (beta1, beta2), lr = float(state["step"]), group["betas"], float(group["lr"])
        mean = state["exp_avg"].index_select(0, rows).lerp_(gradient, 1 - beta1)
        square = state["exp_avg_sq"].index_select(0, rows).mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        scale = square.sqrt().div_((1 - beta2**step) ** 0.5).add_(group["eps"])
        weights = p.index_select(0, rows).mul_(1 - lr * group["weight_decay"])
        weights.addcdiv_(mean, scale, value=-lr / (1 - beta1**step))
        for whole, changed in ((state["exp_avg"], mean), (state["exp_avg_sq"], square), (p, weights)):
            whole.index_copy_(0, rows, changed)


def row_gradients(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows (n,) that a sparse gradient touches, in ascending order, and their summed gradients (n, ...).

    A gradient over single weights, as `SparseLinear` computes on a CPU, becomes one over rows.
    """
    if gradient.is_coalesced() and gradient.sparse_dim() == 1:
        return gradient.indices()[0], gradient.values()
    index, values, shape = sparse_indices(gradient), sparse_values(gradient), gradient.shape
    touched = torch.zeros(shape[0], dtype=torch.bool, device=index.device)
    touched[index[0]] = True
    rows = touched.nonzero().squeeze(1)
    place = torch.empty(shape[0], dtype=torch.int64, device=index.device)  # of a row among the touched ones
    place[rows] = torch.arange(len(rows), device=index.device)
    summed = values.new_zeros(len(rows), *shape[1:])
    summed.index_put_((place[index[0]], *index[1:]), values, accumulate=True)
    return rows, summed
