"""Survey of a labelled file of any format: columns, CoNLL-U or a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from structperc.data.annotations import TASK_SPANS, TextOptions, detect_tool
from structperc.data.read_options import ReadOptions
from structperc.data.scheme_detection import is_label
from structperc.data.survey import DEFAULTS, Survey, survey, survey_corpus
from structperc.data.table_files import class_names, detect_delimiter, iterate_rows, read_best_fit
from structperc.data.tables import (
    DELIMITERS,
    DOCUMENT,
    EMPTY_ROWS,
    JSON,
    SENTENCE,
    SPANS,
    TEXT,
    USUAL_NAMES,
    TableOptions,
    TableSurvey,
    candidate_columns,
    parse_column_options,
    table_format,
    usual_columns,
)
from structperc.data.tag_schemes import SEGMENT_SCHEMES
from structperc.data.text_files import expand_path, read_text, split_lines
from structperc.errors import InputError

LOOKED_AT = 100  # rows


def survey_file(file: str, reading: ReadOptions = DEFAULTS) -> Survey:
    """Return the content of a labelled file, see `survey` for columns and treebanks.

    Tables are recognised by their file names, their columns by usual names unless `reading` names them as ROLE=COLUMN.
    Spans are expanded to whole tokens, and read with the offset unit and tokenizer that fit best. Raises InputError for
    brat files and for tables whose columns cannot be recognised.
    """
    path = expand_path(file)
    if path.suffix == ".ann":
        advice = 'write each text with its spans as a line of JSON, {"text": ..., "spans": [[start, end, label], ...]}'
        raise InputError(f"{file}: this is a brat annotation file; {advice}")
    kind = table_format(path)
    named = any("=" in one for one in reading.columns or ())
    if kind is None or (kind in DELIMITERS and not named and (reading.columns or not _is_csv(file, kind, reading))):
        return survey(file, reading)
    return _survey_table(file, kind, reading)


def _survey_table(file: str, kind: str, reading: ReadOptions) -> Survey:
    heading = kind not in DELIMITERS or _names_columns(file, reading)
    rows = list(iterate_rows(file, reading.encoding, heading))
    if not rows:
        raise InputError(f"{file}: there are no rows in this table")
    first = next((row for _, row in rows if any(row.values())), {})
    columns = parse_column_options(reading.columns, file) if reading.columns else _detect_columns(file, kind, rows)
    scheme = reading.labels if reading.labels not in (None, "none") else "IOB2"
    lenient = TextOptions(misaligned="expand", overlaps="longest")
    options = TableOptions(columns, _label_names(file, columns, rows), lenient, scheme, heading)
    corpus, options, report = read_best_fit(file, options, reading.encoding)
    unit = "line"
    if corpus.lines is None:
        unit = "row"
        numbers = np.repeat(np.arange(1, len(corpus.sentences)), np.diff(corpus.sentences))
        corpus = replace(corpus, lines=numbers)
    others = [name for name in first if name not in columns.values() and name != EMPTY_ROWS]
    tool = detect_tool(first) or ("Label Studio" if columns.get(SPANS) == TASK_SPANS and kind in JSON else None)
    table = TableSurvey(kind, options, tool, unit, report, others)
    given = scheme if SPANS in columns else reading.labels
    return survey_corpus(file, list(corpus.columns), None, corpus, given)._replace(table=table)


# -- columns --------------------------------------------------------------------------------------------------


def _detect_columns(file: str, kind: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Return the columns of roles, by their names and the first rows."""
    some = [row for _, row in rows[:LOOKED_AT]]
    row = next((one for one in some if all(value not in (None, [], "") for value in one.values())), some[0])
    row = {name: value for name, value in row.items() if name != EMPTY_ROWS}
    among = candidate_columns(row, USUAL_NAMES)
    if kind in DELIMITERS and not among["word"] and among[SENTENCE] and _has_sentences(some, among[SENTENCE][0]):
        among["word"], among[SENTENCE] = among[SENTENCE][:1], []
    if kind in DELIMITERS and not (among["word"] and among["label"]) and not (among[TEXT] and among[SPANS]):
        among |= _columns_by_content(row, some)
    of_words = bool(among["word"] and (among["label"] or not among[SPANS]))
    roles = ("word", "label", SENTENCE, DOCUMENT) if of_words else (TEXT, SPANS, DOCUMENT)
    if of_words and kind in DELIMITERS and not among[SENTENCE] and not _has_sentences(some, among["word"][0]):
        among[SENTENCE] = [EMPTY_ROWS]
    if not of_words or isinstance(row.get(among["word"][0]), list):
        among[SENTENCE] = []
    if unclear := next((role for role in roles if len(among[role]) > 1), None):
        advice = f"name one in --columns {unclear}=... (with those of the other roles)"
        raise InputError(f"{file}: {unclear} may be {' or '.join(among[unclear])}; {advice}")
    found = {role: among[role][0] for role in roles if among[role]}
    if not {"word", TEXT} & found.keys():
        raise InputError(f"{file}: unknown columns {', '.join(row)}; name them: --columns word=... label=...")
    if DOCUMENT in found and not _is_contiguous([one.get(found[DOCUMENT]) for _, one in rows]):
        del found[DOCUMENT]
    return found


