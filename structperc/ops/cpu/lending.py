"""The memory of tensors, lent to kernels for one call.

numpy's arrays have an owner, who counts their views: making and taking apart an array takes longer than finding the
labels of a short sentence, and threads that take views of one array at the same time wait for each other's counts. A
kernel borrows memory instead, which its caller holds: address, shape and type, which become an array without an owner.
"""

from typing import Any

import numpy as np
import torch
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import populate_array
from torch import Tensor

from structperc.kernels.numba_internals import operation

NAMES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "?")
TYPES = {torch.from_numpy(np.empty(0, name)).dtype: np.dtype(name) for name in NAMES}


def lent(*arguments: Any) -> tuple[Any, ...]:
    """Return contiguous tensors as kernels can borrow them, (address, sizes, numpy's dtype), anything else as it is."""
    return tuple([(x.data_ptr(), (*x.shape,), TYPES[x.dtype]) if isinstance(x, Tensor) else x for x in arguments])


@operation
def borrowed(context: Any, arguments: Any) -> Any:
    """A tuple of what was `lent` -> the same with arrays of the tensors' sizes, which nobody may keep."""
    made = types.Tuple([_array(one) or one for one in arguments])

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        members = zip(arguments, cgutils.unpack_tuple(builder, values[0]), strict=True)
        return context.make_tuple(builder, made, [_value(context, builder, *one) for one in members])

    return made(arguments), generate


def _array(lent: Any) -> Any:
    """The type of the array that a lent tensor becomes; None for another argument."""
    if not (isinstance(lent, types.Tuple) and isinstance(lent.types[-1], types.DType)):
        return None
    return types.Array(lent.types[-1].dtype, len(lent.types[1]), "C")


def _value(context: Any, builder: Any, lent: Any, value: Any) -> Any:
    kind = _array(lent)
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
