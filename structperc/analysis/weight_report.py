"""The parts of a report on weights: single ones, sums, those of a label, those of a kind.

The largest weights of a model as HTML tables, for notebooks and as a page: green above 0, red below.

The largest weights of a model as text.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from structperc.reports.html_pages import STYLE, html_page
from structperc.reports.tables import UnalignedCell, text_table


class Weight(NamedTuple):
    """One weight with its name: the feature and the labels that it belongs to."""

    group: str  # "node", "edge", "transition", or a non-local feature: its class and options
    feature: str  # "wl[-1]=the", "phrase(LOC,PER)"; "" for a transition
    labels: str  # "B-PER", "O B-PER"; "" for a non-local feature
    value: float

    @property
    def name(self) -> str:
        """The feature and the labels in one string."""
        return " -> ".join(part for part in (self.feature, self.labels) if part)


class Sums(NamedTuple):
    """How much weight there is in one place: at one label or label pair, or in one template."""

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
    """The weights of one kind: of nodes, edges, transitions, or a non-local feature."""

    sums: Sums
    largest: list[Weight]  # by absolute value; of a non-local feature with a few names all, also those that are 0
    columns: list[LabelWeights]  # by label or label pair; none for a non-local feature
    templates: list[Sums]  # most mass first; none where there are no templates

    @property
    def listed(self) -> list[Weight]:
        """Every weight of the lists once, the largest first."""
        among = [*self.largest, *(w for column in self.columns for w in (*column.highest, *column.lowest))]
        return sorted(dict.fromkeys(among), key=lambda weight: -abs(weight.value))


class Transitions(NamedTuple):
    """The weights of all pairs of neighbouring labels."""

    labels: list[str]  # L names
    values: list[list[float]]  # L rows for the label before, L columns for the label after


MANY = 60  # labels; of more those with the largest transition weights are shown
WEIGHT_STYLE = """
.weights table { border-collapse: collapse; margin: .3rem 0 1rem; font-variant-numeric: tabular-nums; }
.weights caption { text-align: left; font-weight: bold; padding: .2rem 0; white-space: nowrap; }
.weights th, .weights td { border: 0; padding: .1rem .5rem; text-align: right; white-space: pre; font-weight: normal; }
.weights td:last-child { text-align: left; }
.weights .matrix td { text-align: right; }
.weights .side { display: flex; flex-wrap: wrap; gap: 0 1.5rem; align-items: flex-start; }
.weights .scroll { overflow-x: auto; max-width: 100%; }
.weights .more { opacity: .7; }
"""


class Weights(list[Group]):
    """The groups of weights of a model, which notebooks show as tables.

    Args:
        groups: nodes, edges, transitions and non-local features, as far as the model has them.
        transitions: the weights of all label pairs; None for a model without any.
    """

    def __init__(self, groups: Iterable[Group] = (), transitions: Transitions | None = None) -> None:
        super().__init__(groups)
        self.transitions = transitions

    def _repr_html_(self) -> str:
        return "".join(weights_html(self))


def weights_html(found: Weights) -> Iterator[str]:
    """Yield the tables of a model's weights as HTML without a page around it, line by line; all text is escaped.

    First the transitions, a row for the label before and a column for the label after; then for each label its highest
    and lowest features; then the largest weights of other kinds.
    """
    yield f'<div class="weights">\n<style>{WEIGHT_STYLE}</style>\n'
    if found.transitions is not None:
        yield from _matrix(found.transitions)
    for group in found:
        if group.sums.name == "node":
            yield '<div class="side">\n'
            largest = max((abs(weight.value) for weight in group.largest), default=0.0)
            for column in group.columns:
                yield from _label(column, largest)
            yield "</div>\n"
        elif group.largest and group.sums.name != "transition":
            yield from _others(group)
    yield "</div>\n"


def weights_page(found: Weights, title: str, notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield an HTML page with the tables of `weights_html`."""
    yield from html_page(title, notes, weights_html(found), STYLE)