def _columns_by_content(row: Mapping[str, Any], some: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return word and label of CSV without usual names: the first column that is not numeric, the last of labels."""
    names = list(row)
    word = next((name for name in names if not all(str(one[name]).isdecimal() for one in some)), names[0])
    later = names[names.index(word) + 1 :]
    tagged = [name for name in later if _are_segments([one[name] for one in some])]
    return {"word": [word], "label": tagged[-1:] or later[-1:], SENTENCE: []}


def _are_segments(cells: Iterable[str]) -> bool:
    """Whether all labels in some cells are of one segment scheme, and not all of them O."""
    labels = {label for cell in cells for label in cell.split()}
    return bool(labels - {"O"}) and any(all(is_label(label, scheme) for label in labels) for scheme in SEGMENT_SCHEMES)


def _has_sentences(some: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Whether most cells have several words."""
    return 2 * sum(len(str(row[column]).split()) > 1 for row in some) > len(some)


def _is_contiguous(values: Sequence[Any]) -> bool:
    """Whether all rows have a document, and those of each document are adjacent."""
    if not all(isinstance(value, str | int) and value != "" for value in values):
        return False
    return len(set(values)) == 1 + sum(a != b for a, b in pairwise(values))


# -- CSV ------------------------------------------------------------------------------------------------------


def _names_columns(file: str, reading: ReadOptions) -> bool:
    """Whether the first row of CSV is a heading, by the columns given or by the first rows."""
    if reading.columns:
        given = parse_column_options(reading.columns, file).values()
        return not all(column.isdecimal() for column in given if column != EMPTY_ROWS)
    rows = islice(iterate_rows(file, reading.encoding, heading=False), LOOKED_AT)
    cells = [[value for name, value in row.items() if name != EMPTY_ROWS] for _, row in rows]
    usual = {role for role in USUAL_NAMES if usual_columns(role, cells[0])} if cells else set()
    if usual & {"word", TEXT} or {"label", SENTENCE} <= usual:
        return True
    columns = list(zip(*cells[1:], strict=False))
    tagged = [number for number, values in enumerate(columns) if number and _are_segments(values)]
    return bool(tagged) and not _are_segments([cells[0][tagged[-1]]]) and cells[0][tagged[-1]] != "O"


def _is_csv(file: str, kind: str, reading: ReadOptions) -> bool:
    """Whether a .csv or .tsv file is a table, not a column file.

    With tabs, only if a heading names a column of sentences or texts, or cells contain whole sentences.
    """
    lines = [line for line in split_lines(read_text(file, reading.encoding)) if line.strip()]
    first = lines[0] if lines else ""
    if (delimiter := detect_delimiter(first, kind)) != "\t":
        return delimiter in first
    names = first.split("\t")
    among = {role: usual_columns(role, names) for role in USUAL_NAMES}
    if among[TEXT] or (among["word"] and among[SENTENCE]):
        return True
    rows = [line.split("\t") for line in lines[1:LOOKED_AT]]
    return bool(among["word"] and among["label"]) and all(
        len(row) == len(names) and len(row[names.index(among["word"][0])].split()) > 1 for row in rows
    )


# -- labels stored as numbers ---------------------------------------------------------------------------------


def _label_names(
    file: str, columns: Mapping[str, str], rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> dict[str, list[str]]:
    """Return names for labels stored as numbers: O, B-1, I-1, B-2, ... if that is legal everywhere, else the numbers.

    It is legal if even numbers above 0 occur, and only after themselves or the number before.
    """
    column = columns.get("label")
    if column is None or class_names(file, column):
        return {}
    values = [value for _, row in rows if (value := row.get(column)) is not None]
    lists = values if all(isinstance(value, list) for value in values) else [values]
    if not lists or not all(isinstance(one, int) and one >= 0 for labels in lists for one in labels):
        return {}
    size = 1 + max((one for labels in lists for one in labels), default=0)
    pairs = [(before, one) for labels in lists for before, one in pairwise([0, *labels]) if one and one % 2 == 0]
    if pairs and all(before in (one, one - 1) for before, one in pairs):
        return {"label": ["O", *(f"{'BI'[n % 2]}-{n // 2 + 1}" for n in range(size - 1 + (size - 1) % 2))]}
    return {"label": [str(n) for n in range(size)]}
