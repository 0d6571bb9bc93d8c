"""What training minimises: the criterion's losses and the prior, in one step per mini-batch or one per epoch."""

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from types import MappingProxyType
from typing import Any

import torch
from pytorch_lightning.strategies import ParallelStrategy
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.batching.processes import share, sum_gradients, summed
from structperc.batching.sequence_data import SequenceData
from structperc.criteria import CorpusCriterion, Prior, full_precision
from structperc.criteria.base import best
from structperc.errors import InputError
from structperc.online import SequenceLearner
from structperc.optim import Diverged, Learner, check_finite, learner
from structperc.own_parts import place_of
from structperc.structures import Batch, Candidates, Scored
from structperc.taggers.epoch_clock import EpochClock
from structperc.taggers.epoch_sums import EpochSums
from structperc.taggers.lattice_tagger import LatticeTagger
from structperc.taggers.refused import check_steps
from structperc.taggers.schedules import scheduled

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
    def scored(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return gold and candidates under the current weights, with gradients.

        Candidates not given are searched for.
        """

    @abstractmethod
    def without_cost(self, batch: Batch, scored: Scored) -> Scored:
        """Return what `scored` would be if candidates were searched by score alone, without the criterion's cost."""

    @abstractmethod
    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over the weights that learn."""

    @abstractmethod
    def learn_with(self, optimizer: Optimizer, data: SequenceData) -> None:
        """Take note of the optimizer before the first epoch; the tagger may ask the data for another order."""

    def configure_optimizers(self) -> Optimizer | dict[str, Any]:  # type: ignore[override]  # it has its own words
        """Return the optimizer, for a trainer with the schedule of its learning rates if there is one."""
        optimizer = self.new_optimizer()
        if self._trainer is None:
            return optimizer
        self.learn_with(optimizer, self.trainer.datamodule)  # type: ignore[attr-defined]
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
        scored = self.scored(batch, self.searched(batch_idx))
        with full_precision(self.device):  # the scorer alone may run in half precision
            losses, acts = self.criterion.judge(scored)
        self.count(batch, scored, acts)
        return self.add(losses, batch, batch_idx)

    def _learn(self, online: SequenceLearner, batch: Batch, batch_idx: int) -> Tensor:
        learned = online.learn(batch)
        self._sums.count(learned.updates, learned.wrong, batch.lengths.sum())
        return self.add(learned.losses, batch, batch_idx)

    def validated(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the best labels (B, T) int64 of a batch of development data under the weights of now."""
        return self.decode(batch)

    # -- the steps of an epoch -------------------------------------------------------------------------------

    def on_fit_start(self) -> None:
        """Count the training sequences, each of which has an equal share of the prior."""
        data: SequenceData = self.trainer.datamodule  # type: ignore[attr-defined]
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
                        f"{place_of(cls, 'step')} did not call its closure, which computes the losses: begin with "
                        "loss = closure()"
                    )
            self._step_losses = {}
            if self.trainer.is_last_batch:
                total = torch.stack([p.detach().sum().double() for p in self.parameters()]).sum()
                check_finite(
                    float(total), f"epoch {self.current_epoch + 1}", self._learner().advice, "sum of the weights"
                )
            return
        self._here(optimizer_closure)
        if self.trainer.is_last_batch:
            sum_gradients(self.parameters())
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
            check_finite(float(self._sums.losses.sum()), f"epoch {self.current_epoch + 1}", self._learner().advice)
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
            self.epoch_note = self._clock.told(self._sums.updates)
        finished, news = self._learner().finished, self._learner().news
        if news and (finished or (self.current_epoch + 1) % REPORTED == 0):
            logger.info("epoch %d: %s", self.current_epoch + 1, news)
        if finished:
            logger.info("epoch %d: %s", self.current_epoch + 1, finished)
            self.trainer.should_stop = True
        self.log("train/updates", float(self._sums.updates))
        if self.criterion.rivals_needed:
            self.log("train/error", self.training_error(), prog_bar=True)

    # -- what is watched -------------------------------------------------------------------------------------

    def start_sums(self) -> None:
        """Set the sums of the epoch to zero. Processes that learn apart tell each other of theirs when it ends."""
        self._sums = EpochSums(self.device, apart=self.online is not None and share().processes > 1)

    def count(self, batch: Batch, scored: Scored, acts: Tensor) -> None:
        """Count the updates (acts, (B,) bool), the wrong tokens of the best candidates and the tokens of this step."""
        if not self.criterion.rivals_needed:
            self._sums.count(acts.sum())
            return
        chosen = self._chosen(self.without_cost(batch, scored))
        wrong = (chosen != scored.gold).sum()  # both are 0 in the padding
        self._sums.count(acts.sum(), wrong, scored.lattice.lengths.sum())

    def _chosen(self, scored: Scored) -> Tensor:
        labels, valid = scored.candidates.labels, scored.candidates.valid
        if not self.nonlocal_features:
            return labels[:, 0]
        return labels[torch.arange(len(labels), device=labels.device), best(scored, valid)]

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
        sum_gradients(self.parameters())
        total = sum(self._step_losses.values(), start=torch.zeros((), dtype=torch.float64, device=self.device))
        return summed(total).to(torch.get_default_dtype())

    def _here(self, closure: Callable[[], Any]) -> Any:
        """The closure's loss, with gradients, of this process: strategies take means, and of dense gradients alone."""
        strategy = self.trainer.strategy
        with strategy.block_backward_sync() if isinstance(strategy, ParallelStrategy) else nullcontext():
            return closure()

    def _learner(self) -> Learner:
        """The optimizer, as training asks it; one that says nothing outside of a trainer."""
        made = [] if self._trainer is None else self.trainer.optimizers
        return learner(made[0]) if made else Learner()

    @torch.no_grad()
    def _totals(self) -> Tensor:
        """Soft counts, under the current weights, of all that an epoch sees."""
        assert isinstance(self.criterion, CorpusCriterion)
        seen = islice(self.trainer.train_dataloader or (), int(self.trainer.num_training_batches))
        batches: Iterable[Batch] = map(self.trainer.strategy.batch_to_device, seen)
        counts, searched = [], []
        for batch in batches:
            with self.trainer.precision_plugin.train_step_context():  # scores are those that training will see
                scored = self.scored(batch)
            counts.append(self.criterion.counts(scored).double().sum(0))
            searched.append(scored.candidates)
        self._searched = searched
        return summed(torch.stack(counts).sum(0))
