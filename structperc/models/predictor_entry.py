"""The entry of a saved model from which it loads without PyTorch: the compiled forms of its parts, plain data."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from structperc.compiled_forms import CriterionForm, SegmentFeaturesForm
from structperc.constructors import OPTIONS, STATE
from structperc.data.json_data import check_fields
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.features.resources import Clusters
from structperc.features.segment_index import HashedSegmentIndex, SegmentIndex
from structperc.features.segment_keys import SegmentKeys
from structperc.kernels.array_types import WeightTables
from structperc.models.model_format import PREDICTOR, NamedArrays
from structperc.predictor.segment_weights import SegmentWeights

NO_BIAS = "none"  # name of the model's own decoder


class PredictorEntry(NamedTuple):
    """Entry of a saved model for a predictor without PyTorch, which also reads labels, features and arrays.

    Attributes:
        criterion: the fields of a `CriterionForm`.
        weights: names of the arrays of weights, by their names in `WeightTables`; none of those that are missing.
        segments: the fields of a `SegmentFeaturesForm` by the name of the part with these features; empty without.
        biases: numbers of labels by name of a bias, those of the model's own decoder as "none"; null for a bias, or a
            decoder, that needs PyTorch.
    """

    criterion: dict[str, Any]
    weights: dict[str, str]
    segments: dict[str, dict[str, Any]]
    biases: dict[str, dict[str, float] | None]


Form = TypeVar("Form", PredictorEntry, CriterionForm, SegmentFeaturesForm)


# -- writing -------------------------------------------------------------------------------------------------


def predictor_entry(model: Any) -> dict[str, Any] | None:
    """Return the entry of a `ChainModel` as plain JSON types; None for a model that needs PyTorch."""
    form, criterion = model.scorer.compiled(), model.criterion.compiled()
    if form is None or form.add_features or criterion is None or model.nonlocal_features or not _reads_text(model):
        return None
    names = {parameter: name for name, parameter in model.named_parameters()}
    weights = {name: names.get(weight) for name, weight in form.weights.items()}
    scorer = form.segments
    segments = (
        {}
        if scorer is None
        else {name: scorer.options for name, module in model.named_modules() if module is scorer.part}
    )
    if None in (*weights.values(), *segments.values()):
        return None
    biases = {name: decoder.compiled() for name, decoder in {NO_BIAS: model.decoder, **model.biases.decoders}.items()}
    return {
        "criterion": criterion._asdict(),
        "weights": weights,
        "segments": {name: options._asdict() for name, options in segments.items() if options},
        "biases": {name: None if bias is None else dict(bias) for name, bias in biases.items()},
    }


def _reads_text(model: Any) -> bool:
    """Return True for features without weights in the data, and without document attributes of other packages."""
    modules = [type(function).__module__ for function in model.features.documents.values()]
    # sums of features with weights differ from those of tensors in the last bits
    return model.features.index.weighted is None and all(name.startswith("structperc.features.") for name in modules)


def check_entry(given: Any, model: Any) -> None:
    """Raise InputError for an entry that is not the one of the model that the other entries describe."""
    if given is not None and given != model.compiled():
        raise InputError(
            f"the entry {PREDICTOR!r} does not fit the parts of the model; remove it, or save the model again"
        )


# -- reading -------------------------------------------------------------------------------------------------


def read_form(kind: type[Form], value: Any, place: str) -> Form:
    """Return a form from its fields. Raises InputError, which begins with the location, for other names and types."""
    check_fields(value, get_type_hints(kind), place)
    return kind(**value)


def weight_tables(
    entry: PredictorEntry, arrays: NamedArrays, features: FeatureExtractor, labels: LabelSet
) -> WeightTables | None:
    """Return the weights of labels and label pairs, given all arrays of the entry; None for some that do not fit."""
    L = len(labels)
    shapes = {"node": (features.n_node_features, L), "edge": (features.n_edge_features, L * L), "transition": (L, L)}
    tables = {name: arrays[entry.weights[name]] for name in shapes if name in entry.weights}
    if "node" not in tables or not all(_is_table(array, shapes[name]) for name, array in tables.items()):
        return None
    return WeightTables(*(tables.get(name, np.empty((0, width), np.float32)) for name, (_, width) in shapes.items()))


def segment_weights(
    entry: PredictorEntry, config: Mapping[str, Any], arrays: NamedArrays, labels: LabelSet
) -> SegmentWeights | None:
    """Return the weights of features of segments, given all arrays of weights; None for arrays that do not fit."""
    ((part, options),) = entry.segments.items()
    form = read_form(SegmentFeaturesForm, options, f"{PREDICTOR}.segments.{part}")
    keys, phrases = (arrays.get(f"{part}.{name}", np.empty(0)) for name in ("keys", "phrases"))
    weights, state = arrays[entry.weights["segment"]], _state(config, part)
    types = np.int64 if form.hash_bits is None else np.int32, np.int64
    shapes = (state["features"],), (state["phrases"],)
    if (keys.dtype, phrases.dtype) != types or (keys.shape, phrases.shape) != shapes:
        return None
    if not _is_table(weights, (len(keys), len(labels.segment_table) - 1)):
        return None
    words = None if state["clusters"] is None else Clusters.from_json(state["clusters"])
    extractor = SegmentKeys(form.templates, form.max_length, phrases.view(np.uint64), words)
    bits, none = form.hash_bits, np.empty(0, np.uint8)  # names are not needed to predict
    index = HashedSegmentIndex(bits, keys, none, none, 0, 0) if bits else SegmentIndex(keys.view(np.uint64), none)
    return SegmentWeights(extractor, index, weights)


def _is_table(array: np.ndarray, shape: tuple[int, int]) -> bool:
    return array.shape == shape and array.dtype == np.float32


def _state(config: Mapping[str, Any], part: str) -> Any:
    """Return the state in the description of a part, which has the names of the parts around it before its own."""
    first, *others = part.split(".")
    entry = config[first]
    for name in others:
        entry = entry[OPTIONS][name]
    return entry[STATE]
