"""The averaged perceptron: additive steps with a lazy average of the weights, their step sizes, and GPD."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structperc.optim.base import BaseOptimizer, check_options
from structperc.torch_internals import mark_stepped, sparse_indices, sparse_values


class StepSizeRule(NamedTuple):
    """Step size as a function size(loss, squared norm of the change, *numbers), for tensors and compiled loops.

    Numba compiles `size`: use operators that floats and tensors support and `where`, without `if` and `min`. A loss or
    norm that is not needed may be 0.

    Attributes:
        size: the function.
        numbers: its further arguments.
        needs_loss: True if the step size depends on the loss.
        needs_norm: True if the step size depends on the squared norm of the change.
    """

    size: Callable[..., Any]
    numbers: tuple[float, ...] = ()
    needs_loss: bool = False
    needs_norm: bool = False


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition is True and b elsewhere, for numbers, for tensors and in compiled functions.

    Args:
        condition: a bool, or a tensor of them.
        a: value where it is True.
        b: value where it is False.
    """
    return torch.where(condition, a, b) if isinstance(condition, Tensor) else a if condition else b


class AveragedOptimizer(BaseOptimizer):
    """Base class of optimizers that add a delta to the weights and average them lazily.

    With w_s the weights after step s and N steps, the average (1/N) sum_s w_s equals w_N - sums / N, where
    sums = sum_s (s-1) * delta_s. A step therefore reads and writes only the weights that its delta changes, and the
    average over *every step*, also the steps that change nothing, is exact (Collins 2002, with the bookkeeping of
    Daumé 2006, §3.6.1). `sums` are float64: exact for integer deltas as long as they stay below 2**53.

    A subclass defines `step_size_rule`; the delta is -size * gradient. The same rule is used for steps by gradients
    and, if `sequential` is True, in the compiled loop of `online/compiled.py`, in which each sequence is a step. On a
    GPU a size that depends on the loss is a tensor (), so that the host does not wait for it.

    Args:
        defaults: options of the subclass.
        average: evaluate the average over every step, see `evaluation_weights()`.
    """

    sequential = True  # True if each sequence of a mini-batch may be a step
    moved_weights: Mapping[Tensor, Tensor] = MappingProxyType({})  # uint8, in the shape of each parameter

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], average: bool) -> None:
        super().__init__(params, {**defaults, "average": average, "steps": 0})

    @abstractmethod
    def step_size_rule(self, group: dict[str, Any]) -> StepSizeRule:
        """Return the step size of a group of parameters."""

    def sums(self, p: Tensor) -> Tensor:
        """Return the sums of the lazy average of a parameter, float64 in its shape; zeros before the first step."""
        state = self.state[p]
        if "sums" not in state:
            state["sums"] = torch.zeros_like(p, dtype=torch.float64)
        return state["sums"]

    def mark_moved(self) -> None:
        """Start to mark, with a 1 in `moved_weights`, each weight that moves; the reader resets the marks."""
        self.moved_weights = {p: torch.zeros_like(p, dtype=torch.uint8) for p in self.param_groups[0]["params"]}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one update, and return the result of the closure.

        Gradients may be dense or sparse COO; a parameter without a gradient is unchanged. `closure`: function that
        returns the loss; required if the step size depends on the loss.

        Raises:
            RuntimeError: the step size depends on the loss, and there is no closure.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rules = [self.step_size_rule(group) for group in self.param_groups]
        value = self._value(loss) if any(rule.needs_loss for rule in rules) else 0.0
        gradients = (p.grad for group in self.param_groups for p in group["params"] if p.grad is not None)
        norm = _on_host(squared_norm(gradients)) if any(rule.needs_norm for rule in rules) else 0.0
        for group, rule in zip(self.param_groups, rules, strict=True):
            size = rule.size(value, norm, *rule.numbers)
            for p in group["params"]:
                if p.grad is not None:
                    self.move(p, p.grad, size, group)
            group["steps"] += 1
        return loss

    @torch.no_grad()
    def move(self, p: Tensor, gradient: Tensor, size: float | Tensor, group: dict[str, Any] | None = None) -> None:
        """Move one parameter by -size * gradient, as part of a step that `count` has not counted yet."""
        group = self.param_groups[0] if group is None else group
        change = (flat_indices(gradient), sparse_values(gradient)) if gradient.is_sparse else gradient
        add(p, change, -size)
        if group["average"]:
            add(self.sums(p), change, -size * group["steps"])
        if p in self.moved_weights:
            mark(self.moved_weights[p], change)

    def count(self, steps: int) -> None:
        """Count steps that were made without `step`; steps that change nothing count in the average, too."""
        self.param_groups[0]["steps"] += steps
        mark_stepped(self)

    def _value(self, loss: Any) -> float | Tensor:
        if loss is None:
            raise RuntimeError(
                f"{type(self).__name__} needs the loss: call step(closure) with a closure that returns it"
            )
        return _on_host(torch.as_tensor(loss, dtype=torch.float64).detach())

    def _evaluation_weights(self, p: Tensor, group: dict[str, Any]) -> Tensor | None:
        averaged = "sums" in self.state[p] and group["steps"]
        return lazy_average(p, self.state[p]["sums"], group["steps"]) if averaged else None


