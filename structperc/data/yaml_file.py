"""YAML files as plain values: one reader for configurations, studies and lists of templates.

It is stricter than YAML: a key that stands twice in a mapping, of which the last would win, is refused, and so are
aliases that stand for more values than a person writes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from structperc.data.text import read_lines
from structperc.errors import InputError

MOST = 100_000  # values that aliases may add to those of a text


def read_yaml(path: str | Path) -> Any:
    """The value of a file; None of an empty one. InputError as of `read_lines` and `parse_yaml`."""
    return parse_yaml("\n".join(read_lines(path)), str(path))


def parse_yaml(text: str, name: str) -> Any:
    """The value of a text. InputError, which begins with the name and the line, for what is not YAML or too strict."""
    try:
        return load_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = name if mark is None else f"{name}:{mark.line + 1}"
        raise InputError(f"{place}: {error.problem or error.context or 'this is not YAML'}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{name}:{line}: a text file has no character {chr(error.character)!r}") from None


def load_yaml(text: str) -> Any:
    """The value of a text. yaml.YAMLError for what is not YAML, doubled keys and too many aliases."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        known: dict[yaml.Node, int] = {}
        if _count(node, known, set()) > len(known) + MOST:
            raise yaml.MarkedYAMLError(problem=f"aliases stand for more than {MOST:,} values; write out what is meant")
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.MarkedYAMLError(problem="brackets are nested too deeply") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # such as of !!int x
        raise yaml.MarkedYAMLError(problem=f"a value is not what its tag or form says ({error})") from None
    finally:
        loader.dispose()


def line_of(path: str | Path, keys: Sequence[str], between: Sequence[str] = ()) -> int | None:
    """The line, from 1, of the last of some keys, each within the one before; None for a file without them.

    Levels with a name of `between` may stand between two of the keys.
    """
    try:
        node = yaml.compose("\n".join(read_lines(path)), yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    line = None
    for key in keys:
        found = _entry(node, key)
        while found is None and (inner := next(filter(None, (_entry(node, name) for name in between)), None)):
            node = inner[1]
            found = _entry(node, key)
        if found is None:
            return None
        line, node = found[0].start_mark.line + 1, found[1]
    return line


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
