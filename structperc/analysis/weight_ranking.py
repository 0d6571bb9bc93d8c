"""The largest weights of a saved model by name, and sums by label and template."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from structperc.analysis.weight_report import Group, LabelWeights, Sums, Transitions, Weight, WeightGroups
from structperc.errors import InputError
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature
from structperc.reranking import FirstScore, LocalFeatures
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger


class WeightTable(NamedTuple):
    """The weights of R features by C labels or label pairs.

    A table of non-local features has one column, without a name.
    """

    name: str  # "node", "edge", "transition", or a non-local feature: its class and options
    weights: Tensor  # (R, C)
    columns: list[str]  # names of the C columns
    features: Callable[[Tensor], list[str]]  # names of rows, given in ascending order
    templates: list[tuple[str, int]]  # in the order of the rows, each with its number of rows; may be empty


def scorer_tables(tagger: Tagger) -> Iterator[WeightTable]:
    """Yield the tables of nodes, edges and transitions that a linear scorer has."""
    local = [part.scorer for part in tagger.scorer.modules() if isinstance(part, LocalFeatures)]  # of a re-ranker
    scorer, names = (local or [tagger.scorer])[0], list(tagger.labels.names)
    if not isinstance(scorer, SparseLinear):
        return
    pairs = [f"{a} {b}" for a in names for b in names]
    yield _extracted(tagger, "node", scorer.node, names)
    if scorer.edge is not None:
        yield _extracted(tagger, "edge", scorer.edge, pairs)
    if scorer.transition is not None:
        weights = scorer.transition.detach().view(1, -1)
        yield WeightTable("transition", weights, pairs, partial(_names_at, [""]), [])


def named_feature_tables(tagger: Tagger) -> Iterator[WeightTable]:
    """Yield the weight of the first model's score, then those of non-local features with few names."""
    for first in (part for part in tagger.scorer.modules() if isinstance(part, FirstScore)):
        weight = first.weight.detach().unsqueeze(1)
        yield WeightTable("FirstScore", weight, [""], partial(_names_at, ["first score"]), [])
    yield from (_nonlocal(tagger, f) for f in tagger.nonlocal_features if not isinstance(f, GlobalFeature))


def global_feature_tables(tagger: Tagger) -> Iterator[WeightTable]:
    """Yield the weights of global features, of many names."""
    yield from (_nonlocal(tagger, f) for f in tagger.nonlocal_features if isinstance(f, GlobalFeature))


def _extracted(tagger: Tagger, kind: str, weights: Tensor, columns: list[str]) -> WeightTable:
    def names(rows: Tensor) -> list[str]:
        return tagger.features.feature_names(kind, rows.cpu().numpy())

    return WeightTable(kind, weights.detach(), columns, names, tagger.features.template_sizes(kind))


def _nonlocal(tagger: Tagger, module: nn.Module) -> WeightTable:
    feature = cast(NonlocalFeature, module)
    names = feature.names(tagger.labels.type_names)
    return WeightTable(title(feature), feature.weight.detach().unsqueeze(1), [""], partial(_names_at, names), [])


def title(part: nn.Module) -> str:
    """Return a class with its options that differ from the default: "PhraseConsistency(match='folded')"."""
    parameters = inspect.signature(type(part)).parameters.values()
    options = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    special = {o.name: getattr(part, o.name) for o in options if _differs(getattr(part, o.name), o.default)}
    shown = [f"{name}={title(one) if isinstance(one, nn.Module) else repr(one)}" for name, one in special.items()]
    return f"{type(part).__name__}({', '.join(shown)})" if shown else type(part).__name__


def _differs(value: object, default: object) -> bool:
    """Return True if an option differs from the default; the default None stands for a part with default options."""
    if isinstance(value, nn.Module) and default is None:
        return "(" in title(value)
    return value not in (default, list(default) if isinstance(default, tuple) else default)


def _names_at(names: list[str], rows: Tensor) -> list[str]:
    return [names[row] for row in rows.tolist()]


def weights(tagger: Tagger, top: int = 20) -> WeightGroups:
    """Return the largest weights of nodes, edges, transitions and non-local features of a tagger.

    Each list has the `top` largest weights that are not 0; of non-local features with few names, all weights. Ties at
    the end of a list are broken arbitrarily. Raises InputError for top < 1.
    """
    if top < 1:
        raise InputError(f"--top must be >= 1, got {top}")
    groups = []
    for table in scorer_tables(tagger):
        columns = _columns(table, top) if table.name != "transition" else []
        groups.append(Group(_sums(table), _largest(table, top), columns, _templates(table)))
    for table in named_feature_tables(tagger):
        order = table.weights.flatten().abs().argsort(descending=True, stable=True)
        groups.append(Group(_sums(table), _named(table, order), [], []))
    groups += [Group(_sums(table), _largest(table, top), [], []) for table in global_feature_tables(tagger)]
    return WeightGroups(groups, _transitions(tagger))


def _transitions(tagger: Tagger) -> Transitions | None:
    names = list(tagger.labels.names)
    for table in reversed([*scorer_tables(tagger)]):
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


def _columns(table: WeightTable, top: int) -> list[LabelWeights]:
    """Return the highest and lowest weights of each column; all features are named in one call."""
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
    """Return the weights at flat indices row * C + column."""
    C = len(table.columns)
    rows, which = (places // C).unique(return_inverse=True)
    names = table.features(rows)
    values = table.weights.reshape(-1)[places].tolist()
    columns = (places % C).tolist()
    found = zip(which.tolist(), columns, values, strict=True)
    return [Weight(table.name, names[i], table.columns[c], value) for i, c, value in found]


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
