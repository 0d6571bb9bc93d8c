"""Scores of whole segments on top of any encoder."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from structperc.chain import KBest, allow, log_partition
from structperc.chain.segment_scores import segment_kinds, windows
from structperc.criteria import Criterion
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.errors import InputError
from structperc.nn.head import Head
from structperc.nn.inputs import TokenPositions, label_set
from structperc.nonlocal_features import NonlocalFeature
from structperc.structures import Batch, Lattice, SegmentScores


class SegmentHead(Head):
    """Semi-Markov head for any encoder (Sarawagi & Cohen 2004).

    The encoder computes a vector h_t for each position. The head scores segments (t, d, c) of d tokens from token t on,
    of type c; with O as a type of one token, the score of a segmentation y is

    score(y) = sum over (t, d, c) in y of (sum_{i < d} token_c(h_{t+i}) + segment_c(t, d)) + sum of pair[c, c'],
    segment(t, d) = W relu(F h_t + G h_{t+d-1} + length_d),

    where pairs are neighbouring segments. So a type may depend on the first and last token together, and on the length,
    which no chain of labels can express (span scores as in Lee et al. 2017, without attention). W and the pairs start
    at zero.

    Tokens are the positions in `mask` whose gold label is not -100, as in `ChainHead`; padding may be on either side.
    Vectors at other positions are never read. Segments do not cross the boundaries of `sentences`, but pairs of
    neighbours do. Results are float32, also for vectors of half precision and under autocast. A row without tokens has
    loss 0 and no labels. If a vector of a token is NaN, the loss of its row is NaN, and searches raise
    InvalidScoreError on a CPU.

    A gold segment of more than `max_length` tokens is an error on a CPU; on other devices, to avoid a synchronisation,
    the loss is then infinite.

    The names of the labels are part of the state: `load_state_dict` raises InputError for other names or another order.

    Args:
        labels: a LabelSet, names of labels, or a mapping of numbers to names (id2label); with all labels of the scheme
            for each type.
        width: H, the width of the encoder's vectors.
        max_length: D, the largest number of tokens of a segment. Time and memory grow linearly with it.
        hidden: number of hidden units of the segment scores. They take memory of B * T * D * hidden numbers.
        scheme: tag scheme, if `labels` are names; one that shows where segments begin, not IOB1.
        criterion: the loss; by default CRFLoss, the negative log-likelihood.
        nonlocal_features: features of whole label sequences. Calls then need `words`, and for documents `sentences`.
        decoder: search for candidates in prediction, which non-local features score again; by default for 100.

    Raises:
        InputError: an invalid combination of parts, a criterion that does not support scores of segments, invalid or
            missing labels, or sizes below 1.

    Example:
        >>> import torch
        >>> from structperc.nn import SegmentHead
        >>> head = SegmentHead(["O", "B-PER", "I-PER"], width=2, max_length=2)
        >>> _ = torch.nn.init.eye_(head.token.weight), torch.nn.init.zeros_(head.token.bias)
        >>> vectors = torch.tensor([[[0.0, 2.0], [3.0, 0.0]]])  # of any encoder; as scores of O and PER
        >>> head.decode(vectors)
        tensor([[1, 0]])
        >>> loss = head(0 * vectors, gold=torch.tensor([[1, 2]]))
        >>> round(loss.item(), 4)  # log 5: O O, O B, B O, B B, B I
        1.6094
        >>> (found,) = head.entities(vectors, min_probability=0.1)
        >>> [(one.type, one.start, one.end, round(one.probability, 2), one.best) for one in found.spans]
        [('PER', 0, 1, 0.85, True)]
    """

    input_name = "vectors"
    table: Tensor  # (C + 1, 4), see `SegmentScores.labels`
    kinds: Tensor  # (L,) int64, type of each label among the scores: O first
    begins: Tensor  # (L,) bool, labels that begin a segment, and O

    def __init__(
        self,
        labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str],
        width: int,
        max_length: int = 8,
        hidden: int = 64,
        scheme: str = "IOB2",
        criterion: Criterion | None = None,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        search: KBest | None = None,
        decoder: KBest | None = None,
    ) -> None:
        for name, size in (("width", width), ("max_length", max_length), ("hidden", hidden)):
            if size < 1:
                raise InputError(f"{name} must be at least 1, got {size}")
        type_labels = label_set(labels, scheme)
        table = type_labels.segment_labels.clone()
        super().__init__(type_labels, width, criterion, nonlocal_features, search, decoder)
        self.scorer.check_segments()
        self.max_length = max_length
        self.register_buffer("table", table, persistent=False)
        (kinds, begins), C = segment_kinds(table, len(type_labels)), len(table)
        self.register_buffer("kinds", (kinds + 1) % C, persistent=False)
        self.register_buffer("begins", begins, persistent=False)
        self.token = nn.Linear(width, C)
        self.first = nn.Linear(width, hidden)
        self.last = nn.Linear(width, hidden, bias=False)
        self.length = nn.Parameter(torch.zeros(max_length, hidden))
        self.segment = nn.Linear(hidden, C)
        self.pair = nn.Parameter(torch.zeros(C, C))
        nn.init.zeros_(self.segment.weight)
        nn.init.zeros_(self.segment.bias)

    def extra_repr(self) -> str:
        """Return the number of labels, their scheme and the longest segment."""
        return f"{super().extra_repr()}, max_length={self.max_length}"

    def _scores(self, inputs: Tensor, batch: Batch) -> Lattice:
        h, D = inputs.to(self.pair.dtype), self.max_length
        units = (self.first(h)[:, :, None] + windows(self.last(h), D) + self.length).relu()
        segment, kinds = self.segment(units), self.kinds
        unary = self.token(h)[..., kinds] + torch.where(kinds == 0, segment[:, :, 0, :1], 0)
        edge = torch.where(self.begins, self.pair[kinds[:, None], kinds], 0)
        segments = SegmentScores(segment[..., 1:], self.table)
        return Lattice(unary, edge[None, None], batch.lengths, segments=segments)

    def _check_gold(self, lattice: Lattice, places: TokenPositions, batch: Batch) -> None:
        if batch.allowed is not None:
            with torch.no_grad():
                self._check_scores(log_partition(allow(lattice, batch.allowed)), "gold")
            return
        assert batch.gold is not None
        first, last = segment_boundaries(batch.gold, places.mask, batch.first, self.labels)
        (rows, starts), ends = first.nonzero(as_tuple=True), last.nonzero(as_tuple=True)[1] + 1
        if len(rows) and int((ends - starts).max()) > self.max_length:
            n = int((ends - starts).argmax())
            row, position, length = int(rows[n]), int(places.order[rows[n], starts[n]]), int(ends[n] - starts[n])
            raise InputError(
                f"gold: row {row}, position {position}: a segment of {length} tokens, but max_length of SegmentHead is "
                f"{self.max_length}; increase max_length"
            )

    def _check_scores(self, scores: Tensor, name: str) -> None:
        if scores.is_cpu and not torch.compiler.is_compiling() and bool((impossible := scores == -torch.inf).any()):
            raise InputError(
                f"{name}: row {int(impossible.nonzero()[0])}: nothing is left with segments of at most "
                f"{self.max_length} tokens, max_length of SegmentHead; allow more labels, or increase max_length"
            )
