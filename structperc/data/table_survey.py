"""The survey of a labelled file of any format: columns, CoNLL-U or a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from structperc.data.annotations import SPANS as MARKS
from structperc.data.annotations import TextOptions, detect_tool
from structperc.data.corpus import Corpus
from structperc.data.read_options import ReadOptions
from structperc.data.survey import AS_IT_IS, Survey, survey, survey_corpus
from structperc.data.tables import (
    DELIMITERS,
    EMPTY_ROWS,
    JSON,
    SPANS,
    USUAL,
    TableOptions,
    TableSurvey,
    candidate_columns,
    parse_column_options,
    table_format,
    usual_columns,
)
from structperc.data.tag_schemes import SEGMENT_SCHEMES, parse_tag
from structperc.data.text_files import expand, read_text, split_lines
from structperc.errors import InputError

LOOKED_AT = 100  # rows


def survey_file(file: str, reading: ReadOptions = AS_IT_IS) -> Survey:
    """Look at a labelled file and return what it holds, see `survey` for columns and treebanks.

    Tables are told by their names. Their columns are found by usual names unless `reading` names them as ROLE=COLUMN.
    Spans are expanded to whole tokens, and read with the units of offsets and the tokens with which most of them fit.
    Raises InputError for files of brat, and for tables whose columns no name tells.
    """
    path = expand(file)
    if path.suffix == ".ann":
        raise InputError(f"{file}: these are marks of brat; {_FROM_BRAT}")
    kind = table_format(path)
    named = any("=" in one for one in reading.columns or ())
    if kind is None or (kind in DELIMITERS and not named and (reading.columns or not _is_csv(file, kind, reading))):
        return survey(file, reading)
    return _survey_table(file, kind, reading)


_FROM_BRAT = 'write each text with its spans as a line of JSON, {"text": ..., "spans": [[start, end, label], ...]}'


def _survey_table(file: str, kind: str, reading: ReadOptions) -> Survey:
    from structperc.data.table_files import iterate_rows, read_best_fit  # need `datasets`

    heading = kind not in DELIMITERS or _names_columns(file, reading)
    rows = list(iterate_rows(file, reading.encoding, heading))
    if not rows:
        raise InputError(f"{file}: there are no rows in this table")
    first = next((row for _, row in rows if any(row.values())), {})
    columns = parse_column_options(reading.columns, file) if reading.columns else _columns(file, kind, rows)
    reader = TableOptions(columns, _label_names(file, columns, rows), heading=heading)
    lenient = TextOptions(misaligned="expand", overlaps="longest")
    scheme = reading.labels if reading.labels not in (None, "none") else reader.scheme
    reader = reader._replace(text_options=lenient, scheme=scheme)
    data, reader, report = read_best_fit(file, reader, reading.encoding)
    corpus = Corpus.from_dataset(data, "sentence", file)
    placed = "line"
    if corpus.lines is None:
        placed = "row"
        corpus = replace(corpus, lines=_row_numbers(corpus))
    roles = list(corpus.columns)
    others = [name for name in first if name not in columns.values() and name != EMPTY_ROWS]
    tool = detect_tool(first) or ("Label Studio" if columns.get(SPANS) == MARKS and kind in JSON else None)
    table = TableSurvey(kind, reader, tool, placed, report, others)
    given = scheme if SPANS in columns else reading.labels
    return survey_corpus(file, roles, None, corpus, given)._replace(table=table)


def _row_numbers(corpus: Corpus) -> np.ndarray:
    """The number of the sentence of each token."""
    return np.repeat(np.arange(1, len(corpus.sentences)), np.diff(corpus.sentences))


# -- columns --------------------------------------------------------------------------------------------------


def _columns(file: str, kind: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """The columns of roles, by their names and what the first rows hold."""
    some = [row for _, row in rows[:LOOKED_AT]]
    row = next((one for one in some if all(value not in (None, [], "") for value in one.values())), some[0])
    row = {name: value for name, value in row.items() if name != EMPTY_ROWS}
    among = candidate_columns(row, USUAL)
    if kind in DELIMITERS and not among["word"] and among["sentence"] and _holds_sentences(some, among["sentence"][0]):
        among["word"], among["sentence"] = among["sentence"][:1], []
    if kind in DELIMITERS and not (among["word"] and among["label"]) and not (among["text"] and among["spans"]):
        among |= _by_content(row, some)
    of_words = bool(among["word"] and (among["label"] or not among["spans"]))
    roles = ("word", "label", "sentence", "document") if of_words else ("text", "spans", "document")
    if of_words and kind in DELIMITERS and not among["sentence"] and not _holds_sentences(some, among["word"][0]):
        among["sentence"] = [EMPTY_ROWS]
    if not of_words or isinstance(row.get(among["word"][0]), list):
        among["sentence"] = []
    if unclear := next((role for role in roles if len(among[role]) > 1), None):
        raise InputError(f"{file}: {unclear} may be {' or '.join(among[unclear])}; {_name_it(unclear)}")
    found = {role: among[role][0] for role in roles if among[role]}
    if not {"word", "text"} & found.keys():
        there = ", ".join(row)
        raise InputError(f"{file}: which of the columns {there} are what? name them: --columns word=... label=...")
    if "document" in found and not _in_one_piece([one.get(found["document"]) for _, one in rows]):
        del found["document"]
    return found


def _name_it(role: str) -> str:
    return f"name one in --columns {role}=... (with those of the other roles)"


def _by_content(row: Mapping[str, Any], some: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Word and label of CSV whose columns have no usual names: the first that is no number, the last of labels."""
    names = list(row)
    word = next((name for name in names if not all(str(one[name]).isdecimal() for one in some)), names[0])
    later = names[names.index(word) + 1 :]
    tagged = [name for name in later if _are_segments([one[name] for one in some])]
    return {"word": [word], "label": tagged[-1:] or later[-1:], "sentence": []}


