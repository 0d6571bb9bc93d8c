"""What the rows of a study reach, over what their training costs."""

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from structperc.training.figures import plain
from structperc.training.study_table import Line

DISTANCES = (5, 14, 23, 32)  # of a label from its point, in points


def plot_study(lines: Sequence[Line], measure: str, split: str) -> Figure:
    """Mean score (per cent) over mean seconds of training, to a logarithmic scale; a labelled point for each row.

    Bars are standard deviations over seeds. What has no results is left out.
    """
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    ax = figure.subplots()
    shown = [line for line in lines if line.numbers]
    points = [(line.middle("seconds") or 0.0, 100 * (line.middle("score") or 0.0)) for line in shown]
    for i, (line, (x, y)) in enumerate(zip(shown, points, strict=True)):
        dx, dy = line.spread("seconds"), line.spread("score")
        ax.errorbar(x, y, xerr=dx, yerr=None if dy is None else 100 * dy, fmt="o", capsize=2, color=f"C{i}")
    ax.set_xscale("log")
    ax.margins(0.2, 0.15)
    ax.set(xlabel="training (seconds)", ylabel=f"{split} {measure} (%)")
    ax.spines[["top", "right"]].set_visible(False)
    figure.draw_without_rendering()  # places are known from here on
    taken = [_around(*ax.transData.transform(point)) for point in points]
    for i, (line, point) in enumerate(zip(shown, points, strict=True)):
        taken.append(_label(ax, line.row.name, point, f"C{i}", taken))
    return figure


def _label(ax: Axes, name: str, point: tuple[float, float], color: str, taken: Sequence[Bbox]) -> Bbox:
    """Write a name beside its point, where it covers least of what is taken; -> its place."""
    text = ax.annotate(plain(name), point, (0, 0), textcoords="offset points", fontsize=8, color=color)

    def moved(offset: tuple[int, int]) -> Bbox:
        dx, dy = offset
        text.set(position=offset, ha="left" if dx > 0 else "right", va="bottom" if dy > 0 else "top")
        return text.get_window_extent()

    def covered(offset: tuple[int, int]) -> int:
        box = moved(offset)
        outside = not (ax.bbox.contains(box.x0, box.y0) and ax.bbox.contains(box.x1, box.y1))
        return sum(map(box.overlaps, taken)) + len(taken) * outside

    return moved(min(_offsets(), key=covered))


def _offsets() -> Iterator[tuple[int, int]]:
    for far in DISTANCES:
        for right in (1, -1):
            for up in (1, -1):
                yield 5 * right, far * up


def _around(x: float, y: float) -> Bbox:
    return Bbox.from_extents(x - 4, y - 4, x + 4, y + 4)
