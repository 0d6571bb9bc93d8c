"""Objects sent from process to process, whose large arrays lie in files that all receivers map into memory."""

import mmap
import os
import pickle
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any, NamedTuple

LARGE = 2**20  # bytes of an array from which on a file is faster


class Packed(NamedTuple):
    """A pickled object, and the files of its large arrays."""

    pickled: bytes
    files: list[str]

    def load(self) -> Any:
        """Return the object. Its large arrays are read on use; what is written to them stays in this process."""
        return pickle.loads(self.pickled, buffers=map(_mapped, self.files))

    def take(self) -> Any:
        """Return the object and remove the files: nobody else can load it."""
        found = self.load()
        for file in self.files:
            with suppress(PermissionError):  # of systems that keep files as long as they are open
                os.unlink(file)
        return found


def pack(content: Any, folder: Path | None) -> Packed:
    """Return an object to be sent, its large arrays in files of a folder; None: in the pickle.

    Raises OSError where a file cannot be written.
    """
    files: list[str] = []

    def in_pickle(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if folder is None or raw.nbytes < LARGE:
            return True
        number, path = mkstemp(dir=folder)
        files.append(path)
        with open(number, "wb") as file:
            file.write(raw)
        return False

    return Packed(pickle.dumps(content, protocol=5, buffer_callback=in_pickle), files)


def _mapped(file: str) -> mmap.mmap:
    with open(file, "rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
