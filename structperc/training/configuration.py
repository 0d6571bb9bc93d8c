"""Configurations: files and options of a command line merged, checked, shown and built.

`Configuration` composes one YAML tree from the defaults, the files of -c and the dotted options. A `Builder` checks it
against the type hints of the trainer, the model, the data module and all classes in them.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from textwrap import wrap
from typing import Any

import pytorch_lightning as pl
import yaml
from pytorch_lightning.callbacks import ModelCheckpoint

from structperc.builder import NO_PLAIN_VALUE, Builder, OptionError, packages_of, plain, public_names, type_name
from structperc.constructors import CLASS, OPTIONS, REQUIRED, Parameter, parameters_of
from structperc.data.yaml_file import node_value, parse_node, place
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.spelling import did_you_mean
from structperc.taggers.base import BaseTagger
from structperc.training.loggers import LOGS, with_log_folder
from structperc.training.overlays import Arguments, compose_all, overlaid, with_option

DEFAULTS = f"""
trainer:
  devices: 1
  log_every_n_steps: 1000
  enable_model_summary: false
  logger: {{class_path: structperc.training.loggers.RunLog, init_args: {{save_dir: '', name: {LOGS}}}}}
checkpoint: {{monitor: dev/score, mode: max, filename: best, enable_version_counter: false}}
"""
GROUPS = {"trainer": pl.Trainer, "checkpoint": ModelCheckpoint}  # their options have no class_path
SUGGESTED = 3  # options suggested for an unknown one
OPTION_ALIASES = {  # names in other programs -> the option here
    "batch": "data.batch_size",
    "checkpoint": "ckpt_path",
    "cuda": "trainer.accelerator",
    "dev_file": "data.files",
    "device": "trainer.accelerator",
    "epochs": "trainer.max_epochs",
    "gpu": "trainer.accelerator",
    "gpus": "trainer.accelerator",
    "iterations": "trainer.max_epochs",
    "learning_rate": "model.optimizer.lr",
    "lr": "model.optimizer.lr",
    "max_iter": "trainer.max_epochs",
    "max_iterations": "trainer.max_epochs",
    "n_epochs": "trainer.max_epochs",
    "num_epochs": "trainer.max_epochs",
    "num_train_epochs": "trainer.max_epochs",
    "optim": "model.optimizer",
    "out": "trainer.default_root_dir",
    "output": "trainer.default_root_dir",
    "output_dir": "trainer.default_root_dir",
    "per_device_train_batch_size": "data.batch_size",
    "progress": "trainer.enable_progress_bar",
    "resume": "ckpt_path",
    "seed": "seed_everything",
    "test_file": "data.files",
    "train_batch_size": "data.batch_size",
    "train_file": "data.files",
    "valid": "data.files",
    "validation": "data.files",
    "validation_file": "data.files",
}


class Configuration:
    """The options of a command line and its files, checked and with defaults.

    Args:
        arguments: arguments of the command.
        base: type hint of what model.class_path may name.
        default: the class of a model without class_path.

    Attributes:
        values: plain values of all valid options, including defaults.
    """

    def __init__(self, arguments: Arguments, base: Any = BaseTagger, default: type | None = None) -> None:
        below = parse_node(DEFAULTS, "defaults")
        assert isinstance(below, yaml.MappingNode)
        files = [compose_all(arguments.files)] if arguments.files else []
        self.tree = reduce(with_option, arguments.options, reduce(overlaid, [below, *files]))
        self.builder = Builder(None, self._text)
        self.fields = {
            "seed_everything": Parameter(bool | int, 1),
            "trainer": Parameter(pl.Trainer, REQUIRED),
            "model": Parameter(base, REQUIRED if default is None else default),
            "data": Parameter(SequenceDataModule, REQUIRED),
            "checkpoint": Parameter(ModelCheckpoint, REQUIRED),
            "ckpt_path": Parameter(str | None, None),
        }
        self.values = self._values(node_value(self.tree))
        self._set_data_seed()

    # -- checks ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise InputError with file and line for the first mistake; unknown options come first."""
        seed = self.values.get("seed_everything", True)
        if not isinstance(seed, bool) and not 0 <= seed < 2**32:  # the range of NumPy's generators
            self.builder.errors.append(OptionError("seed_everything", f"expected a number from 0 to {2**32 - 1}"))
        if self.builder.errors:
            raise self._located(min(self.builder.errors, key=lambda one: one.known_options is None))

    def _values(self, given: dict[str, Any]) -> dict[str, Any]:
        if isinstance(trainer := given["trainer"], dict):
            trainer["logger"] = with_log_folder(trainer.get("logger"), self.builder)
        plain_fields = {name: field for name, field in self.fields.items() if name not in GROUPS}
        plain_values = {name: value for name, value in given.items() if name not in GROUPS}
        values: dict[str, Any] = {}
        for name, cls in GROUPS.items():
            part = given.get(name)
            if not isinstance(part, dict):
                self.builder.errors.append(
                    OptionError(name, f"expected keys and values, as in {{KEY: VALUE}}, got {part!r}")
                )
                part = {}
            values[name] = self.builder.fields(part, parameters_of(cls), "this command", name)
        values |= self.builder.fields(plain_values, plain_fields, "this command", "")
        return {name: values[name] for name in self.fields if name in values}

    def _set_data_seed(self) -> None:
        """Set the seed of the order of the data to `seed_everything`, unless a file or an option sets it."""
        seed, data = self.values.get("seed_everything"), self.values.get("data")
        options = data.get(OPTIONS, {}) if isinstance(data, dict) else {}
        if type(seed) is int and "seed" in options and find_entry(self.tree, ["data", "seed"])[1] is None:
            options["seed"] = seed

    def _text(self, dotted: str) -> str | None:
        """Return the text of a value from the command line; None for others."""
        _, value = find_entry(self.tree, dotted.split("."))
        if value is None or not value.start_mark.name.startswith("--"):
            return None
        if value.start_mark.buffer and not value.start_mark.index:  # the whole option
            return str(value.start_mark.buffer).rstrip("\0")
        return str(value.value) if isinstance(value, yaml.ScalarNode) else None

    def _located(self, error: OptionError) -> InputError:
        """Return the error with file and line of the option, and with suggestions for an unknown one."""
        reason = error.reason
        if error.known_options is not None:
            options = flat_options(self.values)
            meant = suggest_options(error.key, options)
            reason += f"; did you mean {' or '.join(meant)}?" if meant else did_you_mean(error.key, options)
        key, _ = find_entry(self.tree, error.key.split("."))
        in_file = key is not None and not key.start_mark.name.startswith(("--", "defaults", "inline"))
        start = f"{place(key)}: " if key is not None and in_file else ""
        return InputError(f"{start}{error.key + ': ' if error.key else ''}{reason}")

    # -- use -------------------------------------------------------------------------------------------------

    def build(self, *names: str) -> Any:
        """Return the object of an option, such as ("model",) or ("trainer", "logger")."""
        value, hint = self.values[names[0]], self.fields[names[0]].hint
        for name in names[1:]:
            value, hint = value[name], parameters_of(hint)[name].hint
        dotted = ".".join(names)
        try:
            return self.builder.build(value, hint, dotted)
        except OptionError as error:
            raise self._located(error) from error

    def build_group(self, name: str) -> dict[str, Any]:
        """Return the arguments of the trainer or of the checkpoint callback."""
        return {option: self.build(name, option) for option in self.values[name]}

    # -- help ------------------------------------------------------------------------------------------------

    def help_lines(self, key: str, name: str) -> Iterator[str]:
        """Yield the options of a class for a dotted key, or all classes for it if the name is empty.

        Without a key: all options of the command.
        """
        if not key:
            yield from ("  --seed_everything N", "  --ckpt_path PATH")
            for option, cls in GROUPS.items():
                yield from ("", f"{option}:", *option_lines(cls, f"--{option}."))
            for option in ("model", "data"):
                yield from ("", f"{option}:", *self.help_lines(option, ""))
            return
        bases = self.builder.bases_of(self._hint(key))
        if name:
            made = self.builder.find(name, bases, f"{key}.help")
            yield from (first_line(made), *option_lines(made, f"--{key}."))
            return
        for package in packages_of(bases):
            for public in public_names(package):
                exported = getattr(import_module(package), public, None)
                if isinstance(exported, type) and issubclass(exported, bases) and not inspect.isabstract(exported):
                    yield f"  {package}.{public}  {first_line(exported)}"
        yield f"  --{key}.help CLASS lists the options of a class"

    def _hint(self, key: str) -> Any:
        """The type hint of a dotted key."""
        fields, value, hint = self.fields, self.values, None
        for part in key.split("."):
            if part not in fields:
                raise InputError(f"{key}.help: unknown option {part}{did_you_mean(part, fields)}")
            hint, value = fields[part].hint, value.get(part) or {}
            made = GROUPS.get(part)
            if made is None and isinstance(value, dict) and CLASS in value:
                made = self.builder.find(value[CLASS], object, key)
                value = value.get(OPTIONS, {})
            fields = {} if made is None else parameters_of(made)
        return hint


