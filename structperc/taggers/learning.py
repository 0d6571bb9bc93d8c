"""Training methods of taggers: by gradients, by full batches, or one sequence at a time."""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from itertools import islice
from time import perf_counter
from typing import Any

import torch
from pytorch_lightning.strategies import ParallelStrategy
from torch import Tensor, nn
from torch.optim import Optimizer

from structperc.criteria import CorpusCriterion
from structperc.criteria.base import best, is_allowed, without_autocast
from structperc.datamodules.base import BatchForm
from structperc.datamodules.distributed import all_reduce_gradients, all_reduce_sum, process_group
from structperc.errors import InputError
from structperc.online.learner import SequenceLearner
from structperc.optim.full_batch import TRAINED, DivergenceError, check_finite
from structperc.optim.lazy import row_gradients
from structperc.structures import Batch, Candidates, FlatBatch, Scored, real_tokens
from structperc.taggers.callbacks import check_steps
from structperc.torch_internals import sparse_values
from structperc.user_code import class_location

REPORT_EVERY = 10  # epochs between reports of full-batch optimizers

logger = logging.getLogger("pytorch_lightning.structperc")


class EpochStatistics:
    """Losses, penalties, counts and duration of an epoch.

    Counts cover this process until `sync`. So do losses and penalties if processes learn independently; otherwise they
    are summed over all processes after each mini-batch.

    Args:
        device: Device of all tensors.
        independent: True if processes learn independently.
    """

    def __init__(self, device: torch.device, independent: bool = False) -> None:
        self.independent, self.synced = independent, False
        self.losses = torch.zeros(2, dtype=torch.float64, device=device)  # losses of sequences; penalties
        self.counts = torch.zeros(3, dtype=torch.int64, device=device)  # updates; wrong tokens; tokens
        self._start, self.seconds = perf_counter(), 0.0

    def add(self, own: Tensor) -> None:
        """Add the losses and penalties (2,) float64 of this process's part of a mini-batch."""
        self.losses = self.losses + (own if self.independent else all_reduce_sum(own))

    def count(self, updates: Tensor | int, wrong: Tensor | int = 0, tokens: Tensor | int = 0) -> None:
        """Add updates, wrong tokens of the best candidates, and tokens."""
        for i, more in enumerate((updates, wrong, tokens)):
            self.counts[i] += more

    def sync(self) -> None:
        """Sum over all processes, once, after the last mini-batch."""
        if self.synced:
            return
        self.synced = True
        if self.independent:
            total = all_reduce_sum(torch.cat([self.losses, self.counts]))
            self.losses, self.counts = total[:2], total[2:].long()
        else:
            self.counts = all_reduce_sum(self.counts)

    @property
    def updates(self) -> int:
        """The number of updates."""
        return int(self.counts[0])

    @property
    def error(self) -> float:
        """The share of tokens that are wrong in the best candidate; NaN without tokens."""
        _, wrong, tokens = self.counts.tolist()
        return wrong / tokens if tokens else math.nan

    def stop_clock(self) -> None:
        """Measure the seconds since the start of the epoch."""
        self.seconds = perf_counter() - self._start

    def summary(self) -> str:
        """Return updates and seconds: "1,735 updates in 0.194 s"; stops the clock if it runs."""
        if not self.seconds:
            self.stop_clock()
        return f"{self.updates:,} updates in {self.seconds:.3f} s"


