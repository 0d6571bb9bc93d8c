"""Label sets: ids of labels, transitions allowed by the tag scheme, and segments of label ids."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structperc.data.tag_schemes import (
    BEGIN,
    END,
    INSIDE,
    OUTSIDE_TAG,
    SCHEMES,
    SINGLE,
    Tag,
    are_brackets,
    check_bare,
    check_scheme,
    is_allowed_transition,
    label_type,
    make_label,
    parse_tag,
    starts_segment,
)
from structperc.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


class AllowedTransitions(NamedTuple):
    """Masks of legal label sequences."""

    start: np.ndarray  # (L,) bool, labels that may be the first of a sentence
    transition: np.ndarray  # (L, L) bool, labels (columns) that may follow another (rows)
    end: np.ndarray  # (L,) bool, labels that may be the last of a sentence

    def take(self, labels: np.ndarray) -> "AllowedTransitions":
        """Return the masks of these labels (M,), in this order."""
        return AllowedTransitions(self.start[labels], self.transition[labels][:, labels], self.end[labels])


class Segmentation(NamedTuple):
    """Segment types of labels, and mask of labels that begin segments."""

    types: np.ndarray  # (L,) int64, index of the type in `type_names`, -1 outside segments
    opening: np.ndarray  # (L, L) bool, labels (columns) that begin a segment after another (rows), legally or not

    def take(self, labels: np.ndarray) -> "Segmentation":
        """Return the segmentation of these labels (M,), in this order."""
        return Segmentation(self.types[labels], self.opening[labels][:, labels])


@dataclass(frozen=True)
class LabelSet:
    """The labels of a task and their ids, the positions in `names`.

    Args:
        names: the L labels.
        scheme: tag scheme: IOB1, IOB2, IOBES, BILOU, BMES, BMEWO, IO or "none".

    Raises:
        InputError: an unknown scheme, duplicate or missing names, or names that are not of the scheme.

    Example:
        >>> labels = LabelSet.from_corpus(["B-PER", "O", "I-LOC"], "IOB2")
        >>> labels.names
        ('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER')
        >>> labels.encode(["O", "B-PER"]).tolist()
        [0, 3]
    """

    names: tuple[str, ...]
    scheme: str = "IOB2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        check_scheme(self.scheme)
        if not self.names or len(set(self.names)) < len(self.names):
            raise InputError(f"label names must be given and distinct, not {list(self.names)}")
        _ = self._tags
        if self.scheme == "IO":
            check_bare(self.names)
        if self.scheme == "none" and are_brackets(self.names):
            advice = "convert them from the scheme 'brackets' to one such as IOB2"
            raise InputError(f"labels: {self.names} are brackets of segments; {advice}")

    @classmethod
    def from_corpus(cls, labels: Iterable[str], scheme: str) -> "LabelSet":
        """Return all labels of the scheme for the types in `labels`, so that any legal sequence can be predicted.

        O comes first, then labels by type in alphabetical order; without a scheme the names are sorted. `labels`: label
        names, with repetitions, such as those of a training corpus. `scheme`: tag scheme, or "none".

        Raises:
            InputError: an unknown scheme, or a label that is not of the scheme.
        """
        check_scheme(scheme)
        seen = set(labels)
        if scheme == "none":
            return cls(tuple(sorted(seen)), scheme)
        types = {tag.type for tag in (parse_tag(label, scheme) for label in seen) if tag.type is not None}
        return cls(("O", *(make_label(letter, kind) for kind in sorted(types) for letter in SCHEMES[scheme])), scheme)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Return the id of a label.

        Raises:
            InputError: an unknown label.
        """
        return int(self.encode([name])[0])

    def encode(self, labels: Sequence[str], where: str | Callable[[int], str] = "labels") -> np.ndarray:
        """Return the ids (n,) int64 of n label names.

        `labels`: the names. `where`: beginning of an error message: a file name, or a function from the position of a
        label to "file:line", such as `Corpus.where`.

        Raises:
            InputError: an unknown label.
        """
        ids = self._ids
        try:
            return np.fromiter((ids[label] for label in labels), np.int64, len(labels))
        except KeyError:
            at, label = next((i, label) for i, label in enumerate(labels) if label not in ids)
            place = where(at) if callable(where) else where
            all_names = f"the training data has {', '.join(self.names)}"
            advice = "change or remove it, or train with a sentence that has it"
            raise InputError(f"{place}: unknown label {label!r}; {all_names}; {advice}") from None

    def extended(self, labels: Iterable[str]) -> "LabelSet":
        """Return the label set with unknown labels appended, such as gold labels missing from the training data.

        Raises:
            InputError: a name that is not of the scheme.
        """
        unknown = sorted(set(labels) - set(self.names))
        return LabelSet((*self.names, *unknown), self.scheme) if unknown else self

    def share_known(self, strings: Iterable[str]) -> float:
        """Return the share of distinct strings other than "O" that are labels, or of their types in another scheme.

        More than half indicates a column of such labels.
        """
        names = set(strings) - {"O"}
        types = set(self.type_names)
        count = sum(name in self._ids or name in types or ("-" in name and label_type(name) in types) for name in names)
        return count / max(1, len(names))

    def decode(self, ids: "Sequence[int] | np.ndarray | Tensor") -> list[str]:
        """Return the names of n labels, given as ids (n,).

        Raises:
            ValueError: an id outside 0 <= id < L.
        """
        numbers = np.asarray(ids, dtype=np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise ValueError(f"ids of {len(self)} labels cannot be {numbers.min()}..{numbers.max()}")
        return self._names[numbers].tolist()

    @cached_property
    def allowed(self) -> AllowedTransitions:
        """The masks `start`, `transition` and `end` as arrays, which need no import of PyTorch."""
        tags, scheme = self._tags, self.scheme
        return AllowedTransitions(
            np.array([is_allowed_transition(OUTSIDE_TAG, tag, scheme) for tag in tags]),
            np.array([[is_allowed_transition(before, tag, scheme) for tag in tags] for before in tags]),
            np.array([is_allowed_transition(tag, OUTSIDE_TAG, scheme) for tag in tags]),
        )

    @cached_property
    def segmentation(self) -> Segmentation:
        """The masks `types` and `opening` as arrays, which need no import of PyTorch."""
        position = {kind: i for i, kind in enumerate(self.type_names)}
        return Segmentation(
            np.array([-1 if tag.type is None else position[tag.type] for tag in self._tags], np.int64),
            np.array([[starts_segment(before, tag) for tag in self._tags] for before in self._tags]),
        )

    @cached_property
    def start(self) -> "Tensor":
        """Mask of labels that may be the first of a sentence, (L,) bool."""
        return _tensor(self.allowed.start)

    @cached_property
    def transition(self) -> "Tensor":
        """Mask of labels (columns) that may follow another (rows), (L, L) bool."""
        return _tensor(self.allowed.transition)

    @cached_property
    def end(self) -> "Tensor":
        """Mask of labels that may be the last of a sentence, (L,) bool."""
        return _tensor(self.allowed.end)

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """The segment types in alphabetical order; empty without a scheme."""
        return tuple(sorted({tag.type for tag in self._tags if tag.type is not None}))

    @cached_property
    def types(self) -> "Tensor":
        """Index of the type of each label in `type_names`, (L,) int64, -1 outside segments."""
        return _tensor(self.segmentation.types)

    @cached_property
    def opening(self) -> "Tensor":
        """Mask of labels (columns) that begin a segment after another (rows), legally or not, (L, L) bool."""
        return _tensor(self.segmentation.opening)

    @cached_property
    def segment_table(self) -> np.ndarray:
        """The labels of `segment_labels` as an array, which needs no import of PyTorch.

        Raises:
            InputError: a scheme whose labels do not show where segments begin, or a missing label.
        """
        letters = {meaning: letter for letter, meaning in SCHEMES[self.scheme].items()}
        if BEGIN not in letters or self.scheme == "IOB1":
            raise InputError(
                f"segments need a scheme such as IOB2 or BILOU, not {self.scheme}: convert the labels by data.scheme"
            )
        places = [
            letters.get(SINGLE, letters[BEGIN]),
            letters[BEGIN],
            letters[INSIDE],
            letters.get(END, letters[INSIDE]),
        ]
        rows = [[self.index(make_label(letter, kind)) for letter in places] for kind in self.type_names]
        return np.array([*rows, [self.index("O")] * 4], np.int64)

    @cached_property
    def segment_labels(self) -> "Tensor":
        """Labels of segments by type and of O, (C + 1, 4) int64, see `structures.SegmentScores`."""
        return _tensor(self.segment_table)

    @cached_property
    def _names(self) -> np.ndarray:
        return np.array(self.names, dtype=object)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _tags(self) -> list[Tag]:
        return [OUTSIDE_TAG if self.scheme == "none" else parse_tag(name, self.scheme) for name in self.names]


def _tensor(values: Any) -> "Tensor":
    import torch  # not needed by `Predictor`

    return torch.tensor(values)


def segment_boundaries(
    labels: "Tensor", real: "Tensor", starts: "Tensor", label_set: LabelSet
) -> "tuple[Tensor, Tensor]":
    """Return masks of the first and last tokens of all segments: `tag_schemes.spans` for batches of label ids.

    labels (..., T) int64; real (..., T) bool, False in the padding, which may contain any value; starts (..., T) bool,
    the first tokens of sentences, including that of each row -> two (..., T) bool. The n-th True of a row in both masks
    belongs to the same segment, of type `label_set.types[label]`.
    """
    labels = labels.masked_fill(~real, 0)
    inside = real & (label_set.types.to(labels.device, non_blocking=True)[labels] >= 0)
    first = inside & (starts | segment_starts(labels, label_set))
    last = inside & ~shift(inside & ~first, -1, False)
    return first, last


def segment_starts(labels: "Tensor", label_set: LabelSet) -> "Tensor":
    """Return a mask of labels that begin a segment after the previous one, (..., T) int64 -> (..., T) bool.

    The value of the first token of each row is undefined.
    """
    opening = label_set.opening.flatten().to(labels.device, non_blocking=True)
    return opening[shift(labels, 1, 0) * len(label_set) + labels]


def shift(values: "Tensor", by: int, fill: int | bool) -> "Tensor":
    """Return values (..., T) moved by one to the right (by = 1) or left (by = -1), the gap filled; T may be 0."""
    moved = values.roll(by, -1)
    moved[..., slice(0, 1) if by > 0 else slice(-1, None)] = fill
    return moved
