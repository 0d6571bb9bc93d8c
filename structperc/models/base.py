"""Base class of all models: labels of corpora, saving and loading, without Lightning."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from structperc.builder import Builder
from structperc.chain import Restriction
from structperc.chain.minimum_risk import ProbableSegments
from structperc.constructors import class_path_of
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.output import atomic_folder, write_errors
from structperc.data.read_options import check_training_files
from structperc.data.tag_schemes import Span, encode_spans
from structperc.data.weights import WEIGHT, without_weights
from structperc.datamodules.encoded import MAX_PLACES, EncodedCorpus
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.models.checkpoint_files import read_model
from structperc.models.hub import CARD, download, model_card, push_folder, read_card
from structperc.models.model_format import (
    FEATURE_PREFIX,
    PREDICTOR,
    TRAINING_FILES,
    TableType,
    arrays_of_features,
    check_entries,
    model_errors,
)
from structperc.models.predictor_entry import check_entry
from structperc.models.saving import (
    CRITERION,
    check_weights,
    limit_parameters,
    read_folder,
    saved_tensors,
    write_folder,
)
from structperc.predictor import Prediction, Predictor
from structperc.predictor.base import ProbableSpan, check_min_probability
from structperc.predictor.limits import CorpusLimits
from structperc.ragged import Ragged
from structperc.structures import Batch, padded_places, to_device


class LabelSequence(NamedTuple):
    """A label sequence of a sentence, with its score.

    Args:
        labels: Names of the labels, one for each token.
        score: Total score.
        log_probability: Logarithm of its probability; None if the model has scores, but no probabilities.
    """

    labels: list[str]
    score: float
    log_probability: float | None


class Model(nn.Module, Predictor):
    """Base class of models: sequences are read through feature templates and get one label per token.

    A model is what a saved folder contains. Taggers are models that a Lightning trainer trains.

    Args:
        features: Templates and resources; the feature index is built from the training data. None: no features.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> SequenceTagger(max_iterations=5).fit(X, y).tagger_.save("model")
        >>> model = Model.load("model")  # whichever class was saved
        >>> type(model).__name__, model.tag([["Anna", "left"]])
        ('ChainModel', [['B-PER', 'O']])
    """

    labels: LabelSet

    def __init__(self, features: FeatureExtractor | None) -> None:
        super().__init__()
        self.features = features or FeatureExtractor()
        self.fitted = False  # True once the labels are set and the weights exist
        self.unit = "sentence"  # or "document"
        self.training_files: Mapping[str, Any] = {}  # reading options, see `data.read_options`; empty: unknown
        self.card: str | None = None  # text of README.md in saved models; None: a default one

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
            InputError: The model has no probabilities.
        """

    def probable_segments(self, batch: Batch, min_probability: float | None) -> ProbableSegments | None:
        """Return all segments with a probability above a number, or those that the model finds by itself."""
        return None

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Return class and options of every part but the features, as plain JSON types."""

    @classmethod
    @abstractmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> Self:
        """Return the model of a `description`, without weights. `build` creates its parts, or raises InputError."""

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return the inputs of encoders for a corpus; none for models of feature templates."""
        return []

    def piece_counts(self, inputs: Sequence[Ragged]) -> Tensor | None:
        """Return the number of sub-word tokens of each token, (N,) int64; None if tokens are not split.

        `inputs` is a result of `inputs`.
        """
        return None

    def further_columns(self, corpus: Corpus) -> dict[str, list[str]]:
        """Return columns that are predicted for a corpus besides its labels, by role; none by default."""
        return {}

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
            if (probable := self.probable_segments(batch, min_probability)) is not None:
                with_spans = True
                spans.extend(corpus_spans(corpus, batch.rows, probable, self.labels.type_names))
        prediction = Prediction(flat_labels(corpus, self.labels, labels), None, None)
        CorpusLimits.read(corpus, self.labels).check_predicted(prediction.labels)
        if confident:
            columns = ([(rows, each[i]) for rows, *each in probabilities] for i in range(3))
            tokens, segments, logs = (flat_values(corpus, column, float) for column in columns)
            prediction = prediction._replace(tokens=tokens, segments=segments, log_probabilities=logs)
        return prediction.with_spans(corpus, spans, self.labels.scheme) if with_spans else prediction

    def batches(self, corpus: Corpus, batch_size: int = 64) -> Iterator[Batch]:
        """Yield mini-batches of a corpus on the device of the weights, longest sequences first; none without tokens.

        They have the restrictions of the columns `possible` and `forbidden`, see `predictor.limits`. The model is in
        evaluation mode until the last batch is taken.
        """
        if not corpus.tokens:
            return
        rows, limits, device = self.encode(corpus), CorpusLimits.read(corpus, self.labels), device_of(self)
        if limits.spans:  # scores of pairs of states at each token take memory
            batch_size = max(1, min(batch_size, MAX_PLACES // (limits.n_states**2 * int(corpus.lengths.max()))))
        with evaluation_mode(self):
            for order in LengthBatchSampler(corpus.lengths, batch_size, shuffle=False):
                batch = rows[order]
                batch = batch._replace(restriction=restriction_of(batch, limits))
                yield batch if device.type == "cpu" else to_device(batch, device)

    def gold_labels(self, corpus: Corpus) -> LabelSet:
        """Return the labels that number the gold labels of a corpus: the model's, then unknown ones."""
        if "label" not in corpus.columns:
            return self.labels
        unknown = {span.type for span in corpus.dropped} - set(self.labels.type_names)
        further = [encode_spans([Span(kind, 0, 1)], 1, self.labels.scheme)[0] for kind in unknown]
        return self.labels.extended([*corpus.factorize("label").distinct, *further])

    def encode(self, corpus: Corpus) -> EncodedCorpus:
        """Return a corpus as arrays, with the numbers of this model's features and `gold_labels`, without weights."""
        corpus = corpus if WEIGHT in self.features.columns else without_weights(corpus)
        return EncodedCorpus(corpus, self.features, self.gold_labels(corpus), self.inputs(corpus))

    def save(self, folder: str | Path, table: TableType = "float32") -> None:
        """Write the model with its current weights into a folder, which is replaced as a whole or not at all.

        Weights are saved as float32; those of a model that was trained in 64 bits are rounded.

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
        """Return a saved model of this class, or of a class derived from it, ready to tag.

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
            loaded = cls.from_state(config, tensors, Builder(trusted))
            loaded.to(device).card = read_card(place)
        return loaded

    @classmethod
    def saved_class(cls) -> type["Model"]:
        """Return the class of the model that this class saves; taggers save models without what only training needs."""
        return cls

    def to_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the saved state of the model: plain JSON types, and tensors by name."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in saved_tensors(self).items()}
        return self.configuration(), {**tensors, **self.feature_tensors()}

    def configuration(self) -> dict[str, Any]:
        """Return labels, options of all parts and strings of the features, as plain JSON types."""
        return {
            "class": class_path_of(self.saved_class()),
            "labels": list(self.labels.names),
            "scheme": self.labels.scheme,
            "unit": self.unit,
            TRAINING_FILES: dict(self.training_files),
            **self.description(),
            "features": self.features.state_dict_json(),
            PREDICTOR: self.compiled(),
        }

    def compiled(self) -> dict[str, Any] | None:
        """Return the compiled form, with which `structperc.load` needs no PyTorch, as plain JSON types; or None."""
        return None

    def feature_tensors(self) -> dict[str, Tensor]:
        """Return the arrays of the features by name, as tensors."""
        arrays = self.features.state_arrays().items()
        return {FEATURE_PREFIX + name: torch.from_numpy(array) for name, array in arrays}

    @classmethod
    def from_state(cls, config: dict[str, Any], tensors: dict[str, Tensor], build: Builder) -> Self:
        """Return a model of this class, or of a derived one, from a `to_state`, ready to tag.

        Args:
            config: Plain JSON types.
            tensors: Tensors by name.
            build: Creates the parts.

        Raises:
            InputError: The class is another one, an entry is invalid, or a tensor does not fit.
        """
        saved: Any = build.find(config["class"], Model, "class") if "class" in config else cls
        made = cls if cls.saved_class() is saved else saved
        if not issubclass(made, cls):
            raise InputError(f"this is a {saved.__name__}, not a {cls.__name__}; load it with {saved.__name__}.load")
        check_entries(config)
        arrays = {name: tensor.cpu().numpy() for name, tensor in arrays_of_features(tensors).items()}
        weights = {name: t for name, t in tensors.items() if not name.startswith(FEATURE_PREFIX)}
        features = FeatureExtractor.from_state(config["features"], arrays, build)

        kinds = {t.dtype for t in weights.values() if t.is_floating_point()}  # float64 after training in 64 bits

        def without_weights() -> Any:
            model: Any = made.from_description(config, features, build)
            model.allocate(LabelSet(tuple(config["labels"]), config["scheme"]))
            return model.to(*kinds) if len(kinds) == 1 else model

        with torch.device("meta"), limit_parameters(len(weights)):  # sizes without memory: wrong ones cost nothing
            check_weights(without_weights(), weights)
        model = without_weights()
        model.unit, model.training_files = config["unit"], check_training_files(config.get(TRAINING_FILES, {}))
        of_criterion = {name: t for name, t in model.state_dict().items() if name.startswith(CRITERION)}
        model.load_state_dict({**of_criterion, **weights})
        check_entry(config.get(PREDICTOR), model)
        return model.eval()

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
        """Upload the model, with its current weights and its card, to the hub; return the address of the commit.

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
        """Return a saved model as `load` does, from a folder or from the hub.

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


def device_of(module: nn.Module) -> torch.device:
    """Return the device of the weights of a module; the CPU without weights."""
    return next((p.device for p in module.parameters()), torch.device("cpu"))


def restriction_of(batch: Batch, limits: CorpusLimits) -> Restriction | None:
    """Return the restriction of some sequences of a corpus, on a CPU; None without limits."""
    restriction = Restriction()
    if limits.masks is not None:
        places, real = padded_places(torch.from_numpy(limits.corpus.starts)[batch.rows], batch.lengths)
        restriction = Restriction(torch.from_numpy(limits.masks)[places] | ~real.unsqueeze(2))
    if limits.spans:
        spans = [limits.spans.get(row, ()) for row in batch.rows.tolist()]
        restriction = restriction.without(spans, batch.first, batch.lengths, limits.labels, limits.slots)
    return None if restriction.possible is None else restriction


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
