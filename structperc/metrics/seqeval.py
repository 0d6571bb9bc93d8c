"""Scores of segments from label names, like those of seqeval: numbers, dictionaries and a report.

As in seqeval and scikit-learn, gold labels come first: (y_true, y_pred). The default mode reads segments by the rule of
conlleval; the strict mode counts only segments written as their scheme requires (Nakayama 2018,
https://github.com/chakki-works/seqeval).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from structperc.data.tag_schemes import (
    BEGIN,
    END,
    INSIDE,
    OUTSIDE,
    OUTSIDE_TAG,
    PREFIX_SCHEMES,
    SEGMENT_SCHEMES,
    SINGLE,
    Span,
    Tag,
    parse_tag,
    spans,
    starts_segment,
)
from structperc.errors import InputError
from structperc.metrics.f_measure import Average, SegmentScore, SegmentScores
from structperc.spelling import counted

LabelLists = Iterable[Sequence[str]]  # label names, sentence by sentence
Mode = Literal["strict"] | None


def seqeval_scores(
    y_true: LabelLists, y_pred: LabelLists, *, scheme: str | None = None, mode: Mode = None
) -> dict[str, Any]:
    """Return the dictionary of `evaluate.load("seqeval").compute` for label names.

    Types are those of gold and predicted segments in alphabetical order; labels without a type, such as "B", have the
    type "_". A score without a denominator is 0.0, without a warning. Returns {type: {precision, recall, f1, number},
    ..., overall_precision, overall_recall, overall_f1, overall_accuracy}; numbers are those of gold segments.

    Args:
        y_true: gold labels, sentence by sentence.
        y_pred: predicted labels, sentence by sentence.
        scheme: IOB1, IOB2, IOBES, BILOU or IO; by default any with prefixes, which the strict mode does not allow.
        mode: None for the rule of conlleval, or "strict".

    Raises:
        InputError: arguments that are not lists of sentences, lists of different lengths, or labels that do not belong
            to the scheme.
    """
    counts = _counts(y_true, y_pred, scheme, mode)
    return {
        **{kind: {**_shares(score), "number": score.gold} for kind, score in counts.types.items()},
        **{f"overall_{name}": share for name, share in _shares(counts.total).items()},
        "overall_accuracy": counts.correct_tokens / max(counts.tokens, 1),
    }


def segment_precision_score(
    y_true: LabelLists, y_pred: LabelLists, *, average: Average = "micro", scheme: str | None = None, mode: Mode = None
) -> float:
    """Return the precision of segments as one number in 0..1: correct / predicted segments.

    Arguments and errors are those of `segment_f1_score`.
    """
    return _averaged(_counts(y_true, y_pred, scheme, mode), average)["precision"]


def segment_recall_score(
    y_true: LabelLists, y_pred: LabelLists, *, average: Average = "micro", scheme: str | None = None, mode: Mode = None
) -> float:
    """Return the recall of segments as one number in 0..1: correct / gold segments.

    Arguments and errors are those of `segment_f1_score`.
    """
    return _averaged(_counts(y_true, y_pred, scheme, mode), average)["recall"]


def segment_f1_score(
    y_true: LabelLists, y_pred: LabelLists, *, average: Average = "micro", scheme: str | None = None, mode: Mode = None
) -> float:
    """Return the F1 of segments as one number in 0..1, for instance for `sklearn.metrics.make_scorer`.

    It equals `seqeval.metrics.f1_score`; without segments it is 0.0, without a warning. Other arguments and errors are
    those of `seqeval_scores`. `average`: average over types. "micro": F1 of the summed counts; "macro": the mean over
    types; "weighted": the mean over types, weighted by gold segments.

    Raises:
        InputError: an unknown average.
    """
    return _averaged(_counts(y_true, y_pred, scheme, mode), average)["f1"]


def classification_report(
    y_true: LabelLists,
    y_pred: LabelLists,
    *,
    digits: int = 2,
    output_dict: bool = False,
    scheme: str | None = None,
    mode: Mode = None,
) -> str | dict[str, Any]:
    """Return the report of `seqeval.metrics`: precision, recall and F1 of segments by type and on average.

    Other arguments and errors are those of `seqeval_scores`. `digits`: number of decimal places. `output_dict`: return
    a dictionary {row: {precision, recall, f1-score, support}} instead of text.

    Example:
        >>> from structperc.metrics import classification_report
        >>> print(classification_report([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]]))
                      precision    recall  f1-score   support
        <BLANKLINE>
                 LOC       0.00      0.00      0.00         1
                 PER       1.00      1.00      1.00         1
        <BLANKLINE>
           micro avg       1.00      0.50      0.67         2
           macro avg       0.50      0.50      0.50         2
        weighted avg       0.50      0.50      0.50         2
        <BLANKLINE>
    """
    counts = _counts(y_true, y_pred, scheme, mode)
    types = {kind: _row(_shares(score), score.gold) for kind, score in counts.types.items()}
    averages = {f"{name} avg": _row(_averaged(counts, name), counts.total.gold) for name in get_args(Average)}
    return {**types, **averages} if output_dict else _report(types, averages, digits)


def _row(shares: dict[str, float], support: int) -> dict[str, Any]:
    return {"precision": shares["precision"], "recall": shares["recall"], "f1-score": shares["f1"], "support": support}


def _report(types: dict[str, dict[str, Any]], averages: dict[str, dict[str, Any]], digits: int) -> str:
    width = max([digits, *map(len, (*types, *averages))])
    heads = ("precision", "recall", "f1-score", "support")
    lines = [f"{'':>{width}} " + "".join(f" {head:>9}" for head in heads)]
    for rows in (types, averages):
        lines.append("")
        for name, row in rows.items():
            *shares, support = row.values()
            lines.append(f"{name:>{width}} " + "".join(f" {x:>9.{digits}f}" for x in shares) + f" {support:>9}")
    return "\n".join([*lines, ""])


# -- counts ---------------------------------------------------------------------------------------------------


def _counts(y_true: LabelLists, y_pred: LabelLists, scheme: str | None, mode: Mode) -> SegmentScores:
    if mode not in (None, "strict"):
        raise InputError(f"mode must be None or 'strict', got {mode!r}")
    if scheme is not None and scheme not in SEGMENT_SCHEMES:
        raise InputError(f"scheme must be one of {', '.join(SEGMENT_SCHEMES)}, got {scheme!r}")
    if mode == "strict" and scheme is None:
        raise InputError(f"mode strict needs a scheme: {', '.join(SEGMENT_SCHEMES)}")
    gold, predicted = label_sequences(y_true, "y_true"), label_sequences(y_pred, "y_pred")
    check_same_lengths(gold, predicted, ("y_true", "y_pred"))
    correct, found, wanted = Counter[str](), Counter[str](), Counter[str]()
    right = 0
    for n, (own, other) in enumerate(zip(gold, predicted, strict=True), 1):
        there = set(read_segments(own, scheme, mode, f"y_true, sentence {n}"))
        here = set(read_segments(other, scheme, mode, f"y_pred, sentence {n}"))
        for count, segments in ((correct, here & there), (found, here), (wanted, there)):
            count.update(span.type or "_" for span in segments)
        right += sum(a == b for a, b in zip(own, other, strict=True))
    types = {kind: SegmentScore(correct[kind], found[kind], wanted[kind]) for kind in sorted(found | wanted)}
    return SegmentScores(types, 0, sum(map(len, gold)), right)


def _shares(score: SegmentScore) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1}


def _averaged(counts: SegmentScores, average: str) -> dict[str, float]:
    if average not in get_args(Average):
        raise InputError(f"average must be micro, macro or weighted, got {average!r}")
    total = _shares(counts.total)
    if average == "micro":
        return total
    weights = [score.gold if average == "weighted" else 1 for score in counts.types.values()]
    rows = [_shares(score) for score in counts.types.values()]
    whole = max(sum(weights), 1)
    return {name: sum(w * row[name] for w, row in zip(weights, rows, strict=True)) / whole for name in total}


def read_segments(labels: Sequence[str], scheme: str | None, mode: Mode, place: str) -> list[Span]:
    """Return the segments of a sentence. Raises InputError, which begins with `place`, for labels of another scheme."""
    for label in dict.fromkeys(labels):
        try:
            parse_tag(label, scheme)
        except InputError:
            where, schemes = f"{place}, token {labels.index(label) + 1}", scheme or ", ".join(PREFIX_SCHEMES)
            raise InputError(f"{where}: label {label!r} is not of scheme {schemes}; {_advice(label)}") from None
    return spans(labels, scheme) if scheme is None or mode is None else list(strict_spans(labels, scheme))


def _advice(label: str) -> str:
    """Return advice on a label that belongs to no segment scheme."""
    first, _, rest = label.partition("-")
    kind, _, last = label.rpartition("-")
    meant = ("O" if label in ("o", "0") else "", f"{first.upper()}-{rest}", f"{last.upper()}-{kind}")
    if right := [one for one in meant if _is_tag(one)]:
        return f"write {right[0]!r}"
    io = "set scheme='IO' if neighbours with one label are a segment; "
    return f"{io}labels that are not segments are scored token by token, see sklearn.metrics"


def _is_tag(label: str) -> bool:
    try:
        return bool(parse_tag(label))
    except InputError:
        return False


def strict_spans(labels: Sequence[str], scheme: str) -> Iterator[Span]:
    """Yield the segments of a sentence that follow the rules of the scheme; other labels count as outside.

    `labels`: label names of the sentence. `scheme`: IOB1, IOB2, IOBES, BILOU or IO.

    Raises:
        InputError: a label that does not belong to the scheme.
    """
    tags = [OUTSIDE_TAG, *(parse_tag(label, scheme) for label in labels), OUTSIDE_TAG]
    t = 1
    while t < len(tags) - 1:
        start = t
        t += 1
        if not _begins(tags[start - 1], tags[start], scheme):
            continue
        while _continues(tags[t - 1], tags[t]):
            t += 1
        if _ends(tags[t - 1], tags[t], scheme):
            yield Span(tags[start].type or "", start - 1, t - 1)


def _begins(before: Tag, tag: Tag, scheme: str) -> bool:
    if scheme == "IO":
        return starts_segment(before, tag)
    if scheme != "IOB1":
        return tag.prefix in (BEGIN, SINGLE)
    same = before.prefix != OUTSIDE and before.type == tag.type
    return same if tag.prefix == BEGIN else tag.prefix == INSIDE and (before.prefix != INSIDE or not same)


def _continues(before: Tag, tag: Tag) -> bool:
    return before.prefix in (BEGIN, INSIDE) and tag.prefix in (INSIDE, END) and before.type == tag.type


def _ends(last: Tag, after: Tag, scheme: str) -> bool:
    if scheme in ("IOBES", "BILOU"):
        return last.prefix in (END, SINGLE)
    # in IOB1, seqeval omits a segment of a single B before a B of another type, which the scheme does not allow
    return scheme == "IOB2" or not (last.prefix == BEGIN and after.prefix == BEGIN and last.type != after.type)


# -- label names ----------------------------------------------------------------------------------------------


def label_sequences(value: Iterable[Any], name: str) -> list[list[str]]:
    """Return sentences of labels as lists of strings.

    `value`: a list, tuple, array or other iterable of sentences, each of them a sequence of label names. `name`: name
    of the argument for messages. Raises InputError: no list, a single sentence, or a label that is not a string;
    messages count from 1.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name} is a list of sentences, each a list of labels, not {value!r:.40}")
    given = list(value)
    if given and not any(is_sequence(one) for one in given):
        raise InputError(f"{name} holds the labels of one sentence; give a list of sentences: [{name}]")
    return [_check_sentence(one, f"{name}, sentence {n}") for n, one in enumerate(given, 1)]


def is_sequence(value: object) -> bool:
    """Return True for sequences such as lists, arrays and series, but not for strings and mappings."""
    listed = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return listed and not isinstance(value, str | bytes | Mapping)


def check_same_lengths(
    expected: Sequence[Sequence[str]], given: Sequence[Sequence[str]], names: tuple[str, str]
) -> None:
    """Raise InputError unless both, called `names`, have equally many sentences of equal lengths."""
    one, other = names
    if len(expected) != len(given):
        raise InputError(
            f"{one} has {counted(len(expected), 'sentence')}, {other} has {len(given)}; give the same text"
        )
    for n, (a, b) in enumerate(zip(expected, given, strict=True), 1):
        if len(a) != len(b):
            raise InputError(
                f"sentence {n}: {one} has {counted(len(a), 'label')}, {other} has {len(b)}; give one for each token"
            )


def _check_sentence(labels: Any, place: str) -> list[str]:
    if not is_sequence(labels):
        raise InputError(f"{place}: the labels of a sentence are a list of strings, not {labels!r:.40}")
    for t, label in enumerate(labels, 1):
        if not isinstance(label, str) or not label:
            raise InputError(f"{place}, token {t}: expected a string, got {label!r:.40}; write the name of the label")
    return list(map(str, labels))
