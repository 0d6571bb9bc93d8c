"""Gold and candidates of a lattice with their scores, as criteria compare them."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from structperc.chain import Constraints, KBest, separate_sentences, split_sentences
from structperc.criteria import Criterion, empty_candidates, score_candidates
from structperc.data.labels import LabelSet
from structperc.errors import InputError, InvalidScoreError
from structperc.nonlocal_features import NonlocalFeature, nonlocal_scores
from structperc.structures import Batch, Candidates, Lattice, Scored, real_tokens


class ComparedSequences(NamedTuple):
    """Sequences that a criterion compares: those of a batch, or each of their sentences as a row.

    Example:
        >>> import torch
        >>> from structperc.nn.candidate_scorer import ComparedSequences
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.zeros(1, 3, 2), torch.zeros(1, 1, 2, 2), torch.tensor([3]))
        >>> ComparedSequences(lattice, gold=torch.tensor([[0, 1, 1]]), places=None).gold.shape
        torch.Size([1, 3])
    """

    lattice: Lattice
    gold: Tensor  # (B, T) int64, 0 in the padding
    places: Tensor | None  # (B, T) int64, places of the sentences' tokens in the flattened batch; None: sequences


class CandidateScorer:
    """Search for candidates, and scores of candidates and gold; shared by `ChainHead` and `Tagger`.

    Args:
        constraints: masks of the tag scheme. No segment crosses the boundary of a sentence.
        criterion: the loss, which may transform the lattice.
        search: search for candidates in training.
        nonlocal_features: features of whole label sequences.
        labels: the label set of all of these.

    Example:
        >>> import torch
        >>> from structperc.nn import ChainHead
        >>> from structperc.nn.inputs import TokenPositions, build_batch
        >>> from structperc.structures import Lattice
        >>> scorer = ChainHead(["O", "B-PER", "I-PER"]).scorer
        >>> batch = build_batch(TokenPositions.from_mask(torch.tensor([[True, True]])), None, None, None)
        >>> scorer.lattice(Lattice(torch.zeros(1, 2, 3), torch.zeros(1, 1, 3, 3), torch.tensor([2])), batch).unary[0, 0]
        tensor([0., 0., -inf])
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
        lattice = self.constraints(scores, batch.first, batch.last)
        return self.criterion.transform_lattice(
            separate_sentences(lattice, batch.first) if self.criterion.independent_sentences else lattice
        )

    def units(self, lattice: Lattice, batch: Batch) -> ComparedSequences:
        """Return the sequences that the criterion compares."""
        assert batch.gold is not None
        if self.criterion.unit != "sentence":
            return ComparedSequences(lattice, batch.gold, None)
        parts, places = split_sentences(lattice, batch.first)
        gold = batch.gold.flatten()[places].where(real_tokens(parts.lengths, places.shape[1]), 0)
        return ComparedSequences(parts, gold, places)

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

    def training_candidates(self, lattice: Lattice, gold: Tensor) -> Candidates:
        """Return the result of the search with the criterion's cost."""
        with torch.no_grad():
            return self.candidates(self.criterion.augment(lattice, gold))

    def score(self, batch: Batch, lattice: Lattice, gold: Tensor, candidates: Candidates) -> Scored:
        """Return gold and candidates of `units` with their scores, with gradients.

        Gold is scored as one more candidate.
        """
        scored = score_candidates(lattice, gold, candidates)
        if self.criterion.unit == "sentence":
            return scored
        scored = scored._replace(starts=batch.first)
        if not self.nonlocal_features:
            return scored
        labels = torch.cat([gold[:, None], candidates.labels], 1)
        more = self.nonlocal_scores(batch, labels, pad(candidates.valid, (1, 0), value=True))
        return scored._replace(gold_nonlocal=more[:, 0], candidate_nonlocal=more[:, 1:])

    def nonlocal_scores(self, batch: Batch, labels: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) of label sequences (B, K, T), summed over all non-local features; 0 if not valid."""
        return nonlocal_scores(self.nonlocal_features, batch, labels, valid, self.labels)


def best_first(candidates: Candidates, total_scores: Tensor) -> Candidates:
    """Sort candidates by their total scores, best first; equal scores keep their order.

    Args:
        candidates: K label sequences for each sequence.
        total_scores: (B, K).

    Example:
        >>> import torch
        >>> from structperc.nn.candidate_scorer import best_first
        >>> from structperc.structures import Candidates
        >>> two = Candidates(torch.tensor([[[0], [1]]]), torch.tensor([[5.0, 4.0]]), torch.ones(1, 2).bool())
        >>> best_first(two, torch.tensor([[5.0, 6.0]])).labels
        tensor([[[1],
                 [0]]])
    """
    scores, order = total_scores.sort(dim=1, descending=True, stable=True)
    labels = candidates.labels.gather(1, order[:, :, None].expand_as(candidates.labels))
    return Candidates(labels, scores, candidates.valid.gather(1, order))


def check_criterion(criterion: Criterion, search: KBest, nonlocal_features: bool, place: str = "") -> None:
    """Check that a criterion, a search and non-local features can be used together.

    Args:
        criterion: the loss.
        search: search for candidates in training.
        nonlocal_features: whether there are any.
        place: place of their options for the message, such as "model.".

    Raises:
        InputError: the search returns too few candidates; the criterion compares sentences, but features whole
            sequences.

    Example:
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import CRFLoss
        >>> from structperc.nn.candidate_scorer import check_criterion
        >>> check_criterion(CRFLoss(), KBest(1), nonlocal_features=False)
    """
    name, needed = type(criterion).__name__, criterion.min_candidates
    if search.k < needed:
        raise InputError(f"{place}search.k is {search.k}, but {name} compares gold with candidates: set it >= {needed}")
    if nonlocal_features and criterion.unit == "sentence":
        raise InputError(f"{place}criterion.unit is sentence, but non-local features compare sentences: leave it out")
