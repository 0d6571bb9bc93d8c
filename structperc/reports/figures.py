"""How the axes of all figures look: their frame, their ticks, the text on them, and the marks of several series.

Names beside the points of a figure, placed so that they cover neither each other nor what is drawn.

Figures of the small commands. They are made without pyplot: no window, no state.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import Locator, LogLocator, MaxNLocator, NullLocator

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a4b9c", "#8c6d1f", "#333333")  # for all kinds of sight
MARKERS = "os^DvPX*<>phd"
LINES = ("-", "--", "-.", ":")


def series_style(number: int) -> dict[str, Any]:
    """Return the look of a series of points or a line, by its number from 0, as options of `Axes.plot`.

    Colour and marker together are different for the first 91 numbers.
    """
    color = COLOURS[number % len(COLOURS)]
    hollow = (number // len(COLOURS)) % 2 == 1  # the second series of a colour
    return {
        "color": color,
        "marker": MARKERS[number % len(MARKERS)],
        "markerfacecolor": "white" if hollow else color,
        "linestyle": LINES[(number // len(COLOURS)) % len(LINES)],
    }


def open_frame(ax: Axes) -> None:
    """Draw the frame of the axes at the left and at the bottom alone."""
    ax.spines[["top", "right"]].set_visible(False)


def plain_log_ticks(axis: Axis, most: int = 9) -> None:
    """Write plain numbers along a logarithmic axis whose limits are final, at most about `most` of them.

    They are 1, 2, 5, 10, ... where these fit, else even steps within a decade, or powers of ten alone.
    """
    low, high = axis.get_view_interval()
    locators: list[Locator] = [LogLocator(subs=subs, numticks=99) for subs in ((1, 2, 5), (1, 3), (1,))]
    if high < 5 * low:  # where the scale is nearly even
        locators = [MaxNLocator(most // 2 + 1, steps=(1, 2, 5, 10))]
    found = [[x for x in locator.tick_values(low, high) if low <= x <= high] for locator in locators]
    ticks = next((ticks for ticks in found if len(ticks) <= most), found[-1][:: len(found[-1]) // most + 1])
    axis.set_ticks(ticks, [f"{x:,.12g}" for x in ticks])
    axis.set_minor_locator(NullLocator())


def escape_dollars(text: str) -> str:
    """Return the text with dollar signs escaped, since matplotlib would take them for the start of a formula."""
    return text.replace("$", r"\$")


WIDTH = 28  # characters of a line
DISTANCES = (6, 10, 16, 24, 34, 46)  # of a label from its point, in points
DIRECTIONS = 16
NEAR = 12  # points; what is farther away gets a line to its point
ROUNDS = 4  # of moving each label once


def label_points(ax: Axes, names: Sequence[str], points: Sequence[tuple[float, float]], drawn: np.ndarray) -> None:
    """Write names beside their points, given in data coordinates; limits and layout of the axes must be final.

    `drawn` holds what should not be covered: boxes (n, 4) in pixels as (x0, y0, x1, y1). Each name in turn moves to the
    place where it covers least of these and of the other names, and of several such places to the one nearest to its
    point. This is repeated for a few rounds.
    """
    texts = [_text(ax, name, point) for name, point in zip(names, points, strict=True)]
    offsets, sides = _offsets()
    places = [_boxes(ax, text, offsets, sides) for text in texts]
    near = 0.2 * np.hypot(*offsets.T)  # a little, so that it decides where nothing else does
    chosen: dict[int, int] = {}
    for _ in range(ROUNDS):
        for i, boxes in enumerate(places):
            taken = np.array([*drawn, *(places[j][k] for j, k in chosen.items() if j != i)])
            outside = _area(boxes) - _common(boxes, np.array([ax.bbox.extents])).sum(1)
            chosen[i] = int((_common(boxes, taken).sum(1) + 3 * outside + near).argmin())
    for i, text in enumerate(texts):
        _move(ax, text, offsets[chosen[i]], sides[chosen[i]])


def _text(ax: Axes, name: str, point: tuple[float, float]) -> Annotation:
    lines = "\n".join(textwrap.wrap(name, WIDTH, break_on_hyphens=False)) or name
    return ax.annotate(escape_dollars(lines), point, (0, 0), textcoords="offset points", fontsize=8)


def _offsets() -> tuple[np.ndarray, np.ndarray]:
    """Where labels may stand: offsets (P, 2) from the point; (P, 2) -1, 0 or 1: to which side of that they lie."""
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    around = np.stack([np.cos(angles), np.sin(angles)], 1)
    offsets = (np.array(DISTANCES)[:, None, None] * around).reshape(-1, 2)
    sides = np.where(np.abs(around) < 0.3, 0, np.sign(around))
    return offsets, np.tile(sides, (len(DISTANCES), 1))


def _boxes(ax: Axes, text: Annotation, offsets: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """-> (P, 4), the label at each place in pixels."""
    extent = text.get_window_extent()
    size = np.array([extent.width, extent.height])
    corner = ax.transData.transform(text.xy) + offsets * ax.figure.dpi / 72 + (sides - 1) / 2 * size
    return np.concatenate([corner, corner + size], 1)


def _area(boxes: np.ndarray) -> np.ndarray:
    return np.prod(boxes[:, 2:] - boxes[:, :2], 1)


def _common(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(P, 4), (n, 4) -> (P, n), pixels that both cover."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.prod((high - low).clip(min=0), 2)


def _move(ax: Axes, text: Annotation, offset: np.ndarray, side: np.ndarray) -> None:
    """Put a label at its place, with a line to its point where that is not near."""
    ha, va = ("right", "center", "left")[int(side[0]) + 1], ("top", "center", "bottom")[int(side[1]) + 1]
    text.set(position=tuple(offset), ha=ha, va=va)
    if np.hypot(*offset) > NEAR:
        line = {"arrowstyle": "-", "linewidth": 0.5, "color": "0.5", "shrinkA": 0, "shrinkB": 3}
        ax.annotate("", text.xy, tuple(offset), textcoords="offset points", arrowprops=line)


BARS = 40  # of a panel at most

Bars = Sequence[tuple[str, float]]


def plot_weights(panels: Sequence[tuple[str, Bars]]) -> Figure:
    """Return a figure with one panel of horizontal bars for each (title, [(name, weight), ...]), in the order given.

    A panel shows at most 40 bars.
    """
    shown = [(title, weights[:BARS]) for title, weights in panels if weights]
    columns = min(2, max(1, len(shown)))
    rows = -(-len(shown) // columns) or 1
    sizes = [len(weights) for _, weights in shown] or [1]
    heights = [max(sizes[i : i + columns]) + 4 for i in range(0, len(sizes), columns)]
    figure = Figure(figsize=(7 * columns, 0.2 * sum(heights)), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights).flatten()
    for ax, (title, weights) in zip(axes, shown, strict=False):
        draw_bars(ax, title, weights)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    return figure


def draw_bars(ax: Axes, title: str, weights: Bars) -> None:
    """Draw horizontal bars with their names into the axes, the first bar on top."""
    values = [value for _, value in weights]
    places = range(len(weights))
    ax.barh(places, values, color=["tab:blue" if value >= 0 else "tab:orange" for value in values])
    ax.set_yticks(places, [escape_dollars(name) for name, _ in weights], fontsize=7)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.5)
    ax.set_title(escape_dollars(title))
    ax.set_xlabel("weight")
    open_frame(ax)


def plot_nbest(sizes: Sequence[int], f1: Sequence[float], oracle: Sequence[float], held: Sequence[float]) -> Figure:
    """Return a figure of what lists of candidates are worth, over the length n' of the list.

    Its three curves are the F1 of the tagger, the F1 of the oracle (which chooses the best candidate of each list) and
    the share of sequences whose gold labelling is in the list; all are given as shares in 0..1.
    """
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    curves = [
        (left, "Best by total score", "F1 (%)", f1, "tab:blue"),
        (middle, "Best of the list", "oracle F1 (%)", oracle, "tab:orange"),
        (right, "Gold labelling in the list", "sequences (%)", held, "tab:green"),
    ]
    for ax, title, label, shares, color in curves:
        ax.plot(sizes, [100 * share for share in shares], "o-", color=color)
        ax.set_xscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes], rotation=60, fontsize=8)
        ax.minorticks_off()
        ax.set(title=title, xlabel="n'", ylabel=label)
        open_frame(ax)
    return figure
