"""The dynamic programs as custom operators: contracts and derivatives.

Every operator takes a lattice as three tensors: unary (B, T, L), edge (B or 1, T or 1, L, L) and lengths (B,) int64.
Scores are float32 or float64, -inf where impossible; float sums are in double precision where the device has it.
Shapes are checked by `structperc.chain`. The body of each function returns empty results (see `registration`).

Invalid scores (+inf, NaN) of real tokens: searches and `sample` raise InvalidScoreError on a CPU; elsewhere scores are
NaN and labels 0. Sums over all label sequences are NaN for that sequence.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from structperc.ops.reference import forward_backward as sums
from structperc.ops.reference import viterbi as search
from structperc.ops.registration import operator


@operator("viterbi")
def viterbi(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best label sequence of each sequence and its score (Viterbi 1967).

    Ties go to the first in lexicographic order. Returns scores (B,), -inf without a possible label sequence, 0 for an
    empty sequence; and labels (B, T) int64, 0 in both cases and in the padding.

    Example:
        >>> import torch
        >>> from structperc.ops import operators as ops
        >>> ops.viterbi(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        (tensor([3.]), tensor([[1, 0]]))
    """
    B, T, _ = unary.shape
    return unary.new_empty(B), lengths.new_empty(B, T, dtype=torch.int64)


