"""What criteria are given: gold and candidates with their scores in a lattice."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from structperc.chain import path_score
from structperc.structures import Candidates, Lattice, Scored


def compared(lattice: Lattice, gold: Tensor, candidates: Candidates) -> Scored:
    """Return gold (B, T) and candidates with their scores in a lattice, with gradients; non-local scores are zeros."""
    own = path_score(lattice, torch.cat([gold[:, None], candidates.labels], 1))
    none = own.new_zeros(own.shape)
    return Scored(lattice, gold, candidates, own[:, 0], own[:, 1:], none[:, 0], none[:, 1:])


def some_of(scored: Scored, places: slice) -> Scored:
    """Return gold and the candidates of some places."""
    candidates = Candidates(*(part[:, places] for part in scored.candidates))
    own, more = scored.candidate_scores[:, places], scored.candidate_nonlocal[:, places]
    return scored._replace(candidates=candidates, candidate_scores=own, candidate_nonlocal=more)


def no_candidates(lattice: Lattice) -> Candidates:
    """Return an empty list of candidates per sequence, for criteria that compare gold with all labellings at once."""
    B, T, _ = lattice.unary.shape
    none = lattice.unary.new_zeros(B, 0)
    return Candidates(lattice.lengths.new_zeros(B, 0, T), none, none.bool())


def full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context without autocast, which some kinds of devices do not have in the first place."""
    return torch.autocast(device.type, enabled=False) if torch.amp.is_autocast_available(device.type) else nullcontext()
