"""What all taggers do alike: learn their sizes, label, be evaluated and resumed.

Labels and numbers of mini-batches as those of a corpus.

Evaluation mode for a block, in which modules such as dropout do not act.
"""

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor, nn

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.normalise import check_known_labels, warn_unknown_labels
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.encoded import EncodedCorpus
from structperc.datamodules.sampler import LengthBatchSampler, batches_seen, mark_unfinished_epoch
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import Evaluation
from structperc.metrics.segments import check_beta
from structperc.predictor import Prediction, Predictor
from structperc.ragged import Ragged
from structperc.structures import Batch, padded_places
from structperc.taggers.callbacks import EvaluationWeights, PlateauScheduler, RandomStateCheckpoint, check_callbacks
from structperc.taggers.checkpoints import check_vocabulary, use_evaluation_weights
from structperc.taggers.contract_checks import check_contracts, check_options
from structperc.taggers.saving import SavedTagger
from structperc.taggers.sequential_learning import ParameterAveraging


class LabelSequence(NamedTuple):
    """One labelling of a sentence, its score and, from likelihood-trained models, its log-probability."""

    labels: list[str]
    score: float
    log_probability: float | None


def inference_batch_size(corpus: Corpus) -> int:
    """Return how many sequences to label at a time: 64, or more short ones, where the cost of each call would count."""
    return max(64, 2**12 * len(corpus) // max(1, corpus.tokens))


def flat_labels(corpus: Corpus, labels: LabelSet, parts: Iterable[tuple[Tensor, ...]]) -> list[str]:
    """Return the label names of all N tokens of a corpus, in its order.

    `parts` are (rows (B,), labels (B, T), ...) of mini-batches that cover the corpus.
    """
    return labels.decode(flat_values(corpus, ((rows, best) for rows, best, *_ in parts)))


def flat_values(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]]) -> np.ndarray:
    """Return the integer of each of the N tokens of a corpus, in its order; (N,) int64.

    `parts` are (rows (B,), values (B, T)) of mini-batches that cover it.
    """
    return _flat(corpus, parts, np.zeros(corpus.tokens, np.int64))


def flat_numbers(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]]) -> np.ndarray:
    """Return the number of each of the N tokens of a corpus, as `flat_values` does for integers; (N,) float64."""
    return _flat(corpus, parts, np.zeros(corpus.tokens))


