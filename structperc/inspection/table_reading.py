"""A table as the corpus that a saved tagger reads: which of its columns are what."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from structperc.data.annotations import Cutting
from structperc.data.corpus import Corpus
from structperc.data.reading import PREDICTED, Reading
from structperc.data.table_names import DELIMITERS, USUAL, candidate_columns, kind_of_table, named_columns
from structperc.data.text import expand
from structperc.errors import InputError
from structperc.light import Labeller

logger = logging.getLogger("pytorch_lightning.structperc")

TEXT, SPANS, DOCUMENT = "text", "spans", "document"
GOLD = ("label", SPANS)


def is_table(tagger: Labeller, file: str, columns: Sequence[str] | None) -> bool:
    """Return whether a file is a table by its name.

    CSV, which may be columns, is one where ROLE=COLUMN says so, or the training files were tables and nothing is said.
    """
    kind = kind_of_table(expand(file))
    if kind is None or kind not in DELIMITERS:
        return kind is not None
    return any("=" in one for one in columns) if columns else isinstance(tagger.training_files.get("columns"), dict)


def table_corpus(tagger: Labeller, file: str, reading: Reading) -> Corpus:
    """Return a table as a corpus of the unit and with labels in the scheme that `reading` names.

    Its columns name roles as ROLE=COLUMN; without them those of the training files are taken, if they were tables and
    these columns are there, or columns are found by their usual names, which is said. Spans are read with the offsets
    and tokens with which most of them fit, and otherwise as those of the training files. Raises InputError for columns
    that the tagger needs and nothing names, and as `data.Table` does.
    """
    from structperc.data.table_files import all_rows, read_best  # need data sets
    from structperc.data.tables import Reader

    assert reading.unit is not None
    assert reading.labels is not None
    trained: Mapping[str, Any] = {}
    if reading.columns:
        columns = named_columns(reading.columns, file)
    else:
        row = next((row for _, row in all_rows(file, reading.encoding)), {})
        trained = _as_trained(tagger, list(row))
        columns = trained.get("columns") or _found(tagger, row, file)
    if TEXT in columns:
        tagger.check_words_alone()
    elif missing := [role for role in ("word", *tagger.features.columns) if role not in columns]:
        raise InputError(f"{file}: which column is {missing[0]!r}? add {missing[0]}=COLUMN to --columns")
    reader = Reader(columns, scheme=reading.labels)._replace(**{**trained, "columns": columns})
    rows, reader, report = read_best(file, reader, reading.encoding)
    cutting = reader.cutting
    if report is not None and any(
        (cutting.misaligned if one.misaligned else cutting.overlaps) == "error" for _, one in report.misfits
    ):
        raise InputError(f"{report.summary()}; correct the file")
    if cutting != Cutting():
        logger.info("%s: read with offsets in %s, tokens of %s", file, cutting.offsets, cutting.tokens)
    return Corpus.from_dataset(rows, reading.unit, file)


def _as_trained(tagger: Labeller, given: Sequence[str]) -> Mapping[str, Any]:
    """The options of `Reader` for the training files, if these columns have all that was read of them but labels."""
    options = tagger.training_files
    named = options.get("columns")
    if not isinstance(named, dict) or not {one for role, one in named.items() if role not in GOLD} <= set(given):
        return {}
    columns = {role: column for role, column in named.items() if column in given}
    cutting = Cutting(**{name: options[name] for name in Cutting._fields if name in options})
    return {"columns": columns, "names": options.get("names", {}), "cutting": cutting}


def _found(tagger: Labeller, row: Mapping[str, Any], file: str) -> dict[str, str]:
    """Roles and columns by their usual names in a row; text counts only where there is no word."""
    known = dict.fromkeys([*tagger.features.columns, *(role for role in USUAL if role != "sentence")])
    predicted = {"labels", SPANS} if PREDICTED in row else ()  # see `tag_output`
    among = candidate_columns({name: value for name, value in row.items() if name not in predicted}, known)
    left_out = {TEXT, SPANS} if among["word"] else known.keys() - {TEXT, SPANS, DOCUMENT}
    among = {role: names for role, names in among.items() if role not in left_out}
    if unclear := [role for role, names in among.items() if len(names) > 1]:
        raise InputError(f"{file}: {unclear[0]} may be {' or '.join(among[unclear[0]])}; name one in --columns")
    found = {role: names[0] for role, names in among.items() if names}
    logger.info("%s: read with --columns %s", file, " ".join(f"{role}={column}" for role, column in found.items()))
    return found
