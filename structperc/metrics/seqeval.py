"""The scores that seqeval gives, as the dictionary that `evaluate.load("seqeval").compute` returns.

Its default mode reads segments by the rule of conlleval, its strict mode those alone that are written as their scheme
wants them (Nakayama 2018, https://github.com/chakki-works/seqeval).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from structperc.data.segments import Span, spans
from structperc.data.tags import BEGIN, END, INSIDE, NO_TAG, OUTSIDE, SEGMENT_SCHEMES, SINGLE, Tag, read_tag
from structperc.errors import InputError
from structperc.metrics.segments import SegmentScore

Sentences = Sequence[Sequence[str]]


def seqeval_scores(
    predictions: Sentences, references: Sentences, scheme: str | None = None, mode: Literal["strict"] | None = None
) -> dict[str, Any]:
    """Return {type: {precision, recall, f1, number}, ..., overall_precision, overall_recall, overall_f1,
    overall_accuracy} of label names, sentence by sentence; numbers are gold segments.

    Types are those of the segments that were read, in alphabetical order; that of labels without one, such as "B", is
    "_". A score without a denominator is 0.0, without a warning.

    Args:
        predictions: predicted labels.
        references: gold labels.
        scheme: IOB1, IOB2, IOBES or BILOU; by default any, which the strict mode does not allow.
        mode: None, by the rule of conlleval, or "strict".

    Raises:
        InputError: lists of different lengths; labels that are none, or not of the scheme.
    """
    _check(predictions, references, scheme, mode)
    counts = {"correct": Counter[str](), "found": Counter[str](), "gold": Counter[str]()}
    right = total = 0
    for predicted, gold in zip(predictions, references, strict=True):
        found, wanted = (set(_segments(labels, scheme, mode)) for labels in (predicted, gold))
        for name, segments in (("correct", found & wanted), ("found", found), ("gold", wanted)):
            counts[name].update(span.type or "_" for span in segments)
        right += sum(a == b for a, b in zip(predicted, gold, strict=True))
        total += len(gold)
    types = sorted(counts["found"] | counts["gold"])
    scores = {kind: SegmentScore(*(count[kind] for count in counts.values())) for kind in types}
    overall = SegmentScore(*(count.total() for count in counts.values()))
    return {
        **{kind: {**_shares(score), "number": score.gold} for kind, score in scores.items()},
        **{f"overall_{name}": share for name, share in _shares(overall).items()},
        "overall_accuracy": right / max(total, 1),
    }


def _shares(score: SegmentScore) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1}


def _check(predictions: Sentences, references: Sentences, scheme: str | None, mode: str | None) -> None:
    if mode not in (None, "strict"):
        raise InputError(f"mode must be None or 'strict', got {mode!r}")
    if scheme is not None and scheme not in SEGMENT_SCHEMES:
        raise InputError(f"scheme must be one of {', '.join(SEGMENT_SCHEMES)}, got {scheme!r}")
    if mode == "strict" and scheme is None:
        raise InputError(f"mode strict needs a scheme: {', '.join(SEGMENT_SCHEMES)}")
    if len(predictions) != len(references):
        raise InputError(f"predictions have {len(predictions)} sentences, references {len(references)}")
    for i, (predicted, gold) in enumerate(zip(predictions, references, strict=True)):
        if len(predicted) != len(gold):
            raise InputError(f"sentence {i}: predictions have {len(predicted)} labels, references {len(gold)}")


def _segments(labels: Sequence[str], scheme: str | None, mode: str | None) -> list[Span]:
    if scheme is None or mode is None:
        for label in dict.fromkeys(labels):
            read_tag(label, scheme)
        return spans(labels)
    return list(strict_spans(labels, scheme))


def strict_spans(labels: Sequence[str], scheme: str) -> Iterator[Span]:
    """Yield the segments of a sentence that are written as the scheme wants them; all other labels are outside.

    Raises InputError for a label that is not of the scheme.
    """
    tags = [NO_TAG, *(read_tag(label, scheme) for label in labels), NO_TAG]
    t = 1
    while t < len(tags) - 1:
        start = t
        t += 1
        if not _begins(tags[start - 1], tags[start], scheme):
            continue
        while _goes_on(tags[t - 1], tags[t]):
            t += 1
        if _ends(tags[t - 1], tags[t], scheme):
            yield Span(tags[start].type or "", start - 1, t - 1)


def _begins(before: Tag, tag: Tag, scheme: str) -> bool:
    if scheme != "IOB1":
        return tag.prefix in (BEGIN, SINGLE)
    same = before.prefix != OUTSIDE and before.type == tag.type
    return same if tag.prefix == BEGIN else tag.prefix == INSIDE and (before.prefix != INSIDE or not same)


def _goes_on(before: Tag, tag: Tag) -> bool:
    return before.prefix in (BEGIN, INSIDE) and tag.prefix in (INSIDE, END) and before.type == tag.type


def _ends(last: Tag, after: Tag, scheme: str) -> bool:
    if scheme in ("IOBES", "BILOU"):
        return last.prefix in (END, SINGLE)
    # of IOB1 seqeval leaves out a segment of one B before a B of another type, which the scheme does not have
    return scheme == "IOB2" or not (last.prefix == BEGIN and after.prefix == BEGIN and last.type != after.type)
