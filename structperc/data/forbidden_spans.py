"""Spans that must not be predicted: segments of exactly this type, first and last token.

Other segments may overlap them, so that no labels of single tokens are excluded. The search is over states in place of
labels: a state is a label and, within a segment that begins where a forbidden span of its type begins, the number of a
slot that marks this segment until the last end of these spans. Each label sequence without forbidden spans is one
sequence of states, with the same score; all others have none. Searches and sums over states are thus exact.

In a corpus the spans are a column `forbidden`: at the first token of a span JSON such as [["PER", 2]], type and number
of tokens.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import span_within
from structperc.data.tag_schemes import Span
from structperc.errors import InputError, errors_at

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


@dataclass(frozen=True)
class ForbiddenSpans:
    """The forbidden spans of the sequences of a corpus.

    Args:
        corpus: the corpus.
        labels: the L labels of a model.
        spans: for each sequence with forbidden spans its index and the spans, in tokens of the sequence.
        slots: number of slots.
    """

    corpus: Corpus
    labels: LabelSet
    spans: Mapping[int, list[Span]]
    slots: int

    @property
    def size(self) -> int:
        """The number of states, M."""
        return len(self.labels) + self.slots * int((self.labels.segmentation.types >= 0).sum())

    def states(self, sequence: int) -> StateArrays:
        """Return the states of a sequence of the corpus."""
        first, last = self.corpus.starts[sequence : sequence + 2]
        starts = np.isin(np.arange(first, last), self.corpus.sentences)
        return segment_states(self.spans.get(sequence, []), starts, self.labels, self.slots)


def with_forbidden(corpus: Corpus, forbidden: Iterable[Iterable[tuple[str, int, int]] | None]) -> Corpus:
    """Return a corpus with spans that must not be predicted, in the column `forbidden`.

    `corpus`: R sentences. `forbidden`: for each sentence the spans (type, start, end), tokens start <= t < end, or
    None. Raises InputError: another number of sentences, an invalid span, or one outside of its sentence.
    """
    given, bounds = list(forbidden), corpus.sentences.tolist()
    if len(given) != len(bounds) - 1:
        what = f"there are {len(given)} lists for {len(bounds) - 1} sentences"
        raise InputError(f"forbidden: {what}; give None for a sentence without spans")
    found: list[str] = []
    for number, own in enumerate(given):
        with errors_at(f"sentence {number + 1}"):
            found += forbidden_column(bounds[number + 1] - bounds[number], own or ())
    return corpus.replace_column(FORBIDDEN, found)


def forbidden_column(length: int, spans: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return the column `forbidden` of a sentence.

    `length`: number of tokens of the sentence. `spans`: (type, start, end), tokens start <= t < end. Raises InputError:
    an invalid span, or one outside of the sentence.
    """
    found: list[list[tuple[str, int]]] = [[] for _ in range(length)]
    for span in spans:
        kind, start, end = span_within(span, length, FORBIDDEN)
        found[start].append((kind, end - start))
    return [json.dumps(own) if own else "" for own in found]


def forbidden_spans(corpus: Corpus, labels: LabelSet, allowed: np.ndarray | None = None) -> ForbiddenSpans | None:
    """Return the forbidden spans of a corpus; None if there are none.

    `corpus`: N tokens; without a column `forbidden` there are none. `allowed`: (N, L) bool, labels that may be
    predicted; by default, all. Raises InputError: labels without a tag scheme, an unknown type, or a token for which no
    label is left.
    """
    if FORBIDDEN not in corpus.columns:
        return None
    distinct, numbers = corpus.factorize(FORBIDDEN)
    places = np.flatnonzero(np.array([bool(text) for text in distinct], bool)[numbers])
    if not len(places):
        return None
    if labels.scheme == "none":
        raise InputError("forbidden: the labels of this model have no tag scheme, so they have no spans")
    found: dict[int, list[Span]] = {}
    for token in places.tolist():
        sequence = int(np.searchsorted(corpus.starts, token, "right")) - 1
        start = token - int(corpus.starts[sequence])
        for kind, length in json.loads(distinct[numbers[token]]):
            if kind not in labels.type_names:
                known = ", ".join(labels.type_names)
                raise InputError(f"{corpus.where(token)}: forbidden: unknown type {kind!r}; the model has {known}")
            found.setdefault(sequence, []).append(Span(kind, start, start + length))
    spans = ForbiddenSpans(corpus, labels, found, slots_needed(found.values()))
    for sequence in found:
        _check_left(spans, sequence, allowed)
    return spans


