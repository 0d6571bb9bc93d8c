"""Base class of parts that choose the segments of a sentence which are candidates."""

from abc import abstractmethod

import numpy as np

from structperc.data.corpus import Corpus
from structperc.encoders.base import TextModule
from structperc.ragged import Ragged


class SegmentCandidates(TextModule):
    """Base class of parts that choose which segments are candidates; others are not predicted and have no features.

    Example:
        >>> from structperc.data import Corpus
        >>> from structperc.scorers import SegmentCandidates
        >>> class Capitalised(SegmentCandidates):
        ...     def find(self, corpus, max_length):
        ...         first = np.array([word[0].isupper() for word in corpus.columns["word"]])
        ...         return np.repeat(first[:, None], max_length, 1)
        >>> Capitalised().find(Corpus.from_sentences([{"word": ["in", "Rome"]}]), 2).tolist()
        [[False, False], [True, True]]
    """

    n_inputs = 0

    @abstractmethod
    def find(self, corpus: Corpus, max_length: int) -> np.ndarray:
        """Return the candidates (N, D) bool of a corpus, by first token and number of tokens less 1."""

    def encode_inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return no inputs."""
        return []
