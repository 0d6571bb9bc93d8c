"""Figures of weights and n-best lists; styles, axes and files of all figures. Without pyplot, so there is no state."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import Locator, LogLocator, MaxNLocator, NullLocator

from structperc.data.output import check_output_path, open_atomic
from structperc.errors import InputError

# Distinct for colour-blind readers:
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a4b9c", "#8c6d1f", "#333333")
MARKERS = "os^DvPX*<>phd"
LINES = ("-", "--", "-.", ":")


def series_style(number: int) -> dict[str, Any]:
    """Return the style of a series, by its number from 0, as options of `Axes.plot`; the first 91 are different."""
    color = COLOURS[number % len(COLOURS)]
    hollow = (number // len(COLOURS)) % 2 == 1  # the second series of a colour
    return {
        "color": color,
        "marker": MARKERS[number % len(MARKERS)],
        "markerfacecolor": "white" if hollow else color,
        "linestyle": LINES[(number // len(COLOURS)) % len(LINES)],
    }


def open_frame(ax: Axes) -> None:
    """Hide the top and the right side of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def plain_log_ticks(axis: Axis, most: int = 9) -> None:
    """Label a logarithmic axis, whose limits are final, with at most about `most` plain numbers.

    They are 1, 2, 5, 10, ... if these fit, otherwise even steps within a decade, or powers of ten.
    """
    low, high = axis.get_view_interval()
    locators: list[Locator] = [LogLocator(subs=subs, numticks=99) for subs in ((1, 2, 5), (1, 3), (1,))]
    if high < 5 * low:  # nearly linear
        locators = [MaxNLocator(most // 2 + 1, steps=(1, 2, 5, 10))]
    found = [[x for x in locator.tick_values(low, high) if low <= x <= high] for locator in locators]
    ticks = next((ticks for ticks in found if len(ticks) <= most), found[-1][:: len(found[-1]) // most + 1])
    axis.set_ticks(ticks, [f"{x:,.12g}" for x in ticks])
    axis.set_minor_locator(NullLocator())


def escape_dollars(text: str) -> str:
    """Return the text with escaped dollar signs, with which formulas begin in matplotlib."""
    return text.replace("$", r"\$")


MAX_BARS = 40  # in a panel


def plot_weights(panels: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Figure:
    """Return a figure with a panel of horizontal bars for each group of weights.

    Args:
        panels: For each panel its title and (name, weight) of each bar, in their order; at most 40 bars are shown.

    Example:
        >>> figure = plot_weights([("nodes", [("w[0]=Mr.", 2.5), ("w[0]=in", -1.0)]), ("pairs", [("O B-PER", 1.0)])])
        >>> [ax.get_title() for ax in figure.axes]
        ['nodes', 'pairs']
    """
    shown = [(title, weights[:MAX_BARS]) for title, weights in panels if weights]
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


def draw_bars(ax: Axes, title: str, weights: Sequence[tuple[str, float]]) -> None:
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


def plot_nbest(sizes: Sequence[int], f1: Sequence[float], oracle: Sequence[float], gold: Sequence[float]) -> Figure:
    """Return a figure of the quality of n-best lists over their length n'.

    Args:
        sizes: Lengths n'.
        f1: F1 of the tagger, as shares in 0..1.
        oracle: F1 of the best candidate of each list.
        gold: Share of the sequences whose gold labels are in the list.
    """
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    curves = [
        (left, "Best by total score", "F1 (%)", f1, "tab:blue"),
        (middle, "Best of the list", "oracle F1 (%)", oracle, "tab:orange"),
        (right, "Gold labels in the list", "sequences (%)", gold, "tab:green"),
    ]
    for ax, title, label, shares, color in curves:
        ax.plot(sizes, [100 * share for share in shares], "o-", color=color)
        ax.set_xscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes], rotation=60, fontsize=8)
        ax.minorticks_off()
        ax.set(title=title, xlabel="n'", ylabel=label)
        open_frame(ax)
    return figure


def check_figure(path: str | None) -> None:
    """Check that a figure can be written to this file.

    Args:
        path: The file; None: no figure is written.

    Raises:
        InputError: The file cannot be written, or its image format is unknown.
    """
    if path is None:
        return
    check_output_path(path)
    if Path(path).suffix[1:].lower() not in Figure().canvas.get_supported_filetypes():
        raise InputError(f"{path}: unknown image format {Path(path).suffix!r}; end the name in .png, .svg or .pdf")


def write_figure(path: str, figure: Figure) -> None:
    """Write a figure in the image format of the file's suffix. The file appears complete or not at all.

    Args:
        path: The file, such as weights.png, weights.svg or weights.pdf.
        figure: The figure.
    """
    drawn = io.BytesIO()
    figure.savefig(drawn, format=Path(path).suffix[1:].lower(), dpi=150)
    with open_atomic(path) as file:
        file.write(drawn.getvalue())
