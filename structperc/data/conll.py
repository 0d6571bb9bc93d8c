"""CoNLL column files, with a strict reader and an atomic writer; and CoNLL-U treebanks.

Column files have a token per line, fields separated by spaces or tabs (or by tabs only), an empty line after each
sentence, and -DOCSTART- lines before documents. Lines of white space and invisible characters are empty, a byte-order
mark at the beginning of a line is ignored, and the first line may contain the names of the columns.
"""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structperc.data.corpus import Column, Corpus, StringEncoder
from structperc.data.format_detection import check_not_joined
from structperc.data.output import write_lines
from structperc.data.read_options import DOCSTART, HEADER, PREDICTED, LineFormat, Separator
from structperc.data.text_files import BYTE_ORDER_MARK, blocks, expand_path, read_lines, stream_text
from structperc.errors import InputError
from structperc.progress import bar
from structperc.spelling import counted, is_blank, quoted

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger("pytorch_lightning.structperc")

Columns = Sequence[str | None] | Mapping[str, int]
NumberedFields = tuple[int, list[str]]  # number of a line, and its fields
PLAIN = LineFormat()
LEAST_WITH_PREDICATES = 12  # fields of a token in files with a column for each predicate of the sentence
PIECE = 2**20  # bytes of a file parsed at a time
_HEADER = re.compile(  # lower-case letters of column names
    r"words?|tokens?|form|text|lemma|sent(ence)?|doc(ument)?|(sent|sentence|token|doc|document)?(id|idx)|index|[ux]?pos"
    r"|chunks?|ner|entit(y|ies)|iob|bio|gold|(pos|upos|xpos|chunk|ner|entity|iob|bio|gold)?(tag|label)s?"
)
_EMPTY_LINE = re.compile(r"^[ \t]*\r?\n", re.MULTILINE)
_DOCUMENT = re.compile(rf"^[ \t]*{re.escape(DOCSTART)}(?=[ \t\r\n])", re.MULTILINE)
_NO_FIELD = {"whitespace": re.compile(r"[ \t\r\n\0]|^$"), "tab": re.compile(r"[\t\r\n\0]|^ | $|^$")}
_NO_NAME = re.compile(r"[ \t\r\n\0,]|^$")
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_EMPTY_NODE = re.compile(r"([0-9]{1,9})\.[0-9]+")


class FileContext(NamedTuple):
    """Context of a file for parsing some of its lines."""

    lines: int = 0  # number of lines before
    first: int = 0  # number of the first line with a token; 0: none yet
    token: str = ""  # that line
    marked: bool = False  # True: documents are marked


# -- reading --------------------------------------------------------------------------------------------------


def read_conll(
    path: str | Path,
    columns: Columns,
    *,
    comments: bool = False,
    docstart: str | None = DOCSTART,
    encoding: str = "utf-8",
    progress: bool = True,
    separator: Separator = "whitespace",
) -> "Dataset":
    """Read a CoNLL file as rows of sentences, see `Corpus.to_dataset`, with the labels of the file.

    Args:
        columns: roles of the fields in order, None or "_" for a field to skip; or the position of each role, negative
            from the right. Further fields are ignored.
        comments: drop lines that begin with "#" and have another number of fields than the tokens.
        docstart: first field of lines before documents; without such lines each sentence is a document.
        separator: "whitespace", or "tab" for fields that contain spaces.

    Raises:
        InputError: with file:line, for a line whose number of fields differs from the first token, too few fields for
            `columns`, an empty field or a decoding error; with the path, for a missing or empty file.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("train.txt").write_text("Anna B-PER\\nleft O\\n\\nYes O\\n")
        >>> rows = read_conll("train.txt", ["word", "label"], progress=False)
        >>> rows["word"][:], rows["label"][0]
        ([['Anna', 'left'], ['Yes']], ['B-PER', 'O'])
    """
    line_format = LineFormat(separator, comments, docstart)
    return read_conll_corpus(path, columns, line_format, encoding=encoding, progress=progress).to_dataset()


