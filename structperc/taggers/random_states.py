"""The states of random generators in checkpoints, so that a resumed run draws the numbers of an unbroken one."""

import logging
import random
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from structperc.batching.processes import gathered, share
from structperc.batching.resumable import seen_before

logger = logging.getLogger("pytorch_lightning.structperc")

KEY = "random_states"  # in checkpoints: a list with the states of each process

States = dict[str, Any]
Checkpoint = dict[str, Any]


class RandomStates(pl.Callback):
    """Keeps in each checkpoint the states of all generators that training may draw from, as it is written.

    They are those of torch, of its device, of numpy and of Python, of each process; in plain types, so that
    checkpoints load with `weights_only`. A resumed run takes them up where its first epoch starts, whatever was drawn
    until then. The tagger adds this callback by itself.
    """

    def __init__(self) -> None:
        self._saved: States | None = None
        self._behind = False  # by the draws of an iterator of mini-batches

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: Checkpoint) -> None:
        """Add the states of the generators of all processes, each of which calls this."""
        checkpoint[KEY] = gathered([states(trainer.strategy.root_device)])

    def on_load_checkpoint(self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: Checkpoint) -> None:
        """Remember the states of this process until the first epoch starts.

        Warn if the checkpoint has none that can be used.
        """
        saved = checkpoint.get(KEY, [])
        if len(saved) == share().processes:
            self._saved = saved[share().process]
            check_states(self._saved)
            return
        found = f"random states of {len(saved)} processes" if saved else "no random states"
        logger.warning("the checkpoint has %s: what is random goes on otherwise than without the break", found)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Set the generators to the remembered states where a run goes on within an epoch."""
        seen = seen_before(trainer)
        if seen is not None:
            self._restore(trainer, behind=seen == 0)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Set the generators to the remembered states at the start of a resumed run's first epoch."""
        self._restore(trainer, behind=True)

    def _restore(self, trainer: pl.Trainer, behind: bool) -> None:
        if self._saved is not None:
            restore(self._saved, trainer.strategy.root_device)
            self._saved, self._behind = None, behind

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        """Make an iterator over the batches once in a resumed run, to draw the random number that an unbroken run does.

        A resumed run makes the iterator that it uses before its states are set.
        """
        if self._behind:
            iter(trainer.train_dataloader)  # type: ignore[arg-type]
            self._behind = False


def states(device: torch.device) -> States:
    """Return the states of all generators of this process, as tensors and plain numbers."""
    _, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)
    version, words, python_gauss = random.getstate()
    found: States = {
        "torch": torch.get_rng_state(),
        "numpy": {"keys": _tensor(keys), "pos": int(place), "has_gauss": int(has_gauss), "gauss": float(gauss)},
        "python": {"version": version, "words": _tensor(words), "gauss": python_gauss},
    }
    if device.type != "cpu":
        found[device.type] = torch.get_device_module(device).get_rng_state()
    return found


def restore(saved: States, device: torch.device) -> None:
    """Set all generators of this process; that of a device only if the states hold one for its kind."""
    torch.set_rng_state(saved["torch"])
    np.random.set_state(_numpy(saved))
    random.setstate(_python(saved))
    if device.type in saved:
        torch.get_device_module(device).set_rng_state(saved[device.type])


def check_states(saved: States) -> None:
    """Raise some error unless `restore` can set the generators to these states."""
    torch.Generator().set_state(saved["torch"])
    np.random.RandomState().set_state(_numpy(saved))
    random.Random().setstate(_python(saved))


def _numpy(saved: States) -> tuple[Any, ...]:
    own = saved["numpy"]
    return "MT19937", own["keys"].numpy().astype(np.uint32), own["pos"], own["has_gauss"], own["gauss"]


def _python(saved: States) -> tuple[Any, ...]:
    own = saved["python"]
    return own["version"], tuple(own["words"].tolist()), own["gauss"]


def _tensor(numbers: Any) -> Tensor:
    return torch.from_numpy(np.asarray(numbers, np.int64))
