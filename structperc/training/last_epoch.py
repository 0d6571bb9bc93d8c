"""The checkpoint that interrupted training continues from."""

import os
import shutil
from pathlib import Path

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint


class LastEpoch(ModelCheckpoint):
    """`last.ckpt` after every epoch, replaced in one step.

    ModelCheckpoint's own `save_last` writes only where the epoch is also among the best (Lightning 2.6), so that a
    resumed run would repeat all epochs since then.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(dirpath=folder, filename="last", enable_version_counter=False)

    def _save_checkpoint(self, trainer: pl.Trainer, filepath: str) -> None:
        part, best = f"{filepath}.part", trainer.checkpoint_callback
        if isinstance(best, ModelCheckpoint) and best._last_global_step_saved == trainer.global_step:
            shutil.copyfile(best._last_checkpoint_saved, part)  # the same state, a moment ago; a copy takes a fifth
            self._last_global_step_saved, self._last_checkpoint_saved = trainer.global_step, filepath
        else:
            super()._save_checkpoint(trainer, part)
        os.replace(part, filepath)
