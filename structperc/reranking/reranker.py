"""Re-rankers: a first model lists candidates, a re-ranker with non-local features chooses among them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, get_args

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.builder import Builder
from structperc.chain import KBest
from structperc.criteria import CorpusCriterion, Criterion
from structperc.criteria.base import is_allowed
from structperc.data.corpus import Corpus
from structperc.data.label_sets import ALLOWED, first_label_set, is_incomplete
from structperc.data.normalise import check_known_labels
from structperc.data.possible_labels import label_masks
from structperc.data.splits import Extent
from structperc.data.weights import WEIGHT
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics.counts import oracle
from structperc.models.biases import restore_biases
from structperc.models.model_format import required_entries
from structperc.nn.candidate_scorer import best_allowed_by_total
from structperc.nonlocal_features import NonlocalFeature
from structperc.ragged import Ragged
from structperc.reranking.candidate_lists import CandidateLists, Correct, ListBatch, closest_allowed
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.local_score import LocalFeatures, LocalScore, local_scores, with_local_scores
from structperc.structures import Batch, Candidates, Lattice, Scored, to_device
from structperc.taggers.data_requirements import TaggerRequirements
from structperc.taggers.tagger import Tagger

logger = logging.getLogger("pytorch_lightning.structperc")


class Reranker(Tagger):
    """A tagger that chooses among the candidates of another tagger. Kazama & Torisawa 2007, §6.3: re-ranking 1 and 2.

    The total score is the local score (`scorer`) plus the non-local score, compared among the first model's candidates.
    Call `train_first` before training. The weights of the first model are part of the re-ranker, are saved with it and
    do not change. Both models use the same features.

    Args:
        first: The first model, without non-local features.
        scorer: The local score: `FirstScore` (re-ranking 1), `LocalFeatures` (re-ranking 2) or a `LocalSum` of both.
        criterion: Compares the correct label sequence with the candidates of a list; the paper uses `MarginLoss`.
        search: KBest(n), where n is the number of candidates in training.
        nonlocal_features: Features of whole label sequences.
        optimizer: Constructor of the optimizer of the re-ranker's parameters, without those of the first model; by
            default that of the criterion, as in `Tagger`.
        decoder: KBest(n'), where n' is the number of candidates in inference; default: n.
        jackknife: Trains the first models.
        correct: The target if the gold labels are not in the list: "closest", the candidate of highest segment F1
            (Collins 2002, Ranking Algorithms for Named-Entity Extraction), or "gold", the gold labels themselves. Gold
            labels are missing from a list if the first model gives them a low score, so that "gold" lowers the weight
            of that score in re-ranking 1. With incomplete labels the target is the allowed candidate with the highest
            total score; without one, the candidate with the fewest labels that are not allowed ("closest").
        lr_scheduler: Changes the optimizer's learning rates after steps or epochs.

    Raises:
        InputError: The combination of parts is invalid.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import MarginLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> from structperc.nonlocal_features import ConjunctionConsistency
        >>> from structperc.reranking import FirstScore
        >>> data = Synthetic(train=2, dev=0, test=0)
        >>> first = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), MarginLoss(C=1.0))
        >>> plan = JackKnife(folds=2, epochs=1, cache="lists")
        >>> features = [ConjunctionConsistency()]
        >>> model = Reranker(first, FirstScore(), MarginLoss(C=1.0), KBest(5), features, jackknife=plan)
        >>> sorted(model.train_first(data, enable_progress_bar=False))  # seconds by name  # doctest: +SKIP
        ['first model', 'folds']
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> quiet |= dict(enable_progress_bar=False, enable_model_summary=False)
        >>> pl.Trainer(max_epochs=1, **quiet).fit(model, datamodule=data)  # doctest: +SKIP
        >>> model.tag([["Shares", "fell"]])  # doctest: +SKIP
        [['O', 'O']]
    """

    supports_distributed = False
    reranks = True
    first: Tagger
    scorer: LocalScore

    def __init__(
        self,
        first: Tagger,
        scorer: LocalScore,
        criterion: Criterion,
        search: KBest,
        nonlocal_features: Sequence[NonlocalFeature],
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        decoder: KBest | None = None,
        jackknife: JackKnife | None = None,
        correct: Correct = "closest",
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
    ) -> None:
        decoder = decoder or KBest(search.k)
        super().__init__(
            first.features, scorer, criterion, search, optimizer, nonlocal_features, decoder, lr_scheduler=lr_scheduler
        )
        check_parts(first, scorer, criterion, search, nonlocal_features, correct)
        # Last, since checkpoints number the parameters of the optimizer from the start of all parameters.
        self.first = first
        self.requirements = RerankerRequirements(self)
        self.jackknife, self.correct = jackknife or JackKnife(), correct
        self.lists: CandidateLists | None = None  # lists of the training data after `train_first`
        self.fingerprint: str | None = None  # hash of the configuration and data of the lists

    # -- scores ----------------------------------------------------------------------------------------------

    def bind_parts(self) -> None:
        """Connect the current parts; freeze the weights of the first model and create them if necessary."""
        if not self.first.fitted:
            self.first.allocate(self.labels)
        self.first.requires_grad_(False)
        super().bind_parts()

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of the first model's scorer; the re-ranker uses the same."""
        return self.first.inputs(corpus)

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token; None if the first model does not split tokens."""
        return self.first.piece_counts(inputs)

    @property
    def columns(self) -> list[str]:
        """Roles of the columns that new text must have, the word first."""
        return self.first.columns

    @property
    def extent(self) -> Extent:
        """Extent of the text that determines the scores of the first model."""
        return self.first.extent

    def scores(self, batch: Batch) -> Lattice:
        """Return the Lattice of a batch under the first model, in which candidates are searched."""
        return self.first.scores(batch)

    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the first model's candidates, in its order, with the re-ranker's local scores."""
        return with_local_scores(self.scorer, batch, candidates)

    def score_batch(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return the correct label sequences and the listed candidates of a training batch, without a search."""
        listed = self.require_lists().batch(batch.rows.cpu())
        return self.score_list(batch, to_device(listed, self.device))

    def score_list(self, batch: Batch, listed: ListBatch) -> Scored:
        """Return the correct label sequences and candidates of lists under the re-ranker, with gradients."""
        candidates = listed.candidates
        gold, gold_scores = self._correct(batch, listed)
        labels = torch.cat([gold[:, None], candidates.labels], 1)
        valid = torch.nn.functional.pad(candidates.valid, (1, 0), value=True)
        first = torch.cat([gold_scores[:, None], candidates.scores], 1)
        local = local_scores(self.scorer, batch, Candidates(labels, first, valid))
        more = self.candidate_scorer.nonlocal_scores(batch, labels, valid)
        zero = torch.zeros((), device=self.device)  # criteria read only the lengths of this lattice
        (B, T), L = gold.shape, len(self.labels)
        lattice = Lattice(zero.expand(B, T, L), zero.expand(B, T, L, L), batch.lengths)
        scored = Scored(lattice, gold, candidates, local[:, 0], local[:, 1:], more[:, 0], more[:, 1:], batch.first)
        scored = scored._replace(weights=batch.weights)
        if batch.allowed is None:
            return scored
        listed_gold = is_allowed(gold[:, None], batch.allowed).all(2)  # otherwise only the closest candidate is right
        allowed = torch.where(listed_gold[:, :, None], batch.allowed, one_hot(gold, L).bool())
        return best_allowed_by_total(scored._replace(allowed=allowed))

    def _correct(self, batch: Batch, listed: ListBatch) -> tuple[Tensor, Tensor]:
        """Return the correct labels (B, T) and their scores (B,) by the first model."""
        assert batch.gold is not None
        if self.correct == "gold":
            return batch.gold, listed.gold_scores
        if batch.allowed is not None:
            closest = closest_allowed(listed.candidates, batch.allowed)
        else:
            closest = oracle(listed.candidates, batch.gold, batch.lengths, self.labels, batch.sentences)
        rows = torch.arange(len(closest), device=closest.device)
        return listed.candidates.labels[rows, closest], listed.candidates.scores[rows, closest]

    def require_lists(self) -> CandidateLists:
        """Return the lists of the training data. Raises InputError before `train_first`."""
        if self.lists is None:
            raise InputError("no candidate lists to train on: run `structperc rerank`; in Python train_first(data)")
        return self.lists

    def without_cost(self, batch: Batch, scored: Scored) -> Scored:
        """Return `scored`: candidates are listed without a cost."""
        return scored

    # -- training --------------------------------------------------------------------------------------------

    def train_first(self, data: SequenceDataModule, **options: Any) -> dict[str, float]:
        """Train the first models, or load them from the cache; the weights of the re-ranker are reset to zero.

        Args:
            data: Data module whose training split has labels.
            options: Options of the trainers, such as accelerator and enable_progress_bar.

        Returns:
            The seconds of training and listing, by "folds" and "first model".

        Raises:
            InputError: The data is unsuitable; raised before anything is trained.
        """
        self.requirements.check_unit(data.unit)
        corpus, labels, first = data.corpus("train"), data.label_set(), self.first
        if is_incomplete(corpus):
            self.requirements.check_incomplete(corpus.where(corpus.columns[ALLOWED].index(first_label_set(corpus))))
        if WEIGHT in corpus.columns:
            self.requirements.check_weights(corpus)
        if data.has("dev"):
            check_known_labels(data.corpus("dev"), labels)
        for part in (self.criterion, *self.nonlocal_features):
            part.allocate(labels)  # raises its errors before anything is trained
        models = self.jackknife(first, data, self.search.k, **options)
        models.tagger.optimizer, models.tagger.prior = first.optimizer, first.prior  # not saved in the cache
        self.first, self.features = models.tagger, models.tagger.features
        self.lists, self.fingerprint = models.lists, models.fingerprint
        gold = label_masks(corpus, labels, ALLOWED) if is_incomplete(corpus) else labels.encode(corpus.columns["label"])
        share = models.lists.contains(torch.from_numpy(gold)).double().mean()
        logger.info("candidate lists: gold is among the %d of %.1f%% of the sequences", models.lists.k, 100 * share)
        self.allocate(labels)
        self.unit, self.training_files = data.unit, data.training_files()
        return models.seconds

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over the re-ranker's parameters, without those of the first model."""
        return self.optimizer([p for p in self.parameters() if p.requires_grad])

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, and create the weights of both models."""
        train = data.corpus("train")
        self.features.fit(train)
        self.first.scorer.build_vocabulary(self.features.with_documents(train, self.first.scorer.columns))
        self.allocate(data.label_set())

    # -- checkpoints and saved models ------------------------------------------------------------------------

    def extra_vocabulary(self) -> dict[str, Any]:
        """Return the fingerprint of the lists if there are any; training resumes only with the same lists."""
        return {} if self.fingerprint is None else {"candidate lists": self.fingerprint}

    def description(self) -> dict[str, Any]:
        """Return class and options of every part of both models, as plain JSON types."""
        return {**super().description(), "first": self.first.description()}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> Self:
        """Return the re-ranker, without weights and lists, of a `description`."""
        first = Tagger.from_description(required_entries(description, ["first"])["first"], features, build)
        parts = build.options(cls, required_entries(description, cls.saved_parts), "model")
        reranker = cls(first=first, **parts)
        restore_biases(reranker, description, build)
        return reranker


class RerankerRequirements(TaggerRequirements):
    """Requirements of a re-ranker for its data."""

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError for training without candidate lists of the training data."""
        if stage != "fit":
            return
        lengths = self.tagger.require_lists().lengths
        if lengths.tolist() != data.corpus("train").lengths.tolist():
            raise InputError("the candidate lists are of other training data: call train_first(data) again")

    def check_incomplete(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the parts do not learn from incomplete labels."""
        super().check_incomplete(place)
        self.check_target(place)

    def check_target(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the target must be the gold labels."""
        if self.tagger.correct == "gold":
            raise InputError(f"{place}: incomplete labels have no gold sequence; set model.correct: closest")


def check_parts(
    first: Tagger,
    scorer: LocalScore,
    criterion: Criterion,
    search: KBest,
    nonlocal_features: Sequence[NonlocalFeature],
    correct: Correct,
) -> None:
    """Raise InputError for an invalid combination of parts."""
    if correct not in get_args(Correct):
        raise InputError(f"model.correct must be closest or gold, got {correct!r}")
    if search.k < 2:
        raise InputError(f"model.search.k is {search.k}: a re-ranker needs at least 2 candidates")
    if not nonlocal_features:
        raise InputError("model.nonlocal_features: a re-ranker needs at least one; or train a tagger with fit")
    if len(first.nonlocal_features):
        raise InputError("model.first.nonlocal_features: the first model lists candidates by local score; remove them")
    if first.init_from is not None:
        raise InputError(
            "model.first.init_from: the model of a fold must not be trained on its own lists' data; remove it"
        )
    if any(isinstance(part, LocalFeatures) for part in scorer.modules()) and not first.features.node:
        raise InputError("model.scorer: LocalFeatures needs model.first.features; or use FirstScore")
    if not criterion.min_candidates or isinstance(criterion, CorpusCriterion):
        name = type(criterion).__name__
        raise InputError(f"model.criterion: {name} needs all label sequences, a re-ranker has lists; use MarginLoss")
