"""The weights that a tagger is evaluated with: averaged or best ones, while training goes on with the raw ones.

The states of random generators in checkpoints, so that a resumed run draws the numbers of an unbroken one.

Learning-rate schedules in a training: what each of them counts or watches, and what it cannot go with.

Trainings that would not do what their options say, refused in one line.
"""

import logging
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import StochasticWeightAveraging, WeightAveraging
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, ReduceLROnPlateau

from structperc.criteria import CorpusCriterion, Criterion, Prior
from structperc.datamodules.distributed import all_gather_objects, share
from structperc.datamodules.sampler import batches_seen
from structperc.errors import InputError
from structperc.optim import LBFGS, OWLQN, Phases, TrainingProtocol, WarmupDecay, interval, training_protocol


class EvaluationWeights(pl.Callback):
    """Swaps in the weights that optimizers serve while the trainer validates, tests or predicts.

    Served weights are averages, or in full-batch training the weights of lowest objective. Checkpoints are written
    outside of these phases and hold raw weights and the optimizers' states, so that training resumes exactly. The
    tagger adds this callback by itself.
    """

    def __init__(self) -> None:
        self._raw: list[dict[Tensor, Tensor]] = []

    def _swap_in(self, trainer: pl.Trainer) -> None:
        self._raw = [training_protocol(optimizer).use_evaluation_weights() for optimizer in trainer.optimizers]

    def _swap_out(self) -> None:
        for raw in self._raw:
            TrainingProtocol.restore(raw)
        self._raw = []

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the served weights into the tagger before it labels development data."""
        self._swap_in(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the raw weights back, with which training goes on."""
        self._swap_out()

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the served weights into the tagger before it labels test data."""
        self._swap_in(trainer)

    def on_test_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the raw weights back after the test."""
        self._swap_out()

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the served weights into the tagger before it labels data."""
        self._swap_in(trainer)

    def on_predict_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the raw weights back after the prediction."""
        self._swap_out()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Put the raw weights back, so that what is saved after an interruption resumes exactly."""
        self._swap_out()


logger = logging.getLogger("pytorch_lightning.structperc")

KEY = "random_states"  # in checkpoints: a list with the states of each process

RandomState = dict[str, Any]
Checkpoint = dict[str, Any]


class RandomStateCheckpoint(pl.Callback):
    """Keeps in each checkpoint the states of all generators that training may draw from, as it is written.

    They are those of torch, of its device, of numpy and of Python, of each process; in plain types, so that
    checkpoints load with `weights_only`. A resumed run takes them up where its first epoch starts, whatever was drawn
    until then. The tagger adds this callback by itself.
    """

    def __init__(self) -> None:
        self._saved: RandomState | None = None
        self._behind = False  # by the draws of an iterator of mini-batches

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: Checkpoint) -> None:
        """Add the states of the generators of all processes, each of which calls this."""
        checkpoint[KEY] = all_gather_objects([random_state(trainer.strategy.root_device)])

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
        seen = batches_seen(trainer)
        if seen is not None:
            self._restore(trainer, behind=seen == 0)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Set the generators to the remembered states at the start of a resumed run's first epoch."""
        self._restore(trainer, behind=True)

    def _restore(self, trainer: pl.Trainer, behind: bool) -> None:
        if self._saved is not None:
            restore_random_state(self._saved, trainer.strategy.root_device)
            self._saved, self._behind = None, behind

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        """Make an iterator over the batches once in a resumed run, to draw the random number that an unbroken run does.

        A resumed run makes the iterator that it uses before its states are set.
        """
        if self._behind:
            iter(trainer.train_dataloader)  # type: ignore[arg-type]
            self._behind = False


def random_state(device: torch.device) -> RandomState:
    """Return the states of all generators of this process, as tensors and plain numbers."""
    _, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)
    version, words, python_gauss = random.getstate()
    found: RandomState = {
        "torch": torch.get_rng_state(),
        "numpy": {"keys": _tensor(keys), "pos": int(place), "has_gauss": int(has_gauss), "gauss": float(gauss)},
        "python": {"version": version, "words": _tensor(words), "gauss": python_gauss},
    }
    if device.type != "cpu":
        found[device.type] = torch.get_device_module(device).get_rng_state()
    return found


def restore_random_state(saved: RandomState, device: torch.device) -> None:
    """Set all generators of this process; that of a device only if the states hold one for its kind."""
    torch.set_rng_state(saved["torch"])
    np.random.set_state(_numpy(saved))
    random.setstate(_python(saved))
    if device.type in saved:
        torch.get_device_module(device).set_rng_state(saved[device.type])


def check_states(saved: RandomState) -> None:
    """Raise some error unless `restore_random_state` can set the generators to these states."""
    torch.Generator().set_state(saved["torch"])
    np.random.RandomState().set_state(_numpy(saved))
    random.Random().setstate(_python(saved))


def _numpy(saved: RandomState) -> tuple[Any, ...]:
    own = saved["numpy"]
    return "MT19937", own["keys"].numpy().astype(np.uint32), own["pos"], own["has_gauss"], own["gauss"]


