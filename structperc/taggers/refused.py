"""Trainings that would not do what their options say, refused in one line."""

from collections.abc import Iterable

import pytorch_lightning as pl
from pytorch_lightning.callbacks import StochasticWeightAveraging, WeightAveraging

from structperc.batching.processes import share
from structperc.batching.resumable import seen_before
from structperc.criteria import CorpusCriterion, Criterion, Prior
from structperc.errors import InputError
from structperc.optim import LBFGS, OWLQN, Learner


def check_steps(optimizer: Learner, prior: Prior | None, criterion: Criterion, trainer: pl.Trainer) -> None:
    """Raise InputError where what a step of this epoch takes together is not what the criterion or prior needs."""
    if optimizer.full_batch:
        check_full_batch(optimizer, prior, trainer.accumulate_grad_batches)
        if seen_before(trainer):
            raise InputError(
                "ckpt_path: it was written within an epoch, of which a full-batch optimizer needs the whole; "
                "go on from a checkpoint written at the end of an epoch"
            )
    elif isinstance(criterion, CorpusCriterion):
        check_corpus_level(criterion, trainer.accumulate_grad_batches)


def check_full_batch(optimizer: Learner, prior: Prior | None, accumulated: int) -> None:
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
