"""What threads tell each other in kernels, in atomic steps: numbers int64 of an array, one after the other for all."""

from typing import Any

from numba import types

from structperc.kernels.numba_internals import number_at, operation

ORDER = "seq_cst"  # all threads see all steps in one order


@operation
def get(context: Any, array: Any, place: Any) -> Any:
    """The number at a place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(number_at(context, builder, signature, arguments), ORDER, align=8)

    return types.int64(array, types.int64), generate


@operation
def put(context: Any, array: Any, place: Any, number: Any) -> Any:
    """Write a number to a place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], number_at(context, builder, signature, arguments), ORDER, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@operation
def put_if(context: Any, array: Any, place: Any, old: Any, new: Any) -> Any:
    """Write the new number to a place if the old one is there -> whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = number_at(context, builder, signature, arguments)
        return builder.extract_value(builder.cmpxchg(pointer, arguments[2], arguments[3], ORDER, ORDER), 1)

    return types.boolean(array, types.int64, types.int64, types.int64), generate


def _changed_by(instruction: str) -> Any:
    """Make a function for kernels that combines the number at a place with another one -> what was there before."""

    @operation
    def change(context: Any, array: Any, place: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = number_at(context, builder, signature, arguments)
            return builder.atomic_rmw(instruction, pointer, arguments[2], ORDER)

        return types.int64(array, types.int64, types.int64), generate

    return change


add, keep_bits = _changed_by("add"), _changed_by("and")
