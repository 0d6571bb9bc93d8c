"""Learning-rate schedules in a training: what each of them counts or watches, and what it cannot go with."""

from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, ReduceLROnPlateau

from structperc.errors import InputError
from structperc.optim import Phases, WarmupDecay, interval, learner

OPTION = "model.lr_scheduler"
NEVER = 10**9  # epochs after which the trainer steps what `Plateaus` steps


def scheduled(make: Callable[[Optimizer], LRScheduler], optimizer: Optimizer, trainer: pl.Trainer) -> dict[str, Any]:
    """Return an optimizer and its schedule as a trainer takes them from `configure_optimizers`.

    Raises InputError for an optimizer without learning rates, and for a schedule that does not fit the training.
    """
    check_optimizer(optimizer)
    try:
        schedule = make(optimizer)
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{OPTION}: {' '.join(str(error).split())}") from error
    _plan(schedule, trainer)
    if isinstance(schedule, ReduceLROnPlateau):
        _check_plateau(schedule, trainer)
        counted: dict[str, Any] = {"interval": "epoch", "frequency": NEVER, "reduce_on_plateau": False}
    else:
        counted = {"interval": interval(schedule), "frequency": 1}
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, **counted}}


def check_optimizer(optimizer: Optimizer) -> None:
    """Raise InputError for an optimizer that finds the lengths of its steps itself."""
    own = learner(optimizer).full_batch or isinstance(optimizer, Phases)
    if own or any("lr" not in group for group in optimizer.param_groups):
        raise InputError(f"{OPTION}: {type(optimizer).__name__} finds the lengths of its steps itself; leave it out")


def _plan(schedule: LRScheduler, trainer: pl.Trainer) -> None:
    """Tell a schedule the number of all steps if it must know them."""
    if not isinstance(schedule, WarmupDecay | OneCycleLR):
        return
    total = trainer.estimated_stepping_batches
    name = type(schedule).__name__
    if total == float("inf"):
        raise InputError(f"{OPTION}: {name} must know when training ends: set trainer.max_epochs or max_steps")
    if isinstance(schedule, WarmupDecay):
        schedule.plan(int(total))
    elif schedule.total_steps < total:
        raise InputError(f"{OPTION}: {name} has total_steps {schedule.total_steps}, this training {total}: set it so")


def _check_plateau(schedule: ReduceLROnPlateau, trainer: pl.Trainer) -> None:
    if schedule.mode == "max" and not trainer.datamodule.has("dev"):  # type: ignore[attr-defined]
        raise InputError(f"{OPTION}: with mode max it watches dev/score, and there is no development data: mode min")


class Plateaus(pl.Callback):
    """Steps the schedules that wait for a plateau: of dev/score with mode max, of the objective with mode min.

    After each epoch that has the number, and before it is saved: the trainer itself would step them after the
    checkpoint, so that a resumed run had missed what it was resumed after. The tagger adds this callback by itself.
    """

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show each such schedule what this epoch came to."""
        for config in trainer.lr_scheduler_configs:
            schedule = config.scheduler
            if not isinstance(schedule, ReduceLROnPlateau):
                continue
            if schedule.mode == "min":
                schedule.step(pl_module.objective())  # type: ignore[operator]
            elif validated(trainer):
                schedule.step(float(trainer.callback_metrics["dev/score"]))


def validated(trainer: pl.Trainer) -> bool:
    """Return whether this epoch has ended with a validation."""
    every = trainer.check_val_every_n_epoch or 1
    return bool(trainer.enable_validation) and (trainer.current_epoch + 1) % every == 0
