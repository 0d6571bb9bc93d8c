"""Input of a tagger: files of columns, running text or JSON lines, read block by block as corpora."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from structperc.analysis.input_files import DEFAULT_READING, GOLD, column_roles, line_format_of, refuse_plain_text
from structperc.data.conll import (
    FileContext,
    conll_corpus,
    document_ends,
    first_docstart,
    header_names,
    scan_context,
    sentence_ends,
)
from structperc.data.corpus import Corpus
from structperc.data.format_detection import FileHead, InputFormat, detect_format, is_detectable, read_head
from structperc.data.json_data import parse_json_lines, strings
from structperc.data.read_options import DOCSTART, PREDICTED, LineFormat, ReadOptions
from structperc.data.text_files import Block, Ends, blocks, expand_path, line_ends, no_ends, stream_text
from structperc.errors import InputError
from structperc.predictor import Predictor
from structperc.predictor.limits import ALLOWED_FIELD, LIMITS, limited_text
from structperc.text import (
    TokenizedText,
    align_words,
    join_words,
    paragraph_ends,
    tokenize,
)
from structperc.text.tokenizer import SENTENCES, TOKENIZERS, SentenceSplitter, Tokenizer

PREFIX = f"{PREDICTED}_"  # prefix of new fields of JSON lines whose names are taken
NEW = ("labels", "probabilities", "probability", "spans")
ENDS: dict[str, Ends] = {
    "whole file": no_ends,
    "lines": line_ends,
    "paragraphs": paragraph_ends,
    "sentences": sentence_ends,
    "documents": document_ends,
}


class TextSplitting(NamedTuple):
    """The form of a file (None: detected), and the tokenizer and sentence splitter of running text."""

    form: InputFormat | None = None
    tokens: str = "conll"
    sentences: str = "rules"

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of running text."""
        return TOKENIZERS[self.tokens]

    @property
    def split(self) -> SentenceSplitter:
        """The sentence splitter of running text."""
        return SENTENCES[self.sentences]


class InputPlan(NamedTuple):
    """The options for reading a file, such that each block can be read independently; can be pickled."""

    name: str
    form: InputFormat
    unit: str
    text_options: TextSplitting
    columns: Sequence[str]  # roles of the columns
    line_format: LineFormat  # format of columns
    above: FileContext  # context of columns
    cut: str  # key of ENDS
    uncut: bool  # True if documents are not cut, and so must be marked from the first line
    whole: bool  # True if the file is one block
    prefix: str  # prefix of new fields of JSON lines
    names: Sequence[str]  # names of the columns
    output_format: str | None = None  # output format
    mark: int = 0  # characters before the text in its file: 1 for a byte-order mark

    @property
    def ends(self) -> Ends:
        """The positions where the text may be cut."""
        return ENDS[self.cut]


def plan_input(
    tagger: Predictor,
    opening: FileHead,
    name: str,
    output_format: str | None,
    reading: ReadOptions = DEFAULT_READING,
    text_options: TextSplitting = TextSplitting(),  # noqa: B008  # immutable
) -> InputPlan:
    """Return the plan for the file `name`, whose labels are written in the format `output_format` (None: as columns).

    Columns are cut into sentences, or into documents if the model or the output format needs them; JSON lines into
    lines; running text into paragraphs. A file is not cut if it is one document for the model or the output format, for
    pages, for brat without document boundaries in columns, and for models with features of the whole corpus. Raises
    InputError for an unknown form and one that the model cannot read.
    """
    lines = opening.lines
    named = column_option(reading) or (lines and header_names(lines[0]))
    form = text_options.form or ("columns" if named else None)
    if form is None:
        refuse_plain_text(tagger, lines, name)
        form = detect_format(lines, len(tagger.columns), name)
    if form != "columns" and (option := column_option(reading)):
        raise InputError(f"{name}: --{option} is for files of columns; leave it out, or set --input columns")
    if form == "text":
        tagger.check_reads_words_only()
    columns: Sequence[str] = []
    names: Sequence[str] = []
    if form == "columns":
        found = column_roles(tagger, lines, name, reading)
        found.log(name)
        columns, names = found.roles, found.names
    unit, how = reading.unit or tagger.unit, line_format_of(tagger, lines, reading)
    known = scan_context(lines, how) if form == "columns" else FileContext()
    uncut = unit == "document" or tagger.extent != "sequence" or output_format not in (None, "columns")
    uncut = uncut or (form == "text" and text_options.sentences == "one")
    cut = _cut_at(tagger, form, output_format, uncut, known.marked)
    whole = opening.whole or cut == "whole file"
    prefix, mark = PREFIX if any(map(_has_new_field, lines)) else "", int(opening.marked)
    return InputPlan(
        name, form, unit, text_options, columns, how, known, cut, uncut, whole, prefix, names, output_format, mark
    )


