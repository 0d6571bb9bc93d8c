"""Arrays in memory or in files, with reading of slices; and folders of arrays with checksums.

A file contains the elements of an array, little-endian. Checksums show that a folder is complete and unchanged.
"""

import hashlib
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

INDEX, METADATA = "arrays.json", "metadata"
ARRAY = {"dtype": str, "shape": list[int], "checksum": str}
DTYPES = ("|u1", "<i4", "<i8", "<f4")


class ArraySource(Protocol):
    """An array (N, ...) for reading slices."""

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return a copy of the rows starts[i], ..., stops[i] - 1, concatenated over i."""


class MemoryArray(NamedTuple):
    """An array in memory."""

    array: np.ndarray  # (N, ...)

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return a copy of the rows starts[i], ..., stops[i] - 1, concatenated over i."""
        from structperc.kernels.slices import copy_slices  # needs a compiler

        return copy_slices(self.array, starts, stops)


class FileArray:
    """An array (N, ...) in a file, which stays open and may be removed or replaced. Raises OSError if unreadable.

    Only slices are read into memory.
    """

    def __init__(self, path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), shape
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._row = self.dtype.itemsize * int(np.prod(shape[1:]))

    def __reduce__(self) -> tuple:
        return FileArray, (self.path, self.dtype.str, self.shape)

    def take(self, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """Return the rows as `ArraySource.take` does. Raises OSError for a truncated file."""
        if not hasattr(os, "preadv"):  # not on Linux
            return MemoryArray(self.memory_map()).take(starts, stops)
        taken = np.empty((int((stops - starts).sum()), *self.shape[1:]), self.dtype)
        buffer, at = taken.reshape(-1).view(np.uint8).data, 0
        for start, stop in zip((starts * self._row).tolist(), (stops * self._row).tolist(), strict=True):
            while start < stop:
                if not (read := os.preadv(self._file, [buffer[at : at + stop - start]], start)):
                    raise OSError(f"{self.path}: this file is truncated")
                at, start = at + read, start + read
        return taken

    def read(self) -> np.ndarray:
        """Read the array into memory."""
        return np.fromfile(self.path, self.dtype).reshape(self.shape)

    def memory_map(self) -> np.ndarray:
        """Return the array as a read-only memory map."""
        if not np.prod(self.shape):
            return np.empty(self.shape, self.dtype)
        with open(self.path, "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(memory, self.dtype).reshape(self.shape)


class ArrayWriter:
    """Writes arrays, possibly in parts, into an existing folder. A context manager.

    Raises InputError with file and reason if writing fails, for instance on a full disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, BinaryIO] = {}
        self._arrays: dict[str, dict[str, Any]] = {}
        self._checksums: dict[str, Any] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def append(self, name: str, rows: np.ndarray) -> None:
        """Append rows (n, ...) to an array."""
        rows = np.ascontiguousarray(rows)
        entry = self._arrays.setdefault(name, {"dtype": rows.dtype.str, "shape": [0, *rows.shape[1:]]})
        if (entry["dtype"], entry["shape"][1:]) != (rows.dtype.str, [*rows.shape[1:]]) or rows.dtype.str not in DTYPES:
            raise ValueError(f"{name}: cannot append {rows.dtype} {rows.shape[1:]} to {entry}")
        content = rows.reshape(-1).view(np.uint8).data
        with write_errors(self.folder / name):
            if name not in self._files:
                self._files[name] = open(self.folder / name, "wb")  # noqa: SIM115 - closed by `finish` or `__exit__`
            self._files[name].write(content)
        entry["shape"][0] += len(rows)
        self._checksums.setdefault(name, xxhash.xxh3_128()).update(content)

    def append_text(self, name: str, text: str) -> None:
        """Append a text as UTF-8."""
        self.append(name, np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8))

    def append_strings(self, name: str, strings: Iterable[str]) -> None:
        """Write the concatenation of strings, and the ends of each."""
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        self.append(name, np.frombuffer(b"".join(encoded), np.uint8))
        self.append(f"{name}.ends", np.cumsum([len(string) for string in encoded], dtype=np.int64))

    def finish(self, metadata: Mapping[str, Any]) -> None:
        """Write metadata of plain JSON types after all arrays."""
        self.append_text(METADATA, json.dumps(metadata))
        for name, file in self._files.items():
            with write_errors(self.folder / name):
                file.close()  # flushes
        index = {name: {**entry, "checksum": self._checksums[name].hexdigest()} for name, entry in self._arrays.items()}
        with write_errors(self.folder / INDEX):
            (self.folder / INDEX).write_text(json.dumps(index), encoding="utf-8")

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            with suppress(OSError):  # keep the original error
                file.close()


class ArrayFolder:
    """The arrays of a folder. Raises InputError if files are missing or changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            index = json.loads((folder / INDEX).read_bytes())
            check_value(index, dict[str, dict[str, Any]], INDEX)
            for name, array in index.items():
                check_fields(array, ARRAY, f"{INDEX}: {name}")
                size = int(np.dtype(array["dtype"]).itemsize * np.prod(array["shape"]))
                with (folder / name).open("rb") as file:
                    checksum = hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
                if ((folder / name).stat().st_size, checksum) != (size, array["checksum"]):
                    raise InputError(f"{name} has another size or checksum than when it was written")
            self._arrays: dict[str, dict[str, Any]] = index
            self.metadata: dict[str, Any] = json.loads(self.text(METADATA))
        except (InputError, OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder}: this folder of arrays is damaged ({' '.join(str(error).split())})") from None

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def array(self, name: str) -> FileArray:
        """Return an array."""
        return FileArray(self.folder / name, self._arrays[name]["dtype"], tuple(self._arrays[name]["shape"]))

    def text(self, name: str) -> str:
        """Return a text."""
        return self.array(name).read().tobytes().decode("utf-8", "surrogatepass")

    def strings(self, name: str) -> list[str]:
        """Return a list of strings."""
        text, ends = self.array(name).read().tobytes(), self.array(f"{name}.ends").read().tolist()
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends])]
