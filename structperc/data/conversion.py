"""Annotated documents: read from labelled files of any format, and written in the formats of annotation tools."""

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from structperc.data.annotations import SpanReport, TextOptions, align_texts
from structperc.data.conll import conll_lines
from structperc.data.corpus import Corpus
from structperc.data.json_data import json_line
from structperc.data.output import check_output_path, make_folder, write_lines
from structperc.data.read_options import DEFAULT_READING, PREDICTED, ReadOptions
from structperc.data.standoff import STANDOFF, brat_lines
from structperc.data.survey import Survey, inspect_file
from structperc.data.table_files import COMPLETE, NOT, SPANS, TEXT, TableSurvey
from structperc.data.tag_schemes import Span, encode_spans, spans
from structperc.errors import InputError
from structperc.text.alignment import SpanConflict, TextSpan, TokenizedText, join_words, token_ranges

ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"  # layers of INCEpTION
TOKEN, SENTENCE = (f"de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.{name}" for name in ("Token", "Sentence"))
ANNOTATION, STRING = "uima.tcas.Annotation", "uima.cas.String"
_RESERVED = re.compile(r"->|[\\\[\]|_;*\t\n\r]")
_CONTROLS = re.compile(r"[\\\t\r]")
_CONTROL = {"\t": "t", "\n": "n", "\r": "r"}
_REFUSED = "refused"

logger = logging.getLogger("pytorch_lightning.structperc")


class AnnotatedDocument(NamedTuple):
    """A text with its tokens, sentences and spans."""

    name: str  # of its file in formats with a file for each document; may contain folders
    text: TokenizedText
    spans: Sequence[TextSpan] | None  # of whole tokens, but for invisible characters; None: not annotated
    predicted: bool = False  # True: by a model, to be corrected

    @property
    def labels(self) -> list[str]:
        """The label of each token in the scheme IOB2."""
        segments = [Span(span.type, *place) for span, place in self.token_spans()]
        return encode_spans(segments, len(self.text.tokens), "IOB2")

    def token_spans(self) -> list[tuple[TextSpan, tuple[int, int]]]:
        """Return each span with its first token and the one after the last. Raises InputError for parts of tokens."""
        placed = []
        for span, place in zip(self.spans or (), token_ranges(self.text, self.spans or ()), strict=True):
            if place is None:
                words = self.text.text[span.start : span.end]
                raise InputError(f"document {self.name}: span {span.start}..{span.end} {words!r:.60} cuts a token")
            placed.append((span, place))
        return placed


# -- reading --------------------------------------------------------------------------------------------------


def read_annotated(file: str, reading: ReadOptions = DEFAULT_READING, **text_options: Any) -> list[AnnotatedDocument]:
    """Read a labelled file or folder of any format as documents with spans of whole tokens.

    The format, columns, tag scheme, unit of offsets and tokenizer are detected, as `structperc check` does. Spans keep
    the offsets that they have in the text, also if these leave out invisible characters of a token. Spans that do not
    fit the tokens, overlapping spans and spans over several sentences are logged one by one. Rows of tables and
    documents of column files are documents; without marks of documents each sentence is one, or with the unit
    "document" the file. Predictions of `structperc tag` are read if there are no other labels.

    Args:
        file: Columns, CoNLL-U, a table, or documents of an annotation tool.
        text_options: Options for running text: `misaligned`, `overlaps`, `tokens`, `sentences` and `offsets`, see
            `Table`.

    Raises:
        InputError: An invalid file; a file without labels; spans that the options do not resolve; incomplete labels.

    Example:
        >>> _ = Path("a.jsonl").write_text('{"text": "Anna left.", "label": [[0, 3, "PER"]]}\\n')
        >>> (document,) = read_annotated("a.jsonl", misaligned="expand")
        >>> document.spans[0][:3], document.labels
        ((0, 4, 'PER'), ['B-PER', 'O', 'O'])
    """
    survey = inspect_file(file, reading)
    if survey.sets or (survey.table is not None and {COMPLETE, NOT} & survey.table.reader.columns.keys()):
        raise InputError(f"{file}: incomplete labels cannot be written as spans; complete them, or leave out this file")
    if survey.table is not None and TEXT in survey.table.reader.columns:
        return _text_documents(survey, text_options)
    if text_options.keys() - {"misaligned", "overlaps"}:
        raise InputError(f"{file}: {', '.join(text_options)} are options for running text, but this file has tokens")
    predicted = not survey.labelled and PREDICTED in survey.roles
    if survey.table is not None:
        predicted = _is_predicted(survey.table, "label")
    elif predicted:
        roles = ["label" if role == PREDICTED else role for role in survey.roles]
        survey = inspect_file(file, reading._replace(columns=roles))
    if not survey.labelled or survey.scheme == "none":
        raise InputError(f"{file}: no labels of segments; name their column 'label' in --columns")
    if survey.inner:
        logger.warning("%s: %d segments not read: they are inside of others", file, survey.inner)
    if survey.illegal:
        logger.warning("%s: repaired %d illegal labels; structperc check shows them", file, len(survey.illegal))
    return list(_column_documents(survey, predicted, reading.unit == "document"))


