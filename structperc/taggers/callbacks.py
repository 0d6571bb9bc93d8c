"""Callbacks that every tagger adds to its trainer, and checks of options that taggers cannot be trained with."""

import logging
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import StochasticWeightAveraging, WeightAveraging
from pytorch_lightning.trainer.states import TrainerFn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, ReduceLROnPlateau

from structperc.criteria import CorpusCriterion, Criterion, Prior
from structperc.datamodules.distributed import all_gather_objects, process_group
from structperc.datamodules.sampler import batches_seen
from structperc.errors import InputError
from structperc.optim import LBFGS, OWLQN, SequentialOptimizers, WarmupDecay
from structperc.optim.base import TrainingProtocol, training_protocol
from structperc.optim.schedules import step_interval

logger = logging.getLogger("pytorch_lightning.structperc")

KEY = "random_states"  # in checkpoints: a list with the states of each process


class EvaluationWeights(pl.Callback):
    """Uses evaluation weights in the validations of a training, and from its end on.

    Evaluation weights are averages, or in full-batch training the weights of lowest objective. The parameters of a
    tagger are training weights only while a trainer fits it, and checkpoints hold both: evaluation weights in the
    `state_dict`, training weights in the states of the optimizers (see `optim.BaseOptimizer`). Other validations, tests
    and predictions therefore use the parameters as they are.
    """

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Use the evaluation weights within a training."""
        if trainer.state.fn == TrainerFn.FITTING:
            for optimizer in trainer.optimizers:
                training_protocol(optimizer).use_evaluation_weights()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Use the training weights again within a training."""
        if trainer.state.fn == TrainerFn.FITTING:
            for optimizer in trainer.optimizers:
                training_protocol(optimizer).use_training_weights()

    on_train_start = on_validation_end  # of an optimizer that a former training has used, too
    on_train_end = on_fit_end = on_validation_start  # a training that has ended already has no on_train_end

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Use the evaluation weights after an interrupted training."""
        self.on_validation_start(trainer, pl_module)


RandomState = dict[str, Any]


class RandomStateCheckpoint(pl.Callback):
    """Saves the states of the random generators of all processes in checkpoints: torch, its device, numpy and Python.

    A resumed run restores them at the start of its first epoch.
    """

    def __init__(self) -> None:
        self._saved: RandomState | None = None
        self._draws_missing = False  # True if the draws of an iterator of mini-batches are missing

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Add the states of all processes, each of which calls this."""
        checkpoint[KEY] = all_gather_objects([random_state(trainer.strategy.root_device)])

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Store the states of this process until the first epoch starts; warn if the checkpoint has none."""
        saved = checkpoint.get(KEY, [])
        if len(saved) == process_group().size:
            self._saved = own = saved[process_group().rank]
            torch.Generator().set_state(own["torch"])  # raises an error unless the states can be restored
            np.random.RandomState().set_state(_numpy_state(own))
            random.Random().setstate(own["python"])
            return
        found = f"random states of {len(saved)} processes" if saved else "no random states"
        logger.warning("the checkpoint has %s: the resumed run will not be reproducible", found)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Restore the states if a run is resumed within an epoch.

        After the last mini-batch of an epoch, Lightning passes over an evaluation, also where the epoch ends without
        one. The iterator that it creates for it then makes the draw of the iterator that is missing.
        """
        seen = batches_seen(trainer)
        if seen is not None:
            interval = trainer.val_check_batch or math.inf
            without = trainer.enable_validation and trainer.num_training_batches % interval != 0
            self._restore(trainer, draws_missing=seen == 0 and not without)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Restore the states at the start of a resumed run's first epoch."""
        self._restore(trainer, draws_missing=True)

    def _restore(self, trainer: pl.Trainer, draws_missing: bool) -> None:
        if self._saved is not None:
            restore_random_state(self._saved, trainer.strategy.root_device)
            self._saved, self._draws_missing = None, draws_missing

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        """Create one more iterator over the batches in a resumed run, for the random numbers that it draws.

        A resumed run creates the iterator that it uses before its states are restored.
        """
        if self._draws_missing and trainer.train_dataloader is not None:
            iter(trainer.train_dataloader)
            self._draws_missing = False


