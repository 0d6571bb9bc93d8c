"""Which taggers learn sequence by sequence.

Criteria that compare gold with candidates by total scores, learned sequence by sequence.

Learners of several processes, whose weights are mixed some times in each epoch.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.optim import Optimizer

from structperc.chain import Constraints
from structperc.criteria import CandidateLoss, Criterion, Decision, PairwiseLoss
from structperc.criteria.base import best, losses
from structperc.datamodules.distributed import AllGatherLists, share
from structperc.datamodules.encoded import split_evenly, split_sequences
from structperc.online import BatchResult, OnlineLearner, SequenceLearner, merge_results, update_local_weights
from structperc.ops.registration import COMPILED
from structperc.optim import AveragedOptimizer
from structperc.scorers import Scorer, SparseLinear
from structperc.structures import Batch, Scored


class CandidateLearner(SequenceLearner):
    """Learns local and non-local weights of a batch sequence by sequence, as batches of one sequence by gradients do.

    The few weights by which gold and its rival differ are moved in a compiled call. Where the criterion asks for local
    updates sentence by sentence, they are then learned by `local`, and each sentence counts as a step.

    Args:
        compare: finds and scores gold and candidates of a batch, with gradients of the non-local weights alone; beside
            them those that it would find without the criterion's cost.
        criterion: decides between gold and one of the candidates.
        scorer: has the local weights.
        further: the non-local weights.
        optimizer: of all these weights, with a pace.
        local: learns the sentences of a sequence; None: the criterion decides by candidates alone.
    """

    def __init__(
        self,
        compare: Callable[[Batch], tuple[Scored, Scored]],
        criterion: CandidateLoss,
        scorer: SparseLinear,
        further: Sequence[Tensor],
        optimizer: AveragedOptimizer,
        local: OnlineLearner | None = None,
    ) -> None:
        self.compare, self.criterion, self.scorer, self.further = compare, criterion, scorer, further
        self.optimizer, self.local = optimizer, local

    def learn(self, batch: Batch) -> BatchResult:
        """Learn the sequences of a batch in their order."""
        return merge_results([self._learn(part) for part in split_sequences(batch)])

    def _learn(self, batch: Batch) -> BatchResult:
        scored, without_cost = self.compare(batch)
        scored = self.criterion.add_cost(scored)
        decision = self.criterion.decide(scored)
        wrong, updates = self._wrong(without_cost), int(decision.updates)
        loss = self._move(batch, scored, decision) if updates else torch.zeros(1, dtype=torch.float64)
        if self.local is None:
            self.optimizer.count(1)
            return BatchResult(loss, updates, wrong)
        local = self.local.learn(batch)
        return BatchResult(torch.cat([loss, local.losses]), updates + local.updates, wrong)

    def _move(self, batch: Batch, scored: Scored, decision: Decision) -> Tensor:
        """Move the weights as the decision asks, and return the loss (1,)."""
        loss = losses(scored, decision).detach().double()
        if not loss.isfinite().all():
            return loss
        gradients = self._gradients(scored, decision)
        norm = sum(float(g.double().square().sum()) for g in gradients.values())
        rival = scored.candidates.labels[0, int(decision.rival)]
        size = update_local_weights(batch, rival, self.scorer, self.optimizer, float(loss), norm)
        for p, gradient in gradients.items():
            self.optimizer.move(p, gradient, size)
        return loss

    def _gradients(self, scored: Scored, decision: Decision) -> dict[Tensor, Tensor]:
        """The gradient of each non-local weight that moves."""
        lead = scored.candidate_nonlocal[0, int(decision.rival)] - scored.gold_nonlocal[0]
        if not bool(decision.whole) or not lead.requires_grad:
            return {}
        found = torch.autograd.grad(lead, self.further, allow_unused=True)
        return {p: g for p, g in zip(self.further, found, strict=True) if g is not None}

    def _wrong(self, scored: Scored) -> int:
        """The tokens whose label in the best candidate by total score is not gold's."""
        chosen = scored.candidates.labels[0, best(scored, scored.candidates.valid)]
        return int((chosen != scored.gold).sum())


def online_learner(
    scorer: Scorer,
    constraints: Constraints,
    criterion: Criterion,
    optimizer: Optimizer,
    further: Sequence[Tensor],
    compare: Callable[[Batch], tuple[Scored, Scored]],
) -> SequenceLearner | None:
    """Return a learner of the sequences of a batch one after the other; None where gradients are needed.

    It needs a sparse scorer on a CPU, a sequential optimizer of all weights in one group, and a criterion that compares
    gold with one candidate: by local scores, or where there are `further` weights of non-local features, among the
    candidates that `compare` finds and scores.
    """
    if not isinstance(optimizer, AveragedOptimizer) or not optimizer.sequential or len(optimizer.param_groups) > 1:
        return None
    learned = {p for p in optimizer.param_groups[0]["params"] if p.requires_grad}
    if type(scorer) is not SparseLinear or learned != {*scorer.parameters(), *further}:
        return None
    if scorer.node.device.type != "cpu" or scorer.node.dtype not in COMPILED:
        return None
    if isinstance(criterion, PairwiseLoss) and not further:
        return OnlineLearner(scorer, constraints, criterion.rule(), optimizer)
    if isinstance(criterion, CandidateLoss):
        rule = criterion.local_rule()
        local = rule and OnlineLearner(scorer, constraints, rule, optimizer)
        return CandidateLearner(compare, criterion, scorer, further, optimizer, local)
    return None


