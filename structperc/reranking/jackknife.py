"""Candidate lists for re-ranking: no training sequence is listed by a first model that has seen its document."""

import copy
import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.seed import isolate_rng
from torch import Tensor

from structperc.builder import Builder
from structperc.chain import kbest, path_score
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.text_files import expand_path
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.optim import training_protocol
from structperc.progress import bar
from structperc.reports.training_progress import progress_options
from structperc.reranking.bayes_point import seed_all
from structperc.reranking.list_cache import ListCache, fingerprint, unlearned_description
from structperc.reranking.lists import CandidateLists, Listed
from structperc.spelling import counted
from structperc.taggers.tagger import Tagger

BATCH = 16  # sequences listed at a time

logger = logging.getLogger("pytorch_lightning.structperc")


class FirstModels(NamedTuple):
    """What a second model needs for training: the final first model, and the candidate lists of the training data."""

    tagger: Tagger  # trained on all training data; it lists the candidates of all other text
    lists: CandidateLists  # of the training sequences, by first models that have not seen their documents
    fingerprint: str  # stands for what the lists were made from
    seconds: dict[str, float]  # what training and listing took, whenever it was done: "folds", "first model"


class JackKnife:
    """Trains the first models; Kazama & Torisawa 2007, §6.3, after Collins 2002.

    "We split the training data into 5 sets. We then trained five first models using 4/5 of the data, each of which
    was used to generate n-best candidates for the remaining 1/5 of the data." Taggers have nearly no error on the
    data they were trained on, so that lists of their own training data would teach the second model nothing.

    The split is by documents, drawn from the seed. All first models, that of all training data too, are trained for
    the same number of epochs, in the order of the data's own seed, and used with their averaged weights where their
    optimizer keeps averages; no epoch is chosen on development data.

    Lists and the final first model are kept in a folder, cache/FINGERPRINT, whose name stands for the configuration
    of the first model, the training data and n. They are taken from there when they are needed again; what is
    missing (of an interrupted run) or damaged is made anew.

    Args:
        folds: number of parts, each listed by a model of all others.
        epochs: of each first model; callbacks may stop it before.
        seed: of the split, and of whatever is random in a training.
        callbacks: of each training, such as StopWhenConverged or BayesPoint; each gets copies of its own.
        cache: folder of the lists of all configurations.
        gradient_clip_val: norm to which longer gradients are shortened, as by the trainer's option of this name, which
            is about the second model; neural first models want one.

    Raises:
        InputError: folds below 2, epochs below 1, a negative seed, a norm that is not positive.
    """

    def __init__(
        self,
        folds: int = 5,
        epochs: int = 20,
        seed: int = 1,
        callbacks: list[pl.Callback] | None = None,
        cache: str = "runs/candidates",
        gradient_clip_val: float | None = None,
    ) -> None:
        if folds < 2:
            raise InputError(f"jackknife.folds must be >= 2, got {folds}: each part is listed by a model of the others")
        if epochs < 1:
            raise InputError(f"jackknife.epochs must be >= 1, got {epochs}")
        if seed < 0:
            raise InputError(f"jackknife.seed must be >= 0, got {seed}")
        if gradient_clip_val is not None and not gradient_clip_val > 0:
            raise InputError(f"jackknife.gradient_clip_val must be > 0, got {gradient_clip_val}; or leave it out")
        self.folds, self.epochs, self.seed, self.cache = folds, epochs, seed, cache
        self.callbacks, self.gradient_clip_val = list(callbacks or []), gradient_clip_val

    def __call__(self, first: Tagger, data: SequenceDataModule, n: int, **options: Any) -> FirstModels:
        """The final first model and the lists of n candidates, trained or from the cache.

        Args:
            first: says what is trained; it is left as it is.
            data: with labels in its train split.
            n: candidates per sequence.
            options: of the trainers, such as accelerator and enable_progress_bar.

        Raises:
            InputError: fewer documents than folds.
        """
        corpus = data.corpus("train")
        fold_of = fold_numbers(corpus.documents, self.folds, self.seed)
        name = self.fingerprint(first, data, n)
        own = Builder.like(first, *first.features.user_objects)
        cache = ListCache(expand_path(self.cache) / name, own.trusted)
        training = _Training(self, first, data, options)
        # include_cuda only where CUDA runs already: starting it would forbid forks
        with isolate_rng(include_cuda=torch.cuda.is_initialized()), quiet_trainers():
            lists, seconds = training.lists(cache, corpus, fold_of, n)
            tagger, more = training.final(cache, corpus)
        return FirstModels(tagger, lists, name, {"folds": seconds, "first model": more})

    def fingerprint(self, first: Tagger, data: SequenceDataModule, n: int) -> str:
        """Return the name of this configuration's folder in the cache."""
        options: dict[str, Any] = {"folds": self.folds, "epochs": self.epochs, "seed": self.seed, "n": n}
        if self.gradient_clip_val is not None:
            options["gradient_clip_val"] = self.gradient_clip_val
        return fingerprint(first, data, self.callbacks, options)


