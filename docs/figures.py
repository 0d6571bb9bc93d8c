"""The pictures of the documentation that need no training: `python -m docs.figures` draws them into docs/images.

The same version of matplotlib draws the same bytes each time.

Pictures have a white ground, so that they can be read on light and dark pages, and text as outlines, so that no font
is needed. Coordinates of drawings are inches.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from structperc.reports.figures import COLOURS, open_frame, plain_log_ticks, series_style

FOLDER = Path(__file__).parent / "images"
BLUE, ORANGE, GREEN, PINK, PURPLE, BROWN, BLACK = COLOURS
GREY, PALE = "#767676", "#e4e4e4"
STYLE: Any = {"svg.hashsalt": "structperc", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 10}
Point = tuple[float, float]


# -- drawing --------------------------------------------------------------------------------------------------


def drawing(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes in inches, without a frame."""
    figure = Figure(figsize=(width, height), facecolor="white")
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.set_axis_off()
    return figure, ax


def box(ax: Axes, centre: Point, size: Point, text: str, colour: str = GREY, filled: bool = False, **font: Any) -> None:
    """Draw a box with rounded corners around a text."""
    (x, y), (w, h) = centre, size
    shape = "round,pad=0,rounding_size=0.07"
    face = colour if filled else "white"
    patch = FancyBboxPatch(
        (x - w / 2, y - h / 2), w, h, boxstyle=shape, facecolor=face, edgecolor=colour, linewidth=1.4
    )
    ax.add_patch(patch)
    ax.text(x, y, text, ha="center", va="center", color="white" if filled else BLACK, **{"fontsize": 9.5, **font})


def arrow(ax: Axes, start: Point, end: Point, colour: str = GREY, bend: float = 0.0, **options: Any) -> None:
    """Draw an arrow between two points, bent as an arc where `bend` is not 0."""
    settings = {"arrowstyle": "-|>", "mutation_scale": 11, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0, **options}
    ax.add_patch(FancyArrowPatch(start, end, color=colour, connectionstyle=f"arc3,rad={bend}", **settings))


def words(ax: Axes, x: float, y: float, text: str, **options: Any) -> None:
    """Write a text, by default in the middle of its point."""
    ax.text(x, y, text, **{"ha": "center", "va": "center", "color": BLACK, **options})


# -- pictures -------------------------------------------------------------------------------------------------


def overview() -> Figure:
    """The parts of a tagger and what goes from one to the next."""
    figure, ax = drawing(6.3, 4.1)
    size = (1.25, 0.42)
    for name, place in {
        "corpus": (0.85, 3.7),
        "ids, vectors": (0.85, 2.7),
        "batch": (0.85, 1.7),
        "lattice": (2.95, 1.7),
        "candidates": (5.25, 1.7),
        "labels": (5.25, 2.7),
        "losses": (2.95, 0.5),
    }.items():
        box(ax, place, size, name, BLUE)
    box(ax, (5.25, 0.5), (1.8, 0.52), "gold and candidates\nwith total scores", BLUE)
    box(ax, (0.85, 0.5), size, "weights", ORANGE, filled=True)
    steps: list[tuple[Point, Point, str, Point, str]] = [
        ((0.85, 3.49), (0.85, 2.91), "features, encoders", (0.95, 3.2), "left"),
        ((0.85, 2.49), (0.85, 1.91), "data module", (0.95, 2.2), "left"),
        ((1.48, 1.7), (2.32, 1.7), "scorer", (1.9, 1.84), "center"),
        ((3.58, 1.7), (4.62, 1.7), "search", (4.1, 1.84), "center"),
        ((5.25, 1.49), (5.25, 0.76), "non-local\nfeatures", (5.33, 1.13), "left"),
        ((4.35, 0.5), (3.58, 0.5), "criterion", (3.97, 0.64), "center"),
        ((2.32, 0.5), (1.48, 0.5), "optimizer", (1.9, 0.64), "center"),
    ]
    for start, end, name, (x, y), side in steps:
        arrow(ax, start, end, ORANGE if name == "optimizer" else GREY)
        words(ax, x, y, name, ha=side, fontsize=9, color=GREEN, weight="bold")
    arrow(ax, (1.2, 0.71), (1.9, 1.64), ORANGE)
    words(ax, 1.68, 1.15, "used by the scorer", ha="left", fontsize=9)
    arrow(ax, (5.25, 1.91), (5.25, 2.49))
    words(ax, 5.33, 2.2, "the best one", ha="left", fontsize=9)
    words(ax, 2.3, 3.7, "blue: data     green: packages     orange: learning", ha="left", fontsize=9, color=GREY)
    return figure


