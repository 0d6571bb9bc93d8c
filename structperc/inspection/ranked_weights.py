"""The weights of a saved model: the largest ones by name, and sums by label and template."""

import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.inspection.weight_groups import Group, LabelWeights, Sums, Transitions, Weight
from structperc.inspection.weight_tables import WeightTable, counted_tables, local_tables, string_tables
from structperc.inspection.weights_page import Weights
from structperc.taggers.lattice_tagger import LatticeTagger


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
