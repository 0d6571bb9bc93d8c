"""Requirements of taggers for a trainer and its data, checked before training and evaluation."""

import os
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.accelerators import CPUAccelerator

from structperc.criteria import DistillationLoss
from structperc.data.corpus import Corpus
from structperc.data.label_sets import ALLOWED, first_label_set, is_incomplete
from structperc.data.normalise import check_known_labels, warn_unknown_labels
from structperc.data.weights import first_change, token_weights
from structperc.datamodules.base import SPLITS, SequenceDataModule
from structperc.errors import InputError
from structperc.lightning_internals import starts_commands
from structperc.nonlocal_features import GlobalFeature


class DataRequirements:
    """Requirements of a tagger for its data; base class, for taggers that learn from complete labels without weights.

    Args:
        tagger: The tagger.
    """

    def __init__(self, tagger: Any) -> None:
        self.tagger = tagger

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError for data that does not suit the tagger in training (stage "fit") or evaluation."""

    def check_incomplete(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the tagger does not learn from incomplete labels."""
        raise InputError(f"{place}: {type(self.tagger).__name__} needs complete labels; use a Tagger with CRFLoss")

    def check_weights(self, corpus: Corpus) -> None:
        """Raise InputError if the tagger does not learn from the weights of a corpus, its column `weight`."""
        name = type(self.tagger).__name__
        raise InputError(f"{corpus.name}: {name} has no weights; leave weight out of data.columns")

    def check_unit(self, unit: str) -> None:
        """Raise InputError if the tagger does not support sequences of this unit, "sentence" or "document"."""


class TaggerRequirements(DataRequirements):
    """Requirements of the parts of a `Tagger` for its data."""

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError in training by `DistillationLoss` without a teacher, or by another criterion with one."""
        if stage == "fit" and isinstance(self.tagger.criterion, DistillationLoss) != (self.tagger.teacher is not None):
            raise InputError("model.teacher: DistillationLoss needs a teacher, other criteria have none")

    def check_incomplete(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the parts do not learn from incomplete labels."""
        if not self.tagger.criterion.supports_incomplete:
            name = type(self.tagger.criterion).__name__
            raise InputError(f"{place}: {name} needs complete labels; use CRFLoss or a perceptron-like criterion")

    def check_weights(self, corpus: Corpus) -> None:
        """Raise InputError for weights that the criterion does not support: within sequences, or too large ones."""
        by_sentence, limit = self.tagger.criterion.independent_sentences, self.tagger.criterion.max_token_weight
        starts, unit = (corpus.sentences, "sentence") if by_sentence else (corpus.starts, self.tagger.unit)
        if not limit and (token := first_change(corpus, starts)) is not None:
            name = type(self.tagger.criterion).__name__
            raise InputError(
                f"{corpus.where(token)}: weights differ within a {unit}, but {name} has no weights of tokens; give a "
                f"{unit} one weight, or use TokenCrossEntropyLoss, MEMMLoss, RiskLoss or CRFLoss(confidences=True)"
            )
        weights = token_weights(corpus)
        if weights is not None and limit and (weights > limit).any():
            place = corpus.where(int((weights > limit).argmax()))
            raise InputError(f"{place}: a confidence must be at most {limit:g}; correct it, or remove confidences")

    def check_unit(self, unit: str) -> None:
        """Raise InputError for non-local features that do not support sequences of this unit."""
        for feature in self.tagger.nonlocal_features:
            name = type(feature).__name__
            if feature.needs_documents and unit == "sentence":
                raise InputError(f"{name} compares the sentences of a document: set data.unit: document")
            if isinstance(feature, GlobalFeature) and not self.tagger.uses_candidate_lists:
                raise InputError(f"{name} reads candidate lists: use a GlobalReranker")


def check_labels(tagger: Any, data: SequenceDataModule, stage: str) -> None:
    """Raise InputError for incomplete or unknown labels; warn of those that occur only in evaluation."""
    for split in SPLITS if stage == "fit" else (stage.replace("validate", "dev"),):
        if data.has(split) and is_incomplete(corpus := data.corpus(split)):
            place = corpus.where(corpus.columns[ALLOWED].index(first_label_set(corpus)))
            if split != "train":
                raise InputError(f"{place}: incomplete labels cannot be evaluated; give a {split} file without sets")
            tagger.requirements.check_incomplete(place)
    for split in ("train", "dev") if stage == "fit" else ():
        if data.has(split):
            check_known_labels(data.corpus(split), tagger.labels)
    evaluated = {"fit": "test", "validate": "dev", "test": "test"}.get(stage)
    if evaluated is not None and data.has(evaluated):
        warn_unknown_labels(data.corpus(evaluated), tagger.labels)


def check_processes(tagger: Any, trainer: pl.Trainer) -> None:
    """Raise InputError for a trainer with several processes that cannot train the tagger together."""
    if trainer.world_size == 1:
        return
    if not tagger.supports_distributed:
        raise InputError(f"{type(tagger).__name__} cannot be trained by several processes: set trainer.devices: 1")
    processors = os.cpu_count() or 1
    if isinstance(trainer.accelerator, CPUAccelerator) and trainer.num_devices > max(2, processors):
        raise InputError(f"trainer.devices is {trainer.num_devices}, but there are {processors} processors")
    if not starts_commands(trainer.strategy):
        raise InputError("training with several processes requires trainer.strategy: ddp")
