"""Callbacks of runs: ends of trainings, summaries, and checkpoints of the best and of the last epoch."""

import io
import logging
import os
import shutil
from math import lcm
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, EarlyStopping, ModelCheckpoint, Timer
from pytorch_lightning.plugins.io import TorchCheckpointIO

from structperc.data.output import atomic_file, open_atomic, write_errors
from structperc.datamodules.base import SequenceDataModule
from structperc.encoders import FrozenVectors, Transformer
from structperc.errors import InputError
from structperc.models.checkpoint_files import load_weights, read_checkpoint
from structperc.optim.base import training_protocol
from structperc.optim.full_batch import DivergenceError
from structperc.reranking import GlobalReranker
from structperc.spelling import counted
from structperc.taggers.base import BaseTagger
from structperc.training.report import parameters

logger = logging.getLogger("pytorch_lightning.structperc")


class StopWhenConverged(pl.Callback):
    """Callback that stops when the error on the training data has converged; Kazama & Torisawa 2007, §6.1.

    The per-word error on the training data is measured during each epoch with the current weights. Training stops
    when its relative change from epoch to epoch is below `threshold` for `patience` epochs in a row. A constant error
    of zero has converged.

    Args:
        threshold: Relative change of the error; 0.0001 in the paper.
        patience: Number of epochs; 3 in the paper.

    Raises:
        InputError: `threshold` is negative, or `patience` is below 1.

    Example:
        >>> import pytorch_lightning as pl
        >>> trainer = pl.Trainer(max_epochs=100, callbacks=[StopWhenConverged()], logger=False)
        >>> callback = StopWhenConverged(threshold=0.01, patience=2)
        >>> [callback.observe(error) for error in (0.2, 0.1, 0.0999, 0.0999)]  # what it sees after each epoch
        [False, False, False, True]
    """

    def __init__(self, threshold: float = 1e-4, patience: int = 3) -> None:
        if threshold < 0 or patience < 1:
            given = f"{threshold}, {patience}"
            raise InputError(f"StopWhenConverged: expected threshold >= 0 and patience >= 1, got {given}")
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


class GradualUnfreezing(pl.Callback):
    """Callback that trains more layers of a transformer from epoch to epoch, beginning with the highest ones.

    Howard & Ruder 2018, section 3.2, train the last layer in the first epoch and one more layer in each further epoch.
    The embeddings follow once all layers are trained. What is not part of a transformer, such as the head and the
    transitions, is always trained, and layers that the option `frozen_layers` of an encoder freezes never are. The
    optimizer has all parameters from the beginning, so that schedules of learning rates are not affected.

    Args:
        first: Number of layers that are trained in the first epoch; 0: only the rest of the model.
        step: Number of layers that each further epoch adds.

    Raises:
        InputError: `first` is negative, or `step` is below 1; in training, a model without a transformer.
    """

    def __init__(self, first: int = 1, step: int = 1) -> None:
        if first < 0 or step < 1:
            raise InputError(f"GradualUnfreezing: expected first >= 0 and step >= 1, got {first}, {step}")
        self.first, self.step = first, step

    def frozen_layers(self, epoch: int, layers: int) -> int | None:
        """Return how many of the lowest layers are frozen in an epoch, counted from 0; None: nothing is frozen."""
        frozen = layers - self.first - epoch * self.step
        return frozen if frozen >= 0 else None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Freeze the layers of the first epoch, or of the epoch within which a run is resumed."""
        parts = list(pl_module.modules())
        fixed = {inner for part in parts if isinstance(part, FrozenVectors) for inner in part.modules()}
        encoders = [part for part in parts if isinstance(part, Transformer) and not part.frozen and part not in fixed]
        if not encoders:
            raise InputError("trainer.callbacks: GradualUnfreezing needs a Transformer that is trained; remove it")
        for encoder in encoders:
            frozen = (self.frozen_layers(trainer.current_epoch, encoder.n_layers), encoder.frozen_layers)
            encoder.freeze(max((n for n in frozen if n is not None), default=None))

    on_train_epoch_start = on_train_start


class CheckTermination(pl.Callback):
    """Raises InputError before the first epoch of an endless training.

    A training ends by a number of epochs or steps, a time, callbacks that stop it (also of other libraries),
    optimizers that stop, and the rankers of global re-ranking.
    """

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Raise InputError for an endless training; optimizers exist now."""
        if trainer.max_epochs != -1 or trainer.max_steps != -1:
            return
        if isinstance(pl_module, GlobalReranker) or any(
            training_protocol(optimizer).can_stop for optimizer in trainer.optimizers
        ):
            return
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            packaged = type(callback).__module__.partition(".")[0] in ("structperc", "pytorch_lightning")
            if not packaged or isinstance(callback, StopWhenConverged | EarlyStopping | Timer):
                return
        stop = "a callback such as structperc.training.StopWhenConverged"
        raise InputError(f"trainer.max_epochs is -1 and training would not end: set it, trainer.max_time, or {stop}")


class RunSummary(pl.Callback):
    """Logs the folder of a run, and the sizes of its data and its model.

    Args:
        run: Folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self.run = run

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the lines, in the first process."""
        assert isinstance(pl_module, BaseTagger)
        if trainer.is_global_zero:
            data: SequenceDataModule = trainer.datamodule  # type: ignore[attr-defined]
            sizes = [f"{split} {len(data.corpus(split)):,}" for split in ("train", "dev", "test") if data.has(split)]
            logger.info("run: %s", self.run)
            logger.info("data: %s %ss", ", ".join(sizes), data.unit)
            logger.info("model: %s weights, %s", f"{parameters(pl_module):,}", counted(len(pl_module.labels), "label"))


