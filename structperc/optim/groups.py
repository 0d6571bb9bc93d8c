"""ParameterGroups: learning rates and weight decay of the parameters of a module by name and by layer."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer

from structperc.encoders.pretrained import network_parts
from structperc.errors import InputError

SHOWN = 20  # names in an error message


class ParameterGroups:
    """Groups of parameters with their own learning rates and weight decay, for fine-tuning.

    Parameters are chosen by the beginning of their dotted names, such as "scorer.encoder"; the longest entry that fits
    counts, and "" fits all. Parameters without an entry have the options of the optimizer. Biases, normalisation layers
    and transition tables have no weight decay, unless an entry of `decay` is the whole name of the parameter.

    `layer_decay` lowers the rates within transformers of the Hugging Face library (discriminative fine-tuning, Howard &
    Ruder 2018, section 3.2; for transformers Clark et al. 2020). With n layers, layer i = 1, ..., n has the rate r *
    layer_decay**(n - i), and embeddings r * layer_decay**n, where r is the rate in `rates`. The layers are found in the
    structure of the network: the entries of its longest list of modules. Schedules of learning rates multiply the rate
    of each group, so that their ratios stay.

    Args:
        rates: Learning rate by beginning of the name.
        decay: Weight decay by beginning of the name.
        layer_decay: Factor of the rate from a layer to the one below it.

    Raises:
        InputError: A negative rate or decay, or `layer_decay` outside of 0..1. When called: an entry that fits no
            parameter, or `layer_decay` without a transformer or without its rate.

    Example:
        >>> import torch
        >>> from structperc.optim import ParameterGroups
        >>> model = torch.nn.ModuleDict({"encoder": torch.nn.Linear(2, 4), "head": torch.nn.Linear(4, 3)})
        >>> groups = ParameterGroups(rates={"": 1e-4, "head": 1e-2}, decay={"": 0.1})(model)
        >>> [(group["lr"], group["weight_decay"]) for group in groups]  # weights and biases of both
        [(0.0001, 0.1), (0.0001, 0.0), (0.01, 0.1), (0.01, 0.0)]
        >>> optimizer = torch.optim.AdamW(groups)
    """

    def __init__(
        self,
        rates: Mapping[str, float] | None = None,
        decay: Mapping[str, float] | None = None,
        layer_decay: float = 1.0,
    ) -> None:
        self.rates, self.decay, self.layer_decay = dict(rates or {}), dict(decay or {}), layer_decay
        for option, entries in {"rates": self.rates, "decay": self.decay}.items():
            for prefix, value in entries.items():
                if not value >= 0:
                    raise InputError(f"ParameterGroups: {option} of {prefix!r} must be >= 0, got {value}")
        if not 0 < layer_decay <= 1:
            raise InputError(f"ParameterGroups: layer_decay must be > 0 and <= 1, got {layer_decay}")

    def __call__(self, module: nn.Module) -> list[dict[str, Any]]:
        """Return the groups of all parameters of a module, for an optimizer of torch or of this library.

        `module`: a tagger, or any module.
        """
        return [
            {"params": [p for _, p in members], **dict(options)} for options, members in self._members(module).items()
        ]

    def names(self, module: nn.Module) -> list[str]:
        """Return the names of the parameters in the order of the groups."""
        return [name for members in self._members(module).values() for name, _ in members]

    def optimizer(self, make: Callable[[Iterable[Any]], Optimizer], module: nn.Module) -> Optimizer:
        """Return an optimizer of the groups.

        `make`: constructor of the optimizer. `module`: a tagger, or any module.

        Raises:
            InputError: the optimizer has no learning rate or weight decay, but there are entries for it.
        """
        made = make(self(module))
        known = getattr(made, "active", made).defaults
        for option, name, entries in (("rates", "lr", self.rates), ("decay", "weight_decay", self.decay)):
            if entries and name not in known:
                kind = type(getattr(made, "active", made)).__name__
                raise InputError(f"ParameterGroups: {kind} has no {name}; remove {option}, or change the optimizer")
        return made

    def _members(self, module: nn.Module) -> dict[tuple[tuple[str, float], ...], list[tuple[str, nn.Parameter]]]:
        """Return names and parameters by their options."""
        named = dict(module.named_parameters())
        for option, entries in {"rates": self.rates, "decay": self.decay}.items():
            for prefix in entries:
                if not any(_fits(prefix, name) for name in named):
                    known = _choices(prefix, named)
                    raise InputError(f"ParameterGroups: no parameter begins with {prefix!r}; change {option}: {known}")
        factors, plain = self._layer_factors(module), set(_names_without_decay(module))
        found: dict[tuple[tuple[str, float], ...], list[tuple[str, nn.Parameter]]] = {}
        for name, p in named.items():
            options = self._options(name, factors.get(name, 1.0), name in plain)
            found.setdefault(tuple(options.items()), []).append((name, p))
        return found

    def _options(self, name: str, factor: float, plain: bool) -> dict[str, float]:
        options = {}
        rate, decay = _longest(self.rates, name), _longest(self.decay, name)
        if rate is not None:
            options["lr"] = self.rates[rate] * factor
        elif factor != 1:
            raise InputError(f"ParameterGroups: layer_decay needs the rate of {name}; add the encoder to rates")
        if plain and decay != name:
            options["weight_decay"] = 0.0
        elif decay is not None:
            options["weight_decay"] = self.decay[decay]
        return options

    def _layer_factors(self, module: nn.Module) -> dict[str, float]:
        """Return the factor of the rate of each parameter of a transformer, by name."""
        if self.layer_decay == 1:
            return {}
        networks = list(_networks(module))
        if not networks:
            raise InputError("ParameterGroups: layer_decay needs an encoder Transformer; remove it")
        factors = {}
        for prefix, network in networks:
            parts = network_parts(network)
            height = max(depth for _, depth in parts)
            depths = {p: depth for part, depth in parts for p in part.parameters()}
            for name, p in network.named_parameters(prefix):
                factors[name] = self.layer_decay ** (height - depths.get(p, 0))
        return factors


def _networks(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield the outermost transformers of the Hugging Face library in a module, with their names."""
    if hasattr(module, "get_input_embeddings"):
        yield prefix, module
        return
    for name, child in module.named_children():
        yield from _networks(child, f"{prefix}.{name}" if prefix else name)


def _names_without_decay(module: nn.Module) -> Iterator[str]:
    """Yield the names of biases, of weights of normalisation layers, and of tables of transitions."""
    for prefix, part in module.named_modules():
        for name, _ in part.named_parameters(prefix, recurse=False):
            last = name.rpartition(".")[2]
            if "norm" in type(part).__name__.lower() or "bias" in last or "transition" in last:
                yield name


def _fits(prefix: str, name: str) -> bool:
    return not prefix or name == prefix or name.startswith(f"{prefix}.")


def _longest(entries: Iterable[str], name: str) -> str | None:
    """Return the longest entry that the name begins with, or None."""
    return max((prefix for prefix in entries if _fits(prefix, name)), key=len, default=None)


def _choices(prefix: str, names: Iterable[str]) -> str:
    """Return the next parts of names after the longest beginning of a wrong prefix that exists: "scorer has: ..."."""
    known = ""
    for part in prefix.split("."):
        longer = f"{known}.{part}" if known else part
        if not any(_fits(longer, name) for name in names):
            break
        known = longer
    start = len(known) + 1 if known else 0
    after = list(dict.fromkeys(name[start:].partition(".")[0] for name in names if _fits(known, name)))
    more = ", ..." if len(after) > SHOWN else ""
    return f"{known or 'the model'} has: {', '.join(after[:SHOWN])}{more}"
