"""`load`: a saved model as what labels text, light where that is enough."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from structperc.builder import CRITERION_FIELDS, Builder
from structperc.constructors import CLASS, INFERENCE, OPTIONS, STATE
from structperc.data.json_data import matches_type
from structperc.data.labels import LabelSet
from structperc.data.read_options import check_training_files
from structperc.features import FeatureExtractor
from structperc.kernels.arrays import WeightTables
from structperc.predictor import Predictor, SparsePredictor
from structperc.taggers.model_format import (
    FEATURE_PREFIX,
    TRAINING_FILES,
    arrays_of_features,
    check_entries,
    dequantize_tables,
    model_errors,
    read_arrays,
    read_configuration,
)

Compared = Literal["sequence", "sentence"]  # the units of criteria
CRITERIA: dict[str, dict[str, Any]] = {  # after which the best labelling of the scorer's lattice is what is predicted
    "structperc.criteria.PerceptronLoss": {},
    "structperc.criteria.MarginLoss": {"C": float, "unit": Compared},
    "structperc.criteria.HingeLoss": {"cost": float, "unit": Compared},
    "structperc.criteria.CRFLoss": {},
}
PROBABILISTIC = ("structperc.criteria.CRFLoss",)
PARTS: dict[str, dict[str, dict[str, Any]]] = {  # of a light model: class, options and their types
    "scorer": {"structperc.scorers.SparseLinear": {"transitions": bool, "sparse_grad": bool}},
    "search": {"structperc.chain.KBest": {"k": int}},
    "decoder": {"structperc.chain.KBest": {"k": int}},
}
Arrays = Mapping[str, np.ndarray]


def load(path: str | Path, trusted: Iterable[str] = ()) -> Predictor:
    """Return a saved model, ready to label new text: `tag`, `annotate` and the rest of `predictor.Predictor`.

    A `Tagger` of sparse and local features, trained by `PerceptronLoss`, `MarginLoss`, `HingeLoss`, `CRFLoss` or a
    criterion of one's own that leaves the scores of labels as they are, is given as a `SparsePredictor`, which needs
    neither PyTorch nor Lightning: same labels, a fraction of the time and memory to load. Every other model, and one
    whose model.json was changed by hand, is given whole.

    This runs no code but that of this library and of `trusted`, names of modules with parts of one's own, and reads
    nothing but the two files of the folder. Raises InputError as `SavedTagger.load` does.
    """
    folder, modules = Path(path), tuple(trusted)
    with model_errors(folder):
        config = read_configuration(folder)
        plain = not config.changed and _is_plain(config.entries)
        light = (
            _light(config.entries, dequantize_tables(config.entries, read_arrays(folder)), modules) if plain else None
        )
    if light is not None:
        return light
    from structperc.taggers.base import BaseTagger  # needs PyTorch, Lightning and data sets

    return BaseTagger.load(folder, trusted=modules)


def _is_plain(config: dict[str, Any]) -> bool:
    """Whether a configuration is that of a model that can be light; what is odd about another one is said elsewhere."""
    return (
        config.get("class") == "structperc.taggers.Tagger"
        and config.get("nonlocal_features") == []
        and all(_known(config.get(name), classes) for name, classes in PARTS.items())
        and (_known(config.get("criterion"), CRITERIA) or _is_own_criterion(config.get("criterion")))
        and _reads_text_alone(config.get("features"))
    )


def _known(part: Any, classes: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a part is of one of these classes, with options of the right types."""
    if not matches_type(part, dict[str, Any]) or part.keys() != {CLASS, OPTIONS} or part[CLASS] not in list(classes):
        return False
    types, given = classes[part[CLASS]], part[OPTIONS]
    return matches_type(given, dict[str, Any]) and types.keys() == given.keys() and _of_types(given, types)


def _is_own_criterion(part: Any) -> bool:
    """Whether a part is a criterion of a user's own that says what labelling needs of it, and needs no more."""
    fields = {CLASS: str, OPTIONS: dict[str, Any], INFERENCE: dict[str, Any]}
    if not matches_type(part, dict[str, Any]) or part.keys() != fields.keys() or not _of_types(part, fields):
        return False
    own = part[INFERENCE]
    return own.keys() == CRITERION_FIELDS.keys() and _of_types(own, CRITERION_FIELDS)


def _of_types(given: Mapping[str, Any], types: Mapping[str, Any]) -> bool:
    return all(matches_type(given[name], types[name]) for name in types)


def _reads_text_alone(features: Any) -> bool:
    """Whether the data list no features, and all document attributes are the library's that read no other model."""
    if not matches_type(features, dict[str, Any]) or not matches_type(
        features.get("documents"), dict[str, dict[str, Any]]
    ):
        return False
    if features.get("weighted") is not None:  # whose weighted sums are not those of tensors bit for bit
        return False
    attributes = features["documents"].values()
    return all(STATE not in one and str(one.get(CLASS)).startswith("structperc.features.") for one in attributes)


def _light(config: dict[str, Any], arrays: Arrays, trusted: Sequence[str]) -> SparsePredictor | None:
    """The light tagger of a plain configuration; None where its weights are not those that are due.

    trusted: the modules of functions of a user's own.
    """
    check_entries(config)
    features = FeatureExtractor.from_state(config["features"], arrays_of_features(arrays), Builder(trusted))
    labels = LabelSet(tuple(config["labels"]), config["scheme"])
    weights = _tables(config, features, len(labels), arrays)
    if weights is None:
        return None
    criterion = config["criterion"]
    plain = {
        "independent_sentences": criterion[OPTIONS].get("unit") == "sentence",
        "probabilistic": criterion[CLASS] in PROBABILISTIC,
    }
    own = criterion.get(INFERENCE, plain)
    files, name = check_training_files(config.get(TRAINING_FILES, {})), criterion[CLASS].rpartition(".")[2]
    return SparsePredictor(
        features, labels, config["unit"], files, weights, own["independent_sentences"], name, own["probabilistic"]
    )


def _tables(config: dict[str, Any], features: FeatureExtractor, L: int, arrays: Arrays) -> WeightTables | None:
    """The weights of a scorer; None unless they have its names, sizes and type."""
    due = {"node": (features.n_node_features, L), "edge": (features.n_edge_features, L * L), "transition": (L, L)}
    if not config["scorer"][OPTIONS]["transitions"]:
        due["transition"] = (0, L)
    kept = {f"scorer.{name}": shape for name, shape in due.items() if shape[0]}
    given = {name: array for name, array in arrays.items() if not name.startswith(FEATURE_PREFIX)}
    if "scorer.node" not in kept or {name: array.shape for name, array in given.items()} != kept:
        return None
    if any(array.dtype != np.float32 for array in given.values()):
        return None
    return WeightTables(*(given.get(f"scorer.{name}", np.empty(shape, np.float32)) for name, shape in due.items()))
