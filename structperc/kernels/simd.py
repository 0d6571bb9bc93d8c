"""Sixteen numbers side by side, as a variable of a kernel: processors add or compare them in one instruction or a few.

A compiler finds such instructions for loops by itself; but for loops over 9 or 45 labels it leaves a remainder to be
done one by one, and writes sums to memory in between. Here rows of labels are taken in blocks of sixteen, the last one
filled up with what changes nothing: -inf, which is never the best, or zeros, which add nothing. A place is the number
of an element in the memory of a contiguous array. Lanes are added, subtracted and multiplied by the usual operators.

exp for compiled loops: plain arithmetic, of a number or of lanes.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, int64, types
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model

from structperc.kernels.jit import kernel
from structperc.kernels.numba_internals import number_at, operation

WIDTH = 16
LINE = 64  # bytes of a line of the cache


class SIMDVector(types.Type):
    """The type of such a variable, for each precision."""

    def __init__(self, dtype: types.Float):
        super().__init__(f"SIMDVector({dtype})")
        self.dtype = dtype


@register_model(SIMDVector)
class _Vector(models.PrimitiveModel):
    """What the compiler makes of it: a vector of LLVM."""

    def __init__(self, manager: Any, lanes: SIMDVector):
        super().__init__(manager, lanes, ir.VectorType(manager.lookup(lanes.dtype).get_value_type(), WIDTH))


@kernel
def padded_array(T, L, other, number=-np.inf):  # type: ignore[no-untyped-def]
    """Make an array (T, L) of the type of another one, L rounded up to whole lanes, all one number.

    It begins with a line of the cache: lanes that lie across two of them take twice as long to load.
    """
    width = -(-L // WIDTH) * WIDTH
    room = np.full(T * width + LINE // other.itemsize, number, other.dtype)
    start = -room.ctypes.data % LINE // other.itemsize
    return room[start : start + T * width].reshape(T, width)


@operation
def load(context: Any, array: Any, place: Any) -> Any:
    """Sixteen numbers of an array from a place on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_lanes_at(context, builder, signature, arguments), align=_bytes(array))

    return SIMDVector(array.dtype)(array, place), generate


@operation
def load_masked(context: Any, array: Any, place: Any, count: Any) -> Any:
    """Numbers of an array from a place on, as many as are counted; what is beyond is not read, its lanes are -inf."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, i32 = _lanes_at(context, builder, signature, arguments), ir.IntType(32)
        vector, given = start.type.pointee, _first(builder, arguments[2])
        nothing = ir.Constant(vector, [float("-inf")] * WIDTH)
        masked = ir.FunctionType(vector, (start.type, i32, given.type, vector))
        name = f"llvm.masked.load.v{WIDTH}f{array.dtype.bitwidth}.p0"
        function = builder.module.declare_intrinsic(name, (), masked)
        return builder.call(function, (start, i32(_bytes(array)), given, nothing))

    return SIMDVector(array.dtype)(array, place, count), generate


@operation
def load_broadcast(context: Any, array: Any, place: Any) -> Any:
    """The number of an array at a place, in all lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _spread(builder, builder.load(number_at(context, builder, signature, arguments)))

    return SIMDVector(array.dtype)(array, place), generate


@operation
def store(context: Any, array: Any, place: Any, lanes: Any) -> Any:
    """Write lanes into an array from a place on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _lanes_at(context, builder, signature, arguments), align=_bytes(array))
        return context.get_dummy_value()

    return types.void(array, place, lanes), generate


@operation
def store_masked(context: Any, array: Any, place: Any, count: Any, lanes: Any) -> Any:
    """Write as many lanes as are counted into an array from a place on; nothing beyond. float64 are rounded for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, i32 = _lanes_at(context, builder, signature, arguments), ir.IntType(32)
        vector, given = start.type.pointee, _first(builder, arguments[2])
        masked = ir.FunctionType(ir.VoidType(), (vector, start.type, i32, given.type))
        name = f"llvm.masked.store.v{WIDTH}f{array.dtype.bitwidth}.p0"
        function = builder.module.declare_intrinsic(name, (), masked)
        values = arguments[3] if lanes.dtype == array.dtype else builder.fptrunc(arguments[3], vector)
        builder.call(function, (values, start, i32(_bytes(array)), given))
        return context.get_dummy_value()

    return types.void(array, place, count, lanes), generate


@operation
def cast_like(context: Any, lanes: Any, array: Any) -> Any:
    """The same numbers in the precision of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convert = builder.fpext if array.dtype.bitwidth > lanes.dtype.bitwidth else builder.fptrunc
        vector = context.get_value_type(signature.return_type)
        return arguments[0] if array.dtype == lanes.dtype else convert(arguments[0], vector)

    return SIMDVector(array.dtype)(lanes, array), generate


@operation
def broadcast(context: Any, number: Any) -> Any:
    """One number in all lanes."""
    return SIMDVector(number)(number), lambda context, builder, signature, arguments: _spread(builder, arguments[0])


@operation
def maximum(context: Any, a: Any, b: Any) -> Any:
    """Lane by lane the larger number; b where a is NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    return a(a, b), generate


@operation
def reduce_max(context: Any, lanes: Any) -> Any:
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


