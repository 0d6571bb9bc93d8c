"""Tag schemes, segments and legal transitions: the only place that knows "B-".

A label of a segment scheme is "O", or a prefix and a type joined by a hyphen ("B-PER"); the type may hold
further hyphens ("B-creative-work") or be missing ("B"). Every scheme is described by one relation,
`_follows`: a labelling is legal when each label may follow its predecessor, with an outside label before the
first and after the last token. Masks and the search for violations derive from it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.errors import InputError

OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)

# Letter -> meaning of its prefix, in the order in which the labels of a type are listed.
SCHEMES: dict[str, dict[str, int]] = {
    "IOB1": {"I": INSIDE, "B": BEGIN},
    "IOB2": {"B": BEGIN, "I": INSIDE},
    "IOBES": {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE},
    "BILOU": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "none": {},
}
_LETTERS = {letter: prefix for letters in SCHEMES.values() for letter, prefix in letters.items()}


class Span(NamedTuple):
    """A segment: tokens start <= t < end carry one entity or chunk of the type."""

    type: str
    start: int
    end: int


class _Tag(NamedTuple):
    prefix: int
    type: str | None  # None outside


_OUTSIDE = _Tag(OUTSIDE, None)


def spans(labels: Sequence[str]) -> list[Span]:
    """Segments of a labelling in any segment scheme, by the rule of the conlleval script.

    A segment opens at B and S (U), after O, after E (L) and S (U), and wherever the type changes: so an I
    after O or after another type opens one, and no sequence of labels is beyond reading. Differs: the script
    has no rule for S and for B after E and joins such neighbours of one type.
    """
    found: list[Span] = []
    previous = _OUTSIDE
    for t, tag in enumerate(map(_tag, labels)):
        if _opens(previous, tag):
            found.append(Span(tag.type or "", t, t + 1))
        elif tag.type is not None:
            found[-1] = found[-1]._replace(end=t + 1)
        previous = tag
    return found


def convert(labels: Sequence[str], source: str, target: str) -> list[str]:
    """The same segments in the target scheme; "none" converts only to itself."""
    _check_scheme(source)
    _check_scheme(target)
    if source == target == "none":
        return list(labels)
    if "none" in (source, target):
        raise InputError(f"scheme 'none' has no segments: cannot turn {source} into {target}")
    for label in labels:
        _tag(label, source)
    return _encode_spans(spans(labels), len(labels), target)


def first_violation(labels: Sequence[str], scheme: str) -> int | None:
    """Index of the first label that may not follow its predecessor, or of a last label that may not be last.

    None for a legal labelling. InputError when a label is none of the scheme's at all ("S-PER" in IOB2).
    """
    _check_scheme(scheme)
    if scheme == "none":
        return None
    previous = _OUTSIDE
    for t, label in enumerate(labels):
        tag = _tag(label, scheme)
        if not _follows(previous, tag, scheme):
            return t
        previous = tag
    return None if _follows(previous, _OUTSIDE, scheme) else len(labels) - 1


def repair(labels: Sequence[str], scheme: str) -> tuple[list[str], int]:
    """The legal labelling of the segments that conlleval reads, and how many labels differ from the given."""
    if first_violation(labels, scheme) is None:
        return list(labels), 0
    legal = convert(labels, scheme, scheme)
    return legal, sum(a != b for a, b in zip(labels, legal, strict=True))


def rename(labels: Sequence[str], scheme: str, names: Mapping[str, str]) -> list[str]:
    """The same segments, their types called `names[type]` where that is given; the labels are of the scheme.

    Neighbours whose types become one stay apart. InputError for "none", which has no segments.
    """
    if scheme == "none":
        raise InputError("scheme 'none' has no segments whose types could be renamed")
    _check_scheme(scheme)
    renamed = (span._replace(type=names.get(span.type, span.type)) for span in spans(labels))
    return _encode_spans(renamed, len(labels), scheme)


@dataclass(frozen=True)
class LabelSet:
    """The labels of a task, their ids (positions in `names`) and what their scheme allows.

    InputError for an unknown scheme, doubled or missing names, and names that the scheme does not have.
    """

    names: tuple[str, ...]
    scheme: str = "IOB2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        _check_scheme(self.scheme)
        if not self.names or len(set(self.names)) < len(self.names):
            raise InputError(f"label names must be given and distinct, not {list(self.names)}")
        _ = self._tags

    @classmethod
    def from_corpus(cls, labels: Iterable[str], scheme: str) -> "LabelSet":
        """Every label that the scheme offers for the types seen, so that no legal labelling is out of reach.

        O first, then by type in alphabetical order; without a scheme the names seen, sorted.
        """
        _check_scheme(scheme)
        seen = set(labels)
        if scheme == "none":
            return cls(tuple(sorted(seen)), scheme)
        types = {tag.type for tag in (_tag(label, scheme) for label in seen) if tag.type is not None}
        letters = SCHEMES[scheme]
        return cls(("O", *(_join(letter, kind) for kind in sorted(types) for letter in letters)), scheme)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Id of a label."""
        return int(self.encode([name])[0])

    def encode(self, labels: Sequence[str], where: str | Callable[[int], str] = "labels") -> np.ndarray:
        """Label names -> (n,) int64 ids.

        InputError for an unknown label; `where` (a file name, or a function from the position to "file:line",
        such as `Corpus.where`) opens its message.
        """
        ids = self._ids
        try:
            return np.fromiter((ids[label] for label in labels), np.int64, len(labels))
        except KeyError:
            at, label = next((i, label) for i, label in enumerate(labels) if label not in ids)
            place = where(at) if callable(where) else where
            known = f"known are {', '.join(self.names)}, those of the training data"
            advice = "change it or leave it out, or train with a sentence that has it"
            raise InputError(f"{place}: unknown label {label!r}; {known}; {advice}") from None

    def decode(self, ids: Sequence[int] | np.ndarray | Tensor) -> list[str]:
        """(n,) ids -> label names. ValueError for ids outside 0 <= id < L."""
        numbers = np.asarray(ids, dtype=np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise ValueError(f"ids of {len(self)} labels cannot be {numbers.min()}..{numbers.max()}")
        return [self.names[i] for i in numbers.tolist()]

    @cached_property
    def start(self) -> Tensor:
        """(L,) bool: may be the first label."""
        return torch.tensor([_follows(_OUTSIDE, tag, self.scheme) for tag in self._tags])

    @cached_property
    def transition(self) -> Tensor:
        """(L, L) bool: [previous, next], may follow."""
        return torch.tensor([[_follows(p, tag, self.scheme) for tag in self._tags] for p in self._tags])

    @cached_property
    def end(self) -> Tensor:
        """(L,) bool: may be the last label."""
        return torch.tensor([_follows(tag, _OUTSIDE, self.scheme) for tag in self._tags])

    @cached_property
    def prefixes(self) -> Tensor:
        """(L,) int64: OUTSIDE, BEGIN, INSIDE, END or SINGLE."""
        return torch.tensor([tag.prefix for tag in self._tags])

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """Segment types in alphabetical order; empty without a scheme."""
        return tuple(sorted({tag.type for tag in self._tags if tag.type is not None}))

    @cached_property
    def types(self) -> Tensor:
        """(L,) int64: position of the label's type in `type_names`, -1 outside."""
        position = {kind: i for i, kind in enumerate(self.type_names)}
        return torch.tensor([-1 if tag.type is None else position[tag.type] for tag in self._tags])

    def boundaries(self, labels: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """First and last tokens of all segments: `spans` for whole batches of label ids.

        labels (..., T) int64 and real (..., T) bool, False in the padding -> two (..., T) bool. The n-th True
        of a row in the one and the n-th True in the other belong to the same segment, of type `types[label]`.
        """
        labels = torch.where(real, labels, 0)  # whatever the padding holds
        kind = torch.where(real, self.types.to(labels.device)[labels], -1)
        prefix = self.prefixes.to(labels.device)[labels]
        opens = (prefix == BEGIN) | (prefix == SINGLE)
        closes = (prefix == END) | (prefix == SINGLE)
        inside = kind >= 0
        first = inside & (opens | (kind != shift(kind, 1, -1)) | shift(closes, 1, False))
        last = inside & (~shift(inside, -1, False) | shift(first, -1, False))
        return first, last

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _tags(self) -> list[_Tag]:
        return [_OUTSIDE if self.scheme == "none" else _tag(name, self.scheme) for name in self.names]


@lru_cache(maxsize=4096)
def _tag(label: str, scheme: str | None = None) -> _Tag:
    """Splits a label on its first hyphen; without a scheme, letters of any scheme are understood."""
    letters = _LETTERS if scheme is None else SCHEMES[scheme]
    if label == "O":
        return _OUTSIDE
    letter, hyphen, kind = label.partition("-")
    if letter not in letters or (hyphen and not kind):
        wanted = ", ".join(["O", *(f"{known}-TYPE" for known in letters)])
        raise InputError(f"label {label!r} is not of scheme {scheme or 'IOBES'} ({wanted}); set the scheme")
    return _Tag(letters[letter], kind)


def _follows(previous: _Tag, tag: _Tag, scheme: str) -> bool:
    same = previous.type == tag.type
    if scheme == "none":
        return True
    if scheme == "IOB1":  # B only where I would continue the segment before
        return tag.prefix != BEGIN or same
    if scheme == "IOB2":
        return tag.prefix != INSIDE or same
    if previous.prefix in (BEGIN, INSIDE):
        return tag.prefix in (INSIDE, END) and same
    return tag.prefix not in (INSIDE, END)


def _opens(previous: _Tag, tag: _Tag) -> bool:
    if tag.type is None:
        return False
    return tag.prefix in (BEGIN, SINGLE) or previous.prefix in (END, SINGLE) or previous.type != tag.type


def _encode_spans(segments: Iterable[Span], length: int, scheme: str) -> list[str]:
    letter = {prefix: letter for letter, prefix in SCHEMES[scheme].items()}
    labels = ["O"] * length
    previous: Span | None = None
    for span in segments:
        first, last = span.start, span.end - 1
        labels[first : span.end] = [_join("I", span.type)] * (span.end - first)
        touches = previous is not None and (previous.type, previous.end) == (span.type, first)
        if scheme != "IOB1" or touches:
            labels[first] = _join("B", span.type)
        if END in letter:
            labels[last] = _join(letter[SINGLE if first == last else END], span.type)
        previous = span
    return labels


def _join(letter: str, kind: str) -> str:
    return f"{letter}-{kind}" if kind else letter


def shift(values: Tensor, by: int, fill: int | bool) -> Tensor:
    """values (..., T) moved by one to the right (by = 1) or left (by = -1), the gap filled; T may be 0."""
    moved = values.roll(by, -1)
    moved[..., slice(0, 1) if by > 0 else slice(-1, None)] = fill
    return moved


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise InputError(f"unknown label scheme {scheme!r}; choose one of {', '.join(SCHEMES)}")
