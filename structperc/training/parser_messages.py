"""Complaints of the configuration parser as one line: where, which option, and what is wrong with it.

The parser's own messages are indented by nesting, and show all types that a value might have had and whole values.
"""

import importlib
import os
import pkgutil
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import yaml

from structperc.data.yaml_file import find_key, place
from structperc.errors import InputError
from structperc.packaged_configs import packaged_named, split_arguments
from structperc.spelling import did_you_mean
from structperc.training.overlays import composed

LONGEST = 80  # letters of a value that is shown
SUGGESTED = 3  # options that may be meant by a name
MEANT = {  # names that other programs use -> the option here
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

_HEAD = re.compile(
    r"Parser key \"(?P<key>[^\"]+)\": ?|Problem with given class_path '(?P<owner>[^']+)': ?"
    r"|Type .+? expects a function or a callable class: "
)
_BUILT = re.compile(  # ends messages about functions
    r"\.?\. Got value: Namespace\(.*?class_path='(?P<told>[^']+)'.*|(?<=')\. Got value: (?P<named>[\w.]+)$"
)
_TYPE = re.compile(r"Expected an? (<class '.+?'>|typing\.\S+\[.*?\])(?:\. Got value: ?(.*))?$")
_VALUE = re.compile(r"Given value: (.*)")
_NOISE = re.compile(
    r"$|Does not validate against|Subtypes:|Errors:|Given value|Subclass types expect|a class path \(str\)|a dict with"
    r"|Expected a path but|Unable to load config '"
)


def _stray(found: re.Match[str]) -> str:
    """Return the complaint about an argument that is not an option; it may be a file without its option."""
    word = found[1].split()[0]
    if word.endswith((".yaml", ".yml")):
        return f"{word} is no option; write -c {word}"
    if alike := packaged_named(word):
        return f"{word} is no option; write -c {alike[0]}"
    if os.path.isfile(word):
        return f"{word} is no option; for a configuration that reads it: structperc init {word} -o own.yaml"
    return f"{word} is no option; write --KEY=VALUE"


_REWRITTEN: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"Option 'class_path' is not accepted.*", "options of a class stand under init_args, beside class_path"),
    (r"Option '([^']+)' is not accepted", r".\1 is no option of OWNER"),
    (r"unrecognized arguments: --([^ =;]+)[^;]*", r".\1 is no option of OWNER"),
    (r"unrecognized arguments: ([^;]*)", _stray),
    (r"the following arguments are required: \w+\.(\w+).*", r"no \1 is given: write it into the file of -c"),
    (r"the following arguments are required: (.*)", r"OWNER needs \1"),
    (r"Not a valid subclass of (\w+).*", r"write the class_path of a \1 and its init_args, nothing else"),
    (r"Expected a dot import path string: ?(.*)", r"'\1' is no class path, such as structperc.chain.KBest"),
    (r"Expected an import path or a subclass spec, .*", "write class_path and init_args"),
    (r"Import path (\S+) does not correspond to a subclass of (\S+)", r"\1 is no \2"),
    (r"Expected an instantiatable class, but .*", "this class is only the base of others; name one of them"),
    (r"Not of type Seed.*", "write a whole number from 0 to 4294967295"),
    (r"module '[\w.]+' has no attribute '\w+'", "there is no OWNER"),
    (r"typing\.Literal\[(.*?)\]", r"one of \1"),
    (r"<class '(?:\w+\.)*(\w+)'>", r"\1"),
    (r"NoneType", "null"),
)


class Complaint(NamedTuple):
    """A message of the parser, taken apart into the option, the class it belongs to, and the reason."""

    keys: list[str]
    owner: str | None  # class path of the object that is not built
    reason: str

    def line(self) -> str:
        """Return one line: the option, or the class where no option is known, and what is wrong with it."""
        text = self.reason
        for pattern, form in _REWRITTEN:
            text = re.sub(pattern, form, text)
        text = text.replace("OWNER", self.owner or "this command") + _nearest(self.reason)
        key = "--config" if self.keys == ["config"] else ".".join(self.keys)
        if text.startswith("."):
            return f"{key}{text}".removeprefix(".")
        place = key or ("" if (self.owner or "") in text else self.owner)
        return f"{place}: {text}" if place else text

    def place(self, arguments: Sequence[str]) -> str:
        """Return "file:line: " of the option if one of the arguments' configuration files has it, else ""."""
        unknown = re.match(r"Option '([^']+)' is not accepted", self.reason)
        keys = [*self.keys, *(unknown[1].split(".") if unknown else ())]
        keys = ".".join(keys).split(".")
        files, options = split_arguments(arguments)
        if _is_option(".".join(keys), options):
            return ""
        trees = [tree for file in files if os.path.isfile(file) and (tree := _tree(file)) is not None]
        for n in range(len(keys), 0, -1):
            for tree in reversed(trees):
                if key := find_key(tree, keys[:n], between=("init_args",)):
                    return f"{place(key)}: "
        return ""


