"""Base class of all predictors of labels of new text, with or without PyTorch."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, pairwise, zip_longest
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.splits import Extent
from structperc.data.tag_schemes import Span, spans
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.predictor.limits import Allowed, Spans, with_limits
from structperc.text import tokenize
from structperc.text.alignment import TextSpan, TokenizedText
from structperc.text.tokenizer import SentenceSplitter, Tokenizer, conll_tokens, rule_sentences

Sentence = Iterable[str] | Mapping[str, Iterable[str]]


class ProbableSpan(NamedTuple):
    """A segment, tokens start <= t < end, with its probability."""

    type: str
    start: int
    end: int
    probability: float
    best: bool = True  # False: an alternative, which is not a segment of the predicted labels


class Entities(NamedTuple):
    """The segments of a sentence with their probabilities, and the probability of its predicted labels."""

    spans: list[ProbableSpan]  # by start, end, and descending probability
    probability: float


class Prediction(NamedTuple):
    """Labels of a corpus of N tokens, and their probabilities on request."""

    labels: list[str]  # N
    tokens: np.ndarray | None  # (N,) float64, probability of the label of each token
    segments: np.ndarray | None  # (N,) float64, probability of the segment of each token; NaN outside segments
    spans: list[ProbableSpan] | None = None  # segments that may overlap, if requested or of a tagger that finds such
    log_probabilities: np.ndarray | None = None  # (N,) float64, of each label given the labels before it; sum: labels

    def split(self, lengths: Iterable[int]) -> list["Prediction"]:
        """Return the predictions of successive parts of the corpus with these numbers of tokens."""
        parts, known = [], (self.tokens, self.segments, self.log_probabilities)
        for a, b in pairwise(np.cumsum([0, *lengths]).tolist()):
            tokens, segments, logs = (None if one is None else one[a:b] for one in known)
            spans = [s._replace(start=s.start - a, end=s.end - a) for s in self.spans or () if a <= s.start < b]
            own = None if self.spans is None else spans
            parts.append(Prediction(self.labels[a:b], tokens, segments, own, logs))
        return parts

    @property
    def probability(self) -> float | None:
        """The probability of the labels, given those of the same sequence before them; None if unknown."""
        return None if self.log_probabilities is None else float(np.exp(self.log_probabilities.sum()))

    def with_spans(self, corpus: Corpus, found: Iterable[ProbableSpan], scheme: str) -> "Prediction":
        """Return the prediction with spans: those found in the corpus, and the segments of the predicted labels."""
        labelled = {span[:3]: span for span in labelled_spans(corpus, self, scheme)}
        known = {span[:3]: span._replace(best=span[:3] in labelled) for span in found}
        together = sorted({**labelled, **known}.values(), key=lambda span: (span.start, span.end, -span.probability))
        return self._replace(spans=together)


def labelled_spans(corpus: Corpus, prediction: Prediction, scheme: str) -> list[ProbableSpan]:
    """Return the segments of the predicted labels of a corpus; the probability is NaN if it is unknown."""
    found, known = [], prediction.segments
    for first, last in pairwise(corpus.sentences.tolist()):
        for kind, a, b in spans(prediction.labels[first:last], scheme):
            probability = math.nan if known is None else float(known[first + a])
            found.append(ProbableSpan(kind, first + a, first + b, probability))
    return found


def check_min_probability(value: float, labels: LabelSet) -> None:
    """Raise InputError unless 0 <= value < 1, and for labels without segments."""
    if not isinstance(value, Real) or not 0 <= value < 1:
        raise InputError(f"min_probability must be a number of at least 0 and below 1, got {value!r}")
    if labels.scheme == "none":
        raise InputError("min_probability finds segments, but the labels of this model have no tag scheme")


def text_spans(text: TokenizedText, prediction: Prediction, scheme: str) -> list[TextSpan]:
    """Return the segments of a text as spans of its characters; in the scheme "none" all tokens with their labels."""
    found = []
    if prediction.spans is not None:
        return [
            TextSpan(text.tokens[a][0], text.tokens[b - 1][1], kind, p, best)
            for kind, a, b, p, best in prediction.spans
        ]
    for first, last in pairwise(text.sentences):
        labels = prediction.labels[first:last]
        own = [Span(label, t, t + 1) for t, label in enumerate(labels)] if scheme == "none" else spans(labels, scheme)
        known = prediction.tokens if scheme == "none" else prediction.segments
        for kind, a, b in own:
            start, end = text.tokens[first + a][0], text.tokens[first + b - 1][1]
            found.append(TextSpan(start, end, kind, None if known is None else float(known[first + a])))
    return found


def corpus_from_sentences(sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> Corpus:
    """Return sentences as a corpus; given documents, neighbouring sentences of a document are one sequence.

    Raises InputError unless sentences are lists of words, and words are strings.
    """
    if isinstance(sentences, str | bytes | Mapping) or not isinstance(sentences, Iterable):
        raise InputError(f"expected a list of lists of words, got {sentences!r:.40}; for one sentence, pass [words]")
    rows = map(named_columns, sentences)
    if documents is None:
        corpus = Corpus.from_sentences(rows)
    else:
        corpus = Corpus.from_sentences(rows, list(documents), "document")
    for role, values in corpus.columns.items():
        try:
            "".join(corpus.factorize(role).distinct)
        except TypeError:  # not strings, or not even hashable
            place, wrong = next((t, value) for t, value in enumerate(values) if not isinstance(value, str))
            what = f"expected words to be strings, got {wrong!r:.40}; a sentence is a list of words"
            raise InputError(f"{corpus.where(place)}: {what}") from None
    return corpus


def named_columns(sentence: Sentence) -> Mapping[str, Iterable[str]]:
    """Return a sentence as {column: strings}. Raises InputError for a string in place of a list."""
    named = sentence if isinstance(sentence, Mapping) else {"word": sentence}
    for role, values in named.items():
        what = "a sentence" if role == "word" else f"column {role!r} of a sentence"
        if isinstance(values, str):
            advice = "split it into words, or for one sentence, pass [words]"
            raise InputError(f"expected {what} to be a list of words, got the string {values[:30]!r}; {advice}")
        if isinstance(values, bytes | Mapping) or not isinstance(values, Iterable):
            raise InputError(f"expected {what} to be a list of words, got {values!r:.40}")
    return {role: list(values) for role, values in named.items()}


_MISSING: Any = object()


def groups(
    sentences: Iterable[Sentence], documents: Iterable[int] | None, tokens: float
) -> Iterator[tuple[list[Sentence], list[int] | None]]:
    """Yield groups of sentences, and their documents if given, of whole documents and about `tokens` tokens.

    Reads lazily, at most one sentence beyond a group. Raises InputError if the numbers of ids and sentences differ.
    """
    group: list[Sentence] = []
    ids: list[int] = []
    size = 0
    given: Iterator[tuple[Any, Any]]
    given = zip(sentences, count()) if documents is None else zip_longest(sentences, documents, fillvalue=_MISSING)
    for sentence, document in given:
        if sentence is _MISSING or document is _MISSING:
            raise InputError("the numbers of document ids and sentences differ; give one id for each sentence")
        if size >= tokens and document != ids[-1]:
            yield group, None if documents is None else ids
            group, ids, size = [], [], 0
        columns = {role: list(values) for role, values in named_columns(sentence).items()}
        group.append(columns)
        ids.append(document)
        size += max([1, *map(len, columns.values())])  # empty sentences take memory as well
    if group:
        yield group, None if documents is None else ids


GROUP = 2**12  # tokens that `tag_iter` reads at a time


def missing_probabilities(how: str) -> InputError:
    """Return the error for a tagger without probabilities; `how` describes its training."""
    advice = (
        "train local features with CRFLoss (structperc init --learner crf), or fit a temperature "
        "(structperc calibrate MODEL FILE --temperature)"
    )
    return InputError(f"a tagger {how} does not provide probabilities; {advice}")


class Predictor(ABC):
    """Base class of predictors of one label for each token of new text.

    Sentences are lists of words, or {column: strings} for taggers that read more than words. With `documents` (an id
    per sentence) neighbouring sentences with one id are labelled together, otherwise each sentence is a sequence.
    Arguments may be iterators. A missing column raises InputError. Subclasses implement `predict` and `probabilistic`.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["Oslo", "slept"]], [["B-PER", "O"], ["B-LOC", "O"]]
        >>> predictor = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> isinstance(predictor, Predictor), predictor.tag([["Anna", "sang"]])
        (True, [['B-PER', 'O']])
        >>> predictor.annotate("Anna sang.")[0][:3]  # start, end and type
        (0, 4, 'PER')
    """

    labels: LabelSet
    features: FeatureExtractor
    unit: str  # "sentence" or "document": unit of the sequences in training
    training_files: Mapping[str, Any] = {}  # reading options of the training files, see `data.read_options`

    @property
    @abstractmethod
    def probabilistic(self) -> bool:
        """True if predictions have probabilities."""

    @property
    def reads_documents(self) -> bool:
        """True if the labels of a sentence depend on the other sentences of its document."""
        return self.unit == "document" or self.extent != "sequence"

    @property
    def columns(self) -> list[str]:
        """Roles of the columns that new text must have, the word first."""
        return self.features.columns

    @property
    def extent(self) -> Extent:
        """Extent of the text that determines the scores of the labels of a token."""
        return self.features.extent

    @abstractmethod
    def predict(self, corpus: Corpus, confident: bool = False, min_probability: float | None = None) -> Prediction:
        """Return the labels of all tokens of a corpus.

        Args:
            corpus: N tokens, with the columns that the features read.
            confident: add the probabilities of labels, segments and label sequences.
            min_probability: add these and `spans`: the segments of the labels, and all others with a probability above
                this number.

        Raises:
            InputError: a missing column, or a tagger without probabilities if they are requested.
        """

    def entities(
        self,
        sentences: Iterable[Sentence],
        documents: Iterable[int] | None = None,
        min_probability: float | None = None,
        allowed: Iterable[Allowed | None] | None = None,
        forbidden: Iterable[Spans | None] | None = None,
    ) -> list[Entities]:
        """Return the segments of each sentence with their probabilities, and the probability of its labels.

        The probability of a segment is that of all label sequences with exactly this type, first and last token. The
        probability of the labels of a sentence in a document is conditional on the labels of the sentences before it.

        Args:
            sentences: lists of words, or {column: strings}.
            documents: id of the document of each sentence.
            min_probability: add all other segments with a probability above this number.
            allowed: labels that may be predicted, as in `tag`; all probabilities are then conditional on them.
            forbidden: spans that must not be predicted, as in `tag`; all probabilities are then conditional on it.

        Raises:
            InputError: as `tag`, or a tagger without probabilities.
        """
        corpus = with_limits(self.read(sentences, documents), allowed, forbidden)
        prediction = self.predict(corpus, True, min_probability)
        if prediction.spans is None:
            prediction = prediction.with_spans(corpus, [], self.labels.scheme)
        parts = prediction.split(np.diff(corpus.sentences).tolist())
        return [Entities(part.spans or [], part.probability or 0.0) for part in parts]

    def tag(
        self,
        sentences: Iterable[Sentence],
        documents: Iterable[int] | None = None,
        allowed: Iterable[Allowed | None] | None = None,
        forbidden: Iterable[Spans | None] | None = None,
    ) -> list[list[str]]:
        """Return the names of the best labels of each sentence.

        Args:
            sentences: lists of words, or {column: strings}.
            documents: id of the document of each sentence.
            allowed: for each sentence None, or for each token the names of the labels that may be predicted, None for
                all; see `data.read_lexicon` and `data.forced_labels`.
            forbidden: for each sentence None, or spans (type, start, end) that must not be predicted, tokens
                start <= t < end, such as `data.Span`; other spans may overlap them.

        Raises:
            InputError: a string in place of a list of words, a missing column, another number of documents or tokens,
                an unknown label or type, a span outside of its sentence, or a token for which no label is left.
        """
        return self.label(with_limits(self.read(sentences, documents), allowed, forbidden))

    def tag_iter(self, sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> Iterator[list[str]]:
        """Yield the names of the best labels of each sentence, with constant memory.

        Reads some thousand tokens of whole documents at a time; an id that recurs after another one may be a new
        document. If attributes depend on the whole corpus (`within: corpus`), everything is read first. Raises
        InputError as `tag` does, after the labels of preceding groups.
        """
        together = math.inf if self.extent == "corpus" else GROUP
        for own, ids in groups(sentences, documents, together):
            yield from self.tag(own, ids)

    def label(self, corpus: Corpus) -> list[list[str]]:
        """Return the names of the best labels of each sentence of a corpus."""
        return corpus.sentences_of(self.predict(corpus).labels)

    def annotate(
        self,
        text: str,
        tokenizer: Tokenizer = conll_tokens,
        sentences: SentenceSplitter = rule_sentences,
        min_probability: float | None = None,
    ) -> list[TextSpan]:
        """Return the segments of a text as spans of its characters: text[start:end] is of `type`.

        A tagger without segment labels returns a span for each token. Confidences are probabilities, or None if the
        tagger has none. The text is one document. Returns the spans in the order of the text.

        Args:
            tokenizer: returns the offsets (start, end) of the tokens, tokenised like the training data.
            sentences: returns the boundaries of sentences among these tokens.
            min_probability: add all other segments with a probability above this number, which have `best` False.

        Raises:
            InputError: a tagger that reads more than words, or invalid offsets of the tokenizer; a tagger without
                probabilities if `min_probability` is given.
        """
        self.check_reads_words_only()
        tokenized = tokenize(text, tokenizer, sentences)
        corpus = Corpus.from_documents([tokenized.rows()], self.unit)
        prediction = self.predict(corpus, self.probabilistic, min_probability)
        return text_spans(tokenized, prediction, self.labels.scheme)

    def check_reads_words_only(self) -> None:
        """Raise InputError for a tagger that reads more than words."""
        if self.unsupported_reason is not None:
            raise InputError(self.unsupported_reason)

    @property
    def unsupported_reason(self) -> str | None:
        """Error message for a tagger that cannot read running text; None for other taggers."""
        if not self._further:
            return None
        columns = "columns" if " " in self._further else "column"
        needed = f"this model requires the {columns} {self._further}, which plain text does not contain"
        return f"{needed}; provide columns: {' '.join(self.columns)}"

    @property
    def input_summary(self) -> str:
        """Description of the required input."""
        if not self._further:
            return "plain text, or one token per line"
        return f"one token per line in the columns {' '.join(self.columns)}"

    @property
    def _further(self) -> str:
        """Columns that are read besides the word, as an enumeration."""
        *some, last = [role for role in self.columns if role != "word"] or [""]
        return f"{', '.join(some)} and {last}" if some else last

    def read(self, sentences: Iterable[Sentence] | Corpus, documents: Iterable[int] | None = None) -> Corpus:
        """Return sentences as a corpus; a corpus is returned as it is.

        Raises:
            InputError: a string in place of a list of words, or an invalid word.
        """
        return sentences if isinstance(sentences, Corpus) else corpus_from_sentences(sentences, documents)