def _are_segments(cells: Iterable[str]) -> bool:
    labels = {label for cell in cells for label in cell.split()}
    return bool(labels - {"O"}) and any(all(_is_tag(label, scheme) for label in labels) for scheme in SEGMENT_SCHEMES)


def _is_tag(label: str, scheme: str) -> bool:
    try:
        parse_tag(label, scheme)
    except InputError:
        return False
    return True


def _holds_sentences(some: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Whether most cells hold several words."""
    return 2 * sum(len(str(row[column]).split()) > 1 for row in some) > len(some)


def _in_one_piece(values: Sequence[Any]) -> bool:
    """Whether rows of a document are next to each other, and each has one."""
    if not all(isinstance(value, str | int) and value != "" for value in values):
        return False
    return len(set(values)) == 1 + sum(a != b for a, b in pairwise(values))


# -- CSV ------------------------------------------------------------------------------------------------------


def _names_columns(file: str, reading: ReadOptions) -> bool:
    """Whether the first row of CSV is a heading; without one, columns are called by their numbers."""
    if reading.columns:
        given = parse_column_options(reading.columns, file).values()
        return not all(column.isdecimal() for column in given if column != EMPTY_ROWS)
    return _has_heading(_cells(file, reading))


def _cells(file: str, reading: ReadOptions) -> list[list[str]]:
    """The first rows of CSV, the heading among them."""
    from structperc.data.table_files import iterate_rows

    rows = iterate_rows(file, reading.encoding, heading=False)
    return [[value for name, value in row.items() if name != EMPTY_ROWS] for _, row in islice(rows, LOOKED_AT)]


def _has_heading(cells: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: by usual names, or as it has no label although all others do."""
    usual = {role for role in USUAL if usual_columns(role, cells[0])}
    if usual & {"word", "text"} or {"label", "sentence"} <= usual:
        return True
    columns = list(zip(*cells[1:], strict=False))
    tagged = [number for number, values in enumerate(columns) if number and _are_segments(values)]
    return bool(tagged) and not _are_segments([cells[0][tagged[-1]]]) and cells[0][tagged[-1]] != "O"


def _is_csv(file: str, kind: str, reading: ReadOptions) -> bool:
    """Whether a file named .csv or .tsv is a table, not a file of columns.

    With tabs it is only if a heading names a column of sentences or of texts, or cells hold whole sentences.
    """
    from structperc.data.table_files import detect_delimiter

    text = read_text(file, reading.encoding)
    first = next((line for line in split_lines(text) if line.strip()), "")
    if detect_delimiter(text, kind) != "\t":
        return detect_delimiter(text, kind) in first
    names = first.split("\t")
    among = {role: usual_columns(role, names) for role in USUAL}
    if among["text"] or (among["word"] and among["sentence"]):
        return True
    rows = [line.split("\t") for line in split_lines(text)[1:LOOKED_AT] if line.strip()]
    return bool(among["word"] and among["label"]) and all(
        len(row) == len(names) and len(row[names.index(among["word"][0])].split()) > 1 for row in rows
    )


# -- labels that are numbers ----------------------------------------------------------------------------------


def _label_names(
    file: str, columns: Mapping[str, str], rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> dict[str, list[str]]:
    """Names for labels that are numbers without names: B and I in turn where that is legal everywhere."""
    from structperc.data.table_files import class_names

    column = columns.get("label")
    if column is None or class_names(file, column):
        return {}
    values = [value for _, row in rows if (value := row.get(column)) is not None]
    lists = values if all(isinstance(value, list) for value in values) else [values]
    if not lists or not all(isinstance(one, int) and one >= 0 for labels in lists for one in labels):
        return {}
    size = 1 + max((one for labels in lists for one in labels), default=0)
    if _alternate(lists, size):
        names = ["O", *(f"{'BI'[n % 2]}-{n // 2 + 1}" for n in range(size - 1 + (size - 1) % 2))]
    else:
        names = [str(n) for n in range(size)]
    return {"label": names}


def _alternate(lists: Iterable[Sequence[int]], size: int) -> bool:
    """Whether numbers can be O, B-1, I-1, B-2, I-2, ...: even ones above 0 follow themselves or the one before.

    There must be some.
    """
    pairs = [(before, one) for labels in lists for before, one in pairwise([0, *labels]) if one and one % 2 == 0]
    return bool(pairs) and all(before in (one, one - 1) for before, one in pairs)
