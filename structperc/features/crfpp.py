"""Templates from a CRF++ template file: U lines make node features, B lines edge features.

# a comment
U00:%x[-1,0]            word before              (column 0 is the first of `columns`)
U01:%x[-1,0]/%x[0,1]    conjunction
B                       plain label transitions  (bias)
B01:%x[0,0]             transitions given a column
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from structperc.data.text_files import read_lines
from structperc.errors import InputError
from structperc.features.templates import BIAS


class CrfppTemplates(NamedTuple):
    """Template items as `structperc.features.templates.parse_templates` reads them."""

    node: list[str]
    edge: list[str]


def read_crfpp(path: str | Path, columns: Sequence[str]) -> CrfppTemplates:
    """Return the templates of a CRF++ file; `columns` are the column roles in the order of its data files.

    CRF++ tells features apart by their expanded text, so that lines with the same text around their macros
    share features (a bag of words). Features here belong to one template each: such lines are refused.
    Raises InputError with file and line.
    """
    templates = CrfppTemplates([], [])
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        where = f"{path}:{number}"
        if (first := seen.setdefault(_MACRO.sub("%x", line), number)) != number:
            raise InputError(f"{where}: {line!r} shares features with line {first}; give it an identifier of its own")
        (templates.node if line[0] == "U" else templates.edge).append(_item(where, line, columns))
    if not seen:
        raise InputError(f"{path}: there are no templates in this file; give lines such as U00:%x[0,0]")
    return templates


_MACRO = re.compile(r"%x\[\s*([+-]?[0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\]")


def _lines(path: str | Path) -> list[tuple[int, str]]:
    numbered = [(number, line.strip()) for number, line in enumerate(read_lines(path), 1)]
    return [(number, line) for number, line in numbered if line and not line.startswith("#")]


def _item(where: str, line: str, columns: Sequence[str]) -> str:
    if not re.match(r"[UB]\S*(:|$)", line):
        raise InputError(f"{where}: a template starts with U (node) or B (edge) and an identifier, got {line!r}")
    if "%" in _MACRO.sub("", line):
        raise InputError(f"{where}: a macro is written %x[row,column] with integers below 1000, got {line!r}")
    return "|".join(_part(where, int(row), int(column), columns) for row, column in _MACRO.findall(line)) or BIAS


def _part(where: str, row: int, column: int, columns: Sequence[str]) -> str:
    if column >= len(columns):
        raise InputError(f"{where}: there is no column {column}: columns are {', '.join(columns)} (from 0)")
    return f"{columns[column]}[{row}]"
