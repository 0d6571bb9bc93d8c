"""Inputs of heads: checks of scores, masks and gold labels, positions of tokens, words, and names of labels."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain import Restriction
from structperc.data.forbidden_spans import slots_needed
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import ADVICE, first_impossible, span_within
from structperc.data.tag_schemes import Span
from structperc.data.words import word_numbers
from structperc.errors import InputError, InvalidScoreError
from structperc.ragged import Ragged
from structperc.structures import Batch, Words, real_tokens

IGNORE_INDEX = -100  # label of positions without a token, as in torch and transformers


class TokenPositions(NamedTuple):
    """Positions of the tokens in each row; a chain is the tokens of a row without gaps, padded on the right.

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
        """Move values (B, T) or (B, K, T) of chains back to the positions of their tokens; others become `fill`."""
        order, real = self.order, self.mask
        if values.dim() == 3:
            order, real = order[:, None].expand_as(values), real[:, None]
        return torch.full_like(values, fill).scatter(-1, order, values.where(real, fill))


def check_shapes(
    logits: Tensor,
    mask: Tensor | None,
    gold: Tensor | None,
    L: int,
    name: str = "logits",
    n_labels: int | None = None,
) -> None:
    """Check that logits, or vectors, have shape (B, T, L), mask (B, T), and gold (B, T) or (B, T, number of labels).

    `logits`: (B, T, L) floating-point numbers. `mask`: (B, T) or None. `gold`: (B, T) integers, (B, T, number of
    labels) bool or None. `L`: number of labels, or width of the vectors. `name`: "logits" or "vectors", for messages.
    `n_labels`: number of labels; by default L. Raises InputError: with the name of the wrong tensor.
    """
    if logits.dim() != 3 or logits.shape[2] != L:
        meaning = "a score for each label" if name == "logits" else "a vector for each position"
        raise InputError(f"{name}: the shape is {tuple(logits.shape)}, expected (B, T, {L}), {meaning}")
    if not logits.is_floating_point():
        raise InputError(f"{name}: expected floating-point numbers, got {logits.dtype}")
    positions, sets = tuple(logits.shape[:2]), isinstance(gold, Tensor) and gold.dtype == torch.bool
    of_gold = (*positions, n_labels or L) if sets else positions
    for other, tensor, wanted in (("mask", mask, positions), ("gold", gold, of_gold)):
        if tensor is not None and not isinstance(tensor, Tensor):
            raise InputError(f"{other}: got {type(tensor).__name__}, expected a tensor {positions}")
        if tensor is not None and tensor.shape != wanted:
            shape = tuple(tensor.shape)
            meaning = f"that of {name}" if len(wanted) == 2 else "one for each label"
            raise InputError(f"{other}: the shape is {shape}, expected {wanted}, {meaning}")
    if gold is not None and gold.is_floating_point():
        raise InputError(f"gold: labels are integers or a bool mask of allowed labels, got {gold.dtype}")


def check_inputs(inputs: Tensor, places: TokenPositions, name: str = "logits") -> None:
    """Check the logits or vectors of the tokens.

    `inputs`: (B, T, L) logits, or (B, T, H) vectors. `name`: "logits" or "vectors". Raises InvalidScoreError: a logit
    is +inf or NaN, or a vector is not finite; with the first position.
    """
    at = torch.zeros_like(places.order, dtype=torch.bool).scatter(1, places.order, places.mask)
    right, part = (inputs < torch.inf, "label") if name == "logits" else (inputs.isfinite(), "dimension")
    wrong = at.unsqueeze(2) & ~right
    if bool(wrong.any()):
        row, position, number = wrong.nonzero()[0].tolist()
        value = f"{float(inputs[row, position, number]):+}".replace("+nan", "NaN")
        rule = "scores must be finite, or -inf for impossible labels" if name == "logits" else "vectors must be finite"
        advice = f"{rule}; after training, use a lower learning rate"
        raise InvalidScoreError(f"{name}: {value} at row {row}, position {position}, {part} {number}; {advice}")


def row_restriction(
    allowed: Tensor | None,
    forbidden: Iterable[Iterable[tuple[str, int, int]] | None] | None,
    places: TokenPositions,
    batch: Batch,
    labels: LabelSet,
) -> Restriction:
    """Return the restriction of rows to allowed labels, and to label sequences without forbidden spans.

    `allowed`: (B, T, L) bool, labels that may be predicted; None: all. `forbidden`: for each row None, or spans (type,
    start, end), positions start <= t < end; None: no spans. `batch`: chains with first and last tokens of sentences.
    Raises InputError: a mask of another type or shape, another number of rows, an invalid span, or a token for which
    the forbidden spans leave no label, with its position; on a CPU also one for which the mask leaves none.
    """
    restriction = Restriction()
    if allowed is not None:
        wanted = (*places.order.shape, len(labels))
        if allowed.dtype != torch.bool or allowed.shape != wanted:
            given = f"{allowed.dtype} {tuple(allowed.shape)}"
            raise InputError(
                f"allowed: expected a mask of type bool and shape {wanted}, one for each label; got {given}"
            )
        restriction = Restriction(places.gather(allowed))
        if allowed.device.type == "cpu" and not torch.compiler.is_compiling():
            check_left("allowed", restriction, places, batch, labels)
    spans = [] if forbidden is None else spans_of_tokens(forbidden, places, labels)
    if any(spans):
        restriction = restriction.without(spans, batch.first, places.lengths, labels, slots_needed(spans))
        check_left("forbidden", restriction, places, batch, labels)
    return restriction