def _column_documents(found: Survey, predicted: bool, whole: bool) -> Iterator[AnnotatedDocument]:
    """Yield the marked documents; without marks the sentences, or one document if `whole`."""
    corpus = found.corpus
    words, labels = corpus.sentences_of(corpus.columns["word"]), corpus.sentences_of(found.repaired)
    numbers = corpus.documents.tolist()
    if whole and numbers[-1] == len(words) - 1:
        numbers = [0] * len(words)
    names = _numbered(found.file, numbers[-1] + 1)
    sentences = zip(numbers, words, labels, strict=True)
    for name, (_, group) in zip(names, groupby(sentences, lambda one: one[0]), strict=True):
        of_document = list(group)
        text = join_words([words for _, words, _ in of_document])
        marks = []
        for first, (_, _, given) in zip(text.sentences, of_document, strict=False):
            for kind, a, b in spans(given, found.scheme):
                marks.append(TextSpan(text.tokens[first + a][0], text.tokens[first + b - 1][1], kind))
        yield AnnotatedDocument(name, text, marks, predicted)


def _is_predicted(table: TableSurvey, role: str) -> bool:
    """Return True if the column of a role has predictions, see the output of `structperc tag`."""
    column = table.reader.columns.get(role, "")
    return column.startswith(f"{PREDICTED}_") or (
        PREDICTED in table.others and f"{PREDICTED}_{column}" not in table.others
    )


def _text_documents(found: Survey, options: dict[str, Any]) -> list[AnnotatedDocument]:
    assert found.table is not None
    report = found.table.spans
    assert report is not None
    text_options = report.text_options._replace(**{"misaligned": "refuse", "overlaps": "refuse", **options})
    text_options.check()
    aligned = align_texts(report.texts, text_options, found.file, _log_conflicts)
    others = [name for name in found.table.others if not name.startswith(PREDICTED)]
    if others:
        logger.info("%s: fields that are not converted: %s", found.file, ", ".join(others))
    predicted = _is_predicted(found.table, SPANS)
    if found.table.kind in STANDOFF:
        names = [_document_name(Path(annotated.place), Path(found.file)) for annotated in report.texts]
    else:
        names = _numbered(found.file, len(report.texts))
    documents = []
    for name, given, (text, marks, sources) in zip(names, report.texts, aligned, strict=True):
        places = zip(token_ranges(text, sources), sources, strict=True)
        exact = {(*place, source.type): source for place, source in places if place is not None}
        whole = [(a, b, TextSpan(text.tokens[a][0], text.tokens[b - 1][1], kind)) for a, b, kind in marks]
        document_spans = [exact.get((a, b, span.type), span) for a, b, span in whole]
        documents.append(AnnotatedDocument(name, text, None if given.spans is None else document_spans, predicted))
    return documents


