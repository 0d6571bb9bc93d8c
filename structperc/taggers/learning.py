"""What training minimises: the criterion's losses and the prior, in one step per mini-batch or one per epoch.

How long the training part of an epoch takes, in the words in which `fit` tells it.

What is added up over the mini-batches of an epoch, and over all processes.
"""

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from time import perf_counter
from types import MappingProxyType
from typing import Any

import torch
from pytorch_lightning.strategies import ParallelStrategy
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.criteria import CorpusCriterion, Prior, without_autocast
from structperc.criteria.base import best
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import all_reduce_gradients, all_reduce_sum, share
from structperc.errors import InputError
from structperc.online import SequenceLearner
from structperc.optim import Diverged, TrainingProtocol, check_finite, training_protocol
from structperc.structures import Batch, Candidates, Scored
from structperc.taggers.callbacks import check_steps, scheduled
from structperc.taggers.lattice_tagger import LatticeTagger
from structperc.user_code import class_location


class EpochClock:
    """Runs from when it is made to the last mini-batch of an epoch; what is done with development data is not in it."""

    def __init__(self) -> None:
        self._start, self.seconds = perf_counter(), 0.0

    def stop(self) -> None:
        """Stop the clock."""
        self.seconds = perf_counter() - self._start

    def told(self, updates: int) -> str:
        """Return updates and seconds as a person reads them: "1,735 updates in 0.194 s".

        An epoch that is cut short ends now.
        """
        if not self.seconds:
            self.stop()
        return f"{updates:,} updates in {self.seconds:.3f} s"


class EpochSums:
    """Losses, penalties and counts of an epoch.

    Counts are those of this process until `meet`. So are losses and penalties where processes learn apart; else they
    are those of all processes after each mini-batch.

    Args:
        device: of all tensors.
        apart: whether processes learn apart.
    """

    def __init__(self, device: torch.device, apart: bool = False) -> None:
        self.apart = apart
        self.losses = torch.zeros(2, dtype=torch.float64, device=device)  # of sequences; penalties
        self.counts = torch.zeros(3, dtype=torch.int64, device=device)  # updates; wrong tokens; tokens
        self.met = False

    def add(self, own: Tensor) -> None:
        """Add the losses and penalties (2,) float64 of this process's part of a mini-batch."""
        self.losses = self.losses + (own if self.apart else all_reduce_sum(own))

    def count(self, updates: Tensor | int, wrong: Tensor | int = 0, tokens: Tensor | int = 0) -> None:
        """Add updates, tokens whose label in the best candidate is not gold's, and tokens."""
        for i, more in enumerate((updates, wrong, tokens)):
            self.counts[i] += more

    def meet(self) -> None:
        """Add up what processes have by themselves, once: after the last mini-batch.

        It is one message, as each makes all of them wait.
        """
        if self.met:
            return
        self.met = True
        if self.apart:
            met = all_reduce_sum(torch.cat([self.losses, self.counts]))
            self.losses, self.counts = met[:2], met[2:].long()
        else:
            self.counts = all_reduce_sum(self.counts)

    @property
    def updates(self) -> int:
        """The number of updates."""
        return int(self.counts[0])

    @property
    def error(self) -> float:
        """The share of tokens that the best candidate got wrong; NaN without any."""
        _, wrong, tokens = self.counts.tolist()
        return wrong / tokens if tokens else math.nan


logger = logging.getLogger("pytorch_lightning.structperc")

REPORTED = 10  # every so many epochs a full-batch optimizer says how it gets on


