"""While a GPU learns from a mini-batch the host does not wait for it; at the end of an epoch it reads what is shown."""

from collections.abc import Callable

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.strategies import SingleDeviceStrategy
from remote import AWAY, watched
from tiny import EDGE, NODE, Sentences, fit, sentences

from structperc.chain import KBest
from structperc.criteria import MCE, Criterion, Hinge, Likelihood, Margin, Perceptron, Prior
from structperc.criteria.measures import SoftMax
from structperc.encoders import BiLSTM, CharCNN, WordEmbedding
from structperc.features import FeatureExtractor
from structperc.optim import GPD, PassiveAggressive
from structperc.optim import Perceptron as PerceptronSteps
from structperc.scorers import Neural, SparseLinear
from structperc.taggers import Tagger

BATCHES = 3
READ_AT_LAST = 2 * ["aten._local_scalar_dense.default"]  # whether the sums of the losses and of the weights are numbers


def neural(criterion: Criterion) -> Tagger:
    encoder = BiLSTM([WordEmbedding(6, cutoff=1), CharCNN(5, characters=4)], hidden=8, dropout=0.3)
    return Tagger(None, Neural(encoder), criterion, KBest(2), torch.optim.Adam, prior=Prior(10.0))


def sparse(criterion: Criterion, optimizer: Callable, sparse_grad: bool = True) -> Tagger:
    features = FeatureExtractor(NODE, EDGE, cutoff=1, progress=False)
    return Tagger(features, SparseLinear(sparse_grad=sparse_grad), criterion, KBest(2), optimizer)


CASES = {
    "neural likelihood": lambda: neural(Likelihood()),
    "neural margin": lambda: neural(Margin(1.0)),
    "all rivals": lambda: sparse(MCE(SoftMax()), torch.optim.Adam, sparse_grad=False),
    "perceptron": lambda: sparse(Perceptron(), PerceptronSteps),
    "PA": lambda: sparse(Hinge(), lambda p: PassiveAggressive(p, "PA")),
    "PA-I": lambda: sparse(Hinge(), lambda p: PassiveAggressive(p, "PA-I", C=0.1)),
    "PA-II": lambda: sparse(Hinge(), lambda p: PassiveAggressive(p, "PA-II")),
    "GPD": lambda: sparse(MCE(), lambda p: GPD(p, 1.0, 10.0)),
}


class Away(CPUAccelerator):
    """Takes a model to the device of remote tensors."""

    def setup_device(self, device: torch.device) -> None:
        assert device == AWAY


class Waits(pl.Callback):
    """Has each training step begin and end with what is to be done then."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self.begin, self.end = begin, end

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        self.begin()

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: object) -> None:
        self.end()


def learned(case: str, accelerator: str = "cpu", **options: object) -> list[torch.Tensor]:
    """The weights after two epochs, the objective and how many sequences asked for an update."""
    torch.manual_seed(0)
    tagger, data = CASES[case](), Sentences(sentences(3 * BATCHES, seed=5), batch_size=3)
    trainer = fit(tagger, data, 2, accelerator=accelerator, **options)
    shown = [trainer.callback_metrics[f"train/{name}"] for name in ("objective", "updates")]
    return [*(p.detach() for p in tagger.parameters()), *shown]


@pytest.mark.parametrize("case", CASES)
def test_training_steps_read_nothing(case: str) -> None:
    seen: list[list[str]] = []
    with watched() as host:
        steps = Waits(host.reads.clear, lambda: seen.append(host.reads[:]))
        away = learned(case, "auto", strategy=SingleDeviceStrategy(AWAY, Away()), callbacks=[steps])
    assert seen == 2 * [*(BATCHES - 1) * [[]], READ_AT_LAST]
    torch.testing.assert_close(away, learned(case))


@pytest.mark.parametrize("case", CASES)
def test_training_steps_do_not_wait_for_a_gpu(case: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    calls = iter(range(2 * BATCHES))

    def begin() -> None:  # the first epoch compiles kernels, and the last step of an epoch may read
        torch.cuda.set_sync_debug_mode("error" if BATCHES <= next(calls) < 2 * BATCHES - 1 else "default")

    steps = Waits(begin, lambda: torch.cuda.set_sync_debug_mode("default"))
    try:
        learned(case, "cuda", devices=1, callbacks=[steps])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert next(calls, None) is None
