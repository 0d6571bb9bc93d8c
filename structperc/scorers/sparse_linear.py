"""Linear scores of surface features: the scorer of perceptron and CRF taggers.

`sum_features` sums weight rows over ragged lists of feature ids, with a sparse gradient.
"""

from typing import Any, ClassVar, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from structperc.errors import InputError
from structperc.ragged import Ragged, spread
from structperc.scorers.base import LinearForm, Scorer
from structperc.structures import Batch, FlatBatch, Lattice, WeightAxes, real_tokens

AnyBatch = TypeVar("AnyBatch", Batch, FlatBatch)


class _EntryGradSum(torch.autograd.Function):
    """embedding_bag whose gradient is a COO tensor over single weights.

    A perceptron gradient is non-zero only at the few (token, label) entries at which the compared paths differ. The
    backward pass visits only these entries, at a cost of (differing entries) x (features of the token). On a GPU the
    number of entries would need a synchronisation: there the gradient is over whole rows.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, offsets: Tensor, feature_weights: Tensor | None) -> Tensor:
        ctx.save_for_backward(ids, offsets, feature_weights)
        ctx.size = weight.shape
        return _sums(weight.detach(), ids, offsets, feature_weights)  # detached: embedding_bag needs no gradient

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        ids, offsets, feature_weights = ctx.saved_tensors
        if grad.device.type != "cpu":
            rows = _scale(grad.index_select(0, Ragged(ids, offsets).row_ids), feature_weights)
            sparse = torch.sparse_coo_tensor(ids[None].long(), rows, ctx.size, check_invariants=False)
            return sparse, None, None, None
        token, column = grad.nonzero().unbind(1)
        first = offsets.index_select(0, token)
        count = offsets.index_select(0, token + 1) - first
        entry, places = spread(count, first)  # (token, column) entry of each weight
        index = torch.stack([ids.index_select(0, places), column.index_select(0, entry)])
        shares = None if feature_weights is None else feature_weights[places]
        values = _scale(grad[token, column].index_select(0, entry), shares)
        return torch.sparse_coo_tensor(index, values, ctx.size, check_invariants=False), None, None, None


class _RowGradSum(torch.autograd.Function):
    """embedding_bag whose gradient is another embedding_bag: for each occurring feature the sum over its tokens."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, features: Ragged, places: Tensor | None, *transposed: Tensor) -> Tensor:
        ctx.save_for_backward(places, *transposed)
        ctx.size = weight.shape
        return _sums(weight.detach(), features.ids, features.offsets, features.weights)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        places, features, tokens, offsets, feature_weights = ctx.saved_tensors
        grad = grad.contiguous() if places is None else grad.index_select(0, places)
        rows = _sums(grad, tokens, offsets, feature_weights)
        sparse = torch.sparse_coo_tensor(features[None], rows, ctx.size, is_coalesced=True, check_invariants=False)
        return sparse, *[None] * 6


def sum_features(weight: Tensor, features: Ragged, sparse_grad: bool = True, real: Tensor | None = None) -> Tensor:
    """Sum the weight rows of each token's features, multiplied by the values of the features if there are any.

    weight (R, C) and n tokens -> (n, C), zeros for a token without features. With a mask `real` (S,) bool, True at n
    places, the sums of the tokens stand at these places of (S, C), with zeros elsewhere. The gradient of weight is a
    COO tensor over single weights (sparse_dim 2, uncoalesced) if `sparse_grad`, on a GPU over whole rows (sparse_dim 1,
    uncoalesced). Otherwise it is dense, or for transposed features over whole rows and coalesced, so that it can be
    added to a dense `weight.grad` in place.
    """
    places, transposed = None, features.transposed
    if real is not None and (torch.compiler.is_compiling() or len(real) > features.n):
        if transposed is not None:
            places = real.nonzero_static(size=features.n).squeeze(1)  # without a GPU synchronisation
        features = features.pad(real)
    if sparse_grad:
        return _EntryGradSum.apply(weight, features.ids, features.offsets, features.weights)
    if transposed is not None:
        return _RowGradSum.apply(weight, features, places, *transposed)
    return _sums(weight, features.ids, features.offsets, features.weights)


def _sums(weight: Tensor, ids: Tensor, offsets: Tensor, feature_weights: Tensor | None) -> Tensor:
    own = None if feature_weights is None else feature_weights.to(weight.dtype)
    return F.embedding_bag(ids, weight, offsets, mode="sum", per_sample_weights=own, include_last_offset=True)