class LossTagger(LatticeTagger):
    """Base of taggers that learn by the losses of a criterion, summed over the sequences of a corpus.

    A subclass says what a batch's criterion compares. What is not abstract is final.

    Most optimizers make a step after each mini-batch, with the losses of its sequences and their share of the
    prior. Full-batch optimizers make one step per epoch, with the exact gradient of the whole corpus, to which each
    batch adds its part: memory does not grow with the corpus, and a run may be resumed after every evaluation. For
    criteria of the whole corpus such an epoch makes two passes: one for the totals, one for the gradient.
    """

    prior: Prior | None  # added to the losses of the corpus
    optimizer: Callable[[Iterable[Any]], Optimizer]
    lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None
    online: SequenceLearner | None = None  # learns the sequences of a batch one after the other; None: by gradients
    corpus_size: int | None = None  # sequences that share the prior; None: those of the batch are all
    _step_losses: Mapping[int, Tensor] = MappingProxyType({})  # of the mini-batches since the last step, by number
    _searched: Sequence[Candidates] = ()
    _sums: EpochSums

    @abstractmethod
    def score_batch(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return gold and candidates under the current weights, with gradients.

        Candidates not given are searched for.
        """

    @abstractmethod
    def without_cost(self, batch: Batch, score_batch: Scored) -> Scored:
        """Return the result of `score_batch` with candidates searched by score, without the criterion's cost."""

    @abstractmethod
    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over the weights that learn."""

    @abstractmethod
    def bind_optimizer(self, optimizer: Optimizer, data: SequenceDataModule) -> None:
        """Take note of the optimizer before the first epoch; the tagger may ask the data for another order."""

    def configure_optimizers(self) -> Optimizer | dict[str, Any]:  # type: ignore[override]  # it has its own words
        """Return the optimizer, for a trainer with the schedule of its learning rates if there is one."""
        optimizer = self.new_optimizer()
        if self._trainer is None:
            return optimizer
        self.bind_optimizer(optimizer, self.trainer.datamodule)  # type: ignore[attr-defined]
        return optimizer if self.lr_scheduler is None else scheduled(self.lr_scheduler, optimizer, self.trainer)

    def penalty(self, batch: Batch) -> Tensor | float:
        """Return the batch's share of the prior; in full-batch training the last batch has all of it."""
        if self.prior is None:
            return 0.0
        if not self.full_batch:
            return self.prior(self.parameters()) * (len(batch.lengths) / (self.corpus_size or len(batch.lengths)))
        return self.prior(self.parameters()) if self.trainer.is_last_batch and share().process == 0 else 0.0

    def training_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Return the summed loss of the batch, a scalar; with gradients, unless its sequences were learned online."""
        if self.online is not None:
            return self._learn(self.online, batch, batch_idx)
        score_batch = self.score_batch(batch, self.searched(batch_idx))
        with without_autocast(self.device):  # the scorer alone may run in half precision
            losses, acts = self.criterion.losses_and_updates(score_batch)
        self.count(batch, score_batch, acts)
        return self.add(losses, batch, batch_idx)

    def _learn(self, online: SequenceLearner, batch: Batch, batch_idx: int) -> Tensor:
        learned = online.learn(batch)
        self._sums.count(learned.updates, learned.wrong, batch.lengths.sum())
        return self.add(learned.losses, batch, batch_idx)

    def decode_validation(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the best labels (B, T) int64 of a batch of development data under the weights of now."""
        return self.decode(batch)

    # -- the steps of an epoch -------------------------------------------------------------------------------

    def on_fit_start(self) -> None:
        """Count the training sequences, each of which has an equal share of the prior."""
        data: SequenceDataModule = self.trainer.datamodule  # type: ignore[attr-defined]
        self.corpus_size = len(data.corpus("train"))

    def backward(self, loss: Tensor, *args: Any, **options: Any) -> None:
        """Compute gradients of the undivided sum of losses.

        Lightning divided it by the number of mini-batches of a step. What was learned online has none.
        """
        if self.online is None:
            super().backward(loss * self.trainer.accumulate_grad_batches, *args, **options)

    def on_train_epoch_start(self) -> None:
        """Set the sums of the epoch to zero, and compute totals of the whole corpus where the criterion needs them.

        Optimizers that take turns learn which epoch begins. Raises InputError where a full batch would be divided.
        """
        self._step_losses, self._searched = {}, []
        self.start_sums()
        self._clock = EpochClock()
        optimizer = self._learner()
        optimizer.begin_epoch(self.current_epoch)
        self.full_batch = optimizer.full_batch
        if self._trainer is not None:
            check_steps(optimizer, self.prior, self.criterion, self.trainer)
        if isinstance(self.criterion, CorpusCriterion):
            self.criterion.corpus_size = self.corpus_size
            self.criterion.totals = self._totals() if self.full_batch else None

    def searched(self, batch_idx: int) -> Candidates | None:
        """Return the candidates already found for a batch of this epoch under the present weights, or None."""
        return self._searched[batch_idx] if self._searched else None

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Optimizer) -> None:
        """Clear the gradients before each step.

        Those of a full batch, and those not asked to be sparse, become dense zeros, where they are if they were dense.
        """
        if self.full_batch and batch_idx > 0:
            return
        dense = self.full_batch or not self.scorer.sparse_grad
        for p in self.parameters():
            if not (dense and p.requires_grad):
                p.grad = None
            elif p.grad is None or p.grad.is_sparse:
                p.grad = torch.zeros_like(p)
            else:
                p.grad.zero_()

    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        """Make a step after each batch, or in full-batch training after the last one of the epoch.

        What is learned online has moved the weights when the closure returns. Raises Diverged when an epoch ends with
        weights that are no finite numbers.
        """
        if not self.full_batch:
            if self.online is not None:
                self._here(optimizer_closure)
            else:
                super().optimizer_step(epoch, batch_idx, optimizer, lambda: self._everywhere(optimizer_closure))
                if batch_idx not in self._step_losses:
                    cls = type(getattr(optimizer, "optimizer", optimizer))
                    raise InputError(
                        f"{class_location(cls, 'step')} did not call its closure, which computes the losses: begin "
                        "with loss = closure()"
                    )
            self._step_losses = {}
            if self.trainer.is_last_batch:
                total = torch.stack([p.detach().sum().double() for p in self.parameters()]).sum()
                check_finite(
                    float(total),
                    f"epoch {self.current_epoch + 1}",
                    self._learner().divergence_hint,
                    "sum of the weights",
                )
            return
        self._here(optimizer_closure)
        if self.trainer.is_last_batch:
            all_reduce_gradients(self.parameters())
            try:
                optimizer.step(closure=lambda: torch.tensor(self.objective(), dtype=torch.float64))
            except Diverged as error:
                raise Diverged(f"epoch {self.current_epoch + 1}: {error}") from None

    def add(self, losses: Tensor, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Return what a batch with losses (B,) adds to the objective, and add it to the sums of step and epoch.

        Raises Diverged when the sum of the epoch is not a finite number: at once on a CPU, at the end of the epoch on
        a GPU, which would be waited for at each batch. In full-batch training the optimizer judges the whole sum
        instead, and restores its best weights first.
        """
        data, penalty = losses.sum(), self.penalty(batch)
        loss = data.detach().double()
        own = torch.stack([loss, penalty.detach() if isinstance(penalty, Tensor) else torch.full_like(loss, penalty)])
        self._sums.add(own)
        at_once = self.device.type == "cpu" or self._trainer is None or self.trainer.is_last_batch
        if not self.full_batch and not self._sums.apart and at_once:
            check_finite(
                float(self._sums.losses.sum()), f"epoch {self.current_epoch + 1}", self._learner().divergence_hint
            )
        self._step_losses = {**self._step_losses, batch_idx: own.sum()}
        return data + penalty

    def objective(self) -> float:
        """Return the objective of the epoch: exact in full-batch training, else the sum of what the steps saw."""
        if not isinstance(self.criterion, CorpusCriterion):
            return float(self._sums.losses.sum())
        totals = self.criterion.recent if self.criterion.totals is None else self.criterion.totals
        penalty = float(self._sums.losses[1])
        return float(self.criterion.objective(totals)) + penalty if totals.isfinite().all() else math.nan

    def on_train_epoch_end(self) -> None:
        """Log objective, training error and updates; stop when the optimizer has finished, and print its reason."""
        self._sums.meet()  # where an epoch ends before its last mini-batch
        self.log("train/objective", self.objective(), prog_bar=True)
        if self.online is not None:
            self.epoch_summary = self._clock.told(self._sums.updates)
        stop_reason, status = self._learner().stop_reason, self._learner().status
        if status and (stop_reason or (self.current_epoch + 1) % REPORTED == 0):
            logger.info("epoch %d: %s", self.current_epoch + 1, status)
        if stop_reason:
            logger.info("epoch %d: %s", self.current_epoch + 1, stop_reason)
            self.trainer.should_stop = True
        self.log("train/updates", float(self._sums.updates))
        if self.criterion.min_candidates:
            self.log("train/error", self.training_error(), prog_bar=True)

    # -- what is watched -------------------------------------------------------------------------------------

    def start_sums(self) -> None:
        """Set the sums of the epoch to zero. Processes that learn apart tell each other of theirs when it ends."""
        self._sums = EpochSums(self.device, apart=self.online is not None and share().processes > 1)

    def count(self, batch: Batch, score_batch: Scored, acts: Tensor) -> None:
        """Count the updates (acts, (B,) bool), the wrong tokens of the best candidates and the tokens of this step."""
        if not self.criterion.min_candidates:
            self._sums.count(acts.sum())
            return
        chosen = self._chosen(self.without_cost(batch, score_batch))
        wrong = (chosen != score_batch.gold).sum()  # both are 0 in the padding
        self._sums.count(acts.sum(), wrong, score_batch.lattice.lengths.sum())

    def _chosen(self, score_batch: Scored) -> Tensor:
        labels, valid = score_batch.candidates.labels, score_batch.candidates.valid
        if not self.nonlocal_features:
            return labels[:, 0]
        return labels[torch.arange(len(labels), device=labels.device), best(score_batch, valid)]

    def on_train_batch_end(self, *args: Any) -> None:
        """Add up the sums of all processes at the end of an epoch, and stop its clock."""
        if self.trainer.is_last_batch:
            self._sums.meet()
            self._clock.stop()

    def training_error(self) -> float:
        """Return the share of training tokens that the best candidate got wrong in this epoch; NaN without any.

        The best is that by score alone: a cost draws the search to labellings that nobody would choose.
        """
        return self._sums.error

    # -- how it is done --------------------------------------------------------------------------------------

    def _everywhere(self, closure: Callable[[], Any]) -> Any:
        """The loss of all mini-batches of the step, with gradients, summed over all processes."""
        self._here(closure)
        all_reduce_gradients(self.parameters())
        total = sum(self._step_losses.values(), start=torch.zeros((), dtype=torch.float64, device=self.device))
        return all_reduce_sum(total).to(torch.get_default_dtype())

    def _here(self, closure: Callable[[], Any]) -> Any:
        """The closure's loss, with gradients, of this process: strategies take means, and of dense gradients alone."""
        strategy = self.trainer.strategy
        with strategy.block_backward_sync() if isinstance(strategy, ParallelStrategy) else nullcontext():
            return closure()

    def _learner(self) -> TrainingProtocol:
        """The optimizer, as training asks it; one that says nothing outside of a trainer."""
        made = [] if self._trainer is None else self.trainer.optimizers
        return training_protocol(made[0]) if made else TrainingProtocol()

    @torch.no_grad()
    def _totals(self) -> Tensor:
        """Soft counts, under the current weights, of all that an epoch sees."""
        assert isinstance(self.criterion, CorpusCriterion)
        seen = islice(self.trainer.train_dataloader or (), int(self.trainer.num_training_batches))
        batches: Iterable[Batch] = map(self.trainer.strategy.batch_to_device, seen)
        counts, searched = [], []
        for batch in batches:
            with self.trainer.precision_plugin.train_step_context():  # scores are those that training will see
                score_batch = self.score_batch(batch)
            counts.append(self.criterion.counts(score_batch).double().sum(0))
            searched.append(score_batch.candidates)
        self._searched = searched
        return all_reduce_sum(torch.stack(counts).sum(0))
