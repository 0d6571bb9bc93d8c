"""Files of columns, treebanks and tables as corpora for a saved tagger, with gold labels in its scheme."""

import logging
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Literal, NamedTuple

from structperc.analysis.input_tables import is_table, table_corpus
from structperc.data.conll import conll_corpus, distinct_fields, field_count, header_names
from structperc.data.conllu import conllu_corpus
from structperc.data.corpus import Corpus
from structperc.data.format_detection import check_not_text, is_conllu, is_json, looks_like_text, nonblank_lines
from structperc.data.normalise import checked_corpus, illegal_sentences, warn_unknown_labels
from structperc.data.read_options import ReadOptions
from structperc.data.text_files import read_lines
from structperc.errors import InputError
from structperc.predictor import Predictor

logger = logging.getLogger("pytorch_lightning.structperc")

DEFAULT_READING = ReadOptions()
UNMARKED = "(-DOCSTART- lines) in it; use --unit sentence"
SKIPPED, GOLD = "_", "label"  # roles
TAGS = ("upos", "xpos")  # kinds of labels of CoNLL-U
HALF = 0.5


def read_corpus(tagger: Predictor, file: str, reading: ReadOptions = DEFAULT_READING) -> Corpus:
    """Return a file of columns or a table as a corpus; its `label`, if there is gold, is in the scheme of the tagger.

    A file whose name is that of a table (.jsonl, .parquet, a saved folder) is one, see `table_corpus`; CoNLL-U is
    detected. The columns of other files are named by `reading` or found by `column_roles`. The unit is
    that of the tagger unless named, the scheme of the file that of the training files, or of the tagger, if the labels
    are legal in it alone. Labels are repaired and converted as `SequenceDataModule` does. Raises InputError for a bad
    file, missing columns and labels that are not of the scheme.
    """
    corpus = _normal(tagger, file, reading)
    warn_unknown_labels(corpus, tagger.labels)
    return corpus


def _normal(tagger: Predictor, file: str, reading: ReadOptions) -> Corpus:
    """The corpus of `read_corpus`, whose labels may be unknown to the tagger."""
    due = reading.or_else(tagger.unit, tagger.training_files.get("labels", tagger.labels.scheme))
    if is_table(tagger, file, reading.columns):
        return checked_corpus(table_corpus(tagger, file, due), due, tagger.labels.scheme, UNMARKED)
    lines = read_lines(file, reading.encoding)
    corpus = _treebank(tagger, file, due) if is_conllu(lines) and not reading.columns else None
    if corpus is None:
        check_columns_format(tagger, lines, file, reading)
        assert due.unit is not None
        columns = column_roles(tagger, lines, file, reading)
        columns.check(file)
        how = reading.line_format(tagger.training_files)
        corpus = conll_corpus(lines, columns.roles, file, due.unit, how)
        columns.log(file)
    due = due if reading.labels else due._replace(labels=_scheme(tagger, corpus))
    return checked_corpus(corpus, due, tagger.labels.scheme, UNMARKED)


def read_gold(tagger: Predictor, file: str, reading: ReadOptions = DEFAULT_READING) -> Corpus:
    """Return a file as a corpus, as `read_corpus` does. Raises InputError for a file without gold labels."""
    corpus = read_corpus(tagger, file, reading)
    if GOLD not in corpus.columns:
        raise InputError(f"{file}: there are no gold labels; name their column 'label' in --columns")
    return corpus


def check_columns_format(tagger: Predictor, lines: Sequence[str], file: str, reading: ReadOptions) -> None:
    """Raise InputError for lines that are probably no columns, unless `reading` names some."""
    if reading.columns or (lines and header_names(lines[0])):
        return
    refuse_plain_text(tagger, lines, file)
    check_not_text(lines, len(tagger.features.columns), file)


def refuse_plain_text(tagger: Predictor, lines: Sequence[str], file: str) -> None:
    """Raise InputError for lines that look like running text, if the tagger reads more than words."""
    if tagger.unsupported_reason is None or field_count(
        lines, DEFAULT_READING.line_format(tagger.training_files)
    ) <= len(tagger.features.columns):
        return
    if looks_like_text(lines) and not all(is_json(line) for _, line in nonblank_lines(lines)):
        raise InputError(f"{file}: {tagger.unsupported_reason}, a token per line")


def _treebank(tagger: Predictor, file: str, reading: ReadOptions) -> Corpus:
    """A file in CoNLL-U; its label is the kind of tags that was learned or, where that is not known, fits best."""
    assert reading.unit is not None
    corpus = conllu_corpus(file, unit=reading.unit, encoding=reading.encoding)
    columns = {role: values for role, values in corpus.columns.items() if role != GOLD}
    if tagger.labels.scheme == "none":
        known = {role: len(set(tagger.labels.names) & set(columns[role])) for role in TAGS}
        kind = tagger.training_files.get("tags") or max(TAGS, key=known.__getitem__)
        if set(columns[kind]) != {"_"}:
            columns[GOLD] = columns[kind]
            logger.info("%s: read as CoNLL-U, gold is %s", file, kind.upper())
    return replace(corpus, columns=columns)


def _scheme(tagger: Predictor, corpus: Corpus) -> str:
    """The scheme of gold labels: that of the training files, unless they are legal in that of the tagger alone."""
    trained: str = tagger.training_files.get("labels", tagger.labels.scheme)
    if GOLD in corpus.columns and not _legal(corpus, trained) and _legal(corpus, tagger.labels.scheme):
        return tagger.labels.scheme
    return trained


