"""Templates: conjunctions of attributes at offsets, from lists of items or from CRF++ template files.

In CRF++ files U lines are templates of node features, B lines of edge features:

# a comment
U00:%x[-1,0]            word before              (column 0 is the first of `columns`)
U01:%x[-1,0]/%x[0,1]    conjunction
B                       plain label transitions  (bias)
B01:%x[0,0]             transitions given a column
"""

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import product
from pathlib import Path
from typing import NamedTuple

import yaml

from structperc.data.text_files import read_lines
from structperc.errors import InputError

BIAS = "bias"


class TemplatePart(NamedTuple):
    """One attribute at one offset from the current token: wl[-1] is the down-cased previous word."""

    attribute: str
    offset: int

    def __str__(self) -> str:
        return f"{self.attribute}[{self.offset}]"


Template = tuple[TemplatePart, ...]  # the conjunction of its parts; () is the bias
Templates = Sequence[Template]


def template_name(template: Template) -> str:
    """Return the name of a template, such as "wl[-1]|wl[0]" or "bias"."""
    return "|".join(map(str, template)) or BIAS


def parse_templates(items: Iterable[object]) -> tuple[Template, ...]:
    """Return the templates of a list of items, in order, each once.

    An item is "bias", a conjunction like "w[-1]|pos[0]", the name of a list in `shipped_sets()`, or
    {of: [attributes], at: [offsets]} where an offset is an integer or a list of integers (a conjunction of
    the same attribute).

    Args:
        items: the items.

    Returns:
        the templates; each is a tuple of attributes with offsets.

    Raises:
        InputError: an invalid item; the message contains it.

    Example:
        >>> templates = parse_templates(["bias", "w[0]|pos[0]", {"of": ["w"], "at": [-1, [-1, 0]]}])
        >>> [template_name(template) for template in templates]
        ['bias', 'w[0]|pos[0]', 'w[-1]', 'w[-1]|w[0]']
    """
    if isinstance(items, str | dict):
        raise InputError(f"templates: expected a list of items, got {items!r}; put it in brackets")
    return tuple(dict.fromkeys(template for item in items for template in _expand(item)))


def shipped_sets() -> list[str]:
    """Return the names of the template lists in the package."""
    return sorted(file.name.removesuffix(".yaml") for file in _SETS.iterdir() if file.name.endswith(".yaml"))


_SETS = resources.files("structperc.features") / "sets"
_PART = re.compile(r"([^|\[\]\s]+)\[([+-]?[0-9]{1,3})\]")  # offsets up to 999
_ALLOWED = (
    'an item is "bias", "w[-1]|pos[0]", {of: [w, pos], at: [-1, 0, [-1, 0]]} with offsets below 1000, '
    "or one of the lists "
)


def _expand(item: object) -> list[Template]:
    if isinstance(item, dict):
        return _window(item)
    if item == BIAS:
        return [()]
    if isinstance(item, str):
        return [_conjunction(item)] if "[" in item else list(_shipped(item))
    raise _error(item)


def _window(item: dict) -> list[Template]:
    if set(item) != {"of", "at"} or not all(isinstance(value, list) and value for value in item.values()):
        raise _error(item)
    return [_same_attribute(item, name, offsets) for offsets, name in product(item["at"], item["of"])]


def _same_attribute(item: dict, name: object, offsets: object) -> Template:
    """Return name[i]|name[j]|... for offsets [i, j, ...] or name[i] for a single i."""
    places = offsets if isinstance(offsets, list) and offsets else [offsets]
    if not all(type(place) is int for place in places):
        raise _error(item)
    return _conjunction("|".join(f"{name}[{place}]" for place in places))


def _conjunction(text: str) -> Template:
    matches = [_PART.fullmatch(part.strip()) for part in text.split("|")]
    parts = tuple(TemplatePart(match[1], int(match[2])) for match in matches if match)
    if len(set(parts)) < len(matches):
        raise _error(text)
    return parts


def _shipped(name: str) -> tuple[Template, ...]:
    if name not in shipped_sets():
        raise _error(name)
    return parse_templates(yaml.safe_load((_SETS / f"{name}.yaml").read_text(encoding="utf-8")))


def _error(item: object) -> InputError:
    return InputError(f"template {item!r} is invalid: {_ALLOWED}{', '.join(shipped_sets())}")


class CrfppTemplates(NamedTuple):
    """Template items for `parse_templates`."""

    node: list[str]
    edge: list[str]


def read_crfpp(path: str | Path, columns: Sequence[str]) -> CrfppTemplates:
    """Return the templates of a CRF++ file; `columns` are the column roles in the order of its data files.

    CRF++ identifies features by their expanded text, so that lines with the same text around their macros share
    features (a bag of words). This is not supported: each feature belongs to one template.
    Raises InputError with file and line.
    """
    templates = CrfppTemplates([], [])
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        where = f"{path}:{number}"
        if (first := seen.setdefault(_MACRO.sub("%x", line), number)) != number:
            raise InputError(f"{where}: {line!r} shares features with line {first}; give it another identifier")
        (templates.node if line[0] == "U" else templates.edge).append(_item(where, line, columns))
    if not seen:
        raise InputError(f"{path}: the file has no templates; give lines such as U00:%x[0,0]")
    return templates


_MACRO = re.compile(r"%x\[\s*([+-]?[0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\]")


def _lines(path: str | Path) -> list[tuple[int, str]]:
    numbered = [(number, line.strip()) for number, line in enumerate(read_lines(path), 1)]
    return [(number, line) for number, line in numbered if line and not line.startswith("#")]


def _item(where: str, line: str, columns: Sequence[str]) -> str:
    if not re.match(r"[UB]\S*(:|$)", line):
        raise InputError(f"{where}: expected a template such as U00:%x[0,0] (node) or B (edge), got {line!r}")
    if "%" in _MACRO.sub("", line):
        raise InputError(f"{where}: expected macros of the form %x[row,column] with integers below 1000, got {line!r}")
    return "|".join(_part(where, int(row), int(column), columns) for row, column in _MACRO.findall(line)) or BIAS


def _part(where: str, row: int, column: int, columns: Sequence[str]) -> str:
    if column >= len(columns):
        raise InputError(f"{where}: there is no column {column}: columns are {', '.join(columns)} (from 0)")
    return f"{columns[column]}[{row}]"