class TrainingMethod(ABC):
    """Base class of training methods, which implement the hooks of a tagger for its trainer.

    Args:
        tagger: the `Tagger` that learns.
    """

    full_batch = False  # True if the optimizer makes one step per epoch
    batch_form: BatchForm = "padded"  # form of the training batches
    independent = False  # True if processes learn independently between syncs

    def __init__(self, tagger: Any) -> None:
        self.tagger = tagger
        self.reset()

    def begin_epoch(self) -> None:
        """Prepare for an epoch."""
        self.reset()

    def reset(self) -> None:
        """Reset the sums and the clock of an epoch."""
        self.sums = EpochStatistics(self.tagger.device, self.independent)
        self.step_losses: dict[int, Tensor] = {}  # loss of each mini-batch since the last step, by number

    @abstractmethod
    def step(self, batch: Any, batch_idx: int) -> Tensor | None:
        """Learn from a batch; return its summed loss, a scalar, if Lightning makes the step."""

    def optimizer_step(self, batch_idx: int, optimizer: Any, closure: Callable[[], Any]) -> None:
        """Make the optimizer's step of this batch, if any; `closure` computes its loss and gradients."""
        raise NotImplementedError(f"{type(self).__name__} does not use optimizer steps")

    def backward(self, loss: Tensor, *args: Any, **options: Any) -> None:
        """Compute gradients of the undivided sum of losses; Lightning divides it by the number of mini-batches."""
        loss = loss * self.tagger.trainer.accumulate_grad_batches
        loss.backward(*args, **options)

    def zero_grad(self, batch_idx: int) -> None:
        """Clear the gradients before a step; gradients that must not be sparse become dense zeros, in place."""
        for p in self.tagger.parameters():
            if not ((self.full_batch or not self.tagger.scorer.sparse_grad) and p.requires_grad):
                p.grad = None
            elif p.grad is None or p.grad.is_sparse:
                p.grad = torch.zeros_like(p)
            else:
                p.grad.zero_()

    def end_batch(self, last: bool) -> None:
        """Sum the counts of all processes at the end of an epoch, and stop its clock."""
        if last:
            self.sums.sync()
            self.sums.stop_clock()

    def end_epoch(self) -> None:
        """Log objective, training error and updates; stop when the optimizer has finished, and log its reason."""
        tagger, optimizer = self.tagger, self.tagger.training_protocol()
        self.sums.sync()  # where an epoch ends before its last mini-batch
        tagger.log_value("train/objective", self.objective(), prog_bar=True)
        reason, status, epoch = optimizer.stop_reason, optimizer.status, tagger.current_epoch + 1
        if status and (reason or epoch % REPORT_EVERY == 0):
            logger.info("epoch %d: %s", epoch, status)
        self.stop(reason)
        tagger.log_value("train/updates", float(self.sums.updates))
        if tagger.criterion.min_candidates:
            tagger.log_value("train/error", self.sums.error, prog_bar=True)

    def stop(self, reason: str | None) -> None:
        """Stop training if there is a reason, and log it."""
        if reason:
            logger.info("epoch %d: %s", self.tagger.current_epoch + 1, reason)
            self.tagger.trainer.should_stop = True

    def penalty(self, batch: Batch | FlatBatch) -> Tensor | float:
        """Return the share of a batch in the penalty of the prior."""
        tagger = self.tagger
        if tagger.prior is None:
            return 0.0
        sequences = len(batch.lengths)
        return tagger.prior(tagger.parameters()) * (sequences / (tagger.corpus_size or sequences))

    def add(self, losses: Tensor, batch: Batch | FlatBatch, batch_idx: int = 0) -> Tensor:
        """Return the objective of a batch with losses (B,), and add it to the sums of step and epoch.

        Raises DivergenceError when the sum of the epoch is not finite: after each batch on a CPU, at the end of the
        epoch on a GPU, to avoid waiting for it. In full-batch training the optimizer checks the whole sum, and restores
        its best weights first.
        """
        tagger = self.tagger
        data, penalty = losses.sum(), self.penalty(batch)
        loss = data.detach().double()
        own = torch.stack([loss, penalty.detach() if isinstance(penalty, Tensor) else torch.full_like(loss, penalty)])
        self.sums.add(own)
        now = tagger.device.type == "cpu" or tagger.attached_trainer is None or tagger.trainer.is_last_batch
        if not self.full_batch and not self.independent and now:
            self._check_finite(float(self.sums.losses.sum()), "objective")
        self.step_losses[batch_idx] = own.sum()
        return data + penalty

    def objective(self) -> float:
        """Return the objective of the epoch: exact in full-batch training, else the sum of the losses of its steps."""
        criterion = self.tagger.criterion
        if not isinstance(criterion, CorpusCriterion):
            return float(self.sums.losses.sum())
        totals = criterion.recent if criterion.totals is None else criterion.totals
        penalty = float(self.sums.losses[1])
        return float(criterion.objective(totals)) + penalty if totals.isfinite().all() else math.nan

    def _check_finite(self, value: float, what: str) -> None:
        tagger = self.tagger
        check_finite(value, f"epoch {tagger.current_epoch + 1}", tagger.training_protocol().divergence_hint, what)

    def _check_weights(self) -> None:
        """Raise DivergenceError at the end of an epoch for weights that are not finite."""
        if self.tagger.trainer.is_last_batch:
            sums = [p.detach().sum().double() for p in self.tagger.parameters()]
            self._check_finite(float(torch.stack(sums).sum()), "sum of the weights")

    def _local(self, closure: Callable[[], Any]) -> Any:
        """Return the loss of this process, with gradients; Lightning would average them, and only dense ones."""
        strategy = self.tagger.trainer.strategy
        with strategy.block_backward_sync() if isinstance(strategy, ParallelStrategy) else nullcontext():
            return closure()


