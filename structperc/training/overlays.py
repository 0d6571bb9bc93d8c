"""Configurations that are laid over others: a file names these under `overlays`, and says itself what is its own."""

import os
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from structperc.data.text import expand
from structperc.data.yaml_file import find_key, node_value, parse_yaml, place, read_node, read_yaml
from structperc.errors import InputError
from structperc.packaged import PREFIX, packaged
from structperc.training.configuration_shape import check_shape, misshapen

KEY = "overlays"
DEEPEST = 20  # files, each of which names the next


def read_configuration(path: str | Path) -> Any:
    """Return the value of a file laid over its overlays. Raises InputError as `composed` does."""
    text = composed_text(path)
    return read_yaml(path) if text is None else parse_yaml(text, str(path))


def composed_text(path: str | Path) -> str | None:
    """Return a file and its overlays as one YAML text, or None for a file that names none.

    Raises InputError as `composed`.
    """
    if find_key(_read(path), [KEY]) is None:
        return None
    return yaml.serialize(composed(path), Dumper=yaml.SafeDumper)


def composed(path: str | Path) -> yaml.MappingNode:
    """Return the YAML tree of a file laid over the files that it names, the first at the bottom; these may name others.

    Paths are relative to the folder of the file that names them. Mappings are laid over each other key by key;
    anything else replaces what it lies on: lists, plain values, and a class with its options where its class_path is
    another one. Each part knows the file and line it is from.

    Raises InputError, with the name of the file that is wrong, for one that cannot be read or is no configuration, and
    for files that name each other in a circle.
    """
    tree = _composed(str(path), [], {})
    for part in misshapen(node_value(tree)):  # such as options beside the class_path of another file
        raise InputError(f"{_file_of(tree, part.keys)}: {part.shown}: {part.complaint}")
    return tree


def _composed(path: str, above: Sequence[str], known: dict[str, yaml.MappingNode]) -> yaml.MappingNode:
    """As `composed`, of a file that those above lead to, each of which names the next; keeps what is composed."""
    if path not in known:
        node = _read(path)
        below = [_composed(file, [*above, path], known) for file in _named(node, path, above)]
        known[path] = reduce(overlaid, [*below, _own(node)])
    return known[path]


def _read(path: str | Path) -> yaml.MappingNode:
    """The tree of one file."""
    node = read_node(path)
    check_shape(None if node is None else node_value(node), str(path))
    assert isinstance(node, yaml.MappingNode)
    return node


def overlaid(below: yaml.MappingNode, above: yaml.MappingNode) -> yaml.MappingNode:
    """Return one mapping laid over another; both stay as they are."""
    if _class(above) not in (None, _class(below)) and _class(below) is not None:
        return above
    entries = {(key.tag, key.value): (key, value) for key, value in below.value}
    for key, value in above.value:
        name = (key.tag, key.value)
        entries[name] = _entry(*entries[name], key, value) if name in entries else (key, value)
    return yaml.MappingNode(below.tag, [*entries.values()], above.start_mark, above.end_mark)


def _entry(key: yaml.Node, below: yaml.Node, other: yaml.Node, above: yaml.Node) -> tuple[yaml.Node, yaml.Node]:
    """Key and value of what lies above the other; the key is that of the file which names the class, if one does."""
    if not (isinstance(below, yaml.MappingNode) and isinstance(above, yaml.MappingNode)):
        return other, above
    return (other if _class(above) is not None else key), overlaid(below, above)


def _class(node: yaml.MappingNode) -> str | None:
    return next((value.value for key, value in node.value if key.value == "class_path"), None)


def _own(node: yaml.MappingNode) -> yaml.MappingNode:
    """What a file says itself."""
    entries = [entry for entry in node.value if entry[0].value != KEY]
    return yaml.MappingNode(node.tag, entries, node.start_mark, node.end_mark)


def _named(node: yaml.MappingNode, path: str, above: Sequence[str]) -> list[str]:
    """The files that lie below one, as paths that can be opened from here."""
    key = find_key(node, [KEY])
    if key is None:
        return []
    where = f"{place(key)}: {KEY}"
    given = node_value(node)[KEY]
    if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
        raise InputError(f"{where}: write a list of files, as in [data.yaml, features.yaml]")
    if len(above) == DEEPEST:
        raise InputError(f"{where}: more than {DEEPEST} files, each of which names the next, lead here")
    files = [packaged(one) if one.startswith(PREFIX) else _shortest(Path(path).parent / expand(one)) for one in given]
    for file in files:
        if not os.path.isfile(file):
            raise InputError(f"{where}: there is no file {file}; paths start in the folder of {path}")
        if any(os.path.samefile(file, other) for other in (*above, path)):
            raise InputError(f"{where}: a circle leads back to {file}")
    return files


def _shortest(path: Path) -> str:
    """The path without "..", where that is the same file."""
    short = os.path.normpath(path)
    return short if os.path.exists(path) and os.path.exists(short) and os.path.samefile(path, short) else str(path)


def _file_of(node: yaml.Node, keys: Sequence[str]) -> str:
    """The file that the last of some keys stands in, of those that are there."""
    found = (find_key(node, keys[:n]) for n in range(len(keys), 0, -1))
    return next((key for key in found if key is not None), node).start_mark.name
