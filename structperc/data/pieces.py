"""Where a corpus is cut into pieces of neighbouring sequences, by how much of it decides what is asked of a token."""

from typing import Literal

import numpy as np

from structperc.data.corpus import Corpus

Extent = Literal["sequence", "document", "corpus"]


def piece_bounds(corpus: Corpus, size: int, extent: Extent = "sequence") -> list[int]:
    """Return 0, ..., S: piece i is the sequences bounds[i], ..., bounds[i + 1] - 1. A corpus without any is one piece.

    A piece has some `size` tokens, or is one sequence, the sequences of one document or, by its extent, all. Sequences
    of a document that do not stand together keep those between them.
    """
    wanted = np.searchsorted(corpus.starts, np.arange(0, max(1, corpus.tokens), size))
    allowed = _cuts(corpus, extent)
    found = np.unique(allowed[np.searchsorted(allowed, wanted)])
    return [*found[found < len(corpus)].tolist(), len(corpus)] if len(corpus) else [0, 0]


def _cuts(corpus: Corpus, extent: Extent) -> np.ndarray:
    """The numbers of the sequences that may begin a piece, ascending, and S."""
    count = len(corpus)
    if extent == "sequence" or not count:
        return np.arange(count + 1)
    if extent == "corpus":
        return np.array([0, count])
    which = np.unique(corpus.documents, return_inverse=True)[1]
    last = np.zeros(which.max() + 1, np.int64)
    np.maximum.at(last, which, np.arange(count))
    ends = np.flatnonzero(np.maximum.accumulate(last[which]) == np.arange(count))  # no document goes on after these
    return np.concatenate([[0], ends + 1])
