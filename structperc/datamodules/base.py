"""Base class of all data modules: splits, mini-batches and their order."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytorch_lightning as pl
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from structperc.constructors import class_path_of
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.normalise import check_types, checked_corpus, rename_types
from structperc.data.read_options import ReadOptions, Unit
from structperc.data.scheme_detection import NO_SEGMENT
from structperc.data.splits import missing_types, split_holdout
from structperc.data.tag_schemes import Scheme, check_notation
from structperc.data.text_files import expand_path
from structperc.datamodules.cache import CorpusCache, CorpusStore, file_digest
from structperc.datamodules.distributed import share
from structperc.datamodules.encoded import EncodedCorpus, FlatSequences, PrecomputedBatches
from structperc.datamodules.sampler import LengthBatchSampler, ResumableLoader, ResumableSampler, sequential_batch_size
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.process_pool import Workers
from structperc.spelling import did_you_mean
from structperc.structures import Batch, FlatBatch

if TYPE_CHECKING:
    import datasets  # takes half a second, and cached corpora do without

logger = logging.getLogger("pytorch_lightning.structperc")

SPLITS = ("train", "dev", "test")
HALF = 0.5
BATCH_SIZE = 8  # sequences of a mini-batch that is not learned sequence by sequence
BatchForm = Literal["padded", "flat"]

UNMARKED = "(-DOCSTART- or newdoc lines) in it; set data.unit: sentence"


class SplitFiles(NamedTuple):
    """Splits that are files."""

    path: str  # folder
    files: Mapping[str, str]  # by split
    options: Mapping[str, Any]  # how they are read, besides the options of `SequenceDataModule`; plain JSON types


class SequenceDataModule(pl.LightningDataModule, ABC):
    """Reads splits named train, dev and test, and cuts them into mini-batches. A subclass reads a split.

    Args:
        unit: what one sequence is: a "sentence" or a whole "document".
        scheme: tag scheme that the tagger learns (IOB1, IOB2, IOBES, BILOU), or "none" for labels that are not
            segments, such as parts of speech.
        labels: scheme that the source is written in; default: as `scheme`. For labels that are not written as
            "B-PER" it is followed by their form, and the label outside of segments: "IOB2 TYPE-B", "IOBES b_TYPE 0".
        strict: refuse illegal label sequences instead of repairing and counting them.
        batch_size: sequences per step of training, in each process; by default 8. Where a tagger learns them one after
            the other, as those of the perceptron family do, it is a matter of speed only, and by default about
            65,000 tokens.
        eval_batch_size: sequences at a time where nothing is learned. Decisions do not depend on it, apart from
            which of several label sequences of equal score are the last of a list of candidates.
        shuffle: see training sequences in a new order every epoch; else the same mini-batches of sequences of one
            length, which makes full-batch training faster. They are kept: twice the memory for features.
        seed: of the order in which training sequences are seen.
        predict: split that `predict` labels.
        holdout: training sequences (sentences or documents, see `unit`) that are the development split of a source
            that has none, and are left out of training: so many of the last ones or, below 1, a share that is drawn at
            random, whole documents where they are marked, of which no type of segments is missing in training.
        holdout_seed: of what is drawn.
        types: other names of segment types, such as {PER: NAME, LOC: NAME}; types of one name are merged, those not
            named stay. Neighbouring segments stay two.
        cache: folder in which corpora, the features that taggers learn of them and the ids of features are kept, for
            later runs and for all processes; training reads mini-batches from there, and needs little memory.
            Environment variables are expanded.
        cache_workers: how many processes make what is kept of a large corpus; the files do not depend on it.

    Raises:
        InputError: a number is too small; `predict` names no split; types are given and the scheme is "none"; there are
            several workers and no cache.
    """

    unlabelled = "name their column 'label' in data.columns"  # advice if there are no gold labels

    def __init__(
        self,
        unit: Unit = "sentence",
        scheme: Scheme = "IOB2",
        labels: str | None = None,
        strict: bool = False,
        batch_size: int | None = None,
        eval_batch_size: int = 16,
        shuffle: bool = True,
        seed: int = 1,
        predict: str = "dev",
        holdout: int | float = 0,
        holdout_seed: int = 1,
        types: dict[str, str] | None = None,
        cache: str | None = None,
        cache_workers: int = 1,
    ) -> None:
        super().__init__()
        least = (("batch_size", batch_size, 1), ("eval_batch_size", eval_batch_size, 1), ("seed", seed, 0))
        more = (("holdout", holdout, 0), ("holdout_seed", holdout_seed, 0), ("cache_workers", cache_workers, 1))
        for name, value, low in (*least, *more):
            if value is not None and value < low:
                raise InputError(f"data.{name} must be >= {low}, got {value}")
        if holdout > 1 and holdout != int(holdout):
            raise InputError(f"data.holdout must be a number of sequences or a share below 1, got {holdout}")
        check_splits("data.predict", [predict])
        if types and scheme == "none":
            raise InputError("data.types: labels of scheme none have no segments and no types; remove it")
        if cache is None and cache_workers > 1:
            raise InputError("data.cache_workers: they fill a cache; name its folder, data.cache, or leave them out")
        check_notation("data.labels", labels or scheme)
        self.unit, self.scheme, self.strict = unit, scheme, strict
        self.reading = ReadOptions(unit=unit, labels=labels or scheme)
        self.batch_size, self.eval_batch_size, self.shuffle = batch_size, eval_batch_size, shuffle
        self.seed, self.predict_split = seed, predict
        self.holdout, self.holdout_seed = holdout, holdout_seed
        self.types = types or {}
        self.workers = Workers(cache_workers, "set data.cache_workers: 1")
        self.store = CorpusStore() if cache is None else CorpusCache(cache, self.workers)
        self.in_files: SplitFiles | None = None  # set by sources that read a file for each split
        self._corpora: dict[str, Corpus | None] = {}
        self._encoded: dict[str, EncodedCorpus] = {}
        self._encoders: dict[str, Callable[[Corpus], EncodedCorpus]] = {}

    @abstractmethod
    def read(self, split: str) -> "tuple[str, datasets.Dataset | Corpus] | None":
        """Return a name for messages and a split as the source has it, or None if it has no such split.

        That is rows of sentences, or a corpus of sequences of the unit.
        """

    def training_files(self) -> dict[str, Any]:
        """Return the options by which the training files are read, as plain JSON types; see `data.read_options`.

        A saved model keeps them, so that files of the same kind can be read for it. A source without files has no more
        than the tag scheme of its labels, and which columns hold such labels, too.
        """
        options = {} if self.in_files is None else dict(self.in_files.options)
        corpus, labels = self.corpus("train"), self.label_set()
        further = [role for role in corpus.columns if role not in ("word", "label")]
        alike = [role for role in further if labels.share_known(corpus.factorize(role).distinct) > HALF]
        return {**options, "labels": self.reading.labels, "like_labels": alike}

    def corpus(self, split: str) -> Corpus:
        """Return the split as a corpus of sequences with labels in `scheme`; each split is read once and kept.

        Raises InputError if the source has no such split, and for training data without labels.
        """
        if not self.has(split):
            raise InputError(f"data: the split {split} is missing; configure it under data")
        corpus = self._corpora[split]
        assert corpus is not None
        if split == "train":
            self._check_labels(corpus)
        return corpus

    def label_set(self) -> LabelSet:
        """Return all labels that `scheme` has for the training data. Raises InputError as `corpus` does."""
        return LabelSet.from_corpus(self.corpus("train").factorize("label").distinct, self.scheme)

    def fit_features(self, features: FeatureExtractor) -> FeatureExtractor:
        """Return features as they are after the training data: learned now, or others that a cache has kept.

        Raises InputError as `corpus` and `FeatureExtractor.fit` do.
        """
        return self.store.fit_features(features, self.corpus("train"))

    def _check_labels(self, corpus: Corpus) -> None:
        if "label" not in corpus.columns:
            raise InputError(f"{corpus.where(0)}: gold labels are missing; {self.unlabelled}")

    def has(self, split: str) -> bool:
        """Return whether there is such a split, in the source or held out of the training data."""
        if split not in self._corpora:
            found = self._held_out() if self.holdout and split in ("train", "dev") else self._read(split)
            self._corpora.update(found)
            for name, corpus in found.items():
                self._warn_of_one_label(name, corpus)
        return self._corpora[split] is not None

    def _read(self, split: str) -> dict[str, Corpus | None]:
        file = None if self.in_files is None else split_file(self.in_files.path, self.in_files.files, split)
        if file is None or not (file.is_file() or file.is_dir()):
            found = self.read(split)
            return {split: None if found is None else self._renamed(split, self._prepared(*found))}
        corpus = self.store.corpus(lambda: self._made_from(split, file), lambda: self._of_file(split))
        return {split: replace(corpus, name=str(file))}

    def _of_file(self, split: str) -> Corpus:
        found = self.read(split)
        assert found is not None
        return self._renamed(split, self._prepared(*found))

    def _made_from(self, split: str, file: Path) -> Any:
        """All that the corpus of a file depends on; types are checked for training data only."""
        assert self.in_files is not None
        source = [class_path_of(type(self)), file.suffixes, self.in_files.options]
        try:
            found = file_digest(file)
        except OSError as error:
            raise InputError(f"{file}: cannot read this file ({error.strerror})") from None
        return [found, *source, self.reading, self.scheme, self.strict, self.types, split == "train"]

    def _held_out(self) -> dict[str, Corpus | None]:
        """The training data as train and dev split."""
        if self.read("dev") is not None:
            raise InputError(f"data.holdout is {self.holdout}, but there is a dev split: leave out one of them")
        whole = self._read("train")["train"]
        if whole is None:
            return {"train": None, "dev": None}
        train, dev = split_holdout(whole, self.holdout, self.scheme, self.holdout_seed)
        if self.holdout < 1:
            missing = missing_types(whole, dev, self.scheme) if "label" in whole.columns else []
            without = f", without {', '.join(missing)}" if missing else ""
            logger.info("%s: %d of %d sequences are held out%s", whole.name, len(dev), len(whole), without)
        return {"train": train, "dev": dev}

    def _prepared(self, name: str, found: "datasets.Dataset | Corpus") -> Corpus:
        how = (self.reading, self.scheme, UNMARKED, self.strict)
        corpus = found if isinstance(found, Corpus) else Corpus.from_dataset(found, self.unit, name)
        return checked_corpus(corpus, *how)

    def _warn_of_one_label(self, split: str, corpus: Corpus | None) -> None:
        """Say that there is nothing to learn of training data, or to find in other data, whose labels are all alike."""
        if corpus is None or "label" not in corpus.columns:
            return
        labels = corpus.factorize("label").distinct
        if labels == ["O"]:
            logger.warning("%s: %s", corpus.name, NO_SEGMENT if split == "train" else "no segment in it to find")
        elif len(labels) == 1 and split == "train" and self.scheme == "none":
            logger.warning("%s: all labels are %s: nothing else will be learned", corpus.name, labels[0])

    def _renamed(self, split: str, corpus: Corpus) -> Corpus:
        """Types by their new names. Raises InputError for a name that the training data does not have."""
        if not self.types or "label" not in corpus.columns:
            return corpus
        if split == "train":
            check_types(corpus, self.scheme, self.types)
        return rename_types(corpus, self.scheme, self.types)

    def encode(self, encoder: Callable[[Corpus], EncodedCorpus], stage: str) -> None:
        """Turn the splits that a stage needs into arrays; "fit" takes all splits, so that bad labels show early.

        Arrays are kept for the same encoder; another tagger has other feature ids and encodes again. InputError is
        raised where labels are missing, unless the stage is "predict".
        """
        for split in self._splits(stage):
            if stage != "predict":
                self._check_labels(self.corpus(split))
            if self._encoders.get(split) != encoder:
                self._encoded[split] = encoder(self.corpus(split))
                self._encoders[split] = encoder

    def _splits(self, stage: str) -> list[str]:
        if stage == "fit":
            return ["train", *(split for split in ("dev", "test") if self.has(split))]
        return [{"validate": "dev", "test": "test", "predict": self.predict_split}[stage]]

    def encoded(self, split: str) -> EncodedCorpus:
        """Return the arrays of a split that `encode` has made."""
        return self._encoded[split]

    def loader(self, split: str) -> "DataLoader[Batch]":
        """Return an iterable over the mini-batches of a split that is labelled; each process gets its share of them."""
        rows = self._encoded[split]
        order = LengthBatchSampler(rows.corpus.lengths, self.eval_batch_size, False, self.seed, share())
        return DataLoader(rows, batch_size=None, sampler=order)

    def train_dataloader(self) -> "DataLoader[Batch | FlatBatch]":
        """Return the training data in the form that the trainer's model learns from, see `training_batches`."""
        model = getattr(self.trainer, "lightning_module", None)
        return self.training_batches(getattr(model, "batch_form", "padded"))

    def training_batches(self, form: BatchForm) -> "DataLoader[Batch | FlatBatch]":
        """Return the mini-batches of the training data: shuffled in each epoch, or always the same ones.

        Args:
            form: "padded" for Batches of sequences of similar length; "flat" for FlatBatches of sequences that are
                learned one after the other: their order does not depend on the size of mini-batches.
        """
        rows = self._encoded["train"]
        size, lengths = self.batch_size, rows.corpus.lengths
        if size is None:
            size = BATCH_SIZE if form == "padded" else sequential_batch_size(lengths, share().processes)
        order: DistributedSampler[Any]
        data: Dataset[Batch] | Dataset[FlatBatch] = FlatSequences(rows) if form == "flat" else rows
        if self.shuffle or form == "flat":
            order = LengthBatchSampler(lengths, size, self.shuffle, self.seed, share(), form == "padded")
        else:
            data = PrecomputedBatches(rows, size, share())
            order = DistributedSampler(data, num_replicas=1, rank=0, shuffle=False)  # all: this process's share
        return ResumableLoader(data, batch_size=None, sampler=ResumableSampler(order))

    def val_dataloader(self) -> Any:
        """Return the mini-batches of the development data, or an empty list where there are none to evaluate."""
        return self.loader("dev") if "dev" in self._encoded else []

    def test_dataloader(self) -> "DataLoader[Batch]":
        """Return the mini-batches of the test data."""
        return self.loader("test")

    def predict_dataloader(self) -> "DataLoader[Batch]":
        """Return the mini-batches of the split that the option `predict` names."""
        return self.loader(self.predict_split)


def check_splits(option: str, given: Iterable[str]) -> None:
    """Raise InputError, which names the option, if a split that is given is none of `SPLITS`."""
    for name in given:
        if name not in SPLITS:
            meant = "; did you mean dev?" if name.lower().startswith("val") else did_you_mean(name, SPLITS)
            raise InputError(f"{option}: unknown split {name!r}; splits are {', '.join(SPLITS)}{meant}")


def split_file(path: str, files: Mapping[str, str], split: str) -> Path | None:
    """Return the file of a split in a folder, with environment variables expanded, or None if none is named for it."""
    return expand_path(Path(path) / files[split]) if split in files else None
