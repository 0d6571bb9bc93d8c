"""Taggers that search: candidates come from a lattice and are chosen by their total score.

Where the candidates of a tagger come from and which of their scores count.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from structperc.chain import Constraints, KBest, kbest, log_partition, marginals, separate_sentences, viterbi
from structperc.criteria import Criterion
from structperc.criteria.base import InferenceCriterion
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import parts
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.light.inference import Sentence
from structperc.light.labeller import no_probabilities
from structperc.metrics import token_confidence
from structperc.metrics.accuracy import sentence_boundaries
from structperc.metrics.calibration import confidence_within
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature, nonlocal_scores
from structperc.ragged import Ragged
from structperc.scorers import LocalWeights, Scorer
from structperc.structures import Batch, Candidates, Lattice
from structperc.taggers.base import BaseTagger, LabelSequence


class Scoring(ABC):
    """Where the lattice of a tagger comes from, and by which scores its candidates are chosen.

    Every `LatticeTagger` holds one. With its own lattice it is a tagger of sequences, with that of another model it
    is a re-ranker.
    """

    @property
    @abstractmethod
    def additive(self) -> bool:
        """Whether the total score of a labelling is a sum of weights, one for each feature that it has."""

    @property
    @abstractmethod
    def reader(self) -> Scorer:
        """The scorer that reads text beside feature ids, for which the batches are made."""

    @abstractmethod
    def lattice(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch in which candidates are searched for."""

    @abstractmethod
    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates, in their order, with the local scores that count; -inf where not valid."""

    @abstractmethod
    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""


class LatticeScoring(Scoring):
    """Candidates from the tagger's own lattice: total score = score in this lattice + non-local scores.

    Args:
        scorer: batch -> Lattice.
        constraints: those of the tag scheme; no segment crosses the boundary of a sentence.
        criterion: says how the lattice is read.
        nonlocal_features: what is counted in whole labellings.
        labels: the label set of all of these.
    """

    def __init__(
        self,
        scorer: Scorer,
        constraints: Constraints,
        criterion: Criterion,
        nonlocal_features: Iterable[NonlocalFeature],
        labels: LabelSet,
    ) -> None:
        self.scorer, self.constraints, self.criterion = scorer, constraints, criterion
        self.nonlocal_features, self.labels = list(nonlocal_features), labels

    @property
    def additive(self) -> bool:
        """True: the scores in the lattice and the non-local scores are both sums of weights."""
        return True

    @property
    def reader(self) -> Scorer:
        """The scorer of the lattice itself."""
        return self.scorer

    def lattice(self, batch: Batch) -> Lattice:
        """Return the Lattice as the criterion reads it, with everything the tag scheme forbids at -inf."""
        lattice = self.constraints(self.scorer(batch), batch.first, batch.last)
        return self.criterion.transform_lattice(
            separate_sentences(lattice, batch.first) if self.criterion.independent_sentences else lattice
        )

    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates as they are: the scores by which they were found are the local scores."""
        return candidates

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""
        more = nonlocal_scores(self.nonlocal_features, batch, candidates.labels, candidates.valid, self.labels)
        return candidates.scores + more


