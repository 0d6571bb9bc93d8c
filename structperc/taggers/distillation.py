"""Distillation: the label sequences of a trained tagger, from which another tagger learns."""

from typing import Any

import numpy as np
import torch

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Batch, Candidates


class Teacher:
    """A saved tagger whose k best label sequences of the training data another tagger learns by `DistillationLoss`.

    It labels the training data when training begins, and does not read the gold labels. The training data may contain
    further text with labels of `structperc tag`.

    Args:
        model: folder of the tagger, trained by likelihood; environment variables are expanded.
        k: number of label sequences of each sequence.

    Raises:
        InputError: k is below 1.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> trained = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> teacher = Teacher("model", k=2)
        >>> teacher.read(trained, Corpus.from_sentences([{"word": ["Anna", "slept"]}]), trained.labels)
        >>> labels, scores = teacher.lists[0]
        >>> [trained.labels.decode(torch.from_numpy(path)) for path in labels]
        [['B-PER', 'O'], ['O', 'O']]
    """

    def __init__(self, model: str, k: int = 5) -> None:
        if k < 1:
            raise InputError(f"teacher: k must be >= 1, got {k}")
        self.model, self.k = model, k
        self.lists: list[tuple[np.ndarray, np.ndarray]] = []  # of each sequence: labels (K, T), scores (K,)

    def read(self, tagger: Any, corpus: Corpus, labels: LabelSet) -> None:
        """List the label sequences of a corpus.

        Args:
            tagger: the loaded model, a `Tagger`.
            corpus: the training data.
            labels: label set of the tagger that is trained.

        Raises:
            InputError: the model has no probabilities, or other labels.
        """
        tagger.check_probabilistic()
        if tagger.labels.scheme != labels.scheme:
            found = f"{tagger.labels.scheme} labels, not {labels.scheme}"
            raise InputError(f"teacher: {self.model} has {found}; set data.scheme")
        where, temperature = f"teacher {self.model}", tagger.temperature or 1.0
        self.lists = [
            (
                np.stack([labels.encode(one.labels, where) for one in best]),
                np.array([one.score / temperature for one in best]),
            )
            for best in tagger.kbest(corpus, self.k)
        ]

    def candidates(self, batch: Batch) -> Candidates:
        """Return the label sequences of a batch of the training data, with their scores."""
        B, T = batch.sentences.shape
        labels, scores = np.zeros((B, self.k, T), np.int64), np.full((B, self.k), -np.inf, np.float32)
        for b, row in enumerate(batch.rows.tolist()):
            paths, own = self.lists[row]
            labels[b, : len(paths), : paths.shape[1]], scores[b, : len(own)] = paths, own - own.max()
        device = batch.sentences.device
        found = torch.from_numpy(scores).to(device)
        return Candidates(torch.from_numpy(labels).to(device), found, found > -torch.inf)
