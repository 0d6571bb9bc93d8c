"""Views that several processes look at, without a copy each."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from structperc.data.stretches import FileArray
from structperc.features.windows import View
from structperc.workers import Workers


class _Filed(NamedTuple):
    """A view whose numbers lie in files."""

    columns: Mapping[str, str]
    numbers: Mapping[str, FileArray]
    codes: Mapping[str, np.ndarray]
    starts: np.ndarray
    reach: int

    def view(self) -> View:
        numbers = {column: own.mapped() for column, own in self.numbers.items()}
        return View(self.columns, numbers, self.codes, self.starts, self.reach)


@contextmanager
def shared(view: View, workers: Workers) -> Iterator[Callable[[], View]]:
    """Yield what gives the view to each of the workers. Several read its numbers from files, until the block ends.

    Raises OSError where these cannot be written.
    """
    if workers.number == 1:
        yield lambda: view
        return
    with TemporaryDirectory(dir=workers.folder, ignore_cleanup_errors=True) as folder:
        numbers = {}
        for i, (column, own) in enumerate(view.at_tokens.items()):
            own.tofile(path := Path(folder) / str(i))
            numbers[column] = FileArray(path, own.dtype.str, own.shape)
        yield _Filed(view.columns, numbers, view.codes, view.starts, view.reach).view
