"""Arguments of the commands, and configuration files merged with others, which they list under `overlays`."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from structperc.data.text_files import check_exists, expand_path, expand_variables
from structperc.data.yaml_file import find_key, node_value, parse_node, place, read_node
from structperc.errors import InputError
from structperc.packaged_configs import PREFIX, packaged_named, packaged_path, split_arguments, suggest_packaged
from structperc.spelling import did_you_mean

CLASS_KEYS = ("class_path", "init_args", "dict_kwargs")
MAP = "tag:yaml.org,2002:map"
KEY = "overlays"
APPENDED = "+"  # ends the name of an option whose list is added to the one below
DEEPEST = 20  # nested overlays
FILE_DATA = ("Conll", "Conllu", "Table")  # data modules of a folder and files in it


class Arguments(NamedTuple):
    """The arguments of a command line."""

    files: list[str]  # configurations, the first at the bottom
    options: list[tuple[str, str]]  # (dotted key, text of the value)
    print_config: bool = False
    help_for: tuple[str, str] | None = None  # dotted key and class; "" for the whole command or all classes


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Return the arguments of a training command. Raises InputError for an argument that is not an option."""
    files, rest = split_arguments(arguments)
    options: list[tuple[str, str]] = []
    printed, help_for = False, None
    left = iter(rest)
    for one in left:
        key, equals, text = one.removeprefix("--").partition("=")
        if one in ("-h", "--help"):
            help_for = ("", "")
        elif not one.startswith("--"):
            raise InputError(f"{one} is not an option; write {_meant_argument(one)}")
        elif key == "print_config":
            printed = True
        elif key.endswith(".help"):
            help_for = (key.removesuffix(".help"), text if equals else next(left, ""))
        else:
            value = text if equals else next(left, None)
            if value is None:
                raise InputError(f"{key}: expected a value, as in --{key}=VALUE")
            options.append((key, value))
    return Arguments(files, options, printed, help_for)


def _meant_argument(word: str) -> str:
    """Return advice for an argument without its option, which may be a file."""
    if word.endswith((".yaml", ".yml")):
        return f"-c {word}"
    if alike := packaged_named(word):
        return f"-c {alike[0]}"
    return f"--KEY=VALUE, or for data: structperc init {word} -o own.yaml"


def read_configuration(path: str | Path) -> Any:
    r"""Return the value of a configuration file merged with the files that it lists under `overlays`.

    Paths of overlays are relative to the folder of the file. Later files and the file itself replace values of earlier
    ones; `KEY+` adds a list to the one below.

    Args:
        path: A YAML file.

    Raises:
        InputError: A file cannot be read or is not a configuration, or overlays form a cycle.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("base.yaml").write_text("trainer: {max_epochs: 20, devices: 1}")
        >>> _ = Path("short.yaml").write_text("overlays: [base.yaml]\ntrainer: {max_epochs: 2}")
        >>> read_configuration("short.yaml")
        {'trainer': {'max_epochs': 2, 'devices': 1}}
    """
    return node_value(compose(path))


def compose(path: str | Path, known: dict[str, yaml.MappingNode] | None = None) -> yaml.MappingNode:
    """Return the YAML tree of a file merged with its overlays, the first at the bottom.

    Overlays may have overlays, too.

    Paths are relative to the folder of the file that contains them; see `overlaid` for the rules. The nodes have the
    file and line of their origin. `known` caches the trees of files by their paths, for several calls.

    Raises:
        InputError: A file cannot be read or is not a configuration, or overlays form a cycle; the message has its name.
    """
    return _composed(str(path), [], {} if known is None else known)


def compose_all(given: Sequence[str]) -> yaml.MappingNode:
    """Return the YAML tree of several configurations, each merged over those before it.

    They are files, or inline texts such as "{seed_everything: 3}".

    Raises:
        InputError: See `compose`; or a file is missing.
    """
    return reduce(overlaid, map(_tree_of, given))


