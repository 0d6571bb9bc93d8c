"""What all taggers do alike: learn their sizes, label, be evaluated, be saved and resumed."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor

from structperc.batching.encoded import EncodedCorpus
from structperc.batching.sequence_data import SequenceData
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.features import FeatureExtractor, Ragged
from structperc.metrics import Evaluation
from structperc.metrics.f_measure import check_gamma
from structperc.structures import Batch
from structperc.taggers.averaging import AveragedWeights
from structperc.taggers.builder import Builder
from structperc.taggers.checkpoints import check_vocabulary, serve
from structperc.taggers.inference import Inference
from structperc.taggers.random_states import RandomStates
from structperc.taggers.store import Store


class SequenceTagger(pl.LightningModule, Inference, Store, ABC):
    """Base of taggers: sequences are read through feature templates and get one label per token.

    A subclass gives `decode` and `allocate`, training_step and configure_optimizers, and for saved models
    `description` and `from_description`.

    Args:
        features: templates and resources; their index is built from the training data. None: there are none.
        gamma: of the F score by which models are looked at, see `metrics.f_measure`.
    """

    labels: LabelSet
    full_batch = False  # whether the optimizer of this epoch makes one step per epoch
    trained_together = False  # whether several processes may share its training

    def __init__(self, features: FeatureExtractor | None, gamma: float = 1.0) -> None:
        super().__init__()
        check_gamma(gamma)
        self.features, self.gamma = features or FeatureExtractor(), gamma
        self.fitted = False
        self.unit = "sentence"

    @abstractmethod
    def decode(self, batch: Batch) -> Tensor:
        """-> best labels (B, T)."""

    @abstractmethod
    def allocate(self, labels: LabelSet) -> None:
        """Create weights for these labels and the (fitted) features."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Class and options of every part but the features, as plain JSON types."""

    @classmethod
    @abstractmethod
    def from_description(
        cls, description: dict[str, Any], features: FeatureExtractor, build: Builder
    ) -> "SequenceTagger":
        """The tagger, without weights, that `description` described; `build` makes its parts. InputError as of that."""

    def settle(self) -> None:
        """What is to be done when training is over, before the tagger is saved; here nothing."""

    # -- sizes and names -------------------------------------------------------------------------------------

    def encode(self, corpus: Corpus) -> EncodedCorpus:
        """Strings -> arrays, with this tagger's features and labels."""
        return EncodedCorpus(corpus, self.features, self.labels, self.inputs(corpus))

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """What encoders read of a corpus; taggers of feature templates have none."""
        return []

    def setup(self, stage: str) -> None:
        """Learn vocabulary and sizes from the training data unless they are known; encode what the stage reads."""
        data: SequenceData = self.trainer.datamodule  # type: ignore[attr-defined]
        if stage == "fit":
            self.check_processes(self.trainer)
        self.check_unit(data.unit)
        if not self.fitted:
            self.unit = data.unit
            self.learn_sizes(data)
        data.encode(self.encode, stage)

    def learn_sizes(self, data: SequenceData) -> None:
        """Features and labels are those of the training data."""
        train = data.corpus("train")
        self.features.fit(train)
        self.allocate(LabelSet.from_corpus(train.columns["label"], data.scheme))

    def check_processes(self, trainer: pl.Trainer) -> None:
        """InputError where this trainer has several processes, and they cannot train the tagger together."""
        if trainer.world_size == 1:
            return
        if not self.trained_together:
            raise InputError(f"{type(self).__name__} is trained by one process: set trainer.devices: 1")
        processors = os.cpu_count() or 1
        if isinstance(trainer.accelerator, CPUAccelerator) and trainer.num_devices > max(2, processors):
            raise InputError(f"trainer.devices is {trainer.num_devices}, but there are {processors} processors")
        start = getattr(trainer.strategy, "_start_method", "none")
        if start != "popen":  # processes that end with the training take the averages of the weights with them
            raise InputError("trainer.strategy: processes train together with ddp alone; set trainer.strategy: ddp")

    def check_unit(self, unit: str) -> None:
        """InputError where sequences of this unit, sentence or document, are not what the tagger is for."""

    # -- what is watched -------------------------------------------------------------------------------------

    def on_validation_epoch_start(self) -> None:
        """A fresh evaluation."""
        self.evaluation = Evaluation(self.labels, self.gamma).to(self.device)

    on_test_epoch_start = on_validation_epoch_start

    def validation_step(self, batch: Batch, batch_idx: int = 0) -> None:
        """Counts for the scores."""
        self.evaluation.update(self.decode(batch), batch.gold, batch.lengths, batch.sentences)

    test_step = validation_step

    def on_validation_epoch_end(self) -> None:
        """Logs dev/score (F1, or accuracy without segments) and the rest of the evaluation."""
        self._report("dev")

    def on_test_epoch_end(self) -> None:
        """Logs test/score and the rest of the evaluation."""
        self._report("test")

    def _report(self, split: str) -> None:
        for name, value in self.evaluation.compute().items():
            self.log(f"{split}/{name}", value, prog_bar=name == "score")

    def predict_step(self, batch: Batch, batch_idx: int = 0) -> tuple[Tensor, ...]:
        """-> rows (B,) of the corpus and their best labels (B, T); what else there is, is for `annotated`."""
        return batch.rows, self.decode(batch)

    def annotated(self, corpus: Corpus, parts: Iterable[tuple[Tensor, ...]]) -> Corpus:
        """The corpus with columns that say more about what `predict_step` gave for all of it; here there are none."""
        return corpus

    def configure_callbacks(self) -> list[pl.Callback]:
        """Served weights are swapped in wherever the tagger is looked at; random numbers go on in a resumed run."""
        return [AveragedWeights(), RandomStates()]

    # -- checkpoints -----------------------------------------------------------------------------------------

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds what the weights mean: label names and number of features."""
        checkpoint["vocabulary"] = self.vocabulary()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuses weights of other labels or features; outside of training takes the served weights."""
        check_vocabulary(checkpoint, self.vocabulary())
        if self.trainer.state.fn != TrainerFn.FITTING:
            serve(checkpoint, [name for name, _ in self.named_parameters()])

    def vocabulary(self) -> dict[str, Any]:
        """Label names, scheme and number of features: what weights must agree on."""
        features = [self.features.n_node_features, self.features.n_edge_features]
        return {"labels": list(self.labels.names), "scheme": self.labels.scheme, "features": features}
