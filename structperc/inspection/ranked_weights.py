"""The weights of a saved model: the largest ones by name, and sums by label and template."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.inspection.weight_tables import WeightTable, counted_tables, local_tables, string_tables
from structperc.taggers.lattice_tagger import LatticeTagger


class Weight(NamedTuple):
    """One weight with its name: the feature and the labels that it belongs to."""

    group: str  # "node", "edge", "transition", or a non-local feature: its class and options
    feature: str  # "wl[-1]=the", "phrase(LOC,PER)"; "" for a transition
    labels: str  # "B-PER", "O B-PER"; "" for a non-local feature
    value: float

    @property
    def name(self) -> str:
        """The feature and the labels in one string."""
        return " -> ".join(part for part in (self.feature, self.labels) if part)


class Sums(NamedTuple):
    """How much weight there is in one place: at one label or label pair, or in one template."""

    name: str
    weights: int
    nonzero: int
    mass: float  # sum of absolute values


class LabelWeights(NamedTuple):
    """The sums and the largest weights of one label or label pair."""

    sums: Sums
    highest: list[Weight]  # above 0, highest first
    lowest: list[Weight]  # below 0, lowest first


class Group(NamedTuple):
    """The weights of one kind: of nodes, edges, transitions, or a non-local feature."""

    sums: Sums
    largest: list[Weight]  # by absolute value; of a non-local feature with a few names all, also those that are 0
    columns: list[LabelWeights]  # by label or label pair; none for a non-local feature
    templates: list[Sums]  # most mass first; none where there are no templates

    @property
    def listed(self) -> list[Weight]:
        """Every weight of the lists once, the largest first."""
        among = [*self.largest, *(w for column in self.columns for w in (*column.highest, *column.lowest))]
        return sorted(dict.fromkeys(among), key=lambda weight: -abs(weight.value))


class Transitions(NamedTuple):
    """The weights of all pairs of neighbouring labels."""

    labels: list[str]  # L names
    values: list[list[float]]  # L rows for the label before, L columns for the label after


class Weights(list[Group]):
    """The groups of weights of a model, which notebooks show as tables.

    Args:
        groups: nodes, edges, transitions and non-local features, as far as the model has them.
        transitions: the weights of all label pairs; None for a model without any.
    """

    def __init__(self, groups: Iterable[Group] = (), transitions: Transitions | None = None) -> None:
        super().__init__(groups)
        self.transitions = transitions

    def _repr_html_(self) -> str:
        from structperc.inspection.weights_page import weights_html  # imports these classes

        return "".join(weights_html(self))


def weights(tagger: LatticeTagger, top: int = 20) -> Weights:
    """Return nodes, edges, transitions and non-local features of a tagger, as far as it has them.

    Each list has the `top` largest weights. Weights of 0 are in no list, except those of non-local features with a few
    names, which are all listed. Of equal weights at the boundary of a list it is not defined which are in it. Raises
    InputError for top < 1.
    """
    if top < 1:
        raise InputError(f"--top must be >= 1, got {top}")
    groups = []
    for table in local_tables(tagger):
        columns = _columns(table, top) if table.name != "transition" else []
        groups.append(Group(_sums(table), _largest(table, top), columns, _templates(table)))
    groups += [Group(_sums(table), _all(table), [], []) for table in counted_tables(tagger)]
    groups += [Group(_sums(table), _largest(table, top), [], []) for table in string_tables(tagger)]
    return Weights(groups, _transitions(tagger))


def _transitions(tagger: LatticeTagger) -> Transitions | None:
    """The matrix of label pairs: that of the scorer, or the edge weights that every token has."""
    names = list(tagger.labels.names)
    for table in reversed([*local_tables(tagger)]):
        row = 0
        for template, size in table.templates or [("bias", 1)]:
            if table.name != "node" and template == "bias":
                values = table.weights[row].view(len(names), len(names)).tolist()
                return Transitions(names, values)
            row += size
    return None


def _sums(table: WeightTable) -> Sums:
    mass = torch.linalg.vector_norm(table.weights, 1, dtype=torch.float64)
    return Sums(table.name, table.weights.numel(), int(table.weights.count_nonzero()), float(mass))


def _largest(table: WeightTable, top: int) -> list[Weight]:
    flat = table.weights.reshape(-1)
    places = flat.abs().topk(min(top, len(flat))).indices
    return _named(table, places[flat[places] != 0])


def _all(table: WeightTable) -> list[Weight]:
    return _named(table, table.weights.flatten().abs().argsort(descending=True, stable=True))


def _columns(table: WeightTable, top: int) -> list[LabelWeights]:
    """Highest and lowest of each column, their features named all at once."""
    R, C = table.weights.shape
    size = min(top, R)
    rows = torch.cat([table.weights.topk(size, 0, sign).indices for sign in (True, False)])  # (2 * size, C)
    places = rows * C + torch.arange(C, device=rows.device)
    found = _named(table, places.t().flatten())
    nonzero = table.weights.count_nonzero(0).tolist()
    mass = torch.linalg.vector_norm(table.weights, 1, 0, dtype=torch.float64).tolist()
    columns = []
    for c, name in enumerate(table.columns):
        high, low = (found[start : start + size] for start in (2 * size * c, 2 * size * c + size))
        above, below = [w for w in high if w.value > 0], [w for w in low if w.value < 0]
        columns.append(LabelWeights(Sums(name, R, nonzero[c], mass[c]), above, below))
    return columns


def _named(table: WeightTable, places: Tensor) -> list[Weight]:
    """Weights at flat places row * C + column."""
    C = len(table.columns)
    rows, which = (places // C).unique(return_inverse=True)
    names = table.features(rows)
    values = table.weights.reshape(-1)[places].tolist()
    columns = (places % C).tolist()
    found = zip(which.tolist(), columns, values, strict=True)
    return [Weight(table.name, names[i], table.columns[c], value) for i, c, value in found]


def _templates(table: WeightTable) -> list[Sums]:
    """Sums of each template, most mass first; none for a table without templates."""
    if not table.templates:
        return []
    names, sizes = [name for name, _ in table.templates], [size for _, size in table.templates]
    nonzero = table.weights.count_nonzero(1).split(sizes)
    mass = torch.linalg.vector_norm(table.weights, 1, 1, dtype=torch.float64).split(sizes)
    C = len(table.columns)
    parts = zip(names, sizes, nonzero, mass, strict=True)
    sums = [Sums(name, size * C, int(n.sum()), float(m.sum())) for name, size, n, m in parts]
    return sorted(sums, key=lambda one: -one.mass)