@operator("kbest")
def kbest(unary: Tensor, edge: Tensor, lengths: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the k best label sequences of each sequence, best first.

    All are different, and ties are in lexicographic order. Their losses against the best one, in the precision of the
    lattice, decide which ones are among the k best; their scores are those of `path_score`. `k`: number of label
    sequences. Returns labels (B, k, T) int64, scores (B, k) and valid (B, k) bool. Missing label sequences have labels
    0, score -inf and valid False. An empty sequence has one label sequence, of score 0.
    """
    (B, T, _), dtype = unary.shape, torch.int64
    return lengths.new_empty(B, k, T, dtype=dtype), unary.new_empty(B, k), lengths.new_empty(B, k, dtype=torch.bool)


def save_inputs(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
    """Save the inputs of an operator for its derivative."""
    ctx.save_for_backward(*inputs)


def _analytic_or_reference(
    reference: Callable[..., Tensor | tuple[Tensor, ...]], analytic: Callable[..., tuple[Tensor, Tensor]]
) -> Callable[..., tuple[Tensor | None, ...]]:
    """Return the backward function of an operator on a lattice; for second derivatives that of its reference."""

    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        unary, edge, lengths = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *reference_gradients(lambda u, e: reference(u, e, lengths), (unary, edge), grads), None
        return *analytic(unary, edge, lengths, *grads), None

    return backward


def reference_gradients(
    function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: tuple[Tensor, ...], grads: tuple[Tensor | None, ...]
) -> tuple[Tensor, ...]:
    """Return differentiable gradients of the inputs of a function of the reference; None stands for zeros."""
    results, pull = torch.func.vjp(function, *inputs)[:2]
    if isinstance(results, Tensor):
        (grad,) = grads
        return tuple(pull(grad))
    return tuple(pull(tuple(torch.zeros_like(y) if g is None else g for y, g in zip(results, grads, strict=True))))


@operator("viterbi")
def best_before_and_after_backward(
    unary: Tensor, edge: Tensor, lengths: Tensor, grad_before: Tensor, grad_after: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of unary and edge scores, from those of the results of `best_before_and_after`.

    The gradients are pushed outwards along the best labels, those of many paths together; no path is kept.
    `grad_before`: (B, T, L), gradient of the first result. `grad_after`: (B, T, L), gradient of the second result.
    """
    return torch.empty_like(unary), edge.new_empty(edge.shape)


@operator("viterbi", save_inputs, _analytic_or_reference(search.best_before_and_after, best_before_and_after_backward))
def best_before_and_after(unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best scores of all that is before, and of all that is after, each label.

    The unary score of the label itself is excluded. The gradient of an entry is that of the score of its best prefix or
    suffix, the lowest label among equals at each step outwards; 0 where there is none. Returns two tensors (B, T, L), 0
    at the ends and in the padding, -inf where nothing is possible.
    """
    return torch.empty_like(unary), torch.empty_like(unary)


def _save_probabilities(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    unary, edge, lengths, ctx.with_pairs = inputs
    ctx.save_for_backward(unary, edge, lengths, output[1], output[2])
    ctx.set_materialize_grads(False)


def _from_probabilities(
    ctx: Any, total: Tensor | None, nodes: Tensor | None, pairs: Tensor | None
) -> tuple[Tensor | None, ...]:
    unary, edge, lengths, p_nodes, p_pairs = ctx.saved_tensors
    own = steps = None
    if total is not None:
        own = total.view(-1, 1, 1) * p_nodes
        if ctx.needs_input_grad[1]:
            if not ctx.with_pairs:
                p_pairs = forward_backward(unary, edge, lengths, True)[2]
            shared = len(edge) == 1
            steps = (total @ p_pairs.flatten(1)).view_as(edge) if shared else total.view(-1, 1, 1, 1) * p_pairs
    if nodes is not None or pairs is not None:

        def probabilities(unary: Tensor, edge: Tensor) -> tuple[Tensor, ...]:
            return sums.forward_backward(unary, edge, lengths, ctx.with_pairs)[1:]

        more = reference_gradients(probabilities, (unary, edge), (nodes, pairs))
        own, steps = (y if x is None else x + y for x, y in zip((own, steps), more, strict=True))
    return own, steps, None, None


@operator("forward_backward", _save_probabilities, _from_probabilities)
def forward_backward(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return log Z, and the marginal probabilities of labels and of label pairs (Baum 1972, Rabiner 1989).

    The gradient of log Z is the probabilities. The gradient of the probabilities, and all further derivatives, are
    computed in tensor operations. `with_pairs`: whether to compute the probabilities of pairs.

    Returns:
        log Z (B,), -inf without a possible label sequence, 0 for an empty sequence. The probabilities of labels (B, T,
        L), 0 where impossible and in the padding. Those of the pair into each token (B, T, L, L), 0 also at the first
        token; for edges that are the same at all tokens their sum over the tokens (B, 1, L, L); empty without
        `with_pairs`.

    Example:
        >>> import torch
        >>> from structperc.ops import operators as ops
        >>> unary = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> log_z, labels, pairs = ops.forward_backward(unary, torch.zeros(1, 1, 2, 2), torch.tensor([2]), True)
        >>> log_z, labels[0, 0]
        (tensor([3.4402]), tensor([0.2689, 0.7311]))
    """
    (B, T, L), each = unary.shape, edge.shape[1] if edge.shape[1] == 1 else unary.shape[1]
    pairs = unary.new_empty(B, each, L, L) if with_pairs else unary.new_empty(0)
    return unary.new_empty(B), unary.new_empty(B, T, L), pairs


@operator("forward_backward")
def sample(unary: Tensor, edge: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Return label sequences drawn from p(y | x), by filtering backwards and sampling forwards.

    Each label is the first one whose cumulative probability, given the label before, exceeds the noise. `noise`: (B, n,
    T) float64, uniform in [0, 1). Returns labels (B, n, T) int64, 0 in the padding and where no label sequence is
    possible.
    """
    return lengths.new_empty(noise.shape, dtype=lengths.dtype)


@operator("forward_backward")
def local_log_partition_backward(unary: Tensor, edge: Tensor, lengths: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of unary and edge scores, from that of the result of `local_log_partition`.

    `grad`: (B, T, L), gradient of the result.
    """
    return torch.empty_like(unary), edge.new_empty(edge.shape)


@operator(
    "forward_backward",
    save_inputs,
    _analytic_or_reference(sums.local_log_partition, local_log_partition_backward),
)
def local_log_partition(unary: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Return log sum_j exp(unary[t + 1, j] + edge[t + 1, i, j]) for each label i of each token t.

    Returns the log-sums (B, T, L), 0 at last tokens and in the padding. They are +inf where no label can follow, so
    that a score less this sum is impossible.
    """
    return torch.empty_like(unary)


def _save_paths(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    unary, edge, lengths, labels, rows = inputs
    ctx.save_for_backward(lengths, labels, rows)
    ctx.shapes = list(unary.shape), list(edge.shape)


def _count_paths(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    lengths, labels, rows = ctx.saved_tensors
    return *path_counts(grad, lengths, labels, rows, *ctx.shapes), None, None, None


@operator("paths", _save_paths, _count_paths)
def path_score(unary: Tensor, edge: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """Return the score of each given label sequence.

    `labels`: (S, T) int64; labels in the padding are not read. `rows`: (S,) int64, the sequence of each label sequence.
    Returns the scores (S,). On other devices than a CPU the score is NaN if a label of a token is outside 0..L-1.

    Raises:
        InputError: on a CPU, a label of a token outside 0..L-1.
    """
    return unary.new_empty(labels.shape[0])


def _save_counted_paths(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[1:4])


def _score_paths(ctx: Any, unary: Tensor, edge: Tensor) -> tuple[Tensor | None, ...]:
    return path_score(unary, edge, *ctx.saved_tensors), *[None] * 5


@operator("paths", _save_counted_paths, _score_paths)
def path_counts(
    weights: Tensor, lengths: Tensor, labels: Tensor, rows: Tensor, unary: Sequence[int], edge: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Return the summed weights of the label sequences through each label and each label pair.

    This is the transpose of `path_score`. Labels outside 0..L-1 are left out. Returns two tables of these shapes.

    Args:
        weights: (S,), one for each label sequence.
        labels: (S, T) int64.
        rows: (S,) int64, the sequence of each label sequence.
        unary: shape of the unary scores.
        edge: shape of the edge scores.
    """
    return weights.new_empty(unary), weights.new_empty(edge)
