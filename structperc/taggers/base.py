"""Base class of taggers: models with the hooks of a Lightning trainer for data, evaluation and checkpoints."""

import json
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import pytorch_lightning as pl
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor

from structperc.constructors import class_path_of, parameters_of
from structperc.data.corpus import Corpus
from structperc.data.weights import WEIGHT
from structperc.datamodules.base import BatchForm, SequenceDataModule
from structperc.datamodules.encoded import EncodedCorpus
from structperc.datamodules.sampler import batches_seen, mark_unfinished_epoch
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics.f_measure import check_beta
from structperc.metrics.torchmetrics_classes import Evaluation
from structperc.models.base import Model
from structperc.models.checkpoint_files import ARRAYS, CONFIG, MODEL, check_resumable, check_vocabulary
from structperc.models.model_format import FORMAT
from structperc.optim.base import training_protocol
from structperc.structures import Batch
from structperc.taggers.callbacks import EvaluationWeights, PlateauScheduler, RandomStateCheckpoint, check_callbacks
from structperc.taggers.contract_checks import check_contracts, check_options
from structperc.taggers.data_requirements import DataRequirements, check_labels, check_processes
from structperc.taggers.hyperparameters import hyperparameters
from structperc.taggers.sequential_learning import ParameterAveraging, sync_weights