def _flat(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]], flat: np.ndarray) -> np.ndarray:
    starts, lengths = torch.from_numpy(corpus.starts[:-1]), torch.from_numpy(corpus.lengths)
    for rows, values in parts:
        own = rows.cpu()
        places, real = padded_places(starts[own], lengths[own])
        flat[places[real].numpy()] = values[:, : real.shape[1]].cpu()[real].numpy()
    return flat


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Keep a module and all its parts in evaluation mode within the block; afterwards each is as it was.

    Trainers leave their modules in training mode when they are done.
    """
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


class BaseTagger(SavedTagger, Predictor):
    """Base of taggers: sequences are read through feature templates and get one label per token.

    A subclass gives what is abstract here, and training_step and configure_optimizers. What is not abstract is final.

    Args:
        features: templates and resources; their index is built from the training data. None: there are none.
        beta: of the F score by which models are looked at, see `metrics.segments`.
    """

    full_batch = False  # whether the optimizer of this epoch makes one step per epoch
    supports_distributed = False  # whether several processes may share its training
    epoch_summary = ""  # what its last epoch took, for the log

    def __init__(self, features: FeatureExtractor | None, beta: float = 1.0) -> None:
        super().__init__(features)
        check_beta(beta)
        self.beta = beta

    # -- what a tagger is ------------------------------------------------------------------------------------

    @abstractmethod
    def decode(self, batch: Batch) -> Tensor:
        """Return the best labels (B, T) int64 of each sequence of a batch."""

    @abstractmethod
    def confidences(self, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities (B, T) of labels (B, T) int64, and of the segment that each token is in.

        The latter are NaN outside of segments. Raises InputError for taggers without probabilities.
        """

    @abstractmethod
    def decode_validation(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the best labels (B, T) int64 of batch number `batch_idx` of the development data.

        Batches have the same numbers in every epoch of a fit, so that work of an earlier epoch may be kept.
        """

    @abstractmethod
    def training_error(self) -> float:
        """Return the share of the training data decided wrongly in this epoch, NaN where it is not known."""

    @abstractmethod
    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return what encoders read of a corpus; taggers of feature templates return an empty list."""

    @abstractmethod
    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, and create the weights."""

    @abstractmethod
    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError for data that this tagger cannot be trained with (stage "fit") or evaluated with."""

    @abstractmethod
    def check_unit(self, unit: str) -> None:
        """Raise InputError if sequences of this unit, "sentence" or "document", are not what the tagger is for."""

    @abstractmethod
    def predict_batch(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the best labels (B, T) int64, then further tensors (B, T) that `add_columns` makes columns of."""

    @abstractmethod
    def add_columns(self, corpus: Corpus, parts: Iterable[tuple[Tensor, ...]]) -> Corpus:
        """Return the corpus with further columns, made of what `predict_step` gave for all of it, if there are any."""

    @abstractmethod
    def finalize(self) -> None:
        """Do what remains to be done when training is over, before the tagger is saved."""

    @abstractmethod
    def extra_vocabulary(self) -> dict[str, Any]:
        """Return what weights must agree on beside labels and features, as plain JSON types by name."""

    # -- new text --------------------------------------------------------------------------------------------

    @torch.no_grad()
    def predict(self, corpus: Corpus, confident: bool = False) -> Prediction:
        """Return the labels of all tokens of a corpus, in its order; `confident` adds their probabilities."""
        labels, tokens, segments = [], [], []
        for batch in self.batches(corpus, inference_batch_size(corpus)):
            best = self.decode(batch)
            labels.append((batch.rows, best))
            if confident:
                sure = self.confidences(batch, best)
                tokens.append((batch.rows, sure[0]))
                segments.append((batch.rows, sure[1]))
        names = flat_labels(corpus, self.labels, labels)
        if not confident:
            return Prediction(names, None, None)
        return Prediction(names, flat_numbers(corpus, tokens), flat_numbers(corpus, segments))

    def batches(self, corpus: Corpus, batch_size: int = 64) -> Iterator[Batch]:
        """Yield mini-batches of a corpus on the tagger's device, longest sequences first; none if there is no token.

        The tagger is in evaluation mode until the last batch was taken.
        """
        if not corpus.tokens:
            return
        rows = self.encode(corpus)
        with evaluation_mode(self):
            for order in LengthBatchSampler(corpus.lengths, batch_size, shuffle=False):
                yield self.transfer_batch_to_device(rows[order], self.device, 0)

    # -- sizes and names -------------------------------------------------------------------------------------

    def gold_labels(self, corpus: Corpus) -> LabelSet:
        """Return the labels by which gold of a corpus is numbered: the tagger's, then those it has not learned."""
        return self.labels.extended(corpus.numbered("label").distinct) if "label" in corpus.columns else self.labels

    def encode(self, corpus: Corpus) -> EncodedCorpus:
        """Return a corpus as arrays, with the numbers of this tagger's features and `gold_labels`."""
        return EncodedCorpus(corpus, self.features, self.gold_labels(corpus), self.inputs(corpus))

    def encode_split(self, corpus: Corpus) -> EncodedCorpus:
        """Return a split of the trainer's data as `encode` does; its arrays are where the data keep them."""
        data: SequenceDataModule = self.trainer.datamodule  # type: ignore[attr-defined]
        return EncodedCorpus(corpus, self.features, self.gold_labels(corpus), self.inputs(corpus), data.store.arrays)

    def setup(self, stage: str) -> None:
        """Learn vocabulary and sizes from the training data unless they are known; encode what the stage reads."""
        data: SequenceDataModule = self.trainer.datamodule  # type: ignore[attr-defined]
        self.check_data(data, stage)
        if stage == "fit":
            self.check_processes(self.trainer)
            self.card = None  # what it says of scores will not hold
        self.check_unit(data.unit)
        if stage == "fit":
            check_options(self, self.features)
        if not self.fitted:
            self.unit, self.training_files = data.unit, data.training_files()
            self.build_vocabulary(data)
        self._check_labels(data, stage)
        if stage == "fit":
            check_contracts(self, len(self.labels))
        data.encode(self.encode_split, stage)

    def _check_labels(self, data: SequenceDataModule, stage: str) -> None:
        """Refuse labels that training lacks where they are trained with, and name those that are evaluated on."""
        for split in ("train", "dev") if stage == "fit" else ():
            if data.has(split):
                check_known_labels(data.corpus(split), self.labels)
        evaluated = {"fit": "test", "validate": "dev", "test": "test"}.get(stage)
        if evaluated is not None and data.has(evaluated):
            warn_unknown_labels(data.corpus(evaluated), self.labels)

    def check_processes(self, trainer: pl.Trainer) -> None:
        """Raise InputError if this trainer has several processes that cannot train the tagger together."""
        if trainer.world_size == 1:
            return
        if not self.supports_distributed:
            raise InputError(f"{type(self).__name__} is trained by one process: set trainer.devices: 1")
        processors = os.cpu_count() or 1
        if isinstance(trainer.accelerator, CPUAccelerator) and trainer.num_devices > max(2, processors):
            raise InputError(f"trainer.devices is {trainer.num_devices}, but there are {processors} processors")
        start = getattr(trainer.strategy, "_start_method", "none")
        if start != "popen":  # processes that end with the training take the averages of the weights with them
            raise InputError("trainer.strategy: processes train together with ddp alone; set trainer.strategy: ddp")

    # -- what is watched -------------------------------------------------------------------------------------

    def on_validation_epoch_start(self) -> None:
        """Begin a new evaluation, whose counts are zero."""
        self._begin_evaluation("dev")

    def on_test_epoch_start(self) -> None:
        """Begin a new evaluation, whose counts are zero."""
        self._begin_evaluation("test")

    def _begin_evaluation(self, split: str) -> None:
        data: SequenceDataModule = self.trainer.datamodule  # type: ignore[attr-defined]
        labels = self.gold_labels(data.corpus(split)) if data.has(split) else self.labels
        self.evaluation = Evaluation(labels, self.beta).to(self.device)

    def validation_step(self, batch: Batch, batch_idx: int = 0) -> None:
        """Label a batch and add its right and wrong labels to the counts of the evaluation."""
        self.evaluation.update(self.decode_validation(batch, batch_idx), batch.gold, batch.lengths, batch.sentences)

    test_step = validation_step

    def on_validation_epoch_end(self) -> None:
        """Log dev/score (F1, or accuracy without segments) and the rest of the evaluation."""
        self._report("dev")

    def on_test_epoch_end(self) -> None:
        """Log test/score and the rest of the evaluation."""
        self._report("test")

    def _report(self, split: str) -> None:
        for name, value in self.evaluation.compute().items():
            self.log(f"{split}/{name}", value, prog_bar=name == "score")

    def predict_step(self, batch: Batch, batch_idx: int = 0) -> tuple[Tensor, ...]:
        """Return the rows (B,) of the corpus that the batch holds and what is `predict_batch` for them."""
        return batch.rows, *self.predict_batch(batch)

    def configure_callbacks(self) -> list[pl.Callback]:
        """Return the callbacks for mixtures of processes, served weights, random states in checkpoints, and plateaus.

        Raises InputError for callbacks of the trainer that do not work with taggers.
        """
        check_callbacks(self.trainer.callbacks)  # type: ignore[attr-defined]
        return [ParameterAveraging(), EvaluationWeights(), RandomStateCheckpoint(), PlateauScheduler()]

    def on_train_start(self) -> None:
        """Begin the epoch within which a resumed run goes on, for which the trainer calls no `on_train_epoch_start`."""
        if batches_seen(self.trainer) is not None:
            self.on_train_epoch_start()

    # -- checkpoints -----------------------------------------------------------------------------------------

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add to a checkpoint what its weights mean, see `vocabulary`; an epoch cut short is one that goes on."""
        checkpoint["vocabulary"] = self.vocabulary()
        mark_unfinished_epoch(checkpoint, self.trainer)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse a checkpoint of other labels or features; outside of training take its served weights."""
        check_vocabulary(checkpoint, self.vocabulary())
        if self.trainer.state.fn != TrainerFn.FITTING:
            use_evaluation_weights(checkpoint, [name for name, _ in self.named_parameters()])

    def vocabulary(self) -> dict[str, Any]:
        """Return label names, scheme, number of features and whatever else weights must agree on."""
        features = [self.features.n_node_features, self.features.n_edge_features]
        own = {"labels": list(self.labels.names), "scheme": self.labels.scheme, "features": features}
        return {**own, **self.extra_vocabulary()}