def _python(saved: RandomState) -> tuple[Any, ...]:
    own = saved["python"]
    return own["version"], tuple(own["words"].tolist()), own["gauss"]


def _tensor(numbers: Any) -> Tensor:
    return torch.from_numpy(np.asarray(numbers, np.int64))


SCHEDULER_OPTION = "model.lr_scheduler"
NEVER = 10**9  # epochs after which the trainer steps what `PlateauScheduler` steps


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
        raise InputError(f"{SCHEDULER_OPTION}: {' '.join(str(error).split())}") from error
    _plan(schedule, trainer)
    if isinstance(schedule, ReduceLROnPlateau):
        _check_plateau(schedule, trainer)
        counted: dict[str, Any] = {"interval": "epoch", "frequency": NEVER, "reduce_on_plateau": False}
    else:
        counted = {"interval": interval(schedule), "frequency": 1}
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, **counted}}


def check_optimizer(optimizer: Optimizer) -> None:
    """Raise InputError for an optimizer that finds the lengths of its steps itself."""
    own = training_protocol(optimizer).full_batch or isinstance(optimizer, Phases)
    if own or any("lr" not in group for group in optimizer.param_groups):
        raise InputError(
            f"{SCHEDULER_OPTION}: {type(optimizer).__name__} finds the lengths of its steps itself; leave it out"
        )


def _plan(schedule: LRScheduler, trainer: pl.Trainer) -> None:
    """Tell a schedule the number of all steps if it must know them."""
    if not isinstance(schedule, WarmupDecay | OneCycleLR):
        return
    total = trainer.estimated_stepping_batches
    name = type(schedule).__name__
    if total == float("inf"):
        raise InputError(
            f"{SCHEDULER_OPTION}: {name} must know when training ends: set trainer.max_epochs or max_steps"
        )
    if isinstance(schedule, WarmupDecay):
        schedule.plan(int(total))
    elif schedule.total_steps < total:
        raise InputError(
            f"{SCHEDULER_OPTION}: {name} has total_steps {schedule.total_steps}, this training {total}: set it so"
        )


def _check_plateau(schedule: ReduceLROnPlateau, trainer: pl.Trainer) -> None:
    if schedule.mode == "max" and not trainer.datamodule.has("dev"):  # type: ignore[attr-defined]
        raise InputError(
            f"{SCHEDULER_OPTION}: with mode max it watches dev/score, and there is no development data: mode min"
        )


class PlateauScheduler(pl.Callback):
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
            elif has_validated(trainer):
                schedule.step(float(trainer.callback_metrics["dev/score"]))


def has_validated(trainer: pl.Trainer) -> bool:
    """Return whether this epoch has ended with a validation."""
    every = trainer.check_val_every_n_epoch or 1
    return bool(trainer.enable_validation) and (trainer.current_epoch + 1) % every == 0


def check_steps(optimizer: TrainingProtocol, prior: Prior | None, criterion: Criterion, trainer: pl.Trainer) -> None:
    """Raise InputError where what a step of this epoch takes together is not what the criterion or prior needs."""
    if optimizer.full_batch:
        check_full_batch(optimizer, prior, trainer.accumulate_grad_batches)
        if batches_seen(trainer):
            raise InputError(
                "ckpt_path: it was written within an epoch, of which a full-batch optimizer needs the whole; "
                "go on from a checkpoint written at the end of an epoch"
            )
    elif isinstance(criterion, CorpusCriterion):
        check_corpus_level(criterion, trainer.accumulate_grad_batches)


def check_full_batch(optimizer: TrainingProtocol, prior: Prior | None, accumulated: int) -> None:
    """Raise InputError for full-batch training with a prior that its optimizer cannot take, or in parts of an epoch."""
    if accumulated != 1:
        raise InputError("trainer.accumulate_grad_batches must be 1: full-batch optimizers add up all batches")
    kinked = prior is not None and prior.phi == 1
    if kinked and isinstance(optimizer, LBFGS):
        raise InputError("model.prior.phi is 1, whose kinks stop LBFGS: leave model.prior out and use OWLQN with C")
    if kinked and isinstance(optimizer, OWLQN):
        raise InputError("model.prior.phi is 1, and OWLQN has this prior itself: leave model.prior out")


def check_corpus_level(criterion: Criterion, accumulated: int) -> None:
    """Raise InputError for mini-batches of a criterion of the whole corpus that its counts would not fit."""
    name = type(criterion).__name__
    if accumulated != 1:
        raise InputError(f"trainer.accumulate_grad_batches must be 1: {name} counts anew with each mini-batch")
    if share().processes > 1:
        raise InputError(f"{name} takes the corpus' counts from recent batches of one process: trainer.devices: 1")


def check_callbacks(callbacks: Iterable[pl.Callback]) -> None:
    """Raise InputError for Lightning's callbacks that average weights: they copy a tagger before it has any."""
    for callback in callbacks:
        if isinstance(callback, StochasticWeightAveraging | WeightAveraging):
            name = type(callback).__name__
            raise InputError(
                f"trainer.callbacks: {name} does not work here; use model.optimizer structperc.optim.Averaging"
            )
