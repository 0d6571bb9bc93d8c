"""YAML files as plain values, or as trees with line numbers.

Duplicate keys and aliases that expand to many values are errors.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from structperc.data.text_files import read_lines
from structperc.errors import InputError

STRING = "tag:yaml.org,2002:str"
MAX_ALIASED = 100_000  # values that aliases may add to a text


def read_yaml(path: str | Path) -> Any:
    """Return the value of a file, None for an empty one. Raises InputError as `read_lines` and `parse_yaml` do."""
    return parse_yaml("\n".join(read_lines(path)), str(path))


def parse_yaml(text: str, name: str) -> Any:
    """Return the value of a text. Raises InputError with name and line for invalid YAML."""
    node = parse_node(text, name)
    return None if node is None else node_value(node)


def read_node(path: str | Path) -> yaml.Node | None:
    """Return the tree of a file with merge keys (<<) expanded, None for an empty one. Raises InputError as `read_yaml`.

    `place` returns file and line of each part.
    """
    return parse_node("\n".join(read_lines(path)), str(path))


def parse_node(text: str, name: str) -> yaml.Node | None:
    """Return the tree of a text, as `read_node` returns that of a file."""
    with _input_errors(text, name):
        loader = _Loader(text)
        loader.name = name
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
        counts: dict[yaml.Node, int] = {}
        if node is not None and _count(node, counts, set()) > len(counts) + MAX_ALIASED:
            raise yaml.MarkedYAMLError(problem=f"aliases expand to more than {MAX_ALIASED:,} values; write them out")
        if node is not None:
            node_value(node)  # expands merge keys and checks tags
        return node


def node_value(node: yaml.Node) -> Any:
    """Return the Python value of a tree."""
    return _Loader("").construct_document(node)


class _Loader(yaml.SafeLoader):
    """Replaces merge keys in trees by the merged entries."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merged = any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value)
        super().flatten_mapping(node)
        if merged:
            node.value = [*{(key.tag, str(key.value)): (key, value) for key, value in node.value}.values()]


@contextmanager
def _input_errors(text: str, name: str) -> Iterator[None]:
    """Convert YAML errors within the block to InputErrors with name and line."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = name if mark is None else f"{name}:{mark.line + 1}"
        raise InputError(f"{where}: {error.problem or error.context or 'invalid YAML'}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{name}:{line}: invalid character {chr(error.character)!r} in a text file") from None
    except RecursionError:
        raise InputError(f"{name}: too deeply nested") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # such as for !!int x
        raise InputError(f"{name}: invalid value for a tag or type ({error})") from None


def place(node: yaml.Node) -> str:
    """Return "file:line" of a part of a tree."""
    return f"{node.start_mark.name}:{node.start_mark.line + 1}"


def _count(node: yaml.Node, known: dict[yaml.Node, int], above: set[yaml.Node]) -> int:
    """Return the number of values in a tree with aliases expanded, and check keys, aliases and strings."""
    if node in known:
        return known[node]
    if node in above:
        raise yaml.MarkedYAMLError(problem="an alias to a value that contains it", problem_mark=node.start_mark)
    parts: list[yaml.Node] = []
    if isinstance(node, yaml.ScalarNode) and "\0" in node.value:
        raise yaml.MarkedYAMLError(problem="invalid character NUL in a text", problem_mark=node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        parts = node.value
    elif isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
        _check_keys([key for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
    known[node] = 1 + sum(_count(part, known, above | {node}) for part in parts)
    return known[node]


def _check_keys(keys: Sequence[yaml.ScalarNode]) -> None:
    """Raise MarkedYAMLError for two keys of the same value, such as 1 and 01."""
    first: dict[Any, yaml.ScalarNode] = {}
    for key in keys:
        name = key.value if key.tag in (STRING, "tag:yaml.org,2002:merge") else node_value(key)
        if name in first:
            line = first[name].start_mark.line + 1
            problem = f"duplicate key {key.value!r}, first in line {line}; remove one"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        first[name] = key
