"""Figures of the small commands. They are made without pyplot: no window, no state."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from structperc.reports.axes import open_frame, plain

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
    ax.set_yticks(places, [plain(name) for name, _ in weights], fontsize=7)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.5)
    ax.set_title(plain(title))
    ax.set_xlabel("weight")
    open_frame(ax)


def plot_lists(sizes: Sequence[int], f1: Sequence[float], oracle: Sequence[float], held: Sequence[float]) -> Figure:
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
