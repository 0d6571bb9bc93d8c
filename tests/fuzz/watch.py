"""Running a command in this process under guard: for so long, in so much memory, with an eye on what it executes."""

import faulthandler
import logging
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import torch

CANARY = "kanarie"  # stands in whatever must not be executed, imported, written or removed
SECONDS = 20
MEMORY = 6 << 30  # bytes beyond those that the process has
EVENTS = ("import", "exec", "compile", "open", "os.", "shutil.", "subprocess.", "ctypes.", "sqlite3.", "socket.")


class Hung(BaseException):
    """The command took too long; no `except Exception` may catch this."""


class Ran(NamedTuple):
    """What became of a command."""

    status: int | None  # None where an exception left it
    error: str  # the last lines of that exception's traceback
    out: str
    err: str
    warned: list[str]
    executed: list[str]
    hung: bool


_executed: list[str] | None = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _executed is None or not event.startswith(EVENTS):
        return
    what = arguments[0] if event == "import" and arguments else arguments
    if CANARY in repr(what).lower() and not (event == "open" and _reads(arguments)):
        _executed.append(f"{event} {what!r}"[:200])


def _reads(arguments: tuple[object, ...]) -> bool:
    return len(arguments) > 1 and arguments[1] in ("r", "rb")


sys.addaudithook(_audit)  # it cannot be taken away again; without a list to fill it does nothing


@contextmanager
def executions() -> Iterator[list[str]]:
    """A list of all that is done to what has the canary in its name; looking at it is allowed."""
    global _executed
    _executed = found = []
    try:
        yield found
    finally:
        _executed = None


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises Hung in the main thread after so many seconds of work, or after many more of waiting.

    A busy machine makes nothing hang. What cannot be interrupted ends the process, and says where it is.
    """

    def ring(signal_number: int, frame: object) -> None:
        raise Hung

    timers = {signal.ITIMER_PROF: (signal.SIGPROF, seconds), signal.ITIMER_REAL: (signal.SIGALRM, 6 * seconds)}
    previous = {number: signal.signal(number, ring) for number, _ in timers.values()}
    for timer, (_, after) in timers.items():
        signal.setitimer(timer, after, 1)  # again: what is raised in a destructor is lost
    faulthandler.dump_traceback_later(30 * seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        faulthandler.cancel_dump_traceback_later()
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Whoever asks for `more` bytes on top of what is in use gets a MemoryError instead of the machine."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class _Heard(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


@contextmanager
def heard_warnings() -> Iterator[list[str]]:
    """The messages of all warnings, whether logged or not."""
    heard: list[str] = []
    handler, loggers = _Heard(heard), [logging.getLogger(name) for name in (None, "pytorch_lightning", "structperc")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        for logger in loggers:
            logger.addHandler(handler)
        try:
            yield heard
        finally:
            for logger in loggers:
                logger.removeHandler(handler)
            heard += [str(warning.message) for warning in caught]


@contextmanager
def undone() -> Iterator[None]:
    """What a command may leave changed in its process is as before."""
    path, stopped = list(sys.path), {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        sys.path[:] = path
        for number, handler in stopped.items():
            signal.signal(number, handler)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
        torch.autograd.set_detect_anomaly(False)
        torch.set_grad_enabled(True)


def guarded(command: Callable[[], int], folder: Path) -> Ran:
    """Run a command in a folder."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True, newline="\n") for _ in range(2))
    status, error, hung = None, "", False
    with ExitStack() as stack:
        for guard in (undone(), chdir(folder), redirect_stdout(out), redirect_stderr(err), memory_limit(MEMORY)):
            stack.enter_context(guard)
        warned, executed = stack.enter_context(heard_warnings()), stack.enter_context(executions())
        try:
            with time_limit(SECONDS):
                status = command()
        except Hung:
            hung, error = True, _last_lines()
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:
            error = _last_lines()
    texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]
    return Ran(status, error, *texts, warned, executed, hung)


def _last_lines() -> str:
    return " | ".join(line.strip() for line in traceback.format_exc(chain=False).splitlines()[-5:])
