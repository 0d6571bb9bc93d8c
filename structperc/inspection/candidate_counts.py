"""The candidates of one sequence with their scores, and the counts of non-local features in each: as arrays."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

import torch
from torch import Tensor

from structperc.chain import kbest
from structperc.nonlocal_features import NonlocalFeature, find_segments
from structperc.structures import Batch, Candidates
from structperc.taggers.lattice_tagger import LatticeTagger


class Rated(NamedTuple):
    """The K best labellings of one sequence by local score, in this order."""

    candidates: Candidates  # B = 1; their scores are the local ones
    totals: Tensor  # (K,) total scores
    golden: Tensor  # (K,) bool, is it gold; nowhere where gold is not known

    @property
    def n(self) -> int:
        """The number of candidates; places after them are empty."""
        return int(self.candidates.valid.sum())


class Count(NamedTuple):
    """One count of a non-local feature: its name, its weight, and its value for each candidate."""

    name: str  # "phrase(LOC,PER)"
    weight: float
    values: list[float]  # of each candidate


@torch.no_grad()
def rated(tagger: LatticeTagger, batch: Batch, n: int) -> Rated:
    """Return the n best labellings, with their scores, of a mini-batch of one sequence."""
    moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
    candidates = kbest(tagger(moved), n)
    found, totals = tagger.rated(moved, candidates), tagger.totals(moved, candidates)[0]
    golden = torch.zeros_like(found.valid[0])
    if batch.gold is not None:
        golden = (found.labels[0] == batch.gold.to(totals.device)).all(1) & found.valid[0]
    return Rated(found, totals, golden)


@torch.no_grad()
def counted(tagger: LatticeTagger, batch: Batch, labels: Tensor) -> Iterator[Count]:
    """Yield each count that at least one of the candidates has, feature by feature; labels are (1, K, T), all valid."""
    moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
    valid = torch.ones(labels.shape[:2], dtype=torch.bool, device=labels.device)
    segments = find_segments(moved, labels, valid, tagger.labels)
    for feature in cast(Iterable[NonlocalFeature], tagger.nonlocal_features):
        counts, names = feature.counts(segments).to_dense().t(), feature.names(tagger.labels.type_names)
        held = counts.any(1).nonzero().squeeze(1)  # of many names a few occur
        rows = zip(held.tolist(), feature.weight[held].tolist(), counts[held].tolist(), strict=True)
        yield from (Count(names[f], weight, row) for f, weight, row in rows)
