"""Gold and candidates of a lattice with their scores, as criteria compare them."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structperc.chain import Constraints, KBest, allow, max_marginals, viterbi
from structperc.chain.lattices import split_sentences
from structperc.criteria import Criterion
from structperc.criteria.base import best, empty_candidates, is_allowed, is_gold, score_candidates, slice_candidates
from structperc.data.labels import LabelSet
from structperc.errors import InputError, InvalidScoreError
from structperc.nonlocal_features import NonlocalFeature
from structperc.nonlocal_features.base import nonlocal_scores
from structperc.structures import Batch, Candidates, Lattice, Scored, real_tokens

LIST_SIZE = 20  # candidates of a list in training, as in Collins 2002 and Kazama & Torisawa 2007


class ComparedSequences(NamedTuple):
    """Sequences that a criterion compares: those of a batch, or each of their sentences as a row."""

    lattice: Lattice
    gold: Tensor  # (B, T) int64, 0 in the padding
    places: Tensor | None  # (B, T) int64, places of the sentences' tokens in the flattened batch; None: sequences
    allowed: Tensor | None = None  # (B, T, L) bool, see `Scored`
    weights: Tensor | None = None  # (B, T), see `Scored`


class CandidateScorer:
    """Search for candidates, and scores of candidates and gold; shared by `ChainHead` and `Tagger`.

    Args:
        constraints: masks of the tag scheme. No segment crosses the boundary of a sentence.
        criterion: the loss, which may transform the lattice.
        search: search for candidates in training.
        nonlocal_features: features of whole label sequences.
        labels: the label set of all of these.
    """

    def __init__(
        self,
        constraints: Constraints,
        criterion: Criterion,
        search: KBest,
        nonlocal_features: Iterable[NonlocalFeature],
        labels: LabelSet,
    ) -> None:
        self.constraints, self.criterion, self.search = constraints, criterion, search
        self.nonlocal_features, self.labels = list(nonlocal_features), labels

    def lattice(self, scores: Lattice, batch: Batch) -> Lattice:
        """Return scores in the form of the criterion, with -inf for all label pairs that the tag scheme forbids."""
        if scores.segments is not None:
            self.check_segments()
        lattice = self.constraints(scores, batch.first, batch.last)
        if self.criterion.independent_sentences:
            lattice = lattice._replace(starts=batch.first)
        return self.criterion.transform_lattice(lattice)

    def check_segments(self) -> None:
        """Raise InputError for a criterion that does not support scores of segments."""
        if not self.criterion.supports_segments:
            name = type(self.criterion).__name__
            raise InputError(f"{name} does not support scores of segments; use HingeLoss, CRFLoss or another scorer")

    def compared_sequences(self, lattice: Lattice, batch: Batch) -> ComparedSequences:
        """Return the sequences that the criterion compares.

        With incomplete labels, the gold labels are the best path of allowed labels, if the criterion compares paths.
        """
        assert batch.gold is not None
        gold, places, allowed, weights = batch.gold, None, batch.allowed, batch.weights
        if self.criterion.unit == "sentence":
            lattice, places = split_sentences(lattice._replace(starts=batch.first))
            real = real_tokens(lattice.lengths, places.shape[1])
            gold = gold.flatten()[places].where(real, 0)
            if allowed is not None:
                allowed = allowed.flatten(0, 1)[places] | ~real[:, :, None]
            if weights is not None:
                weights = weights.flatten()[places]
        if allowed is not None and self.criterion.min_candidates:
            gold = best_allowed(lattice, allowed)
        return ComparedSequences(lattice, gold, places, allowed, weights)

    @torch.no_grad()
    def candidates(self, lattice: Lattice) -> Candidates:
        """Return the result of the search if the criterion compares candidates.

        Invalid scores give no valid candidate, and a loss of NaN.
        """
        if not self.criterion.min_candidates:
            return empty_candidates(lattice)
        try:
            return self.search(lattice)
        except InvalidScoreError:
            B, T, _ = lattice.unary.shape
            none = lattice.unary.new_full((B, self.search.k), -torch.inf)
            return Candidates(lattice.lengths.new_zeros(B, self.search.k, T), none, none > -torch.inf)

    @torch.no_grad()
    def training_candidates(self, compared: ComparedSequences) -> Candidates:
        """Return the result of the search with the criterion's cost.

        With incomplete labels, the last candidate is the best path outside of the allowed ones if the search has found
        none, unless the criterion needs the best path only.
        """
        lattice = self.criterion.augment(compared.lattice, compared.gold)
        training = self.candidates(lattice)
        if compared.allowed is None or (lattice is compared.lattice and self.criterion.min_candidates < 2):
            return training
        return with_rival(training, lattice, compared.allowed)

    def score(self, batch: Batch, compared: ComparedSequences, candidates: Candidates) -> Scored:
        """Return gold and candidates of `compared` with their scores, with gradients.

        Gold is scored as one more candidate. With incomplete labels and non-local features, gold is the allowed label
        sequence with the highest total score, see `best_allowed_by_total`.
        """
        gold = compared.gold
        scored = score_candidates(compared.lattice, gold, candidates)._replace(allowed=compared.allowed)
        scored = scored._replace(weights=compared.weights)
        if self.criterion.unit == "sentence":
            return scored
        scored = scored._replace(starts=batch.first)
        if not self.nonlocal_features:
            return scored
        labels = torch.cat([gold[:, None], candidates.labels], 1)
        more = self.nonlocal_scores(batch, labels, pad(candidates.valid, (1, 0), value=True))
        scored = scored._replace(gold_nonlocal=more[:, 0], candidate_nonlocal=more[:, 1:])
        if scored.allowed is None or not self.criterion.min_candidates:
            return scored
        return best_allowed_by_total(scored)

    def compare(self, batch: Batch, lattice: Lattice) -> tuple[Scored, Scored]:
        """Return the results of the searches with and without the cost, with gradients of non-local weights.

        Both lists are scored together: label sequences share most of that work. `lattice`: scores of the batch, without
        gradients.
        """
        assert batch.gold is not None
        with torch.no_grad():
            searched = self.criterion.augment(lattice, batch.gold)
            candidates = self.candidates(searched)
            free = candidates if searched is lattice else self.candidates(lattice)
        compared = ComparedSequences(lattice, batch.gold, None)
        if free is candidates:
            scored = self.score(batch, compared, candidates)
            return scored, scored
        both = Candidates(*(torch.cat(pair, 1) for pair in zip(candidates, free, strict=True)))
        scored, k = self.score(batch, compared, both), candidates.valid.shape[1]
        return slice_candidates(scored, slice(0, k)), slice_candidates(scored, slice(k, None))

    def nonlocal_scores(self, batch: Batch, labels: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) of label sequences (B, K, T), summed over all non-local features; 0 if not valid."""
        return nonlocal_scores(self.nonlocal_features, batch, labels, valid, self.labels)


