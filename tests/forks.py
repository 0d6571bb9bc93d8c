"""A process that has imported everything once and forks for each run, so that runs cost no start of an interpreter."""

import gc
import importlib
import os
import runpy
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self

from tqdm.auto import tqdm

IMPORTED = (
    "structperc.cli.main",
    "structperc.taggers.guided_tagger",
    "structperc.training.reranking",
    "structperc.datamodules.sources",
    "structperc.experiments.studies",
    "structperc.experiments.sweeps",
    "transformers.models.bert.modeling_bert",
)
LONGEST = 300.0  # seconds of a run, before it counts as one that never ends
FAILED = 70  # exit status after an exception


class Ended(NamedTuple):
    """A run."""

    status: int  # below 0: of the signal that killed it
    seconds: float  # of processor time


class ForkServer:
    """`fork_server(log, work, *arguments)` runs work in a fork of a process and logs what it prints.

    The process is a fresh interpreter, whatever the one that asks has done before, so that forks are safe.
    """

    def __enter__(self) -> Self:
        context = get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        return self

    def __exit__(self, *_: object) -> None:
        self.ours.close()
        self.process.join()

    def __call__(self, log: Path, work: Callable[..., Any], *arguments: Any) -> Ended:
        """-> the whole number that work returns, or 0, as exit status. TimeoutError when it does not end."""
        self.ours.send((log, work, arguments))
        ended = self.ours.recv()
        if ended is None:
            raise TimeoutError(f"{work.__name__}{arguments} has not ended in {LONGEST:.0f} s; see {log}")
        return ended


def _serve(theirs: Connection) -> None:
    os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg")
    for name in IMPORTED:
        importlib.import_module(name)
    tqdm.get_lock()  # a semaphore, which each fork would make and leave behind
    gc.freeze()  # what is imported stays shared with all forks
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            theirs.send(_forked(*theirs.recv()))


def _forked(log: Path, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Ended | None:
    """None for a run that does not end."""
    ends, held = os.pipe()  # it ends when the child does, who alone holds its other end
    child = os.fork()
    if child == 0:
        _run(log, work, arguments)
    os.close(held)
    in_time = select.select([ends], [], [], LONGEST)[0]
    os.close(ends)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime) if in_time else None


def _run(log: Path, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Never returns."""
    printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(printed, number)
    _end(work, arguments)


def _end(work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Works, and ends the process; never returns."""
    status = FAILED
    try:
        returned = work(*arguments)
        status = returned if isinstance(returned, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


# -- work for a fork, which must be found by its name there --------------------------------------------------------


def printing(file: Path, work: Callable[..., Any], *arguments: Any) -> Any:
    """What work returns, whose standard output goes into a file."""
    with open(file, "w", encoding="utf-8") as out, redirect_stdout(out):
        return work(*arguments)


def run_code(code: str, *arguments: str) -> None:
    """As `python -c code arguments`."""
    sys.argv[:] = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})


def run_file(path: str, arguments: list[str], environment: dict[str, str]) -> Any:
    """Runs a file as a program; -> its exit status."""
    sys.argv[:] = [path, *arguments]
    os.environ.update(environment)
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        return ended.code


def at_once(path: str, *processes: tuple[list[str], dict[str, str]]) -> int:
    """Runs a file in several processes that meet; -> 0 when all end well. The first that does not ends all."""
    children = {_child(path, arguments, environment) for arguments, environment in processes}
    failed = 0
    while children:
        child, status = os.wait()
        children.discard(child)
        if status and not failed:
            failed = FAILED
            for other in children:
                os.kill(other, signal.SIGKILL)
    return failed


def _child(path: str, arguments: list[str], environment: dict[str, str]) -> int:
    child = os.fork()
    if child == 0:
        _end(run_file, (path, arguments, environment))
    return child
