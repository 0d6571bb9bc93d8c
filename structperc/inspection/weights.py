"""Which features carry the weight of a saved model: the largest weights by name, and sums by label and template."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from structperc.errors import InputError
from structperc.features.templates import template_name
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature
from structperc.reports.figures import plot_weights
from structperc.reports.writing import check_figure, check_targets, write_csv, write_figure
from structperc.reranking import FirstScore, LocalFeatures
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger


class Weight(NamedTuple):
    """One weight by its name."""

    group: str  # "node", "edge", "transition", or a non-local feature: its class and options
    feature: str  # "wl[-1]=the", "phrase(LOC,PER)"; "" for a transition
    labels: str  # "B-PER", "O B-PER"; "" for a non-local feature
    value: float

    @property
    def name(self) -> str:
        """Feature and labels in one string."""
        return " -> ".join(part for part in (self.feature, self.labels) if part)


class Sums(NamedTuple):
    """How much weight there is in one place: at one label or label pair, or in one template."""

    name: str
    weights: int
    nonzero: int
    mass: float  # sum of absolute values


class Column(NamedTuple):
    """The weights of one label or label pair."""

    sums: Sums
    highest: list[Weight]  # above 0, highest first
    lowest: list[Weight]  # below 0, lowest first


class Group(NamedTuple):
    """The weights of one kind."""

    sums: Sums
    largest: list[Weight]  # by absolute value; of a non-local feature with a few names all, also those that are 0
    columns: list[Column]  # by label or label pair; none for a non-local feature
    templates: list[Sums]  # most mass first; none where there are no templates

    @property
    def listed(self) -> list[Weight]:
        """Every weight of the lists once, the largest first."""
        among = [*self.largest, *(w for column in self.columns for w in (*column.highest, *column.lowest))]
        return sorted(dict.fromkeys(among), key=lambda weight: -abs(weight.value))


class _Table(NamedTuple):
    name: str
    weights: Tensor  # (R, C)
    columns: list[str]  # names of the C columns
    features: Callable[[Tensor], list[str]]  # ascending rows -> names


def weights(tagger: Tagger, top: int = 20) -> list[Group]:
    """-> nodes, edges, transitions and non-local features, as far as the tagger has them, with `top` weights per list.

    Weights of 0 are in no list, except those of non-local features with a few names, which are all listed. Of equal
    weights at the boundary of a list it is not defined which are in it. InputError for top < 1.
    """
    if top < 1:
        raise InputError(f"--top must be >= 1, got {top}")
    groups = []
    for table in _local(tagger):
        columns = _columns(table, top) if table.name != "transition" else []
        groups.append(Group(_sums(table), _largest(table, top), columns, _templates(tagger, table)))
    groups += [Group(_sums(table), _all(table), [], []) for table in _counted(tagger)]
    return groups + [Group(_sums(table), _largest(table, top), [], []) for table in _strings(tagger)]


def weights_file(model: str, top: int, plot: str | None, csv: str | None, trusted: Sequence[str] = ()) -> str:
    """Text of `weights` of a saved model; figure and table go to files. InputError as of its parts."""
    check_figure(plot)
    check_targets(csv)
    groups = weights(Tagger.load(model, trusted=trusted), top)
    if plot:
        write_figure(plot, plot_weights([(g.sums.name, [(w.name, w.value) for w in g.largest]) for g in groups]))
    if csv:
        write_csv(csv, Weight._fields, (weight for group in groups for weight in group.listed))
    return "\n".join(weight_lines(groups, top))


# -- tables of weights ----------------------------------------------------------------------------------------


def _local(tagger: Tagger) -> Iterator[_Table]:
    scorer, names = _linear(tagger), list(tagger.labels.names)
    if scorer is None:
        return
    pairs = [f"{a} {b}" for a in names for b in names]
    yield _Table("node", scorer.node.detach(), names, partial(_feature_names, tagger, "node"))
    if scorer.edge is not None:
        yield _Table("edge", scorer.edge.detach(), pairs, partial(_feature_names, tagger, "edge"))
    if scorer.transition is not None:
        yield _Table("transition", scorer.transition.detach().view(1, -1), pairs, partial(_looked_up, [""]))


def _linear(tagger: Tagger) -> SparseLinear | None:
    """The scorer of local features, which a re-ranker holds one level down or does not have."""
    scorer = tagger.scorer.scorer if isinstance(tagger.scorer, LocalFeatures) else tagger.scorer
    return scorer if isinstance(scorer, SparseLinear) else None


def _counted(tagger: Tagger) -> Iterator[_Table]:
    """The weight of the first model's score, then those of the non-local features that have a few names."""
    if isinstance(tagger.scorer, FirstScore):
        weight = tagger.scorer.weight.detach().unsqueeze(1)
        yield _Table("FirstScore", weight, [""], partial(_looked_up, ["first score"]))
    yield from (_nonlocal(tagger, f) for f in tagger.nonlocal_features if not isinstance(f, GlobalFeature))


