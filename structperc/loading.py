"""Loading of a saved model as a predictor, without PyTorch if the model does not need it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from structperc.builder import CRITERION_FIELDS, Builder
from structperc.constructors import CLASS, INFERENCE, OPTIONS, STATE
from structperc.data.json_data import matches_type
from structperc.data.labels import LabelSet
from structperc.data.read_options import check_training_files
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.features.resources import Clusters
from structperc.features.segment_index import HashedSegmentIndex, SegmentIndex
from structperc.features.segment_keys import SegmentKeys
from structperc.kernels.array_types import WeightTables
from structperc.models.model_format import (
    BIASES,
    DEFAULT_BIAS,
    FEATURE_PREFIX,
    TEMPERATURE,
    TRAINING_FILES,
    arrays_of_features,
    check_entries,
    dequantize_tables,
    model_errors,
    read_arrays,
    read_configuration,
)
from structperc.predictor import Predictor, SparsePredictor
from structperc.predictor.segment_weights import SegmentWeights

if TYPE_CHECKING:
    from structperc.models import ChainModel, Model
    from structperc.taggers.guided_tagger import GuidedTagger

__all__ = ["load", "load_biased"]

ModelKind = TypeVar("ModelKind")

CriterionUnit = Literal["sequence", "sentence"]
CRITERIA: dict[str, dict[str, Any]] = {  # their models predict the best path of the lattice; class: types of options
    "structperc.criteria.PerceptronLoss": {},
    "structperc.criteria.MarginLoss": {"C": float, "unit": CriterionUnit},
    "structperc.criteria.HingeLoss": {"cost": float | dict[str, Any], "unit": CriterionUnit},
    "structperc.criteria.CRFLoss": {"entity_ratio": dict[str, Any] | None, "missed_share": float, "confidences": bool},
}
ADDED = {
    "entity_ratio",
    "missed_share",
    "confidences",
    "hash_bits",
    "candidates",
}  # options that older models do not have
PROBABILISTIC = ("structperc.criteria.CRFLoss",)
PARTS: dict[str, dict[str, dict[str, Any]]] = {  # parts of a sparse predictor; class: types of options
    "scorer": {"structperc.scorers.SparseLinear": {"transitions": bool, "sparse_grad": bool}},
    "search": {"structperc.chain.KBest": {"k": int}},
}
SEGMENTS: dict[str, dict[str, Any]] = {
    "structperc.scorers.SegmentLinear": {
        "labels": dict[str, Any],
        "segments": dict[str, Any],
        "sparse_grad": bool,
    }
}
SEGMENT_FEATURES: dict[str, dict[str, Any]] = {
    "structperc.scorers.SegmentFeatures": {
        "templates": list[str],
        "max_length": int,
        "cutoff": int,
        "gazetteers": dict[str, str] | None,
        "clusters": str | None,
        "hash_bits": int | None,
        "candidates": None,
    }
}
SEGMENT_ARRAYS = ("segments.keys", "segments.phrases", "weight", "segments.names", "segments.named")
BIAS = "bias"  # option of LabelBias
DECODERS: dict[str, dict[str, Any]] = {
    "structperc.chain.KBest": {"k": int},
    "structperc.chain.LabelBias": {BIAS: dict[str, float], "k": int},
}


def load(path: str | Path, trusted: Iterable[str] = (), bias: str | None = None) -> Predictor:
    """Load a saved model, ready to label new text.

    A `Tagger` of sparse and local features, those of segments included, trained by `PerceptronLoss`, `MarginLoss`,
    `HingeLoss`, `CRFLoss` or a user's criterion that does not change the scores of labels, is returned as a
    `SparsePredictor`, which needs no PyTorch: same labels and probabilities, a fraction of the time
    and memory to load. Every other model, one whose model.json was changed by hand, one with a bias other than
    `LabelBias`, and a checkpoint are returned as a `models.Model`.

    Args:
        path: folder of a saved model; only its files model.json and model.safetensors are read. Or a checkpoint of a
            trainer.
        trusted: names of modules with a user's classes and functions that the model may run; other code outside this
            library is refused.
        bias: name of a bias of the model (`ChainModel.add_bias`), "none" for none; None: its default bias.

    Returns:
        a predictor with the methods `tag`, `annotate` and the others of `predictor.Predictor`.

    Raises:
        InputError: a missing or invalid file, or a class outside the trusted modules, as in `Model.load`; an
            unknown bias.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["Oslo", "slept"]], [["B-PER", "O"], ["B-LOC", "O"]]
        >>> SequenceTagger(max_iterations=5).fit(X, y).tagger_.save("model")
        >>> load("model").tag([["Anna", "slept"]])
        [['B-PER', 'O']]
    """
    folder, modules = Path(path), tuple(trusted)
    if folder.is_file():  # a checkpoint, which PyTorch reads
        return load_biased(folder, bias, modules)
    with model_errors(folder):
        config, found = read_configuration(folder), None
        decoder = _decoder(config.entries, bias)
        if not config.changed and _is_sparse(config.entries, decoder):
            arrays = dequantize_tables(config.entries, read_arrays(folder))
            found = _sparse_predictor(config.entries, decoder[OPTIONS].get(BIAS, {}), arrays, modules)
    return load_biased(folder, bias, modules) if found is None else found


def load_biased(path: str | Path, bias: str | None, trusted: Iterable[str] = ()) -> "Model":
    """Load a saved model with PyTorch, to predict with one of its biases; `load` prefers a predictor without it.

    Args:
        path: folder of a saved model.
        bias: name of a bias of the model (`ChainModel.add_bias`), "none" for none; None: its default bias.
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
    tagger.use_bias(None if bias == "none" else bias)
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


