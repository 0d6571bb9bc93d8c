"""A kernel and its arguments as a job, whatever their types: two addresses, with which any thread can call the kernel.

The one is that of a function in machine code, the other that of its first argument, a record on the stack of the thread
that waits for the job; the second is the side from which a thread takes its share.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import RETCODE_USEREXC

from structperc.kernels.numba_internals import operation

I32, I64, ANYTHING = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
TASK = ir.FunctionType(ir.VoidType(), (I64, I64))
ANY, ERROR, ARGUMENTS = range(3)  # of a record


@operation
def job_of(context: Any, kernel: Any, arguments: Any) -> Any:
    """The job of calling kernel(side, *arguments) -> the addresses of its function and of its record.

    The record lives as long as the function that calls this one has not returned.
    """
    called = kernel.get_call_type(context, (types.int64, *arguments.types), {})

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        record = cgutils.alloca_once(builder, _record(values[1].type))
        for member, value in enumerate((ir.IntType(1)(0), ANYTHING(None), values[1])):
            builder.store(value, _member(builder, record, member))
        task = _task(context, builder.module, kernel, called, record.type)
        return context.make_tuple(builder, signature.return_type, [builder.ptrtoint(x, I64) for x in (task, record)])

    return types.UniTuple(types.int64, 2)(kernel, arguments), generate


@operation
def do(context: Any, task: Any, record: Any, side: Any) -> Any:
    """Call the kernel of a job, for a thread on this side."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.call(builder.inttoptr(values[0], TASK.as_pointer()), [values[1], values[2]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@operation
def outcome(context: Any, record: Any, arguments: Any) -> Any:
    """Whether the kernel has returned True to any thread; raises what it raised in one."""

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


def _task(context: Any, module: Any, kernel: Any, called: Any, record: Any) -> Any:
    """Write the function that calls a kernel with the arguments in a record, and notes there what came of it."""
    function = ir.Function(module, TASK, module.get_unique_name("task"))
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    job = builder.inttoptr(function.args[0], record)
    arguments = [function.args[1], *cgutils.unpack_tuple(builder, builder.load(_member(builder, job, ARGUMENTS)))]
    compiled = kernel.dispatcher.get_compile_result(called)
    context.active_code_library.add_linking_library(compiled.library)
    callee = context.declare_function(module, compiled.fndesc)
    status, found = context.call_conv.call_function(builder, callee, called.return_type, called.args, arguments)
    with builder.if_then(status.is_error, likely=False):
        builder.store(builder.bitcast(status.excinfoptr, ANYTHING), _member(builder, job, ERROR))
    if called.return_type == types.boolean:
        with builder.if_then(found, likely=False):
            builder.store(found, _member(builder, job, ANY))
    builder.ret_void()
    return function
