"""Tables as text, Markdown and CSV files."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from structperc.data.output import write_lines

TableCells = Sequence[Sequence[str]]  # rows
SIDES = {"<": "left", ">": "right"}


def text_table(rows: TableCells, align: str = "<>", indent: str = "") -> Iterator[str]:
    """Yield a table as lines without trailing blanks; headings are aligned as the other rows.

    Args:
        rows: cells; rows may differ in length.
        align: "<" or ">" for each column; the last one is used for all further columns.
        indent: prefix of each line.

    Example:
        >>> print(*text_table([["", "F1"], ["dev", "9.5"], ["test", "10.25"]]), sep="\\n")
                 F1
        dev     9.5
        test  10.25
    """
    if not rows:
        return
    columns = max(map(len, rows))
    sides = [SIDES[side] for side in align.ljust(columns, align[-1])[:columns]]
    table = tabulate(rows, tablefmt="plain", colalign=sides, disable_numparse=True, preserve_whitespace=True)
    yield from ((indent + line).rstrip(" ") for line in table.split("\n"))


def short_cells(rows: TableCells, most: int) -> tuple[list[list[str]], list[str]]:
    """Return a table whose cells have at most `most` characters, and numbered notes with the texts of long ones."""
    numbers: dict[str, int] = {}
    for row in rows:
        for cell in row:
            if len(cell) > most:
                numbers.setdefault(cell, len(numbers) + 1)
    marks = {cell: f" [{number}]" for cell, number in numbers.items()}
    short = {cell: f"{cell[: most - len(mark)].rstrip()}{mark}" for cell, mark in marks.items()}
    return [[short.get(cell, cell) for cell in row] for row in rows], [f"{marks[cell][1:]} {cell}" for cell in marks]


def wrapped_table(rows: TableCells, width: int) -> Iterator[str]:
    """Yield a table as lines of at most `width` characters, unless one cell is wider.

    Columns that do not fit follow in further blocks, each after an empty line and with the first column. tabulate can
    wrap cells, not tables.
    """
    for number, block in enumerate(_blocks(rows, width, gap=2)):
        yield from ([""] if number else [])
        yield from text_table(block)


def _blocks(rows: TableCells, width: int, gap: int) -> Iterator[list[list[str]]]:
    """Yield tables of columns that fit the width with `gap` characters between them, each with the first column."""
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    blocks: list[list[int]] = []
    used = width
    for number, needed in enumerate(widths, 1):
        if used + needed + gap > width:
            blocks.append([])
            used = first
        blocks[-1].append(number)
        used += needed + gap
    yield from ([[row[0], *(row[i] for i in block)] for row in rows] for block in blocks)


def markdown_table(rows: TableCells, width: int | None = None) -> Iterator[str]:
    r"""Yield a Markdown table as lines: a heading, then rows; all columns but the first are right-aligned.

    tabulate pads all cells of a column, so that one long cell would change every line of a file; this table has no
    padding.

    Args:
        rows: Heading and rows of cells.
        width: Characters of a line at most, unless one cell is longer. Columns that do not fit follow in further
            tables, each after an empty line and with the first column. None: one table.

    Example:
        >>> print(*markdown_table([["split", "F1"], ["dev", "9.5"]]), sep="\n")
        | split | F1 |
        | --- | ---: |
        | dev | 9.5 |
    """
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    edges = len("|  |")
    for number, (heading, *others) in enumerate([cells] if width is None else _blocks(cells, width - edges, gap=3)):
        yield from ([""] if number else [])
        for row in (heading, ["---", *["---:"] * (len(heading) - 1)], *others):
            yield f"| {' | '.join(row)} |"


def percent(share: float) -> str:
    """Return a share in 0..1 as a percentage with two decimals."""
    return f"{100 * share:.2f}"


def decimal(value: float) -> str:
    """Return a number with up to three decimals."""
    return f"{round(value, 3) + 0.0:.12g}"  # + 0.0 turns -0 into 0


def write_csv(path: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file, which appears complete or not at all.

    Args:
        path: The file.
        header: Names of the columns.
        rows: Rows of values.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([header, *rows])
    write_lines(path, [text.getvalue()])


def write_records(path: str, records: Sequence[Mapping[str, object]]) -> None:
    """Write a CSV file with one line per record and one column per key, in the order in which keys first appear."""
    names = list(dict.fromkeys(name for record in records for name in record))
    write_csv(path, names, [[record.get(name, "") for name in names] for record in records])


def write_json(path: str | Path, results: dict[str, Any]) -> None:
    """Write results as indented JSON; the file is written whole or not at all."""
    write_lines(path, [json.dumps(results, indent=2, ensure_ascii=False), "\n"])
