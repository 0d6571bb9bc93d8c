"""Costs of wrong labels and segments, for losses that compare label sequences with the gold sequence."""

from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from structperc.data.labels import LabelSet, segment_boundaries, shift
from structperc.errors import InputError
from structperc.spelling import did_you_mean

Value = TypeVar("Value")


class Costs(nn.Module, ABC):
    """Base class of costs of label sequences, given the gold sequence.

    A cost is never negative, and 0 for the gold sequence. `terms` has one number for each label of each token, so that
    searches and sums over all label sequences work in a lattice with the terms added to its scores. `forward` returns
    the cost of given label sequences. Where the cost is not a sum over tokens, the terms are an approximation, which
    the subclass describes, and `forward` is exact.
    """

    least = 0.0  # no wrong label costs less

    def allocate(self, labels: LabelSet) -> None:
        """Set the label set. Raises InputError for labels that the costs do not support."""

    @abstractmethod
    def terms(self, gold: Tensor, real: Tensor, L: int) -> Tensor:
        """Return the cost of each label at each token.

        Returns (B, T, L) float64, arbitrary in the padding.

        Args:
            gold: (B, T) int64, legal label sequences; 0 in the padding.
            real: (B, T) bool, False in the padding.
        """

    def rows(self, gold: Tensor, L: int) -> tuple[Tensor, Tensor]:
        """Return the terms as rows of a table, for compiled loops.

        `gold`: (n,) int64, labels of legal sequences without padding, one after the other. `L`: number of labels.
        Returns a table (m, L) float64, and the row of each token, (n,) int64.
        """
        terms = self.terms(gold[None], torch.ones_like(gold[None], dtype=torch.bool), L)[0]
        return terms, torch.arange(len(gold), device=gold.device)

    def forward(self, gold: Tensor, labels: Tensor, real: Tensor, L: int) -> Tensor:
        """Return the costs of label sequences.

        Returns (B, K) float64.

        Args:
            gold: (B, T) int64, 0 in the padding.
            labels: (B, K, T) int64, K label sequences for each gold sequence.
            real: (B, T) bool, False in the padding.
        """
        return sum_terms(self.terms(gold, real, L), labels, real)


def sum_terms(terms: Tensor, labels: Tensor, real: Tensor) -> Tensor:
    """Return the sums (B, K) of terms (B, T, L) along label sequences (B, K, T), without the padding."""
    return terms.gather(2, labels.transpose(1, 2)).where(real.unsqueeze(2), 0).sum(1)


def as_costs(cost: float | Costs) -> Costs | None:
    """Return the costs of an option: a number is the cost of every wrong label, 0 is None."""
    return cost if isinstance(cost, Costs) else TokenCosts(cost) if cost else None


class TokenCosts(Costs):
    """Costs of wrong labels, summed over the tokens.

    Args:
        cost: cost of every wrong label.
        pairs: other costs: a key is "GOLD,PREDICTED" or "GOLD" for all wrong labels in place of it, where each name is
            a label or a type of segments, which stands for all of its labels. Of several keys that apply, the last one
            counts. {"PER": 5.0} is a class weight; {"PER,O": 5.0} concerns missed tokens, {"O,PER": 2.0} spurious ones.

    Raises:
        InputError: a cost is negative or infinite; from `allocate`, an unknown name in `pairs`.
    """

    def __init__(self, cost: float = 1.0, pairs: dict[str, float] | None = None) -> None:
        super().__init__()
        self.cost, self.pairs = cost, pairs
        for name, number in {"cost": cost, **{f"pairs.{key}": number for key, number in (pairs or {}).items()}}.items():
            check_number(self, name, number)
        self.least = min([cost, *(pairs or {}).values()])
        self.table: Tensor | None = None

    def allocate(self, labels: LabelSet) -> None:
        """Compute the costs by gold and predicted label. Raises InputError for an unknown name."""
        table = np.full((len(labels), len(labels)), float(self.cost))
        for key, number in (self.pairs or {}).items():
            place, (gold, comma, predicted) = f"TokenCosts: pairs has {key!r}", key.partition(",")
            columns = label_ids(labels, predicted.strip(), place) if comma else list(range(len(labels)))
            table[np.ix_(label_ids(labels, gold.strip(), place), columns)] = number
        np.fill_diagonal(table, 0)
        self.table = torch.from_numpy(table)

    def terms(self, gold: Tensor, real: Tensor, L: int) -> Tensor:
        """Return the cost of each label at each token, (B, T, L) float64."""
        return self._table(L).to(gold.device, non_blocking=True)[gold]

    def rows(self, gold: Tensor, L: int) -> tuple[Tensor, Tensor]:
        """Return the costs by gold and predicted label, and the gold labels."""
        return self._table(L), gold

    def _table(self, L: int) -> Tensor:
        if not self.pairs and (self.table is None or len(self.table) != L):  # needs no label set
            self.table = torch.full((L, L), float(self.cost), dtype=torch.float64).fill_diagonal_(0)
        return _allocated(self, self.table)


