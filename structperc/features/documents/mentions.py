"""The tokens of a document that have the same word."""

import numpy as np

from structperc.data.corpus import Corpus, factorize

BEYOND = "_B"  # what stands outside of the sentence of a mention


def mention_groups(corpus: Corpus) -> np.ndarray:
    """Return which tokens share a document and a word, whatever its case: (N,) int64, the number of the group."""
    words = corpus.factorize("word")
    folded = factorize(list(map(str.casefold, words.distinct)))
    document = np.repeat(corpus.documents, corpus.lengths)
    keys = document * len(folded.distinct) + folded.numbers[words.numbers]
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def capitalised(corpus: Corpus) -> np.ndarray:
    """Return whether each token begins with a capital letter, (N,) bool."""
    words = corpus.factorize("word")
    return np.array([word[:1].isupper() for word in words.distinct], bool)[words.numbers]


def first_tokens(corpus: Corpus) -> np.ndarray:
    """Return whether each token is the first of its sentence, (N,) bool."""
    first = np.zeros(corpus.tokens, bool)
    first[corpus.sentences[:-1][np.diff(corpus.sentences) > 0]] = True
    return first


def all_capitals(corpus: Corpus) -> np.ndarray:
    """Return whether each token is in a sentence that is written in capitals alone, (N,) bool."""
    words = corpus.factorize("word")
    lower = np.array([word != word.upper() for word in words.distinct], bool)[words.numbers]
    upper = np.array([len(word) > 1 and word != word.lower() for word in words.distinct], bool)[words.numbers]
    capitals = ~_any(lower, corpus.sentences) & _any(upper, corpus.sentences)
    return np.repeat(capitals, np.diff(corpus.sentences))


def beside(corpus: Corpus, numbers: np.ndarray, offset: int, beyond: int) -> np.ndarray:
    """Return what stands `offset` tokens from each token in its sentence, `beyond` outside of it; (N,) int64.

    numbers: (N,) integers, what stands at each token.
    """
    place = np.arange(corpus.tokens) + offset
    start, stop = (np.repeat(ends, np.diff(corpus.sentences)) for ends in (corpus.sentences[:-1], corpus.sentences[1:]))
    inside = (place >= start) & (place < stop)
    return np.where(inside, numbers[np.where(inside, place, 0)], beyond).astype(np.int64)


def _any(marks: np.ndarray, boundaries: np.ndarray) -> np.ndarray:
    """Return for each sentence whether one of its tokens is marked."""
    before = np.concatenate([[0], np.cumsum(marks)])
    return before[boundaries[1:]] > before[boundaries[:-1]]
