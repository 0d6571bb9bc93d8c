"""The tagger of Shen et al. 2007: weights, their averages, inference and learning."""

from typing import Literal, get_args

import torch
from torch import nn

from structperc.errors import InputError
from structperc.guided import compiled
from structperc.guided.arrays import Lessons, Sums, Text, changed, check_range, here, of_tokens, starts_of
from structperc.guided.context import ContextFeatures
from structperc.guided.decisions import Decisions
from structperc.guided.rules import Aggressive, Progress, Rule
from structperc.guided.updates import Updates
from structperc.scorers import SparseLinear
from structperc.structures import Batch

Order = Literal["easiest", "left-to-right"]


class GuidedModel(nn.Module):
    """Bidirectional tagger whose order of inference is learned (Shen, Satta & Joshi 2007).

    U(token i gets label y) = sum_f static.node[f, y] + sum_g context.table[g, y] over the features f of the token and
    the features g of those neighbouring labels that are decided (Eq. 2). V(hypothesis) = V(left context) +
    V(right context) + U (Eq. 1). All labels are tried for all tokens.

    Learning moves the parameters without gradients, through `Updates`. One decision waits for the other, which suits
    a CPU alone: weights that are elsewhere are brought there for each mini-batch.

    Args:
        static: its node weights score what labels of other tokens do not matter to.
        context: scores what they do matter to.
        beam: states kept of each span.
        order: "easiest", or "left-to-right" for comparison.
        rule: when learning accepts a candidate and when it changes the weights.

    Raises:
        InputError: beam < 1; there is no such order; static has transitions of its own.
    """

    def __init__(
        self,
        static: SparseLinear,
        context: ContextFeatures,
        beam: int = 3,
        order: Order = "easiest",
        rule: Rule | None = None,
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
        """Create all weights once features and labels are known, all zero."""
        self.static.allocate(n_node, 0, n_labels)
        self.context.allocate(n_labels)

    @torch.no_grad()
    def decode(self, batch: Batch) -> Decisions:
        """Label a batch with the present weights."""
        node, table = here(self.static.node), here(self.context.table)
        text, weights = self._text(batch), self.context.weights(node.numpy(), table.numpy())
        B, T = batch.words.exact.shape
        found = Decisions.open(B, T, node.dtype)
        compiled.decide(starts_of(batch), text, weights, self.beam, self.order == "easiest", found)
        return Decisions(*(values.to(batch.lengths.device) for values in found))

    @torch.no_grad()
    def learn(self, batch: Batch, updates: Updates) -> Progress:
        """Visit the sentences of a batch one after the other and move the weights: each sees what the ones before left.

        Raises InputError for a batch without gold labels, or with labels that the model does not have.
        """
        if batch.gold is None:
            raise InputError("GuidedModel: there is nothing to learn from a batch without gold labels")
        gold = of_tokens(batch.gold, batch)
        check_range(gold, self.static.node.shape[1], "label")
        starts, text, easiest = starts_of(batch), self._text(batch), self.order == "easiest"
        tables = self.static.node, self.context.table
        with changed(*tables, *map(updates.sums, tables)) as (node, table, *sums):
            weights = self.context.weights(node, table)
            progress = self.rule.learn(
                Lessons(starts, text, gold, weights, Sums(*sums), updates.decisions, self.beam, easiest)
            )
        updates.count(progress.decisions)
        return progress

    def _text(self, batch: Batch) -> Text:
        if batch.nodes.weights is not None:
            raise InputError("guided learning reads binary features: leave out weights other than 1, or use a Tagger")
        ids, offsets = here(batch.nodes.ids), here(batch.nodes.offsets)
        check_range(ids, self.static.node.shape[0], "feature")
        keys = self.context.keys(here(batch.words.exact))
        return Text(ids.int().numpy(), offsets.long().numpy(), of_tokens(keys, batch))
