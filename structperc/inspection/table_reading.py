"""A table as the corpus that a saved tagger reads: which of its columns are what."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from structperc.data.annotations import Cutting
from structperc.data.corpus import Corpus
from structperc.data.reading import Reading
from structperc.data.table_names import DELIMITERS, USUAL, candidate_columns, kind_of_table, named_columns
from structperc.data.text import expand
from structperc.errors import InputError
from structperc.light import Labeller

logger = logging.getLogger("pytorch_lightning.structperc")

TEXT, SPANS, DOCUMENT = "text", "spans", "document"


def is_table(file: str, columns: Sequence[str] | None) -> bool:
    """Return whether a file is a table by its name; CSV, which may be columns, where ROLE=COLUMN says so."""
    kind = kind_of_table(expand(file))
    return kind is not None and (kind not in DELIMITERS or any("=" in one for one in columns or ()))


def table_corpus(tagger: Labeller, file: str, reading: Reading) -> Corpus:
    """Return a table as a corpus of the unit and with labels in the scheme that `reading` names.

    Its columns name roles as ROLE=COLUMN; without them columns are found by their usual names, which is said. Spans are
    read with the offsets and tokens with which most of them fit. Raises InputError for columns that the tagger needs
    and nothing names, and as `data.Table` does.
    """
    from structperc.data.table_files import all_rows, read_best  # need data sets
    from structperc.data.tables import Reader

    assert reading.unit is not None
    assert reading.labels is not None
    if reading.columns:
        columns = named_columns(reading.columns, file)
    else:
        columns = _found(tagger, next((row for _, row in all_rows(file, reading.encoding)), {}), file)
    if TEXT in columns:
        tagger.check_words_alone()
    elif missing := [role for role in ("word", *tagger.features.columns) if role not in columns]:
        raise InputError(f"{file}: which column is {missing[0]!r}? add {missing[0]}=COLUMN to --columns")
    rows, reader, report = read_best(file, Reader(columns, scheme=reading.labels), reading.encoding)
    if report is not None and report.misfits:
        raise InputError(f"{report.summary()}; correct the file")
    if reader.cutting != Cutting():
        logger.info("%s: read with offsets in %s, tokens of %s", file, reader.cutting.offsets, reader.cutting.tokens)
    return Corpus.from_dataset(rows, reading.unit, file)


def _found(tagger: Labeller, row: Mapping[str, Any], file: str) -> dict[str, str]:
    """Roles and columns by their usual names in a row; text counts only where there is no word."""
    known = dict.fromkeys([*tagger.features.columns, *(role for role in USUAL if role != "sentence")])
    among = candidate_columns(row, known)
    left_out = {TEXT, SPANS} if among["word"] else known.keys() - {TEXT, SPANS, DOCUMENT}
    among = {role: names for role, names in among.items() if role not in left_out}
    if unclear := [role for role, names in among.items() if len(names) > 1]:
        raise InputError(f"{file}: {unclear[0]} may be {' or '.join(among[unclear[0]])}; name one in --columns")
    found = {role: names[0] for role, names in among.items() if names}
    logger.info("%s: read with --columns %s", file, " ".join(f"{role}={column}" for role, column in found.items()))
    return found
