"""Scores of whole segments on top of any encoder."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from structperc.criteria import without_autocast
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.errors import InputError
from structperc.nn.chain_head import Reduction
from structperc.nn.inputs import (
    IGNORE_INDEX,
    TokenPositions,
    build_batch,
    check_gold,
    check_legal,
    check_shapes,
    check_state,
    label_set,
    to_state,
)
from structperc.predictor import Entities, ProbableSpan
from structperc.predictor.base import check_min_probability
from structperc.semi_markov import (
    limit_lengths,
    log_partition,
    marginals,
    path_score,
    segmentation_of_labels,
    to_labels,
    viterbi,
)
from structperc.structures import Batch, SegmentLattice


class _Segments(NamedTuple):
    """The n segments of label sequences, in the order of rows and tokens."""

    rows: Tensor  # (n,) int64
    starts: Tensor  # (n,) int64, first token
    lengths: Tensor  # (n,) int64, number of tokens
    types: Tensor  # (n,) int64, of `type_names`


class SegmentHead(nn.Module):
    """Semi-Markov CRF head for any encoder (Sarawagi & Cohen 2004).

    The encoder computes a vector h_t for each position. The head scores segments (t, d, c) of d tokens from token t on,
    of type c; with O as a type of one token, the score of a segmentation y is

        score(y) = sum over (t, d, c) in y of (sum_{i < d} token_c(h_{t+i}) + segment_c(t, d)) + sum of pair[c, c'],
        segment(t, d) = W relu(F h_t + G h_{t+d-1} + length_d),

    where pairs are neighbouring segments. So a type may depend on the first and last token together, and on the length,
    which no chain of labels can express (span scores as in Lee et al. 2017, without attention). W and the pairs start
    at zero. The loss is log Z - score(gold), exactly.

    Each row is one sentence. Tokens are the positions in `mask` whose gold label is not -100, as in `ChainHead`;
    padding may be on either side. Vectors at other positions are never read. Results are float32, also for vectors of
    half precision and under autocast. A row without tokens has loss 0 and no labels. If a vector of a token is NaN, the
    loss of its row is NaN, and `decode` and `entities` raise InvalidScoreError on a CPU.

    The names of the labels are part of the state: `load_state_dict` raises InputError for other names or another order.

    Args:
        labels: a LabelSet, names of labels, or a mapping of numbers to names (id2label); with all labels of the scheme
            for each type.
        width: H, the width of the encoder's vectors.
        max_length: D, the largest number of tokens of a segment. Time and memory grow linearly with it.
        hidden: number of hidden units of the segment scores. They take memory of B * T * D * hidden numbers.
        scheme: tag scheme, if `labels` are names.

    Raises:
        InputError: invalid or missing labels, or sizes below 1.

    Example:
        >>> import torch
        >>> from structperc.nn import SegmentHead
        >>> head = SegmentHead(["O", "B-PER", "I-PER"], width=4)
        >>> vectors = torch.randn(2, 6, 4)  # of any encoder
        >>> gold = torch.tensor([[0, 1, 2, 0, 1, 0], [1, 2, 2, -100, -100, -100]])
        >>> head(vectors, gold).backward()
        >>> head.decode(vectors, mask=gold != -100).shape
        torch.Size([2, 6])
    """

    def __init__(
        self,
        labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str],
        width: int,
        max_length: int = 8,
        hidden: int = 64,
        scheme: str = "IOB2",
    ) -> None:
        super().__init__()
        for name, size in (("width", width), ("max_length", max_length), ("hidden", hidden)):
            if size < 1:
                raise InputError(f"{name} must be at least 1, got {size}")
        self.labels = label_set(labels, scheme)
        one = torch.ones(1, 1, dtype=torch.long)
        to_labels(0 * one, one[0], self.labels)  # an error for missing labels
        self.width, self.max_length = width, max_length
        C = 1 + len(self.labels.type_names)
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
        return f"{len(self.labels)} labels, scheme={self.labels.scheme}, max_length={self.max_length}"

    def get_extra_state(self) -> Tensor:
        """Return the names of the labels and their scheme, (n,) uint8, for `state_dict`."""
        return to_state(self.labels)

    def set_extra_state(self, state: Tensor) -> None:
        """Check that a state has the labels of this head, as part of `load_state_dict`.

        Raises:
            InputError: other labels, with the first difference.
        """
        check_state(state, self.labels)

    def forward(
        self, vectors: Tensor, gold: Tensor, mask: Tensor | None = None, *, reduction: Reduction = "mean"
    ) -> Tensor:
        """Return the negative log-likelihood, log Z - score(gold).

        Args:
            vectors: (B, T, H) vectors of an encoder.
            gold: (B, T) numbers of labels; -100 at positions without a token.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions whose gold label is not -100.
            reduction: "mean" over the rows with tokens, "sum", or "none" for the loss of each row.

        Returns:
            The loss, float32, () or for "none" (B,).

        Raises:
            InputError: wrong shapes; on a CPU also unknown or illegal labels, or a segment of more than `max_length`
                tokens. On other devices, to avoid a synchronisation, the loss of a long segment is infinite.

        Example:
            >>> import torch
            >>> from structperc.nn import SegmentHead
            >>> head = SegmentHead(["O", "B-PER", "I-PER"], width=2, max_length=2)
            >>> _ = torch.nn.init.zeros_(head.token.weight), torch.nn.init.zeros_(head.token.bias)
            >>> loss = head(torch.randn(1, 2, 2), gold=torch.tensor([[1, 2]]))  # one of 5 segmentations
            >>> round(loss.item(), 4)  # log 5
            1.6094
        """
        if reduction not in ("mean", "sum", "none"):
            raise InputError(f"reduction must be mean, sum or none, got {reduction!r}")
        if gold.dtype == torch.bool:
            raise InputError("gold: SegmentHead needs complete labels; give numbers of labels (B, T)")
        kept = self._kept(vectors, mask, gold) & (gold != IGNORE_INDEX)
        checked = vectors.device.type == "cpu" and not torch.compiler.is_compiling()
        if checked:
            check_gold(gold, kept, self.labels)
        places = TokenPositions.from_mask(kept)
        batch = build_batch(places, gold.where(kept, 0), None, None)
        if checked:
            check_legal(batch, self.labels, places)
            self._check_lengths(batch, places)
        assert batch.gold is not None
        segmentation = segmentation_of_labels(batch.gold, places.lengths, self.labels)
        lattice = self._lattice(vectors, places)
        with without_autocast(vectors.device):
            losses = log_partition(lattice) - path_score(lattice, segmentation)
        if reduction == "none":
            return losses
        return losses.sum() / (places.lengths > 0).sum().clamp(min=1) if reduction == "mean" else losses.sum()

    def lattice(self, vectors: Tensor, mask: Tensor | None = None) -> SegmentLattice:
        """Return the scores, for the functions of `semi_markov`: k best segmentations, samples, entropy.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.

        Returns:
            Scores of the tokens of each row, without gaps and padded on the right. Type 0 is O, type i + 1 is
            `labels.type_names[i]`. Differentiable.

        Raises:
            InputError: wrong shapes.

        Example:
            >>> import torch
            >>> from structperc.nn import SegmentHead
            >>> from structperc.semi_markov import entropy
            >>> head = SegmentHead(["O", "B-PER", "I-PER"], width=2, max_length=3)
            >>> lattice = head.lattice(torch.randn(1, 4, 2), mask=torch.tensor([[0, 1, 0, 1]]))
            >>> lattice.lengths, lattice.segment.shape, entropy(lattice).shape
            (tensor([2]), torch.Size([1, 4, 3, 2]), torch.Size([1]))
        """
        return self._lattice(vectors, TokenPositions.from_mask(self._kept(vectors, mask)))

    @torch.no_grad()
    def decode(self, vectors: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the labels of the best segmentation of each row.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.

        Returns:
            Labels (B, T) int64, -100 at positions without a token.

        Raises:
            InputError: wrong shapes.
            InvalidScoreError: on a CPU, a vector of a token that is not finite.

        Example:
            >>> import torch
            >>> from structperc.nn import SegmentHead
            >>> head = SegmentHead(["O", "B-PER", "I-PER"], width=2)
            >>> _ = torch.nn.init.eye_(head.token.weight), torch.nn.init.zeros_(head.token.bias)
            >>> vectors = torch.tensor([[[0.0, 2.0], [9.0, 0.0], [3.0, 0.0]]])  # as scores of O and PER
            >>> head.decode(vectors, mask=torch.tensor([[True, False, True]]))
            tensor([[   1, -100,    0]])
        """
        places = TokenPositions.from_mask(self._kept(vectors, mask))
        best = viterbi(self._lattice(vectors, places))[1]
        return places.scatter(to_labels(best, places.lengths, self.labels))

    @torch.no_grad()
    def entities(
        self, vectors: Tensor, mask: Tensor | None = None, *, min_probability: float | None = None
    ) -> list[Entities]:
        """Return the segments of each row with their exact probabilities, and the probability of its best segmentation.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.
            min_probability: add all other segments with a probability above this number, with `best` False.

        Returns:
            The segments of each row, as of `ChainHead.entities`. `start` and `end` are positions in the row: of the
            first token, and one after the position of the last token.

        Raises:
            InputError: wrong shapes or minimum.
            InvalidScoreError: on a CPU, a vector of a token that is not finite.

        Example:
            >>> import torch
            >>> from structperc.nn import SegmentHead
            >>> head = SegmentHead(["O", "B-PER", "I-PER"], width=2)
            >>> _ = torch.nn.init.eye_(head.token.weight), torch.nn.init.zeros_(head.token.bias)
            >>> (found,) = head.entities(torch.tensor([[[0.0, 2.0], [3.0, 0.0]]]), min_probability=0.1)
            >>> [(one.type, one.start, one.end, round(one.probability, 2), one.best) for one in found.spans]
            [('PER', 0, 1, 0.85, True)]
            >>> round(found.probability, 2)
            0.81
        """
        if min_probability is not None:
            check_min_probability(min_probability, self.labels)
        places = TokenPositions.from_mask(self._kept(vectors, mask))
        lattice = self._lattice(vectors, places)
        scores, best = viterbi(lattice)
        table = marginals(lattice)[..., 1:]
        rows, starts, lengths, types = self._segments(to_labels(best, places.lengths, self.labels), places)
        in_best = torch.zeros_like(table, dtype=torch.bool)
        in_best[rows, starts, lengths - 1, types] = True
        chosen = in_best if min_probability is None else in_best | (table > min_probability)
        found: list[list[ProbableSpan]] = [[] for _ in vectors]
        at = places.order.tolist()
        for (row, t, less, kind), p, one in zip(
            chosen.nonzero().tolist(), table[chosen].tolist(), in_best[chosen].tolist(), strict=True
        ):
            span = ProbableSpan(self.labels.type_names[kind], at[row][t], at[row][t + less] + 1, p, one)
            found[row].append(span)
        ordered = (sorted(spans, key=lambda span: (span.start, span.end, -span.probability)) for spans in found)
        sequences = (scores - log_partition(lattice)).exp().tolist()
        return [Entities(*pair) for pair in zip(ordered, sequences, strict=True)]

    def _kept(self, vectors: Tensor, mask: Tensor | None, gold: Tensor | None = None) -> Tensor:
        """Return a mask (B, T) bool of the positions in `mask`."""
        check_shapes(vectors, mask, gold, self.width, "vectors")
        return torch.ones_like(vectors[:, :, 0], dtype=torch.bool) if mask is None else mask != 0

    def _lattice(self, vectors: Tensor, places: TokenPositions) -> SegmentLattice:
        real = places.mask[:, :, None]
        h = places.gather(vectors).to(self.pair.dtype).where(real, 0)  # vectors without a token are arbitrary
        D, T = self.max_length, h.shape[1]
        ends = functional.pad(self.last(h), (0, 0, 0, D)).unfold(1, D, 1)[:, :T].movedim(3, 2)  # (B, T, D, hidden)
        units = (self.first(h)[:, :, None] + ends + self.length).relu()
        lattice = SegmentLattice(self.token(h), self.segment(units), self.pair, places.lengths)
        return limit_lengths(lattice, [1] + [D] * len(self.labels.type_names))

    def _segments(self, labels: Tensor, places: TokenPositions) -> _Segments:
        start = (torch.arange(labels.shape[1], device=labels.device) == 0).expand_as(labels)
        first, last = segment_boundaries(labels, places.mask, start, self.labels)
        rows, starts = first.nonzero(as_tuple=True)
        lengths = last.nonzero(as_tuple=True)[1] + 1 - starts
        return _Segments(rows, starts, lengths, self.labels.types.to(labels.device)[labels[rows, starts]])

    def _check_lengths(self, batch: Batch, places: TokenPositions) -> None:
        assert batch.gold is not None
        rows, starts, lengths, _ = self._segments(batch.gold, places)
        if len(lengths) and int(lengths.max()) > self.max_length:
            n = int(lengths.argmax())
            row, position = int(rows[n]), int(places.order[rows[n], starts[n]])
            raise InputError(
                f"gold: row {row}, position {position}: a segment of {int(lengths[n])} tokens, but max_length of "
                f"SegmentHead is {self.max_length}; increase max_length"
            )
