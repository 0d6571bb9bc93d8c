"""Between a batch's arrival on a device and its labels nothing is read by the host.

Tensors that say to be on another device, whose every operation is seen: those that give the host a number, or whose
results have a size that depends on values, would make it wait. Operators run by their reference in tensors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from structperc.chain import KBest, kbest, log_partition, max_marginals, path_score, viterbi
from structperc.criteria import Likelihood
from structperc.data import LabelSet, Synthetic
from structperc.features import FeatureExtractor
from structperc.ops.declare import implementation
from structperc.scorers import SparseLinear
from structperc.structures import Batch, Lattice
from structperc.taggers import Tagger

aten = torch.ops.aten
READS = {
    aten._local_scalar_dense, aten.item, aten.is_nonzero, aten.equal, aten.nonzero, aten.masked_select, aten.unique_dim,
    aten._unique2, aten.unique_consecutive, aten.bincount,
}  # fmt: skip
MODULES = {"best_before_and_after": "best", "push_back": "best", "sample": "sampling", "path_score": "paths",
           "path_counts": "paths", "log_following": "following", "following_shares": "following"}  # fmt: skip
AWAY = torch.device("meta")


class Remote(torch.Tensor):
    """A tensor that says to be on a GPU and lies in `here`."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> "Remote":
        made = torch.Tensor._make_wrapper_subclass(
            cls, here.shape, dtype=here.dtype, device=AWAY, strides=here.stride(), requires_grad=here.requires_grad
        )
        made.here = here.detach()
        return made

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
                return implementation("tensors", MODULES.get(name, name), name)(*args)
        inputs = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        away = any(isinstance(x, Remote) for x in inputs) or kwargs.get("device") == AWAY
        to_host = "device" in kwargs and kwargs["device"] is not None and kwargs["device"].type == "cpu"
        if any(isinstance(x, Remote) for x in inputs) and (function.overloadpacket in READS or to_host):
            self.reads.append(str(function))
        args, kwargs = tree_map_only(Remote, lambda x: x.here, (args, kwargs))
        if "device" in kwargs:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        found = function(*args, **kwargs)
        return tree_map_only(Tensor, Remote, found) if away and not to_host else found


@contextmanager
def watched() -> Iterator[Host]:
    Host.current = host = Host()
    with host:
        yield host


@pytest.fixture
def sent() -> tuple[Tagger, Batch]:
    """A tagger with edge features and a batch, both away."""
    corpus = Synthetic(train=6, unit="document").corpus("train")
    features = FeatureExtractor(node=["bias", {"of": ["w"], "at": [-1, 0, 1]}], edge=["bias"], progress=False)
    tagger = Tagger(features, SparseLinear(sparse_grad=False), Likelihood(), KBest(1))
    features.fit(corpus)
    tagger.allocate(LabelSet.from_corpus(corpus.columns["label"], "IOB2"))
    batch = tagger.encode(corpus)[torch.tensor([0, 3, 1])]
    for module in tagger.modules():
        for table in (module._parameters, module._buffers):
            for name, x in table.items():
                if x is not None:
                    table[name] = Remote(torch.randn_like(x) if x.is_floating_point() else x).requires_grad_(
                        x.requires_grad
                    )
    return tagger, tree_map_only(Tensor, Remote, batch)


def test_reads_are_seen() -> None:
    with watched() as host:
        x = Remote(torch.arange(3))
        bool(x.sum() > 0)
        x.nonzero()
        x.cpu()
    assert host.reads == ["aten._local_scalar_dense.default", "aten.nonzero.default", "aten._to_copy.default"]


def test_labels_are_found_without_a_read(sent: tuple[Tagger, Batch]) -> None:
    tagger, batch = sent
    with watched() as host:
        labels = tagger.decode(batch)
    assert isinstance(labels, Remote)
    assert host.reads == []
    assert labels.here.shape == batch.sentences.shape


def test_losses_and_gradients_are_found_without_a_read(sent: tuple[Tagger, Batch]) -> None:
    tagger, batch = sent
    with watched() as host:
        tagger.criterion(tagger.scored(batch)).sum().backward()
    assert host.reads == []
    assert tagger.scorer.node.grad.here.any()


def test_a_gpu_is_not_waited_for() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    torch.manual_seed(0)
    tables = torch.randn(8, 30, 9, requires_grad=True), torch.randn(1, 1, 9, 9), torch.randint(31, (8,))
    lattice = Lattice(*(x.cuda() for x in tables))
    measures = (viterbi, lambda x: kbest(x, 20), log_partition, max_marginals, lambda x: path_score(x, viterbi(x)[1]))
    for measure in measures:  # compiles the kernels
        measure(lattice)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for measure in measures:
            measure(lattice)
        (log_partition(lattice) - path_score(lattice, viterbi(lattice)[1])).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