class BaseTagger(Model, pl.LightningModule):
    """Base class of taggers: models that a Lightning trainer trains with a data module.

    A subclass defines the abstract methods, `training_step` and `configure_optimizers`; the other hooks have defaults.

    Args:
        features: Templates and resources; the feature index is built from the training data. None: no features.
        beta: Weight of recall in the F score by which models are selected, see `metrics.f_measure`.

    Example:
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.scorers import SparseLinear
        >>> from structperc.taggers import Tagger
        >>> tagger = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), PerceptronLoss())
        >>> isinstance(tagger, BaseTagger), tagger.fitted  # features and labels come from the data of its training
        (True, False)
    """

    supports_distributed = False  # True if several processes can train it together
    epoch_summary = ""  # log text of the last epoch

    def __init__(self, features: FeatureExtractor | None, beta: float = 1.0) -> None:
        super().__init__(features)
        check_beta(beta)
        self.beta = beta
        self.requirements = DataRequirements(self)
        self.logged_options: dict[str, Any] = {}  # classes and options of all parts, once training begins

    @abstractmethod
    def training_error(self) -> float:
        """Return the share of wrong decisions on the training data in this epoch, NaN if unknown."""

    @property
    def full_batch(self) -> bool:
        """True if the optimizer makes one step in this epoch."""
        return False

    @property
    def batch_form(self) -> BatchForm:
        """The form of the mini-batches that the tagger learns from."""
        return "padded"

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, and create the weights."""
        self.features = data.fit_features(self.features)
        self.allocate(data.label_set())

    def extra_vocabulary(self) -> dict[str, Any]:
        """Return further entries of `vocabulary`, as plain JSON types by name."""
        return {}

    def decode_validation(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the best labels (B, T) int64 of batch number `batch_idx` of the development data.

        Batches have the same numbers in every epoch of a fit, so that results of an earlier epoch may be reused.
        """
        return self.decode(batch)

    def finalize(self) -> None:
        """Hook after training, before the tagger is saved."""

    def encode_split(self, corpus: Corpus) -> EncodedCorpus:
        """Return a split of the trainer's data as `encode` does, with arrays from the store of the data module."""
        arrays = self._data.store.arrays
        inputs = self.inputs(corpus)
        counts = self.piece_counts(inputs)
        return EncodedCorpus(corpus, self.features, self.gold_labels(corpus), inputs, arrays, counts)

    @property
    def _data(self) -> SequenceDataModule:
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if not isinstance(data, SequenceDataModule):
            raise InputError(
                "a tagger reads a data module of structperc, not loaders: call fit(tagger, datamodule=data)"
            )
        return data

    def setup(self, stage: str) -> None:
        """Build the vocabulary from the training data unless there is one; encode the data of the stage."""
        data = self._data
        self.requirements.check_data(data, stage)
        if stage == "fit":
            check_processes(self, self.trainer)
            self.card = None  # it describes an earlier training
        self.requirements.check_unit(data.unit)
        if stage == "fit":
            check_options(self, self.features)
        if not self.fitted:
            self.unit, self.training_files = data.unit, data.training_files()
            self.build_vocabulary(data)
        check_labels(self, data, stage)
        if stage == "fit" and WEIGHT in data.corpus("train").columns:
            self.requirements.check_weights(data.corpus("train"))
        if stage == "fit":
            check_contracts(self, len(self.labels))
        data.encode(self.encode_split, stage)

    @property
    def attached_trainer(self) -> pl.Trainer | None:
        """The trainer that trains or evaluates the tagger; None outside of one, where `trainer` raises."""
        try:
            return self.trainer
        except RuntimeError:
            return None

    def on_validation_epoch_start(self) -> None:
        """Reset the scores of the development data, or of the test data."""
        data, split = self._data, "test" if self.trainer.testing else "dev"
        labels = self.gold_labels(data.corpus(split)) if data.has(split) else self.labels
        self.evaluation = Evaluation(labels, self.beta).to(self.device)

    on_test_epoch_start = on_validation_epoch_start

    def validation_step(self, batch: Batch, batch_idx: int = 0) -> None:
        """Label a batch and count right and wrong labels."""
        self.evaluation.update(self.decode_validation(batch, batch_idx), batch.gold, batch.lengths, batch.sentences)

    test_step = validation_step

    def on_validation_epoch_end(self) -> None:
        """Log dev/score or test/score (F1, or accuracy without segments) and the other scores."""
        split = "test" if self.trainer.testing else "dev"
        for name, value in self.evaluation.compute().items():
            self.log_value(f"{split}/{name}", value, prog_bar=name == "score")

    on_test_epoch_end = on_validation_epoch_end

    def predict_step(self, batch: Batch, batch_idx: int = 0) -> list[list[str]]:
        """Return the label names of each sequence of a batch."""
        pairs = zip(self.decode(batch).tolist(), batch.lengths.tolist(), strict=True)
        return [self.labels.decode(path[:length]) for path, length in pairs]

    def configure_callbacks(self) -> list[pl.Callback]:
        """Return the callbacks that taggers need and that the trainer does not have yet, from an earlier call.

        Raises InputError for unsupported callbacks of the trainer.
        """
        present = self.trainer.callbacks  # type: ignore[attr-defined]
        check_callbacks(present)
        needed = (ParameterAveraging, EvaluationWeights, RandomStateCheckpoint, PlateauScheduler)
        return [kind() for kind in needed if not any(type(one) is kind for one in present)]

    def on_fit_start(self) -> None:
        """Set the hyperparameters that loggers get: the classes and options of all parts and of the optimizer."""
        optimizers, schedules = self.trainer.optimizers, [one.scheduler for one in self.trainer.lr_scheduler_configs]
        self.logged_options = hyperparameters(self, next(iter(optimizers), None), next(iter(schedules), None))
        self.save_hyperparameters(self.logged_options)

    def on_train_start(self) -> None:
        """Begin the epoch within which a run is resumed: the trainer calls no `on_train_epoch_start` for it."""
        if batches_seen(self.trainer) is not None:
            self.on_train_epoch_start()

    def log_value(self, name: str, value: Any, prog_bar: bool = False) -> None:
        """Log a value of an epoch, which is the same in all processes."""
        if not self.trainer.barebones:  # which would warn
            self.log(name, value, prog_bar=prog_bar, sync_dist=True, reduce_fx="max")  # without the warning of `log`

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Write the model and its evaluation weights into a checkpoint; mark an epoch that was cut short as unfinished.

        Training weights are in the states of the optimizers. Processes that learn independently are synced first.
        """
        trainer = self.trainer
        if sync_weights(self) and "optimizer_states" in checkpoint:  # copies of the numbers of steps
            checkpoint["optimizer_states"] = [trainer.strategy.optimizer_state(one) for one in trainer.optimizers]
        for optimizer in trainer.optimizers:
            weights = training_protocol(optimizer).evaluation_state()
            named = self.named_parameters(remove_duplicate=False)
            checkpoint["state_dict"].update({name: weights[p] for name, p in named if p in weights})
        checkpoint["vocabulary"] = self.vocabulary()
        entries = {"format": FORMAT, **self.configuration(), "class": class_path_of(type(self))}
        config = json.dumps(entries, ensure_ascii=False)  # slow as Python objects
        checkpoint[MODEL] = {CONFIG: config, ARRAYS: self.feature_tensors()}
        others = {name: value for name, value in self.hparams.items() if name not in self.logged_options}
        if others:
            checkpoint[self.CHECKPOINT_HYPER_PARAMS_KEY] = others
        else:  # the model has them; LightningCLI would take them for options of its own
            checkpoint.pop(self.CHECKPOINT_HYPER_PARAMS_KEY, None)
            checkpoint.pop(self.CHECKPOINT_HYPER_PARAMS_NAME, None)
        mark_unfinished_epoch(checkpoint, trainer)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Raise InputError for a checkpoint of other labels or features, or without what a training needs."""
        check_vocabulary(checkpoint, self.vocabulary())
        if self.trainer.state.fn == TrainerFn.FITTING:
            check_resumable(checkpoint)

    def vocabulary(self) -> dict[str, Any]:
        """Return label names, scheme, number of features and all other values that determine the sizes of weights."""
        features = [self.features.n_node_features, self.features.n_edge_features]
        sizes = {"labels": list(self.labels.names), "scheme": self.labels.scheme, "features": features}
        return {**sizes, **self.extra_vocabulary()}

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]  # hyperparameters are part of the model
        cls,
        checkpoint_path: str | Path,
        map_location: Any = None,
        hparams_file: None = None,
        strict: bool | None = None,
        weights_only: bool | None = None,
        trusted: Iterable[str] = (),
        **options: Any,
    ) -> Self:
        """Return the tagger of a trainer's checkpoint, as `load` does: parts, vocabulary and evaluation weights.

        Args:
            checkpoint_path: Checkpoint of a trainer.
            map_location: Device of the weights; default: the CPU.
            hparams_file: Must be None: a checkpoint has all options.
            strict: Must not be False: weights always fit.
            weights_only: Any value: reading a checkpoint runs no code.
            trusted: Names of modules with user-defined parts.
            options: Options of the constructor that are not part of a model, for further training, such as optimizer.

        Raises:
            InputError: See `load`; or an option that is unknown, or that is part of the model.
        """
        if hparams_file is not None or strict is False:
            raise InputError("load_from_checkpoint: a checkpoint has all options; leave out hparams_file and strict")
        tagger = cls.load(checkpoint_path, "cpu" if map_location is None else str(map_location), trusted)
        fixed = {"features", *tagger.description()}
        for name, value in options.items():
            if name in fixed or name not in parameters_of(type(tagger)):
                raise InputError(f"load_from_checkpoint: {name} is not an option of training; leave it out")
            setattr(tagger, name, value)
        return tagger
