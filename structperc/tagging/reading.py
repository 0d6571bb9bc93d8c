"""Input of a saved model: columns, running text or JSON lines, read block by block as corpora."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

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
from structperc.data.format_detection import FileHead, detect_format, is_detectable, read_head
from structperc.data.json_data import parse_json_lines, strings
from structperc.data.read_options import DEFAULT_READING, DOCSTART, PREDICTED, InputFormat, LineFormat, ReadOptions
from structperc.data.text_files import PIECE, Block, Ends, blocks, expand_path, line_ends, no_ends, stream_text
from structperc.errors import InputError
from structperc.predictor import Predictor
from structperc.predictor.limits import ALLOWED_FIELD, LIMITS, limited_text
from structperc.tagging.column_roles import (
    GOLD,
    ColumnRoles,
    column_roles,
    line_format_of,
    refuse_plain_text,
)
from structperc.text import tokenize
from structperc.text.alignment import TokenizedText, align_words, join_words
from structperc.text.tokenizer import SENTENCES, TOKENIZERS, paragraph_ends

PREFIX = f"{PREDICTED}_"  # prefix of new fields of JSON lines whose names are taken
NEW = ("labels", "probabilities", "probability", "spans")
TEXT_FIELD, TOKENS_FIELD = "text", "tokens"  # fields of JSON lines
ENDS: dict[str, Ends] = {
    "whole file": no_ends,
    "lines": line_ends,
    "paragraphs": paragraph_ends,
    "sentences": sentence_ends,
    "documents": document_ends,
}
NO_COLUMNS = ColumnRoles([], [], "position")


class InputPlan(NamedTuple):
    """The options for reading a file, such that each block can be read independently; can be pickled."""

    name: str
    form: InputFormat
    unit: str
    reading: ReadOptions
    columns: ColumnRoles  # of columns
    line_format: LineFormat  # format of columns
    above: FileContext  # context of columns
    cut: str  # key of ENDS
    uncut: bool  # True if documents are not cut, and so must be marked from the first line
    whole: bool  # True if the file is one block
    prefix: str  # prefix of new fields of JSON lines
    output_format: str | None = None  # output format
    mark: int = 0  # characters before the text in its file: 1 for a byte-order mark

    @property
    def ends(self) -> Ends:
        """The positions where the text may be cut."""
        return ENDS[self.cut]

    @property
    def single(self) -> bool:
        """True if the file is one document for brat."""
        return self.form == "text" or (self.form == "columns" and not self.above.marked)


@contextmanager
def open_input(
    tagger: Predictor, file: str, output_format: str | None, reading: ReadOptions, size: int = PIECE
) -> Iterator[tuple[InputPlan, Iterator[Block | None]]]:
    """Open a file, and yield its plan and its blocks, see `plan_input` and `blocks`; `size` bytes are read at a time.

    Raises InputError for a file that cannot be read, and as `plan_input` does.
    """
    with closing(stream_text(expand_path(file), reading.encoding, size, keep_mark=True)) as pieces:
        known, needed = is_form_given(reading), len(tagger.columns)
        head = read_head(pieces, lambda lines: known or is_detectable(lines, needed))
        plan = plan_input(tagger, head, file, output_format, reading)
        yield plan, blocks(head.pieces, no_ends if plan.whole else plan.ends)


def plan_input(
    tagger: Predictor,
    opening: FileHead,
    name: str,
    output_format: str | None,
    reading: ReadOptions = DEFAULT_READING,
) -> InputPlan:
    """Return the plan for the file `name`, whose labels are written in the format `output_format` (None: as columns).

    Columns are cut into sentences, or into documents if the model or the output format needs them; JSON lines into
    lines; running text into paragraphs. A file is not cut if it is one document for the model or the output format, for
    pages, for brat without document boundaries in columns, and for models with features of the whole corpus. Raises
    InputError for an unknown form and one that the model cannot read.
    """
    lines, option = opening.lines, _column_option(reading)
    form = reading.form or ("columns" if option or (lines and header_names(lines[0])) else None)
    if form is None:
        refuse_plain_text(tagger, lines, name)
        form = detect_format(lines, len(tagger.columns), name)
    if form != "columns" and option:
        raise InputError(f"{name}: --{option} is for files of columns; leave it out, or set --input columns")
    if form == "text":
        tagger.check_reads_words_only()
    columns, how, above = NO_COLUMNS, line_format_of(tagger, lines, reading), FileContext()
    if form == "columns":
        columns, above = column_roles(tagger, lines, name, reading), scan_context(lines, how)
        columns.log(name)
    unit = reading.unit or tagger.unit
    uncut = unit == "document" or tagger.extent != "sequence" or output_format not in (None, "columns")
    uncut = uncut or (form == "text" and reading.sentences == "one")
    cut = _cut_at(tagger, form, output_format, uncut, above.marked)
    whole, prefix = opening.whole or cut == "whole file", PREFIX if any(map(_has_new_field, lines)) else ""
    settings = (columns, how, above, cut, uncut, whole, prefix, output_format, int(opening.marked))
    return InputPlan(name, form, unit, reading, *settings)


def is_form_given(reading: ReadOptions) -> bool:
    """Return True if the options determine the form of a file, which is then not detected."""
    return reading.form is not None or _column_option(reading) is not None


def _column_option(reading: ReadOptions) -> str | None:
    """Return the name of a given option that is for files of columns only, or None."""
    return next((name for name in ("columns", "separator", "comments") if getattr(reading, name)), None)


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
        first = [0] if self.plan.output_format == "brat" and self.plan.single else self.corpus.document_starts
        ends = np.searchsorted(self.corpus.sentences, [*first, self.corpus.tokens]).tolist()
        return [join_words(sentences[a:b]) for a, b in pairwise(ends)]

    @property
    def opened(self) -> Sequence[int] | None:
        """Indices of the first tokens of documents, for output as columns; None: those of the corpus.

        The number of documents is unknown for a block, so all of them are marked; running text is one document.
        """
        if self.plan.whole:
            return None
        if self.plan.form == "text":
            return [0] if self.block.first == 1 else []
        return self.corpus.document_starts


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
        text = _tokenize(block.text, plan.reading)
        return TagInput(plan, block, Corpus.from_documents([text.rows()], plan.unit, plan.name), [text])
    records = parse_json_lines(block.lines, plan.name, block.first)
    limited = any(not record.keys().isdisjoint(LIMITS) for _, record in records)
    read = [_record(tagger, record, place, plan.reading, limited) for place, record in records]
    corpus = Corpus.from_documents([text.rows(columns) for text, columns in read], plan.unit, plan.name)
    numbers = [int(place.rpartition(":")[2]) for place, _ in records]
    lines = np.repeat(np.array(numbers, np.int64), [len(text.tokens) for text, _ in read])
    texts, rows = [text for text, _ in read], [record for _, record in records]
    return TagInput(plan, block, replace(corpus, lines=lines), texts, rows)


def read_input(tagger: Predictor, file: str, reading: ReadOptions) -> TagInput:
    """Return a whole file as input of a tagger, as `read_block` does for its blocks.

    Raises InputError as `open_input` and `read_block` do, and for a file without tokens.
    """
    with open_input(tagger, file, None, reading) as (plan, found):
        text = "".join(block.text for block in found if block is not None)
    given = read_block(tagger, Block(1, text), plan) if text else None
    if given is None or not given.corpus.tokens:
        raise InputError(f"{file}: this file has no tokens")
    return given


def _tokenize(text: str, reading: ReadOptions) -> TokenizedText:
    return tokenize(text, TOKENIZERS[reading.tokens], SENTENCES[reading.sentences])


def _columns(block: Block, plan: InputPlan) -> Corpus:
    lines = block.lines
    if plan.uncut and not plan.above.marked and (at := first_docstart(lines)) is not None:
        place = f"{plan.name}:{block.first + at}"
        raise InputError(f"{place}: a document begins here, but the file does not begin with one; add {DOCSTART} there")
    roles = ["_" if role == GOLD else role for role in plan.columns.roles]
    above = plan.above._replace(lines=block.first - 1)
    return conll_corpus(lines, roles, plan.name, plan.unit, plan.line_format, above)


def has_tokens(record: Mapping[str, Any]) -> bool:
    """Return True if a JSON line has tokens: an empty list beside a text, as annotation tools write it, is none."""
    return TOKENS_FIELD in record and not (record[TOKENS_FIELD] == [] and record.get(TEXT_FIELD))


def _record(
    tagger: Predictor, record: dict[str, Any], place: str, reading: ReadOptions, limited: bool
) -> tuple[TokenizedText, dict[str, list[str]]]:
    """Return the text of a JSON line, and its columns besides the words; those of its limits if they are wanted."""
    text = record.get(TEXT_FIELD)
    if text is None and TEXT_FIELD in record and TOKENS_FIELD not in record:
        raise InputError(f"{place}: field {TEXT_FIELD!r} is null; write a string, or leave out the line")
    if text is not None and not isinstance(text, str):
        raise InputError(f"{place}: field {TEXT_FIELD!r} must be a string, not {type(text).__name__}")
    if has_tokens(record):
        found, columns = _tokens(tagger, record, text, place)
    elif text is None:
        raise InputError(f"{place}: there is neither a field {TOKENS_FIELD!r} nor {TEXT_FIELD!r} among {list(record)}")
    elif record.get(ALLOWED_FIELD) is not None:
        raise InputError(f"{place}: field {ALLOWED_FIELD!r} has labels of tokens; give the field {TOKENS_FIELD!r}, too")
    else:
        tagger.check_reads_words_only()
        found, columns = _tokenize(text, reading), {}
    if limited:
        found, limits = limited_text(found, record, tagger.labels, place)
        columns |= limits
    return found, columns


def _tokens(
    tagger: Predictor, record: dict[str, Any], text: str | None, place: str
) -> tuple[TokenizedText, dict[str, list[str]]]:
    words = strings(record, TOKENS_FIELD, place)
    if "" in words:
        raise InputError(f"{place}: field {TOKENS_FIELD!r}[{words.index('')}] is empty; leave it out")
    columns = {role: strings(record, role, place) for role in tagger.columns if role != "word"}
    for role, values in columns.items():
        if len(values) != len(words):
            raise InputError(f"{place}: field {role!r} has {len(values)} strings for {len(words)} tokens")
    return join_words([words]) if text is None else align_words([words], text, place), columns
