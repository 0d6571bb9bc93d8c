"""The two files of a saved model, model.json and model.safetensors, as far as they can be read without PyTorch."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from structperc.data.reading import Unit
from structperc.data.tags import Scheme
from structperc.data.typed import check_fields, check_value
from structperc.errors import InputError
from structperc.own_parts import place_of_failure

FORMAT = 4
READ = (2, 3, FORMAT)  # format 2 had no checksums, 3 had whole tables and no hashed features
CONFIG, WEIGHTS = "model.json", "model.safetensors"
BELOW = tuple(f"{depth}{CONFIG}" for depth in ("*/", "*/*/", "*/*/*/"))  # where models of a run or a study are
CHECKSUMS = "checksums"
KEPT = "training_files"  # how they were read; models of earlier versions lack it
FEATURES = "features."  # begins the names of the arrays of features
ENTRIES = {
    "labels": list[str],
    "scheme": Scheme,
    "unit": Unit,
    "features": dict[str, Any],
}


Array = TypeVar("Array")


class Configuration(NamedTuple):
    """What model.json says."""

    entries: dict[str, Any]
    sealed: bool  # whether its checksum says that nobody changed it
    changed: bool  # whether it says that somebody did; neither in format 2


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a damaged model leads to within the block into an InputError of one line that names the folder."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        if place := place_of_failure(error):
            raise InputError(f"{path}: {place}: {reason}") from error
        raise InputError(f"{path}: not a readable model ({reason}); save it again") from None


def read_configuration(folder: Path) -> Configuration:
    """Return the configuration just as it was written.

    Raises InputError for a folder that lacks one of the two files, another format, and weights that were changed.
    Checksums show damage, not who wrote a model.
    """
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise InputError(f"no saved model here ({name} is missing){_suggestion(folder)}")
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    _check_format(config)
    entries = {name: value for name, value in config.items() if name != CHECKSUMS}
    if CHECKSUMS not in config:
        return Configuration(entries, False, changed=config["format"] != READ[0])
    sealed = _check_sums(config[CHECKSUMS], entries, folder)
    return Configuration(entries, sealed, not sealed)


def _suggestion(folder: Path) -> str:
    """Return a suggestion that names the models in folders below, such as that of a run."""
    below = (file.parent for pattern in BELOW for file in folder.glob(pattern) if (file.parent / WEIGHTS).is_file())
    found = [str(one) for one in islice(below, 2)]
    if not found:
        return ""
    return f"; did you mean {found[0]}?" if len(found) == 1 else f"; name one of those below, such as {found[0]}"


def read_arrays(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a model's weights and features by name. Raises InputError as `check_finite` does."""
    from safetensors.numpy import load_file

    arrays = load_file(folder / WEIGHTS)
    for name, array in arrays.items():
        check_finite(name, array.dtype.kind != "f" or bool(np.isfinite(array).all()))
    return arrays


def check_finite(name: str, finite: bool) -> None:
    """Raise InputError for weights that are not finite."""
    if not finite:
        raise InputError(f"{WEIGHTS}: {name} holds NaN or infinite numbers; save the model again")


def check_entries(config: dict[str, Any]) -> None:
    """Raise InputError for a configuration that lacks what all taggers have."""
    for name, value in required_entries(config, ENTRIES).items():
        check_value(value, ENTRIES[name], name)


def required_entries(description: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named entries of a description. Raises InputError for one that is missing."""
    for name in names:
        if name not in description:
            raise InputError(f"there is no {name!r}")
    return {name: description[name] for name in names}


def arrays_of_features(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return those of a model's arrays that are of its features, by their names there."""
    return {name.removeprefix(FEATURES): one for name, one in arrays.items() if name.startswith(FEATURES)}


def seal(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a configuration with its format, and with checksums of itself and of the weights in the folder."""
    config = {"format": FORMAT, **config}
    return {**config, CHECKSUMS: {WEIGHTS: _file_checksum(folder / WEIGHTS), CONFIG: _checksum(config)}}


def _check_format(config: Any) -> None:
    """Raise InputError unless this version can read the configuration."""
    if not isinstance(config, dict) or "format" not in config:
        raise InputError(f"{CONFIG} is no configuration of a model (it has no 'format')")
    if type(config["format"]) is not int or config["format"] not in READ:
        raise InputError(f"{CONFIG} has format {config['format']}, this version reads {', '.join(map(str, READ))}")


def _check_sums(sums: Any, entries: dict[str, Any], folder: Path) -> bool:
    """Whether the configuration is as it was saved. Raises InputError for weights that are not."""
    check_fields(sums, {WEIGHTS: str, CONFIG: str}, CHECKSUMS)
    if sums[WEIGHTS] != _file_checksum(folder / WEIGHTS):
        raise InputError(f"{WEIGHTS} is not as it was saved (its checksum is wrong); save the model again")
    return bool(sums[CONFIG] == _checksum(entries))


def _file_checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(config: dict[str, Any]) -> str:
    """Of the meaning, so that white space and the order of keys do not count."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