def lattice_and_search() -> Figure:
    """Labels of each token, legal pairs of neighbours, and the best path."""
    figure, ax = drawing(6.3, 3.5)
    labels = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG"]
    tokens = ["Anna", "Lind", "joined", "Penus"]
    scores = np.array([[0, 2, 0, 1, 0], [0, 0.5, 1, 0, 0.5], [3, 0, 0, 0, 0], [1, 0.5, 0, 2, 0]])
    best = [1, 2, 0, 3]

    def place(t: int, j: int) -> Point:
        return 1.35 + 1.45 * t, 3.05 - 0.5 * j

    def legal(i: int, j: int) -> bool:
        return not labels[j].startswith("I-") or labels[i][2:] == labels[j][2:]

    for t in range(1, len(tokens)):
        for i in range(len(labels)):
            for j in range(len(labels)):
                first = t == 1 and labels[i].startswith("I-")
                if legal(i, j) and not first:
                    on = best[t - 1] == i and best[t] == j
                    (x, y), (u, v) = place(t - 1, i), place(t, j)
                    style: Any = {"color": ORANGE, "linewidth": 2.6} if on else {"color": "#c4c4c4", "linewidth": 0.9}
                    ax.plot([x, u], [y, v], zorder=2 if on else 1, **style)
    for t, token in enumerate(tokens):
        for j in range(len(labels)):
            impossible = t == 0 and labels[j].startswith("I-")
            on = best[t] == j
            x, y = place(t, j)
            face = ORANGE if on else ("#f2f2f2" if impossible else "white")
            ax.plot(x, y, "o", markersize=23, color=face, markeredgecolor=ORANGE if on else GREY, zorder=3)
            text = "-inf" if impossible else f"{scores[t, j]:g}"
            words(ax, x, y, text, fontsize=9, color="white" if on else GREY if impossible else BLACK, zorder=4)
        words(ax, 1.35 + 1.45 * t, 0.6, token, fontsize=10.5, weight="bold")
    for j, label in enumerate(labels):
        words(ax, 0.15, 3.05 - 0.5 * j, label, ha="left")
    words(ax, 0.15, 0.6, "token", ha="left", color=GREY)
    note = "In the circles: unary scores. Lines: legal pairs of labels, each with an edge score."
    words(ax, 3.15, 0.2, note, fontsize=9, color=GREY)
    return figure


def losses() -> Figure:
    """Losses over the gap between gold and its rival."""
    figure = Figure(figsize=(6.3, 3.7), layout="constrained", facecolor="white")
    ax = figure.subplots()
    gap = np.linspace(-3, 3, 601)
    margin = 1.0
    curves: list[tuple[str, Any, dict[str, Any]]] = [
        ("PerceptronLoss", np.where(gap < 0, -gap, 0), {"color": BLACK, "linewidth": 2.6}),
        ("MarginLoss, C = 1", np.where(gap <= margin, -gap, 0), {"color": BLUE, "linestyle": "--"}),
        ("HingeLoss, cost of the rival 1", np.maximum(0, margin - gap), {"color": ORANGE}),
        ("CRFLoss, two label sequences", np.log1p(np.exp(-gap)), {"color": GREEN, "linestyle": "-."}),
        ("MCELoss, Sigmoid", 1 / (1 + np.exp(gap)), {"color": PURPLE}),
        ("ExponentialLoss, one rival", np.exp(-gap), {"color": PINK, "linestyle": ":", "linewidth": 2.2}),
    ]
    for name, values, style in curves:
        shown = np.array(values, dtype=float)
        if name.startswith("MarginLoss"):
            shown[np.searchsorted(gap, margin) + 1] = np.nan  # a jump, not a slope
        ax.plot(gap, shown, label=name, **{"linewidth": 1.8, **style})
    ax.axvline(0, color="#c4c4c4", linewidth=1, zorder=0)
    ax.axhline(0, color="#c4c4c4", linewidth=1, zorder=0)
    ax.set(xlim=(-3, 3), ylim=(-1.15, 3.6), xlabel="gap = score of gold − score of the rival", ylabel="loss")
    words(ax, -1.5, -0.75, "wrong", color=GREY)
    words(ax, 1.9, -0.75, "right", color=GREY)
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    open_frame(ax)
    return figure


