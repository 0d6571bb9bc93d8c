"""Inputs of heads: checks of scores, masks and gold labels, positions of tokens, words, and names of labels."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.data.words import word_numbers
from structperc.errors import InputError, InvalidScoreError
from structperc.ragged import Ragged
from structperc.structures import Batch, Words, real_tokens

IGNORE_INDEX = -100  # label of positions without a token, as in torch and transformers


class TokenPositions(NamedTuple):
    """The positions of the tokens in each row; a chain has the length of its row, padded on the right.

    No size depends on the mask: this avoids synchronisation, and one exported program supports all masks.
    """

    order: Tensor  # (B, T) int64, the positions of the tokens in their order, then all others
    lengths: Tensor  # (B,) int64, numbers of tokens

    @classmethod
    def from_mask(cls, kept: Tensor) -> "TokenPositions":
        """Return the positions of the tokens in a mask (B, T) bool."""
        lengths = kept.sum(1)
        place = (kept.cumsum(1) - 1).where(kept, lengths[:, None] + (~kept).cumsum(1) - 1)  # in the chain
        positions = torch.arange(kept.shape[1], device=kept.device).expand_as(place)
        return cls(torch.zeros_like(place).scatter(1, place, positions), lengths)  # ONNX has no stable sort

    @property
    def mask(self) -> Tensor:
        """Mask (B, T) bool of the chains, True at their tokens."""
        return real_tokens(self.lengths, self.order.shape[1])

    def gather(self, values: Tensor) -> Tensor:
        """Reorder values (B, T, ...) of positions: those of the tokens first, then all others."""
        order = self.order.reshape(*self.order.shape, *[1] * (values.dim() - 2))
        return values.gather(1, order.expand_as(values))

    def scatter(self, values: Tensor, fill: float = IGNORE_INDEX) -> Tensor:
        """Move values (B, T) or (B, K, T) of chains back to the positions of their tokens, and `fill` the others."""
        order, real = self.order, self.mask
        if values.dim() == 3:
            order, real = order[:, None].expand_as(values), real[:, None]
        return torch.full_like(values, fill).scatter(-1, order, values.where(real, fill))


def check_shapes(logits: Tensor, mask: Tensor | None, gold: Tensor | None, L: int) -> None:
    """Raise InputError with the name of the tensor unless logits are (B, T, L) scores, mask and gold (B, T)."""
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


def check_logits(logits: Tensor, places: TokenPositions) -> None:
    """Raise InvalidScoreError for the first score (B, T, L) at a token that is +inf or NaN."""
    at = torch.zeros_like(places.order, dtype=torch.bool).scatter(1, places.order, places.mask)
    wrong = at.unsqueeze(2) & ~(logits < torch.inf)
    if bool(wrong.any()):
        row, position, label = wrong.nonzero()[0].tolist()
        found = "NaN" if bool(logits[row, position, label].isnan()) else "+inf"
        advice = "scores must be finite, or -inf for impossible labels; after training, use a lower learning rate"
        raise InvalidScoreError(f"logits: {found} at row {row}, position {position}, label {label}; {advice}")


def check_gold(gold: Tensor, kept: Tensor, labels: LabelSet) -> None:
    """Raise InputError for the first unknown label of gold (B, T) at the tokens, kept (B, T) bool."""
    wrong = kept & ((gold < 0) | (gold >= len(labels)))
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        found = int(gold[row, position])
        known = f"labels are 0..{len(labels) - 1}, and {IGNORE_INDEX} at positions without a token"
        raise InputError(f"gold: row {row}, position {position}: unknown label {found}; {known}")


def check_legal(batch: Batch, labels: LabelSet, places: TokenPositions) -> None:
    """Raise InputError for the first gold label of a batch that is illegal in the tag scheme."""
    gold, real = batch.gold, places.mask
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
    advice = "repair the labels, or use a head with labels of scheme none"
    raise InputError(f"gold: row {row}, position {position}: {labels.scheme} has no {name} {where}; {advice}")


RowWords = Sequence[Sequence[str]]  # words of the tokens of each row


def build_batch(places: TokenPositions, gold: Tensor | None, sentences: Tensor | None, words: RowWords | None) -> Batch:
    """Return chains as a Batch without features.

    gold: (B, T), any label at positions without a token. sentences: (B, T), the number of each token's sentence; None:
    each row is one sentence. words: of the tokens; None: not used.
    """
    real, (B, T) = places.mask, places.order.shape
    number = torch.zeros_like(places.order) if sentences is None else places.gather(sentences.long())
    steps, none = torch.arange(T, device=real.device), places.order.new_zeros(0)
    first = real & ((steps == 0) | (number != number.roll(1, 1)))
    last = real & ((steps == places.lengths[:, None] - 1) | first.roll(-1, 1))
    return Batch(
        nodes=Ragged(none, none.new_zeros(1), longest=0),
        edges=None,
        lengths=places.lengths,
        gold=None if gold is None else places.gather(gold).where(real, 0),
        sentences=(first.cumsum(1) - 1).where(real, 0),
        first=first,
        last=last,
        rows=torch.arange(B, device=real.device),
        words=Words(*places.order.new_zeros(4, B, T)) if words is None else padded_words(words, places),
    )


def padded_words(words: RowWords, places: TokenPositions) -> Words:
    """Return the numbers (B, T) of the tokens' words. Raises InputError for a wrong number of words."""
    lengths = places.lengths.tolist()
    if isinstance(words, str) or len(words) != len(lengths):
        raise InputError(f"words: expected a list of words for each of the {len(lengths)} rows, got {len(words)}")
    for row, (own, length) in enumerate(zip(words, lengths, strict=True)):
        if isinstance(own, str) or len(own) != length:
            raise InputError(f"words: row {row} has {len(own)} words, but its mask (or gold) marks {length} positions")
    numbers = torch.from_numpy(word_numbers([word for own in words for word in own])).to(places.order.device)
    padded = numbers.new_zeros(4, *places.order.shape)
    padded[:, places.mask] = numbers
    return Words(*padded)


