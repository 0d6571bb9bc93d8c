"""The weights of a tagger as tables with names for their rows and columns, ready to be ranked."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, cast

from torch import Tensor, nn

from structperc.nonlocal_features import GlobalFeature, NonlocalFeature
from structperc.reranking import FirstScore, LocalFeatures
from structperc.scorers import SparseLinear
from structperc.taggers.lattice_tagger import LatticeTagger


class WeightTable(NamedTuple):
    """The weights of R features by C labels or label pairs.

    A table of non-local features has one column, without a name.
    """

    name: str  # "node", "edge", "transition", or a non-local feature: its class and options
    weights: Tensor  # (R, C)
    columns: list[str]  # names of the C columns
    features: Callable[[Tensor], list[str]]  # rows in ascending order -> their names
    templates: list[tuple[str, int]]  # each with the number of its rows, which are neighbours; none without templates
    told: str = ""  # what else is to be known about the features


def local_tables(tagger: LatticeTagger) -> Iterator[WeightTable]:
    """Yield the tables of nodes, edges and transitions, as far as a linear scorer has them."""
    scorer, names = _linear(tagger), list(tagger.labels.names)
    if scorer is None:
        return
    pairs = [f"{a} {b}" for a in names for b in names]
    yield _extracted(tagger, "node", scorer.node, names)
    if scorer.edge is not None:
        yield _extracted(tagger, "edge", scorer.edge, pairs)
    if scorer.transition is not None:
        weights = scorer.transition.detach().view(1, -1)
        yield WeightTable("transition", weights, pairs, partial(_looked_up, [""]), [])


def counted_tables(tagger: LatticeTagger) -> Iterator[WeightTable]:
    """Yield the weight of the first model's score, then those of the non-local features that have a few names."""
    for first in (part for part in tagger.scorer.modules() if isinstance(part, FirstScore)):
        weight = first.weight.detach().unsqueeze(1)
        yield WeightTable("FirstScore", weight, [""], partial(_looked_up, ["first score"]), [])
    yield from (_nonlocal(tagger, f) for f in tagger.nonlocal_features if not isinstance(f, GlobalFeature))


def string_tables(tagger: LatticeTagger) -> Iterator[WeightTable]:
    """Yield the weights of global features, which have many names."""
    yield from (_nonlocal(tagger, f) for f in tagger.nonlocal_features if isinstance(f, GlobalFeature))


def _linear(tagger: LatticeTagger) -> SparseLinear | None:
    """The scorer of local features, which a re-ranker holds further down or does not have."""
    own = [part.scorer for part in tagger.scorer.modules() if isinstance(part, LocalFeatures)]
    scorer = own[0] if own else tagger.scorer
    return scorer if isinstance(scorer, SparseLinear) else None


def _extracted(tagger: LatticeTagger, kind: str, weights: Tensor, columns: list[str]) -> WeightTable:
    """The weights of features that templates extract."""
    templates = tagger.features.template_sizes(kind)
    return WeightTable(kind, weights.detach(), columns, partial(_feature_names, tagger, kind), templates)


def _nonlocal(tagger: LatticeTagger, module: nn.Module) -> WeightTable:
    feature = cast(NonlocalFeature, module)
    names = feature.names(tagger.labels.type_names)
    return WeightTable(title(feature), feature.weight.detach().unsqueeze(1), [""], partial(_looked_up, names), [])


def title(part: nn.Module) -> str:
    """Return a class and those of its options that are not the default: "PhraseConsistency(match='folded')"."""
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


def _feature_names(tagger: LatticeTagger, kind: str, rows: Tensor) -> list[str]:
    """Names of a few features: those of all of a large model take long."""
    return tagger.features.feature_names(kind, rows.cpu().numpy())


def _looked_up(names: list[str], rows: Tensor) -> list[str]:
    return [names[row] for row in rows.tolist()]