def read_conll_corpus(
    path: str | Path,
    columns: Columns,
    line_format: LineFormat = PLAIN,
    unit: str = "sentence",
    encoding: str = "utf-8",
    progress: bool = True,
) -> Corpus:
    """Read a CoNLL file as a corpus, piece by piece. Arguments and errors are those of `read_conll`."""
    parser = _Parser(columns, str(path), line_format, FileContext())
    pieces = stream_text(expand_path(path), encoding, PIECE)
    for block in bar(blocks(pieces, sentence_ends), str(path), show=progress):
        if block is not None:
            parser.parse(block.lines, block.first)
    return parser.corpus(unit)


def conll_corpus(
    lines: Sequence[str],
    columns: Columns,
    name: str,
    unit: str = "sentence",
    line_format: LineFormat = PLAIN,
    context: FileContext | None = None,
) -> Corpus:
    """Parse the lines of the file `name`, or those after a context, which may have no tokens.

    Raises InputError as `read_conll` does.
    """
    parser = _Parser(columns, name, line_format, context or FileContext())
    if context is None:
        parser.parse(lines, 1, progress=True)
        return parser.corpus(unit)
    parser.parse(lines, context.lines + 1)
    return parser.corpus(unit, allow_empty=True)


class _Parser:
    """Parses whole sentences of a file, one block of lines after the other."""

    def __init__(self, columns: Columns, name: str, line_format: LineFormat, context: FileContext) -> None:
        self.columns, self.name, self.line_format = columns, name, line_format
        self.first, self.token, self.marked = context.first, context.token, context.marked
        self.header = 0  # line of the column names
        self.names: list[str] | None = None
        self.positions: dict[str, int] = {}
        self.encoders: dict[str, StringEncoder] = {}
        self.codes: dict[str, list[np.ndarray]] = {}
        self.lines: list[np.ndarray] = [np.zeros(0, np.int64)]
        self.sentences = [0]
        self.documents: list[int] = []
        self.document = 0
        self.doubtful: list[int] = []  # lines of tokens that may be comments

    def parse(self, lines: Sequence[str], start: int, progress: bool = False) -> None:
        """Parse lines; `start` is the number of the first one."""
        if broken := next((number for number, line in enumerate(lines, start) if "\r" in line), None):
            advice = "use the same line endings throughout the file"
            raise InputError(f"{self.name}:{broken}: a carriage return inside a line; {advice}")
        if not (self.first or self.marked or self.header):
            self.header = header_row(lines, self.line_format, start)
            self.names = self.names or (header_names(lines[0]) if self.header == 1 else None)
        if not self.first:
            self.first, self.token = _first_token(lines, self.line_format, start, self.header)
        width = len(_fields(self.token, self.line_format.separator))
        if width and not self.positions:
            check_not_joined(lines[self.first - start :], self.name)
            self.positions = _positions(self.columns, f"{self.name}:{self.first}", width)
            self.encoders = {role: StringEncoder() for role in self.positions}
            self.codes = {role: [] for role in self.positions}
            if self.names and "label" in self.positions and self.names[self.positions["label"]].startswith(PREDICTED):
                logger.warning("%s: according to the first line of the file the labels are predictions", self.name)
        numbers: list[int] = []
        values: list[str] = []
        tokens = self.sentences[-1]
        shown = bar(lines, self.name, show=progress)
        for sentence in _sentences(shown, self.line_format, self.token, start, self.header):
            if not sentence:
                self.marked = True
                self.document += bool(self.documents) and self.documents[-1] == self.document
                continue
            if self.line_format.comments and sentence[0][1][0] == "#":
                self.doubtful.append(sentence[0][0])
            for number, fields in sentence:
                if len(fields) != width:
                    raise self._uneven(number, lines[number - start])
                numbers.append(number)
                values += fields
            self.sentences.append(tokens + len(numbers))
            self.documents.append(self.document)
        for role, i in self.positions.items():
            column = values[i % width :: width]
            if "" in column:
                raise InputError(f"{self.name}:{numbers[column.index('')]}: field {role!r} is empty; fill it in")
            self.codes[role].append(self.encoders[role].encode(column))
        self.lines.append(np.array(numbers, np.int64))

    def corpus(self, unit: str, allow_empty: bool = False) -> Corpus:
        """Return the parsed corpus."""
        lines = np.concatenate(self.lines)
        if not (len(lines) or allow_empty):
            raise InputError(f"{self.name}: the file contains no tokens")
        if self.doubtful:
            others = f", as do {counted(len(self.doubtful) - 1, 'further line')}" if len(self.doubtful) > 1 else ""
            message = "%s:%d: begins with # but has as many fields as a token, so it is read as a token%s"
            logger.warning(message, self.name, self.doubtful[0], others)
        columns: dict[str, Sequence[str]] = {"word": []}
        for role in self.positions:
            columns[role] = Column.from_codes(self.encoders[role].distinct, np.concatenate(self.codes[role]))
        documents = self.documents if self.marked else range(len(self.documents))
        return Corpus.from_columns(columns, self.sentences, documents, unit, self.name, lines)

    def _uneven(self, number: int, line: str) -> InputError:
        """Return the error for a line with another number of fields than the first token, with its probable cause."""
        count, width = (len(_fields(text, self.line_format.separator)) for text in (line, self.token))
        advice = ""
        if not self.line_format.comments and (line.startswith("#") or self.token.startswith("#")):
            comment = "this" if line.startswith("#") else f"line {self.first}"
            advice = f"; if {comment} is a comment, set comments: true"
        elif self.line_format.separator != "tab" and 1 < len(_fields(line, "tab")) == len(_fields(self.token, "tab")):
            advice = "; if fields contain spaces, set separator: tab"
        elif min(count, width) >= LEAST_WITH_PREDICATES:
            advice = "; files of CoNLL-2009 and CoNLL-2012 have a column for each predicate: keep the columns before"
        fields = f"{counted(count, 'field')}, but line {self.first} has {width}"
        return InputError(f"{self.name}:{number}: {fields}: {quoted(line)}{advice}")


