"""The tagger: features, scorer, search, criterion and optimizer composed into one LightningModule."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.builder import Builder, describe_value
from structperc.chain import (
    Constraints,
    Decoder,
    ForbidSpans,
    KBest,
    MinimumSegmentRisk,
    SegmentThreshold,
    allow,
    forbid,
    kbest,
    log_partition,
    marginals,
    scale,
    step_log_probabilities,
)
from structperc.chain.confidence import confidence_within, token_confidence
from structperc.chain.forbidden import state_path
from structperc.chain.minimum_risk import ProbableSegments, check_temperature, probable_segments
from structperc.criteria import Criterion, DistillationLoss, Prior, slice_candidates
from structperc.criteria.base import InferenceCriterion
from structperc.data.corpus import Corpus
from structperc.data.forbidden_spans import RepeatedLabels
from structperc.data.json_data import check_value
from structperc.data.label_sets import is_incomplete
from structperc.data.labels import LabelSet
from structperc.data.splits import Extent, widest
from structperc.data.text_files import expand_path
from structperc.data.weights import first_change, token_weights
from structperc.datamodules.base import BatchForm, SequenceDataModule
from structperc.datamodules.distributed import process_group
from structperc.datamodules.encoded import split_batch
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics.accuracy import sentence_boundaries
from structperc.nn.candidate_scorer import (
    CandidateScorer,
    ComparedSequences,
    best_first,
    check_criterion,
    default_search,
)
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature
from structperc.online import SequenceLearner
from structperc.optim import AveragedOptimizer, ParameterGroups, TrainingProtocol, training_protocol
from structperc.predictor.base import Sentence, missing_probabilities
from structperc.progress import bar
from structperc.ragged import Ragged
from structperc.scorers import LocalWeights
from structperc.structures import Batch, Candidates, FlatBatch, Lattice, Scored
from structperc.taggers.base import BaseTagger, LabelSequence
from structperc.taggers.callbacks import check_trainer, with_scheduler
from structperc.taggers.contract_checks import check_step_size_rule
from structperc.taggers.defaults import default_optimizer, default_rates
from structperc.taggers.distillation import Teacher
from structperc.taggers.full_batch_likelihood import FullBatchLikelihood, supports_likelihood
from structperc.taggers.initialization import initialize_from
from structperc.taggers.learning import (
    FullBatchTraining,
    GradientTraining,
    SequentialTraining,
    TrainingMethod,
    clip_sparse_gradients,
)
from structperc.taggers.model_format import BIAS_ENTRIES, BIASES, DEFAULT_BIAS, TEMPERATURE, required_entries
from structperc.taggers.sequential_learning import ParameterAveragingLearner, sequence_learner, sync_count


class Tagger(BaseTagger):
    """A sequence tagger: features, scorer, search, criterion and optimizer.

    Training computes scores, searches candidates, adds non-local scores and applies the criterion. Sizes come from the
    training data or a saved model. The optimizer determines the training method, see `taggers.learning`. `Tagger.load`
    also loads re-rankers.

    Args:
        features: Templates and resources; the feature index is built from the training data. None if the scorer reads
            words only through an encoder.
        scorer: Maps a batch to a Lattice.
        criterion: Training loss of the gold labels and the candidates, and the condition for an update.
        search: Search for training candidates; by default for as many as the criterion requires, or 20 if it learns
            from lists or with non-local features.
        optimizer: Constructor of the optimizer of all parameters of the scorer and the non-local features; by default
            that of the criterion, see `taggers.defaults`.
        nonlocal_features: Features of whole label sequences; their scores are added to those of the lattice.
        decoder: Search for evaluation and prediction. KBest(n) returns the candidate with the best total score. By
            default only the best label sequence; with non-local features set n to 100 or more. Without them it may
            be `MinimumTokenRisk` or `MinimumSegmentRisk`, for a criterion that trains probabilities.
        prior: Regularisation of all weights, added to the loss of the corpus.
        init_from: Folder of a saved model with the same templates; training starts from its weights. Features
            and labels that only the training data have are added, with weights of zero.
        beta: Weight of recall in the F score by which models are selected, see `metrics.segments`.
        lr_scheduler: Learning-rate schedule of torch or of `optim`, applied after steps or epochs.
        teacher: Trained tagger from whose label sequences `DistillationLoss` learns.
        parameter_groups: Learning rates and weight decay by module and layer; by default those of the optimizer. The
            default optimizer has a smaller rate for pretrained encoders.

    Attributes:
        biases: Decoders that prefer recall or precision, by name, see `add_bias`; they are saved with the tagger.
        default_bias: Name of the one that is used, see `use_bias`; None: `decoder`.
        temperature: Number by which scores are divided to be log-probabilities, or None; see `fit_temperature`. It is
            saved with the tagger, and changes no label.

    Raises:
        InputError: The criterion needs more candidates than the search returns, or does not support non-local features
            or a decoder with them.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> tagger = Tagger(FeatureExtractor(["w[-1]", "w[0]", "w[1]"]), SparseLinear(), PerceptronLoss())
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> quiet |= dict(enable_progress_bar=False, enable_model_summary=False)
        >>> pl.Trainer(max_epochs=3, **quiet).fit(tagger, datamodule=Synthetic(train=20, dev=0, test=0))
        >>> tagger.tag([["Shares", "of", "Penus", "Corp.", "fell"]])
        [['O', 'O', 'B-ORG', 'I-ORG', 'O']]
    """

    supports_distributed = True
    uses_candidate_lists = False  # True if global features collect their strings from candidate lists
    saved_parts: ClassVar[tuple[str, ...]] = ("scorer", "criterion", "search", "decoder", "nonlocal_features")
    scorer: Any  # a Scorer; in re-rankers a LocalScore
    corpus_size: int | None = None  # number of sequences that share the prior; None: size of the batch

    def __init__(
        self,
        features: FeatureExtractor | None,
        scorer: LocalWeights,
        criterion: Criterion,
        search: KBest | None = None,
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        decoder: Decoder | None = None,
        prior: Prior | None = None,
        init_from: str | None = None,
        beta: float = 1.0,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        teacher: Teacher | None = None,
        parameter_groups: ParameterGroups | None = None,
    ) -> None:
        super().__init__(features, beta)
        search = search or default_search(criterion, len(nonlocal_features) > 0)
        check_criterion(criterion, search, len(nonlocal_features) > 0, "model.")
        self.scorer, self.criterion, self.search = scorer, criterion, search
        self.nonlocal_features = nn.ModuleList(nonlocal_features)
        self.decoder = decoder or KBest(1)
        self._check_decoder(self.decoder, "model.decoder")
        self.biases: dict[str, Decoder] = {}
        self.default_bias: str | None = None
        self.temperature: float | None = None
        self.constraints = Constraints()
        if optimizer is None:
            optimizer, parameter_groups = default_optimizer(criterion, scorer), parameter_groups or default_rates(self)
        self.optimizer, self.lr_scheduler, self.parameter_groups = optimizer, lr_scheduler, parameter_groups
        self.prior, self.init_from, self.teacher = prior, init_from, teacher
        self.training_method: TrainingMethod = GradientTraining(self)

    # -- scores ----------------------------------------------------------------------------------------------

    def allocate(self, labels: LabelSet) -> None:
        """Create weights and constraint masks for these labels and the (fitted) features."""
        self.labels, self.fitted = labels, True
        self.scorer.bind_labels(labels)
        self.scorer.allocate(self.features.n_node_features, self.features.n_edge_features, len(labels))
        self.criterion.allocate(labels)
        for feature in self._features():
            feature.allocate(labels)
        self.constraints.allocate(labels)
        for decoder in (self.decoder, *self.biases.values()):
            decoder.allocate(labels)
        self.bind_parts()

    def bind_parts(self) -> None:
        """Connect the current parts, after one of them was replaced."""
        self.candidate_scorer = CandidateScorer(
            self.constraints, self.criterion, self.search, self._features(), self.labels
        )

    def _features(self) -> list[NonlocalFeature]:
        return [cast(NonlocalFeature, feature) for feature in self.nonlocal_features]

    def forward(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch in which candidates are searched.

        Raises:
            InputError: the batch has forbidden spans, which are not part of the scores of labels.
        """
        if batch.states is not None:
            raise InputError("forbidden spans are supported by tag and entities only; leave them out")
        lattice = self.candidate_scorer.lattice(self.scorer(batch), batch)
        return lattice if batch.possible is None else allow(lattice, batch.possible)

    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the candidates, in their order, with the local scores of this tagger; -inf where not valid."""
        return candidates

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""
        more = self.nonlocal_scores(batch, candidates.labels, candidates.valid)
        return self.local_candidates(batch, candidates).scores + more

    def nonlocal_scores(self, batch: Batch, labels: Tensor, valid: Tensor) -> Tensor:
        """Return the scores (B, K) of label sequences (B, K, T), summed over all non-local features; 0 if not valid."""
        return self.candidate_scorer.nonlocal_scores(batch, labels, valid)

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

    # -- biases ----------------------------------------------------------------------------------------------

    def add_bias(self, name: str, decoder: Decoder) -> None:
        """Add a decoder that prefers recall or precision, to be chosen by its name with `use_bias`.

        Args:
            name: Letters, digits, "_" and "-"; not "none".
            decoder: With non-local features a `LabelBias`.

        Raises:
            InputError: Another name, or a decoder that does not support the labels or non-local features.
        """
        check_bias_name(name)
        self._check_decoder(decoder, f"biases.{name}")
        decoder.allocate(self.labels)
        self.biases[name] = decoder

    def use_bias(self, name: str | None) -> None:
        """Predict with the bias of this name, or with the tagger's own `decoder` (None).

        Raises:
            InputError: An unknown name.
        """
        if name is not None and name not in self.biases:
            known = f"; it has {', '.join(self.biases)}" if self.biases else ""
            raise InputError(f"the model has no bias {name!r}{known}; fit one with structperc calibrate")
        self.default_bias = name

    @property
    def current_decoder(self) -> Decoder:
        """The decoder of the current bias, or `decoder`."""
        return self.decoder if self.default_bias is None else self.biases[self.default_bias]

    def _check_decoder(self, decoder: Decoder, place: str) -> None:
        if self.nonlocal_features and not isinstance(decoder, KBest):
            name = type(decoder).__name__
            raise InputError(f"{place}: {name} does not support non-local features; use KBest or LabelBias")

    @property
    def additive(self) -> bool:
        """True if the total score is a sum of weights, one for each feature of the label sequence."""
        return True

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the scorer's inputs for a corpus besides feature ids, such as characters of words."""
        return self.scorer.encode_inputs(self.with_scorer_columns(corpus))

    def with_scorer_columns(self, corpus: Corpus) -> Corpus:
        """Return a corpus with the attributes of documents that the scorer reads as further columns."""
        return self.features.with_documents(corpus, self.scorer.columns)

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

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError in training by `DistillationLoss` without a teacher, or by another criterion with one."""
        if stage == "fit" and isinstance(self.criterion, DistillationLoss) != (self.teacher is not None):
            raise InputError("model.teacher: DistillationLoss needs a teacher, other criteria have none")

    def check_incomplete(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the parts do not learn from incomplete labels."""
        if not self.criterion.supports_incomplete:
            name = type(self.criterion).__name__
            raise InputError(f"{place}: {name} needs complete labels; use CRFLoss or a perceptron-like criterion")

    def check_weights(self, corpus: Corpus) -> None:
        """Raise InputError for weights that the criterion does not support: within sequences, or too large ones."""
        by_sentence = self.criterion.unit == "sentence" or self.criterion.independent_sentences
        starts, unit = (corpus.sentences, "sentence") if by_sentence else (corpus.starts, self.unit)
        if not self.criterion.token_weights and (token := first_change(corpus, starts)) is not None:
            name = type(self.criterion).__name__
            raise InputError(
                f"{corpus.where(token)}: weights differ within a {unit}, but {name} has no weights of tokens; give a "
                f"{unit} one weight, or use TokenCrossEntropyLoss, MEMMLoss, RiskLoss or CRFLoss(confidences=True)"
            )
        weights = token_weights(corpus)
        if weights is not None and (weights > (limit := self.criterion.max_weight)).any():
            place = corpus.where(int((weights > limit).argmax()))
            raise InputError(f"{place}: a confidence must be at most {limit:g}; correct it, or remove confidences")

    def check_unit(self, unit: str) -> None:
        """Raise InputError for non-local features that do not support sequences of this unit."""
        for feature in self.nonlocal_features:
            name = type(feature).__name__
            if feature.needs_documents and unit == "sentence":
                raise InputError(f"{name} compares the sentences of a document: set data.unit: document")
            if isinstance(feature, GlobalFeature) and not self.uses_candidate_lists:
                raise InputError(f"{name} reads candidate lists: use a GlobalReranker")

    # -- label sequences -------------------------------------------------------------------------------------

    @torch.no_grad()
    def decode(self, batch: Batch) -> Tensor:
        """Return the labels (B, T) int64 of the decoder's candidate with the highest total score, for each sequence.

        Without non-local features these are the best labels by local score.
        """
        decoder = self.current_decoder
        if batch.possible is not None and isinstance(decoder, MinimumSegmentRisk):
            name = type(decoder).__name__
            raise InputError(f"{name} does not support allowed labels; use another decoder (tag --bias none)")
        if not self.nonlocal_features:
            return self._best_labels(batch, decoder)
        T = batch.sentences.shape[1]
        parts = (self._best_labels(part, decoder) for part in split_batch(batch, decoder.k))
        return torch.cat([pad(labels, (0, T - labels.shape[1])) for labels in parts])

    def _best_labels(self, batch: Batch, decoder: Decoder) -> Tensor:
        """Return the `best_labels` without the forbidden spans of the batch."""
        if batch.states is not None:
            decoder, batch = ForbidSpans(decoder, batch.states), batch._replace(states=None)
        return self.best_labels(batch, self(batch), decoder)

    @torch.no_grad()
    def best_labels(self, batch: Batch, lattice: Lattice, decoder: Decoder) -> Tensor:
        """Return the labels (B, T) int64 of a decoder's candidate with the highest total score.

        Args:
            batch: A batch.
            lattice: Its scores, as the tagger returns them.
            decoder: Any decoder; with non-local features one that returns candidates, such as `KBest`.
        """
        if not self.nonlocal_features:
            return decoder.best(lattice)
        candidates = decoder(lattice)
        total = self.total_scores(batch, candidates)
        return candidates.labels[torch.arange(len(total), device=total.device), total.argmax(1)]

    def kbest(self, sentences: Iterable[Sentence], k: int) -> list[list[LabelSequence]]:
        """Return up to k best label sequences of each sentence, best first.

        There are fewer than k if fewer are possible. Log-probabilities are exact, not a softmax over the k candidates;
        they are None unless the tagger was trained by likelihood.

        Args:
            sentences: Lists of words, or dicts of columns, as in `tag`.
            k: Number of label sequences of each sentence.

        Raises:
            InputError: `k` is below 1.
        """
        return self.candidates(self.read(sentences), k)

    @torch.no_grad()
    def candidates(self, corpus: Corpus, k: int) -> list[list[LabelSequence]]:
        """Return up to k best label sequences of each sequence of a corpus, as `kbest` does for sentences.

        With non-local features these are the best by total score among the decoder's candidates, or among the k best by
        local score if that is more. The search is limited to the L^T possible ones.

        Raises:
            InputError: `k` is below 1, or the lists do not fit into memory.
        """
        if k < 1:
            raise InputError(f"k must be >= 1, got {k}")
        empty = LabelSequence([], 0.0, 0.0 if self.probabilistic else None)
        found = [[empty] for _ in range(len(corpus))]
        n = max(k, self.decoder.k) if self.nonlocal_features else k

        def possible(batch: Batch) -> int:
            return min(n, len(self.labels) ** batch.sentences.shape[1])

        with bar(None, "searching label sequences", len(corpus)) as shown:
            for batch in (part for whole in self.batches(corpus) for part in split_batch(whole, possible(whole))):
                for row, best in zip(batch.rows.tolist(), self._kbest(batch, possible(batch), k), strict=True):
                    found[row] = best
                shown.update(len(batch.rows))
        return found

    def _kbest(self, batch: Batch, n: int, k: int) -> list[list[LabelSequence]]:
        """Return the k best of each sequence by total score, among the n best by local score."""
        lattice = self(batch)
        best = self.rescore(batch, kbest(lattice, n))
        log_z = log_partition(self.scaled(lattice)) if self.probabilistic else None
        found = []
        for b, length in enumerate(batch.lengths.tolist()):
            labels, scores = best.labels[b, best.valid[b], :length][:k].cpu(), best.scores[b, best.valid[b]][:k]
            logs = [None] * len(scores) if log_z is None else (scores / (self.temperature or 1.0) - log_z[b]).tolist()
            names = [self.labels.decode(path) for path in labels]
            found.append([LabelSequence(*one) for one in zip(names, scores.tolist(), logs, strict=True)])
        return found

    def marginals(self, sentences: Iterable[Sentence]) -> list[Tensor]:
        """Return the exact probability of each label at each token.

        Returns:
            (T, L) for each sentence, with columns as in `labels.names`.

        Raises:
            InputError: The tagger was not trained by likelihood, so that its scores are not log-probabilities.
        """
        return self.label_probabilities(self.read(sentences))

    @torch.no_grad()
    def label_probabilities(self, corpus: Corpus) -> list[Tensor]:
        """Return the `marginals` of each sequence of a corpus."""
        self.check_probabilistic()
        found = [torch.zeros(0, len(self.labels)) for _ in range(len(corpus))]
        for batch in self.batches(corpus):
            for row, length, table in zip(batch.rows, batch.lengths, marginals(self.scaled(self(batch))), strict=True):
                found[int(row)] = table[:length]
        return found

    def probable_segments(self, batch: Batch, min_probability: float | None) -> ProbableSegments | None:
        """Return all segments with a probability above a number, or those of the decoder `SegmentThreshold`.

        Raises:
            InputError: A minimum is given, but the scores of the tagger are not log-probabilities.
        """
        if min_probability is not None:
            self.check_probabilistic()
            lattice, labels = self._conditional(batch)
            return probable_segments(lattice, labels, min_probability, batch.first)
        decoder = self.current_decoder
        return decoder.segments(self(batch)) if isinstance(decoder, SegmentThreshold) else None

    def confidences(self, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the probabilities of labels, of the segments that contain the tokens, and of the label sequences.

        Args:
            batch: A batch.
            labels: (B, T) int64.

        Returns:
            Probabilities of the labels (B, T), and of the segments (B, T), NaN outside of segments (see
            `metrics.segment_confidence`), and the log-probability of each label given the labels before it (B, T).

        Raises:
            InputError: The tagger was not trained by likelihood.
        """
        self.check_probabilistic()
        lattice, label_set = self._conditional(batch)
        states = None if lattice.segments is not None else batch.states
        path = labels if states is None else state_path(labels, batch.lengths, states)
        boundaries = sentence_boundaries(batch.lengths, labels.shape[1], batch.sentences)
        within = confidence_within(lattice, path, boundaries, label_set)
        steps = step_log_probabilities(lattice, path)
        if states is None:
            return token_confidence(lattice, labels), within, steps
        same = labels.unsqueeze(2) == states.labels
        return (marginals(lattice) * same).sum(2), within, steps

    def _conditional(self, batch: Batch) -> tuple[Lattice, LabelSet]:
        """Return log-probabilities up to a constant, and their labels; those of states if there are forbidden spans."""
        if batch.states is None:
            return self.scaled(self(batch)), self.labels
        lattice = forbid(self.scaled(self(batch._replace(states=None))), batch.states)
        names = tuple(self.labels.names[number] for number in batch.states.labels.tolist())
        return lattice, RepeatedLabels(names, self.labels.scheme)

    def check_probabilistic(self) -> None:
        """Raise InputError unless the scores of the tagger are log-probabilities."""
        if not self.probabilistic:
            used = self.criterion
            name = used.path.rpartition(".")[2] if isinstance(used, InferenceCriterion) else type(used).__name__
            raise missing_probabilities(
                "with non-local features" if self.criterion.probabilistic else f"trained with {name}"
            )

    # -- gold labels and candidates --------------------------------------------------------------------------

    def score_batch(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return the gold labels and the candidates for the criterion, with gradients.

        By default candidates are searched, or are those of the teacher. If the criterion compares sentences, each of
        them is a row.
        """
        compared = self.candidate_scorer.compared_sequences(self(batch), batch)
        if candidates is None and self.teacher is not None:
            candidates = self.teacher.candidates(batch)
        elif candidates is None:
            candidates = self.candidate_scorer.training_candidates(compared)
        return self.candidate_scorer.score(batch, compared, candidates)

    @torch.no_grad()
    def without_cost(self, batch: Batch, scored: Scored) -> Scored:
        """Return the gold labels and the best candidates by score, without the criterion's cost."""
        lattice, gold = scored.lattice, scored.gold
        if self.criterion.augment(lattice, gold) is lattice:
            return scored
        compared = ComparedSequences(lattice, gold, None, scored.allowed)
        return self.candidate_scorer.score(batch, compared, self.candidate_scorer.candidates(lattice))

    def score(self, batch: Batch, lattice: Lattice, candidates: Candidates) -> Scored:
        """Return the gold labels and the candidates of a batch under the current weights, with gradients."""
        assert batch.gold is not None
        return self.candidate_scorer.score(batch, ComparedSequences(lattice, batch.gold, None), candidates)

    def _compare(self, batch: Batch) -> tuple[Scored, Scored]:
        """Return the results of the searches with and without the cost, with gradients of non-local weights.

        Both lists are scored together: label sequences share most of that work.
        """
        assert batch.gold is not None
        with torch.no_grad():
            lattice = self(batch)
            searched = self.criterion.augment(lattice, batch.gold)
            candidates = self.candidate_scorer.candidates(searched)
            free = candidates if searched is lattice else self.candidate_scorer.candidates(lattice)
        if free is candidates:
            scored = self.score(batch, lattice, candidates)
            return scored, scored
        both = Candidates(*(torch.cat(pair, 1) for pair in zip(candidates, free, strict=True)))
        scored, k = self.score(batch, lattice, both), candidates.valid.shape[1]
        return slice_candidates(scored, slice(0, k)), slice_candidates(scored, slice(k, None))

    # -- learning --------------------------------------------------------------------------------------------

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over all parameters."""
        groups = self.parameter_groups
        return self.optimizer(self.parameters()) if groups is None else groups.optimizer(self.optimizer, self)

    def configure_optimizers(self) -> Optimizer | dict[str, Any]:  # type: ignore[override]  # a narrower type
        """Return the optimizer, for a trainer with the schedule of its learning rates if there is one."""
        optimizer = self.new_optimizer()
        if self.attached_trainer is None:
            return optimizer
        self.bind_optimizer(optimizer)
        return optimizer if self.lr_scheduler is None else with_scheduler(self.lr_scheduler, optimizer, self.trainer)

    @property
    def incomplete(self) -> bool:
        """True if the labels of the trainer's training data are incomplete."""
        return self.attached_trainer is not None and is_incomplete(self._data.corpus("train"))

    def bind_optimizer(self, optimizer: Optimizer) -> None:
        """Choose the training method: one sequence at a time if the parts support it, else by gradients.

        Several processes that learn one sequence at a time average their weights. Incomplete labels are learned by
        gradients.
        """
        check_step_size_rule(optimizer)
        trainer = self.attached_trainer
        if trainer is not None:
            check_trainer(optimizer, trainer)
        batch_options = trainer is not None and (trainer.gradient_clip_val or trainer.accumulate_grad_batches > 1)
        batch_options = batch_options or self.incomplete
        found = None if batch_options or self.prior is not None else self.sequence_learner(optimizer)
        if found is not None and process_group().size > 1:
            found = ParameterAveragingLearner(
                found, cast(AveragedOptimizer, optimizer), partial(sync_count, self.trainer)
            )
        self.training_method = GradientTraining(self) if found is None else SequentialTraining(self, found)

    def sequence_learner(self, optimizer: Optimizer) -> SequenceLearner | None:
        """Return the learner of one sequence at a time for an optimizer of the parameters; None if unsupported."""
        nonlocal_weights = list(self.nonlocal_features.parameters())
        return sequence_learner(
            self.scorer, self.constraints, self.criterion, optimizer, nonlocal_weights, self._compare
        )

    def training_protocol(self) -> TrainingProtocol:
        """Return the optimizer's side of the training protocol; its defaults outside of a trainer."""
        made = [] if self.attached_trainer is None else self.trainer.optimizers
        return training_protocol(made[0]) if made else TrainingProtocol()

    @property
    def full_batch(self) -> bool:
        """True if the optimizer makes one step in this epoch."""
        return self.training_method.full_batch

    @property
    def batch_form(self) -> BatchForm:
        """The form of the mini-batches that the tagger learns from."""
        return self.training_method.batch_form

    def on_fit_start(self) -> None:
        """Count the training sequences, each of which has an equal share of the prior; list those of the teacher."""
        super().on_fit_start()
        corpus = self._data.corpus("train")
        self.corpus_size = len(corpus)
        if self.teacher is not None:
            self.teacher.read(Tagger.load(expand_path(self.teacher.model), str(self.device)), corpus, self.labels)

    def on_train_epoch_start(self) -> None:
        """Begin an epoch with the training method of its optimizer, which `SequentialOptimizers` may change."""
        optimizer = self.training_protocol()
        optimizer.begin_epoch(self.current_epoch)
        if optimizer.full_batch != self.full_batch:
            whole = FullBatchLikelihood if supports_likelihood(self) else FullBatchTraining
            self.training_method = (whole if optimizer.full_batch else GradientTraining)(self)
        self.training_method.begin_epoch()

    def training_step(self, batch: Batch | FlatBatch, batch_idx: int = 0) -> Tensor | None:
        """Learn from a batch as the training method does; return the summed loss, a scalar, if there is one."""
        return self.training_method.step(batch, batch_idx)

    def backward(self, loss: Tensor, *args: Any, **options: Any) -> None:
        """Compute gradients by the training method."""
        self.training_method.backward(loss, *args, **options)

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Optimizer) -> None:
        """Clear the gradients before a step."""
        self.training_method.zero_grad(batch_idx)

    def on_validation_model_zero_grad(self) -> None:
        """Keep the gradients within an epoch: a step may sum those of mini-batches before and after a validation."""

    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        """Make a step by the training method."""
        self.training_method.optimizer_step(batch_idx, optimizer, optimizer_closure)

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradients as the trainer does, and also sparse ones, which it does not support."""
        trained = [p for p in self.parameters() if p.grad is not None]
        if gradient_clip_val and any(cast(Tensor, p.grad).is_sparse for p in trained):
            clip_sparse_gradients(trained, gradient_clip_val, by_value=gradient_clip_algorithm == "value")
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def on_train_batch_end(self, *args: Any) -> None:
        """Sum the counts of all processes at the end of an epoch, and stop its clock."""
        self.training_method.end_batch(self.trainer.is_last_batch)

    def objective(self) -> float:
        """Return the objective of the epoch: exact in full-batch training, else the sum of the losses of its steps."""
        return self.training_method.objective()

    def training_error(self) -> float:
        """Return the share of training tokens with a wrong label in this epoch; NaN without tokens.

        The labels are those of the best candidate by score without cost: a cost favours wrong label sequences.
        """
        return self.training_method.sums.error

    def on_train_epoch_end(self) -> None:
        """Log objective, training error and updates; stop if the optimizer has finished."""
        self.training_method.end_epoch()

    # -- vocabulary and saved models -------------------------------------------------------------------------

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, or from the model with which training starts."""
        if self.init_from is not None:
            initialize_from(self, self.init_from, data)
            return
        train = data.corpus("train")
        self.scorer.check_data(train)
        self.features = data.fit_features(self.features)
        self.scorer.build_vocabulary(self.with_scorer_columns(train))
        self.allocate(data.label_set())

    def description(self) -> dict[str, Any]:
        """Return class and options of every part but the features, as plain JSON types."""
        parts = {part: describe_value(getattr(self, part)) for part in self.saved_parts}
        return {**parts, **describe_biases(self)}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> Self:
        """Return the tagger, without weights, of a `description`."""
        tagger = cls(features=features, **build.options(cls, required_entries(description, cls.saved_parts), "model"))
        return tagger.restore_biases(description, build)

    def restore_biases(self, description: dict[str, Any], build: Builder) -> Self:
        """Add the biases, the default bias and the temperature of a `description`, if it has any; return the tagger.

        Raises:
            InputError: An invalid entry.
        """
        entries = {name: description[name] for name in BIAS_ENTRIES if name in description}
        for name, value in entries.items():
            check_value(value, BIAS_ENTRIES[name], name)
        for name, decoder in entries.get(BIASES, {}).items():
            check_bias_name(name)
            self.biases[name] = build.part(decoder, Decoder, f"{BIASES}.{name}")
            self._check_decoder(self.biases[name], f"{BIASES}.{name}")
        self.use_bias(entries.get(DEFAULT_BIAS))
        self.temperature = entries.get(TEMPERATURE)
        if self.temperature is not None:
            check_temperature(self.temperature)
        return self


def check_bias_name(name: str) -> None:
    """Raise InputError for the name of a bias that has other characters than letters, digits, "_" and "-"."""
    if not re.fullmatch(r"[\w-]+", name) or name == "none":
        raise InputError(f"invalid name of a bias: {name!r}; use letters, digits, _ and -, and not 'none'")


def describe_biases(tagger: Tagger) -> dict[str, Any]:
    """Return the biases, the default bias and the temperature of a tagger as plain JSON types, without missing ones."""
    biases = {name: describe_value(decoder) for name, decoder in tagger.biases.items()}
    entries = {BIASES: biases or None, DEFAULT_BIAS: tagger.default_bias, TEMPERATURE: tagger.temperature}
    return {name: value for name, value in entries.items() if value is not None}
