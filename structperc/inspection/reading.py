"""A file of CoNLL columns, or a table, as the corpus that a saved tagger reads, with gold labels in its scheme."""

import logging
from collections.abc import Sequence

from structperc.data.conll import conll_corpus, field_count
from structperc.data.corpus import Corpus
from structperc.data.normalise import checked_corpus
from structperc.data.not_columns import check_columns
from structperc.data.reading import Reading
from structperc.data.text import read_lines
from structperc.errors import InputError
from structperc.inspection.table_reading import is_table, table_corpus
from structperc.light import Labeller

logger = logging.getLogger("pytorch_lightning.structperc")

AS_THE_MODEL = Reading()
UNMARKED = "(-DOCSTART- lines) in it; use --unit sentence"


def read_corpus(tagger: Labeller, file: str, reading: Reading = AS_THE_MODEL) -> Corpus:
    """Return a file of columns or a table as a corpus; its `label`, if there is gold, is in the scheme of the tagger.

    A file whose name is that of a table (.jsonl, .parquet, a saved folder) is one, see `table_corpus`. Of columns those
    that the tagger reads come first and what stands last after them is gold, unless `reading` names them. Unit and
    scheme (of the file) are those of the tagger unless named. Labels are repaired and converted as `SequenceData` does.
    Raises InputError for a bad file, missing columns and labels that are not of the scheme.
    """
    scheme = tagger.labels.scheme
    due = reading.or_else(tagger.unit, scheme)
    if is_table(file, reading.columns):
        return checked_corpus(table_corpus(tagger, file, due), due, scheme, UNMARKED)
    lines = read_lines(file, reading.encoding)
    if not reading.columns:
        check_columns(lines, len(tagger.features.columns), file)
    assert due.unit is not None
    how = reading.line_format(tagger.training_files)
    corpus = conll_corpus(lines, column_roles(tagger, lines, reading), file, due.unit, how)
    return checked_corpus(corpus, due, scheme, UNMARKED)


def read_gold(tagger: Labeller, file: str, reading: Reading = AS_THE_MODEL) -> Corpus:
    """Return a file as a corpus, as `read_corpus` does. Raises InputError for a file without gold labels."""
    corpus = read_corpus(tagger, file, reading)
    if "label" not in corpus.columns:
        raise InputError(f"{file}: there are no gold labels; name their column 'label' in --columns")
    return corpus


def text_columns(
    tagger: Labeller, lines: Sequence[str], file: str, reading: Reading = AS_THE_MODEL
) -> list[str] | dict[str, int]:
    """Return which columns to read of a file that opens with these lines, gold labels not among them.

    Whether these are columns is not asked.
    """
    columns = column_roles(tagger, lines, reading)
    if not isinstance(columns, dict):
        return ["_" if role == "label" else role for role in columns]
    logger.info("%s: read as columns %s; --columns names them otherwise", file, ", ".join(tagger.features.columns))
    return {role: place for role, place in columns.items() if role != "label"}


def column_roles(tagger: Labeller, lines: Sequence[str], reading: Reading) -> list[str] | dict[str, int]:
    """Return the roles of the columns in their order, or {role: place} if the file has more than the tagger reads."""
    if reading.columns:
        return list(reading.columns)
    roles = tagger.features.columns
    if field_count(lines, reading.line_format(tagger.training_files)) <= len(roles):
        return roles
    return {**{role: place for place, role in enumerate(roles)}, "label": -1}