def online_learning() -> Figure:
    """The two paths through a training step, and what averaging does to a weight."""
    figure, ax = drawing(6.3, 5.9)
    words(ax, 0.15, 5.7, "By gradients: one step for a mini-batch", ha="left", weight="bold", fontsize=10.5)
    for k in range(3):
        y = 5.2 - 0.5 * k
        box(ax, (0.75, y), (1.0, 0.36), f"sequence {k + 1}", BLUE)
        box(ax, (2.1, y), (1.2, 0.36), "score, search", GREY)
        box(ax, (3.4, y), (0.75, 0.36), "loss", GREY)
        arrow(ax, (1.25, y), (1.5, y))
        arrow(ax, (2.7, y), (3.02, y))
        arrow(ax, (3.78, y), (4.2, 4.7 + 0.12 * (1 - k)))
    box(ax, (4.72, 4.7), (1.06, 0.62), "sum,\nbackward()", GREEN)
    arrow(ax, (5.25, 4.7), (5.49, 4.7))
    box(ax, (5.82, 4.7), (0.66, 0.42), "step()", ORANGE, filled=True)
    words(
        ax, 0.15, 3.85, "All three see the same weights w. The step is the sum of their updates.", ha="left", fontsize=9
    )
    ax.plot([0.15, 6.15], [3.6, 3.6], color=PALE, linewidth=1)

    words(
        ax, 0.15, 3.4, "Sequence by sequence: one compiled call, no gradients", ha="left", weight="bold", fontsize=10.5
    )
    for k in range(3):
        x = 0.98 + 2.05 * k
        box(ax, (x, 2.95), (1.25, 0.36), f"sequence {k + 1}", BLUE)
        box(ax, (x, 2.4), (1.25, 0.36), "score, search", GREY)
        box(ax, (x, 1.75), (1.25, 0.54), "gap too small?\nmove w", ORANGE, filled=True)
        arrow(ax, (x, 2.77), (x, 2.58))
        arrow(ax, (x, 2.22), (x, 2.02))
        if k < 2:
            arrow(ax, (x + 0.63, 1.75), (x + 1.42, 2.4), ORANGE)
            words(ax, x + 1.13, 1.85, "w₁w₂"[2 * k : 2 * k + 2], fontsize=10)
    note = "Each sees the weights that the one before left; the average counts every step."
    words(ax, 0.15, 1.28, note, ha="left", fontsize=9)
    ax.plot([0.15, 6.15], [1.08, 1.08], color=PALE, linewidth=1)

    weights = np.array([0, 1, 1, 1, 0, 1, 1, 2, 1, 1, 1, 0, 1, 1, 1, 2, 1, 1, 1, 1])
    steps = np.arange(len(weights) + 1)
    means = np.cumsum(weights) / np.arange(1, len(weights) + 1)
    left, bottom, across, up = 1.5, 0.25, 4.5 / len(weights), 0.28
    ax.step(left + across * steps, bottom + up * np.r_[weights, weights[-1]], where="post", color=BLUE, linewidth=1.5)
    ax.plot(left + across * (steps[:-1] + 0.5), bottom + up * means, color=ORANGE, linewidth=2.2)
    words(ax, 0.15, 0.72, "one weight", ha="left", fontsize=9, color=BLUE)
    words(ax, 0.15, 0.5, "its average", ha="left", fontsize=9, color=ORANGE)
    words(ax, 3.75, 0.1, "steps", fontsize=9, color=GREY)
    return figure


