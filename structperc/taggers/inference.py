"""Labels and numbers of mini-batches as those of a corpus."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.structures import padded_places


class Labelling(NamedTuple):
    """One labelling of a sentence, its score and, from likelihood-trained models, its log-probability."""

    labels: list[str]
    score: float
    log_probability: float | None


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


def _flat(corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]], flat: np.ndarray) -> np.ndarray:
    starts, lengths = torch.from_numpy(corpus.starts[:-1]), torch.from_numpy(corpus.lengths)
    for rows, values in parts:
        own = rows.cpu()
        places, real = padded_places(starts[own], lengths[own])
        flat[places[real].numpy()] = values[:, : real.shape[1]].cpu()[real].numpy()
    return flat
