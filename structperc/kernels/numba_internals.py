"""The only module that uses internals of numba and llvmlite which have no public counterpart.

Reasons:

* `KernelCache` (FunctionCache, IndexDataCacheFile and their attributes): `njit(cache=True)` looks at the file of a
  kernel alone, not at those of the kernels that it calls, never finds kernels that are made by a function, and lets
  every process compile the same kernel.
* `NO_REFERENCE_COUNTS` (option `_nrt`): each mention of an array in a tuple otherwise costs two atomic additions;
  guided tagging takes 2.2 times as long with them, an epoch of the perceptron 1.07 times.
* `copy_bytes` (raw_memcpy): a loop over bytes takes 1.5 to 25 times as long for the slices of a mini-batch.
* `on_compilation` (core.event): to count kernels while they are compiled.
"""

import hashlib
import inspect
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from numba import extending, types
from numba.core import cgutils, event
from numba.core.caching import FunctionCache, IndexDataCacheFile

CHECKED_WITH = (0, 68)  # the latest version of numba that the tests passed with
SHARED = (Path(__file__).parent, Path(__file__).parents[1] / "ops" / "cpu")  # folders of kernels that others call
LOCK_TIMEOUT = 60.0  # seconds to wait for another process that compiles the same kernel
NO_REFERENCE_COUNTS = {"_nrt": False}  # option of njit
intrinsic: Any = extending.intrinsic  # untyped, since kernels call what it makes without `context`


class KernelCache(FunctionCache):
    """Compiled code on disk, valid until a source file changes in the shared folders or in those of the kernel.

    A kernel made by a function includes the kernels that it was given, and has an index of its own. Of several
    processes one compiles a kernel while the others wait for it.
    """

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        given = [cell.cell_contents.py_func for cell in function.__closure__ or ()]
        name = "-".join([self._impl.filename_base, *_digests(given)])
        folders = {*SHARED, *(Path(inspect.getfile(one)).parent for one in (function, *given))}
        self._cache_file = IndexDataCacheFile(self.cache_path, name, _source_stamp(tuple(sorted(folders))))
        self._lock_path = f"{self.cache_path}/{name}.lock"

    @property
    def _lock(self) -> FileLock:
        return _lock(self._lock_path, os.getpid())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code for these types; None if this process has to compile it."""
        found = self._load(sig, target_context)
        if found is None:
            with suppress(Timeout, OSError, NotImplementedError):  # files in the folder cannot be locked
                self._lock.acquire(timeout=LOCK_TIMEOUT)
            found = self._load(sig, target_context)
            if found is not None:
                self._lock.release(force=True)
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except (ImportError, AttributeError):  # the index names types of a module that was moved
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code."""
        try:
            super().save_overload(sig, data)
        finally:
            self._lock.release(force=True)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Leave out the closure, which the base class pickles: it differs from process to process."""
        return sig, codegen.magic_tuple()


def _digests(functions: Iterable[Callable[..., Any]]) -> list[str]:
    names = (f"{inspect.getfile(one)} {one.__qualname__}" for one in functions)
    return [hashlib.sha256(name.encode()).hexdigest()[:12] for name in names]


@cache  # a kernel may call one of the same name
def _lock(path: str, process: int) -> FileLock:  # a process cannot use a lock that it inherited when it was forked
    return FileLock(path)


@cache
def _source_stamp(folders: tuple[Path, ...]) -> str:
    files = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def cache_on_disk(kernel: Any, function: Callable[..., Any]) -> None:
    """Keep the compiled code of a kernel on disk, or in this process if there is no writable folder."""
    with suppress(RuntimeError, OSError, TypeError):  # no folder, or no source file
        kernel._cache = KernelCache(function)


def on_compilation(started: Callable[[], None], finished: Callable[[], None]) -> None:
    """Call these functions before and after each compilation by numba; compilations may be nested."""

    class Compilations(event.Listener):
        def on_start(self, event: Any) -> None:
            started()

        def on_end(self, event: Any) -> None:
            finished()

    event.register("numba:compile", Compilations())


def pointer_to(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the pointer to an element of an array: the first argument is the array, the second the index."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic
def copy_bytes(context: Any, source: Any, start: Any, target: Any, at: Any, length: Any) -> Any:
    """Copy so many bytes from one place to another, as memcpy of C."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = pointer_to(context, builder, signature, arguments)
        place = pointer_to(context, builder, signature.replace(args=signature.args[2:]), arguments[2:])
        cgutils.raw_memcpy(builder, place, given, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(source, start, target, at, length), generate