EXPECTED = "give a LabelSet, the names in the order of the logits, or id2label, such as {0: 'O', 1: 'B-PER'}"


def label_set(labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str], scheme: str) -> LabelSet:
    """Return labels as a LabelSet: a LabelSet as it is, or names of a scheme, in order or by number.

    Raises:
        InputError: other types; numbers other than 0..L-1; names that are invalid in a LabelSet.
    """
    if isinstance(labels, LabelSet):
        return labels
    if isinstance(labels, Mapping):
        labels = _in_order(labels)
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"labels: got {labels!r}; {EXPECTED}")
    names = tuple(labels)
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"labels: label {place} is {name!r}, expected a name; {EXPECTED}")
    return LabelSet(names, scheme)


def _in_order(id2label: Mapping[int, str] | Mapping[str, str]) -> list[str]:
    """Return the names in the order of their numbers, which may be strings as in JSON."""
    names: dict[int, str] = {}
    for key, name in id2label.items():
        if isinstance(key, bool) or not str(key).isdecimal():
            raise InputError(f"labels: {key!r} is not a number of a label (label2id instead of id2label?); {EXPECTED}")
        if int(key) in names:
            raise InputError(f"labels: number {int(key)} is duplicated: {names[int(key)]!r} and {name!r}")
        names[int(key)] = name
    for number in range(len(names)):
        if number not in names:
            raise InputError(
                f"labels: label {number} is missing among {len(names)} labels up to {max(names)}; "
                f"number them 0..{len(names) - 1}, as the logits are"
            )
    return [names[number] for number in range(len(names))]


def to_state(labels: LabelSet) -> Tensor:
    """Return names and scheme as UTF-8 JSON in a uint8 tensor, for files of tensors."""
    text = json.dumps({"scheme": labels.scheme, "labels": labels.names}, ensure_ascii=False)
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def check_state(state: Tensor, labels: LabelSet) -> None:
    """Raise InputError with the first difference unless a state from `to_state` has these labels."""
    try:
        saved = json.loads(bytes(state.detach().to("cpu", torch.uint8).tolist()))
        scheme, names = saved["scheme"], saved["labels"]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError("state: the names of the labels cannot be read; save the state again") from None
    advice = "use a head with the labels of the saved state, in their order"
    for number, (old, new) in enumerate(zip_longest(names, labels.names)):
        if old != new:
            here, there = ("missing" if name is None else name for name in (new, old))
            raise InputError(f"state: label {number} is {there} in the saved state, but {here} in this head; {advice}")
    if scheme != labels.scheme:
        raise InputError(f"state: the scheme of the saved labels is {scheme}, that of this head {labels.scheme}")
