"""Linear scores of surface features: the scorer of perceptron and CRF taggers."""

import torch
from torch import Tensor, nn

from structperc.errors import InputError
from structperc.scorers.bags import bag_sum
from structperc.scorers.base import Scorer
from structperc.structures import Batch, Lattice, real_tokens


class SparseLinear(Scorer):
    """Feature ids -> Lattice: a row of L weights for each node feature, of L*L for each edge feature.

    score(y_{t-1}, y_t, x, t) = sum_f node[f, y_t] + sum_g edge[g, y_{t-1}, y_t] + transition[y_{t-1}, y_t]

    where a feature that the data list with a weight counts as much as that.

    Edge rows make the score of a label pair depend on the observation (Kazama & Torisawa 2007, Table 1);
    `transitions` is the plain table that does not. Each part is switched on by its use: node and edge by the
    templates of the feature extractor, transitions here. Weights start at zero.

    Args:
        transitions: learn a stationary (L, L) table; with edge features whose templates contain the empty
            surface part the table says nothing new.
        sparse_grad: give gradients as COO tensors over the touched weights. Perceptron-family optimizers
            take them; switch off for optimizers that need dense gradients (Adam, L-BFGS).
    """

    node: nn.Parameter
    edge: nn.Parameter | None
    transition: nn.Parameter | None

    def __init__(self, transitions: bool = True, sparse_grad: bool = True) -> None:
        super().__init__()
        self.transitions = transitions
        self.sparse_grad = sparse_grad

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weight tables once features and labels are known: (n_node, L), (n_edge, L*L), (L, L).

        Raises InputError if there is no node feature.
        """
        if not n_node:
            raise InputError(
                'features.node: there is no feature; give at least one template, such as "bias", or lower the cutoff'
            )
        self.node = nn.Parameter(torch.zeros(n_node, n_labels))
        self.edge = nn.Parameter(torch.zeros(n_edge, n_labels * n_labels)) if n_edge else None
        self.transition = nn.Parameter(torch.zeros(n_labels, n_labels)) if self.transitions else None

    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch, with zeros in the padding.

        Its unary scores are (B, T, L), its edge scores (B, T, L, L), or (1, 1, L, L) without edge features.
        """
        node, (B, T) = self.node, batch.sentences.shape
        L, n = node.shape[1], batch.nodes.offsets.shape[0] - 1
        real = real_tokens(batch.lengths.to(node.device), T)
        places = real.flatten().nonzero_static(size=n).squeeze(1)  # of the tokens in B * T; n is known without a look
        unary = at_places(bag_sum(node, batch.nodes, self.sparse_grad), places, B * T).view(B, T, L)
        return Lattice(unary, self._edges(batch, places, unary), batch.lengths)

    def _edges(self, batch: Batch, places: Tensor, unary: Tensor) -> Tensor:
        edge, transition, (B, T, L) = self.edge, self.transition, unary.shape
        stationary = unary.new_zeros(1, 1, L, L) if transition is None else transition.view(1, 1, L, L)
        if edge is None or batch.edges is None:
            return stationary
        observed = at_places(bag_sum(edge, batch.edges, self.sparse_grad), places, B * T).view(B, T, L, L)
        return observed if transition is None else observed + stationary


def at_places(flat: Tensor, places: Tensor, size: int) -> Tensor:
    """Return (size, C) with the scores (n, C) of the real tokens at their places (n,) and zeros elsewhere."""
    if flat.shape[0] == size:
        return flat
    return flat.new_zeros(size, flat.shape[1]).index_copy_(0, places, flat)
