"""What functions are made of that write instructions of their own into kernels."""

from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic


def operation(function: Callable[..., Any]) -> Any:
    """Make a function for kernels of one that returns its signature and what writes its instructions."""
    return intrinsic(function)


def number_at(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Pointer to the number of the array that is the first argument, at the place that is the second."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])
