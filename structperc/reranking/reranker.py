"""The re-ranker: a first model lists candidates, a second model with non-local features chooses among them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch
from pytorch_lightning.utilities import move_data_to_device
from torch import Tensor
from torch.optim import Optimizer

from structperc.batching.sequence_data import SequenceData
from structperc.chain import KBest
from structperc.criteria import Criterion
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import oracle
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim import Perceptron
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.lists import CandidateLists, Listed
from structperc.reranking.local_score import LocalFeatures, LocalScore
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice, Scored
from structperc.taggers.builder import Builder, entries
from structperc.taggers.tagger import Tagger

logger = logging.getLogger("pytorch_lightning.structperc")


class Reranker(Tagger):
    """Re-ranking 1 and 2 of Kazama & Torisawa 2007, §6.3: a tagger whose candidates are those of another one.

    total score = local score (`scorer`) + non-local score, compared among the candidates of the first model alone.
    `train_first` comes before training; the first model's weights are part of the re-ranker, saved with it, and
    never move. Both models read the same features.

    Args:
        first: the first model, of local features.
        scorer: the local score: `FirstScore` (re-ranking 1) or `LocalFeatures` (re-ranking 2).
        criterion: compares gold with the candidates of a list; the paper: Margin.
        search: its k is n, the number of candidates in training.
        nonlocal_features: what is counted in whole labellings.
        optimizer: made for the parameters of the second model.
        decoder: its k is n', the number of candidates everywhere else; by default n.
        jackknife: how the first models are trained.
        correct: what rivals are compared with where gold is not in the list: "closest", the candidate of highest
            segment F1 (Collins 2002, Ranking Algorithms for Named-Entity Extraction), or "gold" all the same. As gold
            is outside of a list because the first model scores it low, "gold" teaches re-ranking 1 to distrust that
            score.

    Raises:
        InputError: parts that make no re-ranker.
    """

    trained_together = False
    scorer: LocalScore  # type: ignore[assignment]

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
        correct: Literal["closest", "gold"] = "closest",
    ) -> None:
        decoder = decoder or KBest(search.k)
        super().__init__(first.features, scorer, criterion, search, optimizer, nonlocal_features, decoder)  # type: ignore[arg-type]
        _check(first, scorer, criterion, search, nonlocal_features)
        # After all modules that learn: checkpoints number the parameters that the optimizer has from the start.
        self.first = first
        self.jackknife = jackknife or JackKnife()
        if correct not in ("closest", "gold"):
            raise InputError(f"model.correct must be closest or gold, got {correct!r}")
        self.correct = correct
        self.lists: CandidateLists | None = None
        self.fingerprint: str | None = None

    # -- the first models ------------------------------------------------------------------------------------

    def train_first(self, data: SequenceData, **options: Any) -> dict[str, float]:
        """Train the first models, or take them from the cache; -> seconds of "folds" and of the "first model".

        The second model starts from zero. `options` are those of the trainers, such as accelerator and
        enable_progress_bar. InputError for data that cannot be listed, before anything is trained.
        """
        self.check_unit(data.unit)
        corpus = data.corpus("train")
        labels = LabelSet.from_corpus(corpus.columns["label"], data.scheme)
        for split in ("dev", "test"):
            if data.has(split):
                _check_labels(data, split, labels)
        for part in (self.criterion, *self.nonlocal_features):
            part.allocate(labels)  # what it objects to shows before anything is trained
        models = self.jackknife(self.first, data, self.search.k, **options)
        models.tagger.optimizer, models.tagger.prior = self.first.optimizer, self.first.prior  # which are not saved
        self.first, self.features = models.tagger, models.tagger.features
        self.lists, self.fingerprint = models.lists, models.fingerprint
        share = self.lists.contain(torch.from_numpy(labels.encode(corpus.columns["label"]))).double().mean()
        logger.info("candidate lists: gold is among the %d of %.1f%% of the sequences", self.lists.k, 100 * share)
        self.allocate(labels)
        self.unit = data.unit
        return models.seconds

    @property
    def reader(self) -> Scorer:
        """That of the first model; the second one looks at what was read for it."""
        return self.first.reader

    def allocate(self, labels: LabelSet) -> None:
        """Create weights and constraint masks of both models; those of the first are fixed."""
        super().allocate(labels)
        if not self.first.fitted:
            self.first.allocate(labels)
        self.first.requires_grad_(False)

    def setup(self, stage: str) -> None:
        """Encode what the stage reads. InputError when fit has no lists of the training data."""
        if stage == "fit":
            self._check_lists(self.trainer.datamodule)  # type: ignore[attr-defined]
        super().setup(stage)

    def _check_lists(self, data: SequenceData) -> None:
        if self.lists is None:
            raise InputError("no candidate lists to train on: run `structperc rerank`; in Python train_first(data)")
        if self.lists.lengths.tolist() != data.corpus("train").lengths.tolist():
            raise InputError("the candidate lists are those of other training data: call train_first(data) again")

    # -- the architecture ------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Lattice:
        """-> the first model's Lattice, from which candidates come."""
        return self.first(batch)

    def scored(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """What is correct and the candidates of the lists of a batch, which are always given."""
        assert self.lists is not None
        return self.score_list(batch, move_data_to_device(self.lists.cut(batch.rows.cpu()), self.device))

    def score_list(self, batch: Batch, listed: Listed) -> Scored:
        """What is correct and the candidates of a list under the second model, with gradients."""
        candidates = listed.candidates
        gold, gold_scores = self._correct(batch, listed)
        labels = torch.cat([gold[:, None], candidates.labels], 1)
        valid = torch.nn.functional.pad(candidates.valid, (1, 0), value=True)
        first = torch.cat([gold_scores[:, None], candidates.scores], 1)
        own, more = self.local_scores(batch, labels, first, valid), self.nonlocal_scores(batch, labels, valid)
        lattice = self._unknown(batch)
        return Scored(lattice, gold, candidates, own[:, 0], own[:, 1:], more[:, 0], more[:, 1:], batch.first)

    def _correct(self, batch: Batch, listed: Listed) -> tuple[Tensor, Tensor]:
        """-> labels (B, T), scores (B,) of the first model."""
        assert batch.gold is not None
        if self.correct == "gold":
            return batch.gold, listed.gold_scores
        closest = oracle(listed.candidates, batch.gold, batch.lengths, self.labels, batch.sentences)
        rows = torch.arange(len(closest), device=closest.device)
        return listed.candidates.labels[rows, closest], listed.candidates.scores[rows, closest]

    def local_scores(self, batch: Batch, labels: Tensor, first: Tensor, valid: Tensor) -> Tensor:
        """The second model's local scores: labels (B, K, T), the first model's scores and validity (B, K) -> (B, K)."""
        return self.scorer(batch, labels, first.where(valid, 0))

    def rated(self, batch: Batch, candidates: Candidates) -> Candidates:
        """The first model's candidates, in its order, with the second model's local scores."""
        local = self.local_scores(batch, candidates.labels, candidates.scores, candidates.valid)
        return candidates._replace(scores=local.where(candidates.valid, -torch.inf))

    def configure_optimizers(self) -> Optimizer:
        """The optimizer over the second model's parameters."""
        return self.optimizer([p for p in self.parameters() if p.requires_grad])

    def _unknown(self, batch: Batch) -> Lattice:
        """Zeros: of labellings outside of the list nothing is known; criteria read the lengths."""
        assert batch.gold is not None
        (B, T), L = batch.gold.shape, len(self.labels)
        zero = torch.zeros((), device=self.device)
        return Lattice(zero.expand(B, T, L), zero.expand(B, T, L, L), batch.lengths)

    # -- checkpoints and saved models ------------------------------------------------------------------------

    def vocabulary(self) -> dict[str, Any]:
        """As of taggers; where lists are known also which: a checkpoint is resumed with those it was trained on."""
        lists = {} if self.fingerprint is None else {"candidate lists": self.fingerprint}
        return {**super().vocabulary(), **lists}

    def description(self) -> dict[str, Any]:
        """That of both models."""
        return {**super().description(), "first": self.first.description()}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> "Reranker":
        """The re-ranker, without weights and lists, that `description` described."""
        first = Tagger.from_description(entries(description, ["first"])["first"], features, build)
        return cls(first, **build.options(cls, entries(description, cls.saved_parts), "model"))


def _check(
    first: Tagger, scorer: LocalScore, criterion: Criterion, search: KBest, nonlocal_features: Sequence[NonlocalFeature]
) -> None:
    """InputError for parts that make no re-ranker."""
    if search.k < 2:
        raise InputError(f"model.search.k is {search.k}: a list to choose from has at least 2 candidates")
    if not nonlocal_features:
        raise InputError("model.nonlocal_features: a re-ranker needs some; without them train a tagger with fit")
    if len(first.nonlocal_features):
        raise InputError("model.first.nonlocal_features: the first model lists by local score; remove them")
    if first.init_from is not None:
        raise InputError(
            "model.first.init_from: models of folds start anew, so that none knows what it lists; remove it"
        )
    if isinstance(scorer, LocalFeatures) and not first.features.node:
        raise InputError("model.scorer: LocalFeatures weighs features; give model.first.features, or take FirstScore")
    if criterion.of_lattice:
        name = type(criterion).__name__
        raise InputError(f"model.criterion: {name} looks at all labellings, a re-ranker knows lists; use Margin")


def _check_labels(data: SequenceData, split: str, labels: LabelSet) -> None:
    corpus = data.corpus(split)
    if "label" in corpus.columns:
        labels.encode(corpus.columns["label"], corpus.where)