def _strings(tagger: Tagger) -> Iterator[_Table]:
    """The weights of global features, which have many names."""
    yield from (_nonlocal(tagger, f) for f in tagger.nonlocal_features if isinstance(f, GlobalFeature))


def _nonlocal(tagger: Tagger, module: nn.Module) -> _Table:
    feature = cast(NonlocalFeature, module)
    names = feature.names(tagger.labels.type_names)
    return _Table(title(feature), feature.weight.detach().unsqueeze(1), [""], partial(_looked_up, names))


def title(part: nn.Module) -> str:
    """Class and those options that are not the default: "PhraseConsistency(match='folded')"."""
    parameters = inspect.signature(type(part)).parameters.values()
    options = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    special = [f"{o.name}={_shown(getattr(part, o.name))}" for o in options if _told(getattr(part, o.name), o.default)]
    return f"{type(part).__name__}({', '.join(special)})" if special else type(part).__name__


def _told(value: object, default: object) -> bool:
    """Whether an option is not the default: a part with default options, where a part is made when none is given."""
    if isinstance(value, nn.Module) and default is None:
        return "(" in title(value)
    return value not in (default, list(default) if isinstance(default, tuple) else default)


def _shown(value: object) -> str:
    return title(value) if isinstance(value, nn.Module) else repr(value)


def _feature_names(tagger: Tagger, kind: str, rows: Tensor) -> list[str]:
    """Names of a few features: those of all of a large model take long."""
    size = tagger.features.n_node_features if kind == "node" else tagger.features.n_edge_features
    keep = torch.zeros(size, dtype=torch.bool)
    keep[rows.cpu()] = True
    return tagger.features.subset(kind, keep.numpy()).feature_names(kind)


def _looked_up(names: list[str], rows: Tensor) -> list[str]:
    return [names[row] for row in rows.tolist()]


def _sums(table: _Table) -> Sums:
    mass = torch.linalg.vector_norm(table.weights, 1, dtype=torch.float64)
    return Sums(table.name, table.weights.numel(), int(table.weights.count_nonzero()), float(mass))


# -- the largest ----------------------------------------------------------------------------------------------


def _largest(table: _Table, top: int) -> list[Weight]:
    flat = table.weights.reshape(-1)
    places = flat.abs().topk(min(top, len(flat))).indices
    return _named(table, places[flat[places] != 0])


def _all(table: _Table) -> list[Weight]:
    return _named(table, table.weights.flatten().abs().argsort(descending=True, stable=True))


def _columns(table: _Table, top: int) -> list[Column]:
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
        columns.append(Column(Sums(name, R, nonzero[c], mass[c]), above, below))
    return columns