def _decoder(config: dict[str, Any], bias: str | None) -> Any:
    """Return the entry of the decoder that predicts, of any type; None for an unknown bias."""
    name = config.get(DEFAULT_BIAS) if bias is None else None if bias == "none" else bias
    if name is None:
        return config.get("decoder")
    biases: Any = config.get(BIASES)
    return biases.get(name) if matches_type(name, str) and matches_type(biases, dict[str, Any]) else None


def _is_sparse(config: dict[str, Any], decoder: Any) -> bool:
    """Return True for the configuration of a sparse predictor; errors of other ones are raised by `Model.load`."""
    return (
        config.get("class") == "structperc.models.ChainModel"
        and config.get("nonlocal_features") == []
        and (_known(config.get("scorer"), PARTS["scorer"]) or _has_segments(config.get("scorer")))
        and _known(config.get("search"), PARTS["search"])
        and _known(decoder, DECODERS)
        and _is_temperature(config.get(TEMPERATURE))
        and (_known(config.get("criterion"), CRITERIA) or _is_user_criterion(config.get("criterion")))
        and _needs_text_only(config.get("features"))
    )


def _is_temperature(value: Any) -> bool:
    return value is None or (matches_type(value, float) and 0 < value < float("inf"))


def _known(part: Any, classes: Mapping[str, Mapping[str, Any]]) -> bool:
    if not matches_type(part, dict[str, Any]) or part.keys() != {CLASS, OPTIONS} or part[CLASS] not in list(classes):
        return False
    types, given = classes[part[CLASS]], part[OPTIONS]
    if not matches_type(given, dict[str, Any]) or not types.keys() - ADDED <= given.keys() <= types.keys():
        return False
    return _of_types(given, types)


def _has_segments(part: Any) -> bool:
    """Return True for a `SegmentLinear` over a `SparseLinear`."""
    if not _known(part, SEGMENTS) or not _known(part[OPTIONS]["labels"], PARTS["scorer"]):
        return False
    features = dict(part[OPTIONS]["segments"])
    state = features.pop(STATE, None)
    return _known(features, SEGMENT_FEATURES) and matches_type(state, dict[str, Any])


def _is_user_criterion(part: Any) -> bool:
    """Return True for a user's criterion with its inference properties, and nothing else."""
    fields = {CLASS: str, OPTIONS: dict[str, Any], INFERENCE: dict[str, Any]}
    if not matches_type(part, dict[str, Any]) or part.keys() != fields.keys() or not _of_types(part, fields):
        return False
    own = part[INFERENCE]
    return own.keys() == CRITERION_FIELDS.keys() and _of_types(own, CRITERION_FIELDS)


def _of_types(given: Mapping[str, Any], types: Mapping[str, Any]) -> bool:
    return all(matches_type(value, types[name]) for name, value in given.items())


def _needs_text_only(features: Any) -> bool:
    """Return True for features without weights in the data, state, and document attributes of users."""
    if not matches_type(features, dict[str, Any]) or not matches_type(
        features.get("documents"), dict[str, dict[str, Any]]
    ):
        return False
    if features.get("weighted") is not None:  # its sums differ from those of tensors in the last bits
        return False
    attributes = features["documents"].values()
    return all(STATE not in one and str(one.get(CLASS)).startswith("structperc.features.") for one in attributes)


