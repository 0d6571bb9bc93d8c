"""Limits of predictions: allowed labels of tokens, forced spans and forbidden spans."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from structperc.data.annotations import read_spans
from structperc.data.corpus import Corpus
from structperc.data.forbidden_spans import (
    FORBIDDEN,
    StateArrays,
    forbidden_column,
    forbidden_spans,
    segment_states,
    slots_needed,
)
from structperc.data.label_sets import OR
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import (
    ADVICE,
    POSSIBLE,
    allowed_column,
    allowed_lists,
    first_impossible,
    forced_labels,
    label_masks,
    label_text,
)
from structperc.data.tag_schemes import Span
from structperc.errors import InputError, errors_at
from structperc.text.alignment import TextSpan, TokenizedText, align, merge_sentences

FORCED_FIELD, FORBIDDEN_FIELD, ALLOWED_FIELD = "forced", "forbidden", "allowed"
LIMITS = (ALLOWED_FIELD, FORCED_FIELD, FORBIDDEN_FIELD)  # fields of JSON lines and of requests

Allowed = Iterable[Iterable[str] | None]  # labels of each token of a sentence; None: all
Spans = Iterable[tuple[str, int, int]]


def with_limits(
    corpus: Corpus, allowed: Iterable[Allowed | None] | None, forbidden: Iterable[Spans | None] | None
) -> Corpus:
    """Return a corpus with allowed labels and forbidden spans of its sentences, if they are given.

    `corpus`: R sentences. `allowed`: for each sentence None, or for each token the names of its labels or None for all.
    `forbidden`: for each sentence None, or spans (type, start, end), tokens start <= t < end. Raises InputError:
    another number of sentences or tokens, anything but a list of labels, or an invalid span.
    """
    if allowed is not None:
        corpus = corpus.replace_column(POSSIBLE, _by_sentence(corpus, ALLOWED_FIELD, allowed, allowed_column))
    if forbidden is not None:
        corpus = corpus.replace_column(FORBIDDEN, _by_sentence(corpus, FORBIDDEN, forbidden, forbidden_column))
    return corpus


def _by_sentence(corpus: Corpus, name: str, given: Iterable[Any], column: Callable[[int, Any], list[str]]) -> list[str]:
    """Return the column of a corpus from the limits of each sentence."""
    rows, lengths = list(given), np.diff(corpus.sentences).tolist()
    if len(rows) != len(lengths):
        what = f"there are {len(rows)} lists for {len(lengths)} sentences"
        raise InputError(f"{name}: {what}; give None for a sentence without limits")
    found: list[str] = []
    for number, (length, own) in enumerate(zip(lengths, rows, strict=True), 1):
        with errors_at(f"sentence {number}"):
            found += column(length, own)
    return found


@dataclass(frozen=True)
class CorpusLimits:
    """Labels and segments that may be predicted for a corpus of N tokens, see `with_limits`.

    Args:
        corpus: the corpus.
        labels: the L labels of a model.
        masks: (N, L) bool, labels that may be predicted; None: all.
        spans: forbidden spans by index of the sequence, in its tokens.
        slots: number of slots of the states, see `data.forbidden_spans`.
    """

    corpus: Corpus
    labels: LabelSet
    masks: np.ndarray | None
    spans: Mapping[int, Sequence[Span]]
    slots: int

    @classmethod
    def read(cls, corpus: Corpus, labels: LabelSet) -> "CorpusLimits":
        """Return the limits of a corpus.

        Raises InputError: an unknown label or type, or a token for which no label is left.
        """
        masks, spans = label_masks(corpus, labels, POSSIBLE), forbidden_spans(corpus, labels)
        limits = cls(
            corpus, labels, None if masks is None or masks.all() else masks, spans, slots_needed(spans.values())
        )
        if limits.masks is not None:
            limited = np.concatenate([[0], (~limits.masks.all(1)).cumsum()])[corpus.starts]
            limits._check(np.flatnonzero(np.diff(limited)), None)
        for sequence in spans:
            limits._check(np.array([sequence]), sequence)
        return limits

    @property
    def n_states(self) -> int:
        """The number of states, M."""
        return len(self.labels) + self.slots * int((self.labels.segmentation.types >= 0).sum())

    def states(self, sequence: int) -> StateArrays:
        """Return the possible states of a sequence with forbidden spans."""
        start, stop = self.corpus.starts[sequence : sequence + 2]
        first = np.isin(np.arange(start, stop), self.corpus.sentences)
        states = segment_states(self.spans[sequence], first, self.labels, self.slots)
        if self.masks is None:
            return states
        return states._replace(possible=states.possible & self.masks[start:stop, states.labels])

    def _check(self, rows: np.ndarray, restricted: int | None) -> None:
        """Raise InputError for the first token for which no label is left.

        `rows`: (B,) indices of sequences. `restricted`: the only one, to check its forbidden spans; None for labels.
        """
        corpus, scheme, follows = self.corpus, self.labels.allowed, None
        starts, lengths = corpus.starts[rows], corpus.lengths[rows]
        steps = np.arange(lengths.max())
        real = steps < lengths[:, None]
        places = np.where(real, starts[:, None] + steps, 0)
        possible = np.ones((1, len(self.labels)), bool)[0 * places] if self.masks is None else self.masks[places]
        if "O" in self.labels.names and possible[:, :, self.labels.index("O")][real].all():
            return  # all tokens may be outside of segments
        if restricted is not None:
            numbers, left, pairs = self.states(restricted)
            possible, scheme, follows = left[None], scheme.take(numbers), pairs[None]
        first, last = (np.isin(places + after, corpus.sentences) for after in (0, 1))
        found = first_impossible(possible, real, first, last, scheme, follows)
        if found is None:
            return
        token, reason = int(places[found]), f"forbidden spans, and the labels before; {ADVICE}"
        if restricted is None:
            own = OR.join(np.array(self.labels.names)[possible[found]])
            empty = "its lists of allowed labels are empty or have none in common"
            reason = f"{self.labels.scheme} does not allow {own} here" if own else empty
        raise self._nothing_left(token, reason)

    def check_predicted(self, predicted: Sequence[str]) -> None:
        """Raise InputError if predicted labels are not among those that may be predicted.

        Scores of segments exclude segments beyond a length, and those that are not candidates. A sentence may thus have
        no possible label sequence although the labels of each token have one. `predicted`: names of N predicted labels.
        """
        if self.masks is None:
            return
        numbers = np.array([self.labels.index(name) for name in predicted], np.int64)
        wrong = np.flatnonzero(~self.masks[np.arange(len(numbers)), numbers])
        if len(wrong):
            reason = "allowed labels require a segment that is too long for the model, or not among its candidates"
            raise self._nothing_left(int(wrong[0]), f"{reason}; allow other labels")

    def _nothing_left(self, token: int, reason: str) -> InputError:
        word = self.corpus.columns["word"][token]
        return InputError(f"{self.corpus.where(token)}: no label is left for {word!r}: {reason}")


def limit_columns(
    length: int, labels: LabelSet, allowed: Any = None, forced: Spans = (), forbidden: Spans = ()
) -> dict[str, list[str]]:
    """Return the limits of a sentence as columns of a corpus.

    `length`: number of tokens of the sentence. `allowed`: for each token a list of labels, or None for all; None
    without restrictions. `forced`: spans (type, start, end) that must be predicted. `forbidden`: spans that must not be
    predicted. Raises InputError: another number of lists than tokens, anything but lists of strings, or an invalid
    span.
    """
    names = allowed_lists(length, allowed)
    if forced:
        both = zip(names, forced_labels(length, forced, labels), strict=True)
        names = [b if a is None else a if b is None else [one for one in a if one in b] for a, b in both]
    return {POSSIBLE: list(map(label_text, names)), FORBIDDEN: forbidden_column(length, forbidden)}


def limited_text(
    text: TokenizedText, fields: Mapping[str, Any], labels: LabelSet, place: str
) -> tuple[TokenizedText, dict[str, list[str]]]:
    """Return a text whose sentences are joined inside of forced spans, and its limits as columns of a corpus.

    A forbidden span that crosses the end of a sentence cannot be predicted in any case. `text`: the text with its
    tokens. `fields`: "forced" and "forbidden" are lists of [start, end, type] in characters of the text; "allowed" has
    a list of labels, or None, for each token. Other fields, and those that are None, are ignored. `place`: beginning of
    an error message, such as "file:line". Raises InputError: an invalid field, or a span that does not begin and end
    with a token.
    """
    forced = _token_spans(text, fields, FORCED_FIELD, place)
    text = merge_sentences(text, [(span.start, span.end, span.type) for span in forced])
    forbidden = _token_spans(text, fields, FORBIDDEN_FIELD, place)
    allowed = fields.get(ALLOWED_FIELD)
    columns: dict[str, list[str]] = {POSSIBLE: [], FORBIDDEN: []}
    if allowed is not None and not (isinstance(allowed, list) and len(allowed) == len(text.tokens)):
        raise InputError(f"{place}: field {ALLOWED_FIELD!r} must have one item for each of {len(text.tokens)} tokens")
    for first, last in pairwise(text.sentences):
        within = [
            [Span(kind, a - first, b - first) for kind, a, b in spans if first <= a and b <= last]
            for spans in (forced, forbidden)
        ]
        with errors_at(place):
            own = limit_columns(last - first, labels, None if allowed is None else allowed[first:last], *within)
        columns = {name: columns[name] + own[name] for name in columns}
    return text, columns


def field_spans(fields: Mapping[str, Any], name: str, place: str) -> list[TextSpan]:
    """Return the spans of a field of a JSON line or request; none if it is missing or null.

    `fields`: the fields. `name`: name of the field, a list of [start, end, type]. `place`: beginning of an error
    message, such as "file:line". Raises InputError: anything else.
    """
    value = fields.get(name)
    return [] if value is None else read_spans(value, name, place, str)


def _token_spans(text: TokenizedText, fields: Mapping[str, Any], name: str, place: str) -> list[Span]:
    """Return the spans of a field in tokens. Forbidden spans may overlap one another."""
    spans = field_spans(fields, name, place)
    found = []
    for group in [spans] if name == FORCED_FIELD else [[span] for span in spans]:
        aligned = align(text, group)
        if aligned.conflicts:
            raise InputError(f"{place}: field {name!r}: {aligned.conflicts[0].message}; correct the offsets")
        found += [Span(kind, start, end) for start, end, kind in aligned.spans]
    return found
