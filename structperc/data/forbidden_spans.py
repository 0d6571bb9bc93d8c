"""Spans that must not be predicted: segments of exactly this type, first and last token.

Other segments may overlap them, so that no labels of single tokens are excluded. The search is over states in place of
labels: a state is a label and, within a segment that begins where a forbidden span of its type begins, the number of a
slot that marks this segment until the last end of these spans. Each label sequence without forbidden spans is one
sequence of states, with the same score; all others have none. Searches and sums over states are thus exact.

In a corpus the spans are a column `forbidden`: at the first token of a span JSON such as [["PER", 2]], type and number
of tokens.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import span_within
from structperc.data.tag_schemes import Span
from structperc.errors import InputError

FORBIDDEN = "forbidden"  # role of the column


class StateArrays(NamedTuple):
    """The M states of a sequence of T tokens, and those that may follow one another."""

    labels: np.ndarray  # (M,) int64, label of each state; the first L are the labels themselves
    possible: np.ndarray  # (T, M) bool, states that may be the first and the last of the sequence; True at others
    follows: np.ndarray  # (T, M, M) bool, pairs (state before, state) at each token but the first


@dataclass(frozen=True)
class RepeatedLabels(LabelSet):
    """The labels of states, in which a name may occur several times."""

    def __post_init__(self) -> None:
        _ = self._tags  # raises InputError for names that are not of the scheme


def forbidden_column(length: int, spans: Iterable[tuple[str, int, int]] | None) -> list[str]:
    """Return the column `forbidden` of a sentence.

    `length`: number of tokens of the sentence. `spans`: (type, start, end), tokens start <= t < end, or None. Raises
    InputError: an invalid span, or one outside of the sentence.
    """
    by_token: list[list[tuple[str, int]]] = [[] for _ in range(length)]
    for span in spans or ():
        kind, start, end = span_within(span, length, FORBIDDEN)
        by_token[start].append((kind, end - start))
    return [json.dumps(of_token) if of_token else "" for of_token in by_token]


def forbidden_spans(corpus: Corpus, labels: LabelSet) -> dict[int, list[Span]]:
    """Return the forbidden spans of the sequences that have some, by index, in tokens of the sequence.

    Without a column `forbidden` there are none. Raises InputError: labels without a tag scheme, or an unknown type.
    """
    by_sequence: dict[int, list[Span]] = {}
    if FORBIDDEN not in corpus.columns:
        return by_sequence
    distinct, numbers = corpus.factorize(FORBIDDEN)
    places = np.flatnonzero(np.array([bool(text) for text in distinct], bool)[numbers])
    if len(places) and labels.scheme == "none":
        raise InputError("forbidden: the labels of this model have no tag scheme, so they have no spans")
    for token in places.tolist():
        sequence = int(np.searchsorted(corpus.starts, token, "right")) - 1
        start = token - int(corpus.starts[sequence])
        for kind, length in json.loads(distinct[numbers[token]]):
            if kind not in labels.type_names:
                types = ", ".join(labels.type_names)
                raise InputError(f"{corpus.where(token)}: forbidden: unknown type {kind!r}; the model has {types}")
            by_sequence.setdefault(sequence, []).append(Span(kind, start, start + length))
    return by_sequence


def segment_states(spans: Iterable[Span], first: np.ndarray, labels: LabelSet, slots: int) -> StateArrays:
    """Return the states of a search for the label sequences of a sequence without any of these spans.

    `spans`: forbidden spans, in tokens of the sequence. `first`: (T,) bool, first tokens of sentences. `slots`: number
    of slots, at least as many as there are spans of one type that begin at different tokens and overlap.
    """
    spans, T = list(spans), len(first)
    inside = np.flatnonzero(labels.segmentation.types >= 0)
    numbers = np.concatenate([np.arange(len(labels)), *[inside] * slots])
    slot = np.concatenate([np.zeros(len(labels), np.int64), np.repeat(np.arange(1, slots + 1), len(inside))])
    kinds, opening = labels.segmentation.take(numbers)
    entered = np.zeros((T + 1, len(numbers)), np.int64)  # slot of a segment that begins at a token, by type of label
    kept = np.zeros((T + 1, len(numbers)), bool)  # the segment of a state may still become a forbidden span
    barred = np.zeros((T + 1, len(numbers)), bool)  # the segment of a state is forbidden if it ends before a token
    for (kind, start), number in _slots(spans).items():
        of_type = kinds == labels.type_names.index(kind)
        ends = [span.end for span in spans if (span.type, span.start) == (kind, start)]
        entered[start, of_type] = number
        kept[start + 1 : max(ends), of_type & (slot == number)] = True
        barred[np.ix_(ends, of_type & (slot == number))] = True
    begins = slot == entered[:T]
    continues = ~first[:, None, None] & (kinds >= 0) & ~opening
    same = np.where(kept[:T, :, None], slot[:, None], 0) == slot
    follows = np.where(continues, same, begins[:, None, :] & ~barred[:T, :, None])
    possible = np.ones((T, len(numbers)), bool)
    possible[:1] &= begins[:1]
    possible[-1:] &= ~barred[-1]
    return StateArrays(numbers, possible, follows)


def slots_needed(spans: Iterable[Iterable[Span]]) -> int:
    """Return the number of slots for the forbidden spans of several sequences."""
    return max((number for of_sequence in spans for number in _slots(of_sequence).values()), default=0)


def _slots(spans: Iterable[Span]) -> dict[tuple[str, int], int]:
    """Return a slot 1, 2, ... for each type and first token; those of a type that overlap have different slots."""
    ends: dict[tuple[str, int], int] = {}
    for kind, start, end in spans:
        ends[kind, start] = max(end, ends.get((kind, start), 0))
    slots: dict[tuple[str, int], int] = {}
    free: dict[tuple[str, int], int] = {}  # by type and slot, the token from which on it is free
    for kind, start in sorted(ends, key=lambda one: one[1]):
        number = 1
        while free.get((kind, number), 0) > start:
            number += 1
        slots[kind, start], free[kind, number] = number, ends[kind, start]
    return slots
