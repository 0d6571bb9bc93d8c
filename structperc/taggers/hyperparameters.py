"""Hyperparameters: the classes and options of a tagger's parts, its optimizer and its schedule as plain values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from structperc.builder import describe, without_learned
from structperc.constructors import CLASS, OPTIONS, class_path_of, parameters_of
from structperc.features.templates import template_name

PLAIN = (str, int, float, bool, type(None))


def hyperparameters(tagger: Any, optimizer: Any = None, schedule: Any = None) -> dict[str, Any]:
    """Return the classes and options of a tagger as a flat table for loggers: names such as `criterion.C`.

    Vocabularies are left out.

    Args:
        tagger: A tagger, trained or not.
        optimizer: The optimizer of its training.
        schedule: The schedule of the learning rate.

    Example:
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import MarginLoss
        >>> from structperc.scorers import SparseLinear
        >>> table = hyperparameters(Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), MarginLoss(C=2.0), KBest(2)))
        >>> table["criterion"], table["criterion.C"], table["features.node"]
        ('structperc.criteria.MarginLoss', 2.0, ['w[0]'])
    """
    features = tagger.features
    table = {
        "class": class_path_of(type(tagger)),
        "features.node": [template_name(one) for one in features.node],
        "features.edge": [template_name(one) for one in features.edge],
        "features.cutoff": features.cutoff,
    }
    parts = {name: part for name, part in without_learned(tagger.description()).items() if name != "strings"}
    for name in ("prior", "teacher"):
        if (part := getattr(tagger, name, None)) is not None:
            parts[name] = describe(part)
    if groups := getattr(tagger, "parameter_groups", None):
        parts["parameter_groups"] = vars(groups)
    for name, made in (("optimizer", optimizer), ("lr_scheduler", schedule)):
        if made is not None:
            parts[name] = _constructed(made)
    return {**table, **dict(pair for name, part in parts.items() for pair in _flat(name, part))}


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the class and each option of a described part, or each entry of a list of parts, with its dotted name."""
    if isinstance(value, Mapping):
        if CLASS in value:
            yield name, value[CLASS]
        for key, one in {**value, **value.get(OPTIONS, {})}.items():
            if key not in (CLASS, OPTIONS):
                yield from _flat(f"{name}.{key}", one)
    elif isinstance(value, list | tuple) and not all(isinstance(one, PLAIN) for one in value):
        for number, one in enumerate(value):
            yield from _flat(f"{name}.{number}", one)
    else:
        yield name, value if isinstance(value, PLAIN) else [*value] if isinstance(value, list | tuple) else str(value)


def _constructed(made: Any) -> dict[str, Any]:
    """Return {class_path, init_args} of an optimizer or a schedule: its options with plain values, and wrapped ones."""
    cls: Any = type(made)
    known = {**vars(made), **made.param_groups[0]} if isinstance(made, Optimizer) else vars(made)
    options = {name: known[name] for name in parameters_of(cls) if isinstance(known.get(name, made), PLAIN)}
    inner = [_constructed(one) for one in getattr(made, "optimizers", ())]
    return {CLASS: class_path_of(cls), OPTIONS: {**options, **({"optimizers": inner} if inner else {})}}


def describe_optimizer(make: Callable[[Iterable[Any]], Optimizer]) -> dict[str, Any]:
    """Return {class_path, init_args} of the optimizers that `make` returns, with all values of their groups."""
    made = make([nn.Parameter(torch.zeros(1))])
    options = {name: value for name, value in made.param_groups[0].items() if name != "params"}
    return {CLASS: class_path_of(type(made)), OPTIONS: options}


def describe_schedule(optimizer: Callable[..., Optimizer], make: Callable[[Optimizer], Any]) -> dict[str, Any]:
    """Return {class_path, state} of the learning rate scheduler that `make` returns, before the first step."""
    made = make(optimizer([nn.Parameter(torch.zeros(1))]))
    state = {name: str(value) for name, value in made.state_dict().items()}
    return {CLASS: class_path_of(type(made)), "state": state}