def random_state(device: torch.device) -> RandomState:
    """Return the states of all generators of this process, as tensors and plain values."""
    name, keys, *others = np.random.get_state(legacy=True)
    numbers = torch.from_numpy(np.asarray(keys, np.int64))
    found = {"torch": torch.get_rng_state(), "numpy": (name, numbers, *others), "python": random.getstate()}
    if device.type != "cpu":
        found[device.type] = torch.get_device_module(device).get_rng_state()
    return found


def restore_random_state(saved: RandomState, device: torch.device) -> None:
    """Set all generators of this process; that of a device only if there is a state for its type."""
    torch.set_rng_state(saved["torch"])
    np.random.set_state(_numpy_state(saved))
    random.setstate(saved["python"])
    if device.type in saved:
        torch.get_device_module(device).set_rng_state(saved[device.type])


def _numpy_state(saved: RandomState) -> tuple[Any, ...]:
    name, numbers, *others = saved["numpy"]
    return name, numbers.numpy().astype(np.uint32), *others


SCHEDULER_OPTION = "model.lr_scheduler"
NEVER = 10**9  # epochs between steps of the trainer, for schedules that `PlateauScheduler` steps


def with_scheduler(
    make: Callable[[Optimizer], LRScheduler], optimizer: Optimizer, trainer: pl.Trainer
) -> dict[str, Any]:
    """Return an optimizer and its schedule in the form of `configure_optimizers`.

    Raises InputError for an optimizer without learning rates, and for a schedule that does not fit the training.
    """
    own_steps = training_protocol(optimizer).full_batch or isinstance(optimizer, SequentialOptimizers)
    if own_steps or any("lr" not in group for group in optimizer.param_groups):
        name = type(optimizer).__name__
        raise InputError(f"{SCHEDULER_OPTION}: {name} chooses its step sizes itself; remove the schedule")
    try:
        schedule = make(optimizer)
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{SCHEDULER_OPTION}: {' '.join(str(error).split())}") from error
    _check_length(schedule, trainer)
    if isinstance(schedule, ReduceLROnPlateau):
        if schedule.mode == "max" and not trainer.datamodule.has("dev"):  # type: ignore[attr-defined]
            raise InputError(f"{SCHEDULER_OPTION}: mode max needs development data for dev/score: set mode min")
        counted: dict[str, Any] = {"interval": "epoch", "frequency": NEVER, "reduce_on_plateau": False}
    else:
        counted = {"interval": step_interval(schedule), "frequency": 1}
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, **counted}}


def _check_length(schedule: LRScheduler, trainer: pl.Trainer) -> None:
    """Set the total number of steps in schedules that need it. Raises InputError if it is unknown or different."""
    if not isinstance(schedule, WarmupDecay | OneCycleLR):
        return
    total, name = total_steps(trainer), type(schedule).__name__
    if total is None:
        raise InputError(f"{SCHEDULER_OPTION}: {name} needs a fixed length: set trainer.max_epochs or max_steps")
    if isinstance(schedule, WarmupDecay):
        schedule.plan(total)
    elif schedule.total_steps < total:
        raise InputError(f"{SCHEDULER_OPTION}: set total_steps of {name} to {total}, not {schedule.total_steps}")


