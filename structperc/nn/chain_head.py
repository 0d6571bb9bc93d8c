"""A chain of labels on top of any network."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from structperc.chain import (
    Constraints,
    KBest,
    exportable_marginals,
    exportable_viterbi,
    kbest,
    log_partition,
    marginals,
    viterbi,
)
from structperc.chain.lattices import full_precision as upcast
from structperc.criteria import CRFLoss, Criterion, without_autocast
from structperc.data.labels import LabelSet
from structperc.errors import InputError, InvalidScore
from structperc.nn.candidate_scorer import CandidateScorer, best_first, check_criterion
from structperc.nn.inputs import (
    IGNORE_INDEX,
    RowWords,
    TokenPositions,
    build_batch,
    check_gold,
    check_legal,
    check_logits,
    check_shapes,
    check_state,
    label_set,
    to_state,
)
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature
from structperc.structures import Batch, Candidates, Lattice

Reduction = Literal["mean", "sum", "none"]
Found = TypeVar("Found")


class Confidence(NamedTuple):
    """The best label sequence of each row, and its probability; 0 if the row has no legal one."""

    labels: Tensor  # (B, T) int64, -100 where there is no token
    tokens: Tensor  # (B, T) p(y_t = label | x), 0 where there is no token
    rows: Tensor  # (B,) p(y = labels | x), 1 for a row without tokens


class ChainHead(nn.Module):
    """Scores of labels, position by position -> a loss, and the best label sequences.

    score(y) = sum of logits[t, y_t] + transitions[y_{t-1}, y_t], with start_transitions at the first and
    end_transitions at the last token of each sentence; what the tag scheme forbids is impossible.

    Tokens are the positions that `mask` keeps and whose gold label is not -100. A chain goes from token to token
    wherever they stand: past padding on either side, special tokens and further pieces of words. At prediction there is
    no gold, so that `mask` must then mark the same positions, see `first_subwords`. What is computed from logits of
    half precision, also under autocast, is float32. A row without tokens has loss 0 and no labels. A row without any
    legal label sequence has loss 0, without a gradient; its labels are 0, its probabilities 0, its score -inf.

    Logits that are +inf or NaN at a token make the loss of their row NaN, and its probabilities in `marginals`. What
    searches for labels refuses them on a CPU; on other devices, which would be waited for, the labels of the row are 0,
    its scores NaN.

    The names of the labels are part of the state: `load_state_dict` refuses a state with other names or another order.

    Args:
        labels: a LabelSet, or names of labels in the order of the logits, or a mapping of numbers to names (id2label),
            which are of `scheme`.
        criterion: what is learned by; by default Likelihood, a conditional random field.
        nonlocal_features: score whole label sequences; they read `words`, and `sentences` of documents.
        search: Lattice -> Candidates for training; by default as many as needed, or 20 with non-local features.
        decoder: Lattice -> Candidates among which non-local features choose; by default 100.
        transitions: learn scores of pairs, of first and of last labels, which begin with zeros; or leave them there.
        scheme: of names of labels.

    Raises:
        InputError: parts that do not go together.
    """

    def __init__(
        self,
        labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str],
        criterion: Criterion | None = None,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        search: KBest | None = None,
        decoder: KBest | None = None,
        transitions: bool = True,
        scheme: str = "IOB2",
    ) -> None:
        super().__init__()
        self.labels = label_set(labels, scheme)
        self.criterion = criterion or CRFLoss()
        self.nonlocal_features = nn.ModuleList(nonlocal_features)
        needed = max(1, self.criterion.min_candidates)
        self.search = search or KBest(20 if nonlocal_features else needed)
        self.decoder = decoder or KBest(100)
        self._check_parts()
        self.constraints = Constraints()
        self.constraints.allocate(self.labels)
        features = [cast(NonlocalFeature, feature) for feature in self.nonlocal_features]
        self.scorer = CandidateScorer(self.constraints, self.criterion, self.search, features, self.labels)
        self.criterion.allocate(self.labels)
        for feature in nonlocal_features:
            feature.allocate(self.labels)
        L = len(self.labels)
        self.start_transitions = nn.Parameter(torch.zeros(L), requires_grad=transitions)
        self.transitions = nn.Parameter(torch.zeros(L, L), requires_grad=transitions)
        self.end_transitions = nn.Parameter(torch.zeros(L), requires_grad=transitions)

    def extra_repr(self) -> str:
        """Return how many labels of which scheme there are."""
        return f"{len(self.labels)} labels, scheme={self.labels.scheme}"

    @property
    def probabilistic(self) -> bool:
        """Whether exp(score - log Z) is a probability: true if learned by likelihood, without non-local features."""
        return self.criterion.probabilistic and not self.nonlocal_features

    def get_extra_state(self) -> Tensor:
        """Return the names of the labels and their scheme, (n,) uint8, for `state_dict`."""
        return to_state(self.labels)

    def set_extra_state(self, state: Tensor) -> None:
        """Compare the labels of a state with those of the head. Raises InputError, with the first difference."""
        check_state(state, self.labels)

    # -- learning --------------------------------------------------------------------------------------------

    def forward(
        self,
        logits: Tensor,
        gold: Tensor,
        mask: Tensor | None = None,
        *,
        words: RowWords | None = None,
        sentences: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> Tensor:
        """Return the loss, () float32: the mean over rows that have tokens, or the sum, or the losses (B,) themselves.

        Args:
            logits: (B, T, L) scores of labels.
            gold: (B, T) numbers of labels; -100 where there is no token.
            mask: (B, T) bool or numbers, not 0 at tokens; None: gold marks them.
            words: of each row, the words of its tokens; for non-local features.
            sentences: (B, T) numbers of sentences within a row, which change where one ends; None: each row is one.
            reduction: what is made of the losses of the rows.

        Raises:
            InputError: shapes that do not fit; on a CPU also labels that are unknown or illegal (on
                other devices, which would be waited for, the loss is then NaN or infinite).
        """
        if reduction not in ("mean", "sum", "none"):
            raise InputError(f"reduction must be mean, sum or none, got {reduction!r}")
        kept = self._kept(logits, mask, gold)
        looked_at = logits.device.type == "cpu" and not torch.compiler.is_compiling()
        if looked_at:
            check_gold(gold, kept, self.labels)
        places = TokenPositions.of(kept)
        batch = self._batch(places, gold.where(kept, 0), sentences, words)
        if looked_at:
            check_legal(batch, self.labels, places)
        losses = self._losses(batch, self._lattice(logits, places, batch))
        if reduction == "none":
            return losses
        return losses.sum() / (places.lengths > 0).sum().clamp(min=1) if reduction == "mean" else losses.sum()

    def _losses(self, batch: Batch, lattice: Lattice) -> Tensor:
        """The losses (B,) of the rows."""
        units = self.scorer.units(lattice, batch)
        candidates = self.scorer.training_candidates(units.lattice, units.gold)
        scored = self.scorer.score(batch, units.lattice, units.gold, candidates)
        with without_autocast(lattice.lengths.device):
            losses = self.criterion(scored)
        if units.places is None:
            return losses
        B, T = batch.sentences.shape
        return losses.new_zeros(B).index_add(0, units.places[:, 0] // T, losses)

    # -- prediction ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def decode(
        self,
        logits: Tensor,
        mask: Tensor | None = None,
        *,
        words: RowWords | None = None,
        sentences: Tensor | None = None,
    ) -> Tensor:
        """Return the best labels (B, T) int64, -100 where there is no token; arguments and errors as in `forward`.

        Where the head is exported, so is this, in operations that torch has without this library.
        """
        places, batch, lattice = self._read(logits, mask, words, sentences)
        if self.nonlocal_features:
            return places.back(self._ranked(logits, places, batch, lattice, 1).labels[:, 0])
        return places.back(self._search(_best, logits, places, lattice)[1])

    @torch.no_grad()
    def kbest(
        self,
        logits: Tensor,
        k: int,
        mask: Tensor | None = None,
        *,
        words: RowWords | None = None,
        sentences: Tensor | None = None,
    ) -> Candidates:
        """Return the k best label sequences, best first: labels (B, k, T), -100 where there is no token or no sequence.

        With non-local features they are the best by total score among the decoder's candidates, or among the k best by
        local score where that is more.
        """
        places, batch, lattice = self._read(logits, mask, words, sentences)
        labels, scores, valid = self._ranked(logits, places, batch, lattice, k)
        return Candidates(places.back(labels).where(valid[:, :, None], IGNORE_INDEX), scores, valid)

    def _ranked(self, logits: Tensor, places: TokenPositions, batch: Batch, lattice: Lattice, k: int) -> Candidates:
        """The k best label sequences of the chains, by total score."""
        several = max(k, self.decoder.k) if self.nonlocal_features else k
        found = self._search(lambda lattice: kbest(lattice, several), logits, places, lattice)
        if self.nonlocal_features:
            more = self.scorer.nonlocal_scores(batch, found.labels, found.valid)
            found = Candidates(*(part[:, :k] for part in best_first(found, found.scores + more)))
        return found

    def _search(
        self, search: Callable[[Lattice], Found], logits: Tensor, places: TokenPositions, lattice: Lattice
    ) -> Found:
        """Return the result of a search; an error for invalid scores names row, position and label of the logits."""
        try:
            return search(lattice)
        except InvalidScore:
            check_logits(logits, places)
            raise

    def marginals(self, logits: Tensor, mask: Tensor | None = None, *, sentences: Tensor | None = None) -> Tensor:
        """Return p(y_t = y | x) as (B, T, L), 0 where there is no token. Differentiable.

        Raises InputError unless the head learns by likelihood, and without non-local features.
        """
        self._check_probabilistic()
        places, _, lattice = self._read(logits, mask, None, sentences)
        found = marginals(lattice)
        order = places.order[:, :, None].expand_as(found)
        return torch.zeros_like(found).scatter(1, order, found)

    @torch.no_grad()
    def confidence(self, logits: Tensor, mask: Tensor | None = None, *, sentences: Tensor | None = None) -> Confidence:
        """Return the best label sequence, the probability of each of its labels, and that of the whole.

        Raises InputError as `marginals` does.
        """
        self._check_probabilistic()
        places, _, lattice = self._read(logits, mask, None, sentences)
        scores, labels = self._search(_best, logits, places, lattice)
        if torch.compiler.is_exporting():
            log_z, table = exportable_marginals(lattice)
        else:
            log_z, table = log_partition(lattice), marginals(lattice)
        sure = table.gather(2, labels[:, :, None]).squeeze(2)
        rows = (scores - log_z).exp().where(scores != -torch.inf, 0)
        return Confidence(places.back(labels), places.back(sure, 0), rows)

    # -- how it is done --------------------------------------------------------------------------------------

    def _read(
        self, logits: Tensor, mask: Tensor | None, words: RowWords | None, sentences: Tensor | None
    ) -> tuple[TokenPositions, Batch, Lattice]:
        places = TokenPositions.of(self._kept(logits, mask, None))
        batch = self._batch(places, None, sentences, words)
        return places, batch, self._lattice(logits, places, batch)

    def _kept(self, logits: Tensor, mask: Tensor | None, gold: Tensor | None) -> Tensor:
        """(B, T) bool, the tokens."""
        check_shapes(logits, mask, gold, len(self.labels))
        kept = torch.ones_like(logits[:, :, 0], dtype=torch.bool) if mask is None else mask != 0
        return kept if gold is None else kept & (gold != IGNORE_INDEX)

    def _batch(
        self, places: TokenPositions, gold: Tensor | None, sentences: Tensor | None, words: RowWords | None
    ) -> Batch:
        if self.nonlocal_features and words is None:
            name = type(self.nonlocal_features[0]).__name__
            raise InputError(f"words: {name} reads the words of the tokens; give a list of them for each row")
        return build_batch(places, gold, sentences, words if self.nonlocal_features else None)

    def _lattice(self, logits: Tensor, places: TokenPositions, batch: Batch) -> Lattice:
        """The scores of the chains as the criterion reads them; what the tag scheme forbids is -inf."""
        start, end = upcast(self.start_transitions), upcast(self.end_transitions)
        unary = upcast(places.chain(logits)).where(
            places.real[:, :, None], 0
        )  # positions without a token may hold anything
        unary = unary + torch.where(batch.first[:, :, None], start, 0) + torch.where(batch.last[:, :, None], end, 0)
        return self.scorer.lattice(Lattice(unary, self.transitions[None, None], places.lengths), batch)

    def _check_parts(self) -> None:
        name = type(self.criterion).__name__
        check_criterion(self.criterion, self.search, len(self.nonlocal_features) > 0)
        if self.criterion.independent_sentences and self.criterion.unit != "sentence":
            raise InputError(f"{name}: local_unit sentence is learned one sequence at a time, by taggers only")
        for feature in self.nonlocal_features:
            if isinstance(feature, GlobalFeature):
                raise InputError(f"{type(feature).__name__} reads candidate lists, which a head does not have")

    def _check_probabilistic(self) -> None:
        if not self.probabilistic:
            name = type(self.criterion).__name__
            why = "with non-local features" if self.criterion.probabilistic else f"that learns by {name}"
            raise InputError(f"a head {why} has scores, not probabilities; learn local scores by CRFLoss")


def _best(lattice: Lattice) -> tuple[Tensor, Tensor]:
    """`viterbi`, in an exported program without operators of this library."""
    return (exportable_viterbi if torch.compiler.is_exporting() else viterbi)(lattice)
