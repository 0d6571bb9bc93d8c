"""Tables as corpora for a saved tagger: the roles of their columns."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from structperc.data.annotations import TextOptions
from structperc.data.corpus import Corpus
from structperc.data.read_options import PREDICTED, ReadOptions
from structperc.data.tables import DELIMITERS, USUAL_NAMES, candidate_columns, parse_column_options, table_format
from structperc.data.text_files import expand_path
from structperc.errors import InputError
from structperc.predictor import Predictor

logger = logging.getLogger("pytorch_lightning.structperc")

TEXT, SPANS, DOCUMENT = "text", "spans", "document"
LABEL_ROLES = ("label", SPANS)


def is_table(tagger: Predictor, file: str, columns: Sequence[str] | None) -> bool:
    """Return whether a file is a table by its name.

    CSV, which may be columns, is one if ROLE=COLUMN is given, or the training files were tables and nothing is given.
    """
    kind = table_format(expand_path(file))
    if kind is None or kind not in DELIMITERS:
        return kind is not None
    return any("=" in one for one in columns) if columns else isinstance(tagger.training_files.get("columns"), dict)


def table_corpus(tagger: Predictor, file: str, reading: ReadOptions) -> Corpus:
    """Return a table as a corpus of the unit and with labels in the scheme that `reading` names.

    Its columns name roles as ROLE=COLUMN; without them those of the training files are taken, if they were tables and
    these columns exist, or columns are found by their usual names, which is logged. Spans are read with the offsets and
    tokens with which most of them fit, and otherwise as those of the training files. Raises InputError for missing
    columns, and as `data.Table` does.
    """
    from structperc.data.table_files import iterate_rows, read_best_fit
    from structperc.data.tables import TableOptions

    assert reading.unit is not None
    assert reading.labels is not None
    trained: Mapping[str, Any] = {}
    if reading.columns:
        columns = parse_column_options(reading.columns, file)
    else:
        row = next((row for _, row in iterate_rows(file, reading.encoding)), {})
        trained = _as_trained(tagger, list(row))
        columns = trained.get("columns") or _found(tagger, row, file)
    if TEXT in columns:
        tagger.check_reads_words_only()
    elif missing := [role for role in ("word", *tagger.features.columns) if role not in columns]:
        raise InputError(f"{file}: which column is {missing[0]!r}? add {missing[0]}=COLUMN to --columns")
    reader = TableOptions(columns, scheme=reading.labels)._replace(**{**trained, "columns": columns})
    corpus, reader, report = read_best_fit(file, reader, reading.encoding, reading.unit)
    text_options = reader.text_options
    if report is not None and any(
        (text_options.misaligned if one.misaligned else text_options.overlaps) == "error" for _, one in report.conflicts
    ):
        raise InputError(f"{report.summary()}; correct the file")
    if text_options != TextOptions():
        logger.info("%s: read with offsets in %s, tokens of %s", file, text_options.offsets, text_options.tokens)
    return corpus


def _as_trained(tagger: Predictor, given: Sequence[str]) -> Mapping[str, Any]:
    """Options of `TableOptions` for the training files, if these columns hold all that is read of them but labels."""
    options = tagger.training_files
    named = options.get("columns")
    if not isinstance(named, dict) or not {one for role, one in named.items() if role not in LABEL_ROLES} <= set(given):
        return {}
    columns = {role: column for role, column in named.items() if column in given}
    text_options = TextOptions(**{name: options[name] for name in TextOptions._fields if name in options})
    return {"columns": columns, "names": options.get("names", {}), "text_options": text_options}


def _found(tagger: Predictor, row: Mapping[str, Any], file: str) -> dict[str, str]:
    """Roles and columns by their usual names in a row; text counts only where there is no word."""
    known = dict.fromkeys([*tagger.features.columns, *(role for role in USUAL_NAMES if role != "sentence")])
    predicted = {"labels", SPANS} if PREDICTED in row else ()  # see `tag_output`
    among = candidate_columns({name: value for name, value in row.items() if name not in predicted}, known)
    left_out = {TEXT, SPANS} if among["word"] else known.keys() - {TEXT, SPANS, DOCUMENT}
    among = {role: names for role, names in among.items() if role not in left_out}
    if unclear := [role for role, names in among.items() if len(names) > 1]:
        raise InputError(f"{file}: {unclear[0]} may be {' or '.join(among[unclear[0]])}; name one in --columns")
    found = {role: names[0] for role, names in among.items() if names}
    logger.info("%s: read with --columns %s", file, " ".join(f"{role}={column}" for role, column in found.items()))
    return found
