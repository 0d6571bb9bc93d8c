"""Files of columns, treebanks and tables as corpora for a saved tagger, with gold labels in its scheme."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from structperc.data.annotations import TextOptions, check_conflicts
from structperc.data.conll import conll_corpus, conllu_corpus, header_names
from structperc.data.corpus import Corpus
from structperc.data.format_detection import check_not_text, is_conllu
from structperc.data.label_sets import join_label_sets, separate_label_sets
from structperc.data.normalise import checked_corpus, illegal_sentences, rename_types, warn_unknown_labels
from structperc.data.read_options import DEFAULT_READING, PREDICTED, TREATMENTS, ReadOptions
from structperc.data.table_files import (
    DELIMITERS,
    DOCUMENT,
    SENTENCE,
    SPANS,
    TEXT,
    USUAL_NAMES,
    TableOptions,
    candidate_columns,
    iterate_rows,
    parse_column_options,
    read_best_fit,
    table_format,
    unique_columns,
)
from structperc.data.text_files import expand_path, read_lines
from structperc.errors import InputError
from structperc.predictor import Predictor
from structperc.tagging.column_roles import GOLD, column_roles, line_format_of, refuse_plain_text

logger = logging.getLogger("pytorch_lightning.structperc")

UNMARKED = "(-DOCSTART- lines) in the file; use --unit sentence"
TAGS = ("upos", "xpos")  # kinds of labels of CoNLL-U


def read_corpus(tagger: Predictor, file: str, reading: ReadOptions = DEFAULT_READING) -> Corpus:
    r"""Return a file of columns or a table as a corpus; its gold labels, if any, are in the scheme of the tagger.

    Tables (.jsonl, .parquet, a saved folder) are recognised by their names, and CoNLL-U by its lines. The columns of
    other files are those of `reading`, or detected by `column_roles`. Defaults of the unit and the scheme are those of
    the training files; the scheme of the tagger is used for labels that are legal only in it. Labels are repaired and
    converted as by `SequenceDataModule`.

    Args:
        tagger: A trained tagger.
        file: The file.
        reading: Columns, unit, tag scheme and encoding of the file.

    Raises:
        InputError: The file cannot be read, a column is missing, or a label is invalid.

    Example:
        >>> from pathlib import Path
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger("averaged_perceptron", random_state=1).fit(X, y).tagger_
        >>> _ = Path("dev.txt").write_text("Anna B-PER\nsaw O\nOslo B-LOC\n")
        >>> corpus = read_corpus(tagger, "dev.txt", ReadOptions(columns=["word", "label"]))
        >>> corpus.columns["label"]
        ['B-PER', 'O', 'B-LOC']
    """
    corpus = _normal(tagger, file, reading)
    warn_unknown_labels(corpus, tagger.labels)
    return corpus


def read_incomplete(tagger: Predictor, file: str, reading: ReadOptions = DEFAULT_READING) -> Corpus:
    """Return training data with sets of labels, such as "?", as a corpus; see `data.label_sets`.

    Columns, unit and scheme are found as by `read_corpus`. Without sets the corpus has no column `allowed`.

    Args:
        tagger: A tagger, whose scheme the labels get.
        file: A file of columns or a table.
        reading: Options for reading it.

    Raises:
        InputError: An invalid file, or sets of labels of which no sequence is legal.

    Example:
        >>> from pathlib import Path
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> _ = Path("train.txt").write_text("Anna B-PER\\nslept ?\\n\\n")
        >>> read_incomplete(tagger, "train.txt", ReadOptions(columns=["word", "label"])).columns["allowed"]
        ['B-PER', '?']
    """
    corpus, full = _with_reading(tagger, file, reading)
    assert full.labels is not None
    corpus, sets = separate_label_sets(corpus, full.labels, tagger.labels.scheme)
    corpus = checked_corpus(corpus, full, tagger.labels.scheme, UNMARKED)
    return corpus if sets is None else join_label_sets(corpus, sets)


def _normal(tagger: Predictor, file: str, reading: ReadOptions) -> Corpus:
    """Return the corpus of `read_corpus`, whose labels may be unknown to the tagger."""
    corpus, full = _with_reading(tagger, file, reading)
    strict, types = (tagger.training_files.get(name) for name in ("strict", "types"))
    corpus = checked_corpus(corpus, full, tagger.labels.scheme, UNMARKED, bool(strict))
    if types and GOLD in corpus.columns:
        corpus = rename_types(corpus, tagger.labels.scheme, types)
    return corpus if reading.dropped == "missed" else replace(corpus, dropped=())


def _with_reading(tagger: Predictor, file: str, reading: ReadOptions) -> tuple[Corpus, ReadOptions]:
    """Return a file as a corpus with labels as they are, and the options with unit and scheme."""
    full = reading.or_else(tagger.unit, tagger.training_files.get("labels", tagger.labels.scheme))
    if _is_table(tagger, file, reading.columns):
        return _table_corpus(tagger, file, full), full
    lines = read_lines(file, reading.encoding)
    corpus = _treebank(tagger, file, full) if is_conllu(lines) and not reading.columns else None
    if corpus is None:
        if not reading.columns and not (lines and header_names(lines[0])):
            refuse_plain_text(tagger, lines, file)
            check_not_text(lines, len(tagger.columns), file)
        assert full.unit is not None
        columns = column_roles(tagger, lines, file, reading)
        columns.check(file)
        line_format = line_format_of(tagger, lines, reading)
        corpus = conll_corpus(lines, columns.roles, file, full.unit, line_format)
        columns.log(file)
    return corpus, full if reading.labels else full._replace(labels=_scheme(tagger, corpus))


def read_gold(tagger: Predictor, file: str, reading: ReadOptions = DEFAULT_READING) -> Corpus:
    """Return a file as a corpus, as `read_corpus` does; gold spans that labels cannot represent are reported.

    Raises InputError for a file without gold labels.
    """
    corpus = read_corpus(tagger, file, reading)
    if corpus.dropped:
        types = Counter(one.type for one in corpus.dropped)
        listed = ", ".join(f"{name} {count:,}" for name, count in sorted(types.items()))
        advice = "set --dropped ignored to leave them out of the scores"
        logger.warning("%s: dropped gold spans count as missed: %s; %s", file, listed, advice)
    if GOLD not in corpus.columns:
        raise InputError(f"{file}: no gold labels; name their column 'label' in --columns")
    return corpus


def _treebank(tagger: Predictor, file: str, reading: ReadOptions) -> Corpus:
    """Return a file in CoNLL-U; its label is the kind of tags of the training files or, if unknown, the best fit."""
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
    """Return the scheme of gold labels: that of the tagger if they are legal only in it, else of the training files."""
    trained: str = tagger.training_files.get("labels", tagger.labels.scheme)
    if GOLD in corpus.columns and not _legal(corpus, trained) and _legal(corpus, tagger.labels.scheme):
        return tagger.labels.scheme
    return trained


def _legal(corpus: Corpus, scheme: str) -> bool:
    try:
        return not len(illegal_sentences(corpus, scheme))
    except InputError:
        return False


def _is_table(tagger: Predictor, file: str, columns: Sequence[str] | None) -> bool:
    """Return True if a file is a table by its name.

    CSV may be columns; it is a table if ROLE=COLUMN is given, or the training files were tables and nothing is given.
    """
    kind = table_format(expand_path(file))
    if kind is None or kind not in DELIMITERS:
        return kind is not None
    return any("=" in one for one in columns) if columns else isinstance(tagger.training_files.get("columns"), dict)


def _table_corpus(tagger: Predictor, file: str, reading: ReadOptions) -> Corpus:
    """Return a table as a corpus of the unit and with labels in the scheme of `reading`.

    Without columns of the form ROLE=COLUMN, those of the training files are used, if they were tables and these columns
    exist, or columns are found by their usual names, which is logged. Spans are read with the options of the training
    files, but with the offsets and tokens that fit most of them, and reported as in training. Raises InputError for
    missing columns, and as `data.Table` does.
    """
    assert reading.unit is not None
    assert reading.labels is not None
    names: Mapping[str, Sequence[str]] = {}
    if reading.columns:
        columns = parse_column_options(reading.columns, file)
    else:
        row = next((row for _, row in iterate_rows(file, reading.encoding)), {})
        columns, names = _as_trained(tagger, row) or (_usual_columns(tagger, row, file), {})
    if TEXT in columns:
        tagger.check_reads_words_only()
    elif missing := [role for role in ("word", *tagger.columns) if role not in columns]:
        raise InputError(f"{file}: no column for {missing[0]!r}; add {missing[0]}=COLUMN to --columns")
    reader = TableOptions(columns, names, _text_options(tagger, reading), reading.labels)
    corpus, reader, report = read_best_fit(file, reader, reading.encoding, reading.unit)
    text_options = reader.text_options
    if report is not None:
        check_conflicts(report, "--{}")
    if text_options[:2] + text_options[-1:] != TextOptions()[:2] + TextOptions()[-1:]:
        logger.info("%s: read with offsets in %s, tokens of %s", file, text_options.offsets, text_options.tokens)
    return corpus


def _as_trained(tagger: Predictor, row: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, list[str]]] | None:
    """Return columns and label names of the training files, None if columns other than labels are missing.

    A missing column of labels or spans is replaced by the only one with a usual name.
    """
    options = tagger.training_files
    named = options.get("columns")
    if not isinstance(named, dict) or not {one for role, one in named.items() if role not in (GOLD, SPANS)} <= set(row):
        return None
    columns = {role: column for role, column in named.items() if column in row}
    others = candidate_columns({} if PREDICTED in row else row, [one for one in named if one in (GOLD, SPANS)])
    columns = {**{role: names[0] for role, names in others.items() if len(names) == 1}, **columns}
    return columns, options.get("names", {})


def _text_options(tagger: Predictor, reading: ReadOptions) -> TextOptions:
    """Return the options for running text of the training files, or as given. Raises InputError for unknown values."""
    trained = {name: value for name, value in tagger.training_files.items() if name in TextOptions._fields}
    given = {name: value for name in TREATMENTS if (value := getattr(reading, name)) is not None}
    options = TextOptions(**{**trained, **given})
    options.check()
    return options


def _usual_columns(tagger: Predictor, row: Mapping[str, Any], file: str) -> dict[str, str]:
    """Return roles and columns by their usual names in a row; text is used only without words."""
    known = dict.fromkeys([*tagger.columns, *(role for role in USUAL_NAMES if role != SENTENCE)])
    predicted = {"labels", SPANS} if PREDICTED in row else ()  # see `tagging.writing`
    among = candidate_columns({name: value for name, value in row.items() if name not in predicted}, known)
    left_out = {TEXT, SPANS} if among["word"] else known.keys() - {TEXT, SPANS, DOCUMENT}
    found = unique_columns({role: names for role, names in among.items() if role not in left_out}, file)
    logger.info("%s: read with --columns %s", file, " ".join(f"{role}={column}" for role, column in found.items()))
    return found