class _Training:
    """The trainings of one configuration."""

    def __init__(self, plan: JackKnife, first: Tagger, data: SequenceDataModule, options: dict[str, Any]) -> None:
        self.plan, self.first, self.data, self.options = plan, first, data, options
        self.labels = data.label_set()

    def lists(self, cache: ListCache, corpus: Corpus, fold_of: np.ndarray, n: int) -> tuple[CandidateLists, float]:
        """Return lists of all sequences in the order of the corpus, and the seconds of all folds."""
        parts, rows, seconds = [], [], 0.0
        for fold in range(self.plan.folds):
            held = fold_of == fold
            lists, spent = self._fold(cache, corpus.subset(~held), corpus.subset(held), fold, n)
            parts.append(lists)
            rows.append(np.flatnonzero(held))
            seconds += spent
        order = torch.from_numpy(np.argsort(np.concatenate(rows)))
        return CandidateLists.concat(parts).take(order), seconds

    def _fold(self, cache: ListCache, seen: Corpus, held: Corpus, fold: int, n: int) -> tuple[CandidateLists, float]:
        name = f"candidate lists: fold {fold + 1} of {self.plan.folds}"
        kept = cache.lists(fold + 1, held.lengths, n)
        if kept is not None:
            logger.info("%s: taken from %s", name, cache.folder)
            return kept
        logger.info("%s: training on %d sequences, listing the other %d", name, len(seen), len(held))
        started = time.perf_counter()
        lists = list_candidates(self.trained(seen, fold), held, n)
        seconds = time.perf_counter() - started
        cache.keep_lists(fold + 1, lists, seconds)
        return lists, seconds

    def final(self, cache: ListCache, corpus: Corpus) -> tuple[Tagger, float]:
        """Return the first model of all training data, always as the cache gives it, and the seconds of training."""
        kept = cache.tagger()
        if kept is not None:
            logger.info("first model: taken from %s", cache.folder)
            return kept
        logger.info("first model: training on all %d sequences", len(corpus))
        started = time.perf_counter()
        tagger = self.trained(corpus, self.plan.folds)
        cache.keep_tagger(tagger, time.perf_counter() - started)
        kept = cache.tagger()
        assert kept is not None
        return kept

    def trained(self, corpus: Corpus, number: int) -> Tagger:
        """Return a new first model after its training; all that is random in it comes from the seed and the number."""
        gc.collect()  # the tagger before this one and its trainer refer to each other
        seed_all(self.plan.seed, number)
        tagger = fresh(self.first, corpus, self.labels, self.data.unit)
        what = "first model" if number == self.plan.folds else f"fold {number + 1} of {self.plan.folds}"
        shown = progress_options(self.options.get("enable_progress_bar"), copy.deepcopy(self.plan.callbacks), what)
        trainer = pl.Trainer(
            max_epochs=self.plan.epochs,
            gradient_clip_val=self.plan.gradient_clip_val,
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            log_every_n_steps=1000,
            limit_val_batches=0,
            **{**self.options, **shown},
        )
        trainer.fit(tagger, datamodule=TrainingPart.of(corpus, self.data))
        for optimizer in trainer.optimizers:
            training_protocol(optimizer).use_evaluation_weights()
        return tagger.eval()