def _named(table: _Table, places: Tensor) -> list[Weight]:
    """Weights at flat places row * C + column."""
    C = len(table.columns)
    rows, which = (places // C).unique(return_inverse=True)
    names = table.features(rows)
    values = table.weights.reshape(-1)[places].tolist()
    columns = (places % C).tolist()
    found = zip(which.tolist(), columns, values, strict=True)
    return [Weight(table.name, names[i], table.columns[c], value) for i, c, value in found]


def _templates(tagger: Tagger, table: _Table) -> list[Sums]:
    """Sums of each template, most mass first."""
    if table.name == "transition":
        return []
    arrays = tagger.features.state_arrays()
    sizes = arrays.get(f"{table.name}_sizes", arrays["node_sizes"]).tolist()  # edges may be the features of nodes
    nonzero = table.weights.count_nonzero(1).split(sizes)
    mass = torch.linalg.vector_norm(table.weights, 1, 1, dtype=torch.float64).split(sizes)
    names = [template_name(template) for template in getattr(tagger.features, table.name)]
    C = len(table.columns)
    parts = zip(names, sizes, nonzero, mass, strict=True)
    sums = [Sums(name, size * C, int(n.sum()), float(m.sum())) for name, size, n, m in parts]
    return sorted(sums, key=lambda one: -one.mass)


# -- text -----------------------------------------------------------------------------------------------------


def weight_lines(groups: list[Group], top: int = 20) -> Iterator[str]:
    """The report as text: sums of groups, then for each group its lists, `top` lines of each."""
    yield from _sum_lines("group", [group.sums for group in groups])
    for group in groups:
        yield ""
        yield f"{group.sums.name}: largest weights"
        yield from (f"{_number(weight.value)}  {weight.name}" for weight in group.largest)
        if group.columns:
            yield from _column_lines(group, top)
        if group.templates:
            yield ""
            yield from _sum_lines(f"{group.sums.name} template", group.templates[:top])
            if (more := len(group.templates) - top) > 0:
                yield f"... and {more} more"


def _sum_lines(title: str, rows: Iterable[Sums]) -> Iterator[str]:
    rows = list(rows)
    width = max([len(title), *(len(row.name) for row in rows)]) + 2
    whole = sum(row.mass for row in rows) or 1.0
    yield f"{title:<{width}}{'weights':>12}{'not zero':>12}{'':>8}{'sum of |w|':>16}"
    for name, size, nonzero, mass in rows:
        share, part = 100 * nonzero / max(size, 1), 100 * mass / whole
        yield f"{name:<{width}}{size:>12}{nonzero:>12}{share:>7.1f}%{mass:>16.6g}{part:>7.1f}%"


def _column_lines(group: Group, top: int) -> Iterator[str]:
    if group.sums.name == "node":
        return _label_lines(group)
    return _pair_lines(group, top)


def _label_lines(group: Group) -> Iterator[str]:
    """Per label the two lists side by side."""
    for column in group.columns:
        yield ""
        yield f"{group.sums.name} -> {column.sums.name}: highest and lowest"
        width = max([1, *(len(weight.feature) for weight in column.highest)])
        for i in range(max(len(column.highest), len(column.lowest))):
            high, low = (_cell(weights[i : i + 1]) for weights in (column.highest, column.lowest))
            yield f"{high:<{width + 14}}{low}".rstrip()


def _pair_lines(group: Group, top: int) -> Iterator[str]:
    """A line for each of the label pairs with most mass."""
    columns = sorted(group.columns, key=lambda column: -column.sums.mass)
    columns = [column for column in columns if column.sums.nonzero][:top]
    width = max([10, *(len(column.sums.name) for column in columns)]) + 2
    longest = max([0, *(len(weight.feature) for column in columns for weight in column.highest[:1])])
    yield ""
    yield f"{'label pair':<{width}}{'not zero':>12}{'sum of |w|':>16}  highest and lowest"
    for sums, highest, lowest in columns:
        high, low = _cell(highest[:1]), _cell(lowest[:1])
        yield f"{sums.name:<{width}}{sums.nonzero:>12}{sums.mass:>16.6g}{high:<{longest + 14}}{low}".rstrip()


def _cell(weights: list[Weight]) -> str:
    return "".join(f"{_number(weight.value)}  {weight.feature}" for weight in weights)


def _number(value: float) -> str:
    return f"{value:>+12.5g}"
