"""YAML files as plain values: one reader for configurations, studies and lists of templates.

It is stricter than YAML: a key that stands twice in a mapping, of which the last would win, is refused, and so are
aliases that stand for more values than a person writes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from structperc.data.text_files import read_lines
from structperc.errors import InputError

MOST = 100_000  # values that aliases may add to those of a text


def read_yaml(path: str | Path) -> Any:
    """Return the value of a file, None for an empty one. Raises InputError as `read_lines` and `parse_yaml` do."""
    return parse_yaml("\n".join(read_lines(path)), str(path))


def parse_yaml(text: str, name: str) -> Any:
    """Return the value of a text. Raises InputError, with the name and the line, for what is not YAML as read here."""
    with _complaints(text, name):
        return load_yaml(text)


def read_node(path: str | Path) -> yaml.Node | None:
    """Return the tree of a file, in which merge keys (<<) are replaced by what they stand for; None for an empty file.

    Each part knows its file and line, which `place` says. Raises InputError as `read_yaml` does.
    """
    return parse_node("\n".join(read_lines(path)), str(path))


def parse_node(text: str, name: str) -> yaml.Node | None:
    """Return the tree of a text with a name, as `read_node` returns that of a file."""
    with _complaints(text, name), _yaml_errors():
        node = _node(text, name)
        if node is not None:
            node_value(node)  # which replaces merge keys, and refuses values that are not what they say
        return node


def load_yaml(text: str) -> Any:
    """Return the value of a text. Raises yaml.YAMLError for what is not YAML, doubled keys and too many aliases."""
    with _yaml_errors():
        node = _node(text)
        return None if node is None else node_value(node)


def node_value(node: yaml.Node) -> Any:
    """Return the Python value that a tree of YAML nodes stands for."""
    return _Loader("").construct_document(node)


def _node(text: str, name: str = "") -> yaml.Node | None:
    loader = _Loader(text)
    loader.name = name
    try:
        node = loader.get_single_node()
        known: dict[yaml.Node, int] = {}
        if node is not None and _count(node, known, set()) > len(known) + MOST:
            raise yaml.MarkedYAMLError(problem=f"aliases stand for more than {MOST:,} values; write out what is meant")
        return node
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """Leaves trees in which a merge key is replaced by entries that stand once, as a value has them."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merged = any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value)
        super().flatten_mapping(node)
        if merged:
            node.value = [*{(key.tag, str(key.value)): (key, value) for key, value in node.value}.values()]


@contextmanager
def _yaml_errors() -> Iterator[None]:
    """What else goes wrong with a text becomes an error of YAML."""
    try:
        yield
    except RecursionError:
        raise yaml.MarkedYAMLError(problem="brackets are nested too deeply") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # such as of !!int x
        raise yaml.MarkedYAMLError(problem=f"a value is not what its tag or form says ({error})") from None


def find_key(node: yaml.Node | None, keys: Sequence[str], between: Sequence[str] = ()) -> yaml.Node | None:
    """Return the node of the last of some keys, each within the one before; None for a tree without them.

    Levels with a name of `between` may stand between two of the keys.
    """
    last = None
    for key in keys:
        found = _entry(node, key)
        while found is None and (inner := next(filter(None, (_entry(node, name) for name in between)), None)):
            node = inner[1]
            found = _entry(node, key)
        if found is None:
            return None
        last, node = found
    return last


def place(node: yaml.Node) -> str:
    """Return "file:line" of a part of a tree."""
    return f"{node.start_mark.name}:{node.start_mark.line + 1}"


@contextmanager
def _complaints(text: str, name: str) -> Iterator[None]:
    """What YAML refuses within the block becomes an InputError with name and line."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = name if mark is None else f"{name}:{mark.line + 1}"
        raise InputError(f"{where}: {error.problem or error.context or 'this is not YAML'}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{name}:{line}: a text file has no character {chr(error.character)!r}") from None


def _entry(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((pair for pair in entries if pair[0].value == key), None)


def _count(node: yaml.Node, known: dict[yaml.Node, int], above: set[yaml.Node]) -> int:
    """Values below a node and itself, each as often as aliases repeat it; refuses doubled keys on the way."""
    if node in known:
        return known[node]
    if node in above:
        raise yaml.MarkedYAMLError(problem="an alias stands within what it repeats", problem_mark=node.start_mark)
    parts: list[yaml.Node] = []
    if isinstance(node, yaml.ScalarNode) and "\0" in node.value:
        raise yaml.MarkedYAMLError(problem="a text has no character NUL", problem_mark=node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        parts = node.value
    elif isinstance(node, yaml.MappingNode):
        _refuse_doubled(node)
        parts = [part for pair in node.value for part in pair]
    known[node] = 1 + sum(_count(part, known, above | {node}) for part in parts)
    return known[node]


def _refuse_doubled(node: yaml.MappingNode) -> None:
    first: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        line = key.start_mark.line + 1
        if (key.tag, key.value) in first:
            problem = f"{key.value!r} stands twice, first in line {first[key.tag, key.value]}; leave out one"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        first[key.tag, key.value] = line
