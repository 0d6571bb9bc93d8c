"""Sixteen numbers side by side, as a variable of a kernel: processors add or compare them in one instruction or a few.

A compiler finds such instructions for loops by itself; but for loops over 9 or 45 labels it leaves a remainder to be
done one by one, and writes sums to memory in between. Here rows of labels are taken in blocks of sixteen, the last one
filled up with -inf, which is never the best. A place is the number of an element in the memory of a contiguous array.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import int64, types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

WIDTH = 16


class Lanes(types.Type):
    """The type of such a variable, for each precision."""

    def __init__(self, dtype: types.Float):
        super().__init__(f"Lanes({dtype})")
        self.dtype = dtype


@register_model(Lanes)
class _Vector(models.PrimitiveModel):
    """What the compiler makes of it: a vector of LLVM."""

    def __init__(self, manager: Any, lanes: Lanes):
        super().__init__(manager, lanes, ir.VectorType(manager.lookup(lanes.dtype).get_value_type(), WIDTH))


def _operation(function: Callable[..., Any]) -> Any:
    """Make a function for kernels of one that returns its signature and what writes its instructions."""
    return intrinsic(function)


@_operation
def load(context: Any, array: Any, place: Any) -> Any:
    """Sixteen numbers of an array from a place on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_lanes_at(context, builder, signature, arguments), align=_bytes(array))

    return Lanes(array.dtype)(array, place), generate


@_operation
def load_some(context: Any, array: Any, place: Any, count: Any) -> Any:
    """Numbers of an array from a place on, as many as are counted; what is beyond is not read, its lanes are -inf."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, i32 = _lanes_at(context, builder, signature, arguments), ir.IntType(32)
        vector, lanes = start.type.pointee, ir.Constant(ir.VectorType(i32, WIDTH), list(range(WIDTH)))
        fewer = builder.icmp_signed("<", arguments[2], ir.IntType(64)(WIDTH))
        count = builder.trunc(builder.select(fewer, arguments[2], ir.IntType(64)(WIDTH)), i32)
        given = builder.icmp_signed("<", lanes, _spread(builder, count))
        nothing = ir.Constant(vector, [float("-inf")] * WIDTH)
        masked = ir.FunctionType(vector, (start.type, i32, given.type, vector))
        name = f"llvm.masked.load.v{WIDTH}f{array.dtype.bitwidth}.p0"
        function = builder.module.declare_intrinsic(name, (), masked)
        return builder.call(function, (start, i32(_bytes(array)), given, nothing))

    return Lanes(array.dtype)(array, place, count), generate


@_operation
def load_one(context: Any, array: Any, place: Any) -> Any:
    """The number of an array at a place, in all lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _spread(builder, builder.load(_number_at(context, builder, signature, arguments)))

    return Lanes(array.dtype)(array, place), generate


@_operation
def store(context: Any, array: Any, place: Any, lanes: Any) -> Any:
    """Write lanes into an array from a place on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _lanes_at(context, builder, signature, arguments), align=_bytes(array))
        return context.get_dummy_value()

    return types.void(array, place, lanes), generate


@_operation
def spread(context: Any, number: Any) -> Any:
    """One number in all lanes."""
    return Lanes(number)(number), lambda context, builder, signature, arguments: _spread(builder, arguments[0])


@_operation
def like(context: Any, lanes: Any, array: Any) -> Any:
    """The same numbers in the precision of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convert = builder.fpext if array.dtype.bitwidth > lanes.dtype.bitwidth else builder.fptrunc
        vector = context.get_value_type(signature.return_type)
        return arguments[0] if array.dtype == lanes.dtype else convert(arguments[0], vector)

    return Lanes(array.dtype)(lanes, array), generate


@_operation
def plus(context: Any, a: Any, b: Any) -> Any:
    """Lane by lane the sum."""
    return a(a, b), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@_operation
def minus(context: Any, a: Any, b: Any) -> Any:
    """Lane by lane the difference."""
    return a(a, b), lambda context, builder, signature, arguments: builder.fsub(*arguments)


@_operation
def larger(context: Any, a: Any, b: Any) -> Any:
    """Lane by lane the larger number; b where a is NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    return a(a, b), generate


@_operation
def largest(context: Any, lanes: Any) -> Any:
    """The largest number of all lanes, none of which is NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (vector,) = arguments
        function = builder.module.declare_intrinsic(
            f"llvm.vector.reduce.fmax.v{WIDTH}f{lanes.dtype.bitwidth}",
            (),
            ir.FunctionType(vector.type.element, (vector.type,)),
        )
        return builder.call(function, (vector,), fastmath=("nnan", "nsz"))

    return lanes.dtype(lanes), generate


@_operation
def first_equal(context: Any, lanes: Any, number: Any) -> Any:
    """The first lane that equals a number; WIDTH where none does."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        equal = builder.fcmp_ordered("==", arguments[0], _spread(builder, arguments[1]))
        bits = builder.zext(builder.bitcast(equal, ir.IntType(WIDTH)), ir.IntType(64))
        bits = builder.or_(bits, bits.type(1 << WIDTH))
        return builder.cttz(bits, ir.IntType(1)(1))

    return int64(lanes, number), generate


def _number_at(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Pointer to the number of the array that is the first argument, at the place that is the second."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


def _lanes_at(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The same pointer, to lanes."""
    vector = context.get_value_type(Lanes(signature.args[0].dtype))
    return builder.bitcast(_number_at(context, builder, signature, arguments), vector.as_pointer())


def _bytes(array: Any) -> int:
    return int(array.dtype.bitwidth) // 8


def _spread(builder: Any, number: Any) -> Any:
    nothing = ir.Constant(ir.VectorType(number.type, WIDTH), ir.Undefined)
    first, i32 = builder.insert_element(nothing, number, ir.IntType(32)(0)), ir.IntType(32)
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(i32, WIDTH), [0] * WIDTH))
