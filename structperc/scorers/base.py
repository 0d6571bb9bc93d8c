"""Base class of scorers and of modules with local weights; the sum of several scorers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from structperc.compiled_forms import Compilable, SegmentFeaturesForm
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.splits import Extent, widest
from structperc.errors import InputError
from structperc.kernels.array_types import WeightTables
from structperc.ragged import Ragged
from structperc.structures import Batch, FlatBatch, Lattice, WeightAxes


class SegmentForm(NamedTuple):
    """Features of segments in a `LinearForm`."""

    part: nn.Module  # which has them, such as `SegmentFeatures`
    max_length: int
    table: Tensor  # (C + 1, 4), see `structures.SegmentScores.labels`
    first_input: int  # number of inputs of a batch before those of the features
    options: SegmentFeaturesForm | None  # None: they need the code of the part


class LinearForm(NamedTuple):
    """Compiled form of a scorer: its scores of labels are sums of weights, one for each feature of a token.

    score(y_{t-1}, y_t, x, t) = sum_f node[f, y_t] + sum_g edge[g, y_{t-1}, y_t] + transition[y_{t-1}, y_t] over the
    node features f and the edge features g of the tagger's templates, each times its value.

    Attributes:
        segments: features of segments, whose weights are added; None: there are none.
        add_features: returns a batch with further node features, computed from their inputs; None: there are none.
        n_added: number of further node features of each token.
    """

    node: nn.Parameter  # (number of node features, L)
    edge: nn.Parameter | None = None  # (number of edge features, L * L)
    transition: nn.Parameter | None = None  # (L, L)
    segment: nn.Parameter | None = None  # (number of features of segments, C)
    segments: SegmentForm | None = None
    add_features: Callable[[FlatBatch], FlatBatch] | None = None
    n_added: int = 0

    @property
    def weights(self) -> dict[str, nn.Parameter]:
        """The weights by name, as in `kernels.array_types.WeightTables`, without missing ones."""
        return {name: own for name in WeightTables._fields if (own := getattr(self, name)) is not None}

    def with_features(self, batch: FlatBatch) -> FlatBatch:
        """Return a batch with the further node features."""
        return batch if self.add_features is None else self.add_features(batch)


class LocalWeights(Compilable, nn.Module, ABC):
    """Base class of modules with local weights: scorers of lattices and scorers of listed candidates.

    Subclasses store each argument of their constructor in an attribute with the same name, so that it can be saved.
    `weight_axes` names the axes of weights that are as long as the number of features or labels, so that a model can be
    the start of one with more of them (`Tagger`, option `init_from`): {"bias": ("label",)} below.
    """

    sparse_grad = False  # True if gradients of weights may be COO tensors
    weight_axes: ClassVar[WeightAxes] = {}

    form_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {"compiled": ("forward", "add_features", "_edges")}

    def compiled(self) -> LinearForm | None:
        """Return the weights of which all scores are sums, for compiled code; None if the scores need `forward`.

        With a form, a tagger may learn sequence by sequence, and a saved model may load without PyTorch. The weights
        are parameters of the scorer. A subclass that redefines `forward` has none, unless it redefines this method.
        """
        return None

    def bind_labels(self, labels: LabelSet) -> None:
        """Take the label set, before `allocate`; most modules need only its size."""

    @abstractmethod
    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights once features and labels are known."""


