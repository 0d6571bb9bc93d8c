"""The figure of a study: what its rows reach, over what their training costs."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.experiments.study_table import Line
from structperc.reports.axes import open_frame, plain_log_ticks, series_style
from structperc.reports.point_labels import label_points

ROOMY = 8  # rows; a figure of more is higher


def plot_study(lines: Sequence[Line], measure: str, split: str) -> Figure:
    """Return a figure of mean score (per cent) over mean seconds of training, with a labelled point for each row.

    The axis of seconds is logarithmic, and bars are standard deviations over seeds. Rows without results are left out.
    """
    shown = [line for line in lines if line.numbers]
    figure = Figure(figsize=(8, 4.5 + 0.18 * max(0, len(shown) - ROOMY)), layout="constrained")
    ax = figure.subplots()
    points = [(line.middle("seconds") or 0.0, 100 * (line.middle("score") or 0.0)) for line in shown]
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
