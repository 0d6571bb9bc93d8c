"""The last good weights of a run whose objective stopped being a number, kept as a saved model."""

import logging
from pathlib import Path

import pytorch_lightning as pl

from structperc.optim import Diverged
from structperc.taggers.checkpoints import load_weights
from structperc.taggers.sequence_tagger import SequenceTagger

logger = logging.getLogger("pytorch_lightning.structperc")


class LastGood(pl.Callback):
    """Saves RUN/model when training diverges: the best weights of a full-batch optimizer, else the last epoch's."""

    def __init__(self, run: Path) -> None:
        self.run = run

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Save the last good weights if training diverged.

        Full-batch optimizers have restored their best ones by now.
        """
        if not isinstance(exception, Diverged) or not trainer.is_global_zero:
            return
        assert isinstance(pl_module, SequenceTagger)
        if not pl_module.full_batch:
            last = self.run / "checkpoints" / "last.ckpt"
            if not last.is_file():
                logger.warning("no epoch was completed: no model is saved")
                return
            load_weights(pl_module, pl_module.vocabulary(), last)
        pl_module.save(self.run / "model")
        logger.warning("model with the last good weights: %s", self.run / "model")
