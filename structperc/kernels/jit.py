"""How kernels for a CPU are compiled and kept: numba."""

import hashlib
import inspect
import logging
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock, Timeout
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

logger = logging.getLogger("structperc")

COMPILES = "Compiling the operators of structperc for this machine: once, then they are kept on disk."
SHARED = (Path(__file__).parent, Path(__file__).parents[1] / "ops" / "cpu")  # folders whose kernels others have inside
WAIT = 60.0  # seconds that another process has to compile a kernel
ORDERED = {"nnan", "nsz"}  # comparisons may be taken in any order; NaN is no score, and infinities stay what they are


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function on first use and keep the code on disk; without a folder to keep it in, for this process."""
    if function is None:
        return partial(kernel, **options)
    _announce()
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    compiled = numba.njit(**options)(function)
    with suppress(RuntimeError, OSError, TypeError):  # no folder that can be written to, no file that it is from
        compiled._cache = _Kept(function)
    return compiled


def subkernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function for kernels alone to call, in two thirds of the time; called by Python it would crash."""
    return kernel(function, no_cpython_wrapper=True, **options)


def subkernel_no_alloc(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a part of kernels that makes no arrays and returns numbers alone.

    It does not count who holds the arrays that it is given. Elsewhere each mention of one in a tuple is two atomic
    additions, which is more than most of what small functions do.
    """
    return subkernel(function, _nrt=False, **options)


class _Kept(FunctionCache):
    """Code on disk, good as long as no file has changed of the shared folders and of those that its functions are from.

    Kernels have others of other files inside; those made by a function have the kernels inside that it was given, and
    an index of their own: a change of what one is given leaves the others as they are. Of several processes one
    compiles a kernel, and the others wait for it.
    """

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        given = [cell.cell_contents.py_func for cell in function.__closure__ or ()]
        name = "-".join([self._impl.filename_base, *_digests(given)])
        self._cache_file = IndexDataCacheFile(self._cache_path, name, self._impl.locator.get_source_stamp())
        folders = {*SHARED, *(Path(inspect.getfile(one)).parent for one in (function, *given))}
        self._cache_file._version = _stamp(tuple(sorted(folders)))  # before it is read which types were compiled for
        self._turn = _turn(f"{self._cache_file._index_path}.lock")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for these types, if it is kept by now; if not, it is for this process to compile and keep."""
        found = super().load_overload(sig, target_context)
        if found is None:
            with suppress(Timeout, OSError, NotImplementedError):  # a folder whose files cannot be locked
                self._turn.acquire(timeout=WAIT)
            found = super().load_overload(sig, target_context)
            if found is not None:
                self._turn.release(force=True)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code that has been compiled."""
        try:
            super().save_overload(sig, data)
        finally:
            self._turn.release(force=True)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Leave out the kernels inside, which the base class pickles: each process would have its own."""
        return sig, codegen.magic_tuple()


def _digests(functions: Iterable[Callable[..., Any]]) -> list[str]:
    """What tells functions from others in names of files."""
    names = (f"{inspect.getfile(one)} {one.__qualname__}" for one in functions)
    return [hashlib.sha256(name.encode()).hexdigest()[:12] for name in names]


@cache  # a kernel may have one of the same name inside
def _turn(path: str) -> FileLock:
    return FileLock(path)


@cache
def _stamp(folders: tuple[Path, ...]) -> str:
    """What tells the sources of kernels from those of another version."""
    files = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return numba.__version__ + hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@cache
def _announce() -> None:
    """Say once that something is being compiled, if it is: the first search of a new installation takes seconds."""
    event.register("numba:compile", _Announcement())


class _Announcement(event.Listener):
    said = False

    def on_start(self, event: event.Event) -> None:
        """Say on a terminal, or else log, that one of our kernels is compiled; once."""
        module = event.data["dispatcher"].py_func.__module__
        if self.said or not module.startswith("structperc."):
            return
        self.said = True
        if sys.stderr is not None and sys.stderr.isatty():
            print(COMPILES, file=sys.stderr, flush=True)
        else:
            logger.info(COMPILES)

    def on_end(self, event: event.Event) -> None:
        """Nothing is said at the end."""
