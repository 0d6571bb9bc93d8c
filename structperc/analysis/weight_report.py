"""The largest weights of a model by name, as text and as HTML tables."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from structperc.reports.html_pages import render
from structperc.reports.tables import text_table


class Weight(NamedTuple):
    """One weight with the names of its feature and labels."""

    group: str  # "node", "edge", "transition", or a non-local feature: its class and options
    feature: str  # "wl[-1]=the", "phrase(LOC,PER)"; "" for a transition
    labels: str  # "B-PER", "O B-PER"; "" for a non-local feature
    value: float

    @property
    def name(self) -> str:
        """The feature and the labels in one string."""
        return " -> ".join(part for part in (self.feature, self.labels) if part)


class Sums(NamedTuple):
    """Number and size of the weights of a label, a label pair, a template or a group."""

    name: str
    weights: int
    nonzero: int
    mass: float  # sum of absolute values


class LabelWeights(NamedTuple):
    """The sums and the largest weights of one label or label pair."""

    sums: Sums
    highest: list[Weight]  # above 0, highest first
    lowest: list[Weight]  # below 0, lowest first


class Group(NamedTuple):
    """The weights of nodes, edges, transitions, or a non-local feature."""

    sums: Sums
    largest: list[Weight]  # by absolute value; all of a non-local feature with few names
    columns: list[LabelWeights]  # by label or label pair; empty for a non-local feature
    templates: list[Sums]  # most mass first; may be empty

    @property
    def listed(self) -> list[Weight]:
        """The weights of all lists without duplicates, the largest first."""
        among = [*self.largest, *(w for column in self.columns for w in (*column.highest, *column.lowest))]
        return sorted(dict.fromkeys(among), key=lambda weight: -abs(weight.value))


class Transitions(NamedTuple):
    """The weights of all pairs of neighbouring labels."""

    labels: list[str]  # L names
    values: list[list[float]]  # L rows for the label before, L columns for the label after


class WeightGroups(list[Group]):
    """The weights of a model by group, shown as tables in notebooks.

    Args:
        groups: nodes, edges, transitions and non-local features of the model.
        transitions: the weights of all label pairs, or None.
    """

    def __init__(self, groups: Iterable[Group] = (), transitions: Transitions | None = None) -> None:
        super().__init__(groups)
        self.transitions = transitions

    def _repr_html_(self) -> str:
        return "".join(weights_html(self))


def weight_lines(groups: Sequence[Group], top: int = 20) -> Iterator[str]:
    """Yield the report as text: sums of groups, then for each group its lists, `top` lines of each."""
    yield from _sum_lines("group", [group.sums for group in groups])
    for group in groups:
        yield ""
        yield f"{group.sums.name}: largest weights"
        yield from text_table([[_format_weight(weight.value), weight.name] for weight in group.largest], "><")
        yield from _label_lines(group) if group.sums.name == "node" else _pair_lines(group, top)
        if group.templates:
            yield ""
            yield from _sum_lines(f"{group.sums.name} template", group.templates[:top])
            if (more := len(group.templates) - top) > 0:
                yield f"... and {more} more"


def _sum_lines(title: str, rows: Sequence[Sums]) -> Iterator[str]:
    whole = sum(row.mass for row in rows) or 1.0
    cells = [[title, "weights", "not zero", "", "sum of |w|", ""]]
    for name, size, nonzero, mass in rows:
        shares = [f"{100 * share:.1f}%" for share in (nonzero / max(size, 1), mass / whole)]
        cells.append([name, str(size), str(nonzero), shares[0], f"{mass:.6g}", shares[1]])
    return text_table(cells)


def _label_lines(group: Group) -> Iterator[str]:
    for column in group.columns:
        yield ""
        yield f"{group.sums.name} -> {column.sums.name}: highest and lowest"
        pairs = zip_longest(column.highest, column.lowest)
        yield from text_table([[*_cells(high), *_cells(low)] for high, low in pairs], "><><")


def _pair_lines(group: Group, top: int) -> Iterator[str]:
    columns = sorted(group.columns, key=lambda column: -column.sums.mass)
    columns = [column for column in columns if column.sums.nonzero][:top]
    if group.columns:
        yield ""
        rows = [["label pair", "not zero", "sum of |w|", "highest", "", "lowest"]]
        for sums, highest, lowest in columns:
            weights = [*_cells(next(iter(highest), None)), *_cells(next(iter(lowest), None))]
            rows.append([sums.name, str(sums.nonzero), f"{sums.mass:.6g}", *weights])
        yield from text_table(rows, "<>>><><")


def _cells(weight: Weight | None) -> list[str]:
    return ["", ""] if weight is None else [_format_weight(weight.value), weight.feature]


def _format_weight(value: float) -> str:
    return f"{value:+.5g}"


MAX_LABELS = 60  # in the matrix of transitions; those with the largest weights are shown


def weights_html(found: WeightGroups) -> Iterator[str]:
    """Yield the tables of a model's weights in parts, as HTML without the page around them.

    They are the transitions, from rows to columns, the highest and lowest features of each label, and the largest other
    weights.
    """
    return render("weight_tables.html", **_values(found))


def weights_page(found: WeightGroups, title: str, notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield an HTML page with the tables of `weights_html`."""
    return render("weights.html", title=title, notes=notes, **_values(found))


def _values(found: WeightGroups) -> dict[str, Any]:
    matrix = None if found.transitions is None else _matrix(found.transitions)
    return {"groups": list(found), "matrix": matrix, "background": _background}


def _matrix(transitions: Transitions) -> dict[str, Any]:
    """Return the weights of all pairs of neighbouring labels, or of the MAX_LABELS labels with the largest ones."""
    names, values = transitions
    mass = [sum(map(abs, row)) + sum(abs(other[i]) for other in values) for i, row in enumerate(values)]
    shown = sorted(sorted(range(len(names)), key=lambda i: -mass[i])[:MAX_LABELS])
    cells = [[values[i][j] for j in shown] for i in shown]
    largest = max((abs(value) for row in cells for value in row), default=0.0)
    rows = list(zip([names[i] for i in shown], cells, strict=True))
    return {"rows": rows, "largest": largest, "hidden": len(shown) < len(names)}


def _background(value: float, largest: float) -> str:
    """Return a colour that is readable on light and on dark, stronger for larger weights."""
    share = 0.08 + 0.47 * abs(value) / max(largest, abs(value))
    return f"rgba({'30, 160, 70' if value > 0 else '220, 60, 50'}, {share:.2f})"
