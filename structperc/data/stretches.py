"""Arrays of which stretches are read: one that is in memory, or one that lies in a file."""

import os
import weakref
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np


class Stretches(Protocol):
    """An array (N, ...) of which stretches are read."""

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return a copy of the rows starts[i], ..., stops[i] - 1, for one i after the other."""


class HeldArray(NamedTuple):
    """An array that is in memory."""

    array: np.ndarray  # (N, ...)

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return a copy of the rows starts[i], ..., stops[i] - 1, for one i after the other."""
        from structperc.kernels.stretches import copied  # which needs a compiler

        return copied(self.array, starts, stops)


class FileArray:
    """An array that lies in a file, nothing else. What is read of it takes memory as long as it is used.

    Processes share one copy, in the memory that the system has to spare. Raises OSError for a file that cannot be read.

    Args:
        path: of the file, which stays open: it may be removed or replaced, and is read all the same.
        dtype: of the numbers.
        shape: (N, ...).
    """

    def __init__(self, path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), shape
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._row = self.dtype.itemsize * int(np.prod(shape[1:]))

    def __reduce__(self) -> tuple:
        return FileArray, (self.path, self.dtype.str, self.shape)

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return a copy of the rows starts[i], ..., stops[i] - 1, for one i after the other.

        Raises OSError for a file that ends too early.
        """
        if not hasattr(os, "preadv"):  # other systems than Linux map the file, whose pages then count as memory
            return HeldArray(self.mapped()).take(starts, stops)
        taken = np.empty((int((stops - starts).sum()), *self.shape[1:]), self.dtype)
        room, at = memoryview(taken.reshape(-1).view(np.uint8)), 0  # type: ignore[arg-type]
        for start, stop in zip((starts * self._row).tolist(), (stops * self._row).tolist(), strict=True):
            while start < stop:
                if not (read := os.preadv(self._file, [room[at : at + stop - start]], start)):
                    raise OSError(f"{self.path}: this file has become shorter")
                at, start = at + read, start + read
        return taken

    def whole(self) -> np.ndarray:
        """Return all of the array, read into memory."""
        return np.fromfile(self.path, self.dtype).reshape(self.shape)

    def mapped(self) -> np.ndarray:
        """Return all of the array, read-only, whose numbers are read when they are looked at."""
        if not np.prod(self.shape):
            return np.empty(self.shape, self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", shape=self.shape))
