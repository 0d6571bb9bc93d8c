"""How the axes of all figures look: their frame, their ticks, the text on them, and the marks of several series."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
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


def plain(text: str) -> str:
    """Return the text with dollar signs escaped, since matplotlib would take them for the start of a formula."""
    return text.replace("$", r"\$")
