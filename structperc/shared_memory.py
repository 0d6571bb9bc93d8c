"""Things sent from process to process, whose large arrays lie in files that all who receive them share."""

import mmap
import os
import pickle
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any, NamedTuple

LARGE = 2**20  # bytes of an array from which on it is worth a file


class Parcel(NamedTuple):
    """A thing as bytes, and the files of its large arrays."""

    told: bytes
    files: list[str]

    def opened(self) -> Any:
        """Return the thing. Its large arrays are read when they are looked at; what is written to them stays here."""
        return pickle.loads(self.told, buffers=map(_mapped, self.files))

    def taken(self) -> Any:
        """Return the thing, which nobody else is to open."""
        thing = self.opened()
        for file in self.files:
            with suppress(PermissionError):  # of systems that keep files as long as they are open
                os.unlink(file)
        return thing


def parcel(thing: Any, folder: Path | None) -> Parcel:
    """Return a thing to be sent, whose large arrays are written into files of a folder; None: they are sent, too.

    Raises OSError where a file cannot be written.
    """
    files: list[str] = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        """Whether an array is sent with the thing."""
        content = buffer.raw()
        if folder is None or content.nbytes < LARGE:
            return True
        number, path = mkstemp(dir=folder)
        files.append(path)
        with open(number, "wb") as file:
            file.write(content)
        return False

    return Parcel(pickle.dumps(thing, protocol=5, buffer_callback=beside), files)


def _mapped(file: str) -> mmap.mmap:
    with open(file, "rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
