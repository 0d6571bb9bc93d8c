"""Sums over all labellings and what they expect: the forward-backward algorithm (Baum 1972, Rabiner 1989)."""

from typing import Any

from torch import Tensor

from structperc.ops.registration import by_tensors, declare
from structperc.ops.tensors.expectations import expectations as reference


def _shapes(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    (B, T, L), each = unary.shape, edge.shape[1] if edge.shape[1] == 1 else unary.shape[1]
    pairs = unary.new_empty(B, each, L, L) if with_pairs else unary.new_empty(0)
    return unary.new_empty(B), unary.new_empty(B, T, L), pairs


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    unary, edge, lengths, ctx.with_pairs = inputs
    ctx.save_for_backward(unary, edge, lengths, output[1], output[2])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, total: Tensor | None, nodes: Tensor | None, pairs: Tensor | None) -> tuple[Tensor | None, ...]:
    unary, edge, lengths, p_nodes, p_pairs = ctx.saved_tensors
    own = steps = None
    if total is not None:
        own = total.view(-1, 1, 1) * p_nodes
        if ctx.needs_input_grad[1]:
            if not ctx.with_pairs:
                p_pairs = expectations(unary, edge, lengths, True)[2]
            shared = len(edge) == 1
            steps = (total @ p_pairs.flatten(1)).view_as(edge) if shared else total.view(-1, 1, 1, 1) * p_pairs
    if nodes is not None or pairs is not None:

        def expected(unary: Tensor, edge: Tensor) -> tuple[Tensor, ...]:
            return reference(unary, edge, lengths, ctx.with_pairs)[1:]

        more = by_tensors(expected, (unary, edge), (nodes, pairs))
        own, steps = _sum(own, more[0]), _sum(steps, more[1])
    return own, steps, None, None


def _sum(x: Tensor | None, y: Tensor | None) -> Tensor | None:
    return y if x is None else x if y is None else x + y


_expectations = declare(
    "expectations",
    "expectations",
    "(Tensor unary, Tensor edge, Tensor lengths, bool with_pairs) -> (Tensor, Tensor, Tensor)",
    _shapes,
    (_keep, _backward),
)


def expectations(unary: Tensor, edge: Tensor, lengths: Tensor, with_pairs: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-partition (B,), probabilities of labels (B, T, L), and probabilities of label pairs.

    unary is (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,) int64. Probabilities of pairs are (B, T, L, L), of the
    pair into each token; where edges are the same at all tokens, (B, 1, L, L), summed over the tokens. Without
    `with_pairs` they have no entry.

    log Z is -inf without any legal labelling and 0 for an empty sequence. Probabilities are 0 where impossible, in the
    padding, at the first token for pairs, and without a legal labelling. The gradient of log Z is the probabilities;
    theirs, covariances, is taken in tensor operations, and so are all further derivatives.
    """
    return _expectations(unary, edge, lengths, with_pairs)
