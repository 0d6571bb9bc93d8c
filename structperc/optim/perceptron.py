"""Optimizers that can hand out the average of the weights over all their steps.

The additive step of the perceptron, as an optimizer.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.optim.base import BaseOptimizer


class StepSizeRule(NamedTuple):
    """How far an additive learner goes for one sequence, in numbers: so that it can be made in a compiled loop.

    size(loss, squared norm of the change, *numbers) is the factor of the change; a function of floats that numba can
    compile.
    """

    size: Callable[..., float]
    numbers: tuple[float, ...]


class AveragedOptimizer(BaseOptimizer):
    """Base of the additive learners: a step adds a delta to the weights; the average is kept lazily.

    With w_s the weights after step s and N steps, the average (1/N) sum_s w_s equals w_N - sums / N, where
    sums = sum_s (s-1) * delta_s. A step therefore touches only the weights that its delta touches, and the
    average over *every step*, also those that change nothing, is exact (Collins 2002, with the bookkeeping of
    Daumé 2006, §3.6.1). `sums` are float64: exact for integer deltas as long as they stay below 2**53.

    A subclass gives `_step_size(loss)`; the delta is -step_size * gradient. A size that is computed on a GPU is a
    tensor (), so that the host need not wait for it. It may give its `step_size_rule`, with which sequences are learned
    one after the other in one compiled call.
    """

    moved_marks: Mapping[Tensor, Tensor] = MappingProxyType(
        {}
    )  # uint8, in the shape of each parameter; see `mark_moved`

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], average: bool) -> None:
        super().__init__(params, {**defaults, "average": average, "steps": 0})

    @abstractmethod
    def _step_size(self, group: dict[str, Any], loss: Tensor | None) -> float | Tensor: ...

    def step_size_rule(self) -> StepSizeRule | None:
        """Return the step size as a function of loss and norm; None where it is no such function."""
        return None

    def sums(self, p: Tensor) -> Tensor:
        """Return the sums, float64 in the shape of p, from which its average comes; zeros before the first step."""
        state = self.state[p]
        if "sums" not in state:
            state["sums"] = torch.zeros_like(p, dtype=torch.float64)
        return state["sums"]

    def mark_moved(self) -> None:
        """Mark each weight that moves with a 1 in `moved_marks`; the reader of the marks resets them to zero."""
        self.moved_marks = {p: torch.zeros_like(p, dtype=torch.uint8) for p in self.param_groups[0]["params"]}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one update, and return what the closure gives.

        Gradients may be dense or sparse COO; a parameter without a gradient stays as it is.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            size = self._step_size(group, loss)
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, p.grad, size, group)
            group["steps"] += 1
        return loss

    @torch.no_grad()
    def move(self, p: Tensor, gradient: Tensor, size: float) -> None:
        """Move one parameter by -size * gradient within the step that is under way, which `count` then counts."""
        self._move(p, gradient, size, self.param_groups[0])

    def count(self, steps: int) -> None:
        """Count steps that were made without `step`; also those that change nothing are in the average."""
        self.param_groups[0]["steps"] += steps
        self._opt_called = True  # what torch's schedules of learning rates look at, to see whether steps are made

    def _move(self, p: Tensor, gradient: Tensor, size: float | Tensor, group: dict[str, Any]) -> None:
        change = (flat_indices(gradient), gradient._values()) if gradient.is_sparse else gradient
        add(p, change, -size)
        if group["average"]:
            add(self.sums(p), change, -size * group["steps"])
        if p in self.moved_marks:
            mark(self.moved_marks[p], change)

    def averaged(self) -> AbstractContextManager[None]:
        """Put the averages into the parameters within the block.

        Afterwards, also on an error, they hold the raw weights.
        """
        return self.served()

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        kept = "sums" in self.state[p] and group["steps"]
        return lazy_average(p, self.state[p]["sums"], group["steps"]) if kept else None


def lazy_average(weights: Tensor, sums: Tensor, steps: int) -> Tensor:
    """Return the average of the weights over all steps, w_N - sums / N, in the dtype of `weights`.

    It is computed in parts that fit the cache.
    """
    average = torch.empty(weights.shape, dtype=weights.dtype, device=weights.device)
    for part, last, own in zip(*(x.flatten().split(2**17) for x in (average, weights, sums)), strict=True):
        part.copy_(last.double() - own / steps)
    return average


def flat_indices(grad: Tensor) -> Tensor:
    """Return the place (n,) of each value that a sparse COO gradient lists, counted in its sparse dimensions alone.

    So it is that of a weight where all dimensions are sparse, and that of a row where all but the last one are.
    """
    places, *others = grad._indices().unbind()
    for size, index in zip(grad.shape[1:], others, strict=False):
        places = index.add(places, alpha=size)
    return places


def add(target: Tensor, change: Tensor | tuple[Tensor, Tensor], scale: float | Tensor) -> None:
    """Add scale * change to target in place, in target's precision.

    `change` is dense, or places (n,) and values (n, ...) of single weights or of whole rows. The target is contiguous.
    """
    values = (change if isinstance(change, Tensor) else change[1]).to(target.dtype)
    if isinstance(scale, Tensor):
        values, scale = values * scale, 1.0
    if isinstance(change, Tensor):
        target.add_(values, alpha=scale)
    else:
        target.view(-1, *values.shape[1:]).index_add_(0, change[0], values, alpha=scale)


def mark(target: Tensor, change: Tensor | tuple[Tensor, Tensor]) -> None:
    """Write 1 into target, in place, wherever the change that `add` adds is not zero."""
    if isinstance(change, Tensor):
        target.masked_fill_(change != 0, 1)
        return
    places, values = change
    entries, *others = values.nonzero(as_tuple=True)
    target.view(-1, *values.shape[1:])[(places[entries], *others)] = 1


def squared_norm(grads: Iterable[Tensor]) -> Tensor:
    """Return the sum of squares over all gradients, () float64."""
    squares = (totals(grad).double().square().sum() for grad in grads)
    return sum(squares, start=torch.zeros((), dtype=torch.float64))


def totals(grad: Tensor) -> Tensor:
    """Return the entries of a gradient; of a sparse one those at equal places added up.

    How many places there are only a CPU says at once. On other devices there is one entry for each that the gradient
    lists, of which some are zero.
    """
    if not grad.is_sparse:
        return grad
    if grad.device.type == "cpu" or grad.is_coalesced():
        return grad.coalesce().values()
    places, values = flat_indices(grad), grad._values()
    slots = torch.searchsorted(places.sort().values, places)  # the first among equal ones
    return torch.zeros_like(values).index_add_(0, slots, values)


class Perceptron(AveragedOptimizer):
    """The perceptron's step, w <- w - lr * gradient: of summed losses of the perceptron family, with lr = 1.

    Collins 2002, "Discriminative training methods for hidden Markov models". Fed one sequence per step it is
    the paper's algorithm; fed m sequences per step their updates, all decided with the same weights, are summed.
    Weights stay integers in float32 with lr = 1, exact below 2**24. `structperc.criteria.PerceptronLoss` is the loss.

    Args:
        params: parameters or groups.
        lr: step size. It only scales the weights of a plain perceptron that starts from zero; with a margin
            it is the margin's unit.
        average: keep the average over every step (Collins' averaged perceptron); use it through `averaged()`.

    Raises:
        InputError: lr is not positive.
    """

    def __init__(self, params: Iterable[Any], lr: float = 1.0, average: bool = True) -> None:
        if not lr > 0:
            raise InputError(f"Perceptron: lr must be > 0, got {lr}")
        super().__init__(params, {"lr": lr}, average)

    def step_size_rule(self) -> StepSizeRule:
        """Return the step size, which depends on nothing."""
        return StepSizeRule(_constant, (float(self.param_groups[0]["lr"]),))

    def _step_size(self, group: dict[str, Any], loss: Tensor | None) -> float:
        return float(group["lr"])


def _constant(loss: float, norm: float, lr: float) -> float:
    return lr
