"""Word vectors from co-occurrence counts in raw text."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from torch import Tensor

from structperc.errors import InputError

SMOOTHED = 0.75  # exponent of the counts of contexts, reduces the bias towards rare ones


def cooccurrence_vectors(
    sentences: Iterable[Sequence[str]], width: int = 100, window: int = 2, cutoff: int = 3
) -> tuple[list[str], Tensor]:
    """Compute word vectors from co-occurrence counts. Levy, Goldberg & Dagan 2015, sections 2 and 3.

    Truncated singular value decomposition U S V' of the positive pointwise mutual information of words and their
    neighbours, max(0, log p(w, c) / (p(w) p(c)^0.75)); vectors are the rows of U sqrt(S). The sign of each column is
    fixed: its largest absolute value is positive. `sentences`: lists of words. `width`: D, dimension of the vectors.
    `window`: neighbours on each side; the nth has the weight 1/n (as in GloVe), and left and right neighbours are
    different contexts. `cutoff`: minimal count of words and neighbours. Returns v words, the most frequent ones first,
    and their vectors (V, D) float32 of mean squared length 1. Raises InputError: sizes below 1, or too few words for
    the width.
    """
    for name, size in (("width", width), ("window", window), ("cutoff", cutoff)):
        if size < 1:
            raise InputError(f"{name} must be >= 1, got {size}")
    texts = list(sentences)
    counts = Counter(word for text in texts for word in text)
    words = [word for word, count in counts.most_common() if count >= cutoff]
    if len(words) <= width:
        raise InputError(f"{len(words)} words occur {cutoff} times or more, too few for vectors of width {width}")
    association = _positive_information(_cooccurrences(texts, words, window))
    start = np.random.default_rng(0).standard_normal(len(words))  # the same vectors each time
    left, values, _ = svds(association, k=width, v0=start)
    order = np.argsort(-values)
    vectors = left[:, order] * np.sqrt(values[order])
    vectors *= np.sign(vectors[np.abs(vectors).argmax(0), np.arange(width)])
    scale = 1 / np.sqrt(np.square(vectors).sum(1).mean())
    return words, torch.from_numpy((vectors * scale).astype(np.float32))


def _cooccurrences(texts: Sequence[Sequence[str]], words: Sequence[str], window: int) -> csr_array:
    """Return the weighted counts (V, 2 V) of word i before (column j) and after (column V + j) word j."""
    number = {word: i for i, word in enumerate(words)}
    V, gap = len(words), [-1] * window  # separates sentences
    line = np.array([i for text in texts for i in (*(number.get(word, -1) for word in text), *gap)], dtype=np.int64)
    rows, columns, weights = [], [], []
    for distance in range(1, window + 1):
        first, second = line[:-distance], line[distance:]
        both = (first >= 0) & (second >= 0)
        first, second = first[both], second[both]
        rows += [first, second]
        columns += [second, V + first]
        weights.append(np.full(2 * len(first), 1 / distance))
    entries = np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))
    return csr_array(entries, shape=(V, 2 * V))  # sums duplicates


def _positive_information(counts: csr_array) -> csr_array:
    """Return max(0, log p(w, c) / (p(w) p(c)^0.75)), sparse, from counts (V, C)."""
    table = counts.tocoo()
    rows, columns = table.coords
    of_words, of_contexts = np.asarray(counts.sum(1)).ravel(), np.asarray(counts.sum(0)).ravel() ** SMOOTHED
    chance = of_words[rows] * of_contexts[columns] / of_contexts.sum()
    information = csr_array((np.maximum(0, np.log(table.data / chance)), (rows, columns)), shape=counts.shape)
    information.eliminate_zeros()
    return information
