"""Survey of a labelled column file or treebank: its columns, which of them is the label, and the tag scheme."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from structperc.data.conll import (
    comment_line_numbers,
    conll_corpus,
    detect_line_format,
    field_count,
    header_names,
    header_row,
)
from structperc.data.conllu import conllu_corpus
from structperc.data.corpus import Corpus
from structperc.data.format_detection import check_not_text
from structperc.data.normalise import check_scheme_labels
from structperc.data.read_options import LineFormat, ReadOptions
from structperc.data.scheme_detection import NO_SEGMENT, SchemeFit, fit_scheme
from structperc.data.tables import TableSurvey
from structperc.data.tag_schemes import parse_notation, parse_tag, repair, spans, suggest_label
from structperc.data.text_files import read_lines
from structperc.spelling import counted, quoted

MOST_LABELS = 1000  # distinct strings in a column of labels
SHOWN = 5  # labels in a remark
ALIKE = 0.8  # columns with the same types and at least this share of segments: which is gold is unclear
LONG = 200  # tokens of a very long sentence
DEFAULTS = ReadOptions()


class Survey(NamedTuple):
    """The content of a file. The corpus, of sentences, has a column for each role but "_"."""

    file: str
    roles: list[str]  # of the file's columns in order
    tags: str | None  # upos or xpos, the label of a CoNLL-U treebank; None: another format
    corpus: Corpus
    scheme: str  # scheme or notation of the labels; "none": not segments
    illegal: list[int]  # tokens with an illegal label
    repaired: list[str]  # legal labels of all tokens
    fit: SchemeFit | None = None  # None: no labels, or the scheme was given
    line_format: LineFormat = LineFormat()
    rivals: Sequence[str] = ()  # other columns with labels of the same types, which must not be features
    comments: Sequence[int] = ()  # lines
    header: int = 0  # line of column names; 0: none
    table: TableSurvey | None = None  # for tables

    @property
    def labelled(self) -> bool:
        """Whether the file has labels."""
        return "label" in self.corpus.columns

    @property
    def documents(self) -> int:
        """The number of documents; 0 if they are not marked."""
        found = len(np.unique(self.corpus.documents))
        return found if found < len(self.corpus) else 0

    @property
    def size(self) -> str:
        """The numbers of sentences, tokens and documents, as a line of text."""
        documents = f"{self.documents:,}" if self.documents else "not marked"
        return f"sentences: {len(self.corpus):,}, tokens: {self.corpus.tokens:,}, documents: {documents}"

    @property
    def place(self) -> str:
        """The unit of places of tokens: "line", or "row" for a table without lines."""
        return "line" if self.table is None else self.table.row

    def line(self, token: int) -> int:
        """Return the line of the file, or the row of a table, of a token."""
        assert self.corpus.lines is not None
        return int(self.corpus.lines[token])

    def types(self) -> tuple[Counter[str], Counter[str]]:
        """Return the number of segments of each type, and of the tokens in them."""
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

    def label_remarks(self) -> Iterator[str]:
        """Yield a line of text about labels that do not fit the scheme, if there are any."""
        if self.fit is not None and (remark := self.fit.remark()):
            places = [*islice(self._unrecognized(), SHOWN + 1)]
            yield "; ".join([remark, *places[:SHOWN], *(["and others"] if len(places) > SHOWN else [])])

    def remarks(self, training: bool = True) -> Iterator[str]:
        """Yield lines of text about unusual properties of the file."""
        yield from self.label_remarks()
        only = set(self.counts("label")) if training and self.labelled else set()
        if only == {parse_notation(self.scheme).outside}:
            yield NO_SEGMENT
        elif len(only) == 1 and self.scheme == "none":
            one = quoted(only.pop())
            yield f"all tokens have the label {one}: nothing can be learned; name the columns in --columns"
        if len(self.corpus) == 1 and self.corpus.tokens > LONG and self.table is None:
            yield f"there are no empty lines after sentences, so all {self.corpus.tokens:,} tokens are one sentence"
        if self.rivals:
            label, *others = (self.roles.index(role) + 1 for role in ("label", *self.rivals))
            columns = f"columns {', '.join(map(str, sorted([label, *others])))} have labels of the same types"
            yield f"{columns}: column {label} is learned, the others are not features; set --columns to change that"
        if self.header:
            yield f"line {self.header} has the names of the columns"
        if self.comments:
            yield f"{counted(len(self.comments), 'comment line')}, the first is line {self.comments[0]}"
        if self.line_format.separator == "tab":
            yield "fields contain spaces, so they are separated by tabs only"

    def _unrecognized(self) -> Iterator[str]:
        """Yield the places of labels that are not of the scheme or, without a scheme, of a label with a prefix."""
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
            found = f"{self.place} {self.line(at)} has {quoted(label)}"
            found += f", which occurs {n:,} times" if n > 1 else ""
            if meant is not None:
                found += f", perhaps {meant} is meant"
            elif self.corpus.columns["word"][at] == "#":
                found += ", perhaps this is a comment"
            elif at == 0:
                found += ", perhaps these are column names"
            yield found


def survey(file: str, reading: ReadOptions = DEFAULTS) -> Survey:
    """Return the content of a column file or a CoNLL-U treebank.

    Unless `reading` or the first line of the file (see `conll.header_line`) names the columns, the word is the first
    one that is not numeric, and the label the last one after it with segment labels, or the very last one; of several
    with segments of the same types, the first with nearly the most. Raises InputError as the readers do, and for labels
    that are not of the scheme in `reading`.
    """
    lines = read_lines(file, reading.encoding)
    if not reading.columns and _is_treebank(lines):
        return _treebank(file, reading)
    if not reading.columns:
        check_not_text(lines, 1, file)
    how = detect_line_format(lines, reading.separator, reading.comments)
    given = reading.columns or (header_names(lines[0]) if lines else None)
    columns = given or ["word", *(f"column{n}" for n in range(2, field_count(lines, how) + 1))]
    corpus = conll_corpus(lines, columns, file, how=how)
    few = [role for role in corpus.columns if len(corpus.factorize(role).distinct) <= MOST_LABELS]
    fits = {role: fit_scheme(corpus.sentences_of(corpus.columns[role])) for role in few}
    roles = list(given or _detect_roles(corpus, fits))
    if given is None:
        own = {old: role for old, role in zip(columns, roles, strict=True) if role != "_"}
        corpus = replace(corpus, columns={role: corpus.columns[old] for old, role in own.items()})
        fits = {own[old]: fit for old, fit in fits.items() if old in own}
    rivals = _same_types(corpus, fits, "label") if "label" in fits else []
    found = survey_corpus(file, roles, None, corpus, reading.labels, fits.get("label"))
    return found._replace(
        line_format=how, rivals=rivals, comments=comment_line_numbers(lines, how), header=header_row(lines, how)
    )


def survey_alike(first: Survey, files: Sequence[str], reading: ReadOptions = DEFAULTS) -> list[Survey]:
    """Return surveys of a file and of others read in the same way, with the columns of the first one.

    Comments, or fields with spaces, in one of the files apply to all. Raises InputError as `survey`.
    """
    if first.tags is not None:
        return [first, *(survey(file, reading) for file in files)]
    others = (read_lines(file, reading.encoding) for file in files)
    formats = [first.line_format, *(detect_line_format(one, reading.separator, reading.comments) for one in others)]
    comments, tab = any(one.comments for one in formats), any(one.separator == "tab" for one in formats)
    how = reading._replace(comments=comments, separator="tab" if tab else "whitespace")
    again = first if first.line_format == how.line_format() else survey(first.file, how)
    return [again, *(survey(file, how._replace(columns=again.roles)) for file in files)]


def survey_corpus(
    file: str, roles: list[str], tags: str | None, corpus: Corpus, scheme: str | None, fit: SchemeFit | None = None
) -> Survey:
    """Return the survey of a corpus; without a scheme the best one is taken."""
    if "label" not in corpus.columns:
        return Survey(file, roles, tags, corpus, "none", [], [])
    sentences = corpus.sentences_of(corpus.columns["label"])
    unrecognized: Mapping[str, int] = {}
    if scheme is None:
        fit = fit or fit_scheme(sentences)
        scheme, unrecognized = fit.scheme, fit.unrecognized
    else:
        check_scheme_labels(corpus, scheme)
        fit = None
    outside = parse_notation(scheme).outside
    read = [[outside if label in unrecognized else label for label in labels] for labels in sentences]
    repaired = list(chain.from_iterable(repair(labels, scheme)[0] for labels in read))
    illegal = [t for t, label in enumerate(chain.from_iterable(read)) if label != repaired[t]]
    return Survey(file, roles, tags, corpus, scheme, illegal, repaired, fit)


def _treebank(file: str, reading: ReadOptions) -> Survey:
    for tags in ("upos", "xpos"):
        corpus = conllu_corpus(file, tags, encoding=reading.encoding)
        if "label" in corpus.columns:
            break
    roles = ["_", "word", "_", "upos", "xpos", "_", "_", "_", "_", "_"]
    return survey_corpus(file, roles, tags, corpus, reading.labels or "none")


def _is_treebank(lines: Sequence[str]) -> bool:
    """Whether the first word line has the ten fields of CoNLL-U, the first of them a number."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    fields = first.split("\t")
    return len(fields) == 10 and fields[0].partition("-")[0].isdecimal()


