"""Biases of models: further decoders, which prefer recall or precision, by name; and a temperature."""

import re
from collections.abc import Sized
from pathlib import Path
from typing import Any

from structperc.builder import Builder, describe_value
from structperc.chain import Decoder, KBest
from structperc.data.labels import LabelSet
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


class Biases:
    """Decoders of a model that prefer recall or precision, by name; they are saved with the model.

    Args:
        nonlocal_features: The non-local features of the model.

    Attributes:
        decoders: The decoders by name.
        default: Name of the one that is used; None: the model's own decoder.

    Example:
        >>> from structperc.chain import KBest, LabelBias
        >>> biases, own = Biases([]), KBest(1)
        >>> biases.add("recall", LabelBias({"O": -1.0}))
        >>> biases.use("recall")
        >>> biases.current(own).bias
        {'O': -1.0}
    """

    def __init__(self, nonlocal_features: Sized) -> None:
        self.nonlocal_features = nonlocal_features
        self.decoders: dict[str, Decoder] = {}
        self.default: str | None = None
        self.labels: LabelSet | None = None

    def allocate(self, labels: LabelSet) -> None:
        """Prepare the decoders for the labels of the model. Raises InputError for labels that one does not support."""
        self.labels = labels
        for decoder in self.decoders.values():
            decoder.allocate(labels)

    def add(self, name: str, decoder: Decoder) -> None:
        """Add a decoder, to be chosen by its name with `use`.

        Args:
            name: Letters, digits, "_" and "-"; not "none".
            decoder: With non-local features a `LabelBias`.

        Raises:
            InputError: Another name, or a decoder that does not support the labels or non-local features.
        """
        check_bias_name(name)
        check_decoder(decoder, self.nonlocal_features, f"{BIASES}.{name}")
        if self.labels is not None:
            decoder.allocate(self.labels)
        self.decoders[name] = decoder

    def use(self, name: str | None) -> None:
        """Predict with the bias of this name, or with the model's own decoder (None).

        Raises:
            InputError: An unknown name.
        """
        if name is not None and name not in self.decoders:
            names = f"; it has {', '.join(self.decoders)}" if self.decoders else ""
            raise InputError(f"the model has no bias {name!r}{names}; fit one with structperc calibrate")
        self.default = name

    def current(self, decoder: Decoder) -> Decoder:
        """Return the decoder of the current bias; without one, the model's own."""
        return decoder if self.default is None else self.decoders[self.default]


def describe_biases(model: Any) -> dict[str, Any]:
    """Return the biases, the default bias and the temperature of a model as plain JSON types, without missing ones."""
    biases = {name: describe_value(decoder) for name, decoder in model.biases.decoders.items()}
    entries = {BIASES: biases or None, DEFAULT_BIAS: model.biases.default, TEMPERATURE: model.temperature}
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
        model.biases.add(name, build.part(decoder, Decoder, f"{BIASES}.{name}"))
    model.biases.use(entries.get(DEFAULT_BIAS))
    model.temperature = entries.get(TEMPERATURE)
