"""Arrays of which stretches are read: one that is in memory, or one that lies in a file.

Folders of arrays, each in a file of its own, and of what is to be known about them, with checksums.
"""

import json
import mmap
import os
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import xxhash

from structperc.data.json_data import check_fields, check_value
from structperc.data.output import write_errors
from structperc.errors import InputError


class ArraySource(Protocol):
    """An array (N, ...) of which stretches are read."""

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return a copy of the rows starts[i], ..., stops[i] - 1, for one i after the other."""


class MemoryArray(NamedTuple):
    """An array that is in memory."""

    array: np.ndarray  # (N, ...)

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return a copy of the rows starts[i], ..., stops[i] - 1, for one i after the other."""
        from structperc.kernels.slices import copy_slices  # which needs a compiler

        return copy_slices(self.array, starts, stops)


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
            return MemoryArray(self.mapped()).take(starts, stops)
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
        with open(self.path, "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(memory, self.dtype).reshape(self.shape)


INDEX, ABOUT = "arrays.json", "about"
READ = 2**18  # bytes of a file that are looked at at a time
ARRAY = {"dtype": str, "shape": list[int], "checksum": str}
TYPES = ("|u1", "<i4", "<i8", "<f4")


class ArrayWriter:
    """Writes arrays into a folder that is there; each may come in parts. To be used in a `with` statement.

    Raises InputError, naming the file and the reason, where the system refuses, as it does on a full disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, BinaryIO] = {}
        self._arrays: dict[str, dict[str, Any]] = {}
        self._checksums: dict[str, Any] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def append(self, name: str, rows: np.ndarray) -> None:
        """Add rows (n, ...) to the array of a name, which begins with the first ones."""
        rows = np.ascontiguousarray(rows)
        own = self._arrays.setdefault(name, {"dtype": rows.dtype.str, "shape": [0, *rows.shape[1:]]})
        if (own["dtype"], own["shape"][1:]) != (rows.dtype.str, [*rows.shape[1:]]) or rows.dtype.str not in TYPES:
            raise ValueError(f"{name}: {rows.dtype} {rows.shape[1:]} does not go with {own}, or cannot be kept")
        content = memoryview(rows.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        with write_errors(self.folder / name):
            if name not in self._files:
                self._files[name] = open(self.folder / name, "wb")  # noqa: SIM115 - it is closed in the end
            self._files[name].write(content)
        own["shape"][0] += len(rows)
        self._checksums.setdefault(name, xxhash.xxh3_128()).update(content)

    def append_text(self, name: str, text: str) -> None:
        """Keep a text as UTF-8."""
        self.append(name, np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8))

    def append_strings(self, name: str, strings: Iterable[str]) -> None:
        """Keep strings one after the other, and where each of them ends."""
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        self.append(name, np.frombuffer(b"".join(encoded), np.uint8))
        self.append(f"{name}.ends", np.cumsum([len(string) for string in encoded], dtype=np.int64))

    def finish(self, about: Mapping[str, Any]) -> None:
        """Add what is to be known, plain JSON types by name, after all arrays."""
        self.append_text(ABOUT, json.dumps(about))
        for name, file in self._files.items():
            with write_errors(self.folder / name):
                file.close()  # which writes what was held back
        told = {name: {**own, "checksum": self._checksums[name].hexdigest()} for name, own in self._arrays.items()}
        with write_errors(self.folder / INDEX):
            (self.folder / INDEX).write_text(json.dumps(told), encoding="utf-8")

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            with suppress(OSError):  # the error that led here is the one to hear of
                file.close()


class ArrayFolder:
    """The arrays of a folder that is complete.

    Raises InputError for a folder whose files are not what was written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            told = json.loads((folder / INDEX).read_bytes())
            check_value(told, dict[str, dict[str, Any]], INDEX)
            for name, array in told.items():
                check_fields(array, ARRAY, f"{INDEX}: {name}")
                if _checksum(folder / name) != (_size(array), array["checksum"]):
                    raise InputError(f"{name} has another size or checksum than what was written")
            self._arrays: dict[str, dict[str, Any]] = told
            self.about: dict[str, Any] = json.loads(self.text(ABOUT))
        except (InputError, OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder}: this folder of arrays is damaged ({' '.join(str(error).split())})") from None

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def array(self, name: str) -> FileArray:
        """Return an array, of which stretches can be read."""
        told = self._arrays[name]
        return FileArray(self.folder / name, told["dtype"], tuple(told["shape"]))

    def text(self, name: str) -> str:
        """Return a text."""
        return self.array(name).whole().tobytes().decode("utf-8", "surrogatepass")

    def strings(self, name: str) -> list[str]:
        """Return a list of strings."""
        text, ends = self.array(name).whole().tobytes(), self.array(f"{name}.ends").whole().tolist()
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends])]


def _size(array: Mapping[str, Any]) -> int:
    return int(np.dtype(array["dtype"]).itemsize * np.prod(array["shape"]))


def _checksum(path: Path) -> tuple[int, str]:
    """The size of a file and a checksum of its content, which is found about as fast as memory is read."""
    size, total, block = 0, xxhash.xxh3_128(), memoryview(bytearray(READ))
    with path.open("rb", buffering=0) as file:
        while read := file.readinto(block):
            size += read
            total.update(block[:read])
    return size, total.hexdigest()
