"""Base class of all data modules: splits and mini-batches."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from structperc.constructors import class_path_of
from structperc.data.corpus import Corpus
from structperc.data.label_sets import (
    ALLOWED,
    is_incomplete,
    join_label_sets,
    names_in,
    open_other_types,
    separate_label_sets,
)
from structperc.data.labels import LabelSet
from structperc.data.normalise import check_types, checked_corpus, rename_types
from structperc.data.read_options import ReadOptions, Unit
from structperc.data.scheme_detection import NO_OUTSIDE, NO_SEGMENT
from structperc.data.splits import draw_part, missing_types, split_holdout
from structperc.data.tag_schemes import BRACKETS, Scheme, check_labels_option
from structperc.datamodules.cache import CorpusCache, CorpusStore, file_digest
from structperc.datamodules.distributed import process_group
from structperc.datamodules.encoded import EncodedCorpus, FlatSequences, PrecomputedBatches
from structperc.datamodules.sampler import (
    LengthBatchSampler,
    ResumableLoader,
    ResumableSampler,
    TokenBatchSampler,
    sequential_batch_size,
    unchanged,
)
from structperc.errors import InputError, errors_at
from structperc.features import FeatureExtractor
from structperc.features.weighted_features import FeatureColumn
from structperc.process_pool import Workers
from structperc.spelling import did_you_mean
from structperc.structures import Batch, FlatBatch

if TYPE_CHECKING:
    import datasets  # slow, and not needed for cached corpora

logger = logging.getLogger("pytorch_lightning.structperc")

SPLITS = ("train", "dev", "test")
BATCH_SIZE = 8  # sequences of a padded mini-batch
BatchForm = Literal["padded", "flat"]
UNMARKED = "(-DOCSTART- or newdoc lines) in the file; set data.unit: sentence"


class SequenceDataModule(pl.LightningDataModule, ABC):
    """Base class of all data modules: reads the splits train, dev and test, and makes mini-batches.

    A subclass defines `read`.

    Args:
        unit: Unit of a sequence: a "sentence" or a whole "document".
        scheme: Tag scheme of the tagger (IOB1, IOB2, IOBES, BILOU, IO), or "none" for labels that are not segments,
            such as parts of speech.
        labels: Tag scheme of the source; default: `scheme`. For labels of another form than "B-PER", followed by this
            form and the outside label: "IOB2 TYPE-B", "IOBES b_TYPE 0". "brackets" for (PER*, *, *) and (LOC).
        strict: Raise an error for illegal label sequences instead of repairing and counting them.
        batch_size: Sequences per training step in each process; default: 8. For taggers that learn sequence by
            sequence, such as perceptrons, it affects speed only, and the default is up to 16,000 tokens.
        batch_tokens: Maximal size of a padded mini-batch, sequences x longest sequence, in each process; in place of
            `batch_size`. Tokens are words, or sub-word tokens with their context if a transformer encodes.
        eval_batch_size: Sequences per batch in evaluation and prediction. It does not affect results, except which of
            several label sequences with equal scores are last in an n-best list.
        shuffle: Draw a new order of the training sequences in each epoch; otherwise use the same mini-batches, of
            sequences of similar length, which makes full-batch training faster but doubles the memory for features.
        seed: Seed of the order of the training sequences, and of `train_size`.
        predict: Split that `predict` labels.
        holdout: Number of training sequences (see `unit`) to use as the development split of a source without one: the
            last ones or, below 1, a random share, whole documents if they are marked; each type of segments still
            occurs in training.
        holdout_seed: Seed of the random share.
        train_size: Number of training sequences (see `unit`) to learn from, or share of them up to 1.0 (1 is one
            sequence); default: all. They are drawn at random with `seed`, after `holdout`, and keep their order; with
            the same seed a larger part contains the smaller one. Features are fitted to the part. The labels remain
            those of all training sequences, so that all sizes have the same task: segments of a type that a small part
            lacks count as errors.
        types: New names of segment types, such as {PER: NAME, LOC: NAME}; others keep their names. Adjacent segments
            are not merged, except in IO.
        cache: Folder for corpora, feature vocabularies and feature ids, for later runs and other processes. Training
            reads mini-batches from there and needs little memory. Environment variables are expanded.
        cache_workers: Number of processes that fill the cache for a large corpus; the files do not depend on it.
        incomplete: Read labels `?` (unknown), `B-PER|B-ORG` (one of these) and `!B-PER|I-PER` (none of these), see
            `data.label_sets`, in training data. Evaluation needs complete labels.
        annotated_types: The types that this source annotates, if `Combined` joins it with others: its tokens outside
            of segments may be of all other types.

    Raises:
        InputError: A number is too small or not whole, both `batch_size` and `batch_tokens` are given, `predict` is not
            a split, `types` is given with scheme "none" or incomplete labels, or there are several workers without a
            cache.

    Example:
        >>> from structperc import Corpus
        >>> class Toy(SequenceDataModule):
        ...     '''Two sentences as training data.'''
        ...     def read(self, split):
        ...         sentences = [{"word": ["Anna", "left"], "label": ["B-PER", "O"]}, {"word": ["Yes"], "label": ["O"]}]
        ...         return ("toy", Corpus.from_sentences(sentences)) if split == "train" else None
        >>> data = Toy()
        >>> data.has("dev"), data.label_set().names
        (False, ('O', 'B-PER', 'I-PER'))
    """

    unlabelled = "name their column 'label' in data.columns"  # advice if gold labels are missing
    file_options: Mapping[str, Any] = {}  # further options for reading files, as plain JSON types

    def __init__(
        self,
        unit: Unit = "sentence",
        scheme: Scheme = "IOB2",
        labels: str | None = None,
        strict: bool = False,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        eval_batch_size: int = 16,
        shuffle: bool = True,
        seed: int = 1,
        predict: str = "dev",
        holdout: int | float = 0,
        holdout_seed: int = 1,
        train_size: int | float | None = None,
        types: dict[str, str] | None = None,
        cache: str | None = None,
        cache_workers: int = 1,
        incomplete: bool = False,
        annotated_types: list[str] | None = None,
    ) -> None:
        super().__init__()
        sizes = (("batch_size", batch_size, 1), ("batch_tokens", batch_tokens, 1))
        least = (*sizes, ("eval_batch_size", eval_batch_size, 1), ("seed", seed, 0))
        more = (("holdout", holdout, 0), ("holdout_seed", holdout_seed, 0), ("cache_workers", cache_workers, 1))
        for name, value, low in (*least, *more):
            if value is not None and value < low:
                raise InputError(f"data.{name} must be >= {low}, got {value}")
        if batch_size is not None and batch_tokens is not None:
            raise InputError("data.batch_size and data.batch_tokens are both set; set one of them to null")
        if holdout > 1 and holdout != int(holdout):
            raise InputError(f"data.holdout must be a number of sequences or a share below 1, got {holdout}")
        if train_size is not None and not (0 < train_size < 1 or (train_size > 0 and float(train_size).is_integer())):
            raise InputError(f"data.train_size must be a number of sequences or a share up to 1.0, got {train_size}")
        check_splits("data.predict", [predict])
        if types and scheme == "none":
            raise InputError("data.types: labels of scheme none have no segments and no types; remove it")
        if types and incomplete:
            raise InputError("data.types: types of incomplete labels cannot be renamed; rename them in the file")
        if incomplete and labels == BRACKETS:
            raise InputError("data.incomplete: labels are brackets, which cannot be incomplete; remove it")
        if cache is None and cache_workers > 1:
            raise InputError("data.cache_workers > 1 needs a cache; set its folder, data.cache")
        with errors_at("data.labels"):
            check_labels_option(labels or scheme)
        self.unit, self.scheme, self.strict = unit, scheme, strict
        self.reading = ReadOptions(unit=unit, labels=labels or scheme)
        self.batch_size, self.batch_tokens = batch_size, batch_tokens
        self.eval_batch_size, self.shuffle = eval_batch_size, shuffle
        self.seed, self.predict_split = seed, predict
        self.holdout, self.holdout_seed, self.train_size = holdout, holdout_seed, train_size
        self.types, self.incomplete, self.annotated_types = types or {}, incomplete, annotated_types
        self.workers = Workers(cache_workers, "set data.cache_workers: 1")
        self.store = CorpusStore() if cache is None else CorpusCache(cache, self.workers)
        self._corpora: dict[str, Corpus | None] = {}
        self._all_training: Corpus | None = None  # before a part of it is drawn
        self._encoded: dict[str, EncodedCorpus] = {}
        self._encoders: dict[str, Callable[[Corpus], EncodedCorpus]] = {}

    @abstractmethod
    def read(self, split: str) -> "tuple[str, datasets.Dataset | Corpus] | None":
        """Return a name for messages and a split of the source; None if it is missing.

        The split is rows of sentences, or a corpus of sequences of the unit.
        """

    def split_file(self, split: str) -> Path | None:
        """Return the file or folder that has only this split; None for other sources."""
        return None

    def training_files(self) -> dict[str, Any]:
        """Return the options for reading the training files, as plain JSON types; see `data.read_options`.

        They are saved with a model to read files of the same kind. Sources without files have only the options of
        labels and the columns with similar labels.
        """
        corpus, labels = self.corpus("train"), self.label_set()
        named = [role for role, column in corpus.columns.items() if not isinstance(column, FeatureColumn)]
        further = [role for role in named if role not in ("word", "label")]
        alike = [role for role in further if labels.share_known(corpus.factorize(role).distinct) > 0.5]
        options = {"labels": self.reading.labels, "strict": self.strict, "types": self.types}
        return {**self.file_options, **options, "like_labels": alike}

    def corpus(self, split: str) -> Corpus:
        """Return the split as a corpus of sequences with labels in `scheme`; each split is read once.

        Raises:
            InputError: The source has no such split, or the training data has no labels.
        """
        if not self.has(split):
            raise InputError(f"data: the split {split} is missing; configure it under data")
        corpus = self._corpora[split]
        assert corpus is not None
        if split == "train":
            self._check_labels(corpus)
        return corpus

    def label_set(self) -> LabelSet:
        """Return the labels of `scheme` for all types of the training data, whatever the `train_size`.

        Raises InputError as `corpus` does.
        """
        corpus = self.corpus("train")
        if self._all_training is not None:
            corpus = self._all_training
        known: Iterable[str] = corpus.factorize("label").distinct
        if is_incomplete(corpus):
            known = names_in(corpus.factorize(ALLOWED).distinct)
        return LabelSet.from_corpus(sorted(known), self.scheme)

    def fit_features(self, features: FeatureExtractor) -> FeatureExtractor:
        """Fit the features to the training data and return them, or return those in the cache.

        Raises:
            InputError: See `corpus` and `FeatureExtractor.fit`.
        """
        return self.store.fit_features(features, self.corpus("train"))

    def _check_labels(self, corpus: Corpus) -> None:
        if "label" not in corpus.columns:
            raise InputError(f"{corpus.where(0)}: gold labels are missing; {self.unlabelled}")

    def has(self, split: str) -> bool:
        """Return True if the split exists in the source, or is a part of the training data (see `holdout`)."""
        if split not in self._corpora:
            found = self._held_out() if self.holdout and split in ("train", "dev") else self._read(split)
            if (whole := found.get("train")) is not None:
                self._all_training = whole
                if self.train_size is not None:
                    found["train"] = part = draw_part(whole, self.train_size, self.seed)
                    logger.info("%s: %d of %d sequences are drawn", whole.name, len(part), len(whole))
            self._corpora.update(found)
            for name, corpus in found.items():
                self._warn_single_label(name, corpus)
        return self._corpora[split] is not None

    def _read(self, split: str) -> dict[str, Corpus | None]:
        file = self.split_file(split)
        if file is None or not (file.is_file() or file.is_dir()):
            found = self.read(split)
            return {split: None if found is None else self._normalise(split, *found)}

        def read() -> Corpus:
            found = self.read(split)
            assert found is not None
            return self._normalise(split, *found)

        return {split: replace(self.store.corpus(lambda: self._cache_key(split, file), read), name=str(file))}

    def _cache_key(self, split: str, file: Path) -> Any:
        """Return all values that the corpus of a file depends on; types are checked for training data only."""
        source = [class_path_of(type(self)), file.suffixes, self.file_options]
        try:
            found = file_digest(file)
        except OSError as error:
            raise InputError(f"{file}: cannot read this file ({error.strerror})") from None
        labels = [self.scheme, self.strict, self.types, self.incomplete, self.annotated_types]
        return [found, *source, self.reading, *labels, split == "train"]

    def _held_out(self) -> dict[str, Corpus | None]:
        if self.read("dev") is not None:
            raise InputError(f"data.holdout is {self.holdout}, but there is a dev split; remove one of them")
        whole = self._read("train")["train"]
        if whole is None:
            return {"train": None, "dev": None}
        train, dev = split_holdout(whole, self.holdout, self.scheme, self.holdout_seed)
        if self.holdout < 1:
            missing = missing_types(whole, dev, self.scheme) if "label" in whole.columns else []
            without = f", without {', '.join(missing)}" if missing else ""
            logger.info("%s: %d of %d sequences are held out%s", whole.name, len(dev), len(whole), without)
        return {"train": train, "dev": dev}

    def _normalise(self, split: str, name: str, found: "datasets.Dataset | Corpus") -> Corpus:
        corpus = found if isinstance(found, Corpus) else Corpus.from_dataset(found, self.unit, name)
        assert self.reading.labels is not None
        sets = None
        if self.incomplete and "label" in corpus.columns:
            corpus, sets = separate_label_sets(corpus, self.reading.labels, self.scheme)
        corpus = checked_corpus(corpus, self.reading, self.scheme, UNMARKED, self.strict)
        if sets is not None:
            corpus = join_label_sets(corpus, sets)
        if self.annotated_types is not None and "label" in corpus.columns:
            corpus = open_other_types(corpus, self.scheme, self.annotated_types)
        if not self.types or "label" not in corpus.columns:
            return corpus
        if split == "train":
            check_types(corpus, self.scheme, self.types)
        return rename_types(corpus, self.scheme, self.types)

    def _warn_single_label(self, split: str, corpus: Corpus | None) -> None:
        if corpus is None or "label" not in corpus.columns:
            return
        labels = names_in(corpus.factorize(ALLOWED if is_incomplete(corpus) else "label").distinct)
        if labels <= {"O"}:
            logger.warning("%s: %s", corpus.name, NO_SEGMENT if split == "train" else "no segment in the data")
        elif split == "train" and (self.reading.labels or "").split(" ")[0] == "IO" and "O" not in labels:
            logger.warning("%s: %s", corpus.name, NO_OUTSIDE)
        elif len(labels) == 1 and split == "train" and self.scheme == "none":
            logger.warning("%s: all labels are %s: only this label will be predicted", corpus.name, *labels)

    def encode(self, encoder: Callable[[Corpus], EncodedCorpus], stage: str) -> None:
        """Encode the splits of a stage as arrays; "fit" encodes all splits, so that invalid labels are detected early.

        Arrays are kept for the same encoder; another tagger has other feature ids and encodes again.

        Raises:
            InputError: Labels are missing, unless the stage is "predict".
        """
        splits = {"validate": ["dev"], "test": ["test"], "predict": [self.predict_split]}
        for split in splits[stage] if stage != "fit" else ["train", *(one for one in SPLITS[1:] if self.has(one))]:
            if stage != "predict":
                self._check_labels(self.corpus(split))
            if self._encoders.get(split) != encoder:
                self._encoded[split] = encoder(self.corpus(split))
                self._encoders[split] = encoder

    def encoded(self, split: str) -> EncodedCorpus:
        """Return the arrays of a split, see `encode`."""
        return self._encoded[split]

    def loader(self, split: str) -> "DataLoader[Batch]":
        """Return an iterable over the mini-batches of a split for evaluation; each process gets its share."""
        rows = self._encoded[split]
        order = LengthBatchSampler(rows.lengths, self.eval_batch_size, False, self.seed, process_group())
        return DataLoader(rows, batch_size=None, sampler=order, collate_fn=unchanged)

    def train_dataloader(self) -> "DataLoader[Batch | FlatBatch]":
        """Return the training data in the `batch_form` of the trainer's model, see `training_batches`.

        All epochs have the same mini-batches if the trainer overfits some of them.
        """
        model, overfit = getattr(self.trainer, "lightning_module", None), getattr(self.trainer, "overfit_batches", 0)
        return self.training_batches(getattr(model, "batch_form", "padded"), repeat=overfit > 0)

    def training_batches(self, form: BatchForm, repeat: bool = False) -> "DataLoader[Batch | FlatBatch]":
        """Return the mini-batches of the training data: shuffled in each epoch, or always the same ones.

        Args:
            form: "padded": Batches of sequences of similar length; "flat": FlatBatches for learning sequence by
                sequence, without sequences of weight 0, whose order does not depend on the batch size.
            repeat: Use the mini-batches of the first epoch in all epochs.

        Raises:
            InputError: `batch_tokens` is given for learning sequence by sequence, or all its weights are 0.
        """
        rows = self._encoded["train"]
        sequences: EncodedCorpus | FlatSequences = FlatSequences(rows) if form == "flat" else rows
        data: Dataset[Batch] | Dataset[FlatBatch] = sequences
        order: DistributedSampler[Any] = self._training_order(sequences.lengths, form)
        if not self.shuffle and form == "padded":
            data = PrecomputedBatches(rows, order)
            order = DistributedSampler(data, num_replicas=1, rank=0, shuffle=False)  # this process has its share
        order = ResumableSampler(order, repeat)
        return ResumableLoader(data, batch_size=None, sampler=order, collate_fn=unchanged)

    def _training_order(self, lengths: np.ndarray, form: BatchForm) -> LengthBatchSampler:
        group = process_group()
        if form == "flat":
            if self.batch_tokens is not None:
                raise InputError("data.batch_tokens: this tagger learns sequence by sequence; remove the option")
            size = self.batch_size or sequential_batch_size(lengths, group.size)
            return LengthBatchSampler(lengths, size, self.shuffle, self.seed, group, by_length=False)
        if self.batch_tokens is not None:
            return TokenBatchSampler(lengths, self.batch_tokens, self.shuffle, self.seed, group)
        return LengthBatchSampler(lengths, self.batch_size or BATCH_SIZE, self.shuffle, self.seed, group)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Return a batch on a device; on a CPU it is the batch itself, which saves time."""
        return batch if device.type == "cpu" else super().transfer_batch_to_device(batch, device, dataloader_idx)

    def val_dataloader(self) -> Any:
        """Return the mini-batches of the development data; an empty list if there is no such split."""
        return self.loader("dev") if "dev" in self._encoded else []

    def test_dataloader(self) -> "DataLoader[Batch]":
        """Return the mini-batches of the test data."""
        return self.loader("test")

    def predict_dataloader(self) -> "DataLoader[Batch]":
        """Return the mini-batches of the split that the option `predict` names, in the order of its sequences."""
        rows = self._encoded[self.predict_split]
        return DataLoader(rows, batch_size=self.eval_batch_size, collate_fn=unchanged)


def check_splits(option: str, given: Iterable[str]) -> None:
    """Raise InputError with the name of the option for a split that is not in `SPLITS`."""
    for name in given:
        if name not in SPLITS:
            meant = "; did you mean dev?" if name.lower().startswith("val") else did_you_mean(name, SPLITS)
            raise InputError(f"{option}: unknown split {name!r}; splits are {', '.join(SPLITS)}{meant}")
