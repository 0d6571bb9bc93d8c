"""Between a batch's arrival on a device and its labels nothing is read by the host."""

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from structperc.chain import KBest, kbest, log_partition, max_marginals, path_score, viterbi
from structperc.criteria import CRFLoss
from structperc.data import LabelSet, Synthetic
from structperc.features import FeatureExtractor
from structperc.scorers import SparseLinear
from structperc.structures import Batch, Lattice
from structperc.taggers import Tagger
from tests.remote import AWAY, Remote, watched


@pytest.fixture
def sent() -> tuple[Tagger, Batch]:
    """A tagger with edge features and a batch, both away."""
    corpus = Synthetic(train=6, unit="document").corpus("train")
    features = FeatureExtractor(node=["bias", {"of": ["w"], "at": [-1, 0, 1]}], edge=["bias"], progress=False)
    tagger = Tagger(features, SparseLinear(sparse_grad=False), CRFLoss(), KBest(1))
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


def test_reads_are_recorded() -> None:
    with watched() as host:
        x = Remote(torch.arange(3))
        bool(x.sum() > 0)
        x.nonzero()
        x[x > 1]
        torch.repeat_interleave(x)
        x.tolist()
        x.cpu()
        torch.ones(3).to(AWAY)
        torch.tensor([1], device=AWAY)
        x[torch.tensor([0])] = 7
    assert [read.removesuffix(".default") for read in host.reads] == [
        "aten._local_scalar_dense", "aten.nonzero", "aten.index.Tensor", "aten.repeat_interleave.Tensor",
        "Tensor.tolist", "aten._to_copy", "aten._to_copy", "torch.tensor", "aten.index_put_",
    ]  # fmt: skip


def test_other_operations_are_not_recorded() -> None:
    with watched() as host:
        x = Remote(torch.arange(3))
        torch.repeat_interleave(x, output_size=3)
        x[x.flip(0)]
        x.nonzero_static(size=2)
        torch.ones(3).to(AWAY, non_blocking=True)
        x[0] = 7
    assert host.reads == []


def test_labels_are_found_without_a_read(sent: tuple[Tagger, Batch]) -> None:
    tagger, batch = sent
    with watched() as host:
        labels = tagger.decode(batch)
    assert isinstance(labels, Remote)
    assert host.reads == []
    assert labels.here.shape == batch.sentences.shape


def test_losses_and_gradients_without_host_reads(sent: tuple[Tagger, Batch]) -> None:
    tagger, batch = sent
    with watched() as host:
        tagger.criterion(tagger.score_batch(batch)).sum().backward()
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
