"""Linear scores of feature ids and of fixed vectors, for learning sequence by sequence."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from structperc.data.corpus import Corpus
from structperc.encoders import FrozenVectors
from structperc.errors import InputError
from structperc.ragged import Ragged, boundaries
from structperc.scorers.base import LinearForm
from structperc.scorers.sparse_linear import AnyBatch, SparseLinear
from structperc.structures import Batch, Lattice


class VectorLinear(SparseLinear):
    """`SparseLinear` whose features are those of the templates and the components of the vectors of tokens.

    score(y_{t-1}, y_t, x, t) = sum_f node[f, y_t] + sum_d v_t[d] node[F + d, y_t] + transition[y_{t-1}, y_t] over the F
    node features f that fire at token t and the D components of its vector v_t; edge features are added as in
    `SparseLinear`. Vectors are scaled to the same length, and are not trained. A passive-aggressive or perceptron epoch
    takes seconds, since the encoder has run once before.

    Args:
        vectors: vectors of a frozen encoder, with width None.
        length: Euclidean length of all vectors; a feature of a template counts 1.
        transitions: learn a stationary (L, L) table.
        sparse_grad: compute gradients as COO tensors, as in `SparseLinear`.

    Raises:
        InputError: vectors with a width, or a length that is not positive.

    Example:
        >>> from structperc.data import Corpus
        >>> from structperc.encoders import FrozenVectors, Window, WordEmbedding
        >>> from structperc.scorers import VectorLinear
        >>> scorer = VectorLinear(FrozenVectors(Window([WordEmbedding(width=4)], window_size=1), width=None))
        >>> scorer.build_vocabulary(Corpus.from_sentences([{"word": ["Anna", "slept"]}]))
        >>> scorer.allocate(n_node=10, n_edge=0, n_labels=3)  # the tagger calls both
        >>> scorer.node.shape  # 10 features and 3 words of 4 components
        torch.Size([22, 3])
    """

    def __init__(
        self, vectors: FrozenVectors, length: float = 1.0, transitions: bool = True, sparse_grad: bool = True
    ) -> None:
        super().__init__(transitions, sparse_grad)
        if vectors.width is not None:
            raise InputError(f"VectorLinear: vectors must not be projected; set width: null, got {vectors.width}")
        if not length > 0:
            raise InputError(f"VectorLinear: length must be > 0, got {length}")
        self.vectors, self.length = vectors, length
        self.n_inputs, self.extent = vectors.n_inputs, vectors.extent

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Prepare the encoder."""
        self.vectors.build_vocabulary(corpus)

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the vectors of the tokens of a corpus."""
        return self.vectors.encode_inputs(corpus)

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return None: the encoder has run."""
        return None

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weight tables: (n_node + D, L), (n_edge, L*L), (L, L)."""
        super().allocate(n_node + self.vectors.size, n_edge, n_labels)

    def compiled(self) -> LinearForm | None:
        """Return the weights, and the components of the vectors as further features."""
        form = super().compiled()
        return form and form._replace(add_features=self.add_features, n_added=self.vectors.size)

    @torch.no_grad()
    def add_features(self, batch: AnyBatch) -> AnyBatch:
        """Return the batch with the components of the vectors as further node features with values."""
        nodes, D = batch.nodes, self.vectors.size
        values = normalize(self.vectors(batch.inputs[0]).float()) * self.length  # (n, D)
        first = len(self.node) - D
        own = torch.arange(first, len(self.node), dtype=nodes.ids.dtype, device=nodes.ids.device)
        ends = boundaries(nodes.counts + D).to(nodes.offsets.dtype)
        is_vector = torch.ones(len(nodes.ids) + values.numel(), dtype=torch.bool, device=own.device)
        shifts = torch.arange(nodes.n, device=own.device).repeat_interleave(nodes.counts) * D
        is_vector[torch.arange(len(nodes.ids), device=own.device) + shifts] = False
        ids = own.new_empty(len(is_vector))
        ids[~is_vector], ids[is_vector] = nodes.ids, own.repeat(nodes.n)
        weights = values.new_ones(len(is_vector))
        weights[is_vector] = values.flatten()
        if nodes.weights is not None:
            weights[~is_vector] = nodes.weights
        return batch._replace(nodes=Ragged(ids, ends, weights=weights))

    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch, as `SparseLinear` does."""
        return super().forward(self.add_features(batch))
