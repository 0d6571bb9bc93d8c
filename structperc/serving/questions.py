"""What is asked of a tagger, and the answers as plain JSON types."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.light import Labeller
from structperc.light.inference import Decided, text_spans
from structperc.text import TokenizedText

Rows = list[Mapping[str, list[str]]]
Cutting = Callable[[str], TokenizedText]


class Question(ABC):
    """A document that is to be labelled."""

    @abstractmethod
    def sentences(self) -> Rows:
        """Return its sentences, {column: strings} each; none where there is no token."""

    @abstractmethod
    def answer(self, decided: Decided, scheme: str) -> dict[str, Any]:
        """Return what was decided about its tokens."""


class TextQuestion(Question):
    """Which spans a text has.

    Args:
        text: any string.
        cut: gives its tokens and sentences.
    """

    def __init__(self, text: str, cut: Cutting) -> None:
        self.text, self._cut = text, cut

    def sentences(self) -> Rows:
        """Return its sentences, which have words alone."""
        self._found = self._cut(self.text)
        return [{"word": words} for words in self._found.word_lists]

    def answer(self, decided: Decided, scheme: str) -> dict[str, Any]:
        """Return spans with start, end, type, text and, from taggers with probabilities, confidence."""
        found = []
        for start, end, kind, confidence in text_spans(self._found, decided, scheme):
            sure = {} if confidence is None else {"confidence": confidence}
            found.append({"start": start, "end": end, "type": kind, "text": self.text[start:end], **sure})
        return {"spans": found}


class SentencesQuestion(Question):
    """Which labels the tokens of some sentences have, which are one document.

    Args:
        sentences: words, or {column: strings}, of each sentence.
        columns: those that the tagger reads.
    """

    def __init__(self, sentences: Sequence[list[str] | Mapping[str, list[str]]], columns: Sequence[str]) -> None:
        self._sentences = [one if isinstance(one, Mapping) else {"word": one} for one in sentences]
        self._columns = columns

    def sentences(self) -> Rows:
        """Return the columns of each sentence that the tagger reads; sentences without tokens are left out.

        Raises InputError for columns that are missing or of different lengths, and for empty strings.
        """
        for number, sentence in enumerate(self._sentences):
            if missing := [role for role in self._columns if role not in sentence]:
                raise InputError(f"sentences[{number}]: there is no {missing[0]!r}, which this model reads")
            for role in self._columns:
                if len(sentence[role]) != len(sentence["word"]):
                    lengths = f"{len(sentence[role])} strings for {len(sentence['word'])} words"
                    raise InputError(f"sentences[{number}]: {role!r} has {lengths}")
            if "" in sentence["word"]:
                raise InputError(f"sentences[{number}]: word {sentence['word'].index('')} is empty; leave it out")
        return [{role: one[role] for role in self._columns} for one in self._sentences if one["word"]]

    def answer(self, decided: Decided, scheme: str) -> dict[str, Any]:
        """Return the labels of each sentence and, from taggers with probabilities, those of the labels."""
        ends = np.cumsum([0, *(len(one["word"]) for one in self._sentences)]).tolist()
        answer: dict[str, Any] = {"labels": [decided.labels[a:b] for a, b in pairwise(ends)]}
        if decided.tokens is not None:
            answer["probabilities"] = [decided.tokens[a:b].tolist() for a, b in pairwise(ends)]
        return answer


def answers(tagger: Labeller, questions: Sequence[Question]) -> list[dict[str, Any] | InputError]:
    """Return the answer to each question, or what is wrong with it; all are labelled together."""
    read: list[Rows | InputError] = []
    for question in questions:
        try:
            read.append(question.sentences())
        except InputError as error:
            read.append(error)
    rows = [(number, row) for number, found in enumerate(read) if not isinstance(found, InputError) for row in found]
    corpus = Corpus.from_sentences([row for _, row in rows], [number for number, _ in rows], tagger.unit)
    decided = iter_decided(tagger.decided(corpus, tagger.probabilistic), [_tokens(found) for found in read])
    return [
        found if isinstance(found, InputError) else question.answer(own, tagger.labels.scheme)
        for question, found, own in zip(questions, read, decided, strict=True)
    ]


def iter_decided(decided: Decided, tokens: Sequence[int]) -> list[Decided]:
    """Return what was decided about the first, the second, ... so many tokens."""
    ends = np.cumsum([0, *tokens]).tolist()
    labels, *sure = decided
    return [
        Decided(labels[a:b], *(None if values is None else values[a:b] for values in sure)) for a, b in pairwise(ends)
    ]


def _tokens(found: Rows | InputError) -> int:
    return 0 if isinstance(found, InputError) else sum(len(row["word"]) for row in found)
