"""exp for compiled loops: plain arithmetic, of a number or of lanes."""

from typing import Any

from llvmlite import ir
from numba.extending import intrinsic

from structperc.kernels.compiled import kernel
from structperc.kernels.lanes import Lanes, where_above

LOWEST = -708.0  # below, exp is 0 here: nothing that small is ever added to a sum whose largest term is 1


@intrinsic
def _power(context: Any, shifted: Any) -> Any:
    """2^n by the bits of its exponent, for the number n + 1.5 * 2^52, in whose lowest bits n stands."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x,) = arguments
        bits = ir.VectorType(ir.IntType(64), x.type.count) if isinstance(shifted, Lanes) else ir.IntType(64)

        def number(n: int) -> Any:
            return ir.Constant(bits, [n] * x.type.count if isinstance(shifted, Lanes) else n)

        exponent = builder.shl(builder.add(builder.bitcast(x, bits), number(1023)), number(52))
        return builder.bitcast(exponent, x.type)

    return shifted(shifted), generate


@kernel(forceinline=True)
def exp(x):  # type: ignore[no-untyped-def]
    """e^x for x <= 0 to an error of 1e-15; 0 below -708, and for -inf; NaN for NaN.

    x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite 1980): e^r by its Taylor polynomial, 2^n by the exponent's bits.
    Adding 1.5 * 2^52 rounds to an integer, which then stands in the lowest bits.
    """
    low = where_above(LOWEST, x, LOWEST, x)
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
    return where_above(LOWEST, x, 0.0, p * _power(shifted))  # type: ignore[call-arg]
