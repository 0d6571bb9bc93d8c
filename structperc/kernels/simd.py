"""Vectors of numbers as variables of kernels: loaded, compared and added by SIMD instructions.

LLVM vectorises loops by itself, but for 9 or 45 labels it leaves a remainder to be done one by one, and writes sums to
memory in between. Here rows of labels are padded to blocks of sixteen with what changes nothing: -inf for maxima, zeros
for sums. An index is that of an element in the memory of a contiguous array. Vectors support +, -, * and /.

`vector_functions` returns functions for vectors of another width; all others take vectors of any width.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import float64, int64, types
from numba.extending import models, overload, register_model

from structperc.kernels.jit import kernel, subkernel
from structperc.kernels.numba_internals import intrinsic, pointer_to

WIDTH = 16
CACHE_LINE = 64  # bytes


class SIMDVector(types.Type):
    """Type of a vector of floats."""

    def __init__(self, dtype: types.Float, width: int):
        super().__init__(f"SIMDVector({dtype}, {width})")
        self.dtype, self.width = dtype, width


@register_model(SIMDVector)
class _VectorModel(models.PrimitiveModel):
    """Representation of the type in LLVM."""

    def __init__(self, manager: Any, operand: SIMDVector):
        super().__init__(manager, operand, ir.VectorType(manager.lookup(operand.dtype).get_value_type(), operand.width))


@subkernel
def padded_array(T, L, dtype, number=-np.inf, width=WIDTH):
    """Return an array (T, L), L rounded up to whole vectors, filled with a number.

    It is aligned to a cache line: vectors across two lines take twice as long to load.
    """
    row = -(-L // width) * width
    memory = np.empty(T * row + CACHE_LINE // 4, dtype)
    start = -memory.ctypes.data % CACHE_LINE // memory.itemsize
    memory[:] = number
    return memory[start : start + T * row].reshape(T, row)


class VectorFunctions(NamedTuple):
    """Functions that create vectors of a width."""

    load: Any
    load_masked: Any
    load_broadcast: Any
    broadcast: Any


def vector_functions(width: int) -> VectorFunctions:
    """Return the functions that create vectors of so many numbers."""

    @intrinsic
    def load(context: Any, array: Any, index: Any) -> Any:
        """Load numbers from an index on."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_vector_pointer(context, builder, signature, arguments, width), align=_bytes(array))

        return SIMDVector(array.dtype, width)(array, index), generate

    @intrinsic
    def load_masked(context: Any, array: Any, index: Any, count: Any) -> Any:
        """Load `count` numbers from an index on; nothing beyond is read, those elements are -inf."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            start, i32 = _vector_pointer(context, builder, signature, arguments, width), ir.IntType(32)
            vector, given = start.type.pointee, _mask(builder, arguments[2], width)
            nothing = ir.Constant(vector, [float("-inf")] * width)
            masked = ir.FunctionType(vector, (start.type, i32, given.type, vector))
            name = f"llvm.masked.load.v{width}f{array.dtype.bitwidth}.p0"
            function = builder.module.declare_intrinsic(name, (), masked)
            return builder.call(function, (start, i32(_bytes(array)), given, nothing))

        return SIMDVector(array.dtype, width)(array, index, count), generate

    @intrinsic
    def load_broadcast(context: Any, array: Any, index: Any) -> Any:
        """Load one number into all elements."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _splat(builder, builder.load(pointer_to(context, builder, signature, arguments)), width)

        return SIMDVector(array.dtype, width)(array, index), generate

    @intrinsic
    def broadcast(context: Any, number: Any) -> Any:
        """Return a vector of one number."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _splat(builder, arguments[0], width)

        return SIMDVector(number, width)(number), generate

    return VectorFunctions(load, load_masked, load_broadcast, broadcast)


load, load_masked, load_broadcast, broadcast = vector_functions(WIDTH)


@intrinsic
def store(context: Any, array: Any, index: Any, operand: Any) -> Any:
    """Store a vector from an index on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = _vector_pointer(context, builder, signature, arguments, operand.width)
        builder.store(arguments[2], start, align=_bytes(array))
        return context.get_dummy_value()

    return types.void(array, index, operand), generate


