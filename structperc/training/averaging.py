"""Averaged weights for everything that is looked at; raw weights for everything that learns."""

from typing import Any

import pytorch_lightning as pl
from torch import Tensor

from structperc.optim.averaged import AveragedOptimizer


class AveragedWeights(pl.Callback):
    """Swaps the optimizers' averages in while the trainer validates, tests or predicts, and back out after it.

    Checkpoints are written outside of these phases and hold raw weights and sums, so that training resumes
    exactly. The tagger adds this callback by itself.
    """

    def __init__(self) -> None:
        self._raw: list[dict[Tensor, Tensor]] = []

    def _swap_in(self, trainer: pl.Trainer, *_: Any) -> None:
        optimizers = [o for o in trainer.optimizers if isinstance(o, AveragedOptimizer)]
        self._raw = [optimizer.swap_in_average() for optimizer in optimizers]

    def _swap_out(self, *_: Any) -> None:
        for raw in self._raw:
            AveragedOptimizer.restore(raw)
        self._raw = []

    on_validation_start = on_test_start = on_predict_start = _swap_in
    on_validation_end = on_test_end = on_predict_end = on_exception = _swap_out