def clip_sparse_gradients(parameters: Iterable[Tensor], size: float, by_value: bool) -> None:
    """Clip gradients, some of which are sparse, in place: each number to +-size, or their total norm to size."""
    holders = []
    for p in parameters:
        gradient = p.grad
        if gradient is None:
            continue
        if gradient.is_sparse:  # equal entries become one, as the norm is that of their sum; sorting takes longer
            rows, values = row_gradients(gradient)
            p.grad = gradient = torch.sparse_coo_tensor(
                rows[None], values, p.shape, is_coalesced=True, check_invariants=False
            )
        numbers = sparse_values(gradient) if gradient.is_sparse else gradient
        holder = numbers.detach()
        holder.grad = numbers
        holders.append(holder)
    (nn.utils.clip_grad_value_ if by_value else nn.utils.clip_grad_norm_)(holders, size)


class GradientTraining(TrainingMethod):
    """One step of the optimizer per mini-batch, along the gradient of its losses and of their share of the prior."""

    def begin_epoch(self) -> None:
        """Prepare for an epoch. Raises InputError for unsupported criteria and priors."""
        super().begin_epoch()
        tagger = self.tagger
        if tagger.attached_trainer is not None:
            check_steps(tagger.training_protocol(), tagger.prior, tagger.criterion, tagger.trainer)
        if isinstance(tagger.criterion, CorpusCriterion):
            tagger.criterion.corpus_size = tagger.corpus_size
            tagger.criterion.totals = None

    def step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the summed loss of a batch, a scalar with gradients."""
        tagger = self.tagger
        scored = tagger.score_batch(batch, self.known_candidates(batch_idx))
        with without_autocast(tagger.device):  # only the scorer may run in half precision
            losses, updates = tagger.criterion.losses_and_updates(scored)
            losses = tagger.criterion.weighted(losses, scored)
        self.count(batch, scored, updates)
        return self.add(losses, batch, batch_idx)

    def known_candidates(self, batch_idx: int) -> Candidates | None:
        """Return the candidates of a batch from an earlier search under the current weights, if there was one."""
        return None

    def count(self, batch: Batch, scored: Scored, updates: Tensor) -> None:
        """Count the updates (B,) bool, the wrong tokens of the best candidates by score, and the tokens."""
        tagger = self.tagger
        if not tagger.criterion.min_candidates:
            self.sums.count(updates.sum())
            return
        found = tagger.without_cost(batch, scored)
        labels, valid = found.candidates.labels, found.candidates.valid
        rows = torch.arange(len(labels), device=labels.device)
        chosen = labels[rows, best(found, valid)] if tagger.nonlocal_features else labels[:, 0]
        right = chosen == found.gold if found.allowed is None else is_allowed(chosen[:, None], found.allowed)
        wrong = (~right).sum()  # all are right in the padding
        self.sums.count(updates.sum(), wrong, found.lattice.lengths.sum())

    def optimizer_step(self, batch_idx: int, optimizer: Any, closure: Callable[[], Any]) -> None:
        """Make a step. Raises DivergenceError when an epoch ends with weights that are not finite."""

        def summed() -> Tensor:
            """Return the loss of all mini-batches of the step, with gradients, summed over all processes."""
            self._local(closure)
            all_reduce_gradients(self.tagger.parameters())
            zero = torch.zeros((), dtype=torch.float64, device=self.tagger.device)
            return all_reduce_sum(sum(self.step_losses.values(), start=zero)).to(torch.get_default_dtype())

        optimizer.step(closure=summed)
        if batch_idx not in self.step_losses:
            place = class_location(type(getattr(optimizer, "optimizer", optimizer)), "step")
            raise InputError(f"{place} must call its closure, which computes the losses: begin with loss = closure()")
        self.step_losses = {}
        self._check_weights()


class FullBatchTraining(GradientTraining):
    """One step per epoch with the exact gradient of the whole corpus, to which each batch adds its part.

    Memory does not grow with the corpus, and a run may be resumed after every evaluation. For criteria of the whole
    corpus an epoch makes two passes: one for the totals, one for the gradient.
    """

    full_batch = True

    def __init__(self, tagger: Any) -> None:
        super().__init__(tagger)
        self.supported = self._no_pairs()

    def begin_epoch(self) -> None:
        """Prepare for an epoch, and compute totals of the whole corpus if the criterion needs them."""
        super().begin_epoch()
        self._candidates: Sequence[Candidates] = ()
        if isinstance(self.tagger.criterion, CorpusCriterion) and self.tagger.attached_trainer is not None:
            self.tagger.criterion.totals = self._totals(self.tagger.criterion)

    def known_candidates(self, batch_idx: int) -> Candidates | None:
        """Return the candidates of the search for the totals."""
        return self._candidates[batch_idx] if self._candidates else None

    def penalty(self, batch: Batch | FlatBatch) -> Tensor | float:
        """Return the whole penalty of the prior for the last batch."""
        tagger = self.tagger
        last = tagger.prior is not None and tagger.trainer.is_last_batch and process_group().rank == 0
        return tagger.prior(tagger.parameters()) if last and tagger.prior is not None else 0.0

    def add(self, losses: Tensor, batch: Batch, batch_idx: int = 0) -> Tensor:  # type: ignore[override]
        """Add the losses (B,) of a batch, and its pairs of feature and gold label if only these have weights."""
        if self.supported is not None:
            assert batch.gold is not None
            if batch.allowed is not None:  # sets of labels
                raise InputError("model.optimizer.supported_only needs complete labels")
            gold = batch.gold[real_tokens(batch.lengths, batch.gold.shape[1])]
            self.supported[batch.nodes.ids.long(), gold[batch.nodes.row_ids]] = True
        return super().add(losses, batch, batch_idx)

    def zero_grad(self, batch_idx: int) -> None:
        """Clear the gradients before the first batch."""
        if batch_idx == 0:
            super().zero_grad(batch_idx)

    def optimizer_step(self, batch_idx: int, optimizer: Any, closure: Callable[[], Any]) -> None:
        """Add gradients, and make a step after the last batch."""
        self._local(closure)
        if not self.tagger.trainer.is_last_batch:
            return
        all_reduce_gradients(self.tagger.parameters())
        if self.supported is not None:
            pairs = all_reduce_sum(self.supported.float()).flatten().nonzero().squeeze(1)
            optimizer.state[self.tagger.scorer.compiled().node][TRAINED], self.supported = pairs, None
        try:
            optimizer.step(closure=lambda: torch.tensor(self.objective(), dtype=torch.float64))
        except DivergenceError as error:
            raise DivergenceError(f"epoch {self.tagger.current_epoch + 1}: {error}") from None

    def _no_pairs(self) -> Tensor | None:
        """Return the pairs (F, L) bool of feature and label that the first epoch marks, all False.

        None: the optimizer trains all weights, or knows from a checkpoint which ones it trains.
        """
        optimizer = self.tagger.training_protocol()
        if not (isinstance(optimizer, Optimizer) and optimizer.param_groups[0].get("supported_only")):
            return None
        form = self.tagger.scorer.compiled()
        if form is None or form.add_features:
            raise InputError("model.optimizer.supported_only needs the scorer SparseLinear")
        known = TRAINED in optimizer.state[form.node]
        return None if known else torch.zeros_like(form.node, dtype=torch.bool)

    @torch.no_grad()
    def _totals(self, criterion: CorpusCriterion) -> Tensor:
        """Return the soft counts of the training data under the current weights, summed."""
        trainer = self.tagger.trainer
        seen = islice(trainer.train_dataloader or (), int(trainer.num_training_batches))
        counts, candidates = [], []
        for batch in map(trainer.strategy.batch_to_device, seen):
            with trainer.precision_plugin.train_step_context():  # as in training
                scored = self.tagger.score_batch(batch)
            counts.append(criterion.weighted_counts(scored).double().sum(0))
            candidates.append(scored.candidates)
        self._candidates = candidates
        return all_reduce_sum(torch.stack(counts).sum(0))


class SequentialTraining(TrainingMethod):
    """Learning of the sequences of a batch one after the other, without gradients of the batch.

    Args:
        tagger: the `Tagger` that learns.
        learner: updates the weights.
    """

    batch_form: BatchForm = "flat"

    def __init__(self, tagger: Any, learner: SequenceLearner) -> None:
        self.learner = learner
        self.independent = process_group().size > 1
        super().__init__(tagger)

    def step(self, batch: FlatBatch, batch_idx: int) -> Tensor:
        """Learn a batch, and return its summed loss, a scalar without gradients."""
        learned = self.learner.learn(batch)
        self.sums.count(learned.updates, learned.wrong, batch.lengths.sum())
        return self.add(learned.losses, batch, batch_idx)

    def backward(self, loss: Tensor, *args: Any, **options: Any) -> None:
        """Do nothing: the learner has updated the weights."""

    def zero_grad(self, batch_idx: int) -> None:
        """Do nothing: there are no gradients."""

    def end_epoch(self) -> None:
        """Log the epoch, and summarise its updates."""
        super().end_epoch()
        self.tagger.epoch_summary = self.sums.summary()

    def optimizer_step(self, batch_idx: int, optimizer: Any, closure: Callable[[], Any]) -> None:
        """Learn the batch. Raises DivergenceError when an epoch ends with weights that are not finite."""
        self._local(closure)
        self.step_losses = {}
        self._check_weights()