OFTEN = 4  # mixtures for each process in the first epoch


class ParameterAveragingLearner(SequenceLearner):
    """Learns this process's share of mini-batches, and goes on with a mixture of the weights of all processes.

    A weight of the mixture is the mean of what it is in the processes that have moved it: one that a single process
    has moved keeps the whole of its change. Where two have moved it half of each change counts, and so on.

    Iterative parameter mixing (McDonald, Hall & Mann 2010, "Distributed training strategies for the structured
    perceptron", Fig. 3) takes one mean of all weights after each epoch. Of rare features, which most are, it halves
    every step with two processes; their bound on mistakes (Theorem 3) is for such mixtures, with the same shares for
    all weights, and does not cover this one. Means by feature are those of Agarwal, Chapelle, Dudik & Langford 2014
    ("A reliable effective terascale linear learning system", Algorithm 2), whose shares are sums of squared gradients.

    The average over the steps stays that of a single sequence of weights: step s after a mixture is made in all
    processes at once, moves a weight by the mean of the changes that count there, and a process that has no more
    sequences stands still. As the lazy sums are linear in the changes, they are mixed as the weights are.

    Only what has moved is sent: place, weight and sum, 16 bytes each. Processes have the same weights, sums and steps
    once they are mixed, bit for bit.

    Args:
        learner: learns the share of this process.
        optimizer: of all weights that it moves; their marks are read here.
        due: how often to mix within the mini-batch of now, of all processes alike.
    """

    def __init__(self, learner: SequenceLearner, optimizer: AveragedOptimizer, due: Callable[[], int]) -> None:
        from structperc.online.parameter_averaging import entry_type  # which needs a compiler

        self.learner, self.optimizer, self.due = learner, optimizer, due
        self.mixed = True  # since the last mini-batch
        optimizer.mark_moved()
        weights = [some for _, _, some, _ in self._tables()]
        self.exchange = AllGatherLists(entry_type(np.result_type(*weights), sum(map(len, weights))))

    def learn(self, batch: Batch) -> BatchResult:
        """Learn the sequences of a batch in their order, and mix as often as that is due, at even distances.

        Where mixtures are more than sequences, nothing is learned before the last ones.
        """
        times, learned = self.due(), []
        parts = split_evenly(batch, min(max(1, times), len(batch.lengths)))
        for part, _ in zip_longest(parts, range(times)):
            if part is not None:
                learned.append(self.learner.learn(part))
            self.mixed = False
            if times:
                self.average_entries()
        return merge_results(learned)

    @torch.no_grad()
    def average_entries(self) -> None:
        """Give all processes the same weights, sums and steps, unless they have them; it waits for all processes."""
        from structperc.online.parameter_averaging import average_entries, write_moved  # which need a compiler

        if self.mixed:
            return
        self.mixed = True
        group, tables = self.optimizer.param_groups[0], list(self._tables())
        found = self.exchange(partial(write_moved, tables), group["steps"])
        group["steps"] = int(found.numbers.max())
        for some in tables:
            average_entries(found.entries, found.begins, found.ends, share().process, *some)

    def _tables(self) -> Iterator[tuple[np.ndarray, int, np.ndarray, np.ndarray]]:
        """Of each parameter marks, number of weights in those before it, weights, and sums if there are averages."""
        kept, start = self.optimizer.param_groups[0]["average"], 0
        for p, marks in self.optimizer.moved_marks.items():
            sums = self.optimizer.sums(p) if kept else p.new_empty(0, dtype=torch.float64)
            yield marks.view(-1).numpy(), start, p.detach().view(-1).numpy(), sums.view(-1).numpy()
            start += p.numel()


class ParameterAveraging(pl.Callback):
    """Lets processes mix also where weights are looked at or saved between mixtures, or training ends there.

    The tagger adds this callback by itself.
    """

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Mix before the weights are judged."""
        _mix(pl_module)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Mix what is not mixed yet, where an epoch ends before its last mini-batch."""
        _mix(pl_module)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Mix before weights and optimizers are written; all processes save together."""
        if _mix(pl_module):  # the weights in the checkpoint are those of the tagger, what optimizers count is a copy
            checkpoint["optimizer_states"] = list(map(trainer.strategy.optimizer_state, trainer.optimizers))


def _mix(tagger: pl.LightningModule) -> bool:
    """Mix what is not mixed yet, and return whether there was something."""
    online = getattr(tagger, "online", None)
    if not isinstance(online, ParameterAveragingLearner) or online.mixed:
        return False
    online.average_entries()
    return True


def sync_count(trainer: pl.Trainer) -> int:
    """Return how often processes mix within the mini-batch of now, at last after the last one of an epoch.

    In the first epochs, when much changes, they mix more often than in later ones: 4 P times in the first, half as
    often in the second, a third in the third, and so on down to once, for P processes. The more of them share what is
    learned between two mixtures, the less of it there should be.
    """
    batches, now = trainer.num_training_batches, trainer.fit_loop.batch_idx
    if math.isinf(batches):
        return 1
    times = math.ceil(OFTEN * share().processes / (1 + trainer.current_epoch))
    return int((now + 1) * times // batches - now * times // batches)
