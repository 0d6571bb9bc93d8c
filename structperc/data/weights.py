"""Weights of tokens and sequences in training, from a column of numbers."""

from dataclasses import replace

import numpy as np

from structperc.data.corpus import Corpus
from structperc.errors import InputError

WEIGHT = "weight"  # role of the column


def token_weights(corpus: Corpus) -> np.ndarray | None:
    """Return the weight of each token, (N,) float32; None for a corpus without the column.

    Raises InputError: a weight that is not a number >= 0, with its place.
    """
    if WEIGHT not in corpus.columns:
        return None
    distinct, numbers = corpus.factorize(WEIGHT)
    values = np.array([_number(text) for text in distinct], np.float32)
    wrong = ~((values >= 0) & (values < np.inf))
    if wrong.any():
        i = int(wrong.argmax())
        place = corpus.where(int(np.flatnonzero(numbers == i)[0]))
        raise InputError(f"{place}: weight {distinct[i]!r} must be a number >= 0; correct it")
    return values[numbers]


def sequence_weights(corpus: Corpus) -> np.ndarray | None:
    """Return the weight of each sequence, that of its first token, (S,) float32; None for a corpus without weights.

    A sequence without tokens has weight 1. Raises InputError: a weight that is not a number >= 0.
    """
    weights = token_weights(corpus)
    if weights is None:
        return None
    return np.where(corpus.lengths > 0, np.append(weights, 1)[corpus.starts[:-1]], 1).astype(np.float32)


def without_weights(corpus: Corpus) -> Corpus:
    """Return a corpus without the column of weights, which concerns training only."""
    if WEIGHT not in corpus.columns:
        return corpus
    return replace(corpus, columns={role: values for role, values in corpus.columns.items() if role != WEIGHT})


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def first_change(corpus: Corpus, starts: np.ndarray) -> int | None:
    """Return the first token whose weight differs from that of the token before it within its part of the corpus.

    `corpus`: a corpus with weights. `starts`: first tokens of its parts: `Corpus.starts` or `Corpus.sentences`. Returns
    the number of the token; None if all parts have one weight each. Raises InputError: a weight that is not a number >=
    0.
    """
    weights = token_weights(corpus)
    if weights is None or len(weights) < 2:
        return None
    changed = np.append(False, weights[1:] != weights[:-1])
    changed[starts[starts < len(weights)]] = False
    return int(changed.argmax()) if changed.any() else None
