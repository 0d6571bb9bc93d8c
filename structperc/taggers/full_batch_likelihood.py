"""Full-batch training of a CRF with sparse features in compiled loops."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.ops.cpu.threads import run_in_threads
from structperc.ragged import boundaries
from structperc.scorers.base import LinearForm
from structperc.scorers.sparse_linear import sum_features
from structperc.structures import Batch, real_tokens
from structperc.taggers.learning import FullBatchTraining


class ScoreGradients(NamedTuple):
    """Gradients of a summed loss by the scores of labels and label pairs."""

    nodes: Tensor  # (n, L), for each real token
    pairs: Tensor  # (L, L), summed over all tokens


class FullBatchLikelihood(FullBatchTraining):
    """Full-batch training by likelihood of a linear scorer without edge features, on a CPU, with complete labels.

    The results are those of `FullBatchTraining` up to rounding.
    """

    _batch: Batch | None = None  # of the last step, until `backward`
    _gradients: ScoreGradients

    def step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the summed loss of a batch, a scalar, with a gradient of the prior only; keep the other gradients."""
        if batch.allowed is not None:  # incomplete labels
            return super().step(batch, batch_idx)
        losses, self._gradients = likelihood(self.tagger.scorer.compiled(), self.tagger.labels, batch)
        self._batch = batch
        self.sums.count(torch.tensor(len(losses)))
        return self.add(losses, batch, batch_idx)

    def backward(self, loss: Tensor, *args: Any, **options: Any) -> None:
        """Add the gradients of the last step and of the prior to those of the batches before."""
        if loss.requires_grad:
            super().backward(loss, *args, **options)
        if self._batch is not None:
            add_gradients(self.tagger.scorer.compiled(), self._batch, self._gradients)
        self._batch = None


def supports_likelihood(tagger: Any) -> bool:
    """Return whether a tagger can learn by `FullBatchLikelihood`."""
    form = tagger.scorer.compiled()
    if form is None or form.edge is not None or form.segments or form.add_features:
        return False
    if tagger.criterion.compiled_loss() != "likelihood" or tagger.nonlocal_features or tagger.teacher is not None:
        return False
    kinds = {(p.device.type, p.dtype) for p in tagger.parameters()}
    return kinds in ({("cpu", torch.float32)}, {("cpu", torch.float64)})


@torch.no_grad()
def likelihood(form: LinearForm, labels: LabelSet, batch: Batch) -> tuple[Tensor, ScoreGradients]:
    """Return the negative log-likelihoods (B,) float64 of the gold labels of a batch, and their gradients by scores."""
    from structperc.kernels.likelihood import likelihood_gradients  # needs a compiler

    assert batch.gold is not None
    (B, T), L = batch.sentences.shape, form.node.shape[1]
    real = real_tokens(batch.lengths, T)
    places = real.flatten().nonzero().squeeze(1)
    gold, first, last = (x.flatten()[places] for x in (batch.gold, batch.first, batch.last))
    unary = sum_features(form.node, batch.nodes)
    for tokens, allowed in ((first, labels.start), (last, labels.end)):
        unary.masked_fill_(tokens[:, None] & ~allowed, -torch.inf)
    edges = unary.new_zeros(L, L) if form.transition is None else form.transition
    edges = edges.masked_fill(~labels.transition, -torch.inf)[None]
    losses, nodes = unary.new_empty(B, dtype=torch.float64), torch.empty_like(unary)
    pairs = unary.new_empty(B, L, L)
    bounds = boundaries(batch.lengths)
    run_in_threads(likelihood_gradients, B, 8 * T * L * L, bounds, gold, unary, edges, losses, nodes, pairs)
    if batch.weights is not None:
        of_rows = batch.weights[:, 0]
        losses, nodes, pairs = losses * of_rows, nodes * batch.weights[real][:, None], pairs * of_rows.view(-1, 1, 1)
    return losses, ScoreGradients(nodes, pairs.sum(0))


@torch.no_grad()
def add_gradients(form: LinearForm, batch: Batch, gradients: ScoreGradients) -> None:
    """Add the gradients of the weights, given those of the scores of a batch, to those in `grad`, which are dense."""
    from structperc.kernels.likelihood import add_by_feature  # needs a compiler

    features = batch.nodes if batch.nodes.transposed is not None else batch.nodes.transpose()
    assert features.transposed is not None
    assert form.node.grad is not None
    present, lists, offsets, weights = features.transposed
    values = np.empty(0, np.float32) if weights is None else weights.numpy()
    work = 4 * len(lists) // max(1, len(present))
    run_in_threads(add_by_feature, len(present), work, gradients.nodes, lists, offsets, values, present, form.node.grad)
    if form.transition is not None and form.transition.grad is not None:
        form.transition.grad += gradients.pairs