def _sparse_predictor(
    config: dict[str, Any], bias: Mapping[str, float], arrays: Mapping[str, np.ndarray], trusted: Sequence[str]
) -> SparsePredictor | None:
    """Return the predictor of a configuration; None for unknown labels of the bias and unexpected arrays."""
    check_entries(config)
    features = FeatureExtractor.from_state(config["features"], arrays_of_features(arrays), Builder(trusted))
    labels = LabelSet(tuple(config["labels"]), config["scheme"])
    scorer, segments = config["scorer"], None
    arrays = {name: array for name, array in arrays.items() if not name.startswith(FEATURE_PREFIX)}
    if scorer[CLASS] in SEGMENTS:
        if (segments := _segment_weights(scorer[OPTIONS]["segments"], labels, arrays)) is None:
            return None
        scorer, arrays = scorer[OPTIONS]["labels"], _without_segments(arrays)
    weights = _tables(scorer, features, len(labels), arrays)
    if weights is None or bias.keys() - set(labels.names):
        return None
    added = np.array([bias.get(name, 0.0) for name in labels.names], np.float32)
    criterion = config["criterion"]
    default = criterion[OPTIONS].get("unit") == "sentence", criterion[CLASS] in PROBABILISTIC
    saved = criterion.get(INFERENCE)
    independent, probabilistic = (saved["independent_sentences"], saved["probabilistic"]) if saved else default
    files, name = check_training_files(config.get(TRAINING_FILES, {})), criterion[CLASS].rpartition(".")[2]
    return SparsePredictor(
        features,
        labels,
        config["unit"],
        files,
        weights,
        independent,
        name,
        probabilistic,
        added,
        config.get(TEMPERATURE),
        segments,
    )


def _segment_weights(
    part: Mapping[str, Any], labels: LabelSet, arrays: Mapping[str, np.ndarray]
) -> SegmentWeights | None:
    """Return the weights of segments; None if the state or the arrays are not the expected ones."""
    options, state = part[OPTIONS], part[STATE]
    bits, hashed = options.get("hash_bits"), state.get("hash")
    keys, phrases, weights = (arrays.get(f"scorer.{name}", np.empty(0)) for name in SEGMENT_ARRAYS[:3])
    F, C = state.get("features"), len(labels.segment_table) - 1
    shapes = (F,), (state.get("phrases"),), (F, C)
    types = np.int64 if bits is None else np.int32, np.int64, np.float32
    found = keys, phrases, weights
    if tuple(one.shape for one in found) != shapes or tuple(one.dtype for one in found) != types:
        return None
    if (bits is None) != (hashed is None):
        return None
    clusters = None if state.get("clusters") is None else Clusters.from_json(state["clusters"])
    extractor = SegmentKeys(options["templates"], options["max_length"], phrases.view(np.uint64), clusters)
    none = np.empty(0, np.uint8)  # names are not needed to predict
    if bits is None:
        return SegmentWeights(extractor, SegmentIndex(keys.view(np.uint64), none), weights)
    return SegmentWeights(extractor, HashedSegmentIndex(bits, keys, none, none, 0, 0), weights)


def _without_segments(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of the scorer of labels by the names that they have without segments; others keep theirs."""
    own = {f"scorer.{name}" for name in SEGMENT_ARRAYS}
    others = {name.partition("scorer.labels."): array for name, array in arrays.items() if name not in own}
    return {f"scorer.{end}" if found and not start else start: array for (start, found, end), array in others.items()}


def _tables(
    scorer: Mapping[str, Any], features: FeatureExtractor, L: int, given: Mapping[str, np.ndarray]
) -> WeightTables | None:
    """Return the weights of a scorer; None if names, shapes or types are not the expected ones."""
    shapes = {"node": (features.n_node_features, L), "edge": (features.n_edge_features, L * L), "transition": (L, L)}
    if not scorer[OPTIONS]["transitions"]:
        shapes["transition"] = (0, L)
    kept = {f"scorer.{name}": shape for name, shape in shapes.items() if shape[0]}
    if "scorer.node" not in kept or {name: array.shape for name, array in given.items()} != kept:
        return None
    if any(array.dtype != np.float32 for array in given.values()):
        return None
    return WeightTables(*(given.get(f"scorer.{name}", np.empty(shape, np.float32)) for name, shape in shapes.items()))
