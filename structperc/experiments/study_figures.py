"""Figures of studies: scores over training seconds for one study, scores over several costs for several studies."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.experiments.study_table import Line
from structperc.reports.figures import escape_dollars, open_frame, plain_log_ticks, series_style

COSTS = {  # number of a run: label of the axis
    "seconds": "training (seconds)",
    "tokens_per_second": "tagging (tokens/s)",
    "model_mb": "model (MB)",
    "peak_memory_mb": "memory (MB)",
}
LEGEND_COLUMNS = 4


def plot_study(lines: Sequence[Line], measure: str, split: str) -> Figure:
    """Return a figure of mean score (per cent) over mean seconds of training, with a point and a legend entry per row.

    The axis of seconds is logarithmic, and bars are standard deviations over seeds. Rows without results are left out.
    """
    shown = [line for line in lines if line.numbers]
    figure = Figure(figsize=(8, 4.5 + _legend_height(len(shown))), layout="constrained")
    ax = figure.subplots()
    for number, line in enumerate(shown):
        _point(ax, line, "seconds", number, line.spread("seconds"))
    _finish(ax)
    ax.set(xlabel=COSTS["seconds"], ylabel=f"{split} {measure} (%)")
    _legend(figure, ax, [line.row.name for line in shown])
    return figure


def plot_comparison(studies: Mapping[str, tuple[str, str, Sequence[Line]]]) -> Figure:
    """Return a figure with a row of panels for each study, one for each cost, and a legend of the learners.

    Args:
        studies: by name the measure, the split and the lines of the table. Learners of the same name have the same mark
            in all panels; a learner without results, or without that cost, is left out.
    """
    names = list(dict.fromkeys(line.row.name for _, _, lines in studies.values() for line in lines))
    height = 2.8 * len(studies) + _legend_height(len(names))
    figure = Figure(figsize=(3.2 * len(COSTS), height), layout="constrained")
    grid = figure.subplots(len(studies), len(COSTS), squeeze=False, sharex="col", sharey="row")
    for panels, (study, (measure, split, lines)) in zip(grid, studies.items(), strict=True):
        for ax, cost in zip(panels, COSTS, strict=True):
            for line in lines:
                if line.mean(cost) and line.mean("score") is not None:
                    _point(ax, line, cost, names.index(line.row.name))
            _finish(ax)
            ax.grid(alpha=0.3)
        panels[0].set_ylabel(f"{escape_dollars(study)}\n{split} {measure} (%)")
    for ax, text in zip(grid[-1], COSTS.values(), strict=True):
        ax.set_xlabel(text)
    _legend(figure, grid[0, 0], names)
    return figure


def _point(ax: Axes, line: Line, cost: str, number: int, x_spread: float | None = None) -> None:
    x, y = line.mean(cost) or 0.0, 100 * (line.mean("score") or 0.0)
    y_spread = 100 * (line.spread("score") or 0.0)
    style = {**series_style(number), "linestyle": "none"}
    ax.errorbar(x, y, xerr=x_spread or None, yerr=y_spread or None, capsize=2, **style)


def _finish(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.margins(0.12)
    open_frame(ax)


def _legend(figure: Figure, ax: Axes, names: Sequence[str]) -> None:
    """Draw the legend below all panels, then label the axes, whose limits are final by then."""
    marks = [
        ax.plot([], [], **{**series_style(i), "linestyle": "none"}, label=escape_dollars(name))[0]
        for i, name in enumerate(names)
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=LEGEND_COLUMNS, fontsize=8, frameon=False)
    figure.draw_without_rendering()
    for one in figure.axes:
        plain_log_ticks(one.xaxis, 9 if len(figure.axes) == 1 else 4)


def _legend_height(names: int) -> float:
    """Inches of a legend with so many names."""
    return 0.22 * (names // LEGEND_COLUMNS + 1)