@intrinsic
def store_masked(context: Any, array: Any, index: Any, count: Any, operand: Any) -> Any:
    """Store the first `count` elements from an index on, rounded to the precision of the array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, i32 = _vector_pointer(context, builder, signature, arguments, operand.width), ir.IntType(32)
        vector, given = start.type.pointee, _mask(builder, arguments[2], operand.width)
        masked = ir.FunctionType(ir.VoidType(), (vector, start.type, i32, given.type))
        name = f"llvm.masked.store.v{operand.width}f{array.dtype.bitwidth}.p0"
        function = builder.module.declare_intrinsic(name, (), masked)
        values = arguments[3] if operand.dtype == array.dtype else builder.fptrunc(arguments[3], vector)
        builder.call(function, (values, start, i32(_bytes(array)), given))
        return context.get_dummy_value()

    return types.void(array, index, count, operand), generate


@intrinsic
def cast_like(context: Any, operand: Any, array: Any) -> Any:
    """Convert a vector to the precision of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convert = builder.fpext if array.dtype.bitwidth > operand.dtype.bitwidth else builder.fptrunc
        vector = context.get_value_type(signature.return_type)
        return arguments[0] if array.dtype == operand.dtype else convert(arguments[0], vector)

    return SIMDVector(array.dtype, operand.width)(operand, array), generate


@intrinsic
def maximum(context: Any, a: Any, b: Any) -> Any:
    """Return the elementwise maximum; b where a is NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    return a(a, b), generate


@intrinsic
def reduce_max(context: Any, operand: Any) -> Any:
    """Return the largest element; none may be NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (vector,) = arguments
        function = builder.module.declare_intrinsic(
            f"llvm.vector.reduce.fmax.v{operand.width}f{operand.dtype.bitwidth}",
            (),
            ir.FunctionType(vector.type.element, (vector.type,)),
        )
        return builder.call(function, (vector,), fastmath=("nnan", "nsz"))

    return operand.dtype(operand), generate


@intrinsic
def reduce_sum(context: Any, operand: Any) -> Any:
    """Return the sum of all elements, added in any order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (vector,), number = arguments, arguments[0].type.element
        function = builder.module.declare_intrinsic(
            f"llvm.vector.reduce.fadd.v{operand.width}f{operand.dtype.bitwidth}",
            (),
            ir.FunctionType(number, (number, vector.type)),
        )
        return builder.call(function, (number(0.0), vector), fastmath=("reassoc", "nsz"))

    return operand.dtype(operand), generate


@intrinsic
def where_greater(context: Any, x: Any, bound: Any, yes: Any, no: Any) -> Any:
    """Return `yes` where x > bound, else `no`; each is a vector or a number, or all are numbers."""
    kind = next((each for each in (x, bound, yes, no) if isinstance(each, SIMDVector)), float64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, bound, yes, no = _broadcast_all(builder, arguments)
        return builder.select(builder.fcmp_ordered(">", x, bound), yes, no)

    return kind(*_types(kind, x, bound, yes, no)), generate


def _arithmetic(operations: tuple[Callable[..., Any], ...], instruction: str) -> None:
    """Define an operator on vectors, or a vector and a number. A product may be fused with a sum around it."""

    @intrinsic
    def compute(context: Any, x: Any, y: Any) -> Any:
        kind = x if isinstance(x, SIMDVector) else y

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*_broadcast_all(builder, arguments), flags=("contract",))

        return kind(*_types(kind, x, y)), generate

    def choose(x, y):
        if any(isinstance(each, SIMDVector) for each in (x, y)):
            return lambda x, y: compute(x, y)
        return None

    for function in operations:
        overload(function)(choose)


_arithmetic((operator.add, operator.iadd), "fadd")
_arithmetic((operator.sub, operator.isub), "fsub")
_arithmetic((operator.mul, operator.imul), "fmul")
_arithmetic((operator.truediv, operator.itruediv), "fdiv")


@intrinsic
def find_first_equal(context: Any, operand: Any, number: Any) -> Any:
    """Return the first element that equals a number; the width where none does."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        equal = builder.fcmp_ordered("==", arguments[0], _splat(builder, arguments[1], operand.width))
        bits = builder.zext(builder.bitcast(equal, ir.IntType(operand.width)), ir.IntType(64))
        bits = builder.or_(bits, bits.type(1 << operand.width))
        return builder.cttz(bits, ir.IntType(1)(1))

    return int64(operand, number), generate


