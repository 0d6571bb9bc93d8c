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
PLAIN = (Tensor, torch.nn.Parameter)


def declare(
    module: str, name: str, schema: str, shapes: Callable[..., Any], derivative: tuple[Callable, Callable] | None = None
) -> Any:
    """Declare the operator structperc::NAME and return its one overload, to be called.

    Args:
        module: file of `tensors`, `cpu` and `cuda` that implements it.
        name: of the operator, and of the function in these files.
        schema: arguments and results, as torch.library spells them; the first argument is scores, of whose type the
            others are.
        shapes: makes empty results from the arguments, for meta and fake tensors.
        derivative: the functions (setup_context, backward) of torch.library.register_autograd; None for operators
            without a derivative.
    """
    LIBRARY.define(f"{name}{schema}")

    def choose(device: str) -> Callable[..., Any]:
        def run(scores: Tensor, *others: Any) -> Any:
            chosen = device if scores.dtype in COMPILED else "tensors"
            return implementation(chosen, module, name)(scores, *others)

        return run

    LIBRARY.impl(name, choose("cpu"), "CPU")
    LIBRARY.impl(name, choose("cuda"), "CUDA")
    LIBRARY.impl(name, choose("tensors"), "CompositeExplicitAutograd")
    torch.library.register_fake(f"structperc::{name}", shapes, lib=LIBRARY)
    torch.library.register_vmap(f"structperc::{name}", _one_by_one(name), lib=LIBRARY)
    operator, on_cpu = getattr(torch.ops.structperc, name).default, choose("cpu")
    if derivative is None:
        return _Operator(operator, operator, on_cpu)
    setup_context, backward = derivative
    torch.library.register_autograd(f"structperc::{name}", backward, setup_context=setup_context, lib=LIBRARY)
    return _Operator(operator, *_functions(name, operator, on_cpu, setup_context, backward))


def _functions(
    name: str,
    operator: Any,
    on_cpu: Callable[..., Any],
    setup_context: Callable[..., None],
    backward: Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator with its derivative, twice: as torch.func's transforms ask it to be written, and at once on a CPU."""

    def forward(ctx: Any, *arguments: Any) -> Any:
        output = on_cpu(*arguments)
        setup_context(ctx, arguments, output)
        return output

    transformed = {"forward": operator, "setup_context": setup_context, "vmap": _one_by_one(name)}
    kinds = ({**transformed, "backward": backward}, {"forward": forward, "backward": backward})
    classes = (type(name, (torch.autograd.Function,), {part: staticmethod(f) for part, f in k.items()}) for k in kinds)
    return tuple(one.apply for one in classes)  # type: ignore[attr-defined]


class _Operator:
    """An operator, to be called: inside of torch.func's transforms as they ask it to be written.

    Plain tensors on a CPU take no way through torch's dispatcher, which costs as much as a small batch.
    """

    def __init__(self, operator: Any, transformed: Callable[..., Any], at_once: Callable[..., Any]):
        self.operator = operator
        self.transformed = transformed
        self.at_once = at_once

    def __call__(self, *arguments: Any) -> Any:
        """Return what the operator gives for these arguments."""
        if torch.compiler.is_compiling():
            return self.operator(*arguments)
        if torch._C._are_functorch_transforms_active():
            return self.transformed(*arguments)
        if _plain(arguments) and not _watched():
            return self.at_once(*arguments)
        return self.operator(*arguments)


def _plain(arguments: tuple[Any, ...]) -> bool:
    """Whether all tensors are ordinary ones on a CPU, whose memory holds their numbers and not the negative of them."""
    for x in arguments:
        if isinstance(x, Tensor) and not (type(x) in PLAIN and x.is_cpu and not x.is_neg()):
            return False
    return True


def _watched() -> bool:
    """Whether somebody asks to see the operators that run: fake tensors, counters, a trace."""
    return torch._C._len_torch_dispatch_stack() > 0 or torch.jit.is_tracing()


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
    function: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...], grads: tuple[Tensor | None, ...]
) -> tuple[Tensor, ...]:
    """Gradients of the inputs of a reference in tensors, themselves differentiable: for second derivatives.

    `function` maps the inputs to as many results as there are gradients; None stands for zeros.
    """
    results, pull = torch.func.vjp(function, *inputs)[:2]
    given = zip(results, grads, strict=True)
    return pull(tuple(torch.zeros_like(y) if g is None else g for y, g in given))
