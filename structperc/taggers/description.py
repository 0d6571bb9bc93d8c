"""The description of a saved model's parts: class and options of each, as plain JSON types."""

from typing import Any

from torch import nn

from structperc.criteria import Criterion
from structperc.criteria.base import SavedCriterion
from structperc.encoders import TextModule
from structperc.own_parts import is_own, options_of
from structperc.public_names import CLASS, LABELLING, LEARNED, OPTIONS, path_of


def describe(part: Any) -> dict[str, Any]:
    """Return {class_path, init_args} of an object that keeps its options under their own names.

    Modules among its options are described in the same way. Text modules add what they have learned, criteria of a
    user's own what is needed to label text without them, unless they change the scores of labels. Raises InputError
    for an option that is not kept.
    """
    if isinstance(part, SavedCriterion):
        return part.description
    options = {name: described(value) for name, value in options_of(part).items()}
    told = {CLASS: path_of(type(part)), OPTIONS: options}
    if isinstance(part, Criterion) and is_own(type(part)) and type(part).reads is Criterion.reads:
        told[LABELLING] = {"probabilistic": part.probabilistic, "separate": part.separate}
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
