"""Checks of a trainer and its data before training and evaluation."""

import os
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.accelerators import CPUAccelerator

from structperc.data.label_sets import ALLOWED, first_label_set, is_incomplete
from structperc.data.normalise import check_known_labels, warn_unknown_labels
from structperc.datamodules.base import SPLITS, SequenceDataModule
from structperc.errors import InputError
from structperc.lightning_internals import starts_commands


def check_labels(tagger: Any, data: SequenceDataModule, stage: str) -> None:
    """Raise InputError for incomplete or unknown labels; warn of those that occur only in evaluation."""
    for split in SPLITS if stage == "fit" else (stage.replace("validate", "dev"),):
        if data.has(split) and is_incomplete(corpus := data.corpus(split)):
            place = corpus.where(corpus.columns[ALLOWED].index(first_label_set(corpus)))
            if split != "train":
                raise InputError(f"{place}: incomplete labels cannot be evaluated; give a {split} file without sets")
            tagger.check_incomplete(place)
    for split in ("train", "dev") if stage == "fit" else ():
        if data.has(split):
            check_known_labels(data.corpus(split), tagger.labels)
    evaluated = {"fit": "test", "validate": "dev", "test": "test"}.get(stage)
    if evaluated is not None and data.has(evaluated):
        warn_unknown_labels(data.corpus(evaluated), tagger.labels)


def check_processes(tagger: Any, trainer: pl.Trainer) -> None:
    """Raise InputError for a trainer with several processes that cannot train the tagger together."""
    if trainer.world_size == 1:
        return
    if not tagger.supports_distributed:
        raise InputError(f"{type(tagger).__name__} cannot be trained by several processes: set trainer.devices: 1")
    processors = os.cpu_count() or 1
    if isinstance(trainer.accelerator, CPUAccelerator) and trainer.num_devices > max(2, processors):
        raise InputError(f"trainer.devices is {trainer.num_devices}, but there are {processors} processors")
    if not starts_commands(trainer.strategy):
        raise InputError("training with several processes requires trainer.strategy: ddp")
