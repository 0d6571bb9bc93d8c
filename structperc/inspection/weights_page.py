"""The largest weights of a model as HTML tables, for notebooks and as a page: green above 0, red below."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from structperc.inspection.weight_groups import Group, LabelWeights, Transitions, Weight
from structperc.reports.page import STYLE, framed

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
    yield from framed(title, notes, weights_html(found), STYLE)


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
