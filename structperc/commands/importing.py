"""Imports of many packages, without looking through what they leave for garbage."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Let modules be imported within the block, whose objects are never looked at again for cycles of garbage.

    They are some hundred thousands, and stay until the process ends: to look through them again and again takes a
    fifth of the time in which a training starts.
    """
    looked, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
        if len(sys.modules) > known:  # else what would stay is of others
            gc.freeze()
    finally:
        if looked:
            gc.enable()