def check_paths(arguments: Sequence[str], splits: Iterable[str]) -> None:
    """Raise InputError for a path in the configuration of some arguments that cannot be read.

    These are paths with an environment variable that is not set, the files of the splits, the checkpoint, and the model
    to start from. It needs no libraries, so that the message comes before the seconds that they take to be imported.
    """
    given = parse_arguments(arguments)
    if not given.files or given.print_config or given.help_for is not None:
        return
    tree = reduce(with_option, given.options, compose_all(given.files))
    for value in _scalars(tree):
        if value.value.startswith("$"):
            with _named(value):
                expand_variables(value.value)
    for value, path in _input_files(tree, splits):
        with _named(value):
            check_exists(path)
    if (start := _text_of(tree, "model", "init_from")) is not None:
        from structperc.models.model_format import check_model_files, model_errors

        folder = Path(start.value)
        with _named(start), model_errors(folder):
            check_model_files(folder)


@contextmanager
def _named(node: yaml.Node) -> Iterator[None]:
    """Put file and line of a value before the messages of InputErrors within the block."""
    try:
        yield
    except InputError as error:
        name = node.start_mark.name
        raise InputError(f"{name if name.startswith('--') else place(node)}: {error}") from None


def _input_files(tree: yaml.MappingNode, splits: Iterable[str]) -> Iterator[tuple[yaml.ScalarNode, Path]]:
    """Yield the values of a configuration that name the checkpoint and the files of the splits, with their paths."""
    checkpoint = _text_of(tree, "ckpt_path")
    if checkpoint is not None and checkpoint.value not in ("best", "last"):
        yield checkpoint, Path(checkpoint.value)
    data, folder = _text_of(tree, "data", "class_path"), _text_of(tree, "data", "path")
    if data is None or folder is None or data.value.rpartition(".")[2] not in FILE_DATA:
        return
    for split in splits:
        if (file := _text_of(tree, "data", "files", split)) is not None:
            yield file, Path(folder.value) / file.value


def _text_of(tree: yaml.MappingNode, *keys: str) -> yaml.ScalarNode | None:
    """Return the text of nested keys, with or without init_args between them; None for other values."""
    found: yaml.Node | None = tree
    for key in keys:
        entries = _entries(found)
        found = (entries if key in entries else _entries(entries.get(CLASS_KEYS[1]))).get(key)
    return found if isinstance(found, yaml.ScalarNode) and found.tag.endswith(":str") else None


