"""Learning one sequence at a time: choice of the learner, non-local features, averaging across processes."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.trainer.states import TrainerFn, TrainerStatus
from torch import Tensor
from torch.optim import Optimizer

from structperc.criteria.base import CandidateLoss, ComparisonUnit, Decision, UpdateRule, best, losses
from structperc.data.labels import AllowedTransitions
from structperc.datamodules.distributed import all_gather_tensors, all_reduce_max, process_group
from structperc.datamodules.encoded import single_sequence, split_flat
from structperc.online.learner import BatchResult, OnlineLearner, SequenceLearner, merge_results, update_local_weights
from structperc.ops.registration import COMPILED
from structperc.optim.averaged_perceptron import AveragedOptimizer
from structperc.scorers.base import LinearForm
from structperc.structures import Batch, FlatBatch, Scored

COMPONENTS = 2**22  # further features of tokens at a time
FIRST_SYNCS = 4  # per process in the first epoch


def sequence_learner(tagger: Any, optimizer: Optimizer) -> SequenceLearner | None:
    """Return the learner of a `Tagger` from one sequence at a time, or None for parts that learn by gradients.

    It requires a compiled form of the scorer on a CPU, a sequential optimizer of all weights in one group, and a
    criterion with an update rule for local scores, or one that compares gold with one of the candidates.
    """
    if not isinstance(optimizer, AveragedOptimizer) or not optimizer.sequential or len(optimizer.param_groups) > 1:
        return None
    learned = {p for p in optimizer.param_groups[0]["params"] if p.requires_grad}
    form, criterion, scheme = tagger.scorer.compiled(), tagger.criterion, tagger.labels.allowed
    rule, nonlocal_weights = criterion.compiled_loss(), list(tagger.nonlocal_features.parameters())
    if form is None or learned != {*form.weights.values(), *nonlocal_weights}:
        return None
    if {(p.device.type, p.dtype) for p in form.weights.values()} not in [{("cpu", dtype)} for dtype in COMPILED]:
        return None
    if isinstance(rule, UpdateRule) and not nonlocal_weights:
        return _local_learner(form, scheme, rule, optimizer)
    if isinstance(criterion, CandidateLoss) and rule is not None:
        rule = criterion.local_rule()
        local = rule and _local_learner(form, scheme, rule, optimizer)
        unit: ComparisonUnit = "sentence" if criterion.independent_sentences else "sequence"
        move = partial(update_local_weights, form=form, optimizer=optimizer, unit=unit)
        return CandidateLearner(partial(_compare, tagger), criterion, move, nonlocal_weights, optimizer, local)
    return None


def _compare(tagger: Any, batch: Batch) -> tuple[Scored, Scored]:
    with torch.no_grad():
        lattice = tagger(batch)
    return tagger.candidate_scorer.compare(batch, lattice)


def _local_learner(
    form: LinearForm, scheme: AllowedTransitions, rule: UpdateRule, optimizer: AveragedOptimizer
) -> SequenceLearner:
    learner = OnlineLearner(form, scheme, rule, optimizer)
    return learner if form.add_features is None else FeatureAddingLearner(learner, form)


class FeatureAddingLearner(SequenceLearner):
    """Learner that adds further features, such as the components of vectors, to parts that limit memory.

    Args:
        learner: Learner of a batch with all features.
        form: Form of the scorer, which returns a batch with further features.
    """

    def __init__(self, learner: SequenceLearner, form: LinearForm) -> None:
        self.learner, self.form = learner, form

    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch in their order."""
        n = 1 + len(batch.gold) * self.form.n_added // COMPONENTS
        parts = split_flat(batch, min(n, len(batch.lengths)))
        return merge_results([self.learner.learn(self.form.with_features(part)) for part in parts])


