"""Texts or sentences of requests, and the answers as JSON."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any

from starlette.exceptions import HTTPException

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError, errors_at
from structperc.predictor import Predictor
from structperc.predictor.base import Prediction, text_spans
from structperc.predictor.limits import (
    ALLOWED_FIELD,
    FORBIDDEN_FIELD,
    FORCED_FIELD,
    CorpusLimits,
    field_spans,
    limit_columns,
    limited_text,
)
from structperc.serving.requests import too_large
from structperc.spelling import counted
from structperc.text.alignment import TokenizedText

DocumentColumns = Sequence[Mapping[str, list[str]]]  # columns of each sentence
CHUNK_SIZE = 2**14  # characters: longer jobs are labelled in chunks of this size


class Job(ABC):
    """A document without labels.

    Args:
        size: its number of characters.
        limits: fields of `predictor.limits.LIMITS` of the request.
    """

    def __init__(self, size: int, limits: Mapping[str, Any]) -> None:
        self.size, self.limits = size, limits

    @abstractmethod
    def sentences(self, labels: LabelSet) -> DocumentColumns:
        """Return its sentences, {column: strings} each. Raises InputError for invalid ones.

        Args:
            labels: the labels of the tagger.
        """

    @abstractmethod
    def to_json(self, first: int, stop: int, prediction: Prediction, scheme: str) -> Mapping[str, str]:
        """Return the JSON items of each field of the answer, for the prediction of sentences first, ..., stop - 1."""


class TextJob(Job):
    """The spans of a text.

    Args:
        text: any string.
        cut: returns its tokens and sentences.
        limits: forced and forbidden spans in characters of the text.
    """

    def __init__(
        self, text: str, cut: Callable[[str], TokenizedText], limits: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        super().__init__(len(text), limits)
        self.text, self._cut = text, cut

    def sentences(self, labels: LabelSet) -> DocumentColumns:
        """Return its sentences with the column `word`, and those of limits if there are any."""
        self._found = self._cut(self.text)
        columns: dict[str, list[str]] = {}
        if self.limits:
            self._found, columns = limited_text(self._found, self.limits, labels, "request")
        return self._found.rows(columns)

    def to_json(self, first: int, stop: int, prediction: Prediction, scheme: str) -> Mapping[str, str]:
        """Return spans with start, end, type, text and, from taggers with probabilities, confidence."""
        bounds = self._found.sentences[first : stop + 1]
        a, b = (bounds[0], bounds[-1]) if len(bounds) else (0, 0)
        own = TokenizedText(self.text, self._found.tokens[a:b], [bound - a for bound in bounds])
        return {"spans": _items([one.to_json(self.text) for one in text_spans(own, prediction, scheme)])}


class SentencesJob(Job):
    """The labels of the sentences of a document.

    Args:
        sentences: Words, or {column: strings}, of each sentence.
        columns: Names of the columns that the tagger reads.
        limits: For each field of limits, those of each sentence in its tokens; None for a sentence without limits.
    """

    def __init__(
        self,
        sentences: Sequence[list[str] | Mapping[str, list[str]]],
        columns: Sequence[str],
        limits: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._sentences = [one if isinstance(one, Mapping) else {"word": one} for one in sentences]
        self._columns = columns
        super().__init__(sum(len(word) + 1 for one in self._sentences for word in one.get("word", ())), limits)

    def sentences(self, labels: LabelSet) -> DocumentColumns:
        """Return the columns of each sentence that the tagger reads, and those of limits if there are any.

        Raises InputError for columns that are missing or of different lengths, and for empty strings.
        """
        for number, sentence in enumerate(self._sentences):
            if missing := [role for role in self._columns if role not in sentence]:
                raise InputError(f"sentences[{number}]: column {missing[0]!r} is missing")
            for role in self._columns:
                if len(sentence[role]) != len(sentence["word"]):
                    lengths = f"{counted(len(sentence[role]), 'string')} for {counted(len(sentence['word']), 'word')}"
                    raise InputError(f"sentences[{number}]: {role!r} has {lengths}")
            if "" in sentence["word"]:
                raise InputError(f"sentences[{number}]: word {sentence['word'].index('')} is empty; leave it out")
        rows = [{role: one[role] for role in self._columns} for one in self._sentences]
        if not self.limits:
            return rows
        return [{**row, **self._limits(number, len(row["word"]), labels)} for number, row in enumerate(rows)]

    def _limits(self, number: int, length: int, labels: LabelSet) -> dict[str, list[str]]:
        """Return the columns of the limits of a sentence."""
        own = {name: values[number] for name, values in self.limits.items()}
        forced, forbidden = (
            [(span.type, span.start, span.end) for span in field_spans(own, name, f"sentences[{number}]")]
            for name in (FORCED_FIELD, FORBIDDEN_FIELD)
        )
        with errors_at(f"sentences[{number}]"):
            return limit_columns(length, labels, own.get(ALLOWED_FIELD), forced, forbidden)

    def to_json(self, first: int, stop: int, prediction: Prediction, scheme: str) -> Mapping[str, str]:
        """Return the labels of each sentence and, from taggers with probabilities, those of the labels."""
        words = (len(one["word"]) for one in self._sentences[first:stop])
        bounds = list(pairwise(accumulate(words, initial=0)))
        found = {"labels": _items([prediction.labels[a:b] for a, b in bounds])}
        if prediction.tokens is not None:
            found["probabilities"] = _items([prediction.tokens[a:b].tolist() for a, b in bounds])
        return found


def label_jobs(tagger: Predictor, jobs: Sequence[Job], tokens: int = 2**62) -> list[str | Exception]:
    """Return the answer to each job, or its error; all are labelled together.

    Args:
        tagger: any predictor.
        jobs: any number.
        tokens: maximum of a job; others get an HTTPException.
    """
    answers: list[str | Exception] = []
    together: list[tuple[int, DocumentColumns]] = []
    for number, job in enumerate(jobs):
        # Features of the corpus would depend on other jobs, and errors of limits must be those of one job.
        alone = len(jobs) == 1 or tagger.extent == "corpus" or bool(job.limits)
        try:
            if not alone:
                together.append((number, _read(job, tagger.labels, tokens)))
            answers.append(_answer(tagger, job, tokens) if alone else "")
        except (InputError, HTTPException) as error:
            answers.append(error)
    documents = [rows for _, rows in together]
    parts = _predict(tagger, documents).split(map(_tokens, documents)) if together else []
    for (number, rows), part in zip(together, parts, strict=True):
        answers[number] = _joined([jobs[number].to_json(0, len(rows), part, tagger.labels.scheme)])
    return answers


def _answer(tagger: Predictor, job: Job, tokens: int) -> str:
    *_, answer = label_in_chunks(tagger, job, tokens)
    assert answer is not None
    return answer


def label_in_chunks(tagger: Predictor, job: Job, tokens: int = 2**62) -> Iterator[str | None]:
    """Yield None before each chunk of a job, and finally its answer, as by `label_jobs`.

    Independent sentences are labelled in chunks; otherwise there is one chunk. Raises InputError for invalid
    sentences, HTTPException for more tokens than the limit.
    """
    rows = _read(job, tagger.labels, tokens)
    if job.limits:  # errors have the number of the sentence in the whole job
        CorpusLimits.read(_corpus(tagger, [rows]), tagger.labels)
    found = []
    for first, stop in pairwise(_bounds(rows, tagger)):
        yield None
        found.append(job.to_json(first, stop, _predict(tagger, [rows[first:stop]]), tagger.labels.scheme))
    yield _joined(found)


def _read(job: Job, labels: LabelSet, most: int) -> DocumentColumns:
    rows = job.sentences(labels)
    if _tokens(rows) > most:
        raise too_large(most, "tokens")
    return rows


def _corpus(tagger: Predictor, documents: Sequence[DocumentColumns]) -> Corpus:
    return Corpus.from_documents(documents, tagger.unit, "request")


def _predict(tagger: Predictor, documents: Sequence[DocumentColumns]) -> Prediction:
    return tagger.predict(_corpus(tagger, documents), tagger.probabilistic)


def _bounds(rows: DocumentColumns, tagger: Predictor) -> list[int]:
    """Return the boundaries of chunks among sentences; there is at least one chunk."""
    if tagger.reads_documents:
        return [0, len(rows)]
    bounds, size = [0], 0
    for number, row in enumerate(rows):
        size += sum(map(len, row["word"]))
        if size > CHUNK_SIZE:
            bounds.append(number + 1)
            size = 0
    return bounds if len(bounds) > 1 and bounds[-1] == len(rows) else [*bounds, len(rows)]


def _joined(parts: Sequence[Mapping[str, str]]) -> str:
    fields = (f'"{name}":[{",".join(filter(None, (part[name] for part in parts)))}]' for name in parts[0])
    return f"{{{','.join(fields)}}}"


def _items(values: Sequence[Any]) -> str:
    """Return the JSON of a list without its brackets."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))[1:-1]


def _tokens(rows: DocumentColumns) -> int:
    return sum(len(row["word"]) for row in rows)