@torch.no_grad()
def best_allowed(lattice: Lattice, allowed: Tensor) -> Tensor:
    """Return the best label sequence of allowed labels.

    `allowed`: (B, T, L) bool. Returns labels (B, T) int64; 0 for a sequence with invalid scores, whose loss is NaN.
    """
    try:
        return viterbi(allow(lattice, allowed))[1]
    except InvalidScoreError:
        return lattice.lengths.new_zeros(lattice.unary.shape[:2])


def best_allowed_by_total(scored: Scored) -> Scored:
    """Make gold the allowed label sequence with the highest total score: the gold labels or an allowed candidate.

    `scored`: gold labels and candidates of incomplete labels, with their non-local scores.
    """
    labels, _, valid = scored.candidates
    right = is_gold(scored) & valid
    chosen, rows = best(scored, right), torch.arange(len(right), device=right.device)
    local, further = scored.candidate_scores[rows, chosen], scored.candidate_nonlocal[rows, chosen]
    better = right.any(1) & (local + further > scored.gold_scores + scored.gold_nonlocal)
    return scored._replace(
        gold=labels[rows, chosen].where(better[:, None], scored.gold),
        gold_scores=local.where(better, scored.gold_scores),
        gold_nonlocal=further.where(better, scored.gold_nonlocal),
    )


@torch.no_grad()
def with_rival(candidates: Candidates, lattice: Lattice, allowed: Tensor) -> Candidates:
    """Make the last candidate the best label sequence with a label that is not allowed, unless there is such a one.

    `lattice`: scores of the B sequences. `allowed`: (B, T, L) bool, True in the padding.
    """
    labels, scores, valid = candidates
    missing = ~(valid & ~is_allowed(labels, allowed).all(2)).any(1) & valid.any(1)
    if not bool(missing.any()):
        return candidates
    best, place = max_marginals(lattice).masked_fill(allowed, -torch.inf).flatten(1).max(1)
    L = lattice.unary.shape[2]
    only = torch.ones_like(allowed)  # at the token where the path leaves the allowed ones, only its label
    rows, t = torch.arange(len(place), device=place.device), place // L
    only[rows, t] = nn.functional.one_hot(place % L, L).bool()
    winner = viterbi(allow(lattice, only))[1]
    changed = missing.clone()
    labels, scores, valid = labels.clone(), scores.clone(), valid.clone()
    labels[:, -1] = winner.where(changed[:, None], labels[:, -1])
    scores[:, -1] = best.where(changed, scores[:, -1])
    valid[:, -1] = (best > -torch.inf).where(changed, valid[:, -1])
    return Candidates(labels, scores, valid)


def best_first(candidates: Candidates, total_scores: Tensor) -> Candidates:
    """Sort candidates by their total scores, best first; equal scores keep their order.

    `total_scores`: (B, K).
    """
    scores, order = total_scores.sort(dim=1, descending=True, stable=True)
    labels = candidates.labels.gather(1, order[:, :, None].expand_as(candidates.labels))
    return Candidates(labels, scores, candidates.valid.gather(1, order))


def default_search(criterion: Criterion, nonlocal_features: bool) -> KBest:
    """Return the search for training candidates of a criterion, with 20 candidates if there are non-local features.

    `nonlocal_features`: whether there are any.
    """
    listed = LIST_SIZE if nonlocal_features or criterion.learns_from_lists else 1
    return KBest(max(listed, criterion.min_candidates))


def check_criterion(criterion: Criterion, search: KBest, nonlocal_features: bool, place: str = "") -> None:
    """Check that a criterion, a search and non-local features can be used together.

    `search`: search for candidates in training. `nonlocal_features`: whether there are any. `place`: place of their
    options for the message, such as "model.". Raises InputError: the search returns too few candidates; the criterion
    compares sentences, but features whole sequences.
    """
    name, needed = type(criterion).__name__, criterion.min_candidates
    if search.k < needed:
        raise InputError(f"{place}search.k is {search.k}, but {name} compares gold with candidates: set it >= {needed}")
    if nonlocal_features and criterion.unit == "sentence":
        raise InputError(f"{place}criterion.unit is sentence, but non-local features compare sentences: leave it out")