def check_left(name: str, restriction: Restriction, places: TokenPositions, batch: Batch, labels: LabelSet) -> None:
    """Check that a restriction and the tag scheme leave a label for each token.

    `name`: name of the argument, for the message. `places`: positions of the tokens in the rows, for the message.
    `batch`: chains with first and last tokens of sentences. Raises InputError: a token without a label; with its
    position.
    """
    assert restriction.possible is not None
    tensors = restriction.possible, places.mask, batch.first, batch.last
    possible, real, first, last = (tensor.cpu().numpy() for tensor in tensors)
    numbers, follows = (None if x is None else x.cpu().numpy() for x in (restriction.numbers, restriction.follows))
    scheme = labels.allowed if numbers is None else labels.allowed.take(numbers)
    place = first_impossible(possible, real, first, last, scheme, follows)
    if place is None:
        return
    reason = ADVICE
    if numbers is None:
        allowed_names = "|".join(labels.names[i] for i in possible[place].nonzero()[0])
        reason = (
            f"{labels.scheme} does not allow {allowed_names} here"
            if allowed_names
            else "its mask is False for all labels"
        )
    position = int(places.order[place])
    raise InputError(f"{name}: row {place[0]}, position {position}: no label is left; {reason}")


def spans_of_tokens(
    forbidden: Iterable[Iterable[tuple[str, int, int]] | None], places: TokenPositions, labels: LabelSet
) -> list[list[Span]]:
    """Return spans of positions as spans of the tokens of each row.

    `forbidden`: for each row None, or spans (type, start, end), positions start <= t < end. Raises InputError: another
    number of rows, or an invalid span.
    """
    given, (B, T) = [list(spans or ()) for spans in forbidden], places.order.shape
    if len(given) != B:
        raise InputError(f"forbidden: there are {len(given)} lists for {B} rows; give None for a row without spans")
    chains = [order[:n] for order, n in zip(places.order.tolist(), places.lengths.tolist(), strict=True)]
    return [[_span_of_tokens(span, chains[b], T, b, labels) for span in spans] for b, spans in enumerate(given)]


def _span_of_tokens(given: tuple[str, int, int], chain: Sequence[int], T: int, row: int, labels: LabelSet) -> Span:
    """Return a span of positions as a span of the tokens of a chain."""
    kind, start, end = span_within(given, T, f"forbidden: row {row}")
    if kind not in labels.type_names:
        raise InputError(f"forbidden: row {row}: unknown type {kind!r}; the head has {', '.join(labels.type_names)}")
    if start not in chain or end - 1 not in chain:
        raise InputError(f"forbidden: row {row}: the span {start}..{end} must begin and end with a token of the mask")
    return Span(kind, chain.index(start), chain.index(end - 1) + 1)


def check_gold(gold: Tensor, kept: Tensor, labels: LabelSet) -> None:
    """Check the gold labels of the tokens.

    `gold`: (B, T) numbers of labels. `kept`: (B, T) bool, True at tokens. Raises InputError: a number outside 0..L-1;
    with the first position.
    """
    wrong = kept & ((gold < 0) | (gold >= len(labels)))
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        label = int(gold[row, position])
        expected = f"labels are 0..{len(labels) - 1}, and {IGNORE_INDEX} at positions without a token"
        raise InputError(f"gold: row {row}, position {position}: unknown label {label}; {expected}")


def check_legal(batch: Batch, labels: LabelSet, places: TokenPositions) -> None:
    """Check that the gold labels of a batch are legal in their tag scheme.

    `batch`: chains with gold labels. `places`: positions of the tokens in the rows, for the message. Raises InputError:
    an illegal label; with the first position.
    """
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

    `places`: positions of the tokens in each row. `gold`: (B, T) numbers of labels, any number at positions without a
    token; None for text without labels. `sentences`: (B, T) number of each token's sentence; None: each row is one
    sentence. `words`: the words of each row's tokens; None if no feature needs them. Raises InputError: a wrong number
    of words.
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
    """Return the numbers (B, T) of the tokens' words.

    `words`: the words of each row's tokens. Raises InputError: a wrong number of rows or words.
    """
    lengths = places.lengths.tolist()
    if isinstance(words, str) or len(words) != len(lengths):
        raise InputError(f"words: expected a list of words for each of the {len(lengths)} rows, got {len(words)}")
    for row, (row_words, length) in enumerate(zip(words, lengths, strict=True)):
        if isinstance(row_words, str) or len(row_words) != length:
            raise InputError(
                f"words: row {row} has {len(row_words)} words, but its mask (or gold) marks {length} positions"
            )
    numbers = torch.from_numpy(word_numbers([word for sentence in words for word in sentence])).to(places.order.device)
    padded = numbers.new_zeros(4, *places.order.shape)
    padded[:, places.mask] = numbers
    return Words(*padded)


EXPECTED = "give a LabelSet, the names in the order of the logits, or id2label, such as {0: 'O', 1: 'B-PER'}"


def label_set(labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str], scheme: str) -> LabelSet:
    """Return labels as a LabelSet.

    `labels`: a LabelSet, which is returned as it is; names in the order of their numbers; or a mapping of numbers to
    names. `scheme`: tag scheme of the names. Raises InputError: another type, numbers other than 0..L-1, or names that
    are invalid in a LabelSet.
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
    if scheme == "IO" and "O" not in names:
        raise InputError("labels: scheme IO needs O outside segments; add it, or set scheme: none for other labels")
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
    """Return names and scheme of labels as UTF-8 JSON in a uint8 tensor, for files of tensors."""
    text = json.dumps({"scheme": labels.scheme, "labels": labels.names}, ensure_ascii=False)
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def check_state(state: Tensor, labels: LabelSet) -> None:
    """Check that a state of `to_state` has these labels.

    `state`: (n,) uint8. `labels`: the labels of the head. Raises InputError: other labels, with the first difference,
    or a state that cannot be read.
    """
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
