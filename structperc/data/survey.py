"""The survey of a labelled file: its columns, which of them is the label, and the scheme of the labels."""

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
from structperc.data.conllu import read_conllu
from structperc.data.corpus import Corpus
from structperc.data.format_detection import check_not_text
from structperc.data.normalise import check_scheme_labels
from structperc.data.read_options import LineFormat, ReadOptions
from structperc.data.scheme_detection import NO_SEGMENT, SchemeFit, fit_scheme
from structperc.data.tables import TableSurvey
from structperc.data.tag_schemes import parse_notation, parse_tag, repair, spans, suggest_label
from structperc.data.text_files import read_lines
from structperc.spelling import counted, quoted

MOST_LABELS = 1000  # a column with more different strings is none of labels
SHOWN = 5  # labels that are not of the scheme, in a remark
ALIKE = 0.8  # of two columns of the same types, one has at least this share of the other's segments: which is gold?
LONG = 200  # tokens, which few sentences have
AS_IT_IS = ReadOptions()


class Survey(NamedTuple):
    """What a file holds; the corpus, of sentences, has a column for each role but "_".

    These are `word`, perhaps `label`, and others.
    """

    file: str
    roles: list[str]  # of the file's columns, in their order
    tags: str | None  # upos or xpos, which is the label of a CoNLL-U treebank; None: a file of columns
    corpus: Corpus
    scheme: str  # scheme or notation of the labels; none where they are no segments
    illegal: list[int]  # tokens whose label is illegal there
    repaired: list[str]  # labels of all tokens, legal ones
    fit: SchemeFit | None = None  # how the labels fit the scheme; None: there are none, or their scheme was named
    line_format: LineFormat = LineFormat()
    rivals: Sequence[str] = ()  # further columns with labels of the same types, which give the label away
    comments: Sequence[int] = ()  # lines
    header: int = 0  # line of names of columns; 0: there is none
    table: TableSurvey | None = None  # how it is read if it is a table

    @property
    def labelled(self) -> bool:
        """Whether a column of the file holds labels."""
        return "label" in self.corpus.columns

    @property
    def documents(self) -> int:
        """The number of documents, where the file marks them; else 0."""
        found = len(np.unique(self.corpus.documents))
        return found if found < len(self.corpus) else 0

    @property
    def size(self) -> str:
        """The numbers of sentences, tokens and documents, as one line of text."""
        documents = f"{self.documents:,}" if self.documents else "not marked"
        return f"sentences: {len(self.corpus):,}, tokens: {self.corpus.tokens:,}, documents: {documents}"

    @property
    def place(self) -> str:
        """Name of the places of tokens: "line", or "row" for a table without lines."""
        return "line" if self.table is None else self.table.row

    def line(self, token: int) -> int:
        """Return the line of the file, or the row of a table, in which a token stands."""
        assert self.corpus.lines is not None
        return int(self.corpus.lines[token])

    def types(self) -> tuple[Counter[str], Counter[str]]:
        """Return how many segments there are of each type, and how many tokens in them."""
        segments: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        for labels in self.corpus.sentences_of(self.repaired):
            for span in spans(labels, self.scheme):
                segments[span.type] += 1
                tokens[span.type] += span.end - span.start
        return segments, tokens

    def label_remarks(self) -> Iterator[str]:
        """Yield a line of text on how labels fit a scheme, if not all do."""
        if self.fit is not None and (remark := self.fit.remark()):
            places = [*islice(self._misfits(), SHOWN + 1)]
            yield "; ".join([remark, *places[:SHOWN], *(["and others"] if len(places) > SHOWN else [])])

    def remarks(self, training: bool = True) -> Iterator[str]:
        """Yield lines of text on what a user should know of this file, before training if it is to be learned."""
        yield from self.label_remarks()
        only = set(self.counts("label")) if training and self.labelled else set()
        if only == {self._outside()}:
            yield NO_SEGMENT
        elif len(only) == 1 and self.scheme == "none":
            one = quoted(only.pop())
            yield f"all tokens have the label {one}: nothing can be learned; name the columns in --columns"
        if len(self.corpus) == 1 and self.corpus.tokens > LONG and self.table is None:
            yield f"no empty line ends a sentence, so that all {self.corpus.tokens:,} tokens are one"
        if self.rivals:
            label, others = self._place("label"), [self._place(role) for role in self.rivals]
            columns = f"columns {', '.join(map(str, sorted([label, *others])))} hold labels of the same types"
            yield f"{columns}: column {label} is learned, and no other one is a feature; --columns says otherwise"
        if self.header:
            yield f"line {self.header} holds names of columns, and no token"
        if self.comments:
            yield f"{counted(len(self.comments), 'line')} with a comment, the first is line {self.comments[0]}"
        if self.line_format.separator == "tab":
            yield "fields hold spaces, so that they are separated by tabs alone"

    def _misfits(self) -> Iterator[str]:
        """Yield where labels stand that are not of the scheme and, where it is none, a label with a prefix."""
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
            found = [
                f"{self.place} {self.line(at)} has {quoted(label)}",
                *([f"which occurs {n:,} times"] if n > 1 else []),
            ]
            if meant is not None:
                found.append(f"perhaps {meant} is meant")
            elif self.corpus.columns["word"][at] == "#":
                found.append("perhaps this is a comment")
            elif at == 0:
                found.append("perhaps this is a line of names of columns")
            yield ", ".join(found)

    def _outside(self) -> str:
        return parse_notation(self.scheme).outside

    def _place(self, role: str) -> int:
        """The number of a column, from 1."""
        return self.roles.index(role) + 1

    def counts(self, role: str) -> Counter[str]:
        """Return how often each string occurs in a column."""
        return Counter(self.corpus.columns[role])


