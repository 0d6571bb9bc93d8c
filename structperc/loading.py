"""Loading of a saved model as a predictor, without PyTorch if the model does not need it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from structperc.builder import Builder
from structperc.compiled_forms import CriterionForm
from structperc.data.labels import LabelSet
from structperc.data.read_options import check_training_files
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.models.model_format import (
    DEFAULT_BIAS,
    FEATURE_PREFIX,
    PREDICTOR,
    TEMPERATURE,
    TRAINING_FILES,
    arrays_of_features,
    bias_entries,
    check_entries,
    dequantize_tables,
    model_errors,
    read_arrays,
    read_configuration,
)
from structperc.models.predictor_entry import (
    NO_BIAS,
    PredictorEntry,
    read_form,
    segment_weights,
    weight_tables,
)
from structperc.predictor import Predictor
from structperc.predictor.sparse import SparsePredictor

if TYPE_CHECKING:
    from structperc.models import ChainModel, Model
    from structperc.taggers.guided_tagger import GuidedTagger

__all__ = []

ModelKind = TypeVar("ModelKind")


def load(path: str | Path, trusted: Iterable[str] = (), bias: str | None = None) -> Predictor:
    """Load a saved model, ready to label new text.

    A `Tagger` of sparse and local features, those of segments included, whose parts have compiled forms, is returned
    as a `SparsePredictor`, which needs no PyTorch: same labels and probabilities, a fraction of the time and memory to
    load. Every other model, such as one trained by `MEMMLoss`, one whose model.json was changed by hand, one with a
    bias other than `LabelBias`, and a checkpoint are returned as a `models.Model`.

    Args:
        path: folder of a saved model; only its files model.json and model.safetensors are read. Or a checkpoint of a
            trainer.
        trusted: names of modules with a user's classes and functions that the model may run; other code outside this
            library is refused.
        bias: name of a bias of the model (`models.Biases`), "none" for none; None: its default bias.

    Returns:
        a predictor with the methods `tag`, `annotate` and the others of `predictor.Predictor`.

    Raises:
        InputError: a missing or invalid file, or a class outside the trusted modules, as in `Model.load`; an
            unknown bias.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["Oslo", "slept"]], [["B-PER", "O"], ["B-LOC", "O"]]
        >>> SequenceTagger(max_iterations=5).fit(X, y).tagger_.save("model")
        >>> load("model").tag([["Anna", "sang"]])
        [['B-PER', 'O']]
    """
    folder, modules = Path(path), tuple(trusted)
    if folder.is_file():  # a checkpoint, which PyTorch reads
        return load_biased(folder, bias, modules)
    with model_errors(folder):
        config = read_configuration(folder)
        light = not config.changed and config.entries.get(PREDICTOR) is not None
        found = _sparse_predictor(config.entries, bias, folder, modules) if light else None
    return load_biased(folder, bias, modules) if found is None else found


def load_biased(path: str | Path, bias: str | None, trusted: Iterable[str] = ()) -> "Model":
    """Load a saved model with PyTorch, to predict with one of its biases; `load` prefers a predictor without it.

    Args:
        path: folder of a saved model.
        bias: name of a bias of the model (`models.Biases`), "none" for none; None: its default bias.
        trusted: names of modules with a user's classes and functions that the model may run.

    Returns:
        the model.

    Raises:
        InputError: as `Model.load`; an unknown bias, or a model that has no biases.
    """
    if bias is None:
        from structperc.models import Model  # imports PyTorch

        return Model.load(path, trusted=trusted)
    tagger = load_chain(path, trusted, "has no biases; leave out the bias")
    tagger.biases.use(None if bias == "none" else bias)
    return tagger


def load_chain(
    path: str | Path, trusted: Iterable[str], otherwise: str = "has no probabilities and no biases; use another model"
) -> "ChainModel":
    """Load a saved model of chains with PyTorch. Raises InputError, which ends with `otherwise`, for another one."""
    from structperc.models import ChainModel

    return _load_as(ChainModel, path, trusted, otherwise)


def load_guided(path: str | Path, trusted: Iterable[str]) -> "GuidedTagger":
    """Load a saved guided tagger. Raises InputError for other models, which do not record a decision order."""
    from structperc.taggers.guided_tagger import GuidedTagger

    return _load_as(GuidedTagger, path, trusted, "does not record a decision order; use the folder of a GuidedTagger")


def _load_as(kind: type[ModelKind], path: str | Path, trusted: Iterable[str], otherwise: str) -> ModelKind:
    from structperc.models import Model

    model = Model.load(path, trusted=trusted)
    if not isinstance(model, kind):
        raise InputError(f"{path}: a {type(model).__name__} {otherwise}")
    return model


def _sparse_predictor(
    config: dict[str, Any], bias: str | None, folder: Path, trusted: Sequence[str]
) -> SparsePredictor | None:
    """Return the predictor of a configuration; None for a bias that needs PyTorch, and for arrays that do not fit."""
    entry, decoding = read_form(PredictorEntry, config[PREDICTOR], PREDICTOR), bias_entries(config)
    added = entry.biases.get(decoding.get(DEFAULT_BIAS, NO_BIAS) if bias is None else bias)
    if added is None:
        return None
    check_entries(config)
    arrays = dequantize_tables(config, read_arrays(folder))
    features = FeatureExtractor.from_state(config["features"], arrays_of_features(arrays), Builder(trusted))
    labels, criterion = (
        LabelSet(tuple(config["labels"]), config["scheme"]),
        read_form(CriterionForm, entry.criterion, f"{PREDICTOR}.criterion"),
    )
    known = (FEATURE_PREFIX, *(f"{part}." for part in entry.segments))
    if {name for name in arrays if not name.startswith(known)} != {*entry.weights.values()}:
        return None
    weights = weight_tables(entry, arrays, features, labels)
    segments = segment_weights(entry, config, arrays, labels) if entry.segments else None
    if weights is None or (entry.segments and segments is None) or added.keys() - {*labels.names}:
        return None
    return SparsePredictor(
        features,
        labels,
        config["unit"],
        check_training_files(config.get(TRAINING_FILES, {})),
        weights,
        criterion,
        np.array([added.get(name, 0.0) for name in labels.names], np.float32),
        decoding.get(TEMPERATURE),
        segments,
    )
