"""Output of a saved model: columns, JSON lines, pages or texts with spans for brat, and the files it is written to."""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from structperc.data.conll import append_fields, conll_lines, header_line, header_row
from structperc.data.forbidden_spans import FORBIDDEN
from structperc.data.json_data import json_line
from structperc.data.labels import LabelSet
from structperc.data.output import check_text, open_atomic, write_lines
from structperc.data.possible_labels import POSSIBLE
from structperc.data.read_options import PREDICTED, Separator
from structperc.data.standoff import brat_lines
from structperc.data.text_files import expand_path
from structperc.errors import InputError
from structperc.predictor.base import Prediction, text_spans
from structperc.reports.html_pages import render, type_colours
from structperc.tagging.reading import NEW, PREFIX, TEXT_FIELD, TOKENS_FIELD, InputPlan, TagInput, has_tokens
from structperc.text.alignment import TextSpan, TokenizedText

Format = Literal["columns", "jsonl", "brat", "html"]
SUFFIXES = {"columns": ".conll", "jsonl": ".jsonl", "html": ".html", "brat": ".ann"}
NO_SEGMENT = "_"  # instead of a probability


class LabelledText(NamedTuple):
    """A document, its prediction and the predicted spans of its characters."""

    text: TokenizedText
    prediction: Prediction
    spans: list[TextSpan]


class TaggedBlock(NamedTuple):
    """The output for a block of the input, up to the first error in it."""

    text: str
    tokens: int
    error: InputError | None = None
    pairs: Sequence[tuple[str, list[TextSpan]]] = ()  # for brat, in place of the text: texts and their spans


def tagged_block(given: TagInput, prediction: Prediction, labels: LabelSet, form: Format) -> TaggedBlock:
    """Return the output of a prediction in a format. Raises InputError for segments that overlap on a page."""
    if prediction.spans is not None and form == "html":
        raise InputError("--format html shows no segments that overlap, which this bias finds; use jsonl or brat")
    if form == "brat":
        pairs = [(one.text.text, one.spans) for one in labelled_texts(given, prediction, labels.scheme)]
        return TaggedBlock("", given.corpus.tokens, pairs=pairs)
    return TaggedBlock("".join(output_lines(given, prediction, labels, form)), given.corpus.tokens)


def labelled_texts(given: TagInput, prediction: Prediction, scheme: str) -> list[LabelledText]:
    """Return each document with its prediction and spans; see `TagInput.texts`."""
    texts = given.texts
    found = zip(texts, prediction.split(len(text.tokens) for text in texts), strict=True)
    return [LabelledText(text, part, text_spans(text, part, scheme)) for text, part in found]


def output_lines(given: TagInput, prediction: Prediction, labels: LabelSet, form: Format) -> Iterator[str]:
    """Return the lines of a prediction, with their ends.

    Columns: those of the input, then probabilities if there are any (of the label, and of the segment of the token,
    unless the scheme is "none"), last the label.
    """
    if form == "columns":
        columns = {}
        if prediction.tokens is not None and prediction.segments is not None:
            columns["p_label"] = [f"{p:.4f}" for p in prediction.tokens]
            if labels.scheme != "none":
                columns["p_segment"] = [NO_SEGMENT if math.isnan(p) else f"{p:.4f}" for p in prediction.segments]
        return column_lines(given, columns, prediction.labels, labels.names)
    found = labelled_texts(given, prediction, labels.scheme)
    if form == "jsonl":
        return _json_lines(given, found)
    return text_page([(one.text.text, one.spans) for one in found], Path(given.corpus.name).name, labels.type_names)


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
        separator: Separator = "tab" if any(" " in name for name in known) else "whitespace"
        whole, named = replace(corpus, columns={**shown, **further}), block.first == 1
        yield from conll_lines(whole, predicted=labels, opened=given.opened, separator=separator, named=named)
        return
    assert corpus.lines is not None
    fields = zip(*further.values(), labels, strict=True)
    added = dict(zip(corpus.lines.tolist(), fields, strict=True))
    lines, first, how = block.lines, block.first, given.plan.line_format
    if first == 1:
        gap = "\t" if "\t" in block.text or how.separator == "tab" else " "
        yield header_line(_new_names(given.plan.columns.names, further), gap) + "\n"
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


def _json_lines(given: TagInput, found: Sequence[LabelledText]) -> Iterator[str]:
    """Yield a JSON object for each text, with the fields of its record, which are not replaced.

    Without a prefix, the names of the predicted fields are in the field `predicted`.
    """
    for record, (text, prediction, spans) in zip(given.records or [{} for _ in found], found, strict=True):
        prefix = given.plan.prefix if record.keys().isdisjoint(NEW) else PREFIX
        row: dict[str, Any] = {TEXT_FIELD: text.text, **record}
        if given.plan.form == "columns" or has_tokens(record):
            row |= {TOKENS_FIELD: text.words, f"{prefix}labels": prediction.labels}
            if prediction.tokens is not None:
                row[f"{prefix}probabilities"] = np.round(prediction.tokens, 6).tolist()
        if prediction.probability is not None:
            row[f"{prefix}probability"] = round(prediction.probability, 6)
        row[f"{prefix}spans"] = objects = [one.to_json(text.text) for one in spans]
        for one, span in zip(objects, spans, strict=True):
            if span.confidence is not None:
                one["confidence"] = round(span.confidence, 6)
            if prediction.spans is not None:
                one["best"] = span.best
        if not prefix:
            row[PREDICTED] = [name for name in NEW if name in row]
        yield json_line(row)


