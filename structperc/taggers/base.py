"""Base class of all taggers: data, prediction, evaluation, checkpoints, saving and loading."""

import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor, nn

from structperc.builder import Builder
from structperc.chain.minimum_risk import ProbableSegments
from structperc.constructors import class_path_of, parameters_of
from structperc.data.corpus import Corpus
from structperc.data.forbidden_spans import forbidden_spans
from structperc.data.label_sets import ALLOWED, first_label_set, is_incomplete
from structperc.data.labels import LabelSet
from structperc.data.normalise import check_known_labels, warn_unknown_labels
from structperc.data.output import atomic_folder, write_errors
from structperc.data.possible_labels import check_predicted, possible_masks
from structperc.data.read_options import check_training_files
from structperc.data.tag_schemes import Span, encode_spans
from structperc.data.weights import WEIGHT, without_weights
from structperc.datamodules.base import SPLITS, BatchForm, SequenceDataModule
from structperc.datamodules.encoded import MAX_PLACES, EncodedCorpus
from structperc.datamodules.sampler import LengthBatchSampler, batches_seen, mark_unfinished_epoch
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.lightning_internals import starts_commands
from structperc.metrics import Evaluation
from structperc.metrics.segments import check_beta
from structperc.nn.inputs import padded_states
from structperc.optim import training_protocol
from structperc.predictor import Prediction, Predictor, ProbableSpan
from structperc.predictor.base import check_min_probability
from structperc.ragged import Ragged
from structperc.structures import Batch, padded_places
from structperc.taggers.callbacks import EvaluationWeights, PlateauScheduler, RandomStateCheckpoint, check_callbacks
from structperc.taggers.checkpoint_files import (
    ARRAYS,
    CONFIG,
    MODEL,
    check_resumable,
    check_vocabulary,
    read_model,
)
from structperc.taggers.contract_checks import check_contracts, check_options
from structperc.taggers.hub import CARD, download, model_card, push_folder, read_card
from structperc.taggers.hyperparameters import hyperparameters
from structperc.taggers.model_format import (
    FEATURE_PREFIX,
    FORMAT,
    TRAINING_FILES,
    TableType,
    arrays_of_features,
    check_entries,
    model_errors,
)
from structperc.taggers.saving import (
    CRITERION,
    check_weights,
    limit_parameters,
    read_folder,
    saved_tensors,
    write_folder,
)
from structperc.taggers.sequential_learning import ParameterAveraging, sync_weights


class LabelSequence(NamedTuple):
    """A label sequence of a sentence, with its score.

    Args:
        labels: Names of the labels, one for each token.
        score: Total score.
        log_probability: Logarithm of its probability; None if the tagger has scores, but no probabilities.
    """

    labels: list[str]
    score: float
    log_probability: float | None