# -- checkpoints ---------------------------------------------------------------------------------------------


class RunCheckpoints(TorchCheckpointIO):
    """The checkpoint files of a run, written whole or not at all, and read by `read_checkpoint` onto the CPU.

    A run that is resumed in another folder goes on with the best score and file of the interrupted one, which Lightning
    would forget: its best weights are those of an uninterrupted run. If that file is gone, later epochs are compared.

    Args:
        best: The callback that saves the best epoch.

    Attributes:
        written: The file that this process wrote last.
        restoring: True while a checkpoint is being restored, see `RestoringEnds`.
    """

    written: str | Path = ""
    restoring = False

    def __init__(self, best: ModelCheckpoint) -> None:
        super().__init__()
        self.best = best

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write a checkpoint. Raises InputError with the reason if it cannot be written; an older file stays."""
        content = io.BytesIO()  # torch gives no reason when it cannot write to a file
        torch.save(checkpoint, content)
        with write_errors(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            file.write(content.getbuffer())
        self.written = path

    def load_checkpoint(self, path: str | Path, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        """Read a checkpoint."""
        self.restoring = True
        checkpoint = read_checkpoint(path)
        if state := checkpoint["callbacks"].get(self.best.state_key):
            state["dirpath"] = self.best.dirpath
            if not Path(state["best_model_path"]).is_file():
                del checkpoint["callbacks"][self.best.state_key]
        return checkpoint


class RestoringEnds(pl.Callback):
    """Marks the end of restoring a checkpoint: later errors are not errors of the checkpoint.

    Args:
        files: The checkpoint files of the run.
    """

    def __init__(self, files: RunCheckpoints) -> None:
        self.files = files

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Mark the end of restoring."""
        self.files.restoring = False

    on_sanity_check_start = on_validation_start = on_test_start = on_predict_start = on_train_start


def best_epoch_options(options: dict[str, Any], trainer: dict[str, Any]) -> dict[str, Any]:
    """Return options of the ModelCheckpoint that save an epoch with a validation after all its callbacks.

    Otherwise a resumed run would repeat a part of the epoch's end. Options for steps or times are unchanged.
    """
    every = trainer["check_val_every_n_epoch"]
    named = ("every_n_train_steps", "train_time_interval", "save_on_train_epoch_end")
    if not every or trainer["val_check_interval"] not in (None, 1.0) or any(options[n] is not None for n in named):
        return options
    epochs = options["every_n_epochs"]
    if epochs is not None and epochs < 1:  # invalid in ModelCheckpoint, or never
        return options
    return {**options, "every_n_epochs": lcm(epochs or 1, every), "save_on_train_epoch_end": True}


class LastEpoch(Checkpoint):
    """Saves `last.ckpt` after every n-th epoch and when training ends.

    The option `save_last` of ModelCheckpoint writes only epochs that are also among the best (Lightning 2.6), so that a
    resumed run would repeat all later epochs.

    Args:
        folder: Folder of the checkpoints.
        every_n_epochs: Number of epochs between checkpoints; 0: only when training ends.
    """

    def __init__(self, folder: str | Path, every_n_epochs: int = 1) -> None:
        self.path, self.every = Path(folder) / "last.ckpt", every_n_epochs
        self._saved = self._collected = 0  # steps of the last file, and of the last state that any callback saved

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Record the step of a saved state; all processes call this."""
        self._collected = trainer.global_step

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save an epoch."""
        if self.every and (trainer.current_epoch + 1) % self.every == 0:
            self._save(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Save the last epoch if its number is not a multiple of n."""
        self._save(trainer)

    def _save(self, trainer: pl.Trainer) -> None:
        step = trainer.global_step
        if step == self._saved or trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        files = trainer.strategy.checkpoint_io
        if self._collected == step and isinstance(files, RunCheckpoints):
            # Another callback has just written this state; files are replaced and never changed, so a link suffices.
            if trainer.is_global_zero:
                with write_errors(self.path), atomic_file(self.path) as part:
                    try:
                        os.link(files.written, part)
                    except OSError:  # a file system without links
                        shutil.copyfile(files.written, part)
        else:
            trainer.save_checkpoint(self.path, weights_only=False)
        self._saved = step


class SaveOnDivergence(pl.Callback):
    """Saves RUN/model when training diverges: the best weights of a full-batch optimizer, else those of the last epoch.

    Args:
        run: Folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self.run = run

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Save the last good weights; full-batch optimizers have already restored their best ones."""
        if not isinstance(exception, DivergenceError) or not trainer.is_global_zero:
            return
        assert isinstance(pl_module, BaseTagger)
        if not pl_module.full_batch:
            last = self.run / "checkpoints" / "last.ckpt"
            if not last.is_file():
                logger.warning("training stopped before the first epoch was completed; no model was saved")
                return
            load_weights(pl_module, last)
        pl_module.save(self.run / "model")
        logger.warning("model with the last good weights: %s", self.run / "model")


def use_best_weights(model: BaseTagger, checkpoints: ModelCheckpoint) -> int | None:
    """Load the weights of the best epoch into the model; return that epoch, or None without a selection."""
    path = checkpoints.best_model_path
    return load_weights(model, path) if checkpoints.monitor is not None and path else None