def label_ids(labels: LabelSet, name: str, place: str) -> list[int]:
    """Return the ids of a label, or of all labels of a type. Raises InputError, which begins with `place`."""
    if name in labels.names:
        return [labels.index(name)]
    if name in labels.type_names:
        return np.flatnonzero(labels.segmentation.types == labels.type_names.index(name)).tolist()
    known = dict.fromkeys((*labels.type_names, *labels.names))
    advice = did_you_mean(name, known)
    raise InputError(f"{place}: {name!r} is neither a label nor a type{advice}; there are {', '.join(known)}")


class SegmentCosts(Costs):
    """Costs of missed, spurious and wrong segments, of named entities for example.

    `forward` compares segments: a gold segment costs 0 if it is found with its boundaries and type, `wrong_type` if it
    is found with its boundaries and another type, `missed` if no predicted segment overlaps it, and `wrong_boundary`
    otherwise. A predicted segment that overlaps no gold segment costs `spurious`. The cost is the sum.

    `terms` is a sum over tokens, by the gold segments and the predicted label, for legal label sequences:

    * at the first token of a gold segment: `missed` for O, `wrong_type` for a label that begins a segment of another
      type, `wrong_boundary` for a label that continues a segment;
    * at its other tokens: `wrong_boundary` for a label that begins a segment; at its last one also for O. If a gold
      segment of several tokens begins with O, the first token therefore costs max(0, missed - wrong_boundary) only;
    * at the token after it: `wrong_boundary` for a label that continues a segment;
    * at tokens outside of gold segments: `spurious` for a label that begins a segment.

    This sum is never below the cost. It equals the cost of label sequences that miss segments, add segments, change
    types, or move one end of a segment (if `missed` >= `wrong_boundary`), except for a segment that begins too late,
    which counts as missed, and for one that begins too early, which also counts as spurious. Whether a segment is
    covered anywhere, and whether two errors belong to the same segment, does not decompose over the tokens.

    Args:
        missed: cost of a gold segment that no predicted segment overlaps.
        spurious: cost of a predicted segment that overlaps no gold segment.
        wrong_type: cost of a gold segment with the right boundaries and another type.
        wrong_boundary: cost of a gold segment with other boundaries.
        types: other costs for segments of a type, such as {"PER": {"missed": 5.0}}: the predicted type for `spurious`,
            the gold type for all other costs.

    Raises:
        InputError: a cost is negative or infinite, or the name of a cost is unknown; from `allocate`, an unknown type,
            or a scheme without a label of its own for the first token of a segment (IOB1, IO and "none").

    Example:
        >>> import torch
        >>> from structperc.criteria import SegmentCosts
        >>> from structperc.data import LabelSet
        >>> costs = SegmentCosts(missed=5.0, types={"LOC": {"spurious": 2.0}})
        >>> costs.allocate(LabelSet(("O", "B-LOC", "I-LOC", "B-PER", "I-PER")))
        >>> gold, real = torch.tensor([[3, 4, 0]]), torch.ones(1, 3).bool()
        >>> costs(gold, torch.tensor([[[0, 0, 0], [0, 0, 1], [1, 2, 0], [3, 0, 0]]]), real, 5).tolist()
        [[5.0, 7.0, 1.0, 1.0]]
        >>> costs.terms(gold, real, 5)[0, 2].tolist()  # the token after PER: O, B-LOC, I-LOC, B-PER, I-PER
        [0.0, 2.0, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        missed: float = 1.0,
        spurious: float = 1.0,
        wrong_type: float = 1.0,
        wrong_boundary: float = 1.0,
        types: dict[str, dict[str, float]] | None = None,
    ) -> None:
        super().__init__()
        self.missed, self.spurious, self.wrong_type, self.wrong_boundary = missed, spurious, wrong_type, wrong_boundary
        self.types = types
        self.labels: LabelSet | None = None
        for name in ERRORS:
            check_number(self, name, getattr(self, name))
        for kind, numbers in (types or {}).items():
            for name, number in numbers.items():
                if name not in ERRORS:
                    wrong = f"SegmentCosts: types.{kind} has {name!r}{did_you_mean(name, ERRORS)}"
                    raise InputError(f"{wrong}; its costs are {', '.join(ERRORS)}")
                check_number(self, f"types.{kind}.{name}", number)

    def allocate(self, labels: LabelSet) -> None:
        """Compute the terms by gold state and predicted label.

        Raises:
            InputError: an unknown type, or a scheme that is not supported.
        """
        if labels.scheme in ("IOB1", "IO", "none"):
            raise InputError(
                f"SegmentCosts: labels of scheme {labels.scheme} do not mark the first tokens of segments; "
                "set data.scheme: IOB2, or use TokenCosts"
            )
        for kind in self.types or {}:
            if kind not in labels.type_names:
                known = ", ".join(labels.type_names)
                advice = did_you_mean(kind, labels.type_names)
                raise InputError(f"SegmentCosts: types has {kind!r}{advice}; the types are {known}")
        self.labels = labels
        with torch.device("cpu"):  # a model that is loaded is built without memory first
            self.missed_by_type, self.spurious_by_type, self.wrong_type_by_type, self.boundary_by_type = (
                self._by_type(name, labels) for name in ERRORS
            )
            self.table, self.after = self._tables(labels)

    def terms(self, gold: Tensor, real: Tensor, L: int) -> Tensor:
        """Return the terms of each label at each token, (B, T, L) float64."""
        labels = _allocated(self, self.labels)
        kinds, opening = (
            labels.types.to(gold.device, non_blocking=True)[gold].where(real, -1),
            opening_labels(labels).to(gold.device, non_blocking=True),
        )
        continues = (kinds >= 0) & ~opening[gold]
        followed = shift(continues, -1, False)
        state = torch.where(continues, torch.where(followed, INNER, LAST), torch.where(followed, FIRST, ONLY))
        rows = torch.where(kinds >= 0, 1 + 4 * kinds + state, 0)
        ended = shift(torch.where(followed, -1, kinds), 1, -1)  # type of the segment that ends before a token
        return (
            self.table.to(gold.device, non_blocking=True)[rows]
            + self.after.to(gold.device, non_blocking=True)[1 + ended]
        )

    def forward(self, gold: Tensor, labels: Tensor, real: Tensor, L: int) -> Tensor:
        """Return the costs of label sequences by comparing segments, (B, K) float64."""
        label_set, device = _allocated(self, self.labels), gold.device
        right, found = (_Segments(one, real.unsqueeze(1), label_set) for one in (gold.unsqueeze(1), labels))
        same = found.first & (right.end == found.end)
        types = label_set.types.to(device, non_blocking=True)
        kinds, others = (types[one].where(real.unsqueeze(1), -1) for one in (gold.unsqueeze(1), labels))
        missed, spurious, wrong_type, boundary = (
            table.to(device, non_blocking=True)
            for table in (self.missed_by_type, self.spurious_by_type, self.wrong_type_by_type, self.boundary_by_type)
        )
        unequal = torch.where(found.inside_of(right), boundary[kinds], missed[kinds])
        charged = torch.where(same, wrong_type[kinds].where(kinds != others, 0), unequal).where(right.first, 0)
        extra = spurious[others].where(found.first & ~right.inside_of(found), 0)
        return (charged + extra).sum(2)

    def _by_type(self, error: str, labels: LabelSet) -> Tensor:
        """Return the cost of an error for each type, (C,) float64."""
        given, default = self.types or {}, float(getattr(self, error))
        return torch.tensor(
            [float(given.get(kind, {}).get(error, default)) for kind in labels.type_names], dtype=torch.float64
        )

    def _tables(self, labels: LabelSet) -> tuple[Tensor, Tensor]:
        """Return terms by gold state and predicted label, (1 + 4 C, L), and those after segments, (1 + C, L).

        State 0 is outside of segments; 1 + 4 c + s is a token s of a segment of type c: its ONLY, FIRST, INNER, LAST.
        """
        C, opening = len(labels.type_names), opening_labels(labels)
        types = torch.from_numpy(labels.segmentation.types)
        outside, continuing = types < 0, (types >= 0) & ~opening
        table = torch.zeros(1 + 4 * C, len(labels), dtype=torch.float64)
        table[0] = torch.where(opening, self.spurious_by_type[types], 0)
        after = torch.zeros(1 + C, len(labels), dtype=torch.float64)
        for c in range(C):
            missed, wrong_type, boundary = (
                one[c] for one in (self.missed_by_type, self.wrong_type_by_type, self.boundary_by_type)
            )  # tensors: a float times a mask is float32
            rows = table[1 + 4 * c : 5 + 4 * c]
            rows[:2] = boundary * continuing + wrong_type * (opening & (types != c))
            rows[ONLY] += missed * outside
            rows[FIRST] += (missed - boundary).clamp(min=0) * outside
            rows[INNER] = boundary * opening
            rows[LAST] = boundary * (opening | outside)
            after[1 + c] = boundary * continuing
        return table, after


ERRORS = ("missed", "spurious", "wrong_type", "wrong_boundary")
ONLY, FIRST, INNER, LAST = range(4)


class _Segments:
    """First tokens and ends of the segments of label sequences (B, K, T)."""

    def __init__(self, labels: Tensor, real: Tensor, label_set: LabelSet) -> None:
        T, real = labels.shape[2], real.expand_as(labels)
        places = torch.arange(T, device=labels.device)
        self.first, last = segment_boundaries(labels, real, (places == 0).expand_as(labels), label_set)
        self.inside = real & (label_set.types.to(labels.device, non_blocking=True)[labels] >= 0)
        self.end = torch.where(last, places, T).flip(2).cummin(2).values.flip(2)  # of the segment that begins at t

    def inside_of(self, other: "_Segments") -> Tensor:
        """Return True at the first tokens of the segments of another one that contain a token of these segments."""
        count = nn.functional.pad(self.inside.long().cumsum(2), (1, 0))  # of the tokens before t
        B, K, T = torch.broadcast_shapes(self.inside.shape, other.inside.shape)
        count, end = count.expand(B, K, T + 1), other.end.clamp(max=T - 1).expand(B, K, T)
        return count.gather(2, end + 1) > count[..., :-1]


def opening_labels(labels: LabelSet) -> Tensor:
    """Return a mask (L,) bool of the labels that begin a segment after any label."""
    types, opening = labels.segmentation
    return torch.from_numpy(opening.all(0) & (types >= 0))


def _allocated(costs: Costs, found: Value | None) -> Value:
    """Return what `allocate` has set. Raises InputError if it was not called."""
    if found is None:
        raise InputError(f"{type(costs).__name__}: call allocate(labels) first")
    return found


def check_number(part: nn.Module, name: str, number: float) -> None:
    """Raise InputError for a cost or weight that is negative or infinite."""
    if not 0 <= number < torch.inf:
        raise InputError(f"{type(part).__name__}: {name} must be >= 0 and finite, got {number}")
