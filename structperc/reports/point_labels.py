"""Names beside the points of a figure, placed so that they cover neither each other nor what is drawn."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation

from structperc.reports.axes import plain

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
    return ax.annotate(plain(lines), point, (0, 0), textcoords="offset points", fontsize=8)


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
