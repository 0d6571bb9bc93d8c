"""What labels text, whatever it is made of: the interface of whole and of light taggers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.light.groups import groups
from structperc.light.inference import Decided, Sentence, read_sentences, text_spans
from structperc.text import TextSpan, conll_tokens, rule_sentences, tokenize
from structperc.text.tokenizer import Cut, Split

GROUP = 2**12  # tokens that `tag_iter` reads at a time


def no_probabilities(how: str) -> InputError:
    """Return the error for a tagger whose scores are not log-probabilities, because of how it was trained."""
    return InputError(f"a tagger {how} has scores, not probabilities; train local features with Likelihood")


class Labeller(ABC):
    """Base of what gives one label to each token of new text.

    Sentences are lists of words, or {column: strings} where a tagger reads more than words. With `documents` (an id
    per sentence) neighbouring sentences of one id are decided together, as a tagger trained on documents was; without
    it each sentence stands alone. All that is iterated over is iterated over once; a missing column is an InputError.

    A subclass says what it decides. What is not abstract is final.
    """

    labels: LabelSet
    features: FeatureExtractor
    unit: str  # "sentence" or "document": what one sequence was in training
    training_files: Mapping[str, Any] = {}  # how they were read, see `data.read_options`; empty: not known

    @property
    @abstractmethod
    def probabilistic(self) -> bool:
        """Whether what the tagger decides has probabilities."""

    @property
    def reads_documents(self) -> bool:
        """Whether the labels of a sentence depend on the other sentences of its document."""
        return self.unit == "document" or self.features.extent != "sequence"

    @abstractmethod
    def decided(self, corpus: Corpus, confident: bool = False) -> Decided:
        """Return the labels of all tokens of a corpus, in its order; `confident` adds their probabilities.

        Raises InputError where probabilities are asked for that the tagger does not have.
        """

    def tag(self, sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> list[list[str]]:
        """Return the best labels of each sentence, as names."""
        return self.label(self.read(sentences, documents))

    def tag_iter(self, sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> Iterator[list[str]]:
        """Yield the best labels of each sentence, as names, in memory that does not grow with the text.

        Both are read no further than needed, some thousand tokens at a time and documents whole; an id that comes back
        after another one may be that of a new document. Only where attributes count in all of a corpus (`within:
        corpus`) all is read at once. Raises InputError as `tag` does, after the labels of what comes before.
        """
        together = math.inf if self.features.extent == "corpus" else GROUP
        for own, ids in groups(sentences, documents, together):
            yield from self.tag(own, ids)

    def label(self, corpus: Corpus) -> list[list[str]]:
        """Return the best labels of each sentence of a corpus, as names."""
        return corpus.sentences_of(self.decided(corpus).labels)

    def annotate(self, text: str, tokenizer: Cut = conll_tokens, sentences: Split = rule_sentences) -> list[TextSpan]:
        """Return the segments of a text as spans of its characters, in their order: text[start:end] is of `type`.

        A tagger whose labels are no segments gives a span for each token. Confidences are probabilities where the
        tagger has them, else None. A tagger of documents takes the text as one.

        Args:
            text: any string.
            tokenizer: gives the offsets (start, end) of its tokens, cut as those of the training data.
            sentences: gives the boundaries of sentences among these tokens.

        Raises:
            InputError: a tagger that reads more than words, or a tokenizer whose offsets do not fit the text.
        """
        self.check_words_alone()
        found = tokenize(text, tokenizer, sentences)
        documents = [0] * (len(found.sentences) - 1) if self.unit == "document" else None
        decided = self.decided(self.read(found.word_lists, documents), self.probabilistic)
        return text_spans(found, decided, self.labels.scheme)

    def check_words_alone(self) -> None:
        """Raise InputError for a tagger that reads more of a text than its words."""
        if self.needs is not None:
            raise InputError(self.needs)

    @property
    def needs(self) -> str | None:
        """Error message on new text for a tagger that reads more than words; None for other taggers."""
        if not self._further:
            return None
        lines = " ".join(self.features.columns)
        return f"this model reads {self._further} besides the word, which running text lacks; give columns: {lines}"

    @property
    def input_summary(self) -> str:
        """Summary of the input that the tagger needs."""
        if not self._further:
            return "words, in running text or a token per line"
        return f"a token per line in the columns {' '.join(self.features.columns)}"

    @property
    def _further(self) -> str:
        """The columns that are read besides the word, as a list in a sentence."""
        *some, last = [role for role in self.features.columns if role != "word"] or [""]
        return f"{', '.join(some)} and {last}" if some else last

    def read(self, sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> Corpus:
        """Return sentences as a corpus.

        Raises InputError for a string in place of a list of words, and for words that are none.
        """
        return read_sentences(sentences, documents)
