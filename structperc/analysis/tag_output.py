"""Output of a tagger for columns or texts: columns, JSON lines, brat stand-off, an HTML page."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from structperc.analysis.tag_input import NEW, PREFIX, TEXT_FIELD, TOKENS_FIELD, TagInput
from structperc.data.conll import append_fields, conll_lines, header_line, header_row
from structperc.data.json_data import json_line
from structperc.data.labels import LabelSet
from structperc.data.read_options import PREDICTED
from structperc.predictor.base import Prediction, text_spans
from structperc.reports.html_pages import render, type_colours
from structperc.text import TextSpan, TokenizedText, join_words

Format = Literal["columns", "jsonl", "brat", "html"]
FORMATS = get_args(Format)
Lines = Callable[[TagInput], Iterator[str]]  # what was read -> what is written
NOTHING = "_"  # the segment's probability where there is no segment


class MarkedText(NamedTuple):
    """A text and the spans found in it, for a pair of files of brat."""

    text: str
    spans: list[TextSpan]


def marked_texts(given: TagInput, decided: Prediction, scheme: str) -> list[MarkedText]:
    """Return each document with its spans; a file of columns that marks no documents is one."""
    texts = given.texts
    if given.plan.form == "columns" and not given.plan.above.marked:
        texts = [join_words(given.corpus.sentences_of(given.corpus.columns["word"]))]
    found = zip(texts, decided.split(len(text.tokens) for text in texts), strict=True)
    return [MarkedText(text.text, text_spans(text, part, scheme)) for text, part in found]


def output_lines(given: TagInput, decided: Prediction, labels: LabelSet, form: Format) -> Iterator[str]:
    """Return lines, with their ends, that show what was decided.

    Columns: everything that was given, then probabilities where they are known (of the label, and of the segment the
    token is in, unless the scheme is "none"), last the label. For brat see `marked_texts`.
    """
    scheme = labels.scheme
    if form == "columns":
        return column_lines(given, probability_columns(decided, scheme), decided.labels)
    texts = given.texts
    found = list(zip(texts, decided.split(len(text.tokens) for text in texts), strict=True))
    spans = [text_spans(text, part, scheme) for text, part in found]
    if form == "jsonl":
        return _json_lines(given, found, spans)
    return text_page(texts, spans, Path(given.corpus.name).name, labels.type_names)


def probability_columns(decided: Prediction, scheme: str) -> dict[str, list[str]]:
    """Return probabilities as columns of N strings, by name; none where they are not known."""
    if decided.tokens is None or decided.segments is None:
        return {}
    found = {"p_label": [f"{p:.4f}" for p in decided.tokens]}
    if scheme != "none":
        found["p_segment"] = [NOTHING if math.isnan(p) else f"{p:.4f}" for p in decided.segments]
    return found


def column_lines(given: TagInput, further: Mapping[str, Sequence[str]], labels: Sequence[str]) -> Iterator[str]:
    """Yield what was given as lines of columns with further columns of N strings and N labels.

    The lines of a file of columns are otherwise kept as they are. The first block begins with a line that names the
    columns.
    """
    corpus, block = given.corpus, given.block
    if given.plan.form != "columns":
        for role, values in further.items():
            corpus = corpus.replace_column(role, values)
        if block.first == 1:
            yield f"{header_line([*corpus.columns, PREDICTED])}\n\n"
        yield from conll_lines(corpus, predicted=labels, opened=given.opened)
        return
    assert corpus.lines is not None
    fields = zip(*further.values(), labels, strict=True)
    added = dict(zip(corpus.lines.tolist(), fields, strict=True))
    lines, first, how = block.lines, block.first, given.plan.line_format
    if first == 1:
        gap = "\t" if "\t" in block.text or how.separator == "tab" else " "
        yield header_line(_new_names(given.plan.names, further), gap) + "\n"
        row = header_row(lines, how)
        if row == 1:
            lines, first = lines[1:], 2
        else:
            lines = ["" if number == row else line for number, line in enumerate(lines, 1)]
            yield "\n"
    yield from append_fields(lines, added, len(further) + 1, first, how)


def _new_names(names: Sequence[str], further: Iterable[str]) -> list[str]:
    """Names of all columns, those of predicted labels among them; several of one name are numbered from the second."""
    found = list(names)
    for name in (*further, PREDICTED):
        n = sum(re.fullmatch(rf"{name}\d*", one) is not None for one in found)
        found.append(f"{name}{n + 1}" if n else name)
    return found


def brat_lines(text: str, spans: Sequence[TextSpan], before: int = 0) -> Iterator[str]:
    """Yield the lines of a brat .ann file about a text; a span over several lines has a part for each of them.

    So many characters stand `before` the text in its file.
    """
    for number, (start, end, kind, confidence) in enumerate(spans, 1):
        parts = [part.span() for part in re.compile(r"[^\n\r]+").finditer(text, start, end)]
        where = ";".join(f"{a + before} {b + before}" for a, b in parts)
        yield f"T{number}\t{kind} {where}\t{' '.join(text[a:b] for a, b in parts)}\n"
        if confidence is not None:
            yield f"#{number}\tAnnotatorNotes T{number}\tconfidence {confidence:.4f}\n"


def _json_lines(
    given: TagInput, found: Sequence[tuple[TokenizedText, Prediction]], spans: Sequence[Sequence[TextSpan]]
) -> Iterator[str]:
    """An object for each text, with what the record of it held; fields of the same names are not replaced.

    Where names do not say so, a field `predicted` says which fields are predictions.
    """
    records = given.records or [{} for _ in found]
    for record, (text, decided), own in zip(records, found, spans, strict=True):
        prefix = given.plan.prefix if record.keys().isdisjoint(NEW) else PREFIX
        row: dict[str, Any] = {TEXT_FIELD: text.text, **record}
        if given.plan.form == "columns" or TOKENS_FIELD in record:
            row |= {TOKENS_FIELD: text.words, f"{prefix}labels": decided.labels}
            if decided.tokens is not None:
                row[f"{prefix}probabilities"] = np.round(decided.tokens, 6).tolist()
        row[f"{prefix}spans"] = [_object(span, text.text) for span in own]
        if not prefix:
            row[PREDICTED] = [name for name in NEW if name in row]
        yield json_line(row)


def _object(span: TextSpan, text: str) -> dict[str, Any]:
    sure = {} if span.confidence is None else {"confidence": round(span.confidence, 6)}
    return {"start": span.start, "end": span.end, "type": span.type, "text": text[span.start : span.end], **sure}


def text_page(
    texts: Sequence[TokenizedText], spans: Sequence[Sequence[TextSpan]], title: str, types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page of texts with their spans marked, in parts.

    Colours go by the segment types of the model, if these are given.
    """
    counts = Counter(span.type for found in spans for span in found)
    pieces = (_pieces(text.text, found) for text, found in zip(texts, spans, strict=True))
    return render("text.html", title=title, notes=(), texts=pieces, colours=type_colours(types, counts), counts=counts)


def _pieces(text: str, spans: Sequence[TextSpan]) -> Iterator[tuple[str, TextSpan | None]]:
    at = 0
    for span in spans:
        yield text[at : span.start], None
        yield text[span.start : span.end], span
        at = span.end
    yield text[at:], None