def features() -> Figure:
    """What node, edge and non-local features look at."""
    figure, ax = drawing(6.3, 3.0)
    tokens = ["Mr.", "Stigrim", "left", ".", "A", "dispute", "over", "Stigrim"]
    labels = ["O", "B-PER", "O", "O", "O", "O", "O", "B-PER"]
    xs = np.array([0.5, 1.25, 2.0, 2.5, 3.2, 3.95, 4.75, 5.55])
    for x, token, label in zip(xs, tokens, labels, strict=True):
        words(ax, x, 1.5, token, fontsize=10)
        person = label != "O"
        box(ax, (x, 2.0), (0.62 if person else 0.34, 0.3), label, BLUE, filled=person, fontsize=9)
    ax.plot([2.83, 2.83], [0.9, 2.25], color="#c4c4c4", linewidth=1, linestyle="--")
    words(ax, 2.75, 1.0, "sentence 1", fontsize=9, color=GREY, ha="right")
    words(ax, 2.91, 1.0, "sentence 2", fontsize=9, color=GREY, ha="left")

    ax.add_patch(
        FancyArrowPatch((1.25, 2.18), (5.55, 2.18), color=ORANGE, connectionstyle="arc3,rad=-0.16", arrowstyle="<|-|>",
                        mutation_scale=11, linewidth=1.8)
    )  # fmt: skip
    words(ax, 3.4, 2.72, "non-local: two mentions of a name, both PER", color=ORANGE, weight="bold")
    ax.plot([0.3, 0.3, 1.65, 1.65], [1.32, 1.12, 1.12, 1.32], color=GREEN, linewidth=1.6)
    words(ax, 1.25, 0.68, "node: the word before is Mr.,\nthe label here is B-PER", color=GREEN, fontsize=9)
    ax.plot([4.5, 4.5, 5.9, 5.9], [1.32, 1.12, 1.12, 1.32], color=PURPLE, linewidth=1.6)
    words(ax, 4.95, 0.68, "edge: the word is Stigrim,\nlabel O is followed by B-PER", color=PURPLE, fontsize=9)
    words(ax, 3.15, 0.2, "local features: one label, or two neighbouring labels", fontsize=9, color=GREY)
    return figure


def nbest() -> Figure:
    """Five candidates by local score, the non-local score on top, and the new order."""
    figure = Figure(figsize=(6.3, 3.2), layout="constrained", facecolor="white")
    ax = figure.subplots()
    local = np.array([10.0, 9.6, 9.3, 8.9, 8.8])
    further = np.array([-1.2, 0.2, 1.9, -0.4, 0.9])
    names = ["LOC … PER", "LOC … O", "PER … PER", "O … PER", "LOC … LOC"]
    rows = np.arange(len(local))[::-1]
    chosen = int(np.argmax(local + further))
    ax.barh(rows, local, height=0.55, color=BLUE, label="local score")
    ax.barh(rows, np.maximum(further, 0), left=local, height=0.55, color=GREEN, label="non-local score added")
    ax.barh(rows, np.minimum(further, 0), left=local, height=0.55, color="white", edgecolor=ORANGE, hatch="////",
            linewidth=0, label="subtracted")  # fmt: skip
    for n, (row, total) in enumerate(zip(rows, local + further, strict=True)):
        text = f"{total:.1f}" + ("  chosen" if n == chosen else "")
        words(ax, 11.35, row, text, ha="left", weight="bold" if n == chosen else "normal")
    ax.set_yticks(rows, [f"{n + 1}.  {name}" for n, name in enumerate(names)])
    ax.set(xlim=(6.5, 13), xlabel="score", ylim=(-0.5, 5.5), ylabel="labels of two mentions of a name")
    ax.set_xticks([7, 8, 9, 10, 11])
    ax.legend(frameon=False, fontsize=9, loc="upper left", ncols=3, columnspacing=1.0, handlelength=1.2)
    words(ax, 11.35, 4.65, "total", ha="left", color=GREY, fontsize=9)
    open_frame(ax)
    return figure


DECISIONS = [  # of a model of configs/studies/embedded.yaml#guided: token, the step at which it was labelled, label
    ("The", 4, "O"),
    ("chairman", 2, "O"),
    ("of", 5, "O"),
    ("Penus", 6, "B-ORG"),
    ("sold", 9, "O"),
    ("its", 7, "O"),
    ("two", 8, "O"),
    ("plants", 1, "O"),
    (".", 3, "O"),
]


def guided() -> Figure:
    """The spans of decided tokens after each step of a guided tagger."""
    figure, ax = drawing(6.3, 4.1)
    xs = np.linspace(0.95, 5.95, len(DECISIONS))
    for x, (token, _, label) in zip(xs, DECISIONS, strict=True):
        words(ax, x, 3.6, token, fontsize=9.5)
        words(ax, x, 3.85, label, fontsize=9, color=ORANGE if label != "O" else GREY)
    words(ax, 0.1, 3.85, "label", ha="left", fontsize=9, color=GREY)
    words(ax, 0.1, 3.6, "token", ha="left", fontsize=9, color=GREY)
    for step in range(1, len(DECISIONS) + 1):
        y = 3.6 - 0.36 * step
        words(ax, 0.1, y, f"step {step}", ha="left", fontsize=9, color=GREY)
        decided = [at <= step for _, at, _ in DECISIONS]
        start = 0
        while start < len(decided):
            if not decided[start]:
                ax.plot(xs[start], y, ".", color="#c4c4c4", markersize=5)
                start += 1
                continue
            stop = start
            while stop < len(decided) and decided[stop]:
                stop += 1
            ax.plot(xs[[start, stop - 1]], [y, y], color="#9cc9e3", linewidth=13, solid_capstyle="round", zorder=1)
            start = stop
        now = next(n for n, (_, at, _) in enumerate(DECISIONS) if at == step)
        ax.plot(xs[now], y, "o", color=BLUE, markersize=12, zorder=2)
        words(ax, xs[now], y - 0.01, str(step), fontsize=8.5, color="white", weight="bold", zorder=3)
    return figure


