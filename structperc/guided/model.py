"""The tagger of Shen et al. 2007: context features and the model."""

from itertools import accumulate
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.guided.arrays import (
    Decisions,
    TokenArrays,
    TrainingData,
    WeightArrays,
    WeightSums,
    check_range,
    sentence_starts,
    to_cpu,
    without_padding,
    writable_arrays,
)
from structperc.guided.rules import Aggressive, GuidedOptimizer, GuidedRule, LearningCounts
from structperc.guided.templates import OFFSETS, parse_context
from structperc.nonlocal_features.strings import combined
from structperc.scorers import SparseLinear
from structperc.structures import Batch, FlatBatch

SIDES = ({False}, {True}, {False, True})  # whether the labels of a template are after the token


class ContextFeatures(nn.Module):
    """Features of the labels, and words, next to a token: a row of L weights for each combination of a template.

    A template fires only where all its labels are known. Combinations of k labels have L**k rows of their own. With
    words they are hashed: all such templates share `size` rows, and combinations in one row share its weights. Row 0
    stays zero, for templates that do not fire. Weights start at zero.

    Below, F is the number of templates, those without words first, and H of those with words. A window is the labels
    at the offsets -2, -1, 1 and 2 from the token, UNKNOWN where they are not decided.

    Args:
        templates: see `parse_context`.
        size: rows for the templates with words.

    Raises:
        InputError: a template is invalid, or size < 1.
    """

    table: nn.Parameter  # (R, L)
    radix: Tensor  # (F, 4) int64, factors of the labels in the number of a combination
    first: Tensor  # (F,) int64, first row

    def __init__(self, templates: list, size: int = 2**18) -> None:
        super().__init__()
        if size < 1:
            raise InputError(f"context.size: expected >= 1, got {size}")
        self.templates, self.size = templates, size
        self.parsed = tuple(sorted(parse_context(templates), key=lambda template: bool(template.words)))
        self.exact = sum(not template.words for template in self.parsed)  # without words

    def allocate(self, n_labels: int) -> None:
        """Create the table of weights once the labels are known."""
        offsets = [template.labels for template in self.parsed]
        sizes = [n_labels ** len(at) for at in offsets[: self.exact]]
        *first, hashed = accumulate(sizes, initial=1)
        first += [hashed] * (len(offsets) - self.exact)
        radix = [n_labels ** at.index(i) if i in at else 0 for at in offsets for i in OFFSETS]
        self.register_buffer("radix", torch.tensor(radix, dtype=torch.int64).view(-1, len(OFFSETS)), persistent=False)
        self.register_buffer("first", torch.tensor(first, dtype=torch.int64), persistent=False)
        rows = hashed + self.size * (self.exact < len(offsets))
        self.table = nn.Parameter(torch.zeros(rows, n_labels))

    def keys(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Return hashes (n, H) of the words of each template with words.

        words (n,) int64 are those of sentences of lengths (B,), one after the other; outside of a sentence they are 0.
        """
        with_words = self.parsed[self.exact :]
        seeds = word_hashes(map(str, with_words)).tolist()
        ends = lengths.cumsum(0).repeat_interleave(lengths)
        starts = ends - lengths.repeat_interleave(lengths)
        columns = [
            combined(torch.full_like(words, seed), *(_shifted(words, starts, ends, i) for i in template.words))
            for template, seed in zip(with_words, seeds, strict=True)
        ]
        return torch.stack(columns, -1) if columns else words.new_zeros(len(words), 0)

    def rows(self, windows: Tensor, keys: Tensor) -> Tensor:
        """Return the rows (n, F) of the table for windows (n, 4) and keys (n, H); 0 where a template does not fire."""
        from structperc.guided import search  # needs numba

        none = np.zeros((0, self.table.shape[1]), np.float32)
        return torch.from_numpy(search.rows(windows.numpy(), keys.numpy(), self.weights(none, none)))

    def weights(self, node: np.ndarray, table: np.ndarray) -> WeightArrays:
        """Return the weights of token features (R, L) and of contexts as compiled functions read them."""
        sides = [{offset > 0 for offset in template.labels} for template in self.parsed]
        before, after, around = (
            np.array([f for f, side in enumerate(sides) if side == own], np.int64) for own in SIDES
        )
        radix, first = self.radix.cpu().numpy(), self.first.cpu().numpy()
        return WeightArrays(node, table, radix, first, self.size, before, after, around)


def _shifted(words: Tensor, starts: Tensor, ends: Tensor, offset: int) -> Tensor:
    """Return the words `offset` tokens from each of words (n,), 0 outside of the sentence starts:ends of a token."""
    places = torch.arange(len(words)) + offset
    return words.roll(-offset).where((places >= starts) & (places < ends), 0)


Order = Literal["easiest", "left-to-right"]


class GuidedModel(nn.Module):
    """Bidirectional tagger whose order of inference is learned (Shen, Satta & Joshi 2007).

    U(token i gets label y) = sum_f static.node[f, y] + sum_g context.table[g, y] over the features f of the token and
    the features g of those neighbouring labels that are decided (Eq. 2). V(hypothesis) = V(left context) +
    V(right context) + U (Eq. 1). All labels are tried for all tokens.

    Learning updates the parameters without gradients, with a `GuidedOptimizer`. It runs on a CPU: weights on another
    device are copied for each mini-batch.

    Args:
        static: scores of features that do not depend on the labels of other tokens.
        context: scores of features that do.
        beam: states kept of each span.
        order: "easiest", or "left-to-right" for comparison.
        rule: when learning accepts a candidate and when it changes the weights.

    Raises:
        InputError: beam < 1; the order is unknown; static has transitions.
    """

    def __init__(
        self,
        static: SparseLinear,
        context: ContextFeatures,
        beam: int = 3,
        order: Order = "easiest",
        rule: GuidedRule | None = None,
    ) -> None:
        super().__init__()
        if beam < 1:
            raise InputError(f"GuidedModel: beam must be >= 1, got {beam}")
        if order not in get_args(Order):
            raise InputError(f"GuidedModel: order must be one of {', '.join(get_args(Order))}, got {order!r}")
        if static.transitions:
            raise InputError("GuidedModel: set static.transitions: false; labels of neighbours belong to context")
        self.static, self.context = static, context
        self.beam, self.order, self.rule = beam, order, rule or Aggressive()

    def allocate(self, n_node: int, n_labels: int) -> None:
        """Create all weights, zero, once features and labels are known."""
        self.static.allocate(n_node, 0, n_labels)
        self.context.allocate(n_labels)

    @torch.no_grad()
    def decode(self, batch: Batch) -> Decisions:
        """Label a batch."""
        from structperc.guided import search  # needs numba

        node, table = to_cpu(self.static.node), to_cpu(self.context.table)
        words = without_padding(batch.words.exact, batch.lengths)
        text, weights = self._text(batch, words), self.context.weights(node.numpy(), table.numpy())
        B, T = batch.words.exact.shape
        found = Decisions.empty(B, T, node.dtype)
        search.decide(sentence_starts(batch), text, weights, self.beam, self.order == "easiest", found)
        return Decisions(*(values.to(batch.lengths.device) for values in found))

    @torch.no_grad()
    def learn(self, batch: FlatBatch, optimizer: GuidedOptimizer) -> LearningCounts:
        """Learn from the sentences of a batch one after the other, each with the weights that the one before left.

        Raises:
            InputError: gold labels are unknown to the model.
        """
        gold = to_cpu(batch.gold).numpy()
        check_range(gold, self.static.node.shape[1], "label")
        starts, easiest = sentence_starts(batch), self.order == "easiest"
        text = self._text(batch, to_cpu(batch.words.exact))
        tables = self.static.node, self.context.table
        with writable_arrays(*tables, *map(optimizer.sums, tables)) as (node, table, *sums):
            weights = self.context.weights(node, table)
            counts = self.rule.learn(
                TrainingData(starts, text, gold, weights, WeightSums(*sums), optimizer.decisions, self.beam, easiest)
            )
        optimizer.count(counts.decisions)
        return counts

    def _text(self, batch: Batch | FlatBatch, words: Tensor) -> TokenArrays:
        """Return the arrays of a batch, whose tokens have these words (n,) on the CPU."""
        if batch.nodes.weights is not None:
            raise InputError("GuidedModel: feature weights are not supported; leave them out, or use a Tagger")
        ids, offsets = to_cpu(batch.nodes.ids), to_cpu(batch.nodes.offsets)
        check_range(ids, self.static.node.shape[0], "feature")
        keys = self.context.keys(words, to_cpu(batch.lengths))
        return TokenArrays(ids.int().numpy(), offsets.long().numpy(), keys.numpy())