class CandidateLearner(SequenceLearner):
    """Learns local and non-local weights one sequence at a time, as gradients do with a batch size of 1.

    A compiled call updates the few weights in which the gold labels and a candidate differ. If the criterion makes
    local updates sentence by sentence, `local` makes them afterwards, and each sentence counts as a step.

    Args:
        compare: Returns the gold labels and candidates of a batch with their scores, with gradients of the non-local
            weights only: for the search with the criterion's cost, and for the search without it.
        criterion: Compares the gold labels with one of the candidates.
        move: Moves the local weights: `update_local_weights` of a scorer.
        nonlocal_weights: Weights of the non-local features.
        optimizer: Optimizer of all these weights, with a step-size rule.
        local: Learns the sentences of a sequence; None: the criterion compares candidates only.
    """

    def __init__(
        self,
        compare: Callable[[Batch], tuple[Scored, Scored]],
        criterion: CandidateLoss,
        move: Callable[..., float],
        nonlocal_weights: Sequence[Tensor],
        optimizer: AveragedOptimizer,
        local: SequenceLearner | None = None,
    ) -> None:
        self.compare, self.criterion, self.move = compare, criterion, move
        self.nonlocal_weights, self.optimizer, self.local = nonlocal_weights, optimizer, local

    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch in their order."""
        return merge_results([self._learn(part) for part in split_flat(batch, len(batch.lengths))])

    def _learn(self, sequence: FlatBatch) -> BatchResult:
        scored, without_cost = self.compare(single_sequence(sequence))
        scored = self.criterion.add_cost(scored)
        decision = self.criterion.decide(scored)
        chosen = without_cost.candidates.labels[0, best(without_cost, without_cost.candidates.valid)]
        wrong, updates = int((chosen != without_cost.gold).sum()), int(decision.updates)
        loss = self._move(sequence, scored, decision) if updates else torch.zeros(1, dtype=torch.float64)
        if self.local is None:
            self.optimizer.count(1)
            return BatchResult(loss, updates, wrong)
        local = self.local.learn(sequence)
        return BatchResult(torch.cat([loss, local.losses]), updates + local.updates, wrong)

    def _move(self, sequence: FlatBatch, scored: Scored, decision: Decision) -> Tensor:
        """Update the weights for a decision, and return the loss (1,)."""
        loss = losses(scored, decision).detach().double()
        weighted = loss if sequence.weights is None else loss * sequence.weights[:1].double()
        if not loss.isfinite().all():
            return loss
        difference, gradients = scored.candidate_nonlocal[0, int(decision.rival)] - scored.gold_nonlocal[0], {}
        if bool(decision.updates_nonlocal) and difference.requires_grad:
            found = torch.autograd.grad(difference, self.nonlocal_weights, allow_unused=True)
            gradients = {p: g for p, g in zip(self.nonlocal_weights, found, strict=True) if g is not None}
        norm = sum(float(g.double().square().sum()) for g in gradients.values())
        rival = scored.candidates.labels[0, int(decision.rival)]
        size = self.move(sequence, rival, loss=float(loss), norm=norm)
        for p, gradient in gradients.items():
            self.optimizer.move(p, gradient, size)
        return weighted


class ParameterAveragingLearner(SequenceLearner):
    """Learns this process's share of mini-batches; at each sync all processes continue with averaged weights.

    A weight becomes the mean over the processes that have changed it: a change by a single process counts in full, each
    of two changes by half, and so on.

    Iterative parameter mixing (McDonald, Hall & Mann 2010, "Distributed training strategies for the structured
    perceptron", Fig. 3) takes one mean of all weights after each epoch. With two processes this halves every step of
    rare features, which are the majority. Their bound on mistakes (Theorem 3) requires equal shares for all weights and
    does not apply here. Means by feature are those of Agarwal, Chapelle, Dudik & Langford 2014 ("A reliable effective
    terascale linear learning system", Algorithm 2), whose shares are sums of squared gradients.

    The average over the steps is that of a single sequence of weights: step s after a sync is one step in all
    processes, with the mean of their changes; a process without further sequences makes no change. As the lazy sums are
    linear in the changes, they are averaged in the same way as the weights.

    Processes send only changed weights: index, weight and sum, 16 bytes each. After a sync processes have the same
    weights, sums and steps, bit for bit.

    Args:
        learner: Learns the share of this process.
        optimizer: Optimizer of all weights; it marks those that have changed.
        syncs: Returns the number of syncs within the current mini-batch, the same in all processes.
    """

    def __init__(self, learner: SequenceLearner, optimizer: AveragedOptimizer, syncs: Callable[[], int]) -> None:
        self.learner, self.optimizer, self.syncs = learner, optimizer, syncs
        self.synced = True  # since the last mini-batch
        optimizer.mark_moved()

    def learn(self, batch: FlatBatch) -> BatchResult:
        """Learn the sequences of a batch in their order, with syncs at even distances.

        If there are more syncs than sequences, the last syncs have nothing to send.
        """
        times, learned = self.syncs(), []
        parts = split_flat(batch, min(max(1, times), len(batch.lengths)))
        for part, _ in zip_longest(parts, range(times)):
            if part is not None:
                learned.append(self.learner.learn(part))
            self.synced = False
            if times:
                self.sync()
        return merge_results(learned)

    @torch.no_grad()
    def sync(self) -> bool:
        """Average weights, sums and steps over all processes; return False if nothing has changed since."""
        from structperc.online.parameter_averaging import average_entries, moved_entries  # need a compiler

        if self.synced:
            return False
        self.synced = True
        group, tables = self.optimizer.param_groups[0], list(self._tables())
        group["steps"] = int(all_reduce_max(torch.tensor(group["steps"])))
        own = moved_entries(tables)
        lists = [x.numpy().view(own.dtype) for x in all_gather_tensors(torch.from_numpy(own.view(np.uint8)))]
        lengths = [len(one) for one in lists]
        ends = np.cumsum(lengths)
        heads = ends - lengths
        entries = np.concatenate(lists)
        for table in tables:
            average_entries(entries, heads, ends, process_group().rank, *table)
        return True

    def _tables(self) -> Iterator[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
        """Yield marks, number of weights before it, weights, and sums if there are averages, for each parameter."""
        kept, start = self.optimizer.param_groups[0]["average"], 0
        for p, marks in self.optimizer.moved_weights.items():
            sums = self.optimizer.sums(p) if kept else p.new_empty(0, dtype=torch.float64)
            yield marks.view(-1).numpy(), start, p.detach().view(-1).numpy(), sums.view(-1).numpy()
            start += p.numel()


class ParameterAveraging(pl.Callback):
    """Syncs processes before the validations of a training, and at the end of an epoch."""

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Sync before the weights are evaluated."""
        sync_weights(pl_module)

    on_train_epoch_end = on_validation_start


def sync_weights(tagger: pl.LightningModule) -> bool:
    """Sync a tagger that learns by parameter averaging within its training; return False if that was unnecessary."""
    learner = getattr(getattr(tagger, "training_method", None), "learner", None)
    state = tagger.trainer.state
    fitting = state.fn == TrainerFn.FITTING and state.status == TrainerStatus.RUNNING
    return fitting and isinstance(learner, ParameterAveragingLearner) and learner.sync()


def sync_count(trainer: pl.Trainer) -> int:
    """Return the number of syncs within the current mini-batch; the last mini-batch of an epoch ends with one.

    P processes have 4 P syncs in the first epoch, when weights change most, a half of them in the second, a third in
    the third, and so on down to one.
    """
    batches, now = trainer.num_training_batches, trainer.fit_loop.batch_idx
    if math.isinf(batches):
        return 1
    times = math.ceil(FIRST_SYNCS * process_group().size / (1 + trainer.current_epoch))
    return int((now + 1) * times // batches - now * times // batches)
