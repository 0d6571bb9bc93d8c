"""The parts of a report on weights: single ones, sums, those of a label, those of a kind."""

from typing import NamedTuple


class Weight(NamedTuple):
    """One weight with its name: the feature and the labels that it belongs to."""

    group: str  # "node", "edge", "transition", or a non-local feature: its class and options
    feature: str  # "wl[-1]=the", "phrase(LOC,PER)"; "" for a transition
    labels: str  # "B-PER", "O B-PER"; "" for a non-local feature
    value: float

    @property
    def name(self) -> str:
        """The feature and the labels in one string."""
        return " -> ".join(part for part in (self.feature, self.labels) if part)


class Sums(NamedTuple):
    """How much weight there is in one place: at one label or label pair, or in one template."""

    name: str
    weights: int
    nonzero: int
    mass: float  # sum of absolute values


class LabelWeights(NamedTuple):
    """The sums and the largest weights of one label or label pair."""

    sums: Sums
    highest: list[Weight]  # above 0, highest first
    lowest: list[Weight]  # below 0, lowest first


class Group(NamedTuple):
    """The weights of one kind: of nodes, edges, transitions, or a non-local feature."""

    sums: Sums
    largest: list[Weight]  # by absolute value; of a non-local feature with a few names all, also those that are 0
    columns: list[LabelWeights]  # by label or label pair; none for a non-local feature
    templates: list[Sums]  # most mass first; none where there are no templates

    @property
    def listed(self) -> list[Weight]:
        """Every weight of the lists once, the largest first."""
        among = [*self.largest, *(w for column in self.columns for w in (*column.highest, *column.lowest))]
        return sorted(dict.fromkeys(among), key=lambda weight: -abs(weight.value))


class Transitions(NamedTuple):
    """The weights of all pairs of neighbouring labels."""

    labels: list[str]  # L names
    values: list[list[float]]  # L rows for the label before, L columns for the label after
