"""Output of a tagger for columns or texts: columns, JSON lines, texts with spans for brat, an HTML page."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from structperc.analysis.tag_input import NEW, PREFIX, TEXT_FIELD, TOKENS_FIELD, TagInput, has_tokens
from structperc.data.conll import append_fields, conll_lines, field_gap, header_line, header_row
from structperc.data.forbidden_spans import FORBIDDEN
from structperc.data.json_data import json_line
from structperc.data.labels import LabelSet
from structperc.data.possible_labels import POSSIBLE
from structperc.data.read_options import PREDICTED, Separator
from structperc.predictor.base import Prediction, text_spans
from structperc.reports.html_pages import render, type_colours
from structperc.text import TextSpan, TokenizedText, join_words

Format = Literal["columns", "jsonl", "brat", "html"]
NO_SEGMENT = "_"  # instead of a probability


class MarkedText(NamedTuple):
    """A text and its predicted spans, for a pair of files of brat."""

    text: str
    spans: list[TextSpan]


def marked_texts(given: TagInput, prediction: Prediction, scheme: str) -> list[MarkedText]:
    """Return each document with its spans; columns without document boundaries are one document."""
    texts = given.texts
    if given.plan.form == "columns" and not given.plan.above.marked:
        texts = [join_words(given.corpus.sentences_of(given.corpus.columns["word"]))]
    found = zip(texts, prediction.split(len(text.tokens) for text in texts), strict=True)
    return [MarkedText(text.text, text_spans(text, part, scheme)) for text, part in found]


def output_lines(given: TagInput, prediction: Prediction, labels: LabelSet, form: Format) -> Iterator[str]:
    """Return the lines of a prediction, with their ends.

    Columns: those of the input, then probabilities if there are any (of the label, and of the segment of the token,
    unless the scheme is "none"), last the label. For brat see `marked_texts`.
    """
    scheme = labels.scheme
    if form == "columns":
        columns = {}
        if prediction.tokens is not None and prediction.segments is not None:
            columns["p_label"] = [f"{p:.4f}" for p in prediction.tokens]
            if scheme != "none":
                columns["p_segment"] = [NO_SEGMENT if math.isnan(p) else f"{p:.4f}" for p in prediction.segments]
        return column_lines(given, columns, prediction.labels, labels.names)
    texts = given.texts
    found = list(zip(texts, prediction.split(len(text.tokens) for text in texts), strict=True))
    spans = [text_spans(text, part, scheme) for text, part in found]
    if form == "jsonl":
        return _json_lines(given, found, spans)
    return text_page(texts, spans, Path(given.corpus.name).name, labels.type_names)


def column_lines(
    given: TagInput, further: Mapping[str, Sequence[str]], labels: Sequence[str], known: Sequence[str]
) -> Iterator[str]:
    """Yield the input as lines of columns, with further columns of N strings and N labels.

    Lines of columns are otherwise unchanged. Columns of texts are separated by tabs if one of the `known` labels of the
    tagger has a space. The first block begins with a line that names the columns.
    """
    corpus, block = given.corpus, given.block
    if given.plan.form != "columns":
        shown = {role: own for role, own in corpus.columns.items() if role not in (POSSIBLE, FORBIDDEN)}
        corpus = replace(corpus, columns=shown)
        for role, values in further.items():
            corpus = corpus.replace_column(role, values)
        separator: Separator = "tab" if any(" " in name for name in known) else "whitespace"
        if block.first == 1:
            yield f"{header_line([*corpus.columns, PREDICTED], field_gap(separator))}\n\n"
        yield from conll_lines(corpus, predicted=labels, opened=given.opened, separator=separator)
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
    """Return the names of all columns with predicted labels; equal names are numbered from the second."""
    found = list(names)
    for name in (*further, PREDICTED):
        n = sum(re.fullmatch(rf"{name}\d*", one) is not None for one in found)
        found.append(f"{name}{n + 1}" if n else name)
    return found


def _json_lines(
    given: TagInput, found: Sequence[tuple[TokenizedText, Prediction]], spans: Sequence[Sequence[TextSpan]]
) -> Iterator[str]:
    """Yield a JSON object for each text, with the fields of its record, which are not replaced.

    Without a prefix, the names of the predicted fields are in the field `predicted`.
    """
    records = given.records or [{} for _ in found]
    for record, (text, prediction), own in zip(records, found, spans, strict=True):
        prefix = given.plan.prefix if record.keys().isdisjoint(NEW) else PREFIX
        row: dict[str, Any] = {TEXT_FIELD: text.text, **record}
        if given.plan.form == "columns" or has_tokens(record):
            row |= {TOKENS_FIELD: text.words, f"{prefix}labels": prediction.labels}
            if prediction.tokens is not None:
                row[f"{prefix}probabilities"] = np.round(prediction.tokens, 6).tolist()
        if prediction.probability is not None:
            row[f"{prefix}probability"] = round(prediction.probability, 6)
        row[f"{prefix}spans"] = objects = []
        for one in own:
            words = text.text[one.start : one.end]
            objects.append({"start": one.start, "end": one.end, "type": one.type, "text": words})
            if one.confidence is not None:
                objects[-1]["confidence"] = round(one.confidence, 6)
            if prediction.spans is not None:
                objects[-1]["best"] = one.best
        if not prefix:
            row[PREDICTED] = [name for name in NEW if name in row]
        yield json_line(row)


def text_page(
    texts: Sequence[TokenizedText], spans: Sequence[Sequence[TextSpan]], title: str, types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page of texts with their spans in parts.

    Spans have the colours of their types among those of the model, if these are given.
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