def evaluation() -> Figure:
    """Gold and predicted segments, and how they are counted."""
    figure, ax = drawing(6.3, 2.75)
    tokens = ["Anna", "Lind", "met", "Bo", "Ek", "of", "Penus", "Corp.", "in", "Rome"]
    gold = [(0, 2, "PER"), (3, 5, "PER"), (6, 8, "ORG"), (9, 10, "LOC")]
    predicted = [(0, 2, "PER", GREEN), (3, 5, "ORG", ORANGE), (6, 7, "ORG", ORANGE)]
    xs = np.linspace(1.15, 5.95, len(tokens))
    half = (xs[1] - xs[0]) / 2 - 0.03

    def bar(start: int, stop: int, y: float, text: str, colour: str) -> None:
        left, right = xs[start] - half, xs[stop - 1] + half
        box(ax, ((left + right) / 2, y), (right - left, 0.34), text, colour, filled=True)

    for x, token in zip(xs, tokens, strict=True):
        words(ax, x, 2.45, token)
    words(ax, 0.08, 1.95, "gold", ha="left")
    words(ax, 0.08, 1.4, "predicted", ha="left", fontsize=9)
    for start, stop, kind in gold:
        bar(start, stop, 1.95, kind, BLUE)
    for start, stop, kind, colour in predicted:
        bar(start, stop, 1.4, kind, colour)
    notes = [
        (0, 2, "right", GREEN),
        (3, 5, "wrong type", ORANGE),
        (6, 8, "wrong end", ORANGE),
        (9, 10, "missing", BROWN),
    ]
    for start, stop, text, colour in notes:
        words(ax, (xs[start] + xs[stop - 1]) / 2, 0.98, text, fontsize=9, color=colour, weight="bold")
    text = "TP = 1,  FP = 2,  FN = 3:   precision 1/3,  recall 1/4,  F1 = 2/7 = 0.286"
    words(ax, 3.15, 0.45, text)
    return figure


LAYERS: Sequence[tuple[str, Sequence[str], str]] = (  # from the bottom, in the order of imports
    ("tensors\nand loops", ("kernels", "ragged", "structures", "ops"), BLUE),
    ("text and\nfeatures", ("text", "data", "features", "predictor"), BLUE),
    ("scores\nand search", ("encoders", "scorers", "chain", "nonlocal_features"), GREEN),
    ("learning", ("criteria", "builder", "nn", "optim", "online", "guided"), GREEN),
    ("scores and\ntables", ("reports", "metrics"), GREEN),
    ("a model", ("datamodules", "models", "taggers", "loading", "tagging"), ORANGE),
    ("around\na model", ("reranking", "training", "experiments", "analysis"), PURPLE),
    ("programs", ("serving", "sklearn", "cli"), BROWN),
)


def design() -> Figure:
    """The packages in layers."""
    figure, ax = drawing(6.3, 4.7)
    for row, (name, packages, colour) in enumerate(LAYERS):
        y = 0.62 + 0.54 * row
        words(ax, 0.1, y, name, ha="left", fontsize=9, color=GREY)
        lengths = np.array([len(package) for package in packages], float) + 4
        widths = (4.85 - 0.08 * (len(packages) - 1)) * lengths / lengths.sum()
        left = 1.3
        for package, width in zip(packages, widths, strict=True):
            box(ax, (left + width / 2, y), (width, 0.36), package, colour, fontsize=9)
            left += width + 0.08
    arrow(ax, (1.15, 4.6), (1.15, 0.4))
    note = "A package imports only packages below it, or to the left of it."
    words(ax, 3.7, 0.17, note, fontsize=9, color=GREY)
    return figure


RESULTS = Path(__file__).parent / "results" / "pretrained.md"


