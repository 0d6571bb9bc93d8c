"""The figure of several studies: scores on each task over what the learners cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.experiments.study_figure import point_boxes
from structperc.experiments.study_table import Line
from structperc.reports.axes import open_frame, plain, plain_log_ticks, series_style
from structperc.reports.point_labels import label_points

COSTS = {  # number of a run: what it is on the axis
    "seconds": "training (seconds)",
    "tokens_per_second": "tagging (tokens/s)",
    "model_mb": "model (MB)",
    "peak_memory_mb": "memory (MB)",
}
ABREAST = 4  # names in a line of the legend


def plot_comparison(studies: Mapping[str, tuple[str, str, Sequence[Line]]]) -> Figure:
    """Return a figure with a row of panels for each study, one for each cost, and a legend of the learners.

    studies: by name the measure, the split and the lines of the table. Learners of the same name have the same mark and
    number in all panels; a learner without results, or without that cost, is left out. All axes of costs are
    logarithmic.
    """
    names = list(dict.fromkeys(line.row.name for _, _, lines in studies.values() for line in lines))
    legend = 0.22 * (len(names) // ABREAST + 1)
    figure = Figure(figsize=(3.2 * len(COSTS), 2.8 * len(studies) + legend), layout="constrained")
    grid = figure.subplots(len(studies), len(COSTS), squeeze=False, sharex="col", sharey="row")
    for panels, (name, (measure, split, lines)) in zip(grid, studies.items(), strict=True):
        for ax, cost in zip(panels, COSTS, strict=True):
            _panel(ax, lines, cost, names)
        panels[0].set_ylabel(f"{plain(name)}\n{split} {measure} (%)")
    for ax, text in zip(grid[-1], COSTS.values(), strict=True):
        ax.set_xlabel(text)
    marks = [grid[0, 0].plot([], [], **_mark(i), label=f"{i + 1}  {plain(name)}")[0] for i, name in enumerate(names)]
    figure.legend(handles=marks, loc="outside lower center", ncols=ABREAST, fontsize=8, frameon=False)
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
        x, score = line.middle(cost), line.middle("score")
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