def text_page(texts: Sequence[tuple[str, Sequence[TextSpan]]], title: str, types: Sequence[str] = ()) -> Iterator[str]:
    """Yield an HTML page of texts with their spans in parts.

    Spans have the colours of their types among those of the model, if these are given.
    """
    counts = Counter(span.type for _, spans in texts for span in spans)
    pieces = (_pieces(text, spans) for text, spans in texts)
    return render("text.html", title=title, notes=(), texts=pieces, colours=type_colours(types, counts), counts=counts)


def _pieces(text: str, spans: Sequence[TextSpan]) -> Iterator[tuple[str, TextSpan | None]]:
    at = 0
    for span in spans:
        yield text[at : span.start], None
        yield text[span.start : span.end], span
        at = span.end
    yield text[at:], None


# -- files --------------------------------------------------------------------------------------------------------

WriteBlock = Callable[[TaggedBlock], None]


@contextmanager
def open_output(output: str | Path | None, plan: InputPlan) -> Iterator[WriteBlock]:
    """Yield a function that writes blocks into one file, or to standard output, and flushes.

    Raises InputError for brat output of a file that may contain several texts.
    """
    if plan.output_format == "brat" and plan.form != "text":
        raise InputError("brat needs a pair of files for each text of the input; set -o FOLDER/")

    def text_of(block: TaggedBlock) -> str:
        text = block.text + "".join(line for pair in block.pairs for line in brat_lines(*pair, plan.mark))
        return check_text(text, "standard output" if output is None else output)

    if output is None:
        yield lambda block: print(text_of(block), end="", flush=True)
        return
    with open_atomic(output) as file:

        def write(block: TaggedBlock) -> None:
            file.write(text_of(block).encode("utf-8", "surrogateescape"))
            file.flush()

        yield write


@contextmanager
def open_pairs(file: str, target: Path, written: dict[Path, str], plan: InputPlan) -> Iterator[WriteBlock]:
    """Yield a function that writes blocks as pairs of files of brat: `target`, or numbered ones for several documents.

    Args:
        file: the input; a text beside its pair is not written again.
        target: path of the spans.
        written: the input of each path that was written before, which grows.
        plan: plan of the input.
    """
    numbers = count(1)

    def write(block: TaggedBlock) -> None:
        for text, spans in block.pairs:
            path = target if plan.single else target.with_stem(f"{target.stem}-{next(numbers)}")
            in_place = _is_same(path.with_suffix(".txt"), file)
            if in_place and plan.form != "text":
                raise _overwriting(file)
            if written.setdefault(path, file) != file:
                raise InputError(f"{file}: {path} is the output of {written[path]}; rename one")
            if not in_place:
                write_lines(path.with_suffix(".txt"), [text])
            write_lines(path, brat_lines(text, spans, plan.mark if in_place else 0))

    yield write


def output_targets(files: Sequence[str], folder: Path, form: str | None) -> dict[Path, str]:
    """Return the path of the output of each file, and of those in folders, within a folder.

    Raises InputError for standard input, a folder without files, two files with the same output, and a file that is its
    own.
    """
    found: dict[Path, str] = {}
    for path, below in _inputs(files, folder):
        plain = below.with_suffix("") if below.suffix == ".gz" else below
        target = folder / (plain if form is None else plain.with_suffix(SUFFIXES[form]))
        if target in found:
            raise InputError(f"{path} and {found[target]} would both be written to {target}; rename one")
        if _is_same(target, path):
            raise _overwriting(path)
        found[target] = str(path)
    return found


def _inputs(files: Sequence[str], folder: Path) -> Iterable[tuple[Path, Path]]:
    """Yield files with their paths below the given folders; hidden ones and those of brat are skipped."""
    for name in files:
        path = expand_path(name)
        if name == "-":
            raise InputError("standard input has no file name; tag it in a separate run with -o FILE")
        if not path.is_dir():
            yield path, Path(path.name)
            continue
        inside = [one for one in sorted(path.rglob("*")) if one.is_file() and one.suffix != SUFFIXES["brat"]]
        inside = [one for one in inside if not any(part.startswith(".") for part in one.relative_to(path).parts)]
        found = [one for one in inside if _is_same(folder, path) or folder.resolve() not in one.resolve().parents]
        if not found:
            raise InputError(f"{path}: no files to label in this folder")
        yield from ((one, one.relative_to(path)) for one in found)


def _is_same(one: Path, other: str | Path) -> bool:
    return one.exists() and os.path.exists(other) and os.path.samefile(one, other)


def _overwriting(file: str | Path) -> InputError:
    return InputError(f"{file}: the output would overwrite the input file; set -o to another folder")