def _positions(columns: Columns, place: str, width: int) -> dict[str, int]:
    """Return the position of each role, and check that `width` fields are enough."""
    if isinstance(columns, Mapping):
        named = list(columns.items())
    else:
        named = [(role, i) for i, role in enumerate(columns) if role is not None and role != "_"]
    roles = [role for role, _ in named]
    if "word" not in roles or len(set(roles)) < len(roles) or not {"document", "sentence", "line"}.isdisjoint(roles):
        raise InputError(
            f"columns must contain 'word', no duplicates, and not 'document', 'sentence' or 'line'; got {roles}"
        )
    needed = max(i + 1 if i >= 0 else -i for _, i in named) if isinstance(columns, Mapping) else len(columns)
    if needed > width:
        raise InputError(f"{place}: {counted(width, 'field')}, but columns ({', '.join(roles)}) need {needed}")
    return dict(named)


def _sentences(
    lines: Iterable[str], line_format: LineFormat, token: str, start: int = 1, header: int = 0
) -> Iterator[list[NumberedFields]]:
    """Yield the lines of each sentence, and an empty list where a document begins.

    `token` is the first line with a token, to recognise comments; `header` is the number of the line of column names.
    """
    sentence: list[NumberedFields] = []
    for number, line in enumerate(lines, start):
        fields = _fields(line, line_format.separator)
        if fields and fields[0] != line_format.docstart:
            comment = line_format.comments and _is_comment(line, fields, token, line_format, not sentence)
            if number != header and not comment:
                sentence.append((number, fields))
            continue
        if sentence:
            yield sentence
        if fields:
            yield []
        sentence = []
    if sentence:
        yield sentence


