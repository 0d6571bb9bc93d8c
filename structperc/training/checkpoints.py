"""The checkpoints of the best and of the last epoch.

The last good weights of a run whose objective stopped being a number, kept as a saved model.

The weights that a training ends with.
"""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from structperc.data.output import atomic_file, write_errors
from structperc.optim import Diverged, training_protocol
from structperc.taggers.base import BaseTagger
from structperc.taggers.checkpoints import load_weights


class BestEpoch(ModelCheckpoint):
    """ModelCheckpoint that saves an epoch which ends with a validation only after all its callbacks have run.

    Otherwise a resumed run would do a part of the epoch's end again.
    """

    def _should_save_on_train_epoch_end(self, trainer: pl.Trainer) -> bool:
        every = trainer.check_val_every_n_epoch
        if self._save_on_train_epoch_end is None and every and trainer.val_check_interval == 1.0:
            return (trainer.current_epoch + 1) % every == 0
        return super()._should_save_on_train_epoch_end(trainer)


class LastEpoch(BestEpoch):
    """The checkpoint `last.ckpt`, written after every epoch, or every n epochs, and when training ends.

    ModelCheckpoint's own `save_last` writes only where the epoch is also among the best (Lightning 2.6), so that a
    resumed run would repeat all epochs since then.
    """

    def __init__(self, folder: str | Path, every_n_epochs: int = 1) -> None:
        super().__init__(
            dirpath=folder,
            filename="last",
            enable_version_counter=False,
            every_n_epochs=every_n_epochs,
            save_on_train_epoch_end=True,  # also where validation is rarer than epochs
        )

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state: a resumed run sees by itself which epoch is the last."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Ignore the state, since `state_dict` keeps nothing."""

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save the last epoch if it was not saved yet, as its number is no multiple of n."""
        if self._last_global_step_saved != trainer.global_step:
            self._save_checkpoint(trainer, self.format_checkpoint_name({}))

    def _save_checkpoint(self, trainer: pl.Trainer, filepath: str) -> None:
        best = trainer.checkpoint_callback
        if isinstance(best, BestEpoch) and best._last_global_step_saved == trainer.global_step:
            # This step's state has just been written; as files are replaced and never changed, one may serve both.
            if trainer.is_global_zero:
                with write_errors(filepath), atomic_file(Path(filepath)) as part:
                    _linked(best._last_checkpoint_saved, part)
            self._last_global_step_saved, self._last_checkpoint_saved = trainer.global_step, filepath
        else:
            super()._save_checkpoint(trainer, filepath)


def _linked(source: str, target: Path) -> None:
    """One file under two names, or a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


logger = logging.getLogger("pytorch_lightning.structperc")


class SaveOnDivergence(pl.Callback):
    """Saves RUN/model when training diverges: the best weights of a full-batch optimizer, else the last epoch's."""

    def __init__(self, run: Path) -> None:
        self.run = run

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Save the last good weights if training diverged.

        Full-batch optimizers have restored their best ones by now.
        """
        if not isinstance(exception, Diverged) or not trainer.is_global_zero:
            return
        assert isinstance(pl_module, BaseTagger)
        if not pl_module.full_batch:
            last = self.run / "checkpoints" / "last.ckpt"
            if not last.is_file():
                logger.warning("no epoch was completed: no model is saved")
                return
            load_weights(pl_module, pl_module.vocabulary(), last)
        pl_module.save(self.run / "model")
        logger.warning("model with the last good weights: %s", self.run / "model")


def serve(trainer: pl.Trainer) -> None:
    """Leave in the model what its optimizers serve: averages, or the weights of the lowest objective."""
    for optimizer in trainer.optimizers:
        training_protocol(optimizer).use_evaluation_weights()


def serve_best(trainer: pl.Trainer, model: BaseTagger, checkpoints: ModelCheckpoint) -> int | None:
    """Leave the weights that are kept in the model; return their epoch, None where none was chosen."""
    path = checkpoints.best_model_path
    if checkpoints.monitor is not None and path:
        return load_weights(model, model.vocabulary(), path)
    serve(trainer)
    return None
