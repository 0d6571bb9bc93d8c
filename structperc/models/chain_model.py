"""Models of label sequences: features, scores of a lattice, non-local features and a decoder."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structperc.builder import Builder, describe_value
from structperc.chain import Constraints, Decoder, KBest, Restriction, SegmentThreshold, kbest, log_partition, marginals
from structperc.chain.confidence import confidence_within
from structperc.chain.marginals import step_log_probabilities
from structperc.chain.minimum_risk import ProbableSegments, probable_segments, scale
from structperc.criteria import Criterion
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.splits import Extent, widest
from structperc.datamodules.encoded import split_batch
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics.counts import sentence_boundaries
from structperc.models.base import LabelSequence, Model
from structperc.models.biases import Biases, check_decoder, describe_biases, restore_biases
from structperc.models.model_format import required_entries
from structperc.models.predictor_entry import predictor_entry
from structperc.nn.candidate_scorer import CandidateScorer, best_first, check_criterion, default_search
from structperc.nonlocal_features import NonlocalFeature
from structperc.predictor.base import Sentence, missing_probabilities
from structperc.progress import bar
from structperc.ragged import Ragged
from structperc.scorers.base import LocalWeights
from structperc.structures import Batch, Candidates, Lattice


class ChainModel(Model):
    """A model of label sequences: what a `Tagger` trains, saves, and needs to label text.

    Sizes come from the training data or a saved model.

    Args:
        features: Templates and resources; the feature index is built from the training data. None if the scorer reads
            words only through an encoder.
        scorer: Maps a batch to a Lattice.
        criterion: Its training loss, which determines what scores mean, such as log-probabilities.
        search: Search for training candidates; by default for as many as the criterion requires, or 20 if it learns
            from lists or with non-local features.
        nonlocal_features: Features of whole label sequences; their scores are added to those of the lattice.
        decoder: Search for evaluation and prediction. KBest(n) returns the candidate with the best total score. By
            default only the best label sequence; with non-local features set n to 100 or more. Without them it may
            be `MinimumTokenRisk` or `MinimumSegmentRisk`, for a criterion that trains probabilities.

    Attributes:
        biases: Decoders that prefer recall or precision, by name; they are saved with the model.
        temperature: Number by which scores are divided to be log-probabilities, or None; see `fit_temperature`. It is
            saved with the model, and changes no label.

    Raises:
        InputError: The criterion needs more candidates than the search returns, or does not support non-local features
            or a decoder with them.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> SequenceTagger(max_iterations=5).fit(X, y).tagger_.save("model")
        >>> ChainModel.load("model").kbest([["Anna", "left"]], 2)[0][0].labels
        ['B-PER', 'O']
    """

    reranks = False  # True if it chooses among the candidates of a first model
    saved_parts: ClassVar[tuple[str, ...]] = ("scorer", "criterion", "search", "decoder", "nonlocal_features")
    scorer: Any  # a Scorer; in re-rankers a LocalScore

    def __init__(
        self,
        features: FeatureExtractor | None,
        scorer: LocalWeights,
        criterion: Criterion,
        search: KBest | None = None,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        decoder: Decoder | None = None,
    ) -> None:
        super().__init__(features)
        search = search or default_search(criterion, len(nonlocal_features) > 0)
        check_criterion(criterion, search, len(nonlocal_features) > 0, "model.")
        self.scorer, self.criterion, self.search = scorer, criterion, search
        self.nonlocal_features: Any = nn.ModuleList(nonlocal_features)
        self.decoder = decoder or KBest(1)
        check_decoder(self.decoder, self.nonlocal_features, "model.decoder")
        self.biases = Biases(self.nonlocal_features)
        self.temperature: float | None = None
        self.constraints = Constraints()

    def allocate(self, labels: LabelSet) -> None:
        """Create weights and constraint masks for these labels and the (fitted) features."""
        self.labels, self.fitted = labels, True
        self.scorer.bind_labels(labels)
        self.scorer.allocate(self.features.n_node_features, self.features.n_edge_features, len(labels))
        self.criterion.allocate(labels)
        for feature in self.nonlocal_features:
            feature.allocate(labels)
        self.constraints.allocate(labels)
        self.decoder.allocate(labels)
        self.biases.allocate(labels)
        self.bind_parts()

    def bind_parts(self) -> None:
        """Connect the current parts, after one of them was replaced."""
        self.candidate_scorer = CandidateScorer(
            self.constraints, self.criterion, self.search, list(self.nonlocal_features), self.labels
        )

    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch in which candidates are searched.

        Raises:
            InputError: the batch has forbidden spans, which are not part of the scores of labels.
        """
        restriction = batch.restriction or Restriction()
        if restriction.numbers is not None:
            raise InputError("forbidden spans are supported by tag and entities only; leave them out")
        return restriction(self.scores(batch))

    def scores(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch without its restrictions, but with those of the tag scheme."""
        return self.candidate_scorer.lattice(self.scorer(batch), batch)

    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates, in their order, with the local scores of this model; -inf where not valid."""
        return candidates

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""
        more = self.candidate_scorer.nonlocal_scores(batch, candidates.labels, candidates.valid)
        return self.local_candidates(batch, candidates).scores + more

    def rescore(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates with their total scores, best first; equal totals keep the order they had."""
        return best_first(candidates, self.total_scores(batch, candidates)) if self.nonlocal_features else candidates

    @property
    def probabilistic(self) -> bool:
        """True if exp(score - log Z) is a probability: local features, trained by likelihood or with a temperature."""
        return (self.criterion.probabilistic or self.temperature is not None) and not self.nonlocal_features

    def scaled(self, lattice: Lattice) -> Lattice:
        """Return a lattice with scores divided by the temperature if there is one, as log-probabilities."""
        return lattice if self.temperature is None else scale(lattice, self.temperature)

    @property
    def additive(self) -> bool:
        """True if the total score is a sum of weights, one for each feature of the label sequence."""
        return True

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the scorer's inputs for a corpus besides feature ids, such as characters of words."""
        return self.scorer.encode_inputs(self.features.with_documents(corpus, self.scorer.columns))

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token; None if the scorer does not split tokens."""
        return self.scorer.piece_counts(inputs)

    @property
    def columns(self) -> list[str]:
        """Roles of the columns that new text must have, the word first."""
        return self.features.columns_with(self.scorer.columns)

    @property
    def extent(self) -> Extent:
        """Extent of the text that determines the scores of the labels of a token."""
        return widest([self.features.extent, self.scorer.extent])

    @torch.no_grad()
    def decode(self, batch: Batch) -> Tensor:
        """Return the labels (B, T) int64 of the decoder's candidate with the highest total score, for each sequence.

        Without non-local features these are the best labels by local score.
        """
        decoder = self.biases.current(self.decoder)
        if not self.nonlocal_features:
            return self.best_labels(batch, self.scores(batch), decoder)
        T = batch.sentences.shape[1]
        parts = (self.best_labels(part, self.scores(part), decoder) for part in split_batch(batch, decoder.k))
        return torch.cat([pad(labels, (0, T - labels.shape[1])) for labels in parts])

    @torch.no_grad()
    def best_labels(self, batch: Batch, lattice: Lattice, decoder: Decoder) -> Tensor:
        """Return the possible labels (B, T) int64 of a decoder's candidate with the highest total score.

        Args:
            batch: A batch.
            lattice: Its scores, as `scores` or the model returns them.
            decoder: Any decoder; with non-local features one that returns candidates, such as `KBest`.

        Raises:
            InputError: The decoder does not support the restriction of the batch.
        """
        restriction = batch.restriction or Restriction()
        search, lattice = restriction.search(decoder, lattice)
        if not self.nonlocal_features:
            return restriction.labels(search.best(lattice))
        candidates = search(lattice)
        candidates = candidates._replace(labels=restriction.labels(candidates.labels))
        total = self.total_scores(batch, candidates)
        return candidates.labels[torch.arange(len(total), device=total.device), total.argmax(1)]

    @torch.no_grad()
    def kbest(self, sentences: Iterable[Sentence] | Corpus, k: int) -> list[list[LabelSequence]]:
        """Return up to k best label sequences of each sentence, best first.

        There are fewer than k if fewer are possible. With non-local features these are the best by total score among
        the decoder's candidates, or among the k best by local score if that is more. Log-probabilities are exact, not a
        softmax over the k candidates; they are None unless the model was trained by likelihood.

        Args:
            sentences: Lists of words, or dicts of columns, as in `tag`; or a corpus, for each of its sequences.
            k: Number of label sequences of each sentence.

        Raises:
            InputError: `k` is below 1, or the lists do not fit into memory.
        """
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        corpus = self.read(sentences)
        empty = LabelSequence([], 0.0, 0.0 if self.probabilistic else None)
        sequences = [[empty] for _ in range(len(corpus))]
        n = max(k, self.decoder.k) if self.nonlocal_features else k

        def possible(batch: Batch) -> int:
            return min(n, len(self.labels) ** batch.sentences.shape[1])

        with bar(None, "searching label sequences", len(corpus)) as shown:
            for batch in (part for whole in self.batches(corpus) for part in split_batch(whole, possible(whole))):
                for row, best in zip(batch.rows.tolist(), _kbest(self, batch, possible(batch), k), strict=True):
                    sequences[row] = best
                shown.update(len(batch.rows))
        return sequences

    @torch.no_grad()
    def marginals(self, sentences: Iterable[Sentence] | Corpus) -> list[Tensor]:
        """Return the exact probability of each label at each token.

        Returns:
            (T, L) for each sentence, with columns as in `labels.names`.

        Raises:
            InputError: The model was not trained by likelihood, so that its scores are not log-probabilities.
        """
        self.check_probabilistic()
        corpus = self.read(sentences)
        tables = [torch.zeros(0, len(self.labels)) for _ in range(len(corpus))]
        for batch in self.batches(corpus):
            for row, length, table in zip(batch.rows, batch.lengths, marginals(self.scaled(self(batch))), strict=True):
                tables[int(row)] = table[:length]
        return tables

    def probable_segments(self, batch: Batch, min_probability: float | None) -> ProbableSegments | None:
        """Return all segments with a probability above a number, or those of the decoder `SegmentThreshold`.

        Raises:
            InputError: A minimum is given, but the scores of the model are not log-probabilities.
        """
        if min_probability is not None:
            self.check_probabilistic()
            restriction = batch.restriction or Restriction()
            lattice, labels = restriction(self.scaled(self.scores(batch))), restriction.label_set(self.labels)
            return probable_segments(lattice, labels, min_probability, batch.first)
        decoder = self.biases.current(self.decoder)
        return decoder.segments(self(batch)) if isinstance(decoder, SegmentThreshold) else None

    def confidences(self, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the probabilities of labels, of the segments that contain the tokens, and of the label sequences.

        Args:
            batch: A batch.
            labels: (B, T) int64.

        Returns:
            Probabilities of the labels (B, T), and of the segments (B, T), NaN outside of segments (see
            `chain.confidence`), and the log-probability of each label given the labels before it (B, T).

        Raises:
            InputError: The model was not trained by likelihood.
        """
        self.check_probabilistic()
        restriction = batch.restriction or Restriction()
        lattice = restriction(self.scaled(self.scores(batch)))
        states = restriction.states(lattice, labels)
        boundaries = sentence_boundaries(batch.lengths, labels.shape[1], batch.sentences)
        within = confidence_within(lattice, states, boundaries, restriction.label_set(self.labels))
        return restriction.probabilities(lattice, labels), within, step_log_probabilities(lattice, states)

    def check_probabilistic(self) -> None:
        """Raise InputError unless the scores of the model are log-probabilities."""
        if not self.probabilistic:
            form = self.criterion.compiled()
            name = type(self.criterion).__name__ if form is None else form.name
            raise missing_probabilities(
                "with non-local features" if self.criterion.probabilistic else f"trained with {name}"
            )

    def description(self) -> dict[str, Any]:
        """Return class and options of every part but the features, as plain JSON types."""
        parts = {part: describe_value(getattr(self, part)) for part in self.saved_parts}
        return {**parts, **describe_biases(self)}

    def compiled(self) -> dict[str, Any] | None:
        """Return the compiled forms of the parts; None if one of them has none, or for a user's class of models."""
        return predictor_entry(self) if self.saved_class() is ChainModel else None

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> Self:
        """Return the model, without weights, of a `description`."""
        model = cls(features=features, **build.options(cls, required_entries(description, cls.saved_parts), "model"))
        restore_biases(model, description, build)
        return model


def _kbest(model: ChainModel, batch: Batch, n: int, k: int) -> list[list[LabelSequence]]:
    """Return the k best of each sequence by total score, among the n best by local score."""
    lattice = model(batch)
    best = model.rescore(batch, kbest(lattice, n))
    log_z = log_partition(model.scaled(lattice)) if model.probabilistic else None
    sequences = []
    for b, length in enumerate(batch.lengths.tolist()):
        labels, scores = best.labels[b, best.valid[b], :length][:k].cpu(), best.scores[b, best.valid[b]][:k]
        logs = [None] * len(scores) if log_z is None else (scores / (model.temperature or 1.0) - log_z[b]).tolist()
        names = [model.labels.decode(path) for path in labels]
        sequences.append([LabelSequence(*values) for values in zip(names, scores.tolist(), logs, strict=True)])
    return sequences
