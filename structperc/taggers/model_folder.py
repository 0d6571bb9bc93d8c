"""The two files of a saved model, model.json and model.safetensors: written together, checked when they are read."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from structperc.data.typed import check_fields
from structperc.errors import InputError

FORMAT = 3
READ = (2, FORMAT)  # format 2 had no checksums
CONFIG, WEIGHTS = "model.json", "model.safetensors"
CHECKSUMS = "checksums"

logger = logging.getLogger("pytorch_lightning.structperc")


def write_folder(folder: Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write the configuration (plain JSON types) and the tensors into a folder that exists.

    Raises OSError if it cannot.
    """
    try:
        save_file(_apart(tensors), folder / WEIGHTS)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    config = {"format": FORMAT, **config}
    config[CHECKSUMS] = {WEIGHTS: _file_checksum(folder / WEIGHTS), CONFIG: _checksum(config)}
    (folder / CONFIG).write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")


def read_folder(folder: Path, device: str = "cpu") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return configuration and tensors just as they were written.

    Nothing but these two files is read. Raises InputError for files that are missing, damaged or of another format, for
    weights that were changed and for weights that are no finite numbers. A configuration may be changed by hand, which
    a warning says. Checksums show damage, not who wrote a model; format 2 had none.
    """
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise InputError(f"no saved model here ({name} is missing)")
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    _check_format(config)
    if CHECKSUMS in config:
        _check_sums(config, folder)
    tensors = load_file(folder / WEIGHTS, device=device)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise InputError(f"{WEIGHTS}: {name} holds NaN or infinite numbers; save the model again")
    return {name: value for name, value in config.items() if name != CHECKSUMS}, tensors


def _check_format(config: Any) -> None:
    """Raise InputError unless this version can read the configuration."""
    if not isinstance(config, dict) or "format" not in config:
        raise InputError(f"{CONFIG} is no configuration of a model (it has no 'format')")
    if type(config["format"]) is not int or config["format"] not in READ:
        raise InputError(f"{CONFIG} has format {config['format']}, this version reads {', '.join(map(str, READ))}")


def _check_sums(config: dict[str, Any], folder: Path) -> None:
    check_fields(config[CHECKSUMS], {WEIGHTS: str, CONFIG: str}, CHECKSUMS)
    if config[CHECKSUMS][WEIGHTS] != _file_checksum(folder / WEIGHTS):
        raise InputError(f"{WEIGHTS} is not as it was saved (its checksum is wrong); save the model again")
    if config[CHECKSUMS][CONFIG] != _checksum({name: config[name] for name in config if name != CHECKSUMS}):
        logger.warning("%s was changed after it was saved (its checksum is wrong)", folder / CONFIG)


def _file_checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(config: dict[str, Any]) -> str:
    """Of the meaning, so that white space and the order of keys do not count."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that no two names share, as the file wants them: parts may share a part, such as a lexicon."""
    found: dict[int, Tensor] = {}
    return {n: t if found.setdefault(t.data_ptr(), t) is t else t.clone() for n, t in tensors.items()}
