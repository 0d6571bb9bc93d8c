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


class StopWhenConverged(pl.Callback):
    """Stops when the training labelling error has settled; Kazama & Torisawa 2007, §6.1.

    The per-word error on the training data is measured during each epoch with the weights of the moment.
    Training stops once its relative change from epoch to epoch stays below `threshold` for `patience`
    epochs in a row (the paper: 0.0001 and 3). An error of zero that stays zero has settled.
    """

    def __init__(self, threshold: float = 1e-4, patience: int = 3) -> None:
        if threshold < 0 or patience < 1:
            raise InputError(f"StopWhenConverged: threshold >= 0 and patience >= 1 needed, got {threshold}, {patience}")
        self.threshold, self.patience = threshold, patience
        self.previous: float | None = None
        self.settled = 0

    def observe(self, error: float) -> bool:
        """Take the error of one epoch; return whether training should stop."""
        change = float("inf") if self.previous is None else abs(error - self.previous)
        self.settled = self.settled + 1 if change < self.threshold * (self.previous or 0) or change == 0 else 0
        self.previous = error
        return self.settled >= self.patience

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop the trainer when the rule says so."""
        if self.observe(pl_module.training_error()):  # type: ignore[operator]
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to go on counting."""
        return {"previous": self.previous, "settled": self.settled}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the error and the count of a checkpoint."""
        self.previous, self.settled = state_dict["previous"], state_dict["settled"]


class CheckTermination(pl.Callback):
    """Refuses, before the first epoch, a training that nothing would ever end.

    A training is ended by a number of epochs or steps, a time, callbacks that stop it (those of others may), optimizers
    that come to an end by themselves, and the rankers of global re-ranking, which all do. Raises InputError.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Raise InputError if nothing ends the training; by now the optimizers are made."""
        if trainer.max_epochs != -1 or trainer.max_steps != -1:
            return
        can_stop = any(training_protocol(optimizer).can_stop for optimizer in trainer.optimizers)
        if can_stop or isinstance(pl_module, GlobalReranker) or any(map(_may_stop, trainer.callbacks)):  # type: ignore[attr-defined]
            return
        stop = "a callback such as structperc.training.StopWhenConverged"
        raise InputError(
            f"trainer.max_epochs is -1 and nothing else ends training: set it, trainer.max_time, or {stop}"
        )


def _may_stop(callback: pl.Callback) -> bool:
    known = type(callback).__module__.partition(".")[0] in ("structperc", "pytorch_lightning")
    return not known or isinstance(callback, StopWhenConverged | EarlyStopping | Timer)


logger = logging.getLogger("pytorch_lightning.structperc")


class RunSummary(pl.Callback):
    """Says where a run is kept, and how large its data and its model are.

    Args:
        run: its folder.
    """

    def __init__(self, run: Path) -> None:
        self.run = run

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Print the lines, in the first process; all sizes are known by now."""
        assert isinstance(pl_module, BaseTagger)
        if trainer.is_global_zero:
            for line in summary_lines(self.run, trainer.datamodule, pl_module):  # type: ignore[attr-defined]
                logger.info(line)


def summary_lines(run: Path, data: SequenceDataModule, tagger: BaseTagger) -> Iterator[str]:
    """Yield three lines about a run, the encoded corpora of its data, and a tagger whose sizes are known."""
    sizes = [f"{split} {len(data.corpus(split)):,}" for split in ("train", "dev", "test") if data.has(split)]
    yield f"run: {run}"
    yield f"data: {', '.join(sizes)} {data.unit}s"
    yield f"model: {parameters(tagger):,} weights, {counted(len(tagger.labels), 'label')}"