def _first_token(
    lines: Sequence[str], line_format: LineFormat, start: int = 1, header: int | None = None
) -> tuple[int, str]:
    """Return number and text of the first line with a token; 0 and "" if there is none.

    With comments, lines that begin with "#" count only if all lines do.
    """
    header, doubtful = header_row(lines, line_format) if header is None else header, (0, "")
    for number, line in enumerate(lines, start):
        fields = _fields(line, line_format.separator)
        if not fields or fields[0] == line_format.docstart or number == header:
            continue
        if not (line_format.comments and line.lstrip(BYTE_ORDER_MARK).startswith("#")):
            return number, line
        doubtful = (number, line) if doubtful[0] == 0 and fields[0] != "#" else doubtful
    return doubtful


def _is_comment(line: str, fields: Sequence[str], token: str, line_format: LineFormat, begins: bool) -> bool:
    """Return True if a line begins with "#" and has another number of fields than the line of a token.

    At the beginning of a sentence fields are also counted by the separator of the token only, so that
    "# id 7<tab>train" is a comment if tokens have four fields separated by spaces.
    """
    if not line.lstrip(BYTE_ORDER_MARK).startswith("#"):
        return False
    width = len(_fields(token, line_format.separator))
    if len(fields) != width:
        return True
    gaps = set(token.strip()) & {" ", "\t"}
    if line_format.separator == "tab" or not begins or fields[0] != "#" or len(gaps) != 1:
        return False
    return len(list(filter(None, line.split(gaps.pop())))) != width


def _fields(line: str, separator: Separator = "whitespace") -> list[str]:
    if not line:
        return []
    if not "!" <= line[0] <= "~":
        if is_blank(line):
            return []
        line = line.lstrip(BYTE_ORDER_MARK)
    if separator == "tab":
        return [field.strip(" ") for field in line.rstrip(" \t").split("\t")]
    fields = line.replace("\t", " ").split(" ")
    return [field for field in fields if field] if "" in fields else fields


# -- properties of files ------------------------------------------------------------------------------------------


def scan_context(lines: Sequence[str], line_format: LineFormat = PLAIN) -> FileContext:
    """Return the context of all lines of a file from its first lines."""
    first, token = _first_token(lines, line_format)
    sentences = _sentences(lines, line_format, token, 1, header_row(lines, line_format))
    return FileContext(0, first, token, not all(sentences))


def field_count(lines: Sequence[str], line_format: LineFormat = PLAIN) -> int:
    """Return the number of fields of the first token; 0 if there is none."""
    return len(_fields(_first_token(lines, line_format)[1], line_format.separator))


def distinct_fields(lines: Sequence[str], line_format: LineFormat = PLAIN) -> list[set[str]]:
    """Return the distinct strings of each column of the first token."""
    columns: list[set[str]] = [set() for _ in range(field_count(lines, line_format))]
    token, header = _first_token(lines, line_format)[1], header_row(lines, line_format)
    for sentence in _sentences(lines, line_format, token, 1, header):
        for _, fields in sentence:
            for distinct, string in zip(columns, fields, strict=False):
                distinct.add(string)
    return columns


def header_row(lines: Iterable[str], line_format: LineFormat = PLAIN, start: int = 1) -> int:
    """Return the number of the first non-empty line if it names the columns, else 0.

    Such a line is a `header_line`, or consists of usual names such as "word" and "label".
    """
    for number, line in enumerate(lines, start):
        if number == 1 and header_names(line):
            return number
        fields = _fields(line, line_format.separator)
        if fields and not (line_format.comments and line.lstrip(BYTE_ORDER_MARK).startswith("#")):
            names = (re.sub(r"[\W\d_]+", "", field).lower() for field in reversed(fields))  # the last one needs a name
            usual = len(fields) > 1 and all(_HEADER.fullmatch(name) or (n and not name) for n, name in enumerate(names))
            return number if usual else 0
    return 0


def header_line(names: Sequence[str], gap: str = " ") -> str:
    """Return a first line that names the columns, such as "#columns=word,pos,label,predicted -X- O O".

    It has as many fields as a token, with O for labels, so that programs such as conlleval read it as a token
    outside segments. Invalid names become "_".
    """
    first = HEADER + ",".join("_" if _NO_NAME.search(name) else name for name in names)
    return gap.join([first, *("O" if name == "label" or name.startswith(PREDICTED) else "-X-" for name in names[1:])])


