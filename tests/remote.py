"""Tensors that say to be on another device, and a host that sees all it reads of them and all it waits for.

Of a GPU the host waits where it asks for a number, where the size of a result depends on values, and where it sends
numbers that it has not laid out for that. Every operation is computed on the CPU, operators by their reference.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from structperc.ops.registration import implementation

aten = torch.ops.aten
READS = {
    aten._local_scalar_dense, aten.item, aten.is_nonzero, aten.equal, aten.nonzero, aten.masked_select, aten.unique_dim,
    aten._unique2, aten.unique_consecutive, aten.bincount, aten._coalesce, aten.coalesce,
}  # fmt: skip
INDEXED = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
AWAY = torch.device("meta")


class Remote(torch.Tensor):
    """A tensor that says to be on a GPU and lies in `here`."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> "Remote":
        strides = None if here.is_sparse else here.stride()
        made = torch.Tensor._make_wrapper_subclass(
            cls, here.shape, dtype=here.dtype, device=AWAY, strides=strides, requires_grad=here.requires_grad
        )
        made.here = here.detach()
        return made

    @property
    def is_sparse(self) -> bool:
        """Wrappers are dense for torch itself."""
        return self.here.is_sparse

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return Host.current.run(function, args, kwargs or {})


class Host(TorchDispatchMode):
    """Sees every operation; `reads` are those that the host waits for."""

    current: "Host"

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(function, args, kwargs or {})

    def run(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if function.namespace == "structperc":
            name = function._schema.name.partition("::")[2]
            with self:
                return implementation("reference", name)(*args)
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        remote = any(isinstance(x, Remote) for x in inputs)
        device = kwargs.get("device")
        to_host = device is not None and device.type == "cpu"
        if waits(function, inputs, args, kwargs, remote, to_host):
            self.reads.append(str(function))
        args, kwargs = tree_map_only(Remote, lambda x: x.here, (args, kwargs))
        if device is not None:
            kwargs = {**kwargs, "device": torch.device("cpu")}
            if function.overloadpacket is aten._to_copy:
                kwargs.pop("layout", None)  # it is that of the wrapper, not of a sparse tensor
        found = function(*args, **kwargs)
        return tree_map_only(Tensor, Remote, found) if (remote or device == AWAY) and not to_host else found


def waits(function: Any, inputs: list[Tensor], args: Any, kwargs: dict[str, Any], remote: bool, to_host: bool) -> bool:
    packet = function.overloadpacket
    if not remote:  # numbers on their way to the device
        return bool(inputs) and kwargs.get("device") == AWAY and not kwargs.get("non_blocking")
    if function is aten.repeat_interleave.Tensor:
        return kwargs.get("output_size") is None
    if packet in INDEXED:
        places = [x for x in args[1] if x is not None]
        return any(x.dtype == torch.bool or not isinstance(x, Remote) for x in places)
    copies = packet is aten.copy_ and not all(isinstance(x, Remote) for x in inputs)
    return packet in READS or to_host or (copies and not (len(args) > 2 and args[2]))


class Literals(TorchFunctionMode):
    """Numbers of the program itself which it sends to the device, `torch.tensor(..., device=...)`."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.host = host

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is Tensor.tolist and isinstance(args[0], Remote):
            self.host.reads.append("Tensor.tolist")
            return args[0].here.tolist()
        made = function in (torch.tensor, torch.as_tensor) and kwargs.get("device") == AWAY
        if made and not isinstance(args[0], Remote):
            self.host.reads.append(f"torch.{function.__name__}")
            return Remote(function(*args, **{**kwargs, "device": "cpu"}))
        if function is Tensor.new_tensor and isinstance(args[0], Remote):
            self.host.reads.append("Tensor.new_tensor")
            return Remote(args[0].here.new_tensor(*args[1:], **kwargs))
        return function(*args, **kwargs)


@contextmanager
def watched() -> Iterator[Host]:
    Host.current = host = Host()
    with host, Literals(host):
        yield host