class Scorer(LocalWeights):
    """Base class of scorers; `forward(batch)` returns a Lattice.

    A subclass defines `allocate` and `forward`. If it reads words, it sets `n_inputs` and defines `build_vocabulary`
    and `encode_inputs`.

    Example:
        >>> import torch
        >>> from structperc.nn.inputs import TokenPositions, build_batch
        >>> from structperc.scorers import Scorer
        >>> from structperc.structures import Lattice
        >>> class LabelBias(Scorer):
        ...     def allocate(self, n_node, n_edge, n_labels):
        ...         self.bias = torch.nn.Parameter(torch.zeros(n_labels))
        ...     def forward(self, batch):
        ...         (B, T), L = batch.sentences.shape, len(self.bias)
        ...         return Lattice(self.bias.expand(B, T, L), self.bias.new_zeros(1, 1, L, L), batch.lengths)
        >>> scorer = LabelBias()
        >>> scorer.allocate(n_node=0, n_edge=0, n_labels=3)
        >>> batch = build_batch(TokenPositions.from_mask(torch.ones(2, 4).bool()), None, None, None)
        >>> scorer(batch).unary.shape
        torch.Size([2, 4, 3])
    """

    n_inputs = 0  # number of `batch.inputs`
    columns: Sequence[str] = ()  # columns that it reads; those of the tagger's attributes of documents are added
    extent: Extent = "sequence"  # extent of the text that determines the scores of a token

    def check_data(self, corpus: Corpus) -> None:
        """Raise InputError for training data that the scorer does not support; called before anything is learned."""

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build vocabularies from the training data; by default none."""

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the data of a corpus for `batch.inputs`; by default none, for scorers that read only feature ids."""
        return []

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token, (N,) int64; None if tokens are not split.

        `inputs` is a result of `encode_inputs`.
        """
        return None

    @abstractmethod
    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch: unary (B, T, L) and edge (B, T, L, L) or (1, 1, L, L)."""


class Sum(Scorer):
    """Sum of the scores of several scorers, such as SparseLinear and Neural, trained together.

    One of them should have transitions; a second transition table is redundant. If a SparseLinear has sparse gradients,
    the optimizer must accept sparse and dense ones, such as `optim.LazyAdamW`.

    Args:
        scorers: list of at least one scorer.

    Raises:
        InputError: no scorer.
    """

    def __init__(self, scorers: list[Scorer]) -> None:
        super().__init__()
        if not scorers:
            raise InputError("Sum: scorers is empty; give at least one")
        self.scorers = nn.ModuleList(scorers)
        self.sparse_grad = any(scorer.sparse_grad for scorer in scorers)
        self.n_inputs = sum(scorer.n_inputs for scorer in scorers)
        self.columns = [name for scorer in scorers for name in scorer.columns]
        self.extent = widest(scorer.extent for scorer in scorers)

    @property
    def parts(self) -> list[Scorer]:
        """The summands."""
        return cast(list[Scorer], list(self.scorers))

    def check_data(self, corpus: Corpus) -> None:
        """Raise InputError for training data that a scorer does not support."""
        for scorer in self.parts:
            scorer.check_data(corpus)

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Build the vocabularies of all scorers."""
        for scorer in self.parts:
            scorer.build_vocabulary(corpus)

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of all scorers, concatenated."""
        return [one for scorer in self.parts for one in scorer.encode_inputs(corpus)]

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token for the scorer with most; None if none splits tokens."""
        parts = zip(self.parts, self._split(inputs), strict=True)
        counts = [found for scorer, own in parts if (found := scorer.piece_counts(own)) is not None]
        return torch.stack(counts).amax(0) if counts else None

    def _split(self, inputs: Sequence[Ragged]) -> list[Sequence[Ragged]]:
        """Return the inputs of each scorer."""
        ends = list(accumulate((scorer.n_inputs for scorer in self.parts), initial=0))
        return [inputs[a:b] for a, b in pairwise(ends)]

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        """Create the weights of each scorer."""
        for scorer in self.parts:
            scorer.allocate(n_node, n_edge, n_labels)

    def forward(self, batch: Batch) -> Lattice:
        """Return the sum of the lattices of all scorers.

        Unary scores are (B, T, L), edge scores (B, T, L, L), or (1, 1, L, L) if those of all scorers are.
        """
        batches = [batch._replace(inputs=tuple(own)) for own in self._split(batch.inputs)]
        lattices = [scorer(one) for scorer, one in zip(self.parts, batches, strict=True)]
        if any(lattice.segments is not None for lattice in lattices):
            raise InputError("Sum: SegmentLinear cannot be one of the scorers; set SegmentLinear.labels to the Sum")
        unary = reduce(torch.add, [lattice.unary for lattice in lattices])
        edge = reduce(torch.add, [lattice.edge for lattice in lattices])
        return Lattice(unary, edge, batch.lengths)