def flat_options(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return the values of all options by dotted name without class_path and init_args."""
    options: dict[str, Any] = {}
    for name, value in values.items():
        key = above if name in (CLASS, OPTIONS) else f"{above}.{name}" if above else name
        options |= {key: value} if key != above else {}
        options |= flat_options(value, key) if isinstance(value, dict) else {}
    return options


def suggest_options(given: str, known: Iterable[str]) -> list[str]:
    """Return options with the same end as a dotted name, or its counterparts of other programs, best ones first.

    Example:
        >>> suggest_options("optimizer.lr", ["model.optimizer.lr", "model.prior.lr"])
        ['model.optimizer.lr']
    """
    names = list(known)
    parts = given.replace("-", "_").split(".")
    usual = [OPTION_ALIASES[parts[-1]]] if parts[-1] in OPTION_ALIASES else []
    ending = [option for option in names if option.split(".")[-1] == parts[-1]]
    nearest = [option for option in ending if f".{option}".endswith(f".{'.'.join(parts)}") and len(parts) > 1]
    return [*dict.fromkeys(name for name in nearest or [*usual, *ending] if name in names)][:SUGGESTED]


def find_entry(node: yaml.Node | None, keys: Sequence[str]) -> tuple[yaml.Node | None, yaml.Node | None]:
    """Return the nodes of key and value of an option whose keys leave out init_args; positions in lists are numbers.

    For a missing option the key is that of the innermost existing one, and the value None.
    """
    last = None
    for key in keys:
        inner = node
        while True:
            entries = {k.value: (k, v) for k, v in inner.value} if isinstance(inner, yaml.MappingNode) else {}
            entry = entries.get(key) or entries.get(f"{key}+")
            if entry or OPTIONS not in entries:
                break
            inner = entries[OPTIONS][1]
        if entry:
            last, node = entry
        elif not key.isdecimal():
            return last, None
        elif isinstance(node, yaml.SequenceNode):  # a single item that is added to a list needs no brackets
            node = node.value[int(key)]
    return last, node


def option_lines(made: Any, prefix: str) -> Iterator[str]:
    """Yield the options of a class with types and defaults, each followed by its description."""
    texts = argument_texts(made)
    for name, (hint, default) in parameters_of(made).items():
        value = plain(default)
        shown = "required" if default is REQUIRED else "" if value is NO_PLAIN_VALUE else f"default {to_text(value)}"
        yield f"  {prefix}{name}  {', '.join(filter(None, (type_name(hint), shown)))}"
        yield from wrap(texts.get(name, ""), 100, initial_indent=" " * 6, subsequent_indent=" " * 6)


def first_line(made: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(made) or "").partition("\n")[0]


def argument_texts(made: Any) -> dict[str, str]:
    r"""Return the descriptions of arguments in docstrings of Google style, also of base classes."""
    texts: dict[str, str] = {}
    for cls in getattr(made, "__mro__", (made,)):
        for text in (cls.__doc__, getattr(vars(cls).get("__init__"), "__doc__", None)):
            _, _, section = inspect.cleandoc(text or "").partition("Args:\n")
            block = re.split(r"\n(?=\S)", section)[0]
            for entry in re.split(r"\n(?= {4}\w)", block):
                name, colon, words = entry.strip().partition(":")
                if colon and (name := name.partition(" ")[0]) not in texts:
                    texts[name] = " ".join(words.split())
    return texts


def to_text(value: Any) -> str:
    """Return a plain value as it is written in YAML."""
    return yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("...\n").strip()