def parser_message(message: str, arguments: Sequence[str] = (), known: Callable[[], Sequence[str]] = lambda: ()) -> str:
    """Return the message as one line, which begins with file and line of the option if one of the arguments has it.

    `known` returns all options, some of which may be meant by one that does not exist.
    """
    complaint = read_message(message)
    line = complaint.line()
    unknown = re.match(r"([\w.-]+) is no option of [^;]+", line)
    if unknown and (meant := options_meant(unknown[1], known())):
        line = f"{unknown[0]}; did you mean {' or '.join(meant)}?"
    return complaint.place(arguments) + line


def read_message(message: str) -> Complaint:
    """Take a message apart: its first reason for which no type fits is kept.

    Where there are only types, these and the value are the reason.
    """
    keys: list[str] = []
    reasons: list[str] = []
    types: list[str] = []
    owner, value, indent = None, "", 0
    for line in message.splitlines():
        text = line.strip().removeprefix("- ")
        while head := _HEAD.match(text):
            keys += [head["key"]] if head["key"] and keys[-1:] != [head["key"]] and not reasons else []
            owner = head["owner"] or owner
            text = text[head.end() :]
        if built := _BUILT.search(text):
            text, owner = text[: built.start()], built["told"] or built["named"]
        if found := _TYPE.match(text):
            indent = indent or len(line) - len(line.lstrip())
            types += [found[1]] if line.startswith(" " * indent) else []
            value = value or found[2] or ""
        elif found := _VALUE.match(text):
            value = value or found[1]
        elif not _NOISE.match(text):
            reasons.append(text)
    if value.startswith("[") and len(reasons) > 1 and reasons[0].startswith("Not a valid subclass"):
        del reasons[0]  # a list is not one, as its place knows: what is wrong is in the list
    expected = f"expected {' or '.join(dict.fromkeys(types))}, got {value[:LONGEST]}"
    return Complaint(keys, owner, reasons[0] if reasons else expected)


def _nearest(reason: str) -> str:
    """A suggestion for a name that a module does not have."""
    found = re.fullmatch(r"module '([\w.]+)' has no attribute '(\w+)'", reason)
    if not found:
        return ""
    module = importlib.import_module(found[1])
    inner = pkgutil.iter_modules(getattr(module, "__path__", ()))
    public = getattr(module, "__all__", dir(module))
    return did_you_mean(found[2], public) or did_you_mean(found[2], [one.name for one in inner])


def options_meant(given: str, known: Sequence[str]) -> list[str]:
    """Return the options that end like a dotted name, or that other programs call by its last part, best ones first.

    Example:
        >>> options_meant("optimizer.lr", ["model.optimizer.lr", "model.prior.lr"])
        ['model.optimizer.lr']
    """
    parts = given.replace("-", "_").split(".")
    usual = [MEANT[parts[-1]]] if parts[-1] in MEANT else []
    ending = [option for option in known if option.split(".")[-1] == parts[-1]]
    nearest = [option for option in ending if f".{option}".endswith(f".{'.'.join(parts)}") and len(parts) > 1]
    return [*dict.fromkeys(one for one in nearest or [*usual, *ending] if one in known)][:SUGGESTED]


def _is_option(key: str, arguments: Sequence[str]) -> bool:
    names = [one[2:].partition("=")[0].replace(".init_args", "") for one in arguments if one.startswith("--")]
    names = [name.removesuffix("+") for name in names]
    return any(f"{name}.".startswith(f"{key}.") or f"{key}.".startswith(f"{name}.") for name in names)


def _tree(file: str) -> yaml.Node | None:
    """A configuration with its overlays; None of one that is not read, such as a text in place of a file."""
    try:
        return composed(file)
    except InputError:
        return None
