"""How an operator is declared: one schema, one shape rule, one derivative, and an implementation for each device.

`structperc.ops.tensors.MODULE` holds the reference in tensor operations, `structperc.ops.cpu.MODULE` the compiled one
for CPUs, `structperc.ops.cuda.MODULE` that for CUDA; each has a function of the operator's name. They are imported on
first use: importing the library compiles nothing and needs neither compiler.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module, util
from typing import Any

import torch
from torch import Tensor

LIBRARY = torch.library.Library("structperc", "DEF")
COMPILED = (torch.float32, torch.float64)  # what the kernels of a CPU and of CUDA are written for


def declare(
    module: str, name: str, schema: str, shapes: Callable[..., Any], derivative: tuple[Callable, Callable] | None = None
) -> Any:
    """Declare the operator structperc::NAME and return its one overload, to be called.

    Args:
        module: file of `tensors`, `cpu` and `cuda` that implements it.
        name: of the operator, and of the function in these files.
        schema: arguments and results, as torch.library spells them.
        shapes: makes empty results from the arguments, for meta and fake tensors.
        derivative: the functions (setup_context, backward) of torch.library.register_autograd; None for operators
            without a derivative.
    """
    LIBRARY.define(f"{name}{schema}")

    def choose(device: str) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            dtype = next(x.dtype for x in args if isinstance(x, Tensor) and x.is_floating_point())
            return implementation(device if dtype in COMPILED else "tensors", module, name)(*args)

        return run

    LIBRARY.impl(name, choose("cpu"), "CPU")
    LIBRARY.impl(name, choose("cuda"), "CUDA")
    LIBRARY.impl(name, choose("tensors"), "CompositeExplicitAutograd")
    torch.library.register_fake(f"structperc::{name}", shapes, lib=LIBRARY)
    torch.library.register_vmap(f"structperc::{name}", _one_by_one(name), lib=LIBRARY)
    if derivative is not None:
        setup_context, backward = derivative
        torch.library.register_autograd(f"structperc::{name}", backward, setup_context=setup_context, lib=LIBRARY)
    return getattr(torch.ops.structperc, name).default


@cache
def implementation(device: str, module: str, name: str) -> Callable[..., Any]:
    """Return the function that implements an operator on a device: "tensors", "cpu" or "cuda".

    The reference in tensors stands in where CUDA has no Triton to compile its kernels.
    """
    if device == "cuda" and util.find_spec("triton") is None:
        device = "tensors"
    return getattr(import_module(f"structperc.ops.{device}.{module}"), name)


def _one_by_one(name: str) -> Callable[..., Any]:
    """The rule of torch.vmap: one call for each element, results stacked."""

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


def by_tensors(
    function: Callable[..., Any], inputs: tuple[Tensor, ...], grads: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...]:
    """Derivative of a reference in tensors, itself differentiable: for second derivatives.

    `function` maps the inputs to as many results as there are gradients; what has none is left out.
    """
    with torch.enable_grad():
        results = function(*inputs)
        given = [(y, g) for y, g in zip(results, grads, strict=True) if g is not None and y.requires_grad]
        wanted = [x for x in inputs if x.requires_grad]
        found = torch.autograd.grad(
            [y for y, _ in given], wanted, [g for _, g in given], create_graph=True, allow_unused=True
        )
    derivatives = iter(found)
    return tuple(next(derivatives) if x.requires_grad else None for x in inputs)
