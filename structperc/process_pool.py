"""Work shared by several processes, with results in the order of the items.

The processes are those of loky. Added here: results in order while further items are submitted, large arrays in files
that all receivers map into memory, and an end with the parent process even if that is killed.
"""

import mmap
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import Any, NamedTuple, TypeVar

from structperc.errors import InputError

LARGE = 2**20  # bytes; for arrays of this size or more a file is faster
CHECK_INTERVAL = 0.2  # seconds between checks that the parent process exists
AHEAD = 2  # maximum of submitted items per process

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers(NamedTuple):
    """A number of processes that share work; 1 is the calling process itself."""

    number: int = 1
    advice: str = "use fewer processes"  # if memory does not suffice
    folder: Path | None = None  # folder for the files of large arrays; None: arrays are copied

    def at_most(self, number: int) -> "Workers":
        """Return no more workers than there are items, as each takes a second to start."""
        return self._replace(number=max(1, min(self.number, number)))

    def each(
        self, make: Callable[[], Callable[[Item], Result]], given: Iterable[Item | None]
    ) -> Generator[Result, None, None]:
        """Yield the results of all items in their order, see `start_workers`."""
        with start_workers(self, make) as work:
            yield from work(given)


@contextmanager
def start_workers(
    workers: Workers, make: Callable[[], Callable[[Item], Result]]
) -> Iterator[Callable[[Iterable[Item | None]], Iterator[Result]]]:
    """Yield a function that takes items and yields their results in the same order.

    Each process calls `make` once in the background, and the returned function for each item; it does not import the
    main program. With a single worker, this process calls `make` for the first item.

    At most twice as many items as there are processes are taken before the first result is yielded; for None, all
    results are yielded before the next item is taken. All processes end with the block, with this process, and after
    an error, which is raised in place of the result, with the advice if a process was killed.
    """
    if workers.number == 1:
        yield partial(_in_this_process, make)
        return
    from loky import ProcessPoolExecutor

    temporary = TemporaryDirectory(dir=workers.folder, ignore_cleanup_errors=True) if workers.folder else nullcontext()
    with temporary as name:
        folder = None if name is None else Path(name)
        given = (os.getpid(), pack(make, folder), folder)
        executor = ProcessPoolExecutor(workers.number, initializer=_initialize, initargs=given)
        try:
            with _block_interrupts():
                executor.submit(os.getpid)  # starts all processes
            yield partial(_in_order, executor, workers, folder)
        finally:
            executor.shutdown(kill_workers=True)


def _in_this_process(make: Callable[[], Callable[[Item], Result]], given: Iterable[Item | None]) -> Iterator[Result]:
    work = make()
    yield from (work(one) for one in given if one is not None)


def _in_order(executor: Any, workers: Workers, folder: Path | None, given: Iterable[Any]) -> Iterator[Any]:
    from loky.process_executor import BrokenProcessPool

    waiting: deque[Any] = deque()
    try:
        for item in given:
            if item is not None:
                waiting.append(executor.submit(_work, pack(item, folder)))
            while waiting and (item is None or waiting[0].done() or len(waiting) >= AHEAD * workers.number):
                yield waiting.popleft().result().take()
        while waiting:
            yield waiting.popleft().result().take()
    except BrokenProcessPool:
        raise InputError(f"a worker process ended, perhaps for lack of memory; {workers.advice}") from None


_made: Any = None  # in a worker: the function of `make`, or its error
_folder: Path | None = None


def _initialize(parent: int, make: "Packed", folder: Path | None) -> None:
    global _made, _folder
    from tqdm import tqdm

    tqdm.set_lock(threading.RLock())  # the default is a semaphore, with a warning after a kill
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _folder = folder
    try:
        _made = make.load()()
    except Exception as error:
        _made = error


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK_INTERVAL)
    os._exit(1)


def _work(item: "Packed") -> "Packed":
    if isinstance(_made, Exception):
        raise _made
    return pack(_made(item.take()), _folder)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Make processes that start within the block ignore Ctrl-C, which is for this process."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Packed(NamedTuple):
    """A pickled object, and the files of its large arrays."""

    pickled: bytes
    files: list[str]

    def load(self) -> Any:
        """Return the object. Its large arrays are mapped into memory, and changes stay in this process."""
        return pickle.loads(self.pickled, buffers=map(_mapped, self.files))

    def take(self) -> Any:
        """Return the object and remove the files, after which no process can load it."""
        found = self.load()
        for file in self.files:
            with suppress(PermissionError):  # systems that keep open files
                os.unlink(file)
        return found


def pack(content: Any, folder: Path | None) -> Packed:
    """Return a pickled object, its large arrays in files of a folder; None: in the pickle.

    Raises OSError if a file cannot be written.
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
