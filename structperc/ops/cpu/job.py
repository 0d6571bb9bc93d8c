"""A kernel and its arguments as a job that threads take the parts of, whatever their types: two addresses.

The one is that of a function in machine code, which takes parts until none is left; the other that of its only
argument, a record on the stack of the thread that waits for the job.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import RETCODE_USEREXC

from structperc.ops.cpu.mailbox import ORDER, operation

I32, I64, ANYTHING = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
WORKER = ir.FunctionType(ir.VoidType(), (I64,))
NEXT, PARTS, ANY, ERROR, ARGUMENTS = range(5)  # of a record


@operation
def job_of(context: Any, kernel: Any, parts: Any, arguments: Any) -> Any:
    """The job of calling kernel(part, parts, *arguments) for all parts -> address of its function, of its record.

    The record lives as long as the function that calls this one has not returned.
    """
    called = kernel.get_call_type(context, (types.int64, types.int64, *arguments.types), {})

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _, parts, arguments = values
        record = cgutils.alloca_once(builder, _record(arguments.type))
        start = I64(0), parts, ir.IntType(1)(0), ANYTHING(None), arguments
        for member, value in enumerate(start):
            builder.store(value, _member(builder, record, member))
        worker = _worker(context, builder.module, kernel, called, record.type)
        return context.make_tuple(builder, signature.return_type, [builder.ptrtoint(x, I64) for x in (worker, record)])

    return types.UniTuple(types.int64, 2)(kernel, types.int64, arguments), generate


@operation
def take_parts(context: Any, worker: Any, record: Any) -> Any:
    """Do parts of a job until none is left that nobody has taken."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.call(builder.inttoptr(values[0], WORKER.as_pointer()), [values[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@operation
def outcome(context: Any, record: Any, arguments: Any) -> Any:
    """Whether the kernel returned True for any part of a job that is done; raises what it raised for one."""

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
    return ir.LiteralStructType((I64, I64, ir.IntType(1), ANYTHING, arguments))


def _member(builder: Any, record: Any, member: int) -> Any:
    return builder.gep(record, [I32(0), I32(member)], inbounds=True)


def _worker(context: Any, module: Any, kernel: Any, called: Any, record: Any) -> Any:
    """Write the function that calls a kernel for part after part."""
    function = ir.Function(module, WORKER, module.get_unique_name("take_parts"))
    function.linkage = "internal"
    begin, take, work, end = (function.append_basic_block() for _ in range(4))
    builder = ir.IRBuilder(begin)
    job = builder.inttoptr(function.args[0], record)
    parts, arguments = (builder.load(_member(builder, job, member)) for member in (PARTS, ARGUMENTS))
    arguments = cgutils.unpack_tuple(builder, arguments)
    builder.branch(take)
    builder.position_at_end(take)
    part = builder.atomic_rmw("add", _member(builder, job, NEXT), I64(1), ORDER)
    builder.cbranch(builder.icmp_signed("<", part, parts), work, end)
    builder.position_at_end(work)
    status, returned = _call(context, builder, kernel, called, [part, parts, *arguments])
    with builder.if_then(status.is_error, likely=False):
        builder.store(builder.bitcast(status.excinfoptr, ANYTHING), _member(builder, job, ERROR))
    if called.return_type == types.boolean:
        with builder.if_then(returned, likely=False):
            builder.store(returned, _member(builder, job, ANY))
    builder.branch(take)
    builder.position_at_end(end)
    builder.ret_void()
    return function


def _call(context: Any, builder: Any, kernel: Any, called: Any, arguments: list[Any]) -> Any:
    """Call a compiled kernel -> its status, what it returned."""
    compiled = kernel.dispatcher.get_compile_result(called)
    context.active_code_library.add_linking_library(compiled.library)
    function = context.declare_function(builder.module, compiled.fndesc)
    return context.call_conv.call_function(builder, function, called.return_type, called.args, arguments)