class LatticeTagger(BaseTagger):
    """Base of taggers that list candidates and choose the one of the highest total score.

    Where the lattice is from and which scores count is said by `scoring`, which a subclass makes when the labels are
    known. A subclass also says how it is trained. What is not abstract is final.

    Args:
        features: templates and resources. None: there are none.
        scorer: what has the local weights.
        criterion: what training compares.
        search: Lattice -> Candidates for training.
        nonlocal_features: what is counted in whole labellings.
        decoder: Lattice -> Candidates for everything else.
        beta: of the F score by which models are looked at.
    """

    uses_candidate_lists = False  # whether global features find their strings in candidate lists
    scorer: LocalWeights
    scoring: Scoring

    def __init__(
        self,
        features: FeatureExtractor | None,
        scorer: LocalWeights,
        criterion: Criterion,
        search: KBest,
        nonlocal_features: Sequence[NonlocalFeature],
        decoder: KBest,
        beta: float = 1.0,
    ) -> None:
        super().__init__(features, beta)
        self.scorer, self.criterion, self.search = scorer, criterion, search
        self.nonlocal_features = nn.ModuleList(nonlocal_features)
        self.decoder = decoder
        self.constraints = Constraints()

    @abstractmethod
    def make_scoring(self) -> Scoring:
        """Return the scores of this tagger, made of its present parts; parts without weights are given some."""

    # -- scores ----------------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch in which candidates are searched for."""
        return self.scoring.lattice(batch)

    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates, in their order, with the local scores that count for this tagger.

        -inf where not valid.
        """
        return self.scoring.local_candidates(batch, candidates)

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""
        return self.scoring.total_scores(batch, candidates)

    def nonlocal_scores(self, batch: Batch, labels: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) of labellings, summed over all non-local features.

        labels: (B, K, T) int64. valid: (B, K) bool, False where there is no labelling.
        """
        features = [cast(NonlocalFeature, feature) for feature in self.nonlocal_features]
        return nonlocal_scores(features, batch, labels, valid, self.labels)

    def rescore(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates with their total scores, best first by those; equal totals keep the order they had."""
        if not self.nonlocal_features:
            return candidates
        scores, order = self.total_scores(batch, candidates).sort(dim=1, descending=True, stable=True)
        labels = candidates.labels.gather(1, order[:, :, None].expand_as(candidates.labels))
        return Candidates(labels, scores, candidates.valid.gather(1, order))

    @property
    def probabilistic(self) -> bool:
        """Whether exp(score - log Z) is a probability: true if trained by likelihood and with local features alone."""
        return self.criterion.probabilistic and not self.nonlocal_features

    @property
    def additive(self) -> bool:
        """Whether the total score of a labelling is a sum of weights, one for each feature that it has."""
        return self.scoring.additive

    # -- labels ----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def decode(self, batch: Batch) -> Tensor:
        """Return the labels (B, T) int64 of the decoder's candidate with the highest total score, for each sequence.

        Without non-local features no candidates are listed: the best by local score is the best.
        """
        if not self.nonlocal_features:
            return viterbi(self(batch))[1]
        found = [self._decode(part) for part in parts(batch, self.decoder.k)]
        T = batch.sentences.shape[1]
        return torch.cat([nn.functional.pad(labels, (0, T - labels.shape[1])) for labels in found])

    def _decode(self, batch: Batch) -> Tensor:
        candidates = self.decoder(self(batch))
        total = self.total_scores(batch, candidates)
        return candidates.labels[torch.arange(len(total), device=total.device), total.argmax(1)]

    def predict_batch(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the best labels (B, T) int64, the only prediction of such a tagger."""
        return (self.decode(batch),)

    def add_columns(self, corpus: Corpus, parts: Iterable[tuple[Tensor, ...]]) -> Corpus:
        """Return the corpus unchanged: such a tagger predicts labels and nothing else."""
        return corpus

    def kbest(self, sentences: Iterable[Sentence], k: int) -> list[list[LabelSequence]]:
        """Return up to k best labellings of each sentence, best first; fewer where fewer are possible.

        Log-probabilities are exact, not a softmax over the k candidates; they are None unless trained by likelihood.
        """
        return self.candidates(self.read(sentences), k)

    @torch.no_grad()
    def candidates(self, corpus: Corpus, k: int) -> list[list[LabelSequence]]:
        """Return up to k best labellings of each sequence of a corpus, as `kbest` does for sentences.

        With non-local features these are the best by total score among the decoder's candidates, or among the k best by
        local score where that is more. No more is searched for than there are labellings, L^T. Raises InputError for
        lists that do not fit into memory.
        """
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        empty = LabelSequence([], 0.0, 0.0 if self.probabilistic else None)
        found = [[empty] for _ in range(len(corpus))]
        n = max(k, self.decoder.k) if self.nonlocal_features else k
        for batch in (part for whole in self.batches(corpus) for part in parts(whole, self._possible(whole, n))):
            lists = self._labellings(batch, self._possible(batch, n), k)
            for row, best in zip(batch.rows.tolist(), lists, strict=True):
                found[row] = best
        return found

    def _possible(self, batch: Batch, k: int) -> int:
        """k, or the number of labellings of the longest sequence where that is less."""
        return min(k, len(self.labels) ** batch.sentences.shape[1])

    def _labellings(self, batch: Batch, n: int, k: int) -> list[list[LabelSequence]]:
        """The k best of each sequence by total score, among the n best by local score."""
        lattice = self(batch)
        best = self.rescore(batch, kbest(lattice, n))
        log_z = log_partition(lattice) if self.probabilistic else None
        found = []
        for b, length in enumerate(batch.lengths.tolist()):
            labels, scores = best.labels[b, best.valid[b], :length][:k].cpu(), best.scores[b, best.valid[b]][:k]
            logs = [None] * len(scores) if log_z is None else (scores - log_z[b]).tolist()
            names = [self.labels.decode(path) for path in labels]
            found.append([LabelSequence(*one) for one in zip(names, scores.tolist(), logs, strict=True)])
        return found

    @torch.no_grad()
    def marginals(self, sentences: Iterable[Sentence]) -> list[Tensor]:
        """Return the exact probability of each label at each token: (T, L) per sentence, columns as in `labels.names`.

        Raises InputError unless the tagger was trained by likelihood: perceptron scores are no log-probabilities.
        """
        self.check_probabilistic()
        corpus = self.read(sentences)
        found = [torch.zeros(0, len(self.labels)) for _ in range(len(corpus))]
        for batch in self.batches(corpus):
            for row, length, table in zip(batch.rows, batch.lengths, marginals(self(batch)), strict=True):
                found[int(row)] = table[:length]
        return found

    def confidences(self, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities (B, T) of labels (B, T) int64, and of the segment that each token is in.

        The latter are those of `metrics.segment_confidence`, NaN outside of segments. Raises InputError as `marginals`
        does.
        """
        self.check_probabilistic()
        lattice = self(batch)
        boundaries = sentence_boundaries(batch.lengths, labels.shape[1], batch.sentences)
        return token_confidence(lattice, labels), confidence_within(lattice, labels, boundaries, self.labels)

    def check_probabilistic(self) -> None:
        """Raise InputError for a tagger that has scores but no probabilities."""
        if not self.probabilistic:
            path = (
                self.criterion.path if isinstance(self.criterion, InferenceCriterion) else type(self.criterion).__name__
            )
            name = path.rpartition(".")[2]
            why = "with non-local features" if self.criterion.probabilistic else f"trained with {name}"
            raise no_probabilities(why)

    # -- sizes and names -------------------------------------------------------------------------------------

    def allocate(self, labels: LabelSet) -> None:
        """Create weights and constraint masks for these labels and the (fitted) features."""
        self.labels, self.fitted = labels, True
        self.scorer.allocate(self.features.n_node_features, self.features.n_edge_features, len(labels))
        self.criterion.allocate(labels)
        for feature in self.nonlocal_features:
            cast(NonlocalFeature, feature).allocate(labels)
        self.constraints.allocate(labels)
        self.scoring = self.make_scoring()

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return what the scorer reads of a corpus beside feature ids, such as characters of words."""
        return self.scoring.reader.read(corpus)

    def check_unit(self, unit: str) -> None:
        """Raise InputError if non-local features would find nothing to compare in sequences of this unit."""
        for feature in self.nonlocal_features:
            name = type(feature).__name__
            if feature.needs_documents and unit == "sentence":
                raise InputError(f"{name} compares the sentences of a document: set data.unit: document")
            if isinstance(feature, GlobalFeature) and not self.uses_candidate_lists:
                raise InputError(f"{name} takes its strings from candidate lists: rerank with a GlobalReranker")
