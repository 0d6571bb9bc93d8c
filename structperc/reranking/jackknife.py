"""Candidate lists for re-ranking: every training sequence is listed by a first model trained without its document."""

import copy
import gc
import hashlib
import inspect
import json
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.seed import isolate_rng
from torch import Tensor

from structperc.builder import Builder, describe, describe_value, without_learned
from structperc.chain import kbest, path_score
from structperc.constructors import class_path_of
from structperc.data.corpus import Corpus
from structperc.data.label_sets import ALLOWED
from structperc.data.labels import LabelSet
from structperc.data.output import write_lines
from structperc.data.text_files import expand_path
from structperc.data.weights import WEIGHT
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.cache import file_digest
from structperc.encoders.base import TextModule
from structperc.errors import InputError
from structperc.progress import bar
from structperc.reports.training_progress import progress_options
from structperc.reranking.bayes_point import seed_all
from structperc.reranking.candidate_lists import CandidateLists, ListBatch
from structperc.spelling import counted
from structperc.taggers.hyperparameters import describe_optimizer, describe_schedule
from structperc.taggers.tagger import Tagger

BATCH = 16  # sequences listed at a time
FORMAT = 3  # version of the cache folders and their fingerprints
COUNTED = ("vocabularies", "buckets")  # entries of the state of features that come from a corpus

logger = logging.getLogger("pytorch_lightning.structperc")


class FirstModels(NamedTuple):
    """The final first model and the candidate lists of the training data of a re-ranker."""

    tagger: Tagger  # trained on all training data; lists the candidates of other text
    lists: CandidateLists  # candidates of each training sequence, from a model trained without its document
    fingerprint: str  # hash of configuration and data
    seconds: dict[str, float]  # training and listing time, also if loaded from the cache: "folds", "first model"


