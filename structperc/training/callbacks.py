"""Callbacks that end a training, check that it ends, and print its summary before the first epoch."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import EarlyStopping, Timer

from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.optim import training_protocol
from structperc.reranking import GlobalReranker
from structperc.spelling import counted
from structperc.taggers.base import BaseTagger
from structperc.training.report import parameters

logger = logging.getLogger("pytorch_lightning.structperc")


class StopWhenConverged(pl.Callback):
    """Stops when the error on the training data has converged; Kazama & Torisawa 2007, §6.1.

    The per-word error on the training data is measured during each epoch with the current weights. Training stops
    when its relative change from epoch to epoch is below `threshold` for `patience` epochs in a row (the paper: 0.0001
    and 3). A constant error of zero has converged.
    """

    def __init__(self, threshold: float = 1e-4, patience: int = 3) -> None:
        if threshold < 0 or patience < 1:
            found = f"{threshold}, {patience}"
            raise InputError(f"StopWhenConverged: expected threshold >= 0 and patience >= 1, got {found}")
        self.threshold, self.patience = threshold, patience
        self.previous: float | None = None
        self.steady = 0

    def observe(self, error: float) -> bool:
        """Record the error of one epoch; return True if training should stop."""
        change = float("inf") if self.previous is None else abs(error - self.previous)
        self.steady = self.steady + 1 if change < self.threshold * (self.previous or 0) or change == 0 else 0
        self.previous = error
        return self.steady >= self.patience

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop the trainer if the error has converged."""
        if self.observe(pl_module.training_error()):  # type: ignore[operator]
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """Return the error and the count."""
        return {"previous": self.previous, "steady": self.steady}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the error and the count of a checkpoint."""
        self.previous, self.steady = state_dict["previous"], state_dict["steady"]


class CheckTermination(pl.Callback):
    """Raises InputError before the first epoch of an endless training.

    A training ends by a number of epochs or steps, a time, callbacks that stop it (also of other libraries),
    optimizers that stop, and the rankers of global re-ranking.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Raise InputError for an endless training; optimizers exist now."""
        if trainer.max_epochs != -1 or trainer.max_steps != -1:
            return
        can_stop = any(training_protocol(optimizer).can_stop for optimizer in trainer.optimizers)
        if can_stop or isinstance(pl_module, GlobalReranker) or any(map(_may_stop, trainer.callbacks)):  # type: ignore[attr-defined]
            return
        stop = "a callback such as structperc.training.StopWhenConverged"
        raise InputError(f"trainer.max_epochs is -1 and training would not end: set it, trainer.max_time, or {stop}")


def _may_stop(callback: pl.Callback) -> bool:
    """Return True for callbacks that stop a training, and for all of other libraries."""
    known = type(callback).__module__.partition(".")[0] in ("structperc", "pytorch_lightning")
    return not known or isinstance(callback, StopWhenConverged | EarlyStopping | Timer)


class RunSummary(pl.Callback):
    """Logs the folder of a run, and the sizes of its data and its model.

    Args:
        run: folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self.run = run

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the lines, in the first process."""
        assert isinstance(pl_module, BaseTagger)
        if trainer.is_global_zero:
            for line in summary_lines(self.run, trainer.datamodule, pl_module):  # type: ignore[attr-defined]
                logger.info(line)


def summary_lines(run: Path, data: SequenceDataModule, tagger: BaseTagger) -> Iterator[str]:
    """Yield three lines about a run, its data and its tagger."""
    sizes = [f"{split} {len(data.corpus(split)):,}" for split in ("train", "dev", "test") if data.has(split)]
    yield f"run: {run}"
    yield f"data: {', '.join(sizes)} {data.unit}s"
    yield f"model: {parameters(tagger):,} weights, {counted(len(tagger.labels), 'label')}"
