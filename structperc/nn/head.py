"""Base class of heads: losses, label sequences and probabilities for the tokens in a mask."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from structperc.chain import Constraints, KBest, Restriction, exportable_viterbi, log_partition, marginals, viterbi
from structperc.chain.confidence import confidence_within, entities
from structperc.chain.viterbi import exportable_marginals
from structperc.criteria import CRFLoss, Criterion
from structperc.criteria.base import without_autocast
from structperc.data.labels import LabelSet
from structperc.errors import InputError, InvalidScoreError
from structperc.nn.candidate_scorer import CandidateScorer, best_first, check_criterion, default_search
from structperc.nn.inputs import (
    IGNORE_INDEX,
    RowWords,
    TokenPositions,
    build_batch,
    check_gold,
    check_inputs,
    check_left,
    check_legal,
    check_shapes,
    check_state,
    row_restriction,
    to_state,
)
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature
from structperc.predictor.base import Entities
from structperc.predictor.limits import Spans
from structperc.structures import Batch, Candidates, Lattice, SentenceBoundaries

Reduction = Literal["mean", "sum", "none"]
SearchResult = TypeVar("SearchResult")  # of a search


class Confidence(NamedTuple):
    """The best label sequence of each row and its probability, as returned by `confidence` of a head.

    Probabilities are 0 in a row without a legal label sequence.
    """

    labels: Tensor  # (B, T) int64, -100 at positions without a token
    tokens: Tensor  # (B, T) p(y_t = label | x), 0 at positions without a token
    rows: Tensor  # (B,) p(y = labels | x), 1 for a row without tokens


class Head(nn.Module, ABC):
    """Base class of heads for any network; a subclass defines the scores of label sequences.

    Args:
        width: last size of the inputs.
        criterion: the loss; by default CRFLoss.
        nonlocal_features: features of whole label sequences.
        search: search for candidates in training; by default for as many as the criterion needs, or 20 with non-local
            features.
        decoder: search for candidates in prediction; by default for 100.

    Raises:
        InputError: an invalid combination of parts.
    """

    input_name = "logits"  # in messages

    def __init__(
        self,
        labels: LabelSet,
        width: int,
        criterion: Criterion | None = None,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        search: KBest | None = None,
        decoder: KBest | None = None,
    ) -> None:
        super().__init__()
        self.labels, self.width = labels, width
        self.criterion = criterion or CRFLoss()
        self.nonlocal_features = nn.ModuleList(nonlocal_features)
        self.search = search or default_search(self.criterion, len(nonlocal_features) > 0)
        self.decoder = decoder or KBest(100)
        _check_parts(self.criterion, self.search, nonlocal_features)
        self.constraints = Constraints()
        self.constraints.allocate(self.labels)
        features = [cast(NonlocalFeature, feature) for feature in self.nonlocal_features]
        self.scorer = CandidateScorer(self.constraints, self.criterion, self.search, features, self.labels)
        self.criterion.allocate(self.labels)
        for feature in nonlocal_features:
            feature.allocate(self.labels)

    @abstractmethod
    def _scores(self, inputs: Tensor, batch: Batch) -> Lattice:
        """Return the scores of the inputs of tokens, without gaps and 0 in the padding; also of illegal labels."""

    def extra_repr(self) -> str:
        """Return the number of labels and their scheme."""
        return f"{len(self.labels)} labels, scheme={self.labels.scheme}"

    @property
    def probabilistic(self) -> bool:
        """True if exp(score - log Z) is a probability: trained by likelihood, without non-local features."""
        return self.criterion.probabilistic and not self.nonlocal_features

    def get_extra_state(self) -> Tensor:
        """Return the names of the labels and their scheme, (n,) uint8, for `state_dict`."""
        return to_state(self.labels)

    def set_extra_state(self, state: Tensor) -> None:
        """Check that a state has the labels of this head, as part of `load_state_dict`.

        Raises:
            InputError: other labels, with the first difference.
        """
        check_state(state, self.labels)

    # -- learning --------------------------------------------------------------------------------------------

    def forward(
        self,
        inputs: Tensor,
        gold: Tensor,
        mask: Tensor | None = None,
        *,
        words: RowWords | None = None,
        sentences: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the loss, float32: (), or (B,) with reduction "none".

        Args:
            inputs: (B, T, L) logits of a ChainHead, or (B, T, H) vectors of a SegmentHead.
            gold: (B, T) numbers of labels; -100 at positions without a token. Or (B, T, L) bool: the labels that may be
                right, for incomplete labels.
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions whose gold label is not -100, or
                with an allowed label.
            words: the words of the tokens of each row; for non-local features.
            sentences: (B, T) number of each token's sentence within its row; by default, each row is one sentence.
            reduction: "mean" over the rows with tokens, "sum", or "none" for the loss of each row.

        Raises:
            InputError: wrong shapes, or sets of labels for a criterion or features that need complete labels; on a CPU
                also unknown, illegal or impossible labels. On other devices, to avoid a synchronisation, the loss is
                then NaN or infinite.

        Example:
            >>> import torch
            >>> from structperc.nn import ChainHead
            >>> head = ChainHead(["O", "B-PER", "I-PER"])
            >>> logits = torch.tensor([[[0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]])
            >>> loss = head(logits, gold=torch.tensor([[1, -100]]))  # only the first position is a token
            >>> round(loss.item(), 4)
            0.1269
        """
        if reduction not in ("mean", "sum", "none"):
            raise InputError(f"reduction must be mean, sum or none, got {reduction!r}")
        checked = inputs.device.type == "cpu" and not torch.compiler.is_compiling()
        places, batch = self._read_gold(inputs, gold, mask, sentences, words, checked)
        lattice = self._lattice(inputs, places, batch)
        if checked:
            self._check_gold(lattice, places, batch)
        compared = self.scorer.compared_sequences(lattice, batch)
        scored = self.scorer.score(batch, compared, self.scorer.training_candidates(compared))
        with without_autocast(inputs.device):
            losses = self.criterion(scored)
        if compared.places is not None:
            B, T = batch.sentences.shape
            losses = losses.new_zeros(B).index_add(0, compared.places[:, 0] // T, losses)
        if reduction == "none":
            return losses
        return losses.sum() / (places.lengths > 0).sum().clamp(min=1) if reduction == "mean" else losses.sum()

    def lattice(self, inputs: Tensor, mask: Tensor | None = None, *, sentences: Tensor | None = None) -> Lattice:
        """Return the scores, for the functions of `structperc.chain` such as `sample` and `entropy`. Differentiable.

        Arguments are those of `decode`. Returns scores of the tokens of each row, without gaps and padded on the right;
        -inf for illegal labels.

        Raises:
            InputError: wrong shapes.
        """
        places = TokenPositions.from_mask(self._kept(inputs, mask, None))
        return self._lattice(inputs, places, build_batch(places, None, sentences, None))

    # -- prediction ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def decode(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        *,
        words: RowWords | None = None,
        sentences: Tensor | None = None,
        allowed: Tensor | None = None,
        forbidden: Iterable[Spans | None] | None = None,
    ) -> Tensor:
        """Return the best label sequence of each row.

        An exported ChainHead computes it by operations of torch only; an exported SegmentHead imports structperc. Other
        arguments are those of `forward`. Returns labels (B, T) int64, -100 at positions without a token.

        Args:
            mask: (B, T) bool or numbers, not 0 at tokens; by default, all positions are tokens.
            allowed: (B, T, L) bool, labels that may be predicted, such as those of a dictionary; by default, all.
            forbidden: for each row None, or spans (type, start, end) that must not be predicted, positions
                start <= t < end as in `entities`; other spans may overlap them.

        Raises:
            InputError: wrong shapes, an invalid span, or a token for which the forbidden spans leave no label; on a CPU
                also a token for which `allowed` and the tag scheme leave no label, or a row for which all of these and
                the longest segment leave no label sequence.
            InvalidScoreError: on a CPU, a logit of a token that is +inf or NaN, or a vector that is not finite.

        Example:
            >>> import torch
            >>> from structperc.nn import ChainHead
            >>> head = ChainHead(["O", "B-PER", "I-PER"])
            >>> logits = torch.tensor([[[0.0, 2.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 3.0]]])
            >>> head.decode(logits, mask=torch.tensor([[True, False, True]]))
            tensor([[   1, -100,    2]])
        """
        places, batch, lattice = self._read(inputs, mask, words, sentences)
        restriction = row_restriction(allowed, forbidden, places, batch, self.labels)
        batch, lattice = batch._replace(restriction=restriction), restriction(lattice)
        if self.nonlocal_features:
            ranked = self._ranked(inputs, places, batch, lattice, 1)
            scores, labels = ranked.scores[:, 0], ranked.labels[:, 0]
        else:
            scores, labels = self._search(_best, inputs, places, lattice)
            labels = restriction.labels(labels)
        if allowed is not None:
            self._check_scores(scores, "allowed")
        return places.scatter(labels)

    @torch.no_grad()
    def kbest(
        self,
        inputs: Tensor,
        k: int,
        mask: Tensor | None = None,
        *,
        words: RowWords | None = None,
        sentences: Tensor | None = None,
    ) -> Candidates:
        """Return the k best label sequences of each row, best first.

        With non-local features they are the best by total score among the candidates of the decoder, or among the k
        best by local score if k is larger than the decoder's. Other arguments are those of `decode`. Returns labels (B,
        k, T), -100 at positions without a token and in missing label sequences, with scores (B, k) and valid (B, k).

        Raises:
            InputError: wrong shapes, k < 1, or too little memory for the candidates.
            InvalidScoreError: on a CPU, a logit of a token that is +inf or NaN, or a vector that is not finite.
        """
        places, batch, lattice = self._read(inputs, mask, words, sentences)
        labels, scores, valid = self._ranked(inputs, places, batch, lattice, k)
        return Candidates(places.scatter(labels).where(valid[:, :, None], IGNORE_INDEX), scores, valid)

    def _ranked(self, inputs: Tensor, places: TokenPositions, batch: Batch, lattice: Lattice, k: int) -> Candidates:
        """Return the k best label sequences of the chains, by total score; `lattice` has the batch's restriction."""
        search = KBest(max(k, self.decoder.k) if self.nonlocal_features else k)
        candidates = self._search(search, inputs, places, lattice)
        if batch.restriction is not None:
            candidates = candidates._replace(labels=batch.restriction.labels(candidates.labels))
        if self.nonlocal_features:
            more = self.scorer.nonlocal_scores(batch, candidates.labels, candidates.valid)
            candidates = Candidates(*(part[:, :k] for part in best_first(candidates, candidates.scores + more)))
        return candidates

    def _search(
        self, search: Callable[[Lattice], SearchResult], inputs: Tensor, places: TokenPositions, lattice: Lattice
    ) -> SearchResult:
        """Return the result of a search; an error for invalid scores names row, position and place of the input."""
        try:
            return search(lattice)
        except InvalidScoreError:
            check_inputs(inputs, places, self.input_name)
            raise

    def marginals(self, inputs: Tensor, mask: Tensor | None = None, *, sentences: Tensor | None = None) -> Tensor:
        """Return the probability p(y_t = y | x) of each label at each position. Differentiable.

        Arguments are those of `decode`. Returns the probabilities (B, T, L), 0 at positions without a token.

        Raises:
            InputError: wrong shapes; the head has non-local features, or a criterion without probabilities.
        """
        self._check_probabilistic()
        places, _, lattice = self._read(inputs, mask, None, sentences)
        probabilities = marginals(lattice)
        order = places.order[:, :, None].expand_as(probabilities)
        return torch.zeros_like(probabilities).scatter(1, order, probabilities)

    @torch.no_grad()
    def confidence(self, inputs: Tensor, mask: Tensor | None = None, *, sentences: Tensor | None = None) -> Confidence:
        """Return the best label sequence of each row, and the probabilities of its labels and of the whole sequence.

        Arguments are those of `decode`, errors those of `marginals`.
        """
        self._check_probabilistic()
        places, _, lattice = self._read(inputs, mask, None, sentences)
        scores, labels = self._search(_best, inputs, places, lattice)
        if _exportable(lattice):
            log_z, table = exportable_marginals(lattice)
        else:
            log_z, table = log_partition(lattice), marginals(lattice)
        sure = table.gather(2, labels[:, :, None]).squeeze(2)
        rows = (scores - log_z).exp().where(scores != -torch.inf, 0)
        return Confidence(places.scatter(labels), places.scatter(sure, 0), rows)

    @torch.no_grad()
    def segment_confidence(
        self, inputs: Tensor, labels: Tensor, mask: Tensor | None = None, *, sentences: Tensor | None = None
    ) -> Tensor:
        """Return for each token the probability of its segment, with exactly these boundaries and this type.

        `labels`: (B, T) numbers of labels, such as those of `decode`; any number at positions without a token. Other
        arguments are those of `decode`, errors those of `marginals`. Returns the probabilities (B, T), NaN outside of
        segments and at positions without a token.
        """
        self._check_probabilistic()
        places, batch, lattice = self._read(inputs, mask, None, sentences)
        chain_labels = places.gather(labels).where(places.mask, 0)
        boundaries = SentenceBoundaries(places.mask, batch.first, batch.last)
        return places.scatter(confidence_within(lattice, chain_labels, boundaries, self.labels), torch.nan)

    @torch.no_grad()
    def entities(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        *,
        sentences: Tensor | None = None,
        min_probability: float | None = None,
    ) -> list[Entities]:
        """Return the segments of each row with their exact probabilities, and the probability of its best labels.

        The probability of a segment is that of all label sequences with exactly this type, first and last token. The
        segments are those of the best label sequence, and with `min_probability` all others above it, with `best`
        False: for example, the other types of the same tokens. `start` and `end` are positions in the row: of the first
        token, and one after the position of the last token. Other arguments are those of `decode`.

        Raises:
            InputError: wrong shapes or minimum; the head has non-local features, or a criterion without probabilities.

        Example:
            >>> import torch
            >>> from structperc.nn import ChainHead
            >>> head = ChainHead(["O", "B-PER", "I-PER"])
            >>> logits = torch.tensor([[[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]])
            >>> (found,) = head.entities(logits, min_probability=0.05)
            >>> [(one.type, one.start, one.end, round(one.probability, 2), one.best) for one in found.spans]
            [('PER', 0, 1, 0.09, False), ('PER', 0, 2, 0.88, True)]
            >>> round(found.probability, 2)
            0.87
        """
        self._check_probabilistic()
        places, batch, lattice = self._read(inputs, mask, None, sentences)
        boundaries = SentenceBoundaries(places.mask, batch.first, batch.last)
        labels = self._search(_best, inputs, places, lattice)[1]
        sequences = entities(lattice, labels, boundaries, self.labels, min_probability)
        return [
            sequence._replace(spans=[s._replace(start=at[s.start], end=at[s.end - 1] + 1) for s in sequence.spans])
            for sequence, at in zip(sequences, places.order.tolist(), strict=True)
        ]

    # -- chains of tokens ------------------------------------------------------------------------------------

    def _read(
        self, inputs: Tensor, mask: Tensor | None, words: RowWords | None, sentences: Tensor | None
    ) -> tuple[TokenPositions, Batch, Lattice]:
        places = TokenPositions.from_mask(self._kept(inputs, mask, None))
        batch = self._batch(places, None, sentences, words)
        return places, batch, self._lattice(inputs, places, batch)

    def _read_gold(
        self,
        inputs: Tensor,
        gold: Tensor,
        mask: Tensor | None,
        sentences: Tensor | None,
        words: RowWords | None,
        checked: bool,
    ) -> tuple[TokenPositions, Batch]:
        """Return the tokens, and their gold labels as a batch."""
        allowed = gold if gold.dtype == torch.bool else None
        self._check_shapes(inputs, mask, gold)
        if allowed is not None:
            if not self.criterion.supports_incomplete:
                name = type(self.criterion).__name__
                raise InputError(f"gold: {name} needs complete labels; give numbers of labels (B, T)")
            gold = allowed.long().argmax(2)  # an allowed label
            if mask is None:
                mask = allowed.any(2)
        kept = self._kept(inputs, mask, gold)
        places = TokenPositions.from_mask(kept)
        if checked and allowed is None:
            check_gold(gold, kept, self.labels)
        batch = self._batch(places, gold.where(kept, 0), sentences, words)
        if allowed is not None:
            batch = batch._replace(allowed=places.gather(allowed) | ~places.mask[:, :, None])
        if checked and allowed is None:
            check_legal(batch, self.labels, places)
        elif checked:
            check_left("gold", Restriction(batch.allowed), places, batch, self.labels)
        return places, batch

    def _check_shapes(self, inputs: Tensor, mask: Tensor | None, gold: Tensor | None) -> None:
        check_shapes(inputs, mask, gold, self.width, self.input_name, len(self.labels))

    def _kept(self, inputs: Tensor, mask: Tensor | None, gold: Tensor | None) -> Tensor:
        """Return a mask (B, T) bool of the tokens."""
        self._check_shapes(inputs, mask, gold)
        kept = torch.ones_like(inputs[:, :, 0], dtype=torch.bool) if mask is None else mask != 0
        return kept if gold is None else kept & (gold != IGNORE_INDEX)

    def _batch(
        self, places: TokenPositions, gold: Tensor | None, sentences: Tensor | None, words: RowWords | None
    ) -> Batch:
        if self.nonlocal_features and words is None:
            name = type(self.nonlocal_features[0]).__name__
            raise InputError(f"words: {name} needs the words of the tokens; give a list of words for each row")
        return build_batch(places, gold, sentences, words if self.nonlocal_features else None)

    def _lattice(self, inputs: Tensor, places: TokenPositions, batch: Batch) -> Lattice:
        """Return the scores of the chains in the form of the criterion; -inf for illegal labels."""
        chain_inputs = places.gather(inputs).where(places.mask[:, :, None], 0)  # inputs without a token are arbitrary
        return self.scorer.lattice(self._scores(chain_inputs, batch), batch)

    def _check_gold(self, lattice: Lattice, places: TokenPositions, batch: Batch) -> None:
        """Check legal gold labels further, on a CPU; for subclasses."""

    def _check_scores(self, scores: Tensor, name: str) -> None:
        """Check the scores (B,) of the best label sequences with allowed labels, of argument `name`; for subclasses."""

    def _check_probabilistic(self) -> None:
        if not self.probabilistic:
            name = type(self.criterion).__name__
            why = "with non-local features" if self.criterion.probabilistic else f"trained by {name}"
            raise InputError(f"a head {why} has scores, not probabilities; train local scores by CRFLoss")


def _check_parts(criterion: Criterion, search: KBest, nonlocal_features: Sequence[NonlocalFeature]) -> None:
    """Raise InputError for a criterion or features that a head does not support."""
    check_criterion(criterion, search, len(nonlocal_features) > 0)
    if criterion.independent_sentences and criterion.unit != "sentence":
        name = type(criterion).__name__
        raise InputError(f"{name}: local_unit sentence needs learning one sequence at a time: use a Tagger")
    for feature in nonlocal_features:
        if isinstance(feature, GlobalFeature):
            raise InputError(f"{type(feature).__name__} reads candidate lists: use a GlobalReranker")


def _best(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """Return the result of `viterbi`; in an exported program without operators of this library."""
    return (exportable_viterbi if _exportable(lattice) else viterbi)(lattice)


def _exportable(lattice: Lattice) -> bool:
    """Return True in a program that is exported without operators of this library."""
    return torch.compiler.is_exporting() and lattice.segments is None
