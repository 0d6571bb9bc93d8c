"""Configuration files and options as the program's parser takes them: strict YAML, no unknown keys."""

import re
from argparse import Action
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, NoReturn, get_args, get_type_hints

import yaml
from jsonargparse import Namespace, get_loader, set_loader
from jsonargparse.typing import restricted_number_type
from pytorch_lightning.cli import LightningArgumentParser

from structperc.data.yaml_file import load_yaml, parse_yaml, read_yaml
from structperc.errors import InputError
from structperc.former_names import present_name
from structperc.spelling import did_you_mean

Seed = restricted_number_type("Seed", int, [(">=", 0), ("<", 2**32)])  # what NumPy's generators take
CLASS = ("class_path", "init_args", "dict_kwargs")  # keys of one
STRICT = "strict yaml"  # how the parser reads values: as it would by itself, if `load_yaml` takes them


def _value(text: str) -> Any:
    load_yaml(text)
    return get_loader("yaml")(text)


set_loader(STRICT, _value, (yaml.YAMLError,))


class ConfigurationParser(LightningArgumentParser):
    """Reads the configuration, and each class in it by a parser of the same kind.

    The parser it extends drops keys whose value is an empty mapping before it looks whether they are known, takes the
    beginning of an option's name for the option, and shows a file that is no configuration in full.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"parser_mode": STRICT, "allow_abbrev": False, **options})

    def parse_path(self, path: Any, *args: Any, **options: Any) -> Namespace:
        """A file. InputError for one that is no YAML or no mapping."""
        _check_mapping(read_yaml(path), str(path))
        return super().parse_path(path, *args, **options)

    def parse_string(self, content: str, *args: Any, **options: Any) -> Namespace:
        """The text of a file, or one that stands in place of its name; as `parse_path`."""
        value = parse_yaml(content, "inline")
        _check_mapping(value, "inline")
        self._refuse_unknown(value)
        return super().parse_string(content, *args, **options)

    def parse_object(self, obj: Any, *args: Any, **options: Any) -> Namespace:
        """Arguments of a class, by name."""
        self._refuse_unknown(obj)
        return super().parse_object(obj, *args, **options)

    def add_function_arguments(self, function: Any, *args: Any, **options: Any) -> Any:
        """Those of a function in place of a class, such as `FeatureExtractor.from_crfpp`. It must say what it makes."""
        returned = get_type_hints(function).get("return")
        if getattr(returned, "__module__", "builtins") == "builtins":
            self.error(f"{function.__module__}.{function.__qualname__} is neither a class nor says which one it makes")
        return super().add_function_arguments(function, *args, **options)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Refuses a command line or a configuration; suggests the name of an option for one that there is not."""
        found = re.match(r"unrecognized arguments: --([^ =]+)", message)
        if found and "did you mean" not in message:
            parsers = [self, *getattr(self._subcommands_action, "_name_parser_map", {}).values()]
            message += did_you_mean(found[1], [action.dest for one in parsers for action in one._actions])
        super().error(message, ex)

    def _refuse_unknown(self, given: Mapping[str, Any] | Namespace) -> None:
        actions = {action.dest: action for action in self._actions}
        known = [key for key in actions if key.removesuffix(".help") == key or key.removesuffix(".help") not in actions]
        for key, value in _entries(given, known):
            name = key.removesuffix("+")
            if name not in known:
                self.error(f"Option '{key}' is not accepted{did_you_mean(key, known)}")
            if isinstance(value, list | int | float) and _is_group(key, known):
                self.error(f"{key}: write keys and values, as in {{KEY: VALUE}}, not {value!r}")
            if value is None and not _may_be_null(actions[name]):
                self.error(f'Parser key "{key}": null is no value of it; leave it out for {actions[name].default!r}')


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


def _check_mapping(value: Any, name: str) -> None:
    """InputError for what is no mapping, and for options of a class beside its path."""
    if not isinstance(value, dict):
        what = "is empty" if value is None else f"holds {'a list' if isinstance(value, list) else 'plain text'}"
        raise InputError(f"{name}: a configuration is written as KEY: VALUE, but this {what}")
    for key, complaint in _misshapen(value):
        raise InputError(f"{name}: {key}: {complaint}")


def _misshapen(value: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys of classes that are not written as such, and what is wrong with them."""
    if isinstance(value, dict) and "class_path" in value:
        if not isinstance(value["class_path"], str) or not value["class_path"]:
            yield above, "class_path is the dotted path of a class, such as structperc.chain.KBest"
        elif (now := present_name(value["class_path"])) != value["class_path"]:
            yield above, f"{value['class_path']} is now {now}"
        for beside in value.keys() - set(CLASS):
            advice = f"options of a class stand under init_args{did_you_mean(str(beside), CLASS[1:])}"
            yield above, f"{beside} stands beside class_path; {advice}"
    if isinstance(value, dict) and not isinstance(value.get("init_args", {}), dict):
        yield above, "init_args are written as KEY: VALUE"
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _misshapen(one, f"{above}.{key}".removeprefix("."))
