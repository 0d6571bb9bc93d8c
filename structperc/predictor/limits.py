"""Limits of predictions: allowed labels of tokens, forced spans and forbidden spans."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from structperc.data.annotations import read_spans
from structperc.data.corpus import Corpus
from structperc.data.forbidden_spans import FORBIDDEN, forbidden_column, forbidden_spans, with_forbidden
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import (
    POSSIBLE,
    forced_labels,
    label_list,
    label_text,
    possible_masks,
    with_allowed,
)
from structperc.data.tag_schemes import Span
from structperc.errors import InputError, errors_at
from structperc.text import TextSpan, TokenizedText, align, merge_sentences

FORCED_FIELD, FORBIDDEN_FIELD, ALLOWED_FIELD = "forced", "forbidden", "allowed"
LIMITS = (ALLOWED_FIELD, FORCED_FIELD, FORBIDDEN_FIELD)  # fields of JSON lines and of requests

Allowed = Iterable[Iterable[str] | None]  # labels of each token of a sentence; None: all
Spans = Iterable[tuple[str, int, int]]


def with_limits(
    corpus: Corpus, allowed: Iterable[Allowed | None] | None, forbidden: Iterable[Spans | None] | None
) -> Corpus:
    """Return a corpus with allowed labels and forbidden spans of its sentences, if they are given.

    `corpus`: R sentences. `allowed`: see `data.possible_labels.with_allowed`. `forbidden`: see
    `data.forbidden_spans.with_forbidden`.
    """
    corpus = corpus if allowed is None else with_allowed(corpus, allowed)
    return corpus if forbidden is None else with_forbidden(corpus, forbidden)


def check_limits(corpus: Corpus, labels: LabelSet) -> None:
    """Check that the allowed labels and forbidden spans of a corpus leave a label for each token.

    `corpus`: a corpus with the columns of `with_limits`. Raises InputError: an unknown label or type, or a token for
    which no label is left.
    """
    forbidden_spans(corpus, labels, possible_masks(corpus, labels))


def limit_columns(
    length: int, labels: LabelSet, allowed: Any = None, forced: Spans = (), forbidden: Spans = ()
) -> dict[str, list[str]]:
    """Return the limits of a sentence as columns of a corpus.

    `length`: number of tokens of the sentence. `allowed`: for each token a list of labels, or None for all; None
    without restrictions. `forced`: spans (type, start, end) that must be predicted. `forbidden`: spans that must not be
    predicted. Raises InputError: another number of lists than tokens, anything but lists of strings, or an invalid
    span.
    """
    lists = [None] * length if allowed is None else allowed
    if not isinstance(lists, Sequence) or isinstance(lists, str) or len(lists) != length:
        raise InputError(f"{ALLOWED_FIELD}: give a list of {length} items, one for each token: labels or null")
    required = forced_labels(length, forced, labels) if forced else [None] * length
    texts = []
    for token, (value, other) in enumerate(zip(lists, required, strict=True)):
        own = label_list(value, f"{ALLOWED_FIELD}[{token}]")
        names = other if own is None else own if other is None else [one for one in own if one in other]
        texts.append(label_text(names))
    return {POSSIBLE: texts, FORBIDDEN: forbidden_column(length, forbidden)}


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
