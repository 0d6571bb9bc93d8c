"""Survey of a labelled file of any format: its columns, the column of labels, and the tag scheme."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from structperc.data.annotations import TASK_SPANS, TextOptions, detect_tool
from structperc.data.conll import (
    comment_line_numbers,
    conll_corpus,
    conllu_corpus,
    detect_line_format,
    field_count,
    header_names,
    header_row,
)
from structperc.data.corpus import Corpus
from structperc.data.format_detection import check_not_text
from structperc.data.label_sets import ANY, is_label_set, names_in, split_label_set
from structperc.data.normalise import check_scheme_labels, read_brackets
from structperc.data.read_options import DEFAULT_READING, LineFormat, ReadOptions
from structperc.data.scheme_detection import (
    NO_OUTSIDE,
    NO_SEGMENT,
    LabelSequences,
    SchemeFit,
    fit_brackets,
    fit_io,
    fit_scheme,
    is_label,
)
from structperc.data.table_files import (
    COMPLETE,
    DELIMITERS,
    DOCUMENT,
    EMPTY_ROWS,
    FOLDER,
    JSON,
    NOT,
    PARQUET,
    SENTENCE,
    SPANS,
    TEXT,
    USUAL_NAMES,
    TableOptions,
    TableSurvey,
    candidate_columns,
    class_names,
    detect_delimiter,
    iterate_rows,
    parse_column_options,
    read_best_fit,
    table_format,
    unique_columns,
    usual_columns,
)
from structperc.data.tag_schemes import (
    BRACKETS,
    PREFIX_SCHEMES,
    are_chains,
    parse_notation,
    repair,
    spans,
    suggest_label,
    wider_scheme,
)
from structperc.data.text_files import expand_path, read_lines, read_text, split_lines
from structperc.errors import InputError
from structperc.spelling import counted, quoted

MAX_LABELS = 1000  # distinct strings in a column of labels
SHOWN = 5  # labels in a remark
SIMILAR = 0.8  # with this share of segments of the same types, the column of the gold labels is unclear
LONG = 200  # tokens of a very long sentence
LONG_WORD = 30  # characters of words on average that are hardly words
HEAD = 100  # rows of a table to inspect
MAX_STRINGS = 200  # distinct strings of a column that is used for features
FEW_WORDS = 100  # at most so many distinct strings, each ten times in the mean, are hardly words
CHUNK_OR_ROLE = re.compile(  # types of chunks (CoNLL-2000), of constituents, and of arguments of predicates
    r"NP|VP|PP|AP|DP|CP|ADVP|ADJP|SBAR|PRT|CONJP|INTJ|LST|UCP|TOP|ROOT|S|SINV|SQ|SBARQ|WH[A-Z]+|NX|NML|QP|PRN|FRAG|RRC"
    r"|V|A[0-9A]|AM-.*|ARG.*|[CR]-A.*|C-V"
)
LAYOUTS = {  # roles of the first columns by name; the label of CoNLL-2009 is POS, that of CoNLL-2012 the named entity
    "CoNLL-2009": ["_", "word", "_", "_", "label", *["_"] * 9],
    "CoNLL-2012": ["_", "_", "_", "word", *["_"] * 6, "label", "_"],
}


class Survey(NamedTuple):
    """The content of a file. The corpus, of sentences, has a column for each role but "_"."""

    file: str
    roles: list[str]  # roles of the file's columns in order
    tags: str | None  # upos or xpos, the label of a CoNLL-U treebank; None: another format
    corpus: Corpus
    scheme: str  # scheme or notation of the labels; "none": not segments
    illegal: list[int]  # tokens with an illegal label
    repaired: list[str]  # legal labels of all tokens
    fit: SchemeFit | None = None  # None: no labels, or the scheme was given
    line_format: LineFormat = LineFormat()
    other_labels: Sequence[str] = ()  # other columns with labels of the same types, which must not be features
    further_labels: Sequence[str] = ()  # other columns with labels of segments of other types
    layout: str = ""  # name of a known layout by which the columns were found
    written: str = ""  # "brackets" if these were the labels, which are IOB2 in the corpus
    inner: int = 0  # number of segments inside others, which are not read
    comments: Sequence[int] = ()  # lines
    header: int = 0  # line of column names; 0: none
    table: TableSurvey | None = None  # for tables
    sets: Mapping[str, int] = MappingProxyType({})  # tokens by text of their set of labels; O in the corpus

    @property
    def labelled(self) -> bool:
        """True if the file has labels."""
        return "label" in self.corpus.columns

    @property
    def file_scheme(self) -> str:
        """The scheme or notation of the labels in the file."""
        return self.written or self.scheme

    @property
    def documents(self) -> int:
        """Number of documents; 0 if they are not marked."""
        count = len(np.unique(self.corpus.documents))
        return count if count < len(self.corpus) else 0

    @property
    def size(self) -> str:
        """Numbers of sentences, tokens and documents as a text."""
        documents = f"{self.documents:,}" if self.documents else "not marked"
        return f"sentences: {len(self.corpus):,}, tokens: {self.corpus.tokens:,}, documents: {documents}"

    @property
    def place(self) -> str:
        """Unit of locations of tokens: "line", or "row" for a table without lines."""
        return "line" if self.table is None else self.table.place

    def line(self, token: int) -> int:
        """Return the line of the file, or the row of a table, of a token."""
        assert self.corpus.lines is not None
        return int(self.corpus.lines[token])

    def types(self) -> tuple[Counter[str], Counter[str]]:
        """Return the numbers of segments, and of their tokens, by type."""
        segments: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        for labels in self.corpus.sentences_of(self.repaired):
            for span in spans(labels, self.scheme):
                segments[span.type] += 1
                tokens[span.type] += span.end - span.start
        return segments, tokens

    def counts(self, role: str) -> Counter[str]:
        """Return the count of each string in a column."""
        return Counter(self.corpus.columns[role])

    @property
    def feature_columns(self) -> list[str]:
        """The columns before the label, other than words and labels of its types, of few different strings."""
        if self.tags or self.table or not self.labelled:
            return []
        named = [role for role in self.roles[: self.roles.index("label")] if role not in ("word", "_")]
        return [role for role in named if 1 < len(self.counts(role)) <= MAX_STRINGS and role not in self.other_labels]

    def column_remarks(self) -> Iterator[str]:
        """Yield remarks about the choice of the columns."""
        words = self.counts("word")
        if self.table is None and len(words) <= min(FEW_WORDS, self.corpus.tokens / 10):
            only = f"the word has only {len(words):,} distinct strings in {self.corpus.tokens:,} tokens"
            yield f"column {self.roles.index('word') + 1}: {only}; if words are elsewhere, set --columns"
        letters = sum(len(word) * count for word, count in words.items()) / max(self.corpus.tokens, 1)
        if letters > LONG_WORD:
            long = f"the words have {letters:.0f} characters on average, as if they were sentences"
            yield f"{long}; write a word per line"
        if self.layout:
            chosen = f"column {self.roles.index('label') + 1} is the label, the others are not features"
            yield f"the columns are those of {self.layout}: {chosen}; set --columns to change that"
        if self.other_labels:
            label, *others = (self.roles.index(role) + 1 for role in ("label", *self.other_labels))
            columns = f"columns {', '.join(map(str, sorted([label, *others])))} have labels of the same types"
            yield f"{columns}: column {label} is the label, the others are not features; set --columns to change that"
        for role in self.further_labels:
            which = f"column {self.roles.index(role) + 1} has labels of segments of other types"
            yield f"{which}: it is not the label; set --columns to change that"

    def label_remarks(self) -> Iterator[str]:
        """Yield a remark about labels that do not fit the scheme, if there are any."""
        if self.labelled and are_chains(self.counts("label")):
            column = f"column {self.roles.index('label') + 1}" if self.table is None else "the column of labels"
            yield f"{column} has coreference chains, which are not labels of tokens; name another one in --columns"
            return
        notation = parse_notation(self.scheme)
        if notation.scheme == "IO" and notation.outside not in self.counts("label"):
            yield NO_OUTSIDE
        outside = parse_notation(self.scheme).outside
        if self.fit is not None and outside in self.fit.types:
            yield f"some segments have the type {outside!r}, which is also the label of tokens outside of segments"
        if self.fit is not None and (remark := self.fit.remark()):
            places = [*islice(self._unrecognized(), SHOWN + 1)]
            yield "; ".join([remark, *places[:SHOWN], *(["and others"] if len(places) > SHOWN else [])])

    def set_remark(self) -> str:
        """Return a remark about the shares of tokens with incomplete labels."""
        kinds: Counter[str] = Counter()
        for text, count in self.sets.items():
            several = "one of several labels" if not split_label_set(text)[1] else "some labels excluded"
            kinds["an unknown label" if text == ANY else several] += count
        shares = (f"{count / self.corpus.tokens:.1%} of the tokens have {kind}" for kind, count in kinds.items())
        if self.table is not None and self.table.spans is not None:  # read without an option
            return ", ".join(shares)
        return f"{', '.join(shares)}; set data.incomplete: true to learn from them"

    def remarks(self, training: bool = True) -> Iterator[str]:
        """Yield remarks about unusual properties of the file."""
        yield from self.label_remarks()
        if self.table is not None and (report := self.table.spans) is not None:
            yield from filter(None, [report.remark])
            yield from (f"{Path(place).name}: {conflict.message}" for place, conflict in report.missing)
        if self.sets:
            yield self.set_remark()
        only = set(self.counts("label")) if training and self.labelled else set()
        if only == {parse_notation(self.scheme).outside}:
            yield NO_SEGMENT
        elif len(only) == 1 and self.scheme == "none":
            label = quoted(only.pop())
            yield f"all tokens have the label {label}: there is nothing to learn; name the columns in --columns"
        if len(self.corpus) == 1 and self.corpus.tokens > LONG and self.table is None:
            yield f"there are no empty lines after sentences, so all {self.corpus.tokens:,} tokens are one sentence"
        if self.inner:
            yield f"{counted(self.inner, 'segment')} not read: they are inside of others"
        yield from self.column_remarks()
        if self.header:
            yield f"line {self.header} has the names of the columns"
        if self.comments:
            yield f"{counted(len(self.comments), 'comment line')}, the first is line {self.comments[0]}"
        if self.line_format.separator == "tab":
            yield "fields contain spaces, so they are separated by tabs only"

    def _unrecognized(self) -> Iterator[str]:
        """Yield the locations of labels that are not of the scheme or, without a scheme, of a label with a prefix."""
        assert self.fit is not None
        labels = self.corpus.columns["label"]
        if self.scheme == "none":
            at = next((t for t, label in enumerate(labels) if label[1:2] == "-"), None)
            if at is not None:
                yield f"{self.place} {self.line(at)} has {quoted(labels[at])}"
            return
        for label, n in self.fit.unrecognized.items():
            at = labels.index(label)
            meant = suggest_label(label, self.scheme)
            remark = f"{self.place} {self.line(at)} has {quoted(label)}"
            remark += f", which occurs {n:,} times" if n > 1 else ""
            if meant is not None:
                remark += f", perhaps {meant} is meant"
            elif (wider := wider_scheme(label, self.scheme)) is not None:
                remark += f", which --labels {wider} reads"
            elif self.corpus.columns["word"][at] == "#":
                remark += ", perhaps this is a comment"
            elif at == 0:
                remark += ", perhaps these are column names"
            yield remark


def inspect_columns(file: str, reading: ReadOptions = DEFAULT_READING) -> Survey:
    """Return the content of a column file or a CoNLL-U treebank.

    Columns are named by `reading` or by the first line of the file, see `conll.header_line`. Otherwise they are found
    by `find_word` and `find_label`. Raises InputError as the readers do, and for labels that are not of the scheme in
    `reading`.
    """
    lines = read_lines(file, reading.encoding)
    if not reading.columns:
        first = next((line for line in lines if line.strip() and not line.startswith("#")), "").split("\t")
        if len(first) == 10 and first[0].partition("-")[0].isdecimal():  # CoNLL-U
            return _inspect_treebank(file, reading)
        check_not_text(lines, 1, file)
    line_format = detect_line_format(lines, reading.separator, reading.comments)
    given = reading.columns or (header_names(lines[0]) if lines else None)
    columns = given or ["word", *(f"column{n}" for n in range(2, field_count(lines, line_format) + 1))]
    corpus, sets = _hide_label_sets(conll_corpus(lines, columns, file, line_format=line_format))
    by_sentence = {role: corpus.sentences_of(values) for role, values in corpus.columns.items()}
    few = [role for role in corpus.columns if len(corpus.factorize(role).distinct) <= MAX_LABELS]
    fits = {role: _fit(by_sentence[role]) for role in few}
    roles, layout = list(given or ()), ""
    if given is None:
        layout = _known_layout(list(by_sentence.values()))
        first = LAYOUTS.get(layout, [])
        roles = [*first, *["_"] * (len(columns) - len(first))] if layout else _detect_roles(by_sentence, fits)
        renamed = {old: role for old, role in zip(columns, roles, strict=True) if role != "_"}
        corpus = replace(corpus, columns={role: corpus.columns[old] for old, role in renamed.items()})
        fits = {renamed[old]: fit for old, fit in fits.items() if old in renamed}
    other_labels = _same_types(fits, "label") if "label" in fits else []
    further = [role for role, fit in fits.items() if fit.is_regular and role not in ("word", "label", *other_labels)]
    survey = inspect_corpus(file, roles, None, corpus, reading.labels, fits.get("label"))
    return survey._replace(
        line_format=line_format,
        other_labels=other_labels,
        further_labels=further if "label" in fits else [],
        layout=layout,
        comments=comment_line_numbers(lines, line_format),
        header=header_row(lines, line_format),
        sets=sets,
    )


def _hide_label_sets(corpus: Corpus) -> tuple[Corpus, Counter[str]]:
    """Return a corpus with O in place of sets of labels, and the number of tokens with each set.

    A column has sets of labels if all its strings are labels of segments or sets of them.
    """
    counts: Counter[str] = Counter()
    for role in corpus.columns:
        distinct = corpus.factorize(role).distinct
        sets, names = {string for string in distinct if is_label_set(string)}, names_in(distinct) - {"O"}
        if sets and names and all(any(is_label(string, scheme) for scheme in PREFIX_SCHEMES) for string in names):
            texts = corpus.columns[role]
            counts.update(string for string in texts if string in sets)
            corpus = corpus.replace_column(role, ["O" if string in sets else string for string in texts])
    return corpus, counts


def inspect_matching_files(first: Survey, files: Sequence[str], reading: ReadOptions = DEFAULT_READING) -> list[Survey]:
    """Return surveys of a file and of others with the columns of the first one, all read with the same options.

    Comments, or fields with spaces, in one of the files apply to all. Raises InputError as `inspect_columns` does.
    """
    if first.tags is not None:
        return [first, *(inspect_columns(file, reading) for file in files)]
    others = (read_lines(file, reading.encoding) for file in files)
    formats = [first.line_format, *(detect_line_format(lines, reading.separator, reading.comments) for lines in others)]
    comments, tab = any(form.comments for form in formats), any(form.separator == "tab" for form in formats)
    common = reading._replace(comments=comments, separator="tab" if tab else "whitespace")
    again = first if first.line_format == common.line_format() else inspect_columns(first.file, common)
    return [again, *(inspect_columns(file, common._replace(columns=again.roles)) for file in files)]


def inspect_corpus(
    file: str, roles: list[str], tags: str | None, corpus: Corpus, scheme: str | None, fit: SchemeFit | None = None
) -> Survey:
    """Return the survey of a corpus, by default with the scheme that fits best."""
    if "label" not in corpus.columns:
        return Survey(file, roles, tags, corpus, "none", [], [])
    sentences = corpus.sentences_of(corpus.columns["label"])
    unrecognized: Mapping[str, int] = {}
    if scheme is None:
        fit = fit or _fit(sentences)
        scheme, unrecognized = fit.scheme, fit.unrecognized
    elif scheme != BRACKETS:
        check_scheme_labels(corpus, scheme)
        fit = None
    if scheme == BRACKETS:
        corpus, inner = read_brackets(corpus)
        survey = inspect_corpus(file, roles, tags, corpus, "IOB2")
        return survey._replace(written=BRACKETS, inner=inner)
    outside = parse_notation(scheme).outside
    read = [[outside if label in unrecognized else label for label in labels] for labels in sentences]
    repaired = list(chain.from_iterable(repair(labels, scheme)[0] for labels in read))
    illegal = [t for t, label in enumerate(chain.from_iterable(read)) if label != repaired[t]]
    return Survey(file, roles, tags, corpus, scheme, illegal, repaired, fit)


def _fit(sentences: LabelSequences) -> SchemeFit:
    """Return the scheme that fits best, IO only without prefixes."""
    fit = fit_brackets(sentences) or fit_scheme(sentences)
    return (fit.scheme == "none" and not fit.prefixed and fit_io(sentences)) or fit


def _inspect_treebank(file: str, reading: ReadOptions) -> Survey:
    for tags in ("upos", "xpos"):
        corpus = conllu_corpus(file, tags, encoding=reading.encoding)
        if "label" in corpus.columns:
            break
    roles = ["_", "word", "_", "upos", "xpos", "_", "_", "_", "_", "_"]
    return inspect_corpus(file, roles, tags, corpus, reading.labels or "none")


# -- roles of columns -----------------------------------------------------------------------------------------


def _known_layout(columns: Sequence[LabelSequences]) -> str:
    """Return the name of a known layout, "" for others.

    CoNLL-2009 has numbers of words 1, 2, ... in the first column and of their heads in columns 9 and 10. CoNLL-2012 has
    numbers of words 0, 1, ... in column 3 and brackets in column 11.
    """

    def numbered(column: LabelSequences, start: int) -> bool:
        return all(list(strings) == [str(n) for n in range(start, start + len(strings))] for strings in column)

    def decimal(column: LabelSequences) -> bool:
        return all(map(str.isdecimal, chain.from_iterable(column)))

    if len(columns) >= len(LAYOUTS["CoNLL-2009"]) and numbered(columns[0], 1) and all(map(decimal, columns[8:10])):
        return "CoNLL-2009"
    if len(columns) >= len(LAYOUTS["CoNLL-2012"]) and decimal(columns[1]) and numbered(columns[2], 0):
        return "CoNLL-2012" if fit_brackets(columns[10]) else ""
    return ""


def _detect_roles(columns: Mapping[str, LabelSequences], fits: Mapping[str, SchemeFit]) -> list[str]:
    """Return the roles of columns, see `inspect_columns`."""
    word = find_word(columns, fits)
    label, at = find_label(columns, fits, word), list(columns).index(word)
    names = {label: "label", word: "word"}
    return [names.get(role, "_" if i < at else f"column{i + 1}") for i, role in enumerate(columns)]


def find_word(columns: Mapping[str, LabelSequences], fits: Mapping[str, SchemeFit]) -> str:
    """Return the column of words: the first one that is not numeric, has no labels of segments and varies in sentences.

    `columns`: the strings of each column by sentence. `fits`: the fit of columns of few distinct strings.
    """
    possible = [name for name, strings in columns.items() if not all(map(str.isdecimal, chain.from_iterable(strings)))]
    labels = [name for name in possible if name in fits and fits[name].is_regular and _varies(columns[name])]
    words = [name for name in possible if name not in labels and _varies(columns[name])]
    return next(iter([*words, *possible, *columns]))


def find_label(columns: Mapping[str, LabelSequences], fits: Mapping[str, SchemeFit], word: str) -> str | None:
    """Return the column of labels, None if there is only one column.

    Columns that are constant in each sentence, such as names of annotators, are not labels if another one varies. Of
    the others, labels with types, with prefixes, of few labels outside of the scheme, not of chunks or roles, mostly
    legal, and of several types are preferred, in this order, and then the last column. Of columns with segments of the
    same types, it is the first with nearly the most segments of those that are equal in this order. Without labels of
    segments, it is the last column after the word that is not numeric and has no coreference chains. `columns`: the
    strings of each column by sentence. `fits`: the fit of columns of few distinct strings. `word`: the column of words.
    """
    others = [name for name in columns if name != word]
    varied = [name for name in others if _varies(columns[name])] or others
    segments = [name for name in varied if name in fits and fits[name].scheme != "none" and fits[name].inside]
    if segments:
        best = max(reversed(segments), key=lambda name: _preference(fits[name]))
        alike = [name for name in segments if name == best or name in _same_types(fits, best)]
        alike = [name for name in alike if _preference(fits[name])[:-1] == _preference(fits[best])[:-1]]
        most = max(fits[name].prefixed for name in alike)
        return next(name for name in alike if fits[name].prefixed >= SIMILAR * most)
    names = list(columns)
    later = [name for name in varied if names.index(name) > names.index(word)] or varied
    texts = [
        name
        for name in later
        if not are_chains(strings := {*chain(*columns[name])}) and not all(map(_NUMBER.fullmatch, strings))
    ]
    return next(reversed(texts or later), None)


_NUMBER = re.compile(r"[-+]?[0-9]*[.,]?[0-9]+([eE][-+]?[0-9]+)?")


def _varies(sentences: LabelSequences) -> bool:
    """Return True if a sentence has different strings; for sentences of one token, if they differ."""
    if any(len(set(strings)) > 1 for strings in sentences):
        return True
    return all(len(strings) <= 1 for strings in sentences) and len(set(chain.from_iterable(sentences))) > 1


def _preference(fit: SchemeFit) -> tuple[bool, ...]:
    """Return the order in which columns with segments are preferred as labels."""
    kinds = {kind.upper() for kind in fit.types}
    mostly_legal = 2 * fit.illegal <= fit.inside
    entities = not all(map(CHUNK_OR_ROLE.fullmatch, kinds))
    return bool(kinds - {""}), fit.scheme != "IO", fit.is_regular, entities, mostly_legal, len(kinds) > 1


def _words_of(kind: str) -> list[str]:
    return re.findall(r"[^\W_]+", kind.casefold())


def _same_types(fits: Mapping[str, SchemeFit], label: str) -> list[str]:
    """Return the other columns with segments whose types share a word with those of a column of labels."""
    words = {role: set(fit.types & {""}).union(*map(_words_of, fit.types)) for role, fit in fits.items()}
    label_words = words.get(label, set())
    return [role for role, role_words in words.items() if role not in (label, "word") and role_words & label_words]


# -- tables ---------------------------------------------------------------------------------------------------


def inspect_file(file: str, reading: ReadOptions = DEFAULT_READING) -> Survey:
    """Return the content of a labelled file, see `inspect_columns` for columns and treebanks.

    Tables are recognised by file names, columns by usual names unless `reading` names them as ROLE=COLUMN. Spans are
    expanded to whole tokens, with the offset unit and tokenizer that fit best. Raises InputError for tables with
    unknown columns.
    """
    path = expand_path(file)
    kind = table_format(path)
    named = any("=" in column for column in reading.columns or ())
    if kind is None or (kind in DELIMITERS and not named and (reading.columns or not _is_csv(file, kind, reading))):
        return inspect_columns(file, reading)
    return _inspect_table(file, kind, reading)


def _inspect_table(file: str, kind: str, reading: ReadOptions) -> Survey:
    heading = kind not in DELIMITERS or _has_heading(file, reading)
    rows = list(iterate_rows(file, reading.encoding, heading))
    if not rows:
        raise InputError(f"{file}: the table contains no rows")
    first = _first_values([row for _, row in rows[:HEAD]])
    columns = parse_column_options(reading.columns, file) if reading.columns else _detect_columns(file, kind, rows)
    scheme = reading.labels if reading.labels not in (None, "none") else "IOB2"
    lenient = TextOptions(misaligned="expand", overlaps="longest")
    options = TableOptions(columns, _label_names(file, columns, rows), lenient, scheme, heading)
    given_rows = None if kind in (PARQUET, FOLDER) else rows
    corpus, options, report = read_best_fit(file, options, reading.encoding, rows=given_rows)
    unit = "line"
    if corpus.lines is None:
        unit = "row"
        numbers = np.repeat(np.arange(1, len(corpus.sentences)), np.diff(corpus.sentences))
        corpus = replace(corpus, lines=numbers)
    others = [name for name in first if name not in columns.values() and name != EMPTY_ROWS]
    tool = detect_tool(first) or ("Label Studio" if columns.get(SPANS) == TASK_SPANS and kind in JSON else None)
    table = TableSurvey(kind, options, tool, unit, report, others)
    given = scheme if SPANS in columns else reading.labels
    if SPANS in columns and not {COMPLETE, NOT} & columns.keys():  # types of spans may contain |
        return inspect_corpus(file, list(corpus.columns), None, corpus, given)._replace(table=table)
    corpus, sets = _hide_label_sets(corpus)
    return inspect_corpus(file, list(corpus.columns), None, corpus, given)._replace(table=table, sets=sets)


# -- columns --------------------------------------------------------------------------------------------------


def _detect_columns(file: str, kind: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Return the columns of roles, by their names and the first rows."""
    some = [row for _, row in rows[:HEAD]]
    row = {name: value for name, value in _first_values(some).items() if name != EMPTY_ROWS}
    among = candidate_columns(row, USUAL_NAMES)
    if kind in DELIMITERS and not among["word"] and among[SENTENCE] and _has_sentences(some, among[SENTENCE][0]):
        among["word"], among[SENTENCE] = among[SENTENCE][:1], []
    if kind in DELIMITERS and not (among["word"] and among["label"]) and not (among[TEXT] and among[SPANS]):
        by_sentence = {name: _cells_by_sentence(some, name) for name in row}  # without usual names
        fits = {name: _fit(sentences) for name, sentences in by_sentence.items()}
        word = find_word(by_sentence, fits)
        label = find_label(by_sentence, fits, word)
        among |= {"word": [word], "label": [] if label is None else [label], SENTENCE: []}
    of_words = bool(among["word"] and (among["label"] or not among[SPANS]))
    roles = ("word", "label", SENTENCE, DOCUMENT) if of_words else (TEXT, SPANS, DOCUMENT)
    if of_words and kind in DELIMITERS and not among[SENTENCE] and not _has_sentences(some, among["word"][0]):
        among[SENTENCE] = [EMPTY_ROWS]
    if not of_words or isinstance(row.get(among["word"][0]), list):
        among[SENTENCE] = []
    columns = unique_columns({role: among[role] for role in roles}, file)
    types: dict[str, type] = {COMPLETE: bool, NOT: list} if SPANS in columns else {}
    for name, cell_type in types.items():
        cells = [record[name] for record in some if name in record]
        if cells and all(isinstance(cell, cell_type) for cell in cells):
            columns[name] = name
    if not {"word", TEXT} & columns.keys():
        raise InputError(f"{file}: unrecognised columns {', '.join(row)}; set --columns word=... label=...")
    if DOCUMENT in columns:  # each row needs one, and those of a document must be adjacent
        values = [record.get(columns[DOCUMENT]) for _, record in rows]
        valid = all(isinstance(value, str | int) and value != "" for value in values)
        if not valid or len(set(values)) != 1 + sum(a != b for a, b in pairwise(values)):
            del columns[DOCUMENT]
    return columns


