"""What the majority features share: entities counted by their own class and the class of most others."""

import torch
from torch import Tensor

from structperc.nonlocal_features.segments import CandidateSegments
from structperc.nonlocal_features.strings import NamePairs


def majority_counts(
    segments: CandidateSegments, pairs: NamePairs, names: Tensor, types: Tensor, votes: Tensor
) -> Tensor:
    """Count the entities of each name by (their class, the class that has most votes) -> (B * K, C * C).

    votes (Q, K) are those for class types (Q,), as entities of names (Q,) see it. Where no class has votes, entities
    do not count. Of classes with equally many votes the entities' own comes first, then the lowest number.
    """
    C, own = len(segments.label_set.type_names), pairs.types[names]
    precedence = torch.where(types == own, C, C - 1 - types)
    rank = (votes * (C + 1)).add_(precedence.unsqueeze(1))
    highest = rank.new_full((len(pairs.types), rank.shape[1]), C + 1)  # the least rank of a class with votes
    highest.scatter_reduce_(0, names.unsqueeze(1).expand_as(rank), rank, "amax")
    wins = rank == highest.index_select(0, names)
    entities = pairs.held.index_select(0, names).mul_(wins)
    return segments.summed(entities, pairs.rows[names], own * C + types, C * C)
