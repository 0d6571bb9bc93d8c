"""States of spans: the labels at both ends, which is all that tokens outside may see of a hypothesis.

The interfaces of a state are four labels (first, second, last but one, last), UNKNOWN where the span is too short:
a span of one token has (y, UNKNOWN, UNKNOWN, y). Those of no span at all are four UNKNOWN.
"""

import torch
from torch import Tensor

from structperc.guided.context import UNKNOWN

OPEN = -2  # in place of the label of the action, as long as it can be any


def joined(left: Tensor, label: Tensor | int, right: Tensor) -> Tensor:
    """Return the interfaces (..., 4) of the span that left context, label and right context make together."""
    l1, l2, _, l4 = left.unbind(-1)
    r1, _, r3, r4 = right.unbind(-1)
    alone_left, alone_right = l1 == UNKNOWN, r1 == UNKNOWN
    label = torch.as_tensor(label, device=left.device)
    first = label.where(alone_left, l1)
    second = r1.where(alone_left, label.where(l2 == UNKNOWN, l2))
    last_but_one = l4.where(alone_right, label.where(r3 == UNKNOWN, r3))
    last = label.where(alone_right, r4)
    return torch.stack(torch.broadcast_tensors(first, second, last_but_one, last), -1)


def best_states(scores: Tensor, interfaces: Tensor, owner: Tensor, N: int, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the `beam` best states of N candidates, each with its best hypothesis.

    scores (M, L) of the hypotheses: M combinations of contexts, each with all labels. interfaces (M, 4) of the
    combinations, OPEN where an action puts its label. owner (M,): their candidates, 0 <= owner < N, ascending.
    Hypotheses of a candidate with equal interfaces are of one state.

    -> scores, combinations, labels, each (N, beam), best first; score -inf where there are fewer states. Of equal
    scores the first combination comes first, then the lowest label.
    """
    scores = scores.clone()
    labelled = (interfaces == OPEN).any(1)  # whether hypotheses of different labels differ in state
    closed = torch.zeros_like(labelled)
    found = []
    for _ in range(beam):
        score, row = first_best(scores.amax(1).masked_fill(closed, -torch.inf), owner, N)
        label = scores[row].max(1).indices
        found.append((score, row, label))
        same = (interfaces == interfaces[row[owner]]).all(1)
        closed |= same & ~labelled
        at = label[owner].unsqueeze(1)
        scores.scatter_(1, at, scores.gather(1, at).masked_fill(same.unsqueeze(1), -torch.inf))
    score, row, label = (torch.stack(column, 1) for column in zip(*found, strict=True))
    return score, row, label


def first_best(scores: Tensor, owner: Tensor, N: int) -> tuple[Tensor, Tensor]:
    """Return the highest score of each owner and the first row that has it, (N,) each.

    scores (M,) belong to rows whose owners (M,) are 0 <= owner < N.
    """
    best = scores.new_full((N,), -torch.inf).scatter_reduce_(0, owner, scores, "amax")
    rows = torch.arange(len(owner), device=owner.device)
    rows = rows.where(scores == best[owner], len(owner))
    return best, owner.new_full((N,), len(owner)).scatter_reduce_(0, owner, rows, "amin")
