"""Scores of whole segments on top of any encoder."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from structperc.criteria import without_autocast
from structperc.data.labels import LabelSet, segment_boundaries
from structperc.data.tag_schemes import Span
from structperc.errors import InputError
from structperc.nn.chain_head import Reduction
from structperc.nn.inputs import (
    IGNORE_INDEX,
    TokenPositions,
    build_batch,
    check_allowed,
    check_gold,
    check_legal,
    check_possible,
    check_shapes,
    check_state,
    label_set,
    spans_of_tokens,
    to_state,
)
from structperc.predictor import Entities, ProbableSpan
from structperc.predictor.base import check_min_probability
from structperc.predictor.limits import Spans
from structperc.semi_markov import (
    kbest,
    limit_lengths,
    log_partition,
    marginals,
    path_score,
    segmentation_of_labels,
    to_labels,
    viterbi,
)
from structperc.structures import Batch, Candidates, SegmentLattice


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

    Tokens are the positions in `mask` whose gold label is not -100, as in `ChainHead`; padding may be on either side.
    Vectors at other positions are never read. Segments do not cross the boundaries of `sentences`, but pairs of
    neighbours do. Results are float32, also for vectors of half precision and under autocast. A row without tokens has
    loss 0 and no labels. If a vector of a token is NaN, the loss of its row is NaN, and `decode`, `kbest` and
    `entities` raise InvalidScoreError on a CPU.

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
        self,
        vectors: Tensor,
        gold: Tensor,
        mask: Tensor | None = None,
        *,
        sentences: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the negative log-likelihood, log Z - score(gold).

        For incomplete labels it is log Z - log Z', where Z' is the sum over the segmentations with allowed labels.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            gold: (B, T) numbers of labels; -100 at positions without a token. Or (B, T, L) bool: the labels that may be
                right, for incomplete labels.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions whose gold label is not -100, or
                with an allowed label.
            sentences: (B, T) number of each token's sentence within its row; by default, each row is one sentence.
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
        places, batch = self._read_gold(vectors, gold, mask, sentences)
        lattice = self._lattice(vectors, places, batch)
        with without_autocast(vectors.device):
            losses = log_partition(lattice) - self._gold_scores(lattice, places, batch)
        if reduction == "none":
            return losses
        return losses.sum() / (places.lengths > 0).sum().clamp(min=1) if reduction == "mean" else losses.sum()

    def lattice(
        self, vectors: Tensor, mask: Tensor | None = None, *, sentences: Tensor | None = None
    ) -> SegmentLattice:
        """Return the scores, for the functions of `semi_markov`: marginals, samples, entropy.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.
            sentences: (B, T) number of each token's sentence within its row; by default, each row is one sentence.

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
        return self._lattice(vectors, *self._read(vectors, mask, sentences))

    @torch.no_grad()
    def decode(
        self,
        vectors: Tensor,
        mask: Tensor | None = None,
        *,
        sentences: Tensor | None = None,
        allowed: Tensor | None = None,
        forbidden: Iterable[Spans | None] | None = None,
    ) -> Tensor:
        """Return the labels of the best segmentation of each row.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.
            sentences: (B, T) number of each token's sentence within its row; by default, each row is one sentence.
            allowed: (B, T, L) bool, labels that may be predicted, such as those of a dictionary; by default, all.
            forbidden: for each row None, or spans (type, start, end) that must not be predicted, positions
                start <= t < end as in `entities`; other spans may overlap them.

        Returns:
            Labels (B, T) int64, -100 at positions without a token.

        Raises:
            InputError: wrong shapes, an invalid span, or `allowed` with scheme IOB1; on a CPU also a row for which
                these limits, the tag scheme and `max_length` leave no segmentation.
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
        places, batch = self._read(vectors, mask, sentences)
        lattice = self._lattice(vectors, places, batch)
        if allowed is not None:
            check_possible(allowed, places, batch, self.labels)
            lattice = _allow(lattice, places.gather(allowed), self.labels)
        if forbidden is not None:
            lattice = _forbid(lattice, spans_of_tokens(forbidden, places, self.labels), self.labels)
        scores, best = viterbi(lattice)
        if allowed is not None or forbidden is not None:
            self._check_scores(scores, "forbidden" if allowed is None else "allowed")
        return places.scatter(to_labels(best, places.lengths, self.labels, batch.first))

    @torch.no_grad()
    def kbest(
        self, vectors: Tensor, k: int, mask: Tensor | None = None, *, sentences: Tensor | None = None
    ) -> Candidates:
        """Return the labels of the k best segmentations of each row, best first.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            k: number of segmentations.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.
            sentences: (B, T) number of each token's sentence within its row; by default, each row is one sentence.

        Returns:
            Labels (B, k, T), -100 at positions without a token and in missing segmentations, with scores (B, k) and
            valid (B, k).

        Raises:
            InputError: wrong shapes, k < 1, or too little memory for the candidates.
            InvalidScoreError: on a CPU, a vector of a token that is not finite.

        Example:
            >>> import torch
            >>> from structperc.nn import SegmentHead
            >>> head = SegmentHead(["O", "B-PER", "I-PER"], width=2)
            >>> _ = torch.nn.init.eye_(head.token.weight), torch.nn.init.zeros_(head.token.bias)
            >>> candidates = head.kbest(torch.tensor([[[0.0, 2.0], [3.0, 0.0]]]), k=2)
            >>> candidates.labels.tolist(), candidates.scores.tolist()
            ([[[1, 0], [0, 0]]], [[5.0, 3.0]])
        """
        places, batch = self._read(vectors, mask, sentences)
        found = kbest(self._lattice(vectors, places, batch), k)
        labels = places.scatter(to_labels(found.labels, places.lengths, self.labels, batch.first))
        return found._replace(labels=labels.where(found.valid[:, :, None], IGNORE_INDEX))

    @torch.no_grad()
    def entities(
        self,
        vectors: Tensor,
        mask: Tensor | None = None,
        *,
        sentences: Tensor | None = None,
        min_probability: float | None = None,
    ) -> list[Entities]:
        """Return the segments of each row with their exact probabilities, and the probability of its best segmentation.

        Args:
            vectors: (B, T, H) vectors of an encoder.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.
            sentences: (B, T) number of each token's sentence within its row; by default, each row is one sentence.
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
        places, batch = self._read(vectors, mask, sentences)
        lattice = self._lattice(vectors, places, batch)
        scores, best = viterbi(lattice)
        table = marginals(lattice)[..., 1:]
        rows, starts, lengths, types = self._segments(
            to_labels(best, places.lengths, self.labels, batch.first), places, batch
        )
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

    def _read(self, vectors: Tensor, mask: Tensor | None, sentences: Tensor | None) -> tuple[TokenPositions, Batch]:
        check_shapes(vectors, mask, None, self.width, "vectors")
        kept = torch.ones_like(vectors[:, :, 0], dtype=torch.bool) if mask is None else mask != 0
        places = TokenPositions.from_mask(kept)
        return places, build_batch(places, None, sentences, None)

    def _read_gold(
        self, vectors: Tensor, gold: Tensor, mask: Tensor | None, sentences: Tensor | None
    ) -> tuple[TokenPositions, Batch]:
        """Return the tokens, and their gold labels as a batch."""
        check_shapes(vectors, mask, gold, self.width, "vectors", len(self.labels))
        allowed = gold if gold.dtype == torch.bool else None
        if allowed is not None:
            gold, mask = allowed.long().argmax(2), allowed.any(2) if mask is None else mask
        kept = (gold != IGNORE_INDEX) if mask is None else (gold != IGNORE_INDEX) & (mask != 0)
        places = TokenPositions.from_mask(kept)
        if _checked(gold):
            check_gold(gold, kept, self.labels)
        batch = build_batch(places, gold.where(kept, 0), sentences, None)
        if allowed is not None:
            batch = batch._replace(allowed=places.gather(allowed) | ~places.mask[:, :, None])
        if _checked(gold):
            (check_legal if allowed is None else check_allowed)(batch, self.labels, places)
        return places, batch

    def _lattice(self, vectors: Tensor, places: TokenPositions, batch: Batch) -> SegmentLattice:
        real = places.mask[:, :, None]
        h = places.gather(vectors).to(self.pair.dtype).where(real, 0)  # vectors without a token are arbitrary
        D = self.max_length
        units = (self.first(h)[:, :, None] + _windows(self.last(h), D) + self.length).relu()
        number = batch.sentences[:, :, None]
        segment = self.segment(units).where(_windows(number, D) == number[:, :, None], -torch.inf)
        lattice = SegmentLattice(self.token(h), segment, self.pair, places.lengths)
        return limit_lengths(lattice, [1] + [D] * len(self.labels.type_names))

    def _gold_scores(self, lattice: SegmentLattice, places: TokenPositions, batch: Batch) -> Tensor:
        """Return the score of the gold segmentation of each row, or the log of the sum over all allowed ones, (B,)."""
        if batch.allowed is not None:
            scores = log_partition(_allow(lattice, batch.allowed, self.labels))
            self._check_scores(scores, "gold")
            return scores
        assert batch.gold is not None
        if _checked(batch.gold):
            self._check_lengths(places, batch)
        return path_score(lattice, segmentation_of_labels(batch.gold, places.lengths, self.labels, batch.first))

    def _segments(self, labels: Tensor, places: TokenPositions, batch: Batch) -> _Segments:
        first, last = segment_boundaries(labels, places.mask, batch.first, self.labels)
        rows, starts = first.nonzero(as_tuple=True)
        lengths = last.nonzero(as_tuple=True)[1] + 1 - starts
        return _Segments(rows, starts, lengths, self.labels.types.to(labels.device)[labels[rows, starts]])

    def _check_lengths(self, places: TokenPositions, batch: Batch) -> None:
        assert batch.gold is not None
        rows, starts, lengths, _ = self._segments(batch.gold, places, batch)
        if len(lengths) and int(lengths.max()) > self.max_length:
            n = int(lengths.argmax())
            row, position = int(rows[n]), int(places.order[rows[n], starts[n]])
            raise InputError(
                f"gold: row {row}, position {position}: a segment of {int(lengths[n])} tokens, but max_length of "
                f"SegmentHead is {self.max_length}; increase max_length"
            )

    def _check_scores(self, scores: Tensor, name: str) -> None:
        """Check on a CPU that limits of labels and segments leave a segmentation of each row."""
        if _checked(scores) and bool((impossible := scores == -torch.inf).any()):
            raise InputError(
                f"{name}: row {int(impossible.nonzero()[0])}: nothing is left with segments of at most "
                f"{self.max_length} tokens, max_length of SegmentHead; allow more labels, or increase max_length"
            )


