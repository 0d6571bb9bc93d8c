"""Re-rankers: a first model lists candidates, a second model with non-local features chooses among them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import torch
from pytorch_lightning.utilities import move_data_to_device
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.builder import Builder
from structperc.chain import KBest
from structperc.criteria import Criterion
from structperc.data.corpus import Corpus
from structperc.data.normalise import check_known_labels
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import oracle
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim import Perceptron
from structperc.ragged import Ragged
from structperc.reranking.candidate_lists import CandidateLists, Correct, ListBatch
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.local_score import LocalFeatures, LocalScore, local_scores
from structperc.structures import Batch, Candidates, Lattice, Scored
from structperc.taggers.model_format import required_entries
from structperc.taggers.tagger import Tagger

logger = logging.getLogger("pytorch_lightning.structperc")


class Reranker(Tagger):
    """Re-ranking 1 and 2 of Kazama & Torisawa 2007, §6.3: a tagger whose candidates come from another tagger.

    The total score is the local score (`scorer`) plus the non-local score, compared among the first model's candidates.
    `train_first` comes before training. The first model's weights are part of the re-ranker, are saved with it and do
    not change. Both models read the same features.

    Args:
        first: the first model, of local features.
        scorer: the local score: `FirstScore` (re-ranking 1), `LocalFeatures` (re-ranking 2) or a
            `LocalSum` of both.
        criterion: compares gold with the candidates of a list; the paper: MarginLoss.
        search: its k is n, the number of candidates in training.
        nonlocal_features: features of whole label sequences.
        optimizer: made for the parameters of the second model.
        decoder: its k is n', the number of candidates in inference; by default n.
        jackknife: how the first models are trained.
        correct: the target where gold is not in the list: "closest", the candidate of highest segment F1 (Collins 2002,
            Ranking Algorithms for Named-Entity Extraction), or "gold". Gold is missing from a list because the first
            model scores it low, so that "gold" teaches re-ranking 1 to distrust that score.
        lr_scheduler: changes the optimizer's learning rates after steps or epochs.

    Raises:
        InputError: invalid combination of parts.
    """

    supports_distributed = False
    first: Tagger
    scorer: LocalScore
    lists: CandidateLists | None  # of the training data, once the first models are trained
    fingerprint: str | None  # of these lists

    def __init__(
        self,
        first: Tagger,
        scorer: LocalScore,
        criterion: Criterion,
        search: KBest,
        nonlocal_features: Sequence[NonlocalFeature],
        optimizer: Callable[[Iterable[Any]], Optimizer] = Perceptron,
        decoder: KBest | None = None,
        jackknife: JackKnife | None = None,
        correct: Correct = "closest",
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
    ) -> None:
        decoder = decoder or KBest(search.k)
        super().__init__(
            first.features, scorer, criterion, search, optimizer, nonlocal_features, decoder, lr_scheduler=lr_scheduler
        )
        check_parts(first, scorer, criterion, search, nonlocal_features)
        # After all modules that learn: checkpoints number the parameters that the optimizer has from the start.
        self.first = first
        self.jackknife = jackknife or JackKnife()
        if correct not in ("closest", "gold"):
            raise InputError(f"model.correct must be closest or gold, got {correct!r}")
        self.correct = correct
        self.lists = self.fingerprint = None

    # -- scores ----------------------------------------------------------------------------------------------

    def bind_parts(self) -> None:
        """Connect the current parts; freeze the weights of the first model and create them if necessary."""
        if not self.first.fitted:
            self.first.allocate(self.labels)
        self.first.requires_grad_(False)
        super().bind_parts()

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of the first model's scorer; the second model uses the same."""
        return self.first.inputs(corpus)

    def forward(self, batch: Batch) -> Lattice:
        """Return the first model's Lattice of a batch, in which candidates are searched."""
        return self.first(batch)

    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the first model's candidates, in its order, with the second model's local scores."""
        local = local_scores(self.scorer, batch, candidates)
        return candidates._replace(scores=local.where(candidates.valid, -torch.inf))

    # -- lists -----------------------------------------------------------------------------------------------

    def score_batch(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return the correct label sequences and the listed candidates of a training batch; no search is made."""
        assert self.lists is not None
        return self.score_list(batch, move_data_to_device(self.lists.batch(batch.rows.cpu()), self.device))

    def score_list(self, batch: Batch, listed: ListBatch) -> Scored:
        """Return the correct label sequences and candidates of lists under the second model, with gradients."""
        candidates = listed.candidates
        gold, gold_scores = self._correct(batch, listed)
        labels = torch.cat([gold[:, None], candidates.labels], 1)
        valid = torch.nn.functional.pad(candidates.valid, (1, 0), value=True)
        first = torch.cat([gold_scores[:, None], candidates.scores], 1)
        own = local_scores(self.scorer, batch, Candidates(labels, first, valid))
        more = self.nonlocal_scores(batch, labels, valid)
        zero = torch.zeros((), device=self.device)  # criteria read only the lengths of this lattice
        (B, T), L = gold.shape, len(self.labels)
        lattice = Lattice(zero.expand(B, T, L), zero.expand(B, T, L, L), batch.lengths)
        return Scored(lattice, gold, candidates, own[:, 0], own[:, 1:], more[:, 0], more[:, 1:], batch.first)

    def _correct(self, batch: Batch, listed: ListBatch) -> tuple[Tensor, Tensor]:
        """-> labels (B, T), scores (B,) of the first model."""
        assert batch.gold is not None
        if self.correct == "gold":
            return batch.gold, listed.gold_scores
        closest = oracle(listed.candidates, batch.gold, batch.lengths, self.labels, batch.sentences)
        rows = torch.arange(len(closest), device=closest.device)
        return listed.candidates.labels[rows, closest], listed.candidates.scores[rows, closest]

    def without_cost(self, batch: Batch, scored: Scored) -> Scored:
        """Return `scored`: candidates are listed without a cost."""
        return scored

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over the second model's parameters."""
        return self.optimizer([p for p in self.parameters() if p.requires_grad])

    # -- the first models ------------------------------------------------------------------------------------

    def train_first(self, data: SequenceDataModule, **options: Any) -> dict[str, float]:
        """Train the first models, or load them from the cache; return seconds by name ("folds", "first model", ...).

        The second model starts from zero. `options` are those of the trainers, such as accelerator and
        enable_progress_bar. Raises InputError for unsuitable data before anything is trained.
        """
        self.fit_text(data)
        self.check_unit(data.unit)
        corpus = data.corpus("train")
        labels = data.label_set()
        if data.has("dev"):
            check_known_labels(data.corpus("dev"), labels)
        for part in (self.criterion, *self.nonlocal_features):
            part.allocate(labels)  # raises its errors before anything is trained
        models = self.jackknife(self.first, data, self.search.k, **options)
        models.tagger.optimizer, models.tagger.prior = self.first.optimizer, self.first.prior  # not saved in the cache
        self.first, self.features = models.tagger, models.tagger.features
        self.lists, self.fingerprint = models.lists, models.fingerprint
        share = self.lists.contains(torch.from_numpy(labels.encode(corpus.columns["label"]))).double().mean()
        logger.info("candidate lists: gold is among the %d of %.1f%% of the sequences", self.lists.k, 100 * share)
        self.allocate(labels)
        self.unit, self.training_files = data.unit, data.training_files()
        progress = options.get("enable_progress_bar") is not False  # None, as in a trainer's options, is true
        return {**models.seconds, **self.fit_lists(data, progress)}

    def fit_text(self, data: SequenceDataModule) -> None:
        """Learn from the words of the training data; a hook of subclasses, called before any training."""

    def fit_lists(self, data: SequenceDataModule, progress: bool) -> dict[str, float]:
        """Learn from the candidate lists of the training data; return seconds by name. A hook of subclasses."""
        return {}

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, and create the weights."""
        train = data.corpus("train")
        self.first.scorer.learn(train)
        self.features.fit(train)
        self.allocate(data.label_set())

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError if training is to begin without lists of the training data."""
        if stage != "fit":
            return
        if self.lists is None:
            raise InputError("no candidate lists to train on: run `structperc rerank`; in Python train_first(data)")
        if self.lists.lengths.tolist() != data.corpus("train").lengths.tolist():
            raise InputError("the candidate lists are of other training data: call train_first(data) again")

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
        return cls(first, **build.options(cls, required_entries(description, cls.saved_parts), "model"))


def check_parts(
    first: Tagger, scorer: LocalScore, criterion: Criterion, search: KBest, nonlocal_features: Sequence[NonlocalFeature]
) -> None:
    """Raise InputError for an invalid combination of parts."""
    if search.k < 2:
        raise InputError(f"model.search.k is {search.k}: a re-ranker needs at least 2 candidates")
    if not nonlocal_features:
        raise InputError("model.nonlocal_features: a re-ranker needs at least one; or train a tagger with fit")
    if len(first.nonlocal_features):
        raise InputError("model.first.nonlocal_features: the first model lists by local score; remove them")
    if first.init_from is not None:
        raise InputError("model.first.init_from: the model of a fold must not know the data that it lists; remove it")
    if any(isinstance(part, LocalFeatures) for part in scorer.modules()) and not first.features.node:
        raise InputError("model.scorer: LocalFeatures needs model.first.features; or use FirstScore")
    if criterion.needs_lattice:
        name = type(criterion).__name__
        raise InputError(f"model.criterion: {name} needs all label sequences, a re-ranker has lists; use MarginLoss")
