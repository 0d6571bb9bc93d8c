"""What all second models do alike: a first model is trained for them, and lists what they choose among."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.chain import KBest
from structperc.criteria import Criterion
from structperc.data.corpus import Corpus
from structperc.data.normalise import check_known_labels
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.metrics import oracle
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim import Perceptron
from structperc.ragged import Ragged
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.lists import Correct
from structperc.reranking.lists import CandidateLists, Listed
from structperc.reranking.local_score import LocalFeatures, LocalScore, local_scores
from structperc.structures import Batch, Candidates, Lattice, Scored
from structperc.taggers.tagger import Tagger

logger = logging.getLogger("pytorch_lightning.structperc")


class SecondModel(Tagger):
    """Base of re-rankers: a tagger whose candidates are those of another one.

    `train_first` comes before training; the first model's weights are part of the re-ranker, saved with it, and
    never move. Both models read the same features. What is not abstract is final.

    Args:
        first: the first model, of local features.
        scorer: the local score of the second model.
        criterion: compares gold with the candidates of a list.
        search: its k is n, the number of candidates in training.
        nonlocal_features: what is counted in whole labellings.
        decoder: its k is n', the number of candidates everywhere else; by default n.
        jackknife: how the first models are trained.
        correct: what rivals are compared with where gold is not in the list.

    Raises:
        InputError: parts that make no re-ranker.
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
        decoder: KBest | None = None,
        jackknife: JackKnife | None = None,
        correct: Correct = "closest",
        optimizer: Callable[[Iterable[Any]], Optimizer] = Perceptron,
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

    def read_text(self, data: SequenceDataModule) -> None:
        """Learn from the text of the training data. Raises InputError, before any training, for what cannot be read."""

    def read_lists(self, data: SequenceDataModule, progress: bool) -> dict[str, float]:
        """Learn from the lists of the training data what there is to learn; return the seconds by name."""
        return {}

    def numbered_features(self) -> dict[str, Any]:
        """Return what weights must agree on that was read off lists, as plain JSON types by name."""
        return {}

    # -- scores ----------------------------------------------------------------------------------------------

    def bind_parts(self) -> None:
        """Connect the current parts; the weights of the first model do not learn, and are created if necessary."""
        if not self.first.fitted:
            self.first.allocate(self.labels)
        self.first.requires_grad_(False)
        super().bind_parts()

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return what the scorer of the first model reads; the second model uses the same."""
        return self.first.inputs(corpus)

    def forward(self, batch: Batch) -> Lattice:
        """Return the first model's Lattice of a batch, in which candidates are searched."""
        return self.first(batch)

    def local_candidates(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Return the first model's candidates, in its order, with the second model's local scores."""
        local = local_scores(self.scorer, batch, candidates)
        return candidates._replace(scores=local.where(candidates.valid, -torch.inf))

    # -- lists ------------------------------------------------------------------------------------------------

    def score_list(self, batch: Batch, listed: Listed) -> Scored:
        """Return the correct labellings and the candidates of lists under the second model, with gradients."""
        candidates = listed.candidates
        gold, gold_scores = self._correct(batch, listed)
        labels = torch.cat([gold[:, None], candidates.labels], 1)
        valid = torch.nn.functional.pad(candidates.valid, (1, 0), value=True)
        first = torch.cat([gold_scores[:, None], candidates.scores], 1)
        own = local_scores(self.scorer, batch, Candidates(labels, first, valid))
        more, lattice = self.nonlocal_scores(batch, labels, valid), self._unknown(batch)
        return Scored(lattice, gold, candidates, own[:, 0], own[:, 1:], more[:, 0], more[:, 1:], batch.first)

    def _correct(self, batch: Batch, listed: Listed) -> tuple[Tensor, Tensor]:
        """-> labels (B, T), scores (B,) of the first model."""
        assert batch.gold is not None
        if self.correct == "gold":
            return batch.gold, listed.gold_scores
        closest = oracle(listed.candidates, batch.gold, batch.lengths, self.labels, batch.sentences)
        rows = torch.arange(len(closest), device=closest.device)
        return listed.candidates.labels[rows, closest], listed.candidates.scores[rows, closest]

    def _unknown(self, batch: Batch) -> Lattice:
        """Zeros: of labellings outside of the list nothing is known; criteria read the lengths."""
        assert batch.gold is not None
        (B, T), L = batch.gold.shape, len(self.labels)
        zero = torch.zeros((), device=self.device)
        return Lattice(zero.expand(B, T, L), zero.expand(B, T, L, L), batch.lengths)

    # -- the first models ------------------------------------------------------------------------------------

    def train_first(self, data: SequenceDataModule, **options: Any) -> dict[str, float]:
        """Train the first models, or take them from the cache; return the seconds of "folds", "first model" and so on.

        The second model starts from zero. `options` are those of the trainers, such as accelerator and
        enable_progress_bar. Raises InputError for data that cannot be listed, before anything is trained.
        """
        self.read_text(data)
        self.check_unit(data.unit)
        corpus = data.corpus("train")
        labels = data.label_set()
        if data.has("dev"):
            check_known_labels(data.corpus("dev"), labels)
        for part in (self.criterion, *self.nonlocal_features):
            part.allocate(labels)  # what it objects to shows before anything is trained
        models = self.jackknife(self.first, data, self.search.k, **options)
        models.tagger.optimizer, models.tagger.prior = self.first.optimizer, self.first.prior  # which are not saved
        self.first, self.features = models.tagger, models.tagger.features
        self.lists, self.fingerprint = models.lists, models.fingerprint
        share = self.lists.contain(torch.from_numpy(labels.encode(corpus.columns["label"]))).double().mean()
        logger.info("candidate lists: gold is among the %d of %.1f%% of the sequences", self.lists.k, 100 * share)
        self.allocate(labels)
        self.unit, self.training_files = data.unit, data.training_files()
        progress = options.get("enable_progress_bar") is not False  # which may be None, as in a trainer's options
        return {**models.seconds, **self.read_lists(data, progress)}

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
            raise InputError("the candidate lists are those of other training data: call train_first(data) again")

    def extra_vocabulary(self) -> dict[str, Any]:
        """Return, where lists are known, which they are: a checkpoint is resumed with those it was trained on."""
        lists = {} if self.fingerprint is None else {"candidate lists": self.fingerprint}
        return {**lists, **self.numbered_features()}


def check_parts(
    first: Tagger, scorer: LocalScore, criterion: Criterion, search: KBest, nonlocal_features: Sequence[NonlocalFeature]
) -> None:
    """Raise InputError for parts that make no re-ranker."""
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
    if any(isinstance(part, LocalFeatures) for part in scorer.modules()) and not first.features.node:
        raise InputError("model.scorer: LocalFeatures weighs features; give model.first.features, or take FirstScore")
    if criterion.needs_lattice:
        name = type(criterion).__name__
        raise InputError(f"model.criterion: {name} looks at all labellings, a re-ranker knows lists; use Margin")