class JackKnife:
    """Trains the first models of a re-ranker and lists candidates; Kazama & Torisawa 2007, §6.3, after Collins 2002.

    "We split the training data into 5 sets. We then trained five first models using 4/5 of the data, each of which
    was used to generate n-best candidates for the remaining 1/5 of the data." Taggers have nearly no error on the
    data they were trained on, so that a re-ranker would learn nothing from lists of that data.

    Documents are split at random by the seed. All first models, including the one for all training data, are trained
    for the same number of epochs, in the order of the data's seed, and used with their averaged weights if their
    optimizer averages; no epoch is selected on development data.

    Lists and the final first model are cached in the folder cache/FINGERPRINT. The fingerprint covers the configuration
    of the first model, the training data and n. Missing files, as after an interrupted run, and damaged ones are
    computed again.

    Args:
        folds: Number of parts. The candidates of each part come from a model of all other parts.
        epochs: Number of epochs of each first model; callbacks may stop training earlier.
        seed: Random seed of the split and of training.
        callbacks: Trainer callbacks such as StopWhenConverged or BayesPoint; each first model gets copies.
        cache: Folder of the candidate lists of all configurations.
        gradient_clip_val: Norm to which gradients of first models are clipped; the trainer's option of this name is
            for the re-ranker.

    Raises:
        InputError: `folds` is below 2, `epochs` is below 1, `seed` is negative, or the norm is not positive.

    Example:
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> first = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), PerceptronLoss())
        >>> data = Synthetic(train=2, dev=0, test=0)
        >>> plan = JackKnife(folds=2, epochs=1, cache="lists")
        >>> models = plan(first, data, n=3, enable_progress_bar=False)  # doctest: +SKIP
        >>> len(models.lists) == len(data.corpus("train")), models.lists.k  # doctest: +SKIP
        (True, 3)
        >>> models.tagger.tag([["Shares", "fell"]])  # of all training data  # doctest: +SKIP
        [['O', 'O']]
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
        for name, value, least in (("folds", folds, 2), ("epochs", epochs, 1), ("seed", seed, 0)):
            if value < least:
                raise InputError(f"jackknife.{name} must be >= {least}, got {value}")
        if gradient_clip_val is not None and not gradient_clip_val > 0:
            raise InputError(f"jackknife.gradient_clip_val must be > 0, got {gradient_clip_val}; or remove it")
        self.folds, self.epochs, self.seed, self.cache = folds, epochs, seed, cache
        self.callbacks, self.gradient_clip_val = list(callbacks or []), gradient_clip_val

    def __call__(self, first: Tagger, data: SequenceDataModule, n: int, **options: Any) -> FirstModels:
        """Return the final first model and the lists of n candidates, trained or from the cache.

        Args:
            first: The first model before training; it is not changed.
            data: Data module whose training split has labels.
            n: Number of candidates per sequence.
            options: Options of the trainers, such as accelerator and enable_progress_bar.

        Raises:
            InputError: There are fewer documents than folds, or data that the first model does not support.
        """
        corpus = data.corpus("train")
        fold_of = fold_numbers(corpus.documents, self.folds, self.seed)
        first.scorer.check_data(corpus)
        name = self.fingerprint(first, data, n)
        builder = Builder.trusting(first, *first.features.user_objects)
        cache = ListCache(expand_path(self.cache) / name, builder.trusted)
        training = _Training(self, first, data, options)
        # include_cuda only if CUDA runs already: starting it would exclude forks
        with isolate_rng(include_cuda=torch.cuda.is_initialized()), quiet_trainers():
            lists, seconds = training.lists(cache, corpus, fold_of, n)
            tagger, more = training.final(cache, corpus)
        return FirstModels(tagger, lists, name, {"folds": seconds, "first model": more})

    def train(self, first: Tagger, data: SequenceDataModule, corpus: Corpus, fold: int, **options: Any) -> Tagger:
        """Return a first model trained on a part of the training data of `data`; nothing is cached.

        Args:
            first: The first model before training; it is not changed.
            data: Data module with the labels and the mini-batches.
            corpus: The part.
            fold: Number of the fold that is left out, from 0; random numbers depend on it and on the seed.
            options: Options of the trainer.
        """
        with isolate_rng(include_cuda=torch.cuda.is_initialized()), quiet_trainers():
            return _Training(self, first, data, options).train(corpus, fold)

    def fingerprint(self, first: Tagger, data: SequenceDataModule, n: int) -> str:
        """Return 16 hexadecimal digits for a first model's configuration, its training data and all options.

        The model's weights and vocabulary have no influence.

        Raises:
            InputError: A callback or a part has unknown options, or options that are not plain values.
        """
        features = {name: value for name, value in first.features.state_dict_json().items() if name not in COUNTED}
        features["documents"] = without_learned(features["documents"])
        corpus = data.corpus("train")
        text_modules = [module for module in first.modules() if isinstance(module, TextModule)]  # may read any column
        gold = [role for role in ("label", ALLOWED, WEIGHT) if role in corpus.columns]
        columns = corpus.columns if text_modules else [*first.columns, *gold]
        places = [expand_path(place) for module in text_modules for place in module.source_files()]
        about = {
            "format": FORMAT,
            "first": untrained_description(first),
            "optimizer": describe_optimizer(first.optimizer),
            "lr_scheduler": first.lr_scheduler and describe_schedule(first.optimizer, first.lr_scheduler),
            "parameter_groups": first.parameter_groups and vars(first.parameter_groups),
            "prior": first.prior and describe(first.prior),
            "teacher": first.teacher and describe(first.teacher),
            "features": features,
            "corpus": corpus_digest(corpus, columns, [corpus.starts, corpus.sentences, corpus.documents]),
            "data": [data.unit, data.scheme, data.batch_size, data.shuffle, data.seed],
            "callbacks": [_describe_callback(callback) for callback in self.callbacks],
            "files": [file_digest(place) for place in places if place.exists()],
            **{"folds": self.folds, "epochs": self.epochs, "seed": self.seed, "n": n},
            "gradient_clip_val": self.gradient_clip_val,
        }
        try:
            text = json.dumps(about, sort_keys=True)
        except TypeError as error:
            raise InputError(f"jackknife: options of the first model must be plain values ({error})") from None
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Training:
    """The training runs of one configuration."""

    def __init__(self, plan: JackKnife, first: Tagger, data: SequenceDataModule, options: dict[str, Any]) -> None:
        self.plan, self.first, self.data, self.options = plan, first, data, options
        self.labels = data.label_set()

    def lists(self, cache: "ListCache", corpus: Corpus, fold_of: np.ndarray, n: int) -> tuple[CandidateLists, float]:
        """Return lists of all sequences in the order of the corpus, and the seconds for all folds."""
        parts, rows, seconds = [], [], 0.0
        for fold in range(self.plan.folds):
            listed = fold_of == fold
            lists, spent = self._fold(cache, corpus.subset(~listed), corpus.subset(listed), fold, n)
            parts.append(lists)
            rows.append(np.flatnonzero(listed))
            seconds += spent
        order = torch.from_numpy(np.argsort(np.concatenate(rows)))
        return CandidateLists.concat(parts).take(order), seconds

    def _fold(
        self, cache: "ListCache", training: Corpus, listed: Corpus, fold: int, n: int
    ) -> tuple[CandidateLists, float]:
        name = f"candidate lists: fold {fold + 1} of {self.plan.folds}"
        cached = cache.load_lists(fold + 1, listed.lengths, n)
        if cached is not None:
            logger.info("%s: loaded from %s", name, cache.folder)
            return cached
        logger.info("%s: training on %d sequences, listing the other %d", name, len(training), len(listed))
        started = time.perf_counter()
        lists = list_candidates(self.train(training, fold), listed, n)
        seconds = time.perf_counter() - started
        cache.save_lists(fold + 1, lists, seconds)
        return lists, seconds

    def final(self, cache: "ListCache", corpus: Corpus) -> tuple[Tagger, float]:
        """Return the first model of all training data as loaded from the cache, and the seconds of training."""
        cached = cache.load_tagger()
        if cached is not None:
            logger.info("first model: loaded from %s", cache.folder)
            return cached
        logger.info("first model: training on all %d sequences", len(corpus))
        started = time.perf_counter()
        tagger = self.train(corpus, self.plan.folds)
        cache.save_tagger(tagger, time.perf_counter() - started)
        cached = cache.load_tagger()
        assert cached is not None
        return cached

    def train(self, corpus: Corpus, number: int) -> Tagger:
        """Return a new first model after its training; random numbers depend only on the seed and the number."""
        gc.collect()  # the tagger before this one and its trainer refer to each other
        seed_all(self.plan.seed, number)
        tagger = new_first_model(self.first, corpus, self.labels, self.data.unit)
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
        trainer.fit(tagger, datamodule=TrainingPart.from_corpus(corpus, self.data))
        return tagger.eval()


class TrainingPart(SequenceDataModule):
    """A part of some training data, as a data module.

    Args:
        corpus: The part, whose labels are in the scheme.
        options: Options of `SequenceDataModule`.
    """

    def __init__(self, corpus: Corpus, **options: Any) -> None:
        super().__init__(**options)
        self.part = corpus

    @classmethod
    def from_corpus(cls, corpus: Corpus, data: SequenceDataModule) -> "TrainingPart":
        """Return a part of `data` with the same mini-batches."""
        options = {name: getattr(data, name) for name in ("unit", "scheme", "batch_size", "shuffle", "seed")}
        return cls(corpus, **options)

    def read(self, split: str) -> None:
        """No-op: the corpus is passed to the constructor."""

    def has(self, split: str) -> bool:
        """Return True for "train", the only split."""
        return split == "train"

    def corpus(self, split: str) -> Corpus:
        """Return the part, whose labels are already in the scheme."""
        return self.part


@contextmanager
def quiet_trainers() -> Iterator[None]:
    """Hide the trainers' log messages about devices and ends of training, but not their warnings."""
    notices = logging.getLogger("pytorch_lightning.utilities.rank_zero")
    level = notices.level
    notices.setLevel(logging.WARNING)
    try:
        yield
    finally:
        notices.setLevel(level)


