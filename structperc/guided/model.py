"""The tagger of Shen et al. 2007: weights, their averages, inference and learning."""

from collections.abc import Callable
from typing import get_args

import torch
from torch import Tensor, nn

from structperc.errors import InputError
from structperc.guided.chart import Actions, Chart, Order
from structperc.guided.context import ContextFeatures
from structperc.guided.learning import Progress, learn
from structperc.guided.lesson import Lesson, Update
from structperc.guided.rules import Aggressive, Rule
from structperc.guided.search import Decisions, decide
from structperc.guided.updates import Updates
from structperc.ragged import Ragged
from structperc.scorers import SparseLinear
from structperc.scorers.bags import bag_sum
from structperc.structures import Batch, real_tokens


class GuidedModel(nn.Module):
    """Bidirectional tagger whose order of inference is learned (Shen, Satta & Joshi 2007).

    U(token i gets label y) = sum_f static.node[f, y] + sum_g context.table[g, y] over the features f of the token and
    the features g of those neighbouring labels that are decided (Eq. 2). V(hypothesis) = V(left context) +
    V(right context) + U (Eq. 1). All labels are tried for all tokens.

    Learning moves the parameters without gradients, through `Updates`.

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
        static = bag_sum(self.static.node, batch.nodes)
        return decide(self._chart(batch, self._keys(batch), lambda tokens: static[tokens]))

    @torch.no_grad()
    def learn(self, batch: Batch, updates: Updates) -> Progress:
        """Visit the sentences of a batch once and move the weights.

        Raises InputError for a batch without gold labels.
        """
        if batch.gold is None:
            raise InputError("GuidedModel: there is nothing to learn from a batch without gold labels")
        nodes, keys = batch.nodes, self._keys(batch)
        chart = self._chart(batch, keys, lambda tokens: bag_sum(self.static.node, nodes.select(tokens)))
        lesson = Lesson(chart, batch.gold[_real(batch)])
        return learn(lesson, self.rule, lambda update, decisions: self._move(nodes, keys, update, decisions, updates))

    def _keys(self, batch: Batch) -> Tensor:
        """(n, F) of the real tokens."""
        return self.context.keys(batch.words.exact)[_real(batch)]

    def _chart(self, batch: Batch, keys: Tensor, static: Callable[[Tensor], Tensor]) -> Chart:
        def scores(tokens: Tensor, owner: Tensor, windows: Tensor) -> Tensor:
            return static(tokens)[owner] + self.context(windows, keys[tokens[owner]])

        T = batch.words.exact.shape[1]
        return Chart(batch.lengths, T, self.beam, self.order, scores, self.static.node.detach())

    def _move(self, nodes: Ragged, keys: Tensor, update: Update, decisions: int, updates: Updates) -> None:
        """Promote and demote; count decisions."""
        for actions, sign in zip(update, (1, -1), strict=True):
            updates.add(self.static.node, self._node_weights(nodes, actions), sign)
            updates.add(self.context.table, self._context_weights(keys, actions), sign)
        updates.count(decisions)

    def _node_weights(self, nodes: Ragged, actions: Actions) -> Tensor:
        """Places in the flattened table, one for each feature of each action."""
        features = nodes.select(actions.tokens)
        return features.ids.long() * self.static.node.shape[1] + actions.labels.repeat_interleave(features.counts)

    def _context_weights(self, keys: Tensor, actions: Actions) -> Tensor:
        rows = self.context.rows(actions.windows, keys[actions.tokens])
        places = rows * self.context.table.shape[1] + actions.labels.unsqueeze(1)
        return places[rows > 0]


def _real(batch: Batch) -> Tensor:
    """(B, T) bool, no padding."""
    words = batch.words.exact
    return real_tokens(batch.lengths, words.shape[1])