def result_tables(path: Path) -> dict[str, list[tuple[str, float, float]]]:
    """Return the rows (name, score, tokens per second) of each table of a page that has both, by its heading."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    for part in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line[:1] == "|"]
        if lines and "tokens/s" in lines[0]:
            speed = lines[0].index("tokens/s")
            rows = [(row[0], float(row[1]), row[speed].replace(",", "")) for row in lines[2:]]
            heading = part.splitlines()[0]
            found[heading] = [(name, score, float(count)) for name, score, count in rows if count]
    return found


def pretrained() -> Figure:
    """Scores of the tables of results/pretrained.md over tokens per second."""
    tables = result_tables(RESULTS)
    names = list(dict.fromkeys(name for rows in tables.values() for name, *_ in rows))
    figure = Figure(figsize=(9, 5.8), layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for ax, (heading, rows) in zip(panels, tables.items(), strict=True):
        for name, score, speed in rows:
            ax.plot(speed, score, **{**series_style(names.index(name)), "linestyle": "none"}, label=name)
        ax.set_xscale("log")
        ax.margins(0.12)
        ax.set(title=heading.split(":")[0], xlabel="tokens per second")
        plain_log_ticks(ax.xaxis, 4)
        open_frame(ax)
    panels[0].set_ylabel("F1, accuracy (%)")
    marks = {label: mark for ax in panels for mark, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(list(marks.values()), list(marks), loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def generalisation() -> Figure:
    """Scores of the table of results/generalisation.md on two younger texts over those on the development file."""
    page = (FOLDER.parent / "results" / "generalisation.md").read_text(encoding="utf-8")
    table = page[page.index("\n|") + 1 :].partition("\n\n")[0]  # the first one
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    (_, _, *texts, _), _, *rows = lines
    figure = Figure(figsize=(8, 4), layout="constrained", facecolor="white")
    kinds = {"linear": BLUE, "with word vectors": ORANGE, "with a frozen encoder": GREEN}
    for ax, text, column in zip(figure.subplots(1, 2), texts, (2, 3), strict=True):
        for number, (kind, colour) in enumerate(kinds.items()):
            points = [(float(row[1]), float(row[column])) for row in rows if row[column] and _kind_of(row[0]) == number]
            ax.plot(*zip(*points, strict=True), "o", color=colour, label=kind)
        ax.set(xlabel="development file, F1 (%)", ylabel=f"{text}, F1 (%)")
        ax.legend(frameon=False, loc="lower right", fontsize=8)
        open_frame(ax)
    return figure


def _kind_of(name: str) -> int:
    """Return 2 for a configuration with a frozen encoder, 1 with clusters of word vectors, 0 for others."""
    return 2 if "frozen" in name else int("GloVe" in name)


def active_learning() -> Figure:
    """F1 over the number of labelled sentences, of the table of CoNLL-2003 of results/active_learning.md."""
    lines = (FOLDER.parent / "results" / "active_learning.md").read_text(encoding="utf-8").splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("| sentences | 100 |")) :]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[: table.index("")]]
    sizes = [int(size.replace(",", "")) for size in cells[0][1:]]
    figure = Figure(figsize=(6.3, 4), layout="constrained", facecolor="white")
    ax = figure.subplots()
    for number, (name, *scores) in enumerate(cells[2:]):
        ax.plot(sizes, list(map(float, scores)), label=name, **series_style(number))
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.set(xlabel="labelled sentences", ylabel="F1 (%)")
    ax.legend(frameon=False, loc="lower right")
    open_frame(ax)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    draw.__name__: draw
    for draw in (
        overview,
        lattice_and_search,
        losses,
        online_learning,
        features,
        nbest,
        guided,
        evaluation,
        design,
        pretrained,
        generalisation,
        active_learning,
    )
}


def write(folder: Path, names: Sequence[str] = tuple(FIGURES)) -> list[Path]:
    """Draw pictures into a folder; return their files."""
    written = []
    for name in names:
        path = folder / f"{name}.svg"
        with matplotlib.rc_context(STYLE):
            FIGURES[name]().savefig(path, metadata={"Date": None, "Creator": None})
        written.append(path)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.figures", description="Draw pictures of the documentation.")
    parser.add_argument("--only", nargs="+", default=list(FIGURES), choices=list(FIGURES), help="names; by default all")
    FOLDER.mkdir(exist_ok=True)
    for path in write(FOLDER, parser.parse_args().only):
        print(path)