class Perceptron(AveragedOptimizer):
    """Averaged perceptron optimizer. Collins 2002, "Discriminative training methods for hidden Markov models".

    A step is w <- w - lr * gradient of the summed losses, for a loss of the perceptron family such as
    `structperc.criteria.PerceptronLoss`. With one sequence per step this is the paper's algorithm. With m sequences
    per step their updates, computed with the same weights, are summed. With lr = 1 weights are integers, exact in
    float32 below 2**24.

    Args:
        lr: step size. It only scales the weights of a plain perceptron that starts from zero; with a margin
            it is the margin's unit.
        average: evaluate the average over every step (Collins' averaged perceptron), see `evaluation_weights()`.

    Raises:
        InputError: lr is not positive.

    Example:
        >>> import torch
        >>> from structperc.optim import Perceptron
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> optimizer = Perceptron([weight])
        >>> for gradient in (-1.0, -2.0):  # the weight is 1, then 3
        ...     weight.grad = torch.tensor([gradient])
        ...     optimizer.step()
        >>> with optimizer.evaluation_weights():
        ...     weight.tolist()
        [2.0]
    """

    def __init__(self, params: Iterable[Any], lr: float = 1.0, average: bool = True) -> None:
        check_options(self, above=0, lr=lr)
        super().__init__(params, {"lr": lr}, average)

    def step_size_rule(self, group: dict[str, Any]) -> StepSizeRule:
        """Return the learning rate."""
        return StepSizeRule(constant_size, (float(group["lr"]),))


class GPD(AveragedOptimizer):
    """Generalised probabilistic descent optimizer.

    Step t = 0, 1, ... is w <- w - eps_t * gradient with eps_t = lr / (1 + t / decay_steps); a step is a mini-batch.
    Katagiri, Lee & Juang 1991: descent on the smoothed loss of single examples. The sum of the step sizes is infinite
    and the sum of their squares finite (Robbins & Monro 1951), so that it converges to a local minimum with probability
    1. Losses are summed over a batch: larger batches need a smaller lr.

    Args:
        lr: step size of the first step.
        decay_steps: number of steps after which the step size is halved for the first time.

    Raises:
        InputError: lr or decay_steps is not positive.
    """

    divergence_hint = "set a smaller lr"
    sequential = False  # a step is a mini-batch

    def __init__(self, params: Iterable[Any], lr: float, decay_steps: float, average: bool = False) -> None:
        check_options(self, above=0, lr=lr, decay_steps=decay_steps)
        super().__init__(params, {"lr": lr, "decay_steps": decay_steps}, average)

    def step_size_rule(self, group: dict[str, Any]) -> StepSizeRule:
        """Return eps_t of the next step."""
        return StepSizeRule(constant_size, (float(group["lr"]) / (1 + group["steps"] / group["decay_steps"]),))


def constant_size(loss: Any, norm: Any, size: Any) -> Any:
    """Return a step size that depends on neither loss nor norm."""
    return size


def lazy_average(weights: Tensor, sums: Tensor, steps: int) -> Tensor:
    """Return the average of the weights over all steps, w_N - sums / N, in the dtype of `weights`."""
    average = torch.empty(weights.shape, dtype=weights.dtype, device=weights.device)
    for part, last, total in zip(*(x.flatten().split(2**17) for x in (average, weights, sums)), strict=True):
        part.copy_(last.double() - total / steps)  # parts fit the cache
    return average


def _on_host(value: Tensor) -> float | Tensor:
    """Return a number () as a float, or unchanged if it is on a GPU, which would need a synchronisation."""
    return float(value) if value.device.type == "cpu" else value


def flat_indices(grad: Tensor) -> Tensor:
    """Return the flat index (n,) of each value of a sparse COO gradient, counted in its sparse dimensions.

    If all dimensions are sparse it is the index of a weight; if all but the last one are, the index of a row.
    """
    places, *others = sparse_indices(grad).unbind()
    for size, index in zip(grad.shape[1:], others, strict=False):
        places = index.add(places, alpha=size)
    return places


def add(target: Tensor, change: Tensor | tuple[Tensor, Tensor], scale: float | Tensor) -> None:
    """Add scale * change to target in place, in target's precision.

    `change` is dense, or indices (n,) and values (n, ...) of weights or of rows. The target is contiguous.
    """
    values = (change if isinstance(change, Tensor) else change[1]).to(target.dtype)
    if isinstance(scale, Tensor):
        values, scale = values * scale, 1.0
    if isinstance(change, Tensor):
        target.add_(values, alpha=scale)
    else:
        target.view(-1, *values.shape[1:]).index_add_(0, change[0], values, alpha=scale)


def mark(target: Tensor, change: Tensor | tuple[Tensor, Tensor]) -> None:
    """Set target to 1, in place, wherever a change is not zero."""
    if isinstance(change, Tensor):
        target.masked_fill_(change != 0, 1)
        return
    places, values = change
    entries, *others = values.nonzero(as_tuple=True)
    target.view(-1, *values.shape[1:])[(places[entries], *others)] = 1


def squared_norm(grads: Iterable[Tensor]) -> Tensor:
    """Return the sum of squares over all gradients, () float64."""
    squares = (summed_entries(grad).double().square().sum() for grad in grads)
    return sum(squares, start=torch.zeros((), dtype=torch.float64))


def summed_entries(grad: Tensor) -> Tensor:
    """Return the entries of a gradient, with the values of a sparse one summed over equal indices.

    On a GPU some of the entries are zero instead: the number of different indices would need a synchronisation.
    """
    if not grad.is_sparse:
        return grad
    if grad.device.type == "cpu" or grad.is_coalesced():
        return grad.coalesce().values()
    places, values = flat_indices(grad), sparse_values(grad)
    slots = torch.searchsorted(places.sort().values, places)  # the first among equal ones
    return torch.zeros_like(values).index_add_(0, slots, values)
