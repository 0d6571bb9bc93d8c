"""The figure of a sweep: its scores on development data over the values of its first option."""

from collections.abc import Sequence
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.experiments.sweep_table import Point
from structperc.reports.axes import open_frame, plain, plain_log_ticks, series_style

DECADE = 10


def plot_sweep(found: Sequence[Point]) -> Figure:
    """Return a figure with mean scores as a line per combination of the other options, and single trainings as dots.

    Numbers are drawn to scale, on a logarithmic axis when they are positive and span a factor of 10 or more; other
    values stand side by side. Trainings that failed are left out.
    """
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    values = list(dict.fromkeys(one.row.values[0][1] for one in found))
    places, numbers = _places(values)
    for number, others in enumerate(dict.fromkeys(one.row.values[1:] for one in found)):
        line = [one for one in found if one.row.values[1:] == others and one.scores]
        line.sort(key=lambda one: places[one.row.values[0][1]])
        _line(ax, line, places, ", ".join(f"{key}={value}" for key, value in others), number)
    _axis(ax, places, numbers)
    ax.set(xlabel=plain(found[0].row.values[0][0]), ylabel="dev score (%)")
    open_frame(ax)
    if len(found[0].row.values) > 1:
        ax.legend(fontsize=8)
    return figure


def _line(ax: Axes, found: Sequence[Point], places: dict[str, float], label: str, number: int) -> None:
    x = [places[one.row.values[0][1]] for one in found]
    (drawn,) = ax.plot(x, [100 * one.score for one in found], label=plain(label), **series_style(number))
    for place, one in zip(x, found, strict=True):
        if len(one.scores) > 1:
            ax.plot([place] * len(one.scores), [100 * score for score in one.scores], ".", color=drawn.get_color())


def _places(values: Sequence[str]) -> tuple[dict[str, float], bool]:
    """Value -> place on the axis: the number it is, or its position; whether all are finite numbers."""
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        numbers = {}
    if numbers and all(map(isfinite, numbers.values())):
        return numbers, True
    return {value: float(i) for i, value in enumerate(values)}, False


def _axis(ax: Axes, places: dict[str, float], numbers: bool) -> None:
    low, high = min(places.values()), max(places.values())
    if not numbers:
        ax.set_xticks(list(places.values()), [plain(value) for value in places])
        ax.tick_params("x", rotation=20)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    elif low > 0 and high >= DECADE * low:
        ax.set_xscale("log")
        plain_log_ticks(ax.xaxis)
