"""Operators on segments: contracts, shapes and derivatives.

Scores are those of `SemiMarkovScores`. A segmentation is a sequence of labels: c begins a segment of type c, C + c
continues it. For errors and other results of invalid scores see `structperc.ops.operators`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structperc.ops.operators import reference_gradients, save_inputs
from structperc.ops.reference import semi_markov as reference
from structperc.ops.registration import operator


class SemiMarkovScores(NamedTuple):
    """Scores of segments: C types, segments of up to D tokens (Sarawagi & Cohen 2004); -inf is impossible.

    The score of a segmentation is the sum of the token scores of each token by the type of its segment, of the segment
    scores, and of the pair scores of neighbours.

    Example:
        >>> from structperc.ops import segment_operators as ops
        >>> token, segment = torch.zeros(1, 3, 2), torch.zeros(1, 3, 2, 2)  # C = 2, D = 2
        >>> segment[0, 1, 1, 1] = 4.0  # the last two tokens are a segment of type 1
        >>> ops.semi_markov_viterbi(*ops.SemiMarkovScores(token, segment, torch.zeros(2, 2), torch.tensor([3])))
        (tensor([4.]), tensor([[0, 1, 3]]))
    """

    token: Tensor  # (B, T, C) score of type c at t
    segment: Tensor  # (B or 1, T or 1, D, C) score of a segment of d + 1 tokens and type c that begins at t; segments
    #                  that end after the last token are never read. 1: the same for all sequences or tokens
    pair: Tensor  # (C, C) score of a segment of type i followed by one of type j
    lengths: Tensor  # (B,) int64, 0 <= length <= T


@operator("semi_markov")
def semi_markov_viterbi(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best segmentation of each sequence and its score (Sarawagi & Cohen 2004, Section 3.1).

    Ties go to the first in lexicographic order of labels: to the lower type, then to the shorter segment. Returns
    scores (B,), -inf without a possible segmentation, 0 for an empty sequence; labels (B, T) int64, 0 in both cases and
    in the padding.
    """
    B, T, _ = token.shape
    return token.new_empty(B), lengths.new_empty(B, T, dtype=torch.int64)


@operator("semi_markov")
def semi_markov_kbest(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the k best segmentations of each sequence, best first; see `structperc.ops.operators.kbest`.

    `k`: number of segmentations. Returns labels (B, k, T) int64, scores (B, k) and valid (B, k) bool.
    """
    (B, T, _), dtype = token.shape, torch.int64
    return lengths.new_empty(B, k, T, dtype=dtype), token.new_empty(B, k), lengths.new_empty(B, k, dtype=torch.bool)


def _save_probabilities(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:4], *output[1:])
    ctx.set_materialize_grads(False)


def _from_probabilities(function: Callable[..., tuple[Tensor, ...]], *options: Any) -> Callable[..., Any]:
    """Return the backward function of an operator on sums, given its reference and further arguments."""

    def backward(ctx: Any, total: Tensor | None, *others: Tensor | None) -> tuple[Tensor | None, ...]:
        token, segment, pair, lengths, p_segments, p_tokens, p_pairs = ctx.saved_tensors
        grads: list[Tensor | None] = [None, None, None]
        if total is not None:
            each = total.view(-1, 1, 1)
            if len(segment) == 1:
                of_segments = torch.tensordot(total, p_segments, 1).unsqueeze(0)
            else:
                of_segments = each.unsqueeze(3) * p_segments
            grads = [each * p_tokens, of_segments.sum_to_size(segment.shape), (each * p_pairs).sum(0)]
        if any(x is not None for x in others):

            def probabilities(*scores: Tensor) -> tuple[Tensor, ...]:
                return function(*scores, lengths, *options)[1:]

            more = reference_gradients(probabilities, (token, segment, pair), others)
            grads = [y if x is None else x + y for x, y in zip(grads, more, strict=True)]
        return *grads, *[None] * (1 + len(options))

    return backward


@operator("semi_markov", _save_probabilities, _from_probabilities(reference.semi_markov_log_partition, True))
def semi_markov_log_partition(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, with_gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return log Z and, for its gradient, expected numbers; in less memory than `semi_markov_sums`.

    The gradient is computed from the other results; further derivatives are computed in tensor operations.
    `with_gradient`: False: the other results have no rows, (B, 0, ...), and there is no gradient. Returns log Z (B,)
    and the results of `semi_markov_sums`; with segment scores that are the same for all tokens, those of segments are
    summed over the tokens, (B, 1, D, C).
    """
    (B, T, C), (_, rows, D, _), n = token.shape, segment.shape, 1 if with_gradient else 0
    return (
        token.new_empty(B),
        token.new_empty(B, n * rows, D, C),
        token.new_empty(B, n * T, C),
        token.new_empty(B, n * C, C),
    )


@operator("semi_markov", _save_probabilities, _from_probabilities(reference.semi_markov_sums))
def semi_markov_sums(
    token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return log Z, the probabilities of segments and types, and expected numbers of pairs (Sarawagi & Cohen 2004).

    The gradient of log Z is computed from the other results; further derivatives are computed in tensor operations.
    Returns log Z (B,), -inf without a possible segmentation, 0 for an empty sequence; probabilities (B, T, D, C) of the
    segments by first token, number of tokens less 1, and type; probabilities (B, T, C) that a token is in a segment of
    a type; expected numbers (B, C, C) of pairs of neighbours.
    """
    (B, T, C), D = token.shape, segment.shape[2]
    return token.new_empty(B), token.new_empty(B, T, D, C), token.new_empty(B, T, C), token.new_empty(B, C, C)


def _from_best(ctx: Any, best: Tensor) -> tuple[Tensor | None, ...]:
    *scores, lengths = ctx.saved_tensors

    def function(token: Tensor, segment: Tensor, pair: Tensor) -> Tensor:
        return reference.semi_markov_best(token, segment, pair, lengths)

    return *reference_gradients(function, tuple(scores), (best,)), None


@operator("semi_markov", save_inputs, _from_best)
def semi_markov_best(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor) -> Tensor:
    """Return the best score of a segmentation with a given segment, for all segments.

    The gradient is computed in tensor operations. Returns (B, T, D, C), -inf where impossible; NaN in sequences with a
    score of +inf or NaN.
    """
    return token.new_empty(*token.shape[:2], *segment.shape[2:])


@operator("semi_markov")
def semi_markov_sample(token: Tensor, segment: Tensor, pair: Tensor, lengths: Tensor, noise: Tensor) -> Tensor:
    """Return segmentations drawn from p(segmentation | x), token by token; see `structperc.ops.operators.sample`.

    `noise`: (B, n, T) float64, uniform in [0, 1). Returns labels (B, n, T) int64, 0 in the padding and where no
    segmentation is possible.
    """
    return lengths.new_empty(noise.shape, dtype=torch.int64)
