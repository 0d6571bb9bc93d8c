"""Segments that are likely under a first model as the candidates of a model with features of segments."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor

from structperc.builder import Builder
from structperc.data.corpus import Corpus
from structperc.data.json_data import check_fields
from structperc.data.splits import Extent
from structperc.data.text_files import expand_path
from structperc.errors import InputError, errors_at
from structperc.models.chain_model import ChainModel
from structperc.models.model_format import model_errors
from structperc.scorers import SegmentCandidates

STATE = {"tagger": dict[str, Any], "bytes": int, "extent": Extent}
LIMIT = 2**34  # bytes of the weights of a first model


class LikelySegments(SegmentCandidates):
    """The segments that a first model finds with a probability above a threshold, and those of its best labels.

    The probability of a segment is the largest one among its types, exact over all label sequences. The first model is
    a tagger trained by likelihood, or with a temperature fitted by `structperc calibrate --temperature`. It is saved
    with the model that uses it.

    Args:
        model: folder of the first model, whose classes are of this library; environment variables are expanded.
        threshold: from 0 to below 1.

    Raises:
        InputError: a threshold out of range.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> SequenceTagger(max_iterations=5).fit(X, y).tagger_.save("first")
        >>> candidates = LikelySegments("first", threshold=0.2)
        >>> corpus = Corpus.from_sentences([{"word": ["She", "saw", "Anna"]}])
        >>> candidates.build_vocabulary(corpus)
        >>> candidates.find(corpus, max_length=2).tolist()
        [[False, False], [False, False], [True, False]]
    """

    weights: Tensor  # uint8, tensors of the first model in the format safetensors

    def __init__(self, model: str, threshold: float = 1e-4) -> None:
        super().__init__()
        if not 0 <= threshold < 1:
            raise InputError(f"LikelySegments: threshold must be at least 0 and below 1, got {threshold}")
        self.model, self.threshold = model, threshold
        self._config: dict[str, Any] | None = None
        self._first: list[ChainModel] = []  # in a list, so that it is not a part with weights to learn

    def build_vocabulary(self, corpus: Corpus) -> None:
        """Load the first model.

        Raises:
            InputError: there is no such model, or it has no probabilities or no segments.
        """
        first = ChainModel.load(expand_path(self.model))
        with errors_at(self.model):
            first.check_probabilistic()
        if first.labels.scheme == "none":
            raise InputError(f"{self.model}: its labels have no tag scheme; LikelySegments needs segments")
        self._first, self.extent = [first], first.extent
        self._config, tensors = first.to_state()
        self.register_buffer("weights", torch.frombuffer(bytearray(save(tensors)), dtype=torch.uint8))

    def find(self, corpus: Corpus, max_length: int) -> np.ndarray:
        """Return the candidates (N, D) bool of a corpus, by first token and number of tokens less 1.

        Raises:
            InputError: the saved first model is damaged.
        """
        first, text = self._tagger(), {role: values for role, values in corpus.columns.items() if role != "label"}
        corpus = replace(corpus, columns=text)  # labels may be of another scheme than those of the first model
        sequences = corpus.by_sentence() if first.unit == "sentence" else corpus  # the unit of its training
        found = np.zeros((corpus.tokens, max_length), bool)
        for span in first.predict(sequences, min_probability=self.threshold).spans or []:
            if span.end - span.start <= max_length:
                found[span.start, span.end - span.start - 1] = True
        return found

    def _tagger(self) -> ChainModel:
        if not self._first:
            if self._config is None:
                raise RuntimeError("LikelySegments has no first model yet; call build_vocabulary")
            with model_errors("LikelySegments: first model"):
                tensors = load(self.weights.cpu().numpy().tobytes())
                self._first = [ChainModel.from_state(self._config, tensors, Builder())]
        return self._first[0]

    def source_files(self) -> list[str]:
        """Return the folder of the first model."""
        return [self.model]

    # -- saved models ----------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any] | None:
        """Return the first model without its weights, and their number of bytes; None before `build_vocabulary`."""
        if self._config is None:
            return None
        return {"tagger": self._config, "bytes": len(self.weights), "extent": self.extent}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Create the table of weights of the first model, which is saved with other weights.

        Raises:
            InputError: an invalid state.
        """
        check_fields(state, STATE, "LikelySegments")
        if not 0 <= state["bytes"] <= LIMIT:
            raise InputError(f"LikelySegments: invalid number of bytes: {state['bytes']}")
        self._config, self._first, self.extent = state["tagger"], [], state["extent"]
        self.register_buffer("weights", torch.zeros(state["bytes"], dtype=torch.uint8))