def header_names(line: str) -> list[str] | None:
    """Return the column names in a `header_line`; None for other lines."""
    if not line.startswith(HEADER):
        return None
    fields = _fields(line)
    names = fields[0].removeprefix(HEADER).split(",")
    return names if len(names) == len(fields) else None


def header_separator(lines: Sequence[str]) -> Separator | None:
    """Return the separator with which the first token has as many fields as the `header_line`; None without that line.

    If several fit, it is that of the line.
    """
    names = header_names(lines[0]) if lines else None
    kinds: list[Separator] = ["tab", "whitespace"] if names and "\t" in lines[0] else ["whitespace", "tab"]
    tokens = ((kind, _first_token(lines, LineFormat(kind, comments=True), header=1)[1]) for kind in kinds)
    return next((kind for kind, token in tokens if names and len(_fields(token, kind)) == len(names)), None)


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the positions after empty lines."""
    return (match.end() for match in _EMPTY_LINE.finditer(text))


def document_ends(text: str) -> Iterator[int]:
    """Yield the positions before -DOCSTART- lines."""
    return (match.start() for match in _DOCUMENT.finditer(text))


def first_docstart(lines: Sequence[str], docstart: str = DOCSTART) -> int | None:
    """Return the index of the first line before a document."""
    return next((at for at, line in enumerate(lines) if docstart in line and _fields(line)[:1] == [docstart]), None)


def detect_line_format(
    lines: Sequence[str], separator: Separator | None = None, comments: bool | None = None
) -> LineFormat:
    """Return the line format, with separator and comments detected unless given.

    A file has comments if a line begins with "#" and has another number of fields than the first one without "#".
    """
    line_format = LineFormat(separator or detect_separator(lines, comments is not False), comments is not False)
    if comments is None:
        line_format = line_format._replace(comments=bool(comment_line_numbers(lines, line_format)))
        if not (line_format.comments or separator):
            line_format = line_format._replace(separator=detect_separator(lines))
    return line_format


def comment_line_numbers(lines: Sequence[str], line_format: LineFormat = PLAIN) -> list[int]:
    """Return the numbers of the comment lines."""
    if not line_format.comments:
        return []
    token, begins, numbers, header = _first_token(lines, line_format)[1], True, [], header_row(lines, line_format)
    for number, line in enumerate(lines, 1):
        fields = _fields(line, line_format.separator)
        if fields and number != header and _is_comment(line, fields, token, line_format, begins):
            numbers.append(number)
        else:
            begins = not fields or fields[0] == line_format.docstart
    return numbers


def detect_separator(lines: Iterable[str], comments: bool = False) -> Separator:
    """Return "tab" if all lines have tabs and a field contains a space; else "whitespace".

    With `comments`, lines that begin with "#" are ignored.
    """
    spaces = False
    for line in lines:
        if is_blank(line) or line.startswith((DOCSTART, HEADER)) or (comments and line.startswith("#")):
            continue
        text = line.strip(" \t")
        if "\t" not in text:
            return "whitespace"
        spaces = spaces or (" " in text and any(" " in field.strip(" ") for field in text.split("\t")))
    return "tab" if spaces else "whitespace"


# -- writing --------------------------------------------------------------------------------------------------


def write_conll(
    path: str | Path,
    corpus: Corpus,
    roles: Sequence[str] | None = None,
    predicted: Sequence[str] | None = None,
    docstart: str = DOCSTART,
) -> None:
    """Write a corpus to a column file.

    The file is UTF-8 and replaced atomically. With predictions its first line names the columns. Fields are separated
    by tabs if one of them contains a space.

    Args:
        roles: the columns to write; by default all.
        predicted: N labels for a last column.
        docstart: first field of lines before documents.

    Raises:
        InputError: a missing column, another number of predictions than N, an invalid field value, or a file that
            cannot be written.
    """
    names = list(corpus.columns if roles is None else roles)
    values = [corpus.factorize(role).distinct for role in names if role in corpus.columns]
    spaces = any(" " in value for value in chain(*values, set(predicted or ())))
    separator: Separator = "tab" if spaces else "whitespace"
    named = predicted is not None
    write_lines(path, conll_lines(corpus, roles, predicted, docstart, separator=separator, named=named))


def conll_lines(
    corpus: Corpus,
    roles: Sequence[str] | None = None,
    predicted: Sequence[str] | None = None,
    docstart: str = DOCSTART,
    opened: Collection[int] | None = None,
    separator: Separator = "whitespace",
    named: bool = False,
) -> Iterator[str]:
    """Yield the lines of a CoNLL file.

    `corpus`: the tokens. `roles`: the columns to write; by default all. `predicted`: N labels for a last column.
    `docstart`: first field of lines before documents. `opened`: first tokens of documents, each at the beginning of a
    sentence; by default those of the corpus, unless each sentence is a document. `separator`: "whitespace" for spaces
    between fields, or "tab". `named`: begin with a line that names the columns, the last one as predicted; see
    `header_line`. Raises InputError: a missing column, another number of predictions than N, or an invalid field value.
    """
    names = list(corpus.columns if roles is None else roles)
    if missing := [role for role in names if role not in corpus.columns]:
        raise InputError(f"{corpus.name}: missing columns {missing}; the corpus has {list(corpus.columns)}")
    columns = [corpus.columns[role] for role in names] + ([] if predicted is None else [predicted])
    for column in columns:
        _check_fields(corpus, column, separator)
    gap, labels = field_gap(separator), (predicted is not None) + ("label" in names)
    opening = gap.join([docstart, *["-X-"] * (len(columns) - labels - 1), *["O"] * labels][: len(columns)])
    tokens = list(zip(*columns, strict=True))
    if named:
        yield f"{header_line([*names, PREDICTED], gap)}\n\n"
    if opened is None:  # no documents are marked if each sentence is a document
        begins = corpus.document_starts
        opened = set(begins) if len(begins) < np.count_nonzero(np.diff(corpus.sentences)) else ()
    for first, end in pairwise(corpus.sentences.tolist()):
        if first in opened and first < end:
            yield f"{opening}\n\n"
        for token in tokens[first:end]:
            yield gap.join(token) + "\n"
        if first < end:
            yield "\n"


def append_fields(
    lines: Sequence[str],
    added: Mapping[int, Sequence[str]],
    count: int,
    first: int = 1,
    line_format: LineFormat = PLAIN,
) -> Iterator[str]:
    """Yield lines with `count` fields added to the tokens on the lines in `added`, and to lines before documents.

    `first` is the number of the first line. New fields are separated by tabs if the line has tabs.
    """
    opening = ["-X-"] * (count - 1) + ["O"]
    for number, line in enumerate(lines[:-1] if lines and not lines[-1] else lines, first):
        more = added.get(number)
        if more is None:
            more = opening if line_format.docstart in _fields(line, line_format.separator)[:1] else ()
        if more:
            gap = "\t" if "\t" in line.rstrip(" \t") else field_gap(line_format.separator)
            if gap == " " and (label := next((field for field in more if " " in field), None)):
                advice = "separate the fields by tabs, or choose another format of the output"
                reason = f"the label {label!r} has a space, but fields are separated by spaces"
                raise InputError(f"line {number}: {reason}; {advice}")
            yield line.rstrip(" \t") + gap + gap.join(more) + "\n"
        else:
            yield f"{line}\n"


def field_gap(separator: Separator) -> str:
    """Return the characters between two fields."""
    return "\t" if separator == "tab" else " "


def _check_fields(corpus: Corpus, column: Sequence[str], separator: Separator) -> None:
    if len(column) != corpus.tokens:
        labels, tokens = counted(len(column), "predicted label"), counted(corpus.tokens, "token")
        raise InputError(f"{corpus.name}: {labels} for {tokens}")
    for value in set(column):
        if _NO_FIELD[separator].search(value):
            place = corpus.where(list(column).index(value))
            raise InputError(f"{place}: invalid CoNLL field {value!r} (empty, or with white space or NUL)")


# -- treebanks ---------------------------------------------------------------------------------------------


def read_conllu(path: str | Path, label: str = "upos", encoding: str = "utf-8") -> "Dataset":
    """Read a CoNLL-U file as rows of sentences, see `Corpus.to_dataset`.

    Multiword ranges (1-2), empty nodes (1.1) and comments are skipped. Documents begin at "# newdoc"; without these
    lines each sentence is a document. Returns one row for each sentence, with the columns `word`, `upos`, `xpos` and,
    unless all labels are "_", `label`.

    Args:
        label: "upos" or "xpos", the tags that become the column `label`.

    Raises:
        InputError: with file:line, for lines without 10 fields between tabs or out of order, and words with an empty
            form or tag; with the path, for a missing or empty file.
    """
    return conllu_corpus(path, label, encoding=encoding).to_dataset()


def conllu_corpus(path: str | Path, label: str = "upos", unit: str = "sentence", encoding: str = "utf-8") -> Corpus:
    """Read a CoNLL-U file: columns `word` (FORM), `upos`, `xpos` and one of these two as `label`.

    Multiword ranges (1-2), empty nodes (1.1) and comments are skipped. Documents begin at "# newdoc"; without these
    lines each sentence is a document. There is no column `label` if all labels are "_". Raises InputError with
    file:line for lines without 10 fields between tabs or out of order, and words with an empty form or tag; with the
    path for a missing or empty file.
    """
    if label not in ("upos", "xpos"):
        raise InputError(f"label must be upos or xpos, not {label!r}")
    columns: dict[str, list[str]] = {"word": [], "upos": [], "xpos": []}
    numbers: list[int] = []
    documents: list[int] = []
    sentences, document, marked = [0], 0, False
    for number, line in enumerate([*read_lines(path, encoding), ""], 1):
        line = line.removeprefix(BYTE_ORDER_MARK)
        if line.startswith("#"):
            opens = re.match(r"#\s*newdoc\b", line) is not None
            marked |= opens
            document += opens and documents[-1:] == [document]
        elif not is_blank(line):
            fields = _word_fields(line, f"{path}:{number}", expected=len(numbers) - sentences[-1] + 1)
            if fields:
                for role, value in zip(columns, fields, strict=True):
                    columns[role].append(value)
                numbers.append(number)
        elif len(numbers) > sentences[-1]:
            sentences.append(len(numbers))
            documents.append(document)
    if not numbers:
        raise InputError(f"{path}: the file contains no words")
    if set(columns[label]) != {"_"}:
        columns["label"] = columns[label]
    ids = documents if marked else range(len(documents))
    return Corpus.from_columns(columns, sentences, ids, unit, str(path), numbers)


def _word_fields(line: str, place: str, expected: int) -> tuple[str, str, str] | None:
    """Return FORM, UPOS and XPOS of a word line; None for multiword ranges and empty nodes."""
    fields = line.split("\t")
    if len(fields) != 10:
        raise InputError(f"{place}: {counted(len(fields), 'field')} between tabs, but CoNLL-U has 10")
    if (match := _RANGE.fullmatch(fields[0])) and expected == int(match[1]) < int(match[2]):
        return None
    if (match := _EMPTY_NODE.fullmatch(fields[0])) and int(match[1]) == expected - 1:
        return None
    if fields[0] != str(expected):
        raise InputError(f"{place}: expected word id {expected}, got {fields[0]!r}; is an empty line missing?")
    for name, i in (("FORM", 1), ("UPOS", 3), ("XPOS", 4)):
        if not fields[i].strip():
            raise InputError(f"{place}: {name} of word {fields[0]} is empty; write _ for an unknown value")
    return fields[1], fields[3], fields[4]