def _log_conflicts(report: SpanReport) -> None:
    """Log each conflict with its treatment, and their numbers. Raises InputError for conflicts without a treatment."""
    effects = Counter[str]()
    report.log_remarks()
    for place, conflict in report.conflicts:
        effect = _effect(conflict, report.text_options)
        logger.warning("%s: %s; %s", Path(place).name, conflict.message, effect)
        effects[effect] += 1
    for place in report.merged:
        logger.info("%s: joined the sentences that a span crosses", Path(place).name)
    misfits = f"{report.name}: {len(report.conflicts):,} of {report.total:,} spans do not fit the tokens"
    if _REFUSED in effects:
        advice = "set --misaligned expand or drop, or --overlaps longest or first, or correct them"
        raise InputError(f"{misfits}; {advice}")
    if effects:
        logger.warning("%s: %s", misfits, ", ".join(f"{effect} {count:,}" for effect, count in effects.items()))


def _effect(conflict: SpanConflict, options: TextOptions) -> str:
    """Return what was done with a span."""
    given = options.misaligned if conflict.misaligned else options.overlaps
    if given == "refuse":
        return _REFUSED
    if not conflict.misaligned:
        return f"kept the {given}"
    if conflict.dropped:
        return "dropped"
    return "trimmed to whole tokens" if conflict.kind == "white space at an edge" else "expanded to whole tokens"


def _numbered(file: str, count: int) -> list[str]:
    stem = Path(file.removesuffix(".gz")).stem
    return [stem] if count == 1 else [f"{stem}-{n:0{len(str(count))}}" for n in range(1, count + 1)]


def _document_name(place: Path, source: Path) -> str:
    return str((place.relative_to(source) if source.is_dir() else Path(place.name)).with_suffix(""))


# -- writing --------------------------------------------------------------------------------------------------


def write_annotated(path: str | Path, documents: Sequence[AnnotatedDocument], form: str) -> None:
    """Write documents in the format of an annotation tool.

    Formats with a file for each document ("brat", "webanno", "cas-json") fill a folder, the others are one file.
    Spans of predicted documents are pre-annotations: `predictions` of Label Studio, and rows of Prodigy without
    `answer`.

    Args:
        path: The file or folder.
        form: One of `FORMATS`: "jsonl", "doccano", "prodigy", "label-studio", "conll2002", "conll2003", "brat",
            "webanno" (WebAnno TSV 3.3) or "cas-json" (UIMA CAS JSON), the last four for INCEpTION.

    Raises:
        InputError: An unknown format; two documents of the same name; a type that the format cannot hold; a file that
            cannot be written.
    """
    if form not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, not {form!r}")
    _check_types(path, documents, form)
    if form in (*COLUMN_FORMATS, "webanno"):
        _report_edges(path, documents)
    if form in COLUMN_FORMATS:
        write_lines(path, COLUMN_FORMATS[form](documents))
        if empty := sum(not document.text.tokens for document in documents):
            logger.warning("%s: left out documents without words: %d", path, empty)
    elif form in ROW_FORMATS:
        rows = map(ROW_FORMATS[form], documents)
        lines = map(json_line, rows)
        write_lines(path, lines if form != "label-studio" else _array(lines))
    else:
        _write_files(Path(path), documents, form)


def _check_types(path: str | Path, documents: Iterable[AnnotatedDocument], form: str) -> None:
    """Raise InputError for a type with a character that the format uses between fields."""
    separators = " |" if form in COLUMN_FORMATS else " " if form == "brat" else ""
    for document in documents:
        for kind in (span.type for span in document.spans or ()):
            if any(char in kind for char in separators):
                reason = f"the type {kind!r} in document {document.name} has a space or |, which {form} cannot hold"
                raise InputError(f"{path}: {reason}; rename the type, or choose another format")


