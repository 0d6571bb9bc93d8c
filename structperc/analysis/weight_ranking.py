"""The largest weights of a saved model by name, and sums by label and template, as text and as HTML tables."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from structperc.errors import InputError
from structperc.models.chain_model import ChainModel
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature
from structperc.reports.html_pages import render
from structperc.reports.tables import text_table
from structperc.reranking import FirstScore, LocalFeatures
from structperc.scorers import SegmentLinear, SparseLinear

MAX_LABELS = 60  # in the matrix of transitions; those with the largest weights are shown


class Weight(NamedTuple):
    """One weight with the names of its feature and labels."""

    group: str  # "node", "edge", "transition", "segment", or a non-local feature: its class and options
    feature: str  # "wl[-1]=the", "phrase(LOC,PER)"; "" for a transition
    labels: str  # "B-PER", "O B-PER"; "" for a non-local feature
    value: float

    @property
    def name(self) -> str:
        """The feature and the labels in one string."""
        return " -> ".join(part for part in (self.feature, self.labels) if part)


class Sums(NamedTuple):
    """Number and size of the weights of a label, a label pair, a template or a group."""

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
    """The weights of nodes, edges, transitions, segments, or a non-local feature."""

    sums: Sums
    largest: list[Weight]  # by absolute value; all of a non-local feature with few names
    columns: list[LabelWeights]  # by label or label pair; empty for a non-local feature
    templates: list[Sums]  # most mass first; may be empty

    @property
    def listed(self) -> list[Weight]:
        """The weights of all lists without duplicates, the largest first."""
        among = [*self.largest, *(w for column in self.columns for w in (*column.highest, *column.lowest))]
        return sorted(dict.fromkeys(among), key=lambda weight: -abs(weight.value))


class Transitions(NamedTuple):
    """The weights of all pairs of neighbouring labels."""

    labels: list[str]  # L names
    values: list[list[float]]  # L rows for the label before, L columns for the label after


class WeightGroups(list[Group]):
    """The weights of a model by group, shown as tables by `print` and in notebooks.

    Args:
        groups: nodes, edges, transitions and non-local features of the model.
        transitions: the weights of all label pairs, or None.
    """

    def __init__(self, groups: Iterable[Group] = (), transitions: Transitions | None = None) -> None:
        super().__init__(groups)
        self.transitions = transitions

    def __repr__(self) -> str:
        return "\n".join(weight_lines(self))

    def _repr_html_(self) -> str:
        return "".join(weights_html(self))


class WeightTable(NamedTuple):
    """The weights of R features by C labels or label pairs.

    A table of non-local features has one column, without a name.
    """

    name: str  # "node", "edge", "transition", "segment", or a non-local feature: its class and options
    weights: Tensor  # (R, C)
    columns: list[str]  # names of the C columns
    features: Callable[[Tensor], list[str]]  # names of rows, given in ascending order
    templates: list[tuple[str, int]]  # in the order of the rows, each with its number of rows; may be empty


def _scorer_tables(tagger: ChainModel) -> Iterator[WeightTable]:
    """Yield the tables of nodes, edges, transitions and segments that a linear scorer has."""
    local = [part.scorer for part in tagger.scorer.modules() if isinstance(part, LocalFeatures)]  # of a re-ranker
    scorer = (local or [tagger.scorer])[0]
    if not isinstance(scorer, SegmentLinear):
        yield from _label_tables(tagger, scorer)
        return
    yield from _label_tables(tagger, scorer.labels)
    names, types = scorer.segments.feature_names, list(tagger.labels.type_names)
    yield WeightTable("segment", scorer.weight.detach(), types, lambda rows: names(rows.tolist()), [])


def _label_tables(tagger: ChainModel, scorer: nn.Module) -> Iterator[WeightTable]:
    names = list(tagger.labels.names)
    if not isinstance(scorer, SparseLinear):
        return
    pairs = [f"{a} {b}" for a in names for b in names]
    yield _extracted(tagger, "node", scorer.node[: tagger.features.n_node_features], names)  # without vectors
    if scorer.edge is not None:
        yield _extracted(tagger, "edge", scorer.edge, pairs)
    if scorer.transition is not None:
        weights = scorer.transition.detach().view(1, -1)
        yield WeightTable("transition", weights, pairs, partial(_names_at, [""]), [])


def _extracted(tagger: ChainModel, kind: str, weights: Tensor, columns: list[str]) -> WeightTable:
    def names(rows: Tensor) -> list[str]:
        return tagger.features.index.names(kind, rows.cpu().numpy())

    return WeightTable(kind, weights.detach(), columns, names, tagger.features.index.template_sizes(kind))


def title(part: nn.Module) -> str:
    """Return a class with its options that differ from the default: "PhraseConsistency(match='folded')"."""
    parameters = inspect.signature(type(part)).parameters.values()
    options = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    special = {o.name: getattr(part, o.name) for o in options if _differs(getattr(part, o.name), o.default)}
    shown = [f"{name}={title(item) if isinstance(item, nn.Module) else repr(item)}" for name, item in special.items()]
    return f"{type(part).__name__}({', '.join(shown)})" if shown else type(part).__name__


def _differs(value: object, default: object) -> bool:
    """Return True if an option differs from the default; the default None stands for a part with default options."""
    if isinstance(value, nn.Module) and default is None:
        return "(" in title(value)
    return value not in (default, list(default) if isinstance(default, tuple) else default)


def _names_at(names: list[str], rows: Tensor) -> list[str]:
    return [names[row] for row in rows.tolist()]


def weights(tagger: ChainModel, top: int = 20) -> WeightGroups:
    """Return the largest weights of nodes, edges, transitions, segments and non-local features of a tagger.

    Of non-local features with few names all weights are returned. Ties at the end of a list are broken arbitrarily.
    Notebooks show the result as tables.

    Args:
        tagger: A trained tagger.
        top: Length of each list; weights of 0 are not listed.

    Raises:
        InputError: `top` is below 1.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger("averaged_perceptron", random_state=1, templates=["w[0]"]).fit(X, y).tagger_
        >>> nodes = weights(tagger, top=1)[0]
        >>> [column.highest[0].name for column in nodes.columns if column.sums.name == "B-PER"]
        ['w[0]=Anna -> B-PER']
    """
    if top < 1:
        raise InputError(f"--top must be >= 1, got {top}")
    groups, tables = [], list(_scorer_tables(tagger))
    for table in tables:
        columns = _columns(table, top) if table.name != "transition" else []
        groups.append(Group(_sums(table), _largest(table, top), columns, _templates(table)))
    for first in (part for part in tagger.scorer.modules() if isinstance(part, FirstScore)):
        names = partial(_names_at, ["first score"])
        groups.append(_all_weights(WeightTable("FirstScore", first.weight.detach().unsqueeze(1), [""], names, [])))
    for feature in sorted(tagger.nonlocal_features, key=lambda one: isinstance(one, GlobalFeature)):
        names = partial(_names_at, cast(NonlocalFeature, feature).names(tagger.labels.type_names))
        table = WeightTable(title(feature), cast(Tensor, feature.weight).detach().unsqueeze(1), [""], names, [])
        many = isinstance(feature, GlobalFeature)
        groups.append(Group(_sums(table), _largest(table, top), [], []) if many else _all_weights(table))
    return WeightGroups(groups, _transitions(tables, list(tagger.labels.names)))


def _transitions(tables: Sequence[WeightTable], names: list[str]) -> Transitions | None:
    for table in reversed(tables):
        row = 0
        for template, size in table.templates or [("bias", 1)]:
            if table.name not in ("node", "segment") and template == "bias":
                values = table.weights[row].view(len(names), len(names)).tolist()
                return Transitions(names, values)
            row += size
    return None


def _sums(table: WeightTable) -> Sums:
    mass = torch.linalg.vector_norm(table.weights, 1, dtype=torch.float64)
    return Sums(table.name, table.weights.numel(), int(table.weights.count_nonzero()), float(mass))


def _all_weights(table: WeightTable) -> Group:
    order = table.weights.flatten().abs().argsort(descending=True, stable=True)
    return Group(_sums(table), _named(table, order), [], [])


def _largest(table: WeightTable, top: int) -> list[Weight]:
    flat = table.weights.reshape(-1)
    places = flat.abs().topk(min(top, len(flat))).indices
    return _named(table, places[flat[places] != 0])


def _columns(table: WeightTable, top: int) -> list[LabelWeights]:
    """Return the highest and lowest weights of each column; all features are named in one call."""
    R, C = table.weights.shape
    size = min(top, R)
    rows = torch.cat([table.weights.topk(size, 0, sign).indices for sign in (True, False)])  # (2 * size, C)
    places = rows * C + torch.arange(C, device=rows.device)
    named = _named(table, places.t().flatten())
    nonzero = table.weights.count_nonzero(0).tolist()
    mass = torch.linalg.vector_norm(table.weights, 1, 0, dtype=torch.float64).tolist()
    columns = []
    for c, name in enumerate(table.columns):
        high, low = (named[start : start + size] for start in (2 * size * c, 2 * size * c + size))
        above, below = [w for w in high if w.value > 0], [w for w in low if w.value < 0]
        columns.append(LabelWeights(Sums(name, R, nonzero[c], mass[c]), above, below))
    return columns


def _named(table: WeightTable, places: Tensor) -> list[Weight]:
    """Return the weights at flat indices row * C + column."""
    C = len(table.columns)
    rows, which = (places // C).unique(return_inverse=True)
    names = table.features(rows)
    values = table.weights.reshape(-1)[places].tolist()
    columns = (places % C).tolist()
    cells = zip(which.tolist(), columns, values, strict=True)
    return [Weight(table.name, names[i], table.columns[c], value) for i, c, value in cells]


def _templates(table: WeightTable) -> list[Sums]:
    if not table.templates:
        return []
    names, sizes = [name for name, _ in table.templates], [size for _, size in table.templates]
    nonzero = table.weights.count_nonzero(1).split(sizes)
    mass = torch.linalg.vector_norm(table.weights, 1, 1, dtype=torch.float64).split(sizes)
    C = len(table.columns)
    parts = zip(names, sizes, nonzero, mass, strict=True)
    sums = [Sums(name, size * C, int(n.sum()), float(m.sum())) for name, size, n, m in parts]
    return sorted(sums, key=lambda one: -one.mass)


def weight_lines(groups: Sequence[Group], top: int = 20) -> Iterator[str]:
    """Yield the report as text: sums of groups, then for each group its lists, `top` lines of each."""
    yield from _sum_lines("group", [group.sums for group in groups])
    for group in groups:
        yield ""
        yield f"{group.sums.name}: largest weights"
        yield from text_table([[_format_weight(weight.value), weight.name] for weight in group.largest], "><")
        yield from _label_lines(group) if group.sums.name in ("node", "segment") else _pair_lines(group, top)
        if group.templates:
            yield ""
            yield from _sum_lines(f"{group.sums.name} template", group.templates[:top])
            if (more := len(group.templates) - top) > 0:
                yield f"... and {more} more"


def _sum_lines(title: str, rows: Sequence[Sums]) -> Iterator[str]:
    whole = sum(row.mass for row in rows) or 1.0
    cells = [[title, "weights", "not zero", "", "sum of |w|", ""]]
    for name, size, nonzero, mass in rows:
        shares = [f"{100 * share:.1f}%" for share in (nonzero / max(size, 1), mass / whole)]
        cells.append([name, str(size), str(nonzero), shares[0], f"{mass:.6g}", shares[1]])
    return text_table(cells)


def _label_lines(group: Group) -> Iterator[str]:
    for column in group.columns:
        yield ""
        yield f"{group.sums.name} -> {column.sums.name}: highest and lowest"
        pairs = zip_longest(column.highest, column.lowest)
        yield from text_table([[*_cells(high), *_cells(low)] for high, low in pairs], "><><")


def _pair_lines(group: Group, top: int) -> Iterator[str]:
    columns = sorted(group.columns, key=lambda column: -column.sums.mass)
    columns = [column for column in columns if column.sums.nonzero][:top]
    if group.columns:
        yield ""
        rows = [["label pair", "not zero", "sum of |w|", "highest", "", "lowest"]]
        for sums, highest, lowest in columns:
            weights = [*_cells(next(iter(highest), None)), *_cells(next(iter(lowest), None))]
            rows.append([sums.name, str(sums.nonzero), f"{sums.mass:.6g}", *weights])
        yield from text_table(rows, "<>>><><")


def _cells(weight: Weight | None) -> list[str]:
    return ["", ""] if weight is None else [_format_weight(weight.value), weight.feature]


def _format_weight(value: float) -> str:
    return f"{value:+.5g}"


def weights_html(found: WeightGroups) -> Iterator[str]:
    """Yield the tables of a model's weights in parts, as HTML without the page around them.

    They are the transitions, from rows to columns, the highest and lowest features of each label, and the largest other
    weights.
    """
    return render("weight_tables.html", **_values(found))


def weights_page(found: WeightGroups, title: str, notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield an HTML page with the tables of `weights_html`."""
    return render("weights.html", title=title, notes=notes, **_values(found))


def _values(found: WeightGroups) -> dict[str, Any]:
    matrix = None if found.transitions is None else _matrix(found.transitions)
    return {"groups": list(found), "matrix": matrix, "background": _background}


def _matrix(transitions: Transitions) -> dict[str, Any]:
    """Return the weights of all pairs of neighbouring labels, or of the MAX_LABELS labels with the largest ones."""
    names, values = transitions
    mass = [sum(map(abs, row)) + sum(abs(other[i]) for other in values) for i, row in enumerate(values)]
    shown = sorted(sorted(range(len(names)), key=lambda i: -mass[i])[:MAX_LABELS])
    cells = [[values[i][j] for j in shown] for i in shown]
    largest = max((abs(value) for row in cells for value in row), default=0.0)
    rows = list(zip([names[i] for i in shown], cells, strict=True))
    return {"rows": rows, "largest": largest, "hidden": len(shown) < len(names)}


def _background(value: float, largest: float) -> str:
    """Return a colour that is readable on light and on dark, stronger for larger weights."""
    share = 0.08 + 0.47 * abs(value) / max(largest, abs(value))
    return f"rgba({'30, 160, 70' if value > 0 else '220, 60, 50'}, {share:.2f})"