def total_steps(trainer: pl.Trainer) -> int | None:
    """Return the number of steps of a training; None if it is unknown.

    The trainer's own estimate creates its loader before a checkpoint is restored, so that a run that is resumed within
    an epoch would begin the epoch again.
    """
    most = None if trainer.max_steps == -1 else trainer.max_steps
    if trainer.max_epochs is None or trainer.max_epochs == -1:
        return most
    batches, limit = len(trainer.datamodule.train_dataloader()), trainer.limit_train_batches  # type: ignore[attr-defined]
    batches = min(batches, limit) if isinstance(limit, int) else int(batches * limit)
    steps = math.ceil(batches / trainer.accumulate_grad_batches) * max(trainer.max_epochs, 1)
    return steps if most is None else min(steps, most)


class PlateauScheduler(pl.Callback):
    """Steps the schedules that wait for a plateau of dev/score (mode max) or of the objective (mode min).

    Each step comes before the checkpoint of the epoch: the trainer would step after it, and a resumed run would miss
    one step.
    """

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Step each such schedule with the score or objective of this epoch."""
        every = trainer.check_val_every_n_epoch or 1
        validated = bool(trainer.enable_validation) and (trainer.current_epoch + 1) % every == 0
        for config in trainer.lr_scheduler_configs:
            schedule = config.scheduler
            if not isinstance(schedule, ReduceLROnPlateau):
                continue
            if schedule.mode == "min":
                schedule.step(pl_module.objective())  # type: ignore[operator]
            elif validated:
                schedule.step(float(trainer.callback_metrics["dev/score"]))


def check_trainer(optimizer: Optimizer, trainer: pl.Trainer) -> None:
    """Raise InputError for options of a trainer that the steps of a full-batch optimizer do not support."""
    made = [optimizer, *getattr(optimizer, "optimizers", ())]
    whole = [type(one).__name__ for one in made if training_protocol(one).full_batch]
    options = {
        "accumulate_grad_batches": (trainer.accumulate_grad_batches != 1, "does not support gradient accumulation"),
        "gradient_clip_val": (bool(trainer.gradient_clip_val), "needs exact gradients"),
        "max_steps": (
            trainer.max_steps != -1 and not trainer.fast_dev_run,  # type: ignore[attr-defined]
            "makes one step per epoch, but max_steps counts mini-batches: set max_epochs",
        ),
    }
    for name, (given, reason) in options.items():
        if whole and given:
            raise InputError(f"trainer.{name}: {whole[-1]} {reason}; remove this option")


def check_steps(optimizer: TrainingProtocol, prior: Prior | None, criterion: Criterion, trainer: pl.Trainer) -> None:
    """Raise InputError for a criterion, prior or checkpoint that does not fit the optimizer's steps of this epoch."""
    if optimizer.full_batch:
        absolute = prior is not None and prior.phi == 1
        if absolute and isinstance(optimizer, LBFGS):
            raise InputError(
                "model.prior.phi is 1, which is not differentiable: remove model.prior and use OWLQN with C"
            )
        if absolute and isinstance(optimizer, OWLQN):
            raise InputError("model.prior.phi is 1, but OWLQN already applies the L1 penalty: remove model.prior")
        if batches_seen(trainer):
            raise InputError(
                "ckpt_path: the checkpoint was saved in the middle of an epoch; full-batch optimizers require one "
                "from the end of an epoch"
            )
    elif isinstance(criterion, CorpusCriterion):
        name = type(criterion).__name__
        if trainer.accumulate_grad_batches != 1:
            raise InputError(
                f"trainer.accumulate_grad_batches: {name} does not support gradient accumulation; set it to 1"
            )
        if process_group().size > 1:
            raise InputError(f"{name} does not support several processes: set trainer.devices: 1")


def check_callbacks(callbacks: Iterable[pl.Callback]) -> None:
    """Raise InputError for Lightning's callbacks that average weights: they copy a tagger before it has weights."""
    for callback in callbacks:
        if isinstance(callback, StochasticWeightAveraging | WeightAveraging):
            name = type(callback).__name__
            raise InputError(
                f"trainer.callbacks: {name} cannot be used; set model.optimizer: structperc.optim.Averaging"
            )