def _report_edges(path: str | Path, documents: Iterable[AnnotatedDocument]) -> None:
    """Log each span without some invisible characters of its tokens, for formats that hold whole tokens."""
    for document in documents:
        for span, (a, b) in document.token_spans():
            start, end = document.text.tokens[a][0], document.text.tokens[b - 1][1]
            if (start, end) != span[:2]:
                reason = "invisible characters at its edges are part of its words in this format"
                moved = f"span {span.start}..{span.end} becomes {start}..{end}"
                logger.warning("%s: document %s: %s, since %s", path, document.name, moved, reason)


def _array(lines: Iterator[str]) -> Iterator[str]:
    yield "["
    for number, line in enumerate(lines):
        yield f"{',' if number else ''}\n{line.rstrip()}"
    yield "\n]\n"


def _write_files(folder: Path, documents: Sequence[AnnotatedDocument], form: str) -> None:
    suffix, lines = FILE_FORMATS[form]
    targets = [folder / f"{document.name}{suffix}" for document in documents]
    if len(set(targets)) < len(targets):
        double = Counter(targets).most_common(1)[0][0]
        raise InputError(f"{double}: two documents have this name; rename one")
    for target, document in zip(targets, documents, strict=True):
        make_folder(target.parent)
        check_output_path(target)
        if form == "brat":
            write_lines(target.with_suffix(".txt"), [document.text.text])
        write_lines(target, lines(document))


def _span_row(one: TextSpan) -> dict[str, Any]:
    row = {"start": one.start, "end": one.end, "label": one.type}
    return row if one.confidence is None else {**row, "confidence": one.confidence}


def _json_row(document: AnnotatedDocument) -> dict[str, Any]:
    row: dict[str, Any] = {TEXT: document.text.text}
    if document.spans is not None:
        row[SPANS] = [_span_row(span) for span in document.spans]
    return {**row, PREDICTED: [SPANS]} if document.predicted else row


def _doccano_row(document: AnnotatedDocument) -> dict[str, Any]:
    return {TEXT: document.text.text, "label": [[*span[:3]] for span in document.spans or ()]}


def _prodigy_row(document: AnnotatedDocument) -> dict[str, Any]:
    text, tokens = document.text, []
    for number, (start, end) in enumerate(text.tokens):
        tokens.append({"text": text.text[start:end], "start": start, "end": end, "id": number})
        tokens[-1]["ws"] = text.text[end : end + 1].isspace()
    marks = [
        {**_span_row(span), "token_start": first, "token_end": after - 1}
        for span, (first, after) in document.token_spans()
    ]
    row = {TEXT: text.text, "tokens": tokens, SPANS: marks}
    return row if document.predicted or document.spans is None else {**row, "answer": "accept"}


def _label_studio_task(document: AnnotatedDocument) -> dict[str, Any]:
    result: list[dict[str, Any]] = []
    for number, span in enumerate(document.spans or (), 1):
        value = {"start": span.start, "end": span.end, "text": document.text.text[span.start : span.end]}
        region = {"id": str(number), "from_name": "label", "to_name": "text", "type": "labels"}
        result.append({**region, "value": {**value, "labels": [span.type]}})
        if span.confidence is not None:
            result[-1]["score"] = span.confidence
    task: dict[str, Any] = {"data": {TEXT: document.text.text}}
    if document.spans is None:
        return task
    scores = [span.confidence for span in document.spans if span.confidence is not None]
    prediction = {"model_version": "structperc", **({"score": min(scores)} if scores else {}), "result": result}
    if document.predicted:
        return {**task, "predictions": [prediction]}
    return {**task, "annotations": [{"result": result}]}


def _columns(roles: Sequence[str]) -> Callable[[Sequence[AnnotatedDocument]], Iterator[str]]:
    def lines(documents: Sequence[AnnotatedDocument]) -> Iterator[str]:
        rows = (
            document.text.rows({"label": document.labels, "_": ["_"] * len(document.text.tokens)})
            for document in documents
        )
        return conll_lines(Corpus.from_documents(rows), roles)

    return lines


