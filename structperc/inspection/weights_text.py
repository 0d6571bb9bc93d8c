"""The largest weights of a model as text."""

from collections.abc import Iterable, Iterator

from structperc.inspection.weights import Group, Sums, Weight


def weight_lines(groups: list[Group], top: int = 20) -> Iterator[str]:
    """The report as text: sums of groups, then for each group its lists, `top` lines of each."""
    yield from _sum_lines("group", [group.sums for group in groups])
    for group in groups:
        yield ""
        yield f"{group.sums.name}: largest weights"
        yield from (f"{_number(weight.value)}  {weight.name}" for weight in group.largest)
        if group.columns:
            yield from _column_lines(group, top)
        if group.templates:
            yield ""
            yield from _sum_lines(f"{group.sums.name} template", group.templates[:top])
            if (more := len(group.templates) - top) > 0:
                yield f"... and {more} more"


def _sum_lines(title: str, rows: Iterable[Sums]) -> Iterator[str]:
    rows = list(rows)
    width = max([len(title), *(len(row.name) for row in rows)]) + 2
    whole = sum(row.mass for row in rows) or 1.0
    yield f"{title:<{width}}{'weights':>12}{'not zero':>12}{'':>8}{'sum of |w|':>16}"
    for name, size, nonzero, mass in rows:
        share, part = 100 * nonzero / max(size, 1), 100 * mass / whole
        yield f"{name:<{width}}{size:>12}{nonzero:>12}{share:>7.1f}%{mass:>16.6g}{part:>7.1f}%"


def _column_lines(group: Group, top: int) -> Iterator[str]:
    if group.sums.name == "node":
        return _label_lines(group)
    return _pair_lines(group, top)


def _label_lines(group: Group) -> Iterator[str]:
    """Per label the two lists side by side."""
    for column in group.columns:
        yield ""
        yield f"{group.sums.name} -> {column.sums.name}: highest and lowest"
        width = max([1, *(len(weight.feature) for weight in column.highest)])
        for i in range(max(len(column.highest), len(column.lowest))):
            high, low = (_cell(weights[i : i + 1]) for weights in (column.highest, column.lowest))
            yield f"{high:<{width + 14}}{low}".rstrip()


def _pair_lines(group: Group, top: int) -> Iterator[str]:
    """A line for each of the label pairs with most mass."""
    columns = sorted(group.columns, key=lambda column: -column.sums.mass)
    columns = [column for column in columns if column.sums.nonzero][:top]
    width = max([10, *(len(column.sums.name) for column in columns)]) + 2
    longest = max([0, *(len(weight.feature) for column in columns for weight in column.highest[:1])])
    yield ""
    yield f"{'label pair':<{width}}{'not zero':>12}{'sum of |w|':>16}  highest and lowest"
    for sums, highest, lowest in columns:
        high, low = _cell(highest[:1]), _cell(lowest[:1])
        yield f"{sums.name:<{width}}{sums.nonzero:>12}{sums.mass:>16.6g}{high:<{longest + 14}}{low}".rstrip()


def _cell(weights: list[Weight]) -> str:
    return "".join(f"{_number(weight.value)}  {weight.feature}" for weight in weights)


def _number(value: float) -> str:
    return f"{value:>+12.5g}"
