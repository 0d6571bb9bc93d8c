"""Reliability diagrams: accuracy over confidence, and how many decisions there are of each confidence."""

from collections.abc import Sequence
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.metrics import Reliability
from structperc.reports.axes import open_frame, plain, plain_log_ticks

WIDTH = 40  # characters of a line of a title

Model = tuple[str, list[tuple[str, Reliability]]]  # its name; (tokens or segments, result)


def plot_reliability(models: Sequence[Model]) -> Figure:
    """Return a figure with one column per model: for tokens and for segments a diagram above its counts.

    The diagrams are those of Guo et al. 2017, Figure 1.
    """
    levels = max(len(results) for _, results in models)
    figure = Figure(figsize=(3.6 * len(models), 4.6 * levels), layout="constrained")
    axes = figure.subplots(2 * levels, len(models), squeeze=False, sharex=True, height_ratios=[3, 1] * levels)
    for column, (name, results) in enumerate(models):
        for level, (of, result) in enumerate(results):
            _diagram(axes[2 * level, column], result, plain(f"{fill(name, WIDTH)}\n{of}"))
            _counts(axes[2 * level + 1, column], result)
        for ax in axes[2 * len(results) :, column]:
            ax.set_axis_off()
    return figure


def _diagram(ax: Axes, result: Reliability, title: str) -> None:
    filled = [one for one in result.bins if one.n]
    lows, width = [one.low for one in filled], 1 / len(result.bins)
    ax.bar(lows, [one.accuracy for one in filled], width, align="edge", color="tab:blue", edgecolor="white")
    ax.plot([one.confidence for one in filled], [one.accuracy for one in filled], "o-", color="tab:orange", ms=3)
    ax.plot([0, 1], [0, 1], "--", color="black", linewidth=0.8)
    ax.text(0.03, 0.95, f"ECE {100 * result.ece:.2f} %", va="top", transform=ax.transAxes)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
    ax.set_title(title, fontsize=10)
    open_frame(ax)


def _counts(ax: Axes, result: Reliability) -> None:
    width = 1 / len(result.bins)
    ax.bar([one.low for one in result.bins], [one.n for one in result.bins], width, align="edge", color="tab:gray")
    if result.all.n:
        ax.set(yscale="log", ylim=(0.5, 2 * max(one.n for one in result.bins)))
        plain_log_ticks(ax.yaxis, 3)
    ax.set(xlabel="confidence", ylabel="number")
    open_frame(ax)
