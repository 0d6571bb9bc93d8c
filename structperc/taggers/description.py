"""The description of a saved model's parts: class and options of each, as plain JSON types."""

import inspect
from typing import Any

from torch import nn

from structperc.encoders import TextModule
from structperc.public_names import CLASS, LEARNED, OPTIONS, path_of


def describe(part: Any) -> dict[str, Any]:
    """Return {class_path, init_args} of an object that keeps its options under their own names.

    Modules among its options are described in the same way. Text modules add what they have learned.
    """
    parameters = inspect.signature(type(part)).parameters.values()
    options = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    values = {option: getattr(part, option) for option in options}
    told = {CLASS: path_of(type(part)), OPTIONS: {option: described(value) for option, value in values.items()}}
    learned = part.learned() if isinstance(part, TextModule) else None
    return told if learned is None else {**told, LEARNED: learned}


def described(value: Any) -> Any:
    """Return an option as plain JSON types: modules, alone or in a list, by `describe`, everything else as it is."""
    if isinstance(value, nn.ModuleList):
        return [describe(one) for one in value]
    return describe(value) if isinstance(value, nn.Module) else value
