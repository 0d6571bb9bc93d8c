"""While a GPU learns from a mini-batch, or labels one and counts its mistakes, the host does not wait for it.

It reads at the end of an epoch what is shown then.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.strategies import SingleDeviceStrategy
from torch import Tensor

from structperc.chain import KBest
from structperc.criteria import CRFLoss, Criterion, HingeLoss, MCELoss, Prior
from structperc.encoders import BiLSTM, CharCNN, WordEmbedding
from structperc.features import FeatureExtractor
from structperc.optim import GPD, PassiveAggressive
from structperc.scorers import Neural, SparseLinear
from structperc.taggers import Tagger
from structperc.taggers import tagger as tagger_module
from tests.remote import AWAY, watched
from tests.tiny import EDGE, NODE, Sentences, fit, sentences

BATCHES = 2
READ_AT_LAST = 2 * ["aten._local_scalar_dense.default"]  # whether the sums of the losses and of the weights are numbers


def neural(criterion: Criterion) -> Tagger:
    encoder = BiLSTM([WordEmbedding(6, cutoff=1), CharCNN(5, characters=4)], hidden=8, dropout=0.3)
    return Tagger(None, Neural(encoder), criterion, KBest(2), torch.optim.Adam, prior=Prior(10.0))


def sparse(criterion: Criterion, optimizer: Callable, sparse_grad: bool = True) -> Tagger:
    features = FeatureExtractor(NODE, EDGE, cutoff=1, progress=False)
    return Tagger(features, SparseLinear(sparse_grad=sparse_grad), criterion, KBest(2), optimizer)


CASES = {
    "neural likelihood": lambda: neural(CRFLoss()),
    "PA-I": lambda: sparse(HingeLoss(), lambda p: PassiveAggressive(p, "PA-I", C=0.1)),
    "GPD": lambda: sparse(MCELoss(), lambda p: GPD(p, 1.0, 10.0)),
}


class Away(CPUAccelerator):
    """Takes a model to the device of remote tensors."""

    def setup_device(self, device: torch.device) -> None:
        assert device == AWAY


class Waits(pl.Callback):
    """Says when each mini-batch of training ("train") and of the evaluation ("dev") begins and ends."""

    def __init__(self, begin: Callable[[str], None], end: Callable[[str], None]) -> None:
        self.begin, self.end = begin, end

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        self.begin("train")

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        self.end("train")

    def on_validation_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        self.begin("dev")

    def on_validation_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        self.end("dev")


class TwoSplits(Sentences):
    """The same sentences to learn from and to be evaluated on."""

    def read(self, split: str) -> Any:
        return ("sentences", self.rows) if split in ("train", "dev") else None


def learned(case: str, accelerator: str = "cpu", **options: object) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The weights after two epochs, and the scores."""
    torch.manual_seed(0)
    tagger, data = CASES[case](), TwoSplits(sentences(3 * BATCHES, seed=5), batch_size=3)
    trainer = fit(tagger, data, 2, accelerator=accelerator, num_sanity_val_steps=0, **options)
    return [p.detach() for p in tagger.parameters()], trainer.callback_metrics


@pytest.mark.parametrize("case", CASES)
def test_steps_read_nothing(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagger_module, "sequence_learner", lambda *_: None)  # as there is none for a GPU
    seen: dict[str, list[list[str]]] = {"train": [], "dev": []}
    with watched() as host:
        steps = Waits(lambda split: host.reads.clear(), lambda split: seen[split].append(host.reads[:]))
        away = learned(case, "auto", strategy=SingleDeviceStrategy(AWAY, Away()), callbacks=[steps])
    assert seen["train"] == 2 * [*(BATCHES - 1) * [[]], READ_AT_LAST]
    assert seen["dev"]
    assert not any(seen["dev"])
    torch.testing.assert_close(away, learned(case))


@pytest.mark.parametrize("case", CASES)
def test_steps_do_not_wait_for_a_gpu(case: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    begun = Counter[str]()

    def begin(split: str) -> None:  # the first epoch compiles kernels, and the last step of an epoch may read
        begun[split] += 1
        waiting = begun["train"] <= BATCHES or (split == "train" and begun["train"] == 2 * BATCHES)
        torch.cuda.set_sync_debug_mode("default" if waiting else "error")

    steps = Waits(begin, lambda split: torch.cuda.set_sync_debug_mode("default"))
    try:
        learned(case, "cuda", devices=1, callbacks=[steps])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert begun["train"] == 2 * BATCHES
    assert begun["dev"] > 0
