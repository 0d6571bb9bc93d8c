"""The weights that a tagger is evaluated with: averaged or best ones, while training goes on with the raw ones."""

import pytorch_lightning as pl
from torch import Tensor

from structperc.optim import Learner, learner


class AveragedWeights(pl.Callback):
    """Swaps in the weights that optimizers serve while the trainer validates, tests or predicts.

    Served weights are averages, or in full-batch training the weights of lowest objective. Checkpoints are written
    outside of these phases and hold raw weights and the optimizers' states, so that training resumes exactly. The
    tagger adds this callback by itself.
    """

    def __init__(self) -> None:
        self._raw: list[dict[Tensor, Tensor]] = []

    def _swap_in(self, trainer: pl.Trainer) -> None:
        self._raw = [learner(optimizer).swap_in() for optimizer in trainer.optimizers]

    def _swap_out(self) -> None:
        for raw in self._raw:
            Learner.restore(raw)
        self._raw = []

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the served weights into the tagger before it labels development data."""
        self._swap_in(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the raw weights back, with which training goes on."""
        self._swap_out()

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the served weights into the tagger before it labels test data."""
        self._swap_in(trainer)

    def on_test_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the raw weights back after the test."""
        self._swap_out()

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the served weights into the tagger before it labels data."""
        self._swap_in(trainer)

    def on_predict_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the raw weights back after the prediction."""
        self._swap_out()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Put the raw weights back, so that what is saved after an interruption resumes exactly."""
        self._swap_out()