def _detect_roles(corpus: Corpus, fits: Mapping[str, SchemeFit]) -> list[str]:
    """Return the roles of columns, see `survey`."""
    columns = list(corpus.columns)
    numeric = (all(map(str.isdecimal, corpus.factorize(role).distinct)) for role in columns)
    word = next((i for i, number in enumerate(numeric) if not number), 0)
    later = columns[word + 1 :]
    segments = [role for role in later if role in fits and fits[role].scheme != "none" and fits[role].inside]
    label = later[-1] if later else None
    if segments:
        alike = [role for role in segments if role == segments[-1] or role in _same_types(corpus, fits, segments[-1])]
        most = max(fits[role].prefixed for role in alike)
        label = next(role for role in alike if fits[role].prefixed >= ALIKE * most)
    names = {label: "label", columns[word]: "word"}
    return [names.get(role, "_" if i < word else f"column{i + 1}") for i, role in enumerate(columns)]


def _same_types(corpus: Corpus, fits: Mapping[str, SchemeFit], label: str) -> list[str]:
    """Return the other columns with segments of types that a column of labels has."""
    types = {}
    for role, fit in fits.items():
        if fit.scheme != "none":
            labels = set(corpus.factorize(role).distinct) - fit.unrecognized.keys()
            types[role] = {parse_tag(one, fit.scheme).type for one in labels} - {None}
    own = types.get(label, set())
    return [role for role, found in types.items() if role not in (label, "word") and found & own]
