"""A file of CoNLL columns, or a table, as the corpus that a saved tagger reads, with gold labels in its scheme."""

import logging
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from structperc.data.conll import conll_corpus, distinct_fields, field_count, named_columns
from structperc.data.conllu import read_conllu
from structperc.data.corpus import Corpus
from structperc.data.normalise import checked_corpus, illegal_sentences, warn_of_unknown
from structperc.data.not_columns import check_columns, filled, is_conllu, looks_like_text
from structperc.data.reading import Reading
from structperc.data.tags import named_type
from structperc.data.text import read_lines
from structperc.errors import InputError
from structperc.inspection.table_reading import is_table, table_corpus
from structperc.light import Labeller

logger = logging.getLogger("pytorch_lightning.structperc")

AS_THE_MODEL = Reading()
UNMARKED = "(-DOCSTART- lines) in it; use --unit sentence"
SKIPPED, GOLD = "_", "label"  # roles
TAGS = ("upos", "xpos")  # kinds of labels of CoNLL-U
HALF = 0.5


def read_corpus(tagger: Labeller, file: str, reading: Reading = AS_THE_MODEL) -> Corpus:
    """Return a file of columns or a table as a corpus; its `label`, if there is gold, is in the scheme of the tagger.

    A file whose name is that of a table (.jsonl, .parquet, a saved folder) is one, see `table_corpus`; CoNLL-U is
    recognised. What the columns of other files are is said by `reading` or found as `column_roles` does. The unit is
    that of the tagger unless named, the scheme of the file that of the training files, or of the tagger, if the labels
    are legal in it alone. Labels are repaired and converted as `SequenceData` does. Raises InputError for a bad file,
    missing columns and labels that are not of the scheme.
    """
    corpus = _normal(tagger, file, reading)
    warn_of_unknown(corpus, tagger.labels)
    return corpus


def _normal(tagger: Labeller, file: str, reading: Reading) -> Corpus:
    """The file as `read_corpus` gives it."""
    due = reading.or_else(tagger.unit, tagger.training_files.get("labels", tagger.labels.scheme))
    if is_table(tagger, file, reading.columns):
        return checked_corpus(table_corpus(tagger, file, due), due, tagger.labels.scheme, UNMARKED)
    lines = read_lines(file, reading.encoding)
    corpus = _treebank(tagger, file, due) if is_conllu(lines) and not reading.columns else None
    if corpus is None:
        check_form(tagger, lines, file, reading)
        assert due.unit is not None
        columns = column_roles(tagger, lines, file, reading)
        columns.check(file)
        how = reading.line_format(tagger.training_files)
        corpus = conll_corpus(lines, columns.roles, file, due.unit, how)
        columns.say(file)
    due = due if reading.labels else due._replace(labels=_scheme(tagger, corpus))
    return checked_corpus(corpus, due, tagger.labels.scheme, UNMARKED)


def read_gold(tagger: Labeller, file: str, reading: Reading = AS_THE_MODEL) -> Corpus:
    """Return a file as a corpus, as `read_corpus` does. Raises InputError for a file without gold labels."""
    corpus = read_corpus(tagger, file, reading)
    if GOLD not in corpus.columns:
        raise InputError(f"{file}: there are no gold labels; name their column 'label' in --columns")
    return corpus


def check_form(tagger: Labeller, lines: Sequence[str], file: str, reading: Reading) -> None:
    """Raise InputError for lines that are probably no columns, unless `reading` names some."""
    if reading.columns:
        return
    if tagger.needs is not None and any(True for _ in filled(lines)) and looks_like_text(lines):
        raise InputError(f"{file}: {tagger.needs}, a token per line")
    check_columns(lines, len(tagger.features.columns), file)


def _treebank(tagger: Labeller, file: str, reading: Reading) -> Corpus:
    """A file in CoNLL-U; its label is the kind of tags that was learned or, where that is not known, fits best."""
    assert reading.unit is not None
    corpus = Corpus.from_dataset(read_conllu(file, encoding=reading.encoding), reading.unit, file)
    columns = {role: values for role, values in corpus.columns.items() if role != GOLD}
    if tagger.labels.scheme == "none":
        known = {role: len(set(tagger.labels.names) & set(columns[role])) for role in TAGS}
        kind = tagger.training_files.get("tags") or max(TAGS, key=known.__getitem__)
        if set(columns[kind]) != {"_"}:
            columns[GOLD] = columns[kind]
            logger.info("%s: read as CoNLL-U, gold is %s", file, kind.upper())
    return replace(corpus, columns=columns)


def _scheme(tagger: Labeller, corpus: Corpus) -> str:
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


