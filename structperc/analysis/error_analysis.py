"""Errors of predicted segments by kind, type, document, length and novelty."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import Span, spans
from structperc.metrics.f_measure import SegmentScore
from structperc.metrics.segment_errors import ErrorKinds, SegmentPair, match_segments
from structperc.metrics.significance import SegmentIntervals, grouped_bootstrap_intervals, sum_by_document
from structperc.predictor import Prediction

LONGEST = 5  # length in tokens, at and above which segments are counted together
NO_TYPE = "_"  # type of segments of labels such as "B"
SEEN, OTHER_TYPE, UNSEEN = "seen with this type", "seen with another type", "not seen"  # labels are types, too


class AnalysedSentence(NamedTuple):
    """A sentence with its gold and predicted segments.

    Example:
        >>> sentence = AnalysedSentence(0, 0, "dev.txt:1", ["Anna", "left"], [SegmentPair(None, Span("PER", 0, 1))])
        >>> [pair.kind for pair in sentence.errors], sentence.text(Span("PER", 0, 1))
        (['spurious'], 'Anna')
    """

    number: int  # from 0
    document: int  # number of its document, from 0
    place: str  # "file:line" of the first token
    words: list[str]
    pairs: list[SegmentPair]  # all of them, the correct ones too

    @property
    def errors(self) -> list[SegmentPair]:
        """The pairs that are not correct."""
        return [pair for pair in self.pairs if pair.kind != "correct"]

    def text(self, span: Span) -> str:
        """Return the words of a segment."""
        return " ".join(self.words[span.start : span.end])


class FrequentError(NamedTuple):
    """Errors of one kind with the same words and types.

    Example:
        >>> error = FrequentError("type", ("LOC", "Philippines"), ("ORG", "Philippines"), [])
        >>> error.kind, error.gold
        ('type', ('LOC', 'Philippines'))
    """

    kind: str
    gold: tuple[str, str] | None  # type and words
    found: tuple[str, str] | None
    places: list[tuple[AnalysedSentence, SegmentPair]]


@dataclass(frozen=True)
class ErrorAnalysis:
    """The pairs of gold and predicted segments of a text, and their counts; see `error_analysis`.

    Example:
        >>> pairs = [SegmentPair(Span("PER", 0, 1), Span("LOC", 0, 1)), SegmentPair(None, Span("LOC", 1, 2))]
        >>> analysis = ErrorAnalysis([AnalysedSentence(0, 0, "dev.txt:1", ["Anna", "left"], pairs)])
        >>> analysis.confusion()[("PER", "LOC")], analysis.kinds()["PER"].type, analysis.kinds()["LOC"].spurious
        (1, 1, 1)
    """

    sentences: list[AnalysedSentence]  # with at least one token
    segments: bool = True  # False: each token is a segment, and its label the type
    mentions: dict[str, set[str]] | None = (
        None  # types of the words of each segment of the training data; None: unknown
    )

    @property
    def pairs(self) -> Iterator[SegmentPair]:
        """The pairs of all sentences."""
        return chain.from_iterable(sentence.pairs for sentence in self.sentences)

    @cached_property
    def types(self) -> list[str]:
        """The types of gold and predicted segments in alphabetical order."""
        return sorted({span.type for pair in self.pairs for span in pair if span is not None})

    @property
    def documents(self) -> int:
        """The number of documents; 0 if they are not marked: a single one, or as many as sentences."""
        count = len({sentence.document for sentence in self.sentences})
        return count if 1 < count < len(self.sentences) else 0

    def kinds(self) -> dict[str, ErrorKinds]:
        """Return the kinds of errors by type: that of the gold segment, and of the predicted one if it is spurious."""
        pairs: defaultdict[str, list[SegmentPair]] = defaultdict(list)
        for pair in self.pairs:
            span = pair.gold or pair.found
            assert span is not None
            pairs[span.type].append(pair)
        return {name: ErrorKinds.from_pairs(pairs[name]) for name in self.types}

    def confusion(self) -> Counter[tuple[str | None, str | None]]:
        """Return the number of pairs by gold and predicted type; None is the type of a missing segment."""
        return Counter((pair.gold and pair.gold.type, pair.found and pair.found.type) for pair in self.pairs)

    def scores_by(self, key: Callable[[AnalysedSentence, Span], str]) -> dict[str, SegmentScore]:
        """Return the scores of groups of segments.

        Args:
            key: Returns the group of a gold or predicted segment; the two of a correct pair must be in the same group.
        """
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for sentence in self.sentences:
            for pair in sentence.pairs:
                if pair.found is not None:
                    counts[key(sentence, pair.found)][0] += pair.kind == "correct"
                    counts[key(sentence, pair.found)][1] += 1
                if pair.gold is not None:
                    counts[key(sentence, pair.gold)][2] += 1
        return {name: SegmentScore(*counts[name]) for name in sorted(counts)}

    def by_length(self) -> dict[str, SegmentScore]:
        """Return the scores by number of tokens."""
        return self.scores_by(lambda sentence, span: _length(span.end - span.start))

    def by_novelty(self) -> dict[str, SegmentScore]:
        """Return the scores by whether the training data has a segment with the same words; {} if it is unknown."""
        in_training = self.mentions
        if in_training is None:
            return {}

        def novelty(sentence: AnalysedSentence, span: Span) -> str:
            types = in_training.get(sentence.text(span), ())
            return SEEN if span.type in types else OTHER_TYPE if types else UNSEEN

        scores = self.scores_by(novelty)
        return {name: scores.get(name, SegmentScore(0, 0, 0)) for name in (SEEN, OTHER_TYPE, UNSEEN)}

    def by_document(self) -> dict[int, SegmentScore]:
        """Return the scores of each document by its number, from 0; those with the most errors come first."""
        scores = self.scores_by(lambda sentence, span: str(sentence.document))
        worst = sorted(scores.items(), key=lambda one: one[1].correct * 2 - one[1].found - one[1].gold)
        return {int(name): score for name, score in worst}

    @cached_property
    def intervals(self) -> dict[str, SegmentIntervals]:
        """The 95 % intervals of precision, recall and F1 by type; "" stands for all types.

        Documents are drawn with replacement; sentences are, if documents are not marked.
        """
        names = self.types
        number = {name: i for i, name in enumerate(names, 1)}
        counts = np.zeros((len(self.sentences), len(names) + 1, 3), np.int64)
        for row, sentence in enumerate(self.sentences):
            for pair in sentence.pairs:
                for place, span in ((1, pair.found), (2, pair.gold)):
                    if span is not None:
                        counts[row, [0, number[span.type]], place] += 1
                if pair.gold is not None and pair.kind == "correct":
                    counts[row, [0, number[pair.gold.type]], 0] += 1
        documents = np.array([sentence.document for sentence in self.sentences]) if self.documents else None
        by_score = grouped_bootstrap_intervals(sum_by_document(counts, documents))
        return dict(zip(["", *names], by_score, strict=True))

    def frequent(self) -> list[FrequentError]:
        """Return the errors by kind, words and types, the most frequent ones first."""
        errors: dict[tuple[str, tuple[str, str] | None, tuple[str, str] | None], FrequentError] = {}
        for sentence in self.sentences:
            for pair in sentence.errors:
                gold, other = ((span.type, sentence.text(span)) if span is not None else None for span in pair)
                error = errors.setdefault((pair.kind, gold, other), FrequentError(pair.kind, gold, other, []))
                error.places.append((sentence, pair))
        return sorted(errors.values(), key=lambda error: -len(error.places))


def error_analysis(
    corpus: Corpus, prediction: Prediction, scheme: str, training: Corpus | None = None
) -> ErrorAnalysis:
    """Return the pairs of gold and predicted segments of a corpus.

    Args:
        corpus: Sentences with gold labels. Each segment that it had to drop is a missed one, in a sentence of its own.
        prediction: Their labels by a tagger, or its segments, which may overlap; see `Predictor.predict`.
        scheme: Tag scheme of gold and predicted labels; with "none" each token is a segment.
        training: Training data with labels of the same scheme, to separate mentions that it contains.

    Example:
        >>> from structperc import Corpus
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "saw", "Oslo"], "label": ["B-PER", "O", "B-LOC"]}])
        >>> analysis = error_analysis(corpus, Prediction(["B-PER", "O", "B-PER"], None, None), "IOB2", training=corpus)
        >>> {name: kinds.errors for name, kinds in analysis.kinds().items()}
        {'LOC': 1, 'PER': 0}
        >>> {name: score.recall for name, score in analysis.by_novelty().items() if score.gold}
        {'seen with this type': 0.5}
    """
    gold = label_segments(corpus.sentences_of(corpus.columns["label"]), scheme)
    if prediction.spans is None:
        predicted = label_segments(corpus.sentences_of(prediction.labels), scheme)
    else:
        parts = prediction.split(np.diff(corpus.sentences).tolist())
        predicted = [[Span(span.type or NO_TYPE, *span[1:3]) for span in part.spans or ()] for part in parts]
    words, documents = corpus.sentences_of(corpus.columns["word"]), _documents(corpus)
    bounds = pairwise(corpus.sentences.tolist())
    sentences = [
        AnalysedSentence(n, documents[n], corpus.where(first), words[n], match_segments(gold[n], predicted[n]))
        for n, (first, last) in enumerate(bounds)
        if last > first
    ]
    further = max(documents, default=-1) + 1
    for n, (place, kind, text) in enumerate(corpus.dropped):
        tokens = text.split() or ["?"]  # outside of its text
        missed = [SegmentPair(Span(kind, 0, len(tokens)), None)]
        sentences.append(AnalysedSentence(len(words) + n, further + n, place, tokens, missed))
    return ErrorAnalysis(sentences, scheme != "none", None if training is None else _mentions(training, scheme))


def label_segments(sentences: Sequence[Sequence[str]], scheme: str) -> list[list[Span]]:
    """Return the segments of the labels of each sentence; with scheme "none" each token, with its label as type.

    Example:
        >>> label_segments([["B-PER", "I-PER"], ["O"]], "IOB2")
        [[Span(type='PER', start=0, end=2)], []]
    """
    if scheme == "none":
        return [[Span(label, t, t + 1) for t, label in enumerate(sentence)] for sentence in sentences]
    return [[span._replace(type=span.type or NO_TYPE) for span in spans(sentence, scheme)] for sentence in sentences]


def _documents(corpus: Corpus) -> list[int]:
    """Return the number, from 0, of the document of each sentence."""
    number = np.unique(corpus.documents, return_inverse=True)[1]
    sequence = np.searchsorted(corpus.starts[1:-1], corpus.sentences[:-1], side="right")
    return number[sequence].tolist() if len(number) else []


def _mentions(corpus: Corpus, scheme: str) -> dict[str, set[str]]:
    """Return the types of the words of each segment."""
    types: defaultdict[str, set[str]] = defaultdict(set)
    segments = label_segments(corpus.sentences_of(corpus.columns["label"]), scheme)
    for words, segments_of in zip(corpus.sentences_of(corpus.columns["word"]), segments, strict=True):
        for kind, start, end in segments_of:
            types[" ".join(words[start:end])].add(kind)
    return dict(types)


def _length(tokens: int) -> str:
    return f"{tokens}" if tokens < LONGEST else f"{LONGEST} or more"
