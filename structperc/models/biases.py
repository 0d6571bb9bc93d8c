"""Biases of models: further decoders, which prefer recall or precision, by name; and a temperature."""

import re
from collections.abc import Sized
from pathlib import Path
from typing import Any

from structperc.builder import Builder, describe_value
from structperc.chain import Decoder, KBest
from structperc.errors import InputError
from structperc.models.model_format import BIASES, DEFAULT_BIAS, PREDICTOR, TEMPERATURE, bias_entries, update_entries


def check_bias_name(name: str) -> None:
    """Raise InputError for the name of a bias that has other characters than letters, digits, "_" and "-"."""
    if not re.fullmatch(r"[\w-]+", name) or name == "none":
        raise InputError(f"invalid name of a bias: {name!r}; use letters, digits, _ and -, and not 'none'")


def check_decoder(decoder: Decoder, nonlocal_features: Sized, place: str) -> None:
    """Raise InputError, which begins with `place`, for a decoder that does not support non-local features."""
    if len(nonlocal_features) and not isinstance(decoder, KBest):
        name = type(decoder).__name__
        raise InputError(f"{place}: {name} does not support non-local features; use KBest or LabelBias")


def describe_biases(model: Any) -> dict[str, Any]:
    """Return the biases, the default bias and the temperature of a model as plain JSON types, without missing ones."""
    biases = {name: describe_value(decoder) for name, decoder in model.biases.items()}
    entries = {BIASES: biases or None, DEFAULT_BIAS: model.default_bias, TEMPERATURE: model.temperature}
    return {name: value for name, value in entries.items() if value is not None}


def save_biases(model: Any, folder: Path) -> None:
    """Replace the biases, the default bias and the temperature of a saved model by those of the model.

    Raises InputError as `update_entries` does.
    """
    update_entries(folder, {**describe_biases(model), PREDICTOR: model.compiled()})


def restore_biases(model: Any, description: dict[str, Any], build: Builder) -> None:
    """Set the biases, the default bias and the temperature of a `description`, if it has any.

    Raises:
        InputError: An invalid entry.
    """
    entries = bias_entries(description)
    for name, decoder in entries.get(BIASES, {}).items():
        check_bias_name(name)
        model.biases[name] = build.part(decoder, Decoder, f"{BIASES}.{name}")
        check_decoder(model.biases[name], model.nonlocal_features, f"{BIASES}.{name}")
    model.use_bias(entries.get(DEFAULT_BIAS))
    model.temperature = entries.get(TEMPERATURE)
