"""New text as a corpus, and what taggers say about it as strings."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import padded_places

Sentence = Iterable[str] | Mapping[str, Iterable[str]]


class Labelling(NamedTuple):
    """One labelling of a sentence, its score and, from likelihood-trained models, its log-probability."""

    labels: list[str]
    score: float
    log_probability: float | None


def read_sentences(sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> Corpus:
    """Return sentences as a corpus, in which neighbouring ones of one document are together where documents are given.

    Raises InputError for a string where a list of words is due, and for words that are no strings.
    """
    rows = map(_columns, sentences)
    if documents is None:
        corpus = Corpus.from_sentences(rows)
    else:
        corpus = Corpus.from_sentences(rows, list(documents), "document")
    for role, values in corpus.columns.items():
        try:
            "".join(corpus.numbered(role).distinct)
        except TypeError:  # what is no string cannot be joined, or not even be numbered
            wrong = next(value for value in values if not isinstance(value, str))
            raise InputError(f"a word is a string, not {wrong!r}; a sentence is a list of words") from None
    return corpus


def _columns(sentence: Sentence) -> Mapping[str, Iterable[str]]:
    """{column: strings}, none of which is a single string."""
    named = sentence if isinstance(sentence, Mapping) else {"word": sentence}
    for role, values in named.items():
        if isinstance(values, str):
            what = "a sentence" if role == "word" else f"column {role!r} of a sentence"
            raise InputError(f"{what} is a list of words, not the string {values[:30]!r}; split it into words")
    return named


def at_once(corpus: Corpus) -> int:
    """Return how many sequences to label at a time: 64, or more short ones, where the cost of each call would count."""
    return max(64, 2**12 * len(corpus) // max(1, corpus.tokens))


def flat_labels(corpus: Corpus, labels: LabelSet, parts: Iterable[tuple[Tensor, ...]]) -> list[str]:
    """Return the label names of all N tokens of a corpus, in its order.

    `parts` are (rows (B,), labels (B, T), ...) of mini-batches that cover the corpus.
    """
    return labels.decode(flat_values(corpus, ((rows, best) for rows, best, *_ in parts)))


def flat_values(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]]) -> np.ndarray:
    """Return the integer of each of the N tokens of a corpus, in its order; (N,) int64.

    `parts` are (rows (B,), values (B, T)) of mini-batches that cover it.
    """
    flat = np.zeros(corpus.tokens, np.int64)
    starts, lengths = torch.from_numpy(corpus.starts[:-1]), torch.from_numpy(corpus.lengths)
    for rows, values in parts:
        own = rows.cpu()
        places, real = padded_places(starts[own], lengths[own])
        flat[places[real].numpy()] = values[:, : real.shape[1]].cpu()[real].numpy()
    return flat