def survey(file: str, reading: ReadOptions = AS_IT_IS) -> Survey:
    """Look at a file of columns, or at a treebank in CoNLL-U, and return what it holds.

    Unless `reading` or the first line of the file (see `conll.header_line`) names the columns, the word is the first of
    them that is no number, and the label the last one after it that holds labels of segments, or the very last one; of
    several that hold segments of the same types, the first with about the most. Raises InputError as the readers of
    such files do, and for labels that are not of the scheme that `reading` names.
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
    fits = _fits(corpus)
    roles = list(given or _roles(corpus, fits))
    if given is None:
        own = {old: role for old, role in zip(columns, roles, strict=True) if role != "_"}
        corpus = replace(corpus, columns={role: corpus.columns[old] for old, role in own.items()})
        fits = {own[old]: fit for old, fit in fits.items() if old in own}
    rivals = _rivals(corpus, fits, "label") if "label" in fits else []
    found = survey_corpus(file, roles, None, corpus, reading.labels, fits.get("label"))
    return found._replace(
        line_format=how, rivals=rivals, comments=comment_line_numbers(lines, how), header=header_row(lines, how)
    )


def survey_alike(first: Survey, files: Sequence[str], reading: ReadOptions = AS_IT_IS) -> list[Survey]:
    """Return surveys of a file and of others that are read in the same way, the columns being those of the first one.

    Lines have comments, or fields that hold spaces, if those of one of the files have. Raises InputError as `survey`.
    """
    if first.tags is not None:
        return [first, *(survey(file, reading) for file in files)]
    formats = [first.line_format, *(_line_format(file, reading) for file in files)]
    comments, tab = any(one.comments for one in formats), any(one.separator == "tab" for one in formats)
    how = reading._replace(comments=comments, separator="tab" if tab else "whitespace")
    changed = first.line_format != how.line_format()
    again = survey(first.file, how) if changed else first
    return [again, *(survey(file, how._replace(columns=again.roles)) for file in files)]


def _line_format(file: str, reading: ReadOptions) -> LineFormat:
    return detect_line_format(read_lines(file, reading.encoding), reading.separator, reading.comments)


def _treebank(file: str, reading: ReadOptions) -> Survey:
    for tags in ("upos", "xpos"):
        corpus = Corpus.from_dataset(read_conllu(file, tags, reading.encoding), "sentence", file)
        if "label" in corpus.columns:
            break
    roles = ["_", "word", "_", "upos", "xpos", "_", "_", "_", "_", "_"]
    return survey_corpus(file, roles, tags, corpus, reading.labels or "none")


def survey_corpus(
    file: str, roles: list[str], tags: str | None, corpus: Corpus, scheme: str | None, fit: SchemeFit | None = None
) -> Survey:
    """Return what a corpus holds; without a scheme it is the one that fits best."""
    if "label" not in corpus.columns:
        return Survey(file, roles, tags, corpus, "none", [], [])
    sentences = corpus.sentences_of(corpus.columns["label"])
    if scheme is None:
        fit = fit or fit_scheme(sentences)
        scheme, unrecognized = fit.scheme, fit.unrecognized
    else:
        check_scheme_labels(corpus, scheme)
        fit, unrecognized = None, {}
    outside = parse_notation(scheme).outside
    read = [[outside if label in unrecognized else label for label in labels] for labels in sentences]
    repaired = list(chain.from_iterable(repair(labels, scheme)[0] for labels in read))
    illegal = [t for t, label in enumerate(chain.from_iterable(read)) if label != repaired[t]]
    return Survey(file, roles, tags, corpus, scheme, illegal, repaired, fit)


def _is_treebank(lines: Sequence[str]) -> bool:
    """Whether the first word line has the ten fields of CoNLL-U, the first of them a number."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    fields = first.split("\t")
    return len(fields) == 10 and fields[0].partition("-")[0].isdecimal()


