"""Decorators that compile functions for a CPU with numba, on first use, and keep the code on disk."""

import logging
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numba

from structperc.kernels.numba_internals import NO_REFERENCE_COUNTS, cache_on_disk

logger = logging.getLogger("structperc")

COMPILES = "Compiling the operators of structperc for this machine: once, then they are kept on disk."
FAST_COMPARISONS = {"nnan", "nsz"}  # fastmath: compare in any order; scores are not NaN, infinities stay as they are


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that Python and other kernels call.

    Options are those of numba.njit. The code is kept on disk, or for this process if no folder can be written to.
    """
    if function is None:
        return partial(kernel, **options)
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    compiled = numba.njit(**options)(function)
    cache_on_disk(compiled, function, _announce)
    return compiled


def subkernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that only kernels call, in two thirds of the time; a call by Python would crash."""
    return kernel(function, no_cpython_wrapper=True, **options)


def subkernel_no_alloc(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a `subkernel` that makes no arrays and returns only numbers: it counts no references to its arrays."""
    return subkernel(function, **NO_REFERENCE_COUNTS, **options)


@cache
def _announce() -> None:
    """Print on a terminal, or else log, that kernels are compiled, which takes seconds; once."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(COMPILES, file=sys.stderr, flush=True)
    else:
        logger.info(COMPILES)
