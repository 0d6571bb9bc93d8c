"""Saved models without the features whose weights are nothing, or next to nothing."""

from typing import TypeVar

import torch

from structperc.builder import Builder
from structperc.errors import InputError
from structperc.scorers import SparseLinear
from structperc.taggers.lattice_tagger import LatticeTagger
from structperc.taggers.model_format import FEATURE_PREFIX

AnyTagger = TypeVar("AnyTagger", bound=LatticeTagger)


@torch.no_grad()
def prune(tagger: AnyTagger, below: float = 0.0) -> AnyTagger:
    """Return a tagger like this one without the features whose weights are all 0.

    Without `below` it labels just as this one does; weights of nodes and edges of a smaller absolute value than that
    count as 0. Training that starts from it cannot learn what was dropped. Raises InputError for below < 0, for a
    tagger whose scorer is no `SparseLinear`, and where no feature would be left.
    """
    scorer = tagger.scorer
    if not below >= 0:
        raise InputError(f"--below must be >= 0, got {below}")
    if not isinstance(scorer, SparseLinear):
        raise InputError(f"{type(scorer).__name__} has no weights of features alone; only SparseLinear can be pruned")
    found = {"node": scorer.node} if scorer.edge is None else {"node": scorer.node, "edge": scorer.edge}
    tables = {kind: table.where(table.abs() >= below, 0.0) for kind, table in found.items()}
    rows = {kind: table.any(1) for kind, table in tables.items()}
    if tagger.features.shared:
        n = len(rows["edge"])  # what a bag lists comes after that
        both = rows["node"][:n] | rows["edge"]
        rows = {"node": torch.cat([both, rows["node"][n:]]), "edge": both}
    if not rows["node"].any():
        raise InputError(f"--below {below:g}: no feature has such a weight; take a smaller one")
    features = tagger.features
    for kind, keep in rows.items():
        features = features.subset(kind, keep.cpu().numpy())
    config, tensors = tagger.to_state()
    arrays = {FEATURE_PREFIX + name: torch.from_numpy(array) for name, array in features.state_arrays().items()}
    replaced = tuple(f"scorer.{kind}" for kind in rows)
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith((FEATURE_PREFIX, *replaced))}
    kept = {f"scorer.{kind}": tables[kind][keep].cpu() for kind, keep in rows.items() if keep.any()}
    config = {**config, "features": features.state_dict_json()}
    build = Builder.like(tagger, *features.user_objects)
    return type(tagger).from_state(config, {**weights, **kept, **arrays}, build)