def _checked(x: Tensor) -> bool:
    """Return True where values are checked: on a CPU, and not in a compiled program."""
    return x.is_cpu and not torch.compiler.is_compiling()


def _windows(x: Tensor, D: int) -> Tensor:
    """Return for each token the values of D tokens from it on, (B, T, F) -> (B, T, D, F), 0 after the last token."""
    T, padded = x.shape[1], functional.pad(x, (0, 0, 0, D))
    return torch.stack([padded[:, d : d + T] for d in range(D)], 2)


def _allow(lattice: SegmentLattice, allowed: Tensor, labels: LabelSet) -> SegmentLattice:
    """Forbid all segments with a label outside of `allowed` (B, T, L) bool."""
    D, table = lattice.segment.shape[2], labels.segment_labels.roll(1, 0).to(allowed.device)  # (C, 4), O first
    single, first, middle, last = allowed[:, :, table].unbind(3)  # (B, T, C)
    begun = torch.cat([first[:, :, None], _windows(middle, D)[:, :, 1:]], 2).cumprod(2).bool()  # all but the last token
    possible = torch.cat([single[:, :, None], begun[:, :, :-1] & _windows(last, D)[:, :, 1:]], 2)
    return lattice._replace(segment=lattice.segment.where(possible, -torch.inf))


def _forbid(lattice: SegmentLattice, spans: list[list[Span]], labels: LabelSet) -> SegmentLattice:
    """Forbid the segments of each row that are exactly one of its spans."""
    D, segment = lattice.segment.shape[2], lattice.segment.clone()
    for row, own in enumerate(spans):
        for kind, start, end in own:
            if end - start <= D:
                segment[row, start, end - start - 1, 1 + labels.type_names.index(kind)] = -torch.inf
    return lattice._replace(segment=segment)
