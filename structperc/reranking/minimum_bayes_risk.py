"""Minimum Bayes risk over candidate lists: the candidate of least expected cost, by one model or by several."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain import KBest, path_score
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import split_batch
from structperc.errors import InputError
from structperc.metrics.counts import opened_segments, sentence_boundaries
from structperc.metrics.f_measure import check_beta
from structperc.models.base import flat_labels, inference_batch_size
from structperc.models.chain_model import ChainModel
from structperc.predictor.base import Sentence, corpus_from_sentences
from structperc.structures import Batch, Candidates, SentenceBoundaries, real_tokens


class CandidateDistribution(NamedTuple):
    """The distinct candidates of B sequences from the lists of several models, with probabilities."""

    labels: Tensor  # (B, K, T) int64
    probabilities: Tensor  # (B, K) float64, averaged over the models; 0 where not valid
    valid: Tensor  # (B, K) bool


class MinimumRisk:
    """Minimum Bayes risk decoding by one tagger or an ensemble.

    Every tagger lists candidates by `search`, and scores the candidates of all taggers. Its probabilities are the
    softmax of total score / temperature over all candidates; they are averaged over the taggers. The result is the
    candidate y of least expected cost, sum over y' of p(y') cost(y, y') (Kumar & Byrne 2004 for translation; Goel &
    Byrne 2000 for speech). As the temperature of a single tagger falls to 0, this becomes the candidate with the best
    total score. Scores that are not log-probabilities, such as those of perceptrons, require a temperature of about
    their size.

    Taggers may be re-rankers; all must have the same labels and be trained on sequences of the same unit.

    Args:
        taggers: One or more trained taggers.
        search: Lists the candidates of each tagger.
        cost: Cost of choosing a candidate if another one is correct; default: 1 - F1 of segments.
        temperature: A common temperature, or one for each tagger.

    Raises:
        InputError: There is no tagger, the taggers have different labels or units, a temperature is not positive, or
            the number of temperatures is wrong.

    Example:
        >>> from structperc.chain import KBest
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> taggers = [SequenceTagger(C=C, max_iterations=5).fit(X, y).tagger_ for C in (1.0, 10.0)]
        >>> MinimumRisk(taggers, KBest(10)).tag([["She", "left", "Oslo"]])
        [['O', 'O', 'B-LOC']]
    """

    def __init__(
        self,
        taggers: Sequence[ChainModel],
        search: KBest,
        cost: "CandidateCost | None" = None,
        temperature: float | Sequence[float] = 1.0,
    ) -> None:
        self.temperatures = list(temperature) if isinstance(temperature, Sequence) else [temperature] * len(taggers)
        _check(taggers, self.temperatures)
        self.taggers, self.search, self.cost = list(taggers), search, cost or SegmentCost()
        self.labels, self.unit = taggers[0].labels, taggers[0].unit

    # -- text ------------------------------------------------------------------------------------------------

    def tag(self, sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> list[list[str]]:
        """Return the labels of each sentence, as names. The arguments are those of `ChainModel.tag`."""
        return self.label(corpus_from_sentences(sentences, documents))

    def label(self, corpus: Corpus) -> list[list[str]]:
        """Return the labels of each sentence of a corpus, as names."""
        chosen = ((batches[0].rows, self.decode(batches)) for batches in self.batches(corpus))
        return corpus.sentences_of(flat_labels(corpus, self.labels, chosen))

    def batches(self, corpus: Corpus) -> Iterator[list[Batch]]:
        """Yield the mini-batches of a corpus, each as a list of its encodings by the taggers."""
        size = inference_batch_size(corpus)
        for whole in zip(*(tagger.batches(corpus, size) for tagger in self.taggers), strict=True):
            k = self.search.k * len(self.taggers)
            yield from map(list, zip(*(split_batch(batch, k) for batch in whole), strict=True))

    # -- one batch -------------------------------------------------------------------------------------------

    def decode(self, batches: Sequence[Batch]) -> Tensor:
        """Return the labels (B, T) int64 of least expected cost for a batch, given as encoded by each tagger."""
        found = self.candidate_distribution(batches)
        chosen = least_risk(found, self.cost(batches[0], found.labels, self.labels))
        return found.labels[torch.arange(len(chosen), device=chosen.device), chosen]

    @torch.no_grad()
    def candidate_distribution(self, batches: Sequence[Batch]) -> CandidateDistribution:
        """Return the candidates of all taggers for a batch, with their probabilities."""
        lattices = [tagger(batch) for tagger, batch in zip(self.taggers, batches, strict=True)]
        labels, valid = union([self.search(lattice) for lattice in lattices])
        total = torch.zeros(valid.shape, dtype=torch.float64, device=valid.device)
        for tagger, batch, lattice, temperature in zip(self.taggers, batches, lattices, self.temperatures, strict=True):
            local = path_score(lattice, labels).where(valid, -torch.inf)
            scores = tagger.total_scores(batch, Candidates(labels, local, valid)).double()
            total += (scores / temperature).masked_fill(~valid, -torch.inf).softmax(1)
        return CandidateDistribution(labels, total / len(self.taggers), valid)


def union(lists: Sequence[Candidates]) -> tuple[Tensor, Tensor]:
    """Concatenate lists of candidates; of equal candidates of a sequence only the first is valid.

    Returns:
        Label sequences (B, K, T), and which of them are valid, (B, K) bool.
    """
    labels, valid = (torch.cat([getattr(one, name) for one in lists], 1) for name in ("labels", "valid"))
    for k in range(lists[0].labels.shape[1], labels.shape[1]):  # within a list all differ
        seen = ((labels[:, :k] == labels[:, k : k + 1]).all(2) & valid[:, :k]).any(1)
        valid[:, k] &= ~seen
    return labels, valid


def least_risk(found: CandidateDistribution, costs: Tensor) -> Tensor:
    """Return the candidate of least expected cost (B,) int64, from the costs (B, K, K) of a `CandidateCost`.

    Ties: highest probability, then the first.
    """
    risks = (costs * found.probabilities.unsqueeze(1)).sum(2).masked_fill(~found.valid, torch.inf)
    least = risks == risks.amin(1, keepdim=True)
    return found.probabilities.masked_fill(~least, -1).argmax(1)


def _check(taggers: Sequence[ChainModel], temperatures: Sequence[float]) -> None:
    """Raise InputError for an invalid ensemble."""
    if not taggers:
        raise InputError("MinimumRisk: taggers is empty; give at least one")
    if len(temperatures) != len(taggers):
        raise InputError(f"MinimumRisk: {len(temperatures)} temperatures for {len(taggers)} taggers; give one for each")
    if not all(temperature > 0 for temperature in temperatures):
        raise InputError(f"MinimumRisk: a temperature must be > 0, got {min(temperatures)}")
    first = taggers[0]
    for number, tagger in enumerate(taggers, 1):
        if (tagger.labels.names, tagger.labels.scheme) != (first.labels.names, first.labels.scheme):
            raise InputError(
                f"MinimumRisk: tagger {number} has different labels than the first; train both on the same"
            )
        if tagger.unit != first.unit:
            raise InputError(f"MinimumRisk: tagger {number} labels {tagger.unit}s, the first one {first.unit}s")


# -- costs ---------------------------------------------------------------------------------------------------


class CandidateCost(ABC):
    """Base class of costs between candidates: never negative, and 0 for a candidate against itself.

    A subclass defines `__call__`.
    """

    @abstractmethod
    def __call__(self, batch: Batch, label_sequences: Tensor, labels: LabelSet) -> Tensor:
        """Return the costs (B, K, K) float64: entry [b, i, j] is the cost of choosing candidate i if j is correct.

        Args:
            batch: The encoded sequences.
            label_sequences: (B, K, T) int64, ids of `labels`, arbitrary in the padding.
            labels: The label set.
        """


class TokenCost(CandidateCost):
    """The number of tokens with different labels (the Hamming distance) as a cost between candidates."""

    def __call__(self, batch: Batch, label_sequences: Tensor, labels: LabelSet) -> Tensor:
        """Return the numbers (B, K, K) float64 of tokens with different labels."""
        real = real_tokens(batch.lengths, label_sequences.shape[2]).unsqueeze(1)
        same = count_common(label_sequences.where(real, -1))
        return (batch.lengths.view(-1, 1, 1) - same).double()


class SegmentCost(CandidateCost):
    """1 - F of the segments of two candidates: 0 for equal segments, 1 without a common one.

    Segments are those of `metrics.segment_counts`; the cost of two label sequences without segments is 0. The expected
    cost refers to single sequences: the F score of a corpus is not the mean of the F scores of its sequences.

    Args:
        beta: Weight of recall against precision; 1 is F1.

    Raises:
        InputError: `beta` is not positive. In a call: the labels have no segments.
    """

    def __init__(self, beta: float = 1.0) -> None:
        check_beta(beta)
        self.beta = beta

    def __call__(self, batch: Batch, label_sequences: Tensor, labels: LabelSet) -> Tensor:
        """Return 1 - F (B, K, K) float64 between the segments of the candidates."""
        if labels.scheme == "none":
            raise InputError("SegmentCost: labels of scheme 'none' have no segments; use TokenCost")
        T = label_sequences.shape[2]
        boundaries = SentenceBoundaries(
            *(part.unsqueeze(1) for part in sentence_boundaries(batch.lengths, T, batch.sentences))
        )
        found = opened_segments(label_sequences.where(boundaries.real, 0), boundaries, labels)
        codes = torch.where(found.kind >= 0, found.kind * T + found.end, -1)
        number = (codes >= 0).sum(2).double()
        weights = number.unsqueeze(2) + self.beta**2 * number.unsqueeze(1)  # rows: chosen
        return torch.where(weights > 0, 1 - (1 + self.beta**2) * count_common(codes) / weights, 0.0)


def count_common(codes: Tensor) -> Tensor:
    """Count the positions where two candidates have equal codes >= 0: codes (B, K, T) int64 -> (B, K, K) int64."""
    there = codes >= 0
    return torch.stack([((codes == other.unsqueeze(1)) & there).sum(2) for other in codes.unbind(1)], 2)
