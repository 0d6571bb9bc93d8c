"""Signals that end a process: SIGTERM treated like Ctrl-C, and Ctrl-C that waits for the end of a block."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt within the block, unless another handler is installed already."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def delay_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block: callbacks after a fork would swallow it."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives it
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        signal.raise_signal(signal.SIGINT)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