class Roles(NamedTuple):
    """The role of each column of a file."""

    roles: list[str]  # in their order, "_" for columns that are not read
    found: bool = True  # whether nobody has named them
    open: Sequence[int] = ()  # places of several columns that may be gold, none of which was chosen
    names: Sequence[str] = ()  # those that the first line of the file gives

    def check(self, file: str) -> None:
        """Raise InputError if it is open which column is gold."""
        if self.open:
            first = [GOLD if i == self.open[0] else role for i, role in enumerate(self.roles)]
            either = " and ".join(f"{i + 1}" for i in self.open)
            raise InputError(
                f"{file}: columns {either} hold labels; name the one that is gold, such as --columns {' '.join(first)}"
            )

    def say(self, file: str) -> None:
        """Tell the user, on standard error, how a file is read that has columns which may be read otherwise."""
        if self.found and {SKIPPED, GOLD} & set(self.roles):
            gold = f", gold is column {self.roles.index(GOLD) + 1}" if GOLD in self.roles else ""
            roles = " ".join(self.roles)
            if self.names:
                roles = f"{roles}, which the first line names {' '.join(self.names)}"
            logger.info("%s: read as columns %s%s; --columns names them otherwise", file, roles, gold)


def column_roles(tagger: Labeller, lines: Sequence[str], file: str, reading: Reading = AS_THE_MODEL) -> Roles:
    """Return the roles of the columns of a file that opens with these lines.

    They are those that `reading` names, or the first line of the file (see `header_line`); those of the training files,
    for a file of as many columns; else those that the tagger reads come first, and gold is the only further column, or
    the only one of several that holds labels of the tagger. Raises InputError for files that cannot be read that way,
    and labels where the tagger reads something else.
    """
    inputs = tagger.features.columns
    if reading.columns:
        return Roles(list(reading.columns), found=False)
    if lines and (names := named_columns(lines[0])):
        if missing := [role for role in inputs if role not in names]:
            there = f"the columns are {', '.join(names)} by the first line, none is {missing[0]}"
            raise InputError(f"{file}: {there}, which the model reads; name them in --columns")
        return _used(names, inputs)._replace(names=names)
    how = reading.line_format(tagger.training_files)
    width, trained = field_count(lines, how), tagger.training_files.get("columns")
    trained = trained if isinstance(trained, list) else []
    if width == len(trained):
        return _used(trained, inputs)
    if width < len(inputs):
        if not width or tagger.needs is None:
            return Roles(inputs)
        raise InputError(f"{file}: {width} {'column' if width == 1 else 'columns'}, but {tagger.needs}")
    if trained and trained[: len(inputs)] != inputs and width != len(inputs):
        known = f"the training files have {len(trained)} ({' '.join(trained)})"
        raise InputError(
            f"{file}: {width} columns, but {known} and the model reads {len(inputs)} ({' '.join(inputs)}); "
            "name those of this file in --columns"
        )
    return _by_place(tagger, distinct_fields(lines, how), file, width)


def _used(roles: Sequence[str], inputs: Sequence[str]) -> Roles:
    return Roles([role if role == GOLD or role in inputs else SKIPPED for role in roles])


def _by_place(tagger: Labeller, values: Sequence[Set[str]], file: str, width: int) -> Roles:
    """Roles of columns, of some distinct strings, of which those that the tagger reads come first."""
    inputs = tagger.features.columns
    for place, role in enumerate(inputs):
        if tagger.labels.scheme != "none" and _share_known(tagger, values[place]) > HALF:
            raise InputError(
                f"{file}: column {place + 1} holds labels that the model predicts, and is not {role}; "
                "name the columns in --columns"
            )
    roles = [*inputs, *[SKIPPED] * (width - len(inputs))]
    further = range(len(inputs), width)
    gold = further if len(further) == 1 else [i for i in further if _may_be_gold(tagger, values[i])]
    if len(gold) == 1:
        roles[gold[0]] = GOLD
    return Roles(roles, open=gold if len(gold) > 1 else ())


def _may_be_gold(tagger: Labeller, values: Set[str]) -> bool:
    """Whether the strings of a column are labels that the tagger predicts, or all O."""
    return values == {"O"} or _share_known(tagger, values) > HALF


def _share_known(tagger: Labeller, values: Set[str]) -> float:
    """The share of strings, "O" left out, that are labels of the tagger, or of its types in another scheme."""
    own = set(tagger.labels.names)
    types = {named_type(name) for name in own} if tagger.labels.scheme != "none" else set()
    labels = values - {"O"}
    return sum(one in own or ("-" in one and named_type(one) in types) for one in labels) / max(1, len(labels))
