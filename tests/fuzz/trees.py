"""Nested mappings and lists, as YAML and JSON hold them, changed at one key path."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

Path = tuple[str | int, ...]


class Spelled(NamedTuple):
    """A value and how mutations call it."""

    name: str
    value: Any


def nested(depth: int) -> list:
    inner: list = []
    for _ in range(depth):
        inner = [inner]
    return inner


VALUES = (
    Spelled("null", None),
    Spelled("-1", -1),
    Spelled("0", 0),
    Spelled("2", 2),
    Spelled("1.5", 1.5),
    Spelled("1e400", float("inf")),
    Spelled("-1e400", -float("inf")),
    Spelled("NaN", float("nan")),
    Spelled("10**12", 10**12),
    Spelled("10**30", 10**30),
    Spelled("-10**30", -(10**30)),
    Spelled("1e-300", 1e-300),
    Spelled("true", True),
    Spelled("false", False),
    Spelled("empty text", ""),
    Spelled("text", "such"),
    Spelled("number as text", "1"),
    Spelled("NUL", "a\0b"),
    Spelled("long text", "x" * 5000),
    Spelled("lone surrogate", "\ud800"),
    Spelled("absolute path", "/dev/null/at/all"),
    Spelled("path upwards", "../nowhere"),
    Spelled("environment variable", "$NO_SUCH_PLACE/x"),
    Spelled("a module", "structperc.training"),
    Spelled("an abstract class", "structperc.criteria.Criterion"),
    Spelled("a class of another place", "structperc.optim.Perceptron"),
    Spelled("a function", "structperc.chain.kbest"),
    Spelled("list", []),
    Spelled("list of null", [None]),
    Spelled("list of numbers", [1, 2, 3]),
    Spelled("mapping", {}),
    Spelled("mapping of text", {"a": "b"}),
    Spelled("deep list", nested(50)),
)


def paths(tree: Any, start: Path = ()) -> Iterator[Path]:
    """Of all values below the top."""
    held = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in held:
        yield (*start, key)
        yield from paths(value, (*start, key))


def at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def spelled(path: Path) -> str:
    """A key path with a star for each number: changes of any of several entries of a list have one name."""
    return ".".join("*" if isinstance(key, int) else str(key) for key in path)


def put(tree: Any, path: Path, value: Any) -> Any:
    """A copy with a value at a path."""
    made = copy.deepcopy(tree)
    at(made, path[:-1])[path[-1]] = value
    return made


def changed(draw: Random, tree: Any, path: Path | None = None) -> tuple[Any, str]:
    """-> a copy with one change, at a path or anywhere, and what it is."""
    path = path or draw.choice(list(paths(tree)))
    if draw.random() < 0.65:
        name, value = draw.choice(VALUES)
        return put(tree, path, value), f"{spelled(path)} := {name}"
    return draw.choice((removed, renamed, added, wrapped, swapped, shortened))(draw, tree, path)


def removed(draw: Random, tree: Any, path: Path) -> tuple[Any, str]:
    made = copy.deepcopy(tree)
    del at(made, path[:-1])[path[-1]]
    return made, f"{spelled(path)} removed"


def renamed(draw: Random, tree: Any, path: Path) -> tuple[Any, str]:
    holder = at(tree, path[:-1])
    if not isinstance(holder, dict):
        return removed(draw, tree, path)
    name = str(path[-1])
    wrong = draw.choice((name[:-1], f"{name}s", name.upper(), f" {name}", name.replace("_", "-") + "x"))
    made = {wrong if key == name else key: value for key, value in copy.deepcopy(holder).items()}
    return (put(tree, path[:-1], made) if path[1:] else made), f"{spelled(path)} renamed"


def added(draw: Random, tree: Any, path: Path) -> tuple[Any, str]:
    holder = at(tree, path[:-1])
    if not isinstance(holder, dict):
        more = [*copy.deepcopy(holder), copy.deepcopy(holder[-1])]
        return put(tree, path[:-1], more), f"{spelled(path[:-1])} with an entry twice"
    made = copy.deepcopy(tree)
    at(made, path[:-1])["no_such_key"] = 1
    return made, f"{spelled(path[:-1])} with a key more"


def wrapped(draw: Random, tree: Any, path: Path) -> tuple[Any, str]:
    value = at(tree, path)
    return draw.choice(
        (
            (put(tree, path, [copy.deepcopy(value)]), f"{spelled(path)} in a list"),
            (put(tree, path, {"value": copy.deepcopy(value)}), f"{spelled(path)} in a mapping"),
        )
    )


def swapped(draw: Random, tree: Any, path: Path) -> tuple[Any, str]:
    other = draw.choice(list(paths(tree)))
    if other[: len(path)] == path or path[: len(other)] == other:
        return removed(draw, tree, path)
    first, second = copy.deepcopy(at(tree, path)), copy.deepcopy(at(tree, other))
    return put(put(tree, path, second), other, first), f"{spelled(path)} and {spelled(other)} swapped"


def shortened(draw: Random, tree: Any, path: Path) -> tuple[Any, str]:
    value = at(tree, path)
    if isinstance(value, str) and value:
        return put(tree, path, value[: draw.randrange(len(value))]), f"{spelled(path)} cut"
    if isinstance(value, list) and value:
        return put(tree, path, value[::-1]), f"{spelled(path)} reversed"
    return removed(draw, tree, path)
