"""A saved model as a folder of two files, written together and read with its weights as tensors.

The description of a saved model's parts: class and options of each, as plain JSON types.
"""

import json
import logging
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from structperc.class_paths import CLASS, LABELLING, LEARNED, OPTIONS, class_path_of
from structperc.constructors import constructor_arguments
from structperc.criteria import Criterion
from structperc.criteria.base import InferenceCriterion
from structperc.encoders import TextModule
from structperc.taggers.model_format import (
    CONFIG,
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
from structperc.user_code import is_user_class

logger = logging.getLogger("pytorch_lightning.structperc")


def write_folder(
    folder: Path, config: dict[str, Any], tensors: dict[str, Tensor], table: TableType = "float32"
) -> None:
    """Write the configuration (plain JSON types) and the tensors into a folder that exists.

    table: of the weights of features, see `narrow_tables`. Raises OSError if it cannot.
    """
    own = {name: tensors[name].numpy() for name in QUANTIZED_TABLES if name in tensors}
    arrays, tables = quantize_tables(own, table)
    others = {name: tensor for name, tensor in tensors.items() if name not in own}
    tensors = {**others, **{name: torch.from_numpy(array) for name, array in arrays.items()}}
    config = {**config, TABLES: tables} if tables else config
    try:
        save_file(_apart(tensors), folder / WEIGHTS)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    (folder / CONFIG).write_text(json.dumps(add_checksums(config, folder), ensure_ascii=False), encoding="utf-8")


def read_folder(folder: Path, device: str = "cpu") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return configuration and tensors just as they were written.

    Nothing but these two files is read. Raises InputError as `read_configuration` does, and for weights that are no
    finite numbers. A configuration may be changed by hand, which a warning says.
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


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that no two names share, as the file wants them: parts may share a part, such as a lexicon."""
    found: dict[int, Tensor] = {}
    return {n: t if found.setdefault(t.data_ptr(), t) is t else t.clone() for n, t in tensors.items()}


def describe(part: Any) -> dict[str, Any]:
    """Return {class_path, init_args} of an object that keeps its options under their own names.

    Modules among its options are described in the same way. Text modules add what they have learned, criteria of a
    user's own what is needed to label text without them, unless they change the scores of labels. Raises InputError
    for an option that is not kept.
    """
    if isinstance(part, InferenceCriterion):
        return part.description
    options = {name: described(value) for name, value in constructor_arguments(part).items()}
    told = {CLASS: class_path_of(type(part)), OPTIONS: options}
    if (
        isinstance(part, Criterion)
        and is_user_class(type(part))
        and type(part).transform_lattice is Criterion.transform_lattice
    ):
        told[LABELLING] = {"probabilistic": part.probabilistic, "independent_sentences": part.independent_sentences}
    learned = part.learned() if isinstance(part, TextModule) else None
    return told if learned is None else {**told, LEARNED: learned}


def described(value: Any) -> Any:
    """Return an option as plain JSON types: modules, alone or in a list, by `describe`, everything else as it is."""
    if isinstance(value, nn.ModuleList):
        return [describe(one) for one in value]
    return describe(value) if isinstance(value, nn.Module) else value


def without_learned(described: Any) -> Any:
    """Return a description without what its text modules have learned."""
    if isinstance(described, list):
        return [without_learned(one) for one in described]
    if not isinstance(described, dict):
        return described
    return {name: without_learned(value) for name, value in described.items() if name != LEARNED}