def column_option(reading: ReadOptions) -> str | None:
    """Return the name of a given option that is for files of columns only, or None."""
    given = {"columns": reading.columns, "separator": reading.separator, "comments": reading.comments}
    return next((name for name, value in given.items() if value), None)


def _cut_at(tagger: Predictor, form: InputFormat, output_format: str | None, uncut: bool, marked: bool) -> str:
    one = output_format == "html" or (output_format == "brat" and form == "columns" and not marked)
    if tagger.extent == "corpus" or one:
        return "whole file"
    if form == "jsonl":
        return "lines"
    if form == "text":
        return "whole file" if uncut else "paragraphs"
    return "documents" if uncut and marked else "sentences"


def _has_new_field(line: str) -> bool:
    if not any(name in line for name in NEW):
        return False
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and not row.keys().isdisjoint(NEW)


TEXT_FIELD, TOKENS_FIELD = "text", "tokens"  # fields of JSON lines


class TagInput(NamedTuple):
    """A block of input as a corpus without labels."""

    plan: InputPlan
    block: Block
    corpus: Corpus
    own: list[TokenizedText] = []  # noqa: RUF012  # one per text; empty for columns
    records: list[dict[str, Any]] = []  # noqa: RUF012  # one per text of JSON lines

    @property
    def texts(self) -> list[TokenizedText]:
        """The documents; those of columns have a space between words and a line for each sentence."""
        if self.plan.form != "columns":
            return self.own
        sentences = self.corpus.sentences_of(self.corpus.columns["word"])
        ends = np.searchsorted(self.corpus.sentences, [*self._first_tokens, self.corpus.tokens]).tolist()
        return [join_words(sentences[a:b]) for a, b in pairwise(ends)]

    @property
    def _first_tokens(self) -> list[int]:
        return self.corpus.starts[:-1][np.diff(self.corpus.documents, prepend=-1) != 0].tolist()

    @property
    def opened(self) -> Sequence[int] | None:
        """Indices of the first tokens of documents, for output as columns; None: those of the corpus.

        The number of documents is unknown for a block, so all of them are marked; running text is one document.
        """
        if self.plan.whole:
            return None
        if self.plan.form == "text":
            return [0] if self.block.first == 1 else []
        return self._first_tokens


def read_block(tagger: Predictor, block: Block, plan: InputPlan) -> TagInput:
    """Return a block of a file as input of a tagger.

    A file of running text is one document, and so is each JSON line. The field "tokens" of a line is a sentence, with a
    field for each further column that the tagger reads; otherwise its field "text" is split into tokens and sentences.
    If both are given, the tokens are aligned with the text. The fields "allowed", "forced" and "forbidden" limit the
    labels, see `predictor.limits`. Raises InputError with the place of invalid input.
    """
    if plan.form == "columns":
        return TagInput(plan, block, _columns(block, plan))
    if plan.form == "text":
        text = tokenize(block.text, plan.text_options.tokenizer, plan.text_options.split)
        return TagInput(plan, block, _corpus([({}, text)], plan), [text])
    rows = parse_json_lines(block.lines, plan.name, block.first)
    read = [_record(tagger, record, place, plan.text_options) for place, record in rows]
    if any(not record.keys().isdisjoint(LIMITS) for _, record in rows):
        limited = [
            limited_text(text, record, tagger.labels, place)
            for (place, record), (_, text) in zip(rows, read, strict=True)
        ]
        read = [({**columns, **own}, text) for (columns, _), (text, own) in zip(read, limited, strict=True)]
    numbers = [int(place.rpartition(":")[2]) for place, _ in rows]
    lines = np.repeat(np.array(numbers, np.int64), [len(one.tokens) for _, one in read])
    corpus = replace(_corpus(read, plan), lines=lines)
    return TagInput(plan, block, corpus, [one for _, one in read], [record for _, record in rows])


