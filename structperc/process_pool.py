"""Work shared by several processes, whose results come in the order in which the work was given.

The processes are those of loky. Added here: results in order while more work is given, large arrays sent as files
(`shared_memory`), and an end with the parent process even when that is killed.
"""

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from structperc.errors import InputError
from structperc.shared_memory import Packed, pack

CHECKED = 0.2  # seconds between two looks whether the parent process is there
AHEAD = 2  # times as many items as there are processes, at most, are given before the first result is returned

Given = TypeVar("Given")
Result = TypeVar("Result")


class Workers(NamedTuple):
    """A number of processes that share work; a single one is the calling process itself."""

    number: int = 1
    advice: str = "share the work among fewer"  # what to do where there is too little memory for all of them
    folder: Path | None = None  # for files of large arrays that are sent; None: these are copied

    def at_most(self, number: int) -> "Workers":
        """Return no more workers than there are items: each takes a second to start."""
        return self._replace(number=max(1, min(self.number, number)))

    def each(
        self, make: Callable[[], Callable[[Given], Result]], given: Iterable[Given | None]
    ) -> Generator[Result, None, None]:
        """Yield the results of all items in the order in which they are given, see `start_workers`."""
        with start_workers(self, make) as work:
            yield from work(given)


@contextmanager
def start_workers(
    workers: Workers, make: Callable[[], Callable[[Given], Result]]
) -> Iterator[Callable[[Iterable[Given | None]], Iterator[Result]]]:
    """Yield a function that takes items and yields their results in the same order.

    Each process, which does not import the program that is run, calls `make` once, meanwhile this one goes on, and
    what it returns for each item. A single worker is this process, which calls `make` for the first item.

    No more than twice as many items as there are processes are taken before the first result is yielded; None has all
    results yielded first, as the next item has to be waited for. All processes end with the block, with this process,
    and when one fails: its error is raised in place of its result, with the advice if it was killed.
    """
    if workers.number == 1:
        yield partial(_in_this_process, make)
        return
    from loky import ProcessPoolExecutor

    with _own_folder(workers.folder) as folder:
        given = (os.getpid(), pack(make, folder), folder)
        executor = ProcessPoolExecutor(workers.number, initializer=_initialize, initargs=given)
        try:
            with _ignoring_interrupts():
                executor.submit(os.getpid)  # starts all processes
            yield partial(_in_order, executor, workers, folder)
        finally:
            executor.shutdown(kill_workers=True)


def _in_this_process(make: Callable[[], Callable[[Given], Result]], given: Iterable[Given | None]) -> Iterator[Result]:
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


_made: Any = None  # in a worker: what does the work, or the error of `make`
_folder: Path | None = None


def _initialize(parent: int, make: Packed, folder: Path | None) -> None:
    global _made, _folder
    from tqdm import tqdm

    tqdm.set_lock(threading.RLock())  # its default is a semaphore, of which a warning is printed after a kill
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()  # which may have ended already
    _folder = folder
    try:
        _made = make.load()()
    except Exception as error:
        _made = error


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECKED)
    os._exit(1)


def _work(item: Packed) -> Packed:
    if isinstance(_made, Exception):
        raise _made
    return pack(_made(item.take()), _folder)


@contextmanager
def _own_folder(folder: Path | None) -> Iterator[Path | None]:
    if folder is None:
        yield None
        return
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
        yield Path(own)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Let processes that are started within the block ignore Ctrl-C, which is for the one that started them."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
