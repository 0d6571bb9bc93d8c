"""The largest weights of a model as text."""

from collections.abc import Iterator, Sequence

from structperc.inspection.weight_groups import Group, Sums, Weight
from structperc.reports.table import Rest, text_table


def weight_lines(groups: list[Group], top: int = 20) -> Iterator[str]:
    """Yield the report as text: sums of groups, then for each group its lists, `top` lines of each."""
    yield from _sum_lines("group", [group.sums for group in groups])
    for group in groups:
        yield ""
        yield f"{group.sums.name}: largest weights"
        yield from text_table([[_number(weight.value), weight.name] for weight in group.largest], "><", [12, 0])
        if group.columns:
            yield from _column_lines(group, top)
        if group.templates:
            yield ""
            yield from _sum_lines(f"{group.sums.name} template", group.templates[:top])
            if (more := len(group.templates) - top) > 0:
                yield f"... and {more} more"


def _sum_lines(title: str, rows: Sequence[Sums]) -> Iterator[str]:
    whole = sum(row.mass for row in rows) or 1.0
    cells = [[title, "weights", "not zero", "", "sum of |w|"]]
    for name, size, nonzero, mass in rows:
        shares = [f"{100 * share:.1f}%" for share in (nonzero / max(size, 1), mass / whole)]
        cells.append([name, str(size), str(nonzero), shares[0], f"{mass:.6g}", shares[1]])
    return text_table(cells, "<>", [0, 12, 10, 6, 14, 6])


def _column_lines(group: Group, top: int) -> Iterator[str]:
    if group.sums.name == "node":
        return _label_lines(group)
    return _pair_lines(group, top)


def _label_lines(group: Group) -> Iterator[str]:
    """Per label the two lists side by side."""
    for column in group.columns:
        yield ""
        yield f"{group.sums.name} -> {column.sums.name}: highest and lowest"
        longest = max(len(column.highest), len(column.lowest))
        rows = [[*_cells(column.highest[i : i + 1]), *_cells(column.lowest[i : i + 1])] for i in range(longest)]
        yield from text_table(rows, "><><", [12, 3, 12, 0], sep="")


def _pair_lines(group: Group, top: int) -> Iterator[str]:
    """A line for each of the label pairs with most mass."""
    columns = sorted(group.columns, key=lambda column: -column.sums.mass)
    columns = [column for column in columns if column.sums.nonzero][:top]
    yield ""
    rows = [["label pair", "not zero", "sum of |w|", Rest("  highest and lowest")]]
    for sums, highest, lowest in columns:
        weights = [*_cells(highest[:1]), *_cells(lowest[:1])]
        rows.append([sums.name, str(sums.nonzero), f"{sums.mass:.6g}", *weights])
    yield from text_table(rows, "<>>><><", [10, 14, 16, 12, 2, 12, 0], sep="")


def _cells(weights: list[Weight]) -> list[str]:
    """Number and feature of one weight, or of none."""
    return [_number(weights[0].value), f"  {weights[0].feature}"] if weights else ["", ""]


def _number(value: float) -> str:
    return f"{value:+.5g}"
