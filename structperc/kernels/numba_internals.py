"""The only module that uses internals of numba and llvmlite which have no public counterpart.

Reasons:

* `KernelCache` (FunctionCache, IndexDataCacheFile and their attributes): `njit(cache=True)` looks at the file of a
  kernel alone, not at those of the kernels that it calls, never finds kernels that are made by a function, and lets
  every process compile the same kernel.
* `NO_REFERENCE_COUNTS` (option `_nrt`): each mention of an array in a tuple otherwise costs two atomic additions.
* `copy_bytes` (raw_memcpy): assigning slices copies number by number, which takes two to five times as long.
* `borrow_arrays` (populate_array, nrt): arrays made of an address by public means are counted by their owner.
* `task_of`, `run_task`, `result_of` (call conventions): no public way to call a kernel of any signature by address.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.callconv import RETCODE_USEREXC
from numba.np.arrayobj import populate_array

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

    def __init__(self, function: Callable[..., Any], announce: Callable[[], None]):
        super().__init__(function)
        self._announce = announce
        given = [cell.cell_contents.py_func for cell in function.__closure__ or ()]
        name = "-".join([self._impl.filename_base, *_digests(given)])
        folders = {*SHARED, *(Path(inspect.getfile(one)).parent for one in (function, *given))}
        self._cache_file = IndexDataCacheFile(self.cache_path, name, _source_stamp(tuple(sorted(folders))))
        self._lock = _lock(f"{self.cache_path}/{name}.lock")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code for these types; None if this process has to compile it."""
        found = self._load(sig, target_context)
        if found is None:
            with suppress(Timeout, OSError, NotImplementedError):  # files in the folder cannot be locked
                self._lock.acquire(timeout=LOCK_TIMEOUT)
            found = self._load(sig, target_context)
            if found is None:
                self._announce()
            else:
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
def _lock(path: str) -> FileLock:
    return FileLock(path)


@cache
def _source_stamp(folders: tuple[Path, ...]) -> str:
    files = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def cache_on_disk(kernel: Any, function: Callable[..., Any], announce: Callable[[], None]) -> None:
    """Keep the compiled code of a kernel on disk, or in this process if there is no writable folder.

    `announce` is called before the kernel is compiled.
    """
    with suppress(RuntimeError, OSError, TypeError):  # no folder, or no source file
        kernel._cache = KernelCache(function, announce)


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


@intrinsic
def borrow_arrays(context: Any, arguments: Any) -> Any:
    """Turn each (address, sizes, dtype) of a tuple into an array without an owner; other elements stay as they are.

    Nobody may keep these arrays. To make arrays of tensors takes longer than to decode a short sentence, and threads
    that take views of one array wait for each other's reference counts.
    """
    made = types.Tuple([_array_type(one) or one for one in arguments])

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        members = zip(arguments, cgutils.unpack_tuple(builder, values[0]), strict=True)
        return context.make_tuple(builder, made, [_borrow(context, builder, *one) for one in members])

    return made(arguments), generate


def _array_type(lent: Any) -> Any:
    if not (isinstance(lent, types.Tuple) and isinstance(lent.types[-1], types.DType)):
        return None
    return types.Array(lent.types[-1].dtype, len(lent.types[1]), "C")


def _borrow(context: Any, builder: Any, lent: Any, value: Any) -> Any:
    kind = _array_type(lent)
    if kind is None:
        context.nrt.incref(builder, lent, value)  # as every function does for what it returns
        return value
    address, sizes, _ = cgutils.unpack_tuple(builder, value)
    shape, data_type = cgutils.unpack_tuple(builder, sizes), context.get_data_type(kind.dtype)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(data_type))
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(address, data_type.as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


# A task is a kernel and its arguments as two addresses, with which any thread can call it: that of a function
# (record, side) in machine code, and that of its record on the stack of the thread that waits for the task.
I32, I64, ANYTHING = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
TASK = ir.FunctionType(ir.VoidType(), (I64, I64))
ANY, ERROR, ARGUMENTS = range(3)  # members of a record: whether a thread got True, an exception, the arguments


@intrinsic
def task_of(context: Any, kernel: Any, arguments: Any) -> Any:
    """Return the addresses of the task that calls kernel(side, *arguments).

    The record is valid until the function that calls this one returns.
    """
    called = kernel.get_call_type(context, (types.int64, *arguments.types), {})

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        record = cgutils.alloca_once(builder, _record(values[1].type))
        for member, value in enumerate((ir.IntType(1)(0), ANYTHING(None), values[1])):
            builder.store(value, _member(builder, record, member))
        task = _task_function(context, builder.module, kernel, called, record.type)
        return context.make_tuple(builder, signature.return_type, [builder.ptrtoint(x, I64) for x in (task, record)])

    return types.UniTuple(types.int64, 2)(kernel, arguments), generate


@intrinsic
def run_task(context: Any, task: Any, record: Any, side: Any) -> Any:
    """Call the kernel of a task in this thread."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.call(builder.inttoptr(values[0], TASK.as_pointer()), [values[1], values[2]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def result_of(context: Any, record: Any, arguments: Any) -> Any:
    """Return whether the kernel returned True in any thread; raise the exception of one."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        record = builder.inttoptr(values[0], _record(values[1].type).as_pointer())
        error, convention = builder.load(_member(builder, record, ERROR)), context.call_conv
        with builder.if_then(cgutils.is_not_null(builder, error), likely=False):
            raised = builder.bitcast(error, convention._get_excinfo_argument(builder.function).type.pointee)
            status = convention._get_return_status(builder, RETCODE_USEREXC, raised)
            convention.return_status_propagate(builder, status)
        return builder.load(_member(builder, record, ANY))

    return types.boolean(types.int64, arguments), generate


def _record(arguments: Any) -> Any:
    return ir.LiteralStructType((ir.IntType(1), ANYTHING, arguments))


def _member(builder: Any, record: Any, member: int) -> Any:
    return builder.gep(record, [I32(0), I32(member)], inbounds=True)


def _task_function(context: Any, module: Any, kernel: Any, called: Any, record: Any) -> Any:
    """Write the function that calls a kernel with the arguments in a record and stores the result there."""
    function = ir.Function(module, TASK, module.get_unique_name("task"))
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    place = builder.inttoptr(function.args[0], record)
    arguments = [function.args[1], *cgutils.unpack_tuple(builder, builder.load(_member(builder, place, ARGUMENTS)))]
    compiled = kernel.dispatcher.get_compile_result(called)
    context.active_code_library.add_linking_library(compiled.library)
    callee = context.declare_function(module, compiled.fndesc)
    status, found = context.call_conv.call_function(builder, callee, called.return_type, called.args, arguments)
    with builder.if_then(status.is_error, likely=False):
        builder.store(builder.bitcast(status.excinfoptr, ANYTHING), _member(builder, place, ERROR))
    if called.return_type == types.boolean:
        with builder.if_then(found, likely=False):
            builder.store(found, _member(builder, place, ANY))
    builder.ret_void()
    return function