def _check_left(spans: ForbiddenSpans, sequence: int, allowed: np.ndarray | None) -> None:
    """Raise InputError for the first token of a sequence for which no label is left."""
    corpus, labels = spans.corpus, spans.labels
    begin, stop = (int(place) for place in corpus.starts[sequence : sequence + 2])
    if "O" in labels.names and (allowed is None or allowed[begin:stop, labels.index("O")].all()):
        return  # all tokens may be outside of segments
    first, last = (np.isin(np.arange(begin, stop) + after, corpus.sentences) for after in (0, 1))
    masks = np.ones((stop - begin, len(labels)), bool) if allowed is None else allowed[begin:stop]
    t = first_without_state(spans.states(sequence), first, last, masks, labels)
    if t is not None:
        raise InputError(
            f"{corpus.where(begin + t)}: no label is left for {corpus.columns['word'][begin + t]!r} "
            f"after those of the tokens before, because of the forbidden spans; {ADVICE}"
        )


ADVICE = "leave out a forbidden span, or allow another label"


def first_without_state(
    states: StateArrays, first: np.ndarray, last: np.ndarray, allowed: np.ndarray, labels: LabelSet
) -> int | None:
    """Return the first token of a sequence for which no state is left, None if there is none.

    `states`: the states of the sequence. `first`: (T,) bool, first tokens of sentences. `last`: (T,) bool, last tokens
    of sentences. `allowed`: (T, L) bool, labels that may be predicted.
    """
    numbers, possible, follows = states
    start, transition, end = labels.allowed
    reached = np.ones(len(numbers), bool)
    for t in range(len(first)):
        legal = np.broadcast_to(start, transition.shape) if first[t] else transition
        reached = possible[t] & (reached @ (follows[t] & legal[numbers][:, numbers]) if t else start[numbers])
        reached &= allowed[t, numbers] & (end[numbers] | ~last[t])
        if not reached.any():
            return t
    return None


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
        own = kinds == labels.type_names.index(kind)
        ends = [span.end for span in spans if (span.type, span.start) == (kind, start)]
        entered[start, own] = number
        kept[start + 1 : max(ends), own & (slot == number)] = True
        barred[np.ix_(ends, own & (slot == number))] = True
    begins = slot == entered[:T]
    continues = ~first[:, None, None] & (kinds >= 0) & ~opening
    same = np.where(kept[:T, :, None], slot[:, None], 0) == slot
    follows = np.where(continues, same, begins[:, None, :] & ~barred[:T, :, None])
    possible = np.ones((T, len(numbers)), bool)
    possible[:1] &= begins[:1]
    possible[-1:] &= ~barred[-1]
    return StateArrays(numbers, possible, follows)


def slots_needed(spans: Iterable[Iterable[Span]]) -> int:
    """Return the number of slots for the forbidden spans of several sequences, of which one has a span."""
    return max(max(_slots(own).values(), default=0) for own in spans)


def _slots(spans: Iterable[Span]) -> dict[tuple[str, int], int]:
    """Return a slot 1, 2, ... for each type and first token; those of a type that overlap have different slots."""
    ends: dict[tuple[str, int], int] = {}
    for kind, start, end in spans:
        ends[kind, start] = max(end, ends.get((kind, start), 0))
    found: dict[tuple[str, int], int] = {}
    free: dict[tuple[str, int], int] = {}  # by type and slot, the token from which on it is free
    for kind, start in sorted(ends, key=lambda one: one[1]):
        number = 1
        while free.get((kind, number), 0) > start:
            number += 1
        found[kind, start], free[kind, number] = number, ends[kind, start]
    return found
