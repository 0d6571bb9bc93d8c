"""Arguments of the commands, and configurations merged with others: files with their overlays, and rows of studies."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from structperc.data.text_files import check_exists, expand_path, expand_variables
from structperc.data.yaml_file import STRING, node_value, parse_node, place, read_node
from structperc.errors import InputError
from structperc.packaged_configs import (
    PREFIX,
    ROW,
    name_of,
    packaged_named,
    packaged_path,
    split_arguments,
    split_row,
    suggest_packaged,
)
from structperc.spelling import did_you_mean

CLASS_KEYS = ("class_path", "init_args", "dict_kwargs")
MAP = "tag:yaml.org,2002:map"
KEY = "overlays"
ROWS, BASE, CONFIGS, WITH, START = "rows", "base", "configs", "with", "init_from"  # keys of studies and their rows
CORPUS, DATA = "corpus", "data"
APPENDED = "+"  # ends the name of an option whose list is added to the one below
DEEPEST = 20  # nested overlays
FILE_DATA = ("Conll", "Conllu", "Table")  # data modules of a folder and files in it


class Arguments(NamedTuple):
    """The arguments of a command line."""

    files: list[str]  # configurations, the first at the bottom: files, rows of studies, or inline texts
    options: list[tuple[str, str]]  # (dotted key, text of the value)
    print_config: bool = False
    help_for: tuple[str, str] | None = None  # dotted key and class; "" for the whole command or all classes


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Return the arguments of a training command. Raises InputError for an argument that is not an option."""
    files, rest = split_arguments(arguments)
    options: list[tuple[str, str]] = []
    printed, help_for = False, None
    left = iter(rest)
    for argument in left:
        key, equals, text = argument.removeprefix("--").partition("=")
        if argument in ("-h", "--help"):
            help_for = ("", "")
        elif not argument.startswith("--"):
            raise InputError(f"{argument} is not an option; write {_meant_argument(argument)}")
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
        path: A YAML file, FILE#ROW for a row of a study, or either of the package, as in pkg:best/entities.

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

    Overlays may have overlays, too. A row of a study, FILE#ROW, is its `with` over that of the study, over the files
    under `configs` of the row, over those under `base` of the study.

    Paths are relative to the folder of the file that contains them; see `overlaid` for the rules. The nodes have the
    file and line of their origin. `known` caches the trees of files by their paths, for several calls.

    Raises:
        InputError: A file cannot be read or is not a configuration, a row is unknown, or overlays form a cycle; the
            message has the name of the file.
    """
    return _with_data(_composed(packaged_path(str(path)), [], {} if known is None else known))


def compose_all(given: Sequence[str]) -> yaml.MappingNode:
    """Return the YAML tree of several configurations, each merged over those before it.

    They are files, rows of studies, or inline texts such as "{seed_everything: 3}".

    Raises:
        InputError: See `compose`; or a file is missing.
    """
    return _with_data(reduce(overlaid, map(_tree_of, given)))


def _with_data(tree: yaml.MappingNode) -> yaml.MappingNode:
    """Return a tree whose `data` lie over those of `corpus`, unless they have a class of their own."""
    entries = {key.value: (key, value) for key, value in tree.value}
    if CORPUS not in entries:
        return tree
    key, merged = entries.pop(CORPUS)
    if DATA in entries:
        key, data = entries.pop(DATA)
        options = isinstance(data, yaml.MappingNode) and _class(data) is None
        merged = overlaid(merged, data) if options and isinstance(merged, yaml.MappingNode) else data
    name = yaml.ScalarNode(STRING, DATA, key.start_mark, key.end_mark)
    return yaml.MappingNode(tree.tag, [*entries.values(), (name, merged)], tree.start_mark, tree.end_mark)


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
    node: yaml.Node | None = tree
    for key in keys:
        entries = _entries(node)
        node = (entries if key in entries else _entries(entries.get(CLASS_KEYS[1]))).get(key)
    return node if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":str") else None


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
    entries = {entry_key.value: inner_node for entry_key, inner_node in below.value}
    if keys[0] not in entries and f"{keys[0]}{APPENDED}" in entries:
        keys = [f"{keys[0]}{APPENDED}", *keys[1:]]
    inner = entries.get(keys[0])
    if inner is None and _class(below) is not None and keys[0] not in CLASS_KEYS:
        return _with(below, [CLASS_KEYS[1], *keys], value, name)
    inside = _class(below) if keys[0] == CLASS_KEYS[1] else None
    inner_value = value if len(keys) == 1 else _with(inner, keys[1:], value, name, inside)
    above = yaml.MappingNode(MAP, [(_text(keys[0], name), inner_value)], value.start_mark, value.end_mark)
    if len(keys) > 1:  # `found` contains the former value
        others = [entry for entry in below.value if entry[0].value != keys[0]]
        key_node = next((entry[0] for entry in below.value if entry[0].value == keys[0]), above.value[0][0])
        return yaml.MappingNode(below.tag, [*others, (key_node, inner_value)], below.start_mark, below.end_mark)
    return overlaid(below, above, owner)


def _text(text: str, name: str) -> yaml.ScalarNode:
    """Return a plain text of the command line as YAML."""
    mark = yaml.Mark(name, 0, 0, 0, None, 0)
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, mark, mark)


def _tree_of(given: str) -> yaml.MappingNode:
    """Return the tree of a file, or of an inline configuration."""
    if os.path.exists(file := split_row(given)[0]) and not os.path.isdir(file):
        return _composed(given, [], {})
    node = parse_node(given, "inline")
    if isinstance(node, yaml.ScalarNode):
        raise InputError(f"--config {given}: {_no_file(given)}")
    return _configuration(node, "inline")


def _no_file(given: str) -> str:
    """Return the message for a missing file, with suggested files and packaged configurations."""
    if os.path.isdir(given):
        return "this is a folder; give a file in it"
    given = split_row(given)[0]
    folder = Path(given).parent
    files = folder.glob("*.y*ml") if folder.is_dir() else ()
    similar = [str(path) for path in files if did_you_mean(Path(given).stem, [path.stem])]
    return f"no such file{suggest_packaged(given) or did_you_mean(given, similar)}"


def _configuration(node: yaml.Node | None, name: str) -> yaml.MappingNode:
    """Return the tree of a text. Raises InputError with the name of the text unless it is a mapping."""
    if not isinstance(node, yaml.MappingNode):
        value = None if node is None else node_value(node)
        kind = "an empty text" if value is None else "a list" if isinstance(value, list) else "plain text"
        raise InputError(f"{name}: expected a configuration, KEY: VALUE, got {kind}")
    return node


def _composed(path: str, above: Sequence[str], known: dict[str, yaml.MappingNode]) -> yaml.MappingNode:
    """Compose an overlay of the files `above`, each of which contains the next; `known` caches trees by path."""
    if path not in known:
        file, row = split_row(path)
        if (raw := file + ROW) not in known:  # of all rows of a study
            known[raw] = _configuration(read_node(file), file)
        lists, own_parts = _parts(known[raw], file, row)
        names = [file_name for part, key in lists for file_name in _overlay_files(part, key, path, above)]
        parts = [*(_composed(name, [*above, path], known) for name in names), *own_parts]
        if not parts:
            raise InputError(
                f"{path}: this row has no configuration; write {CONFIGS}: [FILE] or {WITH}: {{KEY: VALUE}}"
            )
        known[path] = reduce(overlaid, parts)
    return known[path]


def _parts(
    node: yaml.MappingNode, file: str, row: str | None
) -> tuple[list[tuple[yaml.MappingNode, str]], list[yaml.MappingNode]]:
    """Return the parts of a file or row that list other ones, each with the key of its list, and its own values.

    Raises InputError for a study without a row and for an unknown one.
    """
    entries = _entries(node)
    rows = _entries(entries.get(ROWS))
    if row is None and ROWS not in entries:
        other_entries = [entry for entry in node.value if entry[0].value != KEY]
        return [(node, KEY)], [yaml.MappingNode(node.tag, other_entries, node.start_mark, node.end_mark)]
    if row not in rows:
        if not rows:
            raise InputError(f"{file}: this file has no rows" + ("" if row is None else f"; leave out {ROW}{row}"))
        wrong = "this file has rows" if row is None else f"there is no row {row!r}{did_you_mean(row, rows)}"
        raise InputError(f"{file}: {wrong}; give one as {file}{ROW}ROW or --row ROW: {', '.join(rows)}")
    given = _configuration(rows[row], f"{place(rows[row])}: rows.{row}")
    start = _entries(given).get(START)
    own_values = [with_node for part in (node, given) if (with_node := _entries(part).get(WITH)) is not None]
    return [(node, BASE), (given, CONFIGS)], [
        *([] if start is None else [_start(f"{file}{ROW}{start.value}", start)]),
        *(_configuration(node_of_with, f"{place(node_of_with)}: {WITH}") for node_of_with in own_values),
    ]


def _start(source: str, node: yaml.Node) -> yaml.MappingNode:
    """Return a configuration that starts from the model that fit saves in the first run of a row."""
    model = yaml.ScalarNode(STRING, f"runs/{name_of(source)}/1/model", node.start_mark, node.end_mark)
    return _mapping("model", _mapping(START, model))


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
    """Return options without init_args as those of a class if the other node has a class or init_args."""
    classes = [any(key.value in CLASS_KEYS for key, _ in part.value) for part in (node, other)]
    if classes != [False, True] or not node.value:
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
    single, several = (below, above) if _class(above) is None else (above, below)
    cls, names = _class(single), [key.value for key, _ in several.value]
    options = next((value for key, value in single.value if key.value == CLASS_KEYS[1]), None)
    keys = [key.value for key, _ in options.value] if isinstance(options, yaml.MappingNode) else []
    parts = bool(names) and all(isinstance(value, yaml.MappingNode) for _, value in several.value)
    if cls is None or not parts or any(name in keys or name in CLASS_KEYS for name in names):
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


def _overlay_files(node: yaml.MappingNode, name: str, path: str, above: Sequence[str]) -> list[str]:
    """Return the files and rows that a part of a file lists under a key, relative to the working directory."""
    entry = next(((f"{place(key)}: {name}", value) for key, value in node.value if key.value == name), None)
    if entry is None:
        return []
    where, given = entry[0], node_value(entry[1])
    if not isinstance(given, list) or not all(isinstance(item, str) and item for item in given):
        raise InputError(f"{where}: expected a list of files, as in [data.yaml, features.yaml]")
    if len(above) == DEEPEST:
        raise InputError(f"{where}: more than {DEEPEST} nested overlays")
    files = [file_beside(split_row(path)[0], text) for text in given]
    for file_row in files:
        file, row = split_row(file_row)
        if not os.path.isfile(file):
            raise InputError(f"{where}: no file {file}; paths are relative to the folder of {split_row(path)[0]}")
        higher = [split_row(other) for other in (*above, path)]
        if any(row == other_row and os.path.samefile(file, other) for other, other_row in higher):
            raise InputError(f"{where}: a cycle of overlays leads back to {file_row}")
    return files


def file_beside(file: str, name: str) -> str:
    """Return the path of a configuration that a file names: pkg:NAME, a path from the folder of the file, or #ROW."""
    if name.startswith(PREFIX):
        return packaged_path(name)
    other, mark, row = name.partition(ROW)
    return (_shortest(Path(file).parent / expand_path(other)) if other else file) + mark + row


def _shortest(path: Path) -> str:
    """Return the path without ".." if that is the same file."""
    short = os.path.normpath(path)
    return short if os.path.exists(path) and os.path.exists(short) and os.path.samefile(path, short) else str(path)


def to_yaml(values: Mapping[str, Any]) -> str:
    """Return plain values as YAML, in their order."""
    return yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=120)
