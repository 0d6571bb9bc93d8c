"""The survey of a labelled file: its columns, which of them is the label, and the scheme of the labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from structperc.data.conll import conll_corpus, field_count
from structperc.data.conllu import read_conllu
from structperc.data.corpus import Corpus
from structperc.data.not_columns import check_columns
from structperc.data.reading import Reading
from structperc.data.schemes import USUAL, fitting_schemes
from structperc.data.segments import repair, spans
from structperc.data.tables import TableSurvey
from structperc.data.tags import SEGMENT_SCHEMES
from structperc.data.text import read_lines
from structperc.errors import InputError

MOST_LABELS = 1000  # a column with more different strings is none of labels
AS_IT_IS = Reading()


class Survey(NamedTuple):
    """What a file holds; the corpus, of sentences, has a column for each role but "_".

    These are `word`, perhaps `label`, and others.
    """

    file: str
    roles: list[str]  # of the file's columns, in their order
    tags: str | None  # upos or xpos, which is the label of a CoNLL-U treebank; None: a file of columns
    corpus: Corpus
    scheme: str  # that of the labels; none where they are no segments
    illegal: list[int]  # tokens whose label is illegal there
    repaired: list[str]  # labels of all tokens, legal ones
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

    def line(self, token: int) -> int:
        """Return the line of the file on which a token stands."""
        assert self.corpus.lines is not None
        return int(self.corpus.lines[token])

    def types(self) -> tuple[Counter[str], Counter[str]]:
        """Return how many segments there are of each type, and how many tokens in them."""
        segments: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        for labels in self.corpus.sentences_of(self.repaired):
            for span in spans(labels):
                segments[span.type] += 1
                tokens[span.type] += span.end - span.start
        return segments, tokens

    def counts(self, role: str) -> Counter[str]:
        """Return how often each string occurs in a column."""
        return Counter(self.corpus.columns[role])


def survey(file: str, reading: Reading = AS_IT_IS) -> Survey:
    """Look at a file of columns, or at a treebank in CoNLL-U, and return what it holds.

    Unless `reading` names the columns, the word is the first of them that is no number, and the label the last one
    after it that holds labels of segments, or the very last one. Raises InputError as the readers of such files do, and
    for labels that are not of the scheme that `reading` names.
    """
    lines = read_lines(file, reading.encoding)
    if not reading.columns and _is_treebank(lines):
        return _treebank(file, reading)
    if not reading.columns:
        check_columns(lines, 1, file)
    given = reading.columns or ["word", *(f"column{n}" for n in range(2, field_count(lines) + 1))]
    corpus = conll_corpus(lines, given, file)
    roles = list(given) if reading.columns else _roles(corpus)
    if not reading.columns:
        named = {role: values for role, values in zip(roles, corpus.columns.values(), strict=True) if role != "_"}
        corpus = replace(corpus, columns=named)
    return of_corpus(file, roles, None, corpus, reading.labels)


def _treebank(file: str, reading: Reading) -> Survey:
    for tags in ("upos", "xpos"):
        corpus = Corpus.from_dataset(read_conllu(file, tags, reading.encoding), "sentence", file)
        if "label" in corpus.columns:
            break
    roles = ["_", "word", "_", "upos", "xpos", "_", "_", "_", "_", "_"]
    return of_corpus(file, roles, tags, corpus, reading.labels or "none")


def of_corpus(file: str, roles: list[str], tags: str | None, corpus: Corpus, scheme: str | None) -> Survey:
    """Return what a corpus holds; without a scheme it is the one that fits best."""
    if "label" not in corpus.columns:
        return Survey(file, roles, tags, corpus, "none", [], [])
    sentences = corpus.sentences_of(corpus.columns["label"])
    scheme = scheme or best_scheme(sentences)
    try:
        repaired = list(chain.from_iterable(repair(labels, scheme)[0] for labels in sentences))
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    illegal = [t for t, label in enumerate(corpus.columns["label"]) if label != repaired[t]]
    return Survey(file, roles, tags, corpus, scheme, illegal, repaired)


def best_scheme(sentences: Sequence[Sequence[str]]) -> str:
    """Return the scheme in which the fewest labels are illegal, of several the usual one.

    "none" if there are no segments.
    """
    distinct = set(chain.from_iterable(sentences))
    possible = [scheme for scheme in SEGMENT_SCHEMES if _has_all(scheme, distinct)]
    if not possible or distinct == {"O"}:
        return USUAL if distinct == {"O"} else "none"
    if fitting := fitting_schemes(sentences):
        return USUAL if USUAL in fitting else fitting[0]
    return min(possible, key=lambda scheme: sum(repair(labels, scheme)[1] for labels in sentences))


def _has_all(scheme: str, labels: set[str]) -> bool:
    try:
        for label in labels:
            repair([label], scheme)
    except InputError:
        return False
    return True


def _is_treebank(lines: Sequence[str]) -> bool:
    """Whether the first word line has the ten fields of CoNLL-U, the first of them a number."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    fields = first.split("\t")
    return len(fields) == 10 and fields[0].partition("-")[0].isdecimal()


def _roles(corpus: Corpus) -> list[str]:
    """Of the columns of a file, as `survey` says."""
    columns = list(corpus.columns.values())
    word = next((i for i, values in enumerate(columns) if not all(value.isdecimal() for value in values)), 0)
    later = range(word + 1, len(columns))
    label = next((i for i in reversed(later) if _holds_segments(columns[i])), len(columns) - 1)
    named = {word: "word", **({label: "label"} if later else {})}
    return [named.get(i, "_" if i < word else f"column{i + 1}") for i in range(len(columns))]


def _holds_segments(column: Sequence[str]) -> bool:
    distinct = set(column)
    if len(distinct) > MOST_LABELS or not distinct - {"O"}:
        return False
    return any(_has_all(scheme, distinct) for scheme in SEGMENT_SCHEMES)
