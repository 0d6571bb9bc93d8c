"""Saved models: a tagger as a folder with model.json and model.safetensors, self-contained, without pickle or code."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copymode
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from structperc.builder import Builder
from structperc.constructors import OPTIONS, STATE
from structperc.errors import InputError
from structperc.models.model_format import (
    CONFIG,
    FEATURE_PREFIX,
    PREDICTOR,
    QUANTIZED_TABLES,
    TABLES,
    WEIGHTS,
    TableType,
    add_checksums,
    check_finite_array,
    dequantize_tables,
    quantize_tables,
    read_configuration,
    table_array_names,
)
from structperc.scorers import SegmentLinear, SparseLinear, VectorLinear

SPARE = 100  # parameters that a model may have in addition to the saved ones
CRITERION = "criterion."  # the state of criteria belongs to checkpoints, not to saved models

logger = logging.getLogger("pytorch_lightning.structperc")


# -- folders -------------------------------------------------------------------------------------------------


def write_folder(
    folder: Path, config: dict[str, Any], tensors: dict[str, Tensor], table: TableType = "float32"
) -> None:
    """Write the configuration (plain JSON types) and the tensors into an existing folder.

    `table` is the type of the feature weights in the file. Raises OSError if they cannot be written.
    """
    weights = {name: tensors[name].numpy() for name in QUANTIZED_TABLES if name in tensors}
    weights = {name: table for name, table in weights.items() if table.ndim == 2}  # a user's scorer may have others
    arrays, tables = quantize_tables(weights, table)
    others = {name: tensor for name, tensor in tensors.items() if name not in weights}
    tensors = {**others, **{name: torch.from_numpy(array) for name, array in arrays.items()}}
    config = {**config, TABLES: tables} if tables else config
    try:
        # Parts may share a part, such as a lexicon; safetensors needs copies of tensors with several names.
        by_address: dict[int, Tensor] = {}
        unshared = {n: t if by_address.setdefault(t.data_ptr(), t) is t else t.clone() for n, t in tensors.items()}
        save_file(unshared, folder / WEIGHTS)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    (folder / CONFIG).write_text(json.dumps(add_checksums(config, folder), ensure_ascii=False), encoding="utf-8")
    copymode(folder / CONFIG, folder / WEIGHTS)  # safetensors writes files that only their owner may read


def read_folder(folder: Path, device: str = "cpu") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return configuration and tensors as they were written; only the two files of the folder are read.

    Logs a warning for an edited configuration. Raises InputError as `read_configuration` does, and for weights that are
    not finite.
    """
    config = read_configuration(folder)
    if config.changed:
        logger.warning("%s was changed after it was saved (its checksum is wrong)", folder / CONFIG)
    tensors = load_file(folder / WEIGHTS, device=device)
    for name, tensor in tensors.items():
        check_finite_array(name, not tensor.is_floating_point() or bool(torch.isfinite(tensor).all()))
    narrow = {name: tensors.pop(name).cpu().numpy() for name in table_array_names(config.entries) if name in tensors}
    wide = {
        name: torch.from_numpy(array).to(device) for name, array in dequantize_tables(config.entries, narrow).items()
    }
    return config.entries, {**tensors, **wide}


# -- tensors -------------------------------------------------------------------------------------------------


@contextmanager
def limit_parameters(tensors: int) -> Iterator[None]:
    """Raise InputError within the block for modules that create many more parameters than there are tensors.

    Criteria have some that are not saved. A wrong or malicious depth would take hours to build.
    """
    left = iter(range(2 * tensors + SPARE))

    def count(module: nn.Module, name: str, parameter: Tensor | None) -> None:
        if next(left, None) is None:
            raise InputError(f"its parts have more weights than the {tensors} tensors of {WEIGHTS}")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def saved_tensors(tagger: nn.Module) -> dict[str, Tensor]:
    """Return the state of a tagger without that of its criterion; weights of 16 bits as float32."""
    state = {name: t for name, t in tagger.state_dict().items() if not name.startswith(CRITERION)}
    return {name: t.float() if t.dtype in (torch.bfloat16, torch.float16) else t for name, t in state.items()}


