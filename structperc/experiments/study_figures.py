"""The figure of a study: what its rows reach, over what their training costs.

The figure of several studies: scores on each task over what the learners cost.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.experiments.study_table import Line
from structperc.reports.figures import escape_dollars, label_points, open_frame, plain_log_ticks, series_style

ROWS_AT_BASE_HEIGHT = 8  # rows; a figure of more is higher


def plot_study(lines: Sequence[Line], measure: str, split: str) -> Figure:
    """Return a figure of mean score (per cent) over mean seconds of training, with a labelled point for each row.

    The axis of seconds is logarithmic, and bars are standard deviations over seeds. Rows without results are left out.
    """
    shown = [line for line in lines if line.numbers]
    figure = Figure(figsize=(8, 4.5 + 0.18 * max(0, len(shown) - ROWS_AT_BASE_HEIGHT)), layout="constrained")
    ax = figure.subplots()
    points = [(line.mean("seconds") or 0.0, 100 * (line.mean("score") or 0.0)) for line in shown]
    spreads = [(line.spread("seconds") or 0.0, 100 * (line.spread("score") or 0.0)) for line in shown]
    for i, ((x, y), (dx, dy)) in enumerate(zip(points, spreads, strict=True)):
        ax.errorbar(x, y, xerr=dx or None, yerr=dy or None, capsize=2, **{**series_style(i), "linestyle": "none"})
    ax.set_xscale("log")
    ax.margins(0.15, 0.12)
    ax.set(xlabel="training (seconds)", ylabel=f"{split} {measure} (%)")
    open_frame(ax)
    plain_log_ticks(ax.xaxis)
    figure.draw_without_rendering()  # places are known from here on
    boxes = (point_boxes(ax, point, spread) for point, spread in zip(points, spreads, strict=True))
    drawn = np.array([box for own in boxes for box in own])
    label_points(ax, [line.row.name for line in shown], points, drawn)
    return figure


def point_boxes(
    ax: Axes, point: tuple[float, float], spread: tuple[float, float]
) -> Iterator[tuple[float, float, float, float]]:
    """Yield the boxes of a point and its two bars in pixels, as x0, y0, x1, y1."""
    (x, y), (dx, dy) = point, spread
    low = max(x - dx, ax.get_xlim()[0])
    for corners, room in (((x, y, x, y), 4), ((low, y, x + dx, y), 1), ((x, y - dy, x, y + dy), 1)):
        (x0, y0), (x1, y1) = ax.transData.transform([corners[:2], corners[2:]])
        yield x0 - room, y0 - room, x1 + room, y1 + room


COSTS = {  # number of a run: what it is on the axis
    "seconds": "training (seconds)",
    "tokens_per_second": "tagging (tokens/s)",
    "model_mb": "model (MB)",
    "peak_memory_mb": "memory (MB)",
}
LEGEND_COLUMNS = 4  # names in a line of the legend


def plot_comparison(studies: Mapping[str, tuple[str, str, Sequence[Line]]]) -> Figure:
    """Return a figure with a row of panels for each study, one for each cost, and a legend of the learners.

    studies: by name the measure, the split and the lines of the table. Learners of the same name have the same mark and
    number in all panels; a learner without results, or without that cost, is left out. All axes of costs are
    logarithmic.
    """
    names = list(dict.fromkeys(line.row.name for _, _, lines in studies.values() for line in lines))
    legend = 0.22 * (len(names) // LEGEND_COLUMNS + 1)
    figure = Figure(figsize=(3.2 * len(COSTS), 2.8 * len(studies) + legend), layout="constrained")
    grid = figure.subplots(len(studies), len(COSTS), squeeze=False, sharex="col", sharey="row")
    for panels, (name, (measure, split, lines)) in zip(grid, studies.items(), strict=True):
        for ax, cost in zip(panels, COSTS, strict=True):
            _panel(ax, lines, cost, names)
        panels[0].set_ylabel(f"{escape_dollars(name)}\n{split} {measure} (%)")
    for ax, text in zip(grid[-1], COSTS.values(), strict=True):
        ax.set_xlabel(text)
    marks = [
        grid[0, 0].plot([], [], **_mark(i), label=f"{i + 1}  {escape_dollars(name)}")[0] for i, name in enumerate(names)
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=LEGEND_COLUMNS, fontsize=8, frameon=False)
    figure.draw_without_rendering()  # limits are final from here on
    for ax in grid.flat:
        plain_log_ticks(ax.xaxis, 4)
    figure.draw_without_rendering()
    for panels, (_, _, lines) in zip(grid, studies.values(), strict=True):
        for ax, cost in zip(panels, COSTS, strict=True):
            _numbers(ax, lines, cost, names)
    return figure


class _Point(NamedTuple):
    number: int  # of the learner, from 0
    x: float
    y: float  # per cent
    spread: float


def _points(lines: Sequence[Line], cost: str, names: Sequence[str]) -> Iterator[_Point]:
    for line in lines:
        x, score = line.mean(cost), line.mean("score")
        if x and score is not None:
            yield _Point(names.index(line.row.name), x, 100 * score, 100 * (line.spread("score") or 0.0))


def _panel(ax: Axes, lines: Sequence[Line], cost: str, names: Sequence[str]) -> None:
    for number, x, y, spread in _points(lines, cost, names):
        ax.errorbar(x, y, yerr=spread or None, capsize=2, **_mark(number))
    ax.set_xscale("log")
    ax.margins(0.12)
    ax.grid(alpha=0.3)
    open_frame(ax)


def _numbers(ax: Axes, lines: Sequence[Line], cost: str, names: Sequence[str]) -> None:
    """Write the number of each learner beside its point."""
    points = list(_points(lines, cost, names))
    drawn = [box for point in points for box in point_boxes(ax, (point.x, point.y), (0.0, point.spread))]
    numbers = [str(point.number + 1) for point in points]
    label_points(ax, numbers, [(point.x, point.y) for point in points], np.array(drawn).reshape(-1, 4))


def _mark(number: int) -> dict[str, Any]:
    return {**series_style(number), "linestyle": "none"}