class TrainingPart(SequenceDataModule):
    """A part of some training data as training data of their own.

    Args:
        corpus: the part, whose labels are in the scheme.
        options: those of `SequenceDataModule`.
    """

    def __init__(self, corpus: Corpus, **options: Any) -> None:
        super().__init__(**options)
        self.part = corpus

    @classmethod
    def of(cls, corpus: Corpus, data: SequenceDataModule) -> "TrainingPart":
        """Return a part of data, in mini-batches of the same kind."""
        options = {name: getattr(data, name) for name in ("unit", "scheme", "batch_size", "shuffle", "seed")}
        return cls(corpus, **options)

    def read(self, split: str) -> None:
        """Return None: the part was read before, and there is no source to read."""

    def has(self, split: str) -> bool:
        """Return whether the split is "train": there are no other data."""
        return split == "train"

    def corpus(self, split: str) -> Corpus:
        """Return the part, whose labels are already in the scheme."""
        return self.part


@contextmanager
def quiet_trainers() -> Iterator[None]:
    """Hide the notices of many trainers about devices and ends of training; their warnings are still shown."""
    notices = logging.getLogger("pytorch_lightning.utilities.rank_zero")
    level = notices.level
    notices.setLevel(logging.WARNING)
    try:
        yield
    finally:
        notices.setLevel(level)


def fold_numbers(documents: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Return the fold, 0 .. folds - 1, of each sequence: document ids (S,) -> (S,) int64.

    Sequences of one document have one fold, and folds differ in size by at most one document. Raises InputError for
    fewer documents than folds.
    """
    ids, which = np.unique(documents, return_inverse=True)
    if len(ids) < folds:
        raise InputError(
            f"jackknife.folds is {folds}, but the training data has {counted(len(ids), 'document')}: set fewer"
        )
    fold = np.empty(len(ids), np.int64)
    fold[np.random.default_rng(seed).permutation(len(ids))] = np.arange(len(ids)) % folds
    return fold[which]


def fresh(first: Tagger, corpus: Corpus, labels: LabelSet, unit: str) -> Tagger:
    """Return a new tagger like `first`, with new weights.

    Its features and words are those of this corpus alone, its labels those of all training data.
    """
    features = copy.copy(first.features)  # the templates and lists are shared, the index is replaced by `fit`
    features.fit(corpus)
    tagger = Tagger.from_description(unlearned_description(first), features, Builder.like(first))
    tagger.optimizer, tagger.lr_scheduler, tagger.prior = first.optimizer, first.lr_scheduler, first.prior
    tagger.scorer.learn(corpus)
    tagger.allocate(labels)
    tagger.unit = unit
    return tagger


@torch.no_grad()
def list_candidates(tagger: Tagger, corpus: Corpus, n: int) -> CandidateLists:
    """Return the n best labellings of each sequence by local score, and the local score of gold."""
    return CandidateLists.collect(corpus.lengths.tolist(), n, len(tagger.labels), _listed(tagger, corpus, n))


def _listed(tagger: Tagger, corpus: Corpus, n: int) -> Iterator[tuple[Tensor, Listed]]:
    total = -(-len(corpus) // BATCH)
    for batch in bar(tagger.batches(corpus, BATCH), "listing candidates", total):
        assert batch.gold is not None
        lattice = tagger(batch)
        yield batch.rows, Listed(kbest(lattice, n), path_score(lattice, batch.gold))