def _fits(corpus: Corpus) -> dict[str, SchemeFit]:
    """How the strings of columns fit tag schemes, of those with few different ones."""
    few = [role for role in corpus.columns if len(corpus.numbered(role).distinct) <= MOST_LABELS]
    return {role: fit_scheme(corpus.sentences_of(corpus.columns[role])) for role in few}


def _roles(corpus: Corpus, fits: Mapping[str, SchemeFit]) -> list[str]:
    """Of the columns of a file, as `survey` says."""
    columns = list(corpus.columns)
    word = next((i for i, role in enumerate(columns) if not all(map(str.isdecimal, corpus.numbered(role).distinct))), 0)
    later = columns[word + 1 :]
    segments = [role for role in later if role in fits and fits[role].scheme != "none" and fits[role].inside]
    label = _gold(corpus, fits, segments) if segments else next(reversed(later), None)
    names = {label: "label", columns[word]: "word"}
    return [names.get(role, "_" if i < word else f"column{i + 1}") for i, role in enumerate(columns)]


def _gold(corpus: Corpus, fits: Mapping[str, SchemeFit], segments: Sequence[str]) -> str:
    """The last column of segments or, of several whose segments have the same types, the first with about the most."""
    last = segments[-1]
    alike = [role for role in segments if role == last or role in _rivals(corpus, fits, last)]
    most = max(fits[role].prefixed for role in alike)
    return next(role for role in alike if fits[role].prefixed >= ALIKE * most)


def _rivals(corpus: Corpus, fits: Mapping[str, SchemeFit], label: str) -> list[str]:
    """Further columns whose labels are segments of types that the labels have, too."""
    types = {role: _types(corpus, role, fit) for role, fit in fits.items() if fit.scheme != "none"}
    own = types.get(label, set())
    return [role for role, found in types.items() if role not in (label, "word") and found & own]


def _types(corpus: Corpus, role: str, fit: SchemeFit) -> set[str | None]:
    labels = set(corpus.numbered(role).distinct) - fit.unrecognized.keys()
    return {parse_tag(label, fit.scheme).type for label in labels} - {None}