@operation
def reduce_sum(context: Any, lanes: Any) -> Any:
    """The sum of all lanes, taken in any order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (vector,), number = arguments, arguments[0].type.element
        function = builder.module.declare_intrinsic(
            f"llvm.vector.reduce.fadd.v{WIDTH}f{lanes.dtype.bitwidth}",
            (),
            ir.FunctionType(number, (number, vector.type)),
        )
        return builder.call(function, (number(0.0), vector), fastmath=("reassoc", "nsz"))

    return lanes.dtype(lanes), generate


@operation
def where_greater(context: Any, x: Any, bound: Any, yes: Any, no: Any) -> Any:
    """`yes` where x is above a bound, `no` elsewhere; each of them lanes or one number for all, or all four numbers."""
    kind = next((each for each in (x, bound, yes, no) if isinstance(each, SIMDVector)), float64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, bound, yes, no = _alike(builder, arguments)
        return builder.select(builder.fcmp_ordered(">", x, bound), yes, no)

    return kind(*_kinds(kind, x, bound, yes, no)), generate


def _arithmetic(operations: tuple[Callable[..., Any], ...], instruction: str) -> None:
    """Teach kernels an operator on lanes, or lanes and a number. A product may be rounded with the sum around it."""

    @operation
    def compute(context: Any, x: Any, y: Any) -> Any:
        kind = x if isinstance(x, SIMDVector) else y

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*_alike(builder, arguments), flags=("contract",))

        return kind(*_kinds(kind, x, y)), generate

    def choose(x, y):  # type: ignore[no-untyped-def]
        if any(isinstance(each, SIMDVector) for each in (x, y)):
            return lambda x, y: compute(x, y)
        return None

    for function in operations:
        overload(function)(choose)


_arithmetic((operator.add, operator.iadd), "fadd")
_arithmetic((operator.sub, operator.isub), "fsub")
_arithmetic((operator.mul, operator.imul), "fmul")


@operation
def find_first_equal(context: Any, lanes: Any, number: Any) -> Any:
    """The first lane that equals a number; WIDTH where none does."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        equal = builder.fcmp_ordered("==", arguments[0], _spread(builder, arguments[1]))
        bits = builder.zext(builder.bitcast(equal, ir.IntType(WIDTH)), ir.IntType(64))
        bits = builder.or_(bits, bits.type(1 << WIDTH))
        return builder.cttz(bits, ir.IntType(1)(1))

    return int64(lanes, number), generate


def _lanes_at(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The same pointer, to lanes."""
    vector = context.get_value_type(SIMDVector(signature.args[0].dtype))
    return builder.bitcast(number_at(context, builder, signature, arguments), vector.as_pointer())


def _bytes(array: Any) -> int:
    return int(array.dtype.bitwidth) // 8


def _spread(builder: Any, number: Any) -> Any:
    nothing = ir.Constant(ir.VectorType(number.type, WIDTH), ir.Undefined)
    first, i32 = builder.insert_element(nothing, number, ir.IntType(32)(0)), ir.IntType(32)
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(i32, WIDTH), [0] * WIDTH))


def _alike(builder: Any, arguments: Any) -> list[Any]:
    """Numbers spread over lanes, where there are lanes among them."""
    numbers = [not isinstance(x.type, ir.VectorType) for x in arguments]
    if all(numbers):
        return list(arguments)
    return [_spread(builder, x) if is_one else x for x, is_one in zip(arguments, numbers, strict=True)]


def _kinds(kind: Any, *arguments: Any) -> list[Any]:
    """Types of arguments that are lanes of a kind, or its numbers."""
    return [x if isinstance(x, SIMDVector) else getattr(kind, "dtype", kind) for x in arguments]


def _first(builder: Any, count: Any) -> Any:
    """True for so many lanes; nothing that is above their number or below 0 is wrong."""
    i32, i64 = ir.IntType(32), ir.IntType(64)
    fewer = builder.icmp_signed("<", count, i64(WIDTH))
    count = builder.trunc(builder.select(fewer, count, i64(WIDTH)), i32)
    lanes = ir.Constant(ir.VectorType(i32, WIDTH), list(range(WIDTH)))
    return builder.icmp_signed("<", lanes, _spread(builder, count))


LOWEST = -708.0  # below, exp is 0 here: nothing that small is ever added to a sum whose largest term is 1


@intrinsic
def _power(context: Any, shifted: Any) -> Any:
    """2^n by the bits of its exponent, for the number n + 1.5 * 2^52, in whose lowest bits n stands."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        bits = ir.VectorType(ir.IntType(64), x.type.count) if isinstance(shifted, SIMDVector) else ir.IntType(64)

        def number(n: int) -> Any:
            return ir.Constant(bits, [n] * x.type.count if isinstance(shifted, SIMDVector) else n)

        exponent = builder.shl(builder.add(builder.bitcast(x, bits), number(1023)), number(52))
        return builder.bitcast(exponent, x.type)

    return shifted(shifted), generate


@kernel(forceinline=True)
def exp(x):  # type: ignore[no-untyped-def]
    """e^x for x <= 0 to an error of 1e-15; 0 below -708, and for -inf; NaN for NaN.

    x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite 1980): e^r by its Taylor polynomial, 2^n by the exponent's bits.
    Adding 1.5 * 2^52 rounds to an integer, which then stands in the lowest bits.
    """
    low = where_greater(LOWEST, x, LOWEST, x)
    shifted = low * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (low - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return where_greater(LOWEST, x, 0.0, p * _power(shifted))  # type: ignore[call-arg]
