"""The checkpoint that interrupted training continues from."""

import os
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
        part = f"{filepath}.part"
        super()._save_checkpoint(trainer, part)
        os.replace(part, filepath)
