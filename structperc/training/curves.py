"""Training curves of a run, loss and score on development data over epochs: from its logs, as a figure."""

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = "curves.png"
LOSSES = {"train/objective": ("objective", 1), "train/error": ("wrong tokens (%)", 100)}  # label and factor, by name
SCORE = "dev/score"

Curve = list[tuple[float, float]]  # (epochs so far, value)


def read_curve(folder: Path, name: str) -> Curve:
    r"""Return (epochs so far, value) of a logged number of a training, such as dev/score.

    Several values of an epoch divide it evenly. A resumed run has several logs; a later log replaces the epochs of
    earlier ones from its first epoch on. Logs of evaluations are not read, other than those of the first epoch of a
    training that was killed.

    Args:
        folder: Folder of the run.
        name: Name of the number.

    Example:
        >>> log = Path("run/logs/version_0")
        >>> log.mkdir(parents=True)
        >>> _ = (log / "metrics.csv").write_text("dev/score,epoch,train/error\n0.5,0,\n,0,0.3\n0.75,1,\n,1,0.2\n")
        >>> read_curve(Path("run"), "dev/score")
        [(1.0, 0.5), (2.0, 0.75)]
    """
    values: dict[int, list[float]] = {}
    others: dict[int, list[float]] = {}  # of evaluations, and of trainings that were killed in their first epoch
    logs = (folder / "logs").glob("version_*/metrics.csv")
    for log in sorted(logs, key=lambda log: int(log.parent.name.partition("_")[2])):
        with open(log, encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        scores: defaultdict[int, list[float]] = defaultdict(list)
        for line in lines:
            if line.get(name):
                scores[int(line["epoch"])].append(float(line[name]))
        if not any(key.startswith("train/") for key in (lines[0] if lines else ())):
            others |= scores
            continue
        begins = min(int(line["epoch"]) for line in lines)
        values = {epoch: points for epoch, points in values.items() if epoch < begins} | scores
    missing = {
        epoch: points for epoch, points in others.items() if epoch not in values and epoch < max(values, default=0)
    }
    every = sorted((values | missing).items())
    return [(epoch + i / len(points), value) for epoch, points in every for i, value in enumerate(points, 1)]


def write_curves(folder: Path, measure: str, best: int | None) -> Path | None:
    """Write curves.png into the folder of a run and return its path; None without logs in the folder.

    Args:
        folder: Folder of the run.
        measure: Name of the score on development data.
        best: The epoch, from 1, whose weights are saved; None: the last one.
    """
    given = {name: curve for name in (*LOSSES, SCORE) if (curve := read_curve(folder, name))}
    losses = [(*LOSSES[name], curve) for name, curve in given.items() if name in LOSSES][:1]
    scores = [(f"dev {measure} (%)", 100, curve) for name, curve in given.items() if name == SCORE]
    if not given:
        return None
    from structperc.reports.figures import write_figure

    write_figure(str(folder / FIGURE), plot_curves([*losses, *scores], best))
    return folder / FIGURE


def plot_curves(panels: Sequence[tuple[str, float, Curve]], best: int | None = None) -> "Figure":
    """Return a figure with a panel for each curve over the epochs, and a line at the best one.

    Args:
        panels: Label, factor of the values and curve of each panel.
        best: Number of an epoch, from 1.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from structperc.reports.figures import COLOURS, open_frame

    figure = Figure(figsize=(4 * len(panels), 3))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, color, (label, factor, curve) in zip(axes, COLOURS, panels, strict=False):
        finite = [(x, factor * y) for x, y in curve if math.isfinite(y)]
        ax.plot(*zip(*finite, strict=True), "-" if len(finite) > 30 else "o-", color=color, markersize=4)
        ax.set(xlabel="epoch", ylabel=label)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if best is not None:
            ax.axvline(best, color="grey", linestyle=":", linewidth=1)
        open_frame(ax)
    edge = 0.8 / (4 * len(panels))  # inches of labels; a constrained layout would take as long as drawing
    figure.subplots_adjust(left=edge, right=1 - edge / 4, bottom=0.17, top=0.95, wspace=0.35)
    return figure
