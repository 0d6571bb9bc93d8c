"""Tables as text and as Markdown: the one place where cells are arranged in columns."""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat


class UnalignedCell(str):
    """A last cell that may be of any width: no column is made wider for it."""


def text_table(
    rows: Sequence[Sequence[str]], sides: str = "<>", least: Sequence[int] = (), sep: str = "  ", indent: str = ""
) -> Iterator[str]:
    """Yield the rows, headings included, as lines in which the cells of a column stand below each other.

    A column is as wide as its widest cell. Rows may differ in length; empty cells at their ends leave no blanks.

    Args:
        rows: the cells; the last one of a row may be a `UnalignedCell`.
        sides: the alignment of each column, "<" for left or ">" for right; the last one holds for all that follow.
        least: the least width of each column; the last one holds for all that follow.
        sep: what stands between two columns.
        indent: what stands before each line.
    """
    wide = _widths(rows, least)
    every = [*sides, *repeat(sides[-1], max(0, len(wide) - len(sides)))]
    for row in rows:
        cells = [*row]
        while cells and not cells[-1]:
            cells.pop()
        parts = [_cell(cell, side, width) for cell, side, width in zip(cells, every, wide, strict=False)]
        if cells and every[len(cells) - 1] == "<":
            parts[-1] = cells[-1]
        yield (indent + sep.join(parts)) if cells else ""


def _widths(rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[int]:
    most = max(map(len, rows), default=0)
    wide = [width for width, _ in zip(chain(least, repeat(least[-1] if least else 0)), range(most), strict=False)]
    for row in rows:
        for i, cell in enumerate(row):
            wide[i] = wide[i] if isinstance(cell, UnalignedCell) else max(wide[i], len(cell))
    return wide


def _cell(cell: str, side: str, width: int) -> str:
    return cell if isinstance(cell, UnalignedCell) else f"{cell:{side}{width}}"


def wrapped_table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield a table as lines of at most `width` characters, unless a cell is wider; further columns follow in blocks.

    All rows have one length. The first cell of each row is repeated in every block, aligned to the left; an empty line
    separates two blocks.
    """
    first, *wide = _widths(rows, ())
    blocks: list[list[int]] = [[]]
    used = first
    for i, own in enumerate(wide, 1):
        if used + own + 2 > width and blocks[-1]:
            blocks.append([])
            used = first
        blocks[-1].append(i)
        used += own + 2
    for number, block in enumerate(blocks):
        if number:
            yield ""
        yield from text_table([[row[0], *(row[i] for i in block)] for row in rows])


def markdown_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table: the first row is the heading; all columns but the first are set right."""
    heading, *others = rows
    yield _bars(heading)
    yield _bars(["---", *("---:" for _ in heading[1:])])
    yield from map(_bars, others)


def _bars(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def percent(share: float) -> str:
    """Return a share in 0..1 as a percentage with two decimals."""
    return f"{100 * share:.2f}"