def _first_values(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return for each column of some rows its first value that is not empty; an empty one without any."""
    first: dict[str, Any] = {}
    for row in rows:
        first |= {name: value for name, value in row.items() if first.get(name) in (None, [], "")}
    return first


def _cells_by_sentence(rows: Sequence[Mapping[str, Any]], column: str) -> list[list[str]]:
    """Return the words of the cells of a column, by the empty rows before the rows."""
    groups = groupby(rows, key=lambda row: row.get(EMPTY_ROWS))
    return [[word for row in group for word in str(row[column]).split()] for _, group in groups]


def _are_segments(cells: Iterable[str]) -> bool:
    """Return True if the labels in some cells are of one segment scheme, and not all are O."""
    fit = fit_scheme([[label for cell in cells for label in cell.split()]])
    return fit.inside > 0 and fit.scheme in PREFIX_SCHEMES and not fit.unrecognized


def _has_sentences(some: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Return True if most cells have several words."""
    return 2 * sum(len(str(row[column]).split()) > 1 for row in some) > len(some)


# -- CSV ------------------------------------------------------------------------------------------------------


def _has_heading(file: str, reading: ReadOptions) -> bool:
    """Return True if the first row of CSV is a heading, by the given columns or the first rows."""
    if reading.columns:
        given = parse_column_options(reading.columns, file).values()
        return not all(column.isdecimal() for column in given if column != EMPTY_ROWS)
    rows = islice(iterate_rows(file, reading.encoding, heading=False), HEAD)
    cells = [[value for name, value in row.items() if name != EMPTY_ROWS] for _, row in rows]
    usual = {role for role in USUAL_NAMES if usual_columns(role, cells[0])} if cells else set()
    if usual & {"word", TEXT} or {"label", SENTENCE} <= usual:
        return True
    columns = list(zip(*cells[1:], strict=False))
    tagged = [number for number, values in enumerate(columns) if _are_segments(values)]
    return bool(tagged) and not _are_segments([cells[0][tagged[-1]]]) and cells[0][tagged[-1]] != "O"


def _is_csv(file: str, kind: str, reading: ReadOptions) -> bool:
    """Return True if a .csv or .tsv file is a table, not a column file.

    With tabs, it is a table if a heading names a column of sentences or texts, or if cells contain sentences.
    """
    lines = [line for line in split_lines(read_text(file, reading.encoding)) if line.strip()]
    first = lines[0] if lines else ""
    if (delimiter := detect_delimiter(first, kind)) != "\t":
        return delimiter in first
    names = first.split("\t")
    among = {role: usual_columns(role, names) for role in USUAL_NAMES}
    if among[TEXT] or (among["word"] and among[SENTENCE]):
        return True
    rows = [line.split("\t") for line in lines[1:HEAD]]
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
    if not lists or not all(isinstance(code, int) and code >= 0 for labels in lists for code in labels):
        return {}
    size = 1 + max((code for labels in lists for code in labels), default=0)
    pairs = [(before, code) for labels in lists for before, code in pairwise([0, *labels]) if code and code % 2 == 0]
    if pairs and all(before in (code, code - 1) for before, code in pairs):
        return {"label": ["O", *(f"{'BI'[n % 2]}-{n // 2 + 1}" for n in range(size - 1 + (size - 1) % 2))]}
    return {"label": [str(n) for n in range(size)]}
