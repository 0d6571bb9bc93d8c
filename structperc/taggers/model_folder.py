"""A saved model as a folder of two files, written together and read with its weights as tensors."""

import json
import logging
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from structperc.taggers.model_files import CONFIG, WEIGHTS, check_finite, read_configuration, seal
from structperc.taggers.narrow_tables import NARROWED, TABLES, Width, names_of_tables, narrowed, widened

logger = logging.getLogger("pytorch_lightning.structperc")


def write_folder(folder: Path, config: dict[str, Any], tensors: dict[str, Tensor], table: Width = "float32") -> None:
    """Write the configuration (plain JSON types) and the tensors into a folder that exists.

    table: of the weights of features, see `narrow_tables`. Raises OSError if it cannot.
    """
    own = {name: tensors[name].numpy() for name in NARROWED if name in tensors}
    arrays, tables = narrowed(own, table)
    others = {name: tensor for name, tensor in tensors.items() if name not in own}
    tensors = {**others, **{name: torch.from_numpy(array) for name, array in arrays.items()}}
    config = {**config, TABLES: tables} if tables else config
    try:
        save_file(_apart(tensors), folder / WEIGHTS)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    (folder / CONFIG).write_text(json.dumps(seal(config, folder), ensure_ascii=False), encoding="utf-8")


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
        check_finite(name, not tensor.is_floating_point() or bool(torch.isfinite(tensor).all()))
    narrow = {name: tensors.pop(name).cpu().numpy() for name in names_of_tables(config.entries) if name in tensors}
    wide = {name: torch.from_numpy(array).to(device) for name, array in widened(config.entries, narrow).items()}
    return config.entries, {**tensors, **wide}


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that no two names share, as the file wants them: parts may share a part, such as a lexicon."""
    found: dict[int, Tensor] = {}
    return {n: t if found.setdefault(t.data_ptr(), t) is t else t.clone() for n, t in tensors.items()}
