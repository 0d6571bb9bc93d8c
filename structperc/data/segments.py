"""Segments of labellings by their names: the one reader, and what is built on it.

It reads by `tags.opens`, the rule of the conlleval script, and no segment crosses the boundary of a sentence;
segment_masks.py does so for tensors of label ids.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from structperc.data.tags import BEGIN, END, INSIDE, NO_TAG, SCHEMES, SINGLE, follows, notation, opens, read_tag
from structperc.errors import InputError


class Span(NamedTuple):
    """A segment: tokens start <= t < end carry one entity or chunk of the type."""

    type: str
    start: int
    end: int


def spans(labels: Sequence[str], scheme: str | None = None) -> list[Span]:
    """Return the segments of a labelling in any segment scheme or, if it is named, a notation, by the conlleval rule.

    A segment opens at B and S (U), after O, after E (L) and S (U), and wherever the type changes: so an I
    after O or after another type opens one, and no sequence of labels is beyond reading. Differs: the script
    has no rule for S and for B after E and joins such neighbours of one type.
    """
    found: list[Span] = []
    previous = NO_TAG
    for t, tag in enumerate(read_tag(label, scheme) for label in labels):
        if opens(previous, tag):
            found.append(Span(tag.type or "", t, t + 1))
        elif tag.type is not None:
            found[-1] = found[-1]._replace(end=t + 1)
        previous = tag
    return found


def convert(labels: Sequence[str], source: str, target: str) -> list[str]:
    """Return labels of the same segments in the target scheme or notation; "none" converts only to itself."""
    schemes = notation(source).scheme, notation(target).scheme
    if schemes == ("none", "none"):
        return list(labels)
    if "none" in schemes:
        raise InputError(f"scheme 'none' has no segments: cannot turn {source} into {target}")
    return _encode_spans(spans(labels, source), len(labels), target)


def in_iob2(labels: Sequence[str]) -> list[str]:
    """Return the IOB2 labels of the segments of a labelling in any segment scheme, as `spans` reads them.

    Raises InputError for labels of no such scheme.
    """
    return _encode_spans(spans(labels), len(labels), "IOB2")


def first_violation(labels: Sequence[str], scheme: str) -> int | None:
    """Return the index of the first label that may not follow its predecessor, or of a last label that may not be last.

    The result is None for a legal labelling. Raises InputError when a label is none of the scheme's at all ("S-PER" in
    IOB2).
    """
    if notation(scheme).scheme == "none":
        return None
    previous = NO_TAG
    for t, label in enumerate(labels):
        tag = read_tag(label, scheme)
        if not follows(previous, tag, scheme):
            return t
        previous = tag
    return None if follows(previous, NO_TAG, scheme) else len(labels) - 1


def repair(labels: Sequence[str], scheme: str) -> tuple[list[str], int]:
    """Return the legal labelling of the segments that conlleval reads, and how many labels differ from those given."""
    if first_violation(labels, scheme) is None:
        return list(labels), 0
    legal = convert(labels, scheme, scheme)
    return legal, sum(a != b for a, b in zip(labels, legal, strict=True))


def rename(labels: Sequence[str], scheme: str, names: Mapping[str, str]) -> list[str]:
    """Return labels of the same segments, their types called `names[type]` where that is given.

    The labels must be of the scheme. Neighbours whose types become one stay apart. Raises InputError for "none", which
    has no segments.
    """
    if scheme == "none":
        raise InputError("scheme 'none' has no segments whose types could be renamed")
    renamed = (span._replace(type=names.get(span.type, span.type)) for span in spans(labels, scheme))
    return _encode_spans(renamed, len(labels), scheme)


def _encode_spans(segments: Iterable[Span], length: int, scheme: str) -> list[str]:
    how = notation(scheme)
    letter = {prefix: letter for letter, prefix in SCHEMES[how.scheme].items()}
    labels = [how.outside] * length
    previous: Span | None = None
    for span in segments:
        first, last = span.start, span.end - 1
        labels[first : span.end] = [how.label(letter[INSIDE], span.type)] * (span.end - first)
        touches = previous is not None and (previous.type, previous.end) == (span.type, first)
        if how.scheme != "IOB1" or touches:
            labels[first] = how.label(letter[BEGIN], span.type)
        if END in letter:
            labels[last] = how.label(letter[SINGLE if first == last else END], span.type)
        previous = span
    return labels