def _webanno_lines(document: AnnotatedDocument) -> Iterator[str]:
    text, at = document.text, _utf16_positions(document.text.text)
    values: dict[int, str] = {}
    for number, (span, (a, b)) in enumerate(document.token_spans(), 1):
        starts = [start for start, _ in text.tokens[a:b]]
        mark = _RESERVED.sub(_escape, span.type)
        values |= dict.fromkeys(starts, f"{mark}[{number}]" if len(starts) > 1 else mark)
    yield f"#FORMAT=WebAnno TSV 3.3\n#T_SP={ENTITY}|value\n\n"
    for s, (a, b) in enumerate(pairwise(text.sentences), 1):
        yield "\n"
        for line in text.text[text.tokens[a][0] : text.tokens[b - 1][1]].split("\n"):
            yield f"#Text={_CONTROLS.sub(_escape, line)}\n"
        for t, (start, end) in enumerate(text.tokens[a:b], 1):
            yield f"{s}-{t}\t{at[start]}-{at[end]}\t{text.text[start:end]}\t{values.get(start, '_')}\t\n"


def _escape(match: re.Match[str]) -> str:
    return "\\" + _CONTROL.get(match[0], match[0])


def _utf16_positions(text: str) -> list[int]:
    """Return the offset of each character, and of the end, in UTF-16 code units."""
    positions = [0]
    for char in text:
        positions.append(positions[-1] + 1 + (ord(char) > 0xFFFF))
    return positions


def _cas_lines(document: AnnotatedDocument) -> Iterator[str]:
    text, at = document.text, _utf16_positions(document.text.text)
    sentences = [(text.tokens[a][0], text.tokens[b - 1][1]) for a, b in pairwise(text.sentences)]
    marks: list[tuple[str, int, int, dict[str, str]]] = [(SENTENCE, a, b, {}) for a, b in sentences]
    marks += [(TOKEN, a, b, {}) for a, b in text.tokens]
    marks += [(ENTITY, span.start, span.end, {"value": span.type}) for span in document.spans or ()]
    marks.append(("uima.tcas.DocumentAnnotation", 0, len(text.text), {"language": "x-unspecified"}))
    sofa = {"sofaNum": 1, "sofaID": "_InitialView", "mimeType": "text", "sofaString": text.text}
    structures: list[dict[str, Any]] = [{"%ID": 1, "%TYPE": "uima.cas.Sofa", **sofa}]
    for number, (kind, start, end, features) in enumerate(marks, 2):
        place = {"@sofa": 1, "begin": at[start], "end": at[end]}
        structures.append({"%ID": number, "%TYPE": kind, **place, **features})
    value = {"%NAME": "value", "%RANGE": STRING}
    types = {name: {"%NAME": name, "%SUPER_TYPE": ANNOTATION} for name in (SENTENCE, TOKEN)}
    types[ENTITY] = {"%NAME": ENTITY, "%SUPER_TYPE": ANNOTATION, "value": value}  # type: ignore[dict-item]
    views = {"_InitialView": {"%SOFA": 1, "%MEMBERS": [structure["%ID"] for structure in structures[1:]]}}
    cas = {"%TYPES": types, "%FEATURE_STRUCTURES": structures, "%VIEWS": views}
    yield json.dumps(cas, ensure_ascii=False, indent=1) + "\n"


ROW_FORMATS: dict[str, Callable[[AnnotatedDocument], dict[str, Any]]] = {
    "jsonl": _json_row,
    "doccano": _doccano_row,
    "prodigy": _prodigy_row,
    "label-studio": _label_studio_task,
}
COLUMN_FORMATS = {"conll2002": _columns(["word", "label"]), "conll2003": _columns(["word", "_", "_", "label"])}
FILE_FORMATS: dict[str, tuple[str, Callable[[AnnotatedDocument], Iterator[str]]]] = {
    "brat": (".ann", lambda one: brat_lines(one.text.text, one.spans or ())),
    "webanno": (".tsv", _webanno_lines),
    "cas-json": (".json", _cas_lines),
}
FORMATS = (*ROW_FORMATS, *COLUMN_FORMATS, *FILE_FORMATS)