def _matrix(transitions: Transitions) -> Iterator[str]:
    """The weights of all pairs of neighbouring labels."""
    names, values = transitions
    mass = [sum(map(abs, row)) + sum(abs(other[i]) for other in values) for i, row in enumerate(values)]
    shown = sorted(sorted(range(len(names)), key=lambda i: -mass[i])[:MANY])
    largest = max((abs(values[i][j]) for i in shown for j in shown), default=0.0)
    some = f", the {MANY} labels with the largest weights" if len(shown) < len(names) else ""
    yield '<div class="scroll wide many"><table class="matrix">\n'
    yield f"<caption>transitions: from row to column{some}</caption>\n"
    yield f"<tr><th></th>{''.join(f'<th>{escape(names[j])}</th>' for j in shown)}</tr>\n"
    for i in shown:
        cells = "".join(f"<td{_shade(values[i][j], largest)}>{_number(values[i][j])}</td>" for j in shown)
        yield f"<tr><th>{escape(names[i])}</th>{cells}</tr>\n"
    yield "</table></div>\n"


def _label(column: LabelWeights, largest: float) -> Iterator[str]:
    """The features of one label: the highest first, the lowest last, and how many are not shown in between."""
    more = column.sums.nonzero - len(column.highest) - len(column.lowest)
    yield f'<div class="scroll"><table>\n<caption>{escape(column.sums.name)}</caption>\n'
    yield "<tr><th>weight</th><td>feature</td></tr>\n"
    yield from (_row(weight, weight.feature, largest) for weight in column.highest)
    if more > 0:
        yield f'<tr class="more"><td></td><td>... {more:,} more ...</td></tr>\n'
    yield from (_row(weight, weight.feature, largest) for weight in reversed(column.lowest))
    yield "</table></div>\n"


def _others(group: Group) -> Iterator[str]:
    largest = max(abs(weight.value) for weight in group.largest)
    yield f'<div class="scroll"><table>\n<caption>{escape(group.sums.name)}: largest weights</caption>\n'
    yield from (_row(weight, weight.name, largest) for weight in group.largest)
    yield "</table></div>\n"


def _row(weight: Weight, name: str, largest: float) -> str:
    return f"<tr{_shade(weight.value, largest)}><td>{_number(weight.value)}</td><td>{escape(name)}</td></tr>\n"


def _shade(value: float, largest: float) -> str:
    """A background that is the stronger the larger the weight, readable on light and on dark."""
    if not value:
        return ""
    share = 0.08 + 0.47 * abs(value) / max(largest, abs(value))
    return f' style="background: rgba({"30, 160, 70" if value > 0 else "220, 60, 50"}, {share:.2f})"'


def _number(value: float) -> str:
    return f"{value:+.3f}" if value else "0"


def weight_lines(groups: list[Group], top: int = 20) -> Iterator[str]:
    """Yield the report as text: sums of groups, then for each group its lists, `top` lines of each."""
    yield from _sum_lines("group", [group.sums for group in groups])
    for group in groups:
        yield ""
        yield f"{group.sums.name}: largest weights"
        yield from text_table([[_format_weight(weight.value), weight.name] for weight in group.largest], "><", [12, 0])
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
    rows = [["label pair", "not zero", "sum of |w|", UnalignedCell("  highest and lowest")]]
    for sums, highest, lowest in columns:
        weights = [*_cells(highest[:1]), *_cells(lowest[:1])]
        rows.append([sums.name, str(sums.nonzero), f"{sums.mass:.6g}", *weights])
    yield from text_table(rows, "<>>><><", [10, 14, 16, 12, 2, 12, 0], sep="")


def _cells(weights: list[Weight]) -> list[str]:
    """Number and feature of one weight, or of none."""
    return [_format_weight(weights[0].value), f"  {weights[0].feature}"] if weights else ["", ""]


def _format_weight(value: float) -> str:
    return f"{value:+.5g}"
