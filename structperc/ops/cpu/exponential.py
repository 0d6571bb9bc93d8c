"""exp for compiled loops: plain arithmetic, so that a compiler computes several at once."""

from typing import Any

from llvmlite import ir
from numba import float64, int64
from numba.extending import intrinsic

from structperc.ops.cpu.compiled import kernel

LOWEST = -708.0  # below, exp is 0 here: nothing that small is ever added to a sum whose largest term is 1


@intrinsic
def _as_float(context: Any, bits: Any) -> Any:
    """The float64 of these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return float64(int64), generate


@intrinsic
def _bits(context: Any, x: Any) -> Any:
    """The bits of this float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return int64(float64), generate


@kernel(forceinline=True)
def exp(x: float) -> float:
    """e^x for x <= 0 to an error of 1e-15; 0 below -708, and for -inf.

    x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite 1980): e^r by its Taylor polynomial, 2^n by the exponent's bits.
    Adding 1.5 * 2^52 rounds to an integer, which then stands in the lowest bits.
    """
    low = x if x > LOWEST else LOWEST
    shifted = low * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (low - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
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
    scale: float = _as_float((_bits(shifted) + 1023) << 52)  # type: ignore[call-arg]
    return p * scale if x > LOWEST else 0.0
