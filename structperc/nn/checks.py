"""What is wrong with the scores, masks and gold labels that a head is given, in one line."""

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.errors import InputError, InvalidScore
from structperc.nn.places import SKIPPED, Places
from structperc.structures import Batch


def check_shapes(logits: Tensor, mask: Tensor | None, gold: Tensor | None, L: int) -> None:
    """Raise InputError, which names the tensor, unless logits are (B, T, L) scores, mask and gold (B, T)."""
    if logits.dim() != 3 or logits.shape[2] != L:
        raise InputError(f"logits: the shape is {tuple(logits.shape)}, expected (B, T, {L}), a score for each label")
    if not logits.is_floating_point():
        raise InputError(f"logits: scores are floating-point numbers, got {logits.dtype}")
    for name, tensor in (("mask", mask), ("gold", gold)):
        if tensor is not None and not isinstance(tensor, Tensor):
            raise InputError(f"{name}: got {type(tensor).__name__}, expected a tensor {tuple(logits.shape[:2])}")
        if tensor is not None and tensor.shape != logits.shape[:2]:
            wanted = tuple(logits.shape[:2])
            raise InputError(f"{name}: the shape is {tuple(tensor.shape)}, expected {wanted}, that of logits")
    if gold is not None and (gold.is_floating_point() or gold.dtype == torch.bool):
        raise InputError(f"gold: labels are integers, got {gold.dtype}")


def check_logits(logits: Tensor, places: Places) -> None:
    """Raise InvalidScore for the first score (B, T, L) at a token that is +inf or NaN."""
    at = torch.zeros_like(places.order, dtype=torch.bool).scatter(1, places.order, places.real)
    wrong = at.unsqueeze(2) & ~(logits < torch.inf)
    if bool(wrong.any()):
        row, position, label = wrong.nonzero()[0].tolist()
        found = "NaN" if bool(logits[row, position, label].isnan()) else "+inf"
        advice = "scores are finite, or -inf for what is impossible; after training, the learning rate is too high"
        raise InvalidScore(f"logits: there is {found} at row {row}, position {position}, label {label}; {advice}")


def check_gold(gold: Tensor, kept: Tensor, labels: LabelSet) -> None:
    """Raise InputError for the first label of gold (B, T), among those that kept (B, T) bool marks, that is none."""
    wrong = kept & ((gold < 0) | (gold >= len(labels)))
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        found = int(gold[row, position])
        known = f"labels are 0..{len(labels) - 1}, and {SKIPPED} where there is no token"
        raise InputError(f"gold: row {row}, position {position}: {found} is no label; {known}")


def check_legal(batch: Batch, labels: LabelSet, places: Places) -> None:
    """Raise InputError for the first gold label of a batch that the tag scheme does not allow where it stands."""
    gold, real = batch.gold, places.real
    assert gold is not None
    before = gold.roll(1, 1)
    follows = labels.start[gold].where(batch.first, labels.transition[before, gold])
    wrong = real & ~(follows & (labels.end[gold] | ~batch.last))
    if not bool(wrong.any()):
        return
    row, t = wrong.nonzero()[0].tolist()
    name, position = labels.names[int(gold[row, t])], int(places.order[row, t])
    after = f"after {labels.names[int(before[row, t])]}" if not batch.first[row, t] else "at the beginning"
    where = "at the end" if bool(follows[row, t]) else after
    advice = "repair the labels, or give the head labels of scheme none"
    raise InputError(f"gold: row {row}, position {position}: {labels.scheme} has no {name} {where}; {advice}")