def _entries(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Yield the plain values of a tree."""
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield from _scalars(value)
    else:
        for value in node.value:
            yield from _scalars(value)


def with_option(tree: yaml.MappingNode, option: tuple[str, str]) -> yaml.MappingNode:
    """Return a tree with an option of the command line, given by its dotted key and the text of its value.

    The value is YAML, or plain text if it is not valid YAML. The key may leave out init_args; options of a list are
    those of its last item.
    """
    key, text = option
    name = f"--{key}"
    try:
        value = parse_node(text, name) or _text(text, name)
    except InputError:
        value = _text(text, name)
    laid = _with(tree, key.split("."), value, name)
    assert isinstance(laid, yaml.MappingNode)
    return laid


def _with(
    node: yaml.Node | None, keys: Sequence[str], value: yaml.Node, name: str, owner: str | None = None
) -> yaml.Node:
    if not keys:
        return value
    if isinstance(node, yaml.SequenceNode) and node.value:
        items = [*node.value[:-1], _with(node.value[-1], keys, value, name)]
        return yaml.SequenceNode(node.tag, items, node.start_mark, node.end_mark)
    if isinstance(node, yaml.ScalarNode) and re.fullmatch(r"[A-Za-z_][\w.]*", node.value) and node.tag.endswith(":str"):
        node = _mapping(CLASS_KEYS[0], node)
    below = node if isinstance(node, yaml.MappingNode) else yaml.MappingNode(MAP, [], value.start_mark, value.end_mark)
    entries = {entry_key.value: found for entry_key, found in below.value}
    if keys[0] not in entries and f"{keys[0]}{APPENDED}" in entries:
        keys = [f"{keys[0]}{APPENDED}", *keys[1:]]
    inner = entries.get(keys[0])
    if inner is None and _class(below) is not None and keys[0] not in CLASS_KEYS:
        return _with(below, [CLASS_KEYS[1], *keys], value, name)
    inside = _class(below) if keys[0] == CLASS_KEYS[1] else None
    found = value if len(keys) == 1 else _with(inner, keys[1:], value, name, inside)
    above = yaml.MappingNode(MAP, [(_text(keys[0], name), found)], value.start_mark, value.end_mark)
    if len(keys) > 1:  # `found` contains the former value
        others = [entry for entry in below.value if entry[0].value != keys[0]]
        own = next((entry[0] for entry in below.value if entry[0].value == keys[0]), above.value[0][0])
        return yaml.MappingNode(below.tag, [*others, (own, found)], below.start_mark, below.end_mark)
    return overlaid(below, above, owner)


def _text(text: str, name: str) -> yaml.ScalarNode:
    """Return a plain text of the command line as YAML."""
    mark = yaml.Mark(name, 0, 0, 0, None, 0)
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, mark, mark)


def _tree_of(given: str) -> yaml.MappingNode:
    """Return the tree of a file, or of an inline configuration."""
    if os.path.exists(given) and not os.path.isdir(given):
        return _composed(given, [], {})
    node = parse_node(given, "inline")
    if isinstance(node, yaml.ScalarNode):
        raise InputError(f"--config {given}: {_no_file(given)}")
    check_shape(None if node is None else node_value(node), "inline")
    assert isinstance(node, yaml.MappingNode)
    return node


def _no_file(given: str) -> str:
    """Return the message for a missing file, with suggested files and packaged configurations."""
    if os.path.isdir(given):
        return "this is a folder; give a file in it"
    folder = Path(given).parent
    files = folder.glob("*.y*ml") if folder.is_dir() else ()
    similar = [str(one) for one in files if did_you_mean(Path(given).stem, [one.stem])]
    return f"no such file{suggest_packaged(given) or did_you_mean(given, similar)}"


def check_shape(value: Any, name: str) -> None:
    """Raise InputError with the name of the text unless the value is a mapping."""
    if not isinstance(value, dict):
        found = "an empty text" if value is None else "a list" if isinstance(value, list) else "plain text"
        raise InputError(f"{name}: expected a configuration, KEY: VALUE, got {found}")


def _composed(path: str, above: Sequence[str], known: dict[str, yaml.MappingNode]) -> yaml.MappingNode:
    """Compose an overlay of the files `above`, each of which contains the next; `known` caches trees by path."""
    if path not in known:
        node = read_node(path)
        check_shape(None if node is None else node_value(node), path)
        assert isinstance(node, yaml.MappingNode)
        below = [_composed(file, [*above, path], known) for file in _overlay_files(node, path, above)]
        entries = [entry for entry in node.value if entry[0].value != KEY]
        own = yaml.MappingNode(node.tag, entries, node.start_mark, node.end_mark)
        known[path] = reduce(overlaid, [*below, own])
    return known[path]


def overlaid(below: yaml.MappingNode, above: yaml.MappingNode, owner: str | None = None) -> yaml.MappingNode:
    """Return one mapping merged over another, key by key; both are unchanged.

    Lists and plain values replace those below, but `KEY+` adds its list to the one below. A class with another
    class_path replaces the class below with all its options; options of the same class, or without a class_path, are
    merged with its options, also if they are written without init_args. A class is also merged with options below that
    have no class_path. Where an option of the class `owner` accepts a class or several of them by name, one of these
    replaces the other.
    """
    if _class(above) not in (None, _class(below)) and _class(below) is not None:
        return above
    below, above = _as_options(below, above), _as_options(above, below)
    entries = {(key.tag, key.value): (key, value) for key, value in below.value}
    for key, value in above.value:
        name, more = (key.tag, key.value), (key.tag, f"{key.value}{APPENDED}")
        base = (key.tag, key.value.removesuffix(APPENDED))
        target = base if base in entries else name
        if base != name and target in entries and _is_list(entries[target][1], value):
            values = [part for node in (entries[target][1], value) for part in _items(node)]
            joined = yaml.SequenceNode("tag:yaml.org,2002:seq", values, value.start_mark, value.end_mark)
            entries[target] = (entries[target][0], joined)
            continue
        if more in entries and _is_list(entries[more][1]):
            del entries[more]
        inside = _class(above) or _class(below) if key.value == CLASS_KEYS[1] else None
        entries[name] = _entry(*entries[name], key, value, owner, inside) if name in entries else (key, value)
    return yaml.MappingNode(below.tag, [*entries.values()], above.start_mark, above.end_mark)


def _as_options(node: yaml.MappingNode, other: yaml.MappingNode) -> yaml.MappingNode:
    """Return options without init_args as those of a class if the other node is a class; else the node."""
    if _class(other) is None or not node.value or any(key.value in CLASS_KEYS for key, _ in node.value):
        return node
    return _mapping(CLASS_KEYS[1], node)


def _entry(
    key: yaml.Node, below: yaml.Node, other: yaml.Node, above: yaml.Node, owner: str | None, inside: str | None
) -> tuple[yaml.Node, yaml.Node]:
    """Return key and value of two merged entries; the key is that of the file with the class_path, if any.

    The entries are options of the class `owner`, and their values those of the class `inside`.
    """
    below, above = _spelled_out(below, above), _spelled_out(above, below)
    if not (isinstance(below, yaml.MappingNode) and isinstance(above, yaml.MappingNode)):
        return other, above
    if owner is not None and _are_one_and_several(below, above, owner, key.value):
        return other, above
    return (other if _class(above) is not None else key), overlaid(below, above, inside)


def _are_one_and_several(below: yaml.MappingNode, above: yaml.MappingNode, owner: str, option: str) -> bool:
    """Return True if one of two values of an option is a class and the other one has several by name.

    Classes are imported only if the keys of the other one may be names.
    """
    one, several = (below, above) if _class(above) is None else (above, below)
    cls, names = _class(one), [key.value for key, _ in several.value]
    options = next((value for key, value in one.value if key.value == CLASS_KEYS[1]), None)
    known = [key.value for key, _ in options.value] if isinstance(options, yaml.MappingNode) else []
    parts = bool(names) and all(isinstance(value, yaml.MappingNode) for _, value in several.value)
    if cls is None or not parts or any(name in known or name in CLASS_KEYS for name in names):
        return False
    from structperc.builder import accepts_several, option_names

    return accepts_several(owner, option) and not set(names) & option_names(cls)


def _spelled_out(node: yaml.Node, other: yaml.Node) -> yaml.Node:
    """Return the name of a class as a mapping if the other node has class_path or init_args; else the node."""
    is_class = isinstance(other, yaml.MappingNode) and any(key.value in CLASS_KEYS for key, _ in other.value)
    if not (is_class and isinstance(node, yaml.ScalarNode) and re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", node.value)):
        return node
    return _mapping(CLASS_KEYS[0], node)


def _mapping(key: str, value: yaml.Node) -> yaml.MappingNode:
    name = yaml.ScalarNode("tag:yaml.org,2002:str", key, value.start_mark, value.end_mark)
    return yaml.MappingNode(MAP, [(name, value)], value.start_mark, value.end_mark)


def _is_list(*nodes: yaml.Node) -> bool:
    return any(isinstance(node, yaml.SequenceNode) for node in nodes)


def _items(node: yaml.Node) -> Sequence[yaml.Node]:
    """Return the items of a list; another value is one item, null is none."""
    if isinstance(node, yaml.SequenceNode):
        return node.value
    return [] if node.tag == "tag:yaml.org,2002:null" else [node]


def _class(node: yaml.MappingNode) -> str | None:
    return next((value.value for key, value in node.value if key.value == CLASS_KEYS[0]), None)


def _overlay_files(node: yaml.MappingNode, path: str, above: Sequence[str]) -> list[str]:
    """Return the overlays of a file as paths relative to the working directory."""
    key = find_key(node, [KEY])
    if key is None:
        return []
    where = f"{place(key)}: {KEY}"
    given = node_value(node)[KEY]
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        raise InputError(f"{where}: expected a list of files, as in [data.yaml, features.yaml]")
    if len(above) == DEEPEST:
        raise InputError(f"{where}: more than {DEEPEST} nested overlays")
    files = [
        packaged_path(one) if one.startswith(PREFIX) else _shortest(Path(path).parent / expand_path(one))
        for one in given
    ]
    for file in files:
        if not os.path.isfile(file):
            raise InputError(f"{where}: no file {file}; paths are relative to the folder of {path}")
        if any(os.path.samefile(file, other) for other in (*above, path)):
            raise InputError(f"{where}: a cycle of overlays leads back to {file}")
    return files


def _shortest(path: Path) -> str:
    """Return the path without ".." if that is the same file."""
    short = os.path.normpath(path)
    return short if os.path.exists(path) and os.path.exists(short) and os.path.samefile(path, short) else str(path)


def to_yaml(values: Mapping[str, Any]) -> str:
    """Return plain values as YAML, in their order."""
    return yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=120)