class BaseTagger(pl.LightningModule, Predictor):
    """Base class of taggers: sequences are read through feature templates and get one label per token.

    A subclass defines the abstract methods, `training_step` and `configure_optimizers`; the other hooks have defaults.
    All taggers are trained by a Lightning trainer with a data module, and are saved and loaded in the same way.

    Args:
        features: Templates and resources; the feature index is built from the training data. None: no features.
        beta: Weight of recall in the F score by which models are selected, see `metrics.segments`.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> SequenceTagger(max_iterations=5).fit(X, y).tagger_.save("model")
        >>> tagger = BaseTagger.load("model")  # whichever class was saved
        >>> type(tagger).__name__, tagger.tag([["Anna", "left"]])
        ('Tagger', [['B-PER', 'O']])
    """

    supports_distributed = False  # True if several processes can train it together
    epoch_summary = ""  # log text of the last epoch
    labels: LabelSet

    def __init__(self, features: FeatureExtractor | None, beta: float = 1.0) -> None:
        super().__init__()
        check_beta(beta)
        self.beta = beta
        self.features = features or FeatureExtractor()
        self.fitted = False  # True once the labels are set and the weights exist
        self.unit = "sentence"  # or "document"
        self.training_files: Mapping[str, Any] = {}  # reading options, see `data.read_options`; empty: unknown
        self.card: str | None = None  # text of README.md in saved models; None: a default one
        self.logged_options: dict[str, Any] = {}  # classes and options of all parts, once training begins

    @abstractmethod
    def allocate(self, labels: LabelSet) -> None:
        """Create weights for these labels and the (fitted) features."""

    @abstractmethod
    def decode(self, batch: Batch) -> Tensor:
        """Return the best labels (B, T) int64 of each sequence of a batch."""

    @abstractmethod
    def confidences(self, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the probabilities of labels, of the segments that contain the tokens, and of the label sequences.

        Args:
            batch: A batch.
            labels: (B, T) int64.

        Returns:
            Probabilities of the labels (B, T), and of the segments (B, T), NaN outside of segments, and the
            log-probability of each label given the labels before it (B, T).

        Raises:
            InputError: The tagger has no probabilities.
        """

    def probable_segments(self, batch: Batch, min_probability: float | None) -> ProbableSegments | None:
        """Return all segments with a probability above a number, or those that the tagger finds by itself."""
        return None

    @abstractmethod
    def training_error(self) -> float:
        """Return the share of wrong decisions on the training data in this epoch, NaN if unknown."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return class and options of every part but the features, as plain JSON types."""

    @classmethod
    @abstractmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> Self:
        """Return the tagger of a `description`, without weights. `build` creates its parts, or raises InputError."""

    @property
    def full_batch(self) -> bool:
        """True if the optimizer makes one step in this epoch."""
        return False

    @property
    def batch_form(self) -> BatchForm:
        """The form of the mini-batches that the tagger learns from."""
        return "padded"

    # -- hooks with defaults ---------------------------------------------------------------------------------

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, and create the weights."""
        self.features = data.fit_features(self.features)
        self.allocate(data.label_set())

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of encoders for a corpus; none for taggers of feature templates."""
        return []

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token, (N,) int64; None if tokens are not split.

        `inputs` is a result of `inputs`.
        """
        return None

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError for data that does not suit the tagger in training (stage "fit") or evaluation."""

    def check_incomplete(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the tagger does not learn from incomplete labels."""
        raise InputError(f"{place}: {type(self).__name__} needs complete labels; use a Tagger with CRFLoss")

    def check_weights(self, corpus: Corpus) -> None:
        """Raise InputError if the tagger does not learn from the weights of a corpus, its column `weight`."""
        raise InputError(f"{corpus.name}: {type(self).__name__} has no weights; leave weight out of data.columns")

    def check_unit(self, unit: str) -> None:
        """Raise InputError if the tagger does not support sequences of this unit, "sentence" or "document"."""

    def extra_vocabulary(self) -> dict[str, Any]:
        """Return further entries of `vocabulary`, as plain JSON types by name."""
        return {}

    def decode_validation(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the best labels (B, T) int64 of batch number `batch_idx` of the development data.

        Batches have the same numbers in every epoch of a fit, so that results of an earlier epoch may be reused.
        """
        return self.decode(batch)

    def further_columns(self, corpus: Corpus) -> dict[str, list[str]]:
        """Return columns that are predicted for a corpus besides its labels, by role; none by default."""
        return {}

    def finalize(self) -> None:
        """Hook after training, before the tagger is saved."""

    # -- prediction ------------------------------------------------------------------------------------------

    @torch.no_grad()
    def predict(self, corpus: Corpus, confident: bool = False, min_probability: float | None = None) -> Prediction:
        """Return the labels of all tokens of a corpus, in its order, with probabilities as in `Predictor.predict`."""
        if min_probability is not None:
            check_min_probability(min_probability, self.labels)
        confident = confident or min_probability is not None
        labels, probabilities, with_spans = [], [], min_probability is not None
        spans: list[ProbableSpan] = []
        for batch in self.batches(corpus, inference_batch_size(corpus)):
            best = self.decode(batch)
            labels.append((batch.rows, best))
            if confident:
                probabilities.append((batch.rows, *self.confidences(batch, best)))
            if (found := self.probable_segments(batch, min_probability)) is not None:
                with_spans = True
                spans.extend(corpus_spans(corpus, batch.rows, found, self.labels.type_names))
        prediction = Prediction(flat_labels(corpus, self.labels, labels), None, None)
        check_predicted(corpus, self.labels, prediction.labels)
        if confident:
            columns = ([(rows, each[i]) for rows, *each in probabilities] for i in range(3))
            tokens, segments, logs = (flat_values(corpus, column, float) for column in columns)
            prediction = prediction._replace(tokens=tokens, segments=segments, log_probabilities=logs)
        return prediction.with_spans(corpus, spans, self.labels.scheme) if with_spans else prediction

    def batches(self, corpus: Corpus, batch_size: int = 64) -> Iterator[Batch]:
        """Yield mini-batches of a corpus on the tagger's device, longest sequences first; none without tokens.

        Labels are limited to those of the column `possible`, if there is one (`data.possible_labels`), and segments to
        those that are not in a column `forbidden` (`data.forbidden_spans`). The tagger is in evaluation mode until the
        last batch is taken.
        """
        if not corpus.tokens:
            return
        rows, masks = self.encode(corpus), possible_masks(corpus, self.labels)
        forbidden = forbidden_spans(corpus, self.labels, masks)
        if forbidden is not None:  # scores of pairs of states at each token take memory
            batch_size = max(1, min(batch_size, MAX_PLACES // (forbidden.size**2 * int(corpus.lengths.max()))))
        with evaluation_mode(self):
            for order in LengthBatchSampler(corpus.lengths, batch_size, shuffle=False):
                batch = rows[order]
                if masks is not None:
                    places, real = padded_places(torch.from_numpy(corpus.starts)[order], batch.lengths)
                    batch = batch._replace(possible=torch.from_numpy(masks)[places] | ~real.unsqueeze(2))
                if forbidden is not None:
                    states = [forbidden.states(row) for row in order]
                    batch = batch._replace(states=padded_states(states, batch.sentences.shape[1]))
                yield self.transfer_batch_to_device(batch, self.device, 0)

    # -- vocabulary ------------------------------------------------------------------------------------------

    def gold_labels(self, corpus: Corpus) -> LabelSet:
        """Return the labels that number the gold labels of a corpus: the tagger's, then unknown ones."""
        if "label" not in corpus.columns:
            return self.labels
        unknown = {one.type for one in corpus.dropped} - set(self.labels.type_names)
        further = [encode_spans([Span(kind, 0, 1)], 1, self.labels.scheme)[0] for kind in unknown]
        return self.labels.extended([*corpus.factorize("label").distinct, *further])

    def encode(self, corpus: Corpus) -> EncodedCorpus:
        """Return a corpus as arrays, with the numbers of this tagger's features and `gold_labels`, without weights."""
        corpus = corpus if WEIGHT in self.features.columns else without_weights(corpus)
        return EncodedCorpus(corpus, self.features, self.gold_labels(corpus), self.inputs(corpus))

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
        self.check_data(data, stage)
        if stage == "fit":
            self.check_processes(self.trainer)
            self.card = None  # it describes an earlier training
        self.check_unit(data.unit)
        if stage == "fit":
            check_options(self, self.features)
        if not self.fitted:
            self.unit, self.training_files = data.unit, data.training_files()
            self.build_vocabulary(data)
        self._check_labels(data, stage)
        if stage == "fit" and WEIGHT in data.corpus("train").columns:
            self.check_weights(data.corpus("train"))
        if stage == "fit":
            check_contracts(self, len(self.labels))
        data.encode(self.encode_split, stage)

    def _check_labels(self, data: SequenceDataModule, stage: str) -> None:
        """Raise InputError for incomplete or unknown labels; warn of those that occur only in evaluation."""
        for split in SPLITS if stage == "fit" else (stage.replace("validate", "dev"),):
            if data.has(split) and is_incomplete(corpus := data.corpus(split)):
                place = corpus.where(corpus.columns[ALLOWED].index(first_label_set(corpus)))
                if split != "train":
                    raise InputError(
                        f"{place}: incomplete labels cannot be evaluated; give a {split} file without sets"
                    )
                self.check_incomplete(place)
        for split in ("train", "dev") if stage == "fit" else ():
            if data.has(split):
                check_known_labels(data.corpus(split), self.labels)
        evaluated = {"fit": "test", "validate": "dev", "test": "test"}.get(stage)
        if evaluated is not None and data.has(evaluated):
            warn_unknown_labels(data.corpus(evaluated), self.labels)

    @property
    def attached_trainer(self) -> pl.Trainer | None:
        """The trainer that trains or evaluates the tagger; None outside of one, where `trainer` raises."""
        try:
            return self.trainer
        except RuntimeError:
            return None

    def check_processes(self, trainer: pl.Trainer) -> None:
        """Raise InputError for a trainer with several processes that cannot train the tagger together."""
        if trainer.world_size == 1:
            return
        if not self.supports_distributed:
            raise InputError(f"{type(self).__name__} cannot be trained by several processes: set trainer.devices: 1")
        processors = os.cpu_count() or 1
        if isinstance(trainer.accelerator, CPUAccelerator) and trainer.num_devices > max(2, processors):
            raise InputError(f"trainer.devices is {trainer.num_devices}, but there are {processors} processors")
        if not starts_commands(trainer.strategy):
            raise InputError("training with several processes requires trainer.strategy: ddp")

    # -- evaluation ------------------------------------------------------------------------------------------

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

    # -- checkpoints -----------------------------------------------------------------------------------------

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
        config = json.dumps({"format": FORMAT, **self.configuration()}, ensure_ascii=False)  # slow as Python objects
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

    # -- saved models ----------------------------------------------------------------------------------------

    def save(self, folder: str | Path, table: TableType = "float32") -> None:
        """Write the tagger with its current weights into a folder, which is replaced as a whole or not at all.

        Weights are saved as float32; those of a tagger that was trained in 64 bits are rounded.

        Args:
            folder: Folder of the model.
            table: Type of the feature weights in the file: "float32", "float16" (11 bits per weight) or "int8"
                (multiples of 1/127 of the largest weight of a feature). Loading returns float32 again, rounded.

        Raises:
            InputError: The folder cannot be written, or weights are too large for float16.
        """
        config, tensors = self.to_state()
        text = model_card(config, tensors, self.columns) if self.card is None else self.card
        with write_errors(folder), atomic_folder(Path(folder)) as fresh:
            write_folder(fresh, config, tensors, table)
            (fresh / CARD).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", trusted: Iterable[str] = ()) -> Self:
        """Return a saved tagger of this class, or of a class derived from it, ready to tag.

        Only code of this library and of the `trusted` modules runs, and only the two files of the folder and its card,
        or the checkpoint, are read.

        Args:
            path: Folder of a saved model, or checkpoint of a trainer.
            device: Device of the weights.
            trusted: Names of modules with user-defined parts.

        Raises:
            InputError: The folder has no model, a damaged one, one of another format or class, or one with classes of
                modules that are not trusted; likewise for a checkpoint.
        """
        place = Path(path)
        checkpoint = read_model(place) if place.is_file() else None
        with model_errors(place):
            config, tensors = checkpoint or read_folder(place, device)
            tagger = cls.from_state(config, tensors, Builder(trusted))
            tagger.to(device).card = read_card(place)
        return tagger

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

    def to_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the saved state of the tagger: plain JSON types, and tensors by name."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in saved_tensors(self).items()}
        return self.configuration(), {**tensors, **self.feature_tensors()}

    def configuration(self) -> dict[str, Any]:
        """Return labels, options of all parts and strings of the features, as plain JSON types."""
        return {
            "class": class_path_of(type(self)),
            "labels": list(self.labels.names),
            "scheme": self.labels.scheme,
            "unit": self.unit,
            TRAINING_FILES: dict(self.training_files),
            **self.description(),
            "features": self.features.state_dict_json(),
        }

    def feature_tensors(self) -> dict[str, Tensor]:
        """Return the arrays of the features by name, as tensors."""
        arrays = self.features.state_arrays().items()
        return {FEATURE_PREFIX + name: torch.from_numpy(array) for name, array in arrays}

    @classmethod
    def from_state(cls, config: dict[str, Any], tensors: dict[str, Tensor], build: Builder) -> Self:
        """Return a tagger of this class, or of a derived one, from a `to_state`, ready to tag.

        Args:
            config: Plain JSON types.
            tensors: Tensors by name.
            build: Creates the parts.

        Raises:
            InputError: The class is another one, an entry is invalid, or a tensor does not fit.
        """
        found: Any = build.find(config["class"], BaseTagger, "class") if "class" in config else cls
        if not issubclass(found, cls):
            raise InputError(f"this is a {found.__name__}, not a {cls.__name__}; load it with {found.__name__}.load")
        check_entries(config)
        arrays = {name: tensor.cpu().numpy() for name, tensor in arrays_of_features(tensors).items()}
        weights = {name: t for name, t in tensors.items() if not name.startswith(FEATURE_PREFIX)}
        features = FeatureExtractor.from_state(config["features"], arrays, build)

        kinds = {t.dtype for t in weights.values() if t.is_floating_point()}  # float64 after training in 64 bits

        def without_weights() -> Any:
            tagger = found.from_description(config, features, build)
            tagger.allocate(LabelSet(tuple(config["labels"]), config["scheme"]))
            return tagger.to(*kinds) if len(kinds) == 1 else tagger

        with torch.device("meta"), limit_parameters(len(weights)):  # sizes without memory: wrong ones cost nothing
            check_weights(without_weights(), weights)
        tagger = without_weights()
        tagger.unit, tagger.training_files = config["unit"], check_training_files(config.get(TRAINING_FILES, {}))
        own = {name: t for name, t in tagger.state_dict().items() if name.startswith(CRITERION)}
        tagger.load_state_dict({**own, **weights})
        return tagger.eval()

    def save_pretrained(
        self, save_directory: str | Path, *, repo_id: str | None = None, push_to_hub: bool = False, **options: Any
    ) -> str | None:
        """Save as `save` does and optionally push to the hub.

        Args:
            save_directory: Folder of the model.
            repo_id: Repository of the hub; default: the name of the folder.
            push_to_hub: Upload the model.
            options: Options of `push_to_hub`.

        Returns:
            The result of `push_to_hub`, or None.
        """
        self.save(save_directory)
        return self.push_to_hub(repo_id or Path(save_directory).name, **options) if push_to_hub else None

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Upload the tagger, with its current weights and its card, to the hub; return the address of the commit.

        Args:
            repo_id: Repository, such as "me/tagger"; it is created if it does not exist.
            options: Options of `push_folder`: private, token, licence, language, branch, commit_message and create_pr.

        Raises:
            InputError: See `push_folder`.
        """
        with TemporaryDirectory() as folder:
            self.save(Path(folder) / "model")
            return push_folder(Path(folder) / "model", repo_id, **options)

    @classmethod
    def from_pretrained(
        cls, model: str | Path, *, revision: str | None = None, trusted: Iterable[str] = (), **options: Any
    ) -> Self:
        """Return a saved tagger as `load` does, from a folder or from the hub.

        Args:
            model: A folder, or an id of the hub; only the two files and the card are downloaded.
            revision: Branch, tag or commit of the hub.
            trusted: Names of modules with user-defined parts, see `load`.
            options: Options of `huggingface_hub.snapshot_download`, such as token, cache_dir and local_files_only.

        Raises:
            InputError: See `load`; or the model cannot be downloaded.
        """
        folder = Path(model) if Path(model).is_dir() else download(str(model), revision, **options)
        return cls.load(folder, trusted=trusted)


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Keep a module and all its parts in evaluation mode within the block; then restore the mode of each."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


def inference_batch_size(corpus: Corpus) -> int:
    """Return the number of sequences to label at a time: 64, or more if they are short, to save calls."""
    return max(64, 2**12 * len(corpus) // max(1, corpus.tokens))


def flat_labels(corpus: Corpus, labels: LabelSet, parts: Iterable[tuple[Tensor, ...]]) -> list[str]:
    """Return the label names of all N tokens of a corpus, in its order.

    `parts` are (rows (B,), labels (B, T), ...) of mini-batches that cover the corpus.
    """
    return labels.decode(flat_values(corpus, ((rows, best) for rows, best, *_ in parts)))


def corpus_spans(
    corpus: Corpus, rows: Tensor, segments: ProbableSegments, names: Sequence[str]
) -> Iterator[ProbableSpan]:
    """Yield segments of the sequences `rows` (B,) of a corpus as spans of its tokens; `names` are of types."""
    first = corpus.starts[rows.cpu().numpy()][segments.rows.cpu().numpy()].tolist()
    for at, start, end, kind, p in zip(first, *(part.tolist() for part in segments[1:]), strict=True):
        yield ProbableSpan(names[kind], at + start, at + end, p)


def flat_values(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]], dtype: type = np.int64) -> np.ndarray:
    """Return the value of each of the N tokens of a corpus, in its order: (N,) of this dtype.

    `parts` are (rows (B,), values (B, T)) of mini-batches that cover it.
    """
    flat: np.ndarray = np.zeros(corpus.tokens, dtype)
    starts, lengths = torch.from_numpy(corpus.starts[:-1]), torch.from_numpy(corpus.lengths)
    for rows, values in parts:
        sequences = rows.cpu()
        places, real = padded_places(starts[sequences], lengths[sequences])
        flat[places[real].numpy()] = values[:, : real.shape[1]].cpu()[real].numpy()
    return flat
