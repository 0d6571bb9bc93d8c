"""Decorators that compile functions for a CPU with numba, on first use, and keep the code on disk."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from tqdm import tqdm

from structperc.kernels.numba_internals import NO_REFERENCE_COUNTS, cache_on_disk, on_compilation
from structperc.progress import bar, bars_are_shown

logger = logging.getLogger("structperc")

COMPILES = "Compiling kernels for this machine, which are kept on disk"
FORMAT = "{desc}: {n_fmt} [{elapsed}]"
FAST_COMPARISONS = {"nnan", "nsz"}  # fastmath: compare in any order; scores are not NaN, infinities stay as they are


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that Python and other kernels call.

    Options are those of numba.njit. The code is kept on disk, or for this process if no folder can be written to.
    """
    if function is None:
        return partial(kernel, **options)
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    compiled = numba.njit(**options)(function)
    cache_on_disk(compiled, function)
    return compiled


def subkernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that only kernels call, in two thirds of the time; a call by Python would crash."""
    return kernel(function, no_cpython_wrapper=True, **options)


def subkernel_no_alloc(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a `subkernel` that makes no arrays and returns only numbers: it counts no references to its arrays."""
    return subkernel(function, **NO_REFERENCE_COUNTS, **options)


class CompilationProgress:
    """Counts kernels while they are compiled: a progress bar on a terminal, else one line in the log."""

    def __init__(self) -> None:
        self.depth = self.kernels = 0
        self.bar: tqdm | None = None

    def start(self) -> None:
        """Show the bar."""
        if self.depth == 0:
            if self.kernels == 0 and not bars_are_shown(None):
                logger.info(COMPILES)
            self.bar = bar(name=COMPILES, initial=self.kernels, unit=" kernels", bar_format=FORMAT, delay=0)
        self.depth += 1

    def finish(self) -> None:
        """Count a kernel; remove the bar unless it was compiled for another one."""
        self.depth, self.kernels = self.depth - 1, self.kernels + 1
        if self.bar is not None:
            self.bar.update()
        if self.depth == 0 and self.bar is not None:
            self.bar.close()
            self.bar = None


_progress = CompilationProgress()
on_compilation(_progress.start, _progress.finish)