def _legal(corpus: Corpus, scheme: str) -> bool:
    try:
        return not len(illegal_sentences(corpus, scheme))
    except InputError:
        return False


# -- which columns --------------------------------------------------------------------------------------------


class ColumnRoles(NamedTuple):
    """Roles and names of the columns of a file."""

    roles: list[str]  # in their order, "_" for columns that are not read
    names: Sequence[str]  # in their order, "_" for columns of which nothing is known
    how: Literal["given", "named", "trained", "places"]  # by the user, the first line, the training files, or by place
    open: Sequence[int] = ()  # places of several columns that may be gold, none of which was chosen

    def check(self, file: str) -> None:
        """Raise InputError if it is open which column is gold."""
        if self.open:
            first = [GOLD if i == self.open[0] else role for i, role in enumerate(self.roles)]
            either = " and ".join(f"{i + 1}" for i in self.open)
            raise InputError(
                f"{file}: columns {either} hold labels; name the one that is gold, such as --columns {' '.join(first)}"
            )

    def log(self, file: str) -> None:
        """Tell the user, on standard error, how a file is read that has columns which may be read otherwise."""
        if self.how != "given" and {SKIPPED, GOLD} & set(self.roles):
            gold = f", gold is column {self.roles.index(GOLD) + 1}" if GOLD in self.roles else ""
            named = f", which its first line names {' '.join(self.names)}" if self.how == "named" else ""
            roles = " ".join(self.roles)
            logger.info("%s: read as columns %s%s%s; --columns names them otherwise", file, roles, named, gold)


def column_roles(
    tagger: Predictor, lines: Sequence[str], file: str, reading: ReadOptions = DEFAULT_READING
) -> ColumnRoles:
    """Return the roles of the columns of a file that opens with these lines.

    They are those that `reading` names, or the first line of the file (see `header_line`); those of the training files,
    for a file of as many columns; else those that the tagger reads come first, and gold is the only further column, or
    the only one of several that holds labels of the tagger. Raises InputError for files that cannot be read that way,
    and labels where the tagger reads something else.
    """
    how = reading.line_format(tagger.training_files)
    inputs, width = tagger.features.columns, field_count(lines, how)
    names = header_names(lines[0]) if lines else None
    if reading.columns:
        skipped = [SKIPPED] * (width - len(reading.columns))
        return ColumnRoles(list(reading.columns), names or [*reading.columns, *skipped], "given")
    if names:
        if missing := [role for role in inputs if role not in names]:
            there = f"the columns are {', '.join(names)} by the first line, none is {missing[0]}"
            raise InputError(f"{file}: {there}, which the model reads; name them in --columns")
        return ColumnRoles(_used(names, inputs), names, "named")
    found = tagger.training_files.get("columns")
    trained = found if isinstance(found, list) else []
    if width == len(trained):
        _check_input_columns(tagger, distinct_fields(lines, how), _used(trained, inputs), file)
        return ColumnRoles(_used(trained, inputs), trained, "trained")
    if width < len(inputs):
        if not width or tagger.unsupported_reason is None:
            return ColumnRoles(inputs, inputs, "places")
        raise InputError(f"{file}: {width} {'column' if width == 1 else 'columns'}, but {tagger.unsupported_reason}")
    if trained and trained[: len(inputs)] != inputs and width != len(inputs):
        known = f"the training files have {len(trained)} ({' '.join(trained)})"
        raise InputError(
            f"{file}: {width} columns, but {known} and the model reads {len(inputs)} ({' '.join(inputs)}); "
            "name those of this file in --columns"
        )
    return _by_place(tagger, distinct_fields(lines, how), file, width)


def _used(roles: Sequence[str], inputs: Sequence[str]) -> list[str]:
    return [role if role == GOLD or role in inputs else SKIPPED for role in roles]


def _by_place(tagger: Predictor, values: Sequence[Set[str]], file: str, width: int) -> ColumnRoles:
    """Roles of columns, of some distinct strings, of which those that the tagger reads come first."""
    inputs = tagger.features.columns
    roles = [*inputs, *[SKIPPED] * (width - len(inputs))]
    _check_input_columns(tagger, values, roles, file)
    labels = [i for i in range(len(inputs), width) if _may_be_gold(tagger, values[i])]
    names = [GOLD if [i] == labels else role for i, role in enumerate(roles)]
    gold = [width - 1] if width == len(inputs) + 1 else labels
    if len(gold) == 1:
        roles[gold[0]] = GOLD
    return ColumnRoles(roles, names, "places", gold if len(gold) > 1 else ())


def _check_input_columns(tagger: Predictor, values: Sequence[Set[str]], roles: Sequence[str], file: str) -> None:
    """Refuse labels as those of the tagger where it reads something else."""
    usual = tagger.training_files.get("like_labels", ())
    for place, (role, distinct) in enumerate(zip(roles, values, strict=True), 1):
        if role in (SKIPPED, GOLD, *usual) or tagger.labels.scheme == "none":
            continue
        if tagger.labels.share_known(distinct) > HALF:
            reason = f"column {place} holds labels that the model predicts, where it reads {role}"
            raise InputError(f"{file}: {reason}; name the columns in --columns")


def _may_be_gold(tagger: Predictor, values: Set[str]) -> bool:
    """Whether the strings of a column are labels that the tagger predicts, or all O."""
    return values == {"O"} or tagger.labels.share_known(values) > HALF