def _scale(values: Tensor, feature_weights: Tensor | None) -> Tensor:
    """Multiply values (n,) or rows (n, C) by feature_weights (n,), if there are any."""
    if feature_weights is None:
        return values
    return values * feature_weights.to(values.dtype).view(-1, *[1] * (values.ndim - 1))


class SparseLinear(Scorer):
    """Linear scores of feature ids, with L weights for each node feature and L*L for each edge feature.

    score(y_{t-1}, y_t, x, t) = sum_f node[f, y_t] + sum_g edge[g, y_{t-1}, y_t] + transition[y_{t-1}, y_t] over the
    node features f and the edge features g at token t. If the data list features with values, node[f] and edge[g] are
    multiplied by them. Edge features make the score of a label pair depend on the observation (Kazama & Torisawa 2007,
    Table 1); `transitions` does not. Node and edge weights exist if the feature extractor has such templates. Weights
    are initially zero.

    Args:
        transitions: learn a stationary (L, L) table; redundant with the edge template "bias".
        sparse_grad: compute gradients as COO tensors over the touched weights, for optimizers of the perceptron
            family; False for optimizers that need dense gradients (Adam, L-BFGS).

    Example:
        >>> import torch
        >>> from structperc.nn.inputs import TokenPositions, build_batch
        >>> from structperc.ragged import Ragged
        >>> from structperc.scorers import SparseLinear
        >>> scorer = SparseLinear(transitions=False)
        >>> scorer.allocate(n_node=2, n_edge=0, n_labels=2)
        >>> scorer.node = torch.nn.Parameter(torch.tensor([[1.0, 0.0], [0.0, 5.0]]))
        >>> batch = build_batch(TokenPositions.from_mask(torch.ones(1, 2).bool()), None, None, None)
        >>> nodes = Ragged.from_counts(torch.tensor([0, 1, 1]), torch.tensor([2, 1]))  # features 0, 1; then feature 1
        >>> scorer(batch._replace(nodes=nodes)).unary.tolist()
        [[[1.0, 5.0], [0.0, 5.0]]]
    """

    weight_axes: ClassVar[WeightAxes] = {
        "node": ("node", "label"),
        "edge": ("edge", "label pair"),
        "transition": ("label", "label"),
    }
    node: nn.Parameter
    edge: nn.Parameter | None
    transition: nn.Parameter | None

    def __init__(self, transitions: bool = True, sparse_grad: bool = True) -> None:
        super().__init__()
        self.transitions = transitions
        self.sparse_grad = sparse_grad

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weight tables once features and labels are known: (n_node, L), (n_edge, L*L), (L, L).

        Raises:
            InputError: there are no node features.
        """
        if not n_node:
            raise InputError(
                'features.node: there are no features; give at least one template, such as "bias", or lower the cutoff'
            )
        self.node = nn.Parameter(torch.zeros(n_node, n_labels))
        self.edge = nn.Parameter(torch.zeros(n_edge, n_labels * n_labels)) if n_edge else None
        self.transition = nn.Parameter(torch.zeros(n_labels, n_labels)) if self.transitions else None

    def compiled(self) -> LinearForm | None:
        """Return the weights; None for weights that other modules compute, such as those of a parametrization."""
        weights = self.node, self.edge, self.transition
        own = all(one is None or isinstance(one, nn.Parameter) for one in weights)
        return LinearForm(*weights) if own else None

    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch, with zeros in the padding.

        Unary scores are (B, T, L), edge scores (B, T, L, L), or (1, 1, L, L) without edge features.
        """
        node, (B, T) = self.node, batch.sentences.shape
        real = real_tokens(batch.lengths.to(node.device), T).flatten()
        unary = sum_features(node, batch.nodes, self.sparse_grad, real).view(B, T, node.shape[1])
        return Lattice(unary, self._edges(batch, real, unary), batch.lengths)

    def _edges(self, batch: Batch, real: Tensor, unary: Tensor) -> Tensor:
        edge, transition, (B, T, L) = self.edge, self.transition, unary.shape
        stationary = unary.new_zeros(1, 1, L, L) if transition is None else transition.view(1, 1, L, L)
        if edge is None or batch.edges is None:
            return stationary
        observed = sum_features(edge, batch.edges, self.sparse_grad, real).view(B, T, L, L)
        return observed if transition is None else observed + stationary
