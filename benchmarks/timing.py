"""Times of several functions that take turns."""

import time
from collections.abc import Callable


def interleaved(repeats: int, *functions: Callable[[], object]) -> list[float]:
    """Least milliseconds of each function, taken in turns so that a busy machine slows all of them."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, times in zip(functions, seconds, strict=True):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
    return [1000 * min(times) for times in seconds]