def check_weights(tagger: nn.Module, weights: dict[str, Tensor]) -> None:
    """Raise InputError unless weights have the names, sizes and types of the tagger's state."""
    state = saved_tensors(tagger)
    modules = dict(tagger.named_modules())
    if missing := state.keys() - weights.keys():
        raise InputError(f"the weights {min(missing)} are missing")
    if unknown := weights.keys() - state.keys():
        raise InputError(f"unexpected weights {min(unknown)}")
    any_size = tuple(f"{prefix}." for prefix, module in modules.items() if getattr(module, "any_size", False))
    for name, given in weights.items():
        parameter = state[name]
        same = parameter.dtype == given.dtype or (parameter.is_floating_point() and given.is_floating_point())
        if not same or (parameter.shape != given.shape and not name.startswith(any_size)):
            got, expected = (f"{t.dtype} {tuple(t.shape)}" for t in (given, parameter))
            raise InputError(f"weights {name}: expected {expected}, got {got}")


# -- pruning -------------------------------------------------------------------------------------------------


@torch.no_grad()
def prune(tagger: Any, below: float = 0.0) -> Any:
    """Return a copy of a tagger without the features whose weights are all 0.

    By default the copy predicts the same labels. Training that starts from it has no weights for removed features.

    Args:
        tagger: A tagger with a `SparseLinear` scorer, or a `SegmentLinear` that has one for its labels.
        below: Weights of features with a smaller absolute value count as 0.

    Raises:
        InputError: `below` is negative, the scorer is another one, or no feature of tokens would remain.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(c1=0.1, max_iterations=20).fit(X, y).tagger_  # an L1 prior: many weights are 0
        >>> small = prune(tagger)
        >>> small.features.n_node_features < tagger.features.n_node_features, small.tag(X) == tagger.tag(X)
        (True, True)
    """
    scorer = tagger.scorer
    labels, prefix = (scorer.labels, "scorer.labels.") if isinstance(scorer, SegmentLinear) else (scorer, "scorer.")
    if not below >= 0:
        raise InputError(f"--below must be >= 0, got {below}")
    if not isinstance(labels, SparseLinear) or isinstance(labels, VectorLinear):
        raise InputError(f"{type(labels).__name__} cannot be pruned; only SparseLinear and SegmentLinear can")
    weights_of = {"node": labels.node} if labels.edge is None else {"node": labels.node, "edge": labels.edge}
    tables = {kind: _without_small(table, below) for kind, table in weights_of.items()}
    rows = {kind: table.any(1) for kind, table in tables.items()}
    if tagger.features.index.shared:
        n = len(rows["edge"])  # weighted features come after those of templates
        both = rows["node"][:n] | rows["edge"]
        rows = {"node": torch.cat([both, rows["node"][n:]]), "edge": both}
    if not rows["node"].any():
        raise InputError(f"--below {below:g}: no feature has such a weight; use a smaller one")
    features = tagger.features
    for kind, keep in rows.items():
        features = features.subset(kind, keep.cpu().numpy())
    config, tensors = tagger.to_state()
    arrays = {FEATURE_PREFIX + name: torch.from_numpy(array) for name, array in features.state_arrays().items()}
    replaced = tuple(f"{prefix}{kind}" for kind in rows)
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith((FEATURE_PREFIX, *replaced))}
    kept = {f"{prefix}{kind}": tables[kind][keep].cpu() for kind, keep in rows.items() if keep.any()}
    config = {**config, "features": features.state_dict_json(), PREDICTOR: None}
    if isinstance(scorer, SegmentLinear):
        config["scorer"], segments = _prune_segments(scorer, config["scorer"], below)
        kept |= segments
    build = Builder.trusting(tagger, *features.user_objects)
    return type(tagger).from_state(config, {**weights, **kept, **arrays}, build)


def _prune_segments(
    scorer: SegmentLinear, config: dict[str, Any], below: float
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the configuration and the tensors of a scorer without the features of segments whose weights are all 0."""
    table = _without_small(scorer.weight, below)
    keep = table.any(1)
    state, tensors = scorer.segments.subset(keep.cpu().numpy())
    segments = {**config[OPTIONS]["segments"], STATE: state}
    named = {f"scorer.segments.{name}": tensor for name, tensor in tensors.items()}
    config = {**config, OPTIONS: {**config[OPTIONS], "segments": segments}}
    return config, {**named, "scorer.weight": table[keep].cpu()}


def _without_small(table: Tensor, below: float) -> Tensor:
    """Return weights with zeros for those of a smaller absolute value."""
    return table.where(table.abs() >= below, 0.0)