@intrinsic
def bits_not_less(context: Any, operand: Any, number: Any) -> Any:
    """Return an int64 whose bit i is 1 where element i is at least a number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = builder.fcmp_ordered(">=", arguments[0], _splat(builder, arguments[1], operand.width))
        return builder.zext(builder.bitcast(found, ir.IntType(operand.width)), ir.IntType(64))

    return int64(operand, number), generate


@intrinsic
def lowest_bit(context: Any, bits: Any) -> Any:
    """Return the place of the lowest 1 of an int64; 64 without any."""
    return int64(int64), lambda context, builder, signature, arguments: builder.cttz(arguments[0], ir.IntType(1)(0))


def _vector_pointer(context: Any, builder: Any, signature: Any, arguments: Any, width: int) -> Any:
    """Return the pointer to a vector in an array."""
    vector = context.get_value_type(SIMDVector(signature.args[0].dtype, width))
    return builder.bitcast(pointer_to(context, builder, signature, arguments), vector.as_pointer())


def _bytes(array: Any) -> int:
    return int(array.dtype.bitwidth) // 8


def _splat(builder: Any, number: Any, width: int) -> Any:
    nothing = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
    first, i32 = builder.insert_element(nothing, number, ir.IntType(32)(0)), ir.IntType(32)
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(i32, width), [0] * width))


def _broadcast_all(builder: Any, arguments: Any) -> list[Any]:
    """Broadcast numbers if there are vectors among the arguments."""
    widths = [x.type.count if isinstance(x.type, ir.VectorType) else 0 for x in arguments]
    if not any(widths):
        return list(arguments)
    return [x if width else _splat(builder, x, max(widths)) for x, width in zip(arguments, widths, strict=True)]


def _types(kind: Any, *arguments: Any) -> list[Any]:
    """Return the types of arguments, each a vector of a kind or a number."""
    return [x if isinstance(x, SIMDVector) else getattr(kind, "dtype", kind) for x in arguments]


def _mask(builder: Any, count: Any, width: int) -> Any:
    """Return a mask of the first `count` elements; count may be negative or above the width."""
    i32, i64 = ir.IntType(32), ir.IntType(64)
    fewer = builder.icmp_signed("<", count, i64(width))
    count = builder.trunc(builder.select(fewer, count, i64(width)), i32)
    operand = ir.Constant(ir.VectorType(i32, width), list(range(width)))
    return builder.icmp_signed("<", operand, _splat(builder, count, width))


LOWEST = -708.0  # exp is 0 below: it is only added to sums whose largest term is 1


@intrinsic
def _power(context: Any, shifted: Any) -> Any:
    """Return 2^n from n + 1.5 * 2^52, whose lowest bits are n."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        bits = ir.VectorType(ir.IntType(64), x.type.count) if isinstance(shifted, SIMDVector) else ir.IntType(64)

        def number(n: int) -> Any:
            return ir.Constant(bits, [n] * x.type.count if isinstance(shifted, SIMDVector) else n)

        exponent = builder.shl(builder.add(builder.bitcast(x, bits), number(1023)), number(52))
        return builder.bitcast(exponent, x.type)

    return shifted(shifted), generate


@kernel(forceinline=True)
def exp(x):
    """Return e^x for x <= 0 to an error of 1e-15; 0 below -708 and for -inf, NaN for NaN.

    x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite 1980): e^r by its Taylor polynomial, 2^n by the exponent's bits.
    Adding 1.5 * 2^52 rounds to an integer, the lowest bits of the sum.
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
    return where_greater(LOWEST, x, 0.0, p * _power(shifted))


@intrinsic
def _split(context: Any, operand: Any) -> Any:
    """Return m and n + 1.5 * 2^52 of vectors m * 2^n with m from 2^-0.5 to 2^0.5."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        bits = ir.VectorType(ir.IntType(64), x.type.count)

        def number(n: int) -> Any:
            return ir.Constant(bits, [n] * x.type.count)

        given = builder.bitcast(x, bits)
        n = builder.ashr(builder.sub(given, number(0x3FE6A09E667F3BCD)), number(52))
        m = builder.sub(given, builder.shl(n, number(52)))
        shifted = builder.add(n, number(0x4338000000000000))
        return context.make_tuple(
            builder, signature.return_type, (builder.bitcast(m, x.type), builder.bitcast(shifted, x.type))
        )

    return types.UniTuple(operand, 2)(operand), generate


@kernel(forceinline=True)
def log(x):
    """Return the natural logarithms of a float64 vector of positive normal numbers, to a relative error of 1e-15.

    x = m 2^n; log m = 2 artanh s with s = (m - 1) / (m + 1), by its Taylor polynomial.
    """
    m, shifted = _split(x)
    n = shifted - 6755399441055744.0
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = z * (1.0 / 21.0) + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    p = p * z + 1.0
    return n * 0.693147180369123816490 + ((s + s) * p + n * 1.90821492927058770002e-10)
