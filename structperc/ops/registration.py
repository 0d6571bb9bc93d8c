"""Registration of custom operators: schema, shapes, derivative, and one implementation per device.

`structperc.ops.reference.MODULE` implements an operator in tensor operations, `structperc.ops.cpu.MODULE` with numba,
`structperc.ops.cuda.MODULE`, if there is one, with Triton; each defines a function of the operator's name. They are
imported on first use, so that importing the library compiles nothing and needs neither compiler.
"""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module, util
from inspect import signature
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from structperc.torch_internals import is_transforming

LIBRARY = torch.library.Library("structperc", "DEF")
COMPILED = (torch.float32, torch.float64)  # types of scores that the kernels for CPUs and CUDA support
PLAIN = (Tensor, torch.nn.Parameter)
MODULES: dict[str, str] = {}  # of registered operators
Function = TypeVar("Function", bound=Callable[..., Any])


def operator(
    module: str, save: Callable[..., None] | None = None, backward: Callable[..., Any] | None = None
) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as the operator structperc::NAME.

    The type hints of the function give the schema; its first argument is a tensor of scores. Its body returns empty
    tensors of the right shapes, for meta and fake tensors. `module`: name of the modules in `reference`, `cpu` and
    `cuda` that implement the operator. `save`: the function `setup_context` of torch.library.register_autograd; None
    for an operator without a derivative. `backward`: the function `backward` of torch.library.register_autograd.
    """

    def register(shapes: Function) -> Function:
        name = shapes.__name__
        MODULES[name] = module
        LIBRARY.define(name + torch.library.infer_schema(shapes, mutates_args=()))
        for device, key in (("cpu", "CPU"), ("cuda", "CUDA"), ("reference", "CompositeExplicitAutograd")):
            LIBRARY.impl(name, _run_on(device, name), key)
        torch.library.register_fake(f"structperc::{name}", shapes, lib=LIBRARY)
        torch.library.register_vmap(f"structperc::{name}", _loop_over_batch(name), lib=LIBRARY)
        plain = getattr(torch.ops.structperc, name).default
        eager = differentiable = _without_dispatcher(name, plain)
        if save is not None and backward is not None:
            torch.library.register_autograd(f"structperc::{name}", backward, setup_context=save, lib=LIBRARY)
            differentiable = _autograd_function(name, eager, save, backward)

        @wraps(shapes)
        def call(*arguments: Any) -> Any:
            if torch.compiler.is_compiling():
                return plain(*arguments)
            return (differentiable if torch.is_grad_enabled() else eager)(*arguments)

        return cast(Function, call)

    return register


def _run_on(device: str, name: str) -> Callable[..., Any]:
    def run(scores: Tensor, *others: Any) -> Any:
        return implementation(device if scores.dtype in COMPILED else "reference", name)(scores, *others)

    return run


def _without_dispatcher(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator without the dispatcher for plain tensors on a CPU, where it takes as long as a small batch."""
    run_on_cpu = _run_on("cpu", name)

    def run(*arguments: Any) -> Any:
        if torch.jit.is_tracing() or is_transforming():
            return operator(*arguments)
        for x in arguments:
            if isinstance(x, Tensor) and not (type(x) in PLAIN and x.is_cpu and not x.is_neg()):
                return operator(*arguments)
        return run_on_cpu(*arguments)

    return run


def _autograd_function(
    name: str, forward: Callable[..., Any], save: Callable[..., None], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """Return an operator with its derivative in the form that the transforms of torch.func require."""
    forward.__signature__ = signature(forward)  # type: ignore[attr-defined]  # torch reads it at each call
    parts = {"forward": forward, "setup_context": save, "backward": backward, "vmap": _loop_over_batch(name)}
    made: Any = type(name, (torch.autograd.Function,), {part: staticmethod(f) for part, f in parts.items()})
    return cast(Callable[..., Any], made.apply)


@cache
def implementation(device: str, name: str) -> Callable[..., Any]:
    """Return the function that implements an operator on a device.

    `device`: "reference", "cpu" or "cuda". The reference replaces "cuda" where Triton is not installed, and for
    operators without a Triton kernel. `name`: name of the operator.

    Example:
        >>> import torch
        >>> from structperc.ops.registration import implementation
        >>> search = implementation("reference", "viterbi")
        >>> search(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        (tensor([3.]), tensor([[1, 0]]))
    """
    module = f"structperc.ops.cuda.{MODULES[name]}"
    if device == "cuda" and (util.find_spec("triton") is None or util.find_spec(module) is None):
        device = "reference"
    return cast(Callable[..., Any], getattr(import_module(f"structperc.ops.{device}.{MODULES[name]}"), name))


def _loop_over_batch(name: str) -> Callable[..., Any]:
    """Return the rule for torch.vmap: one call per element, results stacked."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        operator = getattr(torch.ops.structperc, name).default
        calls = [
            operator(*(x if d is None else x.select(d, i) for x, d in zip(args, in_dims, strict=True)))
            for i in range(info.batch_size)
        ]
        if isinstance(calls[0], Tensor):
            return torch.stack(calls), 0
        return tuple(torch.stack(results) for results in zip(*calls, strict=True)), tuple(0 for _ in calls[0])

    return rule
