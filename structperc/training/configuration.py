"""Configuration files and options as the program's parser takes them: strict YAML, no unknown keys."""

import re
from argparse import Action
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import lru_cache
from types import NoneType
from typing import Any, NoReturn, get_args, get_type_hints

import yaml
from jsonargparse import Namespace, get_loader, set_loader
from jsonargparse.typing import restricted_number_type
from pytorch_lightning.cli import LightningArgumentParser

from structperc.data.yaml_file import load_yaml, parse_yaml
from structperc.spelling import did_you_mean
from structperc.training.configuration_shape import check_shape

Seed = restricted_number_type("Seed", int, [(">=", 0), ("<", 2**32)])  # what NumPy's generators take
STRICT = "strict yaml"  # how the parser reads values: as it would by itself, if `load_yaml` takes them

OFTEN = ("model.optimizer", "model.lr_scheduler")  # options that are looked for beside the model

_PARSED: ContextVar[dict[Any, Namespace] | None] = ContextVar("parsed", default=None)  # within one command line


@lru_cache(1000)  # the parser reads each value several times, and configurations have values in common
def _check_strict(text: str) -> None:
    load_yaml(text)


def _value(text: str) -> Any:
    _check_strict(text)
    return get_loader("yaml")(text)


set_loader(STRICT, _value, (yaml.YAMLError,))


class ConfigurationParser(LightningArgumentParser):
    """Reads the configuration, and each class in it by a parser of the same kind.

    The parser it extends drops keys whose value is an empty mapping before it looks whether they are known, takes the
    beginning of an option's name for the option, and shows a file that is no configuration in full. It also parses each
    class four times, and so what a class in a class holds sixteen times, ...; here what comes again is looked up.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"parser_mode": STRICT, "allow_abbrev": False, **options})

    def parse_args(self, *args: Any, **options: Any) -> Namespace:  # type: ignore[override]
        """Parse a command line and the configurations that it names."""
        with looked_up():
            return super().parse_args(*args, **options)

    def parse_string(self, content: str, *args: Any, **options: Any) -> Namespace:
        """Parse the text of a configuration."""
        value = parse_yaml(content, "inline")
        check_shape(value, "inline")
        self._refuse_unknown(value)
        return super().parse_string(content, *args, **options)

    def parse_object(self, obj: Any, *args: Any, **options: Any) -> Namespace:
        """Parse the arguments of a class, given by name; unknown names are refused first."""
        parsed = _PARSED.get()
        if parsed is None:
            return self._parse_known(obj, *args, **options)
        key = (self, repr((obj, args, options)), _mode())
        if key not in parsed:
            parsed[key] = self._parse_known(obj, *args, **options)
        return parsed[key].clone()

    def _parse_known(self, obj: Any, *args: Any, **options: Any) -> Namespace:
        self._refuse_unknown(obj)
        return super().parse_object(obj, *args, **options)

    def add_function_arguments(self, function: Any, *args: Any, **options: Any) -> Any:
        """Add the arguments of a function that stands for a class, such as `FeatureExtractor.from_crfpp`.

        The function must have a type hint for what it returns.
        """
        returned = get_type_hints(function).get("return")
        if getattr(returned, "__module__", "builtins") == "builtins":
            self.error(f"{function.__module__}.{function.__qualname__} is neither a class nor says which one it makes")
        return super().add_function_arguments(function, *args, **options)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Refuse a command line or a configuration with an InputError, which may suggest the option that was meant."""
        found = re.match(r"unrecognized arguments: --([^ =]+)", message)
        if found and "did you mean" not in message:
            parsers = [self, *getattr(self._subcommands_action, "_name_parser_map", {}).values()]
            message += did_you_mean(found[1], _options([action.dest for one in parsers for action in one._actions]))
        super().error(message, ex)

    def _refuse_unknown(self, given: Mapping[str, Any] | Namespace) -> None:
        actions = {action.dest: action for action in self._actions}
        known = [key for key in actions if key.removesuffix(".help") == key or key.removesuffix(".help") not in actions]
        for key, value in _entries(given, known):
            name = key.removesuffix("+")
            if name not in known:
                self.error(f"Option '{key}' is not accepted{did_you_mean(key, _options(known))}")
            if isinstance(value, list | int | float) and _is_group(key, known):
                self.error(f"{key}: write keys and values, as in {{KEY: VALUE}}, not {value!r}")
            if value is None and not _may_be_null(actions[name]):
                self.error(f'Parser key "{key}": null is no value of it; leave it out for {actions[name].default!r}')


@contextmanager
def looked_up() -> Iterator[None]:
    """Parse classes with the same options once within the block, which may be that of many command lines."""
    before = _PARSED.set({} if _PARSED.get() is None else _PARSED.get())
    try:
        yield
    finally:
        _PARSED.reset(before)


def _mode() -> frozenset[tuple[str, Any]]:
    """What the result depends on beside parser and values: how strict the parser is now, the folder of a file, ..."""
    return frozenset((one.name, value) for one, value in copy_context().items() if isinstance(value, bool | str))


def _options(known: list[str]) -> list[str]:
    """Names that may be meant: those of a program's model, too, which other programs have beside it."""
    return [*known, *OFTEN] if "model" in known else known


def _may_be_null(action: Action) -> bool:
    kind = getattr(action, "_typehint", None)  # of options with a type
    return kind in (None, Any) or action.default is None or NoneType in get_args(kind)


def _is_group(key: str, known: list[str]) -> bool:
    return any(other.startswith(f"{key}.") for other in known)


def _entries(given: Mapping[str, Any] | Namespace, known: list[str], above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values, down to the keys that a parser has: what stands below them is for other parsers."""
    pairs = given.items(branches=True, nested=False) if isinstance(given, Namespace) else given.items()
    for name, value in pairs:
        key = f"{above}{name}"
        if isinstance(value, Mapping | Namespace) and _is_group(key, known):
            yield from _entries(value, known, f"{key}.")
        elif not key.startswith("__"):  # which the parser writes itself
            yield key, value
