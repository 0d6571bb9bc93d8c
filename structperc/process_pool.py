"""Work that several processes share, whose results come in the order in which it was given."""

import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast

from tqdm.auto import tqdm

from structperc.errors import InputError
from structperc.shared_memory import Parcel, parcel

PATIENCE = 1.0  # seconds that a process has to end by itself
AHEAD = 2  # times as many things as there are processes, at most, are given before the first result has its turn

Given = TypeVar("Given")
Result = TypeVar("Result")


class Workers(NamedTuple):
    """So many processes that share work; with one of them it is done by the process that asks for it."""

    number: int = 1
    advice: str = "share the work among fewer"  # what to do where there is too little memory for all of them
    folder: Path | None = None  # for files of large arrays that they send and are sent; None: these are copied

    def at_most(self, number: int) -> "Workers":
        """Return no more of them than there are things to do: each takes a second to start."""
        return self._replace(number=max(1, min(self.number, number)))

    def each(
        self, make: Callable[[], Callable[[Given], Result]], given: Iterable[Given | None]
    ) -> Generator[Result, None, None]:
        """Yield what becomes of all that is given, in the order in which it is given, see `at_work`."""
        with at_work(self, make) as done:
            yield from done(given)


class _Worker(NamedTuple):
    """A process that has one thing to do at a time."""

    process: Any  # of multiprocessing
    line: Connection
    advice: str
    folder: Path | None

    def give(self, thing: Any) -> None:
        """Have it work on what a parcel holds; if it is there no longer, its result will say so."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.line.send(parcel(thing, self.folder))

    def outcome(self) -> "_Outcome":
        """What came of the last thing it was given."""
        try:
            return _Outcome(*self.line.recv())
        except (EOFError, OSError):
            self.process.join()
            status = self.process.exitcode
            error = InputError(f"a worker ended with status {status}, perhaps for lack of memory; {self.advice}")
            return _Outcome(None, error)


class _Outcome(NamedTuple):
    """The parcel of a result, or what went wrong."""

    told: Parcel | None
    error: Exception | None

    def result(self) -> Any:
        """What became of the thing. Raises what went wrong."""
        if self.told is None:
            assert self.error is not None
            raise self.error
        return self.told.taken()


@contextmanager
def at_work(
    workers: Workers, make: Callable[[], Callable[[Given], Result]]
) -> Iterator[Callable[[Iterable[Given | None]], Iterator[Result]]]:
    """Yield what gives things to workers, and yields what becomes of them, in the order in which they are given.

    Each process, a fresh interpreter that does not import the program which is run, calls `make` once, while this one
    goes on, and what that returns for each thing. A single worker is this process, which calls it for the first thing.

    No more than twice as many things as there are processes are given to them, and the next one is taken, before the
    first result has its turn; None has all results given out, for the next thing has to be waited for. All processes
    end with the block, with this process, and when one of them fails, whose error is raised where its result would be;
    of one that was killed it ends with their advice.
    """
    if workers.number == 1:
        yield partial(_here, make)
        return
    with _processes(workers, make) as started:
        yield partial(_in_order, started)


def _here(make: Callable[[], Callable[[Given], Result]], given: Iterable[Given | None]) -> Iterator[Result]:
    work = make()
    yield from (work(one) for one in given if one is not None)


def _in_order(started: list[_Worker], given: Iterable[Any]) -> Iterator[Any]:
    work = _UnderWay(started)
    for thing in given:
        if thing is None:
            yield from work.results(work.given)
            continue
        yield from work.results(work.given - AHEAD * len(started) + 1)
        while not work.free and work.busy:
            work.receive()
        if not work.free:  # all have failed
            break
        work.give(thing)
        yield from work.ready()
    yield from work.results(work.given)


class _UnderWay:
    """What workers have to do and have done. A worker has something else to do before its result has its turn."""

    def __init__(self, started: list[_Worker]) -> None:
        self.free, self.given, self._shown = deque(started), 0, 0
        self.busy: dict[Connection, tuple[_Worker, int]] = {}
        self._done: dict[int, _Outcome] = {}

    def give(self, thing: Any) -> None:
        """Give a thing to a worker that has nothing to do."""
        worker = self.free.popleft()
        worker.give(thing)
        self.busy[worker.line] = worker, self.given
        self.given += 1

    def receive(self) -> None:
        """Wait for a result, and take all that are there."""
        for line in wait(list(self.busy)):
            worker, number = self.busy.pop(cast(Connection, line))
            self._done[number] = outcome = worker.outcome()
            if outcome.error is None:
                self.free.append(worker)

    def results(self, end: int) -> Iterator[Any]:
        """Yield, in their order, those results before the end that have not been yielded, when they are there."""
        while self._shown < end:
            while self._shown not in self._done:
                self.receive()
            yield from self.ready()

    def ready(self) -> Iterator[Any]:
        """Yield, in their order, those results that are there and whose turn it is."""
        while self._shown in self._done:
            self._shown += 1
            yield self._done.pop(self._shown - 1).result()


@contextmanager
def _processes(workers: Workers, make: Callable[[], Any]) -> Iterator[list[_Worker]]:
    context = get_context("spawn")  # a fork of threads, as compilers and PyTorch have, may hang
    started: list[_Worker] = []
    with _own_folder(workers.folder) as folder:
        try:
            with _deaf(), _no_program():
                for _ in range(workers.number):
                    ours, theirs = context.Pipe()
                    process = context.Process(target=_work, args=(theirs, folder), daemon=True)
                    process.start()
                    theirs.close()  # so that its end is seen
                    started.append(_Worker(process, ours, workers.advice, folder))
            once = parcel(make, folder)  # while all of them start
            for worker in started:
                worker.give(once)
            yield started
        finally:
            for worker in started:
                worker.line.close()  # at which those end that have nothing to do
            for worker in started:
                worker.process.join(PATIENCE)
                worker.process.terminate()
                worker.process.join()


@contextmanager
def _own_folder(folder: Path | None) -> Iterator[Path | None]:
    if folder is None:
        yield None
        return
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
        yield Path(own)


@contextmanager
def _deaf() -> Iterator[None]:
    """Let processes that are started within the block never hear Ctrl-C, which is for the one that started them."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # whose start would have Ctrl-C heard again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _no_program() -> Iterator[None]:
    """Let processes that are started within the block not import what this one was started with, which may train."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


def _work(line: Connection, folder: Path | None) -> None:
    """Do what arrives, after what makes that which does it, until the other end is closed."""
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, of which the system complains when a process is killed
    try:
        work = line.recv().taken().opened()()
        while True:
            line.send((parcel(work(line.recv().taken()), folder), None))
    except (EOFError, BrokenPipeError, ConnectionResetError):  # nobody asks any more
        return
    except Exception as error:
        error.add_note(traceback.format_exc())
        with suppress(BrokenPipeError, ConnectionResetError):
            line.send((None, error))