def read_input(tagger: Predictor, file: str, reading: ReadOptions, text_options: TextSplitting) -> TagInput:
    """Return a whole file as input of a tagger, as `plan_input` and `read_block` do for its blocks.

    Raises InputError as they do, and for a file without tokens.
    """
    with closing(stream_text(expand_path(file), reading.encoding, keep_mark=True)) as pieces:
        known = text_options.form is not None or column_option(reading) is not None
        needed = len(tagger.columns)
        head = read_head(pieces, lambda lines: known or is_detectable(lines, needed))
        plan = plan_input(tagger, head, file, None, reading, text_options)._replace(whole=True)
        read = [block for block in blocks(head.pieces, no_ends) if block is not None]
    given = read_block(tagger, read[0], plan) if read else None
    if given is None or not given.corpus.tokens:
        raise InputError(f"{file}: this file has no tokens")
    return given


def _columns(block: Block, plan: InputPlan) -> Corpus:
    lines = block.lines
    if plan.uncut and not plan.above.marked and (at := first_docstart(lines)) is not None:
        place = f"{plan.name}:{block.first + at}"
        raise InputError(f"{place}: a document begins here, but the file does not begin with one; add {DOCSTART} there")
    roles = ["_" if role == GOLD else role for role in plan.columns]
    above = plan.above._replace(lines=block.first - 1)
    return conll_corpus(lines, roles, plan.name, plan.unit, plan.line_format, above)


def has_tokens(record: Mapping[str, Any]) -> bool:
    """Return True if a JSON line has tokens: an empty list beside a text, as annotation tools write it, is none."""
    return TOKENS_FIELD in record and not (record[TOKENS_FIELD] == [] and record.get(TEXT_FIELD))


def _record(
    tagger: Predictor, record: dict[str, Any], place: str, text_options: TextSplitting
) -> tuple[dict[str, list[str]], TokenizedText]:
    text = record.get(TEXT_FIELD)
    if text is None and TEXT_FIELD in record and TOKENS_FIELD not in record:
        raise InputError(f"{place}: field {TEXT_FIELD!r} is null; write a string, or leave out the line")
    if text is not None and not isinstance(text, str):
        raise InputError(f"{place}: field {TEXT_FIELD!r} must be a string, not {type(text).__name__}")
    if not has_tokens(record):
        if text is None:
            raise InputError(
                f"{place}: there is neither a field {TOKENS_FIELD!r} nor {TEXT_FIELD!r} among {list(record)}"
            )
        if record.get(ALLOWED_FIELD) is not None:
            raise InputError(
                f"{place}: field {ALLOWED_FIELD!r} has labels of tokens; give the field {TOKENS_FIELD!r}, too"
            )
        tagger.check_reads_words_only()
        return {}, tokenize(text, text_options.tokenizer, text_options.split)
    words = strings(record, TOKENS_FIELD, place)
    if "" in words:
        raise InputError(f"{place}: field {TOKENS_FIELD!r}[{words.index('')}] is empty; leave it out")
    columns = {role: strings(record, role, place) for role in tagger.columns if role != "word"}
    for role, values in columns.items():
        if len(values) != len(words):
            raise InputError(f"{place}: field {role!r} has {len(values)} strings for {len(words)} tokens")
    return columns, join_words([words]) if text is None else align_words([words], text, place)


def _corpus(texts: list[tuple[dict[str, list[str]], TokenizedText]], plan: InputPlan) -> Corpus:
    rows, documents = [], []
    for number, (columns, text) in enumerate(texts):
        words = text.words
        for first, last in pairwise(text.sentences):
            cut = {role: values[first:last] for role, values in columns.items()}
            rows.append({"word": words[first:last], **cut})
            documents.append(number)
    return Corpus.from_sentences(rows, documents, plan.unit, plan.name)
