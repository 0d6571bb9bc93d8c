"""New text as a corpus, and what taggers say about it as strings."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.segments import Span, spans
from structperc.errors import InputError
from structperc.structures import padded_places
from structperc.text import TextSpan, TokenizedText

Sentence = Iterable[str] | Mapping[str, Iterable[str]]


class Decided(NamedTuple):
    """What a tagger decides about a corpus of N tokens; probabilities where they were asked for."""

    labels: list[str]  # N
    tokens: np.ndarray | None  # (N,) float64, probability of the label of each token
    segments: np.ndarray | None  # (N,) float64, that of the segment the token is in; NaN outside of segments


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
    return _flat(corpus, parts, np.zeros(corpus.tokens, np.int64))


def flat_numbers(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]]) -> np.ndarray:
    """Return the number of each of the N tokens of a corpus, as `flat_values` does for integers; (N,) float64."""
    return _flat(corpus, parts, np.zeros(corpus.tokens))


def text_spans(text: TokenizedText, decided: Decided, scheme: str) -> list[TextSpan]:
    """Return what is decided about the tokens of a text, in their order, as spans of its characters.

    These are its segments, or in the scheme "none", which has no segments, all tokens with their labels.
    """
    found = []
    for first, last in pairwise(text.sentences):
        labels = decided.labels[first:last]
        own = [Span(label, t, t + 1) for t, label in enumerate(labels)] if scheme == "none" else spans(labels)
        known = decided.tokens if scheme == "none" else decided.segments
        for kind, a, b in own:
            start, end = text.tokens[first + a][0], text.tokens[first + b - 1][1]
            found.append(TextSpan(start, end, kind, None if known is None else float(known[first + a])))
    return found


def _flat(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]], flat: np.ndarray) -> np.ndarray:
    starts, lengths = torch.from_numpy(corpus.starts[:-1]), torch.from_numpy(corpus.lengths)
    for rows, values in parts:
        own = rows.cpu()
        places, real = padded_places(starts[own], lengths[own])
        flat[places[real].numpy()] = values[:, : real.shape[1]].cpu()[real].numpy()
    return flat