def fold_numbers(documents: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Return the fold, 0 .. folds - 1, of each sequence: document ids (S,) -> (S,) int64.

    Sequences of one document have one fold, and folds differ in size by at most one document.

    Raises:
        InputError: There are fewer documents than folds.
    """
    ids, which = np.unique(documents, return_inverse=True)
    if len(ids) < folds:
        raise InputError(
            f"jackknife.folds is {folds}, but the training data has {counted(len(ids), 'document')}: set fewer folds"
        )
    fold = np.empty(len(ids), np.int64)
    fold[np.random.default_rng(seed).permutation(len(ids))] = np.arange(len(ids)) % folds
    return fold[which]


def new_first_model(first: Tagger, corpus: Corpus, labels: LabelSet, unit: str) -> Tagger:
    """Return a new tagger like `first`, with new weights, the given labels, and features and words of `corpus`."""
    features = copy.copy(first.features)  # shares the templates and lists; `fit` replaces the index
    features.fit(corpus)
    tagger = Tagger.from_description(untrained_description(first), features, Builder.trusting(first))
    tagger.optimizer, tagger.lr_scheduler, tagger.prior = first.optimizer, first.lr_scheduler, first.prior
    tagger.parameter_groups = first.parameter_groups
    tagger.scorer.build_vocabulary(features.with_documents(corpus, tagger.scorer.columns))
    tagger.allocate(labels)
    tagger.unit = unit
    return tagger


@torch.no_grad()
def list_candidates(tagger: Tagger, corpus: Corpus, n: int) -> CandidateLists:
    """Return the n best label sequences of each sequence by local score, and the local scores of the gold labels."""

    def listed() -> Iterator[tuple[Tensor, ListBatch]]:
        for batch in bar(tagger.batches(corpus, BATCH), "listing candidates", -(-len(corpus) // BATCH)):
            assert batch.gold is not None
            lattice = tagger(batch)
            yield batch.rows, ListBatch(kbest(lattice, n), path_score(lattice, batch.gold))

    return CandidateLists.collect(corpus.lengths.tolist(), n, len(tagger.labels), listed())


# -- the cache -----------------------------------------------------------------------------------------------


class ListCache:
    """Files of a cache: the lists fold-1.safetensors, ..., and the final first model; each is complete or missing.

    Args:
        folder: Folder of one configuration.
        trusted: Modules whose classes the first model may contain, see `Tagger.load`.
    """

    def __init__(self, folder: Path, trusted: Iterable[str] = ()) -> None:
        self.folder, self.trusted = folder, tuple(trusted)
        self._tagger, self._about = folder / "first", folder / "first.json"

    def load_lists(self, fold: int, lengths: np.ndarray, n: int) -> tuple[CandidateLists, float] | None:
        """Return the lists of a fold and their seconds; None if they are missing, or have other lengths or n."""
        path = self._fold(fold)
        if not path.exists():
            return None
        try:
            lists, about = CandidateLists.load(path)
            if lists.k != n or lists.lengths.tolist() != lengths.tolist():
                raise InputError(f"{path}: the lists belong to different sequences")
            return lists, float(about["seconds"])
        except InputError as error:
            logger.warning("%s; computing it again", error)
            return None

    def save_lists(self, fold: int, lists: CandidateLists, seconds: float) -> None:
        """Write the lists of a fold and their seconds."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lists.save(self._fold(fold), {"seconds": seconds})

    def load_tagger(self) -> tuple[Tagger, float] | None:
        """Return the final first model and the seconds of its training; None if it is missing or damaged."""
        if not self._tagger.exists():
            return None
        try:
            about = json.loads(self._about.read_text(encoding="utf-8"))
            if about["digest"] != file_digest(self._tagger):
                raise InputError(f"{self._tagger}: wrong checksum")
            return Tagger.load(self._tagger, trusted=self.trusted), float(about["seconds"])
        except (InputError, OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s; training the first model again", " ".join(str(error).split()))
            return None

    def save_tagger(self, tagger: Tagger, seconds: float) -> None:
        """Write the final first model and the seconds of its training."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tagger.save(self._tagger)
        write_lines(self._about, [json.dumps({"seconds": seconds, "digest": file_digest(self._tagger)})])

    def _fold(self, fold: int) -> Path:
        return self.folder / f"fold-{fold}.safetensors"


def untrained_description(first: Tagger) -> dict[str, Any]:
    """Return the description of a tagger without the vocabularies of its text modules."""
    return without_learned(first.description())


def _describe_callback(callback: Any) -> dict[str, Any]:
    options = list(inspect.signature(type(callback)).parameters)
    if missing := [name for name in options if not hasattr(callback, name)]:
        name = type(callback).__name__
        raise InputError(f"jackknife.callbacks: {name} has no attribute for its option {missing[0]!r}; remove it")
    values = {name: describe_value(getattr(callback, name)) for name in options}
    return {"class_path": class_path_of(type(callback)), "init_args": values}


def corpus_digest(corpus: Corpus, roles: Iterable[str], boundaries: Iterable[np.ndarray]) -> str:
    """Return a checksum of some columns of a corpus and of boundaries in it."""
    total = hashlib.sha256()
    for role in sorted(set(roles)):
        total.update(f"{role}\0{chr(0).join(corpus.columns.get(role, []))}\0".encode("utf-8", "surrogatepass"))
    for part in boundaries:
        total.update(np.asarray(part, np.int64).tobytes())
    return total.hexdigest()
